"""What pruning rewrites between two windows: see `solvers.pruning.solver`. One pass each, parents first.

Two rules share them. Best-response pruning makes all history anew: C and Z are then of all iterations, and what regrets
were before does not matter. Regret-based pruning adds to it: C and Z are of the last window only.
"""

import numpy as np
from numba import types

from spiel_cfr.game.sweeps import TREE, Tree
from spiel_cfr.kernels.arrays import (
  BYTES,
  COUNTS,
  FLOATS,
  INDICES,
  Bools,
  Float64s,
  Uint32s,
  Uint64s,
)
from spiel_cfr.kernels.compile import kernel

_ZERO, _YES, _NO = np.uint64(0), np.uint8(1), np.uint8(0)


@kernel(types.void(TREE, BYTES, FLOATS, FLOATS, FLOATS))
def add_deferred(
  tree: Tree, looked_at: Bools, strategy: Float64s, opened: Float64s, sums: Float64s
) -> None:
  """Adds to sums of sequence forms, where nobody looked, what the strategies there have come to since.

  Args:
    tree: of all players.
    looked_at: at which infosets somebody looked.
    strategy: of all infosets.
    opened: the sums at the beginning of the window.
    sums: brought up to date.
  """
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for i in range(count):
      if looked_at[infoset + i] == _NO:
        above = tree.parent[infoset + i]
        more = sums[above] - opened[above]
        if more != 0.0:
          for action in range(actions):
            row = first + action * stride + i
            sums[row] += more * strategy[row]


@kernel(types.float64(TREE, types.boolean, COUNTS, BYTES, *[FLOATS] * 5, types.float64))
def carry_window(
  tree: Tree,
  anew: bool,
  actions_left: Uint64s,
  pruned: Bools,
  regret: Float64s,
  worth: Float64s,
  opened: Float64s,
  values: Float64s,
  best: Float64s,
  earlier: float,
) -> float:
  """Finds C, and adds to Z(j) of infosets with one action left what that was worth in the window.

  Args:
    tree: of all players.
    anew: whether C and Z are of all iterations, or else of the last window.
    actions_left: at each infoset; 0 where nothing is to be added.
    pruned: which actions are not left.
    regret: R, of the beginning of the window where something is pruned.
    worth: the gradients of what was faced in the window; carried up.
    opened: the sums of infosets' values at its beginning.
    values: the same now; brought up to date.
    best: the gradients of what C is to respond to; becomes C.
    earlier: the weight of the iteration in which the window began.

  Returns:
    The sum of the positive regrets that the pruned has come to have, times the weight of the last iteration.
  """
  groups, missed = np.uint64(tree.groups.shape[0]), 0.0
  for back in range(groups):
    group = groups - np.uint64(1) - back
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for i in range(count):
      j, top = infoset + i, -np.inf
      for action in range(actions):
        row = first + action * stride + i
        top = max(top, best[row])
        if actions_left[j] == 1 and pruned[row] == _NO:
          values[j] += worth[row]
      best[tree.parent[j]] += top
      if actions_left[j] != 0:
        worth[tree.parent[j]] += values[j] - opened[j]
      for action in range(actions):
        row = first + action * stride + i
        if pruned[row] != _NO:
          excess = best[row] - values[j]
          if not anew:
            excess += opened[j] + earlier * regret[row]
          missed += max(excess, 0.0)
  return missed


