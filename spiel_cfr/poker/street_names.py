"""Information states of hold'em that keep the order in which public cards were dealt.

OpenSpiel's strings contain the public cards as a set. On the river, such a string does not say which card was the turn.
`StreetNames` therefore appends the cards of each deal, from the second deal on.
"""

import dataclasses
from typing import Any

from spiel_cfr.poker import cards
from spiel_cfr.poker.deal import Deal


@dataclasses.dataclass(frozen=True)
class StreetNames:
  """Function that names a player's information state, for `infostate` of `compile_game`.

  Attributes:
    num_moves_before: int. `Deal.num_moves_before`.
    streets: tuple of int. The number of public cards of each later deal.
    num_suits: int. The number of suits of the deck.
  """

  num_moves_before: int
  streets: tuple[int, ...]
  num_suits: int

  @classmethod
  def of(cls, deal: Deal) -> "StreetNames | None":
    """Returns the names for a deal with two or more later streets; None if OpenSpiel's names suffice."""
    if len(deal.streets) < 2:
      return None
    return cls(deal.num_moves_before, deal.streets, deal.num_suits)

  def __call__(self, state: Any, player: int) -> str:
    """Returns OpenSpiel's string, from the second deal on followed by the cards of each deal."""
    name: str = state.information_state_string(player)
    moves = state.full_history()[self.num_moves_before :]
    dealt = [move.action for move in moves if move.player < 0]
    if len(dealt) <= self.streets[0]:
      return name
    streets, begin = [], 0
    for count in self.streets:
      street = sorted(dealt[begin : begin + count])
      begin += count
      streets.append("".join(cards.card_name(card, self.num_suits) for card in street))
    return f"{name}[Dealt: {' '.join(filter(None, streets))}]"
