"""Certificate of a run of stable-predictive CFR: a check of every inequality of its theory.

The certificate repeats the run from its first iteration in single steps, which gives the same strategies bit for bit.
So a solver pays nothing before a certificate is requested. `paper_checks` and `adaptive_checks` have the inequalities
of infosets and of players. This module adds those of the gap, the NashConv of the average strategies.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from spiel_cfr import errors
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.evaluation import evaluate
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.schedules import Power
from spiel_cfr.stable_predictive.adaptive_checks import AdaptiveChecks
from spiel_cfr.stable_predictive.adaptive_steps import AdaptiveSteps
from spiel_cfr.stable_predictive.paper_checks import PaperChecks
from spiel_cfr.stable_predictive.paper_steps import PaperSteps
from spiel_cfr.stable_predictive.player_checks import Inequality, Iteration, PlayerChecks
from spiel_cfr.stable_predictive.regret_composition import largest_plan_sum
from spiel_cfr.stable_predictive.stable_predictive_cfr import steps_of

# The tolerance of rounding in sums of many numbers, relative to the bound and to the sum of the payoffs so far.
_LEAST_ROUNDING = 1e-12
# The tolerance is at least this number times the precision of the solver's state.
_ROUNDING_ERRORS = 100


@dataclasses.dataclass(frozen=True)
class Check:
  """The result of the check of one inequality, at all points and iterations.

  If the inequality holds, the reported point and iteration are those where the measured value is the largest fraction
  of its bound. If not, they are those of the first violation.

  Attributes:
    name: the name of the inequality.
    holds: whether the inequality holds everywhere.
    ratio: the measured value as a fraction of its bound.
    where: the reported point.
    iteration: the reported iteration.
    value: the measured value at this point and iteration.
    bound: the bound at this point and iteration.
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
    guarantee: the bound on the gap that is known before the run; None if the theory does not bound the gap.
    bound: the bound on the gap given the errors of predictions in this run; None for constant steps, or if the theory
      does not bound the gap.
    notes: the limits of the theory for this run, as sentences.
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
    """Returns the report: a line for the gap, a line for each inequality, and the notes."""
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
  return check_run(solver, constants)


def check_run(solver: FullWidthSolver, constants: AdaptiveSteps | PaperSteps) -> Certificate:
  """Repeats a run and checks it against the inequalities with these constants."""
  game = solver.compiled_game
  report = _Report(max(_LEAST_ROUNDING, _ROUNDING_ERRORS * solver.precision))
  players = _player_checks(solver, constants, report.relative_rounding)
  replica = FullWidthSolver(game, **solver.constructor_arguments())
  for t in range(1, solver.iteration + 1):
    for player, iteration in zip(players, _updates(replica, t), strict=True):
      for inequality in player.check(iteration):
        report.add(inequality, t)
  # In the game that was solved: for an abstraction, the theory does not cover the full game.
  gap = evaluate.evaluate(game, solver.average_sequence_form()).nash_conv
  notes = _limits_of_theory(solver, constants)
  guarantee = bound = None
  if solver.iteration and not notes:
    guarantee, bound, limits = _gap_bounds(solver, constants, players)
    rounding = players[0].rounding / players[0].weights
    for name, limit in limits.items():
      inequality = Inequality(name, gap, limit, rounding, lambda _: "the average strategies")
      report.add(inequality, solver.iteration)
    notes = _notes_on_horizon(solver, constants)
  checks = tuple(report.checks.values())
  return Certificate(checks, solver.iteration, gap, guarantee, bound, tuple(notes))


class _Report:
  """The checks of a run so far, by name.

  Attributes:
    relative_rounding: float. The tolerance of rounding, relative to a bound.
    checks: dictionary from the name of an inequality to its check.
  """

  def __init__(self, relative_rounding: float) -> None:
    self.relative_rounding = relative_rounding
    self.checks: dict[str, Check] = {}

  def add(self, inequality: Inequality, iteration: int) -> None:
    """Keeps the worst case of an inequality so far, or its first violation."""
    name, values, bounds, rounding, where = inequality
    values, bounds, previous = np.atleast_1d(values), np.atleast_1d(bounds), self.checks.get(name)
    if not len(values) or (previous and not previous.holds):
      return
    ratios = np.divide(values, bounds, out=np.zeros(len(values)), where=bounds > 0)
    is_violated = ~(values <= bounds * (1 + self.relative_rounding) + rounding)
    worst = int(np.argmax(np.where(is_violated, np.inf, ratios)))
    if previous is None or is_violated[worst] or ratios[worst] > previous.ratio:
      self.checks[name] = Check(
        name=name,
        holds=not is_violated[worst],
        ratio=float(ratios[worst]),
        where=where(worst),
        iteration=iteration,
        value=float(values[worst]),
        bound=float(bounds[worst]),
      )


