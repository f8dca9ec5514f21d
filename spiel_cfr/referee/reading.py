"""Policies as arrays, read from functions, agents, bots and solvers."""

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
from spiel_cfr.policies.tabular_policy import player_to_move

Observes = Literal["tensors", "strings", "states"]
Answers = Literal["probabilities", "logits"]
# (what is seen of each infoset, which actions are legal, a row an infoset) -> a number an action, a row an infoset.
BatchFunction: TypeAlias = Callable[[Any, Bools], Any]
# What `judge` takes: a policy, agents, bots, a solver, or a function of batches; or one of these for each player.
Anything: TypeAlias = Any
# Networks compute in float32, and rows are scaled to sum to 1 after this was checked.
_TOLERANCE = 1e-4


def read_anything(
  compiled: CompiledGame,
  policy: Anything,
  observes: Observes = "tensors",
  answers: Answers = "probabilities",
  batch_size: int = 4096,
) -> Float64s:
  """Returns the behavioural form of anything that `judge` takes, shape (sequences,), with its errors."""
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
        entries.append(_ask_agent(compiled, each, player, batch))
    elif callable(each) and not isinstance(each, open_spiel_policy.Policy | pyspiel.Policy):
      for batch in _batches(compiled, player, observes, batch_size):
        # The function may write to what it gets.
        answer = each(batch.seen.copy(), batch.mask.copy())
        entries.append(_answers(answer, each, batch.name, batch.mask, answers)[batch.mask])
    else:
      entries.append(open_spiel.read_entries(compiled, each, player))
  return open_spiel.from_entries(compiled, np.concatenate(entries))


class FunctionPolicy(open_spiel_policy.Policy):  # type: ignore[misc]
  """A function of tensors as one of OpenSpiel's policies, asked state by state: for games too large to be walked."""

  @typed
  def __init__(
    self,
    game: str | pyspiel.Game,
    function: BatchFunction,
    *,
    answers: Answers = "probabilities",
  ) -> None:
    """Takes what `judge` takes with `observes="tensors"`.

    Raises:
      ArgumentError: an argument makes no sense.
      GameError: the game can't be loaded.
    """
    arguments.one_of(answers, "answers", get_args(Answers))
    game = load_game(game)
    super().__init__(game, list(range(game.num_players())))
    self._function, self._answers = function, answers

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability.

    Raises:
      PolicyError: the function answers with no distribution over the legal actions, or no player is to move.
    """
    player = player_to_move(state, player_id)
    name = answers.information_state_string(state, player)
    legal = answers.legal_actions(state, player)
    mask = np.zeros((1, self.game.num_distinct_actions()), bool)
    mask[0, legal] = True
    if isinstance(state, pyspiel.TurnBasedSimultaneousState):
      state = state.simultaneous_game_state()
    answer = self._function(information_state_tensor(state, player)[None], mask.copy())
    (row,) = _answers(answer, self._function, lambda _: name, mask, self._answers)
    return {action: float(row[action]) for action in legal}


def _check_seat(agent: rl_agent.AbstractAgent | pyspiel.Bot, player: int, is_alone: bool) -> None:
  """Raises PolicyError where an agent or bot can't be asked what a player would do."""
  name = type(agent).__name__
  if is_alone:
    raise errors.PolicyError(f"A {name} plays for one player: give a list, one for each player.")
  known = getattr(agent, "player_id", getattr(agent, "_player_id", player))
  known = known() if callable(known) else known
  if known != player:
    raise errors.PolicyError(
      f"The {name} in place {player} of the list plays as player {known}. Give agents and bots in the order of players."
    )
  if isinstance(agent, pyspiel.Bot) and not agent.provides_policy():
    raise errors.PolicyError(
      f"The {name} does not tell its policy. How good it is can only be sampled: `referee.play_match`."
    )


class _Batch(NamedTuple):
  """Some infosets of a player.

  Attributes:
    names: the infostates of all the player's infosets.
    begin: the first infoset.
    seen: what is seen of each infoset.
    mask: bool (rows, actions of the game). The legal actions.
  """

  names: Sequence[str]
  begin: int
  seen: Any
  mask: Bools

  def name(self, row: int) -> str:
    """Returns the infostate of a row."""
    return self.names[self.begin + row]


