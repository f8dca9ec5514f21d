"""Steps whose theory needs no norm of sequence form: adaptive ones, and constant ones of which little is known.

With |.| the norm dual to that in which the regularizer is 1-strongly convex, L its range, d the diameter of the simplex
in that norm, and D a bound on counterfactual utilities (docs/theory/stable_predictive.md has the proofs):

    regularizer   norm   L               d        dual norm of entries within D
    entropy       l1     log n           2        D
    euclidean     l2     (1 - 1/n) / 2   sqrt 2   sqrt(n) D
"""

import dataclasses
import math
from typing import Any, Self

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.adaptive_oftrl import SCALES, error_floors
from spiel_cfr.regret_minimizers.oftrl import Prediction
from spiel_cfr.regret_minimizers.regularizers import Regularizer, regularizer_range
from spiel_cfr.stable_predictive.infoset_trees import largest_sum, own_infosets


@dataclasses.dataclass(frozen=True, eq=False)
class LocalSteps:
  """What is known of every infoset under any steps: arrays of shape (infosets of all players,). A base class.

  Attributes:
    regularizer: "entropy" or "euclidean".
    prediction: "subtree" or "last".
    power: iteration t weighs t^power in regrets.
    loss_norm: D.
    spread: n for the Euclidean regularizer, 1 for the entropy: squared dual norms are at most spread * D^2.
    regularizer_range: L.
    simplex_diameter: d.
  """

  regularizer: Regularizer
  prediction: Prediction
  power: float
  loss_norm: Float64s
  spread: Float64s
  regularizer_range: Float64s
  simplex_diameter: float

  def at(self, infosets: slice) -> Self:
    """Returns the same of some infosets only."""
    some: dict[str, Any] = {
      name: value[infosets] for name, value in vars(self).items() if isinstance(value, np.ndarray)
    }
    return dataclasses.replace(self, **some)

  def movers(self, player: int, num_players: int) -> list[int]:
    """Returns whose movements make a player's errors: the others', and with the prediction "last" its own."""
    return [each for each in range(num_players) if each != player or self.prediction == "last"]


