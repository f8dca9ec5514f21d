"""Best-response backfill: what happens to what was pruned, and to what nobody looked at, when a window ends.

Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via Pruning" (2017). With F all
that a player has ever faced, C(ja) and C(j) the values of the best response to F, and Z(j) = sum of w_t v^t(j), history
at and below a sequence ja that was not played is made anew as if that best response had been played there all along:

    R(ja) = C(ja) - Z(j),    and below:   R(j'a') = C(j'a') - C(j') <= 0,    Z(j') = C(j')

times one over the weight of the next iteration, for regret matching+ cut off at 0. By the identity of
`evaluation.counterfactual_values` that costs nothing, and no positive regret below becomes larger. So as long as R(ja)
stays negative nothing at or below ja need be looked at, and nothing there need be remembered.

Infosets with one action left are not looked at either. Their strategies stay, and so what is theirs is brought up to
date in one pass: sums of averages grow by what has been played to above, Z by what was faced.
"""

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import BYTES, FLOATS, Float64s, Uint8s, borrowed
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr.games.sequence_form.tree_passes import TREE, Memory, Tree, memory_type

MEMORY = memory_type(types.float64)
_ONE, _YES, _NO = np.uint64(1), np.uint8(1), np.uint8(0)


@kernel(types.void(TREE, BYTES, *[FLOATS] * 3))
def add_deferred(
  tree: Tree, seen: Uint8s, strategy: Float64s, opened: Float64s, sums: Float64s
) -> None:
  """Adds to sums of sequence forms, where nobody looked, what the strategies there have come to since.

  Args:
    tree: all infosets.
    seen: 1 at infosets that iterations have visited, shape (infosets,).
    strategy: of all infosets, shape (sequences,).
    opened: the sums at the beginning of the window, likewise.
    sums: brought up to date.
  """
  tree = borrowed(tree)
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for i in range(count):
      above = tree.parent[infoset + i]
      more = sums[above] - opened[above]
      if seen[infoset + i] == _NO and more != 0.0:
        for row in range(first + i, first + i + actions * stride, stride):
          sums[row] += more * strategy[row]


@kernel(types.void(TREE, BYTES, MEMORY, FLOATS, FLOATS))
def note_unseen(
  tree: Tree, seen: Uint8s, memory: Memory, gained: Float64s, opened: Float64s
) -> None:
  """Adds to Z of infosets, where nobody looked, what the strategies there were worth in the window.

  Args:
    tree: all infosets.
    seen: 1 at infosets that iterations have visited, shape (infosets,).
    memory: the solver's; Z is brought up to date.
    gained: the gradient of what was faced in the window, shape (sequences,); written over.
    opened: Z at the beginning of the window, shape (infosets,).
  """
  tree, groups = borrowed(tree), np.uint64(tree.groups.shape[0])
  strategy, values = memory.strategy, memory.local[0]
  for back in range(groups):
    group = groups - _ONE - back
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for j in range(infoset, infoset + count):
      if seen[j] == _NO:
        row_0 = first + j - infoset
        for row in range(row_0, row_0 + actions * stride, stride):
          values[j] += strategy[row] * gained[row]
      gained[tree.parent[j]] += values[j] - opened[j]


@kernel(types.void(TREE, MEMORY, *[FLOATS] * 4, *[BYTES] * 2))
def choose(
  tree: Tree,
  memory: Memory,
  best: Float64s,
  growth: Float64s,
  spent: Float64s,
  least: Float64s,
  reached: Uint8s,
  pruned: Uint8s,
) -> None:
  """Decides which sequences are pruned for a window, the topmost ones only.

  They are not played, and R(ja) stays negative if it grows by no more than is foreseen.

  Args:
    tree: all infosets.
    memory: the solver's.
    best: C, shape (sequences,).
    growth: what each sequence could be worth in the window, likewise,
    spent: less what its infoset will be, shape (infosets,), but not below 0.
    least: how negative R has to be, likewise.
    reached: workspace of zeros, but of ones at empty sequences; shape (sequences,).
    pruned: what was pruned, below which nothing is known, and so nothing is decided; becomes what is to be.
  """
  tree = borrowed(tree)
  strategy, values = memory.strategy, memory.local[0]
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for j in range(infoset, infoset + count):
      here, row_0 = reached[tree.parent[j]], first + j - infoset
      for row in range(row_0, row_0 + actions * stride, stride):
        more = max(growth[row] - spent[j], 0.0)
        hopeless = here & np.uint8(strategy[row] == 0.0)
        hopeless &= np.uint8(best[row] - values[j] + more < -least[j])
        reached[row] = here & (_YES - hopeless) & (_YES - pruned[row])
        pruned[row] = hopeless


@inlined
def _match(rows: range, regret: Float64s, tie: float, strategy: Float64s) -> None:
  """Writes the strategy of regret matching at an infoset's sequences."""
  total = 0.0
  for row in rows:
    strategy[row] = regret[row] if regret[row] > tie else 0.0
    total += strategy[row]
  for row in rows:
    strategy[row] = strategy[row] / total if total > 0.0 else 1.0 / len(rows)


@kernel(types.void(TREE, BYTES, MEMORY, FLOATS, types.float64, FLOATS))
def restore(
  tree: Tree, again: Uint8s, memory: Memory, best: Float64s, weight: float, ties: Float64s
) -> None:
  """Makes the history at and below what is looked at again that of a best response; see the module's docstring.

  Args:
    tree: all infosets.
    again: 1 for what was pruned and is not any more, shape (sequences,); filled with 1 below.
    memory: the solver's; strategies, regrets and Z are brought up to date.
    best: C, shape (sequences,).
    weight: of the next iteration.
    ties: below what a difference of utilities is rounding, of each infoset.
  """
  tree = borrowed(tree)
  strategy, regret, values = memory.strategy, memory.state[0], memory.local[0]
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for j in range(infoset, infoset + count):
      row_0 = first + j - infoset
      rows = range(row_0, row_0 + actions * stride, stride)
      if again[tree.parent[j]] == _YES:
        values[j] = -np.inf
        for row in rows:
          values[j], again[row] = max(values[j], best[row]), _YES
      changed = _NO
      for row in rows:
        if again[row] == _YES:
          regret[row], changed = max(best[row] - values[j], 0.0) / weight, _YES
      if changed == _YES:
        _match(rows, regret, ties[j], strategy)


# All of them, for those who load them before they need them.
BACKFILL = (add_deferred, note_unseen, choose, restore)
