"""What both ways to run traversals have in common.

They are compiled code over a tree of histories, and Python over OpenSpiel's states. Given the same random numbers both
draw the same samples in the same order and round alike, so they compute the same numbers, bit for bit.
"""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from spiel_cfr._numba.arrays import Uint64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.mccfr.infoset_table import Table
from spiel_cfr.mccfr.sampling_rules import AverageType, Sampler
from spiel_cfr.mccfr.updates import Batch


@dataclasses.dataclass(frozen=True)
class Scheme:
  """What a Monte Carlo solver does, whatever the game and the minimizer.

  Attributes:
    sampler: what is explored.
    average_type: how visits are weighted.
    averages_own: whether a traversal averages the strategies of its own player, or of the next one.
    baseline_rate: how far a baseline moves to a new value, 0 for none.
  """

  sampler: Sampler
  average_type: AverageType
  averages_own: bool = False
  baseline_rate: float = 0.0


class Engine(Protocol):
  """What runs iterations.

  Attributes:
    table: what is kept of each infoset.
    infostates: a player's information state strings -> the infoset's number in `table`.
  """

  table: Table
  infostates: list[dict[str, int]]

  @property
  def view(self) -> GameView:
    """How it walks the game, or has walked it."""

  def run(self, batch: Batch) -> None:
    """Does the iterations of a batch."""

  def fresh(self, counters: Uint64s) -> "Engine":
    """Returns an engine for the same game before its first iteration, which advances these counters."""

  def legal_actions(self, player: int, infostate: str) -> Sequence[int]:
    """Returns the legal actions at an infoset in the table, in the table's order."""
