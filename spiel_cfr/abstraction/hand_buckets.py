"""Hand buckets: abstractions of poker in vector form, in which the hands of a bucket share a strategy.

Hands of a bucket share an infoset, see `Board.infoset_of_hand`. After a deal of public cards, hands are in one bucket
only if they were in one bucket before, so players remember their buckets, and recall is perfect. Every solver takes
the smaller game, and an iteration takes less time than on the whole game.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s
from spiel_cfr._util import arguments
from spiel_cfr.abstraction.buckets import checked_players
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.vector.layout import lay_out
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.hand_tree import hand_tree
from spiel_cfr.poker.merged_hands import map_hands
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.suit_symmetries import number_in_order


@dataclasses.dataclass(frozen=True, eq=False)
class HandBuckets:
  """Buckets of hands in poker in vector form. `hand_buckets` makes them.

  Attributes:
    labels: for each player and each board, int64 (hands,). The infoset of each hand, see `Board.infoset_of_hand`.
  """

  labels: tuple[list[Int64s], list[Int64s]]

  def only(self, game: CompiledGame, players: Iterable[int]) -> "HandBuckets":
    """Returns the same buckets for some players. Every hand of another player is its own bucket, on every board.

    Raises:
      ArgumentError: a player does not exist.
    """
    chosen = checked_players(game, players)
    labels = [
      [
        number_in_order(label if player in chosen else np.arange(len(label)))
        for label in self.labels[player]
      ]
      for player in PLAYERS
    ]
    return HandBuckets((labels[0], labels[1]))


def check_whole_public_game(game: CompiledGame) -> PublicGame:
  """Returns the game if it is poker in vector form and no abstraction.

  Raises:
    UnsupportedGameError: it is another game.
  """
  if not isinstance(game, PublicGame) or game.original is not game or game.tree.is_merged:
    raise errors.UnsupportedGameError(
      f"{game} is not a result of compile_public_game, or has merge_suits=True."
    )
  return game


def merge_hands(full: PublicGame, buckets: HandBuckets) -> PublicGame:
  """Returns the abstraction in which the hands of a bucket share a strategy.

  Raises:
    AbstractionError: the buckets belong to another game.
  """
  full_tree = full.tree
  sizes = [[len(board.hands[player]) for board in full_tree.boards] for player in PLAYERS]
  if [[len(labels) for labels in labels_of_player] for labels_of_player in buckets.labels] != sizes:
    raise errors.AbstractionError(f"The buckets are not of the boards and hands of {full}.")
  boards = [
    dataclasses.replace(board, infoset_of_hand=infosets)
    for board, infosets in zip(full_tree.boards, zip(*buckets.labels, strict=True), strict=True)
  ]
  tree = hand_tree(full_tree.deal, full_tree.nodes, boards)
  layout = lay_out(tree, full.num_threads is not None)
  hands_map = map_hands(full.layout, layout, np.arange(len(boards)), buckets.labels, is_exact=False)
  return PublicGame(full.view, tree, full.dtype, full.num_threads, full, hands_map)


def hand_buckets(game: PublicGame, labels: Sequence[Any]) -> HandBuckets:
  """Returns the hands of both players in buckets.

      equities = [hand_equities(game, player) for player in (0, 1)]
      small = abstract(game, hand_buckets(game, [k_means(equity, 20) for equity in equities]))

  Args:
    game: poker in vector form.
    labels: for each player, an array with an integer for each hand, in the order of `Board.hands`. If public cards are
      dealt: for each player, a list of such arrays, one for each board in `game.tree.boards`. Labels of different
      boards and players are unrelated.

  Raises:
    UnsupportedGameError: the game is not in vector form, or is an abstraction.
    ArgumentError: the labels are not integers, one for each hand.
  """
  check_whole_public_game(game)
  if not isinstance(labels, Sequence | np.ndarray) or len(labels) != len(PLAYERS):
    raise errors.ArgumentError(
      f"labels must be a list for each of two players, not {arguments.shortened(labels)}."
    )
  boards, buckets = game.tree.boards, []
  for player, labels_of_player in enumerate(labels):
    arrays = [labels_of_player] if len(boards) == 1 else labels_of_player
    if not isinstance(arrays, Sequence) or len(arrays) != len(boards):
      raise errors.ArgumentError(
        f"Public cards are dealt in this game: labels must be {len(boards)} arrays for a player, one for each board."
      )
    buckets_of_player: list[Int64s] = []
    for number, (board, array) in enumerate(zip(boards, arrays, strict=True)):
      bucket = number_in_order(checked_labels(array, len(board.hands[player])))
      if number:
        # Players remember their bucket on the board before the deal.
        hands_before = game.tree.infoset_offsets(player, board.parent, number)
        bucket_before = buckets_of_player[board.parent][hands_before]
        bucket = bucket_before * (1 + int(bucket.max(initial=0))) + bucket
      buckets_of_player.append(number_in_order(bucket))
    buckets.append(buckets_of_player)
  return HandBuckets((buckets[0], buckets[1]))


def checked_labels(labels: npt.ArrayLike, count: int, name: str = "labels") -> Int64s:
  """Returns labels as an array; raises ArgumentError unless they are `count` integers."""
  try:
    array = np.asarray(labels)
  except ValueError:  # rows of several lengths
    array = np.zeros(0)
  if array.shape != (count,) or array.dtype.kind not in "iu":
    raise errors.ArgumentError(
      f"{name} must be {count} integers for a board, one for each hand, not {array.dtype} of shape {array.shape}."
    )
  return array.astype(np.int64)
