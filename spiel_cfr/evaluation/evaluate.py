"""Evaluation of policies: expected values, best responses, NashConv and exploitability.

Names and definitions are those of OpenSpiel's `exploitability` module; NashConv is from Lanctot et al., "A Unified
Game-Theoretic Approach to Multiagent Reinforcement Learning" (2017). All values are expected payoffs in the game's
units, and exact for any number of players.

A best response takes two passes. The first computes the gradient of the expected payoff with respect to the player's
sequence form, without automatic differentiation. The second goes from the leaves to the root, and takes the best action
of each infoset.
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
  """NashConv, and the gain of each player.

  Attributes:
    nash_conv: float. The sum of `player_improvements`.
    player_improvements: float64 (players,). The gain of each player by a best response.
  """

  nash_conv: float
  player_improvements: Float64s

  def __repr__(self) -> str:
    """Returns one line with NashConv and the gains."""
    gains = ", ".join(f"{gain:z.6g}" for gain in self.player_improvements.tolist())
    return f"<NashConv {self.nash_conv:z.6g}: players gain {gains}>"


class BestResponse(NamedTuple):
  """A best response to the other players' policies.

  Attributes:
    value: float. The expected utility of the best response.
    policy: dict of str to int. The best response as infostate -> action. Of several best actions it has the first. At
      infosets that the others' policies never reach, the action is arbitrary.
  """

  value: float
  policy: dict[str, int]

  def __repr__(self) -> str:
    """Returns one line with the value and the number of infosets of the policy."""
    return f"<BestResponse: value {self.value:z.6g}, actions at {len(self.policy):,} infosets>"


def expected_values(game: AnyGame, policy: open_spiel.AnyPolicy) -> Float64s:
  """Returns the expected payoff of each player if all play a policy, shape (players,).

  Args:
    game: the game; compile it first for several calls.
    policy: anything that `policies.from_policy` reads.

  Raises:
    PolicyError: the policy is for another game.
    GameError: see `compile_game`.
  """
  return evaluate(*_read_policy(game, policy)).expected_values


@overload
def nash_conv(
  game: AnyGame, policy: open_spiel.AnyPolicy, return_only_nash_conv: Literal[True] = ...
) -> float: ...


@overload
def nash_conv(
  game: AnyGame, policy: open_spiel.AnyPolicy, return_only_nash_conv: bool
) -> float | NashConv: ...


def nash_conv(
  game: AnyGame,
  policy: open_spiel.AnyPolicy,
  return_only_nash_conv: bool = True,
) -> float | NashConv:
  """Returns NashConv: the sum over the players of the gain by a best response to the others' policies.

  Args:
    game: the game; compile it first for several calls.
    policy: anything that `policies.from_policy` reads.
    return_only_nash_conv: True to return the sum as a float, False to return a `NashConv` with the gain of each player.

  Raises:
    PolicyError: the policy is for another game.
    GameError: see `compile_game`.
  """
  arguments.boolean(return_only_nash_conv, "return_only_nash_conv")
  result = evaluate(*_read_policy(game, policy))
  if return_only_nash_conv:
    return result.nash_conv
  return NashConv(result.nash_conv, result.best_response_values - result.expected_values)


def exploitability(game: AnyGame, policy: open_spiel.AnyPolicy) -> float:
  """Returns NashConv / 2: the gain of a best response to the policy, averaged over the two players.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players; use `nash_conv`.
    PolicyError: the policy is for another game.
    GameError: see `compile_game`.
  """
  compiled, sequence_form = _read_policy(game, policy)
  check_two_player_constant_sum(compiled)
  return evaluate(compiled, sequence_form).exploitability


def best_response(game: AnyGame, policy: open_spiel.AnyPolicy, player: int) -> BestResponse:
  """Returns a best response of `player`, and its value.

  Raises:
    ArgumentError: the game has no such player.
    PolicyError: the policy is for another game.
    GameError: see `compile_game`.
  """
  compiled, sequence_form = _read_policy(game, policy)
  player = arguments.integer(player, "player", 0, compiled.num_players - 1)
  result = evaluate(compiled, sequence_form, responses=True)
  chosen = result.best_responses[compiled.infosets[player].action_sequences] > 0
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


_NO_RESPONSES = aligned_zeros(0)
# Games with at most this many sequences keep their evaluators for later calls, because in small games making an
# evaluator takes longer than using it. In larger games, the memory of an evaluator matters more.
_MOST_SEQUENCES = 1 << 20


class Evaluated:
  """Base class of evaluated policies: NashConv, exploitability and bounds from the values of best responses.

  Attributes:
    compiled_game: `CompiledGame`. The game.
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
  """The result of `evaluate`: the values of a policy, and the best responses to it.

  Attributes:
    compiled_game: `CompiledGame`. The game.
    expected_values: float64 (players,). The expected payoff of each player if all play the policy.
    best_response_values: float64 (players,). The expected payoff of each player's best response to the others.
    best_responses: float64 (sequences,). The best responses in behavioral form; empty unless they were asked for.
  """

  compiled_game: CompiledGame
  expected_values: Float64s
  best_response_values: Float64s
  best_responses: Float64s


