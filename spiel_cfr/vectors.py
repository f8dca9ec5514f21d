"""Eight numbers at once, for kernels whose inner loops are as short as that.

The compiler turns loops over hundreds of numbers into vector instructions by itself, but not those over the six or
eight private types of a small game. Here it is told outright what is one vector. These functions can be called from
kernels only. Where registers are shorter, the compiler splits the operations.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, register_model

from spiel_cfr.kernels import LINE

# Numbers in a vector.
LANES = LINE

_NUMBER = ir.DoubleType()
_BYTES = 8
_LLVM_VECTOR = ir.VectorType(_NUMBER, LANES)


class _VectorType(types.Type):  # type: ignore[misc]
  """What numba knows of a vector: nothing."""

  def __init__(self) -> None:
    super().__init__(name="spiel_cfr.vector")


_VECTOR = _VectorType()


@register_model(_VectorType)
class _VectorModel(PrimitiveModel):  # type: ignore[misc]
  """How a vector is kept: in a register."""

  def __init__(self, manager: Any, vector_type: Any) -> None:
    super().__init__(manager, vector_type, _LLVM_VECTOR)


@intrinsic  # type: ignore[untyped-decorator]
def zeros(typing_context: Any) -> Any:
  """Returns a vector of zeros."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return ir.Constant(_LLVM_VECTOR, None)

  return _VECTOR(), generate


@intrinsic  # type: ignore[untyped-decorator]
def load(typing_context: Any, numbers: Any, start: Any) -> Any:
  """Returns numbers[start : start + LANES], unchecked."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer = _pointer(context, builder, signature, *arguments[:2])
    return builder.load(pointer, align=_BYTES)

  return _VECTOR(numbers, types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(typing_context: Any, numbers: Any, start: Any, vector: Any) -> Any:
  """Writes a vector to numbers[start : start + LANES], unchecked."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer = _pointer(context, builder, signature, *arguments[:2])
    builder.store(arguments[2], pointer, align=_BYTES)
    return context.get_dummy_value()

  return types.void(numbers, types.uint64, _VECTOR), generate


@intrinsic  # type: ignore[untyped-decorator]
def multiply_add(typing_context: Any, total: Any, vector: Any, factor: Any) -> Any:
  """Returns total + vector * factor, where the factor is one number."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    total, vector, factor = arguments
    undefined = ir.Constant(_LLVM_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, factor, ir.Constant(ir.IntType(32), 0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    factors = builder.shuffle_vector(first, undefined, everywhere)
    product = builder.fmul(vector, factors, flags=("contract",))
    return builder.fadd(total, product, flags=("contract",))

  return _VECTOR(_VECTOR, _VECTOR, types.float64), generate


def _pointer(context: Any, builder: Any, signature: Any, numbers: Any, start: Any) -> Any:
  """Returns where numbers[start] is, as the address of a vector."""
  data = context.make_array(signature.args[0])(context, builder, numbers).data
  return builder.bitcast(builder.gep(data, [start]), _LLVM_VECTOR.as_pointer())
