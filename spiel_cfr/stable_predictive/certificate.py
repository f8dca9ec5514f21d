"""The certificate of a run of stable-predictive CFR: every inequality of its theory, checked.

The run is repeated from its first iteration in single steps, which gives the same strategies bit for bit, so that a
solver pays nothing for a certificate that nobody asks for. `player_checks` has what each theory says of an infoset and
of a player; here is what follows for the gap.
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

# What rounding may add to sums of many numbers, relative to the bound and to the sum of the payoffs so far; at least so
# many times the rounding error of a single number that is remembered.
_ROUNDING, _ROUNDING_ERRORS = 1e-12, 100


@dataclasses.dataclass(frozen=True)
class Check:
  """One promise of the theory, at all points and iterations.

  Attributes:
    name: what is promised.
    holds: whether it was kept everywhere.
    ratio: the largest measured value, as a fraction of its bound; 1 has no slack left.
    where: the point of that ratio; if the promise was broken, the point where that happened first.
    iteration: when that was.
    value: what was measured there.
    bound: what it must not exceed.
  """

  name: str
  holds: bool
  ratio: float
  where: str
  iteration: int
  value: float
  bound: float

  def __str__(self) -> str:
    """Returns a line of the report."""
    verdict = "holds " if self.holds else "BROKEN"
    return (
      f"{verdict} {self.name:<44} {self.ratio:z9.2e}  {self.value:z9.2e} <= {self.bound:z9.2e}  "
      f"at {self.where}, iteration {self.iteration}"
    )


@dataclasses.dataclass(frozen=True)
class Certificate:
  """What `stable_predictive.certificate` has found.

  Attributes:
    checks: every promise.
    iterations: how many there were.
    gap: NashConv of the average strategies, in the game that was solved.
    guarantee: what the theory promises for it before the run, None where it promises nothing.
    bound: what it promises for it given the errors of the predictions in this run, None where it promises nothing.
    notes: what the theory does not cover here, and what it says past the horizon.
  """

  checks: tuple[Check, ...]
  iterations: int
  gap: float
  guarantee: float | None
  bound: float | None
  notes: tuple[str, ...]

  @property
  def holds(self) -> bool:
    """Whether every promise was kept."""
    return not self.broken

  @property
  def broken(self) -> tuple[Check, ...]:
    """The promises that were not kept."""
    return tuple(check for check in self.checks if not check.holds)

  def __str__(self) -> str:
    """Returns the report: for each promise the least slack, as value / bound, and where."""
    before, after = (
      "none" if each is None else f"{each:z.3e}" for each in (self.guarantee, self.bound)
    )
    head = (
      f"{self.iterations} iterations; NashConv {self.gap:z.3e}, guaranteed by this run: {after}, "
      f"before it: {before}"
    )
    return "\n".join([head, *map(str, self.checks), *self.notes])


def certificate(solver: Solver) -> Certificate:
  """Checks a run so far against everything that the theory promises.

  It repeats the run in single steps, at about a thousand times the cost of an iteration of a small game.

  Args:
    solver: made by `StablePredictiveCFRSolver`; it is left alone.

  Raises:
    AbstractionError: infosets of the game are shared, which no theorem here is about.
    ArgumentError: the solver was made otherwise.
    LockError: a part of the policy is locked, which no theorem is about either.
    WarmStartError: the run began from a policy, so that it can't be repeated.
  """
  constants = steps_of(solver)
  assert isinstance(solver, FullWidthSolver)
  if solver.compiled_game.shared_infosets is not None:
    raise errors.AbstractionError(
      f"In {solver.compiled_game} infosets are shared (imperfect recall), and the theorems that certificates check "
      "are about perfect recall. Take buckets that remember the player's own actions."
    )
  if solver.state.locked.any():
    raise errors.LockError(
      f"The theory says nothing of locked policies, as {solver!r} has one. Judge it by its play, or lock nothing."
    )
  if solver.warm_iterations:
    raise errors.WarmStartError(
      "The theory is about runs from the first iteration, and this one began from a policy. Certify a run that began "
      "cold: solver.reset()."
    )
  return certify(solver, constants)


def certify(solver: FullWidthSolver, constants: AdaptiveSteps | PaperSteps) -> Certificate:
  """Repeats a run and checks what these constants promise of it."""
  game, alternating = solver.compiled_game, solver.alternating_updates
  rounding = max(_ROUNDING, _ROUNDING_ERRORS * solver.precision)
  players: list[AdaptiveChecks] | list[PaperChecks]
  if isinstance(constants, AdaptiveSteps):
    players = [AdaptiveChecks(game, each, constants, rounding) for each in range(game.num_players)]
  else:
    players = [
      PaperChecks(game, each, constants, rounding, alternating) for each in range(game.num_players)
    ]
  checks: dict[str, Check] = {}
  replica = FullWidthSolver(game, **solver.constructor_arguments())
  for t in range(1, solver.iteration + 1):
    old = replica.current_probabilities()
    replica.evaluate_and_update_policy()
    new = replica.current_probabilities()
    # Of the policy in float64, whatever the game's precision.
    seen, new_sequence = old.copy(), forms.sequence_form(game, new)
    seen_sequence = forms.sequence_form(game, old)
    for player in players:
      for inequality in player.check(Iteration(t, old, new, seen.copy(), seen_sequence)):
        _record(checks, inequality, t, rounding)
      if alternating:
        own = slice(player.tree.root, player.tree.end)
        seen[own], seen_sequence[own] = new[own], new_sequence[own]
  # In the game that was solved: of an abstraction, theory says nothing of the full game.
  gap = evaluate.evaluate(game, solver.average_sequence_form()).nash_conv
  notes = _what_is_not_covered(solver, constants)
  guarantee = bound = None
  if solver.iteration and not any("gap" in note for note in notes):
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
  """Keeps the worst case of each check, or its first violation; `relative` is how much rounding may add to a bound."""
  name, values, bounds, rounding, where = inequality
  values, bounds, known = np.atleast_1d(values), np.atleast_1d(bounds), checks.get(name)
  if not len(values) or (known and not known.holds):
    return
  ratios = np.divide(values, bounds, out=np.zeros(len(values)), where=bounds > 0)
  broken = ~(values <= bounds * (1 + relative) + rounding)
  worst = int(np.argmax(np.where(broken, np.inf, ratios)))
  if known is None or broken[worst] or ratios[worst] > known.ratio:
    numbers = float(values[worst]), float(bounds[worst])
    ratio = float(ratios[worst])
    checks[name] = Check(name, not broken[worst], ratio, where(worst), iteration, *numbers)


def _what_is_not_covered(
  solver: FullWidthSolver, constants: AdaptiveSteps | PaperSteps
) -> list[str]:
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
  """Returns what bounds the gap before the run, and given the run, and all that it must not exceed, by name."""
  t, weights, alternating = solver.iteration, players[0].weights, solver.alternating_updates
  # Where the first player's average takes strategies after their updates, these count against the next player.
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
