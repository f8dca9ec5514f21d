"""Information states that keep the order in which public cards were dealt.

OpenSpiel's strings have the public cards as a set. That is all that a player knows until two deals have been seen: on
the river, a string fits two orders of turn and river. There, and only there, names say the cards of each deal.
"""

import dataclasses
from typing import Any

from spiel_cfr.poker import cards
from spiel_cfr.poker.deal import Deal


@dataclasses.dataclass(frozen=True)
class StreetNames:
  """The name of a player's information state, as `infostate` of `compile_game` takes it.

  Attributes:
    first: the number of moves before the first public card.
    streets: the number of public cards of each deal.
    num_suits: of the deck.
  """

  first: int
  streets: tuple[int, ...]
  num_suits: int

  @classmethod
  def of(cls, deal: Deal) -> "StreetNames | None":
    """Returns the names of a game, None where OpenSpiel's own are enough."""
    if len(deal.streets) < 2:
      return None
    return cls(deal.num_private_moves + len(deal.path), deal.streets, deal.num_suits)

  def __call__(self, state: Any, player: int) -> str:
    """Returns OpenSpiel's string, with the cards of each deal where there have been two or more."""
    name: str = state.information_state_string(player)
    dealt = [move.action for move in state.full_history()[self.first :] if move.player < 0]
    if len(dealt) <= self.streets[0]:
      return name
    streets, begin = [], 0
    for count in self.streets:
      own = sorted(dealt[begin : begin + count])
      begin += count
      streets.append("".join(cards.card_name(card, self.num_suits) for card in own))
    return f"{name}[Dealt: {' '.join(filter(None, streets))}]"
