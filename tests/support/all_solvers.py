"""Every solver there is, by a short name, with arguments other than the defaults where there are any."""

from typing import Any

import numpy as np

import spiel_cfr
from spiel_cfr.minimizers.discounted import DiscountedRegretMatching

SOLVERS: dict[str, Any] = {
  "CFR": spiel_cfr.CFRSolver,
  "CFR+": spiel_cfr.CFRPlusSolver,
  "LCFR": spiel_cfr.LCFRSolver,
  "DCFR": lambda game: spiel_cfr.DCFRSolver(game, alpha=2, beta=-np.inf, gamma=np.float64(1.5)),
  "DCFR+": spiel_cfr.DCFRPlusSolver,
  "PCFR+": spiel_cfr.PCFRPlusSolver,
  "PDCFR+": spiel_cfr.PDCFRPlusSolver,
  "SAPCFR+": lambda game: spiel_cfr.SAPCFRPlusSolver(game, 0.25),
  "HSDCFR": lambda game: spiel_cfr.HSDCFRSolver(game, 100, first_gamma=15),
  "HSPCFR+": lambda game: spiel_cfr.HSPCFRPlusSolver(game, 100),
  "hedge": lambda game: spiel_cfr.HedgeCFRSolver(game, rate=0.5),
  "adaptive": lambda game: spiel_cfr.AdaptiveOptimisticCFRSolver(game, step=0.5),
  "stable-predictive": lambda game: spiel_cfr.StablePredictiveCFRSolver(game, 1000, steps=10),
  "last utilities": lambda game: spiel_cfr.StablePredictiveCFRSolver(
    game, kappa=0.1, regularizer="euclidean", prediction="last", averaging="linear"
  ),
  "certified": lambda game: spiel_cfr.AdaptiveOptimisticCFRSolver(game, average="certified"),
  "safeguarded": lambda game: spiel_cfr.AdaptiveOptimisticCFRSolver(game, safeguard=2),
  "external sampling": lambda game: spiel_cfr.ExternalSamplingSolver(
    game, spiel_cfr.AverageType.FULL, seed=1, baseline_rate=0.1
  ),
  "outcome sampling": lambda game: spiel_cfr.OutcomeSamplingSolver(game, epsilon=0.5, seed=2),
  "chance sampling": lambda game: spiel_cfr.ChanceSamplingSolver(game, seed=3),
  "average-strategy sampling": lambda game: spiel_cfr.AverageStrategySamplingSolver(
    game, beta=1, seed=4
  ),
  "simultaneous": lambda game: spiel_cfr.TabularCFRSolver(game, False, True, True),
  "minimizer": lambda game: spiel_cfr.Solver(
    game, DiscountedRegretMatching(beta=0.5), averaged=("after", "before")
  ),
}
