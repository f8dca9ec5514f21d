"""Search on rivers of hold'em: the last round of betting is solved once for each river that a play reaches."""

from typing import Any

from spiel_cfr import errors
from spiel_cfr.bots import PolicyReader
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.deal import public_moves
from spiel_cfr.search.game_search import GameSearch, SearchOptions
from spiel_cfr.search.river_solution import RiverSolution, solve_river


class RiverSearch(GameSearch):
  """A player's search in poker over vectors of hands. It plays the blueprint before the last public card."""

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

  @property
  def size(self) -> int:
    return sum(
      len(each.entries) for each in self._found.values() if isinstance(each, RiverSolution)
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
      solution = self._solution(*moves, deadline)
      if isinstance(solution, RiverSolution):
        return solution.policy(state)
      problem = str(solution)
    try:
      return self._blueprint.strategy(state, self._player)
    except errors.PolicyError as error:
      raise errors.GameTooLargeError(f"{error} It can't be searched: {problem}.") from None

  def _solution(
    self, path: list[int], dealt: list[int], deadline: float
  ) -> RiverSolution | errors.GameError:
    """Returns the solution of a river, or the error that prevents it."""
    key = tuple(path)
    if key not in self._found:
      # A game over vectors of hands has no infoset in which the opponent could pick a hand.
      gadget = self._options.gadget_for(can_pick=False, is_iterative=True)
      solver = self._options.iterative_solver(deadline)
      try:
        self._found[key] = solve_river(
          self.view, path, dealt, self._blueprint, solver, self._player, gadget
        )
      except errors.GameError as error:
        self._found[key] = error
    return self._found[key]
