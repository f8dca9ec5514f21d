"""Pruned CFR+: backfill is a best response, averages and notes stay exact, and states resume inside a window."""

import copy
import math
import pickle
import signal

import numpy as np
import pyspiel
import pytest
import random_games
from composition.forms import FORMS
from pruning_games import GAMES, game_of, gap_of_regrets, names, unpruned

import spiel_cfr
from spiel_cfr import CFRPlusSolver, FullWidthSolver, Pruned, RegretMatching, errors
from spiel_cfr.cfr.pruning import pruned as pruned_module
from spiel_cfr.cfr.pruning.backfill import NotedMatching
from spiel_cfr.cfr.pruning.compaction import PrunableGame, Window
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.counterfactual_values import (
  backward_pass,
  expect,
  gradients,
)
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.sequence_form.treeplex import ACTIONS
from spiel_cfr.regret_minimizers.oftrl import Hedge
from spiel_cfr.regret_minimizers.schedules import Fading, Power

# On Kuhn poker nothing is ever pruned.
EVERY = [name for name in GAMES if name != "kuhn"]
NAMES = names(EVERY, always=("liar's dice", "random 2", "random 5"))


@pytest.fixture(autouse=True)
def _whether_it_pays_or_not(request):
  with pytest.MonkeyPatch.context() as patch:
    if "how_good" not in request.node.name:
      patch.setattr(pruned_module, "_WORTHWHILE", math.inf)
    yield


def pruned(game, alternating=True, **constants):
  """Opens windows soon."""
  solver = FullWidthSolver(
    game, RegretMatching.plus(), alternating_updates=alternating, averaging=spiel_cfr.Averaging(1.0)
  )
  return Pruned(solver, **{"shortest": 10} | constants)


def daring(game, alternating=True):
  """Prunes more than is wise."""
  return pruned(game, alternating, caution=0.0)


def parts(solver):
  """Its strategies, sums of averages, regrets and Z."""
  inner = solver.state.solver
  return inner.strategy, inner.cumulative, inner.action_state[0], inner.infoset_state[0]


def brought_back(solver):
  """A copy of which nothing is pruned any more."""
  result = copy.copy(solver)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(pruned_module, "_WORTHWHILE", 0.0)
    result._next_window()
  assert not result.num_pruned
  return result


def noted_values(game, values):
  """Z of all infosets: what is forced is worth what it leads to, and nobody notes that. With what is carried up."""

  def carried(worth):
    for tree in game.treeplexes:
      for sequences, infosets in reversed(list(tree.blocks())):
        own = values[tree.first_infoset :][infosets]
        own = worth[sequences[0]] if len(sequences) == 1 else own
        np.add.at(worth, tree.parent[infosets], own)
    return worth

  return carried


def assert_same_state(solver, other):
  """All that both remember is the same, bit for bit."""
  for (name, value), expected in zip(
    solver.state_dict().items(), other.state_dict().values(), strict=True
  ):
    np.testing.assert_array_equal(value, expected, name)


def rows_at(game, wanted):
  """Which sequences are at these infosets."""
  result = np.zeros(game.end, bool)
  for tree in game.treeplexes:
    for sequences, infosets in tree.blocks():
      result[sequences] = wanted[tree.first_infoset :][infosets]
  return result


def below(game, wanted):
  """Which sequences follow these, themselves not counted."""
  result = np.zeros(game.end, bool)
  for tree in game.treeplexes:
    for sequences, infosets in tree.blocks():
      parent = tree.parent[infosets]
      result[sequences] = (wanted | result)[parent]
  return result


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("alternating", [False, True])
def test_what_is_noted_changes_no_bit(name, alternating, monkeypatch):
  monkeypatch.setattr(pruned_module, "_WORTHWHILE", 0.0)
  game, weights = game_of(name), Power(1.0)
  plain = unpruned(game, True, alternating)
  noted, never = (
    FullWidthSolver(
      game,
      NotedMatching(weights),
      alternating_updates=alternating,
      averaging=spiel_cfr.Averaging(weights, "faced"),
    ),
    pruned(game, alternating),
  )
  for _ in range(20):
    for solver in (plain, noted, never):
      solver.run(10)
    assert (never.num_pruned, never.active_share) == (0, 1.0)
    for each in (noted, never._runtime.solver):
      for array in ("strategy", "cumulative", "action_state"):
        assert getattr(each.state, array).tobytes() == getattr(plain.state, array).tobytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("caution", [0.0, 1.0])
