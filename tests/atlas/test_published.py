"""Published facts of games that are in the atlas."""

import itertools
import pathlib
import sys
from fractions import Fraction

import numba
import numpy as np
import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import atlas

sys.path.append(str(pathlib.Path(__file__).parents[2] / "examples"))
from correlated_polytope import correlated_polytope

# Of classical dark hex if players remember what they see on the board, and not in which order they came to see it.
_DARK_HEX = [((2, 2), 42), ((2, 3), 314), ((3, 2), 410), ((3, 3), 12_556), ((4, 3), 367_919)]


@pytest.mark.parametrize(("size", "count"), _DARK_HEX[:3])
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


@numba.njit
def is_won(board, player, rows, columns):
  """Returns whether player 1 joins top and bottom, or player 2 left and right."""
  reached = np.zeros(rows * columns, np.bool_)
  for _ in range(rows * columns):
    for cell in range(rows * columns):
      row, column = cell // columns, cell % columns
      starts = row == 0 if player == 1 else column == 0
      for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, 1), (1, -1)):
        if 0 <= row + down < rows and 0 <= column + right < columns:
          starts = starts or reached[(row + down) * columns + column + right]
      if board[cell] == player and starts:
        reached[cell] = True
        if (row == rows - 1) if player == 1 else (column == columns - 1):
          return True
  return False


@numba.njit
def count_infosets(rows, columns):
  """Counts what players can see when they are to move, over all pairs of what both have seen.

  A cell is empty (0), player 1's stone, unknown (1) or known (2) to player 2, or player 2's, likewise (3 and 4). The
  pair of what both have seen is a number of digits to the base 5, and moves only make it larger.
  """
  cells = rows * columns
  place, own_place = 5 ** np.arange(cells), 3 ** np.arange(cells)
  is_reached = np.zeros(5**cells, np.bool_)
  is_reached[0] = True
  # By board: 0 if it is not computed yet, 1 if the game goes on, 2 if a player has won.
  kind = np.zeros(3**cells, np.int8)
  infosets = np.zeros((2, 3**cells), np.bool_)
  code, board = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
  for pair in range(5**cells):
    if not is_reached[pair]:
      continue
    rest, whole, first, second = pair, 0, 0, 0
    for cell in range(cells):
      code[cell] = rest % 5
      rest //= 5
      stone = (code[cell] + 1) // 2
      board[cell] = stone
      whole += stone * own_place[cell]
      first += (stone if stone == 1 or code[cell] == 4 else 0) * own_place[cell]
      second += (stone if stone == 2 or code[cell] == 2 else 0) * own_place[cell]
    if kind[whole] == 0:
      won = is_won(board, 1, rows, columns) or is_won(board, 2, rows, columns)
      kind[whole] = 2 if won else 1
    if kind[whole] == 2:
      continue
    mover = 0 if (board == 1).sum() == (board == 2).sum() else 1
    infosets[mover, first if mover == 0 else second] = True
    for cell in range(cells):
      if code[cell] == 0:
        is_reached[pair + (1 + 2 * mover) * place[cell]] = True
      elif code[cell] == 3 - 2 * mover:
        is_reached[pair + place[cell]] = True
  return infosets.sum()


@pytest.mark.slow
@pytest.mark.parametrize(("size", "count"), _DARK_HEX)
def test_infosets_of_larger_dark_hex(size, count):
  assert count_infosets(*size) == count


def by_enumeration(payoffs):
  """Returns dimension, vertices and facets of the correlated equilibria, by solving all systems of tight conditions."""
  counts, size = payoffs.shape[1:], payoffs[0].size
  rows = [*np.eye(size)]
  for player, count in enumerate(counts):
    for told, played in itertools.permutations(range(count), 2):
      own = np.moveaxis(payoffs[player], player, 0)
      gains = np.zeros_like(own)
      gains[told] = own[told] - own[played]
      rows.append(np.moveaxis(gains, 0, player).ravel())
  vertices = set()
  for tight in itertools.combinations(rows, size - 1):
    system = np.vstack([*tight, np.ones(size)])
    if abs(np.linalg.det(system)) > 1e-9:
      point = np.linalg.solve(system, np.eye(size)[-1])
      if (rows @ point > -1e-9).all():
        vertices.add(tuple((point.round(7) + 0.0).tolist()))
  points = np.array(sorted(vertices))
  dimension = np.linalg.matrix_rank(points - points[0], tol=1e-6)
  facets = {tuple(np.flatnonzero(abs(points @ row) < 1e-6)) for row in rows}
  ranks = [np.linalg.matrix_rank(points[[*facet]], tol=1e-6) for facet in facets if facet]
  return dimension, len(points), ranks.count(dimension)


