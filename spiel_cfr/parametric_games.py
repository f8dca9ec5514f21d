"""Games whose payoffs are linear in parameters, such as the sizes of bets, and the parameters best for a player.

With components A_0, A_1, ..., A_K of the payoffs, every one on the same tree, the payoffs at parameters theta are
A_0 + sum_k theta_k A_k, so that neither the tree nor the components are ever walked again. What the players get, and
how that changes with a parameter while they play on, are linear in the components too; at an equilibrium of a zero-sum
game that is how its value changes, by the envelope theorem. Brown and Sandholm, "Regret Transfer and Parameter
Optimization" (2014).
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
from spiel_cfr._util.doors import typed
from spiel_cfr.cfr.cfr import CFRPlusSolver
from spiel_cfr.cfr.warm_start import transfer
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

# A terminal state -> an array of shape (1 + parameters, players): what each player gets whatever the parameters are,
# and what it gets more with each unit of each.
Components: TypeAlias = Callable[[Any], npt.ArrayLike]


def _linear_returns(components: Components, factors: Float64s, state: Any) -> list[float]:
  """Returns what a terminal state is worth to each player; `factors` are 1 and the parameters."""
  result: list[float] = (factors @ np.asarray(components(state))).tolist()
  return result


class LinearGame:
  """A game for every value of some parameters. Make one with `linear_game`.

      bets = linear_game("kuhn_poker", kuhn_bets)
      game = bets([1.5])

  Attributes:
    base: the game as OpenSpiel has it.
    num_parameters: how many parameters there are.
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
    """Takes leaves, of shapes (players, leaves) and, weighted by chance, (1 + parameters, leaves, players).

    Outcomes are the different components of terminal states, shape (outcomes, 1 + parameters, players).
    """
    self.base = base
    self.num_parameters = len(leaf_payoffs) - 1
    self._components, self._outcomes = components, outcomes
    self._leaf_sequences, self._leaf_payoffs = leaf_sequences, leaf_payoffs

  def __repr__(self) -> str:
    return f"<LinearGame of {self.base.name}, {self.num_parameters} parameters>"

  def __call__(self, parameters: Sequence[float] | Float64s) -> EnumeratedGame:
    """Returns the game at these parameters; its tree is that of `base`.

    Raises:
      ArgumentError: they are not as many finite numbers as there are parameters.
    """
    factors = np.concatenate([[1.0], self.checked(parameters)])
    returns = np.einsum("k,okp->op", factors, self._outcomes)
    sums = returns.sum(axis=1)
    constant = float(sums[0]) if np.ptp(sums) <= 1e-9 * np.abs(returns).max() else None
    return self.base.with_payoff(
      LeafRows.build(
        self._leaf_sequences.astype(np.uint32),
        np.einsum("k,klp->lp", factors, self._leaf_payoffs),
        self.base.treeplexes,
      ),
      payoff_range=(float(returns.min()), float(returns.max())),
      constant_sum=constant,
      view=self.base.view.with_returns(
        functools.partial(_linear_returns, self._components, factors)
      ),
    )

  def checked(self, parameters: Sequence[float] | Float64s) -> Float64s:
    """Returns parameters as an array of shape (parameters,).

    Raises:
      ArgumentError: they are not as many finite numbers as there are parameters.
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
    """Returns what each component is worth to each player, shape (1 + parameters, players).

    At an equilibrium of a zero-sum game the rows after the first are the derivatives of its value.

    Args:
      sequence_form: how they play, shape (sequences,).
    """
    reach = np.prod([sequence_form[own] for own in self._leaf_sequences], axis=0)
    result: Float64s = np.einsum("l,klp->kp", reach, self._leaf_payoffs)
    return result


@typed
def linear_game(game: str | pyspiel.Game, components: Components) -> LinearGame:
  """Compiles a game whose payoffs are linear in parameters: one walk for the tree, one for each component.

  Args:
    game: an OpenSpiel game or its string, for the tree; what it returns does not matter.
    components: takes a terminal state; returns an array of shape (1 + parameters, players), what the players get at
      parameters of 0, and for each parameter, what they get more for a unit of it. `kuhn_bets` and `leduc_bets` are
      two.

  Raises:
    ArgumentError: the components are not of that shape, or not finite.
    GameError: see `compile_game`.
  """
  base = compile_game(game, vector_form=False)
  assert isinstance(base, EnumeratedGame)
  seen: dict[bytes, Float64s] = {}
  shape = (0, 0)

  def component(number: int, state: Any) -> list[float]:
    nonlocal shape
    found = np.asarray(components(state), np.float64)
    if not shape[0] and found.ndim == 2 and found.shape[1] == base.num_players:
      shape = found.shape
    if found.shape != shape or not np.isfinite(found).all():
      raise errors.ArgumentError(
        f"After the history [{state.history_str()}] components returns {found.tolist()}; it must always return finite "
        f"numbers of the same shape (1 + parameters, {base.num_players})."
      )
    seen.setdefault(found.tobytes(), found)
    row: list[float] = found[number].tolist()
    return row

  payoffs: list[Float64s] = []
  while not payoffs or len(payoffs) < shape[0]:
    number = len(payoffs)
    view = base.view.with_returns(functools.partial(component, number))
    walk = enumerate_game(view, base.num_states, 1 << 62, False)
    payoffs.append(walk.leaf_payoffs)
  sequences = np.array(
    [_placed(base, player, own) for player, own in enumerate(walk.leaf_sequences.astype(np.int64))]
  )
  return LinearGame(base, components, sequences, np.array(payoffs), np.array(list(seen.values())))


def _placed(game: EnumeratedGame, player: int, sequences: Int64s) -> Int64s:
  """Returns where a player's sequences are that are numbered in order of discovery, 0 the empty one."""
  own, first = game.infosets[player], sum(len(each) for each in game.actions[:player])
  places = game.all_action_sequences[first : first + len(own.actions)]
  result: Int64s = np.concatenate([[game.treeplexes[player].root], places])[sequences]
  return result


@typed
def kuhn_bets(state: Any) -> Float64s:
  """Components of Kuhn poker: the ante of 1, and the size of the bet, of which OpenSpiel's is 1."""
  # Whoever loses has put in the ante, or the ante and a bet.
  won = np.array(state.returns())
  called = np.abs(won) > 1
  return np.stack([np.sign(won), np.sign(won) * called])


@typed
def leduc_bets(state: Any) -> Float64s:
  """Components of Leduc poker with two players: the ante, and each player's size of raises in each round.

  The parameters are player 0's sizes in the first and the second round, then player 1's; OpenSpiel's are 2, 4, 2, 4. A
  player who calls puts in as much as the other has.
  """
  stakes = np.zeros((2, 5))
  stakes[:, 0] = 1.0
  # Two cards are dealt; then a round lasts until somebody calls who is not the first to act, or folds.
  second, player, acted = 0, 0, 0
  betting = iter(state.history()[2:])
  for action in betting:
    if action:
      stakes[player] = stakes[1 - player]
    if action == 2:
      stakes[player, 1 + 2 * player + second] += 1.0
    player, acted = 1 - player, acted + 1
    if action == 1 and acted > 1:
      # The public card.
      next(betting, None)
      second, player, acted = 1, 0, 0
  sign = np.sign(state.returns()[0])
  won = stakes[1] if sign > 0 else stakes[0]
  result: Float64s = sign * np.stack([won, -won], axis=1)
  return result


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
