"""Search for private types (cards, dice, hands) in a game's leaves, and for patterns that its payoffs repeat.

`TypedPatterns` is the payoff form that uses both.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from spiel_cfr._numba.arrays import (
  Bools,
  Float64s,
  Int64s,
  Uint32s,
  concatenated_ranges,
  pieces,
  range_starts,
)
from spiel_cfr._numba.simd import LANES
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Two tensors with a largest element of 1 are the same pattern if they agree to this number of decimals. Later decimals
# depend on the order in which chance's probabilities are multiplied.
_DECIMALS = 13
# Elements of at least this fraction of the largest element differ from it by rounding only.
_ALMOST_ONE = 1 - 1e-9
# Limits the memory that building takes besides that of the game.
_SQUARES_AT_A_TIME = 1 << 9


def group_public_states(
  leaf_sequences: Uint32s, player: int, infoset_of_sequence: Int64s, num_infosets: int
) -> Int64s:
  """Groups a player's infosets by public state: those of one public state differ only in the player's type.

  Two infosets belong to one public state if there are two leaves with the same last sequences of the other players, at
  which the player's last sequences are actions of the two infosets. The relation is made transitive. An infoset without
  a leaf, below which the player always moves again, is a public state of its own.

  Args:
    leaf_sequences: uint32 (players, leaves). The leaves.
    player: the player.
    infoset_of_sequence: int64 (sequences,). The infoset of each sequence; -1 for the empty sequence.
    num_infosets: number of infosets.

  Returns:
    int64 (infosets,). The first infoset of each infoset's public state.
  """
  # A class is all leaves with the same sequences of the other players.
  others = [sequences for other, sequences in enumerate(leaf_sequences) if other != player]
  classes, class_of_leaf = distinct_columns(others)
  # The empty sequence belongs to no infoset. Its label, the last one, stays the highest number.
  states = np.arange(num_infosets + 1)
  while True:
    # Labels spread until nothing changes: a class of leaves takes the lowest label of its infosets, and an infoset the
    # lowest label of its classes.
    lowest = np.full(classes.shape[1], num_infosets)
    merged = states.copy()
    for piece in pieces(len(class_of_leaf)):
      infosets = infoset_of_sequence[leaf_sequences[player, piece]]
      np.minimum.at(lowest, class_of_leaf[piece], states[infosets])
    for piece in pieces(len(class_of_leaf)):
      infosets = infoset_of_sequence[leaf_sequences[player, piece]]
      np.minimum.at(merged, infosets, lowest[class_of_leaf[piece]])
    merged[-1] = num_infosets
    merged = merged[merged]
    if np.array_equal(merged, states):
      return states[:-1]
    states = merged


@dataclasses.dataclass(frozen=True)
class LeafTensors:
  """The leaves grouped into tensors, which have a dimension for each player.

  A row is the neighboring sequences of one action at all infosets of one public state, one sequence for each type.
  Leaves whose sequences lie in the same rows belong to one tensor.

  Attributes:
    first: uint32 (sequences,). The first sequence of each sequence's row.
    width: int64 (sequences,). The number of sequences, or types, in each sequence's row; 0 for padding.
    rows: int64 (players, tensors). The first sequence of each tensor's row, for each player.
    tensor: uint32 (leaves,). The tensor of each leaf.
    types: uint32 (players, leaves). The type of each leaf's sequences: their distance from the first of the row.
  """

  first: Uint32s
  width: Int64s
  rows: Int64s
  tensor: Uint32s
  types: Uint32s

  @property
  def num_vectors(self) -> float:
    """Number of vectors of payoffs that the gradients of all players read; a repeated pattern counts every time."""
    num_vectors = 0.0
    widths = self.width[self.rows]
    for player, own_widths in enumerate(widths):
      *outer, last = np.delete(widths, player, axis=0)
      squares = np.prod(
        [_num_segments(own_widths), _num_segments(last), *outer], axis=0, dtype=np.float64
      )
      num_vectors += LANES * float(squares.sum())
    return num_vectors

  def restore(self, leaf_sequences: Uint32s) -> None:
    """Converts types, which `find_tensors` has written over the leaf sequences, back to sequences."""
    for sequences, rows in zip(leaf_sequences, self.rows.astype(np.uint32), strict=True):
      for piece in pieces(len(sequences)):
        sequences[piece] += rows[self.tensor[piece]]


def find_tensors(
  leaf_sequences: Uint32s, treeplexes: Sequence[Treeplex], states: Sequence[Int64s]
) -> LeafTensors:
  """Groups the leaves that differ only in types.

  Args:
    leaf_sequences: uint32 (players, leaves). The leaves, in the numbering of the treeplexes; overwritten with types.
    treeplexes: one for each player, built with `states`.
    states: for each player, int64 (infosets,). The public state of each infoset, in layout order.
  """
  first = np.arange(treeplexes[-1].end, dtype=np.uint32)
  width = np.zeros(treeplexes[-1].end, np.int64)
  for treeplex, state in zip(treeplexes, states, strict=True):
    width[treeplex.root] = 1
    for sequences, infosets in treeplex.infoset_groups():
      starts = np.flatnonzero(np.append(True, np.diff(state[infosets]) != 0))
      lengths = np.diff(np.append(starts, sequences.shape[1]))
      first[sequences] = np.repeat(sequences[:, starts], lengths, axis=1)
      width[sequences] = np.repeat(lengths, lengths)
  rows, tensor = distinct_columns(leaf_sequences, first)
  for sequences in leaf_sequences:
    for piece in pieces(len(sequences)):
      sequences[piece] -= first[sequences[piece]]
  return LeafTensors(first, width, rows, tensor, leaf_sequences)


def _num_segments(width: Int64s) -> Int64s:
  """Returns the number of segments of at most `LANES` types that rows of these widths are cut into."""
  return -(-width // LANES)


@dataclasses.dataclass(frozen=True)
class Terms:
  """One player's terms in `TypedPatterns`, sorted by row.

  Attributes:
    rows: int64 (terms,). The player's first sequence of each term.
    others: int64 (terms, columns). The pattern and the other players' rows of each term, see `TypedPatterns`.
    factors: float64 (terms,). The factor of each term's pattern.
    pattern_squares: int64 (elements,). The squares of the player's patterns, end to end. An element is twice the index
      in `squares`, plus 1 if the last column of the square is not zero.
    squares: float64 (squares, LANES * LANES). The different squares.
  """

  rows: Int64s
  others: Int64s
  factors: Float64s
  pattern_squares: Int64s
  squares: Float64s


def find_terms(tensors: LeafTensors, player: int, payoffs: Float64s) -> Terms:
  """Finds a player's terms, given its payoffs, shape (leaves,)."""
  other_players = [other for other in range(len(tensors.rows)) if other != player]
  *outer, last = other_players
  cut_players = [player, *other_players[-2:]]
  first, width, term = _cut_tensors(tensors, cut_players)
  num_leaves = np.bincount(term, minlength=first.shape[1])
  first_leaf = range_starts(num_leaves)
  by_term = np.argsort(term)
  del term
  by_term = by_term.astype(np.uint32)

  def payoffs_of(batch: Int64s, size: int) -> Float64s:
    """Returns the payoffs of terms with `size` squares each, shape (terms, elements)."""
    leaves = by_term[concatenated_ranges(first_leaf[batch], num_leaves[batch])]
    index = np.repeat(np.arange(len(batch)), num_leaves[batch])
    types = tensors.types[:, leaves].astype(np.int64)
    types[cut_players] %= LANES
    square = np.zeros(len(leaves), np.int64)
    for other in outer:
      square = square * width[other, batch[index]] + types[other]
    cells = np.zeros((len(batch), size, LANES, LANES))
    cells[index, square, types[last], types[player]] = payoffs[leaves]
    return cells.reshape(len(batch), -1)

  pattern, factors, patterns = _factorize(payoffs_of, np.prod(width[outer], axis=0))
  columns = [pattern]
  for other in outer:
    columns += [width[other], first[other]]
  columns.append(first[last])
  used = np.flatnonzero(factors)
  used = used[np.argsort(first[player, used], kind="stable")]
  pattern_squares, squares = _distinct_squares(patterns.reshape(-1, LANES**2))
  return Terms(
    rows=first[player, used],
    others=np.stack(columns, axis=1)[used],
    factors=factors[used],
    pattern_squares=pattern_squares,
    squares=squares,
  )


