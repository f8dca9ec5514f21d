"""Exact gaps from correlated equilibria of all kinds: the gains of players who deviate.

Play is a distribution over profiles of strategies, such as a run's iterations. A mediator draws a profile and
recommends to each player, at every infoset that it reaches, an action drawn from its strategy there. A player who
deviates

    coarse                 decides at the start, and hears nothing
    extensive-form coarse  may stop to follow at any infoset, without having seen what is recommended there
    extensive-form         may stop to follow at any infoset, having seen it
    agent-form coarse      deviates at one infoset, without having seen it, and follows again
    agent-form             deviates at one infoset, having seen it, and follows again
    behavioural            plays any action at any infoset, and hears all recommendations on the way
    normal-form            hears its strategy, an action at every infoset, before the game
    mixed normal-form      hears its mixed strategy before the game

and the gap is what the best such deviators gain, summed over players: 0 in an equilibrium of that kind. The first five
and the last are what OpenSpiel's `cce_dist`, `EFCCEDist`, `EFCEDist`, `AFCCEDist`, `AFCEDist` and `ce_dist` find by
listing profiles. Here only the last two take the profiles (`MixturePolicy.gap`): sums of regrets by memory have all
that the others take, since what a deviation gains is the sum of the regrets of its steps; docs/theory/correlated.md has
the proof. Sets in `DEVIATIONS` that end a deviation by following again have gaps of their own.
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

# When a deviator begins, and when it follows again: never; or after a last action of its own, or one that replaces
# another; or after its first; or whenever it likes, since it is told everything all the while.
_AT_THE_START, _UNSEEN, _SEEN = range(3)
_NEVER, _LATER, _LATER_SEEN, _AT_ONCE, _HEARING_ALL = range(5)
KINDS: Mapping[str, tuple[int, int]] = FrozenMapping(
  {
    "coarse": (_AT_THE_START, _NEVER),
    "extensive-form coarse": (_UNSEEN, _NEVER),
    "extensive-form": (_SEEN, _NEVER),
    "agent-form coarse": (_UNSEEN, _AT_ONCE),
    "agent-form": (_SEEN, _AT_ONCE),
    "blind counterfactual": (_AT_THE_START, _LATER),
    "informed counterfactual": (_AT_THE_START, _LATER_SEEN),
    "blind partial sequence": (_UNSEEN, _LATER),
    "counterfactual partial sequence": (_UNSEEN, _LATER_SEEN),
    "causal partial sequence": (_SEEN, _LATER),
    "twice informed partial sequence": (_SEEN, _LATER_SEEN),
    "behavioural": (_SEEN, _HEARING_ALL),
  }
)
# The kinds that take the profiles themselves.
NORMAL_FORMS = NORMAL_FORM, MIXED_NORMAL_FORM = "normal-form", "mixed normal-form"
_BLIND = ("extensive-form coarse", "coarse", "agent-form coarse", "blind counterfactual")
# The kinds of which the regrets of a set of deviations tell the gaps. All of them vanish where its regrets do; the
# first is the strongest equilibrium.
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
  """A gap from a kind of correlated equilibrium.

  Attributes:
    gap: the sum of the players' gains, a negative gain counting as 0.
    player_improvements: float64 (players,). The gain of each player's best deviation; negative if all of them lose.
    expected_values: float64 (players,). The expected payoff of each player.
    kind: a name in `KINDS`, "normal-form" or "mixed normal-form".
  """

  gap: float
  player_improvements: Float64s
  expected_values: Float64s
  kind: str


def _best_gains(
  game: CompiledGame, memories: Memories, regrets: Float64s, begins: int, ends: int
) -> Float64s:
  """Returns what each player's best deviator gains over following all, times the sum of weights, shape (players,).

  The infosets are visited from the last to the first. Each keeps the gains that can still be made below it:

      worth(m, a)     by a deviator of memory m who plays a here
      following(a)    by a player who is recommended a here, and follows
      seen(b, a)      by a player who is recommended b here, and for the first time deviates, to a
      heard(m, b, a)  by a deviator of memory m who is recommended b and plays a, where deviators hear on

  With r(m, a) the regret of memory m for not playing a, and s(m, b, a) for not playing a instead of b, a deviator of
  memory m gains

      max over a of  r(m, a) + sum over b of s(m, b, a) + worth(m, a)
      sum over b of  max over a of  s(m, b, a) + heard(m, b, a)           where it hears on

  and a player who has followed so far the gain of the first memory, or, if it may begin to deviate here,

      max(sum over b of following(b), gain of the last memory)                         before it sees b
      sum over b of  max(following(b), max over a of s(last, b, a) + seen(b, a))       after it sees b

  Deviators who may follow again gain at least 0, or, if only after another swap, what the best swaps here gain.
  """
  sizes = np.repeat(*game.groups[:, [ACTIONS, COUNT]].astype(np.int64).T).tolist()
  shapes = list(zip(np.diff(memories.begin).tolist(), sizes, strict=True))
  worth = [np.zeros(shape) for shape in shapes]
  following, seen = [np.zeros(size) for size in sizes], [np.zeros((size, size)) for size in sizes]
  hears_on = ends == _HEARING_ALL
  heard = [np.zeros((count * hears_on, size, size)) for count, size in shapes]
  result = np.zeros(game.num_infosets)
  for own, size in reversed(list(enumerate(sizes))):
    first, last = memories.begin[own : own + 2]
    own_regrets = regrets[memories.offset[first] : memories.offset[last]]
    # External ones come first. To play an action whatever is recommended is to play it instead of each.
    outright = size * np.count_nonzero(memories.internal[first:last] == 0)
    swaps = own_regrets[outright:].reshape(-1, size, size)
    gains = np.vstack([own_regrets[:outright].reshape(-1, size), swaps.sum(axis=1)]) + worth[own]
    gains = gains.max(axis=1)
    if ends in (_LATER, _LATER_SEEN):
      gains = np.maximum(gains, 0.0)
    if ends == _LATER_SEEN:
      gains = np.maximum(gains, swaps.max(axis=2).sum(axis=1))
    if hears_on:
      gains = (swaps + heard[own]).max(axis=2).sum(axis=1)
    # Of those who have followed so far.
    gain = gains[0]
    if begins == _UNSEEN:
      gain = max(following[own].sum(), gains[-1])
    if begins == _SEEN:
      options = swaps[-1] + seen[own]
      np.fill_diagonal(options, following[own])
      gain = options.max(axis=1).sum()
    up, action = memories.infoset_above[own], memories.action_above[own]
    if up == NONE:
      result[own] = gains.sum() if hears_on else gain
      continue
    following[up][action] += gain
    if hears_on:
      heard[up][:, :, action] += gains.reshape(-1, sizes[up])
    elif ends != _AT_ONCE:
      above, trigger = memories.above[first:last], memories.trigger[first:last]
      went_on, begun = above != NONE, (above == NONE) & (trigger != NONE)
      worth[up][above[went_on] - memories.begin[up], action] += gains[went_on]
      seen[up][trigger[begun], action] += gains[begun]
  cuts = np.cumsum([tree.num_infosets for tree in game.treeplexes])[:-1]
  return np.array([own.sum() for own in np.split(result, cuts)])


def measure(
  play: object,
  table: DeviationRegrets,
  regrets: Float64s,
  play_values: Float64s,
  total: float,
  kind: str | None,
) -> CorrelatedGap:
  """Returns how far play is from an equilibrium of a kind, exactly.

  Args:
    play: what is measured, for messages.
    table: where regrets are.
    regrets: their weighted sums, shape (table.size,).
    play_values: the weighted sum of what players expected, shape (players,).
    total: the sum of weights.
    kind: a name in `KINDS` that `MEASURED` has for the deviations; None for the first of these.

  Raises:
    ArgumentError: the sums do not tell that gap, or nothing has been played yet.
    AbstractionError: the game is an abstraction that loses something.
  """
  measured = MEASURED[table.deviations]
  kind = measured[0] if kind is None else kind
  arguments.one_of(kind, "kind", tuple(KINDS))
  if kind in NORMAL_FORMS:
    raise errors.ArgumentError(
      f"{play!r} keeps sums, and the {kind} gap takes the strategies themselves: "
      f"MixturePolicy(game, profiles).gap({kind!r})."
    )
  if kind not in measured:
    able = [name for name, kinds in MEASURED.items() if kind in kinds]
    raise errors.ArgumentError(
      f"The regrets of {play!r} do not tell the {kind} gap. Those of these deviations do: {', '.join(able)}. Take such "
      "a solver, or add the policies to an EmpiricalPlay of such deviations."
    )
  check_exact(table.game)
  if not total:
    raise errors.ArgumentError(f"{play!r} has played nothing yet. Run the solver, or add policies.")
  gains = _best_gains(table.game, table.memories, regrets, *KINDS[kind]) / total
  return make_gap(gains, play_values / total, kind)


def check_exact(game: CompiledGame) -> None:
  """Raises AbstractionError where deviations in the full game are not those in an abstraction."""
  if not game.is_exact:
    raise errors.AbstractionError(
      f"{game} does not tell what deviations gain in the full game. Take that, or a lossless abstraction of it."
    )


def make_gap(gains: Float64s, expected: Float64s, kind: str) -> CorrelatedGap:
  """Returns a gap, given what each player gains and expects, shape (players,)."""
  return CorrelatedGap(float(np.maximum(gains, 0.0).sum()), gains, expected, kind)


class EmpiricalPlay:
  """Profiles of strategies and their weights, of which only sums are kept: those that gaps take.

      play = EmpiricalPlay(game, "causal partial sequence")
      for _ in range(100):
        play.add(solver.current_policy())
        solver.evaluate_and_update_policy()
      play.gap("extensive-form").gap

  Attributes:
    compiled_game: the game.
    deviations: a name in `DEVIATIONS`; `MEASURED` has the gaps that it is good for.
    total: the sum of weights.
  """

  def __init__(self, game: AnyGame, deviations: str = "causal partial sequence") -> None:
    """Begins with no profile.

    Raises:
      ArgumentError: there is no such set of deviations.
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
      policy: all players' strategies: an array in behavioural form, shape (sequences,), such as
        `solver.current_probabilities()`, or anything that `policies.from_policy` reads.
      weight: how likely the profile is, in proportion to the others.

    Raises:
      ArgumentError: the weight is not from 1e-100 to 1e100.
      PolicyError: the policy is not one for this game.
    """
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
    """Returns how far the play is from an equilibrium, exactly, see `EFRSolver.gap`."""
    return measure(self, self._table, self._regrets, self._play_values, self.total, kind)


def coarse_correlated_gap(solver: FullWidthSolver) -> CorrelatedGap:
  """Returns how far a full-width solver's play so far is from a coarse correlated equilibrium, exactly.

      averaging = Averaging(correlated=True)
      solver = FullWidthSolver(game, RegretMatching(), alternating_updates=False, averaging=averaging)
      solver.run(1000)
      coarse_correlated_gap(solver).gap

  With w_t the weight of iteration t and g_p^t player p's gradient, what p would gain is

      max over x_p of <sum w_t g_p^t / sum w_t, x_p>  -  sum w_t u_p(x^t) / sum w_t

  which is p's average regret. With two players and constant sums the gap is NashConv of the averages. Hart and
  Mas-Colell (2000); Celli et al., "Learning to Correlate in Multi-Player General-Sum Sequential Games" (2019).

  Args:
    solver: a full-width solver made with `Averaging(correlated=True)`, which has done iterations.

  Raises:
    ArgumentError: it is another, or has done none.
  """
  if not isinstance(solver, FullWidthSolver) or not solver.averaging.correlated:
    raise errors.ArgumentError(
      f"{solver!r} does not keep what its play sums to. Make a FullWidthSolver with "
      "averaging=Averaging(correlated=True) and alternating_updates=False; or take EFRSolver."
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
