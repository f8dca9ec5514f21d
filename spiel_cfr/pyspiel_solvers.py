"""OpenSpiel's C++ solvers by the names that they have in `pyspiel`.

Programs that use them change their import and nothing else:

    from spiel_cfr import pyspiel_solvers as pyspiel  # was: import pyspiel

    game = pyspiel.load_game("leduc_poker")
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(100):
      solver.evaluate_and_update_policy()
    pyspiel.exploitability(game, solver.average_policy())

Whatever is not a solver is OpenSpiel's own. The solvers have the methods of OpenSpiel's and also those of
`Solver`; `average_policy` and `current_policy` return OpenSpiel's C++ class, which its C++ functions take.
There the two move with the solver; here they are copies, because Python can't write into those of C++.
"""

import operator
from typing import Any

import pyspiel

from spiel_cfr import errors
from spiel_cfr.cfr import cfr, cfr_br
from spiel_cfr.cfr.off_path import Unreached
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.mccfr.mccfr_solvers import ExternalSamplingSolver, OutcomeSamplingSolver
from spiel_cfr.mccfr.sampling_rules import AverageType
from spiel_cfr.mccfr.sampling_solver import SamplingSolver
from spiel_cfr.policies import PolicyDict, from_policy, to_pyspiel


class _InCpp(Solver):
  """What changes the policies to OpenSpiel's C++ class."""

  def average_policy(self, unreached: Unreached = "uniform") -> pyspiel.Policy:
    """Returns a copy of the average policy; see `Solver.average_policy`."""
    if unreached == "uniform":
      return self.tabular_average_policy()
    probabilities = from_policy(self.compiled_game, super().average_policy(unreached))
    return to_pyspiel(self.compiled_game, probabilities)

  def current_policy(self) -> pyspiel.Policy:
    """Returns a copy of the current policy, which need not converge."""
    return self.tabular_current_policy()


class _SampledInCpp(_InCpp, SamplingSolver):
  """The same for Monte Carlo solvers, which need not have met every infoset."""

  def run_iteration(self) -> None:
    """Does one iteration: a traversal for each player."""
    self._advance(1)

  def tabular_average_policy(self) -> pyspiel.Policy:
    """Returns a copy of the average policy; on the state engine it is uniform where the samples have never been."""
    if self.engine == "compiled":
      return super().tabular_average_policy()
    return _partial(self.average_policy_dict())

  def tabular_current_policy(self) -> pyspiel.Policy:
    """Returns a copy of the current policy, likewise."""
    if self.engine == "compiled":
      return super().tabular_current_policy()
    return _partial(self.current_policy_dict())


def _partial(table: PolicyDict) -> pyspiel.Policy:
  return pyspiel.PartialTabularPolicy(
    {infostate: list(entries.items()) for infostate, entries in table.items()}
  )


# Checkpoints find classes by name, so that these need names of their own.
class PyspielCFRSolver(_InCpp, cfr.CFRSolver):
  """`pyspiel.CFRSolver`: CFR."""


class PyspielCFRPlusSolver(_InCpp, cfr.CFRPlusSolver):
  """`pyspiel.CFRPlusSolver`: CFR+."""


class PyspielCFRBRSolver(_InCpp, cfr_br.CFRBRSolver):
  """`pyspiel.CFRBRSolver`: CFR-BR."""

  def __init__(self, game: AnyGame) -> None:
    """Makes the solver for a compiled game or what `compile_game` takes."""
    super().__init__(game)


class PyspielExternalSamplingSolver(_SampledInCpp, ExternalSamplingSolver):
  """`pyspiel.ExternalSamplingMCCFRSolver`: external sampling."""

  def __init__(
    self,
    game: AnyGame,
    seed: int = 0,
    avg_type: AverageType | pyspiel.MCCFRAverageType = AverageType.SIMPLE,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      seed: of all random numbers.
      avg_type: how strategies are averaged.

    Raises:
      GameError: the game can't be loaded or sampled.
      ArgumentError: an argument makes no sense.
    """
    super().__init__(game, avg_type, seed=_unsigned(seed))


class PyspielOutcomeSamplingSolver(_SampledInCpp, OutcomeSamplingSolver):
  """`pyspiel.OutcomeSamplingMCCFRSolver`: outcome sampling."""

  def __init__(self, game: AnyGame, epsilon: float = 0.6, seed: int = -1) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      epsilon: the probability that the player who learns plays uniformly, above 0, at most 1.
      seed: of all random numbers; -1 draws one from NumPy's global state.

    Raises:
      GameError: the game can't be loaded or sampled.
      ArgumentError: an argument makes no sense.
    """
    drawn = None if seed == -1 else _unsigned(seed)
    super().__init__(game, epsilon, seed=drawn)


def _unsigned(seed: Any) -> int:
  """Returns a seed of 32 bits as C++ reads it, which takes negative ones too."""
  try:
    return operator.index(seed) & 0xFFFF_FFFF
  except TypeError:
    raise errors.ArgumentError(f"seed must be an integer, not {seed!r}.") from None


CFRSolver = PyspielCFRSolver
CFRPlusSolver = PyspielCFRPlusSolver
CFRBRSolver = PyspielCFRBRSolver
ExternalSamplingMCCFRSolver = PyspielExternalSamplingSolver
OutcomeSamplingMCCFRSolver = PyspielOutcomeSamplingSolver


def __getattr__(name: str) -> Any:
  """Looks everything else up in `pyspiel`."""
  return getattr(pyspiel, name)


def __dir__() -> list[str]:
  """Returns the names of `pyspiel`, for completion."""
  return sorted({*globals(), *dir(pyspiel)})
