"""Poker games for tests: small ones, and endgames with few hands."""

from typing import Any

import numpy as np

from spiel_cfr.poker import Endgame, cards

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
  hands = cards.file_hands()
  dead = cards.parse_cards(board)
  deck = rng.permutation([card for card in range(52) if card not in dead])[:14]
  live = np.flatnonzero(np.isin(hands, deck).all(axis=1))
  reaches = np.zeros((2, len(hands)))
  for reach in reaches:
    reach[rng.choice(live, num_hands, replace=False)] = rng.random(num_hands)
  return Endgame(
    board=board,
    reaches=reaches,
    **{"pot": 400, "starting_stack": 1600, "big_blind": 100} | stakes,
  )


def check_or_pot(state: Any, actions: list[int]) -> list[int]:
  """An action filter with very few bets: one a round, of the pot."""
  betting = state.information_state_string().rpartition("[Sequences: ")[2].rpartition("|")[2]
  return [action for action in actions if action in ((0, 1) if "r" in betting else (1, 2))]
