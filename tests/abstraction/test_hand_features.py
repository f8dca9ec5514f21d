"""Features of hands before public cards are dealt, and the distances between them."""

import numpy as np
import poker_games
import pytest
import scipy.stats

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.abstraction import clusters
from spiel_cfr.poker.boards import hand_pairs


@pytest.fixture(scope="module", params=[0, 2])
def game(request):
  return spiel_cfr.poker.compile_public_game(poker_games.UNIVERSAL_POKER[request.param])


def test_histograms_by_hand(game):
  """Features equal a loop over boards and pairs of hands; their mean is the equity."""
  boards, deal = game.tree.boards, game.tree.deal
  for player in (0, 1):
    bins = 4
    expected = np.zeros((len(boards[0].hands[player]), bins))
    mean = np.zeros(len(expected))
    place = {int(hand): index for index, hand in enumerate(boards[0].hands[player])}
    for number, board in list(enumerate(boards))[1:]:
      pairs = hand_pairs(deal, board, player)
      equity = spiel_cfr.abstraction.hand_equities(game, player, board=number)[:, 0]
      for lane, hand in enumerate(board.hands[player].tolist()):
        mass = (pairs.disjoint[lane] * deal.reaches[1 - player][board.hands[1 - player]]).sum()
        expected[place[hand], min(int(equity[lane] * bins), bins - 1)] += mass
        mean[place[hand]] += mass * equity[lane]
    total = expected.sum(axis=1)
    found = spiel_cfr.abstraction.equity_histograms(game, player, bins)
    np.testing.assert_allclose(found, expected / total[:, None], atol=1e-12)
    np.testing.assert_allclose(
      spiel_cfr.abstraction.hand_equities(game, player)[:, 0], mean / total, atol=1e-12
    )


def test_energy_distances():
  """Energy distances equal SciPy's on a line, and means over pairs of points elsewhere."""
  rng = np.random.default_rng(3)
  first, second = rng.dirichlet(np.full(5, 0.5), 2)
  for points in (rng.random((5, 1)), rng.random((5, 3))):
    ground = np.linalg.norm(points[:, None] - points, axis=2)
    found = np.linalg.norm((first - second) @ clusters._embed(ground, 5))
    expected = 2 * first @ ground @ second - first @ ground @ first - second @ ground @ second
    assert found**2 == pytest.approx(expected, abs=1e-12)
    if points.shape[1] == 1:
      line = points[:, 0]
      assert found == pytest.approx(scipy.stats.energy_distance(line, line, first, second))


def test_clusters_of_histograms():
  """Histograms that differ in neighboring bins stay together; Euclidean distances would part them."""
  points = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.1, 0.9]])
  places = np.array([0.0, 0.1, 5.0])
  ground = abs(places[:, None] - places)
  for seed in range(5):
    assert spiel_cfr.abstraction.k_means(points, 2, seed, ground=ground).tolist() in (
      [0, 0, 1, 1],
      [1, 1, 0, 0],
    )
  square = np.array([[0.0, 0.0], [0.0, 0.1], [5.0, 5.0]])
  apart = np.linalg.norm(square[:, None] - square, axis=2)
  found = spiel_cfr.abstraction.k_means(points, 2, 1, ground=apart)
  assert len(set(found[:2].tolist())) == len(set(found[2:].tolist())) == 1
  assert spiel_cfr.abstraction.k_means(points, 9, ground=ground).tolist() == [3, 2, 0, 1]


def test_refusals(game):
  river = spiel_cfr.poker.compile_public_game("kuhn_poker")
  with pytest.raises(errors.UnsupportedGameError, match="hand_equities"):
    spiel_cfr.abstraction.equity_histograms(river, 0)
  with pytest.raises(errors.ArgumentError, match="one for each hand"):
    spiel_cfr.abstraction.next_histograms(game, 0, [[0]])
  labels = [np.full(len(board.hands[0]), -1) for board in game.tree.boards[1:]]
  with pytest.raises(errors.ArgumentError, match="from 0"):
    spiel_cfr.abstraction.next_histograms(game, 0, labels)
  for ground in ([[0.0]], [[0.0, 1.0], [2.0, 0.0]], [[0, np.nan]] * 2):
    with pytest.raises(errors.ArgumentError, match="ground"):
      spiel_cfr.abstraction.k_means(np.eye(2), 1, ground=ground)
