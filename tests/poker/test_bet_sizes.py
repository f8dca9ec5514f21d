"""Bets as people write them, and endgames in hold'em with every size of bet."""

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import errors, poker
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.bet_grammar import Betting, Size
from spiel_cfr.poker.betting_tree import NodeKind, walk_betting_tree
from spiel_cfr.poker.deal import endgame_in_full_game
from spiel_cfr.poker.ranges import endgame

_RANGES = "AA,QQ,KQs:0.5", "TT,AQs,98s"


def _nodes(board="Td9d6hQc2s", pot=200, stack=900, **options):
  """Returns the betting by path, amounts as chips that a player has put in on the street."""
  sizes = options.pop("bets", "50%"), options.pop("raises", "")
  made = endgame(*_RANGES, board=board, pot=pot, stack=stack)
  game, deal = endgame_in_full_game(made)
  nodes = walk_betting_tree(GameView(game, poker.bet_sizes(*sizes, **options)), deal)
  half = pot // 2
  return {
    tuple(action - half if action > 1 else action for action in node.path): [
      action - half if action > 1 else action for action in node.actions
    ]
    for node in nodes
    if node.kind is NodeKind.DECISION
  }


@pytest.mark.parametrize(
  ("bets", "amounts"),
  [
    ("50%", [100]),
    ("33%, 75%", [66, 150]),
    ("112.5%,", [225]),
    ("100c, 250C", [100, 250]),
    ("a", [900]),
    # One street is left: all-in. Two: a share x of the pot with (1 + 2x)^2 = (200 + 1800) / 200.
    ("e", [900]),
    ("2e", [216]),
    ("3e", [115]),
    ("2e50%", [100]),
    # Below the smallest and above the largest.
    ("0%", [1]),
    ("1000%", [900]),
    ("", []),
    ("50%, 50%, 100c", [100]),
  ],
)
def test_first_bets(bets, amounts):
  assert _nodes(bets=bets)[()] == [1, *amounts]


@pytest.mark.parametrize(
  ("raises", "amounts"),
  [
    # A bet of 100 makes a pot of 400 after a call.
    ("50%", [300]),
    ("2.5x", [250]),
    ("60c", [200]),
    ("150c1r", [250]),
    ("a", [900]),
    ("2e", [347]),
    ("1.001x", [200]),
    ("", []),
  ],
)
def test_raises(raises, amounts):
  assert _nodes(raises=raises)[100,] == [0, 1, *amounts]


def test_a_cap_on_raises():
  nodes = _nodes(bets="50c", raises="50c2r")
  assert nodes[50,] == [0, 1, 100]
  assert nodes[50, 100] == [0, 1, 150]
  assert nodes[50, 100, 150] == [0, 1]


def test_thresholds():
  # All-in is 4.5 times the pot.
  assert _nodes(add_all_in=4.4)[()] == [1, 100]
  assert _nodes(add_all_in=4.5)[()] == [1, 100, 900]
  # After a bet of 600 and a call 300 are left in a pot of 1,400.
  assert _nodes(bets="300%", force_all_in=0.21)[()] == [1, 600]
  assert _nodes(bets="300%", force_all_in=0.22)[()] == [1, 900]
  # (1 + 1) / (1 + .9) = 1.053.
  assert _nodes(bets="50%, 90%, 100%", merge=0.05)[()] == [1, 100, 180, 200]
  assert _nodes(bets="50%, 90%, 100%", merge=0.06)[()] == [1, 100, 200]


def test_streets_players_and_donk_bets():
  nodes = _nodes(
    board="Td9d6hQc",
    bets={"turn": ("50%", "100%"), "river": "a"},
    donk={"river": "25%"},
  )
  assert nodes[()] == [1, 100]
  assert nodes[1,] == [1, 200]
  # OOP checks and calls a bet of 200, and has then a river of its own; it does not after its own bet was called.
  assert nodes[1, 200, 1, -1] == [1, 200 + 150]
  assert nodes[100, 1, -1] == [1, 900]
  assert nodes[1, 1, -1] == [1, 900]
  # IP has no donk bets.
  assert nodes[1, 200, 1, -1, 1] == [1, 900]


