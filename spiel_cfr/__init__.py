"""Counterfactual regret minimization and its family, for any OpenSpiel game."""

import importlib.metadata

from spiel_cfr import catalogue, errors
from spiel_cfr.abstraction.abstract_game import AbstractGame, abstract
from spiel_cfr.abstraction.action_translation import pseudo_harmonic, translated_policy
from spiel_cfr.abstraction.buckets import Buckets, Permuted, make_buckets
from spiel_cfr.abstraction.clusters import cluster, k_means
from spiel_cfr.abstraction.earth_mover import earth_movers_distances
from spiel_cfr.abstraction.hand_buckets import BucketedHands, HandBuckets, hand_buckets
from spiel_cfr.abstraction.hand_features import equity_histograms, hand_equities, next_histograms
from spiel_cfr.abstraction.least_exploitable_strategies import LeastExploitable, least_exploitable
from spiel_cfr.abstraction.lossless_symmetries import lossless, lossless_abstraction
from spiel_cfr.abstraction.refining import Refined, solve_refining
from spiel_cfr.bots import PolicyBot
from spiel_cfr.cfr.cfr import CFRPlusSolver, CFRSolver, FullWidthSolver
from spiel_cfr.cfr.correlated_gap import (
  CorrelatedGap,
  coarse_correlated_gap,
  extensive_form_correlated_gap,
)
from spiel_cfr.cfr.pruning.pruned import Pruned
from spiel_cfr.cfr.restarts import Restarted, RestartedCFRSolver
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.substitute_regrets import WarmStart
from spiel_cfr.cfr.variants import (
  AdaptiveOptimisticCFRSolver,
  APCFRPlusSolver,
  APDCFRPlusSolver,
  CFRBRSolver,
  DCFRPlusSolver,
  DCFRSolver,
  HedgeCFRSolver,
  HSDCFRSolver,
  HSPCFRPlusSolver,
  LCFRSolver,
  PCFRPlusSolver,
  PDCFRPlusSolver,
  SAPCFRPlusSolver,
  TabularCFRSolver,
  TremblingHandSolver,
  VADCFRSolver,
)
from spiel_cfr.cfr.warm_start import transfer
from spiel_cfr.deep_cfr.deep_cfr_solvers import DeepCFRSolver, DeepDiscountedCFRSolver
from spiel_cfr.evaluation.evaluate import (
  BestResponse,
  NashConv,
  best_response,
  expected_values,
  exploitability,
  nash_conv,
)
from spiel_cfr.evaluation.infoset_regrets import InfosetRegret, largest_infoset_regret
from spiel_cfr.evaluation.linear_program import LPSolution, solve_lp
from spiel_cfr.evaluation.sequence_form_matrices import constraint_matrix, payoff_matrix, sequences
from spiel_cfr.exchange.efg import save_efg
from spiel_cfr.exchange.policy_tables import load_policy, save_policy
from spiel_cfr.explorer.explore import Exploration, explore
from spiel_cfr.first_order.excessive_gap import ExcessiveGapSolver
from spiel_cfr.first_order.komwu import KOMWUSolver
from spiel_cfr.first_order.mirror_descent import OptimisticMirrorDescentSolver
from spiel_cfr.first_order.mirror_prox import MirrorProxSolver
from spiel_cfr.first_order.reward_transformation import RTCFRPlusSolver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.game_file import load_compiled_game
from spiel_cfr.games.compiled.sharded_game import shard
from spiel_cfr.games.compiling import compile_game, estimate_size
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.games.openspiel.size_estimate import SizeEstimate
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel
from spiel_cfr.mccfr.engines.state_engine import ImperfectRecallWarning
from spiel_cfr.mccfr.mccfr_solvers import (
  AverageStrategySamplingSolver,
  ChanceSamplingSolver,
  ExternalSamplingSolver,
  OutcomeSamplingSolver,
)
from spiel_cfr.mccfr.sampling_rules import AverageType
from spiel_cfr.mccfr.sampling_solver import SamplingSolver
from spiel_cfr.mccfr.tracker import Tracker
from spiel_cfr.parametric_games.linear_games import LinearGame, kuhn_bets, leduc_bets, linear_game
from spiel_cfr.parametric_games.optimizing import Optimum, optimize_parameters
from spiel_cfr.poker.endgames import Endgame, load_endgame
from spiel_cfr.poker.public_game import PublicGame, compile_public_game
from spiel_cfr.policies import CompiledTabularPolicy
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Schedule
from spiel_cfr.runs.checkpoint_folder import Checkpoints
from spiel_cfr.runs.merge_policies import merge
from spiel_cfr.runs.process_executor import ProcessExecutor
from spiel_cfr.runs.ray_executor import RayExecutor
from spiel_cfr.runs.run_loop import RunResult, run
from spiel_cfr.runs.run_schedules import Every, Powers
from spiel_cfr.runs.run_sweep import sweep
from spiel_cfr.runs.sweep_table import SweepTable
from spiel_cfr.runs.trace import Row, Trace, open_trace, read_trace
from spiel_cfr.solving import Solution, choose_solver, solve
from spiel_cfr.stable_predictive.stable_predictive_cfr import StablePredictiveCFRSolver

