"""Every inequality of the theorem in docs/theory/restarts.md, on matrix games of known sharpness."""

import math

import numpy as np
import pyspiel
import pytest

import spiel_cfr

_SEEDS = range(8)


def _mixed_game(seed):
  """Returns a 2 x 2 matrix game with a fully mixed equilibrium: matrix, the equilibrium, its sharpness.

  Near the equilibrium x* + s (1, -1), y* + t (1, -1), and everywhere else too, NashConv is a sum of two functions, of s
  and of t, each linear on either side of 0. So the least ratio of it to the distance is found on one of the four axes.
  """
  rng = np.random.default_rng(seed)
  while True:
    matrix = rng.normal(size=(2, 2))
    rows, columns = matrix[:, 0] - matrix[:, 1], matrix[0] - matrix[1]
    if rows[0] * rows[1] < 0 and columns[0] * columns[1] < 0:
      break
  x = np.array([-rows[1], rows[0]]) / (rows[0] - rows[1])
  y = np.array([-columns[1], columns[0]]) / (columns[0] - columns[1])
  slopes = np.abs(np.concatenate([rows, columns]))
  return matrix, np.concatenate([x, y]), slopes.min() / math.sqrt(2)


def _nash_conv(matrix, z):
  x, y = z[:2], z[2:]
  return (matrix @ y).max() - (x @ matrix).min()


def _constants(matrix):
  """Returns kappa and b of the theorem."""
  b = 1 + math.sqrt(len(matrix))
  return b * np.linalg.norm(matrix, 2), b


def _stretch(matrix, start, c, length):
  """Regret matching+ from R = c z, in plain NumPy; returns all R, all regrets and the average."""
  regrets, memory, total = [], [c * start], np.zeros(4)
  for _ in range(length):
    halves = memory[-1][:2], memory[-1][2:]
    x, y = (half / half.sum() for half in halves)
    value = x @ matrix @ y
    regrets.append(np.concatenate([matrix @ y - value, value - x @ matrix]))
    memory.append(np.maximum(memory[-1] + regrets[-1], 0))
    total += np.concatenate([x, y])
  return np.array(memory), np.array(regrets), total / length


def _near(equilibrium, distance, rng):
  """Returns a pair of strategies at some distance from the equilibrium."""
  s, t = rng.normal(size=2)
  direction = np.array([s, -s, t, -t]) / math.sqrt(2 * (s * s + t * t))
  return equilibrium + distance * direction


@pytest.mark.parametrize("seed", _SEEDS)
def test_sharpness(seed):
  matrix, equilibrium, sharpness = _mixed_game(seed)
  assert _nash_conv(matrix, equilibrium) == pytest.approx(0, abs=1e-12)
  rng = np.random.default_rng(seed)
  found = np.inf
  for _ in range(2_000):
    z = np.concatenate([rng.dirichlet([1, 1]), rng.dirichlet([1, 1])])
    found = min(found, _nash_conv(matrix, z) / np.linalg.norm(z - equilibrium))
  assert sharpness * (1 - 1e-9) <= found <= 1.2 * sharpness


@pytest.mark.parametrize("seed", _SEEDS)
def test_every_inequality_of_the_proof(seed):
  matrix, equilibrium, _ = _mixed_game(seed)
  rng = np.random.default_rng(seed)
  kappa, b = _constants(matrix)
  root_e = math.sqrt(math.e)
  for distance in (1e-2, 1e-5):
    # An equilibrium near a corner leaves less room.
    distance = min(distance, equilibrium.min() / 2)
    start = _near(equilibrium, distance, rng)
    for c in (8.0 * kappa * b, 30.0 * kappa * b):
      length = int((c / (kappa * b)) ** 2)
      memory, regrets, average = _stretch(matrix, start, c, length)
      # 1: the bound on the regret against anything.
      squares = (regrets**2).sum()
      for _ in range(20):
        u = np.concatenate([rng.dirichlet([1, 1]), rng.dirichlet([1, 1])])
        bound = c / 2 * np.sum((start - u) ** 2) + squares / (2 * c)
        assert (regrets @ u).sum() <= bound * (1 + 1e-9)
      # 2: it stays near.
      distances = np.linalg.norm(memory / c - equilibrium, axis=1)
      assert distances.max() <= root_e * distance * (1 + 1e-9)
      assert (
        np.linalg.norm(regrets, axis=1) <= kappa * b * distances[:-1] * (1 + 1e-9) + 1e-14
      ).all()
      # 3: the average is good, in proportion to the distance.
      factor = c / length * (2 + b * root_e) ** 2 + math.e * (kappa * b) ** 2 / c
      assert _nash_conv(matrix, average) <= distance * factor


@pytest.mark.parametrize(
  ("part", "stretches"), [(100, 12), pytest.param(20, 4, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("seed", _SEEDS[:3])
def test_solvers_satisfy_the_theorem(seed, part, stretches):
  """NashConv halves from stretch to stretch, with regret matching+ and `init_from_strategy` as the library has them.

  Constants of proofs are large: a hundredth of the scale that is needed, and a ten-thousandth of the iterations, do it
  too, on average.
  """
  matrix, equilibrium, sharpness = _mixed_game(seed)
  kappa, b = _constants(matrix)
  needed = 2 * (kappa * b) ** 2 / sharpness * (2 * (2 + b * math.sqrt(math.e)) ** 2 + math.e)
  solver = spiel_cfr.FullWidthSolver(
    pyspiel.create_matrix_game(matrix, -matrix),
    spiel_cfr.RegretMatching.plus(),
    alternating_updates=False,
  )
  rows = [next(iter(tree.infoset_groups()))[0].ravel() for tree in solver.compiled_game.treeplexes]
  order = np.concatenate(rows)
  c = needed / part
  length = int((c / (kappa * b)) ** 2)
  z = _near(equilibrium, min(1e-3, equilibrium.min() / 2), np.random.default_rng(seed))
  form = solver.current_sequence_form()
  form[order] = z
  solver.init_from_strategy(form)
  state = solver.state_dict()
  state["action_state"][0][order] = c * z
  solver.load_state_dict(state)
  nash_convs = [_nash_conv(matrix, z)]
  for _ in range(stretches):
    solver.run(length)
    z = solver.average_sequence_form()
    nash_convs.append(_nash_conv(matrix, z[order]))
    solver.init_from_strategy(z)
    # The scale stays.
    for row in rows:
      assert solver.state.action_state[0][row].sum() == pytest.approx(c, rel=0.01)
  assert nash_convs[-1] <= nash_convs[0] / 2**stretches
