"""Sizes of bets as players write them: `bet_sizes("33%, 75%, e, a", raises="2.5x, a")`, an action filter.

The notation is that of desktop-postflop and similar solvers:

    70%       raise by 70 percent of the pot after a call
    2.5x      raise to 2.5 times the previous bet; raises only
    100c      raise by 100 chips
    20c3r     20c, for up to three raises a street; raises only
    e, 2e     geometric: the pot fraction that, bet on every remaining street (2e: over two), ends all-in
    2e200%    2e, but at most twice the pot
    a         all-in

A bet below the smallest legal one becomes the smallest, a bet above the largest becomes all-in.
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from spiel_cfr import errors
from spiel_cfr._util import arguments

# A text for both players, or a pair of texts: for the player who acts first on the street (OOP from the flop on), and
# for the other (IP).
Sizes: TypeAlias = str | tuple[str, str]
# The sizes on every street, or for each street.
SizesByStreet: TypeAlias = Sizes | Mapping[str, Sizes]

STREETS = ("preflop", "flop", "turn", "river")
_FOLD, _CALL = 0, 1
# Numbers that chips can have.
_NUMBER = r"(\d{1,9}\.?\d{0,9}|\.\d{1,9})"
_POT = re.compile(rf"{_NUMBER}%")
_TIMES = re.compile(rf"{_NUMBER}x")
_CHIPS = re.compile(r"(\d{1,10})c(?:(\d{1,3})r)?")
_GEOMETRIC = re.compile(rf"(\d{{1,3}})?e(?:{_NUMBER}%)?")
# A move: a bet or raise with the chips that the player has put in; a call or check; a fold.
_MOVE = re.compile(r"[cf]|r\d+")
# Parts of OpenSpiel's information state: the pot after a call, both players' remaining chips, the moves of each street.
_STATE = re.compile(r"\[Pot: (\d+)\]\[Money: (\d+) (\d+)\].*\[Sequences: ([^\]]*)\]")
_MOST = 100
# Relative rounding in comparisons of shares of the pot.
_ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True)
class Size:
  """One size of a bet.

  Attributes:
    kind: str. "pot", "times", "chips", "geometric" or "all-in".
    value: float. By kind: the fraction of the pot, the factor, the chips, or the number of streets (0 for all that are
      left).
    limit: float. For "chips" the largest number of raises, for "geometric" the largest fraction of the pot.
  """

  kind: str
  value: float = 0.0
  limit: float = math.inf


@dataclasses.dataclass(frozen=True)
class Betting:
  """The chips at a decision. Bets are a player's total chips put in on this street ("raise to").

  Attributes:
    pot_after_call: int. The pot after a call.
    to_match: int. The bet to call, as such a total; 0 if there is none.
    smallest: int. The smallest legal bet or raise, as such a total.
    largest: int. All-in, as such a total.
    num_bets: int. The number of bets and raises on this street so far.
    streets_left: int. The number of streets, this one included.
  """

  pot_after_call: int
  to_match: int
  smallest: int
  largest: int
  num_bets: int
  streets_left: int

  def amount(self, size: Size) -> int | None:
    """Returns a size as the player's total on this street; None if the size is not allowed here."""
    if size.kind == "pot":
      return self.to_match + _rounded(self.pot_after_call * size.value)
    if size.kind == "times":
      return _rounded(self.to_match * size.value)
    if size.kind == "chips":
      return self.to_match + int(size.value) if self.num_bets <= size.limit else None
    if size.kind == "geometric":
      streets = max((size.value or self.streets_left) - max(self.num_bets - 1, 0), 1)
      behind = self.largest - self.to_match
      share = ((2 * behind / self.pot_after_call + 1) ** (1 / streets) - 1) / 2
      return self.to_match + _rounded(self.pot_after_call * min(share, size.limit))
    return self.largest


def _rounded(chips: float) -> int:
  return math.floor(chips + 0.5)


