"""The front of a poker subgame: a first decision at which one player takes the bound of its hand or plays on.

`search.gadgets` explains fronts, and lists their other two forms. The tree has up to three boards with the same cards
and hands:

- the board of the subgame;
- the board of bounds, on which the choosing player folds. The weights of its hands are their bounds.
- the board of hands that must play on without a choice. It repeats the choosing player's decisions and all terminals.

The other player cannot tell the boards apart and has one decision for all of them.
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.poker.betting_tree import BettingNode, NodeKind, renumbered
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree, hand_tree

# The actions of the choice, which is node 0.
TAKE, GO_ON = 0, 1
# The number of nodes before the subgame: the choice, and the fold that takes the bound.
NUM_CHOICE_NODES = 2
# The levels of the nodes on the board of bounds and on the board of hands without a choice.
_BOUNDS, _FORCED = 1, 2
# A node of a level without boards, which fills the numbering.
_ABSENT = BettingNode(NodeKind.CHANCE, level=-1, path=())


def with_choice(
  tree: HandTree, player: int, bounds: Float64s, forced: Float64s | None = None
) -> HandTree:
  """Returns a subgame in front of which a player, who knows its hand, takes its bound or plays on.

  Node `n` of the subgame becomes `n + NUM_CHOICE_NODES`.

  Args:
    tree: the subgame, which has one board.
    player: the player who chooses.
    bounds: float64 (hands,). The player's payoff of taking the bound with each hand of the board.
    forced: float64 (hands,). The probability with which each hand must play on without a choice; None for 0.
  """
  (board,), count = tree.boards, len(tree.nodes)
  largest_bound = float(np.abs(bounds).max(initial=0.0))
  last_if_taken, last_if_played = (
    tuple((0, action) if owner == player else None for owner in (0, 1)) for action in (TAKE, GO_ON)
  )
  nodes = [
    BettingNode(NodeKind.DECISION, 0, (), player, (TAKE, GO_ON), children=[1, NUM_CHOICE_NODES]),
    BettingNode(
      NodeKind.FOLD, _BOUNDS, (), payoff=largest_bound * (1 - 2 * player), last=last_if_taken
    ),
  ]
  nodes += [
    renumbered(node, 0, [NUM_CHOICE_NODES, NUM_CHOICE_NODES], last_if_played) for node in tree.nodes
  ]
  free = np.ones_like(bounds) if forced is None else 1.0 - forced
  weights = [(0, free), (_BOUNDS, free * bounds / (largest_bound or 1.0))]
  if forced is not None:
    weights.append((_FORCED, forced))
    shifts = [NUM_CHOICE_NODES + count * (owner == player) for owner in (0, 1)]
    nodes += [
      renumbered(node, _FORCED, shifts, (None, None))
      if node.kind in TERMINALS or node.player == player
      else _ABSENT
      for node in tree.nodes
    ]
  boards = []
  for level, weight in weights:
    first, second = (
      reach * weight if owner == player else reach for owner, reach in enumerate(board.reaches)
    )
    boards.append(dataclasses.replace(board, level=level, reaches=(first, second)))
  return hand_tree(tree.deal, nodes, boards)
