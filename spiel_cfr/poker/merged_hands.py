"""Merged hands: the map from a poker game to one in which several boards, and several hands of a board, play alike."""

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
  places: Int64s,
  labels: Sequence[Sequence[Int64s]],
  *,
  is_exact: bool,
) -> AbstractionMap:
  """Returns the map from a game's sequences to those of a game with merged hands.

  Args:
    layout: the layout of the whole game, a `HandTree`.
    small: the layout of the game with merged hands.
    places: int64 (boards,). For each board, the number of its board in the game with merged hands.
    labels: for each player and each board, int64 (hands,). The infoset of each hand there, as in
      `Board.infoset_of_hand`.
    is_exact: as of `AbstractionMap`.
  """
  tree, merged = layout.tree, small.tree
  assert isinstance(tree, HandTree) and isinstance(merged, HandTree)
  sequences, copies = np.zeros((2, layout.roots[-1]), np.uint32)
  roots = layout.roots[: len(PLAYERS)]
  sequences[roots], copies[roots] = small.roots[: len(PLAYERS)], 1
  for number, place in enumerate(places.tolist()):
    for player in PLAYERS:
      for node in tree.decisions(player, number):
        own = layout.sequences(tree.node_at(number, node))
        first = small.row_starts(merged.node_at(place, node))
        sequences[own], copies[own] = first[:, None] + labels[player][number], 1
  return AbstractionMap(sequences, copies, is_exact)


def map_suits(layout: Layout, small: Layout) -> AbstractionMap:
  """Returns the map to the game with merged suits, from the layouts of the whole game and of that game."""
  tree, merged = layout.tree, small.tree
  assert isinstance(tree, HandTree) and isinstance(merged, HandTree)
  stands_for, classes = equal_hands(tree)
  number_of = {board.cards: number for number, board in enumerate(merged.boards)}
  places = np.array([number_of[tree.boards[number].cards] for number in stands_for.tolist()])
  return map_hands(layout, small, places, classes, is_exact=True)


def equal_hands(tree: HandTree) -> tuple[Int64s, tuple[list[Int64s], list[Int64s]]]:
  """Finds the boards and hands that symmetries of a game's deal map to each other.

  Returns:
    For each board, the number of the board that stands for it; and for each player and each board, the classes of its
    hands there, as in `Board.infoset_of_hand`.
  """
  found = symmetries(tree.deal)
  number_of = {board.cards: number for number, board in enumerate(tree.boards)}
  stands_for = np.zeros(len(tree.boards), np.int64)
  classes: tuple[list[Int64s], list[Int64s]] = ([], [])
  for number, board in enumerate(tree.boards):
    images = [number_of[_moved(symmetry, board.cards, tree.deal)] for symmetry in found]
    first = min(images)
    stands_for[number] = first
    pairs = zip(found, images, strict=True)
    to_first = [symmetry for symmetry, image in pairs if image == first]
    for player, own in enumerate(classes):
      hands = board.hands[player]
      # Equivalent hands have the same set of images, so the first image identifies their class.
      least = np.min([symmetry.hands[hands] for symmetry in to_first], axis=0)
      if first == number:
        own.append(number_in_order(least))
        continue
      before = tree.boards[first].hands[player]
      by_hand = np.argsort(before)
      places = by_hand[np.searchsorted(before, least, sorter=by_hand)]
      own.append(own[first][places])
  return stands_for, classes


def _moved(symmetry: Symmetry, board: tuple[int, ...], deal: Deal) -> tuple[int, ...]:
  """Returns the image of a board, the cards of each deal in ascending order."""
  ends = [0, *itertools.accumulate(deal.streets, initial=len(deal.board))]
  streets = [symmetry.moved(board[begin:end]) for begin, end in itertools.pairwise(ends)]
  return tuple(itertools.chain.from_iterable(streets))
