"""Tentative restarts of a full-width solver from its best strategies so far.

If a restart does not halve NashConv within a trial period, it is rolled back. Restarts from averages make first-order
methods converge linearly (Applegate et al., "Faster First-Order Primal-Dual Methods for Linear Programming using
Restarts and Sharpness", 2023). With CFR they help some minimizers in some games and harm others, so each restart is
tried. docs/theory/restarts.md has proofs and measurements.
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
from spiel_cfr.cfr import restart_rule
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.loops import FullWidthState
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.cfr.restart_rule import RestartControl
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.solver_state import copy_into, inner_values
from spiel_cfr.cfr.substitute_regrets import PolicyValues, WarmStart
from spiel_cfr.cfr.warm_start import WarmStartMixin
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.games.sequence_form.single_passes import adopt_pass
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import resumption
from spiel_cfr.regret_minimizers.schedules import Discount, Fading


@dataclasses.dataclass
class RestartedState:
  """The state of a solver with restarts.

  Attributes:
    solver: the state of the inner solver, which is restarted.
    saved: the state of the inner solver at the start of the current trial; undefined outside trials.
    best: shape (sequences,). The best strategies so far in sequence form.
    scores: float64 (players,). The loss of each player's best strategy, see `evaluate.losses`; infinite at first.
    trial_scores: float64 (players,). The losses of the best strategies of the current trial; infinite outside trials.
    control: the state of the rule that decides on restarts.
  """

  solver: FullWidthState
  saved: FullWidthState
  best: AnyFloats
  scores: Float64s
  trial_scores: Float64s
  control: RestartControl


@dataclasses.dataclass
class _Runtime:
  """The inner solver, and the state."""

  solver: FullWidthSolver
  state: RestartedState


class Restarted(WarmStartMixin, Solver):
  """A full-width solver with tentative restarts. Its average policy is the best policy that it has evaluated.

      solver = Restarted(DCFRSolver("leduc_poker"))
      solver.run(10_000)

  At a check it evaluates the current strategies and two averages, with plain and with tapered weights, and keeps the
  best. In constant-sum games of two players it keeps each player's best strategy, by the best response to it. In other
  games it keeps the best policy of all players, by NashConv. At some checks it restarts the inner solver from the best
  strategies, see `FullWidthSolver.init_from_strategy`. A restart that does not halve NashConv soon is rolled back.
  Checks come after fixed numbers of iterations, not after measured times, so that runs are repeatable.

  Attributes:
    compiled_game: `CompiledGame`. The game as arrays.
    first_attempt: the iteration of the first check and restart.
  """

  _runtime: _Runtime

  def __init__(self, solver: FullWidthSolver, *, first_attempt: int = 500) -> None:
    """Makes the solver.

    Args:
      solver: a full-width solver, which is not changed. A new solver with its configuration begins at iteration 0.
      first_attempt: the iteration of the first check, and of the first tentative restart.

    Raises:
      RestartError: the minimizer can't go on from given strategies.
      ArgumentError: `solver` is not a full-width solver, or `first_attempt` is not a positive integer.
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
    before: _Runtime | None = self._runtime
    game = self.compiled_game
    solver = FullWidthSolver(game, **self._arguments)
    # Messages name this solver, not the inner one.
    solver.recipe = self.recipe
    if before is not None:
      solver.lock_as(before.solver)
    state = RestartedState(
      solver=solver.state,
      saved=copy.deepcopy(solver.state),
      best=aligned_zeros(game.end, dtype=game.dtype),
      scores=np.full(game.num_players, np.inf),
      trial_scores=np.full(game.num_players, np.inf),
      control=RestartControl(next_check=self.first_attempt),
    )
    self._runtime = _Runtime(solver, state)

  @property
  def state(self) -> RestartedState:
    state = self._runtime.state
    state.solver = self._runtime.solver.state
    return state

  def complete_state(self) -> RestartedState:
    self._runtime.solver.complete_state()
    return self.state

  def refresh(self) -> None:
    super().refresh()
    self._runtime.solver.refresh()

  @property
  def iteration(self) -> int:  # type: ignore[override]
    """The number of iterations so far, including those that were rolled back."""
    return self._runtime.solver.iteration

  @property
  def nodes_touched(self) -> int:
    return self._runtime.solver.nodes_touched

  @property
  def num_attempts(self) -> int:
    """The number of trials so far."""
    return self._runtime.state.control.num_attempts

  @property
  def num_restarts(self) -> int:
    """The number of restarts that were accepted."""
    return self._runtime.state.control.num_restarts

  @property
  def next_check(self) -> int:
    """The iteration of the next check."""
    return self._runtime.state.control.next_check

  def prepare(self) -> None:
    solver = self._runtime.solver
    solver.prepare()
    # Compiles the kernels of restarts. A restart of a copy would take the memory of another solver.
    for kernel in (resumption(solver.minimizer), adopt_pass):
      _ = kernel.of(self.compiled_game.dtype).address
    self.nash_conv()

  def _advance(self, count: int) -> None:
    solver, control = self._runtime.solver, self._runtime.state.control
    end = solver.iteration + count
    # A check that Ctrl-C interrupts would be repeated, which changes the run. Iterations share the context, since
    # setting signal handlers takes time.
    with DeferredInterrupt(whole=True) as interrupt:
      while True:
        if solver.iteration >= control.next_check:
          self._check()
        if solver.iteration >= end or interrupt.requested:
          return
        solver._advance(min(end, control.next_check) - solver.iteration)

  def _check(self) -> None:
    """Evaluates candidates, then lets the rule decide: continue, restart or roll back."""
    solver, state = self._runtime.solver, self._runtime.state
    control, now = state.control, solver.iteration
    self._evaluate_candidates()
    trial_before = control.trial
    decision = control.decide(now, float(sum(state.scores)), float(sum(state.trial_scores)))
    if control.trial != trial_before:
      state.trial_scores[:] = np.inf
    if decision == restart_rule.RESTART:
      copy_into(state.saved, solver.complete_state())
      solver.init_from_strategy(state.best)
    elif decision == restart_rule.ROLL_BACK:
      copy_into(solver.complete_state(), state.saved)
      solver.state.count_as(now)
      solver.refresh()
    control.schedule(now, averaged=now - solver.state.average_start)

  def _evaluate_candidates(self) -> None:
    """Evaluates the candidates of a check, and keeps the best strategies and their scores."""
    solver, state = self._runtime.solver, self._runtime.state
    control = state.control
    solver.complete_state().add_to_tapered()
    # In a trial, the tapered average alone: it is usually the first candidate that improves.
    candidates = [solver.sums()] if control.trial else self._candidates()
    evaluations = 0
    for candidate in candidates:
      scores = self._keep_if_better(candidate, state.best, state.scores)
      evaluations += 1
      if control.trial:
        np.minimum(state.trial_scores, scores, out=state.trial_scores)
    control.note_check(solver.iteration, evaluations)

  def _candidates(self) -> Iterator[AnyFloats]:
    """Yields multiples of the current strategies, of the plain average, and of the tapered average."""
    solver = self._runtime.solver
    yield solver.current_sequence_form()
    if solver.state.total_weight:
      yield solver.state.cumulative
      yield solver.sums()

  def _keep_if_better(
    self, candidate: AnyFloats, best: AnyFloats, best_scores: Float64s
  ) -> Float64s:
    """Evaluates a candidate, and returns each player's loss, shape (players,).

    Losses below `best_scores` replace them; the strategies are then copied to `best`.
    """
    scores = evaluate.losses(self.compiled_game, evaluate.evaluate(self.compiled_game, candidate))
    for player, treeplex in enumerate(self.compiled_game.treeplexes):
      if scores[player] < best_scores[player]:
        sequences = slice(treeplex.root, treeplex.end)
        best_scores[player] = scores[player]
        np.divide(candidate[sequences], candidate[treeplex.root], out=best[sequences])
    return scores

  def cumulative_regrets(self) -> Float64s | None:
    """Returns the regrets of the inner solver. A restart sets them to match the strategy that it starts from."""
    return self._runtime.solver.cumulative_regrets()

  def current_probabilities(self) -> Float64s:
    return self._runtime.solver.current_probabilities()

  def current_sequence_form(self) -> AnyFloats:
    return self._runtime.solver.current_sequence_form()

  def average_probabilities(self) -> Float64s:
    return forms.behavioral_form(self.compiled_game, self.average_sequence_form())

  def average_sequence_form(self) -> AnyFloats:
    best, _ = self._best_now()
    return best

  def nash_conv(self) -> float:
    if not self.compiled_game.is_exact:
      return super().nash_conv()
    _, scores = self._best_now()
    return float(scores.sum())

  def _best_now(self) -> tuple[AnyFloats, Float64s]:
    """Returns the best strategies including the present candidates, and their scores; the state stays as it is."""
    state = self._runtime.state
    best, scores = state.best.copy(), state.scores.copy()
    if state.control.checked != self.iteration or not self.iteration:
      for candidate in self._candidates():
        self._keep_if_better(candidate, best, scores)
    return best, scores

  @property
  def full_width_solver(self) -> FullWidthSolver:
    return self._runtime.solver

  def begin_warm(self, values: PolicyValues, planned: WarmStart, keep_average: bool) -> None:
    self.reset()
    solver, state = self._runtime.solver, self._runtime.state
    solver.begin_warm(values, planned, keep_average)
    state.control.next_check = max(self.first_attempt, planned.iterations + 1)
    self._keep_if_better(values.sequence_form, state.best, state.scores)
    self._num_loads += 1

  def lock(self, policy: open_spiel.AnyPolicy, infostates: Iterable[Any] | None = None) -> None:
    self._runtime.solver.lock(policy, infostates)

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    solver = self._runtime.solver
    current, saved = inner_values(state, "solver"), inner_values(state, "saved")
    solver._check_state(current)
    solver._check_state(saved)
    iteration = int(current["counts"][0])
    RestartControl(**inner_values(state, "control")).check(iteration)
    trial = state["control.trial"]
    if trial:
      require(
        int(saved["counts"][0]) == trial == current["average_start"], "the trial is a restart"
      )
    for name in ("scores", "trial_scores"):
      require(state[name] > -math.inf, f"{name} are numbers, or infinite before they are known")
    if np.isfinite(state["scores"]).any():
      self._check_best(state["best"], state["scores"])

  def _check_best(self, best: AnyFloats, scores: Float64s) -> None:
    """Raises ValueError unless the best strategies are a policy with these scores."""
    game = self.compiled_game
    # Averages have accumulated the rounding errors of all iterations.
    tolerance = 100 * math.sqrt(np.finfo(game.dtype).eps)
    forms.check_sequence_form(game, best, tolerance)
    losses = evaluate.losses(game, evaluate.evaluate(game, best))
    scale = max(map(abs, game.payoff_range))
    require(np.abs(losses - scores) <= tolerance * scale, "the best strategies have these scores")


@recorded
def RestartedCFRSolver(game: AnyGame) -> Restarted:
  """CFR that converges linearly near the solution, for constant-sum games of two players. It has no parameters.

  It is DCFR with a prediction that fades away. With r the regrets of iteration t and R the cumulative regrets,

      R = max(R, 0) * (t - 1)^1.5 / ((t - 1)^1.5 + 1) + min(R, 0) / 2 + r
      strategy proportional to max(R + 0.1 min(1, 100 / t)^2 r, 0)

  Updates alternate. The last player averages its strategies before
  the update, which the others have just faced. All others average their strategies after the update. The weight of
  iteration t is t^4.

  Args:
    game: a compiled game, or an argument of `compile_game`.

  Raises:
    GameError: see `compile_game`.
  """
  minimizer = RegretMatching(
    positive_discount=Discount(1.5, delay=1), negative_discount=0.5, prediction=Fading(0.1, 100.0)
  )
  return Restarted(FullWidthSolver(game, minimizer, averaging=Averaging(4.0, "faced")))
