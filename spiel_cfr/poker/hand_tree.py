"""Public tree of a poker game: the betting of `betting_tree` on each board, with hands as types.

A *board* is the public cards on the table. Its *level* is the number of deals of public cards before it; in the gadgets
of `choice_front`, each board has a level of its own. All boards of a level have the same betting, so a public state is
a pair of a board and a betting node (`BettingNode`).

The fields of `PublicTree` have these contents here. `kind` of a node is the index of its board in `HandTree.boards`.
Its `NodeKind` is in its `BettingNode`. `action` of an edge is a player's action in OpenSpiel, or, below a chance node,
the index of the board that is dealt.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int32s, Int64s, concatenated_ranges
from spiel_cfr._util import files
from spiel_cfr.games.openspiel.checked_calls import CHANCE
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.public_tree import (
  IMPOSSIBLE,
  NO_EDGE,
  NOT_FIRST,
  PLAYERS,
  LastEdges,
  PublicTree,
)
from spiel_cfr.poker.betting_tree import BettingNode, NodeKind, stakes
from spiel_cfr.poker.boards import Board
from spiel_cfr.poker.deal import NUM_CARDS, Deal
from spiel_cfr.poker.hand_tables import HandTables

TERMINALS = NodeKind.FOLD, NodeKind.SHOWDOWN
# The entry of `HandTree.node_of` for a public state that does not exist.
ABSENT = int(np.iinfo(np.int32).min)


@dataclasses.dataclass(frozen=True, eq=False)
class HandTree(PublicTree):
  """Public tree of a poker game. Make one with `hand_tree`.

  Attributes:
    edges_above: LastEdges. The last edge of each player before each node and terminal, `PublicTree.above`.
    terminal_board: int32 (terminals,). The index of each terminal's board in `boards`.
    payoff: float64 (terminals,). At a fold, the payoff of player 0, which is negative if player 0 folds. At a showdown,
      the payoff of the winner, for either player. Both before the rake.
    rake: float64 (terminals,). The chips that the house takes from the pot.
    is_fold: bool (terminals,). True if the terminal is a fold, False if it is a showdown.
    node_of: int32 (boards, betting nodes). The tree's node for each betting node on each board; -1 - k for terminal k,
      `ABSENT` if the betting node does not exist on the board.
    deal: Deal. The cards and hands.
    nodes: list of BettingNode. The betting.
    boards: list of Board. All boards, the one at the beginning first.
  """

  edges_above: LastEdges
  terminal_board: Int32s
  payoff: Float64s
  rake: Float64s
  is_fold: Bools
  node_of: Int32s
  deal: Deal
  nodes: list[BettingNode]
  boards: list[Board]

  @functools.cached_property
  def types(self) -> list[tuple[Int64s, Int64s]]:
    """The hands of each board, as rows of `Deal.hands`, the weakest first; see `PublicTree.types`."""
    return [board.hands for board in self.boards]

  @functools.cached_property
  def classes(self) -> list[tuple[Int64s, Int64s]]:
    """The infoset of each hand of each board, `Board.infoset_of_hand`; see `PublicTree.classes`."""
    return [board.infoset_of_hand for board in self.boards]

  @property
  def above(self) -> LastEdges:
    """See `PublicTree.above`.

    `hand_tree` computes these edges from `BettingNode.last`. `PublicTree.above` would follow the edges down from the
    root, but not all nodes of a search gadget are below its root.
    """
    return self.edges_above

  @property
  def terminal_kind(self) -> Int32s:
    """See `PublicTree.terminal_kind`."""
    return self.terminal_board

  @property
  def num_types(self) -> tuple[int, int]:
    """The number of rows of `Deal.hands`, for both players."""
    return len(self.deal.hands), len(self.deal.hands)

  @property
  def is_merged(self) -> bool:
    """True if a board represents others, or several hands share an infoset."""
    return any(board.copies > 1 or not board.infoset_per_hand for board in self.boards)

  @property
  def is_raked(self) -> bool:
    """True if the house takes a rake, so that payoffs don't sum to 0."""
    return bool(self.rake.any())

  @functools.cached_property
  def stake(self) -> Float64s:
    """The stake of each terminal, float64 (terminals,): sign(`payoff`) * (|`payoff`| - `rake` / 2).

    Let p = |`payoff`| and s = |stake| = p - `rake` / 2. The winner takes the pot without the rake, which is a payoff of
    p - `rake` = s - `rake` / 2. The loser has -p = -s - `rake` / 2. So the payoffs are those of a zero-sum game for s,
    and each player pays half of the rake.
    """
    return stakes(self.payoff, self.rake)

  @property
  def largest_payoff(self) -> float:
    """The largest payoff of a terminal, in chips, won or lost."""
    return float(np.abs(self.payoff).max())

  @functools.cached_property
  def tables(self) -> HandTables:
    """The hands of all boards in the form that kernels read."""
    return HandTables(self.deal, self.boards, self.infoset_offsets)

  def require_one_deal(self, what: str) -> None:
    """Raises UnsupportedGameError if public cards are dealt more than once, or if suits are merged.

    Args:
      what: the first words of the message, a clause without its condition, such as "Hands have no features".
    """
    if self.boards[-1].level > 1 or self.is_merged:
      raise errors.UnsupportedGameError(
        f"{what} if public cards are dealt several times, or with merge_suits=True. Compile an endgame that begins on "
        "the turn or the river, without merge_suits."
      )

  def node_at(self, board: int, node: int) -> int:
    """Returns the tree's node for a betting node on a board, or -1 - k for terminal k."""
    return int(self.node_of[board, node])

  def decisions(self, player: int, board: int) -> list[int]:
    """Returns the betting nodes of a board at which a player decides."""
    return [
      node for node in self.on_board(board, NodeKind.DECISION) if self.nodes[node].player == player
    ]

  def on_board(self, board: int, *kinds: NodeKind) -> list[int]:
    """Returns the betting nodes of a board that are of one of these kinds."""
    level = self.boards[board].level
    return [
      index for index, node in enumerate(self.nodes) if node.kind in kinds and node.level == level
    ]

  def moves(self, edge: int) -> list[int]:
    """Returns the moves of an edge: a player's action, or the public cards, sorted as strings."""
    if self.player[self.node_of_edge[edge]] >= 0:
      return [int(self.action[edge])]
    board = self.boards[self.action[edge]]
    num_before = len(self.boards[board.parent].cards)
    return sorted(board.cards[num_before:], key=str)

  def first_deals(self, view: GameView, player: int) -> Iterator[tuple[Any, Int64s]]:
    """See `PublicTree.first_deals`."""
    # For each deal, given by its actions as strings: the position of the player's hand in `Board.hands` of each board
    # for which the deal is the first. The walk passes through the boards before them, whose entries are `NOT_FIRST` if
    # another deal is first there. It does not enter the other boards: `IMPOSSIBLE`.
    positions_after: dict[tuple[str, ...], Int64s] = {}
    for number, board in enumerate(self.boards):
      for position, hand in enumerate(board.hands[player].tolist()):
        deal = tuple(map(str, first_deal(self.deal, board, player, hand)))
        positions = positions_after.setdefault(deal, np.full(len(self.boards), IMPOSSIBLE))
        positions[number], above = position, board.parent
        while positions[above] == IMPOSSIBLE:
          positions[above], above = NOT_FIRST, self.boards[above].parent
    root = view.new_initial_state()
    for deal, positions in sorted(positions_after.items(), key=lambda item: item[0]):
      state = root.clone()
      for action in deal:
        state.apply_action(int(action))
      yield state, positions

  def saved(self) -> files.Arrays:
    """See `PublicTree.saved`."""
    names = "player kind first_edge action child terminal_board payoff is_fold"
    result = {name: getattr(self, name) for name in names.split()}
    for number, board in enumerate(self.boards):
      result[f"{number}.cards"] = np.array(board.cards, np.int64)
      for player in PLAYERS:
        result[f"{number}.{player}.hands"] = board.hands[player]
        result[f"{number}.{player}.reaches"] = board.reaches[player]
    return result | ({"rake": self.rake} if self.is_raked else {})


