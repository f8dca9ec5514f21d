"""Maps from a poker game to one with merged hands, by suit isomorphism or by buckets of hands."""

import itertools
from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.games.compiled.abstraction_map import AbstractionMap
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_tree import HandTree
from spiel_cfr.poker.suit_symmetries import Symmetry, number_in_order, symmetries


def map_hands(
  layout: Layout,
  small: Layout,
  board_map: Int64s,
  infosets: Sequence[Sequence[Int64s]],
  *,
  is_exact: bool,
) -> AbstractionMap:
  """Returns the map from a game's sequences to those of a game with merged hands.

  Args:
    layout: the layout of the whole game, whose tree is a `HandTree`.
    small: the layout of the game with merged hands.
    board_map: int64 (boards,). The board of the merged game that represents each board.
    infosets: for each player and each board, int64 (hands,). The infoset of each hand in the merged game, as in
      `Board.infoset_of_hand`.
    is_exact: `AbstractionMap.is_exact`.
  """
  tree, merged = _hand_tree(layout), _hand_tree(small)
  # Each sequence of the whole game has the multiplicity 1, because different actions are not merged.
  sequences, multiplicity = np.zeros((2, layout.roots[-1]), np.uint32)
  roots = layout.roots[: len(PLAYERS)]
  sequences[roots], multiplicity[roots] = small.roots[: len(PLAYERS)], 1
  for board, merged_board in enumerate(board_map.tolist()):
    for player in PLAYERS:
      for node in tree.decisions(player, board):
        here = layout.sequences(tree.node_at(board, node))
        row_starts = small.row_starts(merged.node_at(merged_board, node))
        sequences[here] = row_starts[:, None] + infosets[player][board]
        multiplicity[here] = 1
  return AbstractionMap(sequences, multiplicity, is_exact)


def map_suits(layout: Layout, small: Layout) -> AbstractionMap:
  """Returns the map from a whole game to the game with merged suits, given both layouts."""
  tree, merged = _hand_tree(layout), _hand_tree(small)
  representatives, classes = equal_hands(tree)
  number_of = {board.cards: number for number, board in enumerate(merged.boards)}
  board_map = np.array([number_of[tree.boards[board].cards] for board in representatives.tolist()])
  return map_hands(layout, small, board_map, classes, is_exact=True)


def _hand_tree(layout: Layout) -> HandTree:
  """Returns the tree of a layout of a poker game."""
  assert isinstance(layout.tree, HandTree)
  return layout.tree


def equal_hands(tree: HandTree) -> tuple[Int64s, tuple[list[Int64s], list[Int64s]]]:
  """Finds isomorphic boards and hands: those that a symmetry of the suits maps to each other.

  Returns:
    For each board, the number of the board that represents it; and for each player and each board, the classes of its
    hands, as in `Board.infoset_of_hand` of the representative.
  """
  all_symmetries = symmetries(tree.deal)
  number_of = {board.cards: number for number, board in enumerate(tree.boards)}
  representatives = np.zeros(len(tree.boards), np.int64)
  classes: tuple[list[Int64s], list[Int64s]] = ([], [])
  for number, board in enumerate(tree.boards):
    images = [number_of[_image(symmetry, board.cards, tree.deal)] for symmetry in all_symmetries]
    first_board = min(images)
    representatives[number] = first_board
    pairs = zip(all_symmetries, images, strict=True)
    to_first_board = [symmetry for symmetry, image in pairs if image == first_board]
    for player, classes_of_player in enumerate(classes):
      hands = board.hands[player]
      # Isomorphic hands have the same set of images, so the first image identifies their class.
      first_image = np.min([symmetry.hands[hands] for symmetry in to_first_board], axis=0)
      if first_board == number:
        classes_of_player.append(number_in_order(first_image))
        continue
      hands_there = tree.boards[first_board].hands[player]
      by_hand = np.argsort(hands_there)
      positions = by_hand[np.searchsorted(hands_there, first_image, sorter=by_hand)]
      classes_of_player.append(classes_of_player[first_board][positions])
  return representatives, classes


def _image(symmetry: Symmetry, board: tuple[int, ...], deal: Deal) -> tuple[int, ...]:
  """Returns the image of a board under a symmetry, the cards of each deal in ascending order."""
  ends = [0, *itertools.accumulate(deal.streets, initial=len(deal.board))]
  streets = [symmetry.moved(board[begin:end]) for begin, end in itertools.pairwise(ends)]
  return tuple(itertools.chain.from_iterable(streets))
