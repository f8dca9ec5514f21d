"""Stable-predictive CFR: the solver, its step sizes, and a check of the proof on a run."""

from spiel_cfr.stable_predictive.proof_check import ProofCheck, check_proof
from spiel_cfr.stable_predictive.stable_predictive_cfr import StablePredictiveCFRSolver
from spiel_cfr.stable_predictive.step_size_table import StepSize, StepSizeTable, step_sizes

__all__ = [
  "ProofCheck",
  "StablePredictiveCFRSolver",
  "StepSize",
  "StepSizeTable",
  "check_proof",
  "step_sizes",
]