class _BoardOrder(NamedTuple):
  """Boards that one more deal of public cards can make of each board, and the boards that it was dealt from.

  Attributes:
    num_following: int64 (boards,). The number of boards to which the next deal leads from each board.
    begin: int64 (boards,). The index in `following` of the first board after each board.
    following: int64 (boards - 1,). The boards after each board, concatenated.
    last_following: int64 (boards, levels + 1). Read only in gadgets. In column l, the board of level l that is dealt
      directly from each board; -1 if there is none. A gadget has at most one; elsewhere it is the last of several.
    ancestors: int64 (boards, levels + 1). In column l, the board of level l from which each board was dealt, or the
      board itself; -1 if there is none.
  """

  num_following: Int64s
  begin: Int64s
  following: Int64s
  last_following: Int64s
  ancestors: Int64s


def _order_boards(level: Int64s, parent: Int64s) -> _BoardOrder:
  """Returns the order of boards, given the level and the parent of each."""
  count = np.bincount(parent[1:], minlength=len(parent))
  last_following, ancestors = np.full((2, len(parent), 2 + level.max()), -1)
  last_following[parent[1:], level[1:]] = np.arange(1, len(parent))
  for board, above in enumerate(parent.tolist()):
    ancestors[board] = ancestors[above]
    ancestors[board, level[board]] = board
  following = 1 + np.argsort(parent[1:], kind="stable")
  return _BoardOrder(count, np.cumsum(count) - count, following, last_following, ancestors)


