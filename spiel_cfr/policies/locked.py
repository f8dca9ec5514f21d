"""Locked infosets, at which a solver plays a given strategy: read from any policy, and listed as sequences."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import open_spiel
from spiel_cfr.policies.forms import check_behavioral_form, uniform

Mask = npt.NDArray[np.uint8]


@typed
def locked_part(
  compiled: CompiledGame, policy: open_spiel.AnyPolicy, infostates: Iterable[Any] | None = None
) -> tuple[Mask, Float64s]:
  """Returns the locked infosets, and the policy that is played there.

  Args:
    compiled: the game.
    policy: anything that `from_policy` reads; with an array of sequences, also behavioral form, shape (sequences,).
    infostates: the infosets to lock: their infostates, or an integer array of their sequences, which needs no names.
      None for all keys of a mapping.

  Returns:
    A mask, uint8 (infosets,) in layout order, 1 at locked infosets; and the policy in behavioral form, shape
    (sequences,). Its entries at other infosets are arbitrary.

  Raises:
    PolicyError: an infostate is unknown or has no distribution, or `infostates` is missing.
    ArgumentError: the game does not have one of the sequences.
    LockError: an abstraction merges a locked infoset with one that is not locked.
  """
  if isinstance(infostates, np.ndarray) and infostates.dtype.kind in "iu":
    locked = _infosets_of(compiled, infostates)
    return locked, _probabilities(compiled, policy, locked)
  if infostates is None and not isinstance(policy, Mapping):
    raise errors.PolicyError("Give the infostates of the policy that are meant, or a mapping.")
  names = [*policy] if infostates is None else [*infostates]
  locked = np.zeros(compiled.num_infosets, np.uint8)
  # The index of each infoset in the mask, with infosets of all players in order of discovery.
  mask_index = np.concatenate(
    [
      tree.first_infoset + infosets.position.astype(np.int64)
      for tree, infosets in zip(compiled.treeplexes, compiled.infosets, strict=True)
    ]
  )
  for name in names:
    row = compiled.table_rows.get(name) if isinstance(name, str) else None
    if row is None:
      raise errors.PolicyError(f"There is no infostate {name!r} in {compiled.name}.")
    locked[mask_index[row]] = 1
  rows = {compiled.table_rows[name] for name in names}
  locked_rows = np.flatnonzero(locked[mask_index]).tolist()
  if len(locked_rows) > len(rows):
    other = [*compiled.table_rows][next(row for row in locked_rows if row not in rows)]
    raise errors.LockError(
      f"{compiled.name} merges a locked infoset with {other!r}. Lock all of its infosets alike, or lock in the full "
      "game: without buckets, or without merge_suits."
    )
  if isinstance(policy, Mapping):
    missing = [name for name in names if name not in policy]
    if missing:
      raise errors.PolicyError(f"The policy has no probabilities for infostate {missing[0]!r}.")
    uniform_policy = open_spiel.to_dict(compiled, uniform(compiled))
    policy = uniform_policy | {name: policy[name] for name in names}
  return locked, open_spiel.from_policy(compiled, policy)


def _infosets_of(compiled: CompiledGame, sequences: Int64s) -> Mask:
  """Returns the mask of the infosets that have some of these sequences."""
  if sequences.min(initial=0) < 0 or sequences.max(initial=0) >= compiled.end:
    raise errors.ArgumentError(
      f"The sequences of {compiled.name} are from 0 to {compiled.end - 1}."
    )
  is_chosen = np.zeros(compiled.end, bool)
  is_chosen[sequences] = True
  locked = np.zeros(compiled.num_infosets, np.uint8)
  for tree in compiled.treeplexes:
    for of_group, infosets in tree.infoset_groups():
      locked[tree.first_infoset :][infosets] = is_chosen[of_group].any(axis=0)
  return locked


def _probabilities(compiled: CompiledGame, policy: open_spiel.AnyPolicy, locked: Mask) -> Float64s:
  """Returns a policy in behavioral form; of an array in this form, only locked infosets are read."""
  if not isinstance(policy, np.ndarray):
    return open_spiel.from_policy(compiled, policy)
  sequences, result = locked_sequences(compiled, locked), uniform(compiled)
  result[sequences] = arguments.numbers(policy, "policy", compiled.end)[sequences]
  try:
    check_behavioral_form(compiled, result)
  except ValueError as error:
    raise errors.PolicyError(f"policy is not in behavioral form: {error}.") from None
  return result


def locked_sequences(compiled: CompiledGame, locked: Mask) -> Int64s:
  """Returns the sequences of locked infosets, int64 (n,), given the mask from `locked_part`."""
  result = [np.zeros(0, np.int64)]
  if locked.any():
    for tree in compiled.treeplexes:
      is_locked = locked[tree.first_infoset : tree.first_infoset + tree.num_infosets] > 0
      result += [
        sequences[:, is_locked[infosets]].ravel() for sequences, infosets in tree.infoset_groups()
      ]
  return np.concatenate(result)
