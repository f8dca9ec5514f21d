"""The visits to the subtrees of a game that is cut into parts."""

import abc
from collections.abc import Callable

from spiel_cfr._numba.steps import Chain
from spiel_cfr.cfr.loops.arrays import SolverArrays
from spiel_cfr.cfr.loops.loop import Turn
from spiel_cfr.games.compiled.trunk_and_subtrees import Workspace


class Subtrees(abc.ABC):
  """The visits to the subtrees of a game."""

  @abc.abstractmethod
  def visit(self, turn: Turn) -> None:
    """Runs `PartsLoop.subtree` in each subtree."""

  def gather(self) -> None:  # noqa: B027
    """Brings the arrays of subtrees up to date in this process; the caller may write to them."""

  def gather_averages(self) -> None:  # noqa: B027
    """Brings the arrays of subtrees up to date in this process; the caller only reads them."""

  def check(self) -> None:  # noqa: B027
    """Raises ShardError if a visit since the last call failed elsewhere; its work has been done all the same."""


class LocalSubtrees(Subtrees):
  """Visits the subtrees in this process, in one thread or several."""

  def __init__(
    self, arrays: SolverArrays, subtree: Callable[[int, Workspace, Turn], Chain]
  ) -> None:
    """Takes the arrays and `PartsLoop.subtree`."""
    self._walk, self._subtree = arrays.walk, subtree

  def visit(self, turn: Turn) -> None:
    self._walk.for_each_subtree(
      lambda number, workspace: self._subtree(number, workspace, turn).run()
    )