class _PublicStates(NamedTuple):
  """Public states, which are pairs of a board and a betting node, and their numbers in the tree.

  Attributes:
    is_node: bool (boards, betting nodes). True if the public state is a decision or chance node.
    is_terminal: bool (boards, betting nodes). True if the public state is a fold or a showdown.
    node_of: int32 (boards, betting nodes). `HandTree.node_of`.
    num_edges: int64 (nodes,). The number of edges below each node of the tree.
    first_edge: int64 (boards, betting nodes). The first edge below each node; 0 at other public states.
    order: _BoardOrder. The order of the boards.
  """

  is_node: Bools
  is_terminal: Bools
  node_of: Int32s
  num_edges: Int64s
  first_edge: Int64s
  order: _BoardOrder


def _number_states(nodes: list[BettingNode], boards: list[Board]) -> _PublicStates:
  """Numbers the nodes, terminals and edges of the tree, board by board."""
  level, parent = (
    np.array([getattr(board, name) for board in boards]) for name in ("level", "parent")
  )
  order = _order_boards(level, parent)
  exists = level[:, None] == [node.level for node in nodes]
  ends_hand = np.array([node.kind in TERMINALS for node in nodes])
  is_node, is_terminal = exists & ~ends_hand, exists & ends_hand
  node_of = np.full(exists.shape, ABSENT, np.int32)
  node_of[is_node] = np.arange(is_node.sum())
  node_of[is_terminal] = -1 - np.arange(is_terminal.sum())
  is_chance = np.array([node.kind is NodeKind.CHANCE for node in nodes])
  num_children = [len(node.children) for node in nodes]
  num_edges = np.where(is_chance, order.num_following[:, None], num_children)[is_node]
  first_edge = np.zeros(exists.shape, np.int64)
  first_edge[is_node] = np.cumsum(num_edges) - num_edges
  return _PublicStates(is_node, is_terminal, node_of, num_edges, first_edge, order)


def _edges(nodes: list[BettingNode], states: _PublicStates) -> tuple[Int32s, Int32s]:
  """Returns `action` and `child` of the tree."""
  order = states.order
  action, child = np.full((2, states.num_edges.sum()), ABSENT, np.int32)
  for index, node in enumerate(nodes):
    boards = np.flatnonzero(states.is_node[:, index])
    if not len(boards):
      continue
    first_edges = states.first_edge[boards, index]
    if node.kind is NodeKind.CHANCE:
      counts = order.num_following[boards]
      edges = concatenated_ranges(first_edges, counts)
      following = order.following[concatenated_ranges(order.begin[boards], counts)]
      action[edges] = following
      child[edges] = states.node_of[following, node.children[0]]
      continue
    for offset, (move, target) in enumerate(zip(node.actions, node.children, strict=True)):
      level = nodes[target].level
      # In a gadget, a player's action may lead to another board.
      there = boards if level == node.level else order.last_following[boards, level]
      action[first_edges + offset] = move
      child[first_edges + offset] = np.where(there < 0, ABSENT, states.node_of[there, target])
  return action, child


