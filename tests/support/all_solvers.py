"""All solvers of the catalogue, and some with other arguments: name -> factory of a game."""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from composition.table import REPRESENTATIVES

import spiel_cfr
from spiel_cfr import RegretMatching, catalogue

ITERATIONS = 100
SOLVERS: dict[str, Any] = {
  **{
    name: functools.partial(
      catalogue.make,
      name,
      iterations=ITERATIONS,
      **({"seed": 0} if issubclass(entry.family, spiel_cfr.mccfr.MonteCarloSolver) else {}),
    )
    for name, entry in catalogue.SOLVERS.items()
  },
  "dcfr, numbers of NumPy": lambda game: spiel_cfr.DCFRSolver(
    game, alpha=2, beta=-np.inf, gamma=np.float64(1.5)
  ),
  "stable-predictive, kappa": lambda game: spiel_cfr.StablePredictiveCFRSolver(
    game, kappa=0.1, steps="paper", regularizer="euclidean", gamma=1
  ),
  "averages of both kinds": lambda game: spiel_cfr.FullWidthSolver(
    game, RegretMatching.discounted(beta=0.5), averaging=spiel_cfr.Averaging(counted="faced")
  ),
  "average-strategy sampling, beta": lambda game: spiel_cfr.mccfr.AverageStrategySamplingSolver(
    game, beta=1, seed=4
  ),
}


def quick_if_representative(names: Iterable[str]) -> list[Any]:
  """Returns names as parameters of a test, which is slow but for one solver of each kind.

  Those with networks are slow too, since an iteration takes them a second; tests/deep_cfr has them.
  """
  return [
    pytest.param(
      name, marks=[] if name in REPRESENTATIVES and "deep" not in name else pytest.mark.slow
    )
    for name in names
  ]
