"""Solved games of the atlas: each with its size, and proven bounds on values."""

import dataclasses
import difflib
import functools
import importlib.resources
import json
from fractions import Fraction
from typing import Any, Literal

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.atlas import game_names
from spiel_cfr.certificates import Interval
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import compile_game

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
    error = Fraction(1, 2 * 10**decimals) if decimals else Fraction(1, 10**9)
    return Interval(number - error, number + error)

  def agrees_with(self, value: Interval) -> bool:
    """Returns whether the published number is consistent with bounds on the value."""
    return self.interval.low <= value.high and value.low <= self.interval.high


@dataclasses.dataclass(frozen=True)
class SolvedGame:
  """A game of the atlas with its numbers. Payoffs are in the game's units per play.

  Attributes:
    game: str. OpenSpiel's string, or another name; see `atlas.load`.
    num_infosets: tuple of int. The number of infosets of each player.
    num_states: int. The number of histories, with chance nodes and terminal histories. In vector form, the number of
      public states.
    num_terminals: int. The number of terminal histories. In vector form, the number of terminal public states.
    value: `Interval`. Bounds on the value for player 0; None unless the game is two-player constant-sum.
    uniform_nash_conv: `Interval`. Bounds on NashConv of the uniform policy.
    solution: str. The method of the solution, such as "lp", "restarted 10,000" (iterations), or "quantal response 10^6"
      (rationality).
    solution_nash_conv: `Interval`. Bounds on NashConv of the solution.
    is_rational: bool. True if every payoff and chance probability is taken as a fraction with a small denominator, such
      as 1/3 for 0.333... False if the bounds allow for rounding errors of these numbers, see `Certificate`.
    infostate: "history" or None. With "history", infosets are the player's own observations and actions, see
      `compile_game`. With None, they are OpenSpiel's information states.
    form: "list", "vector" or "private moves". The form in which the game is compiled; "list" is a list of histories.
    arithmetic: "integers" or "floats". The arithmetic of the bounds, see `Certificate`.
    unique: tuple of bool. For each player, whether all its equilibrium strategies have the same sequence form, by
      linear programs; None if rounding hides it. None instead of the tuple if it was not computed.
    best_efce: float. The largest sum of payoffs in an extensive-form correlated equilibrium, by a linear program; None
      if not computed.
    efce_bound: float. An upper bound on that sum in a game that is not triangle-free; None if not computed.
    best_ce: `Fraction`. The largest sum of payoffs in a correlated equilibrium of the normal form, at a vertex of the
      polytope. None if a player has several infosets, or if there are more than 16 outcomes.
    polytope: tuple of int. Dimension, number of vertices and number of facets of the polytope of correlated equilibria
      of the normal form. None if a player has several infosets, or if there are more than 16 outcomes.
    facts: tuple of str. Other proven facts.
    published: tuple of `Published`. Values that others have published.
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
  infostate: Literal["history"] | None = None
  form: Literal["list", "vector", "private moves"] = "list"
  arithmetic: Literal["integers", "floats"] = "integers"
  unique: tuple[bool | None, bool | None] | None = None
  best_efce: float | None = None
  efce_bound: float | None = None
  best_ce: Fraction | None = None
  polytope: tuple[int, int, int] | None = None
  facts: tuple[str, ...] = ()
  published: tuple[Published, ...] = ()

  def compile(self) -> CompiledGame:
    """Returns the compiled game, with the infosets that `infostate` says."""
    return compile_game(game_names.load(self.game), infostate=self.infostate, progress=False)


def from_json(text: dict[str, Any]) -> SolvedGame:
  """Returns the game of a JSON object of the atlas's file."""
  fields = dict(text)
  for name in ("value", "uniform_nash_conv", "solution_nash_conv"):
    if fields[name] is not None:
      fields[name] = Interval(*map(Fraction, fields[name]))
  for name in ("num_infosets", "unique", "polytope", "facts"):
    if fields.get(name) is not None:
      fields[name] = tuple(fields[name])
  if "best_ce" in fields:
    fields["best_ce"] = Fraction(fields["best_ce"])
  fields["published"] = tuple(Published(**value) for value in fields.get("published", ()))
  return SolvedGame(**fields)


@functools.cache
def games() -> tuple[SolvedGame, ...]:
  """Returns all games of the atlas, in the order of the page."""
  text = importlib.resources.files(__package__).joinpath(_FILE).read_text()
  return tuple(map(from_json, json.loads(text)))


def find(game: str) -> SolvedGame:
  """Returns a game of the atlas, whether its string has default parameters or not.

      >>> find("leduc_poker(players=2)").num_states
      9457

  Args:
    game: OpenSpiel's string of the game, or another name; see `load`.

  Raises:
    ArgumentError: the atlas does not have the game.
    GameError: OpenSpiel can't load the game.
  """
  arguments.of_type(game, "game", str)
  by_name = {solved.game: solved for solved in games()}
  if game in by_name:
    return by_name[game]
  canonical, short_name = game_names.canonical(game), game.partition("(")[0]
  for name, solved in by_name.items():
    if name.partition("(")[0] == short_name and game_names.canonical(name) == canonical:
      return solved
  names = [*by_name]
  close = difflib.get_close_matches(game, names, 3, 0.5)
  raise errors.ArgumentError(
    f"The atlas does not have {game!r}, but {len(names)} others, such as {', '.join(close or names[:3])}; see "
    "atlas.games()."
  )
