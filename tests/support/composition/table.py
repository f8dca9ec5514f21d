"""Every cell of the table, and which of them are refused."""

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
  """A form of game, a solver, an operation."""

  form: Form
  solver: str
  operation: Operation

  def __str__(self) -> str:
    return f"{self.form}; {self.solver}; {self.operation}"

  @property
  def pairs(self) -> tuple[tuple[object, object], ...]:
    """Every two of its form, its solver and its operation."""
    return (
      (self.form, self.solver),
      (self.form, self.operation),
      (self.solver, self.operation),
    )

  @functools.cached_property
  def refusal(self) -> "Refusal | None":
    """Why the cell is refused, None if it is to work."""
    return next((refusal for refusal in REFUSALS if refusal.cells(self)), None)

  @property
  def expected(self) -> str:
    """What `found` is to return."""
    return WORKS if self.refusal is None else self.refusal.error.__name__

  def check(self) -> None:
    """Raises what the operation raises, and AssertionError if something does not hold."""
    self.operation.check(Context(self.form, self.solver))

  def found(self) -> str:
    """Returns that the cell works, or the name of the error that refuses it.

    Raises:
      Exception: neither is so.
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
  """Cells that are refused.

  Attributes:
    error: what is raised, this class and no other.
    why: a sentence.
    advice: what the message says to do instead; a part of it.
    cells: which cells are.
  """

  error: type[errors.SpielCFRError]
  why: str
  advice: str
  cells: Callable[[Cell], bool]


def _steps_from_errors(cell: Cell) -> bool:
  """Whether it is stable-predictive CFR with adaptive steps."""
  entry = catalogue.SOLVERS[cell.solver]
  is_adaptive = "steps" not in entry.arguments
  return entry.solver is spiel_cfr.StablePredictiveCFRSolver and is_adaptive


def _is_pruned(cell: Cell) -> bool:
  return catalogue.SOLVERS[cell.solver].family is spiel_cfr.Pruned


def _needs_states(entry: catalogue.Entry) -> bool:
  return issubclass(entry.family, MonteCarloSolver)


def _is_for_saddle_points(cell: Cell) -> bool:
  return cell.solver.startswith(("egt", "mirror_prox"))


def _is_first_order(cell: Cell) -> bool:
  return issubclass(catalogue.SOLVERS[cell.solver].family, GradientSolver)


# Tests are collected by what is refused, so nothing is compiled for that.


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


# What is not named here works.
REFUSALS: tuple[Refusal, ...] = (
  Refusal(
    errors.PruningError,
    "What one of three players faces is no sum of strategies; of an abstraction nothing can be left out, and in vector "
    "form nothing is.",
    "take no pruning",
    lambda cell: (
      _is_pruned(cell)
      and (
        cell.form.buckets is not None or cell.form.name == "three players" or cell.form.is_vector
      )
    ),
  ),
  Refusal(
    errors.WarmStartError,
    "Adaptive steps come from the errors of predictions, and a policy does not tell which its solver made.",
    "kernel `resume`",
    lambda cell: (
      cell.operation.name == "warm start, transfer"
      and _steps_from_errors(cell)
      and not cell.form.loses
    ),
  ),
  Refusal(
    errors.NotFiniteError,
    "The policy counts for more iterations than the horizon, past which weights grow beyond what float32 holds.",
    "Take a smaller power",
    lambda cell: (
      cell.operation.name == "warm start, transfer"
      and "float32" in cell.form.name
      and cell.solver in ("hsdcfr", "hspcfr+")
    ),
  ),
  Refusal(
    errors.NoStatesError,
    "These solvers need the states of the game. Another process makes them of the game's string, and these games were "
    "read from a text.",
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
    "Excessive gaps and mirror prox are methods for saddle points, which only constant-sum games of two players have.",
    "Take a solver that minimizes regret",
    lambda cell: _is_for_saddle_points(cell) and not _has_saddle_points(cell.form),
  ),
  Refusal(
    errors.AbstractionError,
    "First-order methods take steps over convex sets of strategies, which players who forget don't have.",
    "buckets that remember the player's own actions",
    lambda cell: cell.form.forgets and _is_first_order(cell),
  ),
  Refusal(
    errors.AbstractionError,
    "Networks take features of OpenSpiel's infosets, and an abstraction merges several of them.",
    "Take its `original`",
    lambda cell: cell.form.buckets is not None and cell.solver.startswith("deep"),
  ),
  Refusal(
    errors.PolicyError,
    "A policy that plays infosets of a bucket in different ways is none of the abstraction.",
    "Read it for the full game",
    lambda cell: cell.form.loses and cell.operation.name == "warm start, transfer",
  ),
  Refusal(
    errors.AbstractionError,
    "Full averages are weighted by the one way in which a player comes to an infoset; shared infosets have several.",
    "AverageType.SIMPLE",
    lambda cell: cell.form.forgets and cell.solver == "external_sampling_full",
  ),
  Refusal(
    errors.AbstractionError,
    "Certificates check theorems about perfect recall.",
    "buckets that remember the player's own actions",
    lambda cell: cell.form.forgets and cell.operation.name == "certificate",
  ),
)


def cells() -> Iterator[Cell]:
  """Returns every cell that there is."""
  for form in FORMS:
    for solver, entry in catalogue.SOLVERS.items():
      for operation in OPERATIONS:
        if operation.applies(form, entry):
          yield Cell(form, solver, operation)


# One solver of each kind, see `kind`: with it, every form of game meets every kernel and every way to average.
REPRESENTATIVES = (
  "cfr",
  "cfr+",
  "dcfr",
  "apcfr+",
  "cfr_br",
  "hedge",
  # One more of a kind, so that every form meets every operation, see `selected_cells`.
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
  """Returns what solvers share that have the same code: a class or, of full-width solvers, a minimizer's kernel."""
  if isinstance(solver, spiel_cfr.FullWidthSolver):
    if solver._opponents == "best_response":
      return solver._opponents
    return solver.minimizer.observe
  return GradientSolver if isinstance(solver, GradientSolver) else type(solver)


def selected_cells() -> set[Cell]:
  """Returns the cells that are quick tests: about two hundred.

  They are every representative on every other form, pruned ones, which have operations of their own, on all, and every
  other solver on one form. Of the operations that there are for a form and a solver, it is the one that the form has
  had least of, so that all of them are met on every form.
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
  # Of what few solvers have, none may be left over.
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

  Every form meets every solver, every form every operation, and every solver every operation, wherever there is such a
  cell. The cell of a form and a solver has the operation that the solver has had least of. An error that depends on all
  three is found only by the full product, which `make composition` runs; cells that are refused because of all three
  are known, and are all tests.
  """
  every = list(cells())
  quick = selected_cells()
  chosen = {cell: None for cell in every if cell in quick}
  met = collections.Counter(pair for cell in chosen for pair in cell.pairs)
  by_form_and_solver = collections.defaultdict(list)
  for cell in every:
    by_form_and_solver[cell.form, cell.solver].append(cell)
  # What only some forms have comes first: other forms can't make up for it.
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
