"""Every pair of a form of game, a solver and an operation works, or is refused as the table says."""

import pathlib
import re

import pytest
from composition import report, table

from spiel_cfr import catalogue

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "composition.md"
_CELLS = list(table.cells())
_QUICK = table.selected_cells()
_TESTED = table.covering_cells()


@pytest.mark.parametrize(
  "cell",
  [
    pytest.param(cell, marks=() if cell in _QUICK else pytest.mark.slow, id=str(cell))
    for cell in _TESTED
  ],
)
def test_cell(cell):
  refusal = cell.refusal
  if refusal is None:
    cell.check()
    return
  with pytest.raises(refusal.error, match=re.escape(refusal.advice)) as info:
    cell.check()
  assert type(info.value) is refusal.error


def test_the_page_matches_the_cells():
  expected = report.render({cell: cell.expected for cell in _CELLS})
  assert _PAGE.read_text() == expected, "run `make composition`"


def test_no_operation_and_no_kind_of_solver_is_left_to_slow_tests():
  met = {(cell.form, cell.operation) for cell in _QUICK}
  assert met == {(cell.form, cell.operation) for cell in _CELLS}
  assert {cell.solver for cell in _QUICK} == set(catalogue.SOLVERS)
  solvers = {name: catalogue.make(name, "kuhn_poker", 1) for name in catalogue.SOLVERS}
  kinds = {table.kind(solver) for solver in solvers.values()}
  assert kinds == {table.kind(solvers[name]) for name in table.REPRESENTATIVES}


def test_every_two_meet_in_a_test():
  """The tests are a small part of the cells, but cover all pairs."""
  assert set(_QUICK) <= set(_TESTED) <= set(_CELLS)
  assert len(set(_TESTED)) == len(_TESTED) < len(_CELLS) / 6
  assert {pair for cell in _TESTED for pair in cell.pairs} == {
    pair for cell in _CELLS for pair in cell.pairs
  }


def test_every_refusal_is_met():
  met = {cell.refusal for cell in _TESTED}
  assert met == {None, *table.REFUSALS}
