"""What pruning rewrites between two windows: see `solvers.pruning.solver`. One pass each, parents first.

Two rules share them. Best-response pruning makes all history anew: C and Z are then of all iterations, and what regrets
were before does not matter. Regret-based pruning adds to it: C and Z are of the last window only.
"""

import numpy as np
from numba import types

from spiel_cfr.continuing.kept import KEPT, NOWHERE, Kept
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
from spiel_cfr.kernels.compile import inlined, kernel

_ZERO, _ONE, _YES, _NO = np.uint64(0), np.uint64(1), np.uint8(1), np.uint8(0)


@kernel(types.void(TREE, KEPT, COUNTS, *[FLOATS] * 3))
def add_deferred(
  tree: Tree, kept: Kept, live: Uint64s, strategy: Float64s, opened: Float64s, sums: Float64s
) -> None:
  """Adds to sums of sequence forms, where nobody looked, what the strategies there have come to since.

  Args:
    tree: of all players.
    kept: what was not pruned; what is has no part in any strategy, nor has what follows.
    live: at how many actions of each infoset somebody looked, if there were several.
    strategy: of all infosets.
    opened: the sums at the beginning of the window.
    sums: brought up to date.
  """
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride = tree.groups[group, 0], tree.groups[group, 1]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for each in range(kept.starts[group], kept.starts[group + _ONE]):
      if live[each] <= _ONE:
        j = np.uint64(kept.infosets[each])
        above = tree.parent[j]
        more = sums[above] - opened[above]
        if more != 0.0:
          for action in range(actions):
            row = first + action * stride + j - infoset
            sums[row] += more * strategy[row]


@kernel(types.float64(TREE, KEPT, COUNTS, types.boolean, *[FLOATS] * 6, types.float64))
def note_window(
  tree: Tree,
  kept: Kept,
  live: Uint64s,
  anew: bool,
  regret: Float64s,
  worth: Float64s,
  opened_worth: Float64s,
  values: Float64s,
  opened: Float64s,
  best: Float64s,
  earlier: float,
) -> float:
  """Adds to Z(j) of infosets with one action left what that was worth in the window.

  Args:
    tree: of all players.
    kept: what was not pruned.
    live: how many actions were left at its infosets.
    anew: whether C and Z are of all iterations, or else of the last window.
    regret: R, of the beginning of the window where something is pruned.
    worth: the gradients of all that was ever faced,
    opened_worth: and of what had been at the beginning of the window.
    values: the sums of infosets' values; brought up to date.
    opened: the same at the beginning of the window.
    best: C.
    earlier: the weight of the iteration in which the window began.

  Returns:
    The sum of the positive regrets that the pruned has come to have, times the weight of the last iteration.
  """
  groups, missed = np.uint64(tree.groups.shape[0]), 0.0
  # Of what is kept, in the window; carried up.
  gained = np.empty(kept.sequences.shape[0])
  for each in range(np.uint64(len(gained))):
    gained[each] = worth[kept.sequences[each]] - opened_worth[kept.sequences[each]]
  for back in range(groups):
    group = groups - _ONE - back
    first, stride = tree.groups[group, 0], tree.groups[group, 1]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for each in range(kept.starts[group], kept.starts[group + _ONE]):
      j = np.uint64(kept.infosets[each])
      row = first + j - infoset
      if live[each] == _ONE:
        for action in range(actions):
          place = kept.place[row + action * stride]
          if place != NOWHERE:
            values[j] += gained[place]
      if live[each] != _ZERO:
        gained[kept.place[tree.parent[j]]] += values[j] - opened[j]
      for _ in range(actions):
        if kept.place[row] == NOWHERE:
          excess = best[row] - values[j]
          if not anew:
            excess += opened[j] + earlier * regret[row]
          missed += max(excess, 0.0)
        row += stride
  return missed


@kernel(
  types.void(
    TREE,
    KEPT,
    types.boolean,
    BYTES,
    *[FLOATS] * 5,
    *[BYTES] * 2,
    *[FLOATS] * 2,
    types.float64,
    FLOATS,
    *[types.float64] * 3,
  )
)
def choose(
  tree: Tree,
  kept: Kept,
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
  opened_values: Float64s,
  factor: float,
  ties: Float64s,
  earlier: float,
  weight: float,
  discount: float,
) -> None:
  """Writes the regrets of what nobody looked at and of what is pruned, and decides what is to be from now on.

  The latter are C(ja) - Z(j). The others are multiplied as the minimizer would have done in the window.

  Args:
    tree: of all players.
    kept: at which infosets that is done: all that are not below what is pruned, or more.
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
    opened_values: less what its infoset was worth since the values were these,
    factor: times this, but not below 0.
    ties: below what a difference of utilities is rounding, of each infoset.
    earlier: the weight of the iteration in which the window began,
    weight: and of the last one.
    discount: by what positive regrets are multiplied in a window.
  """
  fading = earlier / weight
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride = tree.groups[group, 0], tree.groups[group, 1]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for each in range(kept.starts[group], kept.starts[group + _ONE]):
      j = np.uint64(kept.infosets[each])
      row, known_here = first + j - infoset, known[tree.parent[j]]
      less = factor * (values[j] - opened_values[j])
      for _ in range(actions):
        before, excess = pruned[row], best[row] - (values[j] - opened[j])
        if looked_at[j] == _NO and before == _NO:
          regret[row] *= discount if regret[row] > 0.0 else fading
        if not anew:
          excess = earlier * regret[row] + excess if before != _NO else weight * regret[row]
        regret[row] = excess / weight if before != _NO else regret[row]
        growth = max(more[row] - less, 0.0)
        hopeless = (excess + growth <= 0.0) & (strategy[row] == 0.0) & (regret[row] < -ties[j])
        pruned[row] = known_here if hopeless else _NO
        # Neither below what is pruned, nor below what is looked at again, of which nothing is known yet.
        known[row] = _NO if hopeless or before != _NO else known_here
        row += stride


