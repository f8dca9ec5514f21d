"""Behavioral form and sequence form of a policy: two arrays over the sequences of all players.

In behavioral form, the entry of a sequence is the probability of its last action at its infoset. In sequence form, it
is the product of the player's action probabilities along the sequence. Entries of padding are unused: 0 in sequence
form, any number in behavioral form.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, aligned_zeros, require
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.shared_infosets import pooled
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, COUNT, FIRST_SEQUENCE, STRIDE


def check_finite(numbers: npt.NDArray[Any]) -> None:
  """Raises NotFiniteError if an entry of a policy is NaN or infinite."""
  if not np.isfinite(numbers).all():
    raise errors.NotFiniteError(
      "The policy has become NaN or infinite: payoffs, weights or steps are too large for floating-point numbers. "
      "Scale the payoffs, or use smaller weights or steps."
    )


def check_length(compiled: CompiledGame, numbers: npt.NDArray[Any], name: str) -> None:
  """Raises ArgumentError if an array has fewer numbers than the game has sequences."""
  length = len(numbers) if np.iterable(numbers) else 0
  if length < compiled.end:
    raise errors.ArgumentError(
      f"{name} must have {compiled.end} numbers, one for each sequence of {compiled.name}, not {length}."
    )


@typed
def uniform(compiled: CompiledGame, result: AnyFloats | None = None) -> AnyFloats:
  """Returns the uniform policy in behavioral form, shape (sequences,).

  Args:
    compiled: the game.
    result: an array of zeros that is filled and returned; None for a new aligned array.

  Raises:
    ArgumentError: `result` is too short.
  """
  if result is None:
    result = aligned_zeros(compiled.end)
  check_length(compiled, result, "result")
  for treeplex in compiled.treeplexes:
    for sequences, _ in treeplex.infoset_groups():
      result[sequences] = 1.0 / len(sequences)
  return result


@typed
def behavioral_form(
  compiled: CompiledGame, sums: Float64s, otherwise: Float64s | None = None
) -> Float64s:
  """Returns the policy that is proportional to non-negative sums at each infoset, such as sums of sequence forms.

  Args:
    compiled: the game.
    sums: shape (sequences,), at least 0.
    otherwise: the policy in behavioral form at infosets whose sums are all 0; None for the uniform policy.

  Returns:
    Behavioral form, shape (sequences,).

  Raises:
    ArgumentError: `sums` is too short.
    NotFiniteError: a sum is NaN or infinite.
  """
  check_length(compiled, sums, "sums")
  if otherwise is not None:
    check_length(compiled, otherwise, "otherwise")
  result = np.zeros(compiled.end)
  for treeplex in compiled.treeplexes:
    for sequences, _ in treeplex.infoset_groups():
      rows = sums[sequences]
      total = rows.sum(axis=0)
      check_finite(total)
      is_positive = total > 0
      fallback = 1.0 / len(sequences) if otherwise is None else otherwise[sequences]
      result[sequences] = np.where(is_positive, rows / np.where(is_positive, total, 1.0), fallback)
  return result


@typed
def sequence_form(compiled: CompiledGame, probabilities: Float64s) -> Float64s:
  """Returns the sequence form of a policy, an aligned array of shape (sequences,).

  Args:
    compiled: the game.
    probabilities: shape (sequences,). The policy in behavioral form.

  Raises:
    ArgumentError: `probabilities` is too short.
  """
  check_length(compiled, probabilities, "probabilities")
  result = aligned_zeros(compiled.end)
  for treeplex in compiled.treeplexes:
    result[treeplex.root] = 1.0
    for sequences, infosets in treeplex.infoset_groups():
      result[sequences] = probabilities[sequences] * result[treeplex.parent[infosets]]
  return result


def check_behavioral_form(compiled: CompiledGame, probabilities: npt.NDArray[Any]) -> None:
  """Checks that an array of shape (sequences,) has a distribution at each infoset.

  Raises:
    ValueError: probabilities are negative or don't sum to 1, with an error larger than rounding.
  """
  tolerance = 1e3 * float(np.finfo(probabilities.dtype).eps) + 1e-6
  for treeplex in compiled.treeplexes:
    for group in treeplex.groups.astype(np.int64).tolist():
      first, stride, actions = group[FIRST_SEQUENCE], group[STRIDE], group[ACTIONS]
      rows = probabilities[first : first + stride * actions].reshape(actions, stride)
      rows = rows[:, : group[COUNT]]
      require(rows >= -tolerance, "probabilities are not negative")
      require(np.abs(rows.sum(axis=0) - 1) <= tolerance, "probabilities sum to 1")


def shared_strategy(compiled: CompiledGame, sums: Float64s, strategy: Float64s) -> Float64s:
  """Returns the average strategy of an abstraction with imperfect recall, shape (sequences,).

  Infosets that share a strategy pool their sums, so the result is the same at all infosets of a bucket.

  Args:
    compiled: an abstraction with shared infosets.
    sums: shape (sequences,). Sums of sequence forms.
    strategy: the strategy in behavioral form at buckets whose sums are 0, shape (sequences,).
  """
  assert compiled.shared_infosets is not None
  return behavioral_form(compiled, pooled(compiled.shared_infosets, sums), strategy)


def normalized(compiled: CompiledGame, sums: AnyFloats) -> AnyFloats:
  """Returns the average of sequence forms, shape (sequences,): their sum, divided by the player's empty sequence."""
  result = sums.copy()
  for treeplex in compiled.treeplexes:
    result[treeplex.root : treeplex.end] /= result[treeplex.root]
  return result


def check_sums(compiled: CompiledGame, sums: npt.NDArray[Any]) -> None:
  """Checks that an array, shape (sequences,), can be a sum of sequence forms, or is 0 everywhere.

  Raises:
    ValueError: a player's part is not a multiple of a sequence form, with an error larger than rounding.
  """
  require((sums >= 0) & np.isfinite(sums), "averages are sums of probabilities")
  if sums.any():
    require(sums[[tree.root for tree in compiled.treeplexes]] > 0, "every player has an average")
    # Each iteration adds a rounding error to the sums.
    tolerance = 100 * math.sqrt(np.finfo(sums.dtype).eps)
    check_sequence_form(compiled, normalized(compiled, sums), tolerance)


def check_sequence_form(compiled: CompiledGame, sequence_form: Float64s, tolerance: float) -> None:
  """Checks that an array, shape (sequences,), contains strategies in sequence form.

  Raises:
    ValueError: it does not, with an error larger than `tolerance`.
  """
  require(sequence_form >= 0, "strategies are not negative")
  for tree in compiled.treeplexes:
    require(abs(sequence_form[tree.root] - 1) <= tolerance, "strategies begin with 1")
    for sequences, infosets in tree.infoset_groups():
      above = sequence_form[tree.parent[infosets]]
      difference = np.abs(sequence_form[sequences].sum(axis=0) - above)
      require(difference <= tolerance, "probabilities sum to that of the sequence above")
