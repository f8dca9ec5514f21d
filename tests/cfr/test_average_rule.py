"""Rules for averages: the average of a user's kernel equals NumPy's, from the same iterates."""

import dataclasses

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import Averaging, FullWidthSolver, RegretMatching, errors
from spiel_cfr.cfr import AverageRule, average_kernel
from spiel_cfr.regret_minimizers.schedules import Power


@average_kernel
def move(average):
  sums, share = average.sums, average.weight[0]
  for i in range(sums.shape[0]):
    sums[i] += share * (average.sequence_form[i] - sums[i])


@dataclasses.dataclass(frozen=True)
class MovingAverage(AverageRule):
  add = move


@dataclasses.dataclass(frozen=True)
class Share(spiel_cfr.regret_minimizers.Schedule):
  def __call__(self, iterations):
    return np.maximum(2 / (iterations + 1.0), 0.1)


def solver_of(game, counted="before", **arguments):
  averaging = Averaging(Share(), counted, rule=MovingAverage())
  return FullWidthSolver(game, RegretMatching.plus(), averaging=averaging, **arguments)


@pytest.mark.parametrize("counted", ["before", "after", "faced"])
@pytest.mark.parametrize("alternating", [False, True])
@pytest.mark.parametrize("name", ["kuhn_poker(players=3)", "liars_dice(dice_sides=2)"])
def test_averages_follow_the_rule(name, counted, alternating):
  game = spiel_cfr.compile_game(name)
  solver = solver_of(game, counted, alternating_updates=alternating)
  average = np.zeros(game.end)
  for share in Share()(np.arange(1, 31)):
    before = solver.current_sequence_form()
    solver.run(1)
    strategy = before.copy()
    for player, tree in enumerate(game.treeplexes):
      is_faced_after = alternating and player < game.num_players - 1
      if counted == "after" or (counted == "faced" and is_faced_after):
        own = slice(tree.root, tree.end)
        strategy[own] = solver.current_sequence_form()[own]
    average += share * (strategy - average)
    np.testing.assert_allclose(solver.average_sequence_form(), average, atol=1e-12)


def test_solvers_with_a_rule_resume_lock_and_start_warm(tmp_path):
  solver, other = solver_of("kuhn_poker"), solver_of("kuhn_poker")
  for each in (solver, other):
    each.lock({"0": {0: 0.25, 1: 0.75}})
    each.run(20)
  solver.save(tmp_path / "solver.npz")
  loaded = spiel_cfr.Solver.load(tmp_path / "solver.npz", "kuhn_poker")
  for each in (loaded, other):
    each.run(20)
  assert loaded.sums().tobytes() == other.sums().tobytes()
  assert loaded.average_policy_dict()["0"][0] == pytest.approx(0.25)
  warm = solver_of("kuhn_poker")
  warm.warm_start(spiel_cfr.solve_lp("kuhn_poker").policy, 100)
  warm.run(1)
  assert warm.nash_conv() < 0.2


def test_it_works_in_float32():
  game = spiel_cfr.games.compile_vector_game("liars_dice(dice_sides=2)", dtype=np.float32)
  single, double = solver_of(game), solver_of("liars_dice(dice_sides=2)")
  for each in (single, double):
    each.run(50)
  assert single.nash_conv() == pytest.approx(double.nash_conv(), abs=1e-3)


@average_kernel
def add_or_restart(average):
  sums, keeps = average.sums, 1.0 - average.parameters[0]
  for i in range(sums.shape[0]):
    sums[i] = keeps * sums[i] + average.weight[0] * average.sequence_form[i]


@dataclasses.dataclass(frozen=True)
class RestartedAverage(AverageRule):
  add = add_or_restart

  def parameters(self, iterations, game):
    return (iterations % 7 == 0)[:, None].astype(np.float64)


@pytest.mark.parametrize("minimizer", [RegretMatching.plus(), RegretMatching.discounted()])
def test_kernels_of_rules_read_parameters(minimizer):
  """The minimizers have different numbers of parameters, which come first."""
  averaging = Averaging(1.0, rule=RestartedAverage())
  solver, resumed = (FullWidthSolver("kuhn_poker", minimizer, averaging=averaging) for _ in "12")
  average = np.zeros(solver.compiled_game.end)
  for t in range(1, 25):
    average = (0 if t % 7 == 0 else average) + t * solver.current_sequence_form()
    solver.run(1)
  np.testing.assert_allclose(solver.sums(), average, atol=1e-12)
  resumed.run(24)
  assert resumed.sums().tobytes() == solver.sums().tobytes()


@dataclasses.dataclass(frozen=True)
class WrongParameters(AverageRule):
  add = add_or_restart
  value: float | None = None

  def parameters(self, iterations, game):
    return np.zeros(3) if self.value is None else np.full((len(iterations), 1), self.value)


@average_kernel
def add_to_the_first(average):
  for i in range(average.sums.shape[0]):
    average.sums[i] += average.weight[0] * average.sequence_form[i]
  average.sums[0] += 1.0


@average_kernel
def leave_out_the_first(average):
  for i in range(1, average.sums.shape[0]):
    average.sums[i] += average.weight[0] * average.sequence_form[i]


