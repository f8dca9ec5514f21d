"""Engine that samples OpenSpiel's states, for games too large to compile.

The traversal is that of compiled games. It stops before each history until this engine has listed it from OpenSpiel's
state. Only the current history, its ancestors and their children have rows.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint64s
from spiel_cfr._numba.steps import Chain, Step
from spiel_cfr.games.openspiel import answers
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.histories import CHANCE, TERMINAL, Histories
from spiel_cfr.games.openspiel.state_checks import (
  ReturnsCheck,
  has_no_end,
  inconsistent_actions,
  longest_history,
)
from spiel_cfr.mccfr.infoset_table import Table
from spiel_cfr.mccfr.random_draws import ITERATIONS
from spiel_cfr.mccfr.sampling_rules import AverageType, Rule, Sampler
from spiel_cfr.mccfr.traversal import (
  DEPTH,
  LISTED,
  NODE,
  OVER,
  REACHED,
  Traversal,
  averaged_player,
  begin_traversal,
  new_workspace,
  traverse,
)
from spiel_cfr.mccfr.updates import FullAverage, average_all

# Rules by which several actions of a decision may be explored.
_SEVERAL = Rule.EVERY_ACTION, Rule.BY_AVERAGE
# Initial room: open decisions; histories, outcomes of chance and infosets.
_DEPTH, _ROOM = 32, 256


class ImperfectRecallWarning(UserWarning):
  """A player forgets something, so no theorem says that the average policy converges."""


class _Ancestor(NamedTuple):
  """A listed ancestor of the current history.

  Attributes:
    state: the OpenSpiel state. Its last child is made in place, not by a copy.
    moves: list of int. The actions that lead to its children.
    first_child: int. The node of the first child.
    is_kept: bool. True if several children may be explored.
    mover: int. The player to move, or chance.
    first_entry: int. The entry of the infoset's action 0.
    sequences: list of int. The entry of each player's last sequence.
  """

  state: Any
  moves: list[int]
  first_child: int
  is_kept: bool
  mover: int
  first_entry: int
  sequences: list[int]


class StateEngine:
  """Engine that samples a game's states, and stores the infosets that they meet.

  Attributes:
    table: `Table`. Regrets, strategies and averages.
    infostates: one dictionary a player. Information state string -> number of the infoset in `table`.
    actions: list of lists of int. The legal actions at each infoset of `table`.
    view: `GameView`. The game whose states are sampled.
    counters: uint64 (4,). See `random_draws.new_counters`.
  """

  def __init__(
    self, view: GameView, sampler: Sampler, counters: Uint64s, max_infosets: int
  ) -> None:
    """Starts with an empty table, which may get `max_infosets` infosets. The engine advances `counters`."""
    self.table = Table(view.num_players, sampler.baseline_rate > 0)
    self.infostates: list[dict[str, int]] = [{} for _ in range(view.num_players)]
    self.actions: list[list[int]] = []
    # Most infosets share their list of actions with others.
    self._known_actions: dict[tuple[int, ...], list[int]] = {}
    self.view, self.counters, self._check = view, counters, ReturnsCheck(view)
    self._sampler, self._max_infosets = sampler, max_infosets
    self._full = sampler.average_type == AverageType.FULL.value
    self._warned = False
    self._longest = longest_history(view)
    self._next_player = 0
    self._numbers = np.zeros(3)
    self._workspace = new_workspace(_DEPTH, max(1, view.game.num_distinct_actions()), _ROOM)
    # Chance nodes and terminal histories are read once, at once: one row of probabilities and of returns is enough.
    self._histories = Histories(
      np.zeros((_ROOM, 4), np.uint32), np.zeros(_ROOM), np.zeros((1, view.num_players))
    )
    self._chains: dict[int, Chain] = {}
    self._in_chains: tuple[Any, ...] = (None,) * 3
    self._path: list[_Ancestor] = []
    self._averages: list[tuple[slice, bytes]] = []

  def __getstate__(self) -> dict[str, Any]:
    """Returns the attributes of copies; they have no chains, which refer to the arrays of this engine."""
    return self.__dict__ | {"_chains": {}}

  def run(self, rows: Float64s, updates: Callable[[Traversal], list[Step]]) -> None:
    """Runs an iteration for each row of numbers; see `CompiledEngine.run`.

    Raises:
      GameTooLargeError: the samples meet more than `max_infosets` infosets.
      InconsistentInfosetError: two states of an infoset have different legal actions.
      InvalidPayoffError: see `ReturnsCheck`.
      GameError: a history has no end, or a state fails a check of `GameView`.
    """
    num_players = self.view.num_players
    for row in rows:
      self._numbers[:] = row
      # Positive if an iteration was interrupted.
      while self._next_player < num_players:
        self._traverse(self._next_player, updates)
      self._next_player = 0
      if self._full:
        record = FullAverage(self.table.entries, self._numbers, num_players)
        Chain([average_all.on(record)]).run()
      self.counters[ITERATIONS] += np.uint64(1)

  def _traversal(self, player: int) -> Traversal:
    """Returns the arguments of traversals for a player."""
    return Traversal(
      self._histories,
      self.table.entries,
      self._workspace,
      self.counters,
      self._numbers,
      self._sampler,
      player,
      averaged_player(self._sampler, player, self.view.num_players),
      waits=True,
    )

  def _chain(self, player: int, updates: Callable[[Traversal], list[Step]]) -> Chain:
    """Returns the steps that continue a traversal, and update once it is over."""
    arrays = self._histories, self.table.entries, self._workspace
    # Chains refer to the arrays from before these have grown.
    if any(old is not new for old, new in zip(self._in_chains, arrays, strict=True)):
      self._chains.clear()
      self._in_chains = arrays
    if player not in self._chains:
      record = self._traversal(player)
      self._chains[player] = Chain([traverse.on(record), *updates(record)])
    return self._chains[player]

  def _traverse(self, player: int, updates: Callable[[Traversal], list[Step]]) -> None:
    """Runs one traversal. An interruption undoes all of it except new infosets and moved baselines."""
    before, record = self.counters.copy(), self._traversal(player)
    begin_traversal.function(record)
    try:
      while self._workspace.position[NODE] != OVER:
        self._list_history(self._workspace.position.item(NODE), player, record.averaged)
        self._chain(player, updates).run()
    finally:
      if self._workspace.position[NODE] == OVER:
        self._next_player += 1
      else:
        self._undo(before)
      # Copies and pickles then contain no states.
      self._path.clear()
      self._averages.clear()

  def _undo(self, counters: Uint64s) -> None:
    """Undoes the additions of an unfinished traversal; `counters` are those before it."""
    entries, workspace = self.table.entries, self._workspace
    for part, before in reversed(self._averages):
      entries.cumulative[part] = np.frombuffer(before)
    for begin in workspace.reached[: workspace.position.item(REACHED)].tolist():
      entries.increment[begin : begin + entries.touched.item(begin)] = 0.0
      entries.touched[begin] = 0
    self.counters[:] = counters

  def _list_history(self, node: int, player: int, averaged: int) -> None:
    """Writes the row of the history before which the traversal waits."""
    state, sequences, end = self._state_of(node)
    if len(self._path) > self._longest:
      raise has_no_end(self.view, state)
    mover, kind, moves = self.view.mover(state), TERMINAL, list[int]()
    entry, is_kept = 0, False
    if mover == answers.TERMINAL:
      returns = self.view.returns(state)
      self._check(state, returns)
      self._histories.returns[0] = returns
    elif mover == answers.CHANCE:
      outcomes = self.view.chance_outcomes(state)
      kind, moves = CHANCE, [action for action, _ in outcomes]
      self._reserve(node, len(moves))
      self._histories.probabilities[: len(moves)] = [chance for _, chance in outcomes]
    else:
      moves = self.view.legal_actions(state)
      kind, entry = mover, self._entry(state, mover, moves, sequences[mover])
      is_kept = (self._sampler.own if mover == player else self._sampler.others) in _SEVERAL
      if mover == averaged:
        part = slice(entry, entry + len(moves))
        self._averages.append((part, self.table.entries.cumulative[part].tobytes()))
    self._reserve(node)
    self._histories.nodes[node] = kind, entry, end, len(moves)
    self._workspace.position[LISTED] = node
    if moves:
      self._path.append(_Ancestor(state, moves, end, is_kept, mover, entry, sequences))

  def _state_of(self, node: int) -> tuple[Any, list[int], int]:
    """Returns the state of a node, each player's last sequence, and the node of the first child."""
    if not node:
      return self.view.new_initial_state(), list(range(self.view.num_players)), 1
    path = self._path
    # The traversal has left all histories listed after the parent.
    while path[-1].first_child > node:
      path.pop()
    state, moves, first_child, is_kept, mover, entry, sequences = path[-1]
    place = node - first_child
    if is_kept and place + 1 < len(moves):
      state = self.view.child(state, moves[place])
    else:
      self.view.apply(state, moves[place])
    if mover >= 0:
      sequences = sequences.copy()
      sequences[mover] = entry + place
    return state, sequences, first_child + len(moves)

  def _reserve(self, node: int, outcomes: int = 0) -> None:
    """Makes room for a node, one more open decision, all infosets met, and outcomes of chance."""
    nodes, probabilities, returns = self._histories
    if node >= len(nodes) or outcomes > len(probabilities):
      nodes, probabilities = _grown(nodes, node + 1), _grown(probabilities, outcomes)
      self._histories = Histories(nodes, probabilities, returns)
    workspace = self._workspace
    if workspace.position.item(DEPTH) + 1 >= len(workspace.frames):
      names = ("frames", "weights", "explored", "values")
      deeper = {name: _grown(getattr(workspace, name)) for name in names}
      self._workspace = workspace = workspace._replace(**deeper)
    if self.table.num_infosets > len(workspace.reached):
      reached = _grown(workspace.reached, self.table.num_infosets)
      self._workspace = workspace._replace(reached=reached)

  def actions_of(self, player: int, infostate: str) -> tuple[list[int], Int64s]:
    """Returns an infoset's legal actions, and their entries in the table, both of length (actions,)."""
    infoset = self.infostates[player][infostate]
    actions = list(self.actions[infoset])
    return actions, self.table.entries.first.item(infoset) + np.arange(len(actions))

  def _entry(self, state: Any, player: int, legal: list[int], parent: int) -> int:
    """Returns the entry of action 0 at a state. A new infoset is added to the table."""
    infostate = self.view.infostate(state)
    infoset = self.infostates[player].get(infostate)
    if infoset is None:
      infoset = self._new_infoset(player, infostate, legal, parent)
    elif self.actions[infoset] != legal:
      raise inconsistent_actions(self.view, state, self.actions[infoset])
    elif self.table.entries.parent.item(infoset) != parent and not self._warned:
      self._warned = True
      warnings.warn(
        f"Player {player}'s infostate {infostate!r} can be reached by different sequences of that "
        "player's own actions: the game has imperfect recall, and nothing guarantees that the "
        "average policy converges.",
        ImperfectRecallWarning,
        stacklevel=2,
      )
    return self.table.entries.first.item(infoset)

  def _new_infoset(self, player: int, infostate: str, legal: list[int], parent: int) -> int:
    table = self.table
    if table.num_infosets >= self._max_infosets:
      raise errors.GameTooLargeError(
        f"The samples have met more than max_infosets={self._max_infosets:,} infosets, which take "
        f"{table.num_bytes / 2**20:z,.0f} MiB besides their names. Raise max_infosets if there is "
        "the memory."
      )
    infoset = table.add(len(legal), parent)
    self.infostates[player][infostate] = infoset
    self.actions.append(self._known_actions.setdefault(tuple(legal), legal))
    if self._full:
      # The infoset would have this average if it had been met at the start.
      first, cumulative = table.entries.first.item(infoset), table.entries.cumulative
      cumulative[first : first + len(legal)] = cumulative[parent] / len(legal)
    return infoset


def _grown(array: Any, length: int = 0) -> Any:
  """Returns a copy of an array with twice its length, or `length` if that is more."""
  result = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
  result[: len(array)] = array
  return result
