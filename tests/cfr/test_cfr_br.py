"""CFR-BR has OpenSpiel's iterates, and converges without averaging."""

import numpy as np
import pyspiel
import pytest
import random_games
from open_spiel.python.algorithms import cfr_br

import spiel_cfr
from spiel_cfr import policies

GAMES = {
  "leduc_poker": lambda: pyspiel.load_game("leduc_poker"),
  "liars_dice": lambda: pyspiel.load_game("liars_dice(dice_sides=2)"),
  "tiny_hanabi": lambda: pyspiel.load_game("tiny_hanabi"),
  "random": lambda: random_games.random_game(1, max_histories=200),
  "random, 3 players": lambda: random_games.random_game(1, num_players=3, max_histories=200),
}
# With more iterations rounding decides between best responses that are equally good.
TIED = ("kuhn_poker", "kuhn_poker(players=3)")


def assert_same(ours, theirs, iterations):
  compiled = ours.compiled_game
  for iteration in range(1, iterations + 1):
    ours.evaluate_and_update_policy()
    theirs.evaluate_and_update_policy()
    if iteration in (1, 2, 3, 10, 30):
      for name in ("current_policy", "average_policy"):
        found, expected = (
          policies.from_policy(compiled, getattr(solver, name)()) for solver in (ours, theirs)
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.quick(except_for=["leduc_poker"])
@pytest.mark.parametrize("name", [*GAMES, *TIED])
def test_iterates_are_those_of_open_spiel_in_cpp(name):
  game = pyspiel.load_game(name) if name in TIED else GAMES[name]()
  ours = spiel_cfr.cfr.CFRBRSolver(spiel_cfr.compile_game(game, vector_form=False))
  assert_same(ours, pyspiel.CFRBRSolver(game), 3 if name in TIED else 30)


@pytest.mark.quick("random-*", "liars_dice-True-False")
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("name", ["liars_dice", "random"])
def test_iterates_are_those_of_open_spiel_in_python(name, linear, plus):
  game = GAMES[name]()
  arguments = {"linear_averaging": linear, "regret_matching_plus": plus}
  assert_same(
    spiel_cfr.cfr.CFRBRSolver(game, **arguments), cfr_br.CFRBRSolver(game, **arguments), 30
  )


def test_the_current_policy_converges():
  """CFR's does not."""
  for solver, current, average in (
    (spiel_cfr.cfr.CFRBRSolver("leduc_poker"), 0.1, 0.15),
    (spiel_cfr.CFRSolver("leduc_poker"), 3.0, 0.1),
  ):
    solver.run(1000)
    found = spiel_cfr.nash_conv(solver.compiled_game, solver.current_policy())
    assert current / 3 < found < current
    assert solver.nash_conv() < average
