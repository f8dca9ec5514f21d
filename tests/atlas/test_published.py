"""Published numbers besides the values of OpenSpiel's games.

The end games of liar's dice are those of github.com/thomasahle/snyd. OpenSpiel's liar's dice is another game: its
highest face is wild, where here it is the lowest one, or none.
"""

import collections
import itertools
from fractions import Fraction

import numpy as np
import pyspiel
import pytest

from spiel_cfr.evaluation import solve_lp
from spiel_cfr.games import game_from_arrays


def counted(rolls, face, rule):
  """Returns how many dice count towards a face."""
  total = 0
  for roll in rolls:
    if rule == "stairs" and roll == tuple(range(1, len(roll) + 1)):
      total += len(roll) + 1
    else:
      total += roll.count(face) + (roll.count(1) if rule == "joker" else 0)
  return total


class Endgame:
  """Liar's dice of two players with some dice each, who bid in turn until one calls the other a liar.

  With the rule "joker" a 1 counts as any face, with "stairs" a roll of 1, 2 and so on counts as one die more than it
  has, of any face. Nobody bids on ones then.
  """

  def __init__(self, dice, sides, rule, ordered=False):
    self.rule = rule
    most, lowest = sum(dice) * (2 if rule == "stairs" else 1), 1 if rule == "normal" else 2
    self.bids = list(itertools.product(range(1, most + 1), range(lowest, sides + 1)))
    rolls = [itertools.product(range(1, sides + 1), repeat=count) for count in dice]
    self.rolls = [
      collections.Counter(roll if ordered else tuple(sorted(roll)) for roll in own) for own in rolls
    ]
    self.ways = sides ** sum(dice)
    self.parents, self.num_actions, self.ends = ([], []), ([], []), [1, 1]
    self.leaves, self.payoffs = ([], []), []
    self._walk(-1, 0, [dict.fromkeys(own, 0) for own in self.rolls])

  def _walk(self, last, mover, sequences):
    """Adds what follows a bid, of which -1 is none; the mover may bid higher, or call."""
    higher, calls = len(self.bids) - 1 - last, int(last >= 0)
    first = {}
    for roll, above in sequences[mover].items():
      self.parents[mover].append(above)
      self.num_actions[mover].append(higher + calls)
      first[roll] = self.ends[mover]
      self.ends[mover] += higher + calls

    def after(action):
      taken = {roll: sequence + action for roll, sequence in first.items()}
      return [taken, sequences[1]] if mover == 0 else [sequences[0], taken]

    if calls:
      self._call(last, mover, after(higher))
    for action in range(higher):
      self._walk(last + 1 + action, 1 - mover, after(action))

  def _call(self, last, mover, sequences):
    number, face = self.bids[last]
    for one, other in itertools.product(*self.rolls):
      is_right = counted([one, other], face, self.rule) >= number
      chance = self.rolls[0][one] * self.rolls[1][other] / self.ways
      self.leaves[0].append(sequences[0][one])
      self.leaves[1].append(sequences[1][other])
      # Player 0 has bid if player 1 calls.
      self.payoffs.append(chance if is_right == (mover == 1) else -chance)

  def value(self):
    return solve_lp(
      game_from_arrays(self.parents, self.num_actions, self.leaves, self.payoffs)
    ).value


_SLOW = pytest.mark.slow
_PUBLISHED = [
  ((1, 1), 2, "normal", "0"),
  ((1, 1), 3, "normal", "-1/9"),
  ((1, 1), 4, "normal", "-1/8"),
  # An older page of the project says -3/35.
  pytest.param((1, 1), 5, "normal", "-3/25", marks=_SLOW),
  ((1, 1), 2, "joker", "1"),
  ((1, 1), 3, "joker", "1/3"),
  ((1, 1), 4, "joker", "0"),
  pytest.param((1, 1), 5, "joker", "0", marks=_SLOW),
  pytest.param((1, 1), 6, "joker", "-7/327", marks=_SLOW),
  pytest.param((1, 1), 6, "normal", "-1/9", marks=_SLOW),
  ((1, 1), 2, "stairs", "0"),
  ((1, 1), 3, "stairs", "1/9"),
  ((1, 1), 4, "stairs", "0"),
  pytest.param((1, 1), 5, "stairs", "1/25", marks=_SLOW),
  ((2, 1), 2, "normal", "1/4"),
  pytest.param((2, 1), 3, "normal", "1/9", marks=_SLOW),
  ((2, 1), 2, "joker", "1"),
  pytest.param((2, 1), 3, "joker", "1/3", marks=_SLOW),
  pytest.param((2, 1), 4, "joker", "1/4", marks=_SLOW),
  ((1, 2), 2, "normal", "0"),
  pytest.param((1, 2), 3, "normal", "-1/27", marks=_SLOW),
  ((1, 2), 2, "joker", "1"),
  pytest.param((1, 2), 3, "joker", "-1/27", marks=_SLOW),
  pytest.param((1, 2), 4, "joker", "-1/32", marks=_SLOW),
]


@pytest.mark.parametrize(("dice", "sides", "rule", "value"), _PUBLISHED)
def test_end_games_of_liars_dice(dice, sides, rule, value):
  assert Endgame(dice, sides, rule).value() == pytest.approx(float(Fraction(value)), abs=1e-8)


@pytest.mark.parametrize(
  ("dice", "published", "of_the_rule"), [((2, 1), "3/8", "1/4"), ((1, 2), "-1/4", "0")]
)
def test_published_stairs_know_one_order_of_the_dice(dice, published, of_the_rule):
  """The rule says that 2 and 1 are stairs as 1 and 2 are; the program that made the numbers takes the latter only."""
  for ordered, value in ((True, published), (False, of_the_rule)):
    found = Endgame(dice, 2, "stairs", ordered).value()
    assert found == pytest.approx(float(Fraction(value)), abs=1e-8)


# Of classical dark hex if players remember what they see on the board, and not in which order they came to see it.
_DARK_HEX = [
  ((2, 2), 42),
  ((2, 3), 314),
  ((3, 2), 410),
  pytest.param((3, 3), 12_556, marks=_SLOW),
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
