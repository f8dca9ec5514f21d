"""Poker in vector form: one vector over private hands at each public state, no list of deals; endgames and ranges."""

from spiel_cfr.poker.bet_filters import few_bets
from spiel_cfr.poker.bet_grammar import bet_sizes
from spiel_cfr.poker.endgames import Endgame, load_endgame
from spiel_cfr.poker.public_game import PublicGame, compile_public_game, estimate
from spiel_cfr.poker.rake import Rake
from spiel_cfr.poker.ranges import parse_range

__all__ = [
  "Endgame",
  "PublicGame",
  "Rake",
  "bet_sizes",
  "compile_public_game",
  "estimate",
  "few_bets",
  "load_endgame",
  "parse_range",
]
