"""What is put in front of a subgame so that solving it again can't do harm, and what each such gadget promises.

Below a public state the searcher is solved again, the opponent is free, and chance deals the histories there. All that
a gadget does is choose how the opponent comes to where it stands, J: what it knows at the public state. With

    w(h)   chance's probability of a history h, times the searcher's of playing there, in what it really plays
    r(J)   the probability that the opponent plays to J in the blueprint
    v(J)   what the opponent expects at J from a best response to the blueprint, a mean over h in J by w
    C'(J)  the same against the searcher's new strategy
    g(J)   what the opponent has given away on the way to J: the sum of v(I) - v(I, a) over its actions a before
    margin the bound v(J), or v(J) + g(J), less C'(J)

a searcher all of whose margins are at least 0 is no more exploitable than the blueprint.
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
  """A gadget; the names of those that have one are in `GADGETS`.

  Attributes:
    front: what the opponent does before the subgame. "deal": nothing, chance deals J by w and r; "choice": chance deals
      J by w, and the opponent takes the bound or goes on; "pick": it picks J, and pays the bound.
    reach: whether the bound is v(J) + g(J), not v(J).
    mixed: which fraction of the game is played with J dealt as the blueprint's opponent comes there: in "pick" that of
      all play, in "choice", times r(J) / max r, that of play at J.
    knowledge_limited: whether the searcher is free only below one of its infosets, and plays the blueprint elsewhere;
      one subgame for each of them, of what it and the opponents there know (1-KLSS).
  """

  front: str
  reach: bool = False
  mixed: float = 0.0
  knowledge_limited: bool = False

  def __post_init__(self) -> None:
    """Checks the arguments.

    Raises:
      ArgumentError: there is no such front, `mixed` is not in [0, 1), or there is no bound that they could be for.
    """
    arguments.one_of(self.front, "front", ["deal", "choice", "pick"])
    arguments.real_number(self.mixed, "mixed", 0.0, math.nextafter(1.0, 0.0))
    if self.front == "deal" and (self.reach or self.mixed):
      raise errors.ArgumentError(
        "Where chance deals J there is no bound: reach and mixed are for the fronts 'choice' and 'pick'."
      )

  @property
  def is_safe(self) -> bool:
    """Whether margins of at least 0 are what it is for."""
    return self.front != "deal"

  def follows(self, dealt: Float64s, mass: Float64s) -> Float64s:
    """Returns how likely the opponent goes on at each J whatever it would choose, given w r and w; 0 where w is."""
    likely = np.divide(dealt, mass, out=np.zeros(len(mass)), where=mass > 0)
    return np.asarray(self.mixed * likely / max(float(likely.max()), 1e-300))


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
  # Margins are at least 0, and a tenth of the smallest one plus nine tenths of their mean, by w r, is as large as can
  # be: of the many safe strategies one that is good where the opponent is going to be.
  "safe": Gadget("pick", reach=True, mixed=0.9),
  # The resolving gadget, whose opponent goes on at J with probability 0.1 r(J) / max r or more: so what follows
  # matters wherever the blueprint goes. Safe where that is small; margins are checked. For solvers that iterate.
  "follow": Gadget("choice", mixed=0.1),
  # Max-margin with only what the searcher's infoset and the opponent's that it may meet can tell apart. Promises
  # nothing in general. Zhang and Sandholm (2021).
  "klss": Gadget("pick", knowledge_limited=True),
}


def find_gadget(gadget: Any, *, vector_form: bool = False) -> Gadget:
  """Returns a gadget by its name, or as it is; for None "safe", and "follow" in vector form.

  Raises:
    ArgumentError: there is no gadget of that name, or not in vector form.
  """
  if gadget is None:
    gadget = "follow" if vector_form else "safe"
  if isinstance(gadget, str) and gadget in GADGETS:
    gadget = GADGETS[gadget]
  if not isinstance(gadget, Gadget):
    raise errors.ArgumentError(
      f"gadget must be one of {', '.join(GADGETS)}, or a Gadget, not {arguments.shortened(gadget)}."
    )
  if vector_form and (gadget.front == "pick" or gadget.knowledge_limited):
    raise errors.ArgumentError(
      "In vector form the gadget is 'follow', 'resolving' or 'unsafe', or a Gadget whose front is 'choice' or 'deal', "
      "not knowledge-limited: nobody picks a type there, and subgames have all types. "
      "compile_game(game, vector_form=False) lists histories, for all gadgets."
    )
  return gadget
