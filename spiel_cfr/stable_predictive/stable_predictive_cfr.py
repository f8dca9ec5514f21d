"""Stable-predictive optimistic CFR.

Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019). At every
infoset optimistic follow-the-regularized-leader with the last gradient as the prediction of the next. If strategies
move slowly, predictions are good, and the gap of the average strategies of a two-player zero-sum game is O(T^-3/4),
where regret matching has O(T^-1/2). How long steps may be for that is the question, to which there are several answers;
docs/stable_predictive.md has them with proofs.

With other numbers of players or payoffs it runs too; regrets are then bounded, but promise no Nash equilibrium.
"""

import math
import sys
from typing import Literal, TypeAlias, get_args

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.cfr.averaging import Averaged
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.regret_minimizers.adaptive_oftrl import LastLossAdaptiveOFTRL, SubtreeAdaptiveOFTRL
from spiel_cfr.regret_minimizers.oftrl import LastLossOFTRL, Prediction, Regularizer, SubtreeOFTRL
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.stable_predictive.certificate import certify
from spiel_cfr.stable_predictive.certificate_report import Certificate
from spiel_cfr.stable_predictive.local_steps import (
  AdaptiveSteps,
  FixedSteps,
  adaptive_steps,
  level_steps,
  unproven_steps,
)
from spiel_cfr.stable_predictive.paper_steps import (
  StepSizes,
  StepSizeTable,
  farina_steps,
  step_size_table,
  step_sizes,
)

Averaging: TypeAlias = Literal["uniform", "linear", "quadratic"]
Steps: TypeAlias = Literal["adaptive", "level", "paper", "farina2019"]

# Chosen on liar's dice with a die of 3 and of 5 sides, goofspiel with 4 cards in ascending and random order, and
# oshi-zumo with 4 coins.
DELTA = 0.001