@pytest.mark.parametrize(
  ("options", "part"),
  [
    ({"bets": "33%, 75"}, r"'75', part 2 of '33%, 75'"),
    ({"bets": "+42%"}, r"'\+42%'"),
    ({"bets": "2.5x"}, "for raises"),
    ({"bets": "20c3r"}, "for raises"),
    ({"bets": ","}, "part 1"),
    ({"bets": "50%,,a"}, "part 2"),
    ({"raises": "1x"}, "more than 1x"),
    ({"raises": "12.3c"}, "12.3c"),
    ({"raises": "0c0r"}, "from 1 to 100"),
    ({"raises": "123c101r"}, "from 1 to 100"),
    ({"bets": "0e"}, "from 1 to 100"),
    ({"bets": "101e"}, "from 1 to 100"),
    ({"bets": "2.7e"}, "2.7e"),
    ({"donk": {"river": "x"}}, "donk: 'x'"),
    ({"bets": {"showdown": "a"}}, "'showdown'"),
    ({"bets": 0.5}, "bets must be a string"),
    ({"bets": ("a", "a", "a")}, "pair of strings"),
    ({"merge": -0.1}, "merge"),
  ],
)
def test_wrong_texts_are_errors_that_point_at_the_part(options, part):
  with pytest.raises(errors.ArgumentError, match=part):
    poker.bet_sizes(**{"bets": "50%"} | options)


@pytest.mark.quick("Td9d6hQc2s")
@pytest.mark.parametrize("board", ["Td9d6hQc2s", "Td9d6hQc"])
def test_endgames_in_hold_em_are_those_whose_blinds_make_the_pot(board):
  made = endgame(*_RANGES, board=board, pot=200, stack=900)
  games = [
    poker.compile_public_game(made.load(), poker.few_bets),
    poker.compile_public_game(made, poker.bet_sizes("50%, 100%, a", "100%, a")),
  ]
  values = []
  for game in games:
    solver = spiel_cfr.CFRPlusSolver(game)
    solver.run(10)
    values.append(evaluate(game, solver.average_sequence_form()))
  for name in ("expected_values", "best_response_values"):
    np.testing.assert_allclose(*(getattr(own, name) for own in values), rtol=0, atol=1e-9)


def test_policies_of_endgames_in_hold_em():
  made = endgame("AA,KK", "QQ,AK", board="Td9d6hQc2s", pot=200, stack=900)
  game = poker.compile_public_game(made, poker.bet_sizes("a"))
  listed = spiel_cfr.compile_game(
    made.load(),
    action_filter=lambda state, actions: [action for action in actions if action in (0, 1, 3)],
    vector_form=False,
  )
  solvers = [spiel_cfr.CFRPlusSolver(each) for each in (game, listed)]
  for solver in solvers:
    solver.run(50)
  assert len(game.table_rows) == len(listed.table_rows)
  assert solvers[0].nash_conv() == pytest.approx(solvers[1].nash_conv(), abs=1e-9)
  assert spiel_cfr.nash_conv(game, solvers[0].average_policy()) == pytest.approx(
    solvers[0].nash_conv(), abs=1e-9
  )


def test_chips_round_as_people_do():
  betting = Betting(
    pot_after_call=5, to_match=0, smallest=1, largest=100, num_bets=0, streets_left=1
  )
  assert betting.amount(Size("pot", 0.5)) == 3


@pytest.mark.parametrize(
  "game", ["leduc_poker", endgame(*_RANGES, board="Td9d6hQc2s", pot=2, stack=9).load()]
)
def test_games_without_every_size_of_bet_are_refused(game):
  with pytest.raises(errors.UnsupportedGameError, match="every size of bet"):
    poker.compile_public_game(game, poker.bet_sizes("50%"))
