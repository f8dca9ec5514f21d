"""Steps and chains: kernels with their arguments, which run many times in one call of compiled code.

    @step(Add)
    def add(record: Add) -> None:
      for i in range(record.total.shape[0]):
        record.total[i] += record.added[i]

    chain = Chain([add.on(Add(total, first)), add.on(Add(total, second))])
    chain.run()

A step is a kernel together with its arguments, which are in a record (see `records`). A chain runs steps one after the
other. So an algorithm is a list of steps, and a feature that is not in use is a step that is not in the list.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.core.errors import NumbaError

from spiel_cfr import errors
from spiel_cfr._numba.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOAT_TABLE,
  FLOATS,
  Float64s,
  Uint64s,
  described,
)
from spiel_cfr._numba.kernels import Kernel, inlined, kernel, with_checked_indices
from spiel_cfr._numba.numba_internals import machine_code_address
from spiel_cfr._numba.records import Packed, call, record_type

# numba's own annotations don't cover it.
_numba: Any = numba
_ZERO, _ONE = np.uint64(0), np.uint64(1)


class StepKernel(Kernel):
  """A kernel whose only argument is a record. Other kernels call it by its address.

  Attributes:
    record: the class of the argument, a `NamedTuple`.
  """

  _from_python = False

  def __init__(self, function: Callable[[Any], None], record: type, single: bool = True) -> None:
    """Wraps a function. Nothing is compiled yet.

    Args:
      function: the plain Python function, which takes one argument.
      record: the class of the argument.
      single: True if the kernel also exists in float32.
    """
    if not inspect.isfunction(function) or function.__code__.co_argcount != 1:
      raise errors.ArgumentError(
        f"A kernel must be a function of one argument, a {record.__qualname__}, not {function!r:.100}."
      )
    self.record = record

    def signature(number: Any) -> Any:
      return types.void(record_type(record, number))

    super().__init__(function, signature if single else signature(types.float64))

  @functools.cached_property
  def address(self) -> int:
    """The address of the machine code."""
    return machine_code_address(self._dispatcher, self.signature, self._options)

  def on(
    self, record: Any, dtype: npt.DTypeLike = np.float64, inner: Packed | None = None
  ) -> "Step":
    """Returns the step that runs this kernel on a record.

    Args:
      record: the arguments.
      dtype: the precision, float64 or float32.
      inner: see `Packed.inner`.

    Raises:
      TypeError: the record is of another class, or an array does not fit its field.
    """
    if type(record) is not self.record:
      raise TypeError(
        f"{self.__qualname__}() takes a {self.record.__qualname__}, not {described(record)}"
      )
    return Step(self.of(dtype).address, Packed(record, dtype, inner))

  def try_on(self, record: Any, advice: str) -> None:
    """Runs a user's kernel once with checks of indices. A step has no checks: a wrong index overwrites other memory.

    Args:
      record: the arguments, small arrays of the shapes that are promised to the kernel.
      advice: the end of the message if an index is beyond an array, a sentence.

    Raises:
      ArgumentError: numba can't compile the kernel, or an index is beyond an array.
    """
    # In records, integers are uint64.
    fields = (np.uint64(field) if isinstance(field, int) else field for field in record)
    tried = self.record(*fields)
    signature = types.void(_numba.typeof(tried))
    try:
      with_checked_indices(self.function, signature)(tried)
    except NumbaError as error:
      raise errors.ArgumentError(
        f"{self.__qualname__} can't be compiled: {_reason(error, self.record)}. {self.record.__name__} has the fields "
        f"{', '.join(record._fields)}."
      ) from error
    except IndexError as error:
      raise errors.ArgumentError(
        f"{self.__qualname__} reads or writes beyond an array of its {self.record.__name__}. {advice}"
      ) from error


def _reason(error: Exception, record: Any) -> str:
  """Returns the sentence and the line of code in numba's error about a function of a record."""
  text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
  sentences = [line for line in text.splitlines() if line and not line.startswith("Failed in")]
  reason = re.sub(rf"{record.__name__}\(.*\)", record.__name__, sentences[0]).rstrip(".")
  place = re.search(r'File "(.*)", line (\d+)', text)
  return f"{reason} ({place[1]}, line {place[2]})" if place else reason


def step(record: type, *, single: bool = True) -> Callable[[Callable[[Any], None]], StepKernel]:
  """Decorator that makes a function of a record a `StepKernel`."""
  return lambda function: StepKernel(function, record, single)


class Step(NamedTuple):
  """A kernel and its arguments.

  Attributes:
    kernel: the address of the kernel.
    record: the arguments.
  """

  kernel: int
  record: Packed


class Chain:
  """Steps that run one after the other."""

  def __init__(self, steps: Iterable[Step]) -> None:
    """Takes the steps, and keeps their records alive."""
    self.steps = tuple(steps)
    self._table = np.array(
      [(step.kernel, step.record.address) for step in self.steps], np.uint64
    ).reshape(-1, 2)

  def run(self) -> None:
    """Runs every step once."""
    run_chain.unchecked(self._table)

  def repeat(self, numbers: Float64s, current: Float64s, counts: Uint64s) -> None:
    """Runs all steps several times, each time with other numbers.

    Args:
      numbers: float64 (repetitions, numbers). The numbers of each repetition.
      current: float64 (numbers,). Filled with the numbers of each repetition before its steps run. The records of steps
        refer to this array.
      counts: uint64 (any,). The first element is increased by 1 after each repetition.
    """
    repeat_chain.unchecked(self._table, numbers, current, counts)


@inlined
def _run(chain: Uint64s) -> None:
  for i in range(np.uint64(chain.shape[0])):
    call(chain[i, _ZERO], chain[i, _ONE])


@kernel(types.void(COUNT_TABLE))
def run_chain(chain: Uint64s) -> None:
  """Calls every kernel with its record. `chain` has the addresses of each kernel and its record."""
  _run(chain)


@kernel(types.void(COUNT_TABLE, FLOAT_TABLE, FLOATS, COUNTS))
def repeat_chain(chain: Uint64s, numbers: Float64s, current: Float64s, counts: Uint64s) -> None:
  """Runs `Chain.repeat`. It counts in compiled code, so that Ctrl-C can't separate an iteration from its count."""
  for repetition in range(np.uint64(numbers.shape[0])):
    for column in range(np.uint64(numbers.shape[1])):
      current[column] = numbers[repetition, column]
    _run(chain)
    counts[_ZERO] += _ONE
