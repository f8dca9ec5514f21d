"""Tentative restarts: a solver goes on from the best strategies found so far, and is rolled back unless that pays soon.

Restarts from averages make first-order methods converge linearly (Applegate et al., "Faster First-Order Primal-Dual
Methods for Linear Programming using Restarts and Sharpness", 2023); with CFR they do so for some minimizers, games and
moments, and do harm otherwise. docs/theory/restarts.md has what is proved and what is measured.
"""

import copy
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, aligned_zeros, require
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr import restart_rule, warm_start
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.loops import FullWidthState
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.cfr.restart_rule import RestartControl
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.solver_state import copy_into, inside
from spiel_cfr.cfr.substitute_regrets import WarmStart
from spiel_cfr.cfr.turns import in_turn
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.games.sequence_form.single_passes import adopt_pass
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import WarmForm, resumption
from spiel_cfr.regret_minimizers.schedules import Discount, Fading


@dataclasses.dataclass
class RestartedState:
  """All that changes from one iteration to the next.

  Attributes:
    solver: the state of the solver that is restarted.
    saved: what that was before the restart that is on trial; nobody reads it where none is.
    best: the best strategies so far in sequence form, shape (sequences,).
    scores: each player's share in their NashConv, shape (players,).
    trial_scores: the same of what the trial has found.
    control: what the rule of restarts notes.
  """

  solver: FullWidthState
  saved: FullWidthState
  best: AnyFloats
  scores: Float64s
  trial_scores: Float64s
  control: RestartControl


@dataclasses.dataclass
class _Run:
  solver: FullWidthSolver
  state: RestartedState


