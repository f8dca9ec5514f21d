"""Regressions: faults found by a hostile review."""

import dataclasses

import numpy as np
import poker_games
import pytest

import spiel_cfr
from spiel_cfr import RegretMatching, RegretMinimizer, catalogue, errors
from spiel_cfr.cfr import AverageRule, average_kernel
from spiel_cfr.evaluation import evaluate
from spiel_cfr.regret_minimizers import Schedule
from spiel_cfr.regret_minimizers.regret_matching import regret_matching

_POKER = poker_games.UNIVERSAL_POKER[0]


def _parts(**options):
  return spiel_cfr.poker.compile_public_game(_POKER, partitioned=True, **options)


def test_weights_that_float32_cannot_hold_are_refused_before_they_are_added():
  solver = catalogue.make("hspcfr+", _parts(dtype="float32"), 100)
  solver.run(1)
  with pytest.raises(errors.NotFiniteError, match="average"):
    solver.run(100)
  assert np.isfinite(solver.state.cumulative).all()
  assert np.isfinite(solver.nash_conv())
  assert solver.iteration >= 1


@dataclasses.dataclass(frozen=True)
class _Late(Schedule):
  """Weighs the first iterations 0."""

  kind: type = np.float64

  def __call__(self, iterations):
    return np.where(iterations < 5, 0, 1).astype(self.kind)


@pytest.mark.quick("<lambda>-*", "_parts-float32")
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, bool])
@pytest.mark.parametrize("make", [lambda: spiel_cfr.compile_game(_POKER), _parts])
def test_averages_may_begin_late_with_weights_of_any_type(make, kind):
  game = make()
  solver = spiel_cfr.FullWidthSolver(
    game, RegretMatching(), averaging=spiel_cfr.Averaging(_Late(kind))
  )
  for _ in range(3):
    solver.run(3)
    assert solver.nash_conv() == pytest.approx(
      spiel_cfr.nash_conv(game, solver.average_policy()), abs=1e-9
    )


@dataclasses.dataclass(frozen=True)
class _Ending(Schedule):
  """A schedule that ends at iteration 20."""

  def __call__(self, iterations):
    return np.where(iterations <= 20, 0.5, np.nan)


@pytest.mark.parametrize("place", ["positive_discount", "negative_discount", "prediction"])
@pytest.mark.parametrize("restarted", [False, True])
def test_schedules_that_end_are_named_when_they_do(place, restarted):
  """NaN regrets are reported; clipping would hide them."""
  solver = spiel_cfr.FullWidthSolver("kuhn_poker", RegretMatching(**{place: _Ending()}))
  if restarted:
    solver = spiel_cfr.Restarted(solver, first_attempt=25)
  solver.run(20)
  before = solver.state_dict()
  with pytest.raises(errors.NotFiniteError, match="returns NaN"):
    solver.run(10)
  after = solver.state_dict()
  assert all(np.array_equal(after[name], value) for name, value in before.items())


def test_weights_of_another_shape_are_named():
  @dataclasses.dataclass(frozen=True)
  class Wrong(Schedule):
    def __call__(self, iterations):
      return np.ones(len(iterations) + 1)

  with pytest.raises(errors.ArgumentError, match="shape"):
    spiel_cfr.FullWidthSolver(
      "kuhn_poker", RegretMatching(), averaging=spiel_cfr.Averaging(Wrong())
    ).run(3)


def test_solvers_on_states_have_a_repr():
  assert "states" in repr(spiel_cfr.ExternalSamplingSolver("leduc_poker", engine="states"))


@pytest.mark.parametrize("make", [lambda: spiel_cfr.compile_game(_POKER), _parts])
def test_invalid_sequence_forms_are_named(make):
  game = make()
  for bad in (np.ones(game.end + 8), np.ones(3), np.zeros(game.end), np.full(game.end, np.nan)):
    with pytest.raises(errors.SpielCFRError):
      evaluate.evaluate(game, bad)


def test_a_checkpoint_of_another_form_names_the_likely_cause(tmp_path):
  spiel_cfr.CFRSolver(_parts(dtype="float32")).save(tmp_path / "solver.npz")
  with pytest.raises(errors.CheckpointMismatchError, match="another form"):
    spiel_cfr.CFRSolver(_parts()).restore(tmp_path / "solver.npz")


@pytest.mark.parametrize(
  "step", [lambda solver: solver.run(1), lambda solver: solver.evaluate_and_update_policy()]
)
def test_each_way_to_iterate_finds_numbers_that_are_not_finite(step):
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(1)
  solver.state.strategy[:] = np.nan
  with pytest.raises(errors.NotFiniteError):
    step(solver)


@pytest.mark.parametrize(
  "make",
  [
    lambda: spiel_cfr.Averaging(tapered="no"),
    lambda: spiel_cfr.RegretMatching(forgets_negative="no"),
    lambda: spiel_cfr.TabularCFRSolver("kuhn_poker", alternating_updates="no"),
  ],
)
def test_what_is_not_a_boolean_is_refused(make):
  with pytest.raises(errors.ArgumentError, match="must be True or False, not 'no'"):
    make()


@average_kernel
def _add(block):
  for i in range(block.sums.shape[0]):
    block.sums[i] += block.sequence_form[i]


@dataclasses.dataclass(frozen=True)
class _Rule(AverageRule):
  add = _add

  def parameters(self, iterations, game):
    return np.ones((len(iterations), 1))


def test_nan_in_a_minimizers_parameters_is_not_blamed_on_the_rule_of_the_average():
  averaging = spiel_cfr.Averaging(rule=_Rule())
  solver = spiel_cfr.FullWidthSolver(
    "kuhn_poker", RegretMatching(positive_discount=_Ending()), averaging=averaging
  )
  solver.run(20)
  with pytest.raises(errors.NotFiniteError, match="`parameters` of RegretMatching"):
    solver.run(1)


@dataclasses.dataclass(frozen=True)
class _Growing(RegretMinimizer):
  """A minimizer with more parameters after iteration 1."""

  observe = regret_matching

  def parameters(self, iterations, game):
    return np.full((len(iterations), iterations.max()), 1e-12)


def test_another_number_of_parameters_is_refused_before_an_iteration():
  solver = spiel_cfr.FullWidthSolver("kuhn_poker", _Growing())
  with pytest.raises(errors.ArgumentError, match="must return 1 numbers for each iteration"):
    solver.run(2)
  assert solver.iteration == 0
