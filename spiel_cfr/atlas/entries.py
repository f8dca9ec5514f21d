"""Entries of the atlas: games with numbers that are certain."""

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
    value: the number as it is published: a fraction, or decimals, of which the last one is rounded.
    source: where it is published.
  """

  value: str
  source: str

  @property
  def interval(self) -> Interval:
    """Bounds of the published number: half a unit of the last decimal on both sides; a fraction is exact to 1e-9."""
    number = Fraction(self.value)
    decimals = len(self.value.partition(".")[2])
    half = Fraction(1, 10**9) if not decimals else Fraction(1, 2 * 10**decimals)
    return Interval(number - half, number + half)


@dataclasses.dataclass(frozen=True)
class Entry:
  """A game of the atlas. Utilities are in the game's units, expected per game.

  Attributes:
    game: the game's string.
    num_infosets: each player's number of infosets.
    num_states: the number of histories, those of chance and terminal ones included.
    num_terminals: the number of terminal histories.
    value: bounds of the value for player 0; None unless two players have a constant sum.
    uniform_nash_conv: bounds of NashConv when all play uniformly at random.
    solution: how the policy of `solution_nash_conv` is made again, such as "lp" or "restarted 500".
    solution_nash_conv: bounds of NashConv of that policy.
    is_rational: whether all payoffs and chance probabilities stand for rationals; see `Certificate`.
    unique: for each player, whether its equilibrium strategy is unique where it is played; None if not computed.
    best_efce: the largest sum of utilities in an extensive-form correlated equilibrium; None if not computed.
    facts: other facts of the game that are certain.
    published: values published elsewhere.
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
  """Returns an entry of what the file says of it."""
  known = dict(text)
  for name in ("value", "uniform_nash_conv", "solution_nash_conv"):
    if known[name] is not None:
      known[name] = Interval(*map(Fraction, known[name]))
  for name in ("num_infosets", "unique", "facts"):
    if known.get(name) is not None:
      known[name] = tuple(known[name])
  known["published"] = tuple(Published(**each) for each in known.get("published", ()))
  return Entry(**known)


@functools.cache
def entries() -> tuple[Entry, ...]:
  """Returns all entries, in the order of the page."""
  text = importlib.resources.files(__package__).joinpath(_FILE).read_text()
  return tuple(map(read_entry, json.loads(text)))


@functools.cache
def _by_game() -> dict[str, Entry]:
  return {_canonical(entry.game): entry for entry in entries()}


def _canonical(game: str) -> str:
  """Returns a string that is the same for a game whether defaults of its parameters are written or not."""
  loading.load_game(game)  # Which says what is wrong with a string.
  loaded = pyspiel.load_game(game)
  return f"{loaded.get_type().short_name} {sorted(map(str, loaded.get_parameters().items()))}"


def find(game: str) -> Entry:
  """Returns the entry of a game, however its string is written.

      >>> find("leduc_poker(players=2)").num_states
      9457

  Args:
    game: a game's string, of OpenSpiel's.

  Raises:
    ArgumentError: the atlas does not have it.
    GameError: OpenSpiel can't load it.
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
