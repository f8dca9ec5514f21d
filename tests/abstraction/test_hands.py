"""Buckets of hands in vector form, against the same buckets of the enumerated game."""

import numpy as np
import poker_games
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._numba.arrays import range_starts
from spiel_cfr.abstraction.buckets import make_buckets


@pytest.fixture(scope="module")
def endgame():
  """Two rounds of betting and a showdown, with hands of four ranks that may tie."""
  name = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 2,firstPlayer=1 1,numSuits=2,numRanks=4,"
    "numHoleCards=1,numBoardCards=0 0,raiseSize=2 2,maxRaises=1 2)"
  )
  return spiel_cfr.poker.compile_public_game(name), spiel_cfr.compile_game(name, vector_form=False)


def bucketed(game, labels):
  return spiel_cfr.abstraction.abstract(game, spiel_cfr.abstraction.hand_buckets(game, labels))


def _labels(vector, size):
  return [
    spiel_cfr.abstraction.k_means(spiel_cfr.abstraction.hand_equities(vector, player), size)
    for player in (0, 1)
  ]


def _same_buckets(vector, listed, labels):
  """Returns the buckets of the enumerated game: a bucket for the hands of a label after the same betting."""
  names, board = {}, vector.tree.boards[0]
  for player, own in enumerate(vector.infosets):
    for infostate, position in zip(own.infostates, own.position.tolist(), strict=True):
      names[infostate] = _place(vector, player, position, labels[player], board)
  return make_buckets(listed, names)


def _place(vector, player, position, labels, board):
  hands = len(board.hands[player])
  first = 0
  for group in vector.treeplexes[player].groups.astype(int).tolist():
    if first <= position < first + group[2]:
      return group[0], (position - first) // hands, int(labels[(position - first) % hands])
    first += group[2]
  raise AssertionError


@pytest.mark.parametrize("name", ["cfr+", "dcfr", "stable_predictive", "restarted", "cfr_br"])
def test_iterates_are_those_of_the_enumerated_game(endgame, name):
  vector, listed = endgame
  labels = _labels(vector, 2)
  small = bucketed(vector, labels)
  other = spiel_cfr.abstraction.abstract(listed, _same_buckets(vector, listed, labels))
  assert small.num_infosets == other.num_infosets
  assert other.shared_infosets is None
  found = spiel_cfr.catalogue.make(name, small, 30)
  expected = spiel_cfr.catalogue.make(name, other, 30)
  for solver in (found, expected):
    solver.run(30)
  scale = max(map(abs, vector.payoff_range))
  by_dict = spiel_cfr.nash_conv(listed, found.average_policy_dict())
  assert found.nash_conv() == pytest.approx(by_dict, abs=1e-9 * scale)
  if name in ("cfr+", "dcfr"):
    assert found.nash_conv() == pytest.approx(expected.nash_conv(), abs=1e-8 * scale)


def test_a_bucket_for_each_hand_loses_nothing(endgame):
  vector, _ = endgame
  hands = [np.arange(len(own)) for own in vector.tree.boards[0].hands]
  small = bucketed(vector, hands)
  found, expected = spiel_cfr.CFRPlusSolver(small), spiel_cfr.CFRPlusSolver(vector)
  for solver in (found, expected):
    solver.run(100)
  assert found.average_probabilities().tobytes() == expected.average_probabilities().tobytes()


def test_more_buckets_are_better(endgame):
  vector, _ = endgame
  losses = []
  for size in (1, 2, 4):
    solver = spiel_cfr.DCFRSolver(bucketed(vector, _labels(vector, size)))
    solver.run(500)
    losses.append(solver.exploitability())
  assert losses[0] > losses[1] > losses[2]
  sampling = spiel_cfr.ExternalSamplingSolver(bucketed(vector, _labels(vector, 2)), seed=1)
  sampling.run(100)
  assert sampling.num_infosets == bucketed(vector, _labels(vector, 2)).num_infosets


def test_equities(endgame):
  """Equities equal a count over all pairs of hands; the mean over clusters is the equity against all."""
  vector, _ = endgame
  board, deal = vector.tree.boards[0], vector.tree.deal
  for player in (0, 1):
    found = spiel_cfr.abstraction.hand_equities(vector, player)
    for index, hand in enumerate(board.hands[player].tolist()):
      won = total = 0.0
      for other, rival in enumerate(board.hands[1 - player].tolist()):
        if set(deal.hands[hand].tolist()) & set(deal.hands[rival].tolist()):
          continue
        weight = deal.reaches[1 - player, rival]
        mine, theirs = board.strengths[player][index], board.strengths[1 - player][other]
        total += weight
        won += weight * ((mine > theirs) + 0.5 * (mine == theirs))
      assert found[index, 0] == pytest.approx(won / total)
    apart = spiel_cfr.abstraction.hand_equities(
      vector, player, np.arange(len(board.hands[1 - player]))
    )
    assert apart.shape == tuple(
      len(hands) for hands in (board.hands[player], board.hands[1 - player])
    )
    assert set(np.unique(apart)) <= {0.0, 0.5, 1.0}


