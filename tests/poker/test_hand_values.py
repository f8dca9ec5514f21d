"""Values of hands at public states: those of the evaluation by kernels, with any number of deals."""

import numpy as np
import poker_games
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.poker.betting_tree import NodeKind
from spiel_cfr.poker.hand_values import HandValues
from spiel_cfr.policies import forms

_START = "universal_poker(numPlayers=2,numSuits=3,"
_GAMES = {
  "one deal": "leduc_poker",
  "three suits": _START
  + "betting=limit,numRounds=3,blind=1 1,firstPlayer=1 1 1,numRanks=3,numHoleCards=1,"
  "numBoardCards=0 1 1,raiseSize=2 4 4,maxRaises=1 1 1)",
  "two hole cards, two cards at once": _START
  + "betting=nolimit,bettingAbstraction=fcpa,numRounds=3,blind=1 2,firstPlayer=2 1 1,numRanks=3,"
  "numHoleCards=2,numBoardCards=0 2 1,stack=5 9)",
}


def _random_policy(game, seed):
  rng = np.random.default_rng(seed)
  weights = rng.random(game.end) * (rng.random(game.end) > 0.25)
  return forms.behavioral_form(game, weights)


@pytest.mark.quick("*-one deal-False", "rake1-three suits-True")
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("name", _GAMES)
@pytest.mark.parametrize("rake", [None, spiel_cfr.poker.Rake(0.1, cap=1)])
def test_values_are_those_of_the_kernels(name, merged, rake):
  game = spiel_cfr.poker.compile_public_game(_GAMES[name], merge_suits=merged, rake=rake)
  policy = _random_policy(game, 1)
  found = evaluate(game, forms.sequence_form(game, policy), responses=True)
  values = HandValues(game.tree, game.layout, policy)
  first = values.board(0)
  scale = max(map(abs, game.payoff_range))
  np.testing.assert_allclose(
    first.expected_values()[0], found.expected_values, rtol=0, atol=1e-9 * scale
  )
  np.testing.assert_allclose(
    first.expected_values(best=True)[0], found.best_response_values, rtol=0, atol=1e-9 * scale
  )
  # A best response plays only its own best actions, wherever hands are possible.
  response = found.best_responses
  for board in range(len(game.tree.boards)):
    played = values.board(board)
    for node in game.tree.on_board(board, NodeKind.DECISION):
      player = game.tree.nodes[node].player
      taken = response[game.layout.sequences(game.tree.node_at(board, node))] > 0
      children = [played.street.position[child] for child in game.tree.nodes[node].children]
      best = played.best_counterfactual_values[player][children]
      assert (np.where(taken, best, -np.inf).max(axis=0) >= best.max(axis=0) - 1e-9 * scale).all()


@pytest.mark.quick("three suits")
@pytest.mark.parametrize("name", _GAMES)
def test_merged_suits_have_the_same_values_and_equities(name):
  whole, merged = (
    spiel_cfr.poker.compile_public_game(_GAMES[name], merge_suits=suits) for suits in (False, True)
  )
  values, of_merged = (
    HandValues(game.tree, game.layout, forms.uniform(game)) for game in (whole, merged)
  )
  numbers = {board.cards: number for number, board in enumerate(whole.tree.boards)}
  assert len(merged.tree.boards) < len(numbers)
  for number, board in enumerate(merged.tree.boards):
    found, expected = of_merged.board(number), values.board(numbers[board.cards])
    nodes = [
      node for node in found.street.nodes if merged.tree.nodes[node].kind is not NodeKind.SHOWDOWN
    ]
    for node in nodes:
      for player in (0, 1):
        # Hands of equal strength may come in another order.
        orders = [np.argsort(each.hands[player]) for each in (found, expected)]
        for name_of in ("values", "equity"):
          ours, theirs = (
            getattr(each, name_of)(player, node)[order]
            for each, order in zip((found, expected), orders, strict=True)
          )
          np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_sixteen_bits():
  """Steps of 1 / 65,535 are the policy up to rounding, at any number of actions."""
  game = spiel_cfr.poker.compile_public_game(poker_games.UNIVERSAL_POKER[0])
  policy = _random_policy(game, 2)
  steps = HandValues(game.tree, game.layout, np.rint(policy * 0xFFFF).astype(np.uint16))
  exact = HandValues(game.tree, game.layout, policy)
  for board in range(len(game.tree.boards)):
    for node in game.tree.on_board(board, NodeKind.DECISION):
      found, expected = (each.strategy(board, node) for each in (steps, exact))
      np.testing.assert_allclose(found.sum(axis=0), 1.0, atol=1e-15)
      np.testing.assert_allclose(found, expected, atol=4 / 0xFFFF)
  np.testing.assert_allclose(
    steps.board(0).expected_values(), exact.board(0).expected_values(), atol=1e-3
  )


def test_wrong_boards_and_nodes_are_named():
  game = spiel_cfr.poker.compile_public_game("leduc_poker")
  values = HandValues(game.tree, game.layout, forms.uniform(game))
  last = len(game.tree.boards) - 1
  for number in (last + 1, -1, 0.5, "As", None, True):
    with pytest.raises(errors.ArgumentError, match=f"board.* from 0 to {last}, not {number!r}"):
      values.board(number)
  board = values.board(np.int64(0))
  (chance, *_) = game.tree.on_board(0, NodeKind.CHANCE)
  other_street = values.board(1).street.nodes[0]
  for node in (-1, 1000, "check", other_street):
    for method in (board.strategy, board.action_values, board.best_actions):
      with pytest.raises(errors.ArgumentError, match=f"board 0, .* not {node!r}"):
        method(node)
  with pytest.raises(errors.ArgumentError, match="not a decision"):
    board.strategy(chance)
  with pytest.raises(errors.ArgumentError, match="player must be an integer from 0 to 1, not 2"):
    board.values(2, 0)