def _player_checks(
  solver: FullWidthSolver, constants: AdaptiveSteps | PaperSteps, relative_rounding: float
) -> Sequence[PlayerChecks]:
  """Returns the checks of each player, before the first iteration."""
  game, players = solver.compiled_game, range(solver.compiled_game.num_players)
  if isinstance(constants, AdaptiveSteps):
    return [AdaptiveChecks(game, player, constants, relative_rounding) for player in players]
  alternating = solver.alternating_updates
  return [
    PaperChecks(game, player, constants, relative_rounding, alternating) for player in players
  ]


def _updates(replica: FullWidthSolver, t: int) -> Iterator[Iteration]:
  """Runs iteration t of a solver, and yields the update of each player."""
  game = replica.compiled_game
  old = replica.current_probabilities()
  replica.evaluate_and_update_policy()
  new = replica.current_probabilities()
  # Sequence forms in float64, whatever the game's precision.
  faced, faced_sequence_form = old.copy(), forms.sequence_form(game, old)
  new_sequence_form = forms.sequence_form(game, new)
  for tree in game.treeplexes:
    yield Iteration(t, old, new, faced.copy(), faced_sequence_form)
    if replica.alternating_updates:
      # Players that update later in the iteration face the new strategy.
      updated = slice(tree.root, tree.end)
      faced[updated] = new[updated]
      faced_sequence_form[updated] = new_sequence_form[updated]


def _limits_of_theory(solver: FullWidthSolver, constants: AdaptiveSteps | PaperSteps) -> list[str]:
  """Returns the reasons for which the theory does not bound the gap, as sentences; none if it does."""
  game = solver.compiled_game
  is_paper = isinstance(constants, PaperSteps)
  if not game.is_two_player_constant_sum:
    return ["The gap is not bounded: this is not a zero-sum game of two players."]
  if is_paper and solver.alternating_updates:
    return ["The gap is not bounded by the regrets: updates alternate."]
  if is_paper and solver.averaging.weights != Power(0.0):
    return ["The gap is not bounded by the regrets: averages are not uniform."]
  return []


def _gap_bounds(
  solver: FullWidthSolver,
  constants: AdaptiveSteps | PaperSteps,
  players: Sequence[PlayerChecks],
) -> tuple[float, float | None, dict[str, float]]:
  """Returns the bound on the gap before the run, the bound given the run, and all bounds by name."""
  weights, alternating = players[0].weights, solver.alternating_updates
  # With alternating updates, the updates of the first player count against the next player.
  losses = -players[0].gains if alternating else 0.0
  regrets = sum(player.regret for player in players) + losses
  limits = {"gap <= sum of regrets / sum of weights": regrets / weights}
  bound: float | None = None
  if isinstance(constants, AdaptiveSteps):
    adaptive = [player for player in players if isinstance(player, AdaptiveChecks)]
    regret_bounds = sum(largest_plan_sum(player.tree, player.regret_bounds) for player in adaptive)
    bound = (regret_bounds + (adaptive[0].update_cost if alternating else 0.0)) / weights
    limits["gap <= bound of this run"] = bound
    guarantee = constants.guarantee(solver.iteration, alternating)
  else:
    guarantee = constants.guarantee(solver.iteration)
  limits["gap <= guarantee before the run"] = guarantee
  return guarantee, bound, limits


def _notes_on_horizon(solver: FullWidthSolver, constants: AdaptiveSteps | PaperSteps) -> list[str]:
  """Returns a note if the run is longer than the horizon of constant steps."""
  if not isinstance(constants, PaperSteps) or constants.horizon is None:
    return []
  if solver.iteration <= constants.horizon:
    return []
  limit = constants.kappa_root**3 * float(constants.later_errors_factor.sum())
  return [
    f"Past the horizon of {constants.horizon} iterations the guarantee still falls, but not below "
    f"{limit:z.3e}: start again with a longer horizon."
  ]
