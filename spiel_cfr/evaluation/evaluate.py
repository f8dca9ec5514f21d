"""How good policies are: expected values, best responses, NashConv and exploitability.

The names and the definitions are those of OpenSpiel's `exploitability` module; NashConv is from Lanctot et al., "A
Unified Game-Theoretic Approach to Multiagent Reinforcement Learning" (2017). All values are in the game's own units,
expected per game, and exact for any number of players: a best response costs one gradient and one sweep.
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
from spiel_cfr.policies import forms, open_spiel


class NashConv(NamedTuple):
  """NashConv and its parts.

  Attributes:
    nash_conv: the sum of `player_improvements`.
    player_improvements: what each player would gain by a best response, shape (players,).
  """

  nash_conv: float
  player_improvements: Float64s

  def __repr__(self) -> str:
    """Returns one line: both."""
    gains = ", ".join(f"{gain:z.6g}" for gain in self.player_improvements.tolist())
    return f"<NashConv {self.nash_conv:z.6g}: players gain {gains}>"


class BestResponse(NamedTuple):
  """A best response to the other players' policies.

  Attributes:
    value: expected utility of the best response.
    policy: the best response as infostate -> action. Where several actions are best, the first; where the others'
      policies never lead, any.
  """

  value: float
  policy: dict[str, int]

  def __repr__(self) -> str:
    """Returns one line: the value, and how many infosets the policy has."""
    return f"<BestResponse: value {self.value:z.6g}, actions at {len(self.policy):,} infosets>"


def expected_values(game: AnyGame, policies: open_spiel.AnyPolicy) -> Float64s:
  """Returns what each player expects when all play by a policy, shape (players,).

  Args:
    game: the game; compile it first if this is called more than once.
    policies: anything that `policies.from_policy` reads.

  Raises:
    PolicyError: the policy is not one for this game.
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
  """Returns the sum over the players of what a best response would gain.

  Args:
    game: the game; compile it first if this is called more than once.
    policies: anything that `policies.from_policy` reads.
    return_only_nash_conv: whether to leave out what each player would gain.

  Raises:
    PolicyError: the policy is not one for this game.
    GameError: see `compile_game`.
  """
  result = evaluate(*_prepare(game, policies))
  if return_only_nash_conv:
    return result.nash_conv
  return NashConv(result.nash_conv, result.best_response_values - result.expected_values)


def exploitability(game: AnyGame, policies: open_spiel.AnyPolicy) -> float:
  """Returns NashConv / 2: what the policy loses to its worst opponent, averaged over both seats.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players; use `nash_conv`.
    PolicyError: the policy is not one for this game.
    GameError: see `compile_game`.
  """
  compiled, sequence = _prepare(game, policies)
  check_two_player_constant_sum(compiled)
  return evaluate(compiled, sequence).exploitability


def best_response(game: AnyGame, policies: open_spiel.AnyPolicy, player: int) -> BestResponse:
  """Returns a best response of `player`, and its value.

  Raises:
    ArgumentError: there is no such player.
    PolicyError: the policy is not one for this game.
    GameError: see `compile_game`.
  """
  compiled, sequence = _prepare(game, policies)
  player = arguments.integer(player, "player", 0, compiled.num_players - 1)
  result = evaluate(compiled, sequence, responses=True)
  first = sum(map(len, compiled.actions[:player]))
  own = slice(first, first + len(compiled.actions[player]))
  chosen = result.best_responses[compiled.all_action_sequences[own]] > 0
  actions = compiled.actions[player][chosen].tolist()
  return BestResponse(
    float(result.best_response_values[player]),
    dict(zip(compiled.infostates[player], actions, strict=True)),
  )


def check_two_player_constant_sum(compiled: CompiledGame) -> None:
  """Raises UnsupportedGameError where a game need not have a value, so that exploitability is not defined."""
  if not compiled.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      f"{compiled.name} is not a constant-sum game of two players. Others need not have a value, nor a linear program "
      "that finds it, and exploitability is not defined there. Use nash_conv, and solve."
    )


_NONE = aligned_zeros(0)
# The largest games whose evaluators are kept: there, making one takes longer than using it.
_MOST_SEQUENCES = 1 << 20


