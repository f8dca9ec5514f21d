"""The interface of searches during play, and their options: one player's search in one game.

`SearchBot` asks a `GameSearch` for the strategy at each decision. `BlueprintSearch`, `RiverSearch` and `BeliefSearch`
implement it.
"""

import abc
import dataclasses
import math
from typing import Any

from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.subgame_solver import SubgameSolver

# The largest number of sequences of a linear program, the gadget's included. Larger subgames use iterations.
_LP_SEQUENCES = 5000
# The iterative solver, unless the caller names one.
_SOLVER = "dcfr"
# The largest number of iterations, without and with a limit of seconds.
_ITERATIONS, _MOST_ITERATIONS = 1000, 1 << 30


class GameSearch(abc.ABC):
  """One player's search in one game, during all plays. A search keeps its solutions for later plays.

  Attributes:
    view: `GameView`. The game as its walks see it.
  """

  def __init__(self, view: GameView, player: int, options: "SearchOptions") -> None:
    """Takes the game, the player who searches, and the options."""
    self.view, self._player, self._options = view, player, options

  @property
  @abc.abstractmethod
  def size(self) -> int:
    """The approximate count of numbers that the search keeps."""

  @abc.abstractmethod
  def prepare(self) -> None:
    """Does the work that is possible before the player's first decision."""

  @abc.abstractmethod
  def policy(self, state: Any, deadline: float) -> list[tuple[int, float]]:
    """Returns (action, probability) for each legal action at a decision of the player.

    Args:
      state: OpenSpiel's state, with moves one after another.
      deadline: the time, by `time.perf_counter`, by which the search should answer.
    """


@dataclasses.dataclass(frozen=True)
class SearchOptions:
  """Options of a search: how subgames are solved, and how large they may be.

  Attributes:
    gadget: the gadget; None for the default of each solver.
    solver: a name in `catalogue.SOLVERS`, which solves all subgames; None for linear programs where they are possible,
      and otherwise "dcfr".
    iterations: the largest number of iterations; None for the default.
    seconds: the time for a decision; infinity without a limit.
    max_histories: the largest number of histories of a subgame.
  """

  gadget: Gadget | None
  solver: str | None
  iterations: int | None
  seconds: float
  max_histories: int

  def gadget_for(self, *, can_pick: bool = True, is_iterative: bool = False) -> Gadget:
    """Returns the gadget of a subgame; the default replaces a gadget that the subgame cannot have.

    Args:
      can_pick: see `find_gadget`.
      is_iterative: see `find_gadget`.
    """
    is_possible = self.gadget is None or can_pick or self.gadget.front != "pick"
    gadget = self.gadget if is_possible else None
    return find_gadget(gadget, can_pick=can_pick, is_iterative=is_iterative)

  def iterative_solver(self, deadline: float) -> SubgameSolver:
    """Returns a solver that iterates until a deadline, by `time.perf_counter`."""
    most = _ITERATIONS if self.seconds == math.inf else _MOST_ITERATIONS
    return SubgameSolver(self.solver or _SOLVER, self.iterations or most, deadline)

  def choose(self, num_sequences: int, deadline: float) -> tuple[Gadget, SubgameSolver]:
    """Returns the gadget and the solver of a subgame.

    Args:
      num_sequences: the number of sequences of the subgame's linear program.
      deadline: the time, by `time.perf_counter`, at which iterations stop.
    """
    solver = self.iterative_solver(deadline)
    is_default = self.solver is None and self.iterations is None and self.seconds == math.inf
    if is_default and num_sequences <= _LP_SEQUENCES:
      solver = SubgameSolver("lp")
    return self.gadget_for(is_iterative=not solver.is_linear_program), solver
