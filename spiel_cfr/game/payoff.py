"""Payoffs in sequence form: given how the others play, what each sequence of a player is worth.

With x_q the sequence-form strategy of player q, the expected utility of player p is multilinear, and its gradient in
x_p is, at each sequence s of p,

    u_p(s) = sum over leaves with sequence s of p:  payoff_p(leaf) * product over q != p of x_q(sequence of q)

where a leaf is one tuple of last sequences, and its payoff the sum over the histories that end with it of chance's
probability times the return. A solver needs nothing else of the game's histories.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from spiel_cfr.game.treeplex import Treeplex
from spiel_cfr.kernels import simd
from spiel_cfr.kernels.arrays import (
  COUNT,
  COUNT_TABLE,
  FLOATS,
  INDEX_TABLE,
  INDICES,
  Float64s,
  Uint32s,
  Uint64s,
)
from spiel_cfr.kernels.compile import Kernel, kernel
from spiel_cfr.kernels.simd import LANES

_ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX, _SEVEN = (np.uint64(number) for number in range(1, 8))
_NONE = np.uint64(np.iinfo(np.uint64).max)
_LANES, _SQUARE = np.uint64(LANES), np.uint64(LANES * LANES)

# (player, table, rows, others, values, sequence, utility): writes the gradient of `player` into `utility` at all of
# that player's sequences, given everybody's sequence-form strategies; padding may become zero. What the four arrays
# after the player hold is the payoff form's own business.
GRADIENT_SIGNATURE = types.void(COUNT, COUNT_TABLE, INDICES, INDEX_TABLE, FLOATS, FLOATS, FLOATS)


@kernel(GRADIENT_SIGNATURE)
def leaf_row_gradient(
  player: int,
  table: Uint64s,
  rows: Uint32s,
  others: Uint32s,
  values: Float64s,
  sequence: Float64s,
  utility: Float64s,
) -> None:
  """Sums each sequence's leaves: gathers only, so the order of the sums never changes."""
  root, end, first_row = table[player, 0], table[player, 1], table[player, 2]
  num_others = others.shape[0]
  if num_others == 1:
    for own in range(end - root):
      row = first_row + own
      total = 0.0
      for leaf in range(np.uint64(rows[row]), np.uint64(rows[row + np.uint64(1)])):
        total += values[leaf] * sequence[others[0, leaf]]
      utility[root + own] = total
  elif num_others == 2:
    for own in range(end - root):
      row = first_row + own
      total = 0.0
      for leaf in range(np.uint64(rows[row]), np.uint64(rows[row + np.uint64(1)])):
        total += values[leaf] * sequence[others[0, leaf]] * sequence[others[1, leaf]]
      utility[root + own] = total
  else:
    for own in range(end - root):
      row = first_row + own
      total = 0.0
      for leaf in range(np.uint64(rows[row]), np.uint64(rows[row + np.uint64(1)])):
        product = values[leaf]
        for other in range(np.uint64(num_others)):
          product *= sequence[others[other, leaf]]
        total += product
      utility[root + own] = total


