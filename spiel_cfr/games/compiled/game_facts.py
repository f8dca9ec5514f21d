"""Facts of a game: its name, the range of its payoffs, and the number of its states."""

import dataclasses
import functools
import importlib.metadata
from typing import Any

# Reading the version from its file takes five milliseconds, as long as compiling a small subgame.
_version = functools.cache(importlib.metadata.version)


@dataclasses.dataclass(frozen=True, eq=False)
class GameFacts:
  """Facts of a game besides its arrays.

  Attributes:
    game_string: str. OpenSpiel's string of the game, in turn-based form if moves are simultaneous; the name of a game
      made of arrays.
    num_distinct_actions: int. One more than the largest possible action, as in OpenSpiel.
    payoff_range: two floats. The smallest and the largest return of any player, or bounds on them.
    constant_sum: float. The sum of the players' returns; None if it varies.
    num_states: int. The number of states, chance and terminal states included: histories, or, in vector form
      (`PublicTreeGame`), public states.
    num_terminals: int. The number of terminal states among them.
    open_spiel_version: str. The release of OpenSpiel that walked the game; None for a game made of arrays.
  """

  game_string: str
  num_distinct_actions: int
  payoff_range: tuple[float, float]
  constant_sum: float | None
  num_states: int
  num_terminals: int
  open_spiel_version: str | None


def walked_facts(game: Any, **counted: Any) -> GameFacts:
  """Returns the facts of OpenSpiel's game; `counted` has the attributes of `GameFacts` that only a walk can tell."""
  return GameFacts(
    game_string=str(game),
    num_distinct_actions=game.num_distinct_actions(),
    open_spiel_version=_version("open_spiel"),
    **counted,
  )
