"""Games whose returns contradict their types: every walk names a history that shows it."""

import random
import re
import zlib

import numpy as np
import pyspiel
import pytest
import random_games
import typed_games
from hypothesis import given
from hypothesis import strategies as st

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.games import compile_vector_game, game_from_arrays

DOORS = {
  "compile_game": spiel_cfr.compile_game,
  "own infostates": lambda game: spiel_cfr.compile_game(
    game, infostate=lambda state, player: state.information_state_string(player)
  ),
  "compile_vector_game": compile_vector_game,
  "num_processes": lambda game: compile_vector_game(game, num_processes=2),
  "solve": lambda game: spiel_cfr.solve(game, seconds=1),
  "solve_lp": spiel_cfr.solve_lp,
  "nash_conv": lambda game: spiel_cfr.nash_conv(game, {}),
  "exploitability": lambda game: spiel_cfr.exploitability(game, {}),
  "CFRPlusSolver": spiel_cfr.CFRPlusSolver,
  "external sampling": lambda game: spiel_cfr.ExternalSamplingSolver(game, seed=0),
  "external sampling of states": lambda game: spiel_cfr.ExternalSamplingSolver(
    game, seed=0, engine="states"
  ).run(300),
  "outcome sampling of states": lambda game: spiel_cfr.OutcomeSamplingSolver(
    game, seed=0, engine="states"
  ).run(30_000),
  "deep": lambda game: spiel_cfr.DeepCFRSolver(
    game,
    seed=0,
    engine="states",
    num_traversals=300,
    features=lambda state, player: [
      float(zlib.crc32(state.information_state_string(player).encode()) % 65521)
    ],
  ).run(1),
}


def lying(seed, off, total=0.0):
  """Returns a game whose returns differ by `off` from its declared sum at one possible end."""
  game, choose = typed_games.TypedGame(seed, max_depth=3, total=total), random.Random(seed)
  state = game.new_initial_state()
  while not state.is_terminal():
    actions = state.legal_actions()
    if state.is_chance_node():
      actions = [action for action, chance in state.chance_outcomes() if chance > 0]
    state.apply_action(choose.choice(actions))
  game.lie = state.history(), off
  return game


def check(door, seed, off, total):
  game = lying(seed, off, total)
  history = re.escape(f"history [{', '.join(map(str, game.lie[0]))}]")
  with pytest.raises(errors.UnsupportedGameError) as caught:
    DOORS[door](game)
  # The vector form compares indistinguishable deals before it checks sums.
  if "vector" not in door or "neither player tells apart" not in str(caught.value):
    assert caught.type is errors.InvalidPayoffError
    assert re.search(rf"{history} .*sum to .*GENERAL_SUM", str(caught.value))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("seed", "off", "total"), [(0, 1.0, 0.0), (1, -1e-3, 0.0), (4, 1e-4, 3.5)])
def test_a_wrong_sum_is_named(door, seed, off, total):
  check(door, seed, off, total)


@given(
  st.sampled_from(["compile_game", "own infostates", "compile_vector_game"]),
  st.integers(0, 10**6),
  st.sampled_from([3.0, 1e-2, -1e-4]),
  st.sampled_from([0.0, -2.0, 3.5]),
)
def test_walks_name_any_wrong_sum(door, seed, off, total):
  check(door, seed, off, total)


class _Loose(typed_games.TypedGame):
  """A game without a declared sum and without bounds."""

  def utility_sum(self):
    return None

  bound = 1e13

  def max_utility(self):
    return self.bound


def test_a_constant_that_is_not_named():
  compiled = spiel_cfr.compile_game(_Loose(0, max_depth=3, total=2.0))
  assert compiled.constant_sum == 2
  game = _Loose(0, max_depth=3, total=2.0)
  game.lie = lying(0, 1.0, 2.0).lie
  for door in ("compile_game", "compile_vector_game", "external sampling of states"):
    with pytest.raises(errors.InvalidPayoffError, match=r"sum to .*GENERAL_SUM"):
      DOORS[door](game)


def test_ties_are_as_large_as_payoffs_that_there_are():
  """Ties of 1e-12 of the declared payoffs would hide all regrets."""
  game = _Loose(0, max_depth=3)
  game.bound = 1e18
  solver = spiel_cfr.ExternalSamplingSolver(game, seed=0)
  before = solver.nash_conv()
  solver.run(300)
  assert solver.nash_conv() < 0.5 * before


def test_sums_that_are_right():
  """Rounding is accepted, and games without a declared sum may have any."""
  rounded = lying(0, 3e-8)
  assert spiel_cfr.compile_game(rounded).constant_sum is None
  for game in (
    pyspiel.load_game("goofspiel(players=3,num_cards=3)"),
    "matrix_pd",
    "python_kuhn_poker",
  ):
    spiel_cfr.compile_game(game)
  general = random_games.random_efg(0, payoff_ties=True).replace("{ 0/1 0/1 }", "{ 1e-17 0 }")
  assert spiel_cfr.compile_game(pyspiel.load_efg_game(general)).constant_sum == 0


def test_small_payoffs_are_no_rounding():
  """OpenSpiel calls sums zero that are below 1e-6, whatever payoffs are."""
  rows = [[1e-9, 0.0], [0.0, 2e-9]]
  with pytest.raises(errors.InvalidPayoffError, match=r"sum to [24]e-09"):
    spiel_cfr.compile_game(pyspiel.create_matrix_game(rows, rows))
  game = game_from_arrays(
    [[0], [0]], [[2], [2]], [[1, 1, 2, 2], [1, 2, 1, 2]], np.full((4, 2), 1e-9)
  )
  assert game.constant_sum is None
