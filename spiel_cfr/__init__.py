"""Counterfactual regret minimization and its family, for any OpenSpiel game.

Here is what most programs need; all else is in the rooms below, as `spiel_cfr.poker.few_bets`.
"""

import importlib.metadata

# What shows itself when one completes `spiel_cfr.`
from spiel_cfr import (  # noqa: F401
  abstraction,
  atlas,
  catalogue,
  certificates,
  cfr,
  correlated,
  deep_cfr,
  errors,
  evaluation,
  exchange,
  exploitation,
  explorer,
  first_order,
  games,
  mccfr,
  parametric_games,
  poker,
  policies,
  referee,
  regret_minimizers,
  runs,
  search,
  stable_predictive,
)
from spiel_cfr.bots import PolicyBot
from spiel_cfr.certificates import certify
from spiel_cfr.cfr import (
  AdaptiveOptimisticCFRSolver,
  Averaging,
  BestResponsePruningSolver,
  CFRPlusSolver,
  CFRSolver,
  DCFRSolver,
  DynamicThresholdingSolver,
  FullWidthSolver,
  LCFRSolver,
  PCFRPlusSolver,
  Pruned,
  RegretBasedPruningSolver,
  Restarted,
  RestartedCFRSolver,
  Solver,
  TabularCFRSolver,
)
from spiel_cfr.correlated import EFRSolver
from spiel_cfr.deep_cfr import DeepCFRSolver
from spiel_cfr.evaluation import best_response, expected_values, exploitability, nash_conv, solve_lp
from spiel_cfr.exchange import load_policy, save_policy
from spiel_cfr.exploitation import exploit
from spiel_cfr.explorer import explore
from spiel_cfr.games import CompiledGame, load_compiled_game
from spiel_cfr.games.compiling import compile_game, estimate_size
from spiel_cfr.mccfr import ExternalSamplingSolver, OutcomeSamplingSolver
from spiel_cfr.poker import load_endgame
from spiel_cfr.quantal_response import solve_qre
from spiel_cfr.referee import judge
from spiel_cfr.regret_minimizers import RegretMatching, RegretMinimizer
from spiel_cfr.runs import Checkpoints, run, sweep
from spiel_cfr.solving import Solution, solve
from spiel_cfr.stable_predictive import StablePredictiveCFRSolver

__version__ = importlib.metadata.version("spiel_cfr")

__all__ = [
  "AdaptiveOptimisticCFRSolver",
  "Averaging",
  "BestResponsePruningSolver",
  "CFRPlusSolver",
  "CFRSolver",
  "Checkpoints",
  "CompiledGame",
  "DCFRSolver",
  "DeepCFRSolver",
  "DynamicThresholdingSolver",
  "EFRSolver",
  "ExternalSamplingSolver",
  "FullWidthSolver",
  "LCFRSolver",
  "OutcomeSamplingSolver",
  "PCFRPlusSolver",
  "PolicyBot",
  "Pruned",
  "RegretBasedPruningSolver",
  "RegretMatching",
  "RegretMinimizer",
  "Restarted",
  "RestartedCFRSolver",
  "Solution",
  "Solver",
  "StablePredictiveCFRSolver",
  "TabularCFRSolver",
  "best_response",
  "catalogue",
  "certify",
  "compile_game",
  "errors",
  "estimate_size",
  "expected_values",
  "exploit",
  "exploitability",
  "explore",
  "judge",
  "load_compiled_game",
  "load_endgame",
  "load_policy",
  "nash_conv",
  "run",
  "save_policy",
  "solve",
  "solve_lp",
  "solve_qre",
  "sweep",
]
