"""Cells of the table of compositions, and the refusals among them."""

import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator

import pyspiel

import spiel_cfr
from composition.forms import FORMS, Form
from composition.operations import OPERATIONS, Context, Operation
from spiel_cfr import Solver, catalogue, errors
from spiel_cfr.cfr.gradient_solver import GradientSolver
from spiel_cfr.games.openspiel.loading import can_be_loaded_again
from spiel_cfr.mccfr import MonteCarloSolver

WORKS = "works"


@dataclasses.dataclass(frozen=True)
class Cell:
  """A form of game, a solver and an operation."""

  form: Form
  solver: str
  operation: Operation

  def __str__(self) -> str:
    return f"{self.form}; {self.solver}; {self.operation}"

  @property
  def pairs(self) -> tuple[tuple[object, object], ...]:
    """All pairs among form, solver and operation."""
    return (
      (self.form, self.solver),
      (self.form, self.operation),
      (self.solver, self.operation),
    )

  @functools.cached_property
  def refusal(self) -> "Refusal | None":
    """The refusal of the cell; None if the cell works."""
    return next((refusal for refusal in REFUSALS if refusal.cells(self)), None)

  @property
  def expected(self) -> str:
    """The expected result of `found`."""
    return WORKS if self.refusal is None else self.refusal.error.__name__

  def check(self) -> None:
    """Runs the operation; raises its errors, and AssertionError if a property does not hold."""
    self.operation.check(Context(self.form, self.solver))

  def found(self) -> str:
    """Returns "works", or the name of the error that refuses the cell.

    Raises:
      Exception: the cell neither works nor is refused.
    """
    try:
      self.check()
    except errors.SpielCFRError as error:
      refusal = self.refusal
      if refusal is not None and not re.search(re.escape(refusal.advice), str(error)):
        raise AssertionError(f"{error!r} does not say {refusal.advice!r}.") from error
      if refusal is None or type(error) is not refusal.error:
        raise
      return type(error).__name__
    return WORKS


@dataclasses.dataclass(frozen=True)
class Refusal:
  """Cells that are refused for one reason.

  Attributes:
    error: the class of the exception, exactly.
    why: the reason, as a sentence.
    advice: the part of the message that says what to do instead.
    cells: returns whether a cell is refused.
  """

  error: type[errors.SpielCFRError]
  why: str
  advice: str
  cells: Callable[[Cell], bool]


def _steps_from_errors(cell: Cell) -> bool:
  """Whether the solver is stable-predictive CFR with adaptive steps."""
  entry = catalogue.SOLVERS[cell.solver]
  is_adaptive = "steps" not in entry.arguments
  return entry.solver is spiel_cfr.StablePredictiveCFRSolver and is_adaptive


def _is_pruned(cell: Cell) -> bool:
  return catalogue.SOLVERS[cell.solver].family is spiel_cfr.Pruned


def _needs_states(entry: catalogue.SolverEntry) -> bool:
  return issubclass(entry.family, MonteCarloSolver)


def _is_for_saddle_points(cell: Cell) -> bool:
  return cell.solver.startswith(("egt", "mirror_prox"))


def _is_first_order(cell: Cell) -> bool:
  return issubclass(catalogue.SOLVERS[cell.solver].family, GradientSolver)


# Refusals are needed when tests are collected, so they must not compile games.


@functools.cache
def _has_string(form: Form) -> bool:
  return can_be_loaded_again(form.load())


@functools.cache
def _has_saddle_points(form: Form) -> bool:
  game = form.load()
  utility = pyspiel.GameType.Utility
  return game.num_players() == 2 and game.get_type().utility in (
    utility.ZERO_SUM,
    utility.CONSTANT_SUM,
  )


# All other cells work.
REFUSALS: tuple[Refusal, ...] = (
  Refusal(
    errors.PruningError,
    "Pruning needs two players, the full game and listed leaves: it excludes three players, abstractions and vector "
    "form.",
    "use no pruning",
    lambda cell: (
      _is_pruned(cell)
      and (cell.form.is_abstraction or cell.form.name == "three players" or cell.form.is_vector)
    ),
  ),
  Refusal(
    errors.WarmStartError,
    "Adaptive steps depend on the errors of past predictions, which a policy does not contain.",
    "kernel `resume`",
    lambda cell: (
      cell.operation.name == "warm start, transfer"
      and _steps_from_errors(cell)
      and not cell.form.loses
    ),
  ),
  Refusal(
    errors.NotFiniteError,
    "The policy counts for more iterations than the horizon; beyond it, weights overflow float32.",
    "Use a smaller power",
    lambda cell: (
      cell.operation.name == "warm start, transfer"
      and "float32" in cell.form.name
      and cell.solver in ("hsdcfr", "hspcfr+")
    ),
  ),
  Refusal(
    errors.NoStatesError,
    "These solvers need the states of the game. Another process creates them from the game's string, but these games "
    "were read from a text.",
    "Use what compile_game returns, in its own process",
    lambda cell: (
      cell.operation.name == "sweep"
      and _needs_states(catalogue.SOLVERS[cell.solver])
      and not cell.form.is_vector
      and not _has_string(cell.form)
    ),
  ),
  Refusal(
    errors.UnsupportedGameError,
    "Excessive gaps and mirror prox are saddle-point methods, for two-player constant-sum games only.",
    "Use a solver that minimizes regret",
    lambda cell: _is_for_saddle_points(cell) and not _has_saddle_points(cell.form),
  ),
  Refusal(
    errors.AbstractionError,
    "First-order methods need convex sets of strategies; with imperfect recall they are not convex.",
    "buckets that remember the player's own actions",
    lambda cell: cell.form.forgets and _is_first_order(cell),
  ),
  Refusal(
    errors.AbstractionError,
    "Networks take features of OpenSpiel's infosets, and an abstraction merges several of them.",
    "Use its `original`",
    lambda cell: cell.form.is_abstraction and cell.solver.startswith("deep"),
  ),
  Refusal(
    errors.PolicyError,
    "A policy that differs within a bucket is not a policy of the abstraction.",
    "Read it for the full game",
    lambda cell: cell.form.loses and cell.operation.name == "warm start, transfer",
  ),
  Refusal(
    errors.AbstractionError,
    "Full averages are weighted by the only way to an infoset; shared infosets have several ways.",
    "AverageType.SIMPLE",
    lambda cell: cell.form.forgets and cell.solver == "external_sampling_full",
  ),
  Refusal(
    errors.AbstractionError,
    "The proof is about games of perfect recall.",
    "buckets that remember the player's own actions",
    lambda cell: cell.form.forgets and cell.operation.name == "proof check",
  ),
)


