"""Conversion of functions, networks, agents, bots and solvers to policies in behavioral form."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pyspiel
import tqdm
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python import rl_agent, rl_environment

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.games.openspiel.infoset_features import Float32s, information_state_tensor
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.policies import open_spiel
from spiel_cfr.policies.action_entries import from_entries, read_entries
from spiel_cfr.policies.tabular_policy import player_to_move

Observes = Literal["tensors", "strings", "states"]
Answers = Literal["probabilities", "logits"]
# Function from the observations and legal actions of a batch of infosets to a number for each action.
BatchFunction: TypeAlias = Callable[[Any, Bools], Any]
# A policy in any form that `judge` takes: a policy, a solver, a `BatchFunction`; or a list that contains one of these,
# an agent or a bot for each player.
PolicyLike: TypeAlias = Any
# The largest difference from 1 of a sum of probabilities, which networks compute in float32. Sums are normalized later.
_TOLERANCE = 1e-4


def to_behavioral_form(
  compiled: CompiledGame,
  policy: PolicyLike,
  observes: Observes = "tensors",
  answers: Answers = "probabilities",
  batch_size: int = 4096,
) -> Float64s:
  """Returns a policy in behavioral form, shape (sequences,); see `judge` for arguments and errors."""
  arguments.one_of(observes, "observes", get_args(Observes))
  arguments.one_of(answers, "answers", get_args(Answers))
  batch_size = arguments.positive_integer(batch_size, "batch_size")
  entries = []
  policies = open_spiel.one_per_player(policy, compiled.num_players)
  open_spiel.check_game(compiled, *policies)
  for player, source in enumerate(policies):
    if isinstance(source, rl_agent.AbstractAgent | pyspiel.Bot):
      _check_seat(source, player, is_alone=source is policy)
    if isinstance(source, rl_agent.AbstractAgent):
      for batch in _batches(compiled, player, "tensors", batch_size):
        entries.append(_agent_entries(compiled, source, player, batch))
    elif callable(source) and not isinstance(source, open_spiel_policy.Policy | pyspiel.Policy):
      for batch in _batches(compiled, player, observes, batch_size):
        # The function gets copies, because it may write to its arguments.
        answer = source(batch.observations.copy(), batch.mask.copy())
        rows = _to_distributions(answer, source, batch.name, batch.mask, answers)
        entries.append(rows[batch.mask])
    else:
      entries.append(read_entries(compiled, source, player))
  return from_entries(compiled, np.concatenate(entries))


class FunctionPolicy(open_spiel_policy.Policy):  # type: ignore[misc]
  """OpenSpiel policy that calls a function or network state by state, for games too large to be walked."""

  @typed
  def __init__(
    self,
    game: str | pyspiel.Game,
    function: BatchFunction,
    *,
    answers: Answers = "probabilities",
  ) -> None:
    """Makes the policy.

    Args:
      game: an OpenSpiel game, or its string.
      function: a function of tensors and legal actions, as `judge` calls it with `observes="tensors"`.
      answers: the result of the function: "probabilities", or "logits" of a softmax over the legal actions.

    Raises:
      ArgumentError: an argument is invalid.
      GameError: the game can't be loaded.
    """
    arguments.one_of(answers, "answers", get_args(Answers))
    game = load_game(game)
    super().__init__(game, list(range(game.num_players())))
    self._function, self._answers = function, answers

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability.

    Raises:
      PolicyError: the function returns no distribution over the legal actions, or no player is to move.
    """
    player = player_to_move(state, player_id)
    name = checked_calls.information_state_string(state, player)
    legal = checked_calls.legal_actions(state, player)
    mask = np.zeros((1, self.game.num_distinct_actions()), bool)
    mask[0, legal] = True
    if isinstance(state, pyspiel.TurnBasedSimultaneousState):
      state = state.simultaneous_game_state()
    answer = self._function(information_state_tensor(state, player)[None], mask.copy())
    (row,) = _to_distributions(answer, self._function, lambda _: name, mask, self._answers)
    return {action: float(row[action]) for action in legal}


def _check_seat(agent: rl_agent.AbstractAgent | pyspiel.Bot, player: int, is_alone: bool) -> None:
  """Raises PolicyError if an agent or bot does not provide a policy, or plays as another player.

  Args:
    agent: the agent or bot.
    player: the index of the agent or bot in the list of policies.
    is_alone: True if it was given instead of a list.
  """
  name = type(agent).__name__
  if is_alone:
    raise errors.PolicyError(f"A {name} plays for one player: give a list, one for each player.")
  seat = getattr(agent, "player_id", getattr(agent, "_player_id", player))
  seat = seat() if callable(seat) else seat
  if seat != player:
    raise errors.PolicyError(
      f"The {name} in place {player} of the list plays as player {seat}. Give agents and bots in the order of players."
    )
  if isinstance(agent, pyspiel.Bot) and not agent.provides_policy():
    raise errors.PolicyError(
      f"The {name} does not provide its policy. Its payoffs can only be sampled: `referee.play_match`."
    )


class _Batch(NamedTuple):
  """Batch of infosets of a player.

  Attributes:
    names: list of str. The infostates of all infosets of the player.
    begin: int. The first infoset of the batch.
    observations: float32 (rows, length), or a list of strings or states. The observation of each infoset.
    mask: bool (rows, actions of the game). True for legal actions.
  """

  names: Sequence[str]
  begin: int
  observations: Any
  mask: Bools

  def name(self, row: int) -> str:
    """Returns the infostate of a row."""
    return self.names[self.begin + row]


