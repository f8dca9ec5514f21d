"""Private types (cards, dice, hands) found in a game's leaves, and payoffs as multiples of few patterns."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, Uint32s, concatenated_ranges, pieces
from spiel_cfr._numba.simd import LANES
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Two tensors with a largest element of 1 are the same pattern if they agree to these decimals. Rounding, when chance's
# probabilities are multiplied in another order, changes later decimals.
_DECIMALS = 13
# Elements of at least this fraction of the largest one differ from it by rounding only.
_ALMOST_ONE = 1 - 1e-9
# Limits the memory that building takes besides that of the game.
_SQUARES_AT_A_TIME = 1 << 9


def public_states(leaf_sequences: Uint32s, player: int, owner: Int64s, num_infosets: int) -> Int64s:
  """Finds the infosets of a player that are types in the same public state.

  Two infosets are in one public state if the player's last sequence is at the first at some leaf, at the second at
  another leaf, and the other players' last sequences are the same at both leaves. The relation is made transitive. An
  infoset without such a leaf, because the player always moves again below it, is alone.

  Args:
    leaf_sequences: uint32 (players, leaves).
    player: the player.
    owner: int64 (sequences,). The infoset of each sequence; -1 for the empty one.
    num_infosets: number of infosets.

  Returns:
    int64 (infosets,). The first infoset in the same public state.
  """
  others = [own for index, own in enumerate(leaf_sequences) if index != player]
  classes, class_of_leaf = distinct_columns(others)
  # The empty sequence belongs to no infoset. Its label, the last one, stays the highest number.
  states = np.arange(num_infosets + 1)
  while True:
    # Labels spread until nothing changes: a class of leaves takes the lowest label of its infosets, and an infoset the
    # lowest label of its classes.
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
class LeafTensors:
  """The leaves sorted into tensors.

  The leaves of a tensor have sequences in the same rows, one dimension for each player.

  A row is the sequences of one action at all infosets of one public state, one sequence for each type.

  Attributes:
    first: uint32 (sequences,). The first sequence of each sequence's row.
    width: int64 (sequences,). The number of sequences, or types, in each sequence's row; 0 for padding.
    rows: int64 (players, tensors). The first sequence of each tensor's rows.
    tensor: uint32 (leaves,). The tensor of each leaf.
    types: uint32 (players, leaves). The place of each leaf's sequences in their rows.
  """

  first: Uint32s
  width: Int64s
  rows: Int64s
  tensor: Uint32s
  types: Uint32s

  @property
  def num_vectors(self) -> float:
    """Number of vectors of payoffs that the gradients of all players read, with repetitions."""
    vectors = 0.0
    widths = self.width[self.rows]
    for player, own in enumerate(widths):
      *outer, last = np.delete(widths, player, axis=0)
      squares = np.prod([parts(own), parts(last), *outer], axis=0, dtype=np.float64)
      vectors += LANES * float(squares.sum())
    return vectors

  def restore(self, leaf_sequences: Uint32s) -> None:
    """Converts types, which were written over the leaf sequences, back to sequences."""
    for own, rows in zip(leaf_sequences, self.rows.astype(np.uint32), strict=True):
      for some in pieces(len(own)):
        own[some] += rows[self.tensor[some]]


def find_tensors(
  leaf_sequences: Uint32s, treeplexes: Sequence[Treeplex], states: Sequence[Int64s]
) -> LeafTensors:
  """Groups the leaves that differ in types only.

  Args:
    leaf_sequences: uint32 (players, leaves), in the numbering of the treeplexes; overwritten with types.
    treeplexes: one for each player, built with the `public_states`.
    states: for each player, int64 (infosets,). The public state of each infoset, in layout order.

  Returns:
    The leaves by tensor.
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
  for own in leaf_sequences:
    for some in pieces(len(own)):
      own[some] -= first[own[some]]
  return LeafTensors(first, width, rows, tensor, leaf_sequences)


