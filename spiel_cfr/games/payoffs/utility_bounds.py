"""Bounds on utilities, computed from a list of leaves, and the payoffs that solvers can compute with."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr.games.sequence_form.treeplex import Treeplex


class Leaves(NamedTuple):
  """The leaves of one player.

  Attributes:
    own: uint32 (leaves,). The player's last sequence.
    others: uint32 (players - 1, leaves). The other players' last sequences, from the next player on.
    values: float64 (leaves,). The player's payoffs, weighted by chance.
  """

  own: Uint32s
  others: Uint32s
  values: Float64s


# The squares of payoffs, and of differences of 1e-12 of payoffs, must be normal doubles.
_SMALLEST_PAYOFF, _LARGEST_PAYOFF = 1e-140, 1e140


def counterfactual_bounds(leaves: Leaves, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
  """Bounds the absolute counterfactual utility of each of a player's sequences, for all strategies of all players.

  First the player's best continuation is taken, separately for each tuple of the others' last sequences. Then each
  other player in turn takes its best strategy against the result. All payoffs count as positive. Each step can only
  raise the bound.

  Args:
    leaves: the player's `Leaves`.
    treeplexes: one for each player.
    player: the player.

  Returns:
    float64 (end - root,), from the empty sequence on.
  """
  own, others, values = leaves
  keys = [key.astype(np.int64) for key in (own, *others)]
  keys, values = _backward_pass(treeplexes[player], 0, keys, np.abs(values))
  for shift in reversed(range(1, len(treeplexes))):
    tree = treeplexes[(player + shift) % len(treeplexes)]
    keys, values = _backward_pass(tree, shift, keys, values)
    # Only entries at the root cover this player's whole tree.
    at_root = keys[shift] == tree.root
    keys, values = [key[at_root] for key in keys[:shift]], values[at_root]
  root, end = treeplexes[player].root, treeplexes[player].end
  bounds = np.zeros(end - root)
  bounds[keys[0] - root] = values
  return bounds


def _backward_pass(
  tree: Treeplex, index: int, keys: list[Int64s], values: Float64s
) -> tuple[list[Int64s], Float64s]:
  """Adds to each entry of a sparse tensor the value of the best continuation in one player's tree.

  Values are non-negative, and missing entries are 0. Returns all sequences from which an entry can be reached.

  Args:
    tree: the player's treeplex.
    index: the place of the player's sequence in `keys`.
    keys: the index arrays of the sparse tensor, one for each dimension.
    values: float64 (entries,).
  """
  done: list[tuple[list[Int64s], Float64s]] = []
  for sequences, infosets in list(tree.infoset_groups())[::-1]:
    first, last = sequences[0, 0], sequences[-1, -1]
    place = np.zeros(last - first + 1, np.int64)
    place[sequences - first] = np.arange(sequences.shape[1])
    here = (keys[index] >= first) & (keys[index] <= last)
    done.append(combined([key[here] for key in keys], values[here], np.add))
    level_keys, level = done[-1]
    infoset = place[level_keys[index] - first]
    parents = tree.parent[infosets][infoset].astype(np.int64)
    (_, *best_keys), best = combined(
      [infoset, *level_keys[:index], parents, *level_keys[index + 1 :]], level, np.maximum
    )
    keys = [np.concatenate([key[~here], more]) for key, more in zip(keys, best_keys, strict=True)]
    values = np.concatenate([values[~here], best])
  done.append(combined(keys, values, np.add))
  return (
    [np.concatenate(parts) for parts in zip(*(keys for keys, _ in done), strict=True)],
    np.concatenate([values for _, values in done]),
  )


def combined(
  keys: list[Int64s], values: Float64s, operation: np.ufunc
) -> tuple[list[Int64s], Float64s]:
  """Reduces the values of equal keys to one by `operation`; returns keys in lexicographic order, the last key first."""
  if not len(values):
    return keys, values
  order = np.lexsort(keys)
  keys = [key[order] for key in keys]
  new = np.any([np.diff(key) != 0 for key in keys], axis=0)
  starts = np.flatnonzero(np.concatenate([[True], new]))
  combined: Float64s = operation.reduceat(values[order], starts)
  return [key[starts] for key in keys], combined


def sensitivity(leaves: Leaves) -> float:
  """Bounds the spectral norms of the payoff matrices between the player and each other player, summed over these.

  The spectral norm is at most the Frobenius norm, and at most the root of the largest row sum times the largest column
  sum. The players that are in neither dimension count as playing to all their sequences.
  """
  own, others, values = leaves
  total = 0.0
  for theirs in others:
    (rows, columns), entries = combined(
      [own.astype(np.int64), theirs.astype(np.int64)], np.abs(values), np.add
    )
    largest_sums = [np.bincount(key, entries).max(initial=0.0) for key in (rows, columns)]
    total += min(float(np.linalg.norm(entries)), float(np.sqrt(np.prod(largest_sums))))
  return total


def check_payoffs(name: str, payoff_range: tuple[float, float]) -> None:
  """Checks that payoffs, their squares and many sums of these squares are representable.

  Args:
    name: the name of the game.
    payoff_range: the smallest and the largest return of any player.

  Raises:
    InvalidPayoffError: the largest absolute payoff is too large or too small.
  """
  largest = max(map(abs, payoff_range))
  if largest and not _SMALLEST_PAYOFF <= largest <= _LARGEST_PAYOFF:
    raise errors.InvalidPayoffError(
      f"The payoffs of {name[:200]} go up to {largest:zg}; solvers compute with {_SMALLEST_PAYOFF:zg} to "
      f"{_LARGEST_PAYOFF:zg}. Multiply them by a number: equilibria do not change."
    )
