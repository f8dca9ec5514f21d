"""Games and solvers for tests of pruning, and their unpruned counterparts."""

import functools

import pytest
import random_games

import spiel_cfr
from spiel_cfr import FullWidthSolver, Pruned, RegretMatching
from spiel_cfr._numba.arrays import aligned_zeros
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.games.compiled.counterfactual_values import backward_pass
from spiel_cfr.regret_minimizers.hedge import Hedge

GAMES = {
  "kuhn": lambda: "kuhn_poker",
  "leduc": lambda: "leduc_poker",
  "liar's dice": lambda: "liars_dice(dice_sides=3)",
  "goofspiel": lambda: "goofspiel(imp_info=True,num_cards=4,points_order=descending)",
} | {
  f"random {seed}": lambda seed=seed: random_games.random_game(seed, max_histories=300, max_depth=7)
  for seed in (2, 5, 11)
}


def names(games, always):
  """Returns games as parameters of a test: some always, the others in slow tests."""
  return [name if name in always else pytest.param(name, marks=pytest.mark.slow) for name in games]


@functools.cache
def game_of(name):
  """Compiles a game, once."""
  return spiel_cfr.compile_game(GAMES[name]())


# What is pruned: the minimizer, and the power of the average's weights.
KINDS = {
  "cfr": (RegretMatching(), 0.0),
  "cfr+": (RegretMatching.plus(), 1.0),
  "hedge": (Hedge(1000.0, 2.0), 0.0),
}


def unpruned(game, kind="cfr+", alternating=True):
  """Returns an unpruned solver with the averages of pruned ones: strategies as the other player faces them."""
  minimizer, power = KINDS[kind]
  return FullWidthSolver(
    game,
    minimizer,
    alternating_updates=alternating,
    averaging=spiel_cfr.Averaging(power, "faced"),
  )


def pruned(game, kind="cfr+", alternating=True, min_window=10):
  """Returns a pruned solver with early windows."""
  return Pruned(unpruned(game, kind, alternating), min_window=min_window)


def gap_of_regrets(game, regrets):
  """The sum over players of max_x <R, x>, the first term of the identity of `counterfactual_values`."""
  carried = aligned_zeros(game.end)
  for tree in game.treeplexes:
    for sequences, _ in tree.infoset_groups():
      carried[sequences] = regrets[sequences]
  return backward_pass(game, take_best, carried).sum()
