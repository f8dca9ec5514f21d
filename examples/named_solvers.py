"""The solvers that the example programs know by name. This is a module of theirs, not a program."""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import pyspiel

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.game.compiled import CompiledGame


class OpenSpielSolver(spiel_cfr.IterativeSolver):
  """One of OpenSpiel's own solvers, so that it runs in the same loop as ours."""

  def __init__(self, game: CompiledGame, name: str) -> None:
    """Makes OpenSpiel's C++ solver of this name."""
    self.compiled_game = game
    self.iteration = 0
    self._solver = getattr(pyspiel, name)(game.game)

  def state_dict(self) -> dict[str, Any]:
    """Refuses: these solvers keep their state to themselves.

    Raises:
      ArgumentError: always.
    """
    raise errors.ArgumentError("OpenSpiel's own solvers can't be kept in checkpoints.")

  @property
  def nodes_touched(self) -> int:
    """How many states it has visited: all of them, once a player and iteration."""
    return self.iteration * self.compiled_game.num_players * self.compiled_game.num_states

  def run(self, iterations: int) -> None:
    """Does many iterations."""
    for _ in range(iterations):
      self._solver.evaluate_and_update_policy()
      self.iteration += 1

  def nash_conv(self) -> float:
    """Returns the NashConv of the average policy, found on the compiled game."""
    result = spiel_cfr.nash_conv(self.compiled_game, self.average_policy())
    assert isinstance(result, float)
    return result

  def average_policy(self) -> pyspiel.TabularPolicy:
    """Returns the average policy."""
    return self._solver.tabular_average_policy()

  def average_policy_dict(self) -> dict[str, dict[int, float]]:
    """Returns the average policy as infostate -> action -> probability."""
    table = self.average_policy().policy_table()
    return {infostate: dict(entries) for infostate, entries in table.items()}


AnySolver: TypeAlias = spiel_cfr.Solver | OpenSpielSolver
# A solver is made for a game and for the number of iterations that it is going to run.
Factory = Callable[[CompiledGame, int], AnySolver]


def _plain(solver: Callable[[CompiledGame], spiel_cfr.Solver]) -> Factory:
  return lambda game, iterations: solver(game)


def _stable_predictive(game: CompiledGame, iterations: int, **choices: object) -> spiel_cfr.Solver:
  return spiel_cfr.StablePredictiveCFRSolver(game, horizon=iterations, **choices)  # type: ignore[arg-type]


SOLVERS: dict[str, Factory] = {
  "cfr": _plain(spiel_cfr.CFRSolver),
  "cfr+": _plain(spiel_cfr.CFRPlusSolver),
  "lcfr": _plain(spiel_cfr.LCFRSolver),
  "dcfr": _plain(spiel_cfr.DCFRSolver),
  "pcfr+": _plain(spiel_cfr.PCFRPlusSolver),
  "dcfr+": _plain(spiel_cfr.DCFRPlusSolver),
  "pdcfr+": _plain(spiel_cfr.PDCFRPlusSolver),
  "sapcfr+": _plain(spiel_cfr.SAPCFRPlusSolver),
  "adaptive": _plain(spiel_cfr.AdaptiveOptimisticCFRSolver),
  "adaptive_certified": _plain(
    functools.partial(spiel_cfr.AdaptiveOptimisticCFRSolver, average="certified")
  ),
  # The theory's step sizes, and the same a few thousand times as large, which give up its guarantee.
  "stable_predictive": _stable_predictive,
  "stable_predictive_euclidean": functools.partial(_stable_predictive, regularizer="euclidean"),
  "stable_predictive_x10000": functools.partial(_stable_predictive, steps=1e4),
  "open_spiel_cfr": lambda game, iterations: OpenSpielSolver(game, "CFRSolver"),
  "open_spiel_cfr+": lambda game, iterations: OpenSpielSolver(game, "CFRPlusSolver"),
}
