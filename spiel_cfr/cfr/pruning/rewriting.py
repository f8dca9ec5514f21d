"""What pruning rewrites between two windows: see `cfr.pruning.solver`. One pass each, parents first.

Two rules share them. Best-response pruning makes all history anew: C and Z are then of all iterations, and what regrets
were before does not matter. Regret-based pruning adds to it: C and Z are of the last window only.
"""

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  BYTES,
  COUNTS,
  FLOATS,
  INDICES,
  Bools,
  Float64s,
  Uint32s,
  Uint64s,
  borrowed,
)
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr.cfr.pruning.kept import KEPT, NOWHERE, Kept
from spiel_cfr.games.sequence_form.tree_passes import TREE, Tree

_ZERO, _ONE, _YES, _NO = np.uint64(0), np.uint64(1), np.uint8(1), np.uint8(0)


@kernel(types.void(KEPT, COUNTS, *[FLOATS] * 3))
def add_deferred(
  kept: Kept, live: Uint64s, strategy: Float64s, opened: Float64s, sums: Float64s
) -> None:
  """Adds to sums of sequence forms, where nobody looked, what the strategies there have come to since.

  Args:
    kept: what was not pruned; what is has no part in any strategy, nor has what follows.
    live: at how many actions of each infoset somebody looked, if there were several.
    strategy: of all infosets.
    opened: the sums at the beginning of the window.
    sums: brought up to date.
  """
  kept, more = borrowed(kept), np.zeros(live.shape[0])
  for group in range(np.uint64(kept.groups.shape[0])):
    for each in range(kept.groups[group, 2], kept.groups[group, 3]):
      if live[each] <= _ONE:
        above = kept.sequences[kept.above[each]]
        more[each] = sums[above] - opened[above]
    for each in range(kept.groups[group, 0], kept.groups[group, 1]):
      if more[kept.owner[each]] != 0.0:
        row = kept.sequences[each]
        sums[row] += more[kept.owner[each]] * strategy[row]


