"""The public tree of hold'em: the betting of `betting_tree` on each board, with hands as types.

A *board* is a set of public cards. Its number is the `PublicTree.kind` of its nodes. The betting between two deals of
public cards is the same on all boards, so a public state is a pair of a board and a betting node. An edge of a chance
node leads to a board, whose number is the edge's action.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int32s, Int64s, concatenated_ranges
from spiel_cfr._util import files
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.public_tree import (
  CHANCE,
  IMPOSSIBLE,
  NO_EDGE,
  NOT_FIRST,
  PLAYERS,
  LastEdges,
  PublicTree,
)
from spiel_cfr.poker.betting_tree import BettingNode, Kind
from spiel_cfr.poker.boards import Board
from spiel_cfr.poker.deal import NUM_CARDS, Deal
from spiel_cfr.poker.hand_tables import HandTables

TERMINALS = Kind.FOLD, Kind.SHOWDOWN
# Stands for the number of a public state that does not exist.
ABSENT = int(np.iinfo(np.int32).min)


@dataclasses.dataclass(frozen=True, eq=False)
class HandTree(PublicTree):
  """The public tree of a poker game. Make one with `hand_tree`.

  Attributes:
    edges_above: LastEdges. `PublicTree.above`.
    terminal_board: int32 (terminals,). The number of each terminal's board.
    payoff: float64 (terminals,). The payoff of player 0 at a fold, of the winner at a showdown, before the rake.
    rake: float64 (terminals,). The chips that the house takes from the pot.
    is_fold: bool (terminals,). Whether a terminal is a fold.
    node_of: int32 (boards, betting nodes). The tree's node at each betting node on each board: -1 - k for terminal k,
      `ABSENT` if the betting node is not on the board.
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
    """The hands of each board, as rows of `Deal.hands`, in order of strength if there is a showdown."""
    return [board.hands for board in self.boards]

  @functools.cached_property
  def classes(self) -> list[tuple[Int64s, Int64s]]:
    """`Board.infoset_of_hand` of each board."""
    return [board.infoset_of_hand for board in self.boards]

  @property
  def above(self) -> LastEdges:
    """The last edge of each player, from `hand_tree`.

    The betting of a gadget has nodes without an edge above, at which `PublicTree.above` would not arrive.
    """
    return self.edges_above

  @property
  def terminal_kind(self) -> Int32s:
    return self.terminal_board

  @property
  def num_types(self) -> tuple[int, int]:
    """The number of hands of the deck, for both players."""
    return len(self.deal.hands), len(self.deal.hands)

  @property
  def is_merged(self) -> bool:
    """True if a board stands for others, or several hands share an infoset."""
    return any(board.copies > 1 or not board.infoset_per_hand for board in self.boards)

  @property
  def is_raked(self) -> bool:
    """True if the house takes a rake, so that payoffs don't sum to 0."""
    return bool(self.rake.any())

  @functools.cached_property
  def stake(self) -> Float64s:
    """`payoff` less half of the rake. Winner and loser both also pay that half; see `rake`."""
    return np.asarray(np.copysign(np.abs(self.payoff) - self.rake / 2, self.payoff))

  @property
  def largest_payoff(self) -> float:
    """The largest payoff of a terminal, in chips, won or lost."""
    return float(np.abs(self.payoff).max())

  @functools.cached_property
  def tables(self) -> HandTables:
    """The hands of all boards in the form that kernels read."""
    return HandTables(self.deal, self.boards, self.infoset_offsets)

  def require_one_deal(self, what: str) -> None:
    """Raises UnsupportedGameError if public cards are dealt more than once, or a board stands for others."""
    if self.boards[-1].level > 1 or self.is_merged:
      raise errors.UnsupportedGameError(
        f"{what}: not where public cards are dealt several times, nor with merge_suits=True. Take an endgame that "
        "begins on the turn or the river."
      )

  def node_at(self, board: int, node: int) -> int:
    """Returns the tree's node at a betting node on a board, or -1 - k for terminal k."""
    return int(self.node_of[board, node])

  def decisions(self, player: int, board: int) -> list[int]:
    """Returns the betting nodes at which a player decides on a board."""
    return [
      node for node in self.on_board(board, Kind.DECISION) if self.nodes[node].player == player
    ]

  def on_board(self, board: int, *kinds: Kind) -> list[int]:
    """Returns the betting nodes of some kinds on a board."""
    level = self.boards[board].level
    return [
      index for index, node in enumerate(self.nodes) if node.kind in kinds and node.level == level
    ]

  def moves(self, edge: int) -> list[int]:
    """Returns a player's action, or the cards that lead to a board, in the order of the first history."""
    if self.player[self.node_of_edge[edge]] >= 0:
      return [int(self.action[edge])]
    board = self.boards[self.action[edge]]
    known = len(self.boards[board.parent].cards)
    return sorted(board.cards[known:], key=str)

  def first_deals(self, view: GameView, player: int) -> Iterator[tuple[Any, Int64s]]:
    found: dict[tuple[str, ...], Int64s] = {}
    for number, board in enumerate(self.boards):
      for place, hand in enumerate(board.hands[player].tolist()):
        deal = tuple(map(str, first_deal(self.deal, board, player, hand)))
        places = found.setdefault(deal, np.full(len(self.boards), IMPOSSIBLE))
        places[number], above = place, board.parent
        while places[above] == IMPOSSIBLE:
          places[above], above = NOT_FIRST, self.boards[above].parent
    root = view.new_initial_state()
    for deal, places in sorted(found.items(), key=lambda item: item[0]):
      state = root.clone()
      for action in deal:
        state.apply_action(int(action))
      yield state, places

  def saved(self) -> files.Arrays:
    names = "player kind first_edge action child terminal_board payoff is_fold"
    result = {name: getattr(self, name) for name in names.split()}
    for number, board in enumerate(self.boards):
      result[f"{number}.cards"] = np.array(board.cards, np.int64)
      for player in PLAYERS:
        result[f"{number}.{player}.hands"] = board.hands[player]
        result[f"{number}.{player}.reaches"] = board.reaches[player]
    return result | ({"rake": self.rake} if self.is_raked else {})


