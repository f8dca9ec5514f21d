"""Arrays of kernels: types in Python and in numba, alignment, checks."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numba.extending
import numpy as np
import numpy.typing as npt
from numba import types

# numba's own annotations don't cover these.
extending: Any = numba.extending
cgutils: Any = numba.core.cgutils

Float64s = npt.NDArray[np.float64]
AnyFloats = npt.NDArray[Any]
Uint16s = npt.NDArray[np.uint16]
Uint32s = npt.NDArray[np.uint32]
Uint64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
# Integers of any number of bits.
Integers = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]


def floats(number: Any, dimensions: int = 1) -> Any:
  """Returns the numba type of arrays of float64 or float32."""
  return types.Array(number, dimensions, "C")


FLOATS = floats(types.float64)
FLOAT_TABLE = floats(types.float64, 2)
INDICES = types.Array(types.uint32, 1, "C")
COUNTS = types.Array(types.uint64, 1, "C")
COUNT_TABLE = types.Array(types.uint64, 2, "C")
COUNT = types.uint64

# The elements of a long array that are processed at a time, to save memory.
_AT_A_TIME = 1 << 14
# Doubles in a cache line. Blocks of infosets begin on one.
LINE = 8


def aligned_zeros(*shape: int, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
  """Returns zeros of float64 or float32; the first element begins a cache line.

  `np.zeros` aligns to 16 bytes only. Loops over vectors that cross cache lines are up to 1.3 times slower.
  """
  count, size = math.prod(shape), np.dtype(dtype).itemsize
  line = LINE * np.dtype(np.float64).itemsize // size
  raw = np.zeros(count + line, dtype)
  start = (-raw.__array_interface__["data"][0] // size) % line
  return raw[start : start + count].reshape(shape)


def dot(first: AnyFloats, second: AnyFloats) -> float:
  """Returns the sum of products. Unlike that of BLAS, it does not depend on the number of threads."""
  return float(np.einsum("i,i", first, second, dtype=np.float64))


def aligned(array: AnyFloats, dtype: npt.DTypeLike = np.float64) -> AnyFloats:
  """Returns a copy that begins a cache line, like `aligned_zeros`."""
  result = aligned_zeros(*array.shape, dtype=dtype)
  result[...] = array
  return result


def unlocked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
  """Returns the same memory as a writable array, since kernels take no read-only arrays.

  Use it for arrays that no kernel writes to. The memory of arrays shared with another process can't be written.
  """
  if array.flags.writeable:
    return array
  interface = dict(array.__array_interface__)
  interface["data"] = (interface["data"][0], False)
  return np.asarray(_Owner(interface, array))


def unpickled(record: Callable[..., Any], *arrays: npt.NDArray[Any]) -> Any:
  """Returns an unpickled `NamedTuple` of arrays for kernels; its `__reduce__` names this function.

  Unpickled arrays may be read-only, in memory that several processes share.
  """
  return record(*(unlocked(array) for array in arrays))


class _Owner:
  """The owner of an array's memory: NumPy makes an array from its interface and keeps it alive."""

  def __init__(self, interface: dict[str, Any], array: npt.NDArray[Any]) -> None:
    self.__array_interface__ = interface
    self.array = array


def require(condition: Any, claim: str) -> None:
  """Checks a condition that kernels rely on, such as one of arrays from a file.

  Raises:
    ValueError: the condition, a truth value or an array of them, is not true everywhere; `claim` states it.
  """
  if not np.all(condition):
    raise ValueError(f"it is not true that {claim}")


def require_array(array: Any, name: str, dtype: npt.DTypeLike, *shape: int) -> None:
  """Checks that kernels take an array.

  Args:
    array: the array.
    name: its name in messages.
    dtype: the required type, in the machine's order of bytes.
    *shape: the required shape; -1 for any length.

  Raises:
    ValueError: the array has another type or shape, is not contiguous, or has numbers that are not finite.
  """
  fits = (
    isinstance(array, np.ndarray)
    and array.dtype == np.dtype(dtype)
    and array.ndim == len(shape)
    and all(wanted in (-1, found) for wanted, found in zip(shape, array.shape, strict=True))
    and array.flags.c_contiguous
  )
  if not fits:
    found = (
      f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array)
    )
    wanted = ", ".join("any" if length < 0 else str(length) for length in shape)
    raise ValueError(f"{name} is {found}, not {np.dtype(dtype)} of shape ({wanted})")
  if array.dtype.kind == "f" and not np.isfinite(array).all():
    raise ValueError(f"{name} has numbers that are not finite")


def described(value: Any) -> str:
  """Returns the type of a value in words, for error messages."""
  if not isinstance(value, np.ndarray):
    return type(value).__qualname__
  kind = "" if value.flags.carray else " in pieces, not aligned or read-only"
  return f"an array{kind} of {value.dtype} and shape {value.shape}"


def inside_kernels(function: Callable[..., Any]) -> Any:
  """Decorator of numba intrinsics: functions that return a signature and a generator of LLVM code."""
  return extending.intrinsic(function)


def pieces(length: int) -> Iterator[slice]:
  """Yields the pieces of an array of this length, so that temporary arrays are small."""
  for begin in range(0, length, _AT_A_TIME):
    yield slice(begin, min(begin + _AT_A_TIME, length))


def taken(array: npt.NDArray[Any], places: npt.NDArray[Any]) -> npt.NDArray[Any]:
  """Returns `array[places]` piece by piece, since NumPy converts all places to 64-bit integers."""
  result = np.empty(len(places), array.dtype)
  for some in pieces(len(places)):
    result[some] = array[places[some]]
  return result


def concatenated_ranges(starts: Integers, counts: Integers) -> Int64s:
  """Returns the numbers start, start + 1, ... of some ranges, one range after the other; shape (sum of counts,)."""
  ends = np.cumsum(counts)
  return np.asarray(np.arange(counts.sum()) + np.repeat(starts - (ends - counts), counts))
