"""Kernels: Python functions that numba compiles, each for one explicit signature.

A kernel is compiled at its first use, not at import, and kept on disk, see `cache`. So only the first start of the
library on a machine compiles anything.
"""

import abc
import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from numba import types

from spiel_cfr._numba import cache
from spiel_cfr._numba.arrays import described
from spiel_cfr._numba.numba_internals import (
  compile_inlined,
  compiler_lock,
  python_entry,
  without_wrappers,
)

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}
_ANNOUNCE_AFTER_SECONDS = 0.7
_ERASE_LINE = "\r\x1b[K"


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
  """Decorator of helpers of kernels, in any file; their code becomes a part of the kernel's."""
  result: Callable[..., Any] = compile_inlined(function, _OPTIONS)
  return result


class Kernel(abc.ABC):
  """A function that is compiled for one signature when it is first used.

  Attributes:
    function: the plain Python function. It also runs uncompiled, slowly, unless it uses `spiel_cfr._numba.simd`.
  """

  __qualname__: str
  # Whether Python calls the kernel, or only other kernels. It is compiled without the other entry, which is faster.
  _from_python: ClassVar[bool]

  def __init__(self, function: Callable[..., Any], signature: Any) -> None:
    """Wraps a plain Python function; nothing is compiled yet.

    `signature` is a signature of numba; or, for a kernel of both precisions, a function from the number type to one.
    """
    wrapper: Any = self
    functools.update_wrapper(wrapper, function)
    self.function = function
    self._given = signature

  # Made at the first use, since the signatures of all kernels together take a tenth of a second.
  @functools.cached_property
  def signature(self) -> Any:
    """The signature in numba's terms."""
    two_precisions = isinstance(self._given, FunctionType)
    return self._given(types.float64) if two_precisions else self._given

  def of(self, dtype: npt.DTypeLike) -> Self:
    """Returns the kernel for arrays of float64 or of float32.

    Raises:
      TypeError: the kernel does not exist for float32.
    """
    return self if dtype == np.float64 else self._single

  @functools.cached_property
  def _single(self) -> Self:
    """The kernel for float32."""
    if not isinstance(self._given, FunctionType):
      raise TypeError(f"{self.__qualname__}() computes in float64 only")
    result = object.__new__(type(self))
    Kernel.__init__(result, self.function, self._given(types.float32))
    return result

  @functools.cached_property
  def _dispatcher(self) -> Any:
    """The machine code, from disk if no source has changed."""
    with compiler_lock:
      # Another thread may have been faster.
      known = self.__dict__.get("_dispatcher")
      if known is not None:
        return known
      announced = functools.partial(_announcement, self.__qualname__)
      return cache.compiled(self.function, self.signature, self._options, announced)

  @property
  def _options(self) -> dict[str, Any]:
    python = self._from_python
    return _OPTIONS | without_wrappers(python=python, passed=not python)

  def __copy__(self) -> Self:
    return self

  def __deepcopy__(self, memo: Any) -> Self:
    return self

  def __reduce__(self) -> str:
    # Like a function, a kernel is pickled as its name in its module.
    return self.__qualname__


class PythonKernel(Kernel):
  """A compiled function that Python calls. A call takes some microseconds, mostly for checks of arguments."""

  _from_python = True

  def __call__(self, *arguments: Any) -> Any:
    """Calls the compiled function.

    Raises:
      TypeError: an argument has another type, number of dimensions or layout than in the signature, or is a read-only
        array.
    """
    if len(arguments) != len(self._checks):
      raise TypeError(
        f"{self.__qualname__}() takes {len(self._checks)} arguments but {len(arguments)} were given"
      )
    for i, (value, fits) in enumerate(zip(arguments, self._checks, strict=True)):
      if not fits(value):
        wanted = self.signature.args[i]
        raise TypeError(
          f"argument {i} of {self.__qualname__}() must be {wanted}, not {described(value)}"
        )
    return self.unchecked(*arguments)

  @functools.cached_property
  def _checks(self) -> tuple[Callable[[Any], bool], ...]:
    return tuple(map(_check, self.signature.args))

  @functools.cached_property
  def unchecked(self) -> Callable[..., Any]:
    """The machine code, without checks, for callers that have made all arguments themselves."""
    return python_entry(self._dispatcher, self.signature)


def kernel(signature: Any) -> Callable[[Callable[..., Any]], PythonKernel]:
  """Decorator that makes a function a `PythonKernel`, see `Kernel`."""
  return lambda function: PythonKernel(function, signature)


class _Announced:
  """The announcements of compiling in this process: the number of kernels, and whether one was printed."""

  def __init__(self) -> None:
    self.kernels = 0
    self.was_printed = False


_announced = _Announced()


@contextlib.contextmanager
def _announcement(name: str) -> Iterator[None]:
  """Prints to standard error that a kernel is being compiled; on a terminal, in a line that is erased afterwards."""
  _announced.kernels += 1
  on_terminal = sys.stderr is not None and sys.stderr.isatty()

  def announce() -> None:
    first, _announced.was_printed = not _announced.was_printed, True
    if on_terminal:
      line = (
        f"spiel_cfr: compiling kernel {_announced.kernels}, {name}; later starts take it from disk"
      )
      print(f"{_ERASE_LINE}{line[:79]}", end="", file=sys.stderr, flush=True)
    elif first:
      print("spiel_cfr: compiling kernels; later starts take them from disk", file=sys.stderr)

  timer = threading.Timer(_ANNOUNCE_AFTER_SECONDS, announce)
  timer.daemon = True
  if _announced.was_printed:
    announce()
  else:
    timer.start()
  try:
    yield
  finally:
    timer.cancel()
    if on_terminal and _announced.was_printed:
      print(_ERASE_LINE, end="", file=sys.stderr, flush=True)


def _check(wanted: Any) -> Callable[[Any], bool]:
  """Returns a function that checks whether compiled code can take a value for an argument of this type."""
  if isinstance(wanted, types.Array):
    return functools.partial(_is_array, numpy_dtype(wanted.dtype), wanted.ndim)
  numbers: Any = bool | int | np.bool_ | np.integer
  if not isinstance(wanted, types.Integer):
    numbers |= float | np.floating
  return lambda value: isinstance(value, numbers)


def _is_array(dtype: np.dtype[Any], dimensions: int, value: Any) -> bool:
  return (
    isinstance(value, np.ndarray)
    and value.dtype == dtype
    and value.ndim == dimensions
    and value.flags.carray
  )


def numpy_dtype(number: Any) -> np.dtype[Any]:
  """Returns the NumPy type of numba's type of an array's elements."""
  found = getattr(number, "dtype", None)
  return found if isinstance(found, np.dtype) else np.dtype(number.name)