@kernel(
  types.void(
    TREE, types.boolean, BYTES, *[FLOATS] * 5, *[BYTES] * 2, *[FLOATS] * 3, *[types.float64] * 3
  )
)
def choose(
  tree: Tree,
  anew: bool,
  looked_at: Bools,
  strategy: Float64s,
  regret: Float64s,
  values: Float64s,
  opened: Float64s,
  best: Float64s,
  pruned: Bools,
  known: Bools,
  more: Float64s,
  less: Float64s,
  ties: Float64s,
  earlier: float,
  weight: float,
  discount: float,
) -> None:
  """Writes the regrets of what nobody looked at and of what is pruned, and decides what is to be from now on.

  The latter are C(ja) - Z(j). The others are multiplied as the minimizer would have done in the window.

  Args:
    tree: of all players.
    anew: whether C and Z are of all iterations, or else of the last window, and added to R.
    looked_at: at which infosets somebody looked in the window.
    strategy: of all infosets.
    regret: R; brought up to date.
    values: the sums of infosets' values,
    opened: less this much is Z.
    best: C.
    pruned: what is pruned; becomes what is to be.
    known: workspace, 1 at the empty sequences.
    more: by how much the regret of each sequence may grow in the next window,
    less: less this much at its infoset, but not below 0.
    ties: below what a difference of utilities is rounding, of each infoset.
    earlier: the weight of the iteration in which the window began,
    weight: and of the last one.
    discount: by what positive regrets are multiplied in a window.
  """
  fading = earlier / weight
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for action in range(actions):
      for i in range(count):
        row, j = first + action * stride + i, infoset + i
        before, excess = pruned[row], best[row] - (values[j] - opened[j])
        if looked_at[j] == _NO and before == _NO:
          regret[row] *= discount if regret[row] > 0.0 else fading
        if not anew:
          excess = earlier * regret[row] + excess if before != _NO else weight * regret[row]
        regret[row] = excess / weight if before != _NO else regret[row]
        growth = max(more[row] - less[j], 0.0)
        hopeless = (excess + growth <= 0.0) & (strategy[row] == 0.0) & (regret[row] < -ties[j])
        known_here = known[tree.parent[j]]
        pruned[row] = known_here if hopeless else _NO
        # Neither below what is pruned, nor below what is looked at again, of which nothing is known yet.
        known[row] = _NO if hopeless or before != _NO else known_here


@kernel(types.void(TREE, types.boolean, *[FLOATS] * 4, *[BYTES] * 2, FLOATS, types.float64))
def restore(
  tree: Tree,
  anew: bool,
  strategy: Float64s,
  regret: Float64s,
  values: Float64s,
  best: Float64s,
  restored: Bools,
  below: Bools,
  ties: Float64s,
  weight: float,
) -> None:
  """Writes regrets and values below what was pruned as if a best response had been played there, and strategies.

  Args:
    tree: of all players.
    anew: whether what is written is all of their history, or is added to it.
    strategy: brought up to date.
    regret: R, likewise.
    values: Z, likewise.
    best: C.
    restored: which sequences are looked at again, so that strategies beside them may change.
    below: below which sequences history is written; workspace.
    ties: below what a difference of utilities is rounding, of each infoset.
    weight: of the last iteration.
  """
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for i in range(count):
      under = below[tree.parent[infoset + i]] != _NO
      changed = under
      for action in range(actions):
        changed |= restored[first + action * stride + i] != _NO
      if not changed:
        continue
      if under:
        top = -np.inf
        for action in range(actions):
          top = max(top, best[first + action * stride + i])
        values[infoset + i] = top if anew else values[infoset + i] + top
        for action in range(actions):
          row = first + action * stride + i
          regret[row] = (best[row] - top) / weight + (0.0 if anew else regret[row])
          below[row] = _YES
      total = 0.0
      for action in range(actions):
        row = first + action * stride + i
        strategy[row] = regret[row] if regret[row] > ties[infoset + i] else 0.0
        total += strategy[row]
      for action in range(actions):
        row = first + action * stride + i
        strategy[row] = strategy[row] / total if total > 0.0 else 1.0 / actions


@kernel(types.void(FLOATS, FLOATS, INDICES, INDICES))
def copy_some(source: Float64s, target: Float64s, origins: Uint32s, places: Uint32s) -> None:
  """Copies numbers from some places of an array to some of another."""
  for i in range(np.uint64(origins.shape[0])):
    target[places[i]] = source[origins[i]]


# All of them, for those who load them before they need them.
REWRITING = (add_deferred, carry_window, choose, restore, copy_some)
