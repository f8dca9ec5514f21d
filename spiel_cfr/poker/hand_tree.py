"""The public tree of hold'em: the betting of `public_tree` on each board, with the hands that can be there as types.

A *board* is a set of public cards; its number is a kind of the tree. The betting between two deals of public cards is
the same on all boards, so a public state is a board and a node of the betting. An edge of a chance node leads to a
board, whose number is its action.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int32s, Int64s
from spiel_cfr._util import files
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.layout import Cut
from spiel_cfr.games.vector.public_tree import (
  CHANCE,
  IMPOSSIBLE,
  NO_EDGE,
  NOT_FIRST,
  PLAYERS,
  Above,
  PublicTree,
)
from spiel_cfr.poker.boards import Board
from spiel_cfr.poker.deal import NUM_CARDS, Deal
from spiel_cfr.poker.public_tree import Kind, PublicNode

TERMINALS = Kind.FOLD, Kind.SHOWDOWN
# In place of the number of a public state that is not there.
ABSENT = int(np.iinfo(np.int32).min)


@dataclasses.dataclass(frozen=True, eq=False)
class HandTree(PublicTree):
  """The public tree of a poker game. Make one with `hand_tree`.

  Attributes:
    edges_above: see `PublicTree.above`.
    terminal_board: int32 (terminals,). The number of each terminal's board.
    payoff: float64 (terminals,). The payoff of player 0 at a fold, of the winner at a showdown.
    is_fold: bool (terminals,).
    number: int32 (boards, betting nodes). The node of each public state, -1 - k of terminal k, `ABSENT` of none.
    deal: how the game deals hands.
    nodes: the betting.
    boards: all boards, the one at the beginning first.
  """

  edges_above: Above
  terminal_board: Int32s
  payoff: Float64s
  is_fold: Bools
  number: Int32s
  deal: Deal
  nodes: list[PublicNode]
  boards: list[Board]

  @functools.cached_property
  def types(self) -> list[tuple[Int64s, Int64s]]:
    """The hands of each board, as rows of `Deal.hands`, in order of strength where there is a showdown."""
    return [board.hands for board in self.boards]

  @functools.cached_property
  def classes(self) -> list[tuple[Int64s, Int64s]]:
    """See `Board.classes`."""
    return [board.classes for board in self.boards]

  @property
  def above(self) -> Above:
    """See `PublicTree`; behind a gadget the betting has nodes that no edge leads to."""
    return self.edges_above

  @property
  def terminal_kind(self) -> Int32s:
    return self.terminal_board

  @property
  def num_types(self) -> tuple[int, int]:
    """All hands of the deck."""
    return len(self.deal.hands), len(self.deal.hands)

  @property
  def largest_payoff(self) -> float:
    """The most that a player can win or lose."""
    return float(np.abs(self.payoff).max())

  def cut(self) -> Cut | None:
    """Returns a part for each board of the last deal of public cards; None where none are dealt."""
    levels = np.array([board.level for board in self.boards])
    is_last = (levels == levels.max()) & (levels > 0)
    part = np.where(is_last, np.cumsum(is_last), 0).astype(np.int32)
    return Cut(part[self.kind], part[self.terminal_kind]) if is_last.any() else None

  def place(self, board: int, node: int) -> int:
    """Returns the node of a public state, or -1 - k of terminal k, as `Layout.sequences_above` takes it."""
    return int(self.number[board, node])

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
      for lane, hand in enumerate(board.hands[player].tolist()):
        deal = tuple(map(str, first_deal(self.deal, board, player, hand)))
        lanes = found.setdefault(deal, np.full(len(self.boards), IMPOSSIBLE))
        lanes[number], above = lane, board.parent
        while lanes[above] == IMPOSSIBLE:
          lanes[above], above = NOT_FIRST, self.boards[above].parent
    root = view.new_initial_state()
    for deal, lanes in sorted(found.items(), key=lambda item: item[0]):
      state = root.clone()
      for action in deal:
        state.apply_action(int(action))
      yield state, lanes

  def saved(self) -> files.Arrays:
    names = "player kind first_edge action child terminal_board payoff is_fold"
    result = {name: getattr(self, name) for name in names.split()}
    for number, board in enumerate(self.boards):
      result[f"{number}.cards"] = np.array(board.cards, np.int64)
      for player in PLAYERS:
        result[f"{number}.{player}.hands"] = board.hands[player]
        result[f"{number}.{player}.reaches"] = board.reaches[player]
    return result


def hand_tree(deal: Deal, nodes: list[PublicNode], boards: list[Board]) -> HandTree:
  """Returns the public tree of some betting on some boards."""
  on_level = {board.level: list[int]() for board in boards}
  for index, node in enumerate(nodes):
    on_level.get(node.level, []).append(index)
  number = np.full((len(boards), len(nodes)), ABSENT, np.int32)
  # The board of each level on the way to a board, its own included.
  way: list[dict[int, int]] = []
  num_nodes = num_terminals = 0
  for kind, board in enumerate(boards):
    way.append({**(way[board.parent] if kind else {}), board.level: kind})
    for index in on_level[board.level]:
      if nodes[index].kind in TERMINALS:
        number[kind, index] = -1 - num_terminals
        num_terminals += 1
      else:
        number[kind, index] = num_nodes
        num_nodes += 1
  # Boards that follow a board, by level.
  below: list[dict[int, list[int]]] = [{} for _ in boards]
  for kind, board in enumerate(boards):
    if board.parent != kind:
      below[board.parent].setdefault(board.level, []).append(kind)

  players, kinds, first_edge, actions, children = [], [], [0], list[int](), list[int]()
  ends: list[tuple[int, float, bool]] = []
  above: list[list[tuple[int, int]]] = [[], []]
  for kind, board in enumerate(boards):
    for index in on_level[board.level]:
      node = nodes[index]
      last = [NO_EDGE, NO_EDGE]
      for player, own in enumerate(node.last):
        if own is not None:
          acted = number[way[kind][nodes[own[0]].level], own[0]]
          last[player] = first_edge[acted] + own[1]
      if node.kind in TERMINALS:
        above[1].append((last[0], last[1]))
        ends.append((kind, node.payoff, node.kind is Kind.FOLD))
        continue
      above[0].append((last[0], last[1]))
      players.append(node.player if node.kind is Kind.DECISION else CHANCE)
      kinds.append(kind)
      for place, child in enumerate(node.children):
        level = nodes[child].level
        there = [kind] if level == board.level else below[kind].get(level, [])
        actions += there if node.kind is Kind.CHANCE else [node.actions[place]]
        children += [int(number[each, child]) for each in there] or [ABSENT]
      first_edge.append(len(actions))
  return HandTree(
    player=np.array(players, np.int8),
    kind=np.array(kinds, np.int32),
    first_edge=np.array(first_edge, np.int64),
    action=np.array(actions, np.int32),
    child=np.array(children, np.int32),
    edges_above=Above(*(np.array(own, np.int32).reshape(-1, 2).T.copy() for own in above)),
    terminal_board=np.array([end[0] for end in ends], np.int32),
    payoff=np.array([end[1] for end in ends]),
    is_fold=np.array([end[2] for end in ends], bool),
    number=number,
    deal=deal,
    nodes=nodes,
    boards=boards,
  )


def first_deal(deal: Deal, board: Board, player: int, hand: int) -> list[int]:
  """Returns the actions of chance that deal a player this hand and leave the board, first when sorted as strings."""
  own = deal.hands[hand].tolist()
  gone = {*own, *board.cards}
  if not deal.one_action:
    own.sort(key=str)
    left = sorted(set(range(deal.num_cards)) - gone, key=str)
    other = left[: deal.hand_size]
    return deal.actions(*((own, other) if player == 0 else (other, own)))
  candidates = deal.hands[board.hands[1 - player]]
  others = candidates[~np.isin(candidates, own).any(axis=1)]
  both = [np.broadcast_to(own, others.shape), others]
  digits = np.hstack(both if player == 0 else both[::-1])
  codes = digits @ NUM_CARDS ** np.arange(digits.shape[1])[::-1]
  return [int(min(map(str, codes.tolist()))), *deal.path]
