"""Vectors of eight numbers as values inside kernels.

numba's compiler turns loops over long rows into vector instructions, but not the short inner loops of a kernel that
treats eight things side by side. These functions say so explicitly: a line is loaded from an array into a register,
lines are added and subtracted, and stored again. Extending numba by types and intrinsics is described in its manual,
"Low-level extension API".
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

# Numbers in a line.
WIDTH = 8


class _Line(types.Type):  # type: ignore[misc]
  """The type of a line of numbers of one type."""

  def __init__(self, dtype: Any) -> None:
    self.dtype = dtype
    super().__init__(name=f"Line({dtype})")


@register_model(_Line)
class _LineModel(models.PrimitiveModel):  # type: ignore[misc]
  def __init__(self, manager: Any, line: _Line) -> None:
    number = manager.lookup(line.dtype).get_value_type()
    super().__init__(manager, line, ir.VectorType(number, WIDTH))


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
  """Returns a pointer to the line that begins at an element of an array."""
  data = context.make_array(array_type)(context, builder, array).data
  element = builder.gep(data, [index])
  vector = ir.VectorType(context.get_value_type(array_type.dtype), WIDTH)
  return builder.bitcast(element, vector.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def load(typing_context: Any, array: Any, index: Any) -> Any:
  """Returns the line that begins at `array[index]`."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    line = builder.load(_address(context, builder, signature.args[0], *arguments))
    line.align = signature.args[0].dtype.bitwidth // 8
    return line

  return _Line(array.dtype)(array, index), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(typing_context: Any, array: Any, index: Any, line: Any) -> Any:
  """Writes a line to where `array[index]` begins."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array, index, line = arguments
    written = builder.store(line, _address(context, builder, signature.args[0], array, index))
    written.align = signature.args[0].dtype.bitwidth // 8
    return context.get_dummy_value()

  return types.void(array, index, line), generate


@intrinsic  # type: ignore[untyped-decorator]
def add(typing_context: Any, left: Any, right: Any) -> Any:
  """Returns left + right."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fadd(*arguments)

  return left(left, right), generate


@intrinsic  # type: ignore[untyped-decorator]
def subtract(typing_context: Any, left: Any, right: Any) -> Any:
  """Returns left - right."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fsub(*arguments)

  return left(left, right), generate
