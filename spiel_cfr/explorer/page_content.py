"""Content of a page of the explorer, as arrays, for every form of game.

A page has a tree, of histories or of public states, and what players do in it: a table of infosets, or ranges of hands.
All probabilities are those of one policy, all values are expected utilities in the game's own units.
"""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int64s


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
  """Nodes of a game's tree, parents first, the children of a node next to each other.

  Attributes:
    mover: int64 (nodes,): the player who moves, or `CHANCE` or `TERMINAL` of `history_list`.
    first_child: int64 (nodes,).
    num_children: int64 (nodes,): how many are in the tree.
    num_cut: int64 (nodes,): how many more the game has.
    move: int64 (nodes,): the name of the move that leads here, a row of `Content.names`; 0 at the root.
    probability: float64 (nodes,): that this move is made at the parent.
    values: float64 (nodes, players): what players expect from here on.
    row: int64 (nodes,): of the infosets, or of the public states; `NONE` where there is none.
  """

  mover: Int64s
  first_child: Int64s
  num_children: Int64s
  num_cut: Int64s
  move: Int64s
  probability: Float64s
  values: Float64s
  row: Int64s


@dataclasses.dataclass(frozen=True, eq=False)
class InfosetTable:
  """Infosets, in order of discovery, and their actions one after the other.

  Attributes:
    infostates: information state strings.
    labels: what they are called in lists: what tells them from the owner's others.
    player: int64 (infosets,): whose they are.
    num_actions: int64 (infosets,).
    reach: float64 (infosets,): the probability that play comes there.
    counterfactual_reach: float64 (infosets,): the same if the owner did all to come there.
    value: float64 (infosets,): what the owner expects there; NaN where the others never lead.
    best_value: float64 (infosets,): what it expects from a best response from there on; NaN likewise.
    move: int64 (actions,): names of actions, rows of `Content.names`.
    probability: float64 (actions,): of the policy.
    action_value: float64 (actions,): what the owner expects if it takes the action there and goes on by its policy; NaN
      likewise.
    is_best: bool (actions,): whether a best response of the owner to the others takes it.
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
class HandRange:
  """A player's hands, or its types in games of private types, at a public state.

  Attributes:
    hands: int64 (hands,): rows of the list of all hands.
    weight: float64 (hands,): the probability that chance deals it, as far as it depends on the hand, and that its owner
      plays to the public state with it.
    beside: float64 (hands,): the same of all hands together that the opponent may have beside it; times `weight`, it is
      proportional to the probability that the hand is here.
    value: float64 (hands,): what its owner expects; NaN where the opponent has no hand beside it.
    equity: float64 (hands,): the probability to win if the betting ended here, ties counted half; NaN likewise, and
      where the range is of types.
  """

  hands: Int64s
  weight: Float64s
  beside: Float64s
  value: Float64s
  equity: Float64s


@dataclasses.dataclass(frozen=True, eq=False)
class PublicState:
  """A public state: ranges, strategies and values of hands.

  Attributes:
    board: names of the public cards.
    ranges: each player's.
    moves: names of the actions of the player who moves, rows of `Content.names`; none at chance nodes.
    probability: float64 (actions, hands), hands as in the mover's range.
    action_value: float64 (actions, hands): what the mover expects from an action; NaN as in `HandRange.value`.
    is_best: bool (actions, hands): what a best response does.
  """

  board: list[str]
  ranges: tuple[HandRange, HandRange]
  moves: list[int]
  probability: Float64s
  action_value: Float64s
  is_best: npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class Content:
  """Content of a page.

  Attributes:
    header: what was solved, by what and how well; JSON.
    names: of moves.
    tree: of histories, or of public states.
    infosets: those of a game whose histories are listed, None in vector form.
    public_states: those of a game in vector form, None elsewhere.
    grid: its hands, as JSON: their `unit`, "hand" or "type"; `names` of all, the `row` and the `column` of each in a
      grid, and `labels` of the grid's cells, row by row; None elsewhere.
  """

  header: dict[str, Any]
  names: list[str]
  tree: Tree
  infosets: InfosetTable | None = None
  public_states: list[PublicState] | None = None
  grid: dict[str, Any] | None = None

  @property
  def num_infosets(self) -> int:
    """Number of infosets; in vector form, of hands at public states."""
    if self.infosets is not None:
      return len(self.infosets.player)
    return sum(state.probability.shape[1] for state in self.public_states or ())


def kept_tree(parent: Int64s, kept: Int64s) -> tuple[Int64s, Int64s, Int64s]:
  """Returns `first_child`, `num_children` and `num_cut` of a `Tree` of some of a larger tree's nodes.

  Args:
    parent: of all nodes, whose children are next to each other; that of the root, node 0, is not read.
    kept: those that are kept, ascending, with each its parent.
  """
  first, num_kept = np.zeros((2, len(parent)), np.int64)
  np.add.at(num_kept, parent[kept[1:]], 1)
  # Backwards, so that of several children the first is what remains.
  first[parent[kept[:0:-1]]] = np.arange(len(kept))[:0:-1]
  num_children = np.bincount(parent[1:], minlength=len(parent))
  return first[kept], num_kept[kept], (num_children - num_kept)[kept]


def kept_states(weights: Float64s, sizes: Int64s, max_infosets: int) -> tuple[Int64s, list[str]]:
  """Returns the likeliest public states, ascending, and a sentence on those that are left out; the root is kept always.

  Args:
    weights: float64 (states,). The probability of each; none is likelier than its parent, which comes before it.
    sizes: int64 (states,). How many infosets are at each.
    max_infosets: how many may be kept together.
  """
  order = np.argsort(-weights, kind="stable")
  count = max(1, int(np.searchsorted(np.cumsum(sizes[order]), max_infosets, side="right")))
  if count == len(order):
    return np.sort(order), []
  cut = f"{len(order) - count:,} of {len(order):,} public states; the likeliest {count:,} are here"
  return np.sort(order[:count]), [cut]


def number_name(names: dict[str, int], name: str) -> int:
  """Returns the number of a name, a new one if it is new; `Content.names` are the names in order of their numbers."""
  return names.setdefault(name, len(names))
