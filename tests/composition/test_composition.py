"""Every solver on every form of game with every operation works, or is refused with the error that the table names."""

import pathlib
import re

import pytest
from composition import report, table

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "composition.md"
_CELLS = list(table.cells())
_SELECTED = table.selected_cells()


@pytest.mark.parametrize(
  "cell",
  [
    pytest.param(cell, marks=() if cell in _SELECTED else pytest.mark.slow, id=str(cell))
    for cell in _CELLS
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


def test_the_page_says_what_the_cells_do():
  expected = report.render({cell: cell.expected for cell in _CELLS})
  assert _PAGE.read_text() == expected, "run `make composition`"


def test_no_solver_and_no_operation_is_left_to_slow_tests():
  for part in ("solver", "operation"):
    left_out = {(cell.form, getattr(cell, part)) for cell in _CELLS}
    left_out -= {(cell.form, getattr(cell, part)) for cell in _SELECTED}
    assert not left_out


def test_every_refusal_is_met():
  met = {cell.refusal for cell in _CELLS}
  assert met == {None, *table.REFUSALS}
