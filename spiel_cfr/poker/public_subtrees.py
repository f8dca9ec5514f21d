"""A game in vector form cut into the betting before a deal of public cards and what follows each of them.

Sequences are numbered anew, board by board, so that each can be gone through alone.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int64s, Uint32s
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Part
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import FIRST_INFOSET, FIRST_SEQUENCE
from spiel_cfr.poker.hand_layout import TERMINALS, HandRow, Layout


class Numbering(NamedTuple):
  """A player's numbering of the sequences of some boards in a row.

  Attributes:
    player: whose.
    boards: which ones.
    begin: the first sequence of these boards.
    length: how many sequences they have.
    entries: sequences of the trunk that are numbered after these, ascending.
  """

  player: int
  boards: range
  begin: int
  length: int
  entries: Int64s

  def has(self, row: HandRow) -> bool:
    """Returns whether a row is on these boards itself."""
    return not self.boards.start or row.board in self.boards

  def first(self, row: HandRow) -> int:
    """Returns the number of a row that its lanes are to be added to."""
    return row.first - self.begin if self.has(row) else 0

  def lanes(self, row: HandRow) -> Int64s:
    """Returns the lanes of a row, or the numbers of its sequences where it is in the trunk."""
    if self.has(row):
      return row.lanes
    return np.asarray(self.length + np.searchsorted(self.entries, row.first + row.lanes))

  def parents(self, layout: Layout) -> Uint32s:
    """Returns the sequence above each infoset of these boards, in the order of the layout."""
    above = [
      self.first(row) + self.lanes(row)[layout.boards[number].members(self.player)]
      for number in self.boards
      for node in layout.decisions(self.player, number)
      for row in [layout.row_above(self.player, number, node)]
    ]
    return np.concatenate([np.zeros(0, np.int64), *above]).astype(np.uint32)


def number_boards(layout: Layout, player: int, boards: range, begin: int) -> Numbering:
  """Numbers a player's sequences of some boards, and those of the trunk that these need, from `begin` on."""
  rows = [
    layout.row_above(player, number, node)
    for number in boards
    for node in [*layout.decisions(player, number), *layout.terminals(number, *TERMINALS)]
  ]
  outside = [row.first + row.lanes for row in rows if boards.start and row.board not in boards]
  entries = np.unique(np.concatenate([np.zeros(0, np.int64), *outside]))
  length = int(layout.begins[player, boards.stop]) - begin
  return Numbering(player, boards, begin, length, entries)


def number_all(layout: Layout, player: int) -> Numbering:
  """Returns the game's own numbering of a player's sequences."""
  return number_boards(layout, player, range(len(layout.boards)), 0)


def parts_of(
  layout: Layout, make_payoff: Callable[[Layout, list[Numbering]], Payoff]
) -> list[Part]:
  """Returns the trunk and one part a board that chance deals, each with the payoff that is made of its numberings."""
  return [_part(layout, board, make_payoff) for board in range(len(layout.boards))]


def _part(
  layout: Layout, board: int, make_payoff: Callable[[Layout, list[Numbering]], Payoff]
) -> Part:
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
    payoff=make_payoff(layout, numberings),
  )
