"""Tentative restarts: they pay, they are undone without a trace, and they work on every form of game."""

import copy
import itertools
import math
import os
import pickle
import signal

import numpy as np
import pyspiel
import pytest
import random_games
from composition.forms import FORMS
from rotation import rotated

import spiel_cfr
from spiel_cfr import Restarted, RestartedCFRSolver, catalogue, errors, policies
from spiel_cfr.cfr import restart_rule
from spiel_cfr.regret_minimizers.oftrl import OFTRL
from spiel_cfr.regret_minimizers.schedules import Fading

# One of each kind of minimizer, of each order of updates, and of each way to average.
BASES = (
  "cfr+",
  "dcfr",
  "pdcfr+",
  "apdcfr+",
  "hedge",
  "cfr_simultaneous",
  "adaptive",
  "stable_predictive_x10000",
  "stable_predictive_paper_euclidean",
)
# In the first trial, and some iterations later.
FIRST, INSIDE, END = 4, 9, 60


def wrapped(name, game, **arguments):
  return Restarted(catalogue.make(name, game, END), first_attempt=FIRST, **arguments)


def assert_equal(solver, other):
  state, expected = solver.state_dict(), other.state_dict()
  assert state.keys() == expected.keys()
  for name, value in state.items():
    assert np.array_equal(value, expected[name]), name
  assert solver.average_probabilities().tobytes() == other.average_probabilities().tobytes()


@pytest.fixture(scope="module")
def leduc():
  return spiel_cfr.compile_game("leduc_poker")


@pytest.fixture(scope="module")
def solved(leduc):
  solver = RestartedCFRSolver(leduc)
  # Rounding decides early ties, and with them when the first restart comes. On processors that fuse a product with a
  # sum 4,500 iterations are enough; on those that don't (NUMBA_CPU_NAME=x86-64, NUMBA_CPU_FEATURES=) it takes 8,000.
  solver.run(10_000)
  return solver


def test_leduc_poker_by_open_spiels_own_measure(solved):
  in_cpp = pyspiel.exploitability(pyspiel.load_game("leduc_poker"), solved.tabular_average_policy())
  assert in_cpp == pytest.approx(solved.exploitability(), abs=1e-14)
  assert in_cpp < 1e-9
  assert solved.num_restarts >= 3


@pytest.mark.parametrize("name", ["cfr+", "dcfr"])
def test_restarts_pay(name):
  """A game with immediate linear convergence is solved to rounding level."""
  game = spiel_cfr.compile_game("liars_dice(dice_sides=4)")
  bare = catalogue.make(name, game, 2_000)
  solver = Restarted(bare)
  solver.run(2_000)
  bare.run(2_000)
  assert solver.exploitability() < 1e-13
  assert solver.exploitability() < bare.exploitability() / 100


def test_checks_take_their_share_of_the_time_and_no_more(leduc, monkeypatch):
  evaluations = []
  keep = Restarted._keep_if_better

  def counted(self, *arguments):
    evaluations.append(self.iteration)
    return keep(self, *arguments)

  monkeypatch.setattr(Restarted, "_keep_if_better", counted)
  solver = RestartedCFRSolver(leduc)
  solver.run(10_000)
  checks = len(set(evaluations))
  cost = len(evaluations) * restart_rule.RULE.evaluation + checks * restart_rule.RULE.check
  assert solver.state.control.cost == pytest.approx(cost)
  assert 0.04 < cost / 10_000 < 0.07


def test_no_wall_clock(leduc, solved):
  again = RestartedCFRSolver(leduc)
  for count in (499, 1, 1, 37, 462, 9_000):
    again.run(count)
  assert_equal(again, solved)


