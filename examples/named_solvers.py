"""The catalogue of solvers, and OpenSpiel's own. This is a module of the example programs, not a program."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

import spiel_cfr
from spiel_cfr import CompiledGame, catalogue, errors, policies


class OpenSpielSolver(spiel_cfr.Solver):
  """One of OpenSpiel's own solvers, so that it runs in the same loop as ours."""

  def __init__(self, game: CompiledGame, name: str) -> None:
    """Makes OpenSpiel's C++ solver of this name."""
    self.compiled_game, self._name = game, name
    self.reset()

  def reset(self) -> None:
    """Goes back to before the first iteration."""
    self.iteration = 0
    self._solver = getattr(pyspiel, self._name)(self.compiled_game.game)

  @property
  def state(self) -> Any:
    """Refuses: these solvers keep their state to themselves.

    Raises:
      ArgumentError: always.
    """
    raise errors.ArgumentError("OpenSpiel's own solvers can't be kept in checkpoints.")

  @property
  def nodes_touched(self) -> int:
    """How many states it has visited: all of them, once per player and iteration."""
    return self.iteration * self.compiled_game.num_players * self.compiled_game.num_states

  def _advance(self, count: int) -> None:
    for _ in range(count):
      self._solver.evaluate_and_update_policy()
      self.iteration += 1

  def current_probabilities(self) -> npt.NDArray[np.float64]:
    """Returns the current policy in behavioural form."""
    return policies.from_policy(self.compiled_game, self._solver.tabular_current_policy())

  def average_probabilities(self) -> npt.NDArray[np.float64]:
    """Returns the average policy in behavioural form."""
    return policies.from_policy(self.compiled_game, self._solver.tabular_average_policy())


# A solver is made for a game and for the number of iterations that it is going to run.
Factory = Callable[[CompiledGame, int], spiel_cfr.Solver]
_OPEN_SPIELS: dict[str, Factory] = {
  "open_spiel_cfr": lambda game, iterations: OpenSpielSolver(game, "CFRSolver"),
  "open_spiel_cfr+": lambda game, iterations: OpenSpielSolver(game, "CFRPlusSolver"),
}
SOLVERS: dict[str, Factory] = {**catalogue.SOLVERS, **_OPEN_SPIELS}


def find(name: str) -> Factory:
  """Returns what makes the solver of this name; raises ArgumentError if there is none."""
  return _OPEN_SPIELS[name] if name in _OPEN_SPIELS else catalogue.find(name)
