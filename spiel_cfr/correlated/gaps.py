"""Exact gaps from correlated equilibria of all kinds: the gains of players who deviate.

Play is a distribution over strategy profiles, such as the iterations of a run. A mediator draws a profile. At every
infoset that a player reaches, it recommends an action drawn from the player's strategy. The kinds of deviators:

    coarse                 decides before the game, and gets no recommendations
    extensive-form coarse  may stop following at any infoset, before it sees the recommendation there
    extensive-form         may stop following at any infoset, after it sees the recommendation there
    agent-form coarse      deviates at one infoset, before it sees the recommendation, and follows again
    agent-form             deviates at one infoset, after it sees the recommendation, and follows again
    behavioural            plays any action at any infoset, and sees all recommendations on the way
    normal-form            is told its pure strategy, an action at every infoset, before the game
    mixed normal-form      is told its mixed strategy before the game

The gap is the sum over players of the best deviator's gain: 0 in an equilibrium of that kind. OpenSpiel computes the
first five kinds and the last from lists of profiles: `cce_dist`, `EFCCEDist`, `EFCEDist`, `AFCCEDist`, `AFCEDist` and
`ce_dist`. Here only the two normal-form kinds need the profiles (`MixturePolicy.gap`). A *memory* is the information
that a deviator has, at an infoset, of earlier recommendations. The gain of the other kinds of deviators is a sum of
regrets. Summed regrets of each memory therefore determine the gain; docs/theory/correlated.md has the proof. If the
deviators of a set in `DEVIATIONS` follow again, there is a gap with the name of the set.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, aligned
from spiel_cfr._util import arguments
from spiel_cfr._util.copying import FrozenMapping
from spiel_cfr._util.doors import typed
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.warm_start import read_policy
from spiel_cfr.correlated.deviations import NONE, Memories, full_name
from spiel_cfr.correlated.regrets import DeviationRegrets
from spiel_cfr.evaluation import evaluate
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, COUNT
from spiel_cfr.policies import open_spiel

# Where a deviation begins: before the game, or at an infoset, before or after the recommendation there.
_BEFORE_GAME, _UNSEEN, _SEEN = range(3)
# Where a deviation ends, so that the deviator follows again: never; after an external deviation; after an external or
# internal deviation; after its first action; or at any time, if the deviator sees all recommendations.
_NEVER, _AFTER_EXTERNAL, _AFTER_ANY, _AFTER_FIRST, _ANY_TIME = range(5)
KINDS: Mapping[str, tuple[int, int]] = FrozenMapping(
  {
    "coarse": (_BEFORE_GAME, _NEVER),
    "extensive-form coarse": (_UNSEEN, _NEVER),
    "extensive-form": (_SEEN, _NEVER),
    "agent-form coarse": (_UNSEEN, _AFTER_FIRST),
    "agent-form": (_SEEN, _AFTER_FIRST),
    "blind counterfactual": (_BEFORE_GAME, _AFTER_EXTERNAL),
    "informed counterfactual": (_BEFORE_GAME, _AFTER_ANY),
    "blind partial sequence": (_UNSEEN, _AFTER_EXTERNAL),
    "counterfactual partial sequence": (_UNSEEN, _AFTER_ANY),
    "causal partial sequence": (_SEEN, _AFTER_EXTERNAL),
    "twice informed partial sequence": (_SEEN, _AFTER_ANY),
    "behavioural": (_SEEN, _ANY_TIME),
  }
)
# The kinds whose gaps need the profiles.
NORMAL_FORMS = NORMAL_FORM, MIXED_NORMAL_FORM = "normal-form", "mixed normal-form"
_BLIND = ("extensive-form coarse", "coarse", "agent-form coarse", "blind counterfactual")
# For each set of deviations, the kinds of gap that its regrets determine; the first is the default. If all regrets are
# 0, these gaps are 0.
MEASURED: Mapping[str, tuple[str, ...]] = FrozenMapping(
  {
    "blind action": ("agent-form coarse",),
    "informed action": ("agent-form", "agent-form coarse"),
    "blind counterfactual": ("coarse", "blind counterfactual"),
    "informed counterfactual": ("coarse", "blind counterfactual", "informed counterfactual"),
    "blind partial sequence": (*_BLIND, "blind partial sequence"),
    "counterfactual partial sequence": (
      *_BLIND,
      *("agent-form", "informed counterfactual", "blind partial sequence"),
      "counterfactual partial sequence",
    ),
    "causal partial sequence": (
      *("extensive-form", *_BLIND, "agent-form", "blind partial sequence"),
      "causal partial sequence",
    ),
    "twice informed partial sequence": (
      "extensive-form",
      *(kind for kind in KINDS if kind not in ("extensive-form", "behavioural")),
    ),
    "behavioural": ("behavioural",),
  }
)


class CorrelatedGap(NamedTuple):
  """Gap of play from a kind of correlated equilibrium.

  Attributes:
    gap: float. The sum of the players' gains; negative gains count as 0.
    player_improvements: float64 (players,). The gain of each player's best deviation; negative if all deviations lose.
    expected_values: float64 (players,). The expected payoff of each player.
    kind: str. A name in `KINDS`, "normal-form" or "mixed normal-form".
  """

  gap: float
  player_improvements: Float64s
  expected_values: Float64s
  kind: str


def _best_gains(
  game: CompiledGame, memories: Memories, regrets: Float64s, begins: int, ends: int
) -> Float64s:
  """Returns the gain of each player's best deviator, times the sum of weights, shape (players,).

  Infosets are visited from the last to the first. Each collects the best gains below it:

      deviating(m, a)      of a deviator of memory m who plays a here
      following(a)         of a player who is recommended a here, and follows
      triggered(b, a)      of a player who is recommended b here, and begins to deviate by playing a
      recalling(m, b, a)   of a deviator of memory m who is recommended b and plays a, if it sees all recommendations

  Let r(m, a) be the regret of memory m for not playing a, and s(m, b, a) for not playing a instead of b. A deviator of
  memory m gains

      max over a of  r(m, a) + sum over b of s(m, b, a) + deviating(m, a)
      sum over b of  max over a of  s(m, b, a) + recalling(m, b, a)           if it sees all recommendations

  A player who has followed so far gains as much as the first memory of the infoset. If it may begin to deviate here, it
  gains

      max(sum over b of following(b), gain of the last memory)                         before it sees b
      sum over b of  max(following(b), max over a of s(last, b, a) + triggered(b, a))  after it sees b

  A deviator who may return to following gains at least 0. If it may return after an internal deviation, it also gains
  at least what the best internal deviation here gains.
  """
  sizes = np.repeat(*game.groups[:, [ACTIONS, COUNT]].astype(np.int64).T).tolist()
  shapes = list(zip(np.diff(memories.begin).tolist(), sizes, strict=True))
  deviating = [np.zeros(shape) for shape in shapes]
  following = [np.zeros(size) for size in sizes]
  triggered = [np.zeros((size, size)) for size in sizes]
  recalls = ends == _ANY_TIME
  recalling = [np.zeros((count * recalls, size, size)) for count, size in shapes]
  result = np.zeros(game.num_infosets)
  for infoset, size in reversed(list(enumerate(sizes))):
    first, last = memories.begin[infoset : infoset + 2]
    part = regrets[memories.offset[first] : memories.offset[last]]
    # External memories come first. Playing a fixed action is playing it instead of each recommendation.
    num_external = size * np.count_nonzero(memories.internal[first:last] == 0)
    external, swaps = part[:num_external], part[num_external:].reshape(-1, size, size)
    gains = np.vstack([external.reshape(-1, size), swaps.sum(axis=1)]) + deviating[infoset]
    gains = gains.max(axis=1)
    if ends in (_AFTER_EXTERNAL, _AFTER_ANY):
      gains = np.maximum(gains, 0.0)
    if ends == _AFTER_ANY:
      gains = np.maximum(gains, swaps.max(axis=2).sum(axis=1))
    if recalls:
      gains = (swaps + recalling[infoset]).max(axis=2).sum(axis=1)
    # The gain of a player who has followed so far.
    gain = gains[0]
    if begins == _UNSEEN:
      gain = max(following[infoset].sum(), gains[-1])
    if begins == _SEEN:
      options = swaps[-1] + triggered[infoset]
      np.fill_diagonal(options, following[infoset])
      gain = options.max(axis=1).sum()
    up, action = memories.infoset_above[infoset], memories.action_above[infoset]
    if up == NONE:
      result[infoset] = gains.sum() if recalls else gain
      continue
    following[up][action] += gain
    if recalls:
      recalling[up][:, :, action] += gains.reshape(-1, sizes[up])
    elif ends != _AFTER_FIRST:
      above, trigger = memories.above[first:last], memories.trigger[first:last]
      inherited, begun = above != NONE, (above == NONE) & (trigger != NONE)
      deviating[up][above[inherited] - memories.begin[up], action] += gains[inherited]
      triggered[up][trigger[begun], action] += gains[begun]
  cuts = np.cumsum([tree.num_infosets for tree in game.treeplexes])[:-1]
  return np.array([of_player.sum() for of_player in np.split(result, cuts)])


def measure(
  play: object,
  table: DeviationRegrets,
  regrets: Float64s,
  play_values: Float64s,
  total: float,
  kind: str | None,
) -> CorrelatedGap:
  """Returns the exact gap of play from an equilibrium of a kind.

  Args:
    play: the measured object, for messages.
    table: the layout of the regrets.
    regrets: weighted sums of regrets, shape (table.size,).
    play_values: the weighted sum of each player's expected payoffs, shape (players,).
    total: the sum of weights.
    kind: a name in `KINDS` that `MEASURED` lists for the deviations; None for the first of them.

  Raises:
    ArgumentError: the regrets do not determine that gap, or `total` is 0.
    AbstractionError: the game is a lossy abstraction.
  """
  measured = MEASURED[table.deviations]
  kind = measured[0] if kind is None else kind
  arguments.one_of(kind, "kind", (*KINDS, *NORMAL_FORMS))
  if kind in NORMAL_FORMS:
    raise errors.ArgumentError(
      f"{play!r} stores sums, and the {kind} gap needs the strategies. Take MixturePolicy(game, "
      f"profiles).gap({kind!r})."
    )
  if kind not in measured:
    able = [name for name, kinds in MEASURED.items() if kind in kinds]
    raise errors.ArgumentError(
      f"The regrets of {play!r} do not determine the {kind} gap. These deviations do: {', '.join(able)}. Take a solver "
      "with one of them, or add the policies to an EmpiricalPlay with one of them."
    )
  check_exact(table.game)
  if not total:
    raise errors.ArgumentError(f"{play!r} has played nothing yet. Run the solver, or add policies.")
  gains = _best_gains(table.game, table.memories, regrets, *KINDS[kind]) / total
  return make_gap(gains, play_values / total, kind)


def check_exact(game: CompiledGame) -> None:
  """Raises AbstractionError for a lossy abstraction, whose deviations are not those of the full game."""
  if not game.is_exact:
    raise errors.AbstractionError(
      f"{game} does not determine the gains of deviations in the full game. Take the full game, or a lossless "
      "abstraction of it."
    )


def make_gap(gains: Float64s, expected: Float64s, kind: str) -> CorrelatedGap:
  """Returns the gap of gains and expected payoffs, both of shape (players,)."""
  return CorrelatedGap(float(np.maximum(gains, 0.0).sum()), gains, expected, kind)


class EmpiricalPlay:
  """Empirical distribution of play: strategy profiles with weights, stored as the sums of regrets that gaps need.

      play = EmpiricalPlay(game, "causal partial sequence")
      for _ in range(100):
        play.add(solver.current_policy())
        solver.evaluate_and_update_policy()
      play.gap("extensive-form").gap

  Attributes:
    compiled_game: `CompiledGame`. The game.
    deviations: str. A name in `DEVIATIONS`; `MEASURED` lists the gaps that it determines.
    total: float. The sum of weights.
  """

  def __init__(self, game: AnyGame, deviations: str = "causal partial sequence") -> None:
    """Begins without profiles.

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

  def add(self, policy: open_spiel.AnyPolicy | Float64s, weight: float = 1.0) -> None:
    """Adds a profile.

    Args:
      policy: the strategies of all players: an array in behavioural form, shape (sequences,), such as
        `solver.current_probabilities()`, or anything that `policies.from_policy` reads.
      weight: a positive number, proportional to the profile's probability.

    Raises:
      ArgumentError: the weight is not from 1e-100 to 1e100.
      PolicyError: the policy is not a policy of this game.
    """
    if np.ndim(weight):
      raise errors.ArgumentError(f"weight must be a number, not {arguments.shortened(weight)}.")
    weight = float(arguments.weights(weight, "weight"))
    game, strategy = self.compiled_game, read_policy(self.compiled_game, policy)
    reach = self._table.new_reach()
    self._table.choose(self._regrets, strategy, reach, learns=False)
    utility = gradients(game, reach[: game.end])
    self._play_values += weight * backward_pass(game, expect, utility, strategy=strategy)
    self._table.add(self._regrets, strategy, utility, reach, weight)
    self.total += weight

  @typed
  def gap(self, kind: str | None = None) -> CorrelatedGap:
    """Returns the exact gap of the play from an equilibrium, see `EFRSolver.gap`."""
    return measure(self, self._table, self._regrets, self._play_values, self.total, kind)


