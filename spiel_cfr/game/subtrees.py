"""Games cut into a trunk and subtrees that meet in the trunk only.

Big games fit neither a cache nor, with all arrays that a solver works on, the memory. Where chance splits a game into
many subtrees, a solver can go through them one at a time with the same small workspace, or through several at once.
"""

import dataclasses

from spiel_cfr.game.payoff import Payoff
from spiel_cfr.kernels.arrays import Int64s, Uint32s, Uint64s


@dataclasses.dataclass(frozen=True, eq=False)
class Subtree:
  """A part of a two-player game: the trunk, or what follows one of its moves of chance.

  Each player has its own numbering here: first the sequences of this part, from 0, then those sequences of the trunk
  that are above infosets or terminals of this part.

  Attributes:
    sequences: which of the game's sequences these are, a player.
    infosets: which of the player's infosets, in layout order, a player.
    groups: see `Treeplex.groups`, in the numbering of this part.
    parent: see `Treeplex.parent`, likewise.
    entries: int64, the sequences of the trunk above this part, in the trunk's numbering; none in the trunk itself.
    payoff: of the terminals of this part; its kernel is given the opponent's sequences and the player's own utilities.
  """

  sequences: tuple[slice, slice]
  infosets: tuple[slice, slice]
  groups: tuple[Uint64s, Uint64s]
  parent: tuple[Uint32s, Uint32s]
  entries: tuple[Int64s, Int64s]
  payoff: Payoff

  @property
  def lengths(self) -> tuple[int, int]:
    """How many sequences each player has here, those of the trunk included."""
    first, second = (
      own.stop - own.start + len(entries)
      for own, entries in zip(self.sequences, self.entries, strict=True)
    )
    return first, second
