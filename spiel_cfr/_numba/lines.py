"""Loops that kernels write out: numba takes seconds to compile what NumPy's assignments to slices may mean."""

from spiel_cfr._numba.arrays import AnyFloats
from spiel_cfr._numba.kernels import inlined


@inlined
def copy_line(source: AnyFloats, target: AnyFloats) -> None:
  """target[:] = source."""
  for i in range(target.shape[0]):
    target[i] = source[i]


@inlined
def copy_lines(source: AnyFloats, target: AnyFloats) -> None:
  """target[:, :] = source."""
  for line in range(target.shape[0]):
    for i in range(target.shape[1]):
      target[line, i] = source[line, i]


@inlined
def fill_line(line: AnyFloats, number: float) -> None:
  """line[:] = number."""
  for i in range(line.shape[0]):
    line[i] = number
