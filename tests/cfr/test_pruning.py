"""Pruning: restored parts have played best responses, averages stay exact, states resume inside a window."""

import copy
import pickle
import signal

import numpy as np
import pyspiel
import pytest
import random_games
from composition.forms import FORMS
from pruning_games import GAMES, KINDS, game_of, gap_of_regrets, names, pruned, unpruned
from slow_pruning import SlowWindow

import spiel_cfr
from spiel_cfr import CFRPlusSolver, FullWidthSolver, Pruned, RegretMatching, errors
from spiel_cfr.cfr.pruning import pruned as pruned_module
from spiel_cfr.cfr.pruning import pruning_rule
from spiel_cfr.cfr.pruning.compaction import PrunableGame
from spiel_cfr.cfr.pruning.window import PruningWindow
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.games.compiled.counterfactual_values import (
  backward_pass,
  expect,
  gradients,
)
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.sequence_form.treeplex import ACTIONS
from spiel_cfr.regret_minimizers.hedge import Hedge
from spiel_cfr.regret_minimizers.schedules import Fading
from spiel_cfr.regret_minimizers.value_sums import WithValueSums

# On Kuhn poker nothing is ever pruned.
EVERY = [name for name in GAMES if name != "kuhn"]
NAMES = names(EVERY, always=("liar's dice", "random 2", "random 5"))


@pytest.fixture(autouse=True)
def _whether_it_pays_or_not(request):
  with pytest.MonkeyPatch.context() as patch:
    if "how_good" not in request.node.name:
      patch.setattr(pruned_module, "_WORTHWHILE", 1.0)
    yield


@pytest.fixture
def daring(monkeypatch):
  """Makes solvers prune too much."""
  monkeypatch.setattr(pruning_rule, "_CAUTION", 0.0)


def parts(solver):
  """Returns a solver's strategies, sums of averages, regrets and Z."""
  inner = solver.state.solver
  return inner.strategy, inner.cumulative, inner.action_state[0], inner.infoset_state[-1]


def brought_back(solver):
  """A copy in which nothing is frozen any more, and which of what was came too late, shape (sequences,)."""
  result = copy.copy(solver)
  late = result._restore_skipped(result.state.solver)
  result.state.frozen[:] = False
  result.refresh()
  return result, late


def to_the_end_of_a_window(solver):
  """Runs an iteration, and then up to the end of its window."""
  solver.run(1)
  solver.run(max(1, solver.state.window_end - solver.iteration))


def noted_values(game, values):
  """Z of all infosets, with values carried up through forced moves, which solvers do not record."""

  def carried(worth):
    for tree in game.treeplexes:
      for sequences, infosets in reversed(list(tree.infoset_groups())):
        own = values[tree.first_infoset :][infosets]
        own = worth[sequences[0]] if len(sequences) == 1 else own
        np.add.at(worth, tree.parent[infosets], own)
    return worth

  return carried


def assert_same_state(solver, other):
  """Asserts that the states of two solvers are equal, bit for bit."""
  for (name, value), expected in zip(
    solver.state_dict().items(), other.state_dict().values(), strict=True
  ):
    np.testing.assert_array_equal(value, expected, name)


def rows_at(game, wanted):
  """Returns the sequences at the given infosets, as a mask."""
  result = np.zeros(game.end, bool)
  for tree in game.treeplexes:
    for sequences, infosets in tree.infoset_groups():
      result[sequences] = wanted[tree.first_infoset :][infosets]
  return result


