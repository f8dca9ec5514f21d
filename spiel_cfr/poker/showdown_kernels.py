"""Kernels for folds and showdowns: counterfactual values of all hands in one pass, without a list of deals.

Let q be the reaches of the opponent's hands. The counterfactual value of hand h at a terminal is

    fold:      payoff * sum of q(g)
    showdown:  stake * (sum of q(g) over g weaker than h  -  sum of q(g) over g stronger than h)

Sums go over the opponent's hands g that share no card with h. A rake costs hand h half of the rake times the sum of
q(g) over all g; see `rake`.

Each sum is a total over all hands minus the totals of the hands that hold one of h's cards. One pass over the hands in
order of strength keeps running totals of all hands and for each card: Johanson et al., "Accelerating Best Response
Calculation in Large Extensive Games" (2011).

A vector has eight terminals (sixteen in float32). Workspaces have the layout `[hand][terminal]`, so that one pass
evaluates the whole vector.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Uint32s, Uint64s, unpickled
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, CountTable, IndexTable, Indices, Line
from spiel_cfr._numba.simd import full, load, store, width
from spiel_cfr._numba.steps import step
from spiel_cfr._numba.transposes import add_columns, load_columns

# Columns of the table of boards, which has a line for each board. Of these columns there is one for each player (the
# constant plus the player): its number of hands, the offset in `rows` of the hands' descriptions, and the offset in
# `reaches` of the hands' reaches.
HANDS, DESCRIPTIONS, REACHES = 0, 2, 4
# The offset in `rows` of the first hand of each strength, player by player; the number of strengths; and the range of
# the board's folds and showdowns.
STRENGTHS, NUM_STRENGTHS, FIRST_FOLD, END_FOLD, FIRST_SHOWDOWN, END_SHOWDOWN = range(6, 12)
BOARD_COLUMNS = 12
# The first two lines of the table are not boards. Line p has player p's first sequence and one past its last; line 0
# also has the largest number of hands and the number of card totals.
FIRST_BOARD = 2
ROOT, END, MOST_HANDS, NUM_CARD_TOTALS = range(4)
# In place of an offset: the hands' infosets are 0, 1, 2 and so on. Either all terminals of a vector have it or none.
IN_ORDER = np.uint32(0xFFFFFFFF)
# Lines of a description of hands: the indices of the two card totals to which a hand is added, the two from which it
# reads, and the index of the same hand among the opponent's.
HAND_LINES = 5

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class TerminalArrays(NamedTuple):
  """The arrays of `hand_payoff.PokerTerminals`.

  Terminals are sorted by board, folds before showdowns. Each group is padded to whole vectors of `MOST_LANES`
  terminals. A hand's sequence at a terminal is the player's first sequence plus the number of the hand's infoset.

  Attributes:
    boards: uint64 (FIRST_BOARD + boards, BOARD_COLUMNS). The table of boards: numbers of hands, offsets of their
      tables, and the terminals of each board.
    rows: uint32 (elements,). Tables of hands: descriptions, infosets, and the first hand of each strength; see
      `HandTables`.
    others: uint32 (4, terminals). Both players' first sequences at each terminal, then the offsets in `rows` of both
      players' infosets.
    reaches: float array (elements,). The reaches of hands.
    payoffs: float array (2 * terminals,). The stakes of all terminals, then halves of their rakes; both times the
      probability of the board.
  """

  boards: CountTable
  rows: Indices
  others: IndexTable
  reaches: Line
  payoffs: Line

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (TerminalArrays, *self)


class TerminalGradient(NamedTuple):
  """The arguments of `terminal_gradient`.

  Attributes:
    player: int. The player.
    arrays: TerminalArrays. The payoffs.
    sequence_form: float array (sequences,). The opponent's sequence form.
    utility: float array (sequences,). The gradient, which the kernel writes.
  """

  player: Count
  arrays: TerminalArrays
  sequence_form: Line
  utility: Line


class Side(NamedTuple):
  """A player's hands on a board.

  Attributes:
    length: int. The number of hands.
    hands: int. The offset of the hands' descriptions in `rows`.
    weights: int. The offset of the hands' reaches in `values`.
    strengths: int. The offset in `rows` of the first hand of each strength.
  """

  length: int
  hands: int
  weights: int
  strengths: int


@inlined
def side(table: Uint64s, board: int, player: int) -> Side:
  """Returns a player's hands on the board of a line of the table."""
  strengths = table[board, STRENGTHS] + player * (table[board, NUM_STRENGTHS] + _ONE)
  return Side(
    table[board, HANDS + player],
    table[board, DESCRIPTIONS + player],
    table[board, REACHES + player],
    strengths,
  )


