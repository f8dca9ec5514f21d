"""Equilibria that Gambit's tests and catalogue print as fractions, in games written down again from there.

Source: github.com/gambitproject/gambit, tests/test_nash.py, tests/test_games and catalog, which name these: Koller,
Megiddo and von Stengel, "Fast algorithms for finding randomized strategies in game trees" (STOC 1994); Reiley, Urbancic
and Walker, "Stripped-down poker" (2008); Wichardt, "Existence of Nash equilibria in finite extensive form games with
imperfect recall: a counterexample" (2008).
"""

from fractions import Fraction

import numpy as np
import pyspiel
import pytest
import tree_games

import spiel_cfr
from spiel_cfr import errors


def won(payoff):
  return [payoff, -payoff]


def hidden(name, *moves):
  return (1, name, *map(won, moves))


STOC_94 = (
  "chance",
  (0.2, (0, "1", won(5), (1, "1", (0, "3", won(10), won(15)), (0, "3", won(20), won(-5))))),
  (0.2, (0, "2", won(10), won(20))),
  (0.2, (0, "2", hidden("2", 20, 50), hidden("2", 30, 15))),
  (0.4, won(5)),
)
STRIPPED_DOWN_POKER = (
  "chance",
  (0.5, (0, "king", hidden("facing a bet", 2, 1), won(-1))),
  (0.5, (0, "queen", hidden("facing a bet", -2, 1), won(-1))),
)
CHANCE_IN_THE_MIDDLE = (
  0,
  "1",
  (
    "chance",
    (0.2, (1, "1", (0, "2", won(0), won(-2)), (0, "3", won(-0.5), won(-1.5)))),
    (0.8, (1, "2", (0, "2", won(0.5), won(-0.5)), (0, "3", won(1), won(-1)))),
  ),
  (
    "chance",
    (0.7, (1, "1", (0, "4", won(0.5), won(-0.5)), (0, "5", won(1), won(-1)))),
    (0.3, (1, "2", (0, "4", won(1), won(-1)), (0, "5", won(0.5), won(-0.5)))),
  ),
)
THREE_ACTIONS = (
  "chance",
  (0.5, (0, "1", hidden("1", 1, -1), hidden("2", -1, 1), hidden("3", 1, 0))),
  (0.5, (0, "2", hidden("1", 0, 1), hidden("2", 1, -1), hidden("3", -1, 1))),
)
LARGE = (
  "chance",
  (0.5, (0, "1", hidden("1", 1e19, 1), hidden("2", -1, 0))),
  (0.5, (0, "2", hidden("1", -1, 1), hidden("2", 0, 1e19))),
)
# Of each infoset, what each action is played with. Where Gambit lists infosets it seems to be in the order of the
# tree: read so, 3 before 2, the list of STOC 94 is an equilibrium, read by numbers it is none.
EQUILIBRIA = {
  "STOC 94": (
    STOC_94,
    {"0:1": "0 1", "0:3": "2/3 1/3", "0:2": "1/3 2/3", "1:1": "5/6 1/6", "1:2": "5/9 4/9"},
  ),
  "stripped-down poker": (
    STRIPPED_DOWN_POKER,
    {"0:king": "1 0", "0:queen": "1/3 2/3", "1:facing a bet": "2/3 1/3"},
  ),
  "chance in the middle": (
    CHANCE_IN_THE_MIDDLE,
    {"0:1": "3/11 8/11", "1:1": "1 0", "1:2": "6/11 5/11"}
    | dict.fromkeys(["0:2", "0:3", "0:4", "0:5"], "1 0"),
  ),
  "three actions": (
    THREE_ACTIONS,
    {"0:1": "1/3 0 2/3", "0:2": "2/3 0 1/3", "1:1": "2/3 1/3", "1:2": "2/3 1/3", "1:3": "1/3 2/3"},
  ),
  "payoffs of 1e19": (
    LARGE,
    {"0:1": "1 0", "0:2": "1 0", "1:1": "0 1", "1:2": f"{10**19 - 1}/{10**19} 1/{10**19}"},
  ),
}


