"""Poker in vector form: hold'em endgames from ranges, boards and bet sizes, without a list of deals.

`compile_public_game` compiles a game with one vector over hands at each public state. `save_solution` keeps a solved
game in a file.
"""

from spiel_cfr.poker.bet_filters import few_bets
from spiel_cfr.poker.bet_grammar import bet_sizes
from spiel_cfr.poker.endgames import Endgame, load_endgame
from spiel_cfr.poker.public_game import PublicGame, compile_public_game, estimate
from spiel_cfr.poker.rake import Rake
from spiel_cfr.poker.ranges import parse_range
from spiel_cfr.poker.solution import PokerSolution, load_solution, save_solution

__all__ = [
  "Endgame",
  "PokerSolution",
  "PublicGame",
  "Rake",
  "bet_sizes",
  "compile_public_game",
  "estimate",
  "few_bets",
  "load_endgame",
  "load_solution",
  "parse_range",
  "save_solution",
]