class Restarted(Solver):
  """A full-width solver with tentative restarts. Its average policy is the best one that it has certified.

      solver = Restarted(DCFRSolver("leduc_poker"))
      solver.run(10_000)

  Now and then it checks the current strategies and the averages, with plain and with tapered weights, by best
  responses, and keeps the best. In constant-sum games of two players that goes for each player's strategy by itself,
  since a strategy is as bad as the best response to it is good; in other games only all together can be judged, by
  NashConv. At some checks it lets the solver go on from what it keeps, see `FullWidthSolver.init_from_strategy`. Unless
  that halves NashConv soon, the solver is rolled back to where it was before.
  Iterations alone decide what happens when, so that runs are repeatable.

  Attributes:
    compiled_game: the game as arrays.
    first_attempt: as given.
  """

  _runtime: _Run

  def __init__(self, solver: FullWidthSolver, *, first_attempt: int = 500) -> None:
    """Makes the solver.

    Args:
      solver: a full-width solver; it is itself left alone, and where it may be in a run does not matter.
      first_attempt: the iteration of the first check, and of the first tentative restart.

    Raises:
      RestartError: the solver's minimizer can't go on from given strategies.
      ArgumentError: `solver` is no full-width solver, or `first_attempt` is not a positive integer.
    """
    if not isinstance(solver, FullWidthSolver):
      raise errors.ArgumentError(f"Only full-width solvers can be restarted, not {solver!r}.")
    self.compiled_game = solver.compiled_game
    self.first_attempt = arguments.positive_integer(first_attempt, "first_attempt")
    self._arguments = solver.constructor_arguments() | {
      "minimizer": solver.minimizer.resumable(),
      "averaging": dataclasses.replace(solver.averaging, tapered=True),
    }
    self.reset()
    self._runtime.solver.lock_as(solver)

  def reset(self) -> None:
    before, game = self.__dict__.get("_runtime"), self.compiled_game
    solver = FullWidthSolver(game, **self._arguments)
    # Messages name the solver that the caller has made.
    solver.recipe = self.recipe
    if before is not None:
      solver.lock_as(before.solver)
    state = RestartedState(
      solver.state,
      copy.deepcopy(solver.state),
      aligned_zeros(game.end, dtype=game.dtype),
      np.full(game.num_players, np.inf),
      np.full(game.num_players, np.inf),
      RestartControl(next_check=self.first_attempt),
    )
    self._runtime = _Run(solver, state)

  @property
  def state(self) -> RestartedState:
    state = self._runtime.state
    state.solver = self._runtime.solver.state
    return state

  def gathered_state(self) -> RestartedState:
    self._runtime.solver.gathered_state()
    return self.state

  def refresh(self) -> None:
    super().refresh()
    self._runtime.solver.refresh()

  @property
  def iteration(self) -> int:  # type: ignore[override]
    """How many iterations have been done, those that were rolled back included."""
    return self._runtime.solver.iteration

  @property
  def nodes_touched(self) -> int:
    return self._runtime.solver.nodes_touched

  @property
  def num_attempts(self) -> int:
    """How often it has gone on from what it keeps."""
    return self._runtime.state.control.num_attempts

  @property
  def num_restarts(self) -> int:
    """How often that has paid."""
    return self._runtime.state.control.num_restarts

  @property
  def next_check(self) -> int:
    """The next iteration after which it looks for better strategies."""
    return self._runtime.state.control.next_check

  def prepare(self) -> None:
    solver = self._runtime.solver
    solver.prepare()
    # What restarts call besides; to try one out would take the memory of another solver.
    for kernel in (resumption(solver.minimizer), adopt_pass):
      _ = kernel.of(self.compiled_game.dtype).address
    self.nash_conv()

  def _advance(self, count: int) -> None:
    solver, control = self._runtime.solver, self._runtime.state.control
    end = solver.iteration + count
    # Half of a check would be done again, and then the run is another one. One context, because signals take time.
    with DeferredInterrupt(whole=True) as interrupt:
      while True:
        if solver.iteration >= control.next_check:
          self._check()
        if solver.iteration >= end or interrupt.requested:
          return
        solver._advance(min(end, control.next_check) - solver.iteration)

  def _check(self) -> None:
    """Looks for better strategies, and does what they mean."""
    solver, state = self._runtime.solver, self._runtime.state
    control, now = state.control, solver.iteration
    solver.gathered_state().add_to_tapered()
    # The tapered average is the first to be better than what was before, and the plain one hardly ever alone is.
    candidates = [solver.sums()] if control.trial else self._candidates()
    evaluations = 0
    for candidate in candidates:
      found = self._keep(candidate, state.best, state.scores)
      evaluations += 1
      if control.trial:
        np.minimum(state.trial_scores, found, out=state.trial_scores)
    control.note_check(now, evaluations)
    began = control.trial
    action = control.decide(now, float(sum(state.scores)), float(sum(state.trial_scores)))
    if control.trial != began:
      state.trial_scores[:] = np.inf
    if action == restart_rule.RESTART:
      copy_into(state.saved, solver.gathered_state())
      solver.init_from_strategy(state.best)
    elif action == restart_rule.ROLL_BACK:
      copy_into(solver.gathered_state(), state.saved)
      solver.state.count_as(now)
      solver.refresh()
    control.schedule(now, now - solver.state.average_start)

  def _candidates(self) -> Iterator[AnyFloats]:
    """Yields multiples of the strategies that may be worth keeping."""
    solver = self._runtime.solver
    yield solver.current_sequence_form()
    if solver.state.cumulative[0]:
      yield solver.state.cumulative
      yield solver.sums()

  def _keep(self, candidate: AnyFloats, best: AnyFloats | None, best_scores: Float64s) -> Float64s:
    """Writes what is better than the best so far over it, if given; returns each player's share in NashConv."""
    scores = evaluate.scores(self.compiled_game, evaluate.evaluate(self.compiled_game, candidate))
    for player, treeplex in enumerate(self.compiled_game.treeplexes):
      if scores[player] < best_scores[player]:
        own = slice(treeplex.root, treeplex.end)
        best_scores[player] = scores[player]
        if best is not None:
          np.divide(candidate[own], candidate[treeplex.root], out=best[own])
    return scores

  def cumulative_regrets(self) -> Float64s | None:
    """Returns those of the solver that is restarted; a restart has made them fit the strategy that it goes on from."""
    return self._runtime.solver.cumulative_regrets()

  def current_probabilities(self) -> Float64s:
    return self._runtime.solver.current_probabilities()

  def current_sequence_form(self) -> AnyFloats:
    return self._runtime.solver.current_sequence_form()

  def average_probabilities(self) -> Float64s:
    return forms.behavioral_form(self.compiled_game, self.average_sequence_form())

  def average_sequence_form(self) -> AnyFloats:
    best = self._runtime.state.best.copy()
    self._certify(best)
    return best

  def nash_conv(self) -> float:
    return float(self._certify().sum()) if self.compiled_game.is_exact else super().nash_conv()

  def _certify(self, best: AnyFloats | None = None) -> Float64s:
    """Brings a copy of the best strategies, if given, up to date, and returns their scores; changes nothing else."""
    state = self._runtime.state
    scores = state.scores.copy()
    if state.control.checked != self.iteration or not self.iteration:
      for candidate in self._candidates():
        self._keep(candidate, best, scores)
    return scores

  @in_turn
  def warm_start(
    self,
    policy: Any,
    iterations: int | None = None,
    form: WarmForm | None = None,
    keep_average: bool = True,
  ) -> WarmStart:
    """Begins anew from a policy, as if it had played that for some iterations: see `cfr.warm_start.plan`."""
    found, chosen = warm_start.plan(self._runtime.solver, policy, iterations, form)
    with DeferredInterrupt(whole=True):
      self.reset()
      run = self._runtime
      run.solver.begin_warm(found, chosen, bool(keep_average))
      run.state.control.next_check = max(self.first_attempt, chosen.iterations + 1)
      self._keep(found.sequence_form, run.state.best, run.state.scores)
      self._loads += 1
    return chosen

  def lock(self, policy: open_spiel.AnyPolicy, infostates: Iterable[str] | None = None) -> None:
    self._runtime.solver.lock(policy, infostates)

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    solver = self._runtime.solver
    own, saved = inside(state, "solver"), inside(state, "saved")
    solver._check_state(own)
    solver._check_state(saved)
    iteration = int(own["counts"][0])
    RestartControl(**inside(state, "control")).check(iteration)
    trial = state["control.trial"]
    if trial:
      require(int(saved["counts"][0]) == trial == own["average_start"], "the trial is a restart")
    for name in ("scores", "trial_scores"):
      require(state[name] > -math.inf, f"{name} are numbers, or not there yet")
    if np.isfinite(state["scores"]).any():
      self._check_best(state["best"], state["scores"])

  def _check_best(self, best: AnyFloats, scores: Float64s) -> None:
    """Checks that strategies are some, and as good as is said."""
    game = self.compiled_game
    # Averages are sums of as many roundings as there were iterations.
    tolerance = 100 * math.sqrt(self._runtime.solver.precision)
    forms.check_sequence_form(game, best, tolerance)
    found = evaluate.scores(game, evaluate.evaluate(game, best))
    scale = max(map(abs, game.payoff_range))
    require(np.abs(found - scores) <= tolerance * scale, "the best strategies are that good")


@recorded
def RestartedCFRSolver(game: AnyGame) -> Restarted:
  """CFR that converges linearly in the end, for constant-sum games of two players; nothing to tune.

  With r^t the regrets of iteration t, at every infoset

      R = max(R, 0) (t - 1)^1.5 / ((t - 1)^1.5 + 1) + min(R, 0) / 2 + r^t
      x^{t+1} proportional to max(R + 0.1 min(1, 100 / t)^2 r^t, 0)

  which is DCFR with a prediction that fades away. Updates alternate; every player but the last averages the strategies
  to which it has just updated, the last one those that the others have just faced, with weight t^4.

  Args:
    game: a compiled game, or what `compile_game` takes.

  Raises:
    GameError: see `compile_game`.
  """
  minimizer = RegretMatching(
    positive_discount=Discount(1.5, delay=1), negative_discount=0.5, prediction=Fading(0.1, 100.0)
  )
  return Restarted(FullWidthSolver(game, minimizer, averaging=Averaging(4.0, "faced")))
