"""Gadgets: the part in front of a subgame that makes re-solving safe, and the guarantee of each.

In a subgame, the searcher's strategy is re-solved and the opponent's strategy is free. Chance deals the histories of
the public state. A gadget determines how the opponent comes to each of its private states J. The notation:

    w(h)   chance's probability of a history h, times the searcher's probability of playing to h
    w(J)   the sum of w(h) over the histories h in J: the probability that chance and the searcher lead to J
    r(J)   the probability with which the opponent's blueprint plays to J
    v(J)   the opponent's expected payoff at J by a best response to the blueprint: the mean over h in J, weighted by w
    C'(J)  the opponent's expected payoff at J by a best response to the searcher's new strategy
    g(J)   the opponent's gifts on the way to J: the sum of v(I) - v(I, a) over its earlier actions a at infosets I
    bound  the largest expected payoff that the opponent may have at J: v(J), or v(J) + g(J)
    margin the bound minus C'(J)

If all margins are at least 0, the searcher's new strategy is at most as exploitable as its blueprint.

A *counterfactual bound* is the bound times w(J). The *front* of a gadget is what the opponent does before the subgame:

    front      its own move                the searcher gets       in the other part, `Gadget.forced`
    "deal"     none: chance deals J        nothing                 there is no such part
    "choice"   at J, take or play on       minus the bound taken   it must play on at J, more often where r is larger
    "pick"     pick a J                    the bound of its J      chance deals J by w and r, and the bound is paid

`Entrances.free` times w(J) is the probability of J if the opponent's own move leads there. `Entrances.forced` times
w(J) is that without a move. Each kind of subgame builds a front from these two arrays and the bounds:

    trees.infoset_front.InfosetFront    infosets and leaves, for public trees that list private states
    poker.choice_front.with_choice      boards of hands, for rivers of hold'em; not "pick"
    subgames.lookahead.ChoiceFront      the opponent's range at the root, for subgames with leaf values; not "pick"
"""

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments


class Entrances(NamedTuple):
  """The two ways in which the opponent comes to its private states J: a factor of w(J) for each.

  Attributes:
    free: float64 (J,). The factor of the opponent's own move; 1 with the front "deal".
    forced: float64 (J,). The factor of the second way; 0 if `Gadget.forced` is 0. With "pick", the second way is a deal
      by chance. With "choice", it is a forced "play on".
  """

  free: Float64s
  forced: Float64s


@dataclasses.dataclass(frozen=True)
class Gadget:
  """The parameters of a gadget; `GADGETS` contains the named ones.

  Attributes:
    front: str. The opponent's move in front of the subgame. "deal": no move; chance deals J by w and r. "choice":
      chance deals J by w, and the opponent takes the bound or plays on. "pick": the opponent picks J and pays the
      bound.
    reach: True for the bound v(J) + g(J), False for v(J).
    forced: float. The part of play in which the opponent comes to J as its blueprint does, without a move of its own.
      With "pick", chance deals J by w and r in this part of all plays. With "choice", the opponent must play on at J
      with probability `forced` times r(J) / max r.
  """

  front: str
  reach: bool = False
  forced: float = 0.0

  def __post_init__(self) -> None:
    """Checks the arguments.

    Raises:
      ArgumentError: there is no such front, `forced` is not in [0, 1), or `reach` or `forced` is set for the front
        "deal".
    """
    arguments.one_of(self.front, "front", ["deal", "choice", "pick"])
    arguments.real_number(self.forced, "forced", 0.0, math.nextafter(1.0, 0.0))
    arguments.boolean(self.reach, "reach")
    if self.front == "deal" and (self.reach or self.forced):
      raise errors.ArgumentError(
        "The front 'deal' has no bound: reach and forced are for the fronts 'choice' and 'pick'."
      )

  @property
  def has_bounds(self) -> bool:
    """True if the gadget has bounds, so that margins can be checked: any front but "deal"."""
    return self.front != "deal"

  def entrances(self, w: Float64s, r: Float64s) -> Entrances:
    """Returns how the opponent comes to each J; with the front "deal", only by `free`, which is 1.

    Args:
      w: float64 (J,). The probability that chance and the searcher lead to each J.
      r: float64 (J,). The probability with which the opponent's blueprint plays to each J. With "choice", the maximum
        of r is over the J with w above 0.
    """
    if self.front == "pick":
      # The probability of each J, divided by w(J).
      weights = w * r if (w * r).sum() > 0 else w
      ways = np.full(len(w), 1 - self.forced), self.forced * weights / weights.sum()
      free, forced = (np.divide(way, w, out=np.zeros(len(w)), where=w > 0) for way in ways)
      return Entrances(free, forced)
    possible = np.where(w > 0, r, 0.0)
    forced = self.forced * possible / max(float(possible.max()), 1e-300)
    return Entrances(1 - forced, forced)


GADGETS: dict[str, Gadget] = {
  # No guarantee: the opponent need not play to J as its blueprint does. Ganzfried and Sandholm (2015).
  "unsafe": Gadget("deal"),
  # Never more exploitable than the blueprint. The blueprint is one of the solutions; nothing favors better
  # strategies. Burch, Johanson and Bowling (2014).
  "resolving": Gadget("choice"),
  # The guarantee of "resolving"; the smallest margin is maximal. Moravčík, Schmid, Ha, Hladík and Gaukrodger (2016).
  "max_margin": Gadget("pick"),
  # The guarantee of "max_margin", with the larger bound. Each subgame of a cut may use all of g. Brown and Sandholm
  # (2017).
  "reach_max_margin": Gadget("pick", reach=True),
  # Maximizes a tenth of the smallest margin plus nine tenths of the mean margin, weighted by w r. Safe only with a
  # linear program, which adds the constraint that no margin is negative. An equilibrium of the gadget as a game may
  # accept a negative margin for a better mean.
  "safe": Gadget("pick", reach=True, forced=0.9),
  # "resolving", except that the opponent plays on at J with probability at least 0.1 r(J) / max r. The solver therefore
  # optimizes wherever the blueprint goes. For iterative solvers: safe up to their error, so margins are checked.
  "follow": Gadget("choice", forced=0.1),
}


def find_gadget(gadget: Any, *, can_pick: bool = True, is_linear_program: bool = True) -> Gadget:
  """Returns the gadget with a name, or the gadget itself.

  Args:
    gadget: a name in `GADGETS`, or a `Gadget`. None: "safe" if a linear program solves the subgame and the opponent can
      pick, otherwise "follow".
    can_pick: whether the subgame can have an infoset in which the opponent picks its private state. "safe" needs one.
    is_linear_program: whether a linear program solves the subgame. "safe" needs one.

  Raises:
    ArgumentError: there is no such gadget, or the opponent cannot pick.
  """
  if gadget is None:
    gadget = "safe" if can_pick and is_linear_program else "follow"
  if isinstance(gadget, str) and gadget in GADGETS:
    gadget = GADGETS[gadget]
  if not isinstance(gadget, Gadget):
    raise errors.ArgumentError(
      f"gadget must be one of {', '.join(GADGETS)}, or a Gadget, not {arguments.shortened(gadget)}."
    )
  if not can_pick and gadget.front not in ("deal", "choice"):
    raise errors.ArgumentError(
      "Over vectors of hands, and with leaf values, the gadget is 'follow', 'resolving' or 'unsafe', or a Gadget whose "
      "front is 'choice' or 'deal': the opponent can't pick a private state there."
    )
  return gadget
