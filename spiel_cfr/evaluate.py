"""How good policies are: expected values, best responses, NashConv and exploitability.

The names and the definitions are those of OpenSpiel's `exploitability` module; NashConv is from Lanctot et al., "A
Unified Game-Theoretic Approach to Multiagent Reinforcement Learning" (2017). All values are in the game's own units,
expected per game, and exact for any number of players: a best response costs one gradient and one sweep.
"""

from typing import NamedTuple

import pyspiel

from spiel_cfr import errors, policy
from spiel_cfr.game.compiled import CompiledGame, compile_game
from spiel_cfr.kernels.arrays import Float64s, aligned_zeros
from spiel_cfr.kernels.compile import CHUNK
from spiel_cfr.minimizers.base import SCRATCH_LINES, block_kernel
from spiel_cfr.solvers.loop import best_responses


class NashConv(NamedTuple):
  """NashConv and its parts.

  Attributes:
    nash_conv: the sum of `player_improvements`.
    player_improvements: what each player would gain by a best response, shape (players,).
  """

  nash_conv: float
  player_improvements: Float64s


class BestResponse(NamedTuple):
  """A best response to the other players' policies.

  Attributes:
    value: expected utility of the best response.
    policy: the best response as infostate -> action. Where several actions are best, the first; where the others'
      policies never lead, any.
  """

  value: float
  policy: dict[str, int]


def expected_values(
  game: str | pyspiel.Game | CompiledGame, policies: policy.AnyPolicy
) -> Float64s:
  """Returns what each player expects when all play by a policy, shape (players,).

  Args:
    game: the game; compile it first if this is called more than once.
    policies: anything that `policy.from_policy` reads.

  Raises:
    PolicyError: the policy is not one for this game.
    GameError: see `compile_game`.
  """
  return evaluate(*_prepare(game, policies)).expected_values


def nash_conv(
  game: str | pyspiel.Game | CompiledGame,
  policies: policy.AnyPolicy,
  return_only_nash_conv: bool = True,
) -> float | NashConv:
  """Returns the sum over the players of what a best response would gain.

  Args:
    game: the game; compile it first if this is called more than once.
    policies: anything that `policy.from_policy` reads.
    return_only_nash_conv: whether to leave out what each player would gain.

  Raises:
    PolicyError: the policy is not one for this game.
    GameError: see `compile_game`.
  """
  result = evaluate(*_prepare(game, policies))
  if return_only_nash_conv:
    return result.nash_conv
  return NashConv(result.nash_conv, result.best_response_values - result.expected_values)


def exploitability(game: str | pyspiel.Game | CompiledGame, policies: policy.AnyPolicy) -> float:
  """Returns NashConv / 2: what the policy loses to its worst opponent, averaged over both seats.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players; use `nash_conv`.
    PolicyError: the policy is not one for this game.
    GameError: see `compile_game`.
  """
  compiled, sequence = _prepare(game, policies)
  check_two_player_constant_sum(compiled)
  return evaluate(compiled, sequence).nash_conv / 2


def best_response(
  game: str | pyspiel.Game | CompiledGame, policies: policy.AnyPolicy, player: int
) -> BestResponse:
  """Returns a best response of `player`, and its value.

  Raises:
    ArgumentError: there is no such player.
    PolicyError: the policy is not one for this game.
    GameError: see `compile_game`.
  """
  compiled, sequence = _prepare(game, policies)
  if not isinstance(player, int) or player not in range(compiled.num_players):
    raise errors.ArgumentError(
      f"player must be one of 0 to {compiled.num_players - 1}, not {player!r}."
    )
  result = evaluate(compiled, sequence)
  first = sum(map(len, compiled.actions[:player]))
  own = slice(first, first + len(compiled.actions[player]))
  chosen = result.best_responses[compiled.all_action_sequences[own]] > 0
  actions = compiled.actions[player][chosen].tolist()
  return BestResponse(
    float(result.best_response_values[player]),
    dict(zip(compiled.infostates[player], actions, strict=True)),
  )


def check_two_player_constant_sum(compiled: CompiledGame) -> None:
  """Raises UnsupportedGameError where exploitability is not defined."""
  if not compiled.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      "Exploitability is defined for constant-sum games of two players; "
      f"{compiled.game_string} is not one. Use nash_conv."
    )


class Evaluation(NamedTuple):
  """What one pass over a policy says.

  Attributes:
    expected_values: each player's expected utility, shape (players,).
    best_response_values: the same if that player alone played a best response, shape (players,).
    best_responses: the best responses in behavioural form, shape (sequences,).
  """

  expected_values: Float64s
  best_response_values: Float64s
  best_responses: Float64s

  @property
  def nash_conv(self) -> float:
    """The sum of what the players would gain."""
    return float((self.best_response_values - self.expected_values).sum())


def evaluate(compiled: CompiledGame, sequence: Float64s) -> Evaluation:
  """Evaluates a policy in sequence form, shape (sequences,), without leaving the arrays."""
  payoff = compiled.payoff
  responses, values = aligned_zeros(compiled.end), aligned_zeros(compiled.num_players, 2)
  best_responses(
    payoff.gradient,
    payoff.table,
    payoff.rows,
    payoff.others,
    payoff.values,
    best_response_block,
    compiled.players,
    compiled.groups,
    compiled.parent,
    sequence,
    responses,
    aligned_zeros(compiled.end),
    aligned_zeros(SCRATCH_LINES, CHUNK),
    values,
  )
  return Evaluation(values[:, 0].copy(), values[:, 1].copy(), responses)


def _prepare(
  game: str | pyspiel.Game | CompiledGame, policies: policy.AnyPolicy
) -> tuple[CompiledGame, Float64s]:
  compiled = compile_game(game)
  return compiled, policy.sequence_form(compiled, policy.from_policy(compiled, policies))


@block_kernel
def best_response_block(
  state: Float64s,
  local: Float64s,
  strategy: Float64s,
  utility: Float64s,
  scratch: Float64s,
  parameters: Float64s,
  first: int,
  stride: int,
  infoset: int,
  count: int,
  actions: int,
) -> None:
  """An infoset is worth its best action; `strategy` becomes the first of those."""
  value, chosen = scratch[0], scratch[1]
  for i in range(count):
    value[i] = utility[first + i]
    chosen[i] = 0.0
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      value[i] = max(value[i], utility[row + i])
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      best = 1.0 - chosen[i] if utility[row + i] == value[i] else 0.0
      strategy[row + i] = best
      chosen[i] += best
