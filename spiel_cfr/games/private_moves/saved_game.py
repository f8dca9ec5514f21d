"""Files of games in private moves form: arrays of the walk, and their checks.

A file has no infostates. They are made on demand, from states of the game that OpenSpiel loads from its string.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, require, require_array
from spiel_cfr._util import files
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.private_moves.core_histories import CoreHistories
from spiel_cfr.games.private_moves.infoset_states import InfosetStates, PlayerInfosets
from spiel_cfr.games.private_moves.merged_rows import PlayerRows
from spiel_cfr.games.private_moves.rectangles import Rectangles


def check_names(view: GameView) -> None:
  """Checks that the names of infosets can be made of the string of a game.

  Raises:
    UnsupportedGameError: they are a function of the caller, or OpenSpiel can't load the game from its string.
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


def to_arrays(states: InfosetStates, payoff: Rectangles, places: list[Int64s]) -> files.Arrays:
  """Returns the arrays of a file.

  Args:
    states: the histories of infosets.
    payoff: the payoffs.
    places: for each player, the place of each of its sequences in `Rows.classes`, in order of discovery.
  """
  lists = states.action_lists
  arrays: files.Arrays = {
    "actions": np.array([action for actions in lists for action in actions], np.int64),
    "list_lengths": np.array([len(actions) for actions in lists], np.int64),
    "chance_action": states.chance_action,
    "chance_before": states.chance_before,
    "rows": np.stack([rows.of_rectangle for rows in payoff.rows]).astype(np.int32),
    "payoffs": payoff.payoffs,
  }
  for player, (own, rows) in enumerate(zip(states.players, payoff.rows, strict=True)):
    columns = own._asdict() | {
      "classes": rows.classes[places[player]].astype(np.int32),
      "row_end": rows.start[1:].astype(np.int64),
      "entries": rows.entries.astype(np.int32),
    }
    arrays |= {f"{player}.{name}": array for name, array in columns.items()}
  return arrays


def from_arrays(
  arrays: Mapping[str, Any], num_distinct_actions: int
) -> tuple[InfosetStates, CoreHistories]:
  """Returns the histories of infosets and the result of the walk, without counts and `seen`, from a file's arrays.

  Raises:
    KeyError: an array is missing.
    ValueError: an array is not one that `to_arrays` returns. Kernels take every index on trust.
  """
  action_lists = _action_lists(arrays["actions"], arrays["list_lengths"])
  action, before = arrays["chance_action"], arrays["chance_before"]
  require_array(action, "chance_action", np.int32, -1)
  require_array(before, "chance_before", np.int32, len(action))
  require(action >= 0, "chance has actions")
  require((before >= -1) & (before < np.arange(len(before))), "paths of chance begin at the root")
  counts = np.array([len(actions) for actions in action_lists])
  largest = np.array([max(actions) for actions in action_lists])
  first, second = (_infosets(arrays, player, counts) for player in (0, 1))
  states = InfosetStates((first, second), action_lists, action, before)
  lengths = [1 + int(states.num_actions(player).sum()) for player in (0, 1)]
  for player, own in enumerate(states.players):
    opponent, path = own.opponent_sequence, own.chance_path
    require(largest[own.legal] < num_distinct_actions, "actions are the game's")
    require((opponent >= 0) & (opponent < lengths[1 - player]), "opponents have their sequences")
    require((path >= -1) & (path < len(action)), "infosets have paths of chance")
  rows = [_rows(arrays, player, states.players[player], lengths[player]) for player in (0, 1)]
  of_rectangle, payoffs = arrays["rows"], arrays["payoffs"]
  require_array(of_rectangle, "rows", np.int32, 2, -1)
  require_array(payoffs, "payoffs", np.float64, *of_rectangle.shape)
  for own_rows, chosen in zip(rows, of_rectangle, strict=True):
    require((chosen >= 0) & (chosen < len(own_rows.row_end)), "rectangles have rows")
  none = np.zeros(0, np.int64)
  found = CoreHistories(
    players=(rows[0], rows[1]),
    ends=np.zeros((0, 7), np.int64),
    chance_event=action,
    chance_before=before,
    rows=of_rectangle,
    payoff=np.arange(of_rectangle.shape[1], dtype=np.int32),
    payoffs=payoffs,
    num_histories=none,
    num_states=none,
    num_core_histories=0,
  )
  return states, found


def check_sums(payoffs: Float64s, constant_sum: float | None) -> None:
  """Checks that payoffs, which are multiplied by chance's probabilities, sum to the constant of the game."""
  if constant_sum is None:
    return
  sums = payoffs.sum(axis=0)
  if constant_sum:
    require((sums / constant_sum > 0) & (sums / constant_sum <= 1 + 1e-9), "payoffs sum to it")
  else:
    require(np.abs(sums) <= 1e-9 * np.abs(payoffs).max(initial=1.0), "payoffs sum to 0")


def _action_lists(actions: Any, lengths: Any) -> list[tuple[int, ...]]:
  """Returns the lists of actions, given all lists end to end and their lengths."""
  require_array(actions, "actions", np.int64, -1)
  require_array(lengths, "list_lengths", np.int64, -1)
  require((lengths > 0) & (lengths <= len(actions)), "lists have actions")
  ends = np.cumsum(lengths)
  require(len(ends) > 0 and ends[-1] == len(actions), "actions are those of lists")
  inner = np.delete(np.diff(actions), ends[:-1] - 1)
  require(actions >= 0, "actions are not negative")
  require(inner > 0, "actions of a list ascend")
  return [tuple(own) for own in map(np.ndarray.tolist, np.split(actions, ends[:-1]))]


def _infosets(arrays: Mapping[str, Any], player: int, counts: Int64s) -> PlayerInfosets:
  """Returns a player's infosets, given the number of actions of each list."""
  own = PlayerInfosets(*(arrays[f"{player}.{name}"] for name in PlayerInfosets._fields))
  for name, array in own._asdict().items():
    require_array(array, name, np.int32, len(own.parent))
  require((own.legal >= 0) & (own.legal < len(counts)), "infosets have lists of actions")
  ends = np.cumsum(counts[own.legal])
  require(
    (own.parent >= 0) & (own.parent <= ends - counts[own.legal]),
    "infosets are discovered after their parents",
  )
  return own


def _rows(
  arrays: Mapping[str, Any], player: int, infosets: PlayerInfosets, sequences: int
) -> PlayerRows:
  """Returns a player's rows, given its infosets and its number of sequences."""
  classes, row_end, entries = (
    arrays[f"{player}.{name}"] for name in ("classes", "row_end", "entries")
  )
  require_array(classes, "classes", np.int32, sequences)
  require_array(row_end, "row_end", np.int64, -1)
  require_array(entries, "entries", np.int32, -1)
  require(np.diff(row_end, prepend=0) >= 0, "rows end after they begin")
  require(len(entries) == (row_end[-1] if len(row_end) else 0), "entries are those of rows")
  require((classes >= 0) & (classes <= sequences), "sequences have classes")
  require((entries > 0) & (entries <= classes.max()), "rows have classes")
  return PlayerRows(
    infosets.parent, np.zeros_like(infosets.parent), infosets.opponent_sequence,
    infosets.chance_path, classes, row_end, entries,
  )  # fmt: skip
