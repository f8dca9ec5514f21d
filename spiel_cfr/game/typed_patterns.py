"""Payoffs of games with private types (cards, dice, hands), in a form that exploits them.

Take the leaves that differ in nothing but the types of the players. Their payoffs, chance's probability included, are a
small tensor with a dimension for each player, and games have few such tensors that are not multiples of each other: who
wins depends on the types, how much on the rest. So each such pattern is stored once, and for each block of leaves which
pattern it is, where the types' sequences are, and the factor. Liar's dice with one die a player has 4,095 blocks of 36
leaves each, and 12 patterns for each player.

Nothing here knows of cards. What is a type is read off the leaves (`public_states`), and whether this form pays is a
matter of counting (`build_payoff`).
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr.game.payoff import TYPED_PATTERNS, Payoff, leaf_rows
from spiel_cfr.game.treeplex import Treeplex
from spiel_cfr.kernels.arrays import Float64s, Int64s, Uint32s, aligned
from spiel_cfr.kernels.simd import LANES

# Two tensors with a largest element of 1 that agree to these decimals are the same pattern. Chance's probabilities,
# multiplied in another order, make them differ in later ones.
_DECIMALS = 13
# Elements of a tensor that are this much of the largest, or more, are equally large but for rounding.
_ALMOST_ONE = 1 - 1e-9
# Bounds the memory that building takes besides that of the game.
_SQUARES_AT_A_TIME = 1 << 9


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
  states = np.arange(len(num_actions))
  moved = leaf_sequences[:, leaf_sequences[player] > 0]
  infosets = np.repeat(states, num_actions)[moved[player].astype(np.int64) - 1]
  classes, class_of_leaf = _distinct_columns(np.delete(moved, player, axis=0))
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
      squares = np.prod([_parts(own), _parts(last), *outer], axis=0, dtype=np.float64)
      vectors += LANES * float(squares.sum())
    return vectors


def find_blocks(
  leaf_sequences: Uint32s, treeplexes: Sequence[Treeplex], states: Sequence[Int64s]
) -> Blocks:
  """Finds out which leaves differ in types only.

  Args:
    leaf_sequences: shape (players, leaves), in the numbering of the treeplexes.
    treeplexes: one a player, built with these `states`.
    states: of each player, what `public_states` returns.

  Returns:
    The leaves by block.
  """
  first = np.arange(treeplexes[-1].end, dtype=np.uint32)
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
  row_of_leaf = first[leaf_sequences]
  rows, block = _distinct_columns(row_of_leaf)
  return Blocks(first, width, rows, block, leaf_sequences - row_of_leaf)


def build_payoff(
  leaf_sequences: Uint32s,
  leaf_payoffs: Float64s,
  treeplexes: Sequence[Treeplex],
  states: Sequence[Int64s],
) -> Payoff:
  """Builds the payoff in the form whose gradients read less: typed patterns, or else leaf rows.

  Args:
    leaf_sequences: shape (players, leaves), in the numbering of the treeplexes.
    leaf_payoffs: shape (leaves, players).
    treeplexes: one a player, built with these `states`.
    states: of each player, what `public_states` returns.

  Returns:
    The payoff.
  """
  blocks = find_blocks(leaf_sequences, treeplexes, states)
  num_leaves = np.count_nonzero(leaf_payoffs)
  # A vector of a pattern takes about as long as a leaf, from the cache. Patterns that hardly repeat don't fit there.
  if blocks.num_vectors <= num_leaves:
    payoff = typed_patterns(blocks, leaf_payoffs, treeplexes)
    if payoff.num_bytes <= num_leaves * (8 + 4 * (len(treeplexes) - 1)):
      return payoff
  return leaf_rows(leaf_sequences, leaf_payoffs, treeplexes)


def typed_patterns(
  blocks: Blocks, leaf_payoffs: Float64s, treeplexes: Sequence[Treeplex]
) -> Payoff:
  """Builds the payoff as typed patterns.

  Rows longer than a vector are cut. Whatever part of a player's own row meets a part of a row of the last other player,
  and full rows of the others, is an entry.

  Args:
    blocks: the leaves by block.
    leaf_payoffs: shape (leaves, players).
    treeplexes: one a player.

  Returns:
    The payoff with, in `table`, a player's first row, one past its last, where the factors of all players begin in
    `values`, and the number of leaves; in `rows`, for each row, its first sequence and its first entry; in `others`,
    shape (entries, 2 * (players - 1)), the pattern, as a multiple of the size of a square, then for each other player
    but the last, the width and the first sequence of its row, then the first sequence of the last one's; in `values`,
    the patterns and then a factor an entry. A pattern is a tensor whose last dimension is the player's own, and the one
    before the last other player's, both padded to `LANES`: a square for each combination of the others' types.
  """
  table = np.zeros((len(treeplexes), 4), np.uint64)
  rows: list[Int64s] = []
  others: list[Int64s] = []
  patterns: list[Float64s] = []
  factors: list[Float64s] = []
  num_rows = num_entries = num_squares = 0
  for player, treeplex in enumerate(treeplexes):
    own = np.arange(treeplex.root, treeplex.end)
    starts = own[(blocks.width[own] > 0) & ((own - blocks.first[own]) % LANES == 0)]
    entries = _entries(blocks, player, leaf_payoffs[:, player])
    entries.lines[:, 0] += num_squares
    rows.append(np.stack([starts, num_entries + np.searchsorted(entries.rows, starts)], axis=1))
    others.append(entries.lines)
    patterns.append(entries.patterns)
    factors.append(entries.factors)
    table[player] = num_rows, num_rows + len(starts), 0, np.count_nonzero(leaf_payoffs[:, player])
    num_rows += len(starts)
    num_entries += len(entries.rows)
    num_squares += len(entries.patterns) // LANES**2
  rows.append(np.array([[treeplexes[-1].end, num_entries]]))
  table[:, 2] = num_squares * LANES**2
  return Payoff(
    form=TYPED_PATTERNS,
    table=table,
    rows=np.concatenate(rows).astype(np.uint32).reshape(-1),
    others=np.concatenate(others).astype(np.uint32, order="C"),
    values=aligned(np.concatenate([*patterns, *factors])),
  )


def _parts(width: Int64s) -> Int64s:
  """Returns how many parts rows are cut into."""
  return -(-width // LANES)


@dataclasses.dataclass(frozen=True)
class _Entries:
  """One player's entries, sorted by row.

  Attributes:
    rows: the first sequence of each entry's own part of a row.
    lines: what `typed_patterns` says of `others`.
    factors: one an entry.
    patterns: the player's patterns, end to end.
  """

  rows: Int64s
  lines: Int64s
  factors: Float64s
  patterns: Float64s


def _entries(blocks: Blocks, player: int, payoffs: Float64s) -> _Entries:
  own_row, own_type = blocks.rows[player], blocks.types[player]
  *outer_rows, last_row = np.delete(blocks.rows, player, axis=0)
  *outer_types, last_type = np.delete(blocks.types, player, axis=0)
  # An entry for each pair of parts of the two rows that are cut.
  last_parts = _parts(blocks.width[last_row])
  num_entries = _parts(blocks.width[own_row]) * last_parts
  first_entry = np.cumsum(num_entries) - num_entries
  block = np.repeat(np.arange(len(num_entries)), num_entries)
  own_part, last_part = np.divmod(np.arange(len(block)) - first_entry[block], last_parts[block])

  squares = np.ones_like(block)
  for outer_row in outer_rows:
    squares *= blocks.width[outer_row[block]]
  first_square = np.cumsum(squares) - squares
  entry = first_entry[blocks.block] + last_type // LANES
  entry += own_type // LANES * last_parts[blocks.block]
  square = np.zeros_like(entry)
  for outer_row, outer_type in zip(outer_rows, outer_types, strict=True):
    square = square * blocks.width[outer_row[blocks.block]] + outer_type
  cells = np.zeros((int(squares.sum()), LANES, LANES))
  cells[first_square[entry] + square, last_type % LANES, own_type % LANES] = payoffs

  pattern, factors, patterns = _factorize(cells.reshape(-1, LANES**2), first_square, squares)
  lines = [pattern]
  for outer_row in outer_rows:
    lines += [blocks.width[outer_row[block]], outer_row[block]]
  lines.append(last_row[block] + LANES * last_part)
  rows = own_row[block] + LANES * own_part
  used = np.flatnonzero(factors)
  used = used[np.argsort(rows[used], kind="stable")]
  return _Entries(rows[used], np.stack(lines, axis=1)[used], factors[used], patterns)


def _factorize(
  cells: Float64s, first_square: Int64s, squares: Int64s
) -> tuple[Int64s, Float64s, Float64s]:
  """Writes tensors as multiples of as few as possible.

  Args:
    cells: the tensors end to end, as squares of shape (squares, LANES * LANES).
    first_square: where each begins.
    squares: how many each has.

  Returns:
    For each tensor, the first square of its pattern and its factor, 0 if it has nothing but zeros; and the patterns.
  """
  pattern = np.zeros(len(squares), np.int64)
  factors = np.zeros(len(squares))
  patterns = [np.zeros(0)]
  num_squares = 0
  known: dict[bytes, int] = {}
  for size in np.unique(squares).tolist():
    members = np.flatnonzero(squares == size)
    for batch in np.array_split(members, 1 + len(members) * size // _SQUARES_AT_A_TIME):
      tensors = cells[first_square[batch, None] + np.arange(size)].reshape(len(batch), -1)
      magnitude = np.abs(tensors)
      # The first of the largest elements becomes 1.
      one = (magnitude >= _ALMOST_ONE * magnitude.max(axis=1, keepdims=True)).argmax(axis=1)
      factors[batch] = tensors[np.arange(len(batch)), one]
      used = factors[batch] != 0
      batch, tensors = batch[used], tensors[used] / factors[batch][used, None]
      for tensor, rounded in enumerate(tensors.round(_DECIMALS) + 0.0):
        key = rounded.tobytes()
        if key not in known:
          known[key] = num_squares
          patterns.append(tensors[tensor].copy())
          num_squares += size
        pattern[batch[tensor]] = known[key]
  return pattern, factors, np.concatenate(patterns)


def _distinct_columns(columns: npt.NDArray[Any]) -> tuple[Int64s, Int64s]:
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
