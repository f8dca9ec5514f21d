"""Blocks of payoffs written as multiples of few patterns, for `typed_patterns`."""

import dataclasses
from collections.abc import Callable

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, pieces, spread
from spiel_cfr._numba.simd import LANES
from spiel_cfr.games.payoffs.private_types import Blocks, parts

# Two tensors with a largest element of 1 that agree to these decimals are the same pattern. Chance's probabilities,
# multiplied in another order, make them differ in later ones.
_DECIMALS = 13
# Elements of a tensor that are this much of the largest, or more, are equally large but for rounding.
_ALMOST_ONE = 1 - 1e-9
# Bounds the memory that building takes besides that of the game.
_SQUARES_AT_A_TIME = 1 << 9


@dataclasses.dataclass(frozen=True)
class Entries:
  """One player's entries, sorted by row.

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


def find_entries(blocks: Blocks, player: int, payoffs: Float64s) -> Entries:
  """Finds a player's entries in the leaves, given its payoffs, shape (leaves,)."""
  others = [other for other in range(len(blocks.rows)) if other != player]
  outer, cut = others[:-1], [player, *others[-2:]]
  # An entry for each tuple of parts of the rows that are cut.
  num_parts = {other: parts(blocks.width[blocks.rows[other]]) for other in cut}
  num_entries = np.prod(list(num_parts.values()), axis=0)
  first_entry = np.cumsum(num_entries) - num_entries
  block = np.repeat(np.arange(len(num_entries)), num_entries)
  rest = np.arange(len(block)) - first_entry[block]
  first, width = blocks.rows[:, block], blocks.width[blocks.rows[:, block]]
  for other in reversed(cut):
    rest, part = np.divmod(rest, num_parts[other][block])
    first[other] += LANES * part
    width[other] = np.minimum(LANES, width[other] - LANES * part)

  entry = np.zeros(len(payoffs), np.uint32)
  for some in pieces(len(entry)):
    here = blocks.block[some]
    for other in cut:
      entry[some] *= num_parts[other][here].astype(np.uint32)
      entry[some] += blocks.types[other, some] // LANES
    entry[some] += first_entry[here].astype(np.uint32)
  leaves_of = np.bincount(entry, minlength=len(block))
  first_leaf = np.cumsum(leaves_of) - leaves_of
  leaves = np.argsort(entry)
  del entry
  leaves = leaves.astype(np.uint32)

  def tensors(batch: Int64s, size: int) -> Float64s:
    """Returns the payoffs of some entries with `size` squares each, shape (entries, elements)."""
    these = leaves[spread(first_leaf[batch], leaves_of[batch])]
    place = np.repeat(np.arange(len(batch)), leaves_of[batch])
    types = blocks.types[:, these].astype(np.int64)
    types[cut] %= LANES
    square = np.zeros(len(these), np.int64)
    for other in outer:
      square = square * width[other, batch[place]] + types[other]
    cells = np.zeros((len(batch), size, LANES, LANES))
    cells[place, square, types[others[-1]], types[player]] = payoffs[these]
    return cells.reshape(len(batch), -1)

  pattern, factors, patterns = _factorize(tensors, np.prod(width[outer], axis=0))
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
      magnitude = np.abs(found)
      # The first of the largest elements becomes 1.
      one = (magnitude >= _ALMOST_ONE * magnitude.max(axis=1, keepdims=True)).argmax(axis=1)
      factors[batch] = found[np.arange(len(batch)), one]
      used = factors[batch] != 0
      batch, found = batch[used], found[used] / factors[batch][used, None]
      for tensor, rounded in enumerate(found.round(_DECIMALS) + 0.0):
        key = rounded.tobytes()
        if key not in known:
          known[key] = num_squares
          patterns.append(found[tensor].copy())
          num_squares += size
        pattern[batch[tensor]] = known[key]
  return pattern, factors, np.concatenate(patterns)


def _shared(squares: Float64s) -> tuple[Int64s, Float64s]:
  """Keeps of squares that are alike the first; returns `places` and `squares` of `Entries`, in order of first use."""
  keys = (squares.round(_DECIMALS) + 0.0).view(np.dtype((np.void, squares.itemsize * LANES**2)))
  _, first, which = np.unique(keys[:, 0], return_index=True, return_inverse=True)
  kept = np.sort(first)
  places = np.searchsorted(kept, first)[which]
  marked: Bools = np.any(squares[kept, -LANES:] != 0, axis=1)
  return 2 * places + marked[places], squares[kept]