def policy(printed):
  rows = {infoset: map(Fraction, row.split()) for infoset, row in printed.items()}
  return {infoset: dict(enumerate(map(float, row))) for infoset, row in rows.items()}


@pytest.mark.parametrize("name", EQUILIBRIA)
def test_equilibria(name):
  tree, printed = EQUILIBRIA[name]
  game = tree_games.arrays(tree)
  assert spiel_cfr.nash_conv(game, policy(printed)) == pytest.approx(0, abs=1e-14)
  value = spiel_cfr.expected_values(game, policy(printed))[0]
  assert spiel_cfr.solve_lp(game).value == pytest.approx(value, rel=1e-12)
  low, high = spiel_cfr.solve(game, exploitability=1e-9, iterations=2_000).value_bounds
  assert low - 1e-12 <= value <= high + 1e-12


# Three players who move without seeing anything; nine equilibria, by what each plays its first action with.
COORDINATION = {
  (0, 0, 0): [9, 8, 12], (0, 1, 1): [3, 4, 6], (1, 0, 1): [3, 4, 6], (1, 1, 0): [9, 8, 2],
}  # fmt: skip
NINE = [
  "1/2 2/5 1/4", "2/5 1/2 1/3", "1/2 1/2 1", "1/3 1 1/4", "1 1 1", "1 0 0", "0 1/4 1/3", "0 1 0", "0 0 1",
]  # fmt: skip


@pytest.mark.parametrize("printed", NINE)
def test_three_players(printed):
  def below(moves):
    if len(moves) == 3:
      return COORDINATION.get(moves, [0, 0, 0])
    return (len(moves), "", below((*moves, 0)), below((*moves, 1)))

  chances = [float(Fraction(chance)) for chance in printed.split()]
  profile = {f"{player}:": {0: chance, 1: 1 - chance} for player, chance in enumerate(chances)}
  game = tree_games.arrays(below(()), 3)
  assert spiel_cfr.nash_conv(game, profile) == pytest.approx(0, abs=1e-14)


def test_long_lemke_howson_paths():
  """The only equilibrium of a bimatrix game in which the algorithm of Lemke and Howson takes long paths."""
  rows = [
    [-180, 72, -333, 297, -153, 270], [-30, 17, -33, 42, -3, 20], [-81, 36, -126, 126, -36, 90],
    [90, -36, 126, -126, 36, -81], [20, -3, 42, -33, 17, -30], [270, -153, 297, -333, 72, -180],
  ]  # fmt: skip
  columns = [
    [72, 36, 17, -3, -36, -153], [-180, -81, -30, 20, 90, 270], [297, 126, 42, -33, -126, -333],
    [-333, -126, -33, 42, 126, 297], [270, 90, 20, -30, -81, -180], [-153, -36, -3, 17, 36, 72],
  ]  # fmt: skip
  printed = {"0:": "1/30 1/6 3/10 3/10 1/6 1/30", "1:": "1/6 1/30 3/10 3/10 1/30 1/6"}
  payoffs = np.stack([rows, columns], axis=-1).tolist()
  game = tree_games.arrays((0, "", *((1, "", *row) for row in payoffs)))
  assert spiel_cfr.nash_conv(game, policy(printed)) == pytest.approx(0, abs=1e-12)


NO_RECALL = {
  "Wichardt": (
    (0, "2", hidden("1", 1, -1), hidden("1", -5, -5)),
    (0, "2", hidden("1", -5, -5), hidden("1", -1, 1)),
  ),
  "absent-minded driver": (
    (1, "1", (0, "1", [1, 1], (1, "2", [0, 2], [0, 5], [0, 6])), [0, 3]),
    [2, 0],
  ),
  "Selten's horse": ((1, "1", [1, 1], (0, "2", [4, 4], [0, 0])), (0, "2", [3, 2], [0, 0])),
}


@pytest.mark.parametrize("name", NO_RECALL)
def test_games_without_perfect_recall_are_refused(name):
  game = pyspiel.load_efg_game(tree_games.efg((0, "1", *NO_RECALL[name])))
  with pytest.raises(errors.ImperfectRecallError):
    spiel_cfr.compile_game(game)
