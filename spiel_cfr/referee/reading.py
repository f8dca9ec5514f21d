"""Conversion of functions, agents, bots and solvers to policies in behavioral form."""

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
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel import answers
from spiel_cfr.games.openspiel.infoset_features import Float32s, information_state_tensor
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.policies import open_spiel
from spiel_cfr.policies.action_entries import from_entries, read_entries
from spiel_cfr.policies.tabular_policy import player_to_move

Observes = Literal["tensors", "strings", "states"]
Answers = Literal["probabilities", "logits"]
# (observations, legal actions) -> a number for each action. All have one row an infoset.
BatchFunction: TypeAlias = Callable[[Any, Bools], Any]
# An argument of `judge`: a policy, a solver, a function of batches; or a list with one of these, an agent or a bot for
# each player.
Anything: TypeAlias = Any
# The largest difference of sums from 1. Networks compute in float32; rows are normalized after the check.
_TOLERANCE = 1e-4


def read_anything(
  compiled: CompiledGame,
  policy: Anything,
  observes: Observes = "tensors",
  answers: Answers = "probabilities",
  batch_size: int = 4096,
) -> Float64s:
  """Returns the behavioral form of an argument of `judge`, shape (sequences,); see there for errors."""
  arguments.one_of(observes, "observes", get_args(Observes))
  arguments.one_of(answers, "answers", get_args(Answers))
  batch_size = arguments.positive_integer(batch_size, "batch_size")
  entries = []
  policies = open_spiel.one_per_player(policy, compiled.num_players)
  open_spiel.check_game(compiled, *policies)
  for player, each in enumerate(policies):
    if isinstance(each, rl_agent.AbstractAgent | pyspiel.Bot):
      _check_seat(each, player, is_alone=each is policy)
    if isinstance(each, rl_agent.AbstractAgent):
      for batch in _batches(compiled, player, "tensors", batch_size):
        entries.append(_agent_entries(compiled, each, player, batch))
    elif callable(each) and not isinstance(each, open_spiel_policy.Policy | pyspiel.Policy):
      for batch in _batches(compiled, player, observes, batch_size):
        # Copies, because the function may write to its arguments.
        answer = each(batch.observations.copy(), batch.mask.copy())
        rows = _to_distributions(answer, each, batch.name, batch.mask, answers)
        entries.append(rows[batch.mask])
    else:
      entries.append(read_entries(compiled, each, player))
  return from_entries(compiled, np.concatenate(entries))


class FunctionPolicy(open_spiel_policy.Policy):  # type: ignore[misc]
  """OpenSpiel policy of a function of tensors, called state by state, for games too large to be walked."""

  @typed
  def __init__(
    self,
    game: str | pyspiel.Game,
    function: BatchFunction,
    *,
    answers: Answers = "probabilities",
  ) -> None:
    """Takes a function as in `judge` with `observes="tensors"`.

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
    name = answers.information_state_string(state, player)
    legal = answers.legal_actions(state, player)
    mask = np.zeros((1, self.game.num_distinct_actions()), bool)
    mask[0, legal] = True
    if isinstance(state, pyspiel.TurnBasedSimultaneousState):
      state = state.simultaneous_game_state()
    answer = self._function(information_state_tensor(state, player)[None], mask.copy())
    (row,) = _to_distributions(answer, self._function, lambda _: name, mask, self._answers)
    return {action: float(row[action]) for action in legal}


def _check_seat(agent: rl_agent.AbstractAgent | pyspiel.Bot, player: int, is_alone: bool) -> None:
  """Raises PolicyError if an agent or bot has no policy, or is of another player."""
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
  """A batch of infosets of a player.

  Attributes:
    names: list of str. The infostates of all the player's infosets.
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
  """Yields a player's infosets in batches, one in memory at a time, with a progress bar if there are many."""
  infosets = compiled.infosets[player]
  count, names = len(infosets.num_actions), infosets.infostates
  ends = np.append(0, np.cumsum(infosets.num_actions))
  states = compiled.first_states(player) if observes == "states" else ()
  starts = range(0, count, batch_size)
  for begin in tqdm.tqdm(starts, desc="reading policy", delay=1.0, leave=False, disable=None):
    part = slice(begin, min(begin + batch_size, count))
    mask = np.zeros((part.stop - begin, compiled.num_distinct_actions), bool)
    rows = np.repeat(np.arange(len(mask)), infosets.num_actions[part])
    mask[rows, infosets.actions[ends[begin] : ends[part.stop]]] = True
    observations: Any = states[part]
    if observes == "tensors":
      observations = _tensors(compiled, player, part)
    elif observes == "strings":
      observations = names[part]
    yield _Batch(names, begin, observations, mask)


