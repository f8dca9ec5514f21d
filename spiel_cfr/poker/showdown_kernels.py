"""What folds and showdowns are worth to every hand at once, without a list of deals.

With q the reaches of the opponent's hands, and the sums over those that share no card with h, a terminal is worth

    fold:      payoff * sum of q(g)
    showdown:  stake * (sum of q(g) over g weaker than h  -  sum of q(g) over g stronger than h)

to hand h. Both are sums over all hands less the hands that hold one of h's cards, so running totals for each card
give them in one pass over the hands in order of strength: the trick of Johanson et al., "Accelerating Best Response
Calculation in Large Extensive Games" (2011).

Eight terminals at a time stand side by side, `[hand][terminal]`, so that the same pass serves all eight; sixteen where
numbers are float32.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Uint32s, Uint64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.simd import full, load, store, width
from spiel_cfr._numba.steps import step
from spiel_cfr._numba.transposes import add_columns, load_columns
from spiel_cfr.games.payoffs.payoff import Gradient, PayoffArrays

# Columns of the payoff's table from row 2 on, a row per board: how many hands each player has; where in `rows` each
# player's hands are described; where in `values` the reaches of each player's hands are; where in `rows` the levels
# of strength are, and how many; the first and one past the last terminal of folds, and of showdowns. Rows 0 and 1 hold
# each player's root and end; then row 0 the most hands, and the places of cards. Payoffs of terminals are `patterns`.
BOARD_COLUMNS = 12
# Instead of where a row's lanes are: they are 0, 1, 2 and so on. All terminals of a vector have this, or none.
IN_ORDER = np.uint32(0xFFFFFFFF)
# Lines of a description of hands: the places of the two cards where totals are added to, those where totals are read
# from, and the same hand among the opponent's.
HAND_LINES = 5

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Side(NamedTuple):
  """A player's hands on a board.

  Attributes:
    length: how many there are.
    hands: where in `rows` they are described.
    weights: where in `values` their reaches are.
    levels: where in `rows` it says which of them are of each strength.
  """

  length: int
  hands: int
  weights: int
  levels: int


@inlined
def side(table: Uint64s, board: int, player: int) -> Side:
  """Returns a player's hands on the board of a row of the table."""
  levels = table[board, 6] + player * (table[board, 7] + _ONE)
  return Side(table[board, player], table[board, 2 + player], table[board, 4 + player], levels)


@inlined
def hold(held: AnyFloats, rows: Uint32s, hands: Side, hand: int, reach: Any) -> None:
  """Adds a hand's reach to the totals of both of its cards."""
  lanes = width(held)
  low = np.uint64(rows[hands.hands + hand]) * lanes
  high = np.uint64(rows[hands.hands + hands.length + hand]) * lanes
  store(held, low, load(held, low) + reach)
  store(held, high, load(held, high) + reach)


@inlined
def without_cards(total: Any, held: AnyFloats, rows: Uint32s, hands: Side, hand: int) -> Any:
  """Returns a total less what hands with either of a hand's two cards add to it."""
  lanes = width(held)
  low = np.uint64(rows[hands.hands + 2 * hands.length + hand])
  high = np.uint64(rows[hands.hands + 3 * hands.length + hand])
  return total - load(held, low * lanes) - load(held, high * lanes)


@inlined
def gather_reaches(
  reach: AnyFloats,
  arrays: PayoffArrays,
  sequence_form: AnyFloats,
  player: int,
  terminal: int,
  hands: Side,
) -> None:
  """Brings the reaches of a player's hands at the terminals from one on side by side."""
  others, rows, values = arrays.others, arrays.rows, arrays.values
  lanes = width(reach)
  if others[2 + player, terminal] == IN_ORDER:
    first = others[player, terminal : terminal + lanes].astype(np.uint64)
    for j in range(_ZERO, hands.length, lanes):
      load_columns(sequence_form, first, j, values, hands.weights + j, reach, j * lanes)
    return
  for k in range(lanes):
    row = np.uint64(others[player, terminal + k])
    lane = np.uint64(others[2 + player, terminal + k])
    for j in range(hands.length):
      reach[j * lanes + k] = values[hands.weights + j] * sequence_form[row + rows[lane + j]]


@inlined
def scatter_values(
  utility: AnyFloats,
  value: AnyFloats,
  payoff: AnyFloats,
  arrays: PayoffArrays,
  player: int,
  terminal: int,
  hands: Side,
) -> None:
  """Adds the values of a player's hands at the terminals from one on to the utilities."""
  others, rows, values = arrays.others, arrays.rows, arrays.values
  lanes = width(value)
  if others[2 + player, terminal] == IN_ORDER:
    first = others[player, terminal : terminal + lanes].astype(np.uint64)
    for i in range(_ZERO, hands.length, lanes):
      add_columns(utility, first, i, values, hands.weights + i, payoff, value, i * lanes)
    return
  for k in range(lanes):
    row = np.uint64(others[player, terminal + k])
    lane = np.uint64(others[2 + player, terminal + k])
    for i in range(hands.length):
      weight = payoff[k] * values[hands.weights + i]
      utility[row + rows[lane + i]] += weight * value[i * lanes + k]