__version__ = importlib.metadata.version("spiel_cfr")

__all__ = [
  "APCFRPlusSolver",
  "APDCFRPlusSolver",
  "AbstractGame",
  "AdaptiveOptimisticCFRSolver",
  "AverageStrategySamplingSolver",
  "AverageType",
  "BestResponse",
  "Block",
  "BucketedHands",
  "Buckets",
  "CFRBRSolver",
  "CFRPlusSolver",
  "CFRSolver",
  "ChanceSamplingSolver",
  "Checkpoints",
  "CompiledGame",
  "CompiledTabularPolicy",
  "CorrelatedGap",
  "DCFRPlusSolver",
  "DCFRSolver",
  "DeepCFRSolver",
  "DeepDiscountedCFRSolver",
  "Endgame",
  "EnumeratedGame",
  "Every",
  "ExcessiveGapSolver",
  "Exploration",
  "ExternalSamplingSolver",
  "FullWidthSolver",
  "HSDCFRSolver",
  "HSPCFRPlusSolver",
  "HandBuckets",
  "HedgeCFRSolver",
  "ImperfectRecallWarning",
  "InfosetRegret",
  "KOMWUSolver",
  "LCFRSolver",
  "LPSolution",
  "LeastExploitable",
  "LinearGame",
  "MirrorProxSolver",
  "NashConv",
  "OptimisticMirrorDescentSolver",
  "Optimum",
  "OutcomeSamplingSolver",
  "PCFRPlusSolver",
  "PDCFRPlusSolver",
  "Permuted",
  "PolicyBot",
  "Powers",
  "ProcessExecutor",
  "Pruned",
  "PublicGame",
  "RTCFRPlusSolver",
  "RayExecutor",
  "Refined",
  "RegretMatching",
  "RegretMinimizer",
  "Restarted",
  "RestartedCFRSolver",
  "Row",
  "RunResult",
  "SAPCFRPlusSolver",
  "SamplingSolver",
  "Schedule",
  "SizeEstimate",
  "Solution",
  "Solver",
  "StablePredictiveCFRSolver",
  "SweepTable",
  "TabularCFRSolver",
  "Trace",
  "Tracker",
  "TremblingHandSolver",
  "VADCFRSolver",
  "WarmStart",
  "abstract",
  "best_response",
  "block_kernel",
  "catalogue",
  "choose_solver",
  "cluster",
  "coarse_correlated_gap",
  "compile_game",
  "compile_public_game",
  "constraint_matrix",
  "earth_movers_distances",
  "equity_histograms",
  "errors",
  "estimate_size",
  "expected_values",
  "exploitability",
  "explore",
  "extensive_form_correlated_gap",
  "hand_buckets",
  "hand_equities",
  "k_means",
  "kuhn_bets",
  "largest_infoset_regret",
  "least_exploitable",
  "leduc_bets",
  "linear_game",
  "load_compiled_game",
  "load_endgame",
  "load_game",
  "load_policy",
  "lossless",
  "lossless_abstraction",
  "make_buckets",
  "merge",
  "nash_conv",
  "next_histograms",
  "open_trace",
  "optimize_parameters",
  "payoff_matrix",
  "pseudo_harmonic",
  "read_trace",
  "run",
  "save_efg",
  "save_policy",
  "sequences",
  "shard",
  "solve",
  "solve_lp",
  "solve_refining",
  "sweep",
  "transfer",
  "translated_policy",
]
