"""Solvers with the names and methods of OpenSpiel's C++ solvers in `pyspiel`.

A program that uses OpenSpiel's solvers changes only its import:

    from spiel_cfr import pyspiel_solvers as pyspiel  # was: import pyspiel

    game = pyspiel.load_game("leduc_poker")
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(100):
      solver.evaluate_and_update_policy()
    pyspiel.exploitability(game, solver.average_policy())

All other names are those of `pyspiel`. The solvers are wrappers, with the methods of OpenSpiel's solvers and those of
the wrapped solver. `average_policy` and `current_policy` return OpenSpiel's C++ class, which its C++ functions take. In
OpenSpiel these policies change with the solver. Here they are copies, because Python can't write into C++ policies.
"""

import operator
from typing import Any

import pyspiel

from spiel_cfr import errors
from spiel_cfr.cfr import cfr, variants
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.mccfr.mccfr_solvers import ExternalSamplingSolver, OutcomeSamplingSolver
from spiel_cfr.mccfr.monte_carlo_solver import MonteCarloSolver
from spiel_cfr.mccfr.sampling_rules import AverageType
from spiel_cfr.policies import PolicyDict


class PyspielSolver:
  """A wrapper that gives a solver the methods of OpenSpiel's C++ solvers, and policies of OpenSpiel's C++ class.

  Attributes:
    solver: the wrapped solver.
  """

  def __init__(self, solver: Solver) -> None:
    self.solver = solver

  def __getattr__(self, name: str) -> Any:
    """Returns an attribute of the wrapped solver."""
    if name.startswith("__") or name == "solver":
      raise AttributeError(name)
    return getattr(self.solver, name)

  def __repr__(self) -> str:
    return repr(self.solver)

  def run_iteration(self) -> None:
    """Runs one iteration."""
    self.solver.run(1)

  def tabular_average_policy(self) -> pyspiel.Policy:
    """Returns a copy of the average policy. A solver that samples states has only the infosets that it met."""
    if self._samples_states():
      return _partial(self.solver.average_policy_dict())
    return self.solver.tabular_average_policy()

  def tabular_current_policy(self) -> pyspiel.Policy:
    """Returns a copy of the current policy. A solver that samples states has only the infosets that it met."""
    if self._samples_states():
      return _partial(self.solver.current_policy_dict())
    return self.solver.tabular_current_policy()

  # OpenSpiel has both names.
  average_policy, current_policy = tabular_average_policy, tabular_current_policy

  def _samples_states(self) -> bool:
    """Returns whether the solver samples OpenSpiel's states, so that it does not know all infosets."""
    return isinstance(self.solver, MonteCarloSolver) and self.solver.engine != "compiled"


def _partial(table: PolicyDict) -> pyspiel.Policy:
  """Returns a table as a C++ policy that is uniform at all other infosets."""
  return pyspiel.PartialTabularPolicy(
    {infostate: list(entries.items()) for infostate, entries in table.items()}
  )


def CFRSolver(game: AnyGame) -> PyspielSolver:
  """`pyspiel.CFRSolver`: CFR for a compiled game or an argument of `compile_game`."""
  return PyspielSolver(cfr.CFRSolver(game))


def CFRPlusSolver(game: AnyGame) -> PyspielSolver:
  """`pyspiel.CFRPlusSolver`: CFR+ for a compiled game or an argument of `compile_game`."""
  return PyspielSolver(cfr.CFRPlusSolver(game))


def CFRBRSolver(game: AnyGame) -> PyspielSolver:
  """`pyspiel.CFRBRSolver`: CFR-BR for a compiled game or an argument of `compile_game`."""
  return PyspielSolver(variants.CFRBRSolver(game))


def ExternalSamplingMCCFRSolver(
  game: AnyGame,
  seed: int = 0,
  avg_type: AverageType | pyspiel.MCCFRAverageType = AverageType.SIMPLE,
) -> PyspielSolver:
  """`pyspiel.ExternalSamplingMCCFRSolver`: `mccfr.ExternalSamplingSolver`, with the same errors."""
  return PyspielSolver(ExternalSamplingSolver(game, avg_type, seed=_unsigned(seed)))


def OutcomeSamplingMCCFRSolver(
  game: AnyGame, epsilon: float = 0.6, seed: int = -1
) -> PyspielSolver:
  """`pyspiel.OutcomeSamplingMCCFRSolver`: `mccfr.OutcomeSamplingSolver`, with the same errors.

  A seed of -1 is drawn from NumPy's global state.
  """
  drawn = None if seed == -1 else _unsigned(seed)
  return PyspielSolver(OutcomeSamplingSolver(game, epsilon, seed=drawn))


def _unsigned(seed: Any) -> int:
  """Returns the low 32 bits of a seed, as C++ reads negative seeds too."""
  try:
    return operator.index(seed) & 0xFFFF_FFFF
  except TypeError:
    raise errors.ArgumentError(f"seed must be an integer, not {seed!r}.") from None


def __getattr__(name: str) -> Any:
  """Returns a name of `pyspiel`."""
  return getattr(pyspiel, name)


def __dir__() -> list[str]:
  """Returns the names of `pyspiel`, for completion."""
  return sorted({*globals(), *dir(pyspiel)})
