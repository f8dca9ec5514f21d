"""Games in which no player decides: they have a value and an empty policy, and nothing to search."""

import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import correlated, errors, search

CHANCE_ONLY = """EFG 2 R "only chance" { "one" "other" } ""
c "" 1 "" { "heads" 0.25 "tails" 0.75 } 0
t "" 1 "" { 1.0 -1.0 }
t "" 2 "" { -1.0 1.0 }
"""
FORCED = """EFG 2 R "forced" { "one" "other" } ""
c "" 1 "" { "heads" 0.25 "tails" 0.75 } 0
p "" 1 1 "mine" { "go" } 0
p "" 2 1 "yours" { "go" } 0
t "" 1 "" { 1.0 -1.0 }
p "" 1 1 "mine" { "go" } 0
p "" 2 1 "yours" { "go" } 0
t "" 2 "" { -1.0 1.0 }
"""


@pytest.fixture(params=[CHANCE_ONLY, FORCED], ids=["chance", "forced"])
def game(request):
  return pyspiel.load_efg_game(request.param)


def test_they_have_a_value_and_a_policy(game, tmp_path):
  compiled = spiel_cfr.compile_game(game)
  solver = spiel_cfr.CFRSolver(compiled)
  solver.run(3)
  assert spiel_cfr.solve_lp(compiled).value == pytest.approx(-0.5)
  assert solver.nash_conv() == 0.0
  assert spiel_cfr.solve_qre(compiled, 3.0).residual == pytest.approx(0.0)
  mixture = correlated.MixturePolicy(compiled, [solver])
  assert mixture.gap().gap == 0.0
  for policy in (solver, mixture):
    assert spiel_cfr.explore(policy, tmp_path / "page.html")


def test_search_says_that_there_is_nothing_to_search():
  game = pyspiel.load_efg_game(CHANCE_ONLY)
  solver = spiel_cfr.CFRSolver(game)
  for call in (
    lambda: search.public_states(game),
    lambda: search.resolve(game, solver),
    lambda: search.SolvedValues(game),
  ):
    with pytest.raises(errors.UnsupportedGameError, match="players decide"):
      call()


def test_forced_moves_are_resolved():
  game = pyspiel.load_efg_game(FORCED)
  found = search.resolve(game, spiel_cfr.CFRSolver(game))
  assert found.exploitability == 0.0
