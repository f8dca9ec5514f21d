"""Engine of Monte Carlo CFR that samples OpenSpiel's states, for games too large to compile.

It runs the same compiled traversal as `compiled_engine`. The traversal stops before every history, and this engine
lists the history: it reads OpenSpiel's state and writes the history's row. Only the current history, its ancestors and
their children have rows.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Uint64s
from spiel_cfr._numba.steps import Chain, Step
from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.histories import UNSIGNED_CHANCE, UNSIGNED_TERMINAL, Histories
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
from spiel_cfr.mccfr.updates import average_all

# Rules that may explore more than one action of a decision.
_SEVERAL_ACTIONS = Rule.EVERY_ACTION, Rule.BY_AVERAGE
# The first lengths of arrays: over open decisions, and over histories, outcomes of chance and infosets.
_DEPTH, _ROOM = 32, 256


class ImperfectRecallWarning(UserWarning):
  """A player forgets its own actions, so that no theorem says that the average policy converges."""


class _Ancestor(NamedTuple):
  """A listed ancestor of the current history.

  Attributes:
    state: the OpenSpiel state. The last child to be explored is made in place, all others from copies.
    moves: list of int. The actions that lead to the children.
    first_child: int. The node of the first child.
    explores_several: bool. True if more than one child may be explored.
    mover: int. The player to move, or chance.
    first_entry: int. The entry of the infoset's action 0.
    sequences: list of int. The entry of each player's last sequence.
  """

  state: Any
  moves: list[int]
  first_child: int
  explores_several: bool
  mover: int
  first_entry: int
  sequences: list[int]


class StateEngine:
  """Engine that samples a game's states, and stores the infosets that they visit.

  Attributes:
    table: `Table`. Regrets, strategies and averages.
    infostates: list of a dictionary for each player, from information state string to the infoset's number in `table`.
    actions: list of lists of int. The legal actions at each infoset of `table`.
    view: `GameView`. The game whose states are sampled.
    counters: uint64 (4,). See `random_draws.new_counters`.
  """

  def __init__(
    self, view: GameView, sampler: Sampler, counters: Uint64s, max_infosets: int
  ) -> None:
    """Starts with an empty table of at most `max_infosets` infosets. The engine advances `counters` as it runs."""
    self.table = Table(view.num_players, sampler.baseline_rate > 0)
    self.infostates: list[dict[str, int]] = [{} for _ in range(view.num_players)]
    self.actions: list[list[int]] = []
    # Infosets with the same actions share one list, to save memory.
    self._action_lists: dict[tuple[int, ...], list[int]] = {}
    self.view, self.counters, self._check_returns = view, counters, ReturnsCheck(view)
    self._sampler, self._max_infosets = sampler, max_infosets
    self._has_full_averages = sampler.average_type == AverageType.FULL.value
    self._has_warned = False
    self._longest_history = longest_history(view)
    # The player of the next traversal; the number of players at the end of an iteration.
    self._next_player = 0
    self._numbers = np.zeros(3)
    self._workspace = new_workspace(_DEPTH, max(1, view.game.num_distinct_actions()), _ROOM)
    # The traversal reads a chance node or a terminal history once, right after it was listed. So one row of
    # probabilities and one of returns are enough.
    self._histories = Histories(
      np.zeros((_ROOM, 4), np.uint32), np.zeros(_ROOM), np.zeros((1, view.num_players))
    )
    # The steps of each player's traversals, and the arrays that they refer to.
    self._chains: dict[int, Chain] = {}
    self._arrays_of_chains: tuple[Any, ...] = (None,) * 3
    # The ancestors of the current history, and sums of strategies before the current traversal changed them.
    self._path: list[_Ancestor] = []
    self._averages_before: list[tuple[slice, bytes]] = []

  def __getstate__(self) -> dict[str, Any]:
    """Returns the attributes of copies. These have no chains, because chains refer to the arrays of this engine."""
    return self.__dict__ | {"_chains": {}}

  def run(self, rows: Float64s, updates: Callable[[Traversal], list[Step]]) -> None:
    """Runs one iteration for each row of numbers; see `CompiledEngine.run`.

    Raises:
      GameTooLargeError: the samples visit more than `max_infosets` infosets.
      InconsistentInfosetError: two states of an infoset have different legal actions.
      InvalidPayoffError: see `ReturnsCheck`.
      GameError: a history has no end, or a state fails a check of `GameView`.
    """
    num_players = self.view.num_players
    for row in rows:
      self._numbers[:] = row
      # After an interrupted iteration, it continues with the player of the interrupted traversal.
      while self._next_player < num_players:
        self._traverse(self._next_player, updates)
      self._next_player = 0
      if self._has_full_averages:
        Chain([average_all.on(self._traversal(0))]).run()
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
    """Returns the steps that continue a traversal, and update regrets and strategies once it is over."""
    arrays = self._histories, self.table.entries, self._workspace
    # Arrays that have grown are new arrays, and chains refer to the old ones.
    if any(old is not new for old, new in zip(self._arrays_of_chains, arrays, strict=True)):
      self._chains.clear()
      self._arrays_of_chains = arrays
    if player not in self._chains:
      record = self._traversal(player)
      self._chains[player] = Chain([traverse.on(record), *updates(record)])
    return self._chains[player]

  def _traverse(self, player: int, updates: Callable[[Traversal], list[Step]]) -> None:
    """Runs one traversal. If it is interrupted, everything is undone except new infosets and moved baselines."""
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
      self._averages_before.clear()

  def _undo(self, counters: Uint64s) -> None:
    """Undoes the additions of an unfinished traversal. `counters` are those before the traversal."""
    entries, workspace = self.table.entries, self._workspace
    for infoset_entries, sums in reversed(self._averages_before):
      entries.cumulative[infoset_entries] = np.frombuffer(sums)
    for begin in workspace.reached[: workspace.position.item(REACHED)].tolist():
      entries.increment[begin : begin + entries.touched.item(begin)] = 0.0
      entries.touched[begin] = 0
    self.counters[:] = counters

  def _list_history(self, node: int, player: int, averaged: int) -> None:
    """Writes the row of the history before which the traversal waits.

    Args:
      node: the node of the history.
      player: the updating player.
      averaged: see `Traversal.averaged`.
    """
    state, sequences, first_child = self._state_of(node)
    if len(self._path) > self._longest_history:
      raise has_no_end(self.view, state)
    mover, moves = self.view.mover(state), list[int]()
    # `MOVER` and `INDEX` of the row; a chance node's probabilities and a terminal history's returns are at index 0.
    row_mover, entry, explores_several = UNSIGNED_TERMINAL, 0, False
    if mover == checked_calls.TERMINAL:
      returns = self.view.returns(state)
      self._check_returns(state, returns)
      self._histories.returns[0] = returns
    elif mover == checked_calls.CHANCE:
      outcomes = self.view.chance_outcomes(state)
      row_mover, moves = UNSIGNED_CHANCE, [action for action, _ in outcomes]
      self._reserve(node, len(moves))
      self._histories.probabilities[: len(moves)] = [probability for _, probability in outcomes]
    else:
      moves = self.view.legal_actions(state)
      row_mover, entry = mover, self._entry(state, mover, moves, sequences[mover])
      sampler = self._sampler
      rule = sampler.updating_rule if mover == player else sampler.opponent_rule
      explores_several = rule in _SEVERAL_ACTIONS
      if mover == averaged:
        infoset_entries = slice(entry, entry + len(moves))
        sums = self.table.entries.cumulative[infoset_entries].tobytes()
        self._averages_before.append((infoset_entries, sums))
    self._reserve(node)
    self._histories.nodes[node] = row_mover, entry, first_child, len(moves)
    self._workspace.position[LISTED] = node
    if moves:
      self._path.append(
        _Ancestor(state, moves, first_child, explores_several, mover, entry, sequences)
      )

  def _state_of(self, node: int) -> tuple[Any, list[int], int]:
    """Returns the state of a node, each player's last sequence, and the first node that is free for children."""
    if not node:
      return self.view.new_initial_state(), list(range(self.view.num_players)), 1
    path = self._path
    # Histories that were listed after the node's parent are finished.
    while path[-1].first_child > node:
      path.pop()
    parent = path[-1]
    state, sequences, child = parent.state, parent.sequences, node - parent.first_child
    if parent.explores_several and child + 1 < len(parent.moves):
      state = self.view.child(state, parent.moves[child])
    else:
      self.view.apply(state, parent.moves[child])
    if parent.mover >= 0:
      sequences = sequences.copy()
      sequences[parent.mover] = parent.first_entry + child
    return state, sequences, parent.first_child + len(parent.moves)

  def _reserve(self, node: int, outcomes: int = 0) -> None:
    """Makes room for a node, for one more open decision, for all infosets of the table, and for chance outcomes."""
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

  def _entry(self, state: Any, player: int, legal: list[int], parent: int) -> int:
    """Returns the entry of action 0 of a state's infoset. Adds the infoset to the table if it is new.

    Args:
      state: the state.
      player: the player to move.
      legal: the legal actions.
      parent: the entry of the player's last sequence.
    """
    infostate = self.view.infostate(state)
    infoset = self.infostates[player].get(infostate)
    if infoset is None:
      infoset = self._new_infoset(player, infostate, legal, parent)
    elif self.actions[infoset] != legal:
      raise inconsistent_actions(self.view, state, self.actions[infoset])
    elif self.table.entries.parent.item(infoset) != parent and not self._has_warned:
      self._has_warned = True
      warnings.warn(
        f"Player {player}'s infostate {infostate!r} can be reached by different sequences of that "
        "player's own actions: the game has imperfect recall, and nothing guarantees that the "
        "average policy converges.",
        ImperfectRecallWarning,
        stacklevel=2,
      )
    return self.table.entries.first.item(infoset)

  def _new_infoset(self, player: int, infostate: str, legal: list[int], parent: int) -> int:
    """Adds an infoset to the table, and returns its number."""
    table = self.table
    if table.num_infosets >= self._max_infosets:
      raise errors.GameTooLargeError(
        f"The samples have visited more than max_infosets={self._max_infosets:,} infosets, which take "
        f"{table.num_bytes / 2**20:z,.0f} MiB besides their names. Raise max_infosets if there is "
        "the memory."
      )
    infoset = table.add(len(legal), parent)
    self.infostates[player][infostate] = infoset
    self.actions.append(self._action_lists.setdefault(tuple(legal), legal))
    if self._has_full_averages:
      # The average that the infoset would have if it had been in the table from the start.
      first, cumulative = table.entries.first.item(infoset), table.entries.cumulative
      cumulative[first : first + len(legal)] = cumulative[parent] / len(legal)
    return infoset


def _grown(array: Any, length: int = 0) -> Any:
  """Returns a copy of an array with twice its length, or `length` if that is more."""
  result = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
  result[: len(array)] = array
  return result
