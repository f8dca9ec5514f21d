"""Parts of a poker game in vector form as games: what follows a public state, and a player's choice in front of a game.

An offer in place of the game is a fold on a *side board*: a board with the cards and hands of the first, where the
weights of the chooser's hands are their offers. The parts of hands that have no choice are on a second side board. That
board repeats the chooser's decisions and all terminals. The other player can't tell the boards apart, and decides once.
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree, hand_tree
from spiel_cfr.poker.public_tree import Kind, PublicNode, moved

# The actions of a choice, which is node 0, and how many nodes come before those of the game.
TAKE, GO_ON = 0, 1
FRONT = 2
# The boards of what is taken and of hands without a choice, and the levels of their nodes.
_TAKEN, _DEALT = 1, 2
# A node that is not there.
_ABSENT = PublicNode(Kind.CHANCE, level=-1, path=())


def with_choice(
  tree: HandTree, player: int, offers: Float64s, dealt: Float64s | None = None
) -> HandTree:
  """Returns a game in which a player, who knows its hand, takes what it is offered or goes on to another game.

  Node `n` of that game becomes `n + FRONT`.

  Args:
    tree: of the game, which has one board.
    player: who chooses.
    offers: what it gets with each hand of the board if it takes that, shape (hands,).
    dealt: which part of each hand has no choice and goes on, shape (hands,); None if all have one.
  """
  (board,), count = tree.boards, len(tree.nodes)
  largest = float(np.abs(offers).max(initial=0.0))
  taken, goes_on = (
    tuple((0, action) if each == player else None for each in (0, 1)) for action in (TAKE, GO_ON)
  )
  nodes = [
    PublicNode(Kind.DECISION, 0, (), player, (TAKE, GO_ON), children=[1, FRONT]),
    PublicNode(Kind.FOLD, _TAKEN, (), payoff=largest * (1 - 2 * player), last=taken),
  ]
  nodes += [moved(node, 0, [FRONT, FRONT], goes_on) for node in tree.nodes]
  free = np.ones_like(offers) if dealt is None else 1.0 - dealt
  weights = [(0, free), (_TAKEN, free * offers / (largest or 1.0))]
  if dealt is not None:
    weights.append((_DEALT, dealt))
    shifts = [FRONT + count * (each == player) for each in (0, 1)]
    nodes += [
      moved(node, _DEALT, shifts, (None, None))
      if node.kind in TERMINALS or node.player == player
      else _ABSENT
      for node in tree.nodes
    ]
  boards = []
  for level, weight in weights:
    reaches = [own * weight if each == player else own for each, own in enumerate(board.reaches)]
    boards.append(dataclasses.replace(board, level=level, reaches=(reaches[0], reaches[1])))
  return hand_tree(tree.deal, nodes, boards)