def parts(width: Int64s) -> Int64s:
  """Returns the number of vectors that rows of these widths are cut into."""
  return -(-width // LANES)


@dataclasses.dataclass(frozen=True)
class Entries:
  """One player's entries in `TypedPatterns`, sorted by row.

  Attributes:
    rows: int64 (entries,). The first sequence of the player's part of a row.
    lines: int64 (entries, columns). The columns of `others`, see `TypedPatterns`.
    factors: float64 (entries,). The multiple of the pattern.
    places: int64 (places,). The squares of the player's patterns, end to end: twice the index in `squares`, plus 1 if
      the last column of the square is not zero.
    squares: float64 (squares, LANES * LANES). The different squares.
  """

  rows: Int64s
  lines: Int64s
  factors: Float64s
  places: Int64s
  squares: Float64s


def find_entries(tensors: LeafTensors, player: int, payoffs: Float64s) -> Entries:
  """Finds a player's entries, given its payoffs, shape (leaves,)."""
  others = [other for other in range(len(tensors.rows)) if other != player]
  outer, cut = others[:-1], [player, *others[-2:]]
  first, width, entry = _cut_tensors(tensors, cut)
  leaves_of = np.bincount(entry, minlength=first.shape[1])
  first_leaf = np.cumsum(leaves_of) - leaves_of
  leaves = np.argsort(entry)
  del entry
  leaves = leaves.astype(np.uint32)

  def payoffs_of(batch: Int64s, size: int) -> Float64s:
    """Returns the payoffs of some entries with `size` squares each, shape (entries, elements)."""
    these = leaves[concatenated_ranges(first_leaf[batch], leaves_of[batch])]
    place = np.repeat(np.arange(len(batch)), leaves_of[batch])
    types = tensors.types[:, these].astype(np.int64)
    types[cut] %= LANES
    square = np.zeros(len(these), np.int64)
    for other in outer:
      square = square * width[other, batch[place]] + types[other]
    cells = np.zeros((len(batch), size, LANES, LANES))
    cells[place, square, types[others[-1]], types[player]] = payoffs[these]
    return cells.reshape(len(batch), -1)

  pattern, factors, patterns = _factorize(payoffs_of, np.prod(width[outer], axis=0))
  lines = [pattern]
  for other in outer:
    lines += [width[other], first[other]]
  lines.append(first[others[-1]])
  used = np.flatnonzero(factors)
  used = used[np.argsort(first[player, used], kind="stable")]
  places, squares = _shared(patterns.reshape(-1, LANES**2))
  return Entries(
    rows=first[player, used],
    lines=np.stack(lines, axis=1)[used],
    factors=factors[used],
    places=places,
    squares=squares,
  )


def _cut_tensors(tensors: LeafTensors, cut: Sequence[int]) -> tuple[Int64s, Int64s, Uint32s]:
  """Cuts the rows of some players into parts of at most `LANES` types: one entry for each tuple of parts.

  Returns:
    int64 (players, entries), the first sequence and the number of types of each player's part; and uint32 (leaves,),
    the entry of each leaf.
  """
  num_parts = {player: parts(tensors.width[tensors.rows[player]]) for player in cut}
  num_entries = np.prod(list(num_parts.values()), axis=0)
  first_entry = np.cumsum(num_entries) - num_entries
  tensor = np.repeat(np.arange(len(num_entries)), num_entries)
  rest = np.arange(len(tensor)) - first_entry[tensor]
  first, width = tensors.rows[:, tensor], tensors.width[tensors.rows[:, tensor]]
  for player in reversed(cut):
    rest, part = np.divmod(rest, num_parts[player][tensor])
    first[player] += LANES * part
    width[player] = np.minimum(LANES, width[player] - LANES * part)
  entry = np.zeros(len(tensors.tensor), np.uint32)
  for some in pieces(len(entry)):
    here = tensors.tensor[some]
    for player in cut:
      entry[some] *= num_parts[player][here].astype(np.uint32)
      entry[some] += tensors.types[player, some] // LANES
    entry[some] += first_entry[here].astype(np.uint32)
  return first, width, entry


def leading(tensors: Float64s) -> Float64s:
  """Returns the first of the largest elements of each flat tensor.

  Divided by it, a tensor is a pattern: that element is 1.
  """
  magnitude = np.abs(tensors)
  one = (magnitude >= _ALMOST_ONE * magnitude.max(axis=1, keepdims=True)).argmax(axis=1)
  return np.asarray(tensors[np.arange(len(tensors)), one])


def rounded(patterns: Float64s) -> Float64s:
  """Returns patterns rounded for comparison: equal patterns have equal bytes."""
  return np.asarray(patterns.round(_DECIMALS) + 0.0)


def _factorize(
  tensors: Callable[[Int64s, int], Float64s], squares: Int64s
) -> tuple[Int64s, Float64s, Float64s]:
  """Writes tensors as multiples of as few patterns as possible.

  Args:
    tensors: takes the numbers of some tensors with the same number of squares, and that number; returns them flat.
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
      found = tensors(batch, size)
      factors[batch] = leading(found)
      used = factors[batch] != 0
      batch, found = batch[used], found[used] / factors[batch][used, None]
      for tensor, row in enumerate(rounded(found)):
        key = row.tobytes()
        if key not in known:
          known[key] = num_squares
          patterns.append(found[tensor].copy())
          num_squares += size
        pattern[batch[tensor]] = known[key]
  return pattern, factors, np.concatenate(patterns)


def _shared(squares: Float64s) -> tuple[Int64s, Float64s]:
  """Keeps one of equal squares; returns `places` and `squares` of `Entries`, squares in order of first use."""
  keys = rounded(squares).view(np.dtype((np.void, squares.itemsize * LANES**2)))
  _, first, which = np.unique(keys[:, 0], return_index=True, return_inverse=True)
  kept = np.sort(first)
  places = np.searchsorted(kept, first)[which]
  marked: Bools = np.any(squares[kept, -LANES:] != 0, axis=1)
  return 2 * places + marked[places], squares[kept]
