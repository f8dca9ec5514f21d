"""Solutions of small poker games and of liar's dice from papers and from programs that share nothing with ours.

- Three players' Kuhn poker: Szafron, Gibson and Sturtevant, "A parameterized family of equilibrium profiles for
  three-player Kuhn poker" (2013); parameters and their domains as in Dustin Morrill's player of that paper.
- One-card poker with 13 ranks: Geoffrey Gordon's page on one-card poker, after Koller and Pfeffer, "Generating and
  solving imperfect information games" (1995): who plays first loses 6.4 cents a deal.
- Liar's dice: Thomas Ahle's tables, github.com/thomasahle/snyd, by Koller and Megiddo's linear program.
"""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import tree_games

import spiel_cfr

# What has been done before each player's situations, and how often cards bet or call where that is not a parameter.
SITUATIONS = (("", "ppb", "pbp", "pbb"), ("p", "b", "ppbp", "ppbb"), ("pp", "pb", "bp", "bb"))
FIXED = {f"{card}{done}": 0.0 for own in SITUATIONS for done in own for card in (0, 1, 2)} | {
  f"3{done}": 1.0 for own in SITUATIONS for done in own
}
FIXED |= {"3": 0.0, "2pbp": 0.5}


def profile(c11, b11, b21, b23, b32, c33, c34):
  """Returns an equilibrium; bjk and cjk are what the second and third player do with card j in situation k."""
  beta = max(b11, b21)
  bets = FIXED | {
    "0p": b11, "1p": b21, "3p": 2 * b11 + 2 * b21, "1ppbp": b23, "2b": b32, "2bp": c33, "2bb": c34,
    "2ppbp": (1 + b11 + b21 + beta) / 2 - b23 * (1 - b21), "0pp": c11, "1pp": 0.5 - c11,
  }  # fmt: skip
  return {infostate: {0: 1 - chance, 1: chance} for infostate, chance in bets.items()}


def drawn(family, rng):
  """Returns parameters anywhere in the domain of a family."""
  b11 = rng.uniform(0, 0.25)
  c11, b21, b23 = {"c11=0": 0.0, "c11=1/2": 0.5}.get(family), b11, 0.0
  if family == "c11=0":
    b21 = rng.uniform(b11, 0.25)
  elif family == "c11=1/2":
    b21 = rng.uniform(0, min(b11, 0.5 - 2 * b11))
    b23 = rng.uniform(0, (b11 - b21) / (2 * (1 - b21)))
  else:
    c11 = rng.uniform(0, min(0.5, (2 - b11) / (3 + 4 * b11)))
  room = 0.75 * (b11 + b21) + max(b11, b21) / 4
  b32 = rng.uniform(0, 0.5 + room)
  c33 = rng.uniform(max(0, 0.5 - b32), min(1, 0.5 - b32 + room))
  return c11, b11, b21, b23, b32, c33, rng.random()


@pytest.mark.parametrize("family", ["c11=0", "c11=1/2", "between"])
def test_three_player_kuhn_poker(family):
  game, rng = spiel_cfr.compile_game("kuhn_poker(players=3)"), np.random.default_rng(0)
  for _ in range(50):
    assert spiel_cfr.nash_conv(game, profile(*drawn(family, rng))) == pytest.approx(0, abs=1e-15)


def test_three_player_kuhn_poker_as_printed():
  printed = profile(0.33, 0.166667, 0.166667, 0.0, 0.791667, 0.0, 0.75)
  assert spiel_cfr.nash_conv("kuhn_poker(players=3)", printed) < 1e-6


def one_card_poker(ranks):
  def betting(mine, theirs):
    sign = 1 if mine > theirs else -1
    showdown, large = [sign, -sign], [2 * sign, -2 * sign]
    after_check = (1, f"{theirs} checked to", showdown, (0, f"{mine} bet into", [-1, 1], large))
    return (0, f"{mine} first", after_check, (1, f"{theirs} bet into", [1, -1], large))

  deals = [*itertools.permutations(range(ranks), 2)]
  return ("chance", *((1 / len(deals), betting(*deal)) for deal in deals))


def test_one_card_poker():
  found = spiel_cfr.solve_lp(tree_games.arrays(one_card_poker(13)))
  assert found.value == pytest.approx(-0.064, abs=5e-4)


