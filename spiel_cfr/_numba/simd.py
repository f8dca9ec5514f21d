"""SIMD vectors of eight or sixteen numbers, for explicit vector instructions in kernels.

The compiler turns a loop over hundreds of numbers into vector instructions by itself. But it fails if the inner loop
runs over the six or eight private types of a small game. And it does not keep numbers in registers from one such loop
to the next. So kernels use these functions, and +, -, *, / between vectors. Only kernels can use them. On machines with
shorter registers, the compiler splits the operations.

A vector has the length of a cache line: eight numbers of float64 or sixteen of float32, whichever is the type of the
array from which it is loaded. The result of `full` fits both, so that one function serves both precisions.
"""

import operator
from typing import Any, cast

import numba.extending
from llvmlite import ir
from numba import types
from numba.extending import models

from spiel_cfr._numba.arrays import LINE, cgutils, inside_kernels
from spiel_cfr._numba.numba_internals import SAFE_CONVERSION, add_operator

# numba's own annotations don't cover these.
extending: Any = numba.extending

# The number of elements of a vector of float64, and the largest number of elements of any vector.
LANES, MOST_LANES = LINE, 2 * LINE

_INDEX, _DOUBLE, _FLOAT = ir.IntType(32), ir.DoubleType(), ir.FloatType()


class _VectorType(types.Type):
  """The numba type of a vector."""

  is_vector = True

  def __init__(self, number: Any, lanes: int, llvm_number: Any, fraction: int, bias: int) -> None:
    """Makes the type.

    Args:
      number: numba's type of an element.
      lanes: the number of elements.
      llvm_number: LLVM's type of an element.
      fraction: the number of bits of an element's fraction.
      bias: the bias of an element's exponent.
    """
    self.number, self.lanes, self.fraction, self.bias = number, lanes, fraction, bias
    self.integers = ir.VectorType(ir.IntType(cast(Any, number).bitwidth), lanes)
    self.llvm = ir.VectorType(llvm_number, lanes)
    cast(Any, super()).__init__(f"spiel_cfr.vector of {lanes}")


class _EvenType(types.Type):
  """The numba type of a vector of equal elements. Its length is open, and becomes that of the vectors beside it."""

  is_vector = False

  def unify(self, typing_context: Any, other: Any) -> Any:
    """Returns the type of a variable that can have this type or another."""
    return other if getattr(other, "is_vector", False) else None

  def can_convert_to(self, typing_context: Any, other: Any) -> Any:
    """Returns the kind of the conversion to another type: safe to any vector."""
    return SAFE_CONVERSION if getattr(other, "is_vector", False) else None


_DOUBLES = cast(Any, _VectorType)(types.float64, LANES, _DOUBLE, 52, 1023)
_SINGLES = cast(Any, _VectorType)(types.float32, MOST_LANES, _FLOAT, 23, 127)
_EVEN = cast(Any, _EvenType)("spiel_cfr.even vector")
_VECTORS = (_DOUBLES, _SINGLES)


@extending.register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
  """The data model of a vector: a register."""

  def __init__(self, manager: Any, vector_type: Any) -> None:
    cast(Any, super()).__init__(manager, vector_type, vector_type.llvm)


@extending.register_model(_EvenType)
class _EvenModel(models.PrimitiveModel):
  """The data model of a vector of equal elements: one number in a register."""

  def __init__(self, manager: Any, even_type: Any) -> None:
    cast(Any, super()).__init__(manager, even_type, _DOUBLE)


def vector_of(array: Any) -> Any:
  """Returns the type of vectors that are loaded from an array."""
  return _SINGLES if array.dtype == types.float32 else _DOUBLES


def _common(*vectors: Any) -> Any:
  """Returns the type to which the arguments of an operation convert; None if an argument is not a vector."""
  of_fixed_length = [vector for vector in vectors if vector is not _EVEN]
  if not all(vector in _VECTORS for vector in of_fixed_length):
    return None
  return of_fixed_length[0] if of_fixed_length else _EVEN