def coarse_correlated_gap(solver: FullWidthSolver) -> CorrelatedGap:
  """Returns the exact gap of a full-width solver's iterations from a coarse correlated equilibrium.

      averaging = Averaging(correlated=True)
      solver = FullWidthSolver(game, RegretMatching(), alternating_updates=False, averaging=averaging)
      solver.run(1000)
      coarse_correlated_gap(solver).gap

  With w_t the weight of iteration t and g_p^t player p's gradient, the gain of p is its average regret

      max over x_p of <sum w_t g_p^t / sum w_t, x_p>  -  sum w_t u_p(x^t) / sum w_t

  In a two-player constant-sum game the gap is NashConv of the averages. Hart and Mas-Colell (2000); Celli et al.,
  "Learning to Correlate in Multi-Player General-Sum Sequential Games" (2019).

  Args:
    solver: a full-width solver made with `Averaging(correlated=True)`, after at least one iteration.

  Raises:
    ArgumentError: the solver has no such averaging, or has done no iteration.
  """
  if not isinstance(solver, FullWidthSolver) or not solver.averaging.correlated:
    raise errors.ArgumentError(
      f"{solver!r} does not sum up gradients and payoffs of its iterations. Make a FullWidthSolver with "
      "averaging=Averaging(correlated=True) and alternating_updates=False, or take EFRSolver."
    )
  game, state = solver.compiled_game, solver.state_dict()
  total = float(state["cumulative"][0])
  if not total:
    raise errors.ArgumentError(f"{solver!r} has played nothing yet. Run it first.")
  expected = state["play_values"] / total
  if game.num_players == 2:
    best = evaluate.evaluate(game, state["cumulative"]).best_response_values
  else:
    best = backward_pass(game, take_best, aligned(state["gradients"] / total))
  return make_gap(best - expected, expected, "coarse")
