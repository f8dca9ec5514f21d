"""First-order methods for saddle points, over strategies in sequence form."""

from spiel_cfr.first_order.excessive_gap import ExcessiveGapSolver
from spiel_cfr.first_order.komwu import KOMWUSolver
from spiel_cfr.first_order.mirror_descent import OptimisticMirrorDescentSolver
from spiel_cfr.first_order.mirror_prox import MirrorProxSolver
from spiel_cfr.first_order.reward_transformation import RTCFRPlusSolver

__all__ = [
  "ExcessiveGapSolver",
  "KOMWUSolver",
  "MirrorProxSolver",
  "OptimisticMirrorDescentSolver",
  "RTCFRPlusSolver",
]
