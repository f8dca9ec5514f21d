"""Stable-predictive optimistic CFR.

Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019). Every
infoset uses optimistic follow-the-regularized-leader, with the last gradient as the prediction of the next. If
strategies move slowly, predictions are good, and the gap of the average strategies of a two-player zero-sum game is
O(T^-3/4), where regret matching has O(T^-1/2). That limits the step sizes, in one of two ways: `adaptive_steps`, or the
paper's `paper_steps`. docs/theory/stable_predictive.md has both, with proofs.

The solver also takes games of more players and general payoffs. Regrets are then bounded, but the average need not tend
to a Nash equilibrium.
"""

import math
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

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
from spiel_cfr.stable_predictive.paper_steps import (
  LossBounds,
  PaperSteps,
  depths,
  paper_steps,
)

Steps: TypeAlias = Literal["adaptive", "paper"]

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
    kappa: for constant steps, the largest movement of a player's sequence form in an iteration, in the Euclidean norm;
      by default, the best one for the horizon.
    regularizer: "entropy" or "euclidean".
    steps: "adaptive" for steps from the errors of the predictions so far; "paper" for the constant steps of the paper;
      a number for a multiple of the paper's steps: with 100, the guarantee is that of 100 kappa.
    alternating_updates: whether a player sees the new strategies of the players before it. With adaptive steps,
      averages then take the strategies after the update for all players except the last.
    gamma: the power of t in the weight of iteration t in the average: 0, 1 or 2; by default, 1 for adaptive steps and 0
      for constant ones. In adaptive steps, utilities and errors have the same weights.
    delta: for adaptive steps, the size of the floor of V: V is at least (delta D)^2 sqrt(t), with D the largest
      possible utility. Positive, by default 0.001. A larger delta gives better bounds before the run, and shorter
      steps.
    loss_bounds: for constant steps, the source of D: "infosets", the default, for the largest possible utility of each
      infoset; "payoffs" for the largest payoff times the root of the number of actions, at all infosets.

  Raises:
    ArgumentError: `horizon` or `kappa` is missing for constant steps, given for adaptive ones, or not positive; a
      factor is not positive; or a name is unknown.
    LossOverflowError: the payoffs are too large to be added up.
    GameError: see `compile_game`.
  """
  game = compile_game(game)
  power = _power(gamma, steps)
  constants = _steps(game, horizon, kappa, regularizer, steps, power, delta, loss_bounds)
  solver = FullWidthSolver(
    game,
    constants.minimizer(),
    alternating_updates=alternating_updates,
    averaging=Averaging(power, "faced" if steps == "adaptive" else "before"),
  )
  solver.theory = constants
  return solver


def _power(gamma: int | None, steps: Steps | float) -> float:
  """Returns the power of t in the weight of iteration t."""
  if gamma is None:
    return 1.0 if steps == "adaptive" else 0.0
  return float(arguments.integer(gamma, "gamma", 0, 2))


def _steps(
  game: CompiledGame,
  horizon: int | None,
  kappa: float | None,
  regularizer: Regularizer,
  steps: Steps | float,
  power: float,
  delta: float | None,
  loss_bounds: LossBounds | None,
) -> AdaptiveSteps | PaperSteps:
  """Returns the constants of the steps."""
  arguments.one_of(regularizer, "regularizer", get_args(Regularizer))
  if isinstance(steps, str):
    arguments.one_of(steps, "steps", get_args(Steps), " or a factor on the paper's")
  largest = max(map(abs, game.payoff_range))
  if not math.isfinite(largest * largest * game.num_leaves):
    raise errors.LossOverflowError(
      f"{game.name} has payoffs of up to {largest:zg}, too large for the sums of their squares. "
      "Scale the game's payoffs down; equilibria do not change."
    )
  if steps == "adaptive":
    if horizon is not None or kappa is not None:
      raise errors.ArgumentError(
        "Adaptive steps, the default, depend on the run and take neither horizon nor kappa. Leave them out, or choose "
        "constant steps with steps='paper'."
      )
    if loss_bounds is not None:
      raise errors.ArgumentError(
        "loss_bounds belongs to constant steps, steps='paper' or a factor; adaptive steps use the D of each infoset."
      )
    delta = arguments.real_number(DELTA if delta is None else delta, "delta", 1e-100, 1e100)
    return adaptive_steps(game, regularizer, delta, power)
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
  factor = 1.0 if steps == "paper" else arguments.positive_number(steps, "steps")
  bounds: LossBounds = "infosets" if loss_bounds is None else loss_bounds
  arguments.one_of(bounds, "loss_bounds", get_args(LossBounds))
  constants = paper_steps(game, regularizer, horizon=horizon, kappa_root=kappa, loss_bounds=bounds)
  return constants.scaled(factor)


def steps_of(solver: Solver) -> AdaptiveSteps | PaperSteps:
  """Returns the constants of a solver's steps.

  Raises:
    ArgumentError: the solver was not made by `StablePredictiveCFRSolver`.
  """
  constants = getattr(solver, "theory", None)
  if not isinstance(constants, AdaptiveSteps | PaperSteps):
    raise errors.ArgumentError(f"{solver!r} was not made by StablePredictiveCFRSolver.")
  return constants


class StepSize(NamedTuple):
  """The constants of one infoset; nan for those that its theory does not have.

  Attributes:
    player: the owner.
    infostate: the information state string.
    depth: the number of the owner's infosets above.
    gamma: the target stability of the strategy from here on.
    kappa: the target stability of the local strategy.
    strategy_norm: B.
    loss_norm: D.
    step: eta; for adaptive steps, that of the next iteration.
  """

  player: int
  infostate: str
  depth: int
  gamma: float
  kappa: float
  strategy_norm: float
  loss_norm: float
  step: float


# The titles of the columns of constants.
_TITLES = {
  "gamma": "gamma",
  "kappa": "kappa",
  "strategy_norm": "B",
  "loss_norm": "D",
  "step": "eta",
}


class StepSizeTable(tuple[StepSize, ...]):
  """The constants of all infosets, by player, parents first; `print` shows a table."""

  def __str__(self) -> str:
    """Returns the table, without columns of nan; infostates are indented by depth."""
    columns = [name for name in _TITLES if not all(math.isnan(getattr(row, name)) for row in self)]
    lines = [
      f"{'player':>6} {'depth':>5} {' '.join(f'{_TITLES[name]:>9}' for name in columns)}  infostate"
    ]
    for row in self:
      numbers = " ".join(f"{getattr(row, name):z9.3g}" for name in columns)
      lines.append(f"{row.player:6} {row.depth:5} {numbers}  {'  ' * row.depth}{row.infostate!r}")
    return "\n".join(lines)


def step_sizes(solver: Solver) -> StepSizeTable:
  """Returns the constants of all infosets; print them for a table. Adaptive steps are those of the next iteration.

  Raises:
    ArgumentError: the solver was not made by `StablePredictiveCFRSolver`.
  """
  constants, game = steps_of(solver), solver.compiled_game
  unknown = np.full(game.num_infosets, np.nan)
  if isinstance(constants, AdaptiveSteps):
    assert isinstance(solver, FullWidthSolver)
    squares = constants.squared_errors(solver.infoset_numbers(0), solver.iteration)
    steps = constants.steps_after(squares)
    columns = np.stack([unknown, unknown, unknown, constants.loss_norm, steps])
  else:
    columns = np.stack(
      [getattr(constants, "steps" if name == "step" else name) for name in _TITLES]
    )
  rows = []
  for player, tree in enumerate(game.treeplexes):
    infosets, above = game.infosets[player], depths(tree)
    for infostate, place in zip(infosets.infostates, infosets.position.tolist(), strict=True):
      numbers = columns[:, tree.first_infoset + place].tolist()
      rows.append(StepSize(player, infostate, int(above[place]), *numbers))
  return StepSizeTable(rows)