class StablePredictiveCFRSolver(FullWidthSolver):
  """CFR with optimistic follow-the-regularized-leader and step sizes that a theory gives.

  Attributes:
    constants: what the theory knows of each infoset.
    horizon: for how many iterations the steps are best, None if that was not given.
    prediction: as given.
    averaging: what was given, or the default.
    threshold: as given.
  """

  constants: AdaptiveSteps | FixedSteps | StepSizes

  def __init__(
    self,
    game: AnyGame,
    horizon: int | None = None,
    kappa: float | None = None,
    regularizer: Regularizer = "entropy",
    steps: Steps | float = "adaptive",
    prediction: Prediction = "subtree",
    alternating_updates: bool = False,
    averaging: Averaging | None = None,
    delta: float | None = None,
    threshold: float = 0.0,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      horizon: for how many iterations constant steps are to be best. It may be exceeded; the bound on the gap then
        stops falling. Adaptive steps need none and take none.
      kappa: how far, at most, a player's strategy moves in an iteration, instead of what is best for the horizon: with
        "paper" its sequence form in the Euclidean norm, with "level" the largest l1 movement of an infoset, summed over
        the levels of the player's decisions.
      regularizer: "entropy" or "euclidean".
      steps: "adaptive" for steps that come from the errors of the predictions so far; "level" for constant ones, from
        how much other players' movements can change utilities; "paper" for the paper's; a factor by which to multiply
        the paper's: 100 is the paper's guarantee for 100 kappa; "farina2019" for those with which the paper's figures
        were very probably made, of which nothing is proven.
      prediction: "subtree" carries the last gradient up with the new strategies below (the paper's equation 17);
        "last" predicts the last counterfactual utilities.
      alternating_updates: whether a player sees the strategies to which those before it have just updated. Averages of
        adaptive steps then take the strategies after the update for every player but the last.
      averaging: how iteration t weighs in the average: "uniform" 1, "linear" t, "quadratic" t^2. Adaptive steps weigh
        utilities and errors in the same way. By default "linear" for adaptive steps, and "uniform" for all others.
      delta: of adaptive steps, how much they are held back, positive, 0.001 by default: V is never below (delta D)^2
        sqrt(t), D what utilities can be at most. Large ones give better bounds before the run, and shorter steps.
      threshold: of constant steps with entropy, how much probability at an infoset becomes 0 in all iterations together
        (dynamic thresholding, see `LastLossOFTRL`); 0 for none.

    Raises:
      ArgumentError: neither horizon nor kappa is given where one is needed, or one is given where it means nothing, or
        is not positive; a factor is not positive; a name is unknown; or there is a threshold where there can be none.
      LossOverflowError: the payoffs are too large to be added up.
      GameError: see `compile_game`.
    """
    arguments.one_of(regularizer, "regularizer", get_args(Regularizer))
    arguments.one_of(prediction, "prediction", get_args(Prediction))
    if isinstance(steps, str):
      arguments.one_of(steps, "steps", get_args(Steps), " or a factor on the paper's")
    else:
      steps = arguments.positive_number(steps, "steps")
    adaptive = steps == "adaptive"
    if averaging is None:
      averaging = "linear" if adaptive else "uniform"
    arguments.one_of(averaging, "averaging", get_args(Averaging))
    horizon, kappa = _checked_horizon(horizon, kappa, adaptive)
    if delta is not None and not adaptive:
      raise errors.ArgumentError("delta belongs to steps='adaptive'; other steps are constant.")
    delta = arguments.positive_number(DELTA if delta is None else delta, "delta")
    self.threshold = arguments.real_number(threshold, "threshold", 0.0, sys.float_info.max)
    if adaptive and self.threshold:
      raise errors.ArgumentError(
        "Adaptive steps are as long as the errors of predictions allow, and would count what is dropped as such. Take "
        "a threshold with constant steps, as steps='level', or HedgeCFRSolver."
      )
    compiled = compile_game(game)
    largest = max(map(abs, compiled.payoff_range))
    if not math.isfinite(largest * largest * compiled.num_leaves):
      raise errors.LossOverflowError(
        f"{compiled.game_string} has payoffs of up to {largest:g}, too large for the sums of their squares. "
        "Scale the game's payoffs down; equilibria do not change."
      )
    self.horizon = horizon
    self.prediction = prediction
    self.averaging = averaging
    power = float(get_args(Averaging).index(averaging))
    minimizer: RegretMinimizer
    if adaptive:
      self.constants = adaptive_steps(compiled, regularizer, prediction, delta, power)
      make = SubtreeAdaptiveOFTRL if prediction == "subtree" else LastLossAdaptiveOFTRL
      minimizer = make(self.constants.loss_norm, delta, power, regularizer)
    else:
      self.constants = _constant_steps(compiled, steps, regularizer, prediction, horizon, kappa)
      fixed = SubtreeOFTRL if prediction == "subtree" else LastLossOFTRL
      minimizer = fixed(self.constants.steps, regularizer, self.threshold)
    others: Averaged = "after" if adaptive and alternating_updates else "before"
    super().__init__(
      compiled,
      minimizer,
      alternating_updates=alternating_updates,
      average_weights=power,
      averaged=(*[others] * (compiled.num_players - 1), "before"),
    )

  def step_sizes(self) -> StepSizeTable:
    """Returns the constants of every infoset; print them for a table. Adaptive steps are the next iteration's."""
    return step_size_table(self.compiled_game, self.constants, self._current_steps())

  def _current_steps(self) -> Float64s:
    constants = self.constants
    if not isinstance(constants, AdaptiveSteps):
      return constants.steps
    squares = self._loop.local_line(0)
    return constants.steps_after(constants.squared_errors(squares, self.iteration))

  def certificate(self) -> Certificate:
    """Checks the run so far against everything that the theory promises.

    It repeats the run in single steps, at about a thousand times the cost of an iteration of a small game.

    Raises:
      AbstractionError: infosets of the game are shared, which no theorem here is about.
      ArgumentError: probabilities are dropped, likewise.
      LockError: a part of the policy is held, likewise.
      WarmStartError: the run began from a policy, so that it can't be repeated.
    """
    if self.compiled_game.shared_infosets is not None:
      raise errors.AbstractionError(
        f"In {self.compiled_game} infosets are shared (imperfect recall), and the theorems that certificates check "
        "are about perfect recall. Take buckets that remember the player's own actions."
      )
    if self.threshold:
      raise errors.ArgumentError(
        "The theory is about how far strategies move, and dropping small probabilities moves them further. Certify a "
        "run without a threshold."
      )
    if self._held.any():
      raise errors.LockError(
        f"The theory says nothing of held policies, as {self!r} has one. Judge it by its play, or hold nothing."
      )
    if self.warm_iterations:
      raise errors.WarmStartError(
        "The theory is about runs from the first iteration, and this one began from a policy. Certify a run that began "
        "cold: solver.restarted()."
      )
    return certify(self)


def _checked_horizon(
  horizon: int | None, kappa: float | None, adaptive: bool
) -> tuple[int | None, float | None]:
  """Returns what says how long constant steps are, in the right types."""
  if adaptive:
    if horizon is None and kappa is None:
      return None, None
    raise errors.ArgumentError(
      "Adaptive steps, the default, come from the run and need neither horizon nor kappa. Leave them out, or choose "
      "constant steps with steps='level' or steps='paper'."
    )
  if horizon is not None:
    horizon = arguments.positive_integer(horizon, "horizon")
  if kappa is not None:
    kappa = arguments.positive_number(kappa, "kappa")
  elif horizon is None:
    raise errors.ArgumentError(
      "Constant step sizes depend on how long the solver will run: give horizon=, the number of "
      "iterations, or kappa=, how far a strategy may move in one. steps='adaptive' needs neither."
    )
  return horizon, kappa


def _constant_steps(
  game: CompiledGame,
  steps: str | float,
  regularizer: Regularizer,
  prediction: Prediction,
  horizon: int | None,
  kappa: float | None,
) -> FixedSteps | StepSizes:
  if steps == "level":
    return level_steps(game, regularizer, prediction, horizon=horizon, kappa_root=kappa)
  if steps == "farina2019":
    lengths = farina_steps(game, regularizer, horizon=horizon, kappa_root=kappa)
    return unproven_steps(game, regularizer, prediction, lengths)
  factor = 1.0 if isinstance(steps, str) else steps
  return step_sizes(game, regularizer, horizon=horizon, kappa_root=kappa).scaled(factor)
