"""Certificate of a run of stable-predictive CFR: a check of every inequality of its theory.

The certificate repeats the run from its first iteration in single steps, which gives the same strategies bit for bit.
So a solver pays nothing before a certificate is requested. `player_checks` has the inequalities of infosets and of
players; this module adds those of the gap.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from spiel_cfr import errors
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.evaluation import evaluate
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.schedules import Power
from spiel_cfr.stable_predictive.adaptive_steps import AdaptiveSteps
from spiel_cfr.stable_predictive.paper_steps import PaperSteps, largest_sum
from spiel_cfr.stable_predictive.player_checks import (
  AdaptiveChecks,
  Inequality,
  Iteration,
  PaperChecks,
  PlayerChecks,
)
from spiel_cfr.stable_predictive.stable_predictive_cfr import steps_of

# The tolerance of rounding in sums of many numbers, relative to the bound and to the sum of the payoffs so far: at
# least this number, and at least so many times the precision of the state.
_ROUNDING, _ROUNDING_ERRORS = 1e-12, 100


@dataclasses.dataclass(frozen=True)
class Check:
  """One inequality of the theory, at all points and iterations.

  Attributes:
    name: the name of the inequality.
    holds: whether it holds everywhere.
    ratio: the largest measured value, as a fraction of its bound.
    where: the point of this ratio; if the inequality is violated, the point of the first violation.
    iteration: the iteration of this ratio.
    value: the measured value.
    bound: the bound.
  """

  name: str
  holds: bool
  ratio: float
  where: str
  iteration: int
  value: float
  bound: float

  def __str__(self) -> str:
    """Returns one line of the report."""
    verdict = "holds " if self.holds else "BROKEN"
    return (
      f"{verdict} {self.name:<44} {self.ratio:z9.2e}  {self.value:z9.2e} <= {self.bound:z9.2e}  "
      f"at {self.where}, iteration {self.iteration}"
    )


@dataclasses.dataclass(frozen=True)
class Certificate:
  """The result of `stable_predictive.certificate`.

  Attributes:
    checks: the checked inequalities.
    iterations: the number of iterations of the run.
    gap: the NashConv of the average strategies, in the game that was solved.
    guarantee: the bound on the gap before the run; None if the theory has none.
    bound: the bound on the gap given the errors of predictions in this run; None if the theory has none.
    notes: the limits of the theory for this run.
  """

  checks: tuple[Check, ...]
  iterations: int
  gap: float
  guarantee: float | None
  bound: float | None
  notes: tuple[str, ...]

  @property
  def holds(self) -> bool:
    """True if all inequalities hold."""
    return not self.broken

  @property
  def broken(self) -> tuple[Check, ...]:
    """The inequalities that are violated."""
    return tuple(check for check in self.checks if not check.holds)

  def __str__(self) -> str:
    """Returns the report: the largest value / bound of each inequality, and its point."""
    before, after = (
      "none" if bound is None else f"{bound:z.3e}" for bound in (self.guarantee, self.bound)
    )
    head = (
      f"{self.iterations} iterations; NashConv {self.gap:z.3e}, guaranteed by this run: {after}, "
      f"before it: {before}"
    )
    return "\n".join([head, *map(str, self.checks), *self.notes])


def certificate(solver: Solver) -> Certificate:
  """Checks a run so far against all inequalities of the theory.

  It repeats the run in single steps. In a small game, a step takes about a thousand times as long as an iteration.

  Args:
    solver: a solver made by `StablePredictiveCFRSolver`. It stays as it is.

  Raises:
    AbstractionError: infosets of the game are shared, which the theory does not cover.
    ArgumentError: the solver was not made by `StablePredictiveCFRSolver`.
    LockError: a part of the policy is locked, which the theory does not cover.
    WarmStartError: the run began from a policy, so it can't be repeated.
  """
  constants = steps_of(solver)
  assert isinstance(solver, FullWidthSolver)
  if solver.compiled_game.shared_infosets is not None:
    raise errors.AbstractionError(
      f"In {solver.compiled_game} infosets are shared (imperfect recall), and the theorems that certificates check "
      "are about perfect recall. Use buckets that remember the player's own actions."
    )
  if solver.state.locked.any():
    raise errors.LockError(
      f"The theory does not cover locked policies, and {solver!r} has one. Use nash_conv, or lock nothing."
    )
  if solver.warm_iterations:
    raise errors.WarmStartError(
      "The theory covers runs from the first iteration, and this one began from a policy. Certify a run without a warm "
      "start: solver.reset()."
    )
  return certify(solver, constants)


def certify(solver: FullWidthSolver, constants: AdaptiveSteps | PaperSteps) -> Certificate:
  """Repeats a run and checks it against the inequalities with these constants."""
  game, alternating = solver.compiled_game, solver.alternating_updates
  rounding = max(_ROUNDING, _ROUNDING_ERRORS * solver.precision)
  players: list[AdaptiveChecks] | list[PaperChecks]
  if isinstance(constants, AdaptiveSteps):
    players = [
      AdaptiveChecks(game, player, constants, rounding) for player in range(game.num_players)
    ]
  else:
    players = [
      PaperChecks(game, player, constants, rounding, alternating)
      for player in range(game.num_players)
    ]
  checks: dict[str, Check] = {}
  replica = FullWidthSolver(game, **solver.constructor_arguments())
  for t in range(1, solver.iteration + 1):
    old = replica.current_probabilities()
    replica.evaluate_and_update_policy()
    new = replica.current_probabilities()
    # Sequence forms in float64, whatever the game's precision.
    faced, new_sequence_form = old.copy(), forms.sequence_form(game, new)
    faced_sequence_form = forms.sequence_form(game, old)
    for player in players:
      for inequality in player.check(Iteration(t, old, new, faced.copy(), faced_sequence_form)):
        _record(checks, inequality, t, rounding)
      if alternating:
        updated = slice(player.tree.root, player.tree.end)
        faced[updated] = new[updated]
        faced_sequence_form[updated] = new_sequence_form[updated]
  # In the game that was solved: for an abstraction, the theory does not cover the full game.
  gap = evaluate.evaluate(game, solver.average_sequence_form()).nash_conv
  notes = _limits_of_theory(solver, constants)
  guarantee = bound = None
  if solver.iteration and not notes:
    guarantee, bound, limits = _gap_bounds(solver, constants, players, notes)
    tiny = rounding * players[0].scale / players[0].weights
    for name, limit in limits.items():
      found = Inequality(name, gap, limit, tiny, lambda _: "the average strategies")
      _record(checks, found, solver.iteration, rounding)
  found_checks = tuple(checks.values())
  return Certificate(found_checks, solver.iteration, gap, guarantee, bound, tuple(notes))


def _record(
  checks: dict[str, Check], inequality: Inequality, iteration: int, relative: float
) -> None:
  """Keeps the worst case of each check, or its first violation; `relative` is the tolerance of rounding of a bound."""
  name, values, bounds, rounding, where = inequality
  values, bounds, previous = np.atleast_1d(values), np.atleast_1d(bounds), checks.get(name)
  if not len(values) or (previous and not previous.holds):
    return
  ratios = np.divide(values, bounds, out=np.zeros(len(values)), where=bounds > 0)
  broken = ~(values <= bounds * (1 + relative) + rounding)
  worst = int(np.argmax(np.where(broken, np.inf, ratios)))
  if previous is None or broken[worst] or ratios[worst] > previous.ratio:
    numbers = float(values[worst]), float(bounds[worst])
    ratio = float(ratios[worst])
    checks[name] = Check(name, not broken[worst], ratio, where(worst), iteration, *numbers)


def _limits_of_theory(solver: FullWidthSolver, constants: AdaptiveSteps | PaperSteps) -> list[str]:
  """Returns the reasons for which the theory does not bound the gap."""
  game, notes = solver.compiled_game, []
  is_paper = isinstance(constants, PaperSteps)
  if game.num_players != 2 or game.constant_sum is None:
    notes.append("The gap is not bounded: this is not a zero-sum game of two players.")
  elif solver.alternating_updates and is_paper:
    notes.append("The gap is not bounded by the regrets: updates alternate.")
  elif is_paper and solver.averaging.weights != Power(0.0):
    notes.append("The gap is not bounded by the regrets: averages are not uniform.")
  return notes


def _gap_bounds(
  solver: FullWidthSolver,
  constants: AdaptiveSteps | PaperSteps,
  players: Sequence[PlayerChecks],
  notes: list[str],
) -> tuple[float, float | None, dict[str, float]]:
  """Returns the bound on the gap before the run, the bound given the run, and all bounds by name."""
  t, weights, alternating = solver.iteration, players[0].weights, solver.alternating_updates
  # With alternating updates, the updates of the first player count against the next player.
  lost = -players[0].gains if alternating else 0.0
  regrets = sum(player.regret for player in players) + lost
  limits = {"gap <= sum of regrets / sum of weights": regrets / weights}
  bound: float | None = None
  if isinstance(constants, AdaptiveSteps):
    adaptive = [player for player in players if isinstance(player, AdaptiveChecks)]
    local = sum(largest_sum(player.tree, player.local_bounds) for player in adaptive)
    bound = (local + (adaptive[0].update_cost if alternating else 0.0)) / weights
    limits["gap <= bound of this run"] = bound
    guarantee = constants.guarantee(t, alternating)
  else:
    guarantee = constants.guarantee(t)
    if constants.horizon is not None and t > constants.horizon:
      notes.append(
        f"Past the horizon of {constants.horizon} iterations the guarantee still falls, but not below "
        f"{constants.kappa_root**3 * float(constants.later_errors.sum()):z.3e}: start again with a longer horizon."
      )
  limits["gap <= guarantee before the run"] = guarantee
  return guarantee, bound, limits
