"""Private types (cards, dice, hands), found in the leaves of a game, and payoffs as multiples of few patterns."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, Uint32s, pieces, spread
from spiel_cfr._numba.simd import LANES
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Two tensors with a largest element of 1 that agree to these decimals are the same pattern. Chance's probabilities,
# multiplied in another order, make them differ in later ones.
_DECIMALS = 13
# Elements of a tensor that are this much of the largest, or more, are equally large but for rounding.
_ALMOST_ONE = 1 - 1e-9
# Bounds the memory that building takes besides that of the game.
_SQUARES_AT_A_TIME = 1 << 9


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
class LeafTensors:
  """The leaves by tensor: a tensor has all leaves with sequences in the same rows, a dimension for each player.

  A row is the sequences of one action at all infosets of one public state.

  Attributes:
    first: shape (sequences,): the first sequence in the row of each.
    width: shape (sequences,): how many sequences, or types, are in the row of each; 0 for padding.
    rows: shape (players, tensors): the first sequence of each row.
    tensor: shape (leaves,): the tensor of each leaf.
    types: shape (players, leaves): the places of each leaf's sequences in their rows.
  """

  first: Uint32s
  width: Int64s
  rows: Int64s
  tensor: Uint32s
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
        own[some] += rows[self.tensor[some]]


def find_tensors(
  leaf_sequences: Uint32s, treeplexes: Sequence[Treeplex], states: Sequence[Int64s]
) -> LeafTensors:
  """Finds out which leaves differ in types only.

  Args:
    leaf_sequences: shape (players, leaves), in the numbering of the treeplexes; written over, with types.
    treeplexes: one per player, built with the `public_states`.
    states: of each player, the public state of each infoset, in layout order.

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
  """Returns how many vectors rows of these widths are cut into."""
  return -(-width // LANES)


@dataclasses.dataclass(frozen=True)
class Entries:
  """One player's entries in `TypedPatterns`, sorted by row.

  Attributes:
    rows: the first sequence of each entry's own part of a row.
    lines: what `TypedPatterns` says of `others`.
    factors: one per entry.
    places: for each square of the player's patterns, end to end, twice which of those that are kept it is, plus one if
      anything in its last column is not zero.
    squares: those that are kept, shape (squares, LANES * LANES).
  """

  rows: Int64s
  lines: Int64s
  factors: Float64s
  places: Int64s
  squares: Float64s


def find_entries(tensors: LeafTensors, player: int, payoffs: Float64s) -> Entries:
  """Finds a player's entries in the leaves, given its payoffs, shape (leaves,)."""
  others = [other for other in range(len(tensors.rows)) if other != player]
  outer, cut = others[:-1], [player, *others[-2:]]
  # An entry for each tuple of parts of the rows that are cut.
  num_parts = {other: parts(tensors.width[tensors.rows[other]]) for other in cut}
  num_entries = np.prod(list(num_parts.values()), axis=0)
  first_entry = np.cumsum(num_entries) - num_entries
  tensor = np.repeat(np.arange(len(num_entries)), num_entries)
  rest = np.arange(len(tensor)) - first_entry[tensor]
  first, width = tensors.rows[:, tensor], tensors.width[tensors.rows[:, tensor]]
  for other in reversed(cut):
    rest, part = np.divmod(rest, num_parts[other][tensor])
    first[other] += LANES * part
    width[other] = np.minimum(LANES, width[other] - LANES * part)

  entry = np.zeros(len(payoffs), np.uint32)
  for some in pieces(len(entry)):
    here = tensors.tensor[some]
    for other in cut:
      entry[some] *= num_parts[other][here].astype(np.uint32)
      entry[some] += tensors.types[other, some] // LANES
    entry[some] += first_entry[here].astype(np.uint32)
  leaves_of = np.bincount(entry, minlength=len(tensor))
  first_leaf = np.cumsum(leaves_of) - leaves_of
  leaves = np.argsort(entry)
  del entry
  leaves = leaves.astype(np.uint32)

  def payoffs_of(batch: Int64s, size: int) -> Float64s:
    """Returns the payoffs of some entries with `size` squares each, shape (entries, elements)."""
    these = leaves[spread(first_leaf[batch], leaves_of[batch])]
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


def leading(tensors: Float64s) -> Float64s:
  """Returns of each of some flat tensors the first of its largest elements, which becomes 1 in its pattern."""
  magnitude = np.abs(tensors)
  one = (magnitude >= _ALMOST_ONE * magnitude.max(axis=1, keepdims=True)).argmax(axis=1)
  return np.asarray(tensors[np.arange(len(tensors)), one])


def rounded(patterns: Float64s) -> Float64s:
  """Returns patterns as they are compared: those with the same bytes are the same."""
  return np.asarray(patterns.round(_DECIMALS) + 0.0)


def _factorize(
  tensors: Callable[[Int64s, int], Float64s], squares: Int64s
) -> tuple[Int64s, Float64s, Float64s]:
  """Writes tensors, which have so many squares of LANES * LANES each, as multiples of as few as possible.

  `tensors` returns some of them, which have the same number of squares, flat.

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
  """Keeps of squares that are alike the first; returns `places` and `squares` of `Entries`, in order of first use."""
  keys = rounded(squares).view(np.dtype((np.void, squares.itemsize * LANES**2)))
  _, first, which = np.unique(keys[:, 0], return_index=True, return_inverse=True)
  kept = np.sort(first)
  places = np.searchsorted(kept, first)[which]
  marked: Bools = np.any(squares[kept, -LANES:] != 0, axis=1)
  return 2 * places + marked[places], squares[kept]