@inlined
def add_to_cards(card_totals: AnyFloats, rows: Uint32s, hands: Side, hand: int, reach: Any) -> None:
  """Adds a hand's reach to the totals of its two cards."""
  lanes = width(card_totals)
  low = np.uint64(rows[hands.hands + hand]) * lanes
  high = np.uint64(rows[hands.hands + hands.length + hand]) * lanes
  store(card_totals, low, load(card_totals, low) + reach)
  store(card_totals, high, load(card_totals, high) + reach)


@inlined
def without_cards(total: Any, card_totals: AnyFloats, rows: Uint32s, hands: Side, hand: int) -> Any:
  """Returns a total over all hands minus the totals of a hand's two cards."""
  lanes = width(card_totals)
  low = np.uint64(rows[hands.hands + 2 * hands.length + hand])
  high = np.uint64(rows[hands.hands + 3 * hands.length + hand])
  return total - load(card_totals, low * lanes) - load(card_totals, high * lanes)


@inlined
def gather_reaches(
  reach: AnyFloats,
  arrays: TerminalArrays,
  sequence_form: AnyFloats,
  player: int,
  terminal: int,
  hands: Side,
) -> None:
  """Writes the reaches of a player's hands at a vector of terminals to `reach`, in the layout `[hand][terminal]`."""
  others, rows, reaches = arrays.others, arrays.rows, arrays.reaches
  lanes = width(reach)
  if others[2 + player, terminal] == IN_ORDER:
    first = others[player, terminal : terminal + lanes].astype(np.uint64)
    for j in range(_ZERO, hands.length, lanes):
      load_columns(sequence_form, first, j, reaches, hands.weights + j, reach, j * lanes)
    return
  for k in range(lanes):
    row = np.uint64(others[player, terminal + k])
    place = np.uint64(others[2 + player, terminal + k])
    for j in range(hands.length):
      reach[j * lanes + k] = reaches[hands.weights + j] * sequence_form[row + rows[place + j]]


@inlined
def scatter_values(
  utility: AnyFloats,
  value: AnyFloats,
  payoff: AnyFloats,
  arrays: TerminalArrays,
  player: int,
  terminal: int,
  hands: Side,
) -> None:
  """Adds values times `payoff` and chance's reaches of the hands to the utilities of the hands' sequences."""
  others, rows, reaches = arrays.others, arrays.rows, arrays.reaches
  lanes = width(value)
  if others[2 + player, terminal] == IN_ORDER:
    first = others[player, terminal : terminal + lanes].astype(np.uint64)
    for i in range(_ZERO, hands.length, lanes):
      add_columns(utility, first, i, reaches, hands.weights + i, payoff, value, i * lanes)
    return
  for k in range(lanes):
    row = np.uint64(others[player, terminal + k])
    place = np.uint64(others[2 + player, terminal + k])
    for i in range(hands.length):
      weight = payoff[k] * reaches[hands.weights + i]
      utility[row + rows[place + i]] += weight * value[i * lanes + k]


@inlined
def settle_folds(
  rows: Uint32s, own: Side, other: Side, reach: AnyFloats, card_totals: AnyFloats, value: AnyFloats
) -> None:
  """Writes to `value`, for each hand of the player, the reach of all opponent's hands that share no card with it."""
  lanes = width(value)
  total = full(0.0)
  for j in range(other.length):
    line = load(reach, j * lanes)
    total = total + line
    add_to_cards(card_totals, rows, other, j, line)
  for i in range(own.length):
    # Both card totals contain the same hand of the opponent: it was subtracted twice, so it is added once.
    same = np.uint64(rows[own.hands + 4 * own.length + i])
    line = without_cards(total, card_totals, rows, own, i) + load(reach, same * lanes)
    store(value, i * lanes, line)


