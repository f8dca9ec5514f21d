"""Public trees: the public states of a game as nodes, and the private states that are possible at each node.

Two players have private states (cards, dice, a hand of hold'em), here called *types*; each type has a number. All other
information is public. A history is a node of the public tree and a pair of types. The player who moves at a node has
one infoset there for each of its types, or for each class of types that play alike.

Public chance moves, such as cards on the table, make some types impossible. All nodes at which the same types have the
same probabilities are of one *kind*. The infosets of a node are numbered consecutively. The *offset* of an infoset is
its distance from the first infoset of its node. It depends only on the type and on the kind of the node.

Two modules build public trees: `typed_walk` for OpenSpiel's games of this form, `poker.hand_tree` for hold'em. Their
terminals have different descriptions, from which different payoffs are built.
"""

import abc
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int32s, Int64s, concatenated_ranges
from spiel_cfr._util import files
from spiel_cfr.games.openspiel.game_view import GameView

PLAYERS = (0, 1)
# The last edge of a player before its first move, where its last sequence is the empty one.
NO_EDGE = -1
# Values in `first_deals`. NOT_FIRST: an earlier deal leads to this infoset too. IMPOSSIBLE: the type is impossible.
NOT_FIRST, IMPOSSIBLE = -1, -2


def wrong_game_error(state: Any) -> errors.FileFormatError:
  """Returns the error for a public tree from a file that does not fit the game of a state."""
  return errors.FileFormatError(
    f"By its name the file or pickle is of {state.get_game()}, but that game has other actions after the history "
    f"[{state.history_str()}]."
  )


class LastEdges(NamedTuple):
  """The last edge of each player before each node and terminal; `NO_EDGE` before its first move.

  Attributes:
    nodes: int32 (players, nodes). The last edge before each node.
    terminals: int32 (players, terminals). The last edge before each terminal.
  """

  nodes: Int32s
  terminals: Int32s


