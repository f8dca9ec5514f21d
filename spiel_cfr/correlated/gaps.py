"""How far play is from correlated equilibria of all kinds, exactly: what a player would gain by deviating from it.

Play is a distribution over profiles of strategies, such as a run's iterations. Somebody draws one and recommends to
each player, wherever it comes to, an action drawn from its strategy there. A player who deviates

    coarse                 decides at the start, and hears nothing
    extensive-form coarse  may stop to follow at any infoset, without having seen what is recommended there
    extensive-form         may stop to follow at any infoset, having seen it
    agent-form coarse      deviates at one infoset, without having seen it, and follows again
    agent-form             deviates at one infoset, having seen it, and follows again

and the gap is what the best such deviators gain, summed over players: 0 in an equilibrium of that kind. A deviator may
do so at any infoset, so these are what OpenSpiel's `cce_dist`, `EFCCEDist`, `EFCEDist`, `AFCCEDist` and `AFCEDist` find
by listing profiles. Here no profiles are listed: sums of regrets by memory have all that a gap takes, since what a
deviation gains is the sum of the regrets of its steps; docs/theory/correlated.md has the proof. The sets in
`DEVIATIONS` have gaps of their own: those that end a deviation by following again.
"""

import types
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import types as numba_types

from spiel_cfr import errors
from spiel_cfr._numba.arrays import (
  COUNT_TABLE,
  FLOATS,
  Float64s,
  Int64s,
  Uint64s,
  aligned,
)
from spiel_cfr._numba.kernels import kernel
from spiel_cfr._util import arguments
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.correlated.deviations import NONE, Memories, full_name
from spiel_cfr.correlated.regrets import INTEGERS, MEMORIES, DeviationRegrets, infosets_of
from spiel_cfr.evaluation import evaluate
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, COUNT
from spiel_cfr.policies import forms, open_spiel

# When a deviator begins, and when it follows again: never; or after a last action of its own, or one that replaces
# another; or after its first; or whenever it likes, since it is told everything all the while.
_AT_THE_START, _UNSEEN, _SEEN = range(3)
_NEVER, _LATER, _LATER_SEEN, _AT_ONCE, _HEARING_ALL = range(5)


class Kind(NamedTuple):
  """A kind of deviators: when they begin to deviate, and when they follow again."""

  begins: int
  ends: int


