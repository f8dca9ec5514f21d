"""Buckets of hands that split, of poker in vector form.

A bucket is a class of hands on a board, at all decisions there, and what it is worth to split it is the sum over these
of what `growers` says of one infoset. It splits by what its hands want at the decision where that is most. Where a
bucket splits before public cards are dealt, those after them split with it: nobody forgets.
"""

import numpy as np

from spiel_cfr.abstracting.growers import Grower
from spiel_cfr.abstraction.buckets import HandBuckets
from spiel_cfr.abstraction.hands import BucketedHands, hand_buckets
from spiel_cfr.compiled.parts import PLAYERS
from spiel_cfr.continuing.identity import gradients
from spiel_cfr.kernels.arrays import Float64s, Int64s
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policy import forms


class GrowingHands(Grower):
  """A game in which hands of a bucket play alike."""

  whole: PublicGame
  small: BucketedHands

  def __init__(self, game: PublicGame, buckets: HandBuckets) -> None:
    """Begins with these buckets, on every board of its own.

    Raises:
      UnsupportedGameError: see `HandBuckets.check_fit`, like the next.
      AbstractionError: likewise.
    """
    buckets.check_fit(game)
    self.whole = game
    self._become(buckets.labels)

  def _become(self, labels: tuple[list[Int64s], list[Int64s]]) -> None:
    given = labels if len(self.whole.layout.boards) > 1 else [own[0] for own in labels]
    self._labels = hand_buckets(self.whole, given).labels
    boards = np.arange(len(self.whole.layout.boards))
    self.small = BucketedHands(self.whole, HandBuckets(boards, self._labels))

  def in_whole(self, sequence_form: Float64s) -> Float64s:
    """See the base class."""
    return forms.behavioral_form(self.whole, self.small.to_original(sequence_form))

  def in_small(self, probabilities: Float64s) -> Float64s:
    """See the base class."""
    return forms.behavioral_form(self.small, self.small.from_original(probabilities))

  def grow(self, probabilities: Float64s) -> bool:
    """See the base class."""
    best = self._best(gradients(self.whole, forms.sequence_form(self.whole, probabilities)))
    every = [(player, number) for player in PLAYERS for number in range(len(self._labels[player]))]
    splits = [self._split(best, player, number) for player, number in every]
    worths, pieces = ([split[part] for split in splits] for part in (0, 1))
    costs = [
      self._cost(player, number, found)
      for (player, number), found in zip(every, pieces, strict=True)
    ]
    chosen = self._chosen(np.concatenate(worths), np.concatenate(costs))
    first, labels = 0, ([], [])
    for (player, number), worth, found in zip(every, worths, pieces, strict=True):
      old = self._labels[player][number]
      taken = np.isin(np.arange(first, first + len(worth)), chosen)
      first += len(worth)
      labels[player].append(np.where(taken[old], len(worth) + found, old))
    if len(chosen):
      self._become(labels)
    return bool(len(chosen))

  def _split(self, best: Float64s, player: int, number: int) -> tuple[Float64s, Int64s]:
    """Returns what each bucket of a board is worth to split, and what each hand's piece would be, as numbers."""
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
    return worth, np.unique(old * (1 + wanted.max(initial=0)) + wanted, return_inverse=True)[1]

  def _cost(self, player: int, number: int, pieces: Int64s) -> Float64s:
    """Counts the sequences that splitting each bucket of a board would add, at most."""
    layout, old = self.whole.layout, self._labels[player][number]
    count = 1 + int(old.max(initial=-1))
    bucket_of_piece = np.zeros(1 + int(pieces.max(initial=-1)), np.int64)
    bucket_of_piece[pieces] = old
    per_piece = np.full(count, float(self._actions(player, number)))
    if not number:
      for later in range(1, len(layout.boards)):
        below = np.unique(
          np.stack([old[layout.lanes(player, 0, later)], self._labels[player][later]]), axis=1
        )[0]
        per_piece += np.bincount(below, minlength=count) * self._actions(player, later)
    return (np.bincount(bucket_of_piece, minlength=count) - 1) * per_piece

  def _actions(self, player: int, number: int) -> int:
    layout = self.whole.layout
    return sum(len(layout.nodes[node].actions) for node in layout.decisions(player, number))
