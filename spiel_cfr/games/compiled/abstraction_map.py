"""The map from the sequences of a game to those of an abstraction, in which several infosets play alike."""

import dataclasses
import hashlib

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr.games.sequence_form.shared_infosets import SharedInfosets


@dataclasses.dataclass(frozen=True, eq=False)
class AbstractionMap:
  """The map from the sequences of the original game to those of the abstraction.

  If x is a sequence form of the abstraction, x(sequences[s]) / copies[s] is that of the original game.

  Attributes:
    sequences: uint32 (sequences of the original game,). The sequence of the abstraction that stands for each; 0 at
      padding.
    copies: uint32 (sequences of the original game,). The number of sequences of the same infosets that play alike and
      share the probability; 0 at padding.
    is_exact: bool. Whether equilibria of the abstraction are equilibria of the original game.
    shared_infosets: SharedInfosets of the abstraction; None if it has perfect recall.
  """

  sequences: Uint32s
  copies: Uint32s
  is_exact: bool
  shared_infosets: SharedInfosets | None = None

  def to_original(self, sequence_form: Float64s) -> Float64s:
    """Divides the probability of each sequence among the original sequences that play alike."""
    result = np.zeros(len(self.sequences))
    np.divide(sequence_form[self.sequences], self.copies, out=result, where=self.copies > 0)
    return result

  def digest(self, original: str) -> str:
    """Returns the digest of the abstraction, given that of the original game."""
    digest = hashlib.sha256(original.encode())
    for array in (self.sequences, self.copies, *(self.shared_infosets or ())):
      digest.update(array.tobytes())
    return digest.hexdigest()


def count_alike(entries: Int64s, num_actions: Int64s) -> Int64s:
  """Returns, for each action of each infoset, the number of actions of its infoset that have the same sequence."""
  infoset = np.repeat(np.arange(len(num_actions)), num_actions)
  pairs = infoset * (1 + entries.max(initial=0)) + entries
  _, which, counts = np.unique(pairs, return_inverse=True, return_counts=True)
  return np.asarray(counts[which.reshape(-1)])


def first_cells(first: Int64s, num_actions: Int64s) -> Int64s:
  """Returns the places of the actions of the infosets that are the first with their first sequence."""
  is_first = np.zeros(len(first), bool)
  is_first[np.unique(first, return_index=True)[1]] = True
  return np.flatnonzero(np.repeat(is_first, num_actions))


def number_entries(
  entries: Int64s, first: Int64s, num_actions: Int64s, shared_infosets: SharedInfosets | None
) -> Int64s:
  """Numbers the actions of buckets, in order of discovery.

  Args:
    entries: int64 (actions,). The sequence of each action of each infoset.
    first: int64 (infosets,). The first sequence of each infoset.
    num_actions: int64 (infosets,). The number of actions of each infoset.
    shared_infosets: the sequences that share a bucket.

  Returns:
    int64 (actions,). The number of each action. Actions of an infoset that play alike have different numbers.
  """
  if shared_infosets is not None:
    members, starts = shared_infosets.members, shared_infosets.starts.astype(np.int64)
    bucket_of = np.arange(int(entries.max()) + 1)
    bucket_of[members] = np.repeat(members[starts[:-1]], np.diff(starts))
    first = bucket_of[first]
  infoset = np.repeat(np.arange(len(num_actions)), num_actions)
  begin = np.cumsum(num_actions) - num_actions
  rank = np.empty(len(entries), np.int64)
  rank[np.lexsort((entries, infoset))] = np.arange(len(entries)) - begin[infoset]
  _, found, bucket = np.unique(first, return_index=True, return_inverse=True)
  # Buckets in order of discovery, each as long as its infosets.
  order = np.argsort(found)
  lengths = num_actions[found[order]]
  at = np.empty(len(order), np.int64)
  at[order] = np.cumsum(lengths) - lengths
  return np.asarray(at[bucket][infoset] + rank)
