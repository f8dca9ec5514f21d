"""Catalogue of solvers with OpenSpiel's solvers added. This is a module of the example programs, not a program."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel
from open_spiel.python.algorithms import cfr as open_spiel_cfr

import spiel_cfr
from spiel_cfr import CompiledGame, catalogue, errors, policies


class OpenSpielSolver(spiel_cfr.Solver):
  """OpenSpiel's solver with the interface of `spiel_cfr.Solver`, so that it runs in the same loop."""

  def __init__(self, game: CompiledGame, name: str, alternating_updates: bool = True) -> None:
    """Makes OpenSpiel's solver of a name.

    Args:
      game: the game.
      name: "CFRSolver" or "CFRPlusSolver".
      alternating_updates: True for the C++ solver, which has alternating updates only. False for the Python solver with
        simultaneous updates, which is about a hundred times slower.
    """
    self.compiled_game, self._name, self.alternating_updates = game, name, alternating_updates
    self.reset()

  def reset(self) -> None:
    """Returns to the state before the first iteration."""
    self.iteration = 0
    game, plus = self.compiled_game.game, self._name == "CFRPlusSolver"
    if self.alternating_updates:
      self._solver = getattr(pyspiel, self._name)(game)
    else:
      self._solver = open_spiel_cfr._CFRSolver(
        game, alternating_updates=False, linear_averaging=plus, regret_matching_plus=plus
      )

  @property
  def state(self) -> Any:
    """The state, which OpenSpiel's solvers don't make available.

    Raises:
      ArgumentError: always.
    """
    raise errors.ArgumentError("OpenSpiel's own solvers can't be saved to checkpoints.")

  @property
  def nodes_touched(self) -> int:
    """Number of states visited: all states, once for each player in an iteration."""
    return self.iteration * self.compiled_game.num_players * self.compiled_game.num_states

  def _advance(self, count: int) -> None:
    for _ in range(count):
      self._solver.evaluate_and_update_policy()
      self.iteration += 1

  def current_probabilities(self) -> npt.NDArray[np.float64]:
    """Returns the current policy in behavioral form, shape (sequences,)."""
    return policies.from_policy(self.compiled_game, self._solver.current_policy())

  def average_probabilities(self) -> npt.NDArray[np.float64]:
    """Returns the average policy in behavioral form, shape (sequences,)."""
    return policies.from_policy(self.compiled_game, self._solver.average_policy())


# (game, number of iterations of the run) -> solver.
Factory = Callable[[CompiledGame, int], spiel_cfr.Solver]
_OPEN_SPIELS: dict[str, Factory] = {
  "open_spiel_cfr": lambda game, iterations: OpenSpielSolver(game, "CFRSolver"),
  "open_spiel_cfr+": lambda game, iterations: OpenSpielSolver(game, "CFRPlusSolver"),
  "open_spiel_cfr_simultaneous": lambda game, iterations: OpenSpielSolver(game, "CFRSolver", False),
  "open_spiel_cfr+_simultaneous": lambda game, iterations: OpenSpielSolver(
    game, "CFRPlusSolver", False
  ),
}
SOLVERS: dict[str, Factory] = {**catalogue.SOLVERS, **_OPEN_SPIELS}


def find(name: str) -> Factory:
  """Returns the factory of a solver's name; raises ArgumentError if there is none."""
  return _OPEN_SPIELS[name] if name in _OPEN_SPIELS else catalogue.find(name)
