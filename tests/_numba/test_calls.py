"""Calls of kernels from Python, and of steps from kernels: wrong arguments are refused."""

import copy
import gc
import pickle
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba import types

from spiel_cfr._numba.arrays import COUNT, FLOATS, INDICES
from spiel_cfr._numba.kernels import PythonKernel, inlined, kernel
from spiel_cfr._numba.records import Count, Counts, Doubles, Indices, Line, Packed, Table, call
from spiel_cfr._numba.steps import Chain, step


class Lines(NamedTuple):
  numbers: Line
  table: Table
  count: Count


class Twice(NamedTuple):
  kernel: Count
  places: Indices
  lines: Lines
  seen: Doubles


@step(Lines)
def add(lines):
  for i in range(lines.count):
    lines.numbers[i] += 2.0 + lines.table[i, 0]


@step(Lines)
def subtract(lines):
  for i in range(lines.count):
    lines.numbers[i] -= 0.5


@step(Twice)
def twice(record):
  """Calls a kernel with shorter lines, then with the record's own."""
  lines = record.lines
  for time in range(np.uint64(2)):
    lines.count = np.uint64(record.places[time])
    call(record.kernel, lines)
    record.seen[time] = lines.numbers[0]


@kernel(types.float64(FLOATS, INDICES, types.float64, COUNT, types.boolean))
def total(numbers, places, factor, count, doubled):
  result = 0.0
  for i in range(count):
    result += numbers[places[i]] * factor
  return 2.0 * result if doubled else result


def lines(count=3, dtype=np.float64):
  return Lines(np.zeros(count, dtype), np.ones((count, 2), dtype), count)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_chains_run_steps_in_order(dtype):
  given = lines(dtype=dtype)
  chain = Chain([add.on(given, dtype), subtract.on(given, dtype), subtract.on(given, dtype)])
  chain.run()
  np.testing.assert_array_equal(given.numbers, np.full(3, 2.0, dtype))
  chain.run()
  np.testing.assert_array_equal(given.numbers, np.full(3, 4.0, dtype))
  Chain([]).run()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_records_inside_records_and_fields_that_kernels_assign(dtype):
  given, places, seen = lines(dtype=dtype), np.array([1, 3], np.uint32), np.zeros(2)
  record = Twice(add.of(dtype).address, places, given, seen)
  Chain([twice.on(record, dtype)]).run()
  np.testing.assert_array_equal(given.numbers, [6.0, 3.0, 3.0])
  np.testing.assert_array_equal(seen, [3.0, 6.0])


class Row(NamedTuple):
  current: Doubles
  counts: Counts
  total: Doubles


@step(Row)
def note(record):
  record.total[record.counts[0]] = 10.0 * record.current[0] + record.current[1]


def test_chains_repeat_for_each_row_of_numbers():
  rows, current, counts = np.arange(6.0).reshape(3, 2), np.zeros(2), np.zeros(2, np.uint64)
  total = np.zeros(3)
  Chain([note.on(Row(current, counts, total))]).repeat(rows, current, counts)
  np.testing.assert_array_equal(total, [1.0, 23.0, 45.0])
  np.testing.assert_array_equal(counts, [3, 0])


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(
  "wrong",
  [
    lambda: np.zeros(4, np.float32),
    lambda: np.zeros(4, np.int64),
    lambda: np.zeros(4, ">f8"),
    lambda: np.zeros(8)[::2],
    lambda: np.zeros((4, 1)),
    lambda: np.zeros(()),
    lambda: read_only(np.zeros(4)),
    lambda: None,
    lambda: [0.0] * 4,
    lambda: 1.0,
    lambda: add,
    lambda: "numbers",
  ],
)
def test_wrong_arrays_are_type_errors(wrong, warm):
  good = np.zeros(4), np.zeros(4, np.uint32), 1.0, 4, False
  if warm:
    total(*good)
  with pytest.raises(TypeError, match="argument 0 of total"):
    total(wrong(), *good[1:])
  with pytest.raises(TypeError, match="numbers of Lines must be an array of float64"):
    add.on(Lines(wrong(), np.zeros((4, 1)), 4))


def read_only(array):
  array.flags.writeable = False
  return array


def test_wrong_numbers_tuples_and_kernels_are_type_errors():
  numbers, places = np.ones(4), np.arange(4, dtype=np.uint32)
  assert total(numbers, places, np.float64(2.0), np.uint64(4), True) == 16.0
  assert total(numbers, places, 2, 3, np.bool_(False)) == 6.0
  for count in (4.0, None, "4", numbers):
    with pytest.raises(TypeError):
      total(numbers, places, 1.0, count, False)
  with pytest.raises(OverflowError):
    total(numbers, places, 1.0, -1, False)
  for arguments in ((), (numbers,), (numbers, places, 1.0, 4, False, 1)):
    with pytest.raises(TypeError, match="takes 5 arguments"):
      total(*arguments)
  for wrong in (tuple(lines()), lines()[:2], None, Row(*np.zeros((3, 1)))):
    with pytest.raises(TypeError, match="add"):
      add.on(wrong)
  with pytest.raises(TypeError, match="not callable"):
    add(lines())


def test_copies_are_the_kernel_itself():
  assert copy.copy(add) is add
  assert copy.deepcopy([add])[0] is add
  assert pickle.loads(pickle.dumps(add)) is add
  local = PythonKernel(lambda x: x, types.float64(types.float64))
  assert copy.deepcopy(local) is local
  with pytest.raises((pickle.PicklingError, AttributeError)):
    pickle.dumps(local)


def test_public_face():
  assert add.function.__name__ == add.__name__ == "add"
  assert add.record is Lines
  assert add.address == add.address > 0
  assert add.of(np.float32).address != add.address
  assert inlined(add.function).py_func is add.function


def test_records_keep_their_arrays_and_nothing_else():
  given = lines()
  before = [sys.getrefcount(value) for value in given[:2]]
  packed = Packed(given, np.float64)
  assert [sys.getrefcount(value) for value in given[:2]] == before
  chain = Chain([add.on(given), subtract.on(given)])
  for _ in range(100):
    chain.run()
  del packed, chain
  gc.collect()
  assert [sys.getrefcount(value) for value in given[:2]] == before
  temporary = Chain([add.on(lines()) for _ in range(3)])
  gc.collect()
  temporary.run()
  np.testing.assert_array_equal(temporary.steps[0].record.record.numbers, [3.0] * 3)


class _Other:
  class Lines(NamedTuple):
    b: Doubles
    a: Doubles


class _One:
  class Lines(NamedTuple):
    a: Doubles
    b: Doubles


def test_records_of_one_name_are_two_types():
  """Numba takes types of one name for one type: the second kernel wrote into the field of the first."""
  for record in (_One.Lines, _Other.Lines):
    record.__qualname__ = "Lines"
  for record in (_One.Lines, _Other.Lines):
    a, b = np.zeros(8), np.zeros(8)
    write = step(record)(lambda record: _write(record))
    Chain([write.on(record(a=a, b=b))]).run()
    assert (a[0], b[0]) == (1.0, 0.0)


@inlined
def _write(record):
  record.a[0] = 1.0
