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

from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Uint32s
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr._numba.simd import full, load, store, width
from spiel_cfr._numba.transposes import add_columns, load_columns
from spiel_cfr.games.payoffs.payoff import PayoffArrays, gradient_signature

# Columns of the payoff's table from row 2 on, a row per board: how many hands each player has; where in `rows` each
# player's hands are described; where in `values` the reaches of each player's hands are; where in `rows` the levels
# of strength are, and how many; the first and one past the last terminal of folds, and of showdowns. Rows 0 and 1 hold
# each player's root and end; then row 0 where in `values` the terminals' payoffs are, the most hands, and the places of
# cards.
BOARD_COLUMNS = 12
# Instead of where a row's lanes are: they are 0, 1, 2 and so on. All terminals of a vector have this, or none.
IN_ORDER = np.uint32(0xFFFFFFFF)
# Lines of a description of hands: the places of the two cards where totals are added to, those where totals are read
# from, and the same hand among the opponent's.
HAND_LINES = 5

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@inlined
def give(held: AnyFloats, low: int, high: int, line: Any) -> None:
  """Adds a hand's line to the totals of both of its cards."""
  lanes = width(held)
  store(held, np.uint64(low) * lanes, load(held, np.uint64(low) * lanes) + line)
  store(held, np.uint64(high) * lanes, load(held, np.uint64(high) * lanes) + line)


@inlined
def take(total: Any, held: AnyFloats, low: int, high: int) -> Any:
  """Returns the total less what hands with either of two cards hold."""
  lanes = width(held)
  return total - load(held, np.uint64(low) * lanes) - load(held, np.uint64(high) * lanes)


@inlined
def gather(
  reach: AnyFloats,
  others: Uint32s,
  rows: Uint32s,
  values: AnyFloats,
  sequence: AnyFloats,
  player: int,
  terminal: int,
  hands: int,
  weights: int,
) -> None:
  """Brings the reaches of a player's hands at the terminals from one on side by side."""
  lanes = width(reach)
  if others[2 + player, terminal] == IN_ORDER:
    first = others[player, terminal : terminal + lanes].astype(np.uint64)
    for j in range(_ZERO, hands, lanes):
      load_columns(sequence, first, j, values, weights + j, reach, j * lanes)
    return
  for k in range(lanes):
    row = np.uint64(others[player, terminal + k])
    lane = np.uint64(others[2 + player, terminal + k])
    for j in range(hands):
      reach[j * lanes + k] = values[weights + j] * sequence[row + rows[lane + j]]


@inlined
def scatter(
  utility: AnyFloats,
  value: AnyFloats,
  payoff: AnyFloats,
  others: Uint32s,
  rows: Uint32s,
  values: AnyFloats,
  player: int,
  terminal: int,
  hands: int,
  weights: int,
) -> None:
  """Adds the values of a player's hands at the terminals from one on to the utilities."""
  lanes = width(value)
  if others[2 + player, terminal] == IN_ORDER:
    first = others[player, terminal : terminal + lanes].astype(np.uint64)
    for i in range(_ZERO, hands, lanes):
      add_columns(utility, first, i, values, weights + i, payoff, value, i * lanes)
    return
  for k in range(lanes):
    row = np.uint64(others[player, terminal + k])
    lane = np.uint64(others[2 + player, terminal + k])
    for i in range(hands):
      utility[row + rows[lane + i]] += payoff[k] * values[weights + i] * value[i * lanes + k]


