"""A minimizer in a user's own file works like the library's."""

import dataclasses
import importlib
import pathlib

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import RegretMinimizer, errors
from spiel_cfr.games.sequence_form.tree_passes import forward_pass
from spiel_cfr.regret_minimizers import block_kernel, parameter_rows
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
    solver.prepare()
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


@block_kernel
def _reads_second_line(block):
  for i in range(block.size):
    block.value[i] = block.action_state[1, block.first + i]


@block_kernel
def _reads_infoset_state(block):
  for i in range(block.size):
    block.value[i] = block.infoset_state[0, block.infoset + i]


@block_kernel
def _reads_parameters(block):
  for i in range(block.size):
    block.value[i] = block.parameters[3]


@block_kernel
def _reads_beyond_actions(block):
  for i in range(block.size):
    block.value[i] = block.utility[block.first + block.actions * block.stride + i]


@pytest.mark.parametrize("name", ["observe", "predict", "resume"])
@pytest.mark.parametrize(
  ("kernel", "match"),
  [
    (_reads_second_line, "Own has action_lines = 1 "),
    (_reads_infoset_state, "infoset_lines = 0 "),
    (_reads_parameters, "1 `parameters`"),
    (_reads_beyond_actions, "_reads_beyond_actions reads or writes beyond an array"),
  ],
)
def test_kernels_that_read_beyond_their_arrays_are_refused(kernel, match, name):
  """Machine code without checks reads and writes other memory of the process."""

  @dataclasses.dataclass(frozen=True)
  class Own(RegretMinimizer):
    observe = regret_matching

  setattr(Own, name, kernel)
  solver = spiel_cfr.FullWidthSolver("kuhn_poker", Own())
  with pytest.raises(errors.ArgumentError, match=match):
    solver.init_from_strategy(solver.current_sequence_form()) if name == "resume" else solver.run(1)


@block_kernel
def _writes_no_value(block):
  for i in range(block.size):
    block.action_state[0, block.first + i] = block.utility[block.first + i]


@block_kernel
def _writes_no_distribution(block):
  for i in range(block.size):
    block.value[i] = 0.0
    block.strategy[block.first + i] = 2.0


@block_kernel
def _adds_utilities(block):
  for i in range(block.size):
    block.value[i] = 0.0
    block.strategy[block.first + i] += block.utility[block.first + i]


@pytest.mark.parametrize(
  ("kernel", "match"),
  [
    (_adds_utilities, "_adds_utilities must write probabilities that sum to 1"),
    (_writes_no_value, "_writes_no_value must write the value of each infoset"),
    (_writes_no_distribution, "_writes_no_distribution must write probabilities that sum to 1"),
  ],
)
def test_kernels_that_leave_out_a_result_are_refused(kernel, match):
  """Without it, the infosets above would learn from numbers of other infosets."""

  @dataclasses.dataclass(frozen=True)
  class Own(RegretMinimizer):
    observe = kernel

  with pytest.raises(errors.ArgumentError, match=match):
    spiel_cfr.FullWidthSolver("kuhn_poker", Own()).run(1)


@pytest.mark.parametrize("lines", [-1, 1.5, "x", None, 10**9])
@pytest.mark.parametrize("name", ["action_lines", "infoset_lines"])
def test_wrong_numbers_of_lines_are_named(name, lines):
  own = type("Own", (RegretMinimizer,), {"observe": regret_matching, name: lines})
  with pytest.raises(errors.ArgumentError, match=name):
    spiel_cfr.FullWidthSolver("kuhn_poker", own())


def test_kernels_with_enough_lines_are_not_refused():
  @dataclasses.dataclass(frozen=True)
  class Own(RegretMinimizer):
    observe = _reads_second_line
    action_lines = 2

  spiel_cfr.FullWidthSolver("kuhn_poker", Own()).run(1)


@block_kernel
def _divides_by_a_parameter(block):
  for i in range(block.size):
    block.value[i] = 0.0
    for action in range(block.actions):
      uniform = block.parameters[1] / (block.parameters[1] * block.actions)
      block.strategy[block.first + action * block.stride + i] = uniform


@pytest.mark.parametrize("method", ["prepare", "evaluate_and_update_policy"])
def test_kernels_are_tried_with_the_parameters_of_the_first_iteration(method):
  """With parameters of 0, this kernel would write no distribution."""

  @dataclasses.dataclass(frozen=True)
  class Own(RegretMinimizer):
    observe = _divides_by_a_parameter

    def parameters(self, iterations, game):
      return parameter_rows(iterations, game, 2.0)

  getattr(spiel_cfr.FullWidthSolver("kuhn_poker", Own()), method)()


@block_kernel
def _has_a_typo(block):
  block.value[0] = block.utilty[0]


def test_errors_of_the_compiler_name_the_fields_of_a_block():
  @dataclasses.dataclass(frozen=True)
  class Own(RegretMinimizer):
    observe = _has_a_typo

  with pytest.raises(errors.ArgumentError, match=r"'utilty' of type Block \(.*, line .* utility,"):
    spiel_cfr.FullWidthSolver("kuhn_poker", Own()).run(1)


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
