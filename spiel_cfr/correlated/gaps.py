"""Exact gap of play from a correlated equilibrium: the sum over players of the best deviator's gain.

Play is a distribution over strategy profiles, such as the iterations of a run. A mediator draws a profile. At every
infoset that a player reaches, it recommends an action drawn from the player's strategy. Each kind of equilibrium has a
kind of deviator, and the gap is 0 if no such deviator gains:

    coarse                 decides before the game, and gets no recommendations
    extensive-form coarse  may stop following at any infoset, before it sees the recommendation there
    extensive-form         may stop following at any infoset, after it sees the recommendation there
    agent-form coarse      deviates at one infoset, before it sees the recommendation, and follows again
    agent-form             deviates at one infoset, after it sees the recommendation, and follows again
    behavioral             plays any action at any infoset, and sees the recommendations at all of its infosets
    normal-form            is told its pure strategy, an action at every infoset, before the game
    mixed normal-form      is told its mixed strategy before the game

Each other kind in `GAP_KINDS` has the name of a set in `DEVIATIONS`: its deviator follows again after a deviation of
that set. OpenSpiel computes gaps from lists of profiles: of the first five kinds by `cce_dist`, `EFCCEDist`,
`EFCEDist`, `AFCCEDist` and `AFCEDist`, and of the last by `ce_dist`.

Here only the two normal-form kinds need the profiles (`MixturePolicy.gap`). In the other kinds, the gain of a deviator
is a sum of regrets of its memories. A memory is what the deviator knows, at an infoset, of earlier recommendations; see
`deviations`. Sums of regrets over a run therefore determine the gap; docs/theory/correlated.md has the proof.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.warm_start import read_policy
from spiel_cfr.correlated.deviations import Memories, full_name
from spiel_cfr.correlated.gap_kinds import GAP_KINDS, MEASURABLE_GAPS, NORMAL_FORMS, End, Start
from spiel_cfr.correlated.regrets import DeviationRegrets
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.policies import open_spiel


class CorrelatedGap(NamedTuple):
  """Gap of play from a correlated equilibrium of one kind.

  Attributes:
    gap: float. The sum of the players' gains, with negative gains counted as 0.
    player_improvements: float64 (players,). The gain of each player's best deviation; negative if all deviations lose.
    expected_values: float64 (players,). The expected payoff of each player.
    kind: str. The kind of equilibrium: a name in `GAP_KINDS`, "normal-form" or "mixed normal-form".
  """

  gap: float
  player_improvements: Float64s
  expected_values: Float64s
  kind: str


def _best_gains(
  game: CompiledGame, memories: Memories, regrets: Float64s, start: Start, end: End
) -> Float64s:
  """Returns the gain of each player's best deviator, times the sum of weights, shape (players,).

  Infosets are visited from the last to the first. For each action of an infoset, four arrays collect the best gains at
  the player's infosets below:

      deviating(m, a)      of a deviator with memory m that plays a here
      following(a)         of a follower that is recommended a here
      triggered(b, a)      of a follower that is recommended b here, and begins to deviate by playing a
      recalling(m, b, a)   of a deviator with memory m that is recommended b and plays a, if it sees all recommendations

  Args:
    game: the game.
    memories: the layout of the regrets.
    regrets: shape (regrets,). Weighted sums of regrets.
    start: the point at which deviations begin.
    end: the point at which deviations end.
  """
  sizes = memories.num_actions.tolist()
  shapes = list(zip(np.diff(memories.begin).tolist(), sizes, strict=True))
  deviating = [np.zeros(shape) for shape in shapes]
  following = [np.zeros(size) for size in sizes]
  triggered = [np.zeros((size, size)) for size in sizes]
  recalls = end == End.ANY_TIME
  recalling = [np.zeros((count * recalls, size, size)) for count, size in shapes]
  first_gains = np.zeros(game.num_infosets)
  for infoset, size in reversed(list(enumerate(sizes))):
    external, internal = _regrets_at(memories, regrets, infoset, size)
    if recalls:
      gains = (internal + recalling[infoset]).max(axis=2).sum(axis=1)
    else:
      gains = _deviator_gains(external, internal, deviating[infoset], end)
    gain = _follower_gain(gains, internal, following[infoset], triggered[infoset], start)
    above, action = memories.infoset_above[infoset], memories.action_above[infoset]
    if above == NONE:
      first_gains[infoset] = gains.sum() if recalls else gain
      continue
    following[above][action] += gain
    if recalls:
      recalling[above][:, :, action] += gains.reshape(-1, sizes[above])
    elif end != End.AFTER_FIRST_ACTION:
      at_infoset = slice(*memories.begin[infoset : infoset + 2])
      memory_above, trigger = memories.above[at_infoset], memories.trigger[at_infoset]
      is_inherited = memory_above != NONE
      is_triggered = ~is_inherited & (trigger != NONE)
      inherited = memory_above[is_inherited] - memories.begin[above]
      deviating[above][inherited, action] += gains[is_inherited]
      triggered[above][trigger[is_triggered], action] += gains[is_triggered]
  cuts = np.cumsum([tree.num_infosets for tree in game.treeplexes])[:-1]
  return np.array([gains_of_player.sum() for gains_of_player in np.split(first_gains, cuts)])


def _regrets_at(
  memories: Memories, regrets: Float64s, infoset: int, size: int
) -> tuple[Float64s, Float64s]:
  """Returns the regrets at an infoset with `size` actions.

  Returns:
    External regrets of shape (memories, actions): r(m, a) is the regret of memory m for not playing a. Internal regrets
    of shape (memories, actions, actions): s(m, b, a) is the regret of memory m for not playing a instead of b.
  """
  first, last = memories.begin[infoset : infoset + 2]
  at_infoset = regrets[memories.offset[first] : memories.offset[last]]
  # External memories come first.
  num_external = size * np.count_nonzero(memories.internal[first:last] == 0)
  external, internal = at_infoset[:num_external], at_infoset[num_external:]
  return external.reshape(-1, size), internal.reshape(-1, size, size)


def _deviator_gains(
  external: Float64s, internal: Float64s, deviating: Float64s, end: End
) -> Float64s:
  """Returns the best gain at and below an infoset of a deviator with each memory there, shape (memories,).

      max over a of  r(m, a) + sum over b of s(m, b, a) + deviating(m, a)

  A deviator that may follow again gains at least 0. If it may do so after an internal deviation, it also gains at least
  as much as the best internal deviation at this infoset.
  """
  # To play an action is to play it instead of each recommendation.
  gains = np.vstack([external, internal.sum(axis=1)]) + deviating
  gains = gains.max(axis=1)
  if end in (End.AFTER_EXTERNAL, End.AFTER_ANY):
    gains = np.maximum(gains, 0.0)
  if end == End.AFTER_ANY:
    gains = np.maximum(gains, internal.max(axis=2).sum(axis=1))
  return np.asarray(gains)


def _follower_gain(
  gains: Float64s, internal: Float64s, following: Float64s, triggered: Float64s, start: Start
) -> float:
  """Returns the best gain at and below an infoset of a player that has followed so far.

  If deviations begin before the game, it is the gain of the first memory. Otherwise the player may begin to deviate:

      max(sum over b of following(b), gain of the last memory)                         before it sees b
      sum over b of  max(following(b), max over a of s(last, b, a) + triggered(b, a))  after it sees b
  """
  if start == Start.BEFORE_RECOMMENDATION:
    return float(max(following.sum(), gains[-1]))
  if start == Start.AFTER_RECOMMENDATION:
    options = internal[-1] + triggered
    np.fill_diagonal(options, following)
    return float(options.max(axis=1).sum())
  return float(gains[0])


def measure(
  play: object,
  table: DeviationRegrets,
  regrets: Float64s,
  play_values: Float64s,
  total: float,
  kind: str | None,
) -> CorrelatedGap:
  """Returns the exact gap of play from a correlated equilibrium.

  Args:
    play: the solver or `EmpiricalPlay` that error messages name.
    table: the layout of the regrets.
    regrets: weighted sums of regrets, shape (table.size,).
    play_values: weighted sums of each player's expected payoffs, shape (players,).
    total: the sum of weights.
    kind: a name in `GAP_KINDS` that `MEASURABLE_GAPS` lists for the deviations; None for the first of them.

  Raises:
    ArgumentError: the regrets do not determine that gap, or `total` is 0.
    AbstractionError: the game is a lossy abstraction.
  """
  measurable = MEASURABLE_GAPS[table.deviations]
  kind = measurable[0] if kind is None else kind
  arguments.one_of(kind, "kind", (*GAP_KINDS, *NORMAL_FORMS))
  if kind in NORMAL_FORMS:
    raise errors.ArgumentError(
      f"{play!r} stores sums, and the {kind} gap needs the strategies. Take MixturePolicy(game, "
      f"profiles).gap({kind!r})."
    )
  if kind not in measurable:
    sufficient = [name for name, kinds in MEASURABLE_GAPS.items() if kind in kinds]
    raise errors.ArgumentError(
      f"The regrets of {play!r} do not determine the {kind} gap. These deviations do: {', '.join(sufficient)}. Take a "
      "solver with one of them, or add the policies to an EmpiricalPlay with one of them."
    )
  check_exact(table.game)
  if not total:
    raise errors.ArgumentError(f"{play!r} has played nothing yet. Run the solver, or add policies.")
  gains = _best_gains(table.game, table.memories, regrets, *GAP_KINDS[kind]) / total
  return make_gap(gains, play_values / total, kind)


def check_exact(game: CompiledGame) -> None:
  """Raises AbstractionError for a lossy abstraction: its deviations are not the deviations of the full game."""
  if not game.is_exact:
    raise errors.AbstractionError(
      f"{game} does not determine the gains of deviations in the full game. Take the full game, or a lossless "
      "abstraction of it."
    )


def make_gap(gains: Float64s, expected: Float64s, kind: str) -> CorrelatedGap:
  """Returns a gap, given the gain and the expected payoff of each player, both of shape (players,)."""
  return CorrelatedGap(float(np.maximum(gains, 0.0).sum()), gains, expected, kind)


class EmpiricalPlay:
  """Empirical distribution of play: weighted strategy profiles, stored as the sums of regrets that determine gaps.

      play = EmpiricalPlay(game, "causal partial sequence")
      for _ in range(100):
        play.add(solver.current_policy())
        solver.evaluate_and_update_policy()
      play.gap("extensive-form").gap

  With simultaneous updates, the coarse gap of a regret minimizer's iterations falls to 0 in every game: Hart and
  Mas-Colell (2000); Celli et al., "Learning to Correlate in Multi-Player General-Sum Sequential Games" (2019). In a
  two-player constant-sum game, it is the NashConv of the average policy.

  Attributes:
    compiled_game: `CompiledGame`. The game.
    deviations: str. A name in `DEVIATIONS`; `MEASURABLE_GAPS` lists the gaps that it determines.
    total: float. The sum of the profiles' weights.
  """

  def __init__(self, game: AnyGame, deviations: str = "causal partial sequence") -> None:
    """Makes an empty distribution.

    Args:
      game: a compiled game, or an argument of `compile_game`.
      deviations: a name in `DEVIATIONS`, or OpenSpiel's abbreviation of it.

    Raises:
      ArgumentError: the name of the deviations is unknown.
      AbstractionError: infosets of the game are shared.
      GameTooLargeError: the set has more than 2^26 regrets.
      GameError: see `compile_game`.
    """
    self.compiled_game = game = compile_game(game)
    self.deviations, self.total = full_name(deviations), 0.0
    self._table = DeviationRegrets(game, self.deviations)
    self._regrets, self._play_values = np.zeros(self._table.size), np.zeros(game.num_players)

  def __copy__(self) -> "EmpiricalPlay":
    """Returns a distribution of its own, which further profiles do not share."""
    result = object.__new__(EmpiricalPlay)
    result.__dict__.update(self.__dict__)
    result._regrets, result._play_values = self._regrets.copy(), self._play_values.copy()
    return result

  def __repr__(self) -> str:
    return f"<EmpiricalPlay of {self.compiled_game.name}: {self.deviations}, total weight {self.total:zg}>"

  def add(self, policy: open_spiel.AnyPolicy | Float64s, weight: float = 1.0) -> None:
    """Adds a profile.

    Args:
      policy: the strategies of all players: an array in behavioral form, shape (sequences,), such as
        `solver.current_probabilities()`, or anything that `policies.from_policy` reads.
      weight: a positive number, proportional to the profile's probability.

    Raises:
      ArgumentError: the weight is not from 1e-100 to 1e100.
      PolicyError: the policy is not a policy of this game.
    """
    weight = arguments.real_number(weight, "weight", 1e-100, 1e100)
    game, strategy = self.compiled_game, read_policy(self.compiled_game, policy)
    reach = self._table.reach(strategy)
    utility = gradients(game, reach[: game.end])
    self._play_values += weight * backward_pass(game, expect, utility, strategy=strategy)
    self._table.add(self._regrets, strategy, utility, reach, weight)
    self.total += weight

  @typed
  def gap(self, kind: str | None = None) -> CorrelatedGap:
    """Returns the exact gap of the distribution from a correlated equilibrium, see `EFRSolver.gap`."""
    return measure(self, self._table, self._regrets, self._play_values, self.total, kind)