@rotated("form,name", FORMS, BASES)
def test_every_form_inside_a_trial(form, name, tmp_path):
  if form.is_large and name != "dcfr":
    pytest.skip("large")
  game = form.compiled
  whole = wrapped(name, game)
  whole.run(END)
  assert whole.num_attempts >= 1
  solver = wrapped(name, game)
  for count in (FIRST - 1, 1, INSIDE - FIRST):
    solver.run(count)
  assert solver.state.control.trial == FIRST
  path = tmp_path / "solver.npz"
  solver.save(path)
  others = [
    copy.copy(solver),
    pickle.loads(pickle.dumps(solver)),
    spiel_cfr.Solver.load(path, game),
    wrapped(name, game),
  ]
  others[-1].restore(path)
  for other in others:
    assert_equal(other, solver)
  for other in (*others, solver):
    other.run(END - INSIDE)
    assert_equal(other, whole)
  expected = spiel_cfr.nash_conv(form.enumerated, whole.average_policy_dict())
  assert whole.nash_conv() == pytest.approx(expected, abs=form.tolerance * form.scale)


@pytest.mark.parametrize("name", ["dcfr", "hedge", "adaptive"])
def test_parts_equal_the_whole(name):
  forms = {form.name: form for form in FORMS}
  runs = [wrapped(name, forms[form].compiled) for form in ("vector form", "parts, 2 threads")]
  for solver in runs:
    solver.run(30)
  one, other = runs
  assert one.num_attempts == other.num_attempts
  assert one.nash_conv() == pytest.approx(other.nash_conv(), abs=1e-9)


def test_undone_restarts_leave_no_trace(leduc):
  """After an undone restart, a solver without schedules equals one that never tried."""
  game = leduc
  solver = Restarted(spiel_cfr.CFRPlusSolver(game), first_attempt=50)
  bare = spiel_cfr.CFRPlusSolver(game)
  solver.run(300)
  while solver.state.control.trial:
    solver.run(1)
  assert solver.num_attempts >= 3
  assert solver.num_restarts == 0
  bare.run(solver.iteration - solver.state.solver.average_start)
  assert solver.iteration > bare.iteration
  assert (solver.current_probabilities() == bare.current_probabilities()).all()
  assert (solver.state.solver.cumulative == bare.state.cumulative).all()


def test_trials_end_when_they_must(leduc):
  """Within a fifth of all iterations, or T^2 / 5000; what has not paid then is taken back at once."""
  solver = Restarted(spiel_cfr.CFRPlusSolver(leduc))
  longest = 0
  while solver.iteration < 4_000:
    solver.run(1)
    if solver.state.control.trial:
      taken = solver.iteration - solver.state.control.trial
      assert (
        taken
        < solver.state.control.trial_length
        <= max(16, solver.state.control.trial / 5, solver.state.control.trial**2 / 5000)
      )
      longest = max(longest, taken)
  assert longest > 16


def test_a_trial_that_hardly_falls_ends_and_the_next_one_is_far():
  control = restart_rule.RestartControl(next_check=1_000)
  assert control.decide(1_000, 1.0, math.inf) == restart_rule.RESTART
  assert control.trial_length == 200
  assert control.decide(1_025, 1.0, 1.3) == restart_rule.CONTINUE
  # At 200 it would be 1.02 if it went on like this, and 0.79.
  falls = copy.copy(control)
  assert control.decide(1_050, 1.0, 1.2) == restart_rule.ROLL_BACK
  assert falls.decide(1_050, 1.0, 1.1) == restart_rule.CONTINUE
  control.schedule(1_050, 1_050)
  assert control.next_check == 3 * 1_050 + 1
  control.check(1_050)
  # After a kept restart, trials are not extrapolated.
  falls.num_restarts = 1
  assert falls.decide(1_060, 1.0, 1.1) == restart_rule.CONTINUE


