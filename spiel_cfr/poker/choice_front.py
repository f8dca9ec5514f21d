"""Subgames of a poker game in vector form with a choice in front: a player takes its bound, or plays on.

Taking the bound is a fold on a *side board*, which has the same cards and hands. There, the weights of the chooser's
hands are their bounds. Shares of hands that have no choice are on a second side board. It repeats the chooser's
decisions and all terminals. The other player can't tell the boards apart, and decides once.
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.poker.betting_tree import BettingNode, Kind, renumbered
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree, hand_tree

# The actions of the choice, which is node 0, and the number of nodes in front of the game.
TAKE, GO_ON = 0, 1
NUM_CHOICE_NODES = 2
# The boards of bounds and of hands without a choice, and the levels of their nodes.
_TAKEN, _DEALT = 1, 2
# A node without a level, which is on no board.
_ABSENT = BettingNode(Kind.CHANCE, level=-1, path=())


def with_choice(
  tree: HandTree, player: int, bounds: Float64s, dealt: Float64s | None = None
) -> HandTree:
  """Returns a game in which a player, who knows its hand, first takes its bound or plays on.

  Node `n` of the original game becomes `n + NUM_CHOICE_NODES`.

  Args:
    tree: the original game, which has one board.
    player: the player who chooses.
    bounds: float64 (hands,). The player's payoff of taking the bound with each hand of the board.
    dealt: float64 (hands,). The share of each hand that has no choice and plays on; None for 0.
  """
  (board,), count = tree.boards, len(tree.nodes)
  largest = float(np.abs(bounds).max(initial=0.0))
  taken, goes_on = (
    tuple((0, action) if owner == player else None for owner in (0, 1)) for action in (TAKE, GO_ON)
  )
  nodes = [
    BettingNode(Kind.DECISION, 0, (), player, (TAKE, GO_ON), children=[1, NUM_CHOICE_NODES]),
    BettingNode(Kind.FOLD, _TAKEN, (), payoff=largest * (1 - 2 * player), last=taken),
  ]
  nodes += [
    renumbered(node, 0, [NUM_CHOICE_NODES, NUM_CHOICE_NODES], goes_on) for node in tree.nodes
  ]
  free = np.ones_like(bounds) if dealt is None else 1.0 - dealt
  weights = [(0, free), (_TAKEN, free * bounds / (largest or 1.0))]
  if dealt is not None:
    weights.append((_DEALT, dealt))
    shifts = [NUM_CHOICE_NODES + count * (owner == player) for owner in (0, 1)]
    nodes += [
      renumbered(node, _DEALT, shifts, (None, None))
      if node.kind in TERMINALS or node.player == player
      else _ABSENT
      for node in tree.nodes
    ]
  boards = []
  for level, weight in weights:
    reaches = [own * weight if owner == player else own for owner, own in enumerate(board.reaches)]
    boards.append(dataclasses.replace(board, level=level, reaches=(reaches[0], reaches[1])))
  return hand_tree(tree.deal, nodes, boards)
