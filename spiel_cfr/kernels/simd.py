"""Eight numbers at once, for kernels that would otherwise spend their time on loads and stores.

The compiler turns a loop over hundreds of numbers into vector instructions by itself. It can't where the inner loop
runs over the six or eight private types of a small game, nor keep numbers in registers from one such loop to the next.
Kernels, and only kernels, can use these functions and +, -, *, / between vectors. On machines with shorter registers
the compiler splits the operations.
"""

import operator
from typing import Any, cast

import numba.core.typing.templates
import numba.extending
from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel

from spiel_cfr.kernels.arrays import LINE, inside_kernels

# numba's own annotations don't cover these.
extending: Any = numba.extending
templates: Any = numba.core.typing.templates

# Numbers in a vector.
LANES = LINE

_LLVM_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_BYTES_OF_NUMBER = 8


class _VectorType(types.Type):
  """The type that numba gives a vector."""


_VECTOR = cast(Any, _VectorType)("spiel_cfr.vector")


@extending.register_model(_VectorType)
class _VectorModel(PrimitiveModel):
  """How a vector is kept: in a register."""

  def __init__(self, manager: Any, vector_type: Any) -> None:
    cast(Any, super()).__init__(manager, vector_type, _LLVM_VECTOR)


@inside_kernels
def full(typing_context: Any, number: Any) -> Any:
  """Returns a vector whose elements are all this number."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return _repeated(builder, arguments[0])

  return _VECTOR(types.float64), generate


@inside_kernels
def load(typing_context: Any, numbers: Any, start: Any) -> Any:
  """Returns numbers[start : start + LANES], unchecked."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer = _pointer(context, builder, signature, arguments)
    return builder.load(pointer, align=_BYTES_OF_NUMBER)

  return _VECTOR(numbers, types.uint64), generate


@inside_kernels
def store(typing_context: Any, numbers: Any, start: Any, vector: Any) -> Any:
  """Writes a vector to numbers[start : start + LANES], unchecked."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer = _pointer(context, builder, signature, arguments)
    builder.store(arguments[2], pointer, align=_BYTES_OF_NUMBER)
    return context.get_dummy_value()

  return types.void(numbers, types.uint64, _VECTOR), generate


@inside_kernels
def where_greater(typing_context: Any, left: Any, right: Any, yes: Any, no: Any) -> Any:
  """Returns a vector of the elements of `yes` where left > right, and of `no` elsewhere."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    left, right, yes, no = arguments
    return builder.select(builder.fcmp_ordered(">", left, right), yes, no)

  return _VECTOR(_VECTOR, _VECTOR, _VECTOR, _VECTOR), generate


@inside_kernels
def any_greater(typing_context: Any, left: Any, right: Any) -> Any:
  """Returns whether left > right for any of the elements."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    greater = builder.fcmp_ordered(">", *arguments)
    mask = builder.bitcast(greater, ir.IntType(LANES))
    return builder.icmp_unsigned("!=", mask, ir.Constant(ir.IntType(LANES), 0))

  return types.boolean(_VECTOR, _VECTOR), generate


@inside_kernels
def nonzero_bits(typing_context: Any, vector: Any) -> Any:
  """Returns an integer whose bit k says whether element k is not zero."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    differs = builder.fcmp_unordered("!=", arguments[0], ir.Constant(_LLVM_VECTOR, None))
    return builder.zext(builder.bitcast(differs, ir.IntType(LANES)), ir.IntType(64))

  return types.uint64(_VECTOR), generate


@inside_kernels
def lowest_bit(typing_context: Any, number: Any) -> Any:
  """Returns the place of the lowest bit of an integer that is 1; there must be one."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

  return types.uint64(types.uint64), generate


@inside_kernels
def add_multiple(typing_context: Any, total: Any, vector: Any, number: Any) -> Any:
  """Returns total + vector * number, rounded once or twice, whichever is faster."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    total, vector, number = arguments
    product = builder.fmul(vector, _repeated(builder, number), flags=("contract",))
    return builder.fadd(total, product, flags=("contract",))

  return _VECTOR(_VECTOR, _VECTOR, types.float64), generate


@inside_kernels
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

  result: Any = cast(Any, types.UniTuple)(_VECTOR, LANES)
  return result(a, b, c, d, e, f, g, h), generate


@inside_kernels
def power_of_two(typing_context: Any, shifted: Any) -> Any:
  """Returns 2^k for a vector of numbers 1.5 * 2^52 + k, k an integer from -1022 to 1023."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    # The last bits of the sum are k; a double's exponent is kept with 1023 added, above 52 bits of fraction.
    integers = ir.VectorType(ir.IntType(64), LANES)
    bits = builder.bitcast(arguments[0], integers)
    exponent = builder.add(bits, ir.Constant(integers, [1023] * LANES))
    return builder.bitcast(builder.shl(exponent, ir.Constant(integers, [52] * LANES)), _LLVM_VECTOR)

  return _VECTOR(_VECTOR), generate


def _repeated(builder: Any, number: Any) -> Any:
  """Returns a vector whose elements are all this number."""
  undefined = ir.Constant(_LLVM_VECTOR, ir.Undefined)
  first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
  zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
  return builder.shuffle_vector(first, undefined, zeros)


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
  """Returns where numbers[start] is, as the address of a vector."""
  data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
  return builder.bitcast(builder.gep(data, [arguments[1]]), _LLVM_VECTOR.as_pointer())


def _add_operator(python_operator: Any, instruction: str) -> None:
  """Lets kernels apply an operator to two vectors."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return getattr(builder, instruction)(*arguments)

  cases = [templates.signature(_VECTOR, _VECTOR, _VECTOR)]
  typing = templates.make_concrete_template(f"vector {instruction}", python_operator, cases)
  templates.infer_global(python_operator)(typing)
  extending.lower_builtin(python_operator, _VECTOR, _VECTOR)(generate)


_add_operator(operator.add, "fadd")
_add_operator(operator.sub, "fsub")
_add_operator(operator.mul, "fmul")
_add_operator(operator.truediv, "fdiv")
