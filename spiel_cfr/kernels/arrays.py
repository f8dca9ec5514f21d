"""Arrays that kernels work on: their types in Python and in numba, and how they lie in memory."""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import extending, types

Float64s = npt.NDArray[np.float64]
Uint32s = npt.NDArray[np.uint32]
Uint64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

FLOATS = types.Array(types.float64, 1, "C")
FLOAT_TABLE = types.Array(types.float64, 2, "C")
INDICES = types.Array(types.uint32, 1, "C")
INDEX_TABLE = types.Array(types.uint32, 2, "C")
COUNTS = types.Array(types.uint64, 1, "C")
COUNT_TABLE = types.Array(types.uint64, 2, "C")
COUNT = types.uint64

# Doubles in a cache line. Blocks of infosets begin on one.
LINE = 8


def tuple_type(cls: type, *fields: Any) -> Any:
  """Returns the numba type of a `NamedTuple` class whose fields have these types."""
  # Numba tells tuples of one type from others.
  alike = len(set(fields)) == 1
  make: Any = types.NamedUniTuple if alike else types.NamedTuple
  return make(fields[0], len(fields), cls) if alike else make(fields, cls)


def aligned_zeros(*shape: int) -> Float64s:
  """Zeros of dtype float64 whose first element begins a cache line.

  `np.zeros` promises 16 bytes only; loops over vectors that cross cache lines are up to 1.3 times slower.
  """
  count = int(np.prod(shape))
  raw = np.zeros(count + LINE, np.float64)
  start = (-raw.ctypes.data // raw.itemsize) % LINE
  return raw[start : start + count].reshape(shape)


def aligned(array: Float64s) -> Float64s:
  """Returns a copy that begins a cache line, like `aligned_zeros`."""
  result = aligned_zeros(*array.shape)
  result[...] = array
  return result


def _borrowed(typing_context: Any, array: Any) -> Any:
  """Returns, inside kernels, the same array without ownership; the caller keeps it alive.

  A tuple of owned arrays counts references, atomically, whenever it is made or taken apart; one of borrowed arrays
  costs as little as its pointers.
  """

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    result = context.make_array(signature.args[0])(context, builder, arguments[0])
    for owner in ("meminfo", "parent"):
      setattr(result, owner, ir.Constant(getattr(result, owner).type, None))
    return result._getvalue()

  return array(array), generate


borrowed: Any = extending.intrinsic(_borrowed)
