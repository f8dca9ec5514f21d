"""Which hands are left at the terminals of a poker game, and how these are put together: see `left_hands`."""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOATS,
  INDEX_TABLE,
  INDICES,
  Float64s,
  Uint32s,
  Uint64s,
)
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr._numba.simd import LANES, lowest_bit
from spiel_cfr.games.payoffs.payoff import NO_PLAYERS, PayoffArrays, payoff_arrays_type
from spiel_cfr.poker.hand_payoff import PokerTerminals
from spiel_cfr.poker.left_hands import COLUMNS, LeftHands, left_gradient
from spiel_cfr.poker.terminals import HAND_LINES, IN_ORDER

_ZERO, _ONE, _TWO = (np.uint64(number) for number in range(3))
_LANES, _LINES = np.uint64(LANES), np.uint64(HAND_LINES)
# The place of a sequence that is not left.
_NOWHERE = np.uint32(2**32 - 1)
# Among how many terminals one is chosen that has nearly the same hands.
_NEAR, _WORD = np.uint64(64), np.uint64(64)
_HALVES, _QUARTERS, _EIGHTHS, _BYTES_OF_ONE = (
  np.uint64(int(digits * (16 // len(digits)), 16)) for digits in ("5", "3", "0f", "01")
)
_ARRAYS = payoff_arrays_type(types.float64)


@inlined
def _sequence(arrays: PayoffArrays, player: int, terminal: int, hand: int) -> np.uint64:
  """Returns the sequence of a player's hand at a terminal of the whole game."""
  lanes = arrays.others[_TWO + player, terminal]
  lane = hand if lanes == IN_ORDER else np.uint64(arrays.rows[np.uint64(lanes) + hand])
  return np.uint64(arrays.others[player, terminal]) + lane


@inlined
def _count_bits(bits: np.uint64) -> np.uint64:
  """Returns how many bits of a uint64 are 1; compilers know these lines, and make one instruction of them."""
  bits -= (bits >> _ONE) & _HALVES
  bits = (bits & _QUARTERS) + ((bits >> _TWO) & _QUARTERS)
  bits = (bits + (bits >> np.uint64(4))) & _EIGHTHS
  return (bits * _BYTES_OF_ONE) >> np.uint64(56)


@kernel(types.uint64(_ARRAYS, INDICES, COUNTS, COUNT_TABLE, COUNTS))
def list_hands(
  arrays: PayoffArrays, kept: Uint32s, counts: Uint64s, here: Uint64s, sizes: Uint64s
) -> np.uint64:
  """Lists which hands are left at each terminal that is worth anything.

  Args:
    arrays: of the whole game, see `PokerTerminals`.
    kept: the place of each sequence among those that are left, or `_NOWHERE`.
    counts: of those that are left, at how many terminals its hands have an opponent; added to.
    here: filled with a bit for each hand that is left at each terminal, player 0's words first; 0 before.
    sizes: filled with how many these are, 0 unless both players have some.

  Returns:
    How many hands all of these have, left or not.
  """
  table, every, words = arrays.runs, _ZERO, np.uint64(here.shape[1]) // _TWO
  for board in range(_TWO, np.uint64(table.shape[0])):
    for terminal in range(table[board, 8], table[board, 11]):
      if arrays.values[table[0, 2] + terminal] == 0.0:
        continue
      every += table[board, 0] + table[board, 1]
      size, both = _ZERO, _ONE
      for player in range(_TWO):
        hands, left = table[board, player], _ZERO
        for word in range(words):
          bits = _ZERO
          for hand in range(word * _WORD, min((word + _ONE) * _WORD, hands)):
            place = kept[_sequence(arrays, player, terminal, hand)]
            bits |= np.uint64(place != _NOWHERE) << hand % _WORD
          here[terminal, player * words + word] = bits
          left += _count_bits(bits)
        size += left
        both *= left
      if both == _ZERO:
        continue
      sizes[terminal] = size
      for player in range(_TWO):
        for word in range(words):
          bits = here[terminal, player * words + word]
          while bits != _ZERO:
            hand = word * _WORD + lowest_bit(bits)
            counts[kept[_sequence(arrays, player, terminal, hand)]] += _ONE
            bits &= bits - _ONE
  return every


@kernel(types.void(COUNT_TABLE, COUNTS, INDICES))
def put_together(here: Uint64s, sizes: Uint64s, order: Uint32s) -> None:
  """Puts terminals where the same hands are left next to each other, as many as a vector has.

  Each vector takes the first that is left, and then again and again the one of the next few that has the most hands in
  common with those it has, less the hands that it does not.

  Args:
    here: which hands are left at each terminal of the game, see `list_hands`.
    sizes: how many these are.
    order: terminals; put in order.
  """
  number, words = np.uint64(order.shape[0]), np.uint64(here.shape[1])
  union = np.zeros(words, np.uint64)
  for begin in range(_ZERO, number, _LANES):
    union[:] = here[order[begin]]
    for k in range(begin + _ONE, min(begin + _LANES, number)):
      best, chosen = -np.inf, k
      for candidate in range(k, min(k + _NEAR, number)):
        terminal, common = order[candidate], _ZERO
        for word in range(words):
          common += _count_bits(here[terminal, word] & union[word])
        score = 2.0 * common - sizes[terminal]
        if score > best:
          best, chosen = score, candidate
      taken = order[chosen]
      for back in range(chosen - k):
        order[chosen - back] = order[chosen - back - _ONE]
      order[k] = taken
      for word in range(words):
        union[word] |= here[taken, word]


@kernel(
  types.void(
    _ARRAYS,
    INDICES,
    INDICES,
    COUNT_TABLE,
    INDICES,
    COUNT_TABLE,
    COUNT_TABLE,
    INDICES,
    INDEX_TABLE,
    FLOATS,
    COUNTS,
  )
)
def lay_out_hands(
  arrays: PayoffArrays,
  kept: Uint32s,
  place: Uint32s,
  here: Uint64s,
  order: Uint32s,
  vectors: Uint64s,
  table: Uint64s,
  rows: Uint32s,
  others: Uint32s,
  values: Float64s,
  numbers: Uint64s,
) -> None:
  """Writes down what is left.

  Args:
    arrays: of the whole game, see `PokerTerminals`.
    kept: the place of each sequence among those that are left, or `_NOWHERE`.
    place: the new numbers of these.
    here: which hands are left at each terminal, see `list_hands`.
    order: terminals, a vector of them after the other.
    vectors: of each, the board's row in the table of the whole game, where in `order` it begins, and where it ends.
    table: filled from row 2 on, see `COLUMNS`.
    rows: filled.
    others: filled with the sequences of hands, and where in a vector each goes.
    values: filled.
    numbers: filled with the most hands, and how long the last three are.
  """
  source, words = arrays.runs, np.uint64(here.shape[1]) // _TWO
  row = pair = value = most = _ZERO
  # The hands of a vector, and the number of each there; of those that are not there, and of nobody's, none.
  listed = np.zeros((2, source[0, 3]), np.uint64)
  number = np.zeros((2, source[0, 3] + _ONE), np.uint32)
  for vector in range(np.uint64(vectors.shape[0])):
    board, first, last = vectors[vector, 0], vectors[vector, 1], vectors[vector, 2]
    line = table[vector + _TWO]
    line[0] = np.uint64(order[first]) < source[board, 9]
    number[:] = _NOWHERE
    for player in range(_TWO):
      left = _ZERO
      for word in range(words):
        bits = _ZERO
        for k in range(first, last):
          bits |= here[order[k], player * words + word]
        while bits != _ZERO:
          hand = word * _WORD + lowest_bit(bits)
          listed[player, left], number[player, hand] = hand, left
          left += _ONE
          bits &= bits - _ONE
      line[1 + player] = left
      most = max(most, left)
    line[7], line[8] = row, source[board, 7]
    for player in range(_TWO):
      begin, passed = source[board, 6] + player * (line[8] + _ONE), _ZERO
      for level in range(line[8] + _ONE):
        # Hands are in order of strength.
        start = np.uint64(arrays.rows[begin + level])
        while passed < line[1 + player] and listed[player, passed] < start:
          passed += _ONE
        rows[row] = np.uint32(passed)
        row += _ONE
    for player in range(_TWO):
      left, hands, opponent = line[1 + player], source[board, player], _ONE - player
      line[3 + player], line[5 + player] = row, value
      for each in range(_LINES):
        begin = source[board, 2 + player] + each * hands
        for i in range(left):
          entry = arrays.rows[begin + listed[player, i]]
          if each == _LINES - _ONE:
            # The same hand among the opponent's, or the line after the last one.
            entry = min(number[opponent, entry], np.uint32(line[1 + opponent]))
          rows[row] = entry
          row += _ONE
      for i in range(left):
        values[value] = arrays.values[source[board, 4 + player] + listed[player, i]]
        value += _ONE
      line[9 + 2 * player] = pair
      # Hand by hand, as the lines of vectors are: the sequences at each terminal are more or less in order too.
      for i in range(left):
        hand = listed[player, i]
        word, bit = player * words + hand // _WORD, hand % _WORD
        for k in range(first, last):
          terminal = np.uint64(order[k])
          if (here[terminal, word] >> bit) & _ONE != _ZERO:
            others[0, pair] = place[kept[_sequence(arrays, player, terminal, hand)]]
            others[1, pair] = np.uint32(i * _LANES + k - first)
            pair += _ONE
      line[10 + 2 * player] = pair
    line[13] = value
    for k in range(first, first + _LANES):
      values[value] = 0.0
      if k < last:
        values[value] = arrays.values[source[0, 2] + np.uint64(order[k])]
      value += _ONE
  numbers[0], numbers[1], numbers[2], numbers[3] = most, row, pair, value


class TakenHands(NamedTuple):
  """The hands that are left at the terminals of a game.

  Attributes:
    whole: the payoffs of all.
    kept: the place of each sequence among those that are left, or `_NOWHERE`.
    counts: of those that are left, at how many terminals each matters, shape (kept,).
    here: which hands are left at each terminal, see `list_hands`.
    sizes: how many these are.
    share: what part of all hands at terminals is left.
  """

  whole: PokerTerminals
  kept: Uint32s
  counts: Uint64s
  here: Uint64s
  sizes: Uint64s
  share: float

  def payoff(self, place: Uint32s, bounds: list[tuple[int, int]]) -> LeftHands:
    """Returns the payoffs of what is left.

    Args:
      place: the new number of each kept sequence, shape (kept,).
      bounds: of each player, the new root, and one past the last sequence.
    """
    arrays = self.whole.arrays
    order, vectors = self._vectors()
    most = 2 * int(arrays.runs[0, 3])
    levels = 2 * (1 + int(arrays.runs[2:, 7].max()))
    pairs = int(self.sizes.sum())
    table = np.zeros((2 + len(vectors), COLUMNS), np.uint64)
    rows = np.empty(len(vectors) * (HAND_LINES * most + levels), np.uint32)
    others = np.empty((2, pairs), np.uint32)
    values, numbers = np.empty(len(vectors) * (most + LANES)), np.zeros(4, np.uint64)
    lay_out_hands(
      arrays, self.kept, place, self.here, order, vectors, table, rows, others, values, numbers
    )
    table[:2, :2] = bounds
    table[0, 2:4] = numbers[0], arrays.runs[0, 4]
    return LeftHands(
      PayoffArrays(
        NO_PLAYERS, table, rows[: int(numbers[1])].copy(), others, values[: int(numbers[3])].copy()
      )
    )

  def _vectors(self) -> tuple[Uint32s, Uint64s]:
    """Returns the terminals in order, and what `lay_out_hands` takes of their vectors."""
    order, vectors, begin = [np.zeros(0, np.uint32)], [], 0
    table = self.whole.arrays.runs.astype(np.int64)
    for board in range(2, len(table)):
      for first, last in (table[board, 8:10], table[board, 10:12]):
        sizes = self.sizes[first:last].astype(np.int64)
        left = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        own = (first + left).astype(np.uint32)
        put_together(self.here, self.sizes, own)
        order.append(own)
        end = begin + len(own)
        vectors += [(board, at, min(at + LANES, end)) for at in range(begin, end, LANES)]
        begin = end
    return np.concatenate(order), np.array(vectors, np.uint64).reshape(-1, 3)


def take_hands(whole: PokerTerminals, kept: Uint32s, number: int) -> TakenHands:
  """Returns the hands that are left.

  Args:
    whole: the payoffs of all.
    kept: the place of each sequence among those that are left, the largest of numbers for the others.
    number: how many these are.
  """
  counts, terminals = np.zeros(number, np.uint64), whole.arrays.others.shape[1]
  sizes = np.zeros(terminals, np.uint64)
  here = np.zeros((terminals, 2 * -(-int(whole.arrays.runs[0, 3]) // int(_WORD))), np.uint64)
  every = list_hands(whole.arrays, kept, counts, here, sizes)
  return TakenHands(whole, kept, counts, here, sizes, float(sizes.sum()) / max(1, int(every)))


# All of them, for those who load them before they need them.
TAKING = (list_hands, put_together, lay_out_hands, left_gradient)