def _cut_tensors(
  tensors: LeafTensors, cut_players: Sequence[int]
) -> tuple[Int64s, Int64s, Uint32s]:
  """Cuts the rows of `cut_players` into segments of at most `LANES` types. Each tuple of segments is a term.

  Returns:
    int64 (players, terms), the first sequence of each term for each player; int64 (players, terms), the number of
    types; and uint32 (leaves,), the term of each leaf.
  """
  num_segments = {
    player: _num_segments(tensors.width[tensors.rows[player]]) for player in cut_players
  }
  num_terms = np.prod(list(num_segments.values()), axis=0)
  first_term = range_starts(num_terms)
  tensor = np.repeat(np.arange(len(num_terms)), num_terms)
  rest = np.arange(len(tensor)) - first_term[tensor]
  first, width = tensors.rows[:, tensor], tensors.width[tensors.rows[:, tensor]]
  for player in reversed(cut_players):
    rest, segment = np.divmod(rest, num_segments[player][tensor])
    first[player] += LANES * segment
    width[player] = np.minimum(LANES, width[player] - LANES * segment)
  term = np.zeros(len(tensors.tensor), np.uint32)
  for piece in pieces(len(term)):
    of_leaf = tensors.tensor[piece]
    for player in cut_players:
      term[piece] *= num_segments[player][of_leaf].astype(np.uint32)
      term[piece] += tensors.types[player, piece] // LANES
    term[piece] += first_term[of_leaf].astype(np.uint32)
  return first, width, term


