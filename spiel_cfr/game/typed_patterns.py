"""Payoffs of games with private types (cards, dice, hands), in a form that exploits them.

Where a play ends, the payoffs for all combinations of the players' types, chance's probability included, are a small
tensor with one dimension a player, and most games have few of them that are not multiples of each other: who wins
depends on the cards alone, and how much on the betting. So the distinct tensors, the patterns, are stored once, and for
each public end of play which one it is, where the types' sequences begin, and the factor.

Nothing here knows of cards. What the other players can't tell apart is read off the leaves (`public_states`), and
whether this form pays is a matter of counting (`typed_patterns`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr.game.payoff import TYPED_PATTERNS, Payoff
from spiel_cfr.game.treeplex import Treeplex
from spiel_cfr.kernels import Float64s, Int64s, Uint32s, aligned
from spiel_cfr.vectors import LANES

# Decimals to which two tensors, scaled to a largest element of 1, agree if they count as the same pattern: what chance's
# probabilities, multiplied in another order, leave of equality.
_DECIMALS = 13


def public_states(leaf_sequences: Uint32s, player: int, num_actions: Int64s) -> Int64s:
  """Finds which infosets of a player are types in the same public state.

  Two infosets are, if some action at the one and some action at the other can be the player's last before leaves at
  which each other player has the same last sequence; or if a third infoset is with both. An infoset whose actions are
  never the player's last is by itself.

  Args:
    leaf_sequences: shape (players, leaves), in order of discovery.
    player: whose infosets.
    num_actions: shape (infosets,), in order of discovery.

  Returns:
    A number for the public state of each infoset, shape (infosets,), in order of discovery.
  """
  states = np.arange(len(num_actions))
  decided = leaf_sequences[:, leaf_sequences[player] > 0]
  infosets = np.repeat(states, num_actions)[decided[player].astype(np.int64) - 1]
  classes, class_of_leaf = _distinct_columns(np.delete(decided, player, axis=0))
  while True:
    # Every class of leaves takes the lowest number of its infosets' states, and these take the lowest of their classes.
    lowest = np.full(classes.shape[1], len(states))
    np.minimum.at(lowest, class_of_leaf, states[infosets])
    merged = states.copy()
    np.minimum.at(merged, infosets, lowest[class_of_leaf])
    merged = merged[merged]
    if np.array_equal(merged, states):
      return states
    states = merged


def typed_patterns(
  leaf_sequences: Uint32s,
  leaf_payoffs: Float64s,
  treeplexes: Sequence[Treeplex],
  states: Sequence[Int64s],
) -> Payoff | None:
  """Builds the payoff as typed patterns where they can be expected to be faster than leaf rows.

  Args:
    leaf_sequences: shape (players, leaves), in the numbering of the treeplexes.
    leaf_payoffs: shape (leaves, players).
    treeplexes: one a player, built with these `states`.
    states: one result of `public_states` a player.

  Returns:
    None where leaf rows can be expected to be faster. Otherwise the payoff, as a list of entries a row, where a row is up
    to `LANES` neighbouring sequences: one action at the infosets of one public state. There are, in `table`, a player's
    first row, one past the last, where all factors begin in `values`, and the number of leaves; in `rows`, for each row,
    its first sequence and its first entry; in `others`, a line an entry: where its pattern begins in `values`, in units
    of `LANES`, then, for each other player, the number of types and the first sequence; in `values`, patterns, the type of
    the player itself last, padded to `LANES`; and then a factor an entry.
  """
  num_players = len(treeplexes)
  first, width = _rows(treeplexes, states)
  blocks, block_of_leaf = _distinct_columns(first[leaf_sequences])
  num_leaves = np.count_nonzero(leaf_payoffs, axis=0)
  if not _pays(width[blocks], num_leaves):
    return None

  table = np.zeros((num_players, 4), np.uint64)
  rows: list[Int64s] = []
  others: list[Int64s] = []
  patterns: list[Float64s] = []
  factors: list[Float64s] = []
  num_rows = num_entries = num_vectors = 0
  for player, treeplex in enumerate(treeplexes):
    own, lines, pattern, factor = _entries(
      player, leaf_sequences, leaf_payoffs[:, player], first, width, blocks, block_of_leaf
    )
    lines[:, 0] += num_vectors
    sequences = np.arange(treeplex.root, treeplex.end)
    begins = (width[first[sequences]] > 0) & ((sequences - first[sequences]) % LANES == 0)
    starts = sequences[begins]
    rows.append(np.stack([starts, num_entries + np.searchsorted(own, starts)], axis=1))
    others.append(lines)
    patterns.append(pattern)
    factors.append(factor)
    table[player] = num_rows, num_rows + len(starts), 0, num_leaves[player]
    num_rows += len(starts)
    num_entries += len(own)
    num_vectors += len(pattern) // LANES**2
  rows.append(np.array([[treeplexes[-1].end, num_entries]]))
  table[:, 2] = LANES**2 * num_vectors
  return Payoff(
    form=TYPED_PATTERNS,
    table=table,
    rows=np.concatenate(rows).astype(np.uint32).reshape(-1),
    others=np.concatenate(others).astype(np.uint32, order="C"),
    values=aligned(np.concatenate([*patterns, *factors])),
  )


def _rows(treeplexes: Sequence[Treeplex], states: Sequence[Int64s]) -> tuple[Int64s, Int64s]:
  """Finds the rows: the sequences of one action at all infosets of one public state.

  Returns:
    Of each sequence, the first one of its row, and the length of the row, which is 0 for padding.
  """
  first = np.arange(treeplexes[-1].end)
  width = np.zeros(treeplexes[-1].end, np.int64)
  for treeplex, state in zip(treeplexes, states, strict=True):
    width[treeplex.root] = 1
    in_layout = np.empty_like(state)
    in_layout[treeplex.position] = state
    for sequences, infosets in treeplex.blocks():
      starts = np.flatnonzero(np.append(True, np.diff(in_layout[infosets]) != 0))
      lengths = np.diff(np.append(starts, sequences.shape[1]))
      first[sequences] = np.repeat(sequences[:, starts], lengths, axis=1)
      width[sequences] = np.repeat(lengths, lengths)
  return first, width


def _pays(widths: Int64s, num_leaves: Int64s) -> bool:
  """Compares how many bytes the two forms touch: what they read for each block, and for each leaf.

  Args:
    widths: shape (players, blocks).
    num_leaves: shape (players,): how many leaves have a payoff.
  """
  num_others = len(widths) - 1
  typed = 0.0
  for player in range(num_others + 1):
    others = np.delete(widths, player, axis=0)
    others[-1] = -(-others[-1] // LANES) * LANES
    typed += float((-(-widths[player] // LANES) * others.prod(axis=0, dtype=np.float64)).sum())
  print(typed, num_leaves.sum())
  return typed < num_leaves.sum()


def _entries(
  player: int,
  leaf_sequences: Uint32s,
  payoffs: Float64s,
  first: Int64s,
  width: Int64s,
  blocks: Int64s,
  block_of_leaf: Int64s,
) -> tuple[Int64s, Int64s, Float64s, Float64s]:
  """Returns a player's entries, sorted by row: first sequences, lines of `others`, patterns, factors."""
  others = np.delete(blocks, player, axis=0)
  own, last, outer = width[blocks[player]], width[others[-1]], width[others[:-1]]
  # Rows longer than a vector are cut into several.
  own_parts, last_parts = -(-own // LANES), -(-last // LANES)
  parts = own_parts * last_parts
  first_entry = np.cumsum(parts) - parts
  block = np.repeat(np.arange(blocks.shape[1]), parts)
  own_part, last_part = np.divmod(np.arange(len(block)) - first_entry[block], last_parts[block])
  size = LANES * LANES * outer.prod(axis=0)[block]
  begin = np.cumsum(size) - size

  types = leaf_sequences - first[leaf_sequences]
  type_of_last = np.delete(types, player, axis=0)[-1]
  entry = first_entry[block_of_leaf] + (types[player] // LANES) * last_parts[block_of_leaf] + type_of_last // LANES
  place = np.zeros(len(payoffs), np.int64)
  for width_of_other, type_of_other in zip(outer, np.delete(types, player, axis=0)[:-1], strict=True):
    place = place * width_of_other[block_of_leaf] + type_of_other
  place = (place * LANES + type_of_last % LANES) * LANES + types[player] % LANES
  cells = np.zeros(int(size.sum()))
  cells[begin[entry] + place] = payoffs

  offset = np.zeros(len(block), np.int64)
  factor = np.zeros(len(block))
  patterns: list[Float64s] = []
  num_vectors = 0
  for length in np.unique(size):
    members = np.flatnonzero(size == length)
    tensors = cells[begin[members, None] + np.arange(length)]
    magnitude = np.abs(tensors)
    # The first of the largest elements, give or take rounding, becomes 1.
    large = magnitude > (1 - 1e-9) * magnitude.max(axis=1, keepdims=True)
    members, tensors, large = (array[large.any(axis=1)] for array in (members, tensors, large))
    factor[members] = tensors[np.arange(len(members)), large.argmax(axis=1)]
    tensors /= factor[members, None]
    _, representative, pattern = np.unique(
      tensors.round(_DECIMALS) + 0.0, axis=0, return_index=True, return_inverse=True
    )
    offset[members] = num_vectors + pattern.reshape(-1) * (length // LANES**2)
    patterns.append(tensors[representative].reshape(-1))
    num_vectors += tensors[representative].size // LANES**2
  row = blocks[player, block] + LANES * own_part
  used = np.flatnonzero(factor)
  used = used[np.argsort(row[used], kind="stable")]
  # Each other player's number of types stands beside where their sequences begin.
  pairs = np.stack([outer, others[:-1]], axis=1).reshape(-1, blocks.shape[1])
  lines = np.concatenate([offset[None], pairs[:, block], (others[-1, block] + LANES * last_part)[None]])[:, used].T
  return row[used], lines, np.concatenate(patterns), factor[used]


def _distinct_columns(columns: npt.NDArray[Any]) -> tuple[Int64s, Int64s]:
  """Returns the distinct columns, in ascending order, and which of them each column is."""
  order = np.lexsort(columns[::-1])
  ascending = columns[:, order]
  starts = np.append(True, (np.diff(ascending, axis=1) != 0).any(axis=0))[: columns.shape[1]]
  which = np.empty(columns.shape[1], np.int64)
  which[order] = np.cumsum(starts) - 1
  return ascending[:, starts].astype(np.int64), which
