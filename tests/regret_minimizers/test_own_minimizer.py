"""A minimizer written in a user's own file is as good as the library's."""

import importlib
import pathlib

import pytest

import spiel_cfr

_EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def own_regret_matching():
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(_EXAMPLES)
    return importlib.import_module("own_minimizer").Matching()


@pytest.mark.parametrize("alternating", [False, True])
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "kuhn_poker(players=3)"])
def test_it_plays_like_the_librarys_regret_matching(own_regret_matching, game, alternating):
  game = spiel_cfr.compile_game(game)
  own = spiel_cfr.FullWidthSolver(game, own_regret_matching, alternating_updates=alternating)
  library = spiel_cfr.TabularCFRSolver(game, alternating_updates=alternating)
  for solver in (own, library):
    solver.run(20)
  played = game.all_action_sequences  # All but padding.
  expected = library.current_probabilities()[played]
  assert own.current_probabilities()[played] == pytest.approx(expected, abs=1e-10)
  assert own.nash_conv() == pytest.approx(library.nash_conv(), abs=1e-10)
