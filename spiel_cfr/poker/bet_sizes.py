"""Bets as people write them: `bet_sizes("33%, 75%, e, a", raises="2.5x, a")`, an action filter on every size of bet.

The sizes are those that users of solvers know from the strings of desktop-postflop and its kind:

    70%       of the pot after a call
    2.5x      times the bet before; of raises only
    100c      so many chips; more than the bet before, of raises
    20c3r     likewise, for up to three raises a street; of raises only
    e, 2e     geometric: the same share of the pot on this and all later streets, or on two, is all-in on the last
    2e200%    likewise, at most twice the pot
    a         all-in

A bet below the smallest legal one is that one, a bet above the largest is all-in.
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from spiel_cfr import errors
from spiel_cfr._util import arguments

# Of both players, or of who acts first on a street (OOP) and of the other (IP).
Sizes: TypeAlias = str | tuple[str, str]
# On every street, or by street.
SizesByStreet: TypeAlias = Sizes | Mapping[str, Sizes]

STREETS = ("preflop", "flop", "turn", "river")
_FOLD, _CALL = 0, 1
_NUMBER = r"(\d+\.?\d*|\.\d+)"
_FORMS = {
  "pot": re.compile(rf"{_NUMBER}%"),
  "times": re.compile(rf"{_NUMBER}x"),
  "chips": re.compile(r"(\d+)c(?:(\d+)r)?"),
  "geometric": re.compile(rf"(\d+)?e(?:{_NUMBER}%)?"),
  "all-in": re.compile("a"),
}
_MOST = 100
# A comparison of shares of the pot, for numbers that are equal but for rounding.
_ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True)
class Size:
  """One size.

  Attributes:
    kind: a key of `_FORMS`.
    number: the share of the pot, the factor, the chips, or the number of streets, 0 for all that are left.
    limit: of "chips" the raises up to which it is there, of "geometric" the largest share of the pot.
  """

  kind: str
  number: float = 0.0
  limit: float = math.inf


@dataclasses.dataclass(frozen=True)
class Betting:
  """The chips at a decision. Amounts are those of a player on this street.

  Attributes:
    pot: the pot after a call.
    before: the last bet, 0 if there is none.
    smallest, largest: the smallest bet or raise that is legal, and all-in.
    num_bets: the number of bets on this street.
    streets_left: the number of streets, this one included.
  """

  pot: int
  before: int
  smallest: int
  largest: int
  num_bets: int
  streets_left: int

  def amount(self, size: Size) -> int | None:
    """Returns the amount of a size; None where it is not there."""
    if size.kind == "pot":
      return self.before + _rounded(self.pot * size.number)
    if size.kind == "times":
      return _rounded(self.before * size.number)
    if size.kind == "chips":
      return self.before + int(size.number) if self.num_bets <= size.limit else None
    if size.kind == "geometric":
      streets = max((size.number or self.streets_left) - max(self.num_bets - 1, 0), 1)
      if self.num_bets:
        streets = max((size.number or self.streets_left) - self.num_bets + 1, 1)
      behind = self.largest - self.before
      share = ((2 * behind / self.pot + 1) ** (1 / streets) - 1) / 2
      return self.before + _rounded(self.pot * min(share, size.limit))
    return self.largest


def _rounded(chips: float) -> int:
  return math.floor(chips + 0.5)


@dataclasses.dataclass(frozen=True)
class BetSizes:
  """An action filter for `universal_poker(betting=nolimit,bettingAbstraction=fullgame)`. Make one with `bet_sizes`.

  Attributes:
    bets, raises, donk: by street and position, the sizes; no donk bets on streets where first bets are as any.
    add_all_in, force_all_in, merge: see `bet_sizes`.
  """

  bets: Mapping[str, tuple[tuple[Size, ...], ...]]
  raises: Mapping[str, tuple[tuple[Size, ...], ...]]
  donk: Mapping[str, tuple[tuple[Size, ...], ...]]
  add_all_in: float
  force_all_in: float
  merge: float

  def __call__(self, state: Any, actions: list[int]) -> list[int]:
    """Returns the legal actions that are kept."""
    told = state.information_state_string()
    rounds = re.search(r"\[Sequences: ([^\]]*)\]", told)[1].split("|")
    money = re.search(r"\[Money: (\d+) (\d+)\]", told)
    kept = [action for action in actions if action == _CALL]
    if money[1] != money[2]:
      kept += [action for action in actions if action == _FOLD]
    if actions[-1] <= _CALL:
      return sorted(kept)
    after_call = int(re.search(r"\[Pot: (\d+)\]", told)[1])
    moves, earlier = _MOVE.findall(rounds[-1]), _MOVE.findall("".join(rounds[:-1]))
    raised = [int(move[1:]) for move in earlier if move[0] == "r"]
    # What each has put in before this street, in OpenSpiel's bets too.
    start = 0
    if len(rounds) > 1:
      blinds = state.get_game().get_parameters()["blind"].split()
      start = raised[-1] if raised else max(map(int, blinds))
    num_bets = sum(move[0] == "r" for move in moves)
    betting = Betting(
      pot=after_call,
      before=after_call // 2 - start,
      smallest=next(action for action in actions if action > _CALL) - start,
      largest=actions[-1] - start,
      num_bets=num_bets,
      streets_left=state.get_game().get_parameters()["numRounds"] - len(rounds) + 1,
    )
    street, position = STREETS[len(rounds) - 1], len(moves) % 2
    sizes = (self.raises if betting.before else self.bets)[street][position]
    last = _MOVE.findall(rounds[-2]) if len(rounds) > 1 else []
    # Who acts first has called the last bet of the street before.
    if not moves and street in self.donk and len(last) % 2 and any("r" in move for move in last):
      sizes = self.donk[street][position]
    return sorted([*kept, *(start + amount for amount in self._amounts(betting, sizes))])

  def _amounts(self, betting: Betting, sizes: Sequence[Size]) -> list[int]:
    """Returns the amounts of bets or raises."""
    wanted = [amount for size in sizes if (amount := betting.amount(size)) is not None]
    if betting.largest <= betting.before + _rounded(betting.pot * self.add_all_in):
      wanted.append(betting.largest)
    found = set()
    for amount in wanted:
      clipped = min(max(amount, betting.smallest), betting.largest)
      pot = betting.pot + 2 * (clipped - betting.before)
      found.add(
        betting.largest
        if betting.largest <= clipped + _rounded(pot * self.force_all_in)
        else clipped
      )
    result: list[int] = []
    above = math.inf
    for amount in sorted(found, reverse=True):
      share = (amount - betting.before) / betting.pot
      if share < (above - self.merge) / (1 + self.merge) * (1 - _ROUNDING):
        result.append(amount)
        above = share
    return result


_MOVE = re.compile(r"[cf]|r\d+")


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

  Each is a text for both players on all streets, a pair of texts for OOP, who acts first on a street, and IP, or a
  dictionary of these by street; there are no bets on streets that it does not have.

  Args:
    bets: the first bets of a street.
    raises: later ones.
    donk: first bets of OOP on a street where it called the last bet of the street before; as other bets by default.
    add_all_in: all-in is added where it is at most so many times the pot.
    force_all_in: a bet becomes all-in where what would be left is at most so many times the pot after a call.
    merge: with the largest bet, X times the pot, those of Y are left out with (1 + X) / (1 + Y) < 1 + merge; and so on
      with the next largest.

  Raises:
    ArgumentError: a text is no list of sizes; the message says which part. Or a number is negative.
  """
  numbers = [
    arguments.real_number(number, name)
    for name, number in zip(
      ("add_all_in", "force_all_in", "merge"), (add_all_in, force_all_in, merge), strict=True
    )
  ]
  if min(numbers) < 0:
    raise errors.ArgumentError(f"add_all_in, force_all_in and merge must not be negative: {numbers}.")
  return BetSizes(
    _by_street(bets, "bets"),
    _by_street(raises, "raises"),
    {} if donk is None else _by_street(donk, "donk"),
    *numbers,
  )