class Evaluated:
  """Base class of policies with their values.

  Attributes:
    compiled_game: the game as arrays.
    expected_values: each player's expected utility when all play the policy, shape (players,).
    best_response_values: each player's expected utility from a best response to the others, shape (players,).
  """

  compiled_game: CompiledGame
  expected_values: Float64s
  best_response_values: Float64s

  @property
  def nash_conv(self) -> float:
    """The sum of what the players would gain by best responses."""
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
    """Bounds of the value of the game for player 0: what its policy guarantees, and the most against the other's.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players, so that it need not have a value.
    """
    check_two_player_constant_sum(self.compiled_game)
    first, second = self.best_response_values.tolist()
    return (self.compiled_game.constant_sum or 0.0) - second, first


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation(Evaluated):
  """Values of a policy that one pass finds, see `Evaluated`.

  Attributes:
    best_responses: the best responses in behavioural form, shape (sequences,); empty unless they were asked for.
  """

  compiled_game: CompiledGame
  expected_values: Float64s
  best_response_values: Float64s
  best_responses: Float64s


def _prepare(game: AnyGame, policies: open_spiel.AnyPolicy) -> tuple[CompiledGame, Float64s]:
  compiled = compile_game(game).original
  return compiled, forms.sequence_form(compiled, open_spiel.from_policy(compiled, policies))


def evaluate(
  compiled: CompiledGame, sequence_form: npt.NDArray[Any], *, responses: bool = False
) -> Evaluation:
  """Evaluates a policy, without leaving the arrays.

  Args:
    compiled: the game.
    sequence_form: shape (sequences,), float64 or float32; each player's may be multiplied by a positive number.
    responses: whether the best responses themselves are wanted.

  Raises:
    NotFiniteError: the policy, or what it is worth, is not finite.
    PolicyError: the array has another shape.
  """
  if sequence_form.shape != (compiled.end,):
    raise errors.PolicyError(
      f"A policy of this game in sequence form has the shape ({compiled.end},), not {sequence_form.shape}."
    )
  totals = [sequence_form.item(treeplex.root) for treeplex in compiled.treeplexes]
  if not all(total > 0 for total in totals):
    raise errors.NotFiniteError(
      "A sequence form, or a sum of them, is positive at each player's root."
    )
  found = aligned_zeros(compiled.end) if responses else None
  # The sums of a long run are rounded in each iteration, so that the actions at an infoset do not quite sum to the
  # sequence above. Best responses gain about 1e-12 of the payoffs from that after a million iterations. It may matter
  # where NashConv is below this number.
  lowest, highest = compiled.payoff_range
  close = 0.01 * math.sqrt(np.finfo(compiled.dtype).eps) * (highest - lowest)
  # An evaluator serves one call at a time, and calls may come from several threads.
  try:
    evaluator: Evaluator = compiled.idle_evaluators.pop()
  except IndexError:
    evaluator = Evaluator(compiled.partition or undivided(compiled.every_infoset))
  values = evaluator(sequence_form, totals, found)
  if values[:, 1].sum() - values[:, 0].sum() < close:
    values = evaluator(sequence_form, totals, found, to_the_end=True)
  _check_values(values)
  # After an error, threads may still work on its arrays, or padding hold numbers that are not finite: it is dropped.
  if compiled.end <= _MOST_SEQUENCES:
    compiled.idle_evaluators.append(evaluator)
  return Evaluation(compiled, values[:, 0], values[:, 1], _NONE if found is None else found)


def original_nash_conv(compiled: CompiledGame, sequence_form: npt.NDArray[Any]) -> float:
  """Returns the NashConv of a policy; of an abstraction that may lose something, in the full game. See `evaluate`.

  Raises:
    NotFiniteError: the policy, or what it is worth, is not finite.
  """
  if compiled.is_exact:
    return evaluate(compiled, sequence_form).nash_conv
  return evaluate(compiled.original, compiled.to_original(sequence_form)).nash_conv


def scores(compiled: CompiledGame, evaluation: Evaluation) -> Float64s:
  """Returns how bad each player's strategy is, shape (players,); in all, NashConv.

  In constant-sum games of two players a strategy is as bad as the opponent's best response to it is good, whatever the
  other strategy is. In other games only all strategies together can be judged, and each has its share.
  """
  if compiled.is_two_player_constant_sum and compiled.constant_sum is not None:
    result: Float64s = evaluation.best_response_values[::-1] - compiled.constant_sum / 2
    return result
  return np.full(compiled.num_players, evaluation.nash_conv / compiled.num_players)


def _check_values(values: Float64s) -> None:
  """Checks the values of policy and best response, a row per player.

  Raises:
    NotFiniteError: they are NaN or infinite.
  """
  # Its sum is finite if all are, unless they are so large that the sum is not.
  if not math.isfinite(values.sum()) and not np.isfinite(values).all():
    raise errors.NotFiniteError(
      f"The players expect {values[:, 0].tolist()}, and with best responses {values[:, 1].tolist()}: the policy has "
      "numbers that are not finite, or payoffs are too large to be added up."
    )