@dataclasses.dataclass(frozen=True, eq=False)
class PublicTree(abc.ABC):
  """Nodes, edges and terminals of a public tree, and the types at each node. The root is node 0.

  Attributes:
    player: int8 (nodes,). The player to move; `checked_calls.CHANCE` at chance nodes.
    kind: int32 (nodes,). The kind of each node: the index in `types` and `classes` of its possible types.
    first_edge: int64 (nodes + 1,). The first edge below each node, then the number of edges.
    action: int32 (edges,). OpenSpiel's action, in the order of legal actions; subclasses may override `moves` instead.
    child: int32 (edges,). The node below each edge, or -1 - k for terminal k. In hold'em, `hand_tree.ABSENT` for an
      edge that can't be taken.
  """

  player: Any
  kind: Int32s
  first_edge: Int64s
  action: Int32s
  child: Int32s

  @property
  @abc.abstractmethod
  def types(self) -> list[tuple[Int64s, Int64s]]:
    """For each kind and player, the possible types, int64 (types,)."""

  @property
  @abc.abstractmethod
  def num_types(self) -> tuple[int, int]:
    """The number of types of each player in the whole game."""

  @property
  @abc.abstractmethod
  def terminal_kind(self) -> Int32s:
    """The kind of each terminal, int32 (terminals,)."""

  @abc.abstractmethod
  def first_deals(self, view: GameView, player: int) -> Iterator[tuple[Any, Int64s]]:
    """Yields deals in the order of histories, each of which is the first that leads to some infoset of a player.

    Yields:
      OpenSpiel's state after the deal; and int64 (kinds,), the offset of the player's infoset at nodes of each kind. It
      is `NOT_FIRST` if an earlier deal leads to the infoset, and `IMPOSSIBLE` if the deal is impossible at such nodes.
    """

  @abc.abstractmethod
  def saved(self) -> files.Arrays:
    """Returns arrays that identify the tree."""

  @functools.cached_property
  def classes(self) -> list[tuple[Int64s, Int64s]]:
    """For each kind and player, the class of each of `types`, counted from 0. Types of a class share an infoset."""
    return [(np.arange(len(first)), np.arange(len(second))) for first, second in self.types]

  @functools.cached_property
  def width(self) -> Int64s:
    """The number of infosets of each player at a node of each kind, int64 (players, kinds)."""
    return np.array(
      [[1 + int(classes[player].max(initial=-1)) for classes in self.classes] for player in PLAYERS]
    )

  def infoset_offsets(self, player: int, before: int, after: int) -> Int64s:
    """Returns the offset at an earlier node of the infoset of each type that is possible at a later node.

    Args:
      player: the owner of the types.
      before: the kind of the earlier node; -1 for the empty sequence, which all types share.
      after: the kind of the later node; it may be the same as `before`.

    Returns:
      int64 (types of the later kind,). The offsets, in the order of `types`.
    """
    key = player, before, after
    if key not in self._known_offsets:
      later = self.types[after][player]
      result = np.zeros(len(later), np.int64)
      if before >= 0:
        earlier = self.types[before][player]
        order = np.argsort(earlier)
        index = order[np.searchsorted(earlier, later, sorter=order)]
        result = self.classes[before][player][index]
      self._known_offsets[key] = result
    return self._known_offsets[key]

  @functools.cached_property
  def _known_offsets(self) -> dict[tuple[int, int, int], Int64s]:
    return {}

  def representatives(self, player: int, kind: int) -> Int64s:
    """Returns the index in `types` of the first type of each class of a kind, int64 (infosets of a node,)."""
    return np.asarray(np.unique(self.classes[kind][player], return_index=True)[1])

  @property
  def num_nodes(self) -> int:
    """The number of nodes, without terminals."""
    return len(self.player)

  @property
  def num_terminals(self) -> int:
    """The number of terminals."""
    return len(self.terminal_kind)

  @functools.cached_property
  def num_actions(self) -> Int32s:
    """The number of edges of each node."""
    return np.diff(self.first_edge).astype(np.int32)

  @functools.cached_property
  def node_of_edge(self) -> Int32s:
    """The node above each edge."""
    return np.repeat(np.arange(self.num_nodes, dtype=np.int32), self.num_actions)

  @functools.cached_property
  def edge_above(self) -> Int32s:
    """The edge above each node; `NO_EDGE` at the root."""
    result = np.full(self.num_nodes, NO_EDGE, np.int32)
    edges = np.flatnonzero(self.child >= 0)
    result[self.child[edges]] = edges
    return result

  @functools.cached_property
  def node_of_terminal(self) -> Int32s:
    """The node above each terminal."""
    edges = np.flatnonzero(self.child < 0)
    result = np.zeros(len(edges), np.int32)
    result[-1 - self.child[edges]] = self.node_of_edge[edges]
    return result

  @property
  def num_sequences(self) -> Int64s:
    """The number of sequences that begin at each node, one for each action and infoset; 0 at chance nodes."""
    width = self.width[np.maximum(self.player, 0), self.kind]
    return np.where(self.player < 0, 0, self.num_actions * width)

  @functools.cached_property
  def above(self) -> LastEdges:
    """The last edge of each player before each node and each terminal."""
    nodes = np.full((len(PLAYERS), self.num_nodes), NO_EDGE, np.int32)
    terminals = np.full((len(PLAYERS), self.num_terminals), NO_EDGE, np.int32)
    for level in self.levels():
      edges = concatenated_ranges(self.first_edge[level], self.num_actions[level])
      parent, child = self.node_of_edge[edges], self.child[edges]
      inner = child >= 0
      for player in PLAYERS:
        last = np.where(self.player[parent] == player, edges, nodes[player, parent])
        nodes[player, child[inner]] = last[inner]
        terminals[player, -1 - child[~inner]] = last[~inner]
    return LastEdges(nodes, terminals)

  def choices_above(self) -> LastEdges:
    """Returns the last edge of each player that was a choice: edges of nodes with one action are skipped."""
    result = LastEdges(self.above.nodes.copy(), self.above.terminals.copy())
    is_forced = self.num_actions[self.node_of_edge] == 1
    for player, edges_above in enumerate(self.above.nodes):
      for edges in (result.nodes[player], result.terminals[player]):
        while (forced := (edges >= 0) & is_forced[edges]).any():
          edges[forced] = edges_above[self.node_of_edge[edges[forced]]]
    return result

  def moves(self, edge: int) -> list[int]:
    """Returns OpenSpiel's actions on an edge: one, or several if chance moves several times in a row."""
    return [int(self.action[edge])]

  def actions_above(self, child: int) -> list[int]:
    """Returns OpenSpiel's actions from the root to a node, or to terminal k for -1 - k."""
    result: list[int] = []
    edge = int(self.edge_above[child] if child >= 0 else np.flatnonzero(self.child == child)[0])
    while edge >= 0:
      result[:0] = self.moves(edge)
      edge = int(self.edge_above[self.node_of_edge[edge]])
    return result

  def levels(self) -> list[Int64s]:
    """Returns the nodes of each depth."""
    levels, nodes = [], np.zeros(1, np.int64)
    while len(nodes):
      levels.append(nodes)
      children = self.child[concatenated_ranges(self.first_edge[nodes], self.num_actions[nodes])]
      nodes = children[children >= 0].astype(np.int64)
    return levels