def _batches(
  compiled: CompiledGame, player: int, observes: Observes, batch_size: int
) -> Iterator[_Batch]:
  """Yields a player's infosets in batches, one in memory at a time. A progress bar appears if this takes long."""
  infosets = compiled.infosets[player]
  count, names = len(infosets.num_actions), infosets.infostates
  ends = np.append(0, np.cumsum(infosets.num_actions))
  states = compiled.first_states(player) if observes == "states" else ()
  starts = range(0, count, batch_size)
  for begin in tqdm.tqdm(starts, desc="reading policy", delay=1.0, leave=False, disable=None):
    in_batch = slice(begin, min(begin + batch_size, count))
    mask = np.zeros((in_batch.stop - begin, compiled.num_distinct_actions), bool)
    rows = np.repeat(np.arange(len(mask)), infosets.num_actions[in_batch])
    mask[rows, infosets.actions[ends[begin] : ends[in_batch.stop]]] = True
    observations: Any = states[in_batch]
    if observes == "tensors":
      observations = _tensors(compiled, player, in_batch)
    elif observes == "strings":
      observations = names[in_batch]
    yield _Batch(names, begin, observations, mask)


def _tensors(compiled: CompiledGame, player: int, infosets: slice) -> Float32s:
  """Returns a player's information state tensors; for simultaneous moves, the tensors of the simultaneous game."""
  tensors = compiled.tensors_of(player, infosets)
  root = compiled.view.new_initial_state()
  if not isinstance(root, pyspiel.TurnBasedSimultaneousState):
    return tensors
  # The turn-based game's tensor is the player to move, followed by the simultaneous game's tensor.
  size = root.simultaneous_game_state().get_game().information_state_tensor_size()
  return tensors[:, -size:]


def _agent_entries(
  compiled: CompiledGame, agent: rl_agent.AbstractAgent, player: int, batch: _Batch
) -> Float64s:
  """Returns an agent's probabilities of all legal actions in a batch, infoset by infoset, shape (actions,)."""
  players, result = range(compiled.num_players), [np.zeros(0)]
  # A tensor becomes a list, because tabular agents look up the string of a list.
  for row, tensor in enumerate(batch.observations.tolist()):
    mask = batch.mask[row : row + 1]
    legal = np.flatnonzero(mask).tolist()
    step = rl_environment.TimeStep(
      observations={
        "info_state": [tensor if other == player else None for other in players],
        "legal_actions": [legal if other == player else [] for other in players],
        "current_player": player,
        "serialized_state": [],
      },
      rewards=[0.0 for _ in players],
      discounts=[1.0 for _ in players],
      step_type=rl_environment.StepType.MID,
    )
    answer = agent.step(step, is_evaluation=True).probs
    name = batch._replace(begin=batch.begin + row).name
    result.append(_to_distributions([answer], agent, name, mask, "probabilities")[mask])
  return np.concatenate(result)


def _to_distributions(
  answer: Any, source: Any, name: Callable[[int], str], mask: Bools, answers: Answers
) -> Float64s:
  """Returns the distributions over legal actions in the answer of a function or agent, shape (rows, actions).

  Args:
    answer: the answer.
    source: the function or agent, for error messages.
    name: a function from a row to its infostate, for error messages.
    mask: shape (rows, actions). True for legal actions.
    answers: "probabilities" or "logits".

  Raises:
    PolicyError: the answer contains no distributions.
  """
  rows = _as_array(answer)
  if rows.shape != mask.shape:
    raise errors.PolicyError(
      f"{arguments.shortened(source)} has returned numbers of shape {rows.shape}. The shape must be {mask.shape}: a "
      "row for each infoset, with a number for each action of the game, legal or not."
    )
  if answers == "logits":
    legal = np.where(mask, rows, -np.inf)
    highest = legal.max(axis=1, keepdims=True, initial=-np.inf)
    _check_rows(name, rows, np.isfinite(highest[:, 0]), "which are not logits.")
    weights = np.exp(legal - highest)
  else:
    is_number = np.isfinite(rows) & (rows >= -_TOLERANCE)
    difference = np.abs(np.where(is_number, rows, np.inf).sum(axis=1) - 1)
    softmax = 'For numbers of a softmax over the legal actions, give answers="logits".'
    _check_rows(name, rows, difference <= _TOLERANCE, f"which is not a distribution. {softmax}")
    illegal = np.where(mask, 0.0, rows).max(axis=1, initial=0.0)
    _check_rows(
      name, rows, illegal <= _TOLERANCE, f"and plays actions that are not legal. {softmax}"
    )
    weights = np.where(mask, np.maximum(rows, 0.0), 0.0)
  result: Float64s = weights / weights.sum(axis=1, keepdims=True)
  return result


def _as_array(answer: Any) -> Float64s:
  """Returns an array of NumPy, JAX or PyTorch as a float64 array of NumPy, which is a copy only if necessary."""
  # PyTorch converts only tensors that have no gradient and are in the computer's memory.
  for method in ("detach", "cpu"):
    answer = getattr(answer, method, lambda unchanged=answer: unchanged)()
  try:
    return np.asarray(answer, np.float64)
  except (TypeError, ValueError) as error:
    raise errors.PolicyError(
      f"The policy must return an array of numbers, not {arguments.shortened(answer)}: {error}"
    ) from error


def _check_rows(name: Callable[[int], str], rows: Float64s, is_valid: Bools, why: str) -> None:
  """Raises PolicyError with the first invalid row, if there is one; `why` ends the message."""
  if not is_valid.all():
    row = int(np.flatnonzero(~is_valid)[0])
    raise errors.PolicyError(
      f"At infostate {name(row)!r}, and at {int((~is_valid).sum()) - 1:,} others of {len(rows):,}, the answer is "
      f"{rows[row].tolist()}, {why}"
    )