def below(game, wanted):
  """Returns the sequences below the given ones, as a mask."""
  result = np.zeros(game.end, bool)
  for tree in game.treeplexes:
    for sequences, infosets in tree.infoset_groups():
      parent = tree.parent[infosets]
      result[sequences] = (wanted | result)[parent]
  return result


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["cfr", "cfr+", "hedge"])
@pytest.mark.parametrize("alternating", [False, True])
def test_recording_changes_no_bit(name, kind, alternating, monkeypatch):
  monkeypatch.setattr(pruned_module, "_WORTHWHILE", 0.0)
  game = game_of(name)
  plain = unpruned(game, kind, alternating)
  noted, never = (
    FullWidthSolver(
      game,
      WithValueSums(plain.minimizer, plain.averaging.weights),
      alternating_updates=alternating,
      averaging=plain.averaging,
    ),
    pruned(game, kind, alternating),
  )
  rows = rows_at(game, deciding(game))
  for _ in range(20):
    for solver in (plain, noted, never):
      solver.run(10)
    assert (never.num_pruned, never.active_share) == (0, 1.0)
    for each in (noted, never._runtime.solver):
      for array in ("strategy", "cumulative", "action_state"):
        found, expected = (getattr(of.state, array)[..., rows] for of in (each, plain))
        if kind == "hedge":
          # Which visits forced moves too, and so adds up in another order.
          np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        else:
          assert found.tobytes() == expected.tobytes()


def deciding(game):
  """Returns the infosets with several actions, a mask of shape (infosets,)."""
  result = np.zeros(game.num_infosets, bool)
  for _, _, count, _, infoset, _ in game.decisions.groups.astype(int).tolist():
    result[infoset : infoset + count] = True
  return result


@pytest.mark.quick("cfr-random 5", "cfr+-liar's dice", "cfr+-random 5")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["cfr", "cfr+"])
def test_windows_are_those_of_the_whole_game(name, kind, daring):
  """Iterations of the compacted game equal those of the full game without frozen actions; so do restored parts."""
  game, ever, windows = game_of(name), kind == "cfr+", 0
  solver = pruned(game, kind)
  choosing, plus = deciding(game), kind == "cfr+"
  rows = rows_at(game, choosing)
  for _ in range(15):
    solver.run(max(1, solver.state.window_end - solver.iteration))
    solver.run(1)
    if not solver.num_pruned:
      continue
    opened = solver.state.opened
    slow, before = (SlowWindow(game, opened, plus) for _ in range(2))
    frozen, visited = solver.state.frozen.copy(), solver._window().compacted.remains
    slow.run(solver.iteration - before.iteration, frozen, visited)
    # CFR+ may double the rounding errors of its regrets in each iteration: 60 of them make 1e-6 of 1e-15.
    while (left := solver.state.window_end - solver.iteration) > 0:
      count = min(left, 10)
      solver.run(count)
      slow.run(count, frozen, visited)
      slow.agree(solver.state.solver, frozen, visited)
    again, late = brought_back(solver)
    doomed = late.any() and not plus
    average = spiel_cfr.policies.behavioral_form(game, (before if doomed else slow).faced)
    np.testing.assert_allclose(solver.average_probabilities(), average, atol=1e-9)
    slow.bring_back(before, frozen, ever)
    strategy, sums, regrets, values = parts(again)
    total = sums[0]
    np.testing.assert_allclose(sums, slow.faced, atol=1e-9 * total)
    np.testing.assert_allclose(regrets[rows], slow.regrets[rows], atol=1e-9 * total)
    found = values[: game.num_infosets][choosing]
    np.testing.assert_allclose(found, slow.values[choosing], atol=1e-9 * total)
    reached = spiel_cfr.policies.sequence_form(game, strategy) > 0
    np.testing.assert_allclose(strategy[rows & reached], slow.strategy[rows & reached], atol=1e-9)
    windows += 1
  assert windows


