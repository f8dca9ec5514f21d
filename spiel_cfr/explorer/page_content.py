"""Content of a page of the explorer as arrays, the same for every form of game.

A page has a tree of histories and a table of infosets, or a tree of public states and ranges of hands. Probabilities
and values are those of one policy. Values are expected payoffs in the game's units.
"""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int64s


@dataclasses.dataclass(frozen=True, eq=False)
class PageTree:
  """Tree of histories or public states. Parents precede their children; the children of a node are adjacent.

  A *move* is an action of a player or an outcome of chance.

  Attributes:
    mover: int64 (nodes,). The player to move, or `CHANCE` or `TERMINAL` of `checked_calls`.
    first_child: int64 (nodes,). The first child of each node.
    num_children: int64 (nodes,). The number of children that are on the page.
    num_cut: int64 (nodes,). The number of children that the page leaves out.
    move: int64 (nodes,). The move that leads to a node, as an index of `Content.names`; 0 at the root.
    probability: float64 (nodes,). The probability, at the parent, of the move that leads to a node.
    values: float64 (nodes, players). The expected payoff of each player from a node on.
    row: int64 (nodes,). The index of a node's infoset or public state in the table; `NONE` if it has neither.
    spent: int64 (nodes, players). The chips of each player in the pot of hold'em; None for other games.
  """

  mover: Int64s
  first_child: Int64s
  num_children: Int64s
  num_cut: Int64s
  move: Int64s
  probability: Float64s
  values: Float64s
  row: Int64s
  spent: Int64s | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class InfosetTable:
  """Table of infosets, and table of their actions, infoset by infoset.

  Values are NaN at infosets with counterfactual reach 0.

  Attributes:
    infostates: list of str. The information state string of each infoset.
    labels: list of str. A short name of each infoset. Infosets of a player may have the same label.
    player: int64 (infosets,). The owner of each infoset.
    num_actions: int64 (infosets,). The number of actions of each infoset.
    reach: float64 (infosets,). The reach probability of each infoset.
    counterfactual_reach: float64 (infosets,). The reach probability if the owner plays to reach the infoset.
    value: float64 (infosets,). The owner's expected payoff at the infoset.
    best_value: float64 (infosets,). The owner's expected payoff by a best response from the infoset on.
    move: int64 (actions,). The name of each action, as an index of `Content.names`.
    probability: float64 (actions,). The probability of each action.
    action_value: float64 (actions,). The owner's expected payoff if it takes an action and then follows its policy.
    is_best: bool (actions,). True if the owner's best response takes the action.
  """

  infostates: list[str]
  labels: list[str]
  player: Int64s
  num_actions: Int64s
  reach: Float64s
  counterfactual_reach: Float64s
  value: Float64s
  best_value: Float64s
  move: Int64s
  probability: Float64s
  action_value: Float64s
  is_best: npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class PrivateRange:
  """Range of a player at a public state, over its private states: hands in poker, types in other games.

  Here and in `PageState`, "hand" also means type.

  Attributes:
    hands: int64 (hands,). The hands, as indices of the names in `Content.grid`.
    weight: float64 (hands,). The probability that the hand is dealt, up to a common factor, times the player's reach.
    opponent_weight: float64 (hands,). The total weight of the opponent's hands that are possible beside the hand.
      `weight * opponent_weight` is proportional to the reach probability of the hand.
    value: float64 (hands,). The player's expected payoff with the hand; NaN if `opponent_weight` is 0.
    equity: float64 (hands,). The probability to win if betting ended here, a tie counted half; NaN if
      `opponent_weight` is 0, and for types.
  """

  hands: Int64s
  weight: Float64s
  opponent_weight: Float64s
  value: Float64s
  equity: Float64s


@dataclasses.dataclass(frozen=True, eq=False)
class PageState:
  """Public state with the ranges of both players, and the strategy of the player to move.

  Attributes:
    board: list of str. The names of the public cards.
    ranges: two `PrivateRange`. The range of each player.
    moves: list of int. The actions of the player to move, as indices of `Content.names`; empty at chance nodes.
    probability: float64 (actions, hands). The strategy of the player to move with each hand of its range.
    action_value: float64 (actions, hands). The expected payoff of the player to move if it takes an action; NaN where
      `PrivateRange.value` is NaN.
    is_best: bool (actions, hands). True if a best response of the player to move takes the action.
  """

  board: list[str]
  ranges: tuple[PrivateRange, PrivateRange]
  moves: list[int]
  probability: Float64s
  action_value: Float64s
  is_best: npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class Content:
  """Content of a page.

  Attributes:
    header: dictionary for JSON. The game, the policy, its values, and the parts left out.
    names: list of str. The names of moves.
    tree: `PageTree`. The tree of histories or public states.
    infosets: `InfosetTable`. The infosets of a game with a list of histories; None for a game in vector form.
    public_states: list of `PageState`. The public states of a game in vector form; None for a list of histories.
    grid: dictionary for JSON. The grid of hands of a game in vector form: `unit`, which is "hand" or "type"; the
      `names` of all hands; the `row` and `column` of every hand; and the `labels` of the cells, row by row. None for a
      list of histories.
  """

  header: dict[str, Any]
  names: list[str]
  tree: PageTree
  infosets: InfosetTable | None = None
  public_states: list[PageState] | None = None
  grid: dict[str, Any] | None = None

  @property
  def num_infosets(self) -> int:
    """Number of infosets; in vector form, number of hands at public states."""
    if self.infosets is not None:
      return len(self.infosets.player)
    return sum(state.probability.shape[1] for state in self.public_states or ())


def kept_tree(parent: Int64s, kept: Int64s) -> tuple[Int64s, Int64s, Int64s]:
  """Returns `first_child`, `num_children` and `num_cut` of the `PageTree` of kept nodes, each of shape (kept,).

  Args:
    parent: int64 (nodes,). The parent of each node; the entry of the root, node 0, is not read. The children of a node
      are adjacent.
    kept: int64 (kept,). The kept nodes in ascending order; the parent of a kept node is kept, too.
  """
  first_child, num_kept = np.zeros((2, len(parent)), np.int64)
  np.add.at(num_kept, parent[kept[1:]], 1)
  # The last write counts, so children are written in reverse order: the first child of a node is written last.
  first_child[parent[kept[:0:-1]]] = np.arange(len(kept))[:0:-1]
  num_children = np.bincount(parent[1:], minlength=len(parent))
  return first_child[kept], num_kept[kept], (num_children - num_kept)[kept]


def number_name(names: dict[str, int], name: str) -> int:
  """Returns the index of a name in `Content.names`, given name -> index. A new name is added."""
  return names.setdefault(name, len(names))
