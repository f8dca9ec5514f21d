"""Gadgets: the part in front of a subgame that makes solving it again safe, and the promise of each.

Below a public state the searcher is solved again, the opponent is free, and chance deals the histories there. A gadget
decides how the opponent comes to each of its private states J. With

    w(h)   chance's probability of a history h, times the searcher's probability of playing there
    r(J)   the probability that the opponent plays to J in the blueprint
    v(J)   the opponent's expected payoff at J by a best response to the blueprint, a mean over h in J by w
    C'(J)  the same against the searcher's new strategy
    g(J)   the opponent's gifts on the way to J: the sum of v(I) - v(I, a) over its actions a before
    margin the bound v(J), or v(J) + g(J), less C'(J)

a searcher with margins of at least 0 is at most as exploitable as the blueprint.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments


@dataclasses.dataclass(frozen=True)
class Gadget:
  """A gadget; `GADGETS` has those with names.

  Attributes:
    front: the opponent's move before the subgame. "deal": none, chance deals J by w and r; "choice": chance deals J by
      w, and the opponent takes the bound or goes on; "pick": the opponent picks J, and pays the bound.
    reach: whether the bound is v(J) + g(J) instead of v(J).
    mixed: the part of the game in which J is dealt as the blueprint's opponent comes there. In "pick" it is a part of
      all play; in "choice", times r(J) / max r, a part of the play at J.
  """

  front: str
  reach: bool = False
  mixed: float = 0.0

  def __post_init__(self) -> None:
    """Checks the arguments.

    Raises:
      ArgumentError: there is no such front, `mixed` is not in [0, 1), or there is no bound for `reach` and `mixed`.
    """
    arguments.one_of(self.front, "front", ["deal", "choice", "pick"])
    arguments.real_number(self.mixed, "mixed", 0.0, math.nextafter(1.0, 0.0))
    if self.front == "deal" and (self.reach or self.mixed):
      raise errors.ArgumentError(
        "Where chance deals J there is no bound: reach and mixed are for the fronts 'choice' and 'pick'."
      )

  @property
  def is_safe(self) -> bool:
    """True if the gadget keeps margins from being negative."""
    return self.front != "deal"

  def shares(self, w: Float64s, r: Float64s) -> Float64s:
    """Returns the factor of w in each way in which the opponent comes to J: after its move in front, then dealt.

    Args:
      w: float64 (J,). w of each J.
      r: float64 (J,). r of each J.

    Returns:
      Shape (ways, J), with a second way if `mixed` is above 0. Where the opponent picks J, factors are divided by w.
    """
    if self.front == "pick":
      weights = w * r if (w * r).sum() > 0 else w
      ways = [np.full(len(w), 1 - self.mixed), self.mixed * weights / weights.sum()]
      factors = [np.divide(way, w, out=np.zeros(len(w)), where=w > 0) for way in ways]
    else:
      follows = self.follows(np.where(w > 0, r, 0.0))
      factors = [1 - follows, follows]
    return np.array(factors[: 2 if self.mixed else 1])

  def follows(self, r: Float64s) -> Float64s:
    """Returns the probability with which the opponent of the front "choice" goes on without a choice, at each J."""
    return self.mixed * r / max(float(r.max()), 1e-300)


GADGETS: dict[str, Gadget] = {
  # Promises nothing: the opponent need not come to J as the blueprint's does. Ganzfried and Sandholm (2015).
  "unsafe": Gadget("deal"),
  # Never more exploitable than the blueprint. Burch, Johanson and Bowling (2014). The blueprint is one of its
  # solutions, and nothing prefers a better one.
  "resolving": Gadget("choice"),
  # As above, and the smallest margin is as large as can be. Moravčík, Schmid, Ha, Hladík and Gaukrodger (2016).
  "max_margin": Gadget("pick"),
  # As above, by the larger bound; all subgames of a cut together may use all of g. Brown and Sandholm (2017).
  "reach_max_margin": Gadget("pick", reach=True),
  # A tenth of the smallest margin plus nine tenths of their mean, by w r, is as large as can be. Safe in a linear
  # program only, which adds that no margin is negative: an equilibrium of the game may trade one for a better mean.
  "safe": Gadget("pick", reach=True, mixed=0.9),
  # The resolving gadget, whose opponent goes on at J with probability 0.1 r(J) / max r or more: so the solution counts
  # wherever the blueprint goes. Nearly safe, and margins are checked. For solvers that iterate.
  "follow": Gadget("choice", mixed=0.1),
}


def find_gadget(gadget: Any, *, picks: bool = True, iterates: bool = False) -> Gadget:
  """Returns a gadget by its name, or as it is; for None "safe", and "follow" for solvers that iterate or without picks.

  Raises:
    ArgumentError: there is no gadget of that name, or the opponent can't pick.
  """
  if gadget is None:
    gadget = "safe" if picks and not iterates else "follow"
  if isinstance(gadget, str) and gadget in GADGETS:
    gadget = GADGETS[gadget]
  if not isinstance(gadget, Gadget):
    raise errors.ArgumentError(
      f"gadget must be one of {', '.join(GADGETS)}, or a Gadget, not {arguments.shortened(gadget)}."
    )
  if not picks and gadget.front == "pick":
    raise errors.ArgumentError(
      "In vector form, and with leaf values, the gadget is 'follow', 'resolving' or 'unsafe', or a Gadget whose front "
      "is 'choice' or 'deal': the opponent can't pick a private state there. compile_game(game, vector_form=False) "
      "lists histories, for all gadgets."
    )
  return gadget
