"""Packages and public names of `spiel_cfr` that are imported late, when a program first uses one of them."""

from spiel_cfr import (
  abstraction,
  atlas,
  catalogue,
  certificates,
  correlated,
  deep_cfr,
  exchange,
  exploitation,
  explorer,
  first_order,
  mccfr,
  parametric_games,
  referee,
  runs,
  search,
  stable_predictive,
)
from spiel_cfr.bots import PolicyBot
from spiel_cfr.certificates import certify
from spiel_cfr.correlated import EFRSolver
from spiel_cfr.deep_cfr import DeepCFRSolver
from spiel_cfr.exchange import load_policy, save_policy
from spiel_cfr.exploitation import exploit
from spiel_cfr.explorer import explore
from spiel_cfr.mccfr import ExternalSamplingSolver, OutcomeSamplingSolver
from spiel_cfr.quantal_response import solve_qre
from spiel_cfr.referee import judge
from spiel_cfr.runs import Checkpoints, run, sweep
from spiel_cfr.solving import Solution, solve
from spiel_cfr.stable_predictive import StablePredictiveCFRSolver

__all__ = [
  "Checkpoints",
  "DeepCFRSolver",
  "EFRSolver",
  "ExternalSamplingSolver",
  "OutcomeSamplingSolver",
  "PolicyBot",
  "Solution",
  "StablePredictiveCFRSolver",
  "abstraction",
  "atlas",
  "catalogue",
  "certificates",
  "certify",
  "correlated",
  "deep_cfr",
  "exchange",
  "exploit",
  "exploitation",
  "explore",
  "explorer",
  "first_order",
  "judge",
  "load_policy",
  "mccfr",
  "parametric_games",
  "referee",
  "run",
  "runs",
  "save_policy",
  "search",
  "solve",
  "solve_qre",
  "stable_predictive",
  "sweep",
]
