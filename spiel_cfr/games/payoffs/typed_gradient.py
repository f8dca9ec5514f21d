"""The gradient of payoffs that are multiples of few patterns over private types."""

from typing import Any

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import Float64s, Uint32s
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr._numba.simd import LANES, add_multiple, full, load, lowest_bit, nonzero_bits, store
from spiel_cfr.games.payoffs.payoff import PayoffArrays, gradient_signature

_ZERO, _ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX, _SEVEN = (np.uint64(number) for number in range(8))
_LANES, _SQUARE = np.uint64(LANES), np.uint64(LANES * LANES)


@inlined
def _add_squares(
  total: Any,
  factor: float,
  rows: Uint32s,
  place: int,
  width: int,
  first: int,
  other: int,
  values: Float64s,
  sequence_form: Float64s,
) -> Any:
  """Returns `total` with squares added, each times the last player's strategy, the next to last's, and a factor.

  Args:
    total: a vector.
    factor: the factor.
    rows: has from `place` on, for each type of the next to last player, twice its square, plus one if there is anything
      in the last column of that.
    place: see `rows`.
    width: how many types the next to last player has, no more than `LANES`.
    first: the first sequence of these.
    other: the first sequence of the last player's types.
    values: has the squares.
    sequence_form: the strategies.
  """
  # Players soon stop playing to most places: what is 0 is left out without a branch for each type.
  played = nonzero_bits(load(sequence_form, first)) & ((_ONE << width) - _ONE)
  while played != _ZERO:
    outer = lowest_bit(played)
    played &= played - _ONE
    marked = np.uint64(rows[place + outer])
    square = (marked >> _ONE) * _SQUARE
    product = full(0.0)
    for lane in range(_SEVEN):
      block = load(values, square + lane * _LANES)
      product = add_multiple(product, block, sequence_form[other + lane])
    # Where a player has no more than seven types, as with eight cards one of which is public, the rest is 0.
    if marked & _ONE:
      block = load(values, square + _SEVEN * _LANES)
      product = add_multiple(product, block, sequence_form[other + _SEVEN])
    total = add_multiple(total, product, factor * sequence_form[first + outer])
  return total


@kernel(gradient_signature(types.float64))
def typed_pattern_gradient(
  player: int, arrays: PayoffArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Multiplies patterns by the other players' strategies, for a vector of the player's own types at a time.

  See `TypedPatterns.build` for the arrays. What a vector has beyond the types in its row is zero, and falls on
  sequences that are written later or on padding. What is read beyond the types of the last other player is multiplied
  by zero.
  """
  table, rows, others, values = arrays
  first_row, end_row, first_factor = table[player, 0], table[player, 1], table[player, 2]
  if others.shape[1] == 2:
    for row in range(first_row, end_row):
      total = full(0.0)
      for entry in range(np.uint64(rows[_TWO * row + _ONE]), np.uint64(rows[_TWO * row + _THREE])):
        square, other = np.uint64(others[entry, 0]) * _SQUARE, np.uint64(others[entry, 1])
        product = full(0.0)
        for lane in range(_LANES):
          block = load(values, square + lane * _LANES)
          product = add_multiple(product, block, sequence_form[other + lane])
        total = add_multiple(total, product, values[first_factor + entry])
      store(utility, np.uint64(rows[_TWO * row]), total)
  else:
    last = np.uint64(others.shape[1] - 1)
    first_place = _TWO * (table[table.shape[0] - 1, 1] + _ONE)
    for row in range(first_row, end_row):
      total = full(0.0)
      for entry in range(np.uint64(rows[_TWO * row + _ONE]), np.uint64(rows[_TWO * row + _THREE])):
        place, other = first_place + np.uint64(others[entry, 0]), np.uint64(others[entry, last])
        if nonzero_bits(load(sequence_form, other)) == _ZERO:
          continue
        width, first = np.uint64(others[entry, last - _TWO]), np.uint64(others[entry, last - _ONE])
        factor = values[first_factor + entry]
        # A loop over combinations of nobody's types would take a seventh of the time of three players' gradients.
        if last == _THREE:
          total = _add_squares(
            total, factor, rows, place, width, first, other, values, sequence_form
          )
          continue
        # All combinations of types of the other players but the last two, in lexicographic order.
        combinations = _ONE
        for line in range(_ONE, last - _TWO, _TWO):
          combinations *= np.uint64(others[entry, line])
        for combination in range(combinations):
          rest: Any = combination
          weight = factor
          for back in range(_FOUR, last, _TWO):
            outer_width = np.uint64(others[entry, last - back])
            weight *= sequence_form[
              np.uint64(others[entry, last - back + _ONE]) + rest % outer_width
            ]
            rest = rest // outer_width
          if weight != 0.0:
            total = _add_squares(
              total, weight, rows, place, width, first, other, values, sequence_form
            )
          place += width
      store(utility, np.uint64(rows[_TWO * row]), total)
