"""The infosets of one player, with their names and actions, and their numbers in the layout."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Int64s, Uint32s, range_starts
from spiel_cfr.games.sequence_form.treeplex import Placement, Treeplex


@dataclasses.dataclass(frozen=True, eq=False)
class Infosets:
  """A player's infosets in order of discovery, which is the order of OpenSpiel's `TabularPolicy`.

  `action_sequences` and `position` convert to the layout of the player's treeplex.

  Attributes:
    infostates: sequence of str (infosets,). The information state strings.
    actions: int64 (actions,). The legal actions, infoset by infoset, end to end.
    num_actions: int64 (infosets,). The number of actions of each infoset.
    action_sequences: uint32 (actions,). The sequence of each action; in an abstraction, several may have the same.
    position: uint32 (infosets,). The index of each infoset in layout order, counted from the player's first infoset.
  """

  infostates: Sequence[str]
  actions: Int64s
  num_actions: Int64s
  action_sequences: Uint32s
  position: Uint32s

  def all_sequences(self, treeplex: Treeplex) -> Int64s:
    """Returns the numbers of the player's sequences in the layout of its treeplex, in order of discovery.

    Element 0 is the empty sequence, and the actions follow.
    """
    return np.append(treeplex.root, self.action_sequences.astype(np.int64))


def placed_infosets(
  infostates: Sequence[str], actions: Int64s, num_actions: Int64s, placement: Placement
) -> Infosets:
  """Returns a player's infosets, given their names and actions in order of discovery, and their layout."""
  # Sequence 0 is the empty one, which is no action.
  action_sequences = placement.sequences[1:]
  return Infosets(infostates, actions, num_actions, action_sequences, placement.position)


def entry_slices(all_infosets: Sequence[Infosets]) -> list[dict[str, slice]]:
  """Returns a dictionary for each player: infostate -> slice of its entries, the actions of all players end to end."""
  result, begin = [], 0
  for infosets in all_infosets:
    starts = begin + range_starts(infosets.num_actions)
    slices = map(slice, starts.tolist(), (starts + infosets.num_actions).tolist())
    result.append(dict(zip(infosets.infostates, slices, strict=True)))
    begin += len(infosets.actions)
  return result
