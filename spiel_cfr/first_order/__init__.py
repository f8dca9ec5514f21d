"""First-order methods over strategies in sequence form: mirror descent, mirror prox, excessive gap, KOMWU, RTCFR+."""

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