@pytest.mark.parametrize("check", range(4))
@pytest.mark.parametrize("place", ["_keep_if_better", "_check"])
def test_ctrl_c_in_the_middle_of_a_check(place, check, tmp_path, monkeypatch):
  """The check finishes before KeyboardInterrupt is raised; the saved state is valid and resumes."""
  game = random_games.random_game(5, max_histories=100)
  whole = wrapped("dcfr", game)
  whole.run(END)
  solver = wrapped("dcfr", game)
  calls = itertools.count()
  method = getattr(Restarted, place)

  def interrupted(self, *arguments):
    if next(calls) == check:
      os.kill(os.getpid(), signal.SIGINT)
    return method(self, *arguments)

  path = tmp_path / "solver.npz"
  with monkeypatch.context() as patch:
    patch.setattr(Restarted, place, interrupted)
    with pytest.raises(KeyboardInterrupt):
      solver.run(END)
  assert 0 < solver.iteration < END
  solver.save(path)
  for other in (spiel_cfr.Solver.load(path, solver.compiled_game), solver):
    other.run(END - other.iteration)
    assert_equal(other, whole)


def test_ctrl_c_inside_a_trial(tmp_path):
  """The run returns and leaves a checkpoint; resumed runs end with the same bytes."""
  game = random_games.random_game(5, max_histories=100)

  def run(folder, interrupts):
    solver = wrapped("dcfr", game)
    checkpoints = spiel_cfr.Checkpoints(tmp_path / folder, every=50)
    checkpoints.resume(solver)

    def evaluate_at(iteration):
      if (
        interrupts
        and iteration >= interrupts[0]
        and solver.state.control.trial not in (0, iteration)
      ):
        del interrupts[0]
        os.kill(os.getpid(), signal.SIGINT)
      return iteration + 1

    return solver, spiel_cfr.run(
      solver, 200, checkpoints=checkpoints, evaluate_at=evaluate_at, progress=False
    )

  run("whole", [])
  interrupts = [1, 9, 17]
  while interrupts:
    left = len(interrupts)
    solver, result = run("hunted", interrupts)
    assert result.reason == "interrupt"
    assert solver.state.control.trial
    assert len(interrupts) == left - 1
  assert run("hunted", [])[1].reason == "iterations"
  newest = "iteration-000000000200.npz"
  assert (tmp_path / "hunted" / newest).read_bytes() == (tmp_path / "whole" / newest).read_bytes()


def test_kept_strategies_never_get_worse(leduc):
  solver = RestartedCFRSolver(leduc)
  last = math.inf
  for _ in range(60):
    solver.run(50)
    kept = solver.state.scores.sum()
    assert kept <= last
    assert solver.nash_conv() <= kept
    last = kept
  sequence_form = solver.state.best
  assert spiel_cfr.evaluation.evaluate.evaluate(leduc, sequence_form).nash_conv == pytest.approx(
    kept
  )


class _NoWayBack(spiel_cfr.RegretMatching):
  resume = None


def test_unsupported_restarts_are_refused():
  with pytest.raises(errors.RestartError, match=r"_NoWayBack can't go on .* kernel `resume`"):
    Restarted(spiel_cfr.FullWidthSolver("kuhn_poker", _NoWayBack()))
  for other in ("kuhn_poker", spiel_cfr.ExternalSamplingSolver("kuhn_poker")):
    with pytest.raises(errors.ArgumentError, match="full-width"):
      Restarted(other)
  with pytest.raises(errors.ArgumentError, match="first_attempt"):
    Restarted(spiel_cfr.CFRSolver("kuhn_poker"), first_attempt=0)


def test_a_checkpoint_of_another_solver_is_refused(tmp_path):
  solver = wrapped("dcfr", "kuhn_poker")
  solver.run(5)
  solver.save(tmp_path / "solver.npz")
  other = wrapped("cfr+", "kuhn_poker")
  with pytest.raises(errors.CheckpointMismatchError, match="DCFRSolver"):
    other.restore(tmp_path / "solver.npz")
  state = solver.state_dict()
  before = other.state_dict()
  for broken in ({"solver.action_state": np.zeros(3)}, {"best": 1.0}, {"saved.average_start": "x"}):
    with pytest.raises(errors.CheckpointMismatchError):
      other.load_state_dict(state | broken)
  assert other.state_dict().keys() == before.keys()
  assert other.iteration == 0