def _read_policy(game: AnyGame, policy: open_spiel.AnyPolicy) -> tuple[CompiledGame, Float64s]:
  """Returns the full game, compiled, and the policy in sequence form, shape (sequences,)."""
  compiled = compile_game(game).original
  check_payoffs(compiled.name, compiled.payoff_range)
  return compiled, forms.sequence_form(compiled, open_spiel.from_policy(compiled, policy))


def evaluate(
  compiled: CompiledGame, sequence_form: npt.NDArray[Any], *, responses: bool = False
) -> Evaluation:
  """Evaluates a policy in sequence form.

  Args:
    compiled: the game.
    sequence_form: float64 or float32, shape (sequences,). Each player's strategy, or a positive multiple of it, such as
      a sum over iterations.
    responses: True to return the best responses too.

  Raises:
    NotFiniteError: the policy or its value is not finite.
    PolicyError: the array has another shape.
  """
  scales = _empty_sequence_entries(compiled, sequence_form)
  best_responses = aligned_zeros(compiled.end) if responses else None
  # An evaluator serves one call at a time, and several threads may call.
  try:
    evaluator: Evaluator = compiled.idle_evaluators.pop()
  except IndexError:
    evaluator = Evaluator(compiled.partition or undivided(compiled.every_infoset))
  values = evaluator(sequence_form, scales, best_responses)
  if values[:, 1].sum() - values[:, 0].sum() < _least_reliable_nash_conv(compiled):
    values = evaluator(sequence_form, scales, best_responses, normalizes=True)
  _check_values(values)
  # An error drops the evaluator: threads may still use its arrays, or its padding may contain NaN.
  if compiled.end <= _MOST_SEQUENCES:
    compiled.idle_evaluators.append(evaluator)
  return Evaluation(
    compiled,
    values[:, 0],
    values[:, 1],
    _NO_RESPONSES if best_responses is None else best_responses,
  )


def _empty_sequence_entries(compiled: CompiledGame, sequence_form: npt.NDArray[Any]) -> list[float]:
  """Returns each player's entry at its empty sequence: the factor by which its strategy is multiplied.

  Raises:
    NotFiniteError: an entry is not positive.
    PolicyError: the array does not have shape (sequences,).
  """
  if sequence_form.shape != (compiled.end,):
    raise errors.PolicyError(
      f"A policy of this game in sequence form has the shape ({compiled.end},), not {sequence_form.shape}."
    )
  entries: list[float] = [sequence_form.item(treeplex.root) for treeplex in compiled.treeplexes]
  if not all(entry > 0 for entry in entries):
    raise errors.NotFiniteError(
      "A sequence form, or a sum of sequence forms, must be positive at the root of each player."
    )
  return entries


def _least_reliable_nash_conv(compiled: CompiledGame) -> float:
  """Returns the NashConv below which rounding in the sequence form matters, so that it must be normalized first.

  In the sum of a long run, the actions of an infoset differ by rounding from the sequence above. Best responses gain
  from that: about 1e-12 of the payoffs after a million iterations in float64.
  """
  lowest, highest = compiled.payoff_range
  return 0.01 * math.sqrt(np.finfo(compiled.dtype).eps) * (highest - lowest)


def original_nash_conv(compiled: CompiledGame, sequence_form: npt.NDArray[Any]) -> float:
  """Returns the NashConv of a policy, in the full game if `compiled` is an abstraction that loses information.

  Args:
    compiled: the game or abstraction of the policy.
    sequence_form: see `evaluate`.

  Raises:
    NotFiniteError: the policy or its value is not finite.
  """
  if compiled.is_exact:
    return evaluate(compiled, sequence_form).nash_conv
  return evaluate(compiled.original, compiled.to_original(sequence_form)).nash_conv


def losses(compiled: CompiledGame, evaluation: Evaluation) -> Float64s:
  """Returns the loss of each player's strategy, by which strategies are compared, shape (players,).

  The losses sum to NashConv. In constant-sum games of two players, the loss is the value of the opponent's best
  response minus half of the constant sum, and depends on the player's strategy only. In other games, NashConv is
  divided equally among the players.
  """
  if compiled.is_two_player_constant_sum and compiled.constant_sum is not None:
    result: Float64s = evaluation.best_response_values[::-1] - compiled.constant_sum / 2
    return result
  return np.full(compiled.num_players, evaluation.nash_conv / compiled.num_players)


def _check_values(values: Float64s) -> None:
  """Checks the expected values and best response values, shape (players, 2).

  Raises:
    NotFiniteError: a value is NaN or infinite.
  """
  # Checking the sum is faster. If it overflows although all values are finite, the second condition decides.
  if not math.isfinite(values.sum()) and not np.isfinite(values).all():
    raise errors.NotFiniteError(
      f"The players expect {values[:, 0].tolist()}, and with best responses {values[:, 1].tolist()}: the policy has "
      "numbers that are not finite, or payoffs are too large to be added up."
    )
