"""Kernels that settle folds and showdowns for every hand at once, without a list of deals.

Let q be the reaches of the opponent's hands, and let sums go over the hands that share no card with h. A terminal is
worth to hand h

    fold:      payoff * sum of q(g)
    showdown:  stake * (sum of q(g) over g weaker than h  -  sum of q(g) over g stronger than h)

A rake costs each hand half of it times the sum over all hands; see `rake`.

Each sum is the sum over all hands minus the hands that hold one of h's cards. Running totals for each card give these
in one pass over the hands in order of strength: the trick of Johanson et al., "Accelerating Best Response Calculation
in Large Extensive Games" (2011).

Eight terminals (sixteen in float32) stand side by side, `[hand][terminal]`, so that one pass serves all of them.
`PokerTerminals` describes the arrays.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Uint32s, Uint64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.simd import full, load, store, width
from spiel_cfr._numba.transposes import add_columns, load_columns
from spiel_cfr.games.payoffs.payoff import Gradient, PayoffArrays, gradient_kernel

# Columns of the table of boards, one line for each board. For each player (the constant plus the player): its number of
# hands, and the places of their descriptions in `rows` and of their reaches in `values`.
HANDS, DESCRIPTIONS, REACHES = 0, 2, 4
# The place in `rows` of the first hand of each strength, player by player; the number of strengths; the terminals.
STRENGTHS, NUM_STRENGTHS, FIRST_FOLD, END_FOLD, FIRST_SHOWDOWN, END_SHOWDOWN = range(6, 12)
BOARD_COLUMNS = 12
# The first lines of the table are not boards. Line p has player p's first sequence and one past its last; line 0 also
# has the largest number of hands and the number of places of cards.
FIRST_BOARD = 2
ROOT, END, MOST_HANDS, CARD_PLACES = range(4)
# Stands for the infoset places 0, 1, 2 and so on. Of the terminals of a vector, all have this or none.
IN_ORDER = np.uint32(0xFFFFFFFF)
# Lines of a description of hands: the two places of its cards where totals are added, the two where totals are read,
# and the same hand among the opponent's.
HAND_LINES = 5

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Side(NamedTuple):
  """A player's hands on a board.

  Attributes:
    length: int. The number of hands.
    hands: int. The place of their descriptions in `rows`.
    weights: int. The place of their reaches in `values`.
    levels: int. The place in `rows` of the first hand of each strength.
  """

  length: int
  hands: int
  weights: int
  levels: int


@inlined
def side(table: Uint64s, board: int, player: int) -> Side:
  """Returns a player's hands on the board of a line of the table."""
  levels = table[board, STRENGTHS] + player * (table[board, NUM_STRENGTHS] + _ONE)
  return Side(
    table[board, HANDS + player],
    table[board, DESCRIPTIONS + player],
    table[board, REACHES + player],
    levels,
  )


@inlined
def hold(held: AnyFloats, rows: Uint32s, hands: Side, hand: int, reach: Any) -> None:
  """Adds a hand's reach to the totals of its two cards."""
  lanes = width(held)
  low = np.uint64(rows[hands.hands + hand]) * lanes
  high = np.uint64(rows[hands.hands + hands.length + hand]) * lanes
  store(held, low, load(held, low) + reach)
  store(held, high, load(held, high) + reach)


@inlined
def without_cards(total: Any, held: AnyFloats, rows: Uint32s, hands: Side, hand: int) -> Any:
  """Returns a total minus the totals of a hand's two cards."""
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
  """Copies the reaches of a player's hands at a vector of terminals side by side."""
  others, rows, values = arrays.others, arrays.rows, arrays.values
  lanes = width(reach)
  if others[2 + player, terminal] == IN_ORDER:
    first = others[player, terminal : terminal + lanes].astype(np.uint64)
    for j in range(_ZERO, hands.length, lanes):
      load_columns(sequence_form, first, j, values, hands.weights + j, reach, j * lanes)
    return
  for k in range(lanes):
    row = np.uint64(others[player, terminal + k])
    place = np.uint64(others[2 + player, terminal + k])
    for j in range(hands.length):
      reach[j * lanes + k] = values[hands.weights + j] * sequence_form[row + rows[place + j]]


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
  """Adds the values of a player's hands at a vector of terminals to the utilities."""
  others, rows, values = arrays.others, arrays.rows, arrays.values
  lanes = width(value)
  if others[2 + player, terminal] == IN_ORDER:
    first = others[player, terminal : terminal + lanes].astype(np.uint64)
    for i in range(_ZERO, hands.length, lanes):
      add_columns(utility, first, i, values, hands.weights + i, payoff, value, i * lanes)
    return
  for k in range(lanes):
    row = np.uint64(others[player, terminal + k])
    place = np.uint64(others[2 + player, terminal + k])
    for i in range(hands.length):
      weight = payoff[k] * values[hands.weights + i]
      utility[row + rows[place + i]] += weight * value[i * lanes + k]


