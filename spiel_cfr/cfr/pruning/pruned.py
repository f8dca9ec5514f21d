"""Pruning in windows: regret-based pruning, best-response pruning and dynamic thresholding.

A window is a set of frozen actions, a number of iterations, and the game without the subtrees below these actions. The
solver freezes actions that are not played, and whose regrets are so negative that this will not change in the window.
It iterates on the compacted game. Then it brings the skipped subtrees back, with the history of a best response. Let C
be the values of a best response to the strategies that the player faced, and Z(j) = sum of w_t v^t(j) the noted values
of an infoset. Then

    "regret"         since the window began:  R(j'a') += C(j'a') - C(j'),  Z(j') += C(j'),  R(ja) += C(ja) - Z(j)
    "best_response"  ever since:              R(j'a') =  C(j'a') - C(j'),  Z(j') =  C(j'),  R(ja) =  C(ja) - Z(j)

for a frozen action ja and all j'a' below it. If R(ja) is still too negative to be played, the window was exact.
Otherwise ja came back too late: the window is rolled back and repeated with ja. docs/theory/rewriting_history.md has
the proof.

- Brown and Sandholm, "Regret-Based Pruning in Extensive-Form Games" (2015): "regret" with CFR.
- Brown, Kroer and Sandholm, "Dynamic Thresholding and Pruning for Regret Minimization" (2017): "regret" with Hedge.
- Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via Pruning" (2017):
  "best_response".
"""

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Bools, Float64s, aligned, require
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.loops import FullWidthState
from spiel_cfr.cfr.loops.state import check_numbers
from spiel_cfr.cfr.pruning.compaction import Compacted, PrunableGame
from spiel_cfr.cfr.pruning.window import Window
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.solver_state import copy_into, inside
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.dynamic_thresholds import ThresholdedHedge
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import tie_tolerances
from spiel_cfr.regret_minimizers.schedules import Power
from spiel_cfr.regret_minimizers.value_sums import WithValueSums

# The iterations from which the history of a skipped subtree is made: those of the window, or all.
Rule = Literal["regret", "best_response"]

# The most iterations of a window, and its length as a part of all iterations so far: 1 / _PART.
_LONGEST, _PART = 3000, 5
# The length of a window whose iterations take about five times as long as its opening: the first number, plus the
# second divided by the number of leaves.
_OPENING_ITERATIONS, _OPENING_LEAVES = 250, 8_000_000
# The factor by which the next attempt is further away if nothing can be pruned.
_IDLE = 2
# The largest part of the leaves that may be left; otherwise nothing is pruned.
_WORTHWHILE = 0.5
# The weight of the other player's whole history in the forecast.
_CAUTION = 1.0


@dataclasses.dataclass
class PrunedState:
  """The state of a pruned solver.

  Attributes:
    solver: the state of the inner solver, which is pruned.
    opened: the state of the inner solver when the window began.
    frozen: bool (sequences,). The topmost sequences that the window leaves out.
    window_end: the iteration after which the window ends.
    nodes: the number of nodes visited, see `Pruned.nodes_touched`.
    rollbacks: the number of windows that were rolled back.
  """

  solver: FullWidthState
  opened: FullWidthState
  frozen: Bools
  window_end: int
  nodes: int = 0
  rollbacks: int = 0


@dataclasses.dataclass
class _Run:
  """A run: the solver of the whole game, and the window once it is open."""

  solver: FullWidthSolver
  state: PrunedState
  window: Window | None = None


