"""The constants of pruning: what may be left alone, and for how long."""

import dataclasses

from spiel_cfr import arguments
from spiel_cfr.solvers.descriptions import Described

# Larger margins are infinity.
MOST_MARGIN = 1e9
# Numbers of all iterations of a window are made at once.
_LONGEST = 10**6


@dataclasses.dataclass(frozen=True)
class Pruning(Described):
  """Constants of best-response pruning, see `PrunedCFRSolver`.

  An action is left alone for a window of iterations if its regret would stay negative although it grew as fast as the
  largest payoffs below it allow, against what the other player has done lately and on average.

  Attributes:
    margin: how many times what the other player has done in the last window counts. Infinity, and anything above 1e9,
      never leaves anything alone.
    caution: how many times all that the other player has ever done counts: it foresees that it comes back to where it
      was not of late. By default, 3 for CFR+, which soon makes good what was left alone for too long, and 100 for CFR,
      which does not.
    certain: whether an action is left alone only if its regret would stay negative whatever anybody plays: then what
      comes back never has a positive regret; but hardly anything is left alone, and for short runs nothing.
    shortest: the fewest iterations of a window; otherwise it is a fifth of all so far.
    longest: the most, up to a million.
  """

  margin: float = 1.0
  caution: float | None = None
  certain: bool = False
  shortest: int = 50
  longest: int = 1000

  def __post_init__(self) -> None:
    """Checks the numbers.

    Raises:
      ArgumentError: a number is out of its range.
    """
    checked = {
      "margin": arguments.real_number(self.margin, "margin", 0.0),
      "certain": bool(self.certain),
      "shortest": arguments.integer(self.shortest, "shortest", 1, _LONGEST),
    }
    checked["longest"] = arguments.integer(
      self.longest, "longest", int(checked["shortest"]), _LONGEST
    )
    if self.caution is not None:
      checked["caution"] = arguments.real_number(self.caution, "caution", 0.0, 1e9)
    for name, value in checked.items():
      object.__setattr__(self, name, value)
