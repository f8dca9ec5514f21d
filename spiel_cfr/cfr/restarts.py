"""Restarts on trial: any full-width solver, converging linearly once it is close enough.

Averages converge sublinearly because they remember how badly it all began. Where the dynamics circle around an
equilibrium, a solver that goes on from its average, with an average that begins anew, converges linearly; elsewhere it
loses what it had. So restarts are on trial here, and taken back unless they pay at once. docs/restarts.md has the
derivation, the proof of the safeguard and measurements.

Restarts from averages are from Applegate, Hinder, Lu and Lubin, "Faster First-Order Primal-Dual Methods for Linear
Programming using Restarts and Sharpness" (2023); that they speed up predictive CFR+ is from Chakrabarti, Diakonikolas
and Kroer, "Block-Coordinate Methods and Restarting for Solving Extensive-Form Games" (2023).
"""

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, aligned_zeros
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr.cfr import TabularCFRSolver
from spiel_cfr.cfr.descriptions import split_by_place
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.stepping import Stepping
from spiel_cfr.cfr.substitute_regrets import Known, WarmStart
from spiel_cfr.cfr.trials import rule
from spiel_cfr.cfr.trials.flat import FlatTrials
from spiel_cfr.cfr.trials.states import check_state
from spiel_cfr.cfr.warm_start import WarmStarting
from spiel_cfr.evaluation import evaluate
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class _Noted:
  """An attribute that is a field of `rule.CONTROL`, where compiled code finds it."""

  def __set_name__(self, owner: type, name: str) -> None:
    self._field = name.removeprefix("_")

  def __get__(self, owner: "Restarted", kind: type | None = None) -> Any:
    return owner._control[self._field].item()

  def __set__(self, owner: "Restarted", value: float) -> None:
    owner._control[self._field] = value


def _noted() -> Any:
  return _Noted()