KINDS: Mapping[str, Kind] = types.MappingProxyType(
  {
    "coarse": Kind(_AT_THE_START, _NEVER),
    "extensive-form coarse": Kind(_UNSEEN, _NEVER),
    "extensive-form": Kind(_SEEN, _NEVER),
    "agent-form coarse": Kind(_UNSEEN, _AT_ONCE),
    "agent-form": Kind(_SEEN, _AT_ONCE),
    "blind counterfactual": Kind(_AT_THE_START, _LATER),
    "informed counterfactual": Kind(_AT_THE_START, _LATER_SEEN),
    "blind partial sequence": Kind(_UNSEEN, _LATER),
    "counterfactual partial sequence": Kind(_UNSEEN, _LATER_SEEN),
    "causal partial sequence": Kind(_SEEN, _LATER),
    "twice informed partial sequence": Kind(_SEEN, _LATER_SEEN),
    "behavioural": Kind(_SEEN, _HEARING_ALL),
  }
)
# Of players who are told their strategies before the game: not by sums, see `MixturePolicy.gap`.
NORMAL_FORM = "normal-form"
_BLIND = ("extensive-form coarse", "coarse", "agent-form coarse", "blind counterfactual")
# The kinds of which the regrets of a set of deviations tell the gaps. All of them vanish where its regrets do; the
# first is the strongest equilibrium.
MEASURED: Mapping[str, tuple[str, ...]] = types.MappingProxyType(
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
  """What players would gain by leaving a correlated equilibrium that is none.

  Attributes:
    gap: the sum of what each would gain, nobody's gain counting as less than 0.
    player_improvements: what each would gain, shape (players,); negative where even the best deviation loses.
    expected_values: what each expects, shape (players,).
    kind: a name in `KINDS`.
  """

  gap: float
  player_improvements: Float64s
  expected_values: Float64s
  kind: str


@kernel(
  numba_types.void(COUNT_TABLE, MEMORIES, *[INTEGERS] * 3, *[FLOATS] * 6, *[numba_types.int64] * 2)
)
def _carry_gains(
  groups: Uint64s,
  memories: Memories,
  of_memory: Int64s,
  of_infoset: Int64s,
  of_pair: Int64s,
  regrets: Float64s,
  worth: Float64s,
  gains: Float64s,
  following: Float64s,
  seen: Float64s,
  result: Float64s,
  begins: int,
  ends: int,
) -> None:
  """Finds what the best deviators gain below each infoset, from the last ones up.

  `worth`, from `of_memory` on, becomes what each action is worth to a deviator with a memory, and `gains` the best of
  them. `following`, from `of_infoset` on, is what can be gained after following a recommendation of each action, and
  `seen`, from `of_pair` on, after each other action instead of it. All are 0 before, and counted from the strategy that
  follows everything. `result` is what can be gained by those who have followed so far, or, of a deviator who begins at
  the start, by that.
  """
  for back in range(groups.shape[0]):
    count, actions, start = infosets_of(groups, groups.shape[0] - 1 - back)[2:]
    for own in range(start, start + count):
      last = memories.begin[own + 1] - 1
      for memory in range(memories.begin[own], last + 1):
        place, row, best = memories.offset[memory], of_memory[memory], -np.inf
        # To play an action whatever is recommended is to play it instead of each.
        rows = actions if memories.internal[memory] else 1
        for a in range(actions):
          for b in range(rows):
            worth[row + a] += regrets[place + b * actions + a]
          best = max(best, worth[row + a])
        if ends in (_LATER, _LATER_SEEN):
          best = max(best, 0.0)
        if ends == _LATER_SEEN:
          swapped = 0.0
          for b in range(actions):
            most = 0.0
            for a in range(actions):
              most = max(most, regrets[place + b * actions + a])
            swapped += most
          best = max(best, swapped)
        gains[memory] = best
      gain = gains[memories.begin[own]]
      if begins == _UNSEEN:
        followed = 0.0
        for a in range(actions):
          followed += following[of_infoset[own] + a]
        gain = max(followed, gains[last])
      if begins == _SEEN:
        gain = 0.0
        place = memories.offset[last]
        for b in range(actions):
          best = following[of_infoset[own] + b]
          for a in range(actions):
            if a != b:
              pair = b * actions + a
              best = max(best, regrets[place + pair] + seen[of_pair[own] + pair])
          gain += best
      result[own] = gain
      up, action = memories.infoset_above[own], memories.action_above[own]
      if up == NONE:
        continue
      following[of_infoset[up] + action] += gain
      if ends == _AT_ONCE:
        continue
      there = of_infoset[up + 1] - of_infoset[up]
      for memory in range(memories.begin[own], last + 1):
        if memories.above[memory] != NONE:
          worth[of_memory[memories.above[memory]] + action] += gains[memory]
        elif memories.trigger[memory] != NONE:
          seen[of_pair[up] + memories.trigger[memory] * there + action] += gains[memory]


def _carry_all(memories: Memories, actions: Int64s, regrets: Float64s) -> Float64s:
  """Returns what those gain from each infoset on who hear all recommendations, whatever they do, shape (infosets,)."""
  result = np.zeros(len(actions))
  # Of each infoset: lists of recommendations so far, what is recommended there, and what is played.
  shapes = [
    (count, size, size) for count, size in zip(np.diff(memories.begin), actions, strict=True)
  ]
  later = [np.zeros(shape) for shape in shapes]
  for own in reversed(range(len(actions))):
    first, last = memories.offset[memories.begin[own : own + 2]]
    gains = (regrets[first:last].reshape(shapes[own]) + later[own]).max(axis=2).sum(axis=1)
    result[own], up = gains.sum(), memories.infoset_above[own]
    if up != NONE:
      later[up][:, :, memories.action_above[own]] += gains.reshape(shapes[up][:2])
  return result


def _best_gains(game: CompiledGame, memories: Memories, regrets: Float64s, kind: Kind) -> Float64s:
  """Returns what each player's best deviator gains, times the sum of weights, shape (players,)."""
  actions = np.repeat(*(game.groups[:, column].astype(np.int64) for column in (ACTIONS, COUNT)))
  if kind.ends == _HEARING_ALL:
    found = _carry_all(memories, actions, regrets)
  else:
    rows = np.repeat(actions, np.diff(memories.begin))
    places = [np.append(0, np.cumsum(each)) for each in (rows, actions, actions**2)]
    found = np.zeros(game.num_infosets)
    sizes = places[0][-1], len(rows), places[1][-1], places[2][-1]
    scratch = (np.zeros(size) for size in sizes)
    _carry_gains(game.groups, memories, *places, regrets, *scratch, found, *kind)
  top = np.where(memories.infoset_above == NONE, found, 0.0)
  return np.array(
    [
      part.sum()
      for part in np.split(top, np.cumsum([t.num_infosets for t in game.treeplexes])[:-1])
    ]
  )


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
  kind = kind or measured[0]
  if kind == NORMAL_FORM:
    raise errors.ArgumentError(
      f"{play!r} keeps sums, and whoever is told a whole strategy takes the strategies themselves: "
      "MixturePolicy(game, profiles).gap('normal-form')."
    )
  arguments.one_of(kind, "kind", tuple(KINDS))
  if kind not in measured:
    able = [name for name, kinds in MEASURED.items() if kind in kinds]
    raise errors.ArgumentError(
      f"The regrets of {play!r} do not tell the {kind} gap. Those of these deviations do: {', '.join(able)}. Take such "
      "a solver, or add the policies to an EmpiricalPlay of such deviations."
    )
  check_exact(table.game)
  if not total:
    raise errors.ArgumentError(f"{play!r} has played nothing yet. Run the solver, or add policies.")
  gains = _best_gains(table.game, table.memories, regrets, KINDS[kind]) / total
  return make_gap(gains, play_values / total, kind)


def check_exact(game: CompiledGame) -> None:
  """Raises AbstractionError where deviations in the full game are not those in an abstraction."""
  if not game.is_exact:
    raise errors.AbstractionError(
      f"In {game} nobody sees what deviations gain in the full game. Take that, or a lossless abstraction of it."
    )


def make_gap(gains: Float64s, expected: Float64s, kind: str) -> CorrelatedGap:
  """Returns a gap, given what each player gains and expects, shape (players,)."""
  return CorrelatedGap(float(np.maximum(gains, 0.0).sum()), gains, expected, kind)


def behavioral(game: CompiledGame, policy: open_spiel.AnyPolicy | Float64s) -> Float64s:
  """Returns a profile in behavioural form, given in that form or as anything that `policies.from_policy` reads.

  Raises:
    PolicyError: it is not one for this game.
  """
  if not isinstance(policy, np.ndarray):
    return open_spiel.from_policy(game, policy)
  try:
    if policy.shape != (game.end,):
      raise ValueError(f"it has the shape {policy.shape}, not ({game.end},)")
    forms.check_behavioral_form(game, policy)
  except ValueError as error:
    raise errors.PolicyError(
      f"An array is no profile of {game} in behavioural form: {error}."
    ) from None
  return policy.astype(np.float64)


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
      ArgumentError: the weight is not positive.
      PolicyError: the policy is not one for this game.
    """
    weight = arguments.positive_number(weight, "weight")
    game, strategy = self.compiled_game, behavioral(self.compiled_game, policy)
    utility = gradients(game, forms.sequence_form(game, strategy))
    self._play_values += weight * backward_pass(game, expect, utility, strategy=strategy)
    reach = self._table.new_reach()
    self._table.choose(self._regrets, strategy, np.zeros(game.end), reach, learns=False)
    self._table.add(self._regrets, strategy, utility, reach, weight)
    self.total += weight

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
