"""Stable-predictive optimistic CFR.

Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019). At every
infoset optimistic follow-the-regularized-leader with the last gradient as the prediction of the next. If strategies
move slowly, predictions are good, and the gap of the average strategies of a two-player zero-sum game is O(T^-3/4),
where regret matching has O(T^-1/2). How long steps may be for that is the question, to which there are two answers:
`adaptive_steps` and the paper's, `paper_steps`; docs/theory/stable_predictive.md has them with proofs.

With other numbers of players or payoffs it runs too; regrets are then bounded, but promise no Nash equilibrium.
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
  """CFR with optimistic follow-the-regularized-leader and step sizes that a theory gives.

  Args:
    game: a compiled game, or what `compile_game` takes.
    horizon: for how many iterations constant steps are to be best. It may be exceeded; the bound on the gap then
      stops falling. Adaptive steps need none and take none.
    kappa: how far, at most, a player's sequence form moves in an iteration, in the Euclidean norm, instead of what is
      best for the horizon.
    regularizer: "entropy" or "euclidean".
    steps: "adaptive" for steps that come from the errors of the predictions so far; "paper" for the paper's constant
      ones; a factor by which to multiply the paper's: 100 is the paper's guarantee for 100 kappa.
    alternating_updates: whether a player sees the strategies to which those before it have just updated. Averages of
      adaptive steps then take the strategies after the update for every player but the last.
    gamma: iteration t weighs t^gamma in the average, 0, 1 or 2. Adaptive steps weigh utilities and errors in the same
      way. By default 1 for adaptive steps, and 0 for all others.
    delta: of adaptive steps, how much they are held back, positive, 0.001 by default: V is never below (delta D)^2
      sqrt(t), D what utilities can be at most. Large ones give better bounds before the run, and shorter steps.
    loss_bounds: of constant steps, what D is: "infosets", the default, for what the utilities of each infoset can be at
      most; "payoffs" for the largest payoff times the root of the number of actions, the same for all infosets.

  Raises:
    ArgumentError: neither horizon nor kappa is given where one is needed, or one is given where it means nothing, or
      is not positive; a factor is not positive; or a name is unknown.
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
  """Returns the power of t that iteration t weighs."""
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
  """Returns what theory knows of each infoset."""
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
        "Adaptive steps, the default, come from the run and need neither horizon nor kappa. Leave them out, or choose "
        "constant steps with steps='paper'."
      )
    if loss_bounds is not None:
      raise errors.ArgumentError(
        "loss_bounds belongs to constant steps, steps='paper' or a factor; adaptive ones know D of each infoset."
      )
    delta = arguments.positive_number(DELTA if delta is None else delta, "delta")
    return adaptive_steps(game, regularizer, delta, power)
  if delta is not None:
    raise errors.ArgumentError("delta belongs to steps='adaptive'; other steps are constant.")
  if horizon is None and kappa is None:
    raise errors.ArgumentError(
      "Constant step sizes depend on how long the solver will run: give horizon=, the number of iterations, or kappa=, "
      "how far a strategy may move in one. steps='adaptive' needs neither."
    )
  if horizon is not None:
    horizon = arguments.positive_integer(horizon, "horizon")
  if kappa is not None:
    kappa = arguments.positive_number(kappa, "kappa")
  factor = 1.0 if steps == "paper" else arguments.positive_number(steps, "steps")
  bounds: LossBounds = loss_bounds or "infosets"
  arguments.one_of(bounds, "loss_bounds", get_args(LossBounds))
  constants = paper_steps(game, regularizer, horizon=horizon, kappa_root=kappa, loss_bounds=bounds)
  return constants.scaled(factor)


def steps_of(solver: Solver) -> AdaptiveSteps | PaperSteps:
  """Returns what theory says of a solver's steps.

  Raises:
    ArgumentError: the solver was not made by `StablePredictiveCFRSolver`.
  """
  constants = getattr(solver, "theory", None)
  if not isinstance(constants, AdaptiveSteps | PaperSteps):
    raise errors.ArgumentError(f"{solver!r} was not made by StablePredictiveCFRSolver.")
  return constants


class StepSize(NamedTuple):
  """The constants of one infoset; nan what its theory does not know.

  Attributes:
    player: whose infoset it is.
    infostate: its information state string.
    depth: how many infosets of the player lie above it.
    gamma: the stability that is wanted of the strategy from here on.
    kappa: the stability of the local strategy.
    strategy_norm: B.
    loss_norm: D.
    step: eta; adaptive ones, that of the next iteration.
  """

  player: int
  infostate: str
  depth: int
  gamma: float
  kappa: float
  strategy_norm: float
  loss_norm: float
  step: float


# Titles of its columns of constants.
_TITLES = {
  "gamma": "gamma",
  "kappa": "kappa",
  "strategy_norm": "B",
  "loss_norm": "D",
  "step": "eta",
}


class StepSizeTable(tuple[StepSize, ...]):
  """The constants of every infoset, players and parents first; `print` shows them as a table."""

  def __str__(self) -> str:
    """Returns the table, without columns of nan: infostates are set in by their depth."""
    known = [name for name in _TITLES if not all(math.isnan(getattr(row, name)) for row in self)]
    lines = [
      f"{'player':>6} {'depth':>5} {' '.join(f'{_TITLES[name]:>9}' for name in known)}  infostate"
    ]
    for row in self:
      numbers = " ".join(f"{getattr(row, name):z9.3g}" for name in known)
      lines.append(f"{row.player:6} {row.depth:5} {numbers}  {'  ' * row.depth}{row.infostate!r}")
    return "\n".join(lines)


def step_sizes(solver: Solver) -> StepSizeTable:
  """Returns the constants of every infoset; print them for a table. Adaptive steps are the next iteration's.

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
    own, above = game.infosets[player], depths(tree)
    for infostate, place in zip(own.infostates, own.position.tolist(), strict=True):
      numbers = columns[:, tree.first_infoset + place].tolist()
      rows.append(StepSize(player, infostate, int(above[place]), *numbers))
  return StepSizeTable(rows)