def test_what_comes_back_has_played_a_best_response(name, caution):
  """And the identity stays exact: nothing was paid, and regrets are no less than what Z says."""
  game, most = game_of(name), 0
  solver = pruned(game, alternating=False, caution=caution)
  for _ in range(12):
    solver.run(1)
    solver.run(max(1, solver.state.window_end - solver.iteration))
    most = max(most, solver.num_pruned)
    again = brought_back(solver)
    # Rewriting below changes no policy.
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
    weighed = (solver.iteration + 1) * regrets
    gap = gap_of_regrets(game, weighed)
    assert total * again.nash_conv() <= gap + price + 1e-9 * total
    missing = below(game, solver.state.pruned) & (game.spread(np.ones(game.num_infosets)) > 0)
    missing[game.decisions.forced] = False
    for tree in game.treeplexes:
      for sequences, infosets in tree.blocks():
        if len(sequences) == 1:
          continue
        z = values[tree.first_infoset :][infosets]
        assert (weighed[sequences] >= carried[sequences] - z - 1e-9 * total).all()
        there = missing[sequences[0]]
        np.testing.assert_allclose(z[there], best[sequences].max(axis=0)[there], atol=1e-9 * total)
        back = solver.state.pruned[sequences]
        expected = np.maximum(best[sequences] - z, 0.0)
        np.testing.assert_allclose(weighed[sequences][back], expected[back], atol=1e-9 * total)
  assert most


def one_sided_game():
  """Liar's dice in which losers lose nothing: no leaf is worth anything to both."""
  game = game_of("liar's dice")
  own, (others,), values = game.payoff.leaves(0)
  payoffs = np.stack([np.maximum(values, 0), np.maximum(-values, 0)], axis=1)
  return game.with_payoff(LeafRows.build(np.stack([own, others]), payoffs, game.treeplexes))


@pytest.mark.parametrize("name", [*EVERY, "one-sided"])
def test_what_is_left_of_a_game_is_worth_the_same(name):
  """Where the pruned is not played, what is left is worth what it is in the whole game, and the rest nothing."""
  game = one_sided_game() if name == "one-sided" else game_of(name)
  prunable, rng = PrunableGame(game), np.random.default_rng(0)
  for share in (0.1, 0.4):
    dropped = rng.random(game.end) < share
    real = np.zeros(game.end, bool)
    for tree in game.treeplexes:
      for sequences, _ in tree.blocks():
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
    assert np.flatnonzero(left.seen).tolist() == sorted(left.infosets.tolist())
    assert len(left.infosets) == left.game.num_infosets
    assert 0 <= left.share < 1
    # Infosets that are left out, and not below what is pruned, have one action left, or are worth nothing to anybody.
    actions_left = np.zeros(game.num_infosets, int)
    for tree in game.treeplexes:
      for sequences, infosets in tree.blocks():
        actions_left[tree.first_infoset :][infosets] = (~dropped[sequences]).sum(axis=0)
    reached = ~(dropped | below(game, dropped))
    several = rows_at(game, (actions_left > 1) & ~left.seen) & reached & real
    several[game.decisions.forced] = False
    np.testing.assert_allclose(gradients(game, x)[several & (x > 0)], 0, atol=1e-12)


@pytest.mark.parametrize("name", ["leduc", "random 5"])
def test_it_resumes_inside_a_window(name, tmp_path):
  game = game_of(name)
  whole, solver = daring(game), daring(game)
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


