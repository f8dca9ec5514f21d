"""A minimizer in a user's own file works like the library's."""

import dataclasses
import importlib
import pathlib

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import RegretMinimizer, errors
from spiel_cfr.games.sequence_form.tree_passes import forward_pass
from spiel_cfr.regret_minimizers.regret_matching import regret_matching

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


@pytest.mark.parametrize("wrong", [forward_pass, None, 3, len])
def test_other_kernels_are_refused(wrong):
  """Compiled code would read the record of another kernel as a block."""

  @dataclasses.dataclass(frozen=True)
  class Wrong(RegretMinimizer):
    observe = wrong

  solver = spiel_cfr.FullWidthSolver("kuhn_poker", Wrong())
  with pytest.raises(errors.ArgumentError, match="not a block kernel"):
    solver.run(1)


def test_parameters_without_a_tie_tolerance_are_refused():
  @dataclasses.dataclass(frozen=True)
  class Empty(RegretMinimizer):
    observe = regret_matching

    def parameters(self, iterations, game):
      return np.zeros((len(iterations), 0))

  with pytest.raises(errors.ArgumentError, match="tie tolerance"):
    spiel_cfr.FullWidthSolver("kuhn_poker", Empty()).run(1)


def test_strategies_of_another_shape_are_refused():
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker")
  solver.run(2)
  for wrong in (np.ones(3), np.ones((2, solver.compiled_game.end)), 1.0):
    with pytest.raises(errors.PolicyError, match="has the shape"):
      solver.init_from_strategy(wrong)
