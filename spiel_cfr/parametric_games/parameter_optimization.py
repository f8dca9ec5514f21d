"""Parameters of a game, such as sizes of bets, that are best for a player who plays it well."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.cfr.cfr import CFRPlusSolver
from spiel_cfr.cfr.warm_start import transfer
from spiel_cfr.parametric_games.linear_games import LinearGame


class Step(NamedTuple):
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


def optimize_parameters(
  game: LinearGame,
  parameters: Sequence[float] | Float64s,
  *,
  player: int = 0,
  steps: int = 50,
  iterations: int = 500,
  length: float = 1.0,
  fixed: Sequence[int] = (),
) -> list[Step]:
  """Follows the gradient of the game's value for a player with CFR+, each game starting warm from the last.

  By the envelope theorem the gradient of a zero-sum game's value is what the components are worth under an
  equilibrium, see `LinearGame.values`. Step n is length / sqrt(n) long, and no parameter becomes negative. It stops
  where a step would gain less than NashConv, of which it can't be sure; that may be a local optimum. Brown and
  Sandholm, "Regret Transfer and Parameter Optimization" (2014).

  Args:
    game: the game, zero-sum for two players whatever its parameters are.
    parameters: where to begin, shape (parameters,).
    player: whose value is to rise.
    steps: how many, at most.
    iterations: of CFR+ at each point.
    length: of the first step, in the parameters' unit.
    fixed: the numbers of the parameters that stay as they are.

  Returns:
    Every point on the way; `max(found, key=lambda step: step.value - step.nash_conv)` is the best that is certain.

  Raises:
    ArgumentError: an argument makes no sense.
    UnsupportedGameError: the game is not a constant-sum game of two players.
  """
  player = arguments.integer(player, "player", 0, game.base.num_players - 1)
  steps = arguments.positive_integer(steps, "steps")
  length = arguments.positive_number(length, "length")
  stay = [arguments.integer(each, "fixed", 0, game.num_parameters - 1) for each in fixed]
  here, found = np.maximum(game.checked(parameters), 0.0), list[Step]()
  solver = None
  for number in range(1, steps + 1):
    compiled = game(here)
    if not compiled.is_two_player_constant_sum:
      raise errors.UnsupportedGameError(
        f"{game!r} is not a constant-sum game of two players at {here.tolist()}, so that it need not have a value."
      )
    solver = transfer(solver, compiled, keep_average=False) if solver else CFRPlusSolver(compiled)
    solver.run(iterations)
    values = game.values(solver.average_sequence_form())[:, player]
    gradient = values[1:].copy()
    gradient[stay] = 0.0
    found.append(Step(here, float(values @ [1.0, *here]), solver.nash_conv(), gradient))
    norm = float(np.linalg.norm(gradient)) or 1.0
    here = np.maximum(here + length / math.sqrt(number) * gradient / norm, 0.0)
    if float(gradient @ (here - found[-1].parameters)) <= found[-1].nash_conv:
      break
  return found
