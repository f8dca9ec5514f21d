"""Labels of infosets: short names for the lists of a page.

The label of an infoset lists the moves that all its histories share, such as `Q · Pass · Bet` in Kuhn poker. If this
list does not identify the infoset (for example, because a history is not on the page), the label is its
infostate without the parts that all infostates of the player share.
"""

import collections
import re

import numpy as np

from spiel_cfr._numba.arrays import Int64s, concatenated_ranges
from spiel_cfr.explorer.page_content import Tree

_SEPARATOR = " · "
# OpenSpiel's infostates are fields in brackets, or words.
_PART = re.compile(r"\[[^\[\]]*\]|[^\s\[\]]+|\S")


def infoset_labels(
  tree: Tree, names: list[str], infostates: list[str], players: Int64s, num_histories: Int64s
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
  """
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


def _common_moves(tree: Tree, names: list[str], num_histories: Int64s) -> list[str | None]:
  """Returns the names of the moves that all histories of an infoset share, joined to one string for each infoset.

  None if a history is not on the page, or histories of the infoset differ in length.
  """
  size = len(tree.mover)
  parent, depth = np.zeros((2, size), np.int64)
  parent[concatenated_ranges(tree.first_child, tree.num_children)] = np.repeat(
    np.arange(size), tree.num_children
  )
  for node in range(1, size):
    depth[node] = depth[parent[node]] + 1
  nodes = np.flatnonzero(tree.row >= 0)
  nodes = nodes[np.argsort(tree.row[nodes], kind="stable")]
  rows, starts, counts = np.unique(tree.row[nodes], return_index=True, return_counts=True)
  result: list[str | None] = [None] * len(num_histories)
  if not len(rows):
    return result
  is_complete = counts == num_histories[rows]
  shallowest = np.minimum.reduceat(depth[nodes], starts)
  is_complete &= shallowest == np.maximum.reduceat(depth[nodes], starts)
  # The shared moves of each infoset, the last move first. `nodes` has the ancestors of all histories at a level.
  shared: list[list[str]] = [[] for _ in rows]
  for level in range(int(depth[nodes].max()), 0, -1):
    is_at_level = depth[nodes] == level
    move = np.where(is_at_level, tree.move[nodes], 0)
    least, most = np.minimum.reduceat(move, starts), np.maximum.reduceat(move, starts)
    for index in np.flatnonzero((least == most) & (least > 0) & is_complete).tolist():
      shared[index].append(names[least[index]])
    nodes = np.where(is_at_level, parent[nodes], nodes)
  for index, row in enumerate(rows.tolist()):
    if is_complete[index]:
      result[row] = _SEPARATOR.join(reversed(shared[index]))
  return result
