"""Compiled code: how a Python function becomes machine code here, and how it is called.

Kernels are compiled by numba the first time they are used, not at import, and kept on disk, see `cache`, so that only
the very first start of the library on a machine compiles anything. Each has an explicit signature.
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
  """Marks a helper that only kernels call, of whatever file; its code becomes a part of theirs."""
  result: Callable[..., Any] = compile_inlined(function, _OPTIONS)
  return result


class Kernel(abc.ABC):
  """A function that is compiled for one signature when it is first used.

  Attributes:
    function: the plain Python function; it runs uncompiled too, slowly, unless it uses `spiel_cfr._numba.simd`.
  """

  __qualname__: str
  # Whether Python calls it, or other kernels. The code for the other one is spared, which compiles faster.
  _from_python: ClassVar[bool]

  def __init__(self, function: Callable[..., Any], signature: Any) -> None:
    """Wraps a plain Python function; nothing is compiled yet.

    `signature` is numba's, or a function from the type of numbers to it if the function exists for float32, too.
    """
    wrapper: Any = self
    functools.update_wrapper(wrapper, function)
    self.function = function
    self._given = signature

  # Made when it is used, because all kernels together take a tenth of a second.
  @functools.cached_property
  def signature(self) -> Any:
    """The signature in numba's terms."""
    two_precisions = isinstance(self._given, FunctionType)
    return self._given(types.float64) if two_precisions else self._given

  def of(self, dtype: npt.DTypeLike) -> Self:
    """Returns the same function for arrays of float64 or of float32.

    Raises:
      TypeError: there is none for float32.
    """
    return self if dtype == np.float64 else self._single

  @functools.cached_property
  def _single(self) -> Self:
    """The same function for float32."""
    if not isinstance(self._given, FunctionType):
      raise TypeError(f"{self.__qualname__}() computes in float64 only")
    result = object.__new__(type(self))
    Kernel.__init__(result, self.function, self._given(types.float32))
    return result

  @functools.cached_property
  def _dispatcher(self) -> Any:
    """The machine code, from disk if nothing that it was made of has changed."""
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
    # Pickled, like a function, as the name under which its module has it.
    return self.__qualname__


class PythonKernel(Kernel):
  """A compiled function that Python calls, in some microseconds, most of them to look at the arguments."""

  _from_python = True

  def __call__(self, *arguments: Any) -> Any:
    """Calls the compiled function.

    Raises:
      TypeError: an argument has another type, number of dimensions or layout than the signature says, or is an array
        that can't be written.
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
    """The machine code, which believes what it is given: for callers that have made all arguments themselves."""
    return python_entry(self._dispatcher, self.signature)


def kernel(signature: Any) -> Callable[[Callable[..., Any]], PythonKernel]:
  """Decorator that makes a function a `Kernel`, see its constructor."""
  return lambda function: PythonKernel(function, signature)


class _Announced:
  """What has been said of compiling in this process: that it takes so long, once, and on a terminal of which kernel."""

  def __init__(self) -> None:
    self.kernels = 0
    self.said = False


_announced = _Announced()


@contextlib.contextmanager
def _announcement(name: str) -> Iterator[None]:
  """Says on standard error what takes so long; on a terminal, in a line that is gone afterwards."""
  _announced.kernels += 1
  on_terminal = sys.stderr is not None and sys.stderr.isatty()

  def announce() -> None:
    first, _announced.said = not _announced.said, True
    if on_terminal:
      line = (
        f"spiel_cfr: compiling kernel {_announced.kernels}, {name}; later starts take it from disk"
      )
      print(f"{_ERASE_LINE}{line[:79]}", end="", file=sys.stderr, flush=True)
    elif first:
      print("spiel_cfr: compiling kernels; later starts take them from disk", file=sys.stderr)

  timer = threading.Timer(_ANNOUNCE_AFTER_SECONDS, announce)
  timer.daemon = True
  if _announced.said:
    announce()
  else:
    timer.start()
  try:
    yield
  finally:
    timer.cancel()
    if on_terminal and _announced.said:
      print(_ERASE_LINE, end="", file=sys.stderr, flush=True)


def _check(wanted: Any) -> Callable[[Any], bool]:
  """Returns a function that says whether compiled code can be given a value where its signature has this type."""
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
  """Returns NumPy's name for numba's type of an array's elements."""
  found = getattr(number, "dtype", None)
  return found if isinstance(found, np.dtype) else np.dtype(number.name)