@inlined
def settle_showdowns(
  rows: Uint32s,
  own: Side,
  other: Side,
  num_strengths: int,
  reach: AnyFloats,
  card_totals: AnyFloats,
  value: AnyFloats,
) -> None:
  """Writes to `value`, for each hand of the player, the reach of weaker hands minus the reach of stronger hands."""
  lanes = width(value)
  total = full(0.0)
  for level in range(num_strengths):
    # Both players' hands of this strength.
    own_begin = np.uint64(rows[own.strengths + level])
    own_end = np.uint64(rows[own.strengths + level + _ONE])
    other_begin = np.uint64(rows[other.strengths + level])
    other_end = np.uint64(rows[other.strengths + level + _ONE])
    for i in range(own_begin, own_end):
      store(value, i * lanes, without_cards(total, card_totals, rows, own, i))
    for j in range(other_begin, other_end):
      line = load(reach, j * lanes)
      total = total + line
      add_to_cards(card_totals, rows, other, j, line)
    for i in range(own_begin, own_end):
      not_stronger = without_cards(total, card_totals, rows, own, i)
      store(value, i * lanes, load(value, i * lanes) + not_stronger)
  # weaker - stronger = weaker + (weaker or equal) - all
  for i in range(own.length):
    all_hands = without_cards(total, card_totals, rows, own, i)
    store(value, i * lanes, load(value, i * lanes) - all_hands)


@inlined
def settle(
  is_fold: bool,
  rows: Uint32s,
  own: Side,
  other: Side,
  num_strengths: int,
  reach: AnyFloats,
  card_totals: AnyFloats,
  value: AnyFloats,
) -> None:
  """Computes the values of a player's hands at a vector of folds or showdowns, for a payoff of 1.

  Args:
    is_fold: whether the terminals are folds; otherwise showdowns.
    rows: `TerminalArrays.rows`.
    own: the player's hands.
    other: the opponent's hands.
    num_strengths: the number of strengths on the board.
    reach: one line for each of the opponent's hands. The hand's reaches; 0 in the line after the last hand.
    card_totals: workspace with one line for each card total.
    value: the result, one line for each of the player's hands.
  """
  for i in range(card_totals.shape[0]):
    card_totals[i] = 0.0
  if is_fold:
    settle_folds(rows, own, other, reach, card_totals, value)
  else:
    settle_showdowns(rows, own, other, num_strengths, reach, card_totals, value)


@inlined
def subtract_rake(
  rows: Uint32s,
  own: Side,
  other: Side,
  reach: AnyFloats,
  card_totals: AnyFloats,
  payoff: AnyFloats,
  fee: AnyFloats,
  value: AnyFloats,
) -> None:
  """Multiplies values of showdowns by the payoff and subtracts the fee for each opponent's hand; `payoff` becomes 1."""
  lanes = width(value)
  total = full(0.0)
  for j in range(other.length):
    total = total + load(reach, j * lanes)
  for i in range(own.length):
    same = np.uint64(rows[own.hands + 4 * own.length + i])
    others_reach = without_cards(total, card_totals, rows, own, i) + load(reach, same * lanes)
    store(
      value,
      i * lanes,
      load(payoff, _ZERO) * load(value, i * lanes) - load(fee, _ZERO) * others_reach,
    )
  for k in range(lanes):
    payoff[k] = 1.0


@step(TerminalGradient)
def terminal_gradient(record: TerminalGradient) -> None:
  """Computes the gradient of the expected payoff of `PokerTerminals`, one vector of terminals at a time."""
  player, arrays = record.player, record.arrays
  sequence_form, utility = record.sequence_form, record.utility
  table, rows, others, payoffs = arrays.boards, arrays.rows, arrays.others, arrays.payoffs
  lanes, opponent = width(utility), _ONE - player
  most_hands, num_totals = table[0, MOST_HANDS], table[0, NUM_CARD_TOTALS]
  sign = 1.0 - 2.0 * player
  for i in range(table[player, ROOT], table[player, END]):
    utility[i] = 0.0
  reach = np.empty((most_hands + lanes) * lanes, utility.dtype)
  value = np.empty((most_hands + lanes) * lanes, utility.dtype)
  card_totals = np.empty(num_totals * lanes, utility.dtype)
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
        # This vector has only terminals that pad a group.
        continue
      gather_reaches(reach, arrays, sequence_form, opponent, terminal, other)
      for k in range(lanes):
        reach[other.length * lanes + k] = 0.0
      settle(is_fold, rows, own, other, table[board, NUM_STRENGTHS], reach, card_totals, value)
      if is_raked and not is_fold:
        subtract_rake(rows, own, other, reach, card_totals, payoff, fee, value)
      scatter_values(utility, value, payoff, arrays, player, terminal, own)
