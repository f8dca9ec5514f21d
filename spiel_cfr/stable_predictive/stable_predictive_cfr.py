"""Stable-predictive optimistic CFR.

Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019). At every
infoset optimistic follow-the-regularized-leader with the last gradient as the prediction of the next. If strategies
move slowly, predictions are good, and the gap of the average strategies of a two-player zero-sum game is O(T^-3/4),
where regret matching has O(T^-1/2). How long steps may be for that is the question, to which there are several answers;
docs/theory/stable_predictive.md has them with proofs.

With other numbers of players or payoffs it runs too; regrets are then bounded, but promise no Nash equilibrium.
"""

import dataclasses
import math
from typing import Literal, TypeAlias, get_args

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.variants import all_but_the_last_after
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.regret_minimizers.adaptive_oftrl import AdaptiveOFTRL
from spiel_cfr.regret_minimizers.oftrl import OFTRL, Prediction
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.regularizers import Regularizer
from spiel_cfr.stable_predictive.adaptive_steps import (
  AdaptiveSteps,
  ConstantSteps,
  adaptive_steps,
  constant_steps,
)
from spiel_cfr.stable_predictive.certificate_report import Certificate
from spiel_cfr.stable_predictive.certifying import certify
from spiel_cfr.stable_predictive.paper_steps import (
  PaperSteps,
  StepSizeTable,
  farina_steps,
  paper_steps,
  step_size_table,
)
from spiel_cfr.stable_predictive.regret_decomposition import Averaging, StablePredictiveRun

Steps: TypeAlias = Literal["adaptive", "paper", "farina2019"]

# Chosen on liar's dice with a die of 3 and of 5 sides, goofspiel with 4 cards in ascending and random order, and
# oshi-zumo with 4 coins.
DELTA = 0.001


@recorded
def StablePredictiveCFRSolver(
  game: AnyGame,
  horizon: int | None = None,
  kappa: float | None = None,
  regularizer: Regularizer = "entropy",
  steps: Steps | float = "adaptive",
  prediction: Prediction = "subtree",
  alternating_updates: bool = False,
  averaging: Averaging | None = None,
  delta: float | None = None,
) -> FullWidthSolver:
  """CFR with optimistic follow-the-regularized-leader and step sizes that a theory gives.

  Args:
    game: a compiled game, or what `compile_game` takes.
    horizon: for how many iterations constant steps are to be best. It may be exceeded; the bound on the gap then
      stops falling. Adaptive steps need none and take none.
    kappa: how far, at most, a player's sequence form moves in an iteration, in the Euclidean norm, instead of what is
      best for the horizon.
    regularizer: "entropy" or "euclidean".
    steps: "adaptive" for steps that come from the errors of the predictions so far; "paper" for the paper's constant
      ones; a factor by which to multiply the paper's: 100 is the paper's guarantee for 100 kappa; "farina2019" for
      those with which the paper's figures were very probably made, of which nothing is proven.
    prediction: "subtree" carries the last gradient up with the new strategies below (the paper's equation 17);
      "last" predicts the last counterfactual utilities.
    alternating_updates: whether a player sees the strategies to which those before it have just updated. Averages of
      adaptive steps then take the strategies after the update for every player but the last.
    averaging: how iteration t weighs in the average: "uniform" 1, "linear" t, "quadratic" t^2. Adaptive steps weigh
      utilities and errors in the same way. By default "linear" for adaptive steps, and "uniform" for all others.
    delta: of adaptive steps, how much they are held back, positive, 0.001 by default: V is never below (delta D)^2
      sqrt(t), D what utilities can be at most. Large ones give better bounds before the run, and shorter steps.

  Raises:
    ArgumentError: neither horizon nor kappa is given where one is needed, or one is given where it means nothing, or
      is not positive; a factor is not positive; or a name is unknown.
    LossOverflowError: the payoffs are too large to be added up.
    GameError: see `compile_game`.
  """
  chosen = _Choice(
    regularizer, steps, prediction, averaging, horizon, kappa, delta, alternating_updates
  ).checked()
  return chosen.solver(compile_game(game))


