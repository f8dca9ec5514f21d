"""Published facts of games that are in the atlas."""

import itertools

import numpy as np
import pyspiel
import pytest

# Of classical dark hex if players remember what they see on the board, and not in which order they came to see it.
_DARK_HEX = [
  ((2, 2), 42),
  ((2, 3), 314),
  ((3, 2), 410),
  pytest.param((3, 3), 12_556, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("size", "count"), _DARK_HEX)
def test_infosets_of_dark_hex_with_imperfect_recall(size, count):
  rows, columns = size
  game = pyspiel.load_game(f"dark_hex(num_rows={rows},num_cols={columns})")
  infosets, seen, stack = set(), set(), [game.new_initial_state()]
  while stack:
    state = stack.pop()
    player = state.current_player()
    infosets.add((player, state.observation_string(player)))
    for action in state.legal_actions():
      child = state.child(action)
      both = child.observation_string(0), child.observation_string(1), child.current_player()
      if not child.is_terminal() and both not in seen:
        seen.add(both)
        stack.append(child)
  assert len(infosets) == count


@pytest.mark.parametrize("name", ["matrix_bos", "matrix_cd", "matrix_sh"])
def test_the_polytope_of_correlated_equilibria(name):
  """Nau, Canovas and Hansen (2004): of the battle of the sexes it is a hexahedron with five vertices."""
  game = pyspiel.load_matrix_game(name)
  shape = game.num_rows(), game.num_cols()
  own = np.reshape(game.row_utilities(), shape)
  other = np.reshape(game.col_utilities(), shape)
  # What is not negative: each probability, and what it gains to obey each recommendation.
  rows = [*np.eye(4)]
  for told, played in ((0, 1), (1, 0)):
    for player in (0, 1):
      gains = np.zeros(shape)
      if player == 0:
        gains[told] = own[told] - own[played]
      else:
        gains[:, told] = other[:, told] - other[:, played]
      rows.append(gains.ravel())
  vertices = set()
  for tight in itertools.combinations(rows, 3):
    system = np.vstack([*tight, np.ones(4)])
    if abs(np.linalg.det(system)) > 1e-9:
      point = np.linalg.solve(system, [0, 0, 0, 1])
      if (rows @ point > -1e-9).all():
        vertices.add(tuple((point.round(9) + 0.0).tolist()))
  points = np.array(sorted(vertices))
  assert len(points) == 5 and np.linalg.matrix_rank(points - points[0], tol=1e-6) == 3
  facets = {tuple(np.flatnonzero(abs(points @ row) < 1e-8)) for row in rows}
  ranks = [
    np.linalg.matrix_rank(points[list(facet)] - points[facet[0]], tol=1e-6)
    for facet in facets
    if len(facet) >= 3
  ]
  assert ranks.count(2) == 6
