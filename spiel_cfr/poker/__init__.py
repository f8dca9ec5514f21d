"""Poker in vector form: hold'em endgames from ranges, boards and bet sizes, without a list of deals.

`compile_public_game` compiles a game with one vector over hands at each public state. `save_solution` keeps a solved
game in a file.

The modules by question, in reading order:

    What are cards, ranges and endgames?           cards, ranges, endgames
    Which bets are kept?                           bet_grammar, bet_filters
    What does chance deal?                         deal
    Which moves follow?                            betting_tree, rake
    Which boards and hands are there?              suit_symmetries, boards
    How do bets and boards become a public tree?   hand_tree
    How is a fold or a showdown evaluated?         hand_payoff, hand_tables, showdown_kernels
    How is all of this compiled?                   public_game, game_estimate
    How are infosets named?                        street_names, betting_line, merged_hands
    What are the EV and equity of a hand?          hand_values, street
    How is a solution kept in a file?              solution, saved_game
    What is in front of a searched river?          choice_front
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