@pytest.mark.parametrize(
  ("name", "size"),
  [
    ("matrix_bos", (2, 2)),
    ("matrix_cd", (2, 2)),
    ("matrix_sh", (2, 2)),
    ("nau_2004_4.efg", (2, 2, 2)),
    ("nau_2004_5.efg", (2, 2, 2)),
    ("gambit_max_cut.efg", (2, 2, 2)),
  ],
)
def test_polytopes_by_enumeration(name, size):
  game = atlas.load(name)
  payoffs = np.zeros((len(size), *size))
  for actions in itertools.product(*map(range, size)):
    state = game.new_initial_state()
    for action in actions:
      # Gambit's actions are numbered by their labels, not at each node.
      state.apply_action(state.legal_actions()[action])
    payoffs[:, *actions] = state.returns()
  assert correlated_polytope(spiel_cfr.compile_game(game))[:3] == by_enumeration(payoffs)


@pytest.mark.parametrize(
  ("section", "dimension", "num_vertices"), [(3, 3, 5), (4, 7, 33), (5, 7, 8), (6, 4, 6)]
)
def test_polytopes_of_nau_canovas_and_hansen(section, dimension, num_vertices):
  found = correlated_polytope(atlas.find(f"nau_2004_{section}.efg").compile())
  assert found[:2] == (dimension, num_vertices)
  solved = atlas.find(f"nau_2004_{section}.efg")
  assert (*solved.polytope, solved.best_ce) == found


def test_games_of_several_infosets_have_no_polytope():
  assert correlated_polytope(spiel_cfr.compile_game("kuhn_poker")) is None
  assert correlated_polytope(spiel_cfr.compile_game("blotto(coins=3,fields=3)")) is None


def test_a_formula_that_is_not_satisfiable():
  """Von Stengel and Forges (2008), figure 9: both have the same payoff, at most 2/3."""
  game = spiel_cfr.compile_game(atlas.load("stengel_forges_2008_9.efg"))
  legal = {}
  for infosets in game.infosets:
    actions = np.split(infosets.actions, np.cumsum(infosets.num_actions)[:-1])
    legal |= dict(zip(infosets.infostates, map(np.ndarray.tolist, actions), strict=True))
  assert sorted(map(len, legal.values())) == [1, 2, 2, 2, 2]
  payoffs = []
  for choice in itertools.product(*legal.values()):
    policy = {name: {action: 1.0} for name, action in zip(legal, choice, strict=True)}
    first, second = spiel_cfr.expected_values(game, policy)
    assert first == pytest.approx(second)
    payoffs.append(first)
  assert max(payoffs) == pytest.approx(2 / 3)


def test_one_player_of_monty_hall_has_several_optimal_strategies():
  """Von Stengel (2022), figure 10.12."""
  assert atlas.find("stengel_2022_10_12.efg").unique == (True, False)


@pytest.mark.parametrize(
  ("dice", "published", "value"), [("2 1", "3/8", "1/4"), ("1 2", "-1/4", "0")]
)
def test_published_stairs_know_one_order_of_the_dice(dice, published, value):
  """The rule says that stairs are a permutation; the program that made the numbers takes 1 and 2, and not 2 and 1."""
  by_rule = atlas.find(f"dice_endgame(dice={dice},sides=2,rule=stairs)").value
  ordered = atlas.find(f"dice_endgame(dice={dice},sides=2,rule=ordered_stairs)")
  agreeing = [each.value for each in ordered.published if each.agrees_with(ordered.value)]
  assert agreeing.count(published) == 1
  assert by_rule.low <= Fraction(value) <= by_rule.high
