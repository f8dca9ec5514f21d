"""Kernels: Python functions that numba compiles for one explicit signature.

A kernel is compiled at its first use, not at import, and the machine code is kept on disk; see `cache`. So only the
first run of the library on a machine compiles.
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
# The control characters that erase a terminal's line.
_ERASE_LINE = "\r\x1b[K"


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
  """Decorator of functions that kernels call. Their code becomes a part of the kernel's code."""
  result: Callable[..., Any] = compile_inlined(function, _OPTIONS)
  return result


@functools.cache
def with_checked_indices(function: Callable[..., Any], signature: Any) -> Any:
  """Returns a function, compiled for one signature, that raises IndexError at an index beyond an array."""
  options = _OPTIONS | without_wrappers(python=True, kernels=False) | {"boundscheck": True}
  with compiler_lock:
    return cache.compiled(function, signature, options)


class Kernel(abc.ABC):
  """Base class of kernels: functions that are compiled for one signature at their first use.

  Attributes:
    function: the plain Python function. It also runs uncompiled, slowly, unless it uses `spiel_cfr._numba.simd`.
  """

  __qualname__: str
  # True if Python calls the kernel, False if only other kernels do. Compiling a single entry point is faster.
  _from_python: ClassVar[bool]

  def __init__(self, function: Callable[..., Any], signature: Any) -> None:
    """Wraps a plain Python function. Nothing is compiled yet.

    Args:
      function: the plain Python function.
      signature: numba's signature; or, for a kernel in both precisions, a function from numba's number type to one.
    """
    wrapper: Any = self
    functools.update_wrapper(wrapper, function)
    self.function = function
    self._signature = signature

  # Made at the first use, because making the signatures of all kernels takes a tenth of a second.
  @functools.cached_property
  def signature(self) -> Any:
    """The signature in numba's terms."""
    has_two_precisions = isinstance(self._signature, FunctionType)
    return self._signature(types.float64) if has_two_precisions else self._signature

  def of(self, dtype: npt.DTypeLike) -> Self:
    """Returns the kernel for arrays of float64 or of float32.

    Raises:
      TypeError: the kernel does not exist for float32.
    """
    return self if dtype == np.float64 else self._single

  @functools.cached_property
  def _single(self) -> Self:
    """The kernel for float32."""
    if not isinstance(self._signature, FunctionType):
      raise TypeError(f"{self.__qualname__}() computes in float64 only")
    result = object.__new__(type(self))
    Kernel.__init__(result, self.function, self._signature(types.float32))
    return result

  @functools.cached_property
  def _dispatcher(self) -> Any:
    """Numba's dispatcher with the machine code, from disk if no source has changed."""
    with compiler_lock:
      # Another thread may have compiled the kernel while this one waited.
      dispatcher = self.__dict__.get("_dispatcher")
      if dispatcher is not None:
        return dispatcher
      announced = functools.partial(_announcement, self.__qualname__)
      return cache.compiled(self.function, self.signature, self._options, announced)

  @property
  def _options(self) -> dict[str, Any]:
    """The options of `numba.njit`."""
    from_python = self._from_python
    return _OPTIONS | without_wrappers(python=from_python, kernels=not from_python)

  def __copy__(self) -> Self:
    return self

  def __deepcopy__(self, memo: Any) -> Self:
    return self

  def __reduce__(self) -> str:
    # Like a function, a kernel is pickled by its name in its module.
    return self.__qualname__


class PythonKernel(Kernel):
  """A kernel that Python calls. A call takes some microseconds, mostly for checks of its arguments."""

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
        required = self.signature.args[i]
        raise TypeError(
          f"argument {i} of {self.__qualname__}() must be {required}, not {described(value)}"
        )
    return self.unchecked(*arguments)

  @functools.cached_property
  def _checks(self) -> tuple[Callable[[Any], bool], ...]:
    return tuple(map(_check, self.signature.args))

  @functools.cached_property
  def unchecked(self) -> Callable[..., Any]:
    """The machine code without checks of arguments, for callers that make all arguments themselves."""
    return python_entry(self._dispatcher, self.signature)


def kernel(signature: Any) -> Callable[[Callable[..., Any]], PythonKernel]:
  """Decorator that makes a function a `PythonKernel`; for the signature see `Kernel`."""
  return lambda function: PythonKernel(function, signature)


class _Announced:
  """The kernels compiled so far in this process, for announcements.

  Attributes:
    kernels: int. The number of kernels compiled.
    was_printed: bool. True if an announcement was printed.
  """

  def __init__(self) -> None:
    self.kernels = 0
    self.was_printed = False


_announced = _Announced()


@contextlib.contextmanager
def _announcement(name: str) -> Iterator[None]:
  """Context that prints to standard error that a kernel is being compiled, if that takes long.

  On a terminal, the line is erased afterwards.
  """
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


def _check(numba_type: Any) -> Callable[[Any], bool]:
  """Returns a function that checks whether a value is a valid argument of a numba type."""
  if isinstance(numba_type, types.Array):
    return functools.partial(_is_array, numpy_dtype(numba_type.dtype), numba_type.ndim)
  numbers: Any = bool | int | np.bool_ | np.integer
  if not isinstance(numba_type, types.Integer):
    numbers |= float | np.floating
  return lambda value: isinstance(value, numbers)


def _is_array(dtype: np.dtype[Any], dimensions: int, value: Any) -> bool:
  """Returns whether a value is a writable array in C order, of a type of elements and a number of dimensions."""
  return (
    isinstance(value, np.ndarray)
    and value.dtype == dtype
    and value.ndim == dimensions
    and value.flags.carray
  )


def numpy_dtype(number: Any) -> np.dtype[Any]:
  """Returns the NumPy type that corresponds to numba's type of a number."""
  dtype = getattr(number, "dtype", None)
  return dtype if isinstance(dtype, np.dtype) else np.dtype(number.name)