def _tensors(compiled: CompiledGame, player: int, infosets: slice) -> Float32s:
  """Returns a player's tensors; for simultaneous moves, those of the simultaneous game."""
  tensors = compiled.tensors_of(player, infosets)
  root = compiled.view.new_initial_state()
  if not isinstance(root, pyspiel.TurnBasedSimultaneousState):
    return tensors
  # The turn-based game puts the player to move before the simultaneous game's tensor.
  size = root.simultaneous_game_state().get_game().information_state_tensor_size()
  return tensors[:, -size:]


def _agent_entries(
  compiled: CompiledGame, agent: rl_agent.AbstractAgent, player: int, batch: _Batch
) -> Float64s:
  """Returns an agent's probabilities of the legal actions of a batch, infoset by infoset."""
  players, result = range(compiled.num_players), [np.zeros(0)]
  # Lists, because tabular agents look up the string of a list.
  for row, tensor in enumerate(batch.observations.tolist()):
    mask = batch.mask[row : row + 1]
    legal = np.flatnonzero(mask).tolist()
    step = rl_environment.TimeStep(
      observations={
        "info_state": [tensor if each == player else None for each in players],
        "legal_actions": [legal if each == player else [] for each in players],
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
  """Returns distributions over legal actions, shape (rows, actions); raises PolicyError if the answer has none."""
  rows = _as_array(answer)
  if rows.shape != mask.shape:
    raise errors.PolicyError(
      f"{arguments.shortened(source)} has returned numbers of shape {rows.shape}. The shape must be {mask.shape}: a "
      "row for each infoset, with a number for each action of the game, legal or not."
    )
  if answers == "logits":
    legal = np.where(mask, rows, -np.inf)
    highest = legal.max(axis=1, keepdims=True, initial=-np.inf)
    _check_rows(name, rows, np.isfinite(highest[:, 0]), "which are no logits.")
    weights = np.exp(legal - highest)
  else:
    is_number = np.isfinite(rows) & (rows >= -_TOLERANCE)
    difference = np.abs(np.where(is_number, rows, np.inf).sum(axis=1) - 1)
    softmax = 'For numbers of a softmax over the legal actions, give answers="logits".'
    _check_rows(name, rows, difference <= _TOLERANCE, f"which is no distribution. {softmax}")
    illegal = np.where(mask, 0.0, rows).max(axis=1, initial=0.0)
    _check_rows(
      name, rows, illegal <= _TOLERANCE, f"and plays actions that are not legal. {softmax}"
    )
    weights = np.where(mask, np.maximum(rows, 0.0), 0.0)
  result: Float64s = weights / weights.sum(axis=1, keepdims=True)
  return result


def _as_array(answer: Any) -> Float64s:
  """Returns an array of NumPy, JAX or PyTorch as float64, without a copy if it is that already."""
  # PyTorch converts only tensors without gradients, in the computer's memory.
  for method in ("detach", "cpu"):
    answer = getattr(answer, method, lambda unchanged=answer: unchanged)()
  try:
    return np.asarray(answer, np.float64)
  except (TypeError, ValueError) as error:
    raise errors.PolicyError(
      f"The policy must return an array of numbers, not {arguments.shortened(answer)}: {error}"
    ) from error


def _check_rows(name: Callable[[int], str], rows: Float64s, is_right: Bools, why: str) -> None:
  """Raises PolicyError if a row is wrong, and quotes the first."""
  if not is_right.all():
    row = int(np.flatnonzero(~is_right)[0])
    raise errors.PolicyError(
      f"At infostate {name(row)!r}, and at {int((~is_right).sum()) - 1:,} others of {len(rows):,}, the answer is "
      f"{rows[row].tolist()}, {why}"
    )
