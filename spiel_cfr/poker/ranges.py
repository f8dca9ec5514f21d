"""Ranges of hold'em hands in the notation of poker players, and endgames between two ranges.

    >>> from spiel_cfr.poker import ranges
    >>> endgame = ranges.endgame("QQ+,AKs,A5s-A2s:0.5", "22+,AhKh", board="7s9h9cTc2d", pot=2000, stack=9000)
    >>> endgame.round, endgame.pot, int((endgame.reaches[1] > 0).sum())
    (4, 2000, 79)

A range is a list of hands, separated by commas. A weight may follow after a colon; it is 1 by default:

    AA, 99           a pair: six combos
    AKs              an ace and a king of one suit: four combos
    AKo              an ace and a king of two suits: twelve combos
    AK               an ace and a king of any suits: sixteen combos
    TT+, A9s+        TT and all higher pairs; A9s, ATs, AJs, AQs and AKs
    T9o+             T9o and all higher connectors, hands of neighboring ranks: JTo, QJo, KQo and AKo
    99-66, A5s-A2s   99, 88, 77 and 66; A5s, A4s, A3s and A2s
    98o-65o, T8s-75s 98o, 87o, 76o and 65o; T8s, 97s, 86s and 75s
    AhKh             one combo
    random           every hand

As in postflop-solver, a plus raises both ranks of a pair or a connector, and the lower rank of other hands. A dash
joins two hands with the same higher rank, or with the same distance between their ranks, in either order.

If a hand occurs twice, its last weight counts: in "QQ+:0.5, KK" it is 1 for kings. A *hand class* is the hands of the
same two ranks, or of the same two ranks and suited or offsuit: AA, AK, AKs, AKo.
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
# The suffixes of hands in one suit and of hands in two suits.
_SUITED, _OFFSUIT = "s", "o"


def parse_range(text: str) -> Float64s:
  """Returns the weight of each hand in a range, float64 (1326,), in the order of `Endgame.reaches`.

  Raises:
    EndgameError: the text is not a range.
  """
  if not isinstance(text, str):
    raise errors.EndgameError(f"A range is a string such as 'AA,KK,AKs:0.5', not {text!r}.")
  hands = file_hands()
  ranks, suits = hands // 4, hands % 4
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
      for higher_rank, lower_rank, suffix in _expand(name, part):
        fits_suffix = {_SUITED: suited, _OFFSUIT: ~suited}.get(suffix, np.True_)
        chosen |= (high == higher_rank) & (low == lower_rank) & fits_suffix
    result[chosen] = _weight(weight, part)
  if not result.any():
    raise _not_a_range(text, "no hand has a positive weight")
  return result


def endgame(
  oop: str, ip: str, *, board: str, pot: int, stack: int, big_blind: int = 100
) -> Endgame:
  """Returns the endgame between two ranges, for `compile_public_game`; `.load()` makes it a game of OpenSpiel.

  Args:
    oop: the range of the player who acts first on each street, player 0.
    ip: the range of the other player, player 1.
    board: three to five cards, as in `"7s9h9cTc"`: the flop, the turn or the river.
    pot: chips in the pot, half of them from each player.
    stack: chips that each player has behind (the effective stack). `Endgame.starting_stack` is this number plus half
      of the pot.
    big_blind: chips of the big blind, the unit of `Endgame.milli_big_blinds`.

  Raises:
    EndgameError: a range, the board or the chips are invalid, or no pair of hands can be dealt.
    ArgumentError: the pot or the stack is not a positive integer.
  """
  pot = arguments.positive_integer(pot, "pot")
  behind = arguments.positive_integer(stack, "stack")
  return Endgame(
    board=board,
    pot=pot,
    reaches=np.stack([parse_range(oop), parse_range(ip)]),
    starting_stack=behind + pot // 2,
    big_blind=big_blind,
  )


def _expand(name: str, part: str) -> list[tuple[int, int, str]]:
  """Returns (higher rank, lower rank, suffix) for each hand class in a name such as "TT+" or "A5s-A2s".

  Args:
    name: the name.
    part: the part of the range for the error, with its weight.
  """
  begin, dash, end = name.partition("-")
  first_class = high, low, suffix = _parse_class(begin.removesuffix("+"), part)
  if begin.endswith("+"):
    if dash:
      raise _not_a_range(part, "it has both a plus and a dash")
    if high - low <= 1:
      return _shifted(high, len(RANKS) - 1, high - low, suffix)
    return [(high, rank, suffix) for rank in range(low, high)]
  if not dash:
    return [first_class]
  last_high, last_low, last_suffix = _parse_class(end, part)
  if suffix == last_suffix and high - low == last_high - last_low:
    return _shifted(min(high, last_high), max(high, last_high), high - low, suffix)
  if suffix == last_suffix and high == last_high != last_low and high != low:
    return [(high, rank, suffix) for rank in range(min(low, last_low), max(low, last_low) + 1)]
  raise _not_a_range(
    part,
    "a dash joins two pairs, as in 99-66, or two hands with the same suffix that have the same higher rank, as in "
    "A5s-A2s, or the same distance between their ranks, as in T9s-76s",
  )


def _shifted(lowest: int, highest: int, gap: int, suffix: str) -> list[tuple[int, int, str]]:
  """Returns the hand classes whose lower rank is `gap` below the higher one, which goes from `lowest` to `highest`."""
  return [(high, high - gap, suffix) for high in range(lowest, highest + 1)]


def _parse_class(name: str, part: str) -> tuple[int, int, str]:
  """Returns the higher rank, the lower rank and the suffix ("s", "o" or "") of a hand class such as "AKs"."""
  match = _NAMED.fullmatch(name)
  if match is None:
    raise _not_a_range(
      part, "hands are written as AA, AK, AKs, AKo, TT+, A9s+, 99-66, T9s-76s or AhKh"
    )
  first, second = (RANKS.index(rank) for rank in match.group(1, 2))
  if first == second and match.group(3):
    raise _not_a_range(part, "a pair is neither suited nor offsuit")
  return max(first, second), min(first, second), match.group(3)


def _weight(text: str, part: str) -> float:
  """Returns the weight after a colon; 1 if there is none."""
  try:
    weight = float(text) if text else 1.0
  except ValueError:
    weight = -1.0
  if not 0 <= weight < float("inf"):
    raise _not_a_range(part, "a weight is a finite number, 0 or more")
  return weight


def _not_a_range(part: str, problem: str) -> errors.EndgameError:
  """Returns the error that names a part of a range and its problem."""
  return errors.EndgameError(f"{part[:60]!r} is not a range of hands: {problem}.")
