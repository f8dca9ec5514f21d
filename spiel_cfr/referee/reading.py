"""From whatever chooses actions to a policy as arrays."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyspiel
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python import rl_agent, rl_environment

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.infoset_features import Float32s
from spiel_cfr.policies import open_spiel

Observes = Literal["tensors", "strings", "states"]
Answers = Literal["probabilities", "logits"]
# (what is seen of each infoset, which actions are legal, a row an infoset) -> a number an action, a row an infoset.
BatchFunction: TypeAlias = Callable[[Any, Bools], Any]
# What `judge` takes: a policy, agents, bots, a solver, or a function of batches; or one of these for each player.
Anything: TypeAlias = Any
# Networks compute in float32, and rows are scaled to sum to 1 after this was checked.
_TOLERANCE = 1e-4


def read_anything(
  compiled: CompiledGame, policy: Anything, observes: Observes, answers: Answers, batch_size: int
) -> Float64s:
  """Returns the behavioural form of whatever `judge` takes, shape (sequences,).

  Raises:
    ArgumentError: an argument makes no sense.
    PolicyError: some infoset gets no distribution over its legal actions.
    FeaturesError: the game has no information state tensors.
    NoStatesError: states are needed, and the game has none.
  """
  arguments.one_of(observes, "observes", get_args(Observes))
  arguments.one_of(answers, "answers", get_args(Answers))
  batch_size = arguments.positive_integer(batch_size, "batch_size")
  entries = []
  for player, given in enumerate(open_spiel.one_per_player(compiled, policy)):
    each = _inside(given)
    if isinstance(each, rl_agent.AbstractAgent | pyspiel.Bot):
      _check_seat(each, player, is_alone=given is policy)
    if isinstance(each, rl_agent.AbstractAgent):
      rows, make = _ask_agent(compiled, each, player), _from_probabilities
    elif callable(each) and not isinstance(each, open_spiel_policy.Policy | pyspiel.Policy):
      rows = _ask_in_batches(compiled, each, player, observes, batch_size)
      make = _from_logits if answers == "logits" else _from_probabilities
    else:
      entries.append(open_spiel.read_entries(compiled, each, player))
      continue
    mask = compiled.legal_actions_mask[compiled.infoset_rows(player)] > 0
    entries.append(make(compiled, player, rows, mask)[mask])
  return open_spiel.from_entries(compiled, np.concatenate(entries))


def _inside(policy: Any) -> Any:
  """Returns the policy of a solver, of OpenSpiel too, or of a solution; anything else as it is."""
  if callable(getattr(policy, "average_policy", None)):
    return policy.average_policy()
  found = getattr(policy, "policy", None)
  return found if hasattr(found, "action_probabilities") else policy


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


def _seen_tensors(compiled: CompiledGame, player: int) -> Float32s:
  """Returns a player's tensors; of simultaneous moves, as agents see them, which do not take turns."""
  tensors = compiled.information_state_tensors[compiled.infoset_rows(player)]
  root = compiled.view.new_initial_state()
  if not isinstance(root, pyspiel.TurnBasedSimultaneousState):
    return tensors
  # The turn-based game puts whose turn it is before what the game itself shows.
  size = root.simultaneous_game_state().get_game().information_state_tensor_size()
  return tensors[:, -size:]


def _ask_agent(compiled: CompiledGame, agent: rl_agent.AbstractAgent, player: int) -> Float64s:
  """Returns what an agent says of its player's infosets, shape (infosets, actions)."""
  rows, num_players = [], compiled.num_players
  ends = np.cumsum(compiled.num_actions[player])[:-1]
  legal = np.split(compiled.actions[player], ends)
  # Tabular agents look up the string of a list.
  for tensor, actions in zip(_seen_tensors(compiled, player).tolist(), legal, strict=True):
    step = rl_environment.TimeStep(
      observations={
        "info_state": [tensor if each == player else None for each in range(num_players)],
        "legal_actions": [
          actions.tolist() if each == player else [] for each in range(num_players)
        ],
        "current_player": player,
        "serialized_state": [],
      },
      rewards=[0.0] * num_players,
      discounts=[1.0] * num_players,
      step_type=rl_environment.StepType.MID,
    )
    rows.append(_as_array(agent.step(step, is_evaluation=True).probs))
    _check_shape(rows[-1], (compiled.num_distinct_actions,), agent)
  return np.array(rows).reshape(-1, compiled.num_distinct_actions)


def _ask_in_batches(
  compiled: CompiledGame, function: BatchFunction, player: int, observes: Observes, batch_size: int
) -> Float64s:
  """Returns what a function says of a player's infosets, shape (infosets, actions)."""
  seen: Any = compiled.infostates[player]
  if observes == "tensors":
    seen = _seen_tensors(compiled, player)
  elif observes == "states":
    seen = compiled.first_states(player)
  mask = compiled.legal_actions_mask[compiled.infoset_rows(player)] > 0
  result = np.zeros(mask.shape)
  for begin in range(0, len(mask), batch_size):
    batch = slice(begin, begin + batch_size)
    # The function may write to what it gets.
    own = seen[batch].copy()
    answer = _as_array(function(own, mask[batch].copy()))
    _check_shape(answer, mask[batch].shape, function)
    result[batch] = answer
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


def _check_shape(answer: npt.NDArray[Any], shape: tuple[int, ...], source: Any) -> None:
  if answer.shape != shape:
    raise errors.PolicyError(
      f"{arguments.shortened(source)} has answered with numbers of shape {answer.shape}. Wanted is the shape {shape}: "
      "a number for each action of the game, legal or not"
      + ("." if len(shape) == 1 else ", in a row for each infoset.")
    )


def _from_probabilities(
  compiled: CompiledGame, player: int, rows: Float64s, mask: Bools
) -> Float64s:
  """Returns rows that sum to 1, and are 0 where an action is not legal."""
  finite = np.isfinite(rows) & (rows >= -_TOLERANCE)
  sums = np.where(finite, rows, np.inf).sum(axis=1)
  _refuse(compiled, player, rows, ~(np.abs(sums - 1) <= _TOLERANCE), "which is no distribution")
  illegal = np.where(mask, 0.0, rows).max(axis=1, initial=0.0)
  _refuse(compiled, player, rows, illegal > _TOLERANCE, "and plays actions that are not legal")
  legal = np.where(mask, np.maximum(rows, 0.0), 0.0)
  result: Float64s = legal / legal.sum(axis=1, keepdims=True)
  return result


def _from_logits(compiled: CompiledGame, player: int, rows: Float64s, mask: Bools) -> Float64s:
  """Returns the softmax over the legal actions, 0 elsewhere."""
  legal = np.where(mask, rows, -np.inf)
  highest = legal.max(axis=1, keepdims=True, initial=-np.inf)
  _refuse(compiled, player, rows, ~np.isfinite(highest[:, 0]), "which are no logits")
  weights = np.exp(legal - highest)
  result: Float64s = weights / weights.sum(axis=1, keepdims=True)
  return result


def _refuse(compiled: CompiledGame, player: int, rows: Float64s, bad: Bools, why: str) -> None:
  """Raises PolicyError if any row is bad, and quotes the first."""
  if bad.any():
    row = int(np.flatnonzero(bad)[0])
    raise errors.PolicyError(
      f"At player {player}'s infostate {compiled.infostates[player][row]!r} the answer is {rows[row].tolist()}, {why}. "
      f"So it is at {int(bad.sum()):,} of {len(rows):,} infosets. Numbers that are to go through a softmax over the "
      'legal actions are meant by answers="logits".'
    )
