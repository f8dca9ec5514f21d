"""Features of private hands in poker, from which `k_means` makes buckets.

The features are:

- equity: the probability to win the showdown, with a tie counted as half;
- opponent cluster hand strength (OCHS): the equities against clusters of the other player's hands (Johanson, Burch,
  Valenzano and Bowling, "Evaluating State-Space Abstractions in Extensive-Form Games", 2013);
- histograms of a hand before a deal of public cards: the distribution of the hand over clusters of hands after the
  deal. If the clusters are intervals of equity, these are histograms of equity (Johanson et al.). Clusters of features,
  made from the last board up, are potential-aware (Ganzfried and Sandholm, "Potential-Aware Imperfect-Recall
  Abstraction with Earth Mover's Distance in Imperfect-Information Games", 2014).

The hands of the other player are weighted by reach. Histograms are compared by the energy distance, see `k_means`. It
needs no linear program, and performs as well as the earth mover's distance of these papers.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.abstraction.hand_buckets import check_whole_public_game, checked_labels
from spiel_cfr.poker.boards import hand_pairs
from spiel_cfr.poker.hand_tree import HandTree
from spiel_cfr.poker.public_game import PublicGame


def hand_equities(
  game: PublicGame, player: int, clusters: npt.ArrayLike | None = None, *, board: int = 0
) -> Float64s:
  """Returns the equity of each hand of a player, against the hands of the other player weighted by their reach.

  Args:
    game: poker in vector form.
    player: the player.
    clusters: a label for each hand of the other player, to get the equity against each cluster (OCHS). If all hands of
      a cluster share a card with the player's hand, the equity is 1/2. None for a single cluster.
    board: a number in `game.tree.boards`. Before a deal of public cards, equity is the mean over the boards after it.

  Returns:
    float64 (hands, 1), or with `clusters` (hands, clusters). Hands are in the order of `Board.hands`.

  Raises:
    UnsupportedGameError: the game is not in vector form, or is an abstraction.
    ArgumentError: `player` or `board` does not exist, or `clusters` is not a label for each hand.
  """
  tree = check_whole_public_game(game).tree
  tree.require_one_deal("Hands have no features")
  player = arguments.integer(player, "player", 0, 1)
  board = arguments.integer(board, "board", 0, len(tree.boards) - 1)
  opponent_hands = tree.boards[board].hands[1 - player]
  cluster_of = np.zeros(len(opponent_hands), np.int64)
  if clusters is not None:
    cluster_of = checked_labels(clusters, len(opponent_hands), "clusters")
  cluster_of = np.unique(cluster_of, return_inverse=True)[1]
  # Shape (hands of the other player, clusters): 1 if the hand is in the cluster.
  membership = np.eye(int(cluster_of.max(initial=0)) + 1)[cluster_of]
  wins, total = np.zeros((2, len(tree.boards[board].hands[player]), membership.shape[1]))
  for number in [board] if board else range(1, len(tree.boards)) or [0]:
    # The numbers, on `board`, of the hands on the board at the showdown.
    hands, opponents = (
      tree.infoset_offsets(owner, board, number) for owner in (player, 1 - player)
    )
    wins_here, total_here = _wins(tree, player, number, membership[opponents])
    wins[hands] += wins_here
    total[hands] += total_here
  result: Float64s = np.divide(wins, total, out=np.full(total.shape, 0.5), where=total > 0)
  return result


def next_histograms(game: PublicGame, player: int, labels: Sequence[npt.ArrayLike]) -> Float64s:
  """Returns the distribution of each hand of a player over clusters of hands after the deal of public cards.

  Args:
    game: poker in vector form, in which public cards are dealt.
    player: the player.
    labels: the clusters. For each board after the first, in the order of `game.tree.boards`, an array with an integer
      from 0 for each hand of the player. A number means the same cluster on all boards.

  Returns:
    float64 (hands, clusters). Hands are in the order of the first board. Rows sum to 1.

  Raises:
    UnsupportedGameError: the game is not in vector form, is an abstraction, or deals no public cards.
    ArgumentError: `player` does not exist, or `labels` are not a label for each hand.
  """
  tree = check_whole_public_game(game).tree
  tree.require_one_deal("Hands have no features")
  player = arguments.integer(player, "player", 0, 1)
  later_boards = range(1, len(tree.boards))
  if not later_boards:
    raise errors.UnsupportedGameError(
      f"No public cards are dealt in {game}, so that hands do not change; hand_equities compares them."
    )
  arguments.of_type(labels, "labels", Sequence)
  hands = [board.hands[player] for board in tree.boards[1:]]
  clusters = [
    checked_labels(label, len(hands_here)) for label, hands_here in zip(labels, hands, strict=False)
  ]
  if len(labels) != len(hands) or any((cluster_of < 0).any() for cluster_of in clusters):
    raise errors.ArgumentError(
      f"labels must be {len(hands)} arrays of integers from 0, one for each board after the first."
    )
  num_clusters = 1 + max(int(cluster_of.max(initial=0)) for cluster_of in clusters)
  result: Float64s = np.zeros((len(tree.boards[0].hands[player]), num_clusters))
  for number, cluster_of in zip(later_boards, clusters, strict=True):
    all_hands = np.ones((len(tree.boards[number].hands[1 - player]), 1))
    reach = _wins(tree, player, number, all_hands)[1][:, 0]
    np.add.at(result, (tree.infoset_offsets(player, 0, number), cluster_of), reach)
  total: Float64s = result.sum(axis=1, keepdims=True)
  result = np.divide(result, total, out=np.full(result.shape, 1 / num_clusters), where=total > 0)
  return result


def equity_histograms(game: PublicGame, player: int, bins: int = 10) -> Float64s:
  """Returns the distribution of each hand of a player over equal intervals of equity after the deal of public cards.

  Args:
    game: poker in vector form, in which public cards are dealt.
    player: the player.
    bins: the number of intervals.

  Returns:
    float64 (hands, bins), see `next_histograms`.

  Raises:
    UnsupportedGameError: see `next_histograms`.
    ArgumentError: `player` does not exist, or `bins` is not positive.
  """
  bins = arguments.positive_integer(bins, "bins")
  tree = check_whole_public_game(game).tree
  labels: list[Int64s] = []
  for number in range(1, len(tree.boards)):
    equity = hand_equities(game, player, board=number)[:, 0]
    labels.append(np.minimum((equity * bins).astype(np.int64), bins - 1))
  # `next_histograms` omits the last intervals if no hand is in them.
  histograms = next_histograms(game, player, labels)
  return np.pad(histograms, ((0, 0), (0, bins - histograms.shape[1])))


def _wins(
  tree: HandTree, player: int, number: int, membership: Float64s
) -> tuple[Float64s, Float64s]:
  """Returns the reach of the hands that each hand of a player beats on a board, and of all hands that it can meet.

  Args:
    tree: the public tree.
    player: the player.
    number: the number of the board.
    membership: float64 (hands of the other player, clusters). 1 if the hand is in the cluster.

  Returns:
    Two arrays, both float64 (hands of the player, clusters). Ties count as half of a win.
  """
  opponent_hands = tree.boards[number].hands[1 - player]
  pairs = hand_pairs(tree.deal, tree.boards[number], player)
  reach = pairs.disjoint * tree.deal.reaches[1 - player][opponent_hands]
  return (reach * (1 + pairs.ahead) / 2) @ membership, reach @ membership
