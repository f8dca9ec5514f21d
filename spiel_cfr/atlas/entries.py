"""Entries of the atlas: games with proven numbers."""

import dataclasses
import difflib
import functools
import importlib.resources
import json
from fractions import Fraction
from typing import Any

import pyspiel

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.certificates import Interval
from spiel_cfr.games.openspiel import loading

_FILE = "atlas.json"


@dataclasses.dataclass(frozen=True)
class Published:
  """A published value of a game for player 0.

  Attributes:
    value: str. The number as published: a fraction, or a decimal number whose last digit is rounded.
    source: str. The publication.
  """

  value: str
  source: str

  @property
  def interval(self) -> Interval:
    """Bounds on the published number: half a unit of the last decimal on both sides, or 1e-9 for a fraction."""
    number = Fraction(self.value)
    decimals = len(self.value.partition(".")[2])
    half = Fraction(1, 10**9) if not decimals else Fraction(1, 2 * 10**decimals)
    return Interval(number - half, number + half)


@dataclasses.dataclass(frozen=True)
class Entry:
  """A game of the atlas. Payoffs are in the game's units per play.

  Attributes:
    game: str. OpenSpiel's string.
    num_infosets: tuple of int. Each player's number of infosets.
    num_states: int. The number of histories, chance nodes and terminal ones included.
    num_terminals: int. The number of terminal histories.
    value: `Interval`. Bounds on the value for player 0; None unless the game is two-player constant-sum.
    uniform_nash_conv: `Interval`. Bounds on NashConv of the uniform policy.
    solution: str. The method that made the solution, such as "lp" or "restarted 500".
    solution_nash_conv: `Interval`. Bounds on NashConv of the solution.
    is_rational: bool. True if all payoffs and chance probabilities stand for rationals; see `Certificate`.
    unique: one bool a player. True if all its equilibrium strategies have the same sequence form; None if not computed.
    best_efce: float. The largest sum of payoffs in an extensive-form correlated equilibrium; None if not computed.
    facts: tuple of str. Other proven facts.
    published: tuple of `Published`. Values published elsewhere.
  """

  game: str
  num_infosets: tuple[int, ...]
  num_states: int
  num_terminals: int
  value: Interval | None
  uniform_nash_conv: Interval
  solution: str
  solution_nash_conv: Interval
  is_rational: bool
  unique: tuple[bool, bool] | None = None
  best_efce: float | None = None
  facts: tuple[str, ...] = ()
  published: tuple[Published, ...] = ()

  @property
  def agrees(self) -> bool | None:
    """True if all published values agree with ours; None without published values, or without a value."""
    if not self.published or self.value is None:
      return None
    ranges = [each.interval for each in self.published]
    return all(low <= self.value.high and self.value.low <= high for low, high in ranges)


def read_entry(text: dict[str, Any]) -> Entry:
  """Returns the entry that an object of the file describes."""
  fields = dict(text)
  for name in ("value", "uniform_nash_conv", "solution_nash_conv"):
    if fields[name] is not None:
      fields[name] = Interval(*map(Fraction, fields[name]))
  for name in ("num_infosets", "unique", "facts"):
    if fields.get(name) is not None:
      fields[name] = tuple(fields[name])
  fields["published"] = tuple(Published(**each) for each in fields.get("published", ()))
  return Entry(**fields)


@functools.cache
def entries() -> tuple[Entry, ...]:
  """Returns all entries, in the order of the page."""
  text = importlib.resources.files(__package__).joinpath(_FILE).read_text()
  return tuple(map(read_entry, json.loads(text)))


@functools.cache
def _by_game() -> dict[str, Entry]:
  return {_canonical(entry.game): entry for entry in entries()}


def _canonical(game: str) -> str:
  """Returns a string with all parameters of a game, so that defaults may be written or left out."""
  # This raises the better error for an invalid string.
  loading.load_game(game)
  loaded = pyspiel.load_game(game)
  return f"{loaded.get_type().short_name} {sorted(map(str, loaded.get_parameters().items()))}"


def find(game: str) -> Entry:
  """Returns the entry of a game. Default parameters may be written or left out.

      >>> find("leduc_poker(players=2)").num_states
      9457

  Args:
    game: OpenSpiel's string of the game.

  Raises:
    ArgumentError: the atlas does not have the game.
    GameError: OpenSpiel can't load the game.
  """
  arguments.of_type(game, "game", str)
  entry = _by_game().get(_canonical(game))
  if entry is None:
    names = [each.game for each in entries()]
    close = difflib.get_close_matches(game, names, 3, 0.5)
    raise errors.ArgumentError(
      f"The atlas does not have {game!r}, but {len(names)} others, such as {', '.join(close or names[:3])}; see "
      "atlas.entries()."
    )
  return entry
