"""A poker game cut into the betting before a deal of public cards and what follows each of them."""

import numpy as np

from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Part
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import FIRST_INFOSET, FIRST_SEQUENCE
from spiel_cfr.poker.hand_layout import Layout
from spiel_cfr.poker.hand_numbering import number_boards
from spiel_cfr.poker.hand_payoff import PokerTerminals


def parts_of(layout: Layout) -> list[Part]:
  """Returns the trunk and one part a board that chance deals."""
  return [_part(layout, board) for board in range(len(layout.boards))]


def _part(layout: Layout, board: int) -> Part:
  begins = layout.begins[:, board].tolist() if board else layout.roots[:2]
  ends = layout.begins[:, board + 1].tolist()
  boards = range(board, board + 1)
  numberings = [number_boards(layout, player, boards, begins[player]) for player in PLAYERS]
  trees = []
  for player, numbering in enumerate(numberings):
    groups = layout.groups[player][board].copy()
    groups[:, FIRST_SEQUENCE] -= np.uint64(begins[player])
    groups[:, FIRST_INFOSET] -= np.uint64(layout.first_infosets[player, board])
    trees.append(Tree(groups, numbering.parents(layout)))
  infosets = [
    slice(*layout.first_infosets[player, board : board + 2].tolist()) for player in PLAYERS
  ]
  return Part(
    sequences=(slice(begins[0], ends[0]), slice(begins[1], ends[1])),
    infosets=(infosets[0], infosets[1]),
    trees=(trees[0], trees[1]),
    entries=(
      numberings[0].entries - layout.roots[0],
      numberings[1].entries - layout.roots[1],
    ),
    payoff=PokerTerminals.build(layout, numberings),
  )
