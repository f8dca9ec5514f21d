"""Deal of a poker game of OpenSpiel: the deck, the first board, and both players' ranges of hands.

All supported games deal private hands first, then only public cards. A pair of hands has probability

    reach_0(hand 0) * reach_1(hand 1) / sum of that product over all pairs of hands that share no card

All reaches are 1, except in endgames of `universal_poker`: their parameter `handReaches` has the reaches.
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
  """Cards of a game, and chance's probabilities of private hands.

  Attributes:
    num_ranks: int. The number of ranks in the deck.
    num_suits: int. The number of suits in the deck.
    hands: int64 (hands, cards a hand). All private hands without cards of the first board, in lexicographic order.
    reaches: float64 (2, hands). The weight of each hand in each player's range.
    board: tuple of int. The public cards at the beginning.
    one_action: bool. True if one action of chance deals both hands, as in endgames; False if each action deals a card.
    path: tuple of int. The actions between the private deal and the beginning of the game; empty for a whole game.
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

  @property
  def num_moves_before(self) -> int:
    """Number of moves before the game begins: the private deal, and `path`."""
    return self.num_private_moves + len(self.path)

  @functools.cached_property
  def total(self) -> float:
    """The sum of the products of reaches over all pairs of hands that share no card."""
    return float(self.reaches[0] @ self.compatible_mass(self.reaches[1]))

  @functools.cached_property
  def string_order(self) -> Int64s:
    """The position of each hand among all hands sorted as strings, the order of histories; int64 (hands,)."""
    texts = [sorted(map(str, hand)) for hand in self.hands.tolist()]
    return np.argsort(sorted(range(len(texts)), key=texts.__getitem__))

  def compatible_mass(self, weights: Float64s) -> Float64s:
    """Returns, for each hand, the total weight of all hands that share no card with it; shape (hands,).

    Args:
      weights: numbers (hands,). The weight of each hand.
    """
    weights = np.asarray(weights)
    card_totals = np.zeros(self.num_cards, weights.dtype)
    for column in self.hands.T:
      np.add.at(card_totals, column, weights)
    result = weights.sum() - card_totals[self.hands].sum(axis=1)
    # The totals contain the hand itself once for each of its cards.
    return np.asarray(result + (self.hand_size - 1) * weights)

  def actions(self, first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Returns the actions from OpenSpiel's root to the beginning of the game, given the cards of both hands."""
    dealt = [*first, *second]
    if self.one_action:
      dealt = [functools.reduce(lambda code, card: code * NUM_CARDS + card, dealt)]
    return [*dealt, *self.path]

  def hand(self, history: Sequence[int], player: int) -> int:
    """Returns the row in `hands` of a player's hand after a history."""
    dealt = list(history[: self.num_private_moves])
    if self.one_action:
      dealt = [history[0] // NUM_CARDS**power % NUM_CARDS for power in (3, 2, 1, 0)]
    hand = sorted(dealt[player * self.hand_size : (player + 1) * self.hand_size])
    return int(np.flatnonzero((self.hands == hand).all(axis=1))[0])


def find_deal(game: pyspiel.Game, path: Sequence[int] = (), dealt: Sequence[int] = ()) -> Deal:
  """Reads the deal from a game's parameters.

  Args:
    game: a poker game.
    path: `Deal.path`.
    dealt: the public cards in `path`.

  Raises:
    UnsupportedGameError: the game is not a supported poker game of two players.
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
  board_sizes = itertools.accumulate(map(int, parameters["numBoardCards"].split()))
  later = sorted({len(board), *(size for size in board_sizes if size > len(board))})
  deal = dataclasses.replace(
    _uniform(num_ranks, num_suits, hand_size, board),
    board=tuple(board),
    path=tuple(path),
    streets=tuple(np.diff(later).tolist()),
  )
  if not parameters["handReaches"]:
    if parameters["boardCards"]:
      raise errors.UnsupportedGameError("The vector form takes boardCards with handReaches only.")
    return deal
  reaches = np.array(parameters["handReaches"].split(), np.float64).reshape(2, -1)
  for weights in reaches:
    arguments.weights(weights, "handReaches")
  return dataclasses.replace(deal, reaches=_reaches_of(deal.hands, reaches), one_action=True)


def endgame_in_full_game(endgame: Endgame) -> tuple[pyspiel.Game, Deal]:
  """Returns hold'em with every size of bet as an action, and the deal of an endgame in it.

  A raise to half of the pot, a call, and checks on later streets lead to the endgame. The smallest bet is one chip; in
  the game of `Endgame.load` it is the blind, half of the pot.
  """
  game = pyspiel.load_game(
    "universal_poker(betting=nolimit,bettingAbstraction=fullgame,numPlayers=2,numRounds=4,blind=1 1,"
    "firstPlayer=1 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,"
    f"stack={endgame.starting_stack} {endgame.starting_stack})"
  )
  board, half = cards.parse_cards(endgame.board), endgame.pot // 2
  path = [half if half > 1 else 1, 1, *sorted(board[:3])]
  for card in board[3:]:
    path += [1, 1, card]
  deal = find_deal(game, path, board)
  return game, dataclasses.replace(deal, reaches=_reaches_of(deal.hands, endgame.reaches))


def _reaches_of(hands: Int64s, reaches: Float64s) -> Float64s:
  """Returns the reaches of some hands, float64 (2, hands).

  Args:
    hands: int64 (hands, 2). The hands.
    reaches: float64 (2, 1326). The reaches of all hands, in the order of endgame files.
  """
  order = np.lexsort(cards.file_hands().T[::-1])
  rows = np.searchsorted(cards.all_hands(NUM_CARDS, 2) @ [NUM_CARDS, 1], hands @ [NUM_CARDS, 1])
  return np.ascontiguousarray(reaches[:, order[rows]])


def _uniform(num_ranks: int, num_suits: int, hand_size: int, dead: Sequence[int] = ()) -> Deal:
  """Returns a deal in which all hands without dead cards have reach 1."""
  hands = cards.all_hands(num_ranks * num_suits, hand_size, dead)
  return Deal(num_ranks, num_suits, hands, np.ones((2, len(hands))))


def public_moves(view: GameView, state: Any) -> tuple[list[int], list[int]] | None:
  """Returns the path of an endgame: the actions from the private deal to the last public card, and the public cards.

  Returns:
    `path` and `dealt` of `find_deal`; None if chance has not dealt the last public card yet.
  """
  parameters = view.game.get_parameters()
  private = 1 if view.possible_only else 2 * parameters["numHoleCards"]
  moves = [(move.player, move.action) for move in state.full_history()][private:]
  dealt = [action for player, action in moves if player < 0]
  board = sum(map(int, parameters["numBoardCards"].split()))
  if len(dealt) + len(parameters["boardCards"]) // 2 < board:
    return None
  end = max((index + 1 for index, (player, _) in enumerate(moves) if player < 0), default=0)
  return [action for _, action in moves[:end]], dealt