@kernel(types.float64(KEPT, COUNTS, types.boolean, *[FLOATS] * 6, types.float64))
def note_window(
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
  kept, groups, missed = borrowed(kept), np.uint64(kept.groups.shape[0]), 0.0
  # In the window; carried up.
  gained = np.zeros(kept.sequences.shape[0])
  # Of each infoset, one of the sequences that are kept there.
  one = np.zeros(live.shape[0], np.uint32)
  for group in range(groups):
    for each in range(kept.groups[group, 0], kept.groups[group, 1]):
      row = kept.sequences[each]
      gained[each] = worth[row] - opened_worth[row]
      one[kept.owner[each]] = np.uint32(each)
  for back in range(groups):
    last = groups - _ONE - back
    for each in range(kept.groups[last, 2], kept.groups[last, 3]):
      # Without branches that nobody can foresee.
      j = kept.infosets[each]
      values[j] += gained[one[each]] if live[each] == _ONE else 0.0
      gained[kept.above[each]] += values[j] - opened[j] if live[each] != _ZERO else 0.0
  for each in range(np.uint64(kept.cut.shape[0])):
    row, j = kept.cut[each], kept.infosets[kept.cut_owner[each]]
    excess = best[row] - values[j]
    if not anew:
      excess += opened[j] + earlier * regret[row]
    missed += max(excess, 0.0)
  return missed


@kernel(types.void(INDICES, BYTES, FLOATS, types.float64, types.float64))
def fade(place: Uint32s, pruned: Bools, regret: Float64s, discount: float, fading: float) -> None:
  """Multiplies regrets below what is pruned as the minimizer would have done in the window.

  Args:
    place: see `Kept`.
    pruned: what was pruned.
    regret: R; brought up to date.
    discount: by what positive regrets are multiplied in a window,
    fading: and negative ones.
  """
  for row in range(np.uint64(regret.shape[0])):
    if place[row] == NOWHERE and pruned[row] == _NO:
      regret[row] *= discount if regret[row] > 0.0 else fading


@inlined
def _is_hopeless(
  excess: float, growth: float, played: float, regret: float, tie: float
) -> np.uint8:
  """Returns 1 if a regret, times the weight of the last iteration `excess`, stays negative where it is not played."""
  growth = growth if growth > 0.0 else 0.0
  negative = np.uint8(excess + growth <= 0.0) & np.uint8(regret < -tie)
  return negative & np.uint8(played == 0.0)


@kernel(
  types.void(
    KEPT,
    COUNTS,
    types.boolean,
    *[FLOATS] * 5,
    BYTES,
    *[FLOATS] * 2,
    types.float64,
    FLOATS,
    *[types.float64] * 3,
  )
)
def choose(
  kept: Kept,
  live: Uint64s,
  anew: bool,
  strategy: Float64s,
  regret: Float64s,
  values: Float64s,
  opened: Float64s,
  best: Float64s,
  pruned: Bools,
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
    kept: what was not pruned; below what was nothing is known, and so nothing is decided.
    live: how many actions were left at its infosets; if they were not several, nobody looked.
    anew: whether C and Z are of all iterations, or else of the last window, and added to R.
    strategy: of all infosets.
    regret: R; brought up to date.
    values: the sums of infosets' values,
    opened: less this much is Z.
    best: C.
    pruned: what is pruned; becomes what is to be.
    more: by how much the regret of each sequence may grow in the next window,
    opened_values: less what its infoset was worth since the values were these,
    factor: times this, but not below 0.
    ties: below what a difference of utilities is rounding, of each infoset.
    earlier: the weight of the iteration in which the window began,
    weight: and of the last one.
    discount: by what positive regrets are multiplied in a window.
  """
  kept, fading = borrowed(kept), earlier / weight
  # Of sequences and infosets: whether neither they nor what is above are to be pruned.
  goes_on = np.ones(kept.sequences.shape[0], np.uint8)
  reached = np.empty(live.shape[0], np.uint8)
  z, less, tie = np.empty((3, live.shape[0]))
  for group in range(np.uint64(kept.groups.shape[0])):
    for each in range(kept.groups[group, 2], kept.groups[group, 3]):
      j = kept.infosets[each]
      reached[each] = goes_on[kept.above[each]]
      z[each], tie[each] = values[j] - opened[j], ties[j]
      less[each] = factor * (values[j] - opened_values[j])
    for each in range(kept.groups[group, 0], kept.groups[group, 1]):
      row, at = kept.sequences[each], kept.owner[each]
      now = regret[row]
      now *= 1.0 if live[at] > _ONE else (discount if now > 0.0 else fading)
      regret[row] = now
      excess = best[row] - z[at] if anew else weight * now
      hopeless = _is_hopeless(excess, more[row] - less[at], strategy[row], now, tie[at])
      pruned[row] = reached[at] & hopeless
      goes_on[each] = reached[at] & (_YES - hopeless)
    for each in range(kept.groups[group, 4], kept.groups[group, 5]):
      row, at = kept.cut[each], kept.cut_owner[each]
      excess = best[row] - z[at] if anew else earlier * regret[row] + (best[row] - z[at])
      now = excess / weight
      regret[row] = now
      hopeless = _is_hopeless(excess, more[row] - less[at], strategy[row], now, tie[at])
      pruned[row] = reached[at] & hopeless


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
  tree, kept, groups = borrowed(tree), borrowed(kept), np.uint64(tree.groups.shape[0])
  for group in range(groups):
    first, stride = tree.groups[group, 0], tree.groups[group, 1]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for each in range(kept.groups[group, 4], kept.groups[group, 5]):
      row, j = kept.cut[each], np.uint64(kept.infosets[kept.cut_owner[each]])
      again = pruned[row] == _NO
      # What is added to history has to be, in any case.
      below[row] = _YES if again or not anew else _NO
      if again:
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
REWRITING = (
  add_deferred,
  note_window,
  fade,
  choose,
  restore,
  weigh,
  copy_some,
)
