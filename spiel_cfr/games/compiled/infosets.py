"""The infosets of one player, with their names and actions."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Int64s, Uint32s, concatenated_ranges, range_starts


@dataclasses.dataclass(frozen=True, eq=False)
class Infosets:
  """A player's infosets in order of discovery, which is the order of OpenSpiel's `TabularPolicy`.

  `position`, `first_sequence` and `stride` convert to the layout of the player's treeplex. The sequence of action a at
  infoset i is first_sequence[i] + a * stride[i].

  Attributes:
    infostates: sequence of str (infosets,). The information state strings.
    actions: int64 (actions,). The legal actions, infoset by infoset, end to end.
    num_actions: int64 (infosets,). The number of actions of each infoset.
    position: uint32 (infosets,). The index of each infoset in layout order, counted from the player's first infoset.
    first_sequence: uint32 (infosets,). The sequence of each infoset's action 0.
    stride: uint32 (infosets,). The distance from each action's sequence to the next action's.
  """

  infostates: Sequence[str]
  actions: Int64s
  num_actions: Int64s
  position: Uint32s
  first_sequence: Uint32s
  stride: Uint32s

  @property
  def action_sequences(self) -> Int64s:
    """The sequence of each of `actions`, int64 (actions,)."""
    index = concatenated_ranges(np.zeros_like(self.num_actions), self.num_actions)
    first = np.repeat(self.first_sequence.astype(np.int64), self.num_actions)
    stride = np.repeat(self.stride.astype(np.int64), self.num_actions)
    return first + index * stride


def entry_slices(all_infosets: Sequence[Infosets]) -> list[dict[str, slice]]:
  """Returns a dictionary for each player: infostate -> slice of its entries, the actions of all players end to end."""
  result, begin = [], 0
  for infosets in all_infosets:
    starts = begin + range_starts(infosets.num_actions)
    slices = map(slice, starts.tolist(), (starts + infosets.num_actions).tolist())
    result.append(dict(zip(infosets.infostates, slices, strict=True)))
    begin += len(infosets.actions)
  return result
