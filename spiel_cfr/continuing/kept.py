"""Which sequences their owners still play to: listed, so that nobody passes over a game of which little is left."""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.game.sweeps import TREE, Tree
from spiel_cfr.kernels.arrays import (
  BYTES,
  COUNT_TABLE,
  COUNTS,
  INDICES,
  Bools,
  Uint32s,
  Uint64s,
  tuple_type,
)
from spiel_cfr.kernels.compile import kernel

# The place of a sequence that is not listed.
NOWHERE = np.uint32(2**32 - 1)
_NO, _ONE = np.uint8(0), np.uint64(1)


class Kept(NamedTuple):
  """Sequences that are neither pruned nor follow what their owner has pruned, and the infosets below them.

  Attributes:
    place: of each sequence of the game, its place in `sequences`, or `NOWHERE`; shape (sequences of the game,).
    sequences: those, in the order of their numbers, each player's empty one first; shape (kept,).
    infosets: those right below them, group by group, shape (reached,).
    starts: of each group, where its infosets begin in `infosets`, and one past the last; shape (groups + 1,).
  """

  place: Uint32s
  sequences: Uint32s
  infosets: Uint32s
  starts: Uint64s


KEPT = tuple_type(Kept, *[INDICES] * 3, COUNTS)


@kernel(types.uint64(TREE, COUNT_TABLE, BYTES, KEPT))
def list_kept(tree: Tree, players: Uint64s, pruned: Bools, kept: Kept) -> int:
  """Fills lists that are long enough, `infosets` by 1 longer; all places are `NOWHERE` before.

  Returns:
    How many sequences there are; how many infosets, `starts` says.
  """
  place, sequences, infosets, starts = kept
  listed, met = np.uint64(0), np.uint64(0)
  for player in range(np.uint64(players.shape[0])):
    root = players[player, 2]
    place[root], sequences[listed] = np.uint32(listed), np.uint32(root)
    listed += _ONE
    for group in range(players[player, 0], players[player, 1]):
      first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
      actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
      begin = met
      for i in range(count):
        # Without a branch that nobody can foresee.
        infosets[met] = np.uint32(infoset + i)
        met += np.uint64(place[tree.parent[infoset + i]] != NOWHERE)
      starts[group + _ONE] = met
      for action in range(actions):
        row_0 = first + action * stride - infoset
        for each in range(begin, met):
          row = row_0 + infosets[each]
          if pruned[row] == _NO:
            place[row], sequences[listed] = np.uint32(listed), np.uint32(row)
            listed += _ONE
  return listed


def find_kept(game: CompiledGame, pruned: Bools) -> Kept:
  """Returns what is kept if these sequences are pruned, of what iterations visit; `pruned` is of shape (sequences,)."""
  decisions = game.decisions
  lists = Kept(
    np.full(game.end, NOWHERE),
    np.empty(game.end, np.uint32),
    np.empty(game.num_infosets + 1, np.uint32),
    np.zeros(len(decisions.groups) + 1, np.uint64),
  )
  tree = Tree(decisions.groups, decisions.parent)
  number = list_kept(tree, decisions.players, pruned.view(np.uint8), lists)
  return lists._replace(
    sequences=lists.sequences[:number], infosets=lists.infosets[: int(lists.starts[-1])]
  )