@kernel(GRADIENT_SIGNATURE)
def typed_pattern_gradient(
  player: int,
  table: Uint64s,
  rows: Uint32s,
  others: Uint32s,
  values: Float64s,
  sequence: Float64s,
  utility: Float64s,
) -> None:
  """Multiplies patterns by the other players' strategies, for a vector of the player's own types at a time.

  See `typed_patterns` for the arrays. What a vector has beyond the types in its row is zero, and falls on sequences
  that are written later or on padding. What is read beyond the types of the last other player is multiplied by zero.
  """
  first_row, end_row, first_factor = table[player, 0], table[player, 1], table[player, 2]
  if others.shape[1] == 2:
    # Neighbouring rows often share a pattern, so it stays in registers.
    loaded = _NONE
    c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = simd.full(0.0)
    for row in range(first_row, end_row):
      total = simd.full(0.0)
      for entry in range(np.uint64(rows[_TWO * row + _ONE]), np.uint64(rows[_TWO * row + _THREE])):
        pattern, other = np.uint64(others[entry, 0]) * _SQUARE, np.uint64(others[entry, 1])
        if pattern != loaded:
          loaded = pattern
          c0 = simd.load(values, pattern)
          c1 = simd.load(values, pattern + _LANES)
          c2 = simd.load(values, pattern + _LANES * _TWO)
          c3 = simd.load(values, pattern + _LANES * _THREE)
          c4 = simd.load(values, pattern + _LANES * _FOUR)
          c5 = simd.load(values, pattern + _LANES * _FIVE)
          c6 = simd.load(values, pattern + _LANES * _SIX)
          c7 = simd.load(values, pattern + _LANES * _SEVEN)
        product = simd.add_multiple(simd.full(0.0), c0, sequence[other])
        product = simd.add_multiple(product, c1, sequence[other + _ONE])
        product = simd.add_multiple(product, c2, sequence[other + _TWO])
        product = simd.add_multiple(product, c3, sequence[other + _THREE])
        product = simd.add_multiple(product, c4, sequence[other + _FOUR])
        product = simd.add_multiple(product, c5, sequence[other + _FIVE])
        product = simd.add_multiple(product, c6, sequence[other + _SIX])
        product = simd.add_multiple(product, c7, sequence[other + _SEVEN])
        total = simd.add_multiple(total, product, values[first_factor + entry])
      simd.store(utility, np.uint64(rows[_TWO * row]), total)
  else:
    last = np.uint64(others.shape[1] - 1)
    for row in range(first_row, end_row):
      total = simd.full(0.0)
      for entry in range(np.uint64(rows[_TWO * row + _ONE]), np.uint64(rows[_TWO * row + _THREE])):
        column, other = np.uint64(others[entry, 0]) * _SQUARE, np.uint64(others[entry, last])
        combinations = _ONE
        for line in range(_ONE, last, _TWO):
          combinations *= np.uint64(others[entry, line])
        # All combinations of types of the other players but the last, in lexicographic order.
        for combination in range(combinations):
          rest: Any = combination
          weight = values[first_factor + entry]
          for back in range(_TWO, last - _ONE, _TWO):
            width = np.uint64(others[entry, last - back])
            weight *= sequence[np.uint64(others[entry, last - back + _ONE]) + rest % width]
            rest = rest // width
          weight *= sequence[np.uint64(others[entry, 2]) + rest]
          # Players soon stop playing to most places, so this saves a third of the time or more.
          if weight == 0.0:
            column += _SQUARE
            continue
          product = simd.full(0.0)
          for lane in range(_LANES):
            block = simd.load(values, column)
            product = simd.add_multiple(product, block, sequence[other + lane])
            column += _LANES
          total = simd.add_multiple(total, product, weight)
      simd.store(utility, np.uint64(rows[_TWO * row]), total)


def _leaf_row_leaves(payoff: "Payoff", player: int) -> tuple[Uint32s, Uint32s, Float64s]:
  root, end, first_row = payoff.table[player, :3].astype(np.int64)
  starts = payoff.rows[first_row : first_row + end - root + 1].astype(np.int64)
  own = np.repeat(np.arange(root, end, dtype=np.uint32), np.diff(starts))
  leaves = slice(starts[0], starts[-1])
  return own, payoff.others[:, leaves], payoff.values[leaves]


def _typed_pattern_leaves(payoff: "Payoff", player: int) -> tuple[Uint32s, Uint32s, Float64s]:
  first_row, end_row, first_factor = payoff.table[player, :3].astype(np.int64)
  rows, starts = payoff.rows.reshape(-1, 2)[first_row : end_row + 1].astype(np.int64).T
  own = np.repeat(rows[:-1], np.diff(starts))
  lines = payoff.others[starts[0] : starts[-1]].astype(np.int64)
  # From here on, an element a square, and then an element a leaf.
  squares = lines[:, 1:-1:2].prod(axis=1)
  entry = np.repeat(np.arange(len(lines)), squares)
  combination = np.arange(len(entry)) - np.repeat(np.cumsum(squares) - squares, squares)
  cells = payoff.values[:first_factor].reshape(-1, LANES, LANES)[lines[entry, 0] + combination]
  cells = cells * payoff.values[first_factor:][starts[0] + entry, None, None]
  square, last_type, own_type = np.nonzero(cells)
  entry, combination = entry[square], combination[square]
  others = [lines[entry, -1] + last_type]
  for line in range(lines.shape[1] - 3, 0, -2):
    others.insert(0, lines[entry, line + 1] + combination % lines[entry, line])
    combination = combination // lines[entry, line]
  # From ascending order to one that begins with the next player.
  others = others[player:] + others[:player]
  return (
    (own[entry] + own_type).astype(np.uint32),
    np.stack(others).astype(np.uint32),
    cells[square, last_type, own_type],
  )


