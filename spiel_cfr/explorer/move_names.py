"""Names of moves on a page: cards by rank and suit, bets with their size, other moves by OpenSpiel's action strings."""

import re
from typing import Any

import pyspiel

from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.poker import cards
from spiel_cfr.poker.deal import NUM_CARDS

# The chips of each player in the pot, in the text of a state of universal_poker.
_SPENT = re.compile(r"\bP\d+: (\d+)")
_FOLD = 0
# The ranks of small decks, as in Kuhn and Leduc poker.
_PICTURES = "JQKA"


def card_names(game: pyspiel.Game) -> list[str]:
  """Returns the names of a poker game's cards; an empty list for other games."""
  name, parameters = game.get_type().short_name, game.get_parameters()
  if name == "universal_poker":
    ranks, num_suits = cards.RANKS[: parameters["numRanks"]], parameters["numSuits"]
  elif name in ("kuhn_poker", "leduc_poker"):
    count = game.num_players() + 1
    ranks = _PICTURES[:count] if count <= len(_PICTURES) else cards.RANKS[-count:]
    num_suits = 2 if name == "leduc_poker" and not parameters["suit_isomorphism"] else 1
  else:
    return []
  suits = cards.SUITS[:num_suits] if num_suits > 1 else [""]
  return [rank + suit for rank in ranks for suit in suits]


class MoveNames:
  """Names of the moves of a game.

  Attributes:
    cards: list of str. The names of the cards, see `card_names`.
    stacks: list of int. Each player's chips at the start of a hand of universal_poker; None for other games.
  """

  def __init__(self, game: pyspiel.Game) -> None:
    self.cards = card_names(game)
    self.stacks: list[int] | None = None
    if game.get_type().short_name == "universal_poker":
      self.stacks = [int(stack) for stack in game.get_parameters()["stack"].split()]

  def name(self, state: Any, action: int) -> str:
    """Returns the name of a move at a state; the number of the action if OpenSpiel has no string for it."""
    if self.cards and state.is_chance_node():
      return self._dealt(action)
    word = checked_calls.action_name(state, state.current_player(), action)
    return word if self.stacks is None else self._bet(state, action, word.rpartition("move=")[2])

  def cost(self, state: Any, action: int) -> int:
    """Returns the chips that a move of universal_poker puts into the pot, -1 for a fold; 0 in other games."""
    if self.stacks is None:
      return 0
    player = state.current_player()
    return -1 if action == _FOLD else _spent(state.child(action))[player] - _spent(state)[player]

  def spent(self, state: Any) -> list[int] | None:
    """Returns each player's chips in the pot of universal_poker; None for other games."""
    return None if self.stacks is None else _spent(state)

  def _bet(self, state: Any, action: int, word: str) -> str:
    """Returns the name of a move of universal_poker with its size in chips.

    Args:
      state: the state.
      action: the action.
      word: OpenSpiel's string of the action, which is the name of a fold.
    """
    cost = self.cost(state, action)
    if cost < 0:
      return word
    player, spent = state.current_player(), _spent(state)
    to_call = max(spent) - spent[player]
    if cost <= to_call:
      return f"Call {cost}" if cost else "Check"
    if self.stacks and spent[player] + cost >= self.stacks[player]:
      return f"All-in {cost}"
    size, pot = cost - to_call, sum(spent) + to_call
    share = " (the pot)" if size == pot else " (half the pot)" if abs(2 * size - pot) <= 1 else ""
    return f"{'Raise by' if to_call else 'Bet'} {size}{share}"

  def _dealt(self, action: int) -> str:
    """Returns the name of a card, or of both hands if chance deals them in one move, as in endgames."""
    if action < len(self.cards):
      return self.cards[action]
    dealt = [self.cards[action // NUM_CARDS**power % NUM_CARDS] for power in (3, 2, 1, 0)]
    return f"{''.join(dealt[1::-1])} {''.join(dealt[:1:-1])}"


def _spent(state: Any) -> list[int]:
  """Returns each player's chips in the pot of universal_poker."""
  return [int(chips) for chips in _SPENT.findall(str(state).partition("Spent:")[2])]
