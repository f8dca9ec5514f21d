"""The table of compositions as Markdown."""

import collections
from collections.abc import Iterable, Mapping

from composition.forms import FORMS
from composition.operations import OPERATIONS
from composition.table import REFUSALS, WORKS, Cell, covering_cells, selected_cells
from spiel_cfr import catalogue

_HEAD = """# What works with what

Look here before you combine a solver with a form of game and an operation, such as pruning with three players. The
table has {num_cells:,} combinations ("cells"): every solver of `spiel_cfr.catalogue`, on every form of game, with every
operation. A cell works and agrees with the same game in listed form, or it raises a named error that says what to do:
see [the refusals](#refusals).

`make composition` runs all cells and writes this page. `make test-all` runs {num_tested:,} of them: every form with
every solver, every form with every operation, every solver with every operation, and each cell that is refused because
of all three. `make test` runs {num_quick:,} of these, and compares this page with the expectations for all cells.
"""


def render(found: Mapping[Cell, str]) -> str:
  """Returns the page for the outcomes of cells: "works", or the name of an error."""
  head = _HEAD.format(
    num_cells=len(found), num_tested=len(covering_cells()), num_quick=len(selected_cells())
  )
  return "\n".join([head, *_forms(), *_operations(found), *_solvers(found), *_refusals()])


def _row(cells: Iterable[str]) -> str:
  return f"| {' | '.join(cells)} |"


def _table(head: list[str], rows: Iterable[Iterable[str]]) -> list[str]:
  return [_row(head), _row(["---"] * len(head)), *map(_row, rows), ""]


def _forms() -> list[str]:
  rows = ([form.name, form.game] for form in FORMS)
  return ["## Forms of games", "", *_table(["form", "game of the tests"], rows)]


def _operations(found: Mapping[Cell, str]) -> list[str]:
  """Returns the table of operations: the number of solvers with which each works, on each form."""
  outcomes = collections.defaultdict(list)
  for cell, outcome in found.items():
    outcomes[cell.operation.name, cell.form.name].append(outcome)
  rows = []
  for operation in OPERATIONS:
    row = [f"**{operation}**. {operation.summary}"]
    for form in FORMS:
      here = outcomes[operation.name, form.name]
      works = here.count(WORKS)
      row.append(
        "" if not here else f"{works}" if works == len(here) else f"{works} of {len(here)}"
      )
    rows.append(row)
  return [
    "## Operations",
    "",
    "The number of solvers with which an operation works."
    " Where some refuse it, the number of solvers that have the operation follows.",
    "",
    *_table(["operation", *map(str, FORMS)], rows),
  ]


def _solvers(found: Mapping[Cell, str]) -> list[str]:
  cells: dict[tuple[str, str], dict[Cell, str]] = collections.defaultdict(dict)
  for cell, outcome in found.items():
    cells[cell.solver, cell.form.name][cell] = outcome
  rows = [
    [f"**{name}**: {entry.summary}", *(_in_words(cells[name, form.name]) for form in FORMS)]
    for name, entry in catalogue.SOLVERS.items()
  ]
  return [
    "## Solvers",
    "",
    "`yes` if every operation works; otherwise the refused operations, with the number of the refusal below.",
    "",
    *_table(["solver", *map(str, FORMS)], rows),
  ]


def _in_words(found: Mapping[Cell, str]) -> str:
  """Returns the refused operations of a solver on a form, in words."""
  refused = {
    cell.operation.name: _number(cell, outcome)
    for cell, outcome in found.items()
    if outcome != WORKS
  }
  numbers = sorted(set(refused.values()))
  if not refused:
    return "yes"
  if len(refused) == len(found) and len(numbers) == 1:
    return f"no [{numbers[0]}]"
  return "; ".join(f"no {operation} [{number}]" for operation, number in refused.items())


def _number(cell: Cell, outcome: str) -> str:
  """Returns the number of the refusal, or the unexpected outcome."""
  if cell.refusal is not None and outcome == cell.refusal.error.__name__:
    return str(1 + REFUSALS.index(cell.refusal))
  return outcome


def _refusals() -> list[str]:
  lines = [
    f"{number}. `{refusal.error.__name__}`: {refusal.why} The message says what to do: "
    f'"{refusal.advice}".'
    for number, refusal in enumerate(REFUSALS, 1)
  ]
  return ["## Refusals", "", *lines, ""]