@inlined
def settle_folds(
  rows: Uint32s, own: Side, other: Side, reach: AnyFloats, held: AnyFloats, value: AnyFloats
) -> None:
  """Writes to `value`, for each of the player's hands, the reaches of all hands that share no card with it."""
  lanes = width(value)
  total = full(0.0)
  for j in range(other.length):
    line = load(reach, j * lanes)
    total = total + line
    hold(held, rows, other, j, line)
  for i in range(own.length):
    # The same hand among the opponent's was subtracted once for each of its cards.
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
  """Writes to `value`, for each of the player's hands, the reaches of weaker hands minus those of stronger ones."""
  lanes = width(value)
  total = full(0.0)
  for level in range(num_levels):
    # The ranges of both players' hands of this strength.
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
  # Weaker minus stronger is weaker plus weaker-or-equal minus all.
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
    is_fold: whether they are folds; otherwise showdowns.
    rows: as of `PokerTerminals`.
    own: the player's hands.
    other: the opponent's hands.
    num_levels: the number of strengths.
    reach: the reaches of the opponent's hands; 0 in the line after the last hand.
    held: workspace, one line for each place of a card.
    value: the result, one line for each of the player's hands.
  """
  for i in range(held.shape[0]):
    held[i] = 0.0
  if is_fold:
    settle_folds(rows, own, other, reach, held, value)
  else:
    settle_showdowns(rows, own, other, num_levels, reach, held, value)


@inlined
def charge(
  rows: Uint32s,
  own: Side,
  other: Side,
  reach: AnyFloats,
  held: AnyFloats,
  payoff: AnyFloats,
  fee: AnyFloats,
  value: AnyFloats,
) -> None:
  """Turns values of settled showdowns into payoffs with a fee for each of the opponent's hands; `payoff` becomes 1."""
  lanes = width(value)
  total = full(0.0)
  for j in range(other.length):
    total = total + load(reach, j * lanes)
  for i in range(own.length):
    same = np.uint64(rows[own.hands + 4 * own.length + i])
    everyone = without_cards(total, held, rows, own, i) + load(reach, same * lanes)
    store(
      value, i * lanes, load(payoff, _ZERO) * load(value, i * lanes) - load(fee, _ZERO) * everyone
    )
  for k in range(lanes):
    payoff[k] = 1.0


@gradient_kernel
def terminal_gradient(record: Gradient) -> None:
  """Sums the terminals of every board, a vector of them at a time; see `PokerTerminals`."""
  player, arrays = record.player, record.arrays
  sequence_form, utility = record.sequence_form, record.utility
  table, rows, others, payoffs = arrays.runs, arrays.rows, arrays.others, arrays.patterns
  lanes, opponent = width(utility), _ONE - player
  most, places = table[0, MOST_HANDS], table[0, CARD_PLACES]
  sign = 1.0 - 2.0 * player
  for i in range(table[player, ROOT], table[player, END]):
    utility[i] = 0.0
  reach = np.empty((most + lanes) * lanes, utility.dtype)
  value = np.empty((most + lanes) * lanes, utility.dtype)
  held = np.empty(places * lanes, utility.dtype)
  payoff, fee = np.empty(lanes, utility.dtype), np.empty(lanes, utility.dtype)
  num_lines = others.shape[1]

  for board in range(np.uint64(FIRST_BOARD), np.uint64(table.shape[0])):
    own, other = side(table, board, player), side(table, board, opponent)
    # Whole vectors of hands are read: numbers beyond the last hand must be finite.
    for i in range(own.length * lanes, (own.length + lanes) * lanes):
      value[i] = 0.0
    for terminal in range(table[board, FIRST_FOLD], table[board, END_SHOWDOWN], lanes):
      is_fold = terminal < table[board, END_FOLD]
      pays, is_raked = False, False
      for k in range(lanes):
        payoff[k], fee[k] = payoffs[terminal + k], payoffs[num_lines + terminal + k]
        pays |= payoff[k] != 0.0 or fee[k] != 0.0
        is_raked |= fee[k] != 0.0
        if is_fold:
          payoff[k] = payoff[k] * sign - fee[k]
      if not pays:
        # Terminals that fill up wider vectors.
        continue
      gather_reaches(reach, arrays, sequence_form, opponent, terminal, other)
      for k in range(lanes):
        reach[other.length * lanes + k] = 0.0
      settle(is_fold, rows, own, other, table[board, NUM_STRENGTHS], reach, held, value)
      if is_raked and not is_fold:
        charge(rows, own, other, reach, held, payoff, fee, value)
      scatter_values(utility, value, payoff, arrays, player, terminal, own)
