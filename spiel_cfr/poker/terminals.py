"""What folds and showdowns are worth to every hand at once, without a list of deals.

With q the reaches of the opponent's hands, and the sums over those that share no card with h, a terminal is worth

    fold:      payoff * sum of q(g)
    showdown:  stake * (sum of q(g) over g weaker than h  -  sum of q(g) over g stronger than h)

to hand h. Both are sums over all hands less the hands that hold one of h's cards, so running totals for each card
give them in one pass over the hands in order of strength: the trick of Johanson et al., "Accelerating Best Response
Calculation in Large Extensive Games" (2011).

Eight terminals at a time stand side by side, `[hand][terminal]`, so that the same pass serves all eight.
"""

from typing import Any

import numpy as np

from spiel_cfr.kernels.arrays import Float64s, Uint32s
from spiel_cfr.kernels.compile import inlined, kernel
from spiel_cfr.kernels.simd import LANES, full, load, store, transpose
from spiel_cfr.payoffs.base import GRADIENT, PayoffArrays

# Columns of the payoff's table from row 2 on, a row per board: how many hands each player has; where in `rows` each
# player's hands are described; where in `values` the reaches of each player's hands are; where in `rows` the levels
# of strength are, and how many; the batches of folds and of showdowns. Rows 0 and 1 hold each player's root and end,
# and where in `values` the terminals' payoffs are.
BOARD_COLUMNS = 12
# Instead of where a row's lanes are: they are 0, 1, 2 and so on. All terminals of a batch have this, or none.
IN_ORDER = np.uint32(0xFFFFFFFF)
# Lines of a description of hands: the places of the two cards where totals are added to, those where totals are read
# from, and the same hand among the opponent's.
HAND_LINES = 5

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_WIDTH = np.uint64(LANES)


@inlined
def give(held: Float64s, low: int, high: int, line: Any) -> None:
  """Adds a hand's line to the totals of both of its cards."""
  store(held, np.uint64(low) * _WIDTH, load(held, np.uint64(low) * _WIDTH) + line)
  store(held, np.uint64(high) * _WIDTH, load(held, np.uint64(high) * _WIDTH) + line)


@inlined
def take(total: Any, held: Float64s, low: int, high: int) -> Any:
  """Returns the total less what hands with either of two cards hold."""
  return total - load(held, np.uint64(low) * _WIDTH) - load(held, np.uint64(high) * _WIDTH)


@inlined
def gather(
  reach: Float64s,
  others: Uint32s,
  rows: Uint32s,
  values: Float64s,
  sequence: Float64s,
  player: int,
  batch: int,
  lanes: int,
  weights: int,
) -> None:
  """Brings the reaches of a player's hands at the terminals of a batch side by side."""
  terminal = batch * _WIDTH
  if others[2 + player, terminal] == IN_ORDER:
    first = others[player, terminal : terminal + _WIDTH].astype(np.uint64)
    for j in range(_ZERO, lanes, _WIDTH):
      weight = load(values, weights + j)
      lines = transpose(
        load(sequence, first[0] + j) * weight,
        load(sequence, first[1] + j) * weight,
        load(sequence, first[2] + j) * weight,
        load(sequence, first[3] + j) * weight,
        load(sequence, first[4] + j) * weight,
        load(sequence, first[5] + j) * weight,
        load(sequence, first[6] + j) * weight,
        load(sequence, first[7] + j) * weight,
      )
      for k in range(LANES):
        store(reach, (j + np.uint64(k)) * _WIDTH, lines[k])
    return
  for k in range(_WIDTH):
    row = np.uint64(others[player, terminal + k])
    lane = np.uint64(others[2 + player, terminal + k])
    for j in range(lanes):
      reach[j * _WIDTH + k] = values[weights + j] * sequence[row + rows[lane + j]]


