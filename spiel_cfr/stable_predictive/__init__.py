"""What is proved of stable-predictive CFR: step sizes, and checks of a run against every promise."""

from spiel_cfr.stable_predictive.stable_predictive_cfr import (
  StablePredictiveCFRSolver,
  certificate,
  step_sizes,
)

__all__ = ["StablePredictiveCFRSolver", "certificate", "step_sizes"]
