"""The map from the sequences of a game to those of an abstraction, in which several infosets play alike."""

import dataclasses
import hashlib

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s, range_starts
from spiel_cfr.games.sequence_form.shared_infosets import SharedInfosets


@dataclasses.dataclass(frozen=True, eq=False)
class AbstractionMap:
  """The map from the sequences of the original game to those of the abstraction.

  If x is a sequence form of the abstraction, x(sequences[s]) / multiplicity[s] is that of the original game.

  Attributes:
    sequences: uint32 (sequences of the original game,). The abstraction's sequence that represents each original
      sequence; 0 at padding.
    multiplicity: uint32 (sequences of the original game,). The number of merged actions of each sequence: the product,
      over its actions, of the number of actions at the infoset that one action of the abstraction represents. They
      share its probability equally. 0 at padding.
    is_exact: bool. Whether equilibria of the abstraction are equilibria of the original game.
    shared_infosets: SharedInfosets. The abstraction's infosets that share strategies and regrets; None if it has
      perfect recall.
  """

  sequences: Uint32s
  multiplicity: Uint32s
  is_exact: bool
  shared_infosets: SharedInfosets | None = None

  def to_original(self, sequence_form: Float64s) -> Float64s:
    """Divides the probability of each sequence equally among the original sequences that it represents."""
    result = np.zeros(len(self.sequences))
    is_used = self.multiplicity > 0
    np.divide(sequence_form[self.sequences], self.multiplicity, out=result, where=is_used)
    return result

  def digest(self, original: str) -> str:
    """Returns the digest of the abstraction, given that of the original game."""
    digest = hashlib.sha256(original.encode())
    for array in (self.sequences, self.multiplicity, *(self.shared_infosets or ())):
      digest.update(array.tobytes())
    return digest.hexdigest()


def count_alike(entries: Int64s, num_actions: Int64s) -> Int64s:
  """Returns, for each entry, the number of actions at its infoset that have the same sequence.

  Args:
    entries: int64 (actions,). The sequence of each action of each infoset, in order of discovery.
    num_actions: int64 (infosets,). The number of actions of each infoset.
  """
  infoset = np.repeat(np.arange(len(num_actions)), num_actions)
  pairs = infoset * (1 + entries.max(initial=0)) + entries
  _, pair, counts = np.unique(pairs, return_inverse=True, return_counts=True)
  return np.asarray(counts[pair.reshape(-1)])


def representative_entries(first_sequence: Int64s, num_actions: Int64s) -> Int64s:
  """Returns the entries of one infoset for each strategy of the abstraction: the first that is discovered.

  Infosets that play alike have the same first sequence.

  Args:
    first_sequence: int64 (infosets,). The sequence of each infoset's action 0.
    num_actions: int64 (infosets,). The number of actions of each infoset.
  """
  is_first = np.zeros(len(first_sequence), bool)
  is_first[np.unique(first_sequence, return_index=True)[1]] = True
  return np.flatnonzero(np.repeat(is_first, num_actions))


def number_entries(
  entries: Int64s,
  first_sequence: Int64s,
  num_actions: Int64s,
  shared_infosets: SharedInfosets | None,
) -> Int64s:
  """Numbers entries for samplers: infosets that play alike have the same numbers. Order of discovery.

  A bucket is the set of all infosets with one strategy.

  Args:
    entries: int64 (actions,). The sequence of each action of each infoset.
    first_sequence: int64 (infosets,). The sequence of each infoset's action 0.
    num_actions: int64 (infosets,). The number of actions of each infoset.
    shared_infosets: the abstraction's infosets that share strategies and regrets.

  Returns:
    int64 (actions,). The number of each entry. Actions at one infoset that play alike have different numbers.
  """
  if shared_infosets is not None:
    members, starts = shared_infosets.members, shared_infosets.starts.astype(np.int64)
    first_member = np.arange(int(entries.max()) + 1)
    first_member[members] = np.repeat(members[starts[:-1]], np.diff(starts))
    first_sequence = first_member[first_sequence]
  infoset = np.repeat(np.arange(len(num_actions)), num_actions)
  rank = np.empty(len(entries), np.int64)
  rank[np.lexsort((entries, infoset))] = (
    np.arange(len(entries)) - range_starts(num_actions)[infoset]
  )
  _, first_infoset, bucket = np.unique(first_sequence, return_index=True, return_inverse=True)
  # Buckets are numbered end to end in order of discovery, and have as many numbers as their infosets have actions.
  order = np.argsort(first_infoset)
  first_number = np.empty(len(order), np.int64)
  first_number[order] = range_starts(num_actions[first_infoset[order]])
  return np.asarray(first_number[bucket][infoset] + rank)
