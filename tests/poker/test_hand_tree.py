"""The public tree of hold'em takes public cards that are dealt several times, one after the other."""

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.boards import list_boards
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_tree import HandTree, hand_tree
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import walk_public_tree

# A card, then another one, from a deck of five.
_TWO_DEALS = (
  "universal_poker(betting=limit,numPlayers=2,numRounds=3,blind=1 2,firstPlayer=1 1 1,numSuits=1,numRanks=5,"
  "numHoleCards=1,numBoardCards=0 1 1,raiseSize=2 2 2,maxRaises=1 1 1)"
)


def _infostate(state, player):
  """Names infosets; OpenSpiel's own information states do not say in which order the public cards came."""
  first, second, *public = state.history()
  return f"{player} has {(first, second)[player]}: {public}"


@pytest.fixture(scope="module")
def view() -> GameView:
  return GameView(loading.load_game(_TWO_DEALS, names_infostates=False), infostate=_infostate)


@pytest.fixture(scope="module")
def tree(view: GameView) -> HandTree:
  deal = Deal(5, 1, np.arange(5)[:, None], np.ones((2, 5)))
  nodes = walk_public_tree(view, deal)
  return hand_tree(deal, nodes, list_boards(deal, nodes))


def test_boards_follow_boards(tree):
  assert [board.level for board in tree.boards] == [0] + 5 * [1] + 20 * [2]
  for board in tree.boards[1:]:
    before = tree.boards[board.parent]
    assert (board.cards[:-1], board.level - 1) == (before.cards, before.level)
  # Three cards are left for both hands, then two.
  assert tree.boards[1].probability == pytest.approx(1 / 3)
  assert tree.boards[-1].probability == pytest.approx(1 / 6)


def test_hands_are_found_on_all_boards_before(tree):
  last = len(tree.boards) - 1
  hands = tree.types[last][0]
  for before in (last, tree.boards[last].parent, 0):
    np.testing.assert_array_equal(tree.types[before][0][tree.lanes(0, before, last)], hands)
  assert not tree.lanes(0, -1, last).any()


@pytest.mark.parametrize("num_threads", [None, 2])
def test_iterates_are_those_of_the_list(view, tree, num_threads):
  vector = PublicGame(view, tree, np.float64, num_threads)
  listed = spiel_cfr.compile_game(_TWO_DEALS, infostate=_infostate, vector_form=False)
  assert list(vector.rows) == list(listed.rows)
  if num_threads:
    assert len(vector.partition.parts) == 1 + 20
  ours, theirs = (spiel_cfr.CFRPlusSolver(game) for game in (vector, listed))
  for solver in (ours, theirs):
    solver.run(20)
  found, expected = (
    each.compiled_game.to_actions(each.average_sequence_form()) for each in (ours, theirs)
  )
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
  assert ours.nash_conv() == pytest.approx(theirs.nash_conv(), abs=1e-9)
