"""Private types (cards, dice, hands), found in the leaves of a game: nothing here knows of cards."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr.game.treeplex import Treeplex
from spiel_cfr.kernels.arrays import Int64s, Uint32s
from spiel_cfr.kernels.simd import LANES


def public_states(leaf_sequences: Uint32s, player: int, num_actions: Int64s) -> Int64s:
  """Finds which infosets of a player are types in the same public state.

  Two are if there is a leaf with the player's last sequence at the one, and a leaf with it at the other, and all other
  players have the same last sequences at both; or if a third infoset is with both. An infoset below which the player
  always moves again is by itself.

  Args:
    leaf_sequences: shape (players, leaves), in order of discovery.
    player: whose infosets.
    num_actions: shape (infosets,), in order of discovery.

  Returns:
    For each infoset, in order of discovery, the first infoset in the same public state.
  """
  owner = np.repeat(np.arange(len(num_actions)), num_actions)
  return public_states_of(leaf_sequences, player, np.append(-1, owner), len(num_actions))


def public_states_of(
  leaf_sequences: Uint32s, player: int, owner: Int64s, num_infosets: int
) -> Int64s:
  """Does the same for any numbering, in which `owner` is the infoset of each sequence, -1 for the empty one."""
  states = np.arange(num_infosets)
  infosets = owner[leaf_sequences[player]]
  moved, infosets = leaf_sequences[:, infosets >= 0], infosets[infosets >= 0]
  classes, class_of_leaf = distinct_columns(np.delete(moved, player, axis=0))
  while True:
    # A class of leaves takes the lowest number of its infosets, and an infoset that of its classes, until all agree.
    lowest = np.full(classes.shape[1], len(states))
    np.minimum.at(lowest, class_of_leaf, states[infosets])
    merged = states.copy()
    np.minimum.at(merged, infosets, lowest[class_of_leaf])
    merged = merged[merged]
    if np.array_equal(merged, states):
      return states
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
  block: Int64s
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


def find_blocks(
  leaf_sequences: Uint32s, treeplexes: Sequence[Treeplex], states: Sequence[Int64s]
) -> Blocks:
  """Finds out which leaves differ in types only.

  Args:
    leaf_sequences: shape (players, leaves), in the numbering of the treeplexes.
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
  row_of_leaf = first[leaf_sequences]
  rows, block = distinct_columns(row_of_leaf)
  return Blocks(first, width, rows, block, leaf_sequences - row_of_leaf)


def parts(width: Int64s) -> Int64s:
  """Returns how many vectors rows of these widths are cut into."""
  return -(-width // LANES)


def distinct_columns(columns: npt.NDArray[Any]) -> tuple[Int64s, Int64s]:
  """Returns the distinct columns, in ascending order, and for each column which of them it is."""
  sizes = columns.max(axis=1, initial=0).astype(np.int64) + 1
  if math.prod(sizes.tolist()) <= np.iinfo(np.int64).max:
    # Sorting single numbers is many times faster.
    keys = np.zeros(columns.shape[1], np.int64)
    for column, size in zip(columns, sizes, strict=True):
      keys = keys * size + column
    distinct, which = np.unique(keys, return_inverse=True)
    return np.array(np.unravel_index(distinct, sizes), np.int64), which
  order = np.lexsort(columns[::-1])
  ascending = columns[:, order]
  new = np.append(True, (np.diff(ascending, axis=1) != 0).any(axis=0))[: len(order)]
  which = np.empty(len(order), np.int64)
  which[order] = np.cumsum(new) - 1
  return ascending[:, new].astype(np.int64), which
