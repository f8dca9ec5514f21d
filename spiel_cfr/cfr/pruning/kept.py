"""Which sequences their owners still play to: listed, so that nobody passes over a game of which little is left."""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  BYTES,
  COUNT_TABLE,
  INDICES,
  Bools,
  Uint32s,
  Uint64s,
  borrowed,
  tuple_type,
)
from spiel_cfr._numba.kernels import kernel
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.tree_passes import TREE, Tree

# The place of a sequence that is not listed.
NOWHERE = np.uint32(2**32 - 1)
_NO, _ONE = np.uint8(0), np.uint64(1)


class Kept(NamedTuple):
  """Sequences that are neither pruned nor follow what their owner has pruned, and the infosets below them.

  What is done over and over is done in the order of these lists, without a look at the game.

  Attributes:
    place: of each sequence of the game, its place in `sequences`, or `NOWHERE`; shape (sequences of the game,).
    sequences: those, in the order of their numbers, each player's empty one first; shape (kept,).
    owner: of each of them, the place of its infoset in `infosets`; of an empty one, nothing of any use.
    infosets: those right below them, in the order of their numbers, shape (reached,).
    above: of each of them, the place in `sequences` of the sequence above.
    cut: what is pruned at them, in the order of their numbers, shape (pruned,).
    cut_owner: of each of these, the place of its infoset in `infosets`.
    groups: of each group of the game, where its `sequences` begin and end, its `infosets`, and what is `cut`; shape
      (groups, 6).
  """

  place: Uint32s
  sequences: Uint32s
  owner: Uint32s
  infosets: Uint32s
  above: Uint32s
  cut: Uint32s
  cut_owner: Uint32s
  groups: Uint64s


KEPT = tuple_type(Kept, *[INDICES] * 7, COUNT_TABLE)


@kernel(types.uint64(TREE, COUNT_TABLE, BYTES, KEPT))
def list_kept(tree: Tree, players: Uint64s, pruned: Bools, kept: Kept) -> np.uint64:
  """Fills lists that are longer by 1 than all that there can be; all places are `NOWHERE` before.

  Returns:
    How many sequences are kept; `groups` tells the rest.
  """
  tree = borrowed(tree)
  place, sequences, owner, infosets, above, cut, cut_owner, groups = borrowed(kept)
  listed, reached, pruned_so_far = np.uint64(0), np.uint64(0), np.uint64(0)
  for player in range(np.uint64(players.shape[0])):
    root = players[player, 2]
    place[root], sequences[listed], owner[listed] = np.uint32(listed), np.uint32(root), 0
    listed += _ONE
    for group in range(players[player, 0], players[player, 1]):
      first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
      actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
      groups[group, 0], groups[group, 2], groups[group, 4] = listed, reached, pruned_so_far
      # Everywhere without branches that nobody can foresee.
      for i in range(count):
        parent = place[tree.parent[infoset + i]]
        infosets[reached], above[reached] = np.uint32(infoset + i), parent
        reached += np.uint64(parent != NOWHERE)
      for action in range(actions):
        row_0 = first + action * stride - infoset
        for each in range(groups[group, 2], reached):
          row = row_0 + infosets[each]
          is_kept = pruned[row] == _NO
          place[row] = np.uint32(listed) if is_kept else NOWHERE
          sequences[listed], owner[listed] = np.uint32(row), np.uint32(each)
          cut[pruned_so_far], cut_owner[pruned_so_far] = np.uint32(row), np.uint32(each)
          listed += np.uint64(is_kept)
          pruned_so_far += np.uint64(not is_kept)
      groups[group, 1], groups[group, 3], groups[group, 5] = listed, reached, pruned_so_far
  return listed


def find_kept(game: CompiledGame, pruned: Bools) -> Kept:
  """Returns what is kept if these sequences are pruned, of what iterations visit; `pruned` is of shape (sequences,)."""
  decisions = game.decisions
  sequences, owner, cut, cut_owner = np.empty((4, game.end), np.uint32)
  infosets, above = np.empty((2, game.num_infosets + 1), np.uint32)
  place, groups = np.full(game.end, NOWHERE), np.zeros((len(decisions.groups), 6), np.uint64)
  listed = list_kept.unchecked(
    Tree(decisions.groups, decisions.parent),
    decisions.players,
    pruned.view(np.uint8),
    Kept(place, sequences, owner, infosets, above, cut, cut_owner, groups),
  )
  reached, pruned_there = groups[-1, 3::2].tolist() if len(groups) else (0, 0)
  return Kept(
    place,
    sequences[:listed],
    owner[:listed],
    infosets[:reached],
    above[:reached],
    cut[:pruned_there],
    cut_owner[:pruned_there],
    groups,
  )
