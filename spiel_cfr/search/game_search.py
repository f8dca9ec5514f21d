"""The interface of searches, and their limits: one player's search in one game, which a bot asks at each decision."""

import abc
import dataclasses
import math
from typing import Any

from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.subgame_solver import SubgameSolver

# The largest number of sequences of a linear program, the gadget's included. Larger subgames use iterations.
_LP_SEQUENCES = 5000
# The largest number of iterations, without and with a limit of seconds.
_ITERATIONS, _MOST_ITERATIONS = 1000, 1 << 30


class GameSearch(abc.ABC):
  """A player's search in one game, from its root on; each solution is found once.

  Attributes:
    view: the view of the game for walks.
  """

  view: GameView

  @property
  @abc.abstractmethod
  def size(self) -> int:
    """The approximate count of numbers that the search keeps."""

  @abc.abstractmethod
  def prepare(self) -> None:
    """Does what the search can do before its first decision."""

  @abc.abstractmethod
  def policy(self, state: Any, deadline: float) -> list[tuple[int, float]]:
    """Returns (action, probability) for each legal action at a decision of the player.

    Args:
      state: OpenSpiel's state, with moves one after another.
      deadline: the time, by `time.perf_counter`, by which the search should answer.
    """


@dataclasses.dataclass(frozen=True)
class SearchLimits:
  """The solvers of subgames, and the largest subgames.

  Attributes:
    gadget: the gadget; None for the default of each solver.
    solver: a name in `catalogue.SOLVERS`, for iterations.
    iterations: the largest number of iterations; None for the default.
    seconds: the time for a decision; infinity without a limit.
    max_histories: the largest number of histories of a subgame.
  """

  gadget: Gadget | None
  solver: str
  iterations: int | None
  seconds: float
  max_histories: int

  def iterative(self, deadline: float) -> SubgameSolver:
    """Returns a solver that iterates until a deadline."""
    most = _ITERATIONS if self.seconds == math.inf else _MOST_ITERATIONS
    return SubgameSolver(self.solver, self.iterations or most, deadline)

  def choose(self, num_sequences: int, deadline: float) -> tuple[Gadget, SubgameSolver]:
    """Returns the gadget and the solver of a subgame, given the number of sequences of its linear program."""
    solver = self.iterative(deadline)
    is_unlimited = self.iterations is None and self.seconds == math.inf
    if is_unlimited and num_sequences <= _LP_SEQUENCES:
      solver = SubgameSolver("lp")
    return self.gadget or find_gadget(None, iterates=not solver.is_linear_program), solver
