"""Evaluation of policies: expected values, best responses, NashConv and exploitability.

Names and definitions are those of OpenSpiel's `exploitability` module; NashConv is from Lanctot et al., "A Unified
Game-Theoretic Approach to Multiagent Reinforcement Learning" (2017). All values are expected payoffs in the game's
units, and exact for any number of players. A best response costs one gradient and one backward pass: the gradient of
the expected payoff in the sequence form, computed without automatic differentiation, and a pass from the leaves to the
root.
"""

import dataclasses
import math
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, aligned_zeros
from spiel_cfr._util import arguments
from spiel_cfr.evaluation.evaluator import Evaluator
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import undivided
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.policies import forms, open_spiel


class NashConv(NamedTuple):
  """NashConv and its parts.

  Attributes:
    nash_conv: the sum of `player_improvements`.
    player_improvements: float64 (players,). The gain of each player by a best response.
  """

  nash_conv: float
  player_improvements: Float64s

  def __repr__(self) -> str:
    """Returns one line with both."""
    gains = ", ".join(f"{gain:z.6g}" for gain in self.player_improvements.tolist())
    return f"<NashConv {self.nash_conv:z.6g}: players gain {gains}>"


class BestResponse(NamedTuple):
  """A best response to the other players' policies.

  Attributes:
    value: the expected utility of the best response.
    policy: the best response as infostate -> action: the first of several best actions; at infosets that the others'
      policies never reach, any action.
  """

  value: float
  policy: dict[str, int]

  def __repr__(self) -> str:
    """Returns one line with the value and the number of infosets of the policy."""
    return f"<BestResponse: value {self.value:z.6g}, actions at {len(self.policy):,} infosets>"


def expected_values(game: AnyGame, policies: open_spiel.AnyPolicy) -> Float64s:
  """Returns the expected payoff of each player if all play a policy, shape (players,).

  Args:
    game: the game; compile it first for several calls.
    policies: anything that `policies.from_policy` reads.

  Raises:
    PolicyError: the policy is for another game.
    GameError: see `compile_game`.
  """
  return evaluate(*_prepare(game, policies)).expected_values


@overload
def nash_conv(
  game: AnyGame, policies: open_spiel.AnyPolicy, return_only_nash_conv: Literal[True] = ...
) -> float: ...


@overload
def nash_conv(
  game: AnyGame, policies: open_spiel.AnyPolicy, return_only_nash_conv: bool
) -> float | NashConv: ...


def nash_conv(
  game: AnyGame,
  policies: open_spiel.AnyPolicy,
  return_only_nash_conv: bool = True,
) -> float | NashConv:
  """Returns the sum over the players of the gain by a best response.

  Args:
    game: the game; compile it first for several calls.
    policies: anything that `policies.from_policy` reads.
    return_only_nash_conv: whether to return the sum only, without the gain of each player.

  Raises:
    PolicyError: the policy is for another game.
    GameError: see `compile_game`.
  """
  result = evaluate(*_prepare(game, policies))
  if return_only_nash_conv:
    return result.nash_conv
  return NashConv(result.nash_conv, result.best_response_values - result.expected_values)


def exploitability(game: AnyGame, policies: open_spiel.AnyPolicy) -> float:
  """Returns NashConv / 2: the gain of a best response to the policy, averaged over the two players.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players; use `nash_conv`.
    PolicyError: the policy is for another game.
    GameError: see `compile_game`.
  """
  compiled, sequence = _prepare(game, policies)
  check_two_player_constant_sum(compiled)
  return evaluate(compiled, sequence).exploitability


def best_response(game: AnyGame, policies: open_spiel.AnyPolicy, player: int) -> BestResponse:
  """Returns a best response of `player`, and its value.

  Raises:
    ArgumentError: the game has no such player.
    PolicyError: the policy is for another game.
    GameError: see `compile_game`.
  """
  compiled, sequence = _prepare(game, policies)
  player = arguments.integer(player, "player", 0, compiled.num_players - 1)
  result = evaluate(compiled, sequence, responses=True)
  first = sum(map(len, compiled.actions[:player]))
  actions_of_player = slice(first, first + len(compiled.actions[player]))
  chosen = result.best_responses[compiled.all_action_sequences[actions_of_player]] > 0
  actions = compiled.actions[player][chosen].tolist()
  return BestResponse(
    float(result.best_response_values[player]),
    dict(zip(compiled.infostates[player], actions, strict=True)),
  )


def check_two_player_constant_sum(compiled: CompiledGame) -> None:
  """Raises UnsupportedGameError for a game that is not a constant-sum game of two players."""
  if not compiled.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      f"{compiled.name} is not a constant-sum game of two players. Other games need not have a value, so their "
      "exploitability is undefined. Use nash_conv instead; `solve` accepts such games."
    )


_NONE = aligned_zeros(0)
# The largest games whose evaluators are kept. In small games an evaluator takes longer to make than to use.
_MOST_SEQUENCES = 1 << 20


