"""Ranges of hold'em hands as players write them, and endgames of two ranges.

    >>> from spiel_cfr.poker import ranges
    >>> endgame = ranges.endgame("QQ+,AKs,A5s-A2s:0.5", "22+,AhKh", board="7s9h9cTc2d", pot=2000, stack=9000)
    >>> endgame.round, endgame.pot, int((endgame.reaches[1] > 0).sum())
    (4, 2000, 79)

A range is a list of hands, separated by commas. A weight may follow after a colon; it is 1 by default:

    AA, 99      a pair, in six combinations of suits
    AK          two ranks, in sixteen; AKs in one suit, four of them, AKo in two suits, twelve of them
    TT+, A9s+   that pair and all higher ones; those two ranks, and the same higher rank with all between
    99-66, A5s-A2s   from one to the other
    AhKh        two cards
    random      every hand

If a hand is named twice, the last name counts.
"""

import re

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.poker.cards import RANKS, file_hands, parse_cards
from spiel_cfr.poker.endgames import NUM_HANDS, Endgame

_NAMED = re.compile(rf"([{RANKS}])([{RANKS}])([so]?)")
_CARDS = re.compile(rf"(?:[{RANKS}][cdhs]){{2}}")
# Both cards in one suit, in two suits, either.
_SUITED, _OFFSUIT = "s", "o"


def parse_range(text: str) -> Float64s:
  """Returns the weight of each hand, float64 (1326,), in the order of `Endgame.reaches`.

  Raises:
    EndgameError: the text is not a range.
  """
  if not isinstance(text, str):
    raise errors.EndgameError(f"A range is a text such as 'AA,KK,AKs:0.5', not {text!r}.")
  hands = file_hands()
  ranks, suits = hands // 4, hands % 4
  # The higher rank first.
  high, low = ranks.max(axis=1), ranks.min(axis=1)
  suited = suits[:, 0] == suits[:, 1]
  result = np.zeros(NUM_HANDS)
  for part in filter(None, (part.strip() for part in text.split(","))):
    name, _, weight = part.partition(":")
    name = name.strip()
    chosen = np.zeros(NUM_HANDS, bool)
    if name == "random":
      chosen[:] = True
    elif _CARDS.fullmatch(name):
      if name[:2] == name[2:]:
        raise _not_a_range(part, "the two cards are the same")
      chosen = (hands == np.sort(parse_cards(name))).all(axis=1)
    else:
      for first, second, kind in _expand(name, part):
        fits = {_SUITED: suited, _OFFSUIT: ~suited}.get(kind, np.True_)
        chosen |= (high == first) & (low == second) & fits
    result[chosen] = _weight(weight, part)
  if not result.any():
    raise _not_a_range(text, "no hand has a positive weight")
  return result


def endgame(
  first: str, second: str, *, board: str, pot: int, stack: int, big_blind: int = 100
) -> Endgame:
  """Returns an endgame of two ranges; `.load()` makes it a game of OpenSpiel.

  Args:
    first: the range of the player who acts first on the street (OOP).
    second: the range of the other player (IP).
    board: three to five cards, as in `"7s9h9cTc"`: the flop, the turn or the river.
    pot: chips in the pot, half of them from each player.
    stack: chips that each player has behind (the effective stack); `Endgame.stack` is these and half of the pot.
    big_blind: chips of the big blind, the unit of `Endgame.milli_big_blinds`.

  Raises:
    EndgameError: a range, the board or the chips are invalid, or no pair of hands can be dealt.
    ArgumentError: the pot or the stack is no positive integer.
  """
  pot = arguments.positive_integer(pot, "pot")
  behind = arguments.positive_integer(stack, "stack")
  return Endgame(
    board=board,
    pot=pot,
    reaches=np.stack([parse_range(first), parse_range(second)]),
    stack=behind + pot // 2,
    big_blind=big_blind,
  )


def _expand(name: str, part: str) -> list[tuple[int, int, str]]:
  """Returns (higher rank, lower rank, kind) for each pair of ranks of a name."""
  begin, dash, end = name.partition("-")
  first = _parse(begin.removesuffix("+"), part)
  high, low, kind = first
  pair = high == low
  if begin.endswith("+"):
    if dash:
      raise _not_a_range(part, "it has both a plus and a dash")
    if pair:
      return [(rank, rank, kind) for rank in range(high, len(RANKS))]
    return [(high, rank, kind) for rank in range(low, high)]
  if not dash:
    return [first]
  last = _parse(end, part)
  if kind != last[2] or pair != (last[0] == last[1]) or not (pair or high == last[0]):
    raise _not_a_range(part, "its ends are not of one kind, as those of 99-66 and A5s-A2s are")
  numbers = range(min(low, last[1]), max(low, last[1]) + 1)
  return [(rank if pair else high, rank, kind) for rank in numbers]


def _parse(name: str, part: str) -> tuple[int, int, str]:
  found = _NAMED.fullmatch(name)
  if found is None:
    raise _not_a_range(part, "hands are written as AA, AK, AKs, AKo, TT+, A9s+, 99-66 or AhKh")
  first, second = (RANKS.index(rank) for rank in found.group(1, 2))
  if first == second and found.group(3):
    raise _not_a_range(part, "a pair is never in one suit")
  return max(first, second), min(first, second), found.group(3)


def _weight(text: str, part: str) -> float:
  try:
    weight = float(text) if text else 1.0
  except ValueError:
    weight = -1.0
  if not 0 <= weight < float("inf"):
    raise _not_a_range(part, "a weight is a number that is not negative")
  return weight


def _not_a_range(part: str, problem: str) -> errors.EndgameError:
  return errors.EndgameError(f"{part[:60]!r} is not a range of hands: {problem}.")
