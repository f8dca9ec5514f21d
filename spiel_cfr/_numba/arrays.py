"""Arrays for kernels: their types in Python and in numba, alignment, checks, and work in pieces to save memory."""

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
  """Returns the numba type of arrays in C order, with elements of float64 or float32."""
  return types.Array(number, dimensions, "C")


FLOATS = floats(types.float64)
FLOAT_TABLE = floats(types.float64, 2)
INDICES = types.Array(types.uint32, 1, "C")
COUNTS = types.Array(types.uint64, 1, "C")
COUNT_TABLE = types.Array(types.uint64, 2, "C")
COUNT = types.uint64

# The number of elements of a long array that are processed at a time, to save memory.
_PIECE = 1 << 14
# The number of doubles in a cache line. Every block of infosets begins at a cache line.
LINE = 8


def aligned_zeros(*shape: int, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
  """Returns zeros of float64 or float32 in memory that begins at a cache line.

  Arrays of `np.zeros` begin at a multiple of 16 bytes. Loops over vectors that cross cache lines are up to 1.3 times
  slower.
  """
  count, size = math.prod(shape), np.dtype(dtype).itemsize
  line = LINE * np.dtype(np.float64).itemsize // size
  raw = np.zeros(count + line, dtype)
  start = (-raw.__array_interface__["data"][0] // size) % line
  return raw[start : start + count].reshape(shape)


def dot(first: AnyFloats, second: AnyFloats) -> float:
  """Returns the inner product of two vectors. Unlike that of BLAS, it does not depend on the number of threads."""
  return float(np.einsum("i,i", first, second, dtype=np.float64))


def aligned(array: AnyFloats, dtype: npt.DTypeLike = np.float64) -> AnyFloats:
  """Returns a copy of an array in memory that begins at a cache line."""
  result = aligned_zeros(*array.shape, dtype=dtype)
  result[...] = array
  return result


def unlocked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
  """Returns an array in the same memory that counts as writable, because kernels refuse read-only arrays.

  Use it only for arrays that no kernel writes to. Writing to memory that is shared with another process fails.
  """
  if array.flags.writeable:
    return array
  interface = dict(array.__array_interface__)
  interface["data"] = (interface["data"][0], False)
  return np.asarray(_Owner(interface, array))


def unpickled(record: Callable[..., Any], *arrays: npt.NDArray[Any]) -> Any:
  """Returns a `NamedTuple` of arrays for kernels from unpickled arrays.

  Unpickled arrays may be read-only, in memory that several processes share. The `__reduce__` of such a `NamedTuple`
  names this function.
  """
  return record(*(unlocked(array) for array in arrays))


class _Owner:
  """The owner of an array's memory. NumPy makes a new array from its interface, and keeps the owner alive."""

  def __init__(self, interface: dict[str, Any], array: npt.NDArray[Any]) -> None:
    self.__array_interface__ = interface
    self.array = array


def require(condition: Any, claim: str) -> None:
  """Checks a condition that kernels rely on, for example one on arrays from a file.

  Args:
    condition: a truth value, or an array of truth values.
    claim: the condition in words, for the error message.

  Raises:
    ValueError: the condition is not true everywhere.
  """
  if not np.all(condition):
    raise ValueError(f"it is not true that {claim}")


def require_between(numbers: Any, least: int, end: int, claim: str) -> None:
  """Checks that numbers are at least `least` and less than `end`, as `require` but without temporary arrays."""
  require(not numbers.size or (numbers.min() >= least and numbers.max() < end), claim)


def require_array(array: Any, name: str, dtype: npt.DTypeLike, *shape: int) -> None:
  """Checks that kernels can take an array, and that its numbers are finite.

  Args:
    array: the array.
    name: the name of the array in error messages.
    dtype: the required type of elements, in the machine's byte order.
    *shape: the required shape; -1 for any length.

  Raises:
    ValueError: the array has another type or shape, is not contiguous, or has numbers that are not finite.
  """
  is_valid = (
    isinstance(array, np.ndarray)
    and array.dtype == np.dtype(dtype)
    and array.ndim == len(shape)
    and all(required in (-1, actual) for required, actual in zip(shape, array.shape, strict=True))
    and array.flags.c_contiguous
  )
  if not is_valid:
    actual = (
      f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array)
    )
    required = ", ".join("any" if length < 0 else str(length) for length in shape)
    raise ValueError(f"{name} is {actual}, not {np.dtype(dtype)} of shape ({required})")
  if array.dtype.kind == "f" and not np.isfinite(array).all():
    raise ValueError(f"{name} has numbers that are not finite")


def described(value: Any) -> str:
  """Returns a description of a value's type for error messages."""
  if not isinstance(value, np.ndarray):
    return type(value).__qualname__
  flaw = "" if value.flags.carray else " in pieces, not aligned or read-only"
  return f"an array{flaw} of {value.dtype} and shape {value.shape}"


def inside_kernels(function: Callable[..., Any]) -> Any:
  """Decorator of numba intrinsics, functions that return a signature and a generator of LLVM code."""
  return extending.intrinsic(function)


def pieces(length: int) -> Iterator[slice]:
  """Yields consecutive slices that cover an array of a length, for work with small temporary arrays."""
  for begin in range(0, length, _PIECE):
    yield slice(begin, min(begin + _PIECE, length))


def taken(array: npt.NDArray[Any], indices: npt.NDArray[Any]) -> npt.NDArray[Any]:
  """Returns `array[indices]`, computed in pieces because NumPy converts indices to 64-bit integers."""
  result = np.empty(len(indices), array.dtype)
  for piece in pieces(len(indices)):
    result[piece] = array[indices[piece]]
  return result


def range_starts(lengths: Integers) -> Int64s:
  """Returns the first index of each of some ranges that are stored end to end, given their lengths."""
  return np.asarray(np.cumsum(lengths) - lengths)


def concatenated_ranges(starts: Integers, counts: Integers) -> Int64s:
  """Returns ranges one after the other: for each start and count, start, start + 1, ...; shape (sum of counts,)."""
  ends = np.cumsum(counts)
  return np.asarray(np.arange(counts.sum()) + np.repeat(starts - (ends - counts), counts))
