"""Solver of stable-predictive CFR: optimistic follow-the-regularized-leader at every infoset, with steps from theory.

Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019). The last
gradient is the prediction of the next one. If strategies move slowly, predictions are good. The gap of the average
strategies of a two-player zero-sum game is then O(T^-3/4), where regret matching has O(T^-1/2).

The parts of the algorithm, with the equations of the paper:

    OFTRL (10)                              regret_minimizers.oftrl: the kernels `observe_oftrl` and `predict_oftrl`
    counterfactual losses (11)              the backward pass of every iteration, before `observe`
    their predictions (17)                  the backward pass with the new strategies, before `predict`
    step sizes (14) to (16)                 paper_steps
    stability (5), regret (6), Lemmas 1, 2  paper_checks and player_checks, which `proof_check` applies to a run

The step sizes must be small enough that strategies move slowly. `paper_steps` has the constant steps of the paper, and
`adaptive_steps` has steps from the errors of the predictions so far. docs/theory/stable_predictive.md has the proofs.
The library maximizes utilities, where the paper minimizes losses.

The solver also takes games with more players and general payoffs. Each player's regret is then bounded, but the average
need not tend to a Nash equilibrium.
"""

import math
from typing import Literal, TypeAlias, get_args

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.regret_minimizers.regularizers import Regularizer
from spiel_cfr.stable_predictive.adaptive_steps import AdaptiveSteps, adaptive_steps
from spiel_cfr.stable_predictive.paper_steps import LossBounds, PaperSteps, paper_steps

Steps: TypeAlias = Literal["adaptive", "paper"]

# The default of `delta`, chosen on liar's dice with a die of 3 and of 5 sides, goofspiel with 4 cards in ascending and
# random order, and oshi-zumo with 4 coins.
DELTA = 0.001


@recorded
def StablePredictiveCFRSolver(
  game: AnyGame,
  horizon: int | None = None,
  kappa: float | None = None,
  regularizer: Regularizer = "entropy",
  steps: Steps | float = "adaptive",
  alternating_updates: bool = False,
  gamma: int | None = None,
  delta: float | None = None,
  loss_bounds: LossBounds | None = None,
) -> FullWidthSolver:
  """CFR with optimistic follow-the-regularized-leader and step sizes from theory.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    horizon: for constant steps, the number of iterations for which they are best. A run may be longer, but the bound on
      the gap then stops falling.
    kappa: for constant steps, the largest movement of a player's sequence form in an iteration, in the Euclidean norm.
      By default, the best one for the horizon.
    regularizer: "entropy" or "euclidean".
    steps: the rule for step sizes. "adaptive" takes steps from the errors of the predictions so far; "paper" takes the
      constant steps of the paper; a number is a factor on the paper's steps, so that 100 has the guarantee of 100
      kappa.
    alternating_updates: whether players update in turn, so that a player sees the new strategies of the players before
      it. With adaptive steps, averages then take the strategies after the update for all players except the last.
    gamma: the power of t in the weight of iteration t in the average: 0, 1 or 2. By default, 1 for adaptive steps and 0
      for constant ones. Adaptive steps give the same weights to utilities and errors.
    delta: for adaptive steps, the size of the floor of V: V is at least (delta D)^2 sqrt(t), with D the largest
      possible utility. Positive, by default 0.001. A larger delta gives better bounds before the run, and shorter
      steps.
    loss_bounds: for constant steps, the source of D. "infosets", the default, takes the largest possible utility of
      each infoset. "payoffs" takes the largest payoff times the root of the number of actions, at all infosets.

  Raises:
    ArgumentError: `horizon` or `kappa` is missing for constant steps, given for adaptive ones, or not positive; a
      factor is not positive; or a name is unknown.
    NotFiniteError: the payoffs are too large to be added up.
    GameError: see `compile_game`.
  """
  game, is_adaptive = compile_game(game), steps == "adaptive"
  constants = step_constants(game, horizon, kappa, regularizer, steps, gamma, delta, loss_bounds)
  return FullWidthSolver(
    game,
    constants.minimizer(),
    alternating_updates=alternating_updates,
    averaging=Averaging(_average_power(gamma, is_adaptive), "faced" if is_adaptive else "before"),
  )