@dataclasses.dataclass(frozen=True, eq=False)
class ConstantSteps(LocalSteps):
  """Constant steps of which nothing is promised beforehand.

  Attributes:
    steps: eta of each infoset; 0 where there is nothing to lose.
  """

  steps: Float64s


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptiveSteps(LocalSteps):
  """Steps that come from the run: step^t = scale sqrt(L / V^(t-1)), see `regret_minimizers.adaptive_oftrl`.

  Attributes:
    floor: V^t is S^t + floor t^(2 power + 1/2).
    scale: see there.
    delta: the floor is spread (delta D)^2.
    regret_factor: K; an infoset's regret is at most K sqrt(V).
  """

  floor: Float64s
  scale: float
  delta: float
  regret_factor: Float64s

  def squared_errors(self, squares: Float64s, iteration: int) -> Float64s:
    """Returns V^t, given S^t."""
    return np.asarray(squares + self.floor * float(iteration) ** (2 * self.power + 0.5))

  def steps_after(self, squared_errors: Float64s) -> Float64s:
    """Returns the steps of the next iteration, given V^t; 0 where that is 0."""
    ratio = np.divide(
      self.regularizer_range,
      squared_errors,
      out=np.zeros(len(squared_errors)),
      where=squared_errors > 0,
    )
    return np.asarray(self.scale * np.sqrt(ratio))

  def largest_errors(self, iteration: int) -> Float64s:
    """(ii): bounds V^T by spread D^2 (4 sum of t^(2 power) + delta^2 T^(2 power + 1/2))."""
    weights = np.arange(1.0, iteration + 1.0) ** (2 * self.power)
    growth = float(iteration) ** (2 * self.power + 0.5)
    return np.asarray(
      self.spread * self.loss_norm**2 * (4 * weights.sum() + self.delta**2 * growth)
    )

  def settled_errors(self, game: CompiledGame, iteration: int) -> Float64s:
    """(iii): bounds V^T by O(T^(2 power + 1/2)), because strategies slow down.

        spread D^2 (1 + delta^2 T^(2 power + 1/2)
                    + d^2 (4 * 4^power + 2 A L* T^(2 power + 1/2) / delta^2 + B L* T^(2 power) (1 + ln T)))

    d is the number of levels of those whose movement matters, L* the largest spread * L of theirs.
    """
    total, power = float(iteration), self.power
    growth = total ** (2 * power + 0.5)
    change, drift = self.movement_constants
    result = np.zeros(game.num_infosets)
    for player, tree in enumerate(game.treeplexes):
      movers = [game.treeplexes[each] for each in self.movers(player, game.num_players)]
      levels = sum(each.depth for each in movers)
      own = [own_infosets(each) for each in movers]
      largest = max(
        (float((self.spread * self.regularizer_range)[each].max(initial=0.0)) for each in own),
        default=0.0,
      )
      moved = (
        4.0 * 4.0**power
        + 2 * change * largest * growth / self.delta**2
        + drift * largest * total ** (2 * power) * (1 + math.log(total))
      )
      result[own_infosets(tree)] = 1 + self.delta**2 * growth + levels**2 * moved
    return np.asarray(self.spread * self.loss_norm**2 * result)

  @property
  def movement_constants(self) -> tuple[float, float]:
    """A and B: with s = t - 1 >= 1, ||x^(t+1) - x^t||_1^2 <= spread L (A / (delta^2 sqrt s) + B / s)."""
    power = self.power
    terms = 2 * 2.0**power + 3.0**power
    growth = 0.25 if power == 0 else (2.0 ** (2 * power + 0.5) - 1) / 2
    return 2 * (self.scale**2 * terms**2 + 2 * 4.0**power), 2 * growth

  def guarantee(self, game: CompiledGame, iterations: int, alternating: bool) -> float:
    """Bounds the sum of all regrets over the sum of the weights, before the run.

    With alternating updates of two players, what the first one's updates lose is added.
    """
    errors = np.minimum(self.largest_errors(iterations), self.settled_errors(game, iterations))
    bounds = self.regret_factor * np.sqrt(errors)
    weights = np.arange(1.0, iterations + 1.0) ** self.power
    total = sum(largest_sum(tree, bounds[own_infosets(tree)]) for tree in game.treeplexes)
    lost = self.update_losses(game, iterations) if alternating else 0.0
    return float((total + lost) / weights.sum())

  def update_losses(self, game: CompiledGame, iterations: int) -> float:
    """Bounds the sum of w_t <u^t, x^t - x^(t+1)> of the first of two players that update in turn.

    It is the largest sum of D sqrt(spread L) along a pure plan times a sum over iterations, that of (4) with |e^t| <=
    sqrt(spread) D M^t, M^t bounded as in (iii), and V^t >= floor t^(2 power + 1/2). No iteration loses more than the
    range of the payoffs.
    """
    change, drift = self.movement_constants
    levels = game.treeplexes[1].depth
    theirs = own_infosets(game.treeplexes[1])
    largest = float((self.spread * self.regularizer_range)[theirs].max(initial=0.0))
    t = np.arange(2.0, iterations + 1.0)
    since = np.maximum(t - 2, 1)
    moved = largest * (change / (self.delta**2 * np.sqrt(since)) + drift / since)
    moved = levels**2 * np.where(t == 2, 4.0, np.minimum(moved, 4.0))
    squares = t ** (2 * self.power) * moved
    power = 2 * self.power + 0.5
    grown = squares + self.delta**2 * (t**power - (t - 1) ** power)
    losses = self.scale * squares / 4 + grown / (2 * self.scale)
    losses *= (t / (t + 1)) ** self.power / (self.delta * (t - 1) ** (self.power + 0.25))
    own = own_infosets(game.treeplexes[0])
    terms = (self.loss_norm * np.sqrt(self.spread * self.regularizer_range))[own]
    total = largest_sum(game.treeplexes[0], terms)
    low, high = game.payoff_range
    return float(
      min(total * self.scale / 4, high - low)
      + np.minimum(total * losses, t**self.power * (high - low)).sum()
    )


def adaptive_steps(
  game: CompiledGame, regularizer: Regularizer, prediction: Prediction, delta: float, power: float
) -> AdaptiveSteps:
  """Returns the constants of adaptive steps.

  Args:
    game: the game.
    regularizer: of the regret minimizers.
    prediction: what they predict.
    delta: of the floor.
    power: iteration t weighs t^power.
  """
  known = _known(game, regularizer, prediction, power)
  floor = error_floors(regularizer, game.loss_bounds, _actions(game), delta)
  scale, root = SCALES[regularizer], np.sqrt(known["regularizer_range"])
  longest = np.sqrt((scale * root) ** 2 + 4 * known["simplex_diameter"] ** 2)
  return AdaptiveSteps(
    **known,
    floor=floor,
    scale=scale,
    delta=delta,
    regret_factor=root / scale + (scale * root + longest) / 2,
  )


def constant_steps(
  game: CompiledGame, regularizer: Regularizer, prediction: Prediction, steps: Float64s
) -> ConstantSteps:
  """Returns what is known of steps that somebody has chosen, shape (infosets,)."""
  return ConstantSteps(**_known(game, regularizer, prediction, 0.0), steps=steps)


def _actions(game: CompiledGame) -> Int64s:
  """Number of actions of each infoset of all players."""
  return np.concatenate([tree.infoset_actions for tree in game.treeplexes])


def _known(
  game: CompiledGame, regularizer: Regularizer, prediction: Prediction, power: float
) -> dict[str, Any]:
  """Returns the fields of `LocalSteps`."""
  actions, entropy = _actions(game), regularizer == "entropy"
  return {
    "regularizer": regularizer,
    "prediction": prediction,
    "power": power,
    "loss_norm": game.loss_bounds,
    "spread": np.ones(len(actions)) if entropy else actions.astype(np.float64),
    "regularizer_range": regularizer_range(regularizer, actions),
    "simplex_diameter": 2.0 if entropy else math.sqrt(2.0),
  }
