"""Poker in vector form in which hands of a bucket play alike, and boards that are equal but for suits.

Where boards stand for others, a board counts as often as there are such; hands of a bucket have one infoset together,
see `poker.hand_layout`. Players remember the buckets that they have been in: after a deal of public cards, hands stay
together if they are in one bucket there and were in one before. So recall is perfect, every solver takes the game, and
iterations take less time than those of the whole game.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.abstraction.buckets import Buckets, checked_players, identity, shared_entries
from spiel_cfr.abstraction.suit_symmetries import number_in_order
from spiel_cfr.games.compiled.compiled_game import CompiledGame, Infosets
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS
from spiel_cfr.poker.boards import Board
from spiel_cfr.poker.hand_infosets import places
from spiel_cfr.poker.hand_layout import Layout
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import CompiledTabularPolicy, open_spiel


@dataclasses.dataclass(frozen=True, eq=False)
class HandBuckets:
  """Which hands play alike in a poker game in vector form, and which boards. `hand_buckets` and `lossless` make them.

  Attributes:
    stands_for: int64 of shape (boards,): which board stands for each, by number; itself, unless boards are equal.
    labels: per player, for each board int64 of shape (hands,): the infoset that each hand has at the decisions of the
      board that stands for it, see `Board.classes`.
    is_lossless: see `Buckets`.
  """

  stands_for: Int64s
  labels: tuple[list[Int64s], list[Int64s]]
  is_lossless: bool = False

  def check_fit(self, game: CompiledGame) -> None:
    """Makes sure that these are buckets of a game.

    Raises:
      UnsupportedGameError: the game is not in vector form, or an abstraction itself.
      AbstractionError: they are of another game.
    """
    found = [[len(board) for board in own] for own in self.labels]
    boards = check_whole_public_game(game).layout.boards
    sizes = [[len(board.hands[player]) for board in boards] for player in PLAYERS]
    if found != sizes:
      raise errors.AbstractionError(f"The buckets are not of the boards and hands of {game}.")

  def only(self, game: CompiledGame, players: Iterable[int]) -> "HandBuckets":
    """Returns the same buckets for some players, while all hands of the other stay apart, on every board.

    Raises:
      ArgumentError: there is no such player.
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
  """Returns a game that hands are told apart in.

  Raises:
    UnsupportedGameError: the game is not in vector form, or an abstraction itself.
  """
  if not isinstance(game, PublicGame) or game.original is not game:
    raise errors.UnsupportedGameError(f"{game} is not what compile_public_game returns.")
  return game