@dataclasses.dataclass(frozen=True)
class BetSizes:
  """An action filter for `universal_poker(betting=nolimit,bettingAbstraction=fullgame)`. Make one with `bet_sizes`.

  Attributes:
    bets: dict from streets to the sizes of the player who acts first and of the other. First bets.
    raises: dict from streets to the sizes of the player who acts first and of the other. Raises.
    donk: dict from streets to the sizes of OOP and of IP. Donk bets. A street that is not in it has those of `bets`.
    add_all_in: float. As of `bet_sizes`.
    force_all_in: float. As of `bet_sizes`.
    merge: float. As of `bet_sizes`.
  """

  bets: Mapping[str, tuple[tuple[Size, ...], ...]]
  raises: Mapping[str, tuple[tuple[Size, ...], ...]]
  donk: Mapping[str, tuple[tuple[Size, ...], ...]]
  add_all_in: float
  force_all_in: float
  merge: float

  def __call__(self, state: Any, actions: list[int]) -> list[int]:
    """Returns the legal actions that are kept.

    Raises:
      UnsupportedGameError: the game does not have every size of bet as an action.
    """
    parameters = state.get_game().get_parameters()
    found = _STATE.findall(state.information_state_string())
    if parameters.get("bettingAbstraction") != "fullgame" or not found:
      raise errors.UnsupportedGameError(
        f"bet_sizes chooses among all sizes of bets, which are no actions of {state.get_game().get_type().short_name} "
        "as it was loaded. Give compile_public_game an Endgame, or load universal_poker with "
        "betting=nolimit,bettingAbstraction=fullgame."
      )
    ((pot, first_money, second_money, moves),) = found
    # A player does not fold to a check.
    kept = [_FOLD] if first_money != second_money and _FOLD in actions else []
    kept.append(_CALL)
    if actions[-1] <= _CALL:
      return kept
    *earlier, now = (_MOVE.findall(street) for street in moves.split("|"))
    raised = [int(move[1:]) for move in itertools.chain(*earlier) if move[0] == "r"]
    # The chips that each player has put in before this street. OpenSpiel's numbers of bets include them.
    blinds = map(int, parameters["blind"].split())
    start = (raised[-1] if raised else max(blinds)) if earlier else 0
    betting = Betting(
      pot_after_call=int(pot),
      to_match=int(pot) // 2 - start,
      smallest=next(action for action in actions if action > _CALL) - start,
      largest=actions[-1] - start,
      num_bets=sum(move[0] == "r" for move in now),
      streets_left=parameters["numRounds"] - len(earlier),
    )
    street, position = STREETS[len(earlier)], len(now) % 2
    sizes = (self.raises if betting.to_match else self.bets)[street][position]
    last = earlier[-1] if earlier else []
    # A donk bet: the player who acts first has called the last bet of the previous street.
    if not now and street in self.donk and len(last) % 2 and len(last) > last.count("c"):
      sizes = self.donk[street][position]
    return [*kept, *(start + amount for amount in self._amounts(betting, sizes))]

  def _amounts(self, betting: Betting, sizes: Sequence[Size]) -> list[int]:
    """Returns the amounts of bets or raises."""
    wanted = [amount for size in sizes if (amount := betting.amount(size)) is not None]
    if betting.largest <= betting.to_match + _rounded(betting.pot_after_call * self.add_all_in):
      wanted.append(betting.largest)
    found = set()
    for amount in wanted:
      clipped = min(max(amount, betting.smallest), betting.largest)
      pot = betting.pot_after_call + 2 * (clipped - betting.to_match)
      found.add(
        betting.largest
        if betting.largest <= clipped + _rounded(pot * self.force_all_in)
        else clipped
      )
    result: list[int] = []
    above = math.inf
    for amount in sorted(found, reverse=True):
      share = (amount - betting.to_match) / betting.pot_after_call
      if share < (above - self.merge) / (1 + self.merge) * (1 - _ROUNDING):
        result.append(amount)
        above = share
    return result


