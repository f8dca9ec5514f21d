"""Bet sizes in the notation of poker solvers: the action filter `bet_sizes("33%, 75%, e, a", raises="2.5x, a")`.

The notation is that of desktop-postflop and similar solvers:

    70%       raise by 70 percent of the pot after a call
    2.5x      raise to 2.5 times the previous bet; raises only
    100c      raise by 100 chips
    20c3r     20c, for up to three raises a street; raises only
    e, 2e     geometric: the pot fraction that, bet on every remaining street (2e: over two), ends all-in
    2e200%    2e, but at most twice the pot
    a         all-in

A bet below the smallest legal bet becomes the smallest; a bet above the largest becomes all-in.
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from spiel_cfr import errors
from spiel_cfr._util import arguments

# A string for both players, or a pair of strings: one for the player who acts first on the street (OOP from the flop
# on), one for the other player (IP).
Sizes: TypeAlias = str | tuple[str, str]
# The same sizes on every street, or a dictionary from streets to sizes.
SizesByStreet: TypeAlias = Sizes | Mapping[str, Sizes]

STREETS = ("preflop", "flop", "turn", "river")
_FOLD, _CALL = 0, 1
# A decimal number with at most nine digits before and after the point.
_NUMBER = r"(\d{1,9}\.?\d{0,9}|\.\d{1,9})"
_POT = re.compile(rf"{_NUMBER}%")
_TIMES = re.compile(rf"{_NUMBER}x")
_CHIPS = re.compile(r"(\d{1,10})c(?:(\d{1,3})r)?")
_GEOMETRIC = re.compile(rf"(\d{{1,3}})?e(?:{_NUMBER}%)?")
# A move: c is a call or check, f a fold, r100 a bet or raise after which the player has put in 100 chips.
_MOVE = re.compile(r"[cf]|r\d+")
# Parts of OpenSpiel's information state: the pot after a call, both players' remaining chips, the moves of each street.
_STATE = re.compile(r"\[Pot: (\d+)\]\[Money: (\d+) (\d+)\].*\[Sequences: ([^\]]*)\]")
# The largest number of raises or streets in a size.
_MOST_COUNT = 100
# Relative rounding in comparisons of shares of the pot.
_ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True)
class Size:
  """One size of a bet.

  Attributes:
    kind: str. "pot", "times", "chips", "geometric" or "all-in".
    value: float. For "pot" the fraction of the pot, for "times" the factor, for "chips" the chips, for "geometric" the
      number of streets (0 for all that remain).
    limit: float. For "chips" the largest number of raises, for "geometric" the largest fraction of the pot.
  """

  kind: str
  value: float = 0.0
  limit: float = math.inf


@dataclasses.dataclass(frozen=True)
class Betting:
  """The chips at a decision. A bet is the total that a player has put in on this street after it ("raise to").

  Attributes:
    pot_after_call: int. The pot after a call.
    to_match: int. The opponent's bet, as a total on this street; 0 if there is no bet.
    smallest: int. The smallest legal bet or raise, as a total on this street.
    largest: int. All-in, as a total on this street.
    num_bets: int. The number of bets and raises on this street so far.
    streets_left: int. The number of remaining streets, this one included.
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
  """Returns whole chips; a half is rounded up."""
  return math.floor(chips + 0.5)


