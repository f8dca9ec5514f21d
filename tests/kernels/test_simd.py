"""Vectors of numbers, in both precisions."""

import numpy as np
import pytest
from numba import types

from spiel_cfr.kernels.arrays import COUNT, floats
from spiel_cfr.kernels.compile import kernel
from spiel_cfr.kernels.simd import load, store_first


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
