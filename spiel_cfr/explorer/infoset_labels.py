"""Labels of infosets: short names for lists.

A player knows the moves that all histories of an infoset have in common, as `Q · Pass · Bet` in Kuhn poker, and these
name it. Where that is not so (moves are learned of later, or histories are not on the page), an infoset goes by those
parts of its infostate that not all infostates of its owner have.
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
  """Returns a label for each infoset; no two of a player's are the same, unless their infostates are nearly so.

  Args:
    tree: of histories.
    names: of moves.
    infostates: of the infosets.
    players: int64 (infosets,): whose they are.
    num_histories: int64 (infosets,): how many histories the game has in each, on the page or not.
  """
  known = _common_moves(tree, names, num_histories)
  times = collections.Counter(zip(players.tolist(), known, strict=True))
  result = [label or "" for label in known]
  for player in np.unique(players).tolist():
    own = np.flatnonzero(players == player).tolist()
    unclear = [row for row in own if known[row] is None or times[player, known[row]] > 1]
    if not unclear:
      continue
    parts = {row: _PART.findall(infostates[row]) for row in own}
    shared = set.intersection(*map(set, parts.values())) if len(own) > 1 else set()
    for row in unclear:
      result[row] = " ".join(part for part in parts[row] if part not in shared)
  return result


def _common_moves(tree: Tree, names: list[str], num_histories: Int64s) -> list[str | None]:
  """Returns the moves that all histories of an infoset share; None where some are not here, or are of other lengths."""
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
  whole = counts == num_histories[rows]
  whole &= np.minimum.reduceat(depth[nodes], starts) == np.maximum.reduceat(depth[nodes], starts)
  moves: list[list[str]] = [[] for _ in rows]
  at = nodes
  for level in range(int(depth[nodes].max()), 0, -1):
    here = depth[at] == level
    move = np.where(here, tree.move[at], 0)
    least, most = np.minimum.reduceat(move, starts), np.maximum.reduceat(move, starts)
    for place in np.flatnonzero((least == most) & (least > 0) & whole).tolist():
      moves[place].append(names[least[place]])
    at = np.where(here, parent[at], at)
  for row, is_whole, own in zip(rows.tolist(), whole.tolist(), moves, strict=True):
    if is_whole:
      result[row] = _SEPARATOR.join(reversed(own))
  return result
