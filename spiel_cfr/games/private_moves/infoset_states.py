"""OpenSpiel's states of infosets, made on demand.

The walk over core histories stores, for each infoset, a sequence of the opponent and a path of chance that, with the
infoset, are a history. OpenSpiel's states tell whose move of the history is next.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
import pyspiel

from spiel_cfr._numba.arrays import Int32s, Int64s, Integers, taken
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.public_tree import wrong_game_error

_BATCH = 4096
_T = TypeVar("_T")


class PlayerInfosets(NamedTuple):
  """One player's infosets, in order of discovery.

  Attributes:
    parent: int32 (infosets,). The sequence above each infoset; sequences are numbered infoset by infoset, from 0, the
      empty one.
    legal: int32 (infosets,). The list of legal actions at each infoset, in `InfosetStates.action_lists`.
    opponent_sequence: int32 (infosets,). A sequence of the opponent that, with the infoset, is a history.
    chance_path: int32 (infosets,). The path of chance of that history, or -1.
  """

  parent: Int32s
  legal: Int32s
  opponent_sequence: Int32s
  chance_path: Int32s


class InfosetStates:
  """Histories that lead to infosets, and OpenSpiel's states after them.

  Attributes:
    players: PlayerInfosets of each player.
    action_lists: list of tuples of int. The different lists of actions.
    chance_action: int32 (paths,). The last action of each path of chance.
    chance_before: int32 (paths,). The path of chance before that action, or -1.
  """

  def __init__(
    self,
    players: tuple[PlayerInfosets, PlayerInfosets],
    action_lists: list[tuple[int, ...]],
    chance_action: Int32s,
    chance_before: Int32s,
  ) -> None:
    """Takes the attributes."""
    self.players, self.action_lists = players, action_lists
    self.chance_action, self.chance_before = chance_action, chance_before

  @functools.cached_property
  def _actions(self) -> Int64s:
    """The lists of actions as a table, int64 (lists, longest), filled up with -1."""
    table = np.full((len(self.action_lists), max(map(len, self.action_lists))), -1)
    for row, actions in enumerate(self.action_lists):
      table[row, : len(actions)] = actions
    return table

  def num_actions(self, player: int) -> Int64s:
    """Returns the number of actions of each of a player's infosets."""
    lengths = np.array([len(actions) for actions in self.action_lists])
    return taken(lengths, self.players[player].legal)

  def actions(self, player: int) -> Int64s:
    """Returns the legal actions of a player, infoset by infoset, end to end."""
    flat = self._actions[self.players[player].legal].ravel()
    return flat[flat >= 0]

  @functools.cached_property
  def _first_sequences(self) -> list[Int64s]:
    """For each player, int64 (infosets,). The first sequence of each infoset."""
    counts = [self.num_actions(player) for player in (0, 1)]
    return [1 + np.cumsum(of_player) - of_player for of_player in counts]

  def __getstate__(self) -> dict[str, Any]:
    """Leaves out cached attributes."""
    cached = ("_actions", "_first_sequences")
    return {name: value for name, value in vars(self).items() if name not in cached}

  def states(self, view: GameView, player: int, infosets: Int64s) -> list[Any]:
    """Returns a state of each of some infosets of a player.

    Raises:
      FileFormatError: the histories are from a file, and not of the view's game.
    """
    columns = self.players[player]
    moves = [[], [], self._chance_moves(columns.chance_path[infosets])]
    moves[player] = self._moves(player, columns.parent[infosets])
    moves[1 - player] = self._moves(1 - player, columns.opponent_sequence[infosets])
    result = []
    for moves_of_history in zip(*moves, strict=True):
      state, remaining = view.new_initial_state(), [iter(actions) for actions in moves_of_history]
      try:
        for _ in range(sum(map(len, moves_of_history))):
          # Chance is player -1, and the last of the three.
          state.apply_action_with_legality_check(next(remaining[state.current_player()]))
      except (IndexError, StopIteration, pyspiel.SpielError) as error:
        raise wrong_game_error(state) from error
      if state.current_player() != player:
        raise wrong_game_error(state)
      result.append(state)
    return result

  def _moves(self, player: int, sequences: Integers) -> list[list[int]]:
    """Returns a player's actions on the way to each of some sequences."""
    infosets, first_sequence = self.players[player], self._first_sequences[player]
    columns = []
    while sequences.any():
      has_action = sequences > 0
      last = sequences[has_action]
      infoset = np.searchsorted(first_sequence, last, side="right") - 1
      actions = np.full(len(sequences), -1)
      place = last - first_sequence[infoset]
      actions[has_action] = self._actions[infosets.legal[infoset], place]
      columns.append(actions)
      sequences = sequences.copy()
      sequences[has_action] = infosets.parent[infoset]
    return _rows(columns, len(sequences))

  def _chance_moves(self, paths: Integers) -> list[list[int]]:
    """Returns the actions of each of some paths of chance."""
    columns = []
    while (paths >= 0).any():
      columns.append(np.where(paths >= 0, self.chance_action[paths], -1))
      paths = np.where(paths >= 0, self.chance_before[paths], -1)
    return _rows(columns, len(paths))


def _rows(columns: list[Int64s], count: int) -> list[list[int]]:
  """Returns the actions of each history, without -1, given the last actions, the actions before them and so on."""
  if not columns:
    return [[] for _ in range(count)]
  table = np.stack(columns[::-1], axis=1).tolist()
  return [[action for action in row if action >= 0] for row in table]


class OfInfosets(Sequence[_T]):
  """Sequence with an element for each infoset of a player. Elements are made on demand, to save memory."""

  def __init__(self, count: int, make: Callable[[Int64s], list[_T]]) -> None:
    """Takes the number of infosets, and a function that makes the elements of some infosets."""
    self._count, self._make = count, make

  def __len__(self) -> int:
    return self._count

  @overload
  def __getitem__(self, place: int) -> _T: ...
  @overload
  def __getitem__(self, place: slice) -> list[_T]: ...
  def __getitem__(self, place: int | slice) -> _T | list[_T]:
    chosen = range(self._count)[place]
    if isinstance(chosen, int):
      return self._make(np.array([chosen]))[0]
    return self._make(np.array(chosen, np.int64))

  def __iter__(self) -> Iterator[_T]:
    for begin in range(0, self._count, _BATCH):
      yield from self[begin : begin + _BATCH]

  def __eq__(self, other: object) -> bool:
    return isinstance(other, Sequence) and list(self) == list(other)

  __hash__ = None  # type: ignore[assignment]
