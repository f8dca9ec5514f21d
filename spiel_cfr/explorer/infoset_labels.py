"""Labels of infosets: short names for the lists of a page.

The label of an infoset lists the moves that all its histories share, such as `Q · Pass · Bet` in Kuhn poker. If this
list does not identify the infoset (for example, because a history is not on the page), the label is its
infostate without the parts that all infostates of the player share.
"""

import collections
import re

import numpy as np

from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.explorer.page_content import PageTree

_SEPARATOR = " · "
# OpenSpiel's infostates are fields in brackets, or words.
_PART = re.compile(r"\[[^\[\]]*\]|[^\s\[\]]+|\S")


def infoset_labels(
  tree: PageTree,
  names: list[str],
  infostates: list[str],
  players: Int64s,
  num_histories: Int64s,
  by_moves: bool,
) -> list[str]:
  """Returns a label for each infoset.

  Labels are not always unique. Two infosets of a player have the same label only if their infostates are equal in all
  parts that a label keeps.

  Args:
    tree: the tree of histories.
    names: the names of moves.
    infostates: the information state string of each infoset.
    players: int64 (infosets,). The owner of each infoset.
    num_histories: int64 (infosets,). The number of histories of each infoset in the whole game.
    by_moves: whether labels list moves where these identify the infoset. Otherwise all labels are parts of infostates.
  """
  common: list[str | None] = [None] * len(infostates)
  if by_moves:
    common = _common_moves(tree, names, num_histories)
  times = collections.Counter(zip(players.tolist(), common, strict=True))
  result = [label or "" for label in common]
  for player in np.unique(players).tolist():
    rows = np.flatnonzero(players == player).tolist()
    ambiguous = [row for row in rows if common[row] is None or times[player, common[row]] > 1]
    if not ambiguous:
      continue
    parts = {row: _PART.findall(infostates[row]) for row in rows}
    shared = set.intersection(*map(set, parts.values())) if len(rows) > 1 else set()
    for row in ambiguous:
      result[row] = " ".join(part for part in parts[row] if part not in shared)
  return result


def _common_moves(tree: PageTree, names: list[str], num_histories: Int64s) -> list[str | None]:
  """Returns the names of the moves that all histories of an infoset share, joined to one string for each infoset.

  None if a history is not on the page, or histories of the infoset differ in length.
  """
  # The moves that lead to each node, and the paths to each infoset.
  paths: list[tuple[int, ...]] = [()] * len(tree.mover)
  found: list[list[tuple[int, ...]]] = [[] for _ in num_histories]
  moves = tree.move.tolist()
  nodes = (tree.row.tolist(), tree.first_child.tolist(), tree.num_children.tolist())
  for node, (row, first, count) in enumerate(zip(*nodes, strict=True)):
    for child in range(first, first + count):
      paths[child] = (*paths[node], moves[child])
    if row >= 0:
      found[row].append(paths[node])
  result: list[str | None] = []
  for paths_of_infoset, count in zip(found, num_histories.tolist(), strict=True):
    if len(paths_of_infoset) != count or len({len(path) for path in paths_of_infoset}) != 1:
      result.append(None)
      continue
    columns = zip(*paths_of_infoset, strict=True)
    shared = [column[0] for column in columns if column[0] > 0 and len(set(column)) == 1]
    result.append(_SEPARATOR.join(names[move] for move in shared))
  return result