class Evaluated:
  """Base class of policies with their values.

  Attributes:
    compiled_game: the game as arrays.
    expected_values: float64 (players,). The expected payoff of each player if all play the policy.
    best_response_values: float64 (players,). The expected payoff of each player's best response to the others.
  """

  compiled_game: CompiledGame
  expected_values: Float64s
  best_response_values: Float64s

  @property
  def nash_conv(self) -> float:
    """The sum of the players' gains by best responses."""
    return float((self.best_response_values - self.expected_values).sum())

  @property
  def exploitability(self) -> float:
    """NashConv / 2.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players.
    """
    check_two_player_constant_sum(self.compiled_game)
    return self.nash_conv / 2

  @property
  def value_bounds(self) -> tuple[float, float]:
    """Lower and upper bounds of the value of the game to player 0.

    The lower bound is the payoff that player 0's policy guarantees. The upper bound is the payoff of player 0's best
    response to the policy of player 1.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players.
    """
    check_two_player_constant_sum(self.compiled_game)
    first, second = self.best_response_values.tolist()
    return (self.compiled_game.constant_sum or 0.0) - second, first


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation(Evaluated):
  """The result of `evaluate`, see `Evaluated`.

  Attributes:
    best_responses: float64 (sequences,). The best responses in behavioral form; empty without `responses`.
  """

  compiled_game: CompiledGame
  expected_values: Float64s
  best_response_values: Float64s
  best_responses: Float64s


def _prepare(game: AnyGame, policies: open_spiel.AnyPolicy) -> tuple[CompiledGame, Float64s]:
  compiled = compile_game(game).original
  check_payoffs(compiled.name, compiled.payoff_range)
  return compiled, forms.sequence_form(compiled, open_spiel.from_policy(compiled, policies))


def evaluate(
  compiled: CompiledGame, sequence_form: npt.NDArray[Any], *, responses: bool = False
) -> Evaluation:
  """Evaluates a policy in sequence form.

  Args:
    compiled: the game.
    sequence_form: shape (sequences,), float64 or float32. The policy, or a positive multiple of each player's part.
    responses: whether to return the best responses too.

  Raises:
    NotFiniteError: the policy or its value is not finite.
    PolicyError: the array has another shape.
  """
  if sequence_form.shape != (compiled.end,):
    raise errors.PolicyError(
      f"A policy of this game in sequence form has the shape ({compiled.end},), not {sequence_form.shape}."
    )
  totals = [sequence_form.item(treeplex.root) for treeplex in compiled.treeplexes]
  if not all(total > 0 for total in totals):
    raise errors.NotFiniteError(
      "A sequence form, or a sum of sequence forms, must be positive at the root of each player."
    )
  found = aligned_zeros(compiled.end) if responses else None
  # In the sums of a long run, rounding makes the actions at an infoset differ slightly in sum from the sequence above.
  # After a million iterations best responses gain about 1e-12 of the payoffs from that. Below `close`, NashConv is
  # therefore computed again from normalized strategies.
  lowest, highest = compiled.payoff_range
  close = 0.01 * math.sqrt(np.finfo(compiled.dtype).eps) * (highest - lowest)
  # An evaluator serves one call at a time, and calls may come from several threads.
  try:
    evaluator: Evaluator = compiled.idle_evaluators.pop()
  except IndexError:
    evaluator = Evaluator(compiled.partition or undivided(compiled.every_infoset))
  values = evaluator(sequence_form, totals, found)
  if values[:, 1].sum() - values[:, 0].sum() < close:
    values = evaluator(sequence_form, totals, found, normalizes=True)
  _check_values(values)
  # After an error the evaluator is dropped: threads may still use its arrays, or padding may be not finite.
  if compiled.end <= _MOST_SEQUENCES:
    compiled.idle_evaluators.append(evaluator)
  return Evaluation(compiled, values[:, 0], values[:, 1], _NONE if found is None else found)


def original_nash_conv(compiled: CompiledGame, sequence_form: npt.NDArray[Any]) -> float:
  """Returns the NashConv of a policy; for an abstraction that loses information, in the full game. See `evaluate`.

  Raises:
    NotFiniteError: the policy or its value is not finite.
  """
  if compiled.is_exact:
    return evaluate(compiled, sequence_form).nash_conv
  return evaluate(compiled.original, compiled.to_original(sequence_form)).nash_conv


def losses(compiled: CompiledGame, evaluation: Evaluation) -> Float64s:
  """Returns the loss of each player's strategy, shape (players,). Losses sum to NashConv.

  In constant-sum games of two players the loss is the value of the opponent's best response minus half of the constant
  sum, which does not depend on the other strategy. In other games all players have the same share of NashConv.
  """
  if compiled.is_two_player_constant_sum and compiled.constant_sum is not None:
    result: Float64s = evaluation.best_response_values[::-1] - compiled.constant_sum / 2
    return result
  return np.full(compiled.num_players, evaluation.nash_conv / compiled.num_players)


def _check_values(values: Float64s) -> None:
  """Checks the values of policy and best response, a row for each player.

  Raises:
    NotFiniteError: a value is NaN or infinite.
  """
  # The sum alone is quick to check; it may overflow though all values are finite.
  if not math.isfinite(values.sum()) and not np.isfinite(values).all():
    raise errors.NotFiniteError(
      f"The players expect {values[:, 0].tolist()}, and with best responses {values[:, 1].tolist()}: the policy has "
      "numbers that are not finite, or payoffs are too large to be added up."
    )
