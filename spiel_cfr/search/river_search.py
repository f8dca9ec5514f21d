"""Search on rivers of hold'em: the last round of betting is solved once for each river that a play reaches."""

import itertools
import math
import time
from typing import Any

from spiel_cfr import errors
from spiel_cfr.bots import PolicyReader
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.deal import public_moves
from spiel_cfr.search.game_search import GameSearch, SearchOptions
from spiel_cfr.search.river_solution import RiverSolution, solve_river


class RiverSearch(GameSearch):
  """A player's search in poker over vectors of hands. It plays the blueprint before the last public card.

  A river is solved at the player's first decision there, and the solution is kept for later plays. A later play solves
  the river again if it has more than twice the time that the kept solution had. The first decision of all may be short
  of time, because the game is loaded in it. The decisions of one play have one solution: two solutions together may be
  unsafe.
  """

  def __init__(
    self,
    view: GameView,
    player: int,
    blueprint: PolicyReader,
    options: SearchOptions,
  ) -> None:
    """Takes the game and the blueprint; the arguments are those of `BlueprintSearch`."""
    self.view, self._player, self._blueprint, self._options = view, player, blueprint, options
    # By the moves that lead to a river: its solution, or the error that prevents one.
    self._found: dict[tuple[int, ...], RiverSolution | errors.GameError] = {}
    # By the same moves: the seconds that the solution had.
    self._seconds = dict[tuple[int, ...], float]()

  @property
  def size(self) -> int:
    return sum(
      len(each.strategy) for each in self._found.values() if isinstance(each, RiverSolution)
    )

  def prepare(self) -> None:
    """Does nothing: rivers are solved when they are played."""

  def policy(self, state: Any, deadline: float) -> list[tuple[int, float]]:
    """Returns the strategy at a decision, see `GameSearch`.

    Raises:
      GameTooLargeError: the river cannot be searched, and the blueprint has no probabilities.
    """
    problem = "public cards are still to be dealt"
    moves = public_moves(self.view, state)
    if moves is not None:
      solution = self._solution(state, *moves, deadline)
      if isinstance(solution, RiverSolution):
        return solution.policy(state)
      problem = str(solution)
    try:
      return self._blueprint.strategy(state, self._player)
    except errors.PolicyError as error:
      raise errors.GameTooLargeError(f"{error} It can't be searched: {problem}.") from None

  def _solution(
    self, state: Any, path: list[int], dealt: list[int], deadline: float
  ) -> RiverSolution | errors.GameError:
    """Returns the solution of a river, or the error that prevents it."""
    key, seconds = tuple(path), deadline - time.perf_counter()
    is_kept = key in self._found
    if is_kept and seconds > 2 * self._seconds[key]:
      is_kept = self._has_decided(state)
    if not is_kept:
      # A game over vectors of hands has no infoset in which the opponent could pick a hand.
      gadget = self._options.gadget_for(can_pick=False, is_iterative=True)
      solver = self._options.iterative_solver(deadline)
      try:
        self._found[key] = solve_river(
          self.view, path, dealt, self._blueprint, solver, self._player, gadget
        )
        self._seconds[key] = max(seconds, 0.0)
      except errors.GameError as error:
        # More time would not help. A traceback would keep the river in memory.
        self._found[key], self._seconds[key] = error.with_traceback(None), math.inf
    return self._found[key]

  def _has_decided(self, state: Any) -> bool:
    """Returns True if the player has moved on the river, that is, after chance's last move."""
    movers = (move.player for move in reversed(state.full_history()))
    return self._player in itertools.takewhile(lambda mover: mover >= 0, movers)