def liars_dice(dice, sides, jokers):
  """Bids of a number and a face go up in this order; with jokers, ones count as any face and are not bid."""
  faces, counts = range(1 + jokers, sides + 1), range(1, sum(dice) + 1)
  bids = [*itertools.product(counts, faces)]
  rolls = [[*itertools.product(range(1, sides + 1), repeat=count)] for count in dice]

  def turn(hands, bid, done):
    player = len(done) % 2
    moves = []
    if done:
      count, face = bids[bid]
      shown = sum(die == face or (jokers and die == 1) for hand in hands for die in hand)
      sign = 1 if (shown < count) == (player == 0) else -1
      moves.append([sign, -sign])
    moves += (turn(hands, up, (*done, up)) for up in range(bid + 1, len(bids)))
    return (player, f"{hands[player]} {done}", *moves)

  return dealt(rolls, turn, sorted)


def stairs(dice, sides, order):
  """Liar's dice in which a roll of 1, 2 and so on counts as one die more, of any face; ones are not bid."""
  bids = [*itertools.product(range(1, 2 * sum(dice) + 1), range(2, sides + 1))]
  rolls = [[*itertools.product(range(1, sides + 1), repeat=count)] for count in dice]

  def shown(hand, face):
    return len(hand) + 1 if hand == tuple(range(1, len(hand) + 1)) else hand.count(face)

  def turn(hands, bid, done):
    player = len(done) % 2
    moves = []
    if done:
      count, face = bids[bid]
      sign = 1 if (sum(shown(hand, face) for hand in hands) < count) == (player == 0) else -1
      moves.append([sign, -sign])
    moves += (turn(hands, up, (*done, up)) for up in range(bid + 1, len(bids)))
    return (player, f"{hands[player]} {done}", *moves)

  return dealt(rolls, turn, order)


def dealt(rolls, turn, order):
  """Returns the game after a deal; `order` is `sorted` where dice have no order, and `list` where they do."""
  deals = Counter(tuple(tuple(order(hand)) for hand in deal) for deal in itertools.product(*rolls))
  total = deals.total()
  return ("chance", *((weight / total, turn(deal, -1, ())) for deal, weight in deals.items()))


# Dice of the first and the second player, sides; without and with jokers.
DICE = {
  (1, 1, 2): "0 1", (1, 1, 3): "-1/9 1/3", (1, 1, 4): "-1/8 0", (1, 1, 5): "-3/25 0",
  (2, 1, 2): "1/4 1", (2, 1, 3): "1/9 1/3", (1, 2, 2): "0 1", (1, 2, 3): "-1/27 -1/27",
}  # fmt: skip
SLOW = {((1, 1, 5), 0): "-3/25", ((1, 1, 6), 1): "-7/327"}
TABLE = {(dice, k): text for dice, row in DICE.items() for k, text in enumerate(row.split())}


@pytest.mark.parametrize(
  ("dice", "jokers"),
  [pytest.param(*key, marks=pytest.mark.slow if key in SLOW else ()) for key in TABLE | SLOW],
)
def test_liars_dice(dice, jokers):
  game = tree_games.arrays(liars_dice(dice[:2], dice[2], jokers))
  published = float(Fraction((TABLE | SLOW)[dice, jokers]))
  assert spiel_cfr.solve_lp(game).value == pytest.approx(published, abs=1e-9)


@pytest.mark.parametrize(
  ("sides", "value"), [(2, "0"), (3, "1/9"), pytest.param(4, "0", marks=pytest.mark.slow)]
)
def test_liars_dice_with_stairs(sides, value):
  game = tree_games.arrays(stairs((1, 1), sides, sorted))
  assert spiel_cfr.solve_lp(game).value == pytest.approx(float(Fraction(value)), abs=1e-9)


@pytest.mark.parametrize(
  ("dice", "published", "value"), [((2, 1), "3/8", "1/4"), ((1, 2), "-1/4", "0")]
)
def test_published_stairs_know_one_order_of_the_dice(dice, published, value):
  """Stairs are a permutation, says the rule; the program that made the numbers takes 1 and 2, and not 2 and 1."""
  for order, expected in ((list, published), (sorted, value)):
    game = tree_games.arrays(stairs(dice, 2, order))
    assert spiel_cfr.solve_lp(game).value == pytest.approx(float(Fraction(expected)), abs=1e-9)
