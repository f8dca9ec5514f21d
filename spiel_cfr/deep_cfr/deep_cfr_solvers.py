"""Deep CFR and its bootstrapped descendants.

- Deep CFR: Brown, Lerer, Gross and Sandholm, "Deep Counterfactual Regret Minimization" (2019).
- Single Deep CFR, whose average is that of all networks: Steinberger, "Single Deep Counterfactual Regret Minimization"
  (2019).
- Bootstrapped: Xu et al., "Deep (Predictive) Discounted Counterfactual Regret Minimization" (2026).
"""

from typing import Any, Unpack

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.deep_cfr.deep_options import Options
from spiel_cfr.deep_cfr.deep_solver import ADVANTAGES, INSTANT, DeepSolver
from spiel_cfr.deep_cfr.network import Rows
from spiel_cfr.games.compiling import AnyGame


class DeepCFRSolver(DeepSolver):
  """Deep CFR: networks learn the mean of all samples of advantages, those of iteration t weighing t.

      solver = DeepCFRSolver("leduc_poker", num_traversals=1500, seed=1)
      solver.run(100)
      solver.average_policy(), solver.network_policy()

  The arguments have OpenSpiel's names; its `num_iterations` and `solve()` are `solver.run(num_iterations)` here.
  """

  def __init__(
    self,
    game: AnyGame,
    *,
    reinitialize_advantage_networks: bool = False,
    **options: Unpack[Options],
  ) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game.
      reinitialize_advantage_networks: whether every fit begins with new networks, as in the paper, which takes
        many more steps; otherwise with those of the iteration before.
      **options: see `spiel_cfr.deep_cfr.deep_options.Hyperparameters`; and `seed`, `engine` and `max_nodes`, see
        `SamplingSolver`.

    Raises:
      ArgumentError: an argument makes no sense.
      FeaturesError: two infosets have the same features.
      GameError: the game can't be loaded or sampled.
      MissingPackageError: JAX or optax is not installed.
    """
    self._reinitializes = bool(reinitialize_advantage_networks)
    super().__init__(game, average_power=1.0, **options)

  def _sample_weight(self, iteration: int) -> float:
    return float(iteration)

  def _learn(self, player: int, rows: Rows, iteration: int) -> None:
    self._learner.fit(player, ADVANTAGES, rows, iteration, self._reinitializes)


class DeepDiscountedCFRSolver(DeepSolver):
  """DCFR+ and PDCFR+ with networks that learn from themselves; with baselines, VR-DeepDCFR+ and VR-DeepPDCFR+.

  Samples r are of this iteration t only. A network A is fitted to

      max(A before, 0) (t - 1)^alpha / ((t - 1)^alpha + c) + r,   c = 1.5, or 1 if it predicts,

  and regret matching is applied to it; if it predicts, to max(A, 0) t^alpha / (t^alpha + c) + P, where another network
  P is fitted to r. Baselines are a network too: it learns what every action is worth, whoever takes it, from where
  samples have moved its answers.

  Attributes:
    predictive: whether it predicts the next samples.
  """

  def __init__(
    self,
    game: AnyGame,
    predictive: bool = False,
    alpha: float | None = None,
    gamma: float = 2.0,
    baseline_rate: float = 0.0,
    **options: Unpack[Options],
  ) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game.
      predictive: whether to predict the next samples: PDCFR+ instead of DCFR+.
      alpha: the power of the discount; the paper's, 2 or with predictions 2.3, if None.
      gamma: the power of t that iteration t weighs in the average.
      baseline_rate: if positive, baselines, which move by this share to each new value.
      **options: see `DeepCFRSolver`.

    Raises:
      ArgumentError: an argument makes no sense.
      FeaturesError: two infosets have the same features.
      GameError: the game can't be loaded or sampled.
      MissingPackageError: JAX or optax is not installed.
    """
    self.predictive = bool(predictive)
    default_alpha, self._constant = (2.3, 1.0) if predictive else (2.0, 1.5)
    self._alpha = (
      default_alpha if alpha is None else arguments.real_number(alpha, "alpha", 0.0, 100.0)
    )
    self._networks = 2 if predictive else 1
    super().__init__(game, gamma, baseline_rate, **options)

  _forgets = True

  def _discount(self, iteration: int | Int64s) -> Any:
    """Returns what cumulative advantages are multiplied by before those of an iteration are added."""
    power = (iteration - 1.0) ** self._alpha
    return power / (power + self._constant)

  def _learn(self, player: int, rows: Rows, iteration: int) -> None:
    before = np.maximum(self._learner.outputs(player, ADVANTAGES, rows.features), 0.0)
    targets = before * self._discount(iteration) + rows.targets
    self._learner.fit(player, ADVANTAGES, rows._replace(targets=targets), iteration)
    if self.predictive:
      self._learner.fit(player, INSTANT, rows, iteration)

  def _scores(self, outputs: Float64s, iteration: int | Int64s) -> Float64s:
    advantages: Float64s = outputs[ADVANTAGES]
    if not self.predictive:
      return advantages
    kept: Float64s = np.maximum(advantages, 0.0) * self._discount(iteration + 1)
    scores: Float64s = kept + outputs[INSTANT]
    return scores
