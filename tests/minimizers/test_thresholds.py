"""Dynamic thresholding: what is dropped, what that costs against adversaries, and what it makes of a game."""

import math

import numpy as np
import pytest
from block_driver import run_kernel

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.kernels.simd import LANES
from spiel_cfr.minimizers.oftrl import Hedge, observe_choose_and_drop


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
  """Calls the kernel on one infoset; all arrays of shape (actions,), written to."""
  actions = len(regrets)
  rows = [np.full((actions, LANES), 7.0) for _ in range(3)]
  for padded, array in zip(rows, (strategy, utility, regrets), strict=True):
    padded[:, 0] = array
  own, seen, state = (padded.ravel() for padded in rows)
  local = np.full((1, 2 * LANES), steps)
  run_kernel(observe_choose_and_drop, 1, own, seen, state[None], local, parameters)
  strategy[:] = own.reshape(actions, LANES)[:, 0]
  regrets[:] = state.reshape(actions, LANES)[:, 0]


@pytest.mark.parametrize("actions", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("mass", [0.0, 1e-30, 0.01, 0.3, 5.0])
def test_what_is_dropped(actions, mass):
  rng = np.random.default_rng(actions)
  for spread in (0.1, 3.0, 300.0):
    utility, regrets = rng.normal(size=(2, actions)) * spread
    strategy = softmax(rng.normal(size=actions))
    expected = softmax(np.maximum(regrets + utility - (regrets + utility).max(), -100.0))
    most = mass * math.sqrt(math.log(actions))
    step(regrets, utility, strategy, np.array([0.0, 0.0, 1.0, 0.0, mass]), 1.0)
    np.testing.assert_allclose(strategy, dropped(expected, most), rtol=1e-9, atol=1e-300)
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


@pytest.mark.parametrize("name", adversaries(2, 1))
@pytest.mark.parametrize("actions", [2, 10])
@pytest.mark.parametrize("threshold", [1.5, 3.0])
def test_adversaries(name, actions, threshold):
  """Regrets stay within the bound of that threshold."""
  rounds, game = 600, spiel_cfr.compile_game("kuhn_poker")
  rows = Hedge(threshold=threshold).parameters(np.arange(1, rounds + 1), game)
  adversary = adversaries(actions, rounds)[name]
  regrets, strategy = np.zeros(actions), np.full(actions, 1 / actions)
  total, zeros = np.zeros(actions), 0
  for t in range(rounds):
    utility = adversary(t, strategy)
    total += utility - strategy @ utility
    step(regrets, utility, strategy, rows[t], math.sqrt(8 * math.log(actions)))
    zeros += int((strategy == 0).sum())
    bound = threshold * math.sqrt(2 * (t + 1) * math.log(actions)) + math.sqrt(
      math.log(actions) / 8
    )
    assert total.max() <= bound
  np.testing.assert_allclose(regrets, total, atol=1e-9)
  assert zeros or name == "noise" or actions == 2


def test_in_a_game_it_plays_fewer_actions_and_is_no_worse():
  game = spiel_cfr.compile_game("leduc_poker")
  shares = []
  for threshold in (1.0, 2.0):
    solver = spiel_cfr.HedgeCFRSolver(game, 300.0, threshold=threshold)
    solver.run(300)
    played = np.concatenate(
      [solver._strategy[rows].ravel() for tree in game.treeplexes for rows, _ in tree.blocks()]
    )
    shares.append((played == 0).mean())
    value = solver.exploitability()
  assert shares[0] == 0
  assert shares[1] > 0.2
  plain = spiel_cfr.HedgeCFRSolver(game, 300.0)
  plain.run(300)
  assert value < plain.exploitability()


def test_what_is_refused():
  for threshold in (0.5, math.inf, math.nan):
    with pytest.raises(errors.ArgumentError, match="threshold"):
      spiel_cfr.HedgeCFRSolver("kuhn_poker", threshold=threshold)
