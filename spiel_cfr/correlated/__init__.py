"""Correlated equilibria: solvers that tend to them in every game, and how far play is from them."""

from spiel_cfr.correlated.deviations import DEVIATIONS
from spiel_cfr.correlated.efr_solver import EFRSolver
from spiel_cfr.correlated.gaps import (
  KINDS,
  MEASURED,
  CorrelatedGap,
  EmpiricalPlay,
  coarse_correlated_gap,
)

__all__ = [
  "DEVIATIONS",
  "KINDS",
  "MEASURED",
  "CorrelatedGap",
  "EFRSolver",
  "EmpiricalPlay",
  "coarse_correlated_gap",
]