def leading(tensors: Float64s) -> Float64s:
  """Returns the factor of each flat tensor: the first of its largest elements, by absolute value.

  A tensor divided by its factor is a pattern, with 1 as that element.
  """
  magnitude = np.abs(tensors)
  index = (magnitude >= _ALMOST_ONE * magnitude.max(axis=1, keepdims=True)).argmax(axis=1)
  return np.asarray(tensors[np.arange(len(tensors)), index])


def rounded(patterns: Float64s) -> Float64s:
  """Returns patterns rounded for comparison: equal patterns have equal bytes."""
  return np.asarray(patterns.round(_DECIMALS) + 0.0)


def _factorize(
  tensors: Callable[[Int64s, int], Float64s], squares: Int64s
) -> tuple[Int64s, Float64s, Float64s]:
  """Writes tensors as multiples of as few patterns as possible.

  Args:
    tensors: function of the numbers of some tensors that have equally many squares, and of the number of squares;
      returns the flat tensors.
    squares: int64 (tensors,). The number of squares of LANES * LANES elements of each tensor.

  Returns:
    For each tensor, the first square of its pattern and its factor, 0 for a tensor of zeros; and the patterns, flat.
  """
  pattern = np.zeros(len(squares), np.int64)
  factors = np.zeros(len(squares))
  patterns = [np.zeros(0)]
  num_squares = 0
  known: dict[bytes, int] = {}
  for size in np.unique(squares).tolist():
    members = np.flatnonzero(squares == size)
    for batch in np.array_split(members, 1 + len(members) * size // _SQUARES_AT_A_TIME):
      flat = tensors(batch, size)
      factors[batch] = leading(flat)
      used = factors[batch] != 0
      batch, flat = batch[used], flat[used] / factors[batch][used, None]
      for tensor, row in enumerate(rounded(flat)):
        key = row.tobytes()
        if key not in known:
          known[key] = num_squares
          patterns.append(flat[tensor].copy())
          num_squares += size
        pattern[batch[tensor]] = known[key]
  return pattern, factors, np.concatenate(patterns)


def _distinct_squares(squares: Float64s) -> tuple[Int64s, Float64s]:
  """Keeps one of equal squares; returns `pattern_squares` and `squares` of `Terms`, squares in order of first use."""
  keys = rounded(squares).view(np.dtype((np.void, squares.itemsize * LANES**2)))
  _, first, key = np.unique(keys[:, 0], return_index=True, return_inverse=True)
  kept = np.sort(first)
  number = np.searchsorted(kept, first)[key]
  has_last_column: Bools = np.any(squares[kept, -LANES:] != 0, axis=1)
  return 2 * number + has_last_column[number], squares[kept]
