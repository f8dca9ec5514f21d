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
# Numbers that chips can have.
_NUMBER = r"(\d{1,9}\.?\d{0,9}|\.\d{1,9})"
_POT = re.compile(rf"{_NUMBER}%")
_TIMES = re.compile(rf"{_NUMBER}x")
_CHIPS = re.compile(r"(\d{1,10})c(?:(\d{1,3})r)?")
_GEOMETRIC = re.compile(rf"(\d{{1,3}})?e(?:{_NUMBER}%)?")
# Bets and raises of a street, with the chips that the player has put in, and calls, checks and folds.
_MOVE = re.compile(r"[cf]|r\d+")
# Of OpenSpiel's information state: the pot after a call, the chips that both have left, and the moves of each street.
_TOLD = re.compile(r"\[Pot: (\d+)\]\[Money: (\d+) (\d+)\].*\[Sequences: ([^\]]*)\]")
_MOST = 100
# A comparison of shares of the pot, for numbers that are equal but for rounding.
_ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True)
class Size:
  """One size.

  Attributes:
    kind: "pot", "times", "chips", "geometric" or "all-in".
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
    """Returns the legal actions that are kept.

    Raises:
      UnsupportedGameError: not every size of bet is an action of the game.
    """
    parameters = state.get_game().get_parameters()
    found = _TOLD.findall(state.information_state_string())
    if parameters.get("bettingAbstraction") != "fullgame" or not found:
      raise errors.UnsupportedGameError(
        f"bet_sizes chooses among all sizes of bets, which are no actions of {state.get_game().get_type().short_name} "
        "as it was loaded. Give compile_public_game an Endgame, or load universal_poker with "
        "betting=nolimit,bettingAbstraction=fullgame."
      )
    ((pot, first_money, second_money, told),) = found
    # A player does not fold to a check.
    kept = [_FOLD] if first_money != second_money and _FOLD in actions else []
    kept.append(_CALL)
    if actions[-1] <= _CALL:
      return kept
    *earlier, now = (_MOVE.findall(own) for own in told.split("|"))
    raised = [int(move[1:]) for move in itertools.chain(*earlier) if move[0] == "r"]
    # The chips that each player has put in before this street, and the bet there, in OpenSpiel's numbers of bets.
    blinds = map(int, parameters["blind"].split())
    start = (raised[-1] if raised else max(blinds)) if earlier else 0
    betting = Betting(
      pot=int(pot),
      before=int(pot) // 2 - start,
      smallest=next(action for action in actions if action > _CALL) - start,
      largest=actions[-1] - start,
      num_bets=sum(move[0] == "r" for move in now),
      streets_left=parameters["numRounds"] - len(earlier),
    )
    street, position = STREETS[len(earlier)], len(now) % 2
    sizes = (self.raises if betting.before else self.bets)[street][position]
    last = earlier[-1] if earlier else []
    # The player who acts first has called the last bet of the street before.
    if not now and street in self.donk and len(last) % 2 and len(last) > last.count("c"):
      sizes = self.donk[street][position]
    return [*kept, *(start + amount for amount in self._amounts(betting, sizes))]

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
    # A comma at the end, or nothing at all.
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
  """Returns a size, or what is wrong."""
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