LEAF_ROWS = "leaf rows"
TYPED_PATTERNS = "typed patterns"
_GRADIENTS = {LEAF_ROWS: leaf_row_gradient, TYPED_PATTERNS: typed_pattern_gradient}
_LEAVES = {LEAF_ROWS: _leaf_row_leaves, TYPED_PATTERNS: _typed_pattern_leaves}


def register_gradient(form: str, gradient: Kernel) -> None:
  """Makes a further payoff form known: its name, and its kernel of `GRADIENT_SIGNATURE`."""
  _GRADIENTS[form] = gradient


@dataclasses.dataclass(frozen=True)
class Payoff:
  """The payoffs of all players, in one of several forms.

  Attributes:
    form: names the kernel that computes gradients from the arrays.
    table: uint64 of shape (players, columns); the last column is the number of leaves.
    rows: uint32, one-dimensional.
    others: uint32, two-dimensional.
    values: float64, one-dimensional.
  """

  form: str
  table: Uint64s
  rows: Uint32s
  others: Uint32s
  values: Float64s

  @property
  def gradient(self) -> Kernel:
    """The kernel, of `GRADIENT_SIGNATURE`."""
    return _GRADIENTS[self.form]

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """Lists the leaves where a player's payoff is not zero, for analysis rather than speed.

    Returns:
      The player's last sequence, shape (leaves,); those of the other players, from the next one on, shape
      (players - 1, leaves); and the payoffs weighted by chance, shape (leaves,).
    """
    return _LEAVES[self.form](self, player)

  @property
  def num_leaves(self) -> int:
    """How many tuples of last sequences have a payoff for player 0."""
    return int(self.table[0, -1])

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays."""
    return self.table.nbytes + self.rows.nbytes + self.others.nbytes + self.values.nbytes


def leaf_rows(
  leaf_sequences: Uint32s, leaf_payoffs: Float64s, treeplexes: Sequence[Treeplex]
) -> Payoff:
  """Builds the plainest form: for each player, a sparse row of leaves a sequence.

  Args:
    leaf_sequences: shape (players, leaves), in the numbering of the treeplexes.
    leaf_payoffs: shape (leaves, players).
    treeplexes: one a player.

  Returns:
    The payoff with, in `table`, a player's root, end, first row and number of leaves; in `rows`, where each row's
    leaves begin; in `others`, shape (players - 1, leaves of all players), the other players' sequences; in `values`,
    the payoffs.
  """
  num_players = len(treeplexes)
  table = np.zeros((num_players, 4), np.uint64)
  rows = [np.zeros(1, np.int64)]
  others: list[Uint32s] = []
  values: list[Float64s] = []
  first_row = first_leaf = 0
  for player, treeplex in enumerate(treeplexes):
    table[player] = (
      treeplex.root,
      treeplex.end,
      first_row,
      np.count_nonzero(leaf_payoffs[:, player]),
    )
    relevant = np.flatnonzero(leaf_payoffs[:, player])
    keys = [leaf_sequences[(player + shift) % num_players] for shift in range(num_players)]
    order = relevant[np.lexsort([key[relevant] for key in reversed(keys)])]
    others.append(np.stack([key[order] for key in keys[1:]]))
    values.append(leaf_payoffs[order, player])
    counts = np.bincount(
      keys[0][order].astype(np.int64) - treeplex.root, minlength=treeplex.end - treeplex.root
    )
    rows.append(first_leaf + np.cumsum(counts))
    first_row += len(counts)
    first_leaf += len(order)
  return Payoff(
    form=LEAF_ROWS,
    table=table,
    rows=np.concatenate(rows).astype(np.uint32),
    others=np.concatenate(others, axis=1),
    values=np.concatenate(values),
  )