class Restarted(Stepping, WarmStarting):
  """A full-width solver with restarts on trial. Its average policy is the best one that it has certified.

      solver = Restarted(DCFRSolver("leduc_poker"))
      solver.run(10_000)

  Now and then it checks the current strategies and the averages, with plain and with tapered weights, by best
  responses, and keeps the best. In constant-sum games of two players that goes for each player's strategy by itself,
  since a strategy is as bad as the best response to it is good; in other games only all together can be judged, by
  NashConv. At some checks it lets the solver go on from what it keeps, see `FullWidthSolver.restart_from`. Unless that halves
  NashConv soon, the solver goes on from where it was before.
  Iterations alone decide what happens when, so that runs are repeatable.

  Attributes:
    compiled_game: the game as arrays.
    first_attempt: as given.
    safeguard: as given.
    num_attempts: how often it has gone on from what it keeps.
    num_restarts: how often that has paid.
  """

  state_names = (
    "num_attempts",
    "num_restarts",
    "_cost",
    "_checked",
    "_next_check",
    "_best",
    "_scores",
    "_trial",
    "_trial_length",
    "_trial_nash_conv",
    "_trial_scores",
    "_last_attempt",
    "_last_nash_conv",
    "_handed_over",
  )
  _workspaces = ("_control", "_evaluator", "_solver", "_saved", "_flat", "_found")
  num_attempts: int = _noted()
  num_restarts: int = _noted()
  _cost: float = _noted()
  _checked: int = _noted()
  _next_check: int = _noted()
  _trial: int = _noted()
  _trial_length: int = _noted()
  _trial_nash_conv: float = _noted()
  _last_attempt: int = _noted()
  _last_nash_conv: float = _noted()
  _handed_over: int = _noted()
  # What the solver was before the restart that is on trial.
  _saved: dict[str, Any]

  def __init__(
    self, solver: Solver, *, first_attempt: int = 500, safeguard: float | None = 1.0
  ) -> None:
    """Makes the solver.

    Args:
      solver: a full-width solver; it is itself left alone, and where it may be in a run does not matter.
      first_attempt: the iteration of the first check, and of the first restart on trial.
      safeguard: in constant-sum games of two players, if a check after T iterations finds a NashConv above

          safeguard * payoff range * sum over all infosets of sqrt(actions) / sqrt(T)

        CFR with simultaneous updates takes over for good, whose own bound that is, times the safeguard. NashConv is
        then O(1 / sqrt(T)) whatever the solver does. None for no safeguard; there is none where a policy is held.

    Raises:
      RestartError: the solver can't go on from given strategies, or restarts itself already.
      ArgumentError: `solver` is none, `first_attempt` is not a positive integer, or the safeguard is not positive.
    """
    if not isinstance(solver, FullWidthSolver):
      raise errors.ArgumentError(f"Only full-width solvers can be restarted, not {solver!r}.")
    if solver.restarts_itself:
      raise errors.RestartError(f"{solver!r} restarts itself already; take it as it is.")
    minimizer = solver.minimizer.resumable()
    self.compiled_game = solver.compiled_game
    self.first_attempt = arguments.positive_integer(first_attempt, "first_attempt")
    self.safeguard = (
      None if safeguard is None else arguments.positive_number(safeguard, "safeguard")
    )
    self._base = solver.with_tapered_average()
    self._base.minimizer = minimizer
    self._bound = self._cfr_bound()
    self._start()

  def _cfr_bound(self) -> float:
    """Returns C such that NashConv of simultaneous CFR is at most C / sqrt(T), infinite where there is none."""
    game = self.compiled_game
    # Where a part of the policy is held, NashConv need not fall.
    if self._base._held.any() or not game.is_two_player_constant_sum or self.safeguard is None:
      return math.inf
    low, high = game.payoff_range
    roots = sum(float(np.sqrt(tree.infoset_actions).sum()) for tree in game.treeplexes)
    return self.safeguard * (high - low) * roots

  def _start(self) -> None:
    game = self.compiled_game
    self._evaluator = evaluate.Evaluator(game)
    self._control = np.zeros(1, rule.CONTROL)
    self._control["bound"] = self._bound
    of_two = game.constant_sum if game.num_players == 2 else None
    self._control["half_sum"] = math.nan if of_two is None else of_two / 2
    self._best = aligned_zeros(game.end)
    self._scores, self._trial_scores = np.full((2, game.num_players), np.inf)
    self._found = np.zeros(game.num_players)
    self._next_check = self.first_attempt
    self._last_nash_conv = self._trial_nash_conv = math.inf
    self._saved = {}
    self._go_on_with(self._base.restarted())
    self._base = self._solver

  def _go_on_with(self, solver: FullWidthSolver) -> None:
    """Makes another solver the one that is restarted."""
    self._solver = solver
    notes = self._control, self._best, self._scores, self._trial_scores
    fits = not self._handed_over and FlatTrials.fits(solver)
    self._flat = FlatTrials(solver, notes) if fits else None

  @property
  def iteration(self) -> int:
    """How many iterations have been done, those that were taken back included."""
    return self._handed_over + self._solver.iteration

  @iteration.setter
  def iteration(self, number: int) -> None:
    self._solver.iteration = number - self._handed_over

  @property
  def nodes_touched(self) -> int:
    """How many states a recursive implementation of the iterations would have visited."""
    return self._solver.nodes_touched + (self.handed_over and self._base.nodes_touched)

  @property
  def next_check(self) -> int:
    """The next iteration after which it looks for better strategies."""
    return self._next_check

  @property
  def certified_nash_conv(self) -> float:
    """The NashConv of the best strategies that checks have found, infinite before the first."""
    return float(self._scores.sum())

  @property
  def handed_over(self) -> bool:
    """Whether the safeguard has handed over to CFR."""
    return self._handed_over > 0

  def prepare(self) -> None:
    """Compiles kernels or takes them from disk, so that the first iteration is not slower than others."""
    self._solver.prepare()
    self._solver.restarted().restart_from(self._solver.current_sequence_form())
    self.nash_conv()
    if self._flat is not None:
      self._flat.prepare()

  def _with_held(self, probabilities: Float64s) -> Float64s:
    return self._base._with_held(probabilities)

  @property
  def _minimizer(self) -> RegretMinimizer:
    return self._base.minimizer

  def _start_warm(self, found: Known, chosen: WarmStart, keep_average: bool) -> None:
    self._start()
    self._solver._start_warm(found, chosen, keep_average)
    self._next_check = max(self.first_attempt, chosen.iterations + 1)
    self._keep(found.sequence_form, self._best, self._scores)

  def _slices(self, iterations: int) -> tuple[int]:
    return (iterations,)

  def _check_finite(self) -> None:
    """The solver does so when it runs."""

  def _advance(self, count: int) -> None:
    end = self.iteration + count
    if end < self._next_check:
      for _ in self._solver._stepwise(count):
        pass
      return
    # Half of a check would be done again, and then the run is another one. One context, because signals take time.
    with DeferredInterrupt() as interrupt:
      while True:
        if self.iteration >= self._next_check:
          self._check()
        if self.iteration >= end or interrupt.requested:
          return
        for _ in self._some(end):
          if interrupt.requested:
            return

  def _some(self, end: int) -> Iterator[None]:
    """Goes on, to `end` or to a check at most, and yields whenever Ctrl-C may be looked at."""
    if self._flat is None:
      yield from self._solver._stepwise(min(end, self._next_check) - self.iteration)
      return
    for count in self._solver._slices(end - self.iteration):
      action = self._flat.advance(count, self._saved)
      self._saved = self._flat.saved
      if action == rule.HAND_OVER:
        self._act(action)
      elif action != rule.GO_ON:
        self._solver._check_finite()
      yield
      if action != rule.GO_ON:
        return

  def _check(self) -> None:
    """Looks for better strategies, and decides what they mean."""
    self._solver.add_to_tapered()
    # The tapered average is the first to be better than what was before, and the plain one hardly ever alone is.
    candidates = [*self._solver.average_candidates()][-1:] if self._trial else self._candidates()
    cost = rule.CHECK
    for candidate in candidates:
      self._keep(candidate, self._best, self._scores)
      if self._trial:
        np.minimum(self._trial_scores, self._found, out=self._trial_scores)
      cost += rule.EVALUATION
    self._cost += cost
    self._checked = 0 if self._trial else self.iteration
    began = self._trial
    action = rule.decide_now(self._control, self._scores, self._trial_scores, self.iteration)
    self._act(action, self.iteration - began)

  def _act(self, action: int, taken: int = 0) -> None:
    """Does what a check has led to; a trial has taken so many iterations."""
    if action == rule.RESTART:
      self._saved = self._solver.state_dict()
      self._solver.restart_from(self._best)
    elif action == rule.TAKE_BACK:
      self._solver._take_over(self._saved | {"iteration": self.iteration})
      self._solver.stretch -= taken
    elif action == rule.HAND_OVER:
      # From the beginning; the best strategies so far are kept.
      self._go_on_with(self._fallback())
    if not self._trial:
      self._saved = {}
    rule.schedule_now(self._control, self.iteration, self._solver.stretch)

  def _candidates(self) -> Iterator[AnyFloats]:
    """Yields multiples of the strategies that may be worth keeping."""
    yield self._solver.current_sequence_form()
    yield from self._solver.average_candidates()

  def _keep(self, candidate: AnyFloats, best: Float64s, best_scores: Float64s) -> None:
    """Writes what is better than the best so far over it; notes each player's share in NashConv."""
    found = self._evaluator(candidate)
    values = np.stack([found.expected_values, found.best_response_values], axis=1)
    take_better = rule.take_better_now.of(candidate.dtype)
    players = self.compiled_game.players
    take_better(self._control, players, candidate, values, best, best_scores, self._found)

  def _fallback(self) -> FullWidthSolver:
    return TabularCFRSolver(self.compiled_game, alternating_updates=False)

  def current_probabilities(self) -> Float64s:
    """Returns a copy of the current policy in behavioural form, shape (sequences,)."""
    return self._solver.current_probabilities()

  def current_sequence_form(self) -> Float64s:
    """Returns a copy of the current policy in sequence form, shape (sequences,)."""
    return self._solver.current_sequence_form()

  def average_probabilities(self) -> Float64s:
    """Returns the best policy found in behavioural form, shape (sequences,); uniform where never played to."""
    return forms.behavioral_form(self.compiled_game, self.average_sequence_form())

  def average_sequence_form(self) -> Float64s:
    """Returns the best policy found in sequence form, shape (sequences,)."""
    return self._certified()[0]

  def nash_conv(self) -> float:
    """Returns the NashConv of the best policy found, without leaving the arrays."""
    exact = self.compiled_game.is_exact
    return float(self._certified()[1].sum()) if exact else super().nash_conv()

  def _certified(self) -> tuple[Float64s, Float64s]:
    """Returns the best strategies and their scores, those of right now included; asking changes nothing."""
    best, scores = self._best.copy(), self._scores.copy()
    if self._checked != self.iteration or not self.iteration:
      for candidate in self._candidates():
        self._keep(candidate, best, scores)
    return best, scores

  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of all that changes from one iteration to the next, by name."""
    result = super().state_dict()
    for place, state in (("solver", self._solver.state_dict()), ("saved", self._saved)):
      result.update({f"{place}.{name}": copy.copy(value) for name, value in state.items()})
    return result

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Takes over what `state_dict` of a solver made with the same arguments has returned.

    Raises:
      CheckpointMismatchError: it is of another solver. This one is then as it was.
    """
    own, of_solver, saved = split_by_place(state, "solver", "saved")
    self._check_fits(own)
    solver = self._fallback() if own["_handed_over"] else self._base.restarted()
    if own["_trial"]:
      solver.load_state_dict(saved)
    solver.load_state_dict(of_solver)
    check_state(own, solver, saved)
    super().load_state_dict(own)
    if self._handed_over:
      self._base.iteration = self._handed_over
    else:
      self._base = solver
    self._saved = copy.deepcopy(saved)
    self._go_on_with(solver)

  def description(self) -> dict[str, Any]:
    """Returns the class, the arguments of the constructor and the same of the solver, as JSON has them.

    Raises:
      ArgumentError: an argument can't be written as JSON.
    """
    return super().description() | {"solver": self._base.description()}

  @classmethod
  def _made(cls, first: Any, description: Mapping[str, Any]) -> Self:
    return super()._made(FullWidthSolver._described(first, description["solver"]), description)