@pytest.mark.quick("0.0-*-liar's dice", "1.0-*-random 5")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("caution", [0.0, 1.0])
def test_restored_parts_have_played_a_best_response(name, kind, caution, monkeypatch):
  """The identity stays exact: rewriting costs nothing, and regrets are at least those of Z."""
  monkeypatch.setattr(pruning_rule, "_CAUTION", caution)
  game, most, ever = game_of(name), 0, kind == "cfr+"
  solver = pruned(game, kind, alternating=False)
  for _ in range(12):
    to_the_end_of_a_window(solver)
    if not solver.num_pruned:
      continue
    most = max(most, solver.num_pruned)
    again, late = brought_back(solver)
    # Rewriting below changes no policy.
    if kind == "cfr+" or not late.any():
      average = again.average_sequence_form()
      np.testing.assert_allclose(average, solver.average_sequence_form(), atol=1e-12)
    _, sums, regrets, values = parts(again)
    worth, best = (gradients(game, sums) for _ in range(2))
    backward_pass(game, take_best, best)
    total = sums[0]
    carried = noted_values(game, values)(worth)
    price = float(carried[[tree.root for tree in game.treeplexes]].sum())
    price -= total * (game.constant_sum or 0.0)
    assert price == pytest.approx(0, abs=1e-9 * total)
    weighed = (solver.iteration + 1) * regrets if kind == "cfr+" else regrets
    gap = gap_of_regrets(game, weighed)
    assert total * again.nash_conv() <= gap + price + 1e-9 * total
    missing = below(game, solver.state.frozen) & (game.per_sequence(np.ones(game.num_infosets)) > 0)
    missing[game.decisions.forced] = False
    for tree in game.treeplexes:
      for sequences, infosets in tree.infoset_groups():
        if len(sequences) == 1:
          continue
        z = values[tree.first_infoset :][infosets]
        said = carried[sequences] - z
        assert (weighed[sequences] >= said - 1e-9 * total).all()
        if kind != "cfr+":
          np.testing.assert_allclose(weighed[sequences], said, atol=1e-9 * total)
        if not ever:
          continue
        there = missing[sequences[0]]
        np.testing.assert_allclose(z[there], best[sequences].max(axis=0)[there], atol=1e-9 * total)
        back, expected = solver.state.frozen[sequences], best[sequences] - z
        expected = np.maximum(expected, 0.0) if kind == "cfr+" else expected
        np.testing.assert_allclose(weighed[sequences][back], expected[back], atol=1e-9 * total)
  assert most or kind == "hedge"


@pytest.mark.quick("random 5-*", "liar's dice-cfr")
@pytest.mark.parametrize("kind", ["cfr", "hedge"])
@pytest.mark.parametrize("name", NAMES)
def test_late_windows_are_undone(name, kind, daring):
  """No frozen action should be played at the end of its window, and play is as good."""
  game = game_of(name)
  solver, plain, rollbacks = pruned(game, kind), unpruned(game, kind), 0
  for _ in range(25):
    to_the_end_of_a_window(solver)
    came_late = solver.num_pruned and brought_back(solver)[1].any()
    # This ends the window, and whatever it is again after rollbacks.
    solver.run(1)
    assert (solver.state.rollbacks > rollbacks) == bool(came_late)
    rollbacks = solver.state.rollbacks
  plain.run(solver.iteration)
  assert solver.nodes_touched > 0
  assert solver.nash_conv() < 2 * plain.nash_conv() + 1e-9


def one_sided_game():
  """Liar's dice without losses: every leaf has payoff 0 for one player."""
  game = game_of("liar's dice")
  own, (others,), values = game.payoff.leaves(0)
  payoffs = np.stack([np.maximum(values, 0), np.maximum(-values, 0)], axis=1)
  return game.with_payoff(LeafRows.build(np.stack([own, others]), payoffs, game.treeplexes))


@pytest.mark.parametrize("name", [*EVERY, "one-sided"])
def test_compacted_games_have_the_same_values(name):
  """Values in the compacted game equal those in the whole game, if dropped actions are not played."""
  game = one_sided_game() if name == "one-sided" else game_of(name)
  prunable, rng = PrunableGame(game), np.random.default_rng(0)
  for share in (0.1, 0.4):
    dropped = rng.random(game.end) < share
    real = np.zeros(game.end, bool)
    for tree in game.treeplexes:
      for sequences, _ in tree.infoset_groups():
        real[sequences] = True
        # An infoset has something left to play.
        dropped[sequences[0]] = False
    dropped &= real
    weights = rng.random(game.end) * ~dropped
    local = spiel_cfr.policies.behavioral_form(game, weights)
    x = spiel_cfr.policies.sequence_form(game, local)
    left = prunable.without(dropped)
    small = np.zeros(left.game.end)
    small[left.places] = x[left.sequences]
    whole, found = gradients(game, x), gradients(left.game, small)
    small[left.places] = local[left.sequences]
    for each, utilities, strategy in ((game, whole, local), (left.game, found, small)):
      backward_pass(each, expect, utilities, strategy=strategy)
    np.testing.assert_allclose(found[left.places], whole[left.sequences], atol=1e-12)
    assert not dropped[left.sequences].any()
    assert (left.game.groups[:, ACTIONS] > 1).all()
    assert np.flatnonzero(left.remains).tolist() == sorted(left.infosets.tolist())
    assert len(left.infosets) == left.game.num_infosets
    assert 0 <= left.share < 1
    # Other missing infosets have one action left, or only payoffs of 0.
    actions_left = np.zeros(game.num_infosets, int)
    for tree in game.treeplexes:
      for sequences, infosets in tree.infoset_groups():
        actions_left[tree.first_infoset :][infosets] = (~dropped[sequences]).sum(axis=0)
    reached = ~(dropped | below(game, dropped))
    several = rows_at(game, (actions_left > 1) & ~left.remains) & reached & real
    several[game.decisions.forced] = False
    np.testing.assert_allclose(gradients(game, x)[several & (x > 0)], 0, atol=1e-12)


