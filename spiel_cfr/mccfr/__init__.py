"""Monte Carlo CFR (MCCFR): solvers that sample the game, for compiled games and for games too large to compile."""

from spiel_cfr.mccfr.mccfr_solvers import (
  AverageStrategySamplingSolver,
  ChanceSamplingSolver,
  ExternalSamplingSolver,
  OutcomeSamplingSolver,
)
from spiel_cfr.mccfr.monte_carlo_solver import MonteCarloSolver
from spiel_cfr.mccfr.sampling_rules import AverageType, Rule, Sampler
from spiel_cfr.mccfr.sampling_solver import SamplingSolver
from spiel_cfr.mccfr.state_engine import ImperfectRecallWarning

__all__ = [
  "AverageStrategySamplingSolver",
  "AverageType",
  "ChanceSamplingSolver",
  "ExternalSamplingSolver",
  "ImperfectRecallWarning",
  "MonteCarloSolver",
  "OutcomeSamplingSolver",
  "Rule",
  "Sampler",
  "SamplingSolver",
]
