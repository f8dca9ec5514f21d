"""The forms that a policy takes inside: float64 arrays over the sequences of all players.

In behavioural form there is, for each sequence, the probability of its action at its infoset; in sequence form, the
probability that the owner plays to the sequence. Padding is 0.
"""

import numpy as np

from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.kernels.arrays import Float64s, aligned_zeros


def uniform(compiled: CompiledGame) -> Float64s:
  """Returns the uniform policy in behavioural form, aligned."""
  result = aligned_zeros(compiled.end)
  for treeplex in compiled.treeplexes:
    for sequences, _ in treeplex.blocks():
      result[sequences] = 1.0 / len(sequences)
  return result


def behavioral_form(compiled: CompiledGame, sums: Float64s) -> Float64s:
  """Normalizes non-negative sums at each infoset; where they are all zero, the strategy is uniform.

  Args:
    compiled: the game.
    sums: shape (sequences,).

  Returns:
    Behavioural form, shape (sequences,).
  """
  result = np.zeros(compiled.end)
  for treeplex in compiled.treeplexes:
    for sequences, _ in treeplex.blocks():
      block = sums[sequences]
      total = block.sum(axis=0)
      some = total > 0
      result[sequences] = np.where(some, block / np.where(some, total, 1.0), 1.0 / len(sequences))
  return result


def sequence_form(compiled: CompiledGame, probabilities: Float64s) -> Float64s:
  """Turns behavioural form into sequence form, both of shape (sequences,). The result is aligned."""
  result = aligned_zeros(compiled.end)
  for treeplex in compiled.treeplexes:
    result[treeplex.root] = 1.0
    for sequences, infosets in treeplex.blocks():
      result[sequences] = probabilities[sequences] * result[treeplex.parent[infosets]]
  return result