@pytest.mark.quick("*-random 5")
@pytest.mark.parametrize("name", ["leduc", "random 5"])
@pytest.mark.parametrize("kind", ["cfr", "cfr+"])
def test_it_resumes_inside_a_window(name, kind, tmp_path, daring):
  game = game_of(name)
  whole, solver = pruned(game, kind), pruned(game, kind)
  whole.run(200)
  for count in (71, 1, 13):
    solver.run(count)
  assert solver.iteration < solver.state.window_end
  assert solver.num_pruned
  solver.save(tmp_path / "solver.npz")
  loaded = spiel_cfr.Solver.load(tmp_path / "solver.npz", game)
  others = [solver, loaded, copy.copy(solver), pickle.loads(pickle.dumps(solver))]
  average = solver.average_probabilities().tobytes()
  for each in others:
    assert each.average_probabilities().tobytes() == average
    each.run(200 - each.iteration)
    assert_same_state(each, whole)


@pytest.mark.quick("cfr*")
@pytest.mark.parametrize(
  ("name", "kind", "sides", "iterations", "nodes", "worse"),
  [
    ("cfr_pruned", "cfr", 5, 10_000, 0.4, 1.2),
    ("cfr+_pruned", "cfr+", 4, 10_000, 0.6, 1.05),
    ("cfr+_pruned", "cfr+", 5, 2000, 0.6, 1.05),
    ("hedge_pruned", "hedge", 5, 4000, 0.6, 1.2),
  ],
)
def test_how_good_it_is(name, kind, sides, iterations, nodes, worse):
  """The pruned solver is about as good, and visits only a part of the nodes."""
  game = spiel_cfr.compile_game(f"liars_dice(dice_sides={sides})")
  solver, plain = spiel_cfr.catalogue.make(name, game, iterations), unpruned(game, kind)
  for each in (solver, plain):
    each.run(iterations)
  assert solver.active_share < 1 / 3
  assert solver.nodes_touched < nodes * plain.nodes_touched
  assert solver.exploitability() < worse * plain.exploitability()


@pytest.mark.parametrize("name", NAMES)
def test_unread_policies_are_updated(name, daring):
  """Averages are sequence forms at every iteration."""
  game, unseen = game_of(name), 0
  solver = pruned(game)
  for _ in range(14):
    solver.run(7)
    solver.run(max(1, solver.state.window_end - solver.iteration))
    if not solver.num_pruned:
      continue
    for sums in (solver.average_sequence_form(), parts(brought_back(solver)[0])[1]):
      for tree in game.treeplexes:
        for sequences, infosets in tree.infoset_groups():
          above = sums[tree.parent[infosets]]
          np.testing.assert_allclose(sums[sequences].sum(axis=0), above, rtol=1e-9, atol=1e-9)
    unseen += solver.num_pruned
  assert unseen


