"""Full-width solvers: a regret minimizer, an average and an order of updates, on one shared loop."""

from spiel_cfr.cfr.averaging import AverageBlock, AverageRule, Averaging, average_kernel
from spiel_cfr.cfr.cfr import CFRPlusSolver, CFRSolver, FullWidthSolver
from spiel_cfr.cfr.payoff_transfer import transfer
from spiel_cfr.cfr.pruning.pruned import Pruned
from spiel_cfr.cfr.restarts import Restarted, RestartedCFRSolver
from spiel_cfr.cfr.snapshot import Snapshot
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.substitute_regrets import WarmStart
from spiel_cfr.cfr.variants import (
  AdaptiveOptimisticCFRSolver,
  APCFRPlusSolver,
  APDCFRPlusSolver,
  BestResponsePruningSolver,
  CFRBRSolver,
  DCFRPlusSolver,
  DCFRSolver,
  DynamicThresholdingSolver,
  HedgeCFRSolver,
  HSDCFRSolver,
  HSPCFRPlusSolver,
  LCFRSolver,
  PCFRPlusSolver,
  PDCFRPlusSolver,
  RegretBasedPruningSolver,
  SAPCFRPlusSolver,
  TabularCFRSolver,
  TremblingHandSolver,
)

__all__ = [
  "APCFRPlusSolver",
  "APDCFRPlusSolver",
  "AdaptiveOptimisticCFRSolver",
  "AverageBlock",
  "AverageRule",
  "Averaging",
  "BestResponsePruningSolver",
  "CFRBRSolver",
  "CFRPlusSolver",
  "CFRSolver",
  "DCFRPlusSolver",
  "DCFRSolver",
  "DynamicThresholdingSolver",
  "FullWidthSolver",
  "HSDCFRSolver",
  "HSPCFRPlusSolver",
  "HedgeCFRSolver",
  "LCFRSolver",
  "PCFRPlusSolver",
  "PDCFRPlusSolver",
  "Pruned",
  "RegretBasedPruningSolver",
  "Restarted",
  "RestartedCFRSolver",
  "SAPCFRPlusSolver",
  "Snapshot",
  "Solver",
  "TabularCFRSolver",
  "TremblingHandSolver",
  "WarmStart",
  "average_kernel",
  "transfer",
]
