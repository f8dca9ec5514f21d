"""`solve`: its choice of solver and its certificate."""

import dataclasses
import math
import re

import numpy as np
import pyspiel
import pytest
from composition.forms import FORMS

import spiel_cfr
from spiel_cfr import errors, solving
from spiel_cfr.evaluation import evaluate


def test_leduc_poker():
  solution = spiel_cfr.solve("leduc_poker", exploitability=1e-9)
  assert solution.reason == "target"
  assert 0 <= solution.exploitability <= 1e-9
  assert solution.solver.recipe.name == "RestartedCFRSolver"
  in_cpp = pyspiel.TabularPolicy(
    {infostate: list(entries.items()) for infostate, entries in solution.policy_dict().items()}
  )
  game = pyspiel.load_game("leduc_poker")
  assert pyspiel.exploitability(game, in_cpp) == pytest.approx(solution.exploitability, abs=1e-13)
  low, high = solution.value_bounds
  assert solution.value == (low + high) / 2
  assert high - low == pytest.approx(solution.nash_conv, abs=1e-15)
  assert low <= solution.expected_values[0] <= high
  # Published: the first player loses 0.0856 antes a game.
  assert low == pytest.approx(-0.085606424, abs=1e-8)
  # 4,309 where the processor fuses a product with a sum, 6,570 where it doesn't: rounding decides early ties.
  assert solution.iterations == solution.solver.iteration < 10_000
  assert 0 < solution.seconds < 30


def test_repr_of_a_solution():
  solution = spiel_cfr.solve("kuhn_poker", exploitability=1e-8)
  line = repr(solution)
  assert "\n" not in line
  assert line.startswith("<Solution of kuhn_poker(): exploitability ")
  assert f"after {solution.iterations:,} iterations of RestartedCFRSolver" in line
  text = str(solution)
  for part in ("kuhn_poker", "constant-sum", "the target is reached", "-0.0555555"):
    assert part in text
  with pytest.raises(dataclasses.FrozenInstanceError):
    solution.reason = "seconds"
  assert spiel_cfr.exploitability("kuhn_poker", solution.policy) == pytest.approx(
    solution.exploitability, abs=1e-14
  )


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form(form):
  if form.is_large or form.compiled.dtype == np.float32:
    pytest.skip("large, or so rounded that the target takes seconds")
  solution = spiel_cfr.solve(form.compiled, exploitability=1e-5, iterations=3_000)
  # No policy of an abstraction that loses something is as good as that in the full game.
  assert solution.reason == ("iterations" if form.loses else "target")
  assert (solution.nash_conv > 2e-5) == form.loses
  expected = spiel_cfr.nash_conv(form.enumerated, solution.policy_dict())
  assert solution.nash_conv == pytest.approx(expected, abs=form.tolerance * form.scale)
  if not form.enumerated.is_two_player_constant_sum:
    assert "no solver guarantees a Nash equilibrium" in str(solution)
    assert "NashConv" in repr(solution)
    for name in ("exploitability", "value", "value_bounds"):
      with pytest.raises(errors.UnsupportedGameError):
        getattr(solution, name)


def test_other_reasons_to_stop():
  solution = spiel_cfr.solve("leduc_poker", exploitability=0.0, iterations=700)
  assert (solution.reason, solution.iterations) == ("iterations", 700)
  # One that does not come to rounding level in that time.
  slow = spiel_cfr.CFRSolver("leduc_poker")
  solution = spiel_cfr.solve("leduc_poker", solver=slow, exploitability=0.0, seconds=0.5)
  assert solution.reason == "seconds"
  assert 0.4 < solution.seconds < 5
  again = spiel_cfr.solve("leduc_poker", solver=solution.solver, iterations=solution.iterations + 9)
  assert again.iterations == solution.iterations + 9 or again.reason == "target"
  assert again.why == "as requested"


def test_solvers_by_name():
  solution = spiel_cfr.solve("kuhn_poker", exploitability=1e-3, solver="cfr+")
  assert solution.solver.recipe.name == "CFRPlusSolver"
  assert solution.exploitability <= 1e-3
  with pytest.raises(errors.ArgumentError, match="Did you mean 'cfr'"):
    spiel_cfr.solve("kuhn_poker", solver="cfrr")
  with pytest.raises(errors.ArgumentError, match="not a solver of kuhn_poker"):
    spiel_cfr.solve("kuhn_poker", solver=spiel_cfr.CFRSolver("leduc_poker"))


@pytest.mark.slow
def test_another_solver_begins_where_the_first_stalls(capsys):
  """On this game restarts stall after 10,000 iterations; without the rule, 7e-5 remains for long."""
  solution = spiel_cfr.solve("universal_poker", exploitability=1e-9, iterations=20_000, seconds=600)
  assert re.search(r"RestartedCFRSolver stalls after 1\d,\d{3} iterations", str(solution))
  assert "'adaptive' begins" in capsys.readouterr().err
  assert solution.solver.recipe.name == "AdaptiveOptimisticCFRSolver"
  assert solution.iterations == 20_000 == solution.rows[-1].iteration
  # No worse than either.
  stalled = [row for row in solution.rows if row.iteration <= 20_000 - solution.solver.iteration]
  assert solution.exploitability <= stalled[-1].exploitability
  assert solution.exploitability <= solution.rows[-1].exploitability
  exact = spiel_cfr.nash_conv(solution.compiled_game, solution.policy)
  assert solution.nash_conv == pytest.approx(exact, abs=1e-9)