@pytest.mark.parametrize("name", ["random 2", "random 5"])
@pytest.mark.parametrize("kind", ["cfr", "cfr+"])
def test_until_something_comes_back_iterates_are_the_same(name, kind, monkeypatch):
  monkeypatch.setattr(pruning_rule, "_CAUTION", 10.0)
  game, compared = game_of(name), 0
  solver, plain = pruned(game, kind), unpruned(game, kind)
  for _ in range(200):
    before = solver.state.frozen.copy()
    for each in (solver, plain):
      each.run(1)
    if (before & ~solver.state.frozen).any():
      break
    compared += int(solver.num_pruned > 0)
    # At reached infosets, which are all that the other player sees.
    np.testing.assert_allclose(
      solver.current_sequence_form(), plain.current_sequence_form(), atol=1e-9
    )
  assert compared


def test_where_nothing_is_to_be_decided_nothing_is_pruned():
  forced = 'p "" 1 1 "alone" { "a" } 0 p "" 2 1 "likewise" { "a" } 0 t "" 1 "" { 1 -1 }'
  game = spiel_cfr.compile_game(
    pyspiel.load_efg_game(f'EFG 2 R "forced" {{ "0" "1" }} "" {forced}')
  )
  solver = pruned(game)
  solver.run(100)
  assert (solver.num_pruned, solver.active_share, solver.nash_conv()) == (0, 1.0, 0.0)


@pytest.mark.quick("random 2")
@pytest.mark.parametrize("name", ["liar's dice", "random 2", "leduc"])
def test_state_below_frozen_actions_does_not_matter(name, daring):
  """Noise in the state below frozen actions changes nothing: runs continue bit for bit."""
  game, rng, forgotten = game_of(name), np.random.default_rng(3), 0
  solver, plain = pruned(game), pruned(game)
  for _ in range(20):
    for each in (solver, plain):
      each.run(9)
    strategy, _, regrets, values = parts(solver)
    dropped = below(game, solver.state.frozen)
    dropped[game.decisions.forced] = False
    for tree in game.treeplexes:
      for sequences, infosets in tree.infoset_groups():
        gone = dropped[sequences[0]]
        noise = 1e6 * rng.standard_normal(gone.sum())
        values[tree.first_infoset :][infosets][gone] = noise
        strategy[sequences[:, gone]] = rng.dirichlet(np.ones(len(sequences)), gone.sum()).T
    regrets[dropped] = 1e6 * rng.standard_normal(dropped.sum())
    forgotten += int(dropped.sum())
    assert solver.average_probabilities().tobytes() == plain.average_probabilities().tobytes()
    np.testing.assert_array_equal(solver.current_sequence_form(), plain.current_sequence_form())
  if solver.num_pruned:
    assert_same_state(*(brought_back(each)[0] for each in (solver, plain)))
  assert forgotten


@pytest.mark.parametrize("kind", ["cfr", "cfr+"])
def test_reading_changes_nothing(kind, daring):
  game = game_of("leduc")
  solver, other = pruned(game, kind), pruned(game, kind)
  solver.prepare()
  for _ in range(6):
    solver.run(17)
    for _ in range(17):
      other.evaluate_and_update_policy()
    solver.nash_conv()
    solver.average_policy()
    solver.current_policy()
    assert solver.active_share <= 1
  assert_same_state(solver, other)


def test_ctrl_c_comes_after_a_whole_number_of_iterations(monkeypatch, daring):
  """Files resume inside a window and between windows."""
  game, presses = game_of("leduc"), 0
  solver, plain = pruned(game), pruned(game)
  advance, open_next = PruningWindow.advance, Pruned._next_window

  def press_in_window(self, *rest):
    advance(self, *rest)
    signal.raise_signal(signal.SIGINT)

  def press_between(self):
    open_next(self)
    if self is solver:
      signal.raise_signal(signal.SIGINT)

  monkeypatch.setattr(PruningWindow, "advance", press_in_window)
  monkeypatch.setattr(Pruned, "_next_window", press_between)
  while solver.iteration < 200:
    try:
      solver.run(23)
    except KeyboardInterrupt:
      presses += 1
  assert presses > 5
  monkeypatch.setattr(PruningWindow, "advance", advance)
  monkeypatch.setattr(Pruned, "_next_window", open_next)
  plain.run(solver.iteration)
  assert_same_state(solver, plain)


