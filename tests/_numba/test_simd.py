"""Vectors of numbers, in both precisions."""

import numpy as np
import pytest
from numba import types

from spiel_cfr._numba.arrays import COUNT, INDICES, floats
from spiel_cfr._numba.kernels import kernel
from spiel_cfr._numba.simd import gather, load, scatter, store_first


@kernel(lambda number: types.void(floats(number), floats(number), COUNT, COUNT))
def copy_first(source, target, start, count):
  store_first(target, start, load(source, start), count)


@pytest.mark.parametrize(("dtype", "lanes"), [(np.float64, 8), (np.float32, 16)])
def test_the_first_elements_are_written_and_no_others(dtype, lanes):
  source, start = np.arange(1, 40, dtype=dtype), 3
  for count in range(lanes + 1):
    target = np.full(39, -1, dtype)
    copy_first.of(dtype)(source, target, np.uint64(start), np.uint64(count))
    expected = np.full(39, -1, dtype)
    expected[start : start + count] = source[start : start + count]
    np.testing.assert_array_equal(target, expected)


@kernel(lambda number: types.void(floats(number), INDICES, floats(number), INDICES, COUNT))
def copy_places(source, origins, target, places, start):
  scatter(target, places, start, gather(source, origins, start))


@pytest.mark.parametrize(("dtype", "lanes"), [(np.float64, 8), (np.float32, 16)])
def test_numbers_are_taken_from_places_and_put_to_others(dtype, lanes):
  source, start = np.arange(1, 200, dtype=dtype), 3
  rng = np.random.default_rng(1)
  origins, places = (rng.permutation(199)[: lanes + 7].astype(np.uint32) for _ in range(2))
  target = np.zeros(199, dtype)
  copy_places.of(dtype)(source, origins, target, places, np.uint64(start))
  expected, some = np.zeros(199, dtype), slice(start, start + lanes)
  expected[places[some]] = source[origins[some]]
  np.testing.assert_array_equal(target, expected)
