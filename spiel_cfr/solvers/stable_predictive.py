"""Stable-predictive optimistic CFR.

Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019). At every
infoset optimistic follow-the-regularized-leader, with steps so small that no strategy moves faster than the theory
allows, and the last gradient as the prediction of the next. With simultaneous updates and uniform averages the gap of
the average strategies of a two-player zero-sum game is then O(T^-3/4), where regret matching has O(T^-1/2).

With other orders of updates, averages, numbers of players or payoffs it runs too, without that guarantee.
"""

import math
from typing import Literal, TypeAlias, get_args

from spiel_cfr import arguments, errors
from spiel_cfr.compiling import AnyGame, compile_game
from spiel_cfr.minimizers.oftrl import LastLossOFTRL, Prediction, Regularizer, SubtreeOFTRL
from spiel_cfr.solvers.full_width import Solver
from spiel_cfr.theory.certificate import Certificate, certify
from spiel_cfr.theory.step_sizes import Constants, StepSizeTable, step_size_table, step_sizes

Averaging: TypeAlias = Literal["uniform", "linear", "quadratic"]


class StablePredictiveCFRSolver(Solver):
  """CFR with optimistic follow-the-regularized-leader and the step sizes of the theory.

  Attributes:
    constants: the step sizes and all that goes into them.
    horizon: for how many iterations they are best, None if kappa was given.
    prediction: as given.
    averaging: as given.
  """

  def __init__(
    self,
    game: AnyGame,
    horizon: int | None = None,
    kappa: float | None = None,
    regularizer: Regularizer = "entropy",
    steps: Constants | float = "paper",
    prediction: Prediction = "subtree",
    alternating_updates: bool = False,
    averaging: Averaging = "uniform",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      horizon: for how many iterations the steps are to be best. It may be exceeded; the bound on the gap then stops
        falling.
      kappa: how far, at most, a player's sequence-form strategy moves in an iteration (Euclidean norm), instead of what
        is best for the horizon.
      regularizer: "entropy" or "euclidean".
      steps: "paper" for the paper's step sizes, "tight" for those without the slacks that the docs list, or a factor
        by which to multiply the paper's: 100 is the paper's guarantee for 100 kappa.
      prediction: "subtree" carries the last gradient up with the new strategies below (the paper's equation 17);
        "last" predicts the last counterfactual utilities.
      alternating_updates: whether a player sees the strategies to which those before it have just updated.
      averaging: how iteration t weighs in the average: "uniform" 1, "linear" t, "quadratic" t^2.

    Raises:
      ArgumentError: neither horizon nor kappa is given, or one is not positive, a factor is not positive, or a name is
        unknown.
      LossOverflowError: the payoffs are too large to be added up.
      GameError: see `compile_game`.
    """
    arguments.one_of(regularizer, "regularizer", get_args(Regularizer))
    arguments.one_of(prediction, "prediction", get_args(Prediction))
    arguments.one_of(averaging, "averaging", get_args(Averaging))
    factor = 1.0
    constants: Constants = "paper"
    if isinstance(steps, str):
      arguments.one_of(steps, "steps", get_args(Constants), " or a factor on the paper's")
      constants = steps
    else:
      factor = arguments.positive_number(steps, "steps")
    if horizon is not None:
      horizon = arguments.positive_integer(horizon, "horizon")
    if kappa is not None:
      kappa = arguments.positive_number(kappa, "kappa")
    elif horizon is None:
      raise errors.ArgumentError(
        "The step sizes depend on how long the solver will run: give horizon=, the number of "
        "iterations, or kappa=, how far a strategy may move in one."
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
    self.constants = step_sizes(
      compiled, regularizer, constants, horizon=horizon, kappa_root=kappa
    ).scaled(factor)
    minimizer = SubtreeOFTRL if prediction == "subtree" else LastLossOFTRL
    super().__init__(
      compiled,
      minimizer(self.constants.steps, regularizer),
      alternating_updates=alternating_updates,
      average_weights=float(get_args(Averaging).index(averaging)),
    )

  def step_sizes(self) -> StepSizeTable:
    """Returns the constants of every infoset; print them for a table."""
    return step_size_table(self.compiled_game, self.constants)

  def certificate(self) -> Certificate:
    """Checks the run so far against everything that the theory promises.

    It repeats the run in single steps, at about a thousand times the cost of an iteration of a small game.
    """
    return certify(self)
