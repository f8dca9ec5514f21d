"""Calls of kernels from Python: fast, and refused if the arguments don't fit."""

import copy
import pickle
import sys
import time
import timeit
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import types

from spiel_cfr._numba.arrays import COUNT, FLOAT_TABLE, FLOATS, INDICES, borrowed, tuple_type
from spiel_cfr._numba.kernels import Kernel, inlined, kernel


class Lines(NamedTuple):
  numbers: np.ndarray
  table: np.ndarray
  count: int


class Others(NamedTuple):
  numbers: np.ndarray
  tables: np.ndarray
  count: int


LINES = tuple_type(Lines, FLOATS, FLOAT_TABLE, COUNT)
ADD = types.void(LINES, types.float64)


@kernel(ADD, passed=True)
def add(lines, number):
  for i in range(lines.count):
    lines.numbers[i] += number + lines.table[i, 0]


@kernel(ADD, passed=True)
def subtract(lines, number):
  for i in range(lines.count):
    lines.numbers[i] -= number


@kernel(types.void(types.FunctionType(ADD), types.FunctionType(ADD), FLOATS, FLOAT_TABLE))
def both(first, second, numbers, table):
  lines = Lines(borrowed(numbers), borrowed(table), np.uint64(len(numbers)))
  first(lines, 1.0)
  second(lines, 0.5)


@kernel(types.float64(FLOATS, INDICES, types.float64, COUNT, types.boolean))
def total(numbers, places, factor, count, doubled):
  result = 0.0
  for i in range(count):
    result += numbers[places[i]] * factor
  return 2.0 * result if doubled else result


class Steps(NamedTuple):
  first: Kernel
  second: Kernel


STEPS = tuple_type(Steps, types.FunctionType(ADD), types.FunctionType(ADD))


@kernel(types.void(STEPS, LINES))
def all_steps(steps, lines):
  steps.first(lines, 1.0)
  steps.second(lines, 0.25)


def lines(count=3):
  return Lines(np.zeros(count), np.ones((count, 2)), count)


def test_tuples_of_arrays_and_kernels():
  given = lines()
  add(given, 2.0)
  np.testing.assert_array_equal(given.numbers, [3.0] * 3)
  both(add, subtract, given.numbers, given.table)
  np.testing.assert_array_equal(given.numbers, [4.5] * 3)
  both(subtract, subtract, given.numbers, given.table)
  np.testing.assert_array_equal(given.numbers, [3.0] * 3)
  all_steps(Steps(add, subtract), given)
  np.testing.assert_array_equal(given.numbers, [4.75] * 3)


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
  with pytest.raises(TypeError, match="argument 0 of add"):
    add(Lines(wrong(), np.zeros((4, 1)), 4), 1.0)
  with pytest.raises(TypeError, match="argument 2 of both"):
    both(add, add, wrong(), np.zeros((4, 1)))


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
  for wrong in (Others(*lines()), tuple(lines()), lines()[:2], None):
    with pytest.raises(TypeError):
      add(wrong, 1.0)
  for wrong in (total, None, add.function, numba.njit(add.function), 5):
    with pytest.raises(TypeError):
      both(add, wrong, *lines()[:2])
    with pytest.raises(TypeError):
      all_steps(Steps(add, wrong), lines())


def test_copies_are_the_kernel_itself():
  assert copy.copy(add) is add
  assert copy.deepcopy([add])[0] is add
  assert pickle.loads(pickle.dumps(add)) is add
  local = Kernel(lambda x: x, types.float64(types.float64))
  assert copy.deepcopy(local) is local
  with pytest.raises((pickle.PicklingError, AttributeError)):
    pickle.dumps(local)


def test_public_face():
  assert add.function.__name__ == add.__name__ == "add"
  assert add.signature().args[0] == LINES
  assert isinstance(add.numba_type, types.FunctionType)
  assert add.__wrapper_address__() == add.__wrapper_address__() > 0
  assert numba.typeof(add) == add.numba_type
  assert inlined(add.function).py_func is add.function


def test_numba_functions_take_kernels():
  @numba.njit
  def twice(function, lines):
    function(lines, 1.0)
    function(lines, 1.0)

  given = lines()._replace(count=np.uint64(3))
  twice(subtract, given)
  np.testing.assert_array_equal(given.numbers, [-2.0] * 3)


def test_no_references_are_lost():
  given = lines()
  before = [sys.getrefcount(value) for value in (*given[:2], add)]
  for _ in range(100):
    add(given, 1.0)
    both(add, subtract, *given[:2])
    all_steps(Steps(add, subtract), given)
    with pytest.raises(TypeError):
      add(Lines(given.numbers, None, 3), 1.0)
  assert [sys.getrefcount(value) for value in (*given[:2], add)] <= [n + 2 for n in before]


def test_a_call_is_much_faster_than_numba_makes_it():
  numbers, table = np.zeros(4), np.zeros((4, 1))
  plain = types.FunctionType(
    types.void(types.NamedTuple([FLOATS, FLOAT_TABLE, COUNT], Lines), types.float64)
  )
  assert plain.signature.args == add.signature().args
  slow = numba.njit(both.function)
  times = []
  for function in (slow, both):
    function(add, subtract, numbers, table)
    repeated = timeit.repeat(
      lambda f=function: f(add, subtract, numbers, table),
      timer=time.process_time,
      number=1000,
      repeat=9,
    )
    times.append(min(repeated))
  assert times[1] < 0.75 * times[0]


def test_an_absent_kernel_is_passed_but_not_compiled():
  absent = subtract.absent
  assert absent is subtract.absent
  assert absent.numba_type == subtract.numba_type

  @kernel(types.void(types.FunctionType(ADD), types.FunctionType(ADD), types.boolean, LINES))
  def one_of_two(first, second, takes_second, lines):
    if takes_second:
      second(lines, 1.0)
    else:
      first(lines, 1.0)

  given = lines()
  one_of_two(subtract, absent, False, given)
  np.testing.assert_array_equal(given.numbers, [-1.0] * 3)
  assert "_dispatcher" not in vars(absent)