class _BoardOrder(NamedTuple):
  """The boards before and after each board.

  Attributes:
    num_following: int64 (boards,). The number of boards to which the next deal leads from each board.
    begin: int64 (boards,). The place in `following` of the first board after each board.
    following: int64 (boards - 1,). The boards after each board, one list behind the other.
    below: int64 (boards, levels + 1). In column l, the last board of level l that is dealt directly from each board; -1
      if there is none.
    ancestors: int64 (boards, levels + 1). In column l, the board of level l from which each board was dealt, or the
      board itself; -1 if there is none.
  """

  num_following: Int64s
  begin: Int64s
  following: Int64s
  below: Int64s
  ancestors: Int64s


def _order_boards(level: Int64s, parent: Int64s) -> _BoardOrder:
  """Returns the order of boards, given the level and the parent of each."""
  count = np.bincount(parent[1:], minlength=len(parent))
  below, ancestors = np.full((2, len(parent), 2 + level.max()), -1)
  below[parent[1:], level[1:]] = np.arange(1, len(parent))
  for board, before in enumerate(parent.tolist()):
    ancestors[board] = ancestors[before]
    ancestors[board, level[board]] = board
  following = 1 + np.argsort(parent[1:], kind="stable")
  return _BoardOrder(count, np.cumsum(count) - count, following, below, ancestors)


def hand_tree(deal: Deal, nodes: list[BettingNode], boards: list[Board]) -> HandTree:
  """Returns the public tree of some betting on some boards; boards come after their parents."""
  level, parent = (np.array([getattr(own, name) for own in boards]) for name in ("level", "parent"))
  is_end = np.array([node.kind in TERMINALS for node in nodes])
  is_there = level[:, None] == [node.level for node in nodes]
  inner, end = is_there & ~is_end, is_there & is_end
  node_of = np.full(is_there.shape, ABSENT, np.int32)
  node_of[inner], node_of[end] = np.arange(inner.sum()), -1 - np.arange(end.sum())
  order = _order_boards(level, parent)
  is_chance = np.array([node.kind is Kind.CHANCE for node in nodes])
  num_children = [len(node.children) for node in nodes]
  num_edges = np.where(is_chance, order.num_following[:, None], num_children)[inner]
  first = np.zeros(is_there.shape, np.int64)
  first[inner] = np.cumsum(num_edges) - num_edges
  action, child = np.full((2, num_edges.sum()), ABSENT, np.int32)
  above = LastEdges(*(np.full((2, kind.sum()), NO_EDGE, np.int32) for kind in (inner, end)))
  for index, node in enumerate(nodes):
    here = np.flatnonzero(is_there[:, index])
    if not len(here):
      continue
    own = node_of[here, index]
    for player, last in enumerate(node.last):
      if last is not None:
        acted = first[order.ancestors[here, nodes[last[0]].level], last[0]] + last[1]
        above[int(is_end[index])][player, np.where(own < 0, -1 - own, own)] = acted
    if is_chance[index] and len(here):
      edges = concatenated_ranges(first[here, index], order.num_following[here])
      after = order.following[concatenated_ranges(order.begin[here], order.num_following[here])]
      action[edges] = after
      child[edges] = node_of[after, node.children[0]]
    for place, (move, target) in enumerate(zip(node.actions, node.children, strict=False)):
      edges = first[here, index] + place
      action[edges] = move
      there = here if nodes[target].level == node.level else order.below[here, nodes[target].level]
      child[edges] = np.where(there < 0, ABSENT, node_of[there, target])
  board_of, betting_node = np.nonzero(inner)
  terminal_board, terminal_node = np.nonzero(end)
  players = [node.player if node.kind is Kind.DECISION else CHANCE for node in nodes]
  return HandTree(
    player=np.array(players, np.int8)[betting_node],
    kind=board_of.astype(np.int32),
    first_edge=np.append(0, np.cumsum(num_edges)),
    action=action,
    child=child,
    edges_above=above,
    terminal_board=terminal_board.astype(np.int32),
    payoff=np.array([node.payoff for node in nodes])[terminal_node],
    rake=np.array([node.rake for node in nodes])[terminal_node],
    is_fold=np.array([node.kind is Kind.FOLD for node in nodes])[terminal_node],
    node_of=node_of,
    deal=deal,
    nodes=nodes,
    boards=boards,
  )


def first_deal(deal: Deal, board: Board, player: int, hand: int) -> list[int]:
  """Returns the first deal, sorted as strings, that gives a player this hand and leaves the board in the deck."""
  own = deal.hands[hand].tolist()
  possible = board.hands[1 - player]
  possible = possible[~np.isin(deal.hands[possible], own).any(axis=1)]
  if not deal.one_action:
    own.sort(key=str)
    first = deal.hands[possible[np.argmin(deal.string_order[possible])]]
    other = sorted(first.tolist(), key=str)
    return deal.actions(*((own, other) if player == 0 else (other, own)))
  others = deal.hands[possible]
  both = [np.broadcast_to(own, others.shape), others]
  digits = np.hstack(both if player == 0 else both[::-1])
  codes = digits @ NUM_CARDS ** np.arange(digits.shape[1])[::-1]
  return [int(min(map(str, codes.tolist()))), *deal.path]