@inlined
def _play_regrets(
  row: int, stride: int, actions: int, regret: Float64s, tie: float, strategy: Float64s
) -> None:
  """Writes the strategy of the infoset whose first sequence is `row`."""
  total = 0.0
  for action in range(actions):
    positive = regret[row + action * stride]
    positive = positive if positive > tie else 0.0
    strategy[row + action * stride] = positive
    total += positive
  for action in range(actions):
    share = strategy[row + action * stride] / total if total > 0.0 else 1.0 / actions
    strategy[row + action * stride] = share


@kernel(types.void(TREE, KEPT, types.boolean, *[FLOATS] * 4, *[BYTES] * 2, FLOATS, types.float64))
def restore(
  tree: Tree,
  kept: Kept,
  anew: bool,
  strategy: Float64s,
  regret: Float64s,
  values: Float64s,
  best: Float64s,
  pruned: Bools,
  below: Bools,
  ties: Float64s,
  weight: float,
) -> None:
  """Writes regrets and values below what was pruned as if a best response had been played there, and strategies.

  Args:
    tree: of all players.
    kept: what was not pruned.
    anew: whether what is written is all of their history, or is added to it.
    strategy: brought up to date.
    regret: R, likewise.
    values: Z, likewise.
    best: C.
    pruned: what is to be; what was and is not, is looked at again, so that strategies beside it may change.
    below: workspace of zeros.
    ties: below what a difference of utilities is rounding, of each infoset.
    weight: of the last iteration.
  """
  groups = np.uint64(tree.groups.shape[0])
  for group in range(groups):
    first, stride = tree.groups[group, 0], tree.groups[group, 1]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for each in range(kept.starts[group], kept.starts[group + _ONE]):
      j = np.uint64(kept.infosets[each])
      changed = False
      for action in range(actions):
        row = first + action * stride + j - infoset
        if kept.place[row] == NOWHERE:
          again = pruned[row] == _NO
          changed |= again
          # What is added to history has to be, in any case.
          below[row] = _YES if again or not anew else _NO
      if changed:
        _play_regrets(first + j - infoset, stride, actions, regret, ties[j], strategy)
  for group in range(groups):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for i in range(count):
      j = infoset + i
      if below[tree.parent[j]] == _NO:
        continue
      top = -np.inf
      for action in range(actions):
        top = max(top, best[first + action * stride + i])
      values[j] = top if anew else values[j] + top
      for action in range(actions):
        row = first + action * stride + i
        regret[row] = (best[row] - top) / weight + (0.0 if anew else regret[row])
        below[row] = _YES
      _play_regrets(first + i, stride, actions, regret, ties[j], strategy)


@kernel(types.void(TREE, KEPT, FLOATS, FLOATS))
def copy_kept(tree: Tree, kept: Kept, source: Float64s, target: Float64s) -> None:
  """Copies the numbers of all sequences at the infosets that are reached."""
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride = tree.groups[group, 0], tree.groups[group, 1]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for action in range(actions):
      row_0 = first + action * stride - infoset
      for each in range(kept.starts[group], kept.starts[group + _ONE]):
        row = row_0 + kept.infosets[each]
        target[row] = source[row]


@kernel(types.void(*[FLOATS] * 3, types.float64, types.float64))
def weigh(target: Float64s, first: Float64s, second: Float64s, one: float, other: float) -> None:
  """Writes first * one - second * other to `target`."""
  for i in range(np.uint64(target.shape[0])):
    target[i] = first[i] * one - second[i] * other


@kernel(types.void(FLOATS, FLOATS, INDICES, INDICES))
def copy_some(source: Float64s, target: Float64s, origins: Uint32s, places: Uint32s) -> None:
  """Copies numbers from some places of an array to some of another."""
  for i in range(np.uint64(origins.shape[0])):
    target[places[i]] = source[origins[i]]


# All of them, for those who load them before they need them.
REWRITING = (add_deferred, note_window, choose, restore, copy_kept, weigh, copy_some)
