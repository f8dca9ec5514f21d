"""Private types (cards, dice, hands), found in the leaves of a game: nothing here knows of cards."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Int64s, Uint32s, pieces
from spiel_cfr._numba.simd import LANES
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.sequence_form.treeplex import Treeplex


def public_states(leaf_sequences: Uint32s, player: int, owner: Int64s, num_infosets: int) -> Int64s:
  """Finds which infosets of a player are types in the same public state.

  Two are if there is a leaf with the player's last sequence at the one, and a leaf with it at the other, and all other
  players have the same last sequences at both; or if a third infoset is with both. An infoset below which the player
  always moves again is by itself.

  Args:
    leaf_sequences: shape (players, leaves).
    player: whose infosets.
    owner: the infoset of each sequence, -1 for the empty one.
    num_infosets: how many there are.

  Returns:
    For each infoset, the first infoset in the same public state.
  """
  others = [own for index, own in enumerate(leaf_sequences) if index != player]
  classes, class_of_leaf = distinct_columns(others)
  # The empty sequence is in no infoset, and so has the highest number, whatever its leaves are with.
  states = np.arange(num_infosets + 1)
  while True:
    # A class of leaves takes the lowest number of its infosets, and an infoset that of its classes, until all agree.
    lowest = np.full(classes.shape[1], num_infosets)
    merged = states.copy()
    for some in pieces(len(class_of_leaf)):
      np.minimum.at(lowest, class_of_leaf[some], states[owner[leaf_sequences[player, some]]])
    for some in pieces(len(class_of_leaf)):
      np.minimum.at(merged, owner[leaf_sequences[player, some]], lowest[class_of_leaf[some]])
    merged[-1] = num_infosets
    merged = merged[merged]
    if np.array_equal(merged, states):
      return states[:-1]
    states = merged


@dataclasses.dataclass(frozen=True)
class Blocks:
  """The leaves by block: all that have sequences in the same rows.

  A row is the sequences of one action at all infosets of one public state.

  Attributes:
    first: shape (sequences,): the first sequence in the row of each.
    width: shape (sequences,): how many sequences, or types, are in the row of each; 0 for padding.
    rows: shape (players, blocks): the first sequence of each row.
    block: shape (leaves,): the block of each leaf.
    types: shape (players, leaves): the places of each leaf's sequences in their rows.
  """

  first: Uint32s
  width: Int64s
  rows: Int64s
  block: Uint32s
  types: Uint32s

  @property
  def num_vectors(self) -> float:
    """How many vectors of payoffs the gradients of all players read, counting each as often as it is read."""
    vectors = 0.0
    widths = self.width[self.rows]
    for player, own in enumerate(widths):
      *outer, last = np.delete(widths, player, axis=0)
      squares = np.prod([parts(own), parts(last), *outer], axis=0, dtype=np.float64)
      vectors += LANES * float(squares.sum())
    return vectors

  def restore(self, leaf_sequences: Uint32s) -> None:
    """Turns types, which have taken their place, back into sequences."""
    for own, rows in zip(leaf_sequences, self.rows.astype(np.uint32), strict=True):
      for some in pieces(len(own)):
        own[some] += rows[self.block[some]]


def find_blocks(
  leaf_sequences: Uint32s, treeplexes: Sequence[Treeplex], states: Sequence[Int64s]
) -> Blocks:
  """Finds out which leaves differ in types only.

  Args:
    leaf_sequences: shape (players, leaves), in the numbering of the treeplexes; written over, with types.
    treeplexes: one per player, built with the `public_states`.
    states: of each player, the public state of each infoset, in layout order.

  Returns:
    The leaves by block.
  """
  first = np.arange(treeplexes[-1].end, dtype=np.uint32)
  width = np.zeros(treeplexes[-1].end, np.int64)
  for treeplex, state in zip(treeplexes, states, strict=True):
    width[treeplex.root] = 1
    for sequences, infosets in treeplex.blocks():
      starts = np.flatnonzero(np.append(True, np.diff(state[infosets]) != 0))
      lengths = np.diff(np.append(starts, sequences.shape[1]))
      first[sequences] = np.repeat(sequences[:, starts], lengths, axis=1)
      width[sequences] = np.repeat(lengths, lengths)
  rows, block = distinct_columns(leaf_sequences, first)
  for own in leaf_sequences:
    for some in pieces(len(own)):
      own[some] -= first[own[some]]
  return Blocks(first, width, rows, block, leaf_sequences)


def parts(width: Int64s) -> Int64s:
  """Returns how many vectors rows of these widths are cut into."""
  return -(-width // LANES)