class BucketedHands(PublicGame):
  """A poker game in vector form in which hands of a bucket play alike. Make one with `abstract`.

  It names the infosets of the full game, so that solvers hand out policies of the full game.

  Attributes:
    full: the game in which all boards and hands are told apart.
    buckets: which of them play alike.
  """

  def __init__(self, full: PublicGame, buckets: HandBuckets) -> None:
    """Lays out the boards that stand for all.

    Raises:
      UnsupportedGameError: the game is an abstraction itself.
      AbstractionError: the buckets are of another game.
    """
    buckets.check_fit(full)
    before = full.layout
    numbers, counts = np.unique(buckets.stands_for, return_counts=True)
    boards = []
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
      old = before.boards[number]
      classes = buckets.labels[0][number], buckets.labels[1][number]
      boards.append(
        Board(old.cards, old.level, old.probability * count, old.hands, old.strengths, classes)
      )
    layout = Layout(before.deal, before.nodes, boards)
    super().__init__(full.view, layout, full.dtype, full.num_threads)
    self.full, self.buckets = full, buckets
    self._board = np.searchsorted(numbers, buckets.stands_for)

  @property
  def original(self) -> CompiledGame:
    """The full game."""
    return self.full

  @property
  def is_exact(self) -> bool:
    """Whether the buckets lose nothing."""
    return self.buckets.is_lossless

  @property
  def num_buckets(self) -> int:
    """How many strategies there are to choose."""
    return self.num_infosets

  @property
  def size(self) -> str:
    """Infosets here, and in the full game."""
    merged = " + ".join(f"{treeplex.num_infosets:,}" for treeplex in self.treeplexes)
    return f"{merged} infosets for {self.full.size}"

  def _pairs(self) -> Iterator[tuple[Int64s, Int64s]]:
    """Yields sequences of the full game, and those that they are here."""
    before, here = self.full.layout, self.layout
    yield np.array(before.roots[:2]), np.array(here.roots[:2])
    for number, board in enumerate(self._board.tolist()):
      for player in PLAYERS:
        for node in before.decisions(player, number):
          rows = np.arange(len(before.nodes[node].actions))[:, None] * here.strides[board, node]
          classes = self.buckets.labels[player][number]
          yield before.sequences(number, node), here.starts[board, node] + rows + classes

  def to_original(self, sequence_form: Float64s) -> Float64s:
    """Plays at every board and hand what the one that stands for it plays."""
    result = np.zeros(self.full.end)
    for sequences, own in self._pairs():
      result[sequences] = sequence_form[own]
    return result

  def from_original(self, probabilities: Float64s) -> Float64s:
    """Returns behavioural form of the full game, the same wherever hands play alike, as that of this game."""
    result = np.zeros(self.end)
    for sequences, own in self._pairs():
      result[own] = probabilities[sequences]
    return result

  def from_actions(self, entries: Float64s) -> Float64s:
    """Returns behavioural form: of infosets that play alike, what the first of them does."""
    result = np.zeros(self.end)
    # What is written last counts.
    result[self.all_action_sequences[::-1]] = entries[::-1]
    return result

  @functools.cached_property
  def _sequences(self) -> Int64s:
    """For each sequence of the full game, what it is here; shape (sequences,)."""
    result = np.zeros(self.full.end, np.int64)
    for sequences, own in self._pairs():
      result[sequences] = own
    return result

  @functools.cached_property
  def infosets(self) -> tuple[Infosets, ...]:
    """Those of the full game, with their places here."""
    result = []
    for player, known in enumerate(self.full.infosets):
      found = places(self.layout, player, self._sequences[known.first_sequence])
      result.append(Infosets(known.infostates, known.actions, known.num_actions, *found))
    return tuple(result)

  @functools.cached_property
  def shared_entries(self) -> Int64s:
    """For every entry of `actions`, the number of its bucket's action."""
    same = tuple(own.first_sequence.astype(np.int64) for own in self.infosets)
    return shared_entries(self.infosets, Buckets(same, identity(self).slots))

  @functools.cached_property
  def digest(self) -> str:
    """Of the full game and its buckets."""
    digest = hashlib.sha256(self.full.digest.encode())
    for array in (self.buckets.stands_for, *self.buckets.labels[0], *self.buckets.labels[1]):
      digest.update(array.tobytes())
    return digest.hexdigest()

  def lift(self, policy: open_spiel.AnyPolicy) -> CompiledTabularPolicy:
    """Returns a policy as one of the full game, which stays as it is when the solver goes on.

    Args:
      policy: what a solver of this game hands out, or any policy that is the same wherever hands play alike.

    Raises:
      PolicyError: the policy is for another game, or hands that play alike do not.
    """
    probabilities = open_spiel.from_policy(self, policy)
    return CompiledTabularPolicy(self.full, self.to_original(probabilities))


def hand_buckets(game: PublicGame, labels: Sequence[Any]) -> HandBuckets:
  """Puts hands into buckets.

      equity = [hand_equities(game, player) for player in (0, 1)]
      small = abstract(game, hand_buckets(game, [k_means(own, 20) for own in equity]))

  Args:
    game: poker in vector form.
    labels: per player, an integer for each hand that the player may hold, in the order of `Board.hands`. Where public
      cards are dealt, per player a list of such, one for each of `game.layout.boards`. Labels of different boards, and
      of different players, have nothing to do with each other.

  Raises:
    UnsupportedGameError: the game is not in vector form, or an abstraction itself.
    ArgumentError: the labels are not integers, one for each hand.
  """
  check_whole_public_game(game)
  if len(labels) != len(PLAYERS):
    raise errors.ArgumentError(f"labels must be of two players, not of {len(labels)}.")
  boards, made = game.layout.boards, []
  for player, given in enumerate(labels):
    each = [given] if len(boards) == 1 else given
    if not isinstance(each, Sequence) or len(each) != len(boards):
      raise errors.ArgumentError(
        f"Public cards are dealt in this game: labels must be {len(boards)} arrays for a player, one for each board."
      )
    own: list[Int64s] = []
    for number, (board, array) in enumerate(zip(boards, each, strict=True)):
      known = _checked(array, len(board.hands[player]))
      if number:
        # Nobody forgets the bucket before.
        above = own[0][game.layout.lanes(player, 0, number)]
        known = above * (1 + int(known.max(initial=0))) + known
      own.append(number_in_order(known))
    made.append(own)
  return HandBuckets(np.arange(len(boards)), (made[0], made[1]))


def _checked(labels: npt.ArrayLike, count: int) -> Int64s:
  array = np.asarray(labels)
  if array.shape != (count,) or array.dtype.kind not in "iu":
    raise errors.ArgumentError(
      f"labels must be {count} integers for a board, not {array.dtype} of shape {array.shape}."
    )
  return number_in_order(array.astype(np.int64))