def repeated(builder: Any, vector: Any, number: Any) -> Any:
  """Generates a vector of equal elements from a double."""
  if vector is _SINGLES:
    number = builder.fptrunc(number, _FLOAT)
  undefined = ir.Constant(vector.llvm, ir.Undefined)
  first = builder.insert_element(undefined, number, ir.Constant(_INDEX, 0))
  zeros = ir.Constant(ir.VectorType(_INDEX, vector.lanes), None)
  return builder.shuffle_vector(first, undefined, zeros)


extending.lower_cast(_EvenType, _VectorType)(
  lambda context, builder, from_type, to_type, value: repeated(builder, to_type, value)
)


def address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
  """Generates the address of the vector that begins at array[index]."""
  data = context.make_array(array_type)(context, builder, array).data
  return builder.bitcast(builder.gep(data, [index]), vector_of(array_type).llvm.as_pointer())


def read(builder: Any, pointer: Any, array_type: Any) -> Any:
  """Generates a load of the vector at an address."""
  return builder.load(pointer, align=array_type.dtype.bitwidth // 8)


def write(builder: Any, value: Any, pointer: Any, array_type: Any) -> None:
  """Generates a store of a vector to an address."""
  builder.store(value, pointer, align=array_type.dtype.bitwidth // 8)


@inside_kernels
def width(typing_context: Any, numbers: Any) -> Any:
  """Returns the number of elements of a vector loaded from an array."""
  lanes = vector_of(numbers).lanes

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return context.get_constant(types.uint64, lanes)

  return types.uint64(numbers), generate


@inside_kernels
def is_single(typing_context: Any, numbers: Any) -> Any:
  """Returns whether an array or a vector has the type float32."""
  single = numbers is _SINGLES or getattr(numbers, "dtype", None) == types.float32

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return context.get_constant(types.boolean, single)

  return types.boolean(numbers), generate


@inside_kernels
def number_for(typing_context: Any, numbers: Any, number: Any) -> Any:
  """Returns a number in the precision of an array, so that a loop over the array does not convert it."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return arguments[1]

  return numbers.dtype(numbers, numbers.dtype), generate


@inside_kernels
def full(typing_context: Any, number: Any) -> Any:
  """Returns a vector of equal elements."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return arguments[0]

  return _EVEN(types.float64), generate


@inside_kernels
def load(typing_context: Any, numbers: Any, start: Any) -> Any:
  """Returns numbers[start : start + width(numbers)], unchecked."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = signature.args[0]
    return read(builder, address(context, builder, array, *arguments), array)

  return vector_of(numbers)(numbers, types.uint64), generate


@inside_kernels
def store(typing_context: Any, numbers: Any, start: Any, vector: Any) -> Any:
  """Writes a vector to numbers[start : start + width(numbers)], unchecked."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = signature.args[0]
    write(builder, arguments[2], address(context, builder, array, *arguments[:2]), array)
    return context.get_dummy_value()

  return types.void(numbers, types.uint64, vector_of(numbers)), generate


def _masked(builder: Any, name: str, vector: Any, result: Any, *arguments: Any) -> Any:
  """Generates a call of a masked instruction of LLVM. The argument None is replaced by the alignment."""
  align = ir.Constant(_INDEX, vector.number.bitwidth // 8)
  operands = [align if argument is None else argument for argument in arguments]
  signature = ir.FunctionType(result, [operand.type for operand in operands])
  form = f"v{vector.lanes}f{vector.number.bitwidth}"
  full_name = f"llvm.masked.{name.format(form, vector.lanes)}"
  return builder.call(
    cgutils.get_or_insert_function(builder.module, signature, full_name), operands
  )


@inside_kernels
def store_first(typing_context: Any, numbers: Any, start: Any, vector: Any, count: Any) -> Any:
  """Writes the first `count` elements of a vector to numbers[start : start + count], unchecked."""
  vector_type = vector_of(numbers)

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array, start, vector, count = arguments
    pointer = address(context, builder, signature.args[0], array, start)
    # The integer 2^count - 1 has ones in its last `count` bits.
    bits = ir.IntType(2 * vector_type.lanes)
    end = builder.shl(ir.Constant(bits, 1), builder.trunc(count, bits))
    ones = builder.trunc(builder.sub(end, ir.Constant(bits, 1)), ir.IntType(vector_type.lanes))
    mask = builder.bitcast(ones, ir.VectorType(ir.IntType(1), vector_type.lanes))
    _masked(builder, "store.{}.p0", vector_type, ir.VoidType(), vector, pointer, None, mask)
    return context.get_dummy_value()

  return types.void(numbers, types.uint64, vector_type, types.uint64), generate


def _addresses(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
  """Generates the addresses of numbers[indices[start + k]] for all elements k of a vector, and a mask of ones."""
  lanes = vector_of(signature.args[0]).lanes
  data, indices = (
    context.make_array(array_type)(context, builder, array).data
    for array_type, array in zip(signature.args[:2], arguments[:2], strict=True)
  )
  first_index = builder.bitcast(
    builder.gep(indices, [arguments[2]]), ir.VectorType(_INDEX, lanes).as_pointer()
  )
  words = builder.zext(builder.load(first_index, align=4), ir.VectorType(ir.IntType(64), lanes))
  pointers = builder.gep(data, [words], source_etype=data.type.pointee)
  # llvmlite gives this vector of pointers the type of a single pointer.
  pointers.type = ir.VectorType(data.type, lanes)
  return pointers, ir.Constant(ir.VectorType(ir.IntType(1), lanes), [1] * lanes)


@inside_kernels
def gather(typing_context: Any, numbers: Any, indices: Any, start: Any) -> Any:
  """Returns numbers[indices[start + k]] for each element k of a vector, unchecked; `indices` is a uint32 array."""
  vector = vector_of(numbers)

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointers, mask = _addresses(context, builder, signature, arguments)
    undefined = ir.Constant(vector.llvm, ir.Undefined)
    operands = pointers, None, mask, undefined
    return _masked(builder, "gather.{}.v{}p0", vector, vector.llvm, *operands)

  return vector(numbers, indices, types.uint64), generate


@inside_kernels
def scatter(typing_context: Any, numbers: Any, indices: Any, start: Any, vector: Any) -> Any:
  """Writes element k of a vector to numbers[indices[start + k]], unchecked; `indices` is a uint32 array."""
  vector_type = vector_of(numbers)

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointers, mask = _addresses(context, builder, signature, arguments)
    operands = arguments[3], pointers, None, mask
    _masked(builder, "scatter.{}.v{}p0", vector_type, ir.VoidType(), *operands)
    return context.get_dummy_value()

  return types.void(numbers, indices, types.uint64, vector_type), generate


@inside_kernels
def where_greater(typing_context: Any, left: Any, right: Any, yes: Any, no: Any) -> Any:
  """Returns the elements of `yes` where left > right, and those of `no` elsewhere."""
  result = _common(left, right, yes, no)

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    left, right, yes, no = arguments
    return builder.select(builder.fcmp_ordered(">", left, right), yes, no)

  return None if result is None else (result(*[result] * 4), generate)


@inside_kernels
def any_greater(typing_context: Any, left: Any, right: Any) -> Any:
  """Returns whether left > right for at least one element."""
  result = _common(left, right)

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    greater = builder.fcmp_ordered(">", *arguments)
    bits = ir.IntType(result.lanes)
    return builder.icmp_unsigned("!=", builder.bitcast(greater, bits), ir.Constant(bits, 0))

  return None if result not in _VECTORS else (types.boolean(result, result), generate)


@inside_kernels
def nonzero_bits(typing_context: Any, vector: Any) -> Any:
  """Returns an integer in which bit k is set if element k is not zero."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    differs = builder.fcmp_unordered("!=", arguments[0], ir.Constant(vector.llvm, None))
    return builder.zext(builder.bitcast(differs, ir.IntType(vector.lanes)), ir.IntType(64))

  return None if vector not in _VECTORS else (types.uint64(vector), generate)


@inside_kernels
def lowest_bit(typing_context: Any, number: Any) -> Any:
  """Returns the place of the lowest set bit of a nonzero integer."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

  return types.uint64(types.uint64), generate


@inside_kernels
def add_multiple(typing_context: Any, total: Any, vector: Any, number: Any) -> Any:
  """Returns total + vector * number. It is rounded once where the machine has such an instruction, otherwise twice."""
  result = _common(total, vector)

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    total, vector, number = arguments
    even = repeated(builder, result, number)
    product = builder.fmul(vector, even, flags=("contract",))
    return builder.fadd(total, product, flags=("contract",))

  return None if result not in _VECTORS else (result(result, result, types.float64), generate)


@inside_kernels
def power_of_two(typing_context: Any, shifted: Any) -> Any:
  """Returns 2^k for a vector of numbers 1.5 * 2^(bits of the fraction) + k. All 2^k must be normal numbers."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    # The last bits of such a number are k. Shifted above the fraction, with the bias added, they are an exponent.
    bits = builder.bitcast(arguments[0], shifted.integers)
    biased = builder.add(bits, ir.Constant(shifted.integers, [shifted.bias] * shifted.lanes))
    fraction = ir.Constant(shifted.integers, [shifted.fraction] * shifted.lanes)
    return builder.bitcast(builder.shl(biased, fraction), shifted.llvm)

  return None if shifted not in _VECTORS else (shifted(shifted), generate)


@inside_kernels
def load_short(typing_context: Any, numbers: Any, start: Any, like: Any) -> Any:
  """Returns a vector of numbers, given the upper 16 bits of each number as a double; `like` has the precision."""
  vector = vector_of(like)

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    shorts = ir.VectorType(ir.IntType(16), vector.lanes)
    pointer = builder.bitcast(builder.gep(data, [arguments[1]]), shorts.as_pointer())
    words = ir.VectorType(ir.IntType(64), vector.lanes)
    bits = builder.zext(builder.load(pointer, align=2), words)
    bits = builder.shl(bits, ir.Constant(words, [48] * vector.lanes))
    doubles = builder.bitcast(bits, ir.VectorType(_DOUBLE, vector.lanes))
    return doubles if vector is _DOUBLES else builder.fptrunc(doubles, vector.llvm)

  return vector(numbers, types.uint64, like), generate


@inside_kernels
def add_unbiased(typing_context: Any, total: Any, added: Any, dither: Any) -> Any:
  """Returns total + added, for two nonnegative numbers of one type, rounded without bias in float32.

  In float64, `dither` is ignored. In float32, rounding errors would add up over many additions to the same total. So
  `dither` times the last place of the total is added before rounding. If dithers are evenly distributed from -1/2 to
  1/2, the total is right on average.
  """

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    total, added, dither = arguments
    if signature.return_type == types.float64:
      return builder.fadd(total, added)
    # The power of two at or below the total, times 2^-23; normal numbers only.
    word = ir.IntType(32)
    exponent = builder.and_(builder.bitcast(total, word), ir.Constant(word, 0x7F800000))
    last_place = builder.fmul(builder.bitcast(exponent, _FLOAT), ir.Constant(_FLOAT, 2.0**-23))
    return builder.fadd(total, builder.fadd(added, builder.fmul(last_place, dither)))

  return total(total, total, total), generate


for _operator, _instruction in (
  (operator.add, "fadd"),
  (operator.sub, "fsub"),
  (operator.mul, "fmul"),
  (operator.truediv, "fdiv"),
):
  add_operator(_operator, _instruction, (*_VECTORS, _EVEN))
