"""Boards and hands in vector form that differ by suits alone."""

import functools
import itertools

import numpy as np
import poker_games
import pytest

import spiel_cfr
from spiel_cfr import policies
from spiel_cfr._numba.arrays import aligned_zeros
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.openspiel import game_view
from spiel_cfr.poker import ranges, suit_symmetries
from spiel_cfr.poker.betting_tree import walk_betting_tree
from spiel_cfr.poker.boards import list_boards
from spiel_cfr.poker.deal import find_deal
from spiel_cfr.poker.hand_tree import hand_tree
from spiel_cfr.poker.merged_hands import equal_hands

# Turn endgames: ranges, the board, how many rivers there are, and how many are left. Suits that can be renamed: all but
# spades, so that the rivers are 9 spades and 13 others; hearts and clubs; none; diamonds and clubs.
_ENDGAMES = {
  "monotone": ("AA,KQs,JTo:0.3", "QQ,A9s:0.5", "7s9s2sTs", 48, 22),
  "paired": ("AA,K9", "KQs,88", "7s9h9cTs", 48, 36),
  "rainbow": ("AA,KQ", "QQ,JJ", "7s9h2cTd", 48, 48),
  "one hand breaks it": ("AA,KQs,AhQh", "QQ,A9s", "7s9s2sTs", 48, 35),
}


@functools.cache
def _endgame(name):
  first, second, board, *_ = _ENDGAMES[name]
  return ranges.endgame(first, second, board=board, pot=200, stack=300).load()


@functools.cache
def _load(name, partitioned):
  """Returns the endgame with merged suits; its `original` is the whole game."""
  return spiel_cfr.poker.compile_public_game(
    _endgame(name),
    poker_games.check_or_pot,
    partitioned=partitioned,
    num_threads=1 + partitioned,
    merge_suits=True,
  )


@pytest.mark.parametrize("name", _ENDGAMES)
def test_rivers_that_are_equal_are_one(name):
  deal = find_deal(_endgame(name))
  nodes = walk_betting_tree(game_view.GameView(_endgame(name), poker_games.check_or_pot), deal)
  tree = hand_tree(deal, nodes, list_boards(deal, nodes))
  stands_for, classes = equal_hands(tree)
  *_, before, after = _ENDGAMES[name]
  assert (len(tree.boards) - 1, len(np.unique(stands_for)) - 1) == (before, after)
  for player, own in enumerate(classes):
    for board, labels in zip(tree.boards, own, strict=True):
      # Hands that are alike have the same ranks, the same suitedness and the same reach.
      hands = board.hands[player]
      cards = deal.hands[hands]
      same = np.column_stack(
        [cards // 4, cards[:, 0] % 4 == cards[:, 1] % 4, deal.reaches[player][hands]]
      )
      assert len(np.unique(np.column_stack([labels, same]), axis=0)) == len(np.unique(labels))


@pytest.mark.quick(except_for=["cfr+-True"])
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("solver", ["cfr+", "pcfr+"])
def test_iterates_are_those_of_the_full_game(partitioned, solver):
  """NashConv of the lifted policy equals that of the smaller game."""
  small = _load("monotone", partitioned)
  game = small.original
  assert small.is_exact
  assert small.num_infosets < game.num_infosets / 3
  found, expected = (spiel_cfr.catalogue.make(solver, each, 20) for each in (small, game))
  for each in (found, expected):
    each.run(20)
  scale = max(map(abs, game.payoff_range))
  for which in ("current", "average"):
    own, theirs = (getattr(each, f"{which}_sequence_form")() for each in (found, expected))
    np.testing.assert_allclose(small.to_original(own), theirs, atol=1e-10)
  in_full = evaluate.evaluate(game, small.to_original(found.average_sequence_form()))
  own = evaluate.evaluate(small, found.average_sequence_form())
  np.testing.assert_allclose(own.expected_values, in_full.expected_values, atol=1e-12 * scale)
  np.testing.assert_allclose(
    own.best_response_values, in_full.best_response_values, atol=1e-12 * scale
  )
  assert found.nash_conv() == pytest.approx(expected.nash_conv(), abs=1e-10 * scale)


def test_nothing_is_equal_where_reaches_differ():
  """Without symmetries the game is the same, bit for bit."""
  game, small = (
    spiel_cfr.poker.compile_public_game(
      poker_games.random_endgame(3, 8, "7s9s2sTs").load(),
      poker_games.check_or_pot,
      merge_suits=merged,
    )
    for merged in (False, True)
  )
  assert len(suit_symmetries.symmetries(game.tree.deal)) == 1
  assert small.num_infosets == game.num_infosets
  solvers = [spiel_cfr.CFRPlusSolver(each) for each in (small, game)]
  for solver in solvers:
    solver.run(10)
  found, expected = (solver.average_sequence_form() for solver in solvers)
  assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", poker_games.UNIVERSAL_POKER[::2])
def test_gradients_are_the_same_within_classes(name):
  """Symmetric strategies have symmetric gradients; all permutations of suits are symmetries here."""
  small = spiel_cfr.poker.compile_public_game(name, merge_suits=True)
  game, deal = small.original, small.tree.deal
  assert len(suit_symmetries.symmetries(deal)) == len(
    list(itertools.permutations(range(deal.num_suits)))
  )
  listed = spiel_cfr.abstraction.lossless_abstraction(
    spiel_cfr.compile_game(name, vector_form=False)
  )
  # Colors may find more: they need no permutation that does for all cards at once.
  assert listed.num_infosets <= small.num_infosets < game.num_infosets
  rng = np.random.default_rng(2)
  sums = np.zeros(small.end)
  sums[small.all_action_sequences] = rng.random(len(small.all_action_sequences))
  probabilities = policies.behavioral_form(small, sums)
  weights, full, utility, own = (
    aligned_zeros(small.end),
    aligned_zeros(game.end),
    aligned_zeros(game.end),
    aligned_zeros(small.end),
  )
  weights[:] = policies.sequence_form(small, probabilities)
  full[:] = small.to_original(weights)
  for player in range(2):
    game.payoff.gradient_into(player, full, utility)
    small.payoff.gradient_into(player, weights, own)
  cells, classes = game.all_action_sequences, small.all_action_sequences
  least, most = np.full(small.end, np.inf), np.full(small.end, -np.inf)
  np.minimum.at(least, classes, utility[cells])
  np.maximum.at(most, classes, utility[cells])
  used = np.unique(classes)
  np.testing.assert_allclose(least[used], most[used], atol=1e-12)
  # What a class is worth is what its hands are worth, on all boards that it stands for.
  sums = np.bincount(classes, utility[cells], small.end)
  np.testing.assert_allclose(own[used], sums[used], atol=1e-12)


def test_a_solution_is_one_of_the_whole_game():
  loaded = ranges.endgame("AA", "KK", board="7s9s2sTs", pot=200, stack=300).load()
  small = spiel_cfr.poker.compile_public_game(loaded, poker_games.check_or_pot, merge_suits=True)
  solution = spiel_cfr.solve(small, exploitability=1.0)
  full = small.original
  assert solution.compiled_game is full
  assert spiel_cfr.exploitability(full, solution.policy) == pytest.approx(solution.exploitability)
  restarted = spiel_cfr.RestartedCFRSolver(small)
  restarted.run(50)
  expected = evaluate.evaluate(full, small.to_original(restarted.average_sequence_form())).nash_conv
  assert restarted.nash_conv() == pytest.approx(expected, abs=1e-9)
