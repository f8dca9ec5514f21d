"""Regret minimizers: the rules by which an infoset chooses its next strategy, and the tools to write new ones."""

from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  normalize,
  sequence,
  tolerance,
  vector_starts,
)
from spiel_cfr.regret_minimizers.adaptive_mirror_descent import AdaptiveOptimisticDescent
from spiel_cfr.regret_minimizers.asymmetric_matching import AsymmetricMatching
from spiel_cfr.regret_minimizers.hedge import Hedge
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows
from spiel_cfr.regret_minimizers.schedules import (
  Discount,
  Fading,
  FallingPower,
  Power,
  Saturating,
  Schedule,
)
from spiel_cfr.regret_minimizers.trembling_matching import TremblingMatching

__all__ = [
  "AdaptiveOptimisticDescent",
  "AsymmetricMatching",
  "Block",
  "Discount",
  "Fading",
  "FallingPower",
  "Hedge",
  "Power",
  "RegretMatching",
  "RegretMinimizer",
  "Saturating",
  "Schedule",
  "TremblingMatching",
  "block_kernel",
  "expected_value",
  "full",
  "load",
  "normalize",
  "parameter_rows",
  "sequence",
  "store",
  "tolerance",
  "vector_starts",
  "where_greater",
]
