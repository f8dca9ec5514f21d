"""Arguments that all Monte Carlo solvers take."""

from typing import Literal, TypedDict

import numpy as np

from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Numbers

EngineName = Literal["compiled", "states"]


class Options(TypedDict, total=False):
  """Arguments that all Monte Carlo solvers take, see `SamplingSolver`."""

  seed: int | np.random.Generator | None
  minimizer: RegretMinimizer
  average_weights: Numbers
  engine: EngineName | None
  max_nodes: int
  max_infosets: int
