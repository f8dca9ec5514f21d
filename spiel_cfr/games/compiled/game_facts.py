"""Facts of a game in a few numbers."""

import dataclasses
import functools
import importlib.metadata
from typing import Any

# It reads a file, in five milliseconds: as long as all else takes in a small subgame.
_version = functools.cache(importlib.metadata.version)


@dataclasses.dataclass(frozen=True, eq=False)
class GameFacts:
  """Facts of a game beside its arrays.

  Attributes:
    game_string: OpenSpiel's string for the game, of the turn-based form where the game was simultaneous; or a name.
    num_distinct_actions: all actions are below; OpenSpiel's number of the same name.
    payoff_range: the smallest and the largest return of any player at any terminal state, or bounds.
    constant_sum: what the players' returns always sum to, None where that differs.
    num_states: how many states the game has, chance and terminal ones included.
    num_terminals: how many of them are terminal.
    open_spiel_version: the release that walked the game; None of a game that was made of arrays.
  """

  game_string: str
  num_distinct_actions: int
  payoff_range: tuple[float, float]
  constant_sum: float | None
  num_states: int
  num_terminals: int
  open_spiel_version: str | None


def walked_facts(game: Any, **found: Any) -> GameFacts:
  """Returns the facts of a game of OpenSpiel's, of which a walk has `found` the others."""
  return GameFacts(
    game_string=str(game),
    num_distinct_actions=game.num_distinct_actions(),
    open_spiel_version=_version("open_spiel"),
    **found,
  )