def bet_sizes(
  bets: SizesByStreet,
  raises: SizesByStreet = "",
  *,
  donk: SizesByStreet | None = None,
  add_all_in: float = 0.0,
  force_all_in: float = 0.0,
  merge: float = 0.0,
) -> BetSizes:
  """Returns an action filter that keeps folds, calls and some sizes of bets.

      poker.bet_sizes("33%, 75%, e, a", raises="2.5x, a", add_all_in=1.5, force_all_in=0.15, merge=0.1)
      poker.bet_sizes({"flop": "50%", "turn": ("75%", "60%, a"), "river": "a"})

  Sizes are a text for both players on all streets. They may also be a pair of texts: for the player who acts first on
  the street (OOP from the flop on), and for the other (IP). A dictionary from streets to these gives different sizes
  for each street; streets that it leaves out have no bets.

  Args:
    bets: the first bets of a street.
    raises: the raises of a street.
    donk: the first bets of OOP on a street after it called the last bet of the previous street; by default, `bets`.
    add_all_in: also offer all-in where it is at most this many times the pot.
    force_all_in: replace a bet by all-in if the stack left behind is at most this many times the pot after a call.
    merge: leave out a bet of Y times the pot if (1 + X) / (1 + Y) < 1 + merge, where X is the next larger kept bet.
      0.1 is typical.

  Raises:
    ArgumentError: a text is no list of sizes, and the message says which part; or a number is negative.
  """
  return BetSizes(
    _by_street(bets, "bets"),
    _by_street(raises, "raises"),
    {} if donk is None else _by_street(donk, "donk"),
    arguments.real_number(add_all_in, "add_all_in", 0.0),
    arguments.real_number(force_all_in, "force_all_in", 0.0),
    arguments.real_number(merge, "merge", 0.0),
  )


def _by_street(given: SizesByStreet, name: str) -> dict[str, tuple[tuple[Size, ...], ...]]:
  if isinstance(given, Mapping):
    for street in given:
      if street not in STREETS:
        raise errors.ArgumentError(
          f"{name} has the street {street!r}; streets are {', '.join(STREETS)}."
        )
    found = {
      street: given.get(street, "") for street in STREETS if street in given or name != "donk"
    }
  else:
    found = dict.fromkeys(STREETS, given)
  result = {}
  for street, sizes in found.items():
    pair = (sizes, sizes) if isinstance(sizes, str) else sizes
    if (
      not isinstance(pair, Sequence)
      or len(pair) != 2
      or not all(isinstance(own, str) for own in pair)
    ):
      raise errors.ArgumentError(
        f"{name} must be a text such as '33%, 75%, a', or a pair of texts for OOP and IP, not {sizes!r}."
      )
    result[street] = tuple(tuple(_parse(own, name)) for own in pair)
  return result


def _parse(text: str, name: str) -> list[Size]:
  """Returns the sizes of a text."""
  parts = [part.strip() for part in text.split(",")]
  if not parts[-1]:
    # A trailing comma, or an empty text.
    parts.pop()
  result = []
  for number, part in enumerate(parts, 1):
    size = _size(part.lower(), is_raise=name == "raises")
    if isinstance(size, str):
      raise errors.ArgumentError(
        f"{name}: {part!r}, part {number} of {text!r}, is no size of a bet: {size}."
      )
    result.append(size)
  return result


def _size(part: str, is_raise: bool) -> Size | str:
  """Returns a size, or the error in words."""
  if part == "a":
    return Size("all-in")
  if match := _POT.fullmatch(part):
    return Size("pot", float(match[1]) / 100)
  if match := _TIMES.fullmatch(part):
    if not is_raise:
      return "that is for raises"
    return Size("times", float(match[1])) if float(match[1]) > 1 else "a raise is more than 1x"
  if match := _CHIPS.fullmatch(part):
    if match[2] and not is_raise:
      return "that is for raises"
    if match[2] and not 1 <= int(match[2]) <= _MOST:
      return f"a number of raises is from 1 to {_MOST}"
    return Size("chips", float(match[1]), float(match[2] or math.inf))
  if match := _GEOMETRIC.fullmatch(part):
    if match[1] and not 1 <= int(match[1]) <= _MOST:
      return f"a number of streets is from 1 to {_MOST}"
    return Size("geometric", float(match[1] or 0), float(match[2] or math.inf) / 100)
  return "write 70%, 2.5x, 100c, 20c3r, e, 2e, 2e200% or a, with up to nine digits"
