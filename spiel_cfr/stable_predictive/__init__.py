"""What is proved of stable-predictive CFR: step sizes, and checks of a run against every promise."""

from spiel_cfr.stable_predictive.certificate_report import Certificate
from spiel_cfr.stable_predictive.paper_steps import StepSize, StepSizeTable
from spiel_cfr.stable_predictive.stable_predictive_cfr import (
  StablePredictiveCFRSolver,
  certificate,
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
