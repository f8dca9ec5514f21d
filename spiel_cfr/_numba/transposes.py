"""Transposes for kernels: loads and additions that exchange rows and columns of a square of vectors."""

from typing import Any

from llvmlite import ir
from numba import types

from spiel_cfr._numba.arrays import inside_kernels
from spiel_cfr._numba.simd import address, read, repeated, vector_of, write


@inside_kernels
def load_columns(
  typing_context: Any,
  numbers: Any,
  starts: Any,
  offset: Any,
  factors: Any,
  factor: Any,
  result: Any,
  place: Any,
) -> Any:
  """Loads rows as columns: result[place + width * i + k] = numbers[starts[k] + offset + i] * factors[factor + i].

  Row k begins at starts[k] + offset. Both i and k go from 0 to `width(numbers)` - 1; `result` has the same width.
  """
  vector = vector_of(numbers)

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    numbers, starts, offset, factors, factor, result, place = arguments
    array, start_type, _, factor_type, _, result_type, _ = signature.args
    weight = read(builder, address(context, builder, factor_type, factors, factor), factor_type)
    begins = context.make_array(start_type)(context, builder, starts).data
    rows = []
    for k in range(vector.lanes):
      begin = builder.load(builder.gep(begins, [ir.Constant(ir.IntType(64), k)]))
      pointer = address(context, builder, array, numbers, builder.add(begin, offset))
      rows.append(builder.fmul(read(builder, pointer, array), weight))
    for i, column in enumerate(_transposed(builder, rows)):
      line = builder.add(place, ir.Constant(ir.IntType(64), i * vector.lanes))
      pointer = address(context, builder, result_type, result, line)
      write(builder, column, pointer, result_type)
    return context.get_dummy_value()

  count = types.uint64
  return types.void(numbers, starts, count, factors, count, result, count), generate


@inside_kernels
def add_columns(
  typing_context: Any,
  numbers: Any,
  starts: Any,
  offset: Any,
  factors: Any,
  factor: Any,
  multiples: Any,
  columns: Any,
  place: Any,
) -> Any:
  """Adds columns to rows, the transpose of `load_columns`, with a factor for each row.

  It computes numbers[starts[k] + offset + i] += columns[place + width * i + k] * factors[factor + i] * multiples[k].
  Both i and k go from 0 to `width(numbers)` - 1. Rows are written one after the other, so that two may be the same.
  """
  vector = vector_of(numbers)

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    numbers, starts, offset, factors, factor, multiples, columns, place = arguments
    array, start_type, _, factor_type, _, multiple_type, column_type, _ = signature.args
    weight = read(builder, address(context, builder, factor_type, factors, factor), factor_type)
    begins = context.make_array(start_type)(context, builder, starts).data
    several = context.make_array(multiple_type)(context, builder, multiples).data
    lines = []
    for i in range(vector.lanes):
      line = builder.add(place, ir.Constant(ir.IntType(64), i * vector.lanes))
      pointer = address(context, builder, column_type, columns, line)
      lines.append(read(builder, pointer, column_type))
    for k, row in enumerate(_transposed(builder, lines)):
      index = ir.Constant(ir.IntType(64), k)
      begin = builder.load(builder.gep(begins, [index]))
      multiple = repeated(builder, vector, builder.load(builder.gep(several, [index])))
      pointer = address(context, builder, array, numbers, builder.add(begin, offset))
      added = builder.fmul(builder.fmul(row, weight), multiple)
      write(builder, builder.fadd(read(builder, pointer, array), added), pointer, array)
    return context.get_dummy_value()

  count = types.uint64
  arguments = numbers, starts, count, factors, count, multiples, columns, count
  return types.void(*arguments), generate


def _transposed(builder: Any, rows: Any) -> Any:
  """Returns the transpose of a square of vectors: result[i][k] = rows[k][i]."""
  lanes, vectors = len(rows), list(rows)
  index = ir.VectorType(ir.IntType(32), lanes)
  # Rounds with a size of 1, 2, 4, ... swap the two off-diagonal squares of this size in every square of twice the size.
  size = 1
  while size < lanes:
    low = [i if not i & size else lanes + i - size for i in range(lanes)]
    high = [i + size if not i & size else lanes + i for i in range(lanes)]
    for i in range(lanes):
      if not i & size:
        pair = vectors[i], vectors[i + size]
        vectors[i] = builder.shuffle_vector(*pair, ir.Constant(index, low))
        vectors[i + size] = builder.shuffle_vector(*pair, ir.Constant(index, high))
    size *= 2
  return vectors
