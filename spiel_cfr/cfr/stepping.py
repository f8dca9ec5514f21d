"""How solvers run whose iterations are compiled: a tenth of a second at a time, in one thread, with finite numbers."""

import abc
from collections.abc import Callable, Iterable, Iterator

from spiel_cfr._util import arguments
from spiel_cfr.cfr.numbers import exclusive
from spiel_cfr.cfr.solver import Solver


class Stepping(Solver):
  """A solver that does any number of iterations in one call of compiled code."""

  # Divides iterations: a `Slices`, unless what `_advance` calls does so.
  _slices: Callable[[int], Iterable[int]]

  @exclusive
  def prepare(self) -> None:
    """Compiles kernels or takes them from disk, so that the first iteration is not slower than others."""
    self._advance(0)
    self.nash_conv()

  @exclusive
  def evaluate_and_update_policy(self) -> None:
    """Does one iteration: every player evaluates the current policies and updates its own."""
    self._advance(1)

  @exclusive
  def run(self, iterations: int) -> None:
    """Does many iterations: the same numbers as single steps, bit for bit.

    Ctrl-C raises KeyboardInterrupt after a whole number of them, `self.iteration`.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
      ConcurrentUseError: it runs already, in another thread.
      NotFiniteError: something has become NaN or infinite; or would, and then the solver is as it was.
    """
    for _ in self._stepwise(arguments.positive_integer(iterations, "iterations")):
      pass

  def _stepwise(self, iterations: int) -> Iterator[None]:
    """Does many iterations, and yields whenever Ctrl-C may be looked at."""
    for count in self._slices(iterations):
      self._advance(count)
      self._check_finite()
      yield

  @abc.abstractmethod
  def _advance(self, count: int) -> None:
    """Does `count` iterations in one call of compiled code."""

  @abc.abstractmethod
  def _check_finite(self) -> None:
    """Raises NotFiniteError if an iteration has made something NaN or infinite."""
