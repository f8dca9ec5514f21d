"""Correlated equilibria: solvers that converge to them, exact gaps, optimal equilibria, and mediators for play."""

from spiel_cfr.correlated.correlated_policy import (
  CorrelatedPolicy,
  MediatedBot,
  Mediator,
  MixturePolicy,
)
from spiel_cfr.correlated.deviations import DEVIATIONS
from spiel_cfr.correlated.efr_solver import EFRSolver
from spiel_cfr.correlated.gap_kinds import GAP_KINDS, MEASURABLE_GAPS
from spiel_cfr.correlated.gaps import CorrelatedGap, EmpiricalPlay
from spiel_cfr.correlated.optimal_equilibria import (
  OptimalEquilibrium,
  optimal_equilibrium,
)

__all__ = [
  "DEVIATIONS",
  "GAP_KINDS",
  "MEASURABLE_GAPS",
  "CorrelatedGap",
  "CorrelatedPolicy",
  "EFRSolver",
  "EmpiricalPlay",
  "MediatedBot",
  "Mediator",
  "MixturePolicy",
  "OptimalEquilibrium",
  "optimal_equilibrium",
]