@pytest.mark.parametrize(("sides", "iterations"), [(4, 10_000), (5, 2000)])
def test_how_good_it_is(sides, iterations):
  """As good as CFR+ within a few percent, while less than a third of the leaves is looked at."""
  game = spiel_cfr.compile_game(f"liars_dice(dice_sides={sides})")
  solver, plain = Pruned(CFRPlusSolver(game)), unpruned(game, True)
  for each in (solver, plain):
    each.run(iterations)
  assert solver.active_share < 1 / 3
  assert solver.exploitability() < 1.05 * plain.exploitability()


@pytest.mark.parametrize("name", NAMES)
def test_what_nobody_looked_at_is_brought_up_to_date(name):
  """Averages are sequence forms wherever one looks."""
  game, unseen = game_of(name), 0
  solver = daring(game)
  for _ in range(14):
    solver.run(7)
    solver.run(max(1, solver.state.window_end - solver.iteration))
    for sums in (solver._sums(), parts(brought_back(solver))[1]):
      for tree in game.treeplexes:
        for sequences, infosets in tree.blocks():
          above = sums[tree.parent[infosets]]
          np.testing.assert_allclose(sums[sequences].sum(axis=0), above, rtol=1e-9, atol=1e-9)
    unseen += solver.num_pruned
  assert unseen


@pytest.mark.parametrize("name", ["random 2", "random 5"])
def test_until_something_comes_back_iterates_are_the_same(name):
  game, compared = game_of(name), 0
  solver, plain = pruned(game, caution=10.0), unpruned(game, True)
  for _ in range(200):
    before = solver.state.pruned.copy()
    for each in (solver, plain):
      each.run(1)
    if (before & ~solver.state.pruned).any():
      break
    compared += int(solver.num_pruned > 0)
    # Where somebody plays to, and that is all that the other player sees.
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


@pytest.mark.parametrize("name", ["liar's dice", "random 2", "leduc"])
def test_below_what_is_pruned_nothing_need_be_remembered(name):
  """Whatever stands there, all goes on bit for bit."""
  game, rng, forgotten = game_of(name), np.random.default_rng(3), 0
  solver, plain = daring(game), daring(game)
  for _ in range(20):
    for each in (solver, plain):
      each.run(9)
    strategy, _, regrets, values = parts(solver)
    dropped = below(game, solver.state.pruned)
    dropped[game.decisions.forced] = False
    for tree in game.treeplexes:
      for sequences, infosets in tree.blocks():
        gone = dropped[sequences[0]]
        noise = 1e6 * rng.standard_normal(gone.sum())
        values[tree.first_infoset :][infosets][gone] = noise
        strategy[sequences[:, gone]] = rng.dirichlet(np.ones(len(sequences)), gone.sum()).T
    regrets[dropped] = 1e6 * rng.standard_normal(dropped.sum())
    forgotten += int(dropped.sum())
    assert solver.average_probabilities().tobytes() == plain.average_probabilities().tobytes()
    np.testing.assert_array_equal(solver.current_sequence_form(), plain.current_sequence_form())
  assert_same_state(brought_back(solver), brought_back(plain))
  assert forgotten


def test_reading_changes_nothing():
  game = game_of("leduc")
  solver, other = daring(game), daring(game)
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


def test_ctrl_c_comes_after_a_whole_number_of_iterations(monkeypatch):
  """In a window, and between two of them."""
  game, presses = game_of("leduc"), 0
  solver, plain = daring(game), daring(game)
  advance, open_next = Window.advance, Pruned._next_window

  def press_in_window(self, *rest):
    advance(self, *rest)
    signal.raise_signal(signal.SIGINT)

  def press_between(self):
    open_next(self)
    if self is solver:
      signal.raise_signal(signal.SIGINT)

  monkeypatch.setattr(Window, "advance", press_in_window)
  monkeypatch.setattr(Pruned, "_next_window", press_between)
  while solver.iteration < 200:
    try:
      solver.run(23)
    except KeyboardInterrupt:
      presses += 1
  assert presses > 5
  monkeypatch.undo()
  plain.run(solver.iteration)
  assert_same_state(solver, plain)