@pytest.mark.parametrize(
  ("name", "forge"),
  [
    ("solver.counts", lambda value: value + np.uint64(10**11)),
    ("window_end", lambda value: value + 10**6),
    ("opened.cumulative", lambda value: -value - 1),
    ("opened.cumulative", lambda value: 3 * value + 1),
    ("opened.infoset_state", lambda value: value * np.nan),
    ("opened.counts", lambda value: value + np.uint64(10**6)),
    ("nodes", lambda value: -1),
    ("frozen", np.ones_like),
    ("solver.cumulative", lambda value: value * (1 + np.arange(len(value)))),
    ("solver.cumulative", lambda value: np.where(value > 0, np.inf, value)),
    ("opened.cumulative", lambda value: value * (np.arange(len(value)) % 3 == 0)),
  ],
)
def test_forged_windows_are_refused(name, forge):
  solver = pruned(game_of("leduc"))
  while not solver.num_pruned:
    solver.run(7)
  state = solver.state_dict()
  with pytest.raises(errors.CheckpointMismatchError):
    solver.load_state_dict(state | {name: forge(state[name])})
  assert_same_state(solver, again := copy.copy(solver))
  assert again.num_pruned


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_works_or_is_refused(form, daring):
  game = form.compiled
  if game.num_players > 2 or form.is_vector or form.is_abstraction:
    with pytest.raises(errors.PruningError, match="use no pruning"):
      pruned(game)
    return
  solver = pruned(game)
  solver.run(100)
  by_dict = spiel_cfr.nash_conv(game, solver.average_policy_dict())
  assert solver.nash_conv() == pytest.approx(by_dict, abs=1e-9)


def test_refusals():
  solver = CFRPlusSolver("kuhn_poker")
  for arguments in ({"min_window": 0}, {"min_window": 3001}):
    with pytest.raises(errors.ArgumentError):
      Pruned(solver, **arguments)
  with pytest.raises(errors.ArgumentError, match="full-width"):
    Pruned(Pruned(solver))
  tapered = spiel_cfr.Averaging(tapered=True)
  with pytest.raises(errors.PruningError, match="Averages must be plain"):
    Pruned(FullWidthSolver("kuhn_poker", RegretMatching.plus(), averaging=tapered))
  with pytest.raises(errors.LockError):
    Pruned(solver).lock({"0": {0: 1.0}})
  solver.lock({"0": {0: 0.5, 1: 0.5}})
  with pytest.raises(errors.LockError, match="locked"):
    Pruned(solver)


@pytest.mark.parametrize(
  ("minimizer", "weights"),
  [
    (RegretMatching(), 1.0),
    (RegretMatching.discounted(), 2.0),
    (RegretMatching(forgets_negative=True, prediction=1.0), 2.0),
    (Hedge(), 0.0),
    (Hedge(threshold=2.0), 1.0),
    (RegretMatching.plus(), Fading(1.0, 10.0)),
  ],
)
def test_minimizers_for_which_it_is_not_sound_are_refused_by_name(minimizer, weights):
  solver = FullWidthSolver("kuhn_poker", minimizer, averaging=spiel_cfr.Averaging(weights))
  with pytest.raises(errors.PruningError, match="sound") as caught:
    Pruned(solver)
  for text in (str(minimizer), str(solver.averaging), "CFRPlusSolver"):
    assert text in str(caught.value)


def test_windows_are_a_fifth_of_all_iterations_so_far():
  solver = pruned(game_of("liar's dice"))
  while not solver.num_pruned:
    solver.run(10)
  for _ in range(10):
    start = solver.state.window_end
    solver.run(start + 1 - solver.iteration)
    assert solver.state.window_end == start + max(10, start // 5)


@pytest.mark.parametrize("seed", [3, 4])
def test_general_sums(seed, daring):
  game = spiel_cfr.compile_game(random_games.random_game(seed, zero_sum=False, max_histories=200))
  solver = pruned(game)
  solver.run(100)
  by_dict = spiel_cfr.nash_conv(game, solver.average_policy_dict())
  assert solver.nash_conv() == pytest.approx(by_dict, abs=1e-9)
