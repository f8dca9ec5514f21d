"""Parameters of tests by rotation: a few of all combinations for every commit, the others as slow tests."""

import itertools
from collections.abc import Collection, Mapping
from typing import Any

import pytest


def rotated(names: str, *axes: Collection[Any]) -> pytest.MarkDecorator:
  """Parametrizes a test by all combinations of some values; of these, a few that go round are not slow.

  Each value of each axis is in one of them, with two axes as many as the longer one has values.

  Args:
    names: of the parameters, with commas, as for `pytest.mark.parametrize`.
    *axes: the values of each; a tuple is the values of several parameters, and a dictionary has names for its values.
  """
  named = [
    list(axis.items()) if isinstance(axis, Mapping) else [(str(value), value) for value in axis]
    for axis in axes
  ]
  # From the third axis on slower and slower, or else values of two axes would always come together.
  turns = max(map(len, axes)) * 2 ** max(0, len(axes) - 2)
  quick = {
    tuple(turn // 2 ** max(0, place - 1) % len(axis) for place, axis in enumerate(axes))
    for turn in range(turns)
  }
  cells = []
  for numbers in itertools.product(*(range(len(axis)) for axis in axes)):
    chosen = [axis[number] for axis, number in zip(named, numbers, strict=True)]
    values = [value if isinstance(value, tuple) else (value,) for _, value in chosen]
    marks = () if numbers in quick else pytest.mark.slow
    cells.append(
      pytest.param(*itertools.chain(*values), marks=marks, id="-".join(name for name, _ in chosen))
    )
  return pytest.mark.parametrize(names, cells)
