"""Buckets of hands that split while a poker game in vector form is solved.

A bucket is a class of hands on a board, at all decisions there, and what it is worth to split it is the sum over these
of what `refinement` says of one infoset. It splits by what its hands want at the decision where that is most. Where a
bucket splits before public cards are dealt, those after them split with it: nobody forgets.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.abstraction.hand_buckets import BucketedHands, HandBuckets, hand_buckets
from spiel_cfr.abstraction.refinement import Refinement
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import forms


class _Split(NamedTuple):
  """How the buckets of a board would split.

  Attributes:
    worth: what it is worth, shape (buckets,).
    pieces: a number for each hand, the same for those that would stay together.
    cost: how many sequences would come, at most, shape (buckets,).
  """

  worth: Float64s
  pieces: Int64s
  cost: Float64s


class RefinedHands(Refinement):
  """A game in which hands of a bucket play alike."""

  small: BucketedHands

  def __init__(self, game: PublicGame, buckets: HandBuckets) -> None:
    """Begins with these buckets, on every board of its own.

    Raises:
      UnsupportedGameError: the game is an abstraction itself.
      AbstractionError: the buckets are of another game.
    """
    buckets.check_fit(game)
    self.whole = game
    self._become(buckets.labels)

  def _become(self, labels: tuple[list[Int64s], list[Int64s]]) -> None:
    given = labels if len(self.whole.layout.boards) > 1 else [own[0] for own in labels]
    self._labels = hand_buckets(self.whole, given).labels
    boards = np.arange(len(self.whole.layout.boards))
    self.small = BucketedHands(self.whole, HandBuckets(boards, self._labels))

  def to_whole(self, sequence_form: Float64s) -> Float64s:
    """Returns behavioural form in which hands of a bucket play alike."""
    return forms.behavioral_form(self.whole, self.small.to_original(sequence_form))

  def to_small(self, probabilities: Float64s) -> Float64s:
    """Returns what any hand of each bucket plays."""
    return forms.behavioral_form(self.small, self.small.from_original(probabilities))

  def refine(self, probabilities: Float64s) -> bool:
    """Splits the buckets whose hands want most to play differently."""
    _, best = self._gradient_and_best(probabilities)
    every = [(player, number) for player in PLAYERS for number in range(len(self._labels[player]))]
    splits = [self._split(best, player, number) for player, number in every]
    chosen = self._chosen(
      np.concatenate([split.worth for split in splits]),
      np.concatenate([split.cost for split in splits]),
    )
    labels: tuple[list[Int64s], list[Int64s]] = ([], [])
    first = 0
    for (player, number), split in zip(every, splits, strict=True):
      old, count = self._labels[player][number], len(split.worth)
      taken = np.isin(np.arange(first, first + count), chosen)
      labels[player].append(np.where(taken[old], count + split.pieces, old))
      first += count
    if len(chosen):
      self._become(labels)
    return bool(len(chosen))

  def _split(self, best: Float64s, player: int, number: int) -> _Split:
    """Finds out how the buckets of a board would split."""
    layout, old = self.whole.layout, self._labels[player][number]
    count, hands = 1 + int(old.max(initial=-1)), np.arange(len(old))
    worth, most = np.zeros((2, count))
    wanted = np.zeros(len(old), np.int64)
    for node in layout.decisions(player, number):
      table = best[layout.sequences(number, node)]
      together = np.array([np.bincount(old, row, count) for row in table])
      leader = together.argmax(axis=0)[old]
      losing = table.max(axis=0) - table[leader, hands]
      here = np.bincount(old, losing, count)
      worth += here
      wants = np.where(losing > 0, table.argmax(axis=0), leader)
      wanted = np.where((here > most)[old], wants, wanted)
      most = np.maximum(most, here)
    pairs, pieces = np.unique(old * (1 + wanted.max(initial=0)) + wanted, return_inverse=True)
    bucket = pairs // (1 + wanted.max(initial=0))
    more = np.bincount(bucket, minlength=count) - 1.0
    return _Split(worth, pieces.reshape(-1), more * self._sequences(player, number, count))

  def _sequences(self, player: int, number: int, count: int) -> Float64s:
    """Counts the sequences that another piece of each bucket of a board would add, at most."""
    layout, old = self.whole.layout, self._labels[player][number]
    result = np.full(count, float(self._actions(player, number)))
    for later in range(1, len(layout.boards)) if not number else ():
      above = old[layout.lanes(player, 0, later)]
      pairs = np.unique(np.stack([above, self._labels[player][later]]), axis=1)
      result += np.bincount(pairs[0], minlength=count) * self._actions(player, later)
    return result

  def _actions(self, player: int, number: int) -> int:
    layout = self.whole.layout
    return sum(len(layout.nodes[node].actions) for node in layout.decisions(player, number))
