"""Features of private hands, given the range of hands of the other player.

- equity: the probability to win the showdown, a tie counting as half;
- equities against clusters of the other player's hands (opponent cluster hand strength, OCHS: Johanson, Burch,
  Valenzano and Bowling, "Evaluating State-Space Abstractions in Extensive-Form Games", 2013);
- histograms of hands before a deal of public cards: the distribution over clusters of hands after it. Clusters of
  intervals of equity give histograms of equity (Johanson et al.). Clusters of features, made from the last board up,
  are potential-aware (Ganzfried and Sandholm, "Potential-Aware Imperfect-Recall Abstraction with Earth Mover's Distance
  in Imperfect-Information Games", 2014).

Histograms are compared by the energy distance, see `k_means`. It needs no linear program, and serves as well as the
earth mover's distance of these papers.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.abstraction.hand_buckets import check_whole_public_game
from spiel_cfr.poker.boards import hand_pairs
from spiel_cfr.poker.hand_tree import HandTree
from spiel_cfr.poker.public_game import PublicGame


def hand_equities(
  game: PublicGame, player: int, clusters: npt.ArrayLike | None = None, *, board: int = 0
) -> Float64s:
  """Returns the equity of each of a player's hands, against the other player's hands weighted by their reach.

  Args:
    game: poker in vector form.
    player: the player.
    clusters: a label for each of the other player's hands, for the equity against each cluster (OCHS). It is 1/2
      against a cluster whose hands all share a card with the player's.
    board: a number in `game.tree.boards`. On the first board, if public cards are to come, all of them are averaged.

  Returns:
    float64 (hands, 1), or (hands, clusters); hands in the order of `Board.hands`.

  Raises:
    UnsupportedGameError: the game is not in vector form, or an abstraction.
    ArgumentError: `player` or `board` does not exist, or there is not a label for each hand.
  """
  tree = check_whole_public_game(game).tree
  tree.require_one_deal("No features of hands")
  player = arguments.integer(player, "player", 0, 1)
  board = arguments.integer(board, "board", 0, len(tree.boards) - 1)
  others = tree.boards[board].hands[1 - player]
  which = np.zeros(len(others), np.int64)
  if clusters is not None:
    which = arguments.numbers(clusters, "clusters", len(others))
  if which.shape != others.shape or which.dtype.kind not in "iu":
    raise errors.ArgumentError(f"clusters must be {len(others)} integers, one for each hand.")
  which = np.unique(which, return_inverse=True)[1]
  groups = np.eye(int(which.max(initial=0)) + 1)[which]
  later = range(1, len(tree.boards))
  if board or not later:
    won, mass = _won(tree, player, board, groups)
  else:
    won, mass = np.zeros((2, len(tree.boards[0].hands[player]), groups.shape[1]))
    for number in later:
      own, other = (tree.infoset_places(owner, 0, number) for owner in (player, 1 - player))
      there = _won(tree, player, number, groups[other])
      won[own] += there[0]
      mass[own] += there[1]
  result: Float64s = np.divide(won, mass, out=np.full(mass.shape, 0.5), where=mass > 0)
  return result


def next_histograms(game: PublicGame, player: int, labels: Sequence[npt.ArrayLike]) -> Float64s:
  """Returns the distribution of each of a player's hands over clusters of hands after the deal of public cards.

  Args:
    game: poker in vector form, in which public cards are dealt.
    player: the player.
    labels: for each board after the first, in the order of `game.tree.boards`, an integer from 0 for each hand of the
      player there. The same number is the same cluster on all boards.

  Returns:
    float64 (hands, clusters); hands in the order of the first board's. Rows sum to 1.

  Raises:
    UnsupportedGameError: the game is not in vector form, or an abstraction, or no public cards are dealt.
    ArgumentError: `player` does not exist, or there is not a label for each hand.
  """
  tree = check_whole_public_game(game).tree
  tree.require_one_deal("No features of hands")
  player = arguments.integer(player, "player", 0, 1)
  later = range(1, len(tree.boards))
  if not later:
    raise errors.UnsupportedGameError(
      f"No public cards are dealt in {game}, so that hands do not change; hand_equities compares them."
    )
  arguments.of_type(labels, "labels", Sequence)
  given = [np.asarray(own) for own in labels]
  sizes = [tree.boards[number].hands[player].shape for number in later]
  if [own.shape for own in given] != sizes or any(
    own.dtype.kind not in "iu" or own.min(initial=0) < 0 for own in given
  ):
    raise errors.ArgumentError(
      f"labels must be integers from 0 for {len(sizes)} boards, one for each hand that player {player} may hold there."
    )
  clusters = 1 + max(int(own.max(initial=0)) for own in given)
  result: Float64s = np.zeros((len(tree.boards[0].hands[player]), clusters))
  for number, own in zip(later, given, strict=True):
    others = np.ones((len(tree.boards[number].hands[1 - player]), 1))
    mass = _won(tree, player, number, others)[1][:, 0]
    np.add.at(result, (tree.infoset_places(player, 0, number), own), mass)
  total: Float64s = result.sum(axis=1, keepdims=True)
  result = np.divide(result, total, out=np.full(result.shape, 1 / clusters), where=total > 0)
  return result


def equity_histograms(game: PublicGame, player: int, bins: int = 10) -> Float64s:
  """Returns `next_histograms` of a player's hands, shape (hands, bins), by equal intervals of equity.

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
  # The last intervals may have no hand on any board.
  found = next_histograms(game, player, labels)
  return np.pad(found, ((0, 0), (0, bins - found.shape[1])))


def _won(tree: HandTree, player: int, number: int, groups: Float64s) -> tuple[Float64s, Float64s]:
  """Returns what each hand wins of each group of the other's hands on a board, and what it could win at most.

  Hands of the other player are weighted by reach.
  """
  others = tree.boards[number].hands[1 - player]
  pairs = hand_pairs(tree.deal, tree.boards[number], player)
  weight = pairs.apart * tree.deal.reaches[1 - player][others]
  return (weight * (1 + pairs.ahead) / 2) @ groups, weight @ groups
