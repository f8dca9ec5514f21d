"""Stable-predictive CFR: the solver, its step sizes, and a certificate that checks a run against the theory."""

from spiel_cfr.stable_predictive.certificate import Certificate, certificate
from spiel_cfr.stable_predictive.stable_predictive_cfr import StablePredictiveCFRSolver
from spiel_cfr.stable_predictive.step_size_table import StepSize, StepSizeTable, step_sizes

__all__ = [
  "Certificate",
  "StablePredictiveCFRSolver",
  "StepSize",
  "StepSizeTable",
  "certificate",
  "step_sizes",
]
