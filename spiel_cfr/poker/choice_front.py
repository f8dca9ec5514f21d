"""Parts of a poker game in vector form as games: what follows a public state, and a player's choice in front of a game.

What each hand is offered in place of the game is a fold of its own: on a *side board* with the same cards and hands as
the first, where the chooser's hands weigh what they are offered. Hands that have no choice, in part, are on another
side board. It has the chooser's decisions and all terminals once more, but not the other player's, who can't tell.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.poker.hand_layout import TERMINALS, Layout
from spiel_cfr.poker.public_tree import Kind, PublicNode

# The actions of a choice, which is node 0, and how many nodes come before those of the game.
TAKE, GO_ON = 0, 1
FRONT = 2
# The boards of what is taken and of hands without a choice, and the levels of their nodes.
_TAKEN, _DEALT = 1, 2
# A node that is not there.
_ABSENT = PublicNode(Kind.CHANCE, level=-1, path=())

_Last = tuple[tuple[int, int] | None, ...]


def with_choice(
  layout: Layout, player: int, offers: Float64s, dealt: Float64s | None = None
) -> Layout:
  """Returns a game in which a player, who knows its hand, takes what it is offered or goes on to another game.

  Node `n` of that game becomes `n + FRONT`.

  Args:
    layout: of the game, which has one board.
    player: who chooses.
    offers: what it gets with each hand of the board if it takes that, shape (hands,).
    dealt: which part of each hand has no choice and goes on, shape (hands,); None if all have one.
  """
  (board,), count = layout.boards, len(layout.nodes)
  largest = float(np.abs(offers).max(initial=0.0))
  taken, goes_on = (
    tuple((0, action) if each == player else None for each in (0, 1)) for action in (TAKE, GO_ON)
  )
  nodes = [
    PublicNode(Kind.DECISION, 0, (), player, (TAKE, GO_ON), children=[1, FRONT]),
    PublicNode(Kind.FOLD, _TAKEN, (), payoff=largest * (1 - 2 * player), last=taken),
  ]
  deeper = [int(each == player) for each in (0, 1)]
  nodes += [_moved(node, 0, [FRONT, FRONT], goes_on, deeper) for node in layout.nodes]
  free = np.ones_like(offers) if dealt is None else 1.0 - dealt
  weights = [(0, free), (_TAKEN, free * offers / (largest or 1.0))]
  if dealt is not None:
    weights.append((_DEALT, dealt))
    shifts = [FRONT + each * count for each in deeper]
    nodes += [
      _moved(node, _DEALT, shifts, (None, None), [0, 0])
      if node.kind in TERMINALS or node.player == player
      else _ABSENT
      for node in layout.nodes
    ]
  boards = []
  for level, weight in weights:
    reaches = [own * weight if each == player else own for each, own in enumerate(board.reaches)]
    boards.append(dataclasses.replace(board, level=level, reaches=(reaches[0], reaches[1])))
  return Layout(layout.deal, nodes, boards)


def nodes_below(nodes: Sequence[PublicNode], start: int) -> list[PublicNode]:
  """Returns a node of a public tree and all that follows it, which deals no more public cards, as a public tree."""
  end = start
  while nodes[end].children:
    end = max(nodes[end].children)
  below = nodes[start : end + 1]
  above = [
    min((node.depth for node in below if node.player == player), default=0) for player in (0, 1)
  ]
  higher = [-each for each in above]
  return [_moved(node, 0, [-start, -start], (None, None), higher, start) for node in below]


def _moved(
  node: PublicNode,
  level: int,
  shifts: Sequence[int],
  first: _Last,
  deeper: Sequence[int],
  start: int = 0,
) -> PublicNode:
  """Returns a node elsewhere.

  Args:
    node: of another public tree.
    level: where it is now.
    shifts: how much is added to the numbers of each player's decisions above it.
    first: what each player has done before all else.
    deeper: how many decisions that is more.
    start: decisions with lower numbers are not there.
  """
  last = tuple(
    before if acted is None or acted[0] < start else (acted[0] + shift, acted[1])
    for acted, before, shift in zip(node.last, first, shifts, strict=True)
  )
  children = [child + shifts[node.player] for child in node.children]
  depth = node.depth + deeper[node.player] if node.kind is Kind.DECISION else 0
  return dataclasses.replace(node, level=level, depth=depth, children=children, last=last)
