"""Games whose payoffs are linear in parameters, such as sizes of bets, and optimization of these parameters.

Let A_0, A_1, ..., A_K be components of the payoffs, all on the same tree. The payoffs at parameters theta are

    A_0 + sum over k of theta_k A_k

so that a game with new parameters needs no walk of the tree. The derivative of a policy's expected payoffs by theta_k
is its expected value of A_k. At an equilibrium of a zero-sum game, this is the derivative of the game's value too, by
the envelope theorem. Brown and Sandholm, "Regret Transfer and Parameter Optimization" (2014).
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.cfr import CFRPlusSolver
from spiel_cfr.cfr.payoff_transfer import transfer
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiling import compile_game
from spiel_cfr.games.openspiel.walk import enumerate_game
from spiel_cfr.games.payoffs.leaf_rows import LeafRows

__all__ = [
  "LinearGame",
  "kuhn_bets",
  "leduc_bets",
  "linear_game",
  "optimize_parameters",
]

# A function of a terminal state that returns an array of shape (1 + parameters, players): A_0, the payoffs if all
# parameters are 0, and then A_k, the change of the payoffs by one unit of each parameter.
Components: TypeAlias = Callable[[Any], npt.ArrayLike]


def _linear_returns(components: Components, factors: Float64s, state: Any) -> list[float]:
  """Returns the payoffs of a terminal state; `factors` has 1, and then the parameters."""
  result: list[float] = (factors @ np.asarray(components(state))).tolist()
  return result


class LinearGame:
  """A family of games whose payoffs are linear in parameters. Make one with `linear_game`.

      bets = linear_game("kuhn_poker", kuhn_bets)
      game = bets([1.5])

  Attributes:
    base: the game of OpenSpiel.
    num_parameters: the number of parameters.
  """

  @typed
  def __init__(
    self,
    base: EnumeratedGame,
    components: Components,
    leaf_sequences: Int64s,
    leaf_payoffs: Float64s,
    outcomes: Float64s,
  ) -> None:
    """Takes the leaves and the components. Call `linear_game` instead, which computes them.

    Args:
      base: the game of OpenSpiel.
      components: the function that returns the components of a terminal state.
      leaf_sequences: int64 (players, leaves). The last sequence of each player before a leaf.
      leaf_payoffs: float64 (1 + parameters, leaves, players). The components at each leaf, weighted by chance.
      outcomes: float64 (outcomes, 1 + parameters, players). All distinct components of terminal states.
    """
    self.base = base
    self.num_parameters = len(leaf_payoffs) - 1
    self._components, self._outcomes = components, outcomes
    self._leaf_sequences, self._leaf_payoffs = leaf_sequences, leaf_payoffs

  def __repr__(self) -> str:
    return f"<LinearGame of {self.base.name}, {self.num_parameters} parameters>"

  def __call__(self, parameters: Sequence[float] | Float64s) -> EnumeratedGame:
    """Returns the game with these parameters, on the tree of `base`.

    Raises:
      ArgumentError: the number of parameters is wrong, or one is not finite.
    """
    factors = np.concatenate([[1.0], self.checked(parameters)])
    returns = np.einsum("k,okp->op", factors, self._outcomes)
    sums = returns.sum(axis=1)
    is_constant_sum = np.ptp(sums) <= 1e-9 * np.abs(returns).max()
    constant_sum = float(sums[0]) if is_constant_sum else None
    return self.base.with_payoff(
      LeafRows.build(
        self._leaf_sequences.astype(np.uint32),
        np.einsum("k,klp->lp", factors, self._leaf_payoffs),
        self.base.treeplexes,
      ),
      payoff_range=(float(returns.min()), float(returns.max())),
      constant_sum=constant_sum,
      view=self.base.view.with_returns(
        functools.partial(_linear_returns, self._components, factors)
      ),
    )

  def checked(self, parameters: Sequence[float] | Float64s) -> Float64s:
    """Returns parameters as an array of shape (parameters,).

    Raises:
      ArgumentError: the number of parameters is wrong, or one is not finite.
    """
    try:
      result = np.asarray(parameters, np.float64)
    except (TypeError, ValueError, OverflowError):
      result = np.zeros(0) + np.nan
    if result.shape != (self.num_parameters,) or not np.isfinite(result).all():
      raise errors.ArgumentError(
        f"{self!r} takes {self.num_parameters} finite numbers as parameters, not {parameters!r}."
      )
    return result

  def values(self, sequence_form: Float64s) -> Float64s:
    """Returns the expected value of each component to each player, shape (1 + parameters, players).

    At an equilibrium of a zero-sum game the rows after the first are the derivatives of its value.

    Args:
      sequence_form: the policy, shape (sequences,).
    """
    sequence_form = arguments.numbers(sequence_form, "sequence_form", self.base.end)
    reach = np.prod([sequence_form[sequences] for sequences in self._leaf_sequences], axis=0)
    result: Float64s = np.einsum("l,klp->kp", reach, self._leaf_payoffs)
    return result


@typed
def linear_game(game: str | pyspiel.Game, components: Components) -> LinearGame:
  """Compiles a family of games whose payoffs are linear in parameters, with one walk of the tree for each component.

  Args:
    game: an OpenSpiel game or its string, for the tree; its payoffs do not matter.
    components: a function of a terminal state that returns an array of shape (1 + parameters, players): the payoffs if
      all parameters are 0, and the change of the payoffs by one unit of each parameter. `kuhn_bets` and `leduc_bets`
      are examples.

  Raises:
    ArgumentError: the components have another shape, or are not finite.
    GameError: see `compile_game`.
  """
  base = compile_game(game, vector_form=False)
  assert isinstance(base, EnumeratedGame)
  outcomes: dict[bytes, Float64s] = {}
  shape = (0, 0)

  def component(number: int, state: Any) -> list[float]:
    """Returns A_number at a terminal state, after a check of all components there."""
    nonlocal shape
    outcome = np.asarray(components(state), np.float64)
    if not shape[0] and outcome.ndim == 2 and outcome.shape[1] == base.num_players:
      shape = outcome.shape
    if outcome.shape != shape or not np.isfinite(outcome).all():
      raise errors.ArgumentError(
        f"After the history [{state.history_str()}] components returns {outcome.tolist()}; it must always return "
        f"finite numbers of the same shape (1 + parameters, {base.num_players})."
      )
    outcomes.setdefault(outcome.tobytes(), outcome)
    row: list[float] = outcome[number].tolist()
    return row

  payoffs: list[Float64s] = []
  while not payoffs or len(payoffs) < shape[0]:
    number = len(payoffs)
    view = base.view.with_returns(functools.partial(component, number))
    walk = enumerate_game(view, base.num_states, 1 << 62, False)
    payoffs.append(walk.leaf_payoffs)
  sequences = np.array(
    [
      infosets.sequences[discovered].astype(np.int64)
      for infosets, discovered in zip(base.infosets, walk.leaf_sequences, strict=True)
    ]
  )
  return LinearGame(
    base, components, sequences, np.array(payoffs), np.array(list(outcomes.values()))
  )


@typed
def kuhn_bets(state: Any) -> Float64s:
  """Returns the components of Kuhn poker: the payoff of the ante, and that of the bet, whose size is 1 in OpenSpiel."""
  # The loser has paid the ante, or the ante and a bet.
  won = np.array(state.returns())
  called = np.abs(won) > 1
  return np.stack([np.sign(won), np.sign(won) * called])


@typed
def leduc_bets(state: Any) -> Float64s:
  """Returns the components of Leduc poker for two players: the ante, and each player's raise size in each round.

  The parameters are player 0's sizes in the first and the second round, then player 1's; in OpenSpiel 2, 4, 2, 4. A
  call matches the stake of the other player.
  """
  stakes = np.zeros((2, 5))
  stakes[:, 0] = 1.0
  # Two private cards are dealt first. A round ends with a fold, or with a call that is not its first action.
  betting_round, player, num_actions = 0, 0, 0
  betting = iter(state.history()[2:])
  for action in betting:
    # Action 0 folds, 1 calls, and 2 raises.
    if action:
      stakes[player] = stakes[1 - player]
    if action == 2:
      stakes[player, 1 + 2 * player + betting_round] += 1.0
    player, num_actions = 1 - player, num_actions + 1
    if action == 1 and num_actions > 1:
      # Skips the public card.
      next(betting, None)
      betting_round, player, num_actions = 1, 0, 0
  sign = np.sign(state.returns()[0])
  won = stakes[1] if sign > 0 else stakes[0]
  result: Float64s = sign * np.stack([won, -won], axis=1)
  return result


class AscentStep(NamedTuple):
  """A step of `optimize_parameters`: parameters, and the solution of the game there.

  Attributes:
    parameters: float64 (parameters,). The parameters.
    value: the player's expected payoff under the policy found.
    nash_conv: the NashConv of the policy, a bound on the error of the value.
    gradient: float64 (parameters,). The derivative of the value by each parameter.
  """

  parameters: Float64s
  value: float
  nash_conv: float
  gradient: Float64s


@typed
def optimize_parameters(
  game: LinearGame,
  parameters: Sequence[float] | Float64s,
  *,
  player: int = 0,
  steps: int = 50,
  iterations: int = 500,
  length: float = 1.0,
  fixed: Sequence[int] = (),
) -> list[AscentStep]:
  """Maximizes a player's value of the game over the parameters, by gradient ascent with CFR+ and warm starts.

  `LinearGame.values` of an equilibrium is the gradient of the value. Step n has the length length / sqrt(n), and
  parameters stay nonnegative. The search stops where the expected gain of a step is below NashConv, perhaps at a local
  optimum. Brown and Sandholm, "Regret Transfer and Parameter Optimization" (2014).

  Args:
    game: the game, zero-sum for two players at all parameters.
    parameters: the first point, shape (parameters,).
    player: the player whose value to maximize.
    steps: the largest number of steps.
    iterations: the iterations of CFR+ at each point.
    length: the length of the first step, in the unit of the parameters.
    fixed: the numbers of the parameters that stay constant.

  Returns:
    All steps. `max(result, key=lambda step: step.value - step.nash_conv)` has the largest certain value.

  Raises:
    ArgumentError: an argument is invalid.
    UnsupportedGameError: the game is not a constant-sum game of two players.
  """
  player = arguments.integer(player, "player", 0, game.base.num_players - 1)
  steps = arguments.positive_integer(steps, "steps")
  length = arguments.positive_number(length, "length")
  constant = [arguments.integer(number, "fixed", 0, game.num_parameters - 1) for number in fixed]
  point, result = np.maximum(game.checked(parameters), 0.0), list[AscentStep]()
  solver = None
  for number in range(1, steps + 1):
    compiled = game(point)
    if not compiled.is_two_player_constant_sum:
      raise errors.UnsupportedGameError(
        f"{game!r} is not a constant-sum game of two players at {point.tolist()}, so it need not have a value."
      )
    solver = transfer(solver, compiled, keep_average=False) if solver else CFRPlusSolver(compiled)
    solver.run(iterations)
    values = game.values(solver.average_sequence_form())[:, player]
    gradient = values[1:].copy()
    gradient[constant] = 0.0
    step = AscentStep(point, float(values @ [1.0, *point]), solver.nash_conv(), gradient)
    result.append(step)
    norm = float(np.linalg.norm(gradient)) or 1.0
    point = np.maximum(point + length / math.sqrt(number) * gradient / norm, 0.0)
    expected_gain = float(gradient @ (point - step.parameters))
    if expected_gain <= step.nash_conv:
      break
  return result
