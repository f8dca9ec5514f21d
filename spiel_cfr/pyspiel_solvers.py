"""OpenSpiel's C++ solvers by the names that they have in `pyspiel`.

Programs that use them change their import and nothing else:

    from spiel_cfr import pyspiel_solvers as pyspiel  # was: import pyspiel

    game = pyspiel.load_game("leduc_poker")
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(100):
      solver.evaluate_and_update_policy()
    pyspiel.exploitability(game, solver.average_policy())

Whatever is not a solver is OpenSpiel's own. The solvers are wrappers: they have the methods of OpenSpiel's, and those
of the solver inside. `average_policy` and `current_policy` return OpenSpiel's C++ class, which its C++ functions take.
There the two move with the solver; here they are copies, because Python can't write into those of C++.
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
  """A solver whose policies are of OpenSpiel's C++ class; all else is the solver's.

  Attributes:
    solver: the solver.
  """

  def __init__(self, solver: Solver) -> None:
    self.solver = solver

  def __getattr__(self, name: str) -> Any:
    """Looks everything else up in the solver."""
    if name.startswith("__") or name == "solver":
      raise AttributeError(name)
    return getattr(self.solver, name)

  def __repr__(self) -> str:
    return repr(self.solver)

  def run_iteration(self) -> None:
    """Does one iteration."""
    self.solver.run(1)

  def tabular_average_policy(self) -> pyspiel.Policy:
    """Returns a copy of the average policy; of games that are sampled on states, of the infosets met."""
    if self._meets_infosets():
      return _partial(self.solver.average_policy_dict())
    return self.solver.tabular_average_policy()

  def tabular_current_policy(self) -> pyspiel.Policy:
    """Returns a copy of the current policy; of games that are sampled on states, of the infosets met."""
    if self._meets_infosets():
      return _partial(self.solver.current_policy_dict())
    return self.solver.tabular_current_policy()

  # OpenSpiel has both names.
  average_policy, current_policy = tabular_average_policy, tabular_current_policy

  def _meets_infosets(self) -> bool:
    return isinstance(self.solver, MonteCarloSolver) and self.solver.engine != "compiled"


def _partial(table: PolicyDict) -> pyspiel.Policy:
  """Returns a C++ policy that is uniform where a table has nothing."""
  return pyspiel.PartialTabularPolicy(
    {infostate: list(entries.items()) for infostate, entries in table.items()}
  )


def CFRSolver(game: AnyGame) -> PyspielSolver:
  """`pyspiel.CFRSolver`: CFR of a compiled game or what `compile_game` takes."""
  return PyspielSolver(cfr.CFRSolver(game))


def CFRPlusSolver(game: AnyGame) -> PyspielSolver:
  """`pyspiel.CFRPlusSolver`: CFR+ of a compiled game or what `compile_game` takes."""
  return PyspielSolver(cfr.CFRPlusSolver(game))


def CFRBRSolver(game: AnyGame) -> PyspielSolver:
  """`pyspiel.CFRBRSolver`: CFR-BR of a compiled game or what `compile_game` takes."""
  return PyspielSolver(variants.CFRBRSolver(game))


def ExternalSamplingMCCFRSolver(
  game: AnyGame,
  seed: int = 0,
  avg_type: AverageType | pyspiel.MCCFRAverageType = AverageType.SIMPLE,
) -> PyspielSolver:
  """`pyspiel.ExternalSamplingMCCFRSolver`: `mccfr.ExternalSamplingSolver`, with its errors too."""
  return PyspielSolver(ExternalSamplingSolver(game, avg_type, seed=_unsigned(seed)))


def OutcomeSamplingMCCFRSolver(
  game: AnyGame, epsilon: float = 0.6, seed: int = -1
) -> PyspielSolver:
  """`pyspiel.OutcomeSamplingMCCFRSolver`: `mccfr.OutcomeSamplingSolver`, with its errors too.

  A seed of -1 is drawn from NumPy's global state.
  """
  drawn = None if seed == -1 else _unsigned(seed)
  return PyspielSolver(OutcomeSamplingSolver(game, epsilon, seed=drawn))


def _unsigned(seed: Any) -> int:
  """Returns a seed of 32 bits as C++ reads it, which takes negative ones too."""
  try:
    return operator.index(seed) & 0xFFFF_FFFF
  except TypeError:
    raise errors.ArgumentError(f"seed must be an integer, not {seed!r}.") from None


def __getattr__(name: str) -> Any:
  """Looks everything else up in `pyspiel`."""
  return getattr(pyspiel, name)


def __dir__() -> list[str]:
  """Returns the names of `pyspiel`, for completion."""
  return sorted({*globals(), *dir(pyspiel)})