@pytest.mark.parametrize("kernel", [add_to_the_first, leave_out_the_first])
def test_rules_that_treat_sequences_differently_are_refused(kernel):
  """The first had exploitability 0, the second reported the current policy as the average."""

  @dataclasses.dataclass(frozen=True)
  class Uneven(AverageRule):
    add = kernel

  with pytest.raises(errors.ArgumentError, match="Uneven does not treat all sequences alike"):
    FullWidthSolver(
      "kuhn_poker", RegretMatching.plus(), averaging=Averaging(1.0, rule=Uneven())
    ).run(1)


def test_invalid_parameters_of_rules_are_named():
  for value, error in ((None, errors.ArgumentError), (np.nan, errors.NotFiniteError)):
    averaging = Averaging(rule=WrongParameters(value))
    with pytest.raises(error, match="WrongParameters"):
      FullWidthSolver("kuhn_poker", RegretMatching.plus(), averaging=averaging).run(1)


@average_kernel
def add_twice(average):
  sums, sums_of_strategies = average.sums, average.memory[1]
  for i in range(sums.shape[0]):
    average.memory[0, i] = average.sequence_form[i]
    sums_of_strategies[i] += average.weight[0] * average.sequence_form[i]
    sums[i] += sums_of_strategies[i]


@dataclasses.dataclass(frozen=True)
class TaperedAverage(AverageRule):
  """Iteration t of T has weight (T + 1 - t) w_t; line 0 of the memory is the last strategy."""

  add = add_twice
  memory_lines = 2


def _choices(solver):
  """Returns, for each player, a mask of its sequences at infosets with more than one action."""
  for tree in solver.compiled_game.treeplexes:
    mask = np.zeros(tree.end - tree.root, bool)
    for sequences, _ in tree.infoset_groups():
      mask[sequences - tree.root] = len(sequences) > 1
    yield mask


@pytest.mark.parametrize("name", ["kuhn_poker(players=3)", "vector form, float32"])
def test_rules_have_memory(name, tmp_path):
  game = name
  if name == "vector form, float32":
    game = spiel_cfr.games.compile_vector_game("liars_dice(dice_sides=2)", dtype=np.float32)
  averaging = Averaging(1.0, rule=TaperedAverage())
  solver, resumed, loaded = (
    FullWidthSolver(game, RegretMatching.plus(), averaging=averaging) for _ in range(3)
  )
  average, sums = np.zeros((2, solver.compiled_game.end))
  for t in range(1, 25):
    played = solver.current_sequence_form()
    sums += t * played
    average += sums
    solver.run(1)
  np.testing.assert_allclose(solver.sums(), average, rtol=1e-5 if game is not name else 1e-12)
  for tree, choices in zip(solver.compiled_game.treeplexes, _choices(solver), strict=True):
    first_line = solver.state.memory[2 * tree.root : 2 * tree.root + tree.end - tree.root]
    np.testing.assert_array_equal(first_line[choices], played[tree.root : tree.end][choices])
  resumed.run(10)
  resumed.save(tmp_path / "solver.npz")
  loaded.restore(tmp_path / "solver.npz")
  loaded.run(14)
  assert loaded.sums().tobytes() == solver.sums().tobytes()
  loaded.init_from_strategy(played)
  assert not loaded.state.memory.any()


class NoMemory(AverageRule):
  add = add_twice
  memory_lines = 1


class NoParameters(AverageRule):
  add = add_or_restart


@average_kernel
def subtract(average):
  for i in range(average.sums.shape[0]):
    average.sums[i] -= average.sequence_form[i]


class NegativeSums(AverageRule):
  add = subtract


@pytest.mark.parametrize(
  ("rule", "match"),
  [
    (NoParameters(), "`parameters` returns 0 numbers"),
    (NoMemory(), "NoMemory has memory_lines = 1"),
    (NegativeSums(), "NegativeSums has made the first element of `sums` -"),
  ],
)
def test_kernels_that_read_too_much_or_make_negative_sums_are_named(rule, match):
  solver = FullWidthSolver("kuhn_poker", RegretMatching.plus(), averaging=Averaging(rule=rule))
  with pytest.raises(errors.ArgumentError, match=match):
    solver.run(1)


class NoRule(AverageRule):
  add = spiel_cfr.regret_minimizers.block_kernel(lambda block: None)


@pytest.mark.parametrize(
  ("averaging", "match"),
  [
    (lambda: Averaging(rule="move"), "average_kernel"),
    (lambda: Averaging(rule=NoRule()), "average_kernel"),
    (lambda: Averaging(tapered=True, rule=MovingAverage()), "tapered"),
  ],
)
def test_invalid_rules_are_refused(averaging, match):
  with pytest.raises(errors.ArgumentError, match=match):
    averaging()


def test_solvers_without_rules_say_so():
  parts = spiel_cfr.games.compile_vector_game("liars_dice(dice_sides=2)", partitioned=True)
  with pytest.raises(errors.UnsupportedGameError, match="parts"):
    solver_of(parts)
  with pytest.raises(errors.ArgumentError, match="Restarts"):
    spiel_cfr.Restarted(solver_of("kuhn_poker"))
  plain = Averaging(Power(1.0), rule=MovingAverage())
  solver = FullWidthSolver("leduc_poker", RegretMatching.plus(), averaging=plain)
  with pytest.raises(errors.PruningError):
    spiel_cfr.Pruned(solver)