def _last_edges(nodes: list[BettingNode], states: _PublicStates) -> LastEdges:
  """Returns the last edge of each player before each node and terminal."""
  above = LastEdges(
    *(
      np.full((2, chosen.sum()), NO_EDGE, np.int32)
      for chosen in (states.is_node, states.is_terminal)
    )
  )
  for index, node in enumerate(nodes):
    boards = np.flatnonzero(states.is_node[:, index] | states.is_terminal[:, index])
    numbers = states.node_of[boards, index]
    for player, last in enumerate(node.last):
      if last is None or not len(boards):
        continue
      decision, action_index = last
      ancestors = states.order.ancestors[boards, nodes[decision].level]
      edges = states.first_edge[ancestors, decision] + action_index
      if node.kind in TERMINALS:
        above.terminals[player, -1 - numbers] = edges
      else:
        above.nodes[player, numbers] = edges
  return above


def hand_tree(deal: Deal, nodes: list[BettingNode], boards: list[Board]) -> HandTree:
  """Builds the public tree of a poker game.

  Args:
    deal: the cards and hands.
    nodes: the betting.
    boards: the boards, parents first. A betting node exists on every board of its level.
  """
  states = _number_states(nodes, boards)
  action, child = _edges(nodes, states)
  board_of_node, betting_node = np.nonzero(states.is_node)
  terminal_board, terminal_node = np.nonzero(states.is_terminal)
  players = [node.player if node.kind is NodeKind.DECISION else CHANCE for node in nodes]
  return HandTree(
    player=np.array(players, np.int8)[betting_node],
    kind=board_of_node.astype(np.int32),
    first_edge=np.append(0, np.cumsum(states.num_edges)),
    action=action,
    child=child,
    edges_above=_last_edges(nodes, states),
    terminal_board=terminal_board.astype(np.int32),
    payoff=np.array([node.payoff for node in nodes])[terminal_node],
    rake=np.array([node.rake for node in nodes])[terminal_node],
    is_fold=np.array([node.kind is NodeKind.FOLD for node in nodes])[terminal_node],
    node_of=states.node_of,
    deal=deal,
    nodes=nodes,
    boards=boards,
  )


def first_deal(deal: Deal, board: Board, player: int, hand: int) -> list[int]:
  """Returns the first deal that gives a player a hand and leaves the cards of a board in the deck.

  Deals are ordered by their actions as strings, because OpenSpiel's policies list infosets in that order of histories.

  Args:
    deal: the cards and hands of the game.
    board: the board.
    player: the player.
    hand: the player's hand, a row of `Deal.hands`.

  Returns:
    The actions from OpenSpiel's root to the beginning of the game.
  """
  own = deal.hands[hand].tolist()
  possible = board.hands[1 - player]
  possible = possible[~np.isin(deal.hands[possible], own).any(axis=1)]
  if not deal.one_action:
    own.sort(key=str)
    first_hand = deal.hands[possible[np.argmin(deal.string_order[possible])]]
    other = sorted(first_hand.tolist(), key=str)
    return deal.actions(*((own, other) if player == 0 else (other, own)))
  # One action deals both hands. Its number has the four cards as digits in base `NUM_CARDS`, player 0's hand first.
  others = deal.hands[possible]
  both = [np.broadcast_to(own, others.shape), others]
  digits = np.hstack(both if player == 0 else both[::-1])
  deal_actions = digits @ NUM_CARDS ** np.arange(digits.shape[1])[::-1]
  return [int(min(map(str, deal_actions.tolist()))), *deal.path]
