"""Information states of hold'em that keep the order in which public cards were dealt.

OpenSpiel's strings contain the public cards as a set. After two deals, a string fits several orders: on the river,
either card may have been the turn. From the second deal on, names here contain the cards of each deal.
"""

import dataclasses
from typing import Any

from spiel_cfr.poker import cards
from spiel_cfr.poker.deal import Deal


@dataclasses.dataclass(frozen=True)
class StreetNames:
  """The name of a player's information state, for `infostate` of `compile_game`.

  Attributes:
    first: int. The number of moves before the first public card.
    streets: tuple of int. The number of public cards of each deal.
    num_suits: int. The number of suits of the deck.
  """

  first: int
  streets: tuple[int, ...]
  num_suits: int

  @classmethod
  def of(cls, deal: Deal) -> "StreetNames | None":
    """Returns the names of a game; None if OpenSpiel's names suffice."""
    if len(deal.streets) < 2:
      return None
    return cls(deal.num_private_moves + len(deal.path), deal.streets, deal.num_suits)

  def __call__(self, state: Any, player: int) -> str:
    """Returns OpenSpiel's string; after two or more deals, with the cards of each deal."""
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
