"""Bounds on a player's utilities, computed from its leaves; and a check of the size of payoffs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr.games.sequence_form.treeplex import Treeplex


class Leaves(NamedTuple):
  """The leaves of one player.

  Attributes:
    own: uint32 (leaves,). The player's last sequence at each leaf.
    others: uint32 (players - 1, leaves). The other players' last sequences, beginning with the next player.
    values: float64 (leaves,). The player's payoff at each leaf, weighted by chance.
  """

  own: Uint32s
  others: Uint32s
  values: Float64s


# The squares of payoffs, and of differences of 1e-12 of payoffs, must be normal doubles.
_SMALLEST_PAYOFF, _LARGEST_PAYOFF = 1e-140, 1e140


def counterfactual_bounds(leaves: Leaves, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
  """Returns a bound on the absolute counterfactual utility of each of a player's sequences, for any strategies.

  First, the player's best continuation is computed for each tuple of the others' last sequences. Then each other player
  in turn takes the strategy that maximizes the result. Absolute payoffs are used. Each step can only raise the bound.

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
    # Only elements at the root cover this player's whole tree.
    at_root = keys[shift] == tree.root
    keys, values = [key[at_root] for key in keys[:shift]], values[at_root]
  root, end = treeplexes[player].root, treeplexes[player].end
  bounds = np.zeros(end - root)
  bounds[keys[0] - root] = values
  return bounds


def _backward_pass(
  tree: Treeplex, index: int, keys: list[Int64s], values: Float64s
) -> tuple[list[Int64s], Float64s]:
  """Adds to each element of a sparse tensor the value of the best continuation in one player's tree.

  Values are non-negative, and missing elements are 0. The result has elements at all sequences above an element, too.

  Args:
    tree: the player's treeplex.
    index: the dimension of the player's sequences.
    keys: for each dimension, int64 (elements,). The indices of the elements.
    values: float64 (elements,). The elements.
  """
  done: list[tuple[list[Int64s], Float64s]] = []
  for sequences, infosets in list(tree.infoset_groups())[::-1]:
    first, last = sequences[0, 0], sequences[-1, -1]
    infoset_of = np.zeros(last - first + 1, np.int64)
    infoset_of[sequences - first] = np.arange(sequences.shape[1])
    in_group = (keys[index] >= first) & (keys[index] <= last)
    done.append(combined([key[in_group] for key in keys], values[in_group], np.add))
    group_keys, group_values = done[-1]
    infoset = infoset_of[group_keys[index] - first]
    parents = tree.parent[infosets][infoset].astype(np.int64)
    (_, *best_keys), best = combined(
      [infoset, *group_keys[:index], parents, *group_keys[index + 1 :]], group_values, np.maximum
    )
    keys = [
      np.concatenate([key[~in_group], best_key])
      for key, best_key in zip(keys, best_keys, strict=True)
    ]
    values = np.concatenate([values[~in_group], best])
  done.append(combined(keys, values, np.add))
  return (
    [np.concatenate(parts) for parts in zip(*(keys for keys, _ in done), strict=True)],
    np.concatenate([values for _, values in done]),
  )


def combined(
  keys: list[Int64s], values: Float64s, operation: np.ufunc
) -> tuple[list[Int64s], Float64s]:
  """Reduces the values of equal keys to one value by `operation`.

  Returns:
    The keys in lexicographic order, where the last array of keys is compared first; and the values.
  """
  if not len(values):
    return keys, values
  order = np.lexsort(keys)
  keys = [key[order] for key in keys]
  new = np.any([np.diff(key) != 0 for key in keys], axis=0)
  starts = np.flatnonzero(np.concatenate([[True], new]))
  combined: Float64s = operation.reduceat(values[order], starts)
  return [key[starts] for key in keys], combined


def sensitivity(leaves: Leaves) -> float:
  """Returns the sum, over the other players, of bounds on the spectral norm of the payoff matrix with that player.

  The spectral norm is at most the Frobenius norm, and at most the root of the largest row sum times the largest column
  sum. The sequences of all players that are not a dimension of the matrix have probability 1.
  """
  own, others, values = leaves
  total = 0.0
  for sequences in others:
    (rows, columns), elements = combined(
      [own.astype(np.int64), sequences.astype(np.int64)], np.abs(values), np.add
    )
    largest_sums = [np.bincount(key, elements).max(initial=0.0) for key in (rows, columns)]
    total += min(float(np.linalg.norm(elements)), float(np.sqrt(np.prod(largest_sums))))
  return total


def check_payoffs(name: str, payoff_range: tuple[float, float]) -> None:
  """Checks that doubles can represent payoffs, their squares and sums of many squares.

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