def _by_street(given: SizesByStreet, name: str) -> dict[str, tuple[tuple[Size, ...], ...]]:
  if isinstance(given, Mapping):
    for street in given:
      if street not in STREETS:
        raise errors.ArgumentError(f"{name} has the street {street!r}; streets are {', '.join(STREETS)}.")
    found = {street: given.get(street, "") for street in STREETS if street in given or name != "donk"}
  else:
    found = dict.fromkeys(STREETS, given)
  result = {}
  for street, sizes in found.items():
    pair = (sizes, sizes) if isinstance(sizes, str) else sizes
    if not isinstance(pair, Sequence) or len(pair) != 2 or not all(isinstance(own, str) for own in pair):
      raise errors.ArgumentError(
        f"{name} must be a text such as '33%, 75%, a', or a pair of texts for OOP and IP, not {sizes!r}."
      )
    result[street] = tuple(tuple(_parse(own, name)) for own in pair)
  return result


def _parse(text: str, name: str) -> list[Size]:
  """Returns the sizes of a text."""
  parts = [part.strip() for part in text.split(",")]
  if not parts[-1]:
    # A comma at the end, or nothing at all.
    parts.pop()
  result = []
  for number, part in enumerate(parts, 1):
    size, problem = _size(part.lower(), is_raise=name == "raises")
    if size is None:
      raise errors.ArgumentError(
        f"{name}: {part!r}, part {number} of {text!r}, is no size of a bet: {problem}."
      )
    result.append(size)
  return result


def _size(part: str, is_raise: bool) -> tuple[Size | None, str]:
  """Returns a size, or None and what is wrong."""
  for kind, form in _FORMS.items():
    if found := form.fullmatch(part):
      break
  else:
    return None, "write 70%, 2.5x, 100c, 20c3r, e, 2e, 2e200% or a"
  number, limit = (*(own and float(own) for own in found.groups()), None, None)[:2]
  if kind in ("times", "chips") and not is_raise and (kind == "times" or limit is not None):
    return None, "that is for raises"
  if kind == "times" and number <= 1:
    return None, "a raise is more than 1x of the bet before"
  counts = {"chips": limit, "geometric": number}.get(kind)
  if counts is not None and not 1 <= counts <= _MOST:
    return None, f"a number of raises or streets is from 1 to {_MOST}"
  if kind == "pot":
    return Size(kind, number / 100), ""
  if kind == "geometric":
    return Size(kind, number or 0, math.inf if limit is None else limit / 100), ""
  return Size(kind, number or 0, math.inf if limit is None else limit), ""