@inlined
def settle_folds(
  rows: Uint32s, own: Side, other: Side, reach: AnyFloats, held: AnyFloats, value: AnyFloats
) -> None:
  """Leaves in `value` the reaches of all hands that share no card with each of the player's."""
  lanes = width(value)
  total = full(0.0)
  for j in range(other.length):
    line = load(reach, j * lanes)
    total = total + line
    hold(held, rows, other, j, line)
  for i in range(own.length):
    # The same hand among the opponent's was taken off once for each of its cards.
    same = np.uint64(rows[own.hands + 4 * own.length + i])
    line = without_cards(total, held, rows, own, i) + load(reach, same * lanes)
    store(value, i * lanes, line)


@inlined
def settle_showdowns(
  rows: Uint32s,
  own: Side,
  other: Side,
  num_levels: int,
  reach: AnyFloats,
  held: AnyFloats,
  value: AnyFloats,
) -> None:
  """Leaves in `value` the reaches of weaker hands less those of stronger ones."""
  lanes = width(value)
  total = full(0.0)
  for level in range(num_levels):
    # Both players' hands of this strength.
    first, last = np.uint64(rows[own.levels + level]), np.uint64(rows[own.levels + level + _ONE])
    begin = np.uint64(rows[other.levels + level])
    end = np.uint64(rows[other.levels + level + _ONE])
    for i in range(first, last):
      store(value, i * lanes, without_cards(total, held, rows, own, i))
    for j in range(begin, end):
      line = load(reach, j * lanes)
      total = total + line
      hold(held, rows, other, j, line)
    for i in range(first, last):
      not_stronger = without_cards(total, held, rows, own, i)
      store(value, i * lanes, load(value, i * lanes) + not_stronger)
  # Weaker less stronger is weaker and weaker-or-equal less all.
  for i in range(own.length):
    everything = without_cards(total, held, rows, own, i)
    store(value, i * lanes, load(value, i * lanes) - everything)


@inlined
def settle(
  is_fold: bool,
  rows: Uint32s,
  own: Side,
  other: Side,
  num_levels: int,
  reach: AnyFloats,
  held: AnyFloats,
  value: AnyFloats,
) -> None:
  """Settles terminals that stand side by side, for one unit of payoff each.

  Args:
    is_fold: whether they are folds, or else showdowns.
    rows: see `PokerTerminals`.
    own: the player's hands.
    other: the opponent's.
    num_levels: how many strengths there are.
    reach: of the opponent's hands, and nothing in the line after the last one.
    held: workspace, a line for each card.
    value: filled with what each hand of the player has.
  """
  for i in range(held.shape[0]):
    held[i] = 0.0
  if is_fold:
    settle_folds(rows, own, other, reach, held, value)
  else:
    settle_showdowns(rows, own, other, num_levels, reach, held, value)


@step(Gradient)
def terminal_gradient(record: Gradient) -> None:
  """Adds up the terminals of every board, a vector of them at a time; see `PokerTerminals`."""
  player, arrays = record.player, record.arrays
  sequence_form, utility = record.sequence_form, record.utility
  table, rows, payoffs = arrays.runs, arrays.rows, arrays.patterns
  lanes, opponent = width(utility), _ONE - player
  most, places = table[0, 2], table[0, 3]
  sign = 1.0 - 2.0 * player
  for i in range(table[player, 0], table[player, 1]):
    utility[i] = 0.0
  reach = np.empty((most + lanes) * lanes, utility.dtype)
  value = np.empty((most + lanes) * lanes, utility.dtype)
  held = np.empty(places * lanes, utility.dtype)
  payoff = np.empty(lanes, utility.dtype)

  for board in range(np.uint64(2), np.uint64(table.shape[0])):
    own, other = side(table, board, player), side(table, board, opponent)
    # Whole vectors of hands are read: what is beyond the last hand must be finite.
    for i in range(own.length * lanes, (own.length + lanes) * lanes):
      value[i] = 0.0
    for terminal in range(table[board, 8], table[board, 11], lanes):
      is_fold = terminal < table[board, 9]
      something = False
      for k in range(lanes):
        payoff[k] = payoffs[terminal + k] * (sign if is_fold else 1.0)
        something |= payoff[k] != 0.0
      if not something:
        # Terminals that only fill up wider vectors.
        continue
      gather_reaches(reach, arrays, sequence_form, opponent, terminal, other)
      for k in range(lanes):
        reach[other.length * lanes + k] = 0.0
      settle(is_fold, rows, own, other, table[board, 7], reach, held, value)
      scatter_values(utility, value, payoff, arrays, player, terminal, own)