def test_the_given_solver_is_left_alone():
  bare = spiel_cfr.CFRPlusSolver("kuhn_poker")
  bare.run(3)
  solver = Restarted(bare)
  assert solver.iteration == 0
  solver.run(7)
  assert bare.iteration == 3
  assert not bare.averaging.tapered


@pytest.mark.parametrize("name", ["cfr+", "hedge"])
def test_going_on_from_the_current_strategies_changes_nothing(name):
  """The state of these minimizers is a function of their strategy, up to irrelevant constants."""
  one, other = (catalogue.make(name, "leduc_poker", iterations=100) for _ in range(2))
  one.run(40)
  other.run(20)
  other.init_from_strategy(other.current_sequence_form())
  other.run(20)
  np.testing.assert_allclose(one.current_sequence_form(), other.current_sequence_form(), atol=1e-9)
  assert other.iteration == 40
  assert other.state.average_start == 20


def test_regret_matching_goes_on_from_a_strategy():
  """R = (sum of max(R, 0)) x where it is played, min(R, 0) elsewhere; at unreached infosets, x stays."""
  solver = spiel_cfr.CFRSolver("leduc_poker")
  game = solver.compiled_game
  solver.run(20)
  regret, strategy = solver.state.action_state[0].copy(), solver.current_probabilities()
  target = np.random.default_rng(1).random(game.end) * (np.arange(game.end) % 3 > 0)
  target = policies.sequence_form(game, policies.behavioral_form(game, target))
  # Player 0 never plays to what is below its first action at its first infoset.
  solver.init_from_strategy(target)
  found = solver.current_probabilities()
  unreached = 0
  for tree in game.treeplexes:
    for sequences, infosets in tree.infoset_groups():
      reach = target[tree.parent[infosets]]
      expected = np.where(
        reach > 0, target[sequences] / np.where(reach > 0, reach, 1), strategy[sequences]
      )
      unreached += (reach == 0).sum()
      np.testing.assert_allclose(found[sequences], expected, atol=1e-15)
      sums = np.maximum(regret[sequences], 0).sum(axis=0)
      wanted = np.where(expected > 0, sums * expected, np.minimum(regret[sequences], 0))
      np.testing.assert_allclose(solver.state.action_state[0][sequences], wanted, atol=1e-12)
  assert unreached
  np.testing.assert_allclose(
    solver.current_sequence_form(), policies.sequence_form(game, found), atol=1e-15
  )
  # Without an iteration since, the average is what is played.
  np.testing.assert_allclose(solver.average_sequence_form(), solver.current_sequence_form())


@pytest.mark.parametrize("regularizer", ["entropy", "euclidean"])
def test_regularized_leaders_would_choose_the_strategy_themselves(regularizer):
  game = spiel_cfr.compile_game("kuhn_poker")
  steps = np.linspace(0.1, 1.0, game.num_infosets)
  solver = spiel_cfr.FullWidthSolver(game, OFTRL(steps, regularizer))
  solver.run(7)
  target = policies.uniform(game)
  for tree in game.treeplexes:
    for sequences, _ in tree.infoset_groups():
      target[sequences] = np.array([0.3, 0.7])[:, None]
  solver.init_from_strategy(policies.sequence_form(game, target))
  regret = solver.state.action_state[0]
  for tree in game.treeplexes:
    for sequences, infosets in tree.infoset_groups():
      step = steps[tree.first_infoset :][infosets]
      low, high = step * regret[sequences]
      expected = np.log(0.7 / 0.3) if regularizer == "entropy" else 0.4
      np.testing.assert_allclose(high - low, expected)