@pytest.mark.parametrize(
  ("name", "forge"),
  [
    ("solver.counts", lambda value: value + np.uint64(10**11)),
    ("window_end", lambda value: value + 10**6),
    ("opened", lambda value: -value - 1),
    ("opened", lambda value: 3 * value + 1),
    ("opened_values", lambda value: value * np.nan),
    ("pruned", np.ones_like),
    ("solver.cumulative", lambda value: value * (1 + np.arange(len(value)))),
    ("solver.cumulative", lambda value: np.where(value > 0, np.inf, value)),
    ("opened", lambda value: value * (np.arange(len(value)) % 3 == 0)),
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
def test_every_form_works_or_is_refused(form):
  game = form.compiled
  if game.num_players > 2 or form.is_vector or form.buckets is not None:
    with pytest.raises(errors.PruningError, match="take no pruning"):
      pruned(game)
    return
  solver = daring(game)
  solver.run(100)
  by_dict = spiel_cfr.nash_conv(game, solver.average_policy_dict())
  assert solver.nash_conv() == pytest.approx(by_dict, abs=1e-9)


def test_what_is_refused():
  solver = CFRPlusSolver("kuhn_poker")
  for arguments in ({"caution": -1.0}, {"shortest": 0}, {"shortest": 3001}):
    with pytest.raises(errors.ArgumentError):
      Pruned(solver, **arguments)
  with pytest.raises(errors.ArgumentError, match="full-width"):
    Pruned(Pruned(solver))
  for sums in (
    FullWidthSolver(
      "kuhn_poker", RegretMatching.plus(), averaging=spiel_cfr.Averaging(tapered=True)
    ),
    FullWidthSolver(
      "kuhn_poker",
      RegretMatching.plus(),
      alternating_updates=False,
      averaging=spiel_cfr.Averaging(correlated=True),
    ),
  ):
    with pytest.raises(errors.PruningError, match="take no pruning"):
      Pruned(sums)
  with pytest.raises(errors.LockError):
    Pruned(solver).lock({"0": {0: 1.0}})
  solver.lock({"0": {0: 0.5, 1: 0.5}})
  with pytest.raises(errors.LockError, match="locked"):
    Pruned(solver)


@pytest.mark.parametrize(
  ("minimizer", "weights", "reason"),
  [
    (RegretMatching(), 0.0, "10,000 iterations"),
    (RegretMatching.discounted(), 2.0, "not CFR+"),
    (RegretMatching.predictive_plus(), 2.0, "not CFR+"),
    (Hedge(), 0.0, "not CFR+"),
    (RegretMatching.plus(), Fading(1.0, 10.0), "Fading"),
  ],
)
def test_minimizers_for_which_it_is_not_sound_are_refused_by_name(minimizer, weights, reason):
  with pytest.raises(errors.PruningError, match=reason) as caught:
    Pruned(FullWidthSolver("kuhn_poker", minimizer, averaging=spiel_cfr.Averaging(weights)))
  assert "CFRPlusSolver" in str(caught.value)


def test_windows_are_a_fifth_of_all_iterations_so_far():
  solver = pruned(game_of("liar's dice"))
  while not solver.num_pruned:
    solver.run(10)
  for _ in range(10):
    start = solver.state.window_end
    solver.run(start + 1 - solver.iteration)
    assert solver.state.window_end == start + max(10, start // 5)


@pytest.mark.parametrize("seed", [3, 4])
def test_general_sums(seed):
  game = spiel_cfr.compile_game(random_games.random_game(seed, zero_sum=False, max_histories=200))
  solver = daring(game)
  solver.run(100)
  by_dict = spiel_cfr.nash_conv(game, solver.average_policy_dict())
  assert solver.nash_conv() == pytest.approx(by_dict, abs=1e-9)