def cells() -> Iterator[Cell]:
  """Yields all cells."""
  for form in FORMS:
    for solver, entry in catalogue.SOLVERS.items():
      for operation in OPERATIONS:
        if operation.applies(form, entry):
          yield Cell(form, solver, operation)


# One solver of each kind, see `kind`: these combine every form of game with every kernel and every average.
REPRESENTATIVES = (
  "cfr",
  "cfr+",
  "dcfr",
  "apcfr+",
  "cfr_br",
  "hedge",
  # Further solvers of a kind, so that every form meets every operation, see `selected_cells`.
  "pcfr+",
  "hedge_threshold",
  "restarted",
  "adaptive",
  "stable_predictive",
  "stable_predictive_paper",
  "cfr+_pruned",
  "trembling_hand",
  "domwu",
  "external_sampling",
  "outcome_sampling",
  "chance_sampling",
  "average_strategy_sampling",
  "deep_cfr",
  "deep_dcfr+",
)


def kind(solver: Solver) -> object:
  """Returns a key that is equal for solvers with the same code: a class, or a full-width solver's minimizer kernel."""
  if isinstance(solver, spiel_cfr.FullWidthSolver):
    if solver.opponents == "best_response":
      return solver.opponents
    return solver.minimizer.observe
  return GradientSolver if isinstance(solver, GradientSolver) else type(solver)


def selected_cells() -> set[Cell]:
  """Returns the cells that are quick tests: about two hundred.

  Every representative meets every second form; pruned solvers, which have their own operations, meet all forms; every
  other solver meets one form. Of the operations of a form and a solver, the least used one of that form is taken, so
  that each form meets every operation.
  """
  groups = {
    key: list(group)
    for key, group in itertools.groupby(cells(), lambda cell: (cell.form, cell.solver))
  }
  others = [name for name in catalogue.SOLVERS if name not in REPRESENTATIVES]
  chosen = [
    (form, name)
    for place, form in enumerate(FORMS)
    for number, name in enumerate(REPRESENTATIVES)
    if (place + number) % 2 == 0 or name == "cfr+_pruned"
  ]
  chosen += [(FORMS[number % len(FORMS)], name) for number, name in enumerate(others)]
  # Operations of few solvers come first, so that none is left over.
  rare = collections.Counter(cell.operation for group in groups.values() for cell in group)
  used: collections.Counter[tuple[Form, Operation]] = collections.Counter()
  result = set()
  for key in chosen:
    cell = min(
      groups[key], key=lambda cell: (used[cell.form, cell.operation], rare[cell.operation])
    )
    used[cell.form, cell.operation] += 1
    result.add(cell)
  return result


def covering_cells() -> list[Cell]:
  """Returns the cells that are tests, about a thousand: the quick ones, and slow ones that complete them.

  Every form meets every solver, every form every operation, and every solver every operation, if such a cell exists.
  The cell of a form and a solver has the operation least used by that solver. Only the full product of
  `make composition` finds an error that depends on all three. Cells refused because of all three are known, and are all
  tests.
  """
  every = list(cells())
  quick = selected_cells()
  chosen = {cell: None for cell in every if cell in quick}
  met = collections.Counter(pair for cell in chosen for pair in cell.pairs)
  by_form_and_solver = collections.defaultdict(list)
  for cell in every:
    by_form_and_solver[cell.form, cell.solver].append(cell)
  # Operations of few forms come first: other forms cannot replace these.
  forms_of = collections.Counter((cell.solver, cell.operation) for cell in every)
  for pair, group in by_form_and_solver.items():
    if not met[pair]:
      cell = min(
        group,
        key=lambda cell: (
          met[cell.solver, cell.operation],
          forms_of[cell.solver, cell.operation],
          met[cell.form, cell.operation],
        ),
      )
      chosen[cell] = None
      met.update(cell.pairs)
  for cell in every:
    if not all(met[pair] for pair in cell.pairs):
      chosen[cell] = None
      met.update(cell.pairs)
  for group in by_form_and_solver.values():
    refused = [cell for cell in group if cell.refusal is not None]
    if len(refused) < len(group):
      chosen |= dict.fromkeys(refused)
  return list(chosen)
