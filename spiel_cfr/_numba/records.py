"""Records: the arguments of a step, in memory, where compiled code reads them by address.

A record is a `NamedTuple`. The annotations of its fields are types for compiled code:

    class Add(NamedTuple):
      total: Line
      added: Line

`Packed` writes the address and the shape of each array to memory, as 64-bit words. A kernel receives the address of the
first word. It reads `record.total` as an array, and a field that is a record as a record. So all kernels of records
have the same signature, and a call passes one number. numba would pass a `NamedTuple` as seven numbers for each array.

Arrays that a kernel reads from a record have no owner, so that numba counts no references; `Packed` keeps the arrays
alive. Compiled code assumes that fields do not change while a kernel runs. So a kernel that assigns a field must not
read it.
"""

import functools
import hashlib
import typing
from typing import Annotated, Any, NamedTuple

import numba.extending
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import models

from spiel_cfr._numba.arrays import (
  AnyFloats,
  Float64s,
  Int64s,
  Uint16s,
  Uint32s,
  Uint64s,
  cgutils,
  described,
  inside_kernels,
)

# numba's own annotations don't cover these.
extending: Any = numba.extending
attributes: Any = numba.core.typing.templates


class Field(NamedTuple):
  """The type of a record's field.

  Attributes:
    dtype: the type of the elements; None for floating-point numbers in the precision of the record.
    dimensions: int. 0 for a number, 1 or 2 for an array in C order.
  """

  dtype: str | None
  dimensions: int


Line = Annotated[AnyFloats, Field(None, 1)]
Table = Annotated[AnyFloats, Field(None, 2)]
Doubles = Annotated[Float64s, Field("float64", 1)]
DoubleTable = Annotated[Float64s, Field("float64", 2)]
Shorts = Annotated[Uint16s, Field("uint16", 1)]
Indices = Annotated[Uint32s, Field("uint32", 1)]
IndexTable = Annotated[Uint32s, Field("uint32", 2)]
Counts = Annotated[Uint64s, Field("uint64", 1)]
Longs = Annotated[Int64s, Field("int64", 1)]
CountTable = Annotated[Uint64s, Field("uint64", 2)]
Count = Annotated[int, Field("uint64", 0)]
Double = Annotated[float, Field("float64", 0)]
# The address of a kernel that takes a record.
Address = Annotated[int, Field("uint64", 0)]

# LLVM's type of a word, and the size of a word in bytes.
_WORD, _BYTES = ir.IntType(64), 8


@functools.cache
def _fields(record: Any) -> dict[str, Any]:
  """Returns the type of each field of a record: a `Field`, or the class of a record inside the record."""
  hints = typing.get_type_hints(record, include_extras=True)
  return {
    name: hint.__metadata__[0] if hasattr(hint, "__metadata__") else hint
    for name, hint in hints.items()
  }


class RecordType(types.Type):
  """numba's type of a record in a precision.

  Attributes:
    members: dictionary from a field's name to its first word and its numba type.
    num_words: the length of the record in words.
  """

  def __init__(self, record: type, number: Any) -> None:
    """Lays out the fields, one after the other."""
    self.members: dict[str, tuple[int, Any]] = {}
    self.num_words = 0
    for name, field in _fields(record).items():
      if isinstance(field, Field):
        member = number if field.dtype is None else getattr(types, field.dtype)
        if field.dimensions:
          member = types.Array(member, field.dimensions, "C")
        length = 1 + field.dimensions
      else:
        member = record_type(field, number)
        length = member.num_words
      self.members[name] = self.num_words, member
      self.num_words += length
    # numba takes types of one name for one type, and two modules may name their records alike.
    fields = hashlib.sha256(repr(list(self.members.items())).encode()).hexdigest()[:16]
    super().__init__(f"spiel_cfr.record {record.__qualname__} {fields} of {number}")


@functools.cache
def record_type(record: type, number: Any) -> RecordType:
  """Returns numba's type of a record, a class of `NamedTuple`s, with numbers of type float64 or float32."""
  return RecordType(record, number)


@extending.register_model(RecordType)
class _RecordModel(models.PrimitiveModel):
  """numba's data model of a record: the address of the record."""

  def __init__(self, manager: Any, numba_type: Any) -> None:
    super().__init__(manager, numba_type, _WORD)  # type: ignore[no-untyped-call]