def test_stalls_are_noticed():
  def row(iteration, nash_conv):
    return spiel_cfr.runs.Row(iteration, 0.0, 0.0, 0, nash_conv, nash_conv / 2)

  rows = [row(1_000 * i, 1.0 / min(i, 10)) for i in range(1, 21)]
  # Until the 18th, NashConv has fallen by a fifth since half of the iterations.
  stalls = [solving._stalls(rows[:count], 1.0) for count in range(1, 21)]
  assert stalls.index(True) == 17
  assert all(stalls[17:])
  assert not solving._stalls(rows, 1e12)


def test_each_players_better_strategy():
  one, two = spiel_cfr.CFRSolver("kuhn_poker"), spiel_cfr.CFRPlusSolver("kuhn_poker")
  game = one.compiled_game
  one.run(3)
  two.run(300)
  uniform = spiel_cfr.policies.sequence_form(game, spiel_cfr.policies.uniform(game))
  mixed = two.average_sequence_form().copy()
  tree = game.treeplexes[0]
  mixed[tree.root : tree.end] = uniform[tree.root : tree.end]
  better = solving._better_strategies(game, mixed, one.average_sequence_form())
  losses = evaluate.losses(game, evaluate.evaluate(game, better))
  for each in (mixed, one.average_sequence_form()):
    assert (losses <= evaluate.losses(game, evaluate.evaluate(game, each))).all()


def test_a_target_relative_to_payoffs():
  solution = spiel_cfr.solve("leduc_poker", exploitability=1e-3, relative=True, solver="cfr+")
  assert solution.reason == "target"
  # Payoffs are from -13 to 13.
  assert 1e-3 < solution.exploitability <= 26e-3


@pytest.mark.parametrize(
  "arguments", [{"exploitability": -1.0}, {"seconds": math.nan}, {"iterations": 0}]
)
def test_numbers_that_make_no_sense(arguments):
  with pytest.raises(errors.ArgumentError, match=next(iter(arguments))):
    spiel_cfr.solve("kuhn_poker", **arguments)


def test_values_have_the_digits_that_are_certain():
  for target in (1.0, 0.3, 1e-2, 1e-4):
    solution = spiel_cfr.solve("leduc_poker", exploitability=target)
    printed, off = re.search(
      r"value +(\S+) for player 0, at most (\S+) off", str(solution)
    ).groups()
    decimals = len(printed.partition(".")[2])
    assert 10.0**-decimals <= 10 * float(off)
    assert float(off) <= 10.0 ** (1 - decimals)


def test_restarts_are_reported():
  solution = spiel_cfr.solve("kuhn_poker(players=3)", iterations=10)
  assert "Restarted(AdaptiveOptimisticCFRSolver)" in repr(solution)
  assert "Restarted(AdaptiveOptimisticCFRSolver)" in str(solution)


def test_the_kind_of_equilibrium_is_named():
  solution = spiel_cfr.solve("kuhn_poker(players=3)", solver="efr", iterations=200)
  solver = spiel_cfr.catalogue.make("efr", "kuhn_poker(players=3)", 1)
  solver.run(200)
  gap = solver.gap().gap
  assert solution.correlated_gap.gap == gap
  assert solution.equilibrium == "extensive-form correlated equilibrium"
  assert f"extensive-form correlated equilibrium to {gap:.2e}" in str(solution)
  assert "NashConv" not in str(solution)
  # Of the play, not of the product of averages.
  assert f"payoffs    {solution.correlated_gap.expected_values[0]:.6g}, " in str(solution)
  solution = spiel_cfr.solve("kuhn_poker(players=3)", iterations=10)
  assert solution.equilibrium == "Nash equilibrium"
  assert f"measured   NashConv {solution.nash_conv:.2e}" in str(solution)
  solver = spiel_cfr.EFRSolver("kuhn_poker(players=3)", "behavioral")
  solution = spiel_cfr.solve(solver.compiled_game, solver=solver, seconds=0.0)
  # Nothing has been played yet, and there is a policy all the same.
  assert solution.equilibrium == "Nash equilibrium"
  solution = spiel_cfr.solve(solver.compiled_game, solver=solver, iterations=3)
  assert solution.equilibrium == "behavioral correlated equilibrium"
  assert spiel_cfr.solve("kuhn_poker", solver="efr", iterations=3).correlated_gap is None


def test_a_game_may_be_as_large_as_is_said():
  with pytest.raises(errors.GameTooLargeError, match="max_nodes"):
    spiel_cfr.solve("leduc_poker", max_nodes=100)


def test_traces_and_checkpoints(tmp_path):
  path = tmp_path / "trace.csv"
  checkpoints = spiel_cfr.Checkpoints(tmp_path / "folder", every=100)
  solution = spiel_cfr.solve(
    "kuhn_poker",
    exploitability=1e-6,
    traces=[spiel_cfr.runs.TraceFile(path)],
    checkpoints=checkpoints,
  )
  _, rows = spiel_cfr.runs.read_trace(path)
  assert rows[-1].nash_conv <= 2e-6
  solver = spiel_cfr.RestartedCFRSolver("kuhn_poker")
  checkpoints.resume(solver)
  assert solver.iteration == solution.iterations
