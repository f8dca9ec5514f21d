"""Stable-predictive CFR: step sizes, the solver, and a certificate that checks a run against the theory."""

from spiel_cfr.stable_predictive.certificate import Certificate, certificate
from spiel_cfr.stable_predictive.stable_predictive_cfr import (
  StablePredictiveCFRSolver,
  StepSize,
  StepSizeTable,
  step_sizes,
)

__all__ = [
  "Certificate",
  "StablePredictiveCFRSolver",
  "StepSize",
  "StepSizeTable",
  "certificate",
  "step_sizes",
]
