"""Eight numbers at once, for kernels that would otherwise spend their time on loads and stores.

The compiler turns a loop over hundreds of numbers into vector instructions by itself. It can't where the inner loop runs
over the six or eight private types of a small game, and where several loops over the same numbers could be one that
keeps them in registers. Kernels, and nothing else, can use these functions and +, -, *, / between vectors. Where
registers are shorter, the compiler splits the operations.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

from spiel_cfr.kernels import LINE

# Numbers in a vector.
LANES = LINE

_LLVM_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_BYTES_OF_NUMBER = 8
# As in all kernels: a product and a sum may be rounded once, and the sign of zero is no matter.
_FLAGS = ("contract", "nsz")


class _VectorType(types.Type):  # type: ignore[misc]
  """The type that numba gives a vector."""

  def __init__(self) -> None:
    super().__init__(name="spiel_cfr.vector")


_VECTOR = _VectorType()


@register_model(_VectorType)
class _VectorModel(PrimitiveModel):  # type: ignore[misc]
  """How a vector is kept: in a register."""

  def __init__(self, manager: Any, vector_type: Any) -> None:
    super().__init__(manager, vector_type, _LLVM_VECTOR)


@intrinsic  # type: ignore[untyped-decorator]
def full(typing_context: Any, number: Any) -> Any:
  """Returns a vector whose elements are all this number."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    undefined = ir.Constant(_LLVM_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, arguments[0], ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.shuffle_vector(first, undefined, zeros)

  return _VECTOR(types.float64), generate


@intrinsic  # type: ignore[untyped-decorator]
def load(typing_context: Any, numbers: Any, start: Any) -> Any:
  """Returns numbers[start : start + LANES], unchecked."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer = _pointer(context, builder, signature, arguments)
    return builder.load(pointer, align=_BYTES_OF_NUMBER)

  return _VECTOR(numbers, types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(typing_context: Any, numbers: Any, start: Any, vector: Any) -> Any:
  """Writes a vector to numbers[start : start + LANES], unchecked."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer = _pointer(context, builder, signature, arguments)
    builder.store(arguments[2], pointer, align=_BYTES_OF_NUMBER)
    return context.get_dummy_value()

  return types.void(numbers, types.uint64, _VECTOR), generate


@intrinsic  # type: ignore[untyped-decorator]
def where_greater(typing_context: Any, left: Any, right: Any, yes: Any, no: Any) -> Any:
  """Returns a vector of the elements of `yes` where left > right, and of `no` elsewhere."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    left, right, yes, no = arguments
    return builder.select(builder.fcmp_ordered(">", left, right), yes, no)

  return _VECTOR(_VECTOR, _VECTOR, _VECTOR, _VECTOR), generate


@intrinsic  # type: ignore[untyped-decorator]
def transpose(
  typing_context: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
) -> Any:
  """Returns eight vectors of which the first holds the first elements of the eight given, and so on."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    vectors = list(arguments)
    index = ir.VectorType(ir.IntType(32), LANES)
    # Blocks of 1, 2 and 4 elements off the diagonal change places.
    for size in (1, 2, 4):
      low = [i if not i & size else LANES + i - size for i in range(LANES)]
      high = [i + size if not i & size else LANES + i for i in range(LANES)]
      for i in range(LANES):
        if not i & size:
          pair = vectors[i], vectors[i + size]
          vectors[i] = builder.shuffle_vector(*pair, ir.Constant(index, low))
          vectors[i + size] = builder.shuffle_vector(*pair, ir.Constant(index, high))
    return context.make_tuple(builder, signature.return_type, vectors)

  return types.UniTuple(_VECTOR, LANES)(a, b, c, d, e, f, g, h), generate


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
  """Returns where numbers[start] is, as the address of a vector."""
  data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
  return builder.bitcast(builder.gep(data, [arguments[1]]), _LLVM_VECTOR.as_pointer())


def _add_operator(python_operator: Any, instruction: str) -> None:
  """Lets kernels apply an operator to two vectors."""

  @infer_global(python_operator)
  class _Typing(ConcreteTemplate):  # type: ignore[misc]
    cases = (signature(_VECTOR, _VECTOR, _VECTOR),)

  @lower_builtin(python_operator, _VectorType, _VectorType)  # type: ignore[untyped-decorator]
  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return getattr(builder, instruction)(*arguments, flags=_FLAGS)


_add_operator(operator.add, "fadd")
_add_operator(operator.sub, "fsub")
_add_operator(operator.mul, "fmul")
_add_operator(operator.truediv, "fdiv")