class Pruned(Solver):
  """CFR, CFR+ or Hedge with dynamic thresholding, pruned in windows.

      solver = Pruned(CFRPlusSolver("liars_dice"))
      solver.run(10_000)

  An action is frozen if it is not played now, and would not be played after the window in the worst case. The worst
  case is a best response below it, whose losses count as 0, against a forecast: the other player's last window plus its
  whole history, both scaled to the length of the window. If an action comes back too late, CFR+ corrects its regrets.
  CFR and Hedge roll the window back; so averages leave a window out until it is certain to stay. Averages take the
  strategies that the other player faces. A window has a fifth of all iterations so far, but at least `shortest` and at
  most 3,000. It is opened if at most half of the leaves are left.

  Attributes:
    compiled_game: `CompiledGame`. The game as arrays.
    rule: the rule of the constructor.
    shortest: the fewest iterations of a window.
  """

  _runtime: _Run

  def __init__(
    self, solver: FullWidthSolver, rule: Rule = "best_response", *, shortest: int | None = None
  ) -> None:
    """Makes the solver.

    Args:
      solver: CFR, CFR+, or Hedge with dynamic thresholding. It stays as it is; the new solver begins at iteration 0.
      rule: the iterations from which a best response makes the history of a skipped subtree: "regret" for those of the
        window, "best_response" for all, which needs no memory of skipped subtrees.
      shortest: the fewest iterations of a window; by default, so many that they take five times as long as its opening.

    Raises:
      PruningError: the minimizer is none of the three, or forgets regrets that the rule needs; averages have other
        weights than regrets, or are tapered or correlated. Or the game has more than two players, is an abstraction, or
        is in vector form.
      LockError: a part of the policy is locked.
      ArgumentError: `solver` is no full-width solver, `rule` is unknown, or `shortest` is not from 1 to 3,000.
    """
    if not isinstance(solver, FullWidthSolver):
      raise errors.ArgumentError(
        f"Only full-width solvers can be pruned, not {arguments.shortened(solver)}."
      )
    arguments.one_of(rule, "rule", get_args(Rule))
    self.rule, self.compiled_game = rule, solver.compiled_game
    self._minimizer = minimizer = _noted(solver, rule)
    self._forgets = solver.minimizer == RegretMatching.plus()
    self._prunable = PrunableGame(self.compiled_game)
    self._ties = tie_tolerances(self.compiled_game)
    paid = _OPENING_ITERATIONS + _OPENING_LEAVES // max(1, self.compiled_game.num_leaves)
    shortest = min(paid, _LONGEST) if shortest is None else shortest
    self.shortest = arguments.integer(shortest, "shortest", 1, _LONGEST)
    averaging = Averaging(minimizer.weights, "faced")
    self._pruned = solver.constructor_arguments() | {
      "minimizer": minimizer,
      "averaging": averaging,
    }
    self.reset()

  def reset(self) -> None:
    solver = FullWidthSolver(self.compiled_game, **self._pruned)
    # Messages name this solver, not the inner one.
    solver.recipe = self.recipe
    frozen = np.zeros(self.compiled_game.end, bool)
    state = PrunedState(solver.state, copy.deepcopy(solver.state), frozen, self.shortest)
    self._runtime = _Run(solver, state)

  @property
  def state(self) -> PrunedState:
    return self._runtime.state

  def refresh(self) -> None:
    super().refresh()
    self._runtime.solver.refresh()
    self._runtime.window = None

  @property
  def iteration(self) -> int:  # type: ignore[override]
    """The number of iterations, without those that were rolled back."""
    return self._runtime.solver.iteration

  @property
  def nodes_touched(self) -> int:
    """The number of states visited, rolled back or not. Windows count by their part of the leaves."""
    return self._runtime.state.nodes

  @property
  def active_share(self) -> float:
    """The part of the leaves that the current window visits."""
    return self._window().left.share if self.num_pruned else 1.0

  @property
  def num_pruned(self) -> int:
    """The number of frozen sequences, without those below them."""
    return int(self._runtime.state.frozen.sum())

  def prepare(self) -> None:
    run = self._runtime
    run.solver.prepare()
    self._prunable.worth(aligned(run.state.opened.cumulative), best=True, gains_only=True)
    Window(self._prunable.without(np.zeros_like(run.state.frozen)), run.solver).advance(0)

  def _advance(self, count: int) -> None:
    run, end = self._runtime, self.iteration + count
    while self.iteration < end:
      # Ctrl-C must come neither between windows nor before the state of a window is copied back.
      with DeferredInterrupt(whole=True):
        if self.iteration >= run.state.window_end:
          self._next_window()
        count = min(end, run.state.window_end) - self.iteration
        self._count(count, self.active_share)
        if self.num_pruned:
          self._window().advance(count)
        else:
          run.solver._advance(count)

  def _count(self, iterations: int, share: float = 1.0) -> None:
    """Counts the states that iterations visit, given the part of the leaves that they visit."""
    walks = self.compiled_game.num_players if self._runtime.solver.alternating_updates else 1
    self._runtime.state.nodes += iterations * walks * round(share * self.compiled_game.num_states)

  def _window(self) -> Window:
    """Returns the window; after a state was loaded, a new one."""
    run = self._runtime
    if run.window is None:
      run.window = Window(self._prunable.without(run.state.frozen), run.solver)
    return run.window

  def _next_window(self) -> None:
    """Ends the window and opens the next, or rolls it back and reopens it with the actions that came back too late."""
    state = self._runtime.state
    if self.num_pruned:
      late = self._bring_back(state.solver)
      self._count(1 + (self.rule == "best_response"))
      if late.any() and not self._forgets:
        copy_into(state.solver, state.opened)
        state.rollbacks += 1
        self._freeze(state.frozen & ~late)
        return
    length = min(max(self.iteration // _PART, self.shortest), _LONGEST)
    frozen = self._freezable(length)
    self._count(2)
    copy_into(state.opened, state.solver)
    state.window_end = self.iteration + (length if self._freeze(frozen) else _IDLE * length)

  def _freeze(self, frozen: Bools) -> bool:
    """Opens a window without frozen sequences if that pays, or else with all; returns whether it pays."""
    run, left = self._runtime, self._prunable.without(frozen)
    pays = bool(frozen.any()) and left.share <= _WORTHWHILE
    run.state.frozen[:] = frozen & pays
    run.solver.refresh()
    run.window = Window(left, run.solver) if pays else None
    return pays

  def _freezable(self, length: int) -> Bools:
    """Returns the sequences to freeze for so many iterations, a mask of shape (sequences,); only the topmost ones."""
    game, state, opened = self._prunable, self._runtime.state.solver, self._runtime.state.opened
    coming = float(self._weights(length).sum())
    faced, noted = state.cumulative, state.infoset_state[-1]
    of_late, ever = coming / (faced[0] - opened.cumulative[0]), coming / faced[0]
    forecast = (of_late + _CAUTION * ever) * faced - of_late * opened.cumulative
    growth = game.worth(aligned(forecast), best=True, gains_only=True)
    growth -= of_late * (noted - opened.infoset_state[-1])[game.owner]
    regret, unit = state.action_state[0], self._unit()
    if self.rule == "best_response":
      regret = (game.worth(aligned(faced), best=True) - noted[game.owner]) / unit
    most = (self._most_idle(state, self.iteration + length) - self._ties)[game.owner]
    hopeless = (state.strategy == 0) & (regret + np.maximum(growth, 0.0) / unit < most)
    kept, result = game.kept(hopeless), np.zeros(len(hopeless), bool)
    for group in game.groups:
      group.of(result)[:] = group.of(hopeless) & kept[group.above]
    return result

  def _weights(self, count: int) -> Float64s:
    """Returns the weights of the next iterations, shape (count,)."""
    return self._minimizer.weights(self.iteration + 1 + np.arange(count))

  def _unit(self) -> float:
    """Returns the weight of an iteration in regrets: 1; in CFR+, the weight of the next iteration in the average."""
    return float(self._weights(1)[0]) if self._forgets else 1.0

  def _most_idle(self, state: FullWidthState, iteration: int) -> Float64s:
    """Returns the largest regret of an action that is not played at an iteration, shape (infosets,)."""
    game, minimizer = self._prunable, self._minimizer.minimizer
    result = np.zeros(len(self._ties))
    if isinstance(minimizer, ThresholdedHedge):
      for group in game.groups:
        regrets = group.of(state.action_state[0])
        result[group.infosets] = regrets.max(axis=0)
      result -= minimizer.gap(iteration, self.compiled_game)
    return result

  def _bring_back(self, state: FullWidthState) -> Bools:
    """Writes the history of skipped subtrees into a state; returns the frozen actions that came back too late."""
    game, opened, frozen = self._prunable, self._runtime.state.opened, self._runtime.state.frozen
    left, ever = self._window().left, self.rule == "best_response"
    self._add_deferred(left, state.strategy, opened.cumulative, state.cumulative)
    kept, worth = game.kept(frozen), game.worth(aligned(state.cumulative - opened.cumulative))
    regrets, noted, before = (
      state.action_state[0],
      state.infoset_state[-1],
      opened.infoset_state[-1].copy(),
    )
    if ever:
      np.copyto(worth, game.worth(aligned(state.cumulative)), where=~kept)
      regrets[~kept] = 0.0
    for group in reversed(game.groups):
      values, strategy, at = group.of(worth), group.of(state.strategy), group.infosets
      below, best = ~kept[group.above], values.max(axis=0)
      if ever:
        before[at][below] = 0.0
      # Visited infosets have noted their values. The others play as before or, below frozen actions, a best response.
      unseen = np.where(below, best, (strategy * values).sum(axis=0))
      value = np.where(left.seen[at], noted[at] - before[at], unseen)
      noted[at] = before[at] + value
      np.add.at(worth, group.above, value)
      against = np.where(below, value, noted[at]) if ever else value
      regret, tied = group.of(regrets), values == best
      np.add(regret, (values - against) / self._unit(), out=regret, where=~group.of(kept))
      np.copyto(strategy, tied / tied.sum(axis=0), where=below)
    late: Bools = frozen & (
      regrets > (self._most_idle(state, self.iteration) + self._ties)[game.owner]
    )
    if self._forgets:
      np.maximum(regrets, 0.0, out=regrets)
    return late

  def _add_deferred(
    self, left: Compacted, strategy: AnyFloats, opened: AnyFloats, sums: AnyFloats
  ) -> None:
    """Adds to sums of sequence forms at the infosets that the window does not visit."""
    for group in self._prunable.groups:
      more = np.where(left.seen[group.infosets], 0.0, sums[group.above] - opened[group.above])
      part = group.of(sums)
      part += more * group.of(strategy)
    deciding = self.compiled_game.decisions
    sums[deciding.forced] = sums[deciding.chosen]

  def cumulative_regrets(self) -> Float64s | None:
    """Returns those of the inner solver; for frozen subtrees, those of the start of the window."""
    return self._runtime.solver.cumulative_regrets()

  def current_probabilities(self) -> Float64s:
    return self._runtime.solver.current_probabilities()

  def average_probabilities(self) -> Float64s:
    state, sums = self._runtime.state, self._runtime.solver.sums()
    if self.num_pruned:
      now = copy.deepcopy(state.solver)
      late = self._bring_back(now)
      # A window that would be rolled back does not count.
      sums = state.opened.cumulative if late.any() and not self._forgets else now.cumulative
    return forms.behavioral_form(self.compiled_game, sums)

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    current, opened, frozen = inside(state, "solver"), inside(state, "opened"), state["frozen"]
    for values in (current, opened):
      check_numbers(self.compiled_game, values)
    began, done, end = int(opened["counts"][0]), int(current["counts"][0]), state["window_end"]
    require(began <= done <= end <= began + _IDLE * _LONGEST, "the window is possible")
    require(min(state["nodes"], state["rollbacks"]) >= 0, "nothing is counted below 0")
    require(opened["cumulative"] <= current["cumulative"], "sums of strategies do not fall")
    require(forms.uniform(self.compiled_game)[frozen] > 0, "frozen sequences are actions")
    require(not current["strategy"][frozen].any(), "frozen sequences are not played")
    sums = aligned(current["cumulative"])
    if frozen.any():
      left = self._prunable.without(frozen)
      self._add_deferred(left, current["strategy"], opened["cumulative"], sums)
    forms.check_sums(self.compiled_game, opened["cumulative"])
    forms.check_sums(self.compiled_game, sums)


def _noted(solver: FullWidthSolver, rule: Rule) -> WithValueSums:
  """Returns the solver's minimizer, wrapped to note values; raises LockError and PruningError, see `Pruned`."""
  minimizer, averaging = solver.minimizer, solver.averaging
  weights, is_plus = averaging.weights, minimizer == RegretMatching.plus()
  remembers = minimizer == RegretMatching() or isinstance(minimizer, ThresholdedHedge)
  is_known = (is_plus and rule == "best_response") or (remembers and weights == Power(0.0))
  if (
    not (is_known and isinstance(weights, Power))
    or averaging.tapered
    or averaging.correlated
    or averaging.rule
  ):
    raise errors.PruningError(
      f"{minimizer} with {averaging} can't be pruned by the rule {rule!r}. Pruning is sound with CFR, and Hedge with a "
      'threshold, by either rule, and with CFR+ by "best_response"; with plain averages, whose weights are those of '
      "regrets. Use Pruned(CFRPlusSolver(game)), or use no pruning."
    )
  if solver.state.locked.any():
    raise errors.LockError(
      f"{solver!r} has a locked policy, which can't be pruned. Use no pruning."
    )
  return WithValueSums(minimizer, weights)