def step_constants(
  game: CompiledGame,
  horizon: int | None,
  kappa: float | None,
  regularizer: Regularizer,
  steps: Steps | float,
  gamma: int | None,
  delta: float | None,
  loss_bounds: LossBounds | None,
) -> AdaptiveSteps | PaperSteps:
  """Returns the step sizes of `StablePredictiveCFRSolver`, which has the same arguments and errors."""
  arguments.one_of(regularizer, "regularizer", get_args(Regularizer))
  if isinstance(steps, str):
    arguments.one_of(steps, "steps", get_args(Steps), " or a factor on the paper's")
  power = _average_power(gamma, steps == "adaptive")
  _check_payoffs(game)
  if steps == "adaptive":
    _check_arguments_of_adaptive_steps(horizon, kappa, loss_bounds)
    delta = arguments.real_number(DELTA if delta is None else delta, "delta", 1e-100, 1e100)
    return adaptive_steps(game, regularizer, delta, power)
  factor = 1.0 if isinstance(steps, str) else steps
  return _paper_steps(game, regularizer, factor, horizon, kappa, delta, loss_bounds)


def _average_power(gamma: int | None, is_adaptive: bool) -> float:
  """Returns the power of t in the weight of iteration t."""
  if gamma is None:
    return 1.0 if is_adaptive else 0.0
  return float(arguments.integer(gamma, "gamma", 0, 2))


def _check_payoffs(game: CompiledGame) -> None:
  """Checks that sums of squared payoffs are finite.

  Raises:
    NotFiniteError: the payoffs are too large.
  """
  largest = max(map(abs, game.payoff_range))
  if not math.isfinite(largest * largest * game.num_leaves):
    raise errors.NotFiniteError(
      f"{game.name} has payoffs of up to {largest:zg}, too large for the sums of their squares. "
      "Scale the game's payoffs down; equilibria do not change."
    )


def _check_arguments_of_adaptive_steps(
  horizon: int | None, kappa: float | None, loss_bounds: LossBounds | None
) -> None:
  """Checks that arguments of constant steps are not given.

  Raises:
    ArgumentError: one of them is given.
  """
  if horizon is not None or kappa is not None:
    raise errors.ArgumentError(
      "Adaptive steps, the default, depend on the run and take neither horizon nor kappa. Leave them out, or choose "
      "constant steps with steps='paper'."
    )
  if loss_bounds is not None:
    raise errors.ArgumentError(
      "loss_bounds belongs to constant steps, steps='paper' or a factor; adaptive steps use the D of each infoset."
    )


def _paper_steps(
  game: CompiledGame,
  regularizer: Regularizer,
  factor: float,
  horizon: int | None,
  kappa: float | None,
  delta: float | None,
  loss_bounds: LossBounds | None,
) -> PaperSteps:
  """Returns `factor` times the steps of the paper, after a check of the arguments.

  Raises:
    ArgumentError: `delta` is given, or `horizon` and `kappa` are missing, or a value is invalid.
  """
  if delta is not None:
    raise errors.ArgumentError("delta belongs to steps='adaptive'; other steps are constant.")
  if horizon is None and kappa is None:
    raise errors.ArgumentError(
      "Constant step sizes depend on the length of the run: give horizon=, the number of iterations, or kappa=, the "
      "largest movement of a strategy in an iteration. steps='adaptive' needs neither."
    )
  if horizon is not None:
    horizon = arguments.positive_integer(horizon, "horizon")
  if kappa is not None:
    kappa = arguments.positive_number(kappa, "kappa")
  factor = arguments.positive_number(factor, "steps")
  bounds: LossBounds = "infosets" if loss_bounds is None else loss_bounds
  arguments.one_of(bounds, "loss_bounds", get_args(LossBounds))
  constants = paper_steps(game, regularizer, horizon=horizon, kappa_root=kappa, loss_bounds=bounds)
  return constants.scaled(factor)


def steps_of(solver: Solver) -> AdaptiveSteps | PaperSteps:
  """Returns the step sizes of a solver and their constants, computed again from the solver's arguments.

  Raises:
    ArgumentError: the solver was not made by `StablePredictiveCFRSolver`.
  """
  arguments.of_type(solver, "solver", Solver)
  # `recorded` functions take part in `isinstance`.
  if not isinstance(solver, StablePredictiveCFRSolver):  # type: ignore[arg-type]
    raise errors.ArgumentError(f"{solver!r} was not made by StablePredictiveCFRSolver.")
  named = solver.recipe.arguments
  of_steps = {key: value for key, value in named.items() if key != "alternating_updates"}
  return step_constants(solver.compiled_game, **of_steps)