def test_refusals(endgame):
  vector, listed = endgame
  with pytest.raises(errors.UnsupportedGameError, match="compile_public_game"):
    bucketed(listed, [[0], [0]])
  with pytest.raises(errors.ArgumentError, match="integers"):
    bucketed(vector, [[0.5], [0]])
  turn = spiel_cfr.poker.compile_public_game(poker_games.UNIVERSAL_POKER[0])
  with pytest.raises(errors.ArgumentError, match="one for each board"):
    bucketed(turn, [[0], [0]])
  with pytest.raises(errors.UnsupportedGameError, match="hand_buckets"):
    spiel_cfr.abstraction.abstract(vector, {})
  made = spiel_cfr.abstraction.hand_buckets(vector, _labels(vector, 2))
  with pytest.raises(errors.AbstractionError, match="boards and hands"):
    spiel_cfr.abstraction.abstract(turn, made)
  with pytest.raises(errors.UnsupportedGameError, match="compile_public_game"):
    spiel_cfr.abstraction.abstract(listed, made)
  with pytest.raises(errors.UnsupportedGameError, match="compile_public_game"):
    spiel_cfr.abstraction.abstract(spiel_cfr.abstraction.abstract(vector, made), made)
  with pytest.raises(errors.ArgumentError, match="players must be"):
    spiel_cfr.abstraction.abstract(vector, made, players=(2,))
  with pytest.raises(errors.ArgumentError, match="a function"):
    make_buckets(vector, made)


def _river_labels(game, seed, size):
  """Random buckets of every board."""
  rng = np.random.default_rng(seed)
  return [
    [rng.integers(0, size, len(board.hands[player])) for board in game.tree.boards]
    for player in (0, 1)
  ]


def _same_buckets_by_name(vector, listed, made):
  """Returns the buckets of the enumerated game: of a board, a player's own betting and the hands of a label."""
  names = {}
  for player, own in enumerate(vector.infosets):
    first = own.action_sequences[range_starts(own.num_actions)].tolist()
    known = dict(zip(first, own.infostates, strict=True))
    for number, labels in enumerate(made.labels[player]):
      for node in vector.tree.decisions(player, number):
        for first, label in zip(
          vector.layout.sequences(vector.tree.node_at(number, node))[0].tolist(),
          labels.tolist(),
          strict=True,
        ):
          names[known[first]] = (number, node, label)
  return make_buckets(listed, names)


@pytest.mark.quick("0-False", "1-True")
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("index", range(len(poker_games.UNIVERSAL_POKER) - 1))
def test_buckets_before_and_after_public_cards(index, partitioned):
  """For any labels, the game equals the enumerated game with the same buckets and perfect recall."""
  name = poker_games.UNIVERSAL_POKER[index]
  vector = spiel_cfr.poker.compile_public_game(name, partitioned=partitioned)
  listed = spiel_cfr.compile_game(name, vector_form=False)
  made = spiel_cfr.abstraction.hand_buckets(vector, _river_labels(vector, index, 2))
  small = spiel_cfr.abstraction.abstract(vector, made)
  other = spiel_cfr.abstraction.abstract(listed, _same_buckets_by_name(vector, listed, made))
  assert other.shared_infosets is None
  assert small.num_infosets == other.num_infosets < vector.num_infosets
  found, expected = spiel_cfr.CFRPlusSolver(small), spiel_cfr.CFRPlusSolver(other)
  for solver in (found, expected):
    solver.run(30)
  scale = max(map(abs, vector.payoff_range))
  assert found.nash_conv() == pytest.approx(expected.nash_conv(), abs=1e-9 * scale)
  assert found.nash_conv() == pytest.approx(
    spiel_cfr.nash_conv(listed, found.average_policy_dict()), abs=1e-9 * scale
  )
  for own, theirs in zip(
    found._runtime.loop.arrays.root_values(),
    expected._runtime.loop.arrays.root_values(),
    strict=True,
  ):
    assert own == pytest.approx(theirs, abs=1e-9 * scale)
  lifted = spiel_cfr.abstraction.lift(small, found.average_policy())
  assert spiel_cfr.nash_conv(vector, lifted) == pytest.approx(found.nash_conv(), abs=1e-9 * scale)


def test_one_side_at_a_time(endgame):
  """The result equals that of the enumerated game with the same buckets, and the linear program's."""
  vector, listed = endgame
  labels = _labels(vector, 2)
  made = spiel_cfr.abstraction.hand_buckets(vector, labels)
  for solver in ("lp", "cfr+"):
    found = spiel_cfr.abstraction.least_exploitable(vector, made, iterations=200, solver=solver)
    expected = spiel_cfr.abstraction.least_exploitable(
      listed, _same_buckets(vector, listed, labels), iterations=200, solver=solver
    )
    assert found.exploitability == pytest.approx(expected.exploitability, abs=1e-8)
    assert spiel_cfr.exploitability(vector, found.policy) == pytest.approx(found.exploitability)
