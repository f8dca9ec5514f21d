"""Games on which pruning is tested, and who is compared with those that prune."""

import functools

import poker_games
import pytest
import random_games

import spiel_cfr
from spiel_cfr import RegretMatching, FullWidthSolver

GAMES = {
  "kuhn": lambda: "kuhn_poker",
  "leduc": lambda: "leduc_poker",
  "liar's dice": lambda: "liars_dice(dice_sides=3)",
  "goofspiel": lambda: "goofspiel(imp_info=True,num_cards=4,points_order=descending)",
} | {
  f"random {seed}": lambda seed=seed: random_games.random_game(seed, max_histories=300, max_depth=7)
  for seed in (2, 5, 11)
}

# In vector form. On the endgame, much is soon left alone.
IN_VECTORS = {
  "leduc in vectors": lambda: spiel_cfr.compile_public_game("leduc_poker"),
  "two cards in vectors": lambda: spiel_cfr.compile_public_game(poker_games.UNIVERSAL_POKER[2]),
  "river endgame": lambda: spiel_cfr.compile_public_game(
    poker_games.random_endgame(5, 12, stack=700).load()
  ),
  "turn endgame": lambda: spiel_cfr.compile_public_game(
    poker_games.random_endgame(1, 4, poker_games.TURN, stack=300).load(), partitioned=False
  ),
}


def names(games, always):
  """Returns what to parametrize a test with: some of the games always, the others with the slow tests."""
  return [name if name in always else pytest.param(name, marks=pytest.mark.slow) for name in games]


@functools.cache
def game_of(name):
  """Compiles it, once."""
  return spiel_cfr.compile_game((GAMES | IN_VECTORS)[name]())


def unpruned(game, plus, alternating=True):
  """CFR+ or CFR with the averages of solvers that prune: of strategies as the other player faces them."""
  return FullWidthSolver(
    game,
    RegretMatching.plus() if plus else RegretMatching(),
    alternating_updates=alternating,
    average_weights=1.0 if plus else 0.0,
    averaged=("after", "before") if alternating and game.num_players == 2 else "before",
  )
