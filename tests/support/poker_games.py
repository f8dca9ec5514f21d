"""Poker games for tests: endgames with few hands, and such games as OpenSpiel's own algorithms can walk them."""

from typing import Any

import numpy as np
import pyspiel

from spiel_cfr import CompiledGame, Endgame
from spiel_cfr.compiled import enumerated
from spiel_cfr.game.view import GameView
from spiel_cfr.poker import cards, endgames

RIVER, TURN = "4s8hTc9h2s", "7s9h9cTc"
UNIVERSAL_POKER = (
  # One hole card, two suits.
  "universal_poker(betting=nolimit,bettingAbstraction=fchpa,numPlayers=2,numRounds=2,blind=1 2,"
  "firstPlayer=1 1,numSuits=2,numRanks=3,numHoleCards=1,numBoardCards=0 1,stack=6 6)",
  # Two board cards at once, one suit, stacks that differ.
  "universal_poker(betting=nolimit,bettingAbstraction=fcpa,numPlayers=2,numRounds=2,blind=1 2,"
  "firstPlayer=2 1,numSuits=1,numRanks=6,numHoleCards=1,numBoardCards=0 2,stack=5 9)",
  # Two hole cards, three suits, fixed bets.
  "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 2,firstPlayer=1 1,numSuits=3,"
  "numRanks=2,numHoleCards=2,numBoardCards=0 1,raiseSize=2 2,maxRaises=1 1)",
  # Every size of bet.
  "universal_poker(betting=nolimit,bettingAbstraction=fullgame,numPlayers=2,numRounds=2,"
  "blind=1 2,firstPlayer=1 1,numSuits=2,numRanks=3,numHoleCards=1,numBoardCards=0 1,stack=5 5)",
)


def random_endgame(seed: int, num_hands: int, board: str = RIVER, **stakes: int) -> Endgame:
  """Returns an endgame with random reaches of `num_hands` hands a side, of few cards so that many block each other."""
  rng = np.random.default_rng(seed)
  hands = endgames.file_hands()
  dead = cards.parse_cards(board)
  deck = rng.permutation([card for card in range(52) if card not in dead])[:14]
  live = np.flatnonzero(np.isin(hands, deck).all(axis=1))
  reaches = np.zeros((2, len(hands)))
  for reach in reaches:
    reach[rng.choice(live, num_hands, replace=False)] = rng.random(num_hands)
  return Endgame(
    round=3 if len(board) == 8 else 4,
    board=board,
    reaches=reaches,
    **{"pot": 400, "stack": 1600, "big_blind": 100} | stakes,
  )


def check_or_pot(state: Any, actions: list[int]) -> list[int]:
  """An action filter with very few bets: one a round, of the pot."""
  betting = state.information_state_string().rpartition("[Sequences: ")[2].rpartition("|")[2]
  return [action for action in actions if action in ((0, 1) if "r" in betting else (1, 2))]


def enumerate_histories(game: pyspiel.Game, action_filter: Any = None) -> CompiledGame:
  """Compiles a poker game by listing all its histories, for what is in vector form to be compared with."""
  walkable = WalkableGame(game, action_filter)
  return enumerated.enumerated_game(GameView(walkable, possible_only=False), 10**7, 2**32, False)


class WalkableGame:
  """A game of OpenSpiel without impossible deals, which it refuses to walk, and with filtered actions.

  It has what OpenSpiel's Python algorithms and `enumerate_game` ask of a game.
  """

  def __init__(self, game: pyspiel.Game, action_filter: Any = None) -> None:
    self._game = game
    self._action_filter = action_filter
    root = game.new_initial_state()
    self._deals = [outcome for outcome in root.chance_outcomes() if outcome[1] > 0]

  def __getattr__(self, name: str) -> Any:
    return getattr(self._game, name)

  def __str__(self) -> str:
    return str(self._game)

  def new_initial_state(self) -> "WalkableState":
    return WalkableState(self._game.new_initial_state(), self._deals, self._action_filter)


class WalkableState:
  """A state of `WalkableGame`."""

  def __init__(self, state: Any, deals: Any, action_filter: Any) -> None:
    self._state = state
    self._deals = deals
    self._action_filter = action_filter

  def __getattr__(self, name: str) -> Any:
    return getattr(self._state, name)

  def __str__(self) -> str:
    return str(self._state)

  def clone(self) -> "WalkableState":
    return WalkableState(self._state.clone(), self._deals, self._action_filter)

  def child(self, action: int) -> "WalkableState":
    return WalkableState(self._state.child(action), self._deals, self._action_filter)

  def chance_outcomes(self) -> Any:
    return self._state.chance_outcomes() if self._state.move_number() else self._deals

  def legal_actions(self, player: int | None = None) -> list[int]:
    if self._state.is_chance_node():
      return [action for action, _ in self.chance_outcomes()]
    legal = self._state.legal_actions()
    return self._action_filter(self._state, legal) if self._action_filter else legal
