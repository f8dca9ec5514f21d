"""Dynamic thresholding: dropped actions, regret against adversaries, and whole games."""

import math

import numpy as np
import pytest
from block_driver import run_kernel

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._numba.simd import LANES
from spiel_cfr.regret_minimizers.hedge import (
  Hedge,
  observe_thresholded_hedge,
)


def dropped(probabilities, mass):
  """The definition: the smallest become 0 while they sum to no more than the mass, never the largest."""
  result, left = probabilities.copy(), mass
  for action in np.argsort(probabilities, kind="stable")[:-1]:
    left -= probabilities[action]
    if left < 0:
      break
    result[action] = 0.0
  return result / result.sum()


def softmax(scores):
  weights = np.exp(scores - scores.max())
  return weights / weights.sum()


def step(regrets, utility, strategy, parameters, steps):
  """Calls the kernel on up to a vector of infosets; all arrays of shape (actions, infosets), written to."""
  actions, count = regrets.shape
  rows = [np.full((actions, LANES), 7.0) for _ in range(3)]
  for padded, array in zip(rows, (strategy, utility, regrets), strict=True):
    padded[:, :count] = array
  own, seen, state = (padded.ravel() for padded in rows)
  local = np.full((1, 2 * LANES), steps)
  run_kernel(observe_thresholded_hedge, count, own, seen, state[None], local, parameters)
  strategy[:] = own.reshape(actions, LANES)[:, :count]
  regrets[:] = state.reshape(actions, LANES)[:, :count]


@pytest.mark.parametrize("actions", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("mass", [0.0, 1e-30, 0.01, 0.3, 5.0])
def test_dropped_probabilities(actions, mass):
  rng = np.random.default_rng(actions)
  for spread in (0.1, 3.0, 300.0):
    utility, regrets = rng.normal(size=(2, actions, 1)) * spread
    strategy = softmax(rng.normal(size=(actions, 1)))
    expected = softmax(np.maximum(regrets + utility - (regrets + utility).max(), -100.0))
    most = mass * math.sqrt(math.log(actions))
    step(regrets, utility, strategy, np.array([0.0, 0.0, 1.0, 0.0, mass]), 1.0)
    expected = dropped(expected[:, 0], most)
    np.testing.assert_allclose(strategy[:, 0], expected, rtol=1e-9, atol=1e-300)
    assert strategy.max() > 0
    if most > actions * 4e-44:
      # What the exponential stands for 0 with is 0 now.
      assert ((strategy == 0) | (strategy > 1e-42)).all()


def adversaries(actions, rounds):
  rng = np.random.default_rng(3)
  noise = rng.random((rounds, actions))
  drift = np.cumsum(rng.choice([-0.1, 0.1], (rounds, actions)), axis=0)
  return {
    "noise": lambda t, x: noise[t],
    "one good action, hidden": lambda t, x: (
      (noise[t] < 0.5 + 0.05 * (np.arange(actions) == 1)) * 1.0
    ),
    "against what is played most": lambda t, x: (np.arange(actions) != x.argmax()) * 1.0,
    "for what is not played": lambda t, x: (x == x.min()) * 1.0,
    "phases": lambda t, x: (np.arange(actions) == (t * 5 // rounds) % actions) * 1.0,
    "drift": lambda t, x: np.clip(drift[t], 0, 1),
  }


def against(adversaries, t, strategies):
  """Returns each adversary's utilities against the strategies, shape (actions, adversaries)."""
  utilities = [each(t, own) for each, own in zip(adversaries.values(), strategies.T, strict=True)]
  return np.stack(utilities, axis=1)


@pytest.mark.parametrize("actions", [2, 10])
@pytest.mark.parametrize("threshold", [1.5, 3.0])
def test_adversaries(actions, threshold):
  """Regrets stay within the bound of that threshold."""
  rounds, game = 600, spiel_cfr.compile_game("kuhn_poker")
  rows = Hedge(threshold=threshold).parameters(np.arange(1, rounds + 1), game)
  all_of_them = adversaries(actions, rounds)
  shape = actions, len(all_of_them)
  regrets, strategy, total = np.zeros(shape), np.full(shape, 1 / actions), np.zeros(shape)
  zeros = np.zeros(len(all_of_them), int)
  for t in range(rounds):
    utility = against(all_of_them, t, strategy)
    total += utility - (strategy * utility).sum(axis=0)
    step(regrets, utility, strategy, rows[t], math.sqrt(8 * math.log(actions)))
    zeros += (strategy == 0).sum(axis=0)
    bound = threshold * math.sqrt(2 * (t + 1) * math.log(actions)) + math.sqrt(
      math.log(actions) / 8
    )
    assert total.max() <= bound
  np.testing.assert_allclose(regrets, total, atol=1e-9)
  assert actions == 2 or all(
    count or name == "noise" for name, count in zip(all_of_them, zeros, strict=True)
  )


def test_fewer_actions_are_played_in_a_game():
  """Solvers with thresholds still converge."""
  plain, dropping = (
    spiel_cfr.cfr.HedgeCFRSolver("leduc_poker", rate=30.0, threshold=threshold)
    for threshold in (1.0, 2.0)
  )
  uniform = plain.nash_conv()
  for solver in (plain, dropping):
    solver.run(300)
  used = np.concatenate(
    [rows.ravel() for tree in plain.compiled_game.treeplexes for rows, _ in tree.infoset_groups()]
  )
  assert (plain.current_probabilities()[used] > 0).all()
  assert (dropping.current_probabilities()[used] == 0).mean() > 0.01
  assert dropping.nash_conv() < 0.5 * uniform


@pytest.mark.parametrize("threshold", [0.5, -1.0, math.nan, math.inf])
def test_thresholds_that_make_no_sense(threshold):
  with pytest.raises(errors.ArgumentError, match="threshold"):
    Hedge(threshold=threshold)
