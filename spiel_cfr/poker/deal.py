"""The deal of a poker game of OpenSpiel: its cards, hands and the probabilities of hands.

All games here deal private hands first, and then only public cards. A deal has probability

    reach_0(hand 0) * reach_1(hand 1) / sum of that product over all pairs of hands that share no card

where reaches are 1, except in endgames of `universal_poker`, whose parameter `handReaches` gives them.
"""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker import cards
from spiel_cfr.poker.endgames import Endgame

NUM_SUITS = len(cards.SUITS)
NUM_CARDS = NUM_SUITS * len(cards.RANKS)


@dataclasses.dataclass(frozen=True)
class Deal:
  """The cards of a game and their deals.

  Attributes:
    num_ranks: int. The number of ranks in the deck.
    num_suits: int. The number of suits in the deck.
    hands: int64 (hands, cards a hand). Every private hand, in lexicographic order.
    reaches: float64 (2, hands). The weight of each hand of each player.
    board: tuple of int. The public cards at the beginning.
    one_action: bool. Whether one action of chance deals both hands, as in endgames; otherwise one action deals one
      card.
    path: tuple of int. The actions after the hands were dealt, if the game begins later than at its root.
    streets: tuple of int. The number of public cards of each later deal.
  """

  num_ranks: int
  num_suits: int
  hands: Int64s
  reaches: Float64s
  board: tuple[int, ...] = ()
  one_action: bool = False
  path: tuple[int, ...] = ()
  streets: tuple[int, ...] = ()

  @property
  def num_cards(self) -> int:
    """Number of cards in the deck."""
    return self.num_ranks * self.num_suits

  @property
  def hand_size(self) -> int:
    """Number of cards in a hand."""
    return int(self.hands.shape[1])

  @property
  def num_private_moves(self) -> int:
    """Number of actions of chance that deal both hands."""
    return 1 if self.one_action else 2 * self.hand_size

  @functools.cached_property
  def total(self) -> float:
    """The sum of the products of reaches over all pairs of hands that share no card."""
    return float(self.reaches[0] @ self.compatible_mass(self.reaches[1]))

  @functools.cached_property
  def string_order(self) -> Int64s:
    """The rank of each hand if hands are sorted as texts of their cards, as histories are; int64 (hands,)."""
    texts = [sorted(map(str, hand)) for hand in self.hands.tolist()]
    return np.argsort(sorted(range(len(texts)), key=texts.__getitem__))

  def compatible_mass(self, weights: Float64s) -> Float64s:
    """Returns, for each hand, the total weight of the hands that share no card with it; shape (hands,)."""
    weights = np.asarray(weights)
    of_card = np.zeros(self.num_cards, weights.dtype)
    for column in self.hands.T:
      np.add.at(of_card, column, weights)
    result = weights.sum() - of_card[self.hands].sum(axis=1)
    # The hand itself was subtracted once for each of its cards.
    return np.asarray(result + (self.hand_size - 1) * weights)

  def actions(self, first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Returns the actions from the root to the beginning of play with these two hands."""
    dealt = [*first, *second]
    if self.one_action:
      dealt = [functools.reduce(lambda code, card: code * NUM_CARDS + card, dealt)]
    return [*dealt, *self.path]

  def hand(self, history: Sequence[int], player: int) -> int:
    """Returns the number of a player's hand after a history."""
    dealt = list(history[: self.num_private_moves])
    if self.one_action:
      dealt = [history[0] // NUM_CARDS**place % NUM_CARDS for place in (3, 2, 1, 0)]
    own = sorted(dealt[player * self.hand_size : (player + 1) * self.hand_size])
    return int(np.flatnonzero((self.hands == own).all(axis=1))[0])


def find_deal(game: pyspiel.Game, path: Sequence[int] = (), dealt: Sequence[int] = ()) -> Deal:
  """Reads the deal from a game's parameters.

  Args:
    game: a poker game.
    path: the actions after the hands were dealt, if the game begins there.
    dealt: the public cards among these actions.

  Raises:
    UnsupportedGameError: the game is not one of the supported poker games of two players.
  """
  name, parameters = game.get_type().short_name, game.get_parameters()
  if game.num_players() != 2 or name not in ("kuhn_poker", "leduc_poker", "universal_poker"):
    raise errors.UnsupportedGameError(
      "The vector form is for kuhn_poker, leduc_poker and universal_poker with two players, not "
      f"for {name} with {game.num_players()}."
    )
  if name == "kuhn_poker":
    return _uniform(3, 1, 1)
  if name == "leduc_poker":
    if parameters["suit_isomorphism"]:
      raise errors.UnsupportedGameError(
        "The vector form needs Leduc's suits: it does not take suit_isomorphism=True."
      )
    return dataclasses.replace(_uniform(3, 2, 1), streets=(1,))
  loading.check_pot(game)
  hand_size = parameters["numHoleCards"]
  if hand_size not in (1, 2):
    raise errors.UnsupportedGameError(
      f"The vector form takes one or two hole cards, not {hand_size}."
    )
  num_ranks, num_suits = parameters["numRanks"], parameters["numSuits"]
  board = sorted([*cards.parse_cards(parameters["boardCards"], num_suits), *dealt])
  counts = itertools.accumulate(map(int, parameters["numBoardCards"].split()))
  later = sorted({len(board), *(count for count in counts if count > len(board))})
  streets = tuple(np.diff(later).tolist())
  if not parameters["handReaches"]:
    if parameters["boardCards"]:
      raise errors.UnsupportedGameError("The vector form takes boardCards with handReaches only.")
    whole = _uniform(num_ranks, num_suits, hand_size, board)
    return dataclasses.replace(whole, board=tuple(board), path=tuple(path), streets=streets)
  given = np.array(parameters["handReaches"].split(), np.float64).reshape(2, -1)
  for own in given:
    arguments.weights(own, "handReaches")
  whole = _uniform(num_ranks, num_suits, hand_size, board)
  return dataclasses.replace(
    whole,
    reaches=_in_order(given, whole.hands),
    board=tuple(board),
    one_action=True,
    path=tuple(path),
    streets=streets,
  )


def endgame_in_full_game(endgame: Endgame) -> tuple[pyspiel.Game, Deal]:
  """Returns hold'em with every size of bet, and the deal of an endgame of it.

  A raise to half of the pot and a call before the flop, and checks on later streets, lead to the endgame. The smallest
  bet is one chip; in `Endgame.load`, it is the blind, half of the pot.
  """
  game = pyspiel.load_game(
    "universal_poker(betting=nolimit,bettingAbstraction=fullgame,numPlayers=2,numRounds=4,blind=1 1,"
    "firstPlayer=1 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,"
    f"stack={endgame.stack} {endgame.stack})"
  )
  board, half = cards.parse_cards(endgame.board), endgame.pot // 2
  path = [half if half > 1 else 1, 1, *sorted(board[:3])]
  for card in board[3:]:
    path += [1, 1, card]
  deal = find_deal(game, path, board)
  return game, dataclasses.replace(deal, reaches=_in_order(endgame.reaches, deal.hands))


def _in_order(reaches: Float64s, hands: Int64s) -> Float64s:
  """Returns the reaches of `hands`, shape (2, hands), given those of all hands in the order of files."""
  order = np.lexsort(cards.file_hands().T[::-1])
  live = np.searchsorted(cards.all_hands(NUM_CARDS, 2) @ [NUM_CARDS, 1], hands @ [NUM_CARDS, 1])
  return np.ascontiguousarray(reaches[:, order[live]])


def _uniform(num_ranks: int, num_suits: int, hand_size: int, dead: Sequence[int] = ()) -> Deal:
  hands = cards.all_hands(num_ranks * num_suits, hand_size, dead)
  return Deal(num_ranks, num_suits, hands, np.ones((2, len(hands))))


def public_moves(view: GameView, state: Any) -> tuple[list[int], list[int]] | None:
  """Returns the moves after the hands were dealt, up to the last public card, and the public cards among them.

  Returns:
    None before the last public card.
  """
  parameters = view.game.get_parameters()
  private = 1 if view.possible_only else 2 * parameters["numHoleCards"]
  moves = [(move.player, move.action) for move in state.full_history()][private:]
  dealt = [action for player, action in moves if player < 0]
  board = sum(map(int, parameters["numBoardCards"].split()))
  if len(dealt) + len(parameters["boardCards"]) // 2 < board:
    return None
  last = max((place + 1 for place, (player, _) in enumerate(moves) if player < 0), default=0)
  return [action for _, action in moves[:last]], dealt