@dataclasses.dataclass(frozen=True)
class BetSizes:
  """Action filter for `universal_poker(betting=nolimit,bettingAbstraction=fullgame)`. Make one with `bet_sizes`.

  Attributes:
    bets: dict from streets to the sizes of the first player to act and of the other. Sizes of first bets.
    raises: dict from streets to the sizes of the first player to act and of the other. Sizes of raises.
    donk: dict from streets to the sizes of OOP and of IP. Sizes of donk bets; streets without an entry use `bets`.
    add_all_in: float. The largest ratio of all-in to pot at which all-in is added; see `bet_sizes`.
    force_all_in: float. The largest ratio of stack to pot at which a bet becomes all-in; see `bet_sizes`.
    merge: float. The closeness at which bets are merged; see `bet_sizes`.
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
    match = _STATE.search(state.information_state_string())
    if parameters.get("bettingAbstraction") != "fullgame" or match is None:
      raise errors.UnsupportedGameError(
        f"bet_sizes chooses among all sizes of bets, which are no actions of {state.get_game().get_type().short_name} "
        "as it was loaded. Give compile_public_game an Endgame, or load universal_poker with "
        "betting=nolimit,bettingAbstraction=fullgame."
      )
    pot, first_money, second_money, moves = match.groups()
    # A player does not fold to a check.
    kept = [_FOLD] if first_money != second_money and _FOLD in actions else []
    kept.append(_CALL)
    if actions[-1] <= _CALL:
      return kept
    *earlier, now = (_MOVE.findall(street) for street in moves.split("|"))
    raised = [int(move[1:]) for move in itertools.chain(*earlier) if move[0] == "r"]
    # The chips that each player has put in before this street. OpenSpiel's actions include them.
    blinds = map(int, parameters["blind"].split())
    paid_before = (raised[-1] if raised else max(blinds)) if earlier else 0
    betting = Betting(
      pot_after_call=int(pot),
      to_match=int(pot) // 2 - paid_before,
      smallest=next(action for action in actions if action > _CALL) - paid_before,
      largest=actions[-1] - paid_before,
      num_bets=sum(move[0] == "r" for move in now),
      streets_left=parameters["numRounds"] - len(earlier),
    )
    sizes = self._sizes(earlier, now, is_raise=betting.to_match > 0)
    return [*kept, *(paid_before + amount for amount in self._amounts(betting, sizes))]

  def _sizes(self, earlier: list[list[str]], now: list[str], *, is_raise: bool) -> Sequence[Size]:
    """Returns the sizes at a decision, given the moves of each earlier street and of this street."""
    street, position = STREETS[len(earlier)], len(now) % 2
    last = earlier[-1] if earlier else []
    # A donk bet: the player who acts first has called the last bet of the previous street.
    if not now and street in self.donk and len(last) % 2 and len(last) > last.count("c"):
      return self.donk[street][position]
    return (self.raises if is_raise else self.bets)[street][position]

  def _amounts(self, betting: Betting, sizes: Sequence[Size]) -> list[int]:
    """Returns the bets or raises as totals on this street, in descending order, without merged bets."""
    wanted = [amount for size in sizes if (amount := betting.amount(size)) is not None]
    if betting.largest <= betting.to_match + _rounded(betting.pot_after_call * self.add_all_in):
      wanted.append(betting.largest)
    legal = set()
    for amount in wanted:
      clipped = min(max(amount, betting.smallest), betting.largest)
      pot = betting.pot_after_call + 2 * (clipped - betting.to_match)
      is_forced = betting.largest <= clipped + _rounded(pot * self.force_all_in)
      legal.add(betting.largest if is_forced else clipped)
    result: list[int] = []
    next_larger = math.inf
    for amount in sorted(legal, reverse=True):
      pot_share = (amount - betting.to_match) / betting.pot_after_call
      if pot_share < (next_larger - self.merge) / (1 + self.merge) * (1 - _ROUNDING):
        result.append(amount)
        next_larger = pot_share
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
  """Returns an action filter that keeps folds, calls, and the given sizes of bets and raises.

      poker.bet_sizes("33%, 75%, e, a", raises="2.5x, a", add_all_in=1.5, force_all_in=0.15, merge=0.1)
      poker.bet_sizes({"flop": "50%", "turn": ("75%", "60%, a"), "river": "a"})

  Sizes are a string for both players on all streets, in the notation of this module. A pair of strings gives the sizes
  of the player who acts first on the street (OOP from the flop on) and of the other player (IP). A dictionary from
  streets to strings or pairs gives different sizes for each street; a street that it leaves out has no bets.

  Args:
    bets: the first bets of a street.
    raises: the raises of a street.
    donk: the first bets of OOP on a street after it called the last bet of the previous street; by default, `bets`.
    add_all_in: also offer all-in where it is at most this many times the pot.
    force_all_in: replace a bet by all-in if the stack left behind is at most this many times the pot after a call.
    merge: leave out a bet of Y times the pot if (1 + X) / (1 + Y) < 1 + merge, where X times the pot is the next larger
      kept bet. 0.1 is typical.

  Raises:
    ArgumentError: a string is no list of sizes (the message names the part), or a number is negative.
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
  """Returns the sizes of both players by street, given those of the argument called `name`."""
  if isinstance(given, Mapping):
    for street in given:
      if street not in STREETS:
        raise errors.ArgumentError(
          f"{name} has the street {street!r}; streets are {', '.join(STREETS)}."
        )
    texts = {
      street: given.get(street, "") for street in STREETS if street in given or name != "donk"
    }
  else:
    texts = dict.fromkeys(STREETS, given)
  result = {}
  for street, sizes in texts.items():
    pair = (sizes, sizes) if isinstance(sizes, str) else sizes
    if (
      not isinstance(pair, Sequence)
      or len(pair) != 2
      or not all(isinstance(text, str) for text in pair)
    ):
      raise errors.ArgumentError(
        f"{name} must be a string such as '33%, 75%, a', or a pair of strings for OOP and IP, not {sizes!r}."
      )
    result[street] = tuple(tuple(_parse(text, name)) for text in pair)
  return result


def _parse(text: str, name: str) -> list[Size]:
  """Returns the sizes in a string of the argument called `name`."""
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
  """Returns the size that a part of a string describes, or the error in words."""
  if part == "a":
    return Size("all-in")
  if match := _POT.fullmatch(part):
    return Size("pot", float(match[1]) / 100)
  if match := _TIMES.fullmatch(part):
    if not is_raise:
      return "a factor is for raises only"
    return Size("times", float(match[1])) if float(match[1]) > 1 else "a raise is more than 1x"
  if match := _CHIPS.fullmatch(part):
    if match[2] and not is_raise:
      return "a number of raises is for raises only"
    if match[2] and not 1 <= int(match[2]) <= _MOST_COUNT:
      return f"a number of raises is from 1 to {_MOST_COUNT}"
    return Size("chips", float(match[1]), float(match[2] or math.inf))
  if match := _GEOMETRIC.fullmatch(part):
    if match[1] and not 1 <= int(match[1]) <= _MOST_COUNT:
      return f"a number of streets is from 1 to {_MOST_COUNT}"
    return Size("geometric", float(match[1] or 0), float(match[2] or math.inf) / 100)
  return "write 70%, 2.5x, 100c, 20c3r, e, 2e, 2e200% or a, with up to nine digits"