@dataclasses.dataclass(frozen=True)
class _Choice:
  """The arguments of `StablePredictiveCFRSolver`."""

  regularizer: Regularizer
  steps: Steps | float
  prediction: Prediction
  averaging: Averaging | None
  horizon: int | None
  kappa: float | None
  delta: float | None
  alternating_updates: bool

  @property
  def average(self) -> Averaging:
    """How iterations weigh in the average."""
    return self.averaging or ("linear" if self.steps == "adaptive" else "uniform")

  @property
  def power(self) -> float:
    """Of the iteration that it weighs in the average."""
    return float(get_args(Averaging).index(self.average))

  def checked(self) -> "_Choice":
    """Returns the same in the right types.

    Raises:
      ArgumentError: see `StablePredictiveCFRSolver`.
    """
    arguments.one_of(self.regularizer, "regularizer", get_args(Regularizer))
    arguments.one_of(self.prediction, "prediction", get_args(Prediction))
    steps, horizon, kappa = self.steps, self.horizon, self.kappa
    if isinstance(steps, str):
      arguments.one_of(steps, "steps", get_args(Steps), " or a factor on the paper's")
    else:
      steps = arguments.positive_number(steps, "steps")
    if self.averaging is not None:
      arguments.one_of(self.averaging, "averaging", get_args(Averaging))
    if steps == "adaptive" and (horizon is not None or kappa is not None):
      raise errors.ArgumentError(
        "Adaptive steps, the default, come from the run and need neither horizon nor kappa. Leave them out, or choose "
        "constant steps with steps='paper'."
      )
    if horizon is not None:
      horizon = arguments.positive_integer(horizon, "horizon")
    if kappa is not None:
      kappa = arguments.positive_number(kappa, "kappa")
    if steps != "adaptive" and horizon is None and kappa is None:
      raise errors.ArgumentError(
        "Constant step sizes depend on how long the solver will run: give horizon=, the number of "
        "iterations, or kappa=, how far a strategy may move in one. steps='adaptive' needs neither."
      )
    if self.delta is not None and steps != "adaptive":
      raise errors.ArgumentError("delta belongs to steps='adaptive'; other steps are constant.")
    delta = arguments.positive_number(DELTA if self.delta is None else self.delta, "delta")
    return dataclasses.replace(self, steps=steps, horizon=horizon, kappa=kappa, delta=delta)

  def constants(self, game: CompiledGame) -> AdaptiveSteps | ConstantSteps | PaperSteps:
    """Returns what theory knows of each infoset.

    Raises:
      LossOverflowError: the payoffs are too large to be added up.
    """
    largest = max(map(abs, game.payoff_range))
    if not math.isfinite(largest * largest * game.num_leaves):
      raise errors.LossOverflowError(
        f"{game.game_string} has payoffs of up to {largest:g}, too large for the sums of their squares. "
        "Scale the game's payoffs down; equilibria do not change."
      )
    if self.steps == "adaptive":
      assert self.delta is not None
      return adaptive_steps(game, self.regularizer, self.prediction, self.delta, self.power)
    if self.steps == "farina2019":
      lengths = farina_steps(game, self.regularizer, horizon=self.horizon, kappa_root=self.kappa)
      return constant_steps(game, self.regularizer, self.prediction, lengths)
    factor = 1.0 if isinstance(self.steps, str) else self.steps
    plain = paper_steps(game, self.regularizer, horizon=self.horizon, kappa_root=self.kappa)
    return plain.scaled(factor)

  def solver(self, game: CompiledGame) -> FullWidthSolver:
    """Makes the solver."""
    constants = self.constants(game)
    minimizer: RegretMinimizer
    if isinstance(constants, AdaptiveSteps):
      assert self.delta is not None
      minimizer = AdaptiveOFTRL(
        constants.loss_norm, self.delta, self.power, self.regularizer, self.prediction
      )
    else:
      minimizer = OFTRL(constants.steps, self.regularizer, self.prediction)
    in_turn = self.steps == "adaptive" and self.alternating_updates
    return FullWidthSolver(
      game,
      minimizer,
      alternating_updates=self.alternating_updates,
      average_weights=self.power,
      averaged=all_but_the_last_after(game.num_players) if in_turn else "before",
    )


def theory_of(solver: Solver) -> StablePredictiveRun:
  """Returns what theory says of a solver's steps, and of its run so far.

  Raises:
    ArgumentError: the solver was not made by `StablePredictiveCFRSolver`.
  """
  if not isinstance(solver, FullWidthSolver) or solver.recipe.name != "StablePredictiveCFRSolver":
    raise errors.ArgumentError(f"{solver!r} was not made by StablePredictiveCFRSolver.")
  choice = _Choice(**solver.recipe.arguments).checked()
  constants = choice.constants(solver.compiled_game)
  return StablePredictiveRun(solver, constants, choice.horizon, choice.prediction, choice.average)


def step_sizes(solver: Solver) -> StepSizeTable:
  """Returns the constants of every infoset; print them for a table. Adaptive steps are the next iteration's.

  Raises:
    ArgumentError: the solver was not made by `StablePredictiveCFRSolver`.
  """
  run = theory_of(solver)
  constants = run.constants
  if isinstance(constants, AdaptiveSteps):
    squares = constants.squared_errors(run.solver.minimizer_local(0), run.iteration)
    return step_size_table(run.compiled_game, constants, constants.steps_after(squares))
  return step_size_table(run.compiled_game, constants, constants.steps)


def certificate(solver: Solver) -> Certificate:
  """Checks a run so far against everything that the theory promises.

  It repeats the run in single steps, at about a thousand times the cost of an iteration of a small game.

  Args:
    solver: made by `StablePredictiveCFRSolver`; it is left alone.

  Raises:
    AbstractionError: infosets of the game are shared, which no theorem here is about.
    ArgumentError: the solver was made otherwise.
    LockError: a part of the policy is locked, which no theorem is about either.
    WarmStartError: the run began from a policy, so that it can't be repeated.
  """
  run = theory_of(solver)
  if run.compiled_game.shared_infosets is not None:
    raise errors.AbstractionError(
      f"In {run.compiled_game} infosets are shared (imperfect recall), and the theorems that certificates check "
      "are about perfect recall. Take buckets that remember the player's own actions."
    )
  if run.solver.state.locked.any():
    raise errors.LockError(
      f"The theory says nothing of locked policies, as {solver!r} has one. Judge it by its play, or lock nothing."
    )
  if run.solver.warm_iterations:
    raise errors.WarmStartError(
      "The theory is about runs from the first iteration, and this one began from a policy. Certify a run that began "
      "cold: solver.reset()."
    )
  return certify(run)