@inlined
def settle(
  is_fold: bool,
  only_gains: bool,
  rows: Uint32s,
  hands: int,
  own: int,
  other_hands: int,
  others: int,
  own_levels: int,
  other_levels: int,
  num_levels: int,
  reach: AnyFloats,
  held: AnyFloats,
  value: AnyFloats,
) -> None:
  """Settles terminals that stand side by side, for one unit of payoff each.

  Args:
    is_fold: whether they are folds, or else showdowns.
    only_gains: whether a showdown that is lost counts as nothing.
    rows: see `PokerTerminals`.
    hands: where in `rows` the player's hands are described,
    own: and how many there are.
    other_hands: likewise, the opponent's,
    others: and how many.
    own_levels: where in `rows` it says which hands of the player are of each strength,
    other_levels: likewise, the opponent's,
    num_levels: and how many strengths there are.
    reach: of the opponent's hands, and nothing in the line after the last one.
    held: workspace, a line for each card.
    value: filled with what each hand of the player has.
  """
  lanes = width(value)
  give_low, give_high = other_hands, other_hands + others
  take_low, take_high = hands + 2 * own, hands + 3 * own
  same = hands + 4 * own
  for i in range(held.shape[0]):
    held[i] = 0.0
  total = full(0.0)
  if is_fold:
    for j in range(others):
      line = load(reach, j * lanes)
      total = total + line
      give(held, rows[give_low + j], rows[give_high + j], line)
    for i in range(own):
      without = take(total, held, rows[take_low + i], rows[take_high + i])
      twin = load(reach, np.uint64(rows[same + i]) * lanes)
      store(value, i * lanes, without + twin)
    return
  for level in range(num_levels):
    begin, end = np.uint64(rows[own_levels + level]), np.uint64(rows[own_levels + level + _ONE])
    for i in range(begin, end):
      store(value, i * lanes, take(total, held, rows[take_low + i], rows[take_high + i]))
    for j in range(
      np.uint64(rows[other_levels + level]), np.uint64(rows[other_levels + level + _ONE])
    ):
      line = load(reach, j * lanes)
      total = total + line
      give(held, rows[give_low + j], rows[give_high + j], line)
    if not only_gains:
      for i in range(begin, end):
        not_stronger = take(total, held, rows[take_low + i], rows[take_high + i])
        store(value, i * lanes, load(value, i * lanes) + not_stronger)
  if not only_gains:
    # Weaker less stronger is weaker and weaker-or-equal less all.
    for i in range(own):
      everything = take(total, held, rows[take_low + i], rows[take_high + i])
      store(value, i * lanes, load(value, i * lanes) - everything)


@inlined
def add_terminals(
  only_gains: bool, player: int, arrays: PayoffArrays, sequence_form: AnyFloats, utility: AnyFloats
) -> None:
  """Adds up the terminals of every board, a vector of them at a time; if `only_gains`, losses count as nothing."""
  table, rows, others, values = arrays
  lanes = width(utility)
  opponent = _ONE - player
  sign = 1.0 - 2.0 * player
  payoffs = table[0, 2]
  most, places = table[0, 3], table[0, 4]
  for i in range(table[player, 0], table[player, 1]):
    utility[i] = 0.0
  reach = np.empty((most + lanes) * lanes, utility.dtype)
  value = np.empty((most + lanes) * lanes, utility.dtype)
  held = np.empty(places * lanes, utility.dtype)
  payoff = np.empty(lanes, utility.dtype)

  for board in range(np.uint64(2), np.uint64(table.shape[0])):
    own, others_hands = table[board, player], table[board, opponent]
    hands, other_hands = table[board, 2 + player], table[board, 2 + opponent]
    weights, other_weights = table[board, 4 + player], table[board, 4 + opponent]
    levels, num_levels = table[board, 6], table[board, 7]
    own_levels = levels + player * (num_levels + _ONE)
    other_levels = levels + opponent * (num_levels + _ONE)
    # Whole vectors of hands are read: what is beyond the last hand must be finite.
    for i in range(own * lanes, (own + lanes) * lanes):
      value[i] = 0.0
    for terminal in range(table[board, 8], table[board, 11], lanes):
      is_fold = terminal < table[board, 9]
      something = False
      for k in range(lanes):
        paid = values[payoffs + terminal + k] * (sign if is_fold else 1.0)
        payoff[k] = max(paid, 0.0) if only_gains else paid
        something |= payoff[k] != 0.0
      if not something:
        # Terminals that only fill up wider vectors.
        continue
      gather(
        reach, others, rows, values, sequence_form, opponent, terminal, others_hands, other_weights
      )
      for k in range(lanes):
        reach[others_hands * lanes + k] = 0.0
      settle(
        is_fold,
        only_gains,
        rows,
        hands,
        own,
        other_hands,
        others_hands,
        own_levels,
        other_levels,
        num_levels,
        reach,
        held,
        value,
      )
      scatter(utility, value, payoff, others, rows, values, player, terminal, own, weights)


@kernel(gradient_signature)
def terminal_gradient(
  player: int, arrays: PayoffArrays, sequence_form: AnyFloats, utility: AnyFloats
) -> None:
  """See `PokerTerminals`."""
  add_terminals(False, player, arrays, sequence_form, utility)


@kernel(gradient_signature)
def terminal_gains(
  player: int, arrays: PayoffArrays, sequence_form: AnyFloats, utility: AnyFloats
) -> None:
  """See `PokerGains`."""
  add_terminals(True, player, arrays, sequence_form, utility)