@inlined
def scatter(
  utility: Float64s,
  value: Float64s,
  payoff: Float64s,
  others: Uint32s,
  rows: Uint32s,
  values: Float64s,
  player: int,
  batch: int,
  lanes: int,
  weights: int,
) -> None:
  """Adds the values of a player's hands at the terminals of a batch to the utilities."""
  terminal = batch * _WIDTH
  if others[2 + player, terminal] == IN_ORDER:
    first = others[player, terminal : terminal + _WIDTH].astype(np.uint64)
    for i in range(_ZERO, lanes, _WIDTH):
      weight = load(values, weights + i)
      start = i * _WIDTH
      lines = transpose(
        load(value, start),
        load(value, start + _WIDTH),
        load(value, start + _WIDTH * np.uint64(2)),
        load(value, start + _WIDTH * np.uint64(3)),
        load(value, start + _WIDTH * np.uint64(4)),
        load(value, start + _WIDTH * np.uint64(5)),
        load(value, start + _WIDTH * np.uint64(6)),
        load(value, start + _WIDTH * np.uint64(7)),
      )
      for k in range(LANES):
        row = first[k] + i
        store(utility, row, load(utility, row) + lines[k] * weight * full(payoff[k]))
    return
  for k in range(_WIDTH):
    row = np.uint64(others[player, terminal + k])
    lane = np.uint64(others[2 + player, terminal + k])
    for i in range(lanes):
      utility[row + rows[lane + i]] += payoff[k] * values[weights + i] * value[i * _WIDTH + k]


@kernel(GRADIENT)
def terminal_gradient(
  player: int, arrays: PayoffArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Adds up the terminals of every board, eight at a time."""
  table, rows, others, values = arrays
  opponent = _ONE - player
  sign = 1.0 - 2.0 * player
  payoffs = table[0, 2]
  most, places = table[0, 3], table[0, 4]
  for i in range(table[player, 0], table[player, 1]):
    utility[i] = 0.0
  reach = np.empty((most + _WIDTH) * _WIDTH)
  value = np.empty((most + _WIDTH) * _WIDTH)
  held = np.empty(places * _WIDTH)
  payoff = np.empty(_WIDTH)

  for board in range(np.uint64(2), np.uint64(table.shape[0])):
    lanes, other_lanes = table[board, player], table[board, opponent]
    hands, other_hands = table[board, 2 + player], table[board, 2 + opponent]
    weights, other_weights = table[board, 4 + player], table[board, 4 + opponent]
    levels, num_levels = table[board, 6], table[board, 7]
    own_levels = levels + player * (num_levels + _ONE)
    other_levels = levels + opponent * (num_levels + _ONE)
    give_low, give_high = other_hands, other_hands + other_lanes
    take_low, take_high = hands + 2 * lanes, hands + 3 * lanes
    same = hands + 4 * lanes
    # Whole vectors of hands are read: what is beyond the last hand must be finite.
    for i in range(lanes * _WIDTH, (lanes + _WIDTH) * _WIDTH):
      value[i] = 0.0
    for batch in range(table[board, 8], table[board, 11]):
      is_fold = batch < table[board, 9]
      gather(
        reach, others, rows, values, sequence_form, opponent, batch, other_lanes, other_weights
      )
      for k in range(_WIDTH):
        reach[other_lanes * _WIDTH + k] = 0.0
      for i in range(places * _WIDTH):
        held[i] = 0.0
      total = full(0.0)
      if is_fold:
        for j in range(other_lanes):
          line = load(reach, j * _WIDTH)
          total = total + line
          give(held, rows[give_low + j], rows[give_high + j], line)
        for i in range(lanes):
          without = take(total, held, rows[take_low + i], rows[take_high + i])
          twin = load(reach, np.uint64(rows[same + i]) * _WIDTH)
          store(value, i * _WIDTH, without + twin)
      else:
        for level in range(num_levels):
          begin, end = (
            np.uint64(rows[own_levels + level]),
            np.uint64(rows[own_levels + level + _ONE]),
          )
          for i in range(begin, end):
            weaker = take(total, held, rows[take_low + i], rows[take_high + i])
            store(value, i * _WIDTH, weaker)
          for j in range(
            np.uint64(rows[other_levels + level]), np.uint64(rows[other_levels + level + _ONE])
          ):
            line = load(reach, j * _WIDTH)
            total = total + line
            give(held, rows[give_low + j], rows[give_high + j], line)
          for i in range(begin, end):
            not_stronger = take(total, held, rows[take_low + i], rows[take_high + i])
            store(value, i * _WIDTH, load(value, i * _WIDTH) + not_stronger)
        # Weaker less stronger is weaker and weaker-or-equal less all.
        for i in range(lanes):
          everything = take(total, held, rows[take_low + i], rows[take_high + i])
          store(value, i * _WIDTH, load(value, i * _WIDTH) - everything)

      for k in range(_WIDTH):
        payoff[k] = values[payoffs + batch * _WIDTH + k] * (sign if is_fold else 1.0)
      scatter(utility, value, payoff, others, rows, values, player, batch, lanes, weights)
