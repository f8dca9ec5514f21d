"""`PublicGame.infostates_at`: the names of a decision's infosets, given the moves before it."""

import pytest

import spiel_cfr
from spiel_cfr import errors, poker
from spiel_cfr.poker import ranges
from spiel_cfr.poker.betting_tree import NodeKind


def _turn():
  """Returns a turn endgame with suits that can be merged."""
  endgame = ranges.endgame("KK,AA", "QQ,Ah2h", board="2s3s4c5d", pot=200, stack=300)
  return endgame, poker.bet_sizes("a", "a")


def _moves_to(game, number, node):
  """Returns the moves to a decision, cards as strings, read from the tree's edges."""
  tree, child, moves = game.tree, game.tree.node_at(number, node), []
  while child:
    edge = int(tree.edge_above[child])
    above = int(tree.node_of_edge[edge])
    taken = tree.moves(edge)
    if tree.player[above] >= 0:
      moves[:0] = taken
    else:
      cards = (poker.cards.card_name(card, tree.deal.num_suits) for card in taken)
      moves.insert(0, "".join(cards))
    child = above
  return moves


@pytest.mark.parametrize("name", ["leduc", "turn"])
@pytest.mark.parametrize("merge_suits", [False, True])
def test_names_at_all_decisions_are_those_of_the_game(name, merge_suits):
  game, sizes = _turn() if name == "turn" else ("leduc_poker", None)
  compiled = poker.compile_public_game(game, sizes, merge_suits=merge_suits)
  tree, found = compiled.original.tree, []
  for number in range(len(tree.boards)):
    for node in tree.on_board(number, NodeKind.DECISION):
      names = compiled.infostates_at(_moves_to(compiled.original, number, node))
      found += names.values()
      for hand, infostate in names.items() if name == "turn" else ():
        assert f"[Private: {hand}]" in infostate
  assert sorted(found) == sorted(compiled.table_rows)


def test_a_decision_of_a_turn_is_locked():
  endgame, sizes = _turn()
  solver = spiel_cfr.DCFRSolver(poker.compile_public_game(endgame, sizes))
  names = solver.compiled_game.infostates_at([1, 1, "7h"])
  # Aces and kings; each has six combos.
  assert list(names)[:2] == ["AsAh", "AsAd"] and len(names) == 12
  solver.lock({names[hand]: {1: 0.25, 400: 0.75} for hand in names if hand[0] == "K"})
  solver.run(20)
  policy = solver.average_policy_dict()
  assert policy[names["KsKh"]] == pytest.approx({1: 0.25, 400: 0.75})
  assert policy[names["AsAh"]] != pytest.approx({1: 0.25, 400: 0.75})


@pytest.mark.parametrize(
  ("moves", "message"),
  [
    ([7], r"7 is not possible after \[\]; the actions there are \[1, 400\]"),
    (["2c"], "'2c' is not possible after"),
    ([1, 1], "no player decides after them; chance deals 1 public card"),
    ([1, 1, 0], "0 is not possible after .* give them as a string"),
    ([1, 1, "2s"], "'2s' is not possible after"),
    ([1, 1, "7h8h"], "'7h8h' is not possible after"),
    ([1, 1, "hello"], "not a card"),
    ([400, 0], "no player decides after them; the hand ends there"),
    ([400, 0, 1], "1 is not possible after"),
    (1, "moves"),
  ],
)
def test_moves_that_lead_nowhere_are_refused(moves, message):
  game = poker.compile_public_game(*_turn())
  with pytest.raises(errors.ArgumentError, match=message):
    game.infostates_at(moves)


def test_a_merged_game_without_names_says_so(monkeypatch):
  monkeypatch.setattr(poker.public_game, "MOST_NAMES", 100)
  game = poker.compile_public_game("leduc_poker", merge_suits=True)
  with pytest.raises(errors.UnsupportedGameError, match="merge_suits"):
    game.infostates_at([1])
