"""The constants of pruning: by what rule something may be left alone, and for how long."""

import dataclasses
from typing import Any, Literal, TypeAlias, get_args

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.cfr.recipes import Described

Rule: TypeAlias = Literal["partial", "regret", "best_response"]

# What is larger is infinity.
MOST = 1e9
# Beyond that, more caution leaves hardly less alone.
_MOST_CAUTION = 64.0
# Numbers of all iterations of a window are made at once.
_LONGEST = 10**6


@dataclasses.dataclass(frozen=True)
class Pruning(Described):
  """A rule of pruning and its constants, see `PruningSolver`.

  With "regret" and "best_response" an action is left alone for a window of iterations if its regret would stay negative
  although it grew as fast as the largest payoffs below it allow, against what the other player has done lately and on
  average. With "partial" what nobody has played to in the last window is taken not to be played in the next one either;
  that is checked, and a window in which it is wrong is gone back on, so that nothing changes but the time it takes.

  Attributes:
    rule: "best_response" makes up all history of what it leaves alone, and of that needs nothing; "regret" only that of
      the window, and keeps regrets; "partial" none.
    margin: how many times what the other player has done in the last window counts. Infinity, and anything above 1e9,
      never leaves anything alone.
    caution: how many times all that the other player has ever done counts: it foresees that it comes back to where it
      was not of late. By default, 1 for CFR+, which soon makes good what was left alone for too long, or 3 in vector
      form, and 6 for CFR, which does not. The solver's own grows, see `tolerance`.
    tolerance: a window is gone back on, and its iterations come again with nothing left alone, if what was left alone
      may have made NashConv worse by more than this part of it: by default 1 for CFR+, and 0.25 for CFR. Caution is
      then twice what it was, from 1 up to 64. Infinity, and anything above 1e9, never goes back.
    certain: whether an action is left alone only if its regret would stay negative whatever anybody plays: then what
      comes back never has a positive regret; but hardly anything is left alone, and for short runs nothing.
    shortest: the fewest iterations of a window; otherwise it is a tenth of all so far, or as many as take five times
      as long as to open it, if these are fewer. By default, as many as would take that with nothing left alone.
    longest: the most, up to a million.
    worthwhile: what part of an iteration's work may be left at most, by counts of leaves and sequences: otherwise
      nothing is left alone. Infinity always leaves alone what can be.
  """

  rule: Rule = "best_response"
  margin: float = 1.0
  caution: float | None = None
  tolerance: float | None = None
  certain: bool = False
  shortest: int | None = None
  longest: int = 3000
  worthwhile: float = 0.8

  def __post_init__(self) -> None:
    """Checks the numbers.

    Raises:
      ArgumentError: a number is out of its range.
    """
    arguments.one_of(self.rule, "rule", get_args(Rule))
    checked = {
      "margin": arguments.real_number(self.margin, "margin", 0.0),
      "certain": bool(self.certain),
      "worthwhile": arguments.real_number(self.worthwhile, "worthwhile", 0.0),
    }
    if self.shortest is not None:
      checked["shortest"] = arguments.integer(self.shortest, "shortest", 1, _LONGEST)
    checked["longest"] = arguments.integer(
      self.longest, "longest", int(checked.get("shortest", 1)), _LONGEST
    )
    if self.caution is not None:
      checked["caution"] = arguments.real_number(self.caution, "caution", 0.0, 1e9)
    if self.tolerance is not None:
      checked["tolerance"] = arguments.real_number(self.tolerance, "tolerance", 0.0)
    for name, value in checked.items():
      object.__setattr__(self, name, value)

  def caution_and_tolerance(self, plus: bool, in_vectors: bool) -> tuple[float, float]:
    """Returns both, where they are by default as they are for CFR+, if `plus`, or for CFR; in vector form, or not."""
    # Chosen on liar's dice and Leduc-5; in vector form on a river endgame.
    caution, tolerance = (3.0 if in_vectors else 1.0, 1.0) if plus else (6.0, 0.25)
    return (
      caution if self.caution is None else self.caution,
      tolerance if self.tolerance is None else self.tolerance,
    )


def more_caution(caution: float) -> float:
  """Returns the caution after a window that was gone back on."""
  return max(caution, min(max(2 * caution, 1.0), _MOST_CAUTION))


def as_pruning(pruning: Any) -> Pruning | None:
  """Returns the constants, given them, the name of a rule, or None.

  Raises:
    ArgumentError: it is none of these.
  """
  if pruning is None or isinstance(pruning, Pruning):
    return pruning
  rules: tuple[Rule, ...] = get_args(Rule)
  for rule in rules:
    if isinstance(pruning, str) and pruning == rule:
      return Pruning(rule)
  raise errors.ArgumentError(
    f"pruning must be {', '.join(map(repr, rules))}, a Pruning or None, not {arguments.shortened(pruning)}."
  )
