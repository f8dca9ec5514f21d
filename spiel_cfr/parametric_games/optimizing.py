"""Parameters of a game, such as sizes of bets, that are best for a player who plays it well."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.cfr.warm_start import transfer
from spiel_cfr.parametric_games.linear_games import LinearGame


@dataclasses.dataclass(frozen=True)
class Step:
  """A point on the way.

  Attributes:
    parameters: where it is, shape (parameters,).
    value: what the player expects there.
    nash_conv: of the policy that says so, which is how uncertain the value is.
    gradient: how the value changes with each parameter, shape (parameters,).
  """

  parameters: Float64s
  value: float
  nash_conv: float
  gradient: Float64s


@dataclasses.dataclass(frozen=True)
class Optimum:
  """What `optimize_parameters` has found.

  Attributes:
    steps: every point on the way.
    solver: of the game at the last of them.
    why: why it stopped.
  """

  steps: tuple[Step, ...]
  solver: Any
  why: str

  @property
  def best(self) -> Step:
    """The point of the highest value less what is uncertain about it."""
    return max(self.steps, key=lambda step: step.value - step.nash_conv)

  def __repr__(self) -> str:
    """Returns one line."""
    best = self.best
    return (
      f"<Optimum {np.round(best.parameters, 6).tolist()}: value {best.value:.6g}, NashConv {best.nash_conv:.2g}, "
      f"{len(self.steps)} steps, {self.why}>"
    )


def optimize_parameters(
  game: LinearGame,
  parameters: Sequence[float] | Float64s,
  *,
  player: int = 0,
  steps: int = 50,
  iterations: int = 500,
  length: float = 1.0,
  bounds: tuple[float, float] = (0.0, math.inf),
  fixed: Sequence[int] = (),
  solver: str = "cfr+",
) -> Optimum:
  """Follows the gradient of the game's value for a player, each game starting warm from the last.

  By the envelope theorem the gradient of a zero-sum game's value is what the components are worth under an
  equilibrium, see `LinearGame.values`. Step n is length / sqrt(n) long. It stops where a step would gain less than
  NashConv, of which it can't be sure; that may be a local optimum. Brown and Sandholm, "Regret Transfer and Parameter
  Optimization" (2014).

  Args:
    game: the game, zero-sum for two players whatever its parameters are.
    parameters: where to begin, shape (parameters,).
    player: whose value is to rise.
    steps: how many, at most.
    iterations: of the solver at each point.
    length: of the first step, in the parameters' unit.
    bounds: the least and the most that any parameter may be.
    fixed: the numbers of the parameters that stay as they are.
    solver: a name in the catalogue, of a full-width solver.

  Raises:
    ArgumentError: an argument makes no sense.
    UnsupportedGameError: the game is not a constant-sum game of two players.
    WarmStartError: the solver can't start warm.
  """
  player = arguments.integer(player, "player", 0, game.base.num_players - 1)
  steps = arguments.positive_integer(steps, "steps")
  iterations = arguments.positive_integer(iterations, "iterations")
  length = arguments.positive_number(length, "length")
  low = arguments.real_number(bounds[0], "bounds")
  high = arguments.real_number(bounds[1], "bounds", low)
  held = [arguments.integer(each, "fixed", 0, game.num_parameters - 1) for each in fixed]
  here = np.clip(game.checked(parameters), low, high)
  way: list[Step] = []
  current: Any = None
  why = "as many steps as were asked for"
  for number in range(1, steps + 1):
    compiled = game(here)
    if not compiled.is_two_player_constant_sum:
      raise errors.UnsupportedGameError(
        f"{game!r} is not a constant-sum game of two players at {here.tolist()}, so that it need not have a value."
      )
    if current is None:
      current = catalogue.make(solver, compiled, steps * iterations)
      if not hasattr(current, "warm_start"):
        raise errors.ArgumentError(f"{solver!r} is no full-width solver, and can't start warm.")
    else:
      current = transfer(current, compiled, keep_average=False)
    current.run(iterations)
    values = game.values(current.average_sequence_form())[:, player]
    gradient = values[1:].copy()
    gradient[held] = 0.0
    way.append(Step(here, float(values @ [1.0, *here]), current.nash_conv(), gradient))
    norm = float(np.linalg.norm(gradient))
    moved = np.clip(here + length / math.sqrt(number) * gradient / (norm or 1.0), low, high)
    if float(gradient @ (moved - here)) <= way[-1].nash_conv:
      why = "a step would gain less than NashConv"
      break
    here = moved
  return Optimum(tuple(way), current, why)
