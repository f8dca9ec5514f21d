"""Subgames of a poker game in vector form with a choice in front: a player takes an offer, or plays on.

An offer is a fold on a *side board*, which has the same cards and hands. There, the weights of the chooser's hands are
their offers. Shares of hands that have no choice are on a second side board. It repeats the chooser's decisions and all
terminals. The other player can't tell the boards apart, and decides once.
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.poker.betting_tree import BettingNode, Kind, renumbered
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree, hand_tree

# The actions of the choice, which is node 0, and the number of nodes in front of the game.
TAKE, GO_ON = 0, 1
FRONT = 2
# The boards of offers and of hands without a choice, and the levels of their nodes.
_TAKEN, _DEALT = 1, 2
# A node without a level, which is on no board.
_ABSENT = BettingNode(Kind.CHANCE, level=-1, path=())


def with_choice(
  tree: HandTree, player: int, offers: Float64s, dealt: Float64s | None = None
) -> HandTree:
  """Returns a game in which a player, who knows its hand, first takes an offer or plays on.

  Node `n` of the original game becomes `n + FRONT`.

  Args:
    tree: the original game, which has one board.
    player: the player who chooses.
    offers: float64 (hands,). The payoff of taking the offer with each hand of the board.
    dealt: float64 (hands,). The share of each hand that has no choice and plays on; None for 0.
  """
  (board,), count = tree.boards, len(tree.nodes)
  largest = float(np.abs(offers).max(initial=0.0))
  taken, goes_on = (
    tuple((0, action) if owner == player else None for owner in (0, 1)) for action in (TAKE, GO_ON)
  )
  nodes = [
    BettingNode(Kind.DECISION, 0, (), player, (TAKE, GO_ON), children=[1, FRONT]),
    BettingNode(Kind.FOLD, _TAKEN, (), payoff=largest * (1 - 2 * player), last=taken),
  ]
  nodes += [renumbered(node, 0, [FRONT, FRONT], goes_on) for node in tree.nodes]
  free = np.ones_like(offers) if dealt is None else 1.0 - dealt
  weights = [(0, free), (_TAKEN, free * offers / (largest or 1.0))]
  if dealt is not None:
    weights.append((_DEALT, dealt))
    shifts = [FRONT + count * (owner == player) for owner in (0, 1)]
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