def _batches(
  compiled: CompiledGame, player: int, observes: Observes, batch_size: int
) -> Iterator[_Batch]:
  """Yields a player's infosets, with a bar if there are many, so that only a batch is in memory at a time."""
  own = compiled.infosets[player]
  count, names = len(own.num_actions), own.infostates
  ends = np.append(0, np.cumsum(own.num_actions))
  states = compiled.first_states(player) if observes == "states" else ()
  starts = range(0, count, batch_size)
  for begin in tqdm.tqdm(starts, desc="asking the policy", delay=1.0, leave=False, disable=None):
    some = slice(begin, min(begin + batch_size, count))
    mask = np.zeros((some.stop - begin, compiled.num_distinct_actions), bool)
    rows = np.repeat(np.arange(len(mask)), own.num_actions[some])
    mask[rows, own.actions[ends[begin] : ends[some.stop]]] = True
    seen: Any = _seen_tensors(compiled, player, some) if observes == "tensors" else states[some]
    if observes == "strings":
      seen = names[some]
    yield _Batch(names, begin, seen, mask)


def _seen_tensors(compiled: CompiledGame, player: int, infosets: slice) -> Float32s:
  """Returns tensors of a player; of simultaneous moves, as agents see them, which do not take turns."""
  tensors = compiled.tensors_of(player, infosets)
  root = compiled.view.new_initial_state()
  if not isinstance(root, pyspiel.TurnBasedSimultaneousState):
    return tensors
  # The turn-based game puts whose turn it is before what the game itself shows.
  size = root.simultaneous_game_state().get_game().information_state_tensor_size()
  return tensors[:, -size:]


def _ask_agent(
  compiled: CompiledGame, agent: rl_agent.AbstractAgent, player: int, batch: _Batch
) -> Float64s:
  """Returns what an agent says of the legal actions of some infosets, end to end."""
  players, result = range(compiled.num_players), [np.zeros(0)]
  # Tabular agents look up the string of a list.
  for row, tensor in enumerate(batch.seen.tolist()):
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
    result.append(_answers([answer], agent, name, mask, "probabilities")[mask])
  return np.concatenate(result)


def _answers(
  answer: Any, source: Any, name: Callable[[int], str], mask: Bools, answers: Answers
) -> Float64s:
  """Returns distributions over legal actions, a row an infoset; raises PolicyError where the answer has none."""
  rows = _as_array(answer)
  if rows.shape != mask.shape:
    raise errors.PolicyError(
      f"{arguments.shortened(source)} has answered with numbers of shape {rows.shape}. Wanted is {mask.shape}: a row "
      "for each infoset, with a number for each action of the game, legal or not."
    )
  if answers == "logits":
    legal = np.where(mask, rows, -np.inf)
    highest = legal.max(axis=1, keepdims=True, initial=-np.inf)
    _refuse(name, rows, ~np.isfinite(highest[:, 0]), "which are no logits.")
    weights = np.exp(legal - highest)
  else:
    fine = np.isfinite(rows) & (rows >= -_TOLERANCE)
    apart = np.abs(np.where(fine, rows, np.inf).sum(axis=1) - 1)
    softmax = 'Numbers for a softmax over the legal actions are meant by answers="logits".'
    _refuse(name, rows, ~(apart <= _TOLERANCE), f"which is no distribution. {softmax}")
    illegal = np.where(mask, 0.0, rows).max(axis=1, initial=0.0)
    _refuse(name, rows, illegal > _TOLERANCE, f"and plays actions that are not legal. {softmax}")
    weights = np.where(mask, np.maximum(rows, 0.0), 0.0)
  result: Float64s = weights / weights.sum(axis=1, keepdims=True)
  return result


def _as_array(answer: Any) -> Float64s:
  """Returns numbers of NumPy, JAX or PyTorch; float64 as it is, anything else converted."""
  # PyTorch's tensors are converted only where nobody asks for their gradients, in the computer's own memory.
  for method in ("detach", "cpu"):
    answer = getattr(answer, method, lambda known=answer: known)()
  try:
    return np.asarray(answer, np.float64)
  except (TypeError, ValueError) as error:
    raise errors.PolicyError(
      f"Instead of an array of numbers there is {arguments.shortened(answer)}: {error}"
    ) from error


def _refuse(name: Callable[[int], str], rows: Float64s, bad: Bools, why: str) -> None:
  """Raises PolicyError if any row is bad, and quotes the first."""
  if bad.any():
    row = int(np.flatnonzero(bad)[0])
    raise errors.PolicyError(
      f"At infostate {name(row)!r}, and at {int(bad.sum()) - 1:,} others of {len(rows):,}, the answer is "
      f"{rows[row].tolist()}, {why}"
    )