@extending.infer_getattr
class _Attributes(attributes.AttributeTemplate):  # type: ignore[misc]
  """numba's rule for the type of `record.name`."""

  key = RecordType

  def generic_resolve(self, numba_type: Any, name: str) -> Any:
    member = numba_type.members.get(name)
    return None if member is None else member[1]


def _pointer(builder: Any, record: Any, word: int, element: Any = _WORD) -> Any:
  """Returns a pointer to a word of a record."""
  word_address = builder.add(record, ir.Constant(_WORD, _BYTES * word))
  return builder.inttoptr(word_address, element.as_pointer())


def _load(builder: Any, pointer: Any) -> Any:
  """Reads a word that does not change while the kernel runs, so that LLVM may read it once."""
  value = builder.load(pointer)
  value.set_metadata("invariant.load", builder.module.add_metadata([]))
  return value


def _read_field(context: Any, builder: Any, numba_type: Any, record: Any, name: str) -> Any:
  """Generates code that reads a field: a record, a number, or an array without an owner."""
  word, member = numba_type.members[name]
  if isinstance(member, RecordType):
    return builder.add(record, ir.Constant(_WORD, _BYTES * word))
  if not isinstance(member, types.Array):
    return _load(builder, _pointer(builder, record, word, context.get_value_type(member)))
  data_address, *shape = (
    _load(builder, _pointer(builder, record, word + offset)) for offset in range(1 + member.ndim)
  )
  size = ir.Constant(_WORD, context.get_abi_sizeof(context.get_data_type(member.dtype)))
  strides = [size] if member.ndim == 1 else [builder.mul(shape[1], size), size]
  array = context.make_array(member)(context, builder)
  array.data = builder.inttoptr(data_address, array.data.type)
  array.nitems = shape[0] if member.ndim == 1 else builder.mul(*shape)
  array.itemsize = size
  array.shape = cgutils.pack_array(builder, shape)
  array.strides = cgutils.pack_array(builder, strides)
  for owner in ("meminfo", "parent"):
    setattr(array, owner, cgutils.get_null_value(getattr(array, owner).type))
  return array._getvalue()


def _write_field(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
  """Generates code that assigns a number to a field."""
  record, value = arguments
  word, member = signature.args[0].members[name]
  builder.store(value, _pointer(builder, record, word, context.get_value_type(member)))


extending.lower_getattr_generic(RecordType)(_read_field)
extending.lower_setattr_generic(RecordType)(_write_field)


@inside_kernels
def call(typing_context: Any, kernel: Any, record: Any) -> Any:
  """Calls the kernel at an address. `record` is a record, or the address of one."""

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    function = ir.FunctionType(ir.VoidType(), [_WORD]).as_pointer()
    builder.call(builder.inttoptr(arguments[0], function), [arguments[1]])
    return context.get_dummy_value()

  return types.void(types.uint64, record), generate


class Packed:
  """A record in memory.

  Attributes:
    record: the record, which keeps the arrays alive.
    inner: the packed record to which a field of this record has the address; None if there is none.
    address: the address of the first word.
  """

  def __init__(self, record: Any, dtype: npt.DTypeLike, inner: "Packed | None" = None) -> None:
    """Writes a record to memory; `dtype`, float64 or float32, is its precision.

    Raises:
      TypeError: an array has another type, number of dimensions or order than its field, or is read-only.
    """
    self.record, self.inner = record, inner
    words: list[int] = []
    _write(record, np.dtype(dtype), words)
    self._words = np.array(words, np.uint64)
    self.address: int = self._words.__array_interface__["data"][0]


def _write(record: Any, dtype: np.dtype[Any], words: list[int]) -> None:
  """Appends the words of a record's fields."""
  for value, (name, field) in zip(record, _fields(record.__class__).items(), strict=True):
    if not isinstance(field, Field):
      _write(value, dtype, words)
    elif not field.dimensions:
      words.append(np.array(value, field.dtype).view(np.uint64).item())
    else:
      required = dtype if field.dtype is None else np.dtype(field.dtype)
      if not (
        isinstance(value, np.ndarray)
        and value.dtype == required
        and value.ndim == field.dimensions
        and value.flags.carray
      ):
        raise TypeError(
          f"{name} of {type(record).__qualname__} must be an array of {required} with {field.dimensions} dimensions, "
          f"in C order, that can be written to, not {described(value)}"
        )
      words.append(value.__array_interface__["data"][0])
      words.extend(value.shape)
