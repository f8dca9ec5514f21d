"""Arrays that kernels work on: their types in Python and in numba, and how they lie in memory."""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import extending, types
from numba.core.datamodel.models import ArrayModel, StructModel

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


class _Borrowed(types.Array):  # type: ignore[misc]
  """The type of an array inside kernels that does not own its memory, so that nobody counts references to it."""

  def __init__(self, dimensions: int) -> None:
    super().__init__(types.float64, dimensions, "C", name=f"borrowed({dimensions}d)")


@extending.register_model(_Borrowed)
class _BorrowedModel(StructModel):  # type: ignore[misc]
  """The struct of an array, with plain pointers where that has counted ones."""

  def __init__(self, manager: Any, array_type: Any) -> None:
    members = ArrayModel(manager, array_type)
    counted = ("meminfo", "parent")
    super().__init__(
      manager,
      array_type,
      [
        (name, types.voidptr if name in counted else members.get_type(name))
        for name in members._fields
      ],
    )


BORROWED_FLOATS = _Borrowed(1)
BORROWED_FLOAT_TABLE = _Borrowed(2)


def _borrowed(typing_context: Any, array: Any) -> Any:
  """Returns, inside kernels, the same array of float64 without ownership; the caller keeps it alive.

  A tuple of owned arrays counts references, atomically, whenever it is made or taken apart; one of borrowed arrays
  costs as little as its pointers.
  """

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    owned = context.make_array(signature.args[0])(context, builder, arguments[0])
    result = context.make_array(signature.return_type)(context, builder)
    for name in ("nitems", "itemsize", "data", "shape", "strides"):
      setattr(result, name, getattr(owned, name))
    for name in ("meminfo", "parent"):
      setattr(result, name, ir.Constant(getattr(result, name).type, None))
    return result._getvalue()

  return _Borrowed(array.ndim)(array), generate


borrowed: Any = extending.intrinsic(_borrowed)
