"""Hand buckets: poker in vector form in which hands of a bucket play alike.

Boards that differ only by suits may be one. A board that stands for others counts as often as there are such boards.
Hands of a bucket share an infoset, see `Board.infoset_of_hand`. Players remember the buckets that they have been in:
after a deal of public cards, hands stay together only if they were in one bucket before. Recall is therefore perfect.
Every solver takes the game, and iterations take less time than those of the whole game.
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
  """Buckets of hands and of boards in a poker game in vector form. `hand_buckets` and `lossless` make them.

  Attributes:
    stands_for: int64 (boards,). The number of the board that stands for each; its own number if none does.
    labels: for each player and each board, int64 (hands,). The infoset of each hand at the decisions of the board that
      stands for its board, see `Board.infoset_of_hand`.
    is_lossless: bool. As of `Buckets`.
  """

  stands_for: Int64s
  labels: tuple[list[Int64s], list[Int64s]]
  is_lossless: bool = False

  def only(self, game: CompiledGame, players: Iterable[int]) -> "HandBuckets":
    """Returns the same buckets for some players; the other player's hands all stay apart, on every board.

    Raises:
      ArgumentError: a player does not exist.
    """
    chosen = checked_players(game, players)
    labels = [
      [
        number_in_order(own if player in chosen else np.arange(len(own)))
        for own in self.labels[player]
      ]
      for player in PLAYERS
    ]
    boards = np.arange(len(self.stands_for))
    return HandBuckets(boards, (labels[0], labels[1]), self.is_lossless)


def check_whole_public_game(game: CompiledGame) -> PublicGame:
  """Returns a game in vector form that is no abstraction; raises UnsupportedGameError for any other."""
  if not isinstance(game, PublicGame) or game.original is not game or game.tree.is_merged:
    raise errors.UnsupportedGameError(
      f"{game} is not a result of compile_public_game, or has merge_suits=True."
    )
  return game


def merge_hands(full: PublicGame, buckets: HandBuckets) -> PublicGame:
  """Returns the game in which hands of a bucket play alike; raises AbstractionError for another game's buckets."""
  before = full.tree
  sizes = [[len(board.hands[player]) for board in before.boards] for player in PLAYERS]
  if [[len(board) for board in own] for own in buckets.labels] != sizes:
    raise errors.AbstractionError(f"The buckets are not of the boards and hands of {full}.")
  numbers, counts = np.unique(buckets.stands_for, return_counts=True)
  boards = [
    dataclasses.replace(
      before.boards[number],
      probability=before.boards[number].probability * count,
      infoset_of_hand=(buckets.labels[0][number], buckets.labels[1][number]),
      parent=int(np.searchsorted(numbers, buckets.stands_for[before.boards[number].parent])),
    )
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
  ]
  tree = hand_tree(before.deal, before.nodes, boards)
  layout = lay_out(tree, full.num_threads is not None)
  places = np.searchsorted(numbers, buckets.stands_for)
  made = map_hands(full.layout, layout, places, buckets.labels, is_exact=buckets.is_lossless)
  return PublicGame(full.view, tree, full.dtype, full.num_threads, full, made)


def hand_buckets(game: PublicGame, labels: Sequence[Any]) -> HandBuckets:
  """Puts hands into buckets.

      equity = [hand_equities(game, player) for player in (0, 1)]
      small = abstract(game, hand_buckets(game, [k_means(own, 20) for own in equity]))

  Args:
    game: poker in vector form.
    labels: for each player, an integer for each hand, in the order of `Board.hands`. If public cards are dealt: for
      each player, a list of these, one for each of `game.tree.boards`. Labels of different boards and players are
      unrelated.

  Raises:
    UnsupportedGameError: the game is not in vector form, or an abstraction itself.
    ArgumentError: the labels are not integers, one for each hand.
  """
  check_whole_public_game(game)
  if not isinstance(labels, Sequence | np.ndarray) or len(labels) != len(PLAYERS):
    raise errors.ArgumentError(
      f"labels must be a list for each of two players, not {arguments.shortened(labels)}."
    )
  boards, made = game.tree.boards, []
  for player, given in enumerate(labels):
    arrays = [given] if len(boards) == 1 else given
    if not isinstance(arrays, Sequence) or len(arrays) != len(boards):
      raise errors.ArgumentError(
        f"Public cards are dealt in this game: labels must be {len(boards)} arrays for a player, one for each board."
      )
    own: list[Int64s] = []
    for number, (board, array) in enumerate(zip(boards, arrays, strict=True)):
      bucket = _checked(array, len(board.hands[player]))
      if number:
        # Players remember the bucket before.
        above = own[board.parent][game.tree.infoset_places(player, board.parent, number)]
        bucket = above * (1 + int(bucket.max(initial=0))) + bucket
      own.append(number_in_order(bucket))
    made.append(own)
  return HandBuckets(np.arange(len(boards)), (made[0], made[1]))


def _checked(labels: npt.ArrayLike, count: int) -> Int64s:
  array = np.asarray(labels)
  if array.shape != (count,) or array.dtype.kind not in "iu":
    raise errors.ArgumentError(
      f"labels must be {count} integers for a board, not {array.dtype} of shape {array.shape}."
    )
  return number_in_order(array.astype(np.int64))
