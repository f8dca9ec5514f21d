"""Correlated equilibria: the best ones by linear programming, and a mediator who recommends what they say."""

from spiel_cfr.correlated.correlated_policy import (
  CorrelatedPolicy,
  MediatedBot,
  Mediator,
  MixturePolicy,
)
from spiel_cfr.correlated.optimal_equilibria import (
  OptimalEquilibrium,
  deviation_gains,
  optimal_equilibrium,
)

__all__ = [
  "CorrelatedPolicy",
  "MediatedBot",
  "Mediator",
  "MixturePolicy",
  "OptimalEquilibrium",
  "deviation_gains",
  "optimal_equilibrium",
]
