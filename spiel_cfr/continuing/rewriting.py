"""What best-response pruning rewrites between two windows: see `solvers.pruning`. One pass each, parents first."""

import numpy as np
from numba import types

from spiel_cfr.continuing.compaction import BYTES
from spiel_cfr.game.sweeps import TREE, Tree
from spiel_cfr.kernels.arrays import FLOATS, Bools, Float64s
from spiel_cfr.kernels.compile import kernel

_ZERO, _YES, _NO = np.uint64(0), np.uint8(1), np.uint8(0)


@kernel(types.void(TREE, BYTES, FLOATS, FLOATS, FLOATS))
def add_deferred(
  tree: Tree, kept: Bools, strategy: Float64s, opened: Float64s, sums: Float64s
) -> None:
  """Adds to sums of sequence forms, where nobody looked, what the strategies there have come to since.

  Args:
    tree: of all players.
    kept: which sequences somebody looked at.
    strategy: of all infosets.
    opened: the sums at the beginning of the window.
    sums: brought up to date.
  """
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for i in range(count):
      if kept[first + i] == _NO:
        above = tree.parent[infoset + i]
        more = sums[above] - opened[above]
        for action in range(actions):
          row = first + action * stride + i
          sums[row] += more * strategy[row]


@kernel(types.void(TREE, *[FLOATS] * 4, *[BYTES] * 2, *[FLOATS] * 3, types.float64))
def choose(
  tree: Tree,
  strategy: Float64s,
  regret: Float64s,
  values: Float64s,
  best: Float64s,
  pruned: Bools,
  known: Bools,
  more: Float64s,
  less: Float64s,
  ties: Float64s,
  weight: float,
) -> None:
  """Writes the regrets of what is pruned, C(ja) - Z(j), and decides what is to be from now on.

  Args:
    tree: of all players.
    strategy: of all infosets.
    regret: R; rewritten where something is pruned.
    values: Z.
    best: C.
    pruned: what is pruned; becomes what is to be.
    known: workspace, 1 at the empty sequences.
    more: by how much the regret of each sequence may grow in the next window,
    less: less this much at its infoset, but not below 0.
    ties: below what a difference of utilities is rounding, of each infoset.
    weight: of the last iteration.
  """
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for i in range(count):
      known_here = known[tree.parent[infoset + i]]
      value = values[infoset + i]
      for action in range(actions):
        row = first + action * stride + i
        before, excess = pruned[row], best[row] - value
        if before != _NO:
          regret[row] = excess / weight
        growth = max(more[row] - less[infoset + i], 0.0)
        hopeless = (
          excess + growth <= 0.0 and strategy[row] == 0.0 and regret[row] < -ties[infoset + i]
        )
        pruned[row] = _YES if hopeless and known_here != _NO else _NO
        # Neither below what is pruned, nor below what is looked at again, of which nothing is known yet.
        known[row] = known_here if pruned[row] == _NO and before == _NO else _NO


@kernel(types.void(TREE, *[FLOATS] * 4, *[BYTES] * 2, FLOATS, types.float64))
def restore(
  tree: Tree,
  strategy: Float64s,
  regret: Float64s,
  values: Float64s,
  best: Float64s,
  restored: Bools,
  below: Bools,
  ties: Float64s,
  weight: float,
) -> None:
  """Writes regrets and values below what is looked at again as if a best response had been played, and strategies.

  Args:
    tree: of all players.
    strategy: brought up to date.
    regret: R, likewise.
    values: Z, likewise.
    best: C.
    restored: which sequences are looked at again.
    below: workspace, a copy of `restored`.
    ties: below what a difference of utilities is rounding, of each infoset.
    weight: of the last iteration.
  """
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for i in range(count):
      under, changed = below[tree.parent[infoset + i]] != _NO, False
      if under:
        top = -np.inf
        for action in range(actions):
          top = max(top, best[first + action * stride + i])
        values[infoset + i] = top
        for action in range(actions):
          row = first + action * stride + i
          regret[row] = (best[row] - top) / weight
          below[row] = _YES
      total = 0.0
      for action in range(actions):
        row = first + action * stride + i
        changed = changed or under or restored[row] != _NO
        total += regret[row] if regret[row] > ties[infoset + i] else 0.0
      if changed:
        for action in range(actions):
          row = first + action * stride + i
          positive = regret[row] if regret[row] > ties[infoset + i] else 0.0
          strategy[row] = positive / total if total > 0.0 else 1.0 / actions
