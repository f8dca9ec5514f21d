"""Both proximal steps against their definitions, at many scales."""

import hypothesis
import numpy as np
import pytest
from block_driver import run_kernel
from hypothesis import strategies as st
from numba import types

from spiel_cfr import errors
from spiel_cfr._numba import simd
from spiel_cfr._numba.arrays import FLOATS
from spiel_cfr._numba.kernels import kernel
from spiel_cfr._numba.simd import LANES
from spiel_cfr.regret_minimizers import hedge, oftrl, regularizers

_REGULARIZERS = ("entropy", "euclidean")
_SCALES = st.sampled_from([10.0**power for power in range(-9, 10, 3)])


def _step(regularizer, regrets, utilities, steps):
  """Calls the compiled kernel on a block; all arguments and the result have shape (infosets, actions)."""
  count, actions = regrets.shape

  def rows(array):
    # Padded to whole vectors, as solvers do; what is there must not matter.
    padded = np.full((actions, LANES), 7.0)
    padded[:, :count] = array.T
    return padded.ravel()

  strategy = rows(np.full(regrets.shape, 1 / actions))
  parameters = np.array([0.0, 1.0, 1.0, float(regularizer == "euclidean"), 0.0, 0.0])
  local = np.pad(np.array(steps, np.float64), (0, LANES))[None]
  value = run_kernel(
    oftrl.predict_oftrl, count, strategy, rows(utilities), rows(regrets)[None], local, parameters
  )
  result = strategy.reshape(actions, LANES)[:, :count].T
  terms = result * utilities
  assert (np.abs(value - terms.sum(axis=1)) <= 1e-14 * np.abs(terms).sum(axis=1)).all()
  return result


@st.composite
def _problems(draw):
  """Scores of a few infosets with 1 to 50 actions; some scores tie, some are dominated by far."""
  rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
  shape = draw(st.integers(1, 5)), draw(st.sampled_from([1, 2, 3, 7, 50]))
  scale = draw(_SCALES)
  regrets = scale * rng.choice([rng.normal(size=shape), rng.integers(-1, 2, shape)])
  regrets -= np.where(rng.random(shape) < 0.2, 1e6 * scale, 0.0)
  return regrets, scale * rng.normal(size=shape), 10.0 ** rng.uniform(-3, 3, shape[0]) / scale


@pytest.mark.parametrize("regularizer", _REGULARIZERS)
@hypothesis.given(_problems())
def test_step_satisfies_the_optimality_conditions(regularizer, problem):
  """At the maximum, the gradient is one number on the support and no larger off it."""
  regrets, utilities, steps = problem
  strategy = _step(regularizer, *problem)
  assert strategy.min() >= 0
  assert strategy.sum(axis=1) == pytest.approx(1, abs=1e-13)
  scores = regrets + utilities
  scores = steps[:, None] * (scores - scores.max(axis=1, keepdims=True))
  if regularizer == "entropy":
    exact = np.exp(np.maximum(scores, -100))
    assert strategy == pytest.approx(exact / exact.sum(axis=1, keepdims=True), rel=1e-12)
    return
  gradient = scores - strategy
  multiplier = np.max(gradient, axis=1, keepdims=True)
  slackness = np.where(strategy > 0, multiplier - gradient, 0).max(axis=1)
  assert (slackness <= _rounding(regrets, steps)).all()


def _rounding(regrets, steps):
  """Largest effect of rounded regrets on the scores of each infoset."""
  return 1e-13 + 4e-15 * steps * np.abs(regrets).max(axis=1)


@pytest.mark.parametrize("regularizer", _REGULARIZERS)
@hypothesis.given(_problems(), st.integers(0, 2**32 - 1))
def test_step_is_lipschitz_in_the_scores(regularizer, problem, seed):
  """R is 1-strongly convex: ||x - x'|| <= step ||score - score'||, l1 against max norm for the entropy."""
  regrets, utilities, steps = problem
  change = np.random.default_rng(seed).normal(size=regrets.shape) * np.abs(utilities)
  moved = _step(regularizer, *problem) - _step(regularizer, regrets, utilities + change, steps)
  order, dual = (1, np.inf) if regularizer == "entropy" else (2, 2)
  distance = np.linalg.norm(moved, ord=order, axis=1)
  bound = steps * np.linalg.norm(change, ord=dual, axis=1)
  assert (distance <= bound + _rounding(regrets, steps)).all()


@pytest.mark.parametrize("regularizer", _REGULARIZERS)
def test_huge_scores_give_a_pure_strategy(regularizer):
  regrets = np.array([[1e300, -1e300, 0.0], [0.0, 0.0, -1e308]])
  strategy = _step(regularizer, regrets, np.zeros((2, 3)), [1e3, 1e9])
  assert strategy == pytest.approx(np.array([[1, 0, 0], [0.5, 0.5, 0]]), abs=1e-40)


def test_step_of_zero_is_uniform():
  for regularizer in _REGULARIZERS:
    strategy = _step(regularizer, np.array([[1e9, 0.0, 5.0, -3.0]]), np.zeros((1, 4)), [0.0])
    assert strategy == pytest.approx(0.25, abs=1e-16)


@kernel(types.void(FLOATS, FLOATS))
def _exponentials(numbers, results):
  for start in range(np.uint64(0), np.uint64(numbers.size), np.uint64(LANES)):
    simd.store(results, start, regularizers.exponential(simd.load(numbers, start)))


def test_exponential_is_within_two_units_in_the_last_place():
  x = np.concatenate([-np.logspace(-12, np.log10(708), 100_000), np.linspace(-1, 0, 10_008)])
  computed = np.zeros(len(x))
  _exponentials(x, computed)
  exact = np.exp(x)
  assert np.max(np.abs(computed - exact) / np.spacing(exact)) <= 2
  assert computed[-1] == 1.0


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
def test_hedge_needs_a_positive_rate(rate):
  with pytest.raises(errors.ArgumentError, match="rate"):
    hedge.Hedge(rate)