@pytest.mark.parametrize(
  "game", ["leduc_poker", "vector form", "parts, 1 thread", "parts, float32"]
)
def test_tapered_averages_satisfy_their_definition(game):
  """The tapered sums are updated every four iterations, or every 1/32 of the iterations."""
  forms = {form.name: form for form in FORMS}
  compiled = spiel_cfr.compile_game(game) if game == "leduc_poker" else forms[game].compiled
  solver = spiel_cfr.FullWidthSolver(
    compiled, spiel_cfr.RegretMatching.plus(), averaging=spiel_cfr.Averaging(2.0, tapered=True)
  )
  plain = spiel_cfr.FullWidthSolver(
    compiled, spiel_cfr.RegretMatching.plus(), averaging=spiel_cfr.Averaging(2.0)
  )
  due, tapered = 0, np.zeros(compiled.end)
  single = game == "parts, float32"
  for t in range(1, 203):
    solver.run(1)
    plain.run(1)
    if t == due + max(4, due // 32):
      tapered += (t - due) * plain.state.cumulative.astype(np.float64)
      due = t
    if t in (1, 3, 4, 6, 100, 160, 200, 202):
      sums = tapered + (t - due) * plain.state.cumulative.astype(np.float64)
      expected = policies.sequence_form(compiled, policies.behavioral_form(compiled, sums))
      np.testing.assert_allclose(
        solver.average_sequence_form(), expected, atol=1e-5 if single else 1e-12
      )
      probabilities = policies.sequence_form(compiled, solver.average_probabilities())
      np.testing.assert_allclose(probabilities, expected, atol=1e-5 if single else 1e-12)
  assert (solver.current_probabilities() == plain.current_probabilities()).all()
  assert solver.nash_conv() != plain.nash_conv()


def test_fading():
  found = Fading(0.1, 100.0)(np.array([1, 100, 200, 1000]))
  np.testing.assert_allclose(found, [0.1, 0.1, 0.025, 0.001])
  with pytest.raises(errors.ArgumentError, match="first"):
    Fading(-1.0, 100.0)


@pytest.mark.parametrize(
  "forged",
  [
    {"control.num_restarts": 10},
    {"control.num_attempts": -1},
    {"control.checked": 10},
    {"control.cost": math.inf},
    {"control.cost": -1.0},
    {"control.next_check": 3},
    {"control.next_check": -(10**30)},
    {"control.next_check": 1 << 63},
    {"control.last_attempt": 2},
    {"control.trial": 0},
    {"control.trial": FIRST + 1, "control.last_attempt": FIRST + 1},
    {"control.trial_length": 0},
    {"control.trial_length": 1 << 63},
    {"control.seen": -1},
    {"control.seen": 8},
    {"control.seen_nash_conv": math.nan},
    {"trial_scores": np.array([-math.inf, 1.0])},
    {"control.trial_nash_conv": -math.inf},
    {"solver.average_start": FIRST + 1},
    {"saved.counts": np.array([FIRST - 1, 0], np.uint64)},
    {"scores": np.zeros(2)},
    {"scores": np.full(2, -math.inf)},
  ],
  ids=str,
)
def test_forged_numbers_are_refused(forged):
  """Each fits by its type; none is what a run in its first trial leads to."""
  solver = wrapped("dcfr", "kuhn_poker")
  solver.run(INSIDE)
  state = solver.state_dict()
  assert state["control.trial"] == FIRST
  other = wrapped("dcfr", "kuhn_poker")
  with pytest.raises(errors.CheckpointMismatchError):
    other.load_state_dict(state | forged)
  assert other.iteration == 0
  other.load_state_dict(state)
  assert_equal(other, solver)


def test_forged_certificates_are_refused():
  """Forged kept strategies are refused: zero sums, and strategies other than the certified ones."""
  solver = wrapped("dcfr", "kuhn_poker")
  solver.run(INSIDE)
  state = solver.state_dict()
  game = solver.compiled_game
  nowhere = np.zeros(game.end)
  nowhere[[tree.root for tree in game.treeplexes]] = 1.0
  uniform = policies.forms.sequence_form(game, policies.forms.uniform(game))
  for best in (nowhere, uniform, -uniform):
    with pytest.raises(errors.CheckpointMismatchError):
      solver.load_state_dict(state | {"best": best})
  for wrong in (-1.0, math.inf):
    forged = {"solver.tapered": state["solver.tapered"] + wrong}
    with pytest.raises(errors.CheckpointMismatchError, match=r"averages are sums|is finite"):
      solver.load_state_dict(state | forged)
