"""Files of games in private moves form: writes the histories of infosets, and checks those that are read.

`saved_payoff` does the same for payoffs. A file has no infostates. A loaded game makes them on demand, from states of
the game that OpenSpiel loads from its string.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import require, require_array, require_between, taken
from spiel_cfr._util import files
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.private_moves.infoset_states import InfosetStates, PlayerInfosets


def check_names(view: GameView) -> None:
  """Checks that a loaded game can make the names of its infosets.

  Raises:
    UnsupportedGameError: the names are a function of the caller, or OpenSpiel can't load the game from its string.
  """
  problem = None
  if view.has_own_names and not view.has_own_histories:
    problem = 'these are of a function: compile the game without infostate, or with "history"'
  elif not loading.can_be_loaded_again(view.game):
    problem = f"OpenSpiel can't load {view.game} from its string to make them: register the game"
  if problem:
    raise errors.UnsupportedGameError(
      f"The file of a game in private moves form has no names of infosets, and {problem}."
    )


def state_arrays(states: InfosetStates) -> files.Arrays:
  """Returns the arrays of a file for the histories of infosets."""
  lists = states.action_lists
  arrays: files.Arrays = {
    "actions": np.array([action for actions in lists for action in actions], np.int64),
    "list_lengths": np.array([len(actions) for actions in lists], np.int64),
    "chance_action": states.chance_action,
    "chance_before": states.chance_before,
  }
  for player, infosets in enumerate(states.players):
    arrays |= {f"{player}.{name}": array for name, array in infosets._asdict().items()}
  return arrays


def infoset_states(arrays: Mapping[str, Any], num_distinct_actions: int) -> InfosetStates:
  """Returns the histories of infosets from a file's arrays.

  Raises:
    KeyError: an array is missing.
    ValueError: `state_arrays` can't have returned an array. Kernels don't check indices, so all are checked here.
  """
  action_lists = _action_lists(arrays["actions"], arrays["list_lengths"])
  action, before = arrays["chance_action"], arrays["chance_before"]
  require_array(action, "chance_action", np.int32, -1)
  require_array(before, "chance_before", np.int32, len(action))
  require(action >= 0, "chance has actions")
  require((before >= -1) & (before < np.arange(len(before))), "paths of chance begin at the root")
  has_known_actions = np.array([max(actions) < num_distinct_actions for actions in action_lists])
  first, second = (
    PlayerInfosets(*(arrays[f"{player}.{name}"] for name in PlayerInfosets._fields))
    for player in (0, 1)
  )
  states = InfosetStates((first, second), action_lists, action, before)
  num_sequences = []
  for player, infosets in enumerate(states.players):
    for name, array in infosets._asdict().items():
      require_array(array, name, np.int32, len(infosets.parent))
    legal, parent = infosets.legal, infosets.parent
    require_between(legal, 0, len(action_lists), "infosets have lists of actions")
    require(taken(has_known_actions, legal), "actions are the game's")
    num_actions = states.num_actions(player)
    num_sequences.append(1 + int(num_actions.sum()))
    num_sequences_before = np.cumsum(num_actions)
    num_sequences_before -= num_actions
    require(
      (parent >= 0) & (parent <= num_sequences_before),
      "infosets are discovered after their parents",
    )
  for infosets, num_opponent_sequences in zip(states.players, num_sequences[::-1], strict=True):
    opponent, path = infosets.opponent_sequence, infosets.chance_path
    require_between(opponent, 0, num_opponent_sequences, "opponents have their sequences")
    require_between(path, -1, len(action), "infosets have paths of chance")
  return states


def _action_lists(actions: Any, lengths: Any) -> list[tuple[int, ...]]:
  """Returns the lists of actions, given all lists end to end and their lengths."""
  require_array(actions, "actions", np.int64, -1)
  require_array(lengths, "list_lengths", np.int64, -1)
  require((lengths > 0) & (lengths <= len(actions)), "lists have actions")
  ends = np.cumsum(lengths)
  require(len(ends) > 0 and ends[-1] == len(actions), "actions are those of lists")
  steps_within_lists = np.delete(np.diff(actions), ends[:-1] - 1)
  require(actions >= 0, "actions are not negative")
  require(steps_within_lists > 0, "actions of a list ascend")
  return [tuple(part.tolist()) for part in np.split(actions, ends[:-1])]
