"""Pruning: the identity stays exact, what is known stays exact, and states resume inside a window."""

import copy
import functools
import math
import pickle
import signal

import numpy as np
import pyspiel
import pytest
import random_games
from composition.forms import FORMS
from pruning_games import GAMES, IN_VECTORS, game_of, names, unpruned

import spiel_cfr
from spiel_cfr import Pruning, PruningSolver, RegretMatching, FullWidthSolver, errors
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr.pruning.compaction import compact
from spiel_cfr.cfr.pruning.kept import NOWHERE, find_kept
from spiel_cfr.cfr.pruning.rules import make_rule
from spiel_cfr.cfr.pruning.taking import all_leaves
from spiel_cfr.evaluation.identity import game_backward_pass, expect, gap_of_regrets, gradients
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.payoffs.sorted_rows import sorted_rows
from spiel_cfr.games.sequence_form.treeplex import ACTIONS
from spiel_cfr.regret_minimizers.ledger import NotedMatching
from spiel_cfr.regret_minimizers.oftrl import Hedge
from spiel_cfr.regret_minimizers.schedules import Power

# On Kuhn poker nothing is ever left alone.
EVERY = [name for name in GAMES if name != "kuhn"]
NAMES = names([*EVERY, *IN_VECTORS], always=("liar's dice", "random 5", "river endgame"))
RULES = ["regret", "best_response"]


def daring(rule="best_response", margin=3.0, **constants):
  """Leaves more alone than is wise, and soon."""
  return often(rule, margin=margin, caution=0.0, **{"tolerance": math.inf} | constants)


def often(rule, **constants):
  """Opens windows soon, and whether they pay or not."""
  return Pruning(rule, **{"shortest": 10, "worthwhile": math.inf} | constants)


def pruned(game, pruning="best_response", plus=True, alternating=True):
  return spiel_cfr.TabularCFRSolver(
    game, alternating, linear_averaging=plus, regret_matching_plus=plus, pruning=pruning
  )


def one_sided_game():
  """Liar's dice in which losers lose nothing: no leaf is worth anything to both."""
  game = game_of("liar's dice")
  own, (others,), values = game.payoff.leaves(0)
  payoffs = np.stack([np.maximum(values, 0), np.maximum(-values, 0)], axis=1)
  return game.with_payoff(LeafRows.build(np.stack([own, others]), payoffs, game.treeplexes))


def looked_at_again(solver):
  """A copy that leaves nothing alone, its history rewritten."""
  result = copy.copy(solver)
  result._rule = copy.copy(solver._rule)
  result.pruning = result._rule._pruning = Pruning(
    result.pruning.rule, math.inf, tolerance=math.inf
  )
  result._next_epoch(DeferredInterrupt())
  assert not result.num_pruned
  return result


def price(solver):
  """Sum over players and iterations of w (v(0) - u(x)): what the roots' values sum to, less what is to be had."""
  game = solver.compiled_game
  worth, total = gradients(game, solver._cumulative), 0.0
  for tree in game.treeplexes:
    for sequences, infosets in reversed(list(tree.blocks())):
      values = solver._local[0, tree.first_infoset :][infosets]
      # What is forced is worth what it leads to; nobody notes that.
      if len(sequences) == 1:
        values = worth[sequences[0]]
      np.add.at(worth, tree.parent[infosets], values)
    total += worth[tree.root]
  return float(total) - solver._cumulative[0] * (game.constant_sum or 0.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("margin", [0.0, 1.0, 3.0])
def test_the_identity_stays_exact(name, rule, margin):
  """However daring it is: W NashConv = max <R, x> + price, and nothing was paid for simultaneous updates."""
  game = game_of(name)
  solver = pruned(game, daring(rule, margin), False, alternating=False)
  most = 0
  for _ in range(12):
    solver.run(1)
    solver.run(max(1, solver._epoch_end - solver.iteration))
    most = max(most, solver.num_pruned)
    again = looked_at_again(solver)
    total = again._cumulative[0]
    found = gap_of_regrets(game, again._state[0]) + price(again)
    assert total * again.nash_conv() == pytest.approx(found, rel=1e-9, abs=1e-9)
    assert price(again) == pytest.approx(0, abs=1e-9 * total)
    # Rewriting below changes no policy.
    np.testing.assert_allclose(
      again.average_sequence_form(), solver.average_sequence_form(), atol=1e-12
    )
  assert most


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("alternating", [False, True])
def test_the_ledger_is_regret_matching_plus_bit_for_bit(name, alternating):
  game = game_of(name)
  plain = unpruned(game, True, alternating)
  noted = FullWidthSolver(
    game,
    NotedMatching(Power(1.0), True),
    alternating_updates=alternating,
    average_weights=1.0,
    averaged=("after", "before") if alternating else "before",
  )
  for _ in range(20):
    for solver in (plain, noted):
      solver.run(10)
    assert noted._strategy.tobytes() == plain._strategy.tobytes()
    assert noted._cumulative.tobytes() == plain._cumulative.tobytes()
    regrets = np.where(plain._state[0] > 0, noted._state[0], plain._state[0])
    assert regrets.tobytes() == plain._state[0].tobytes()
  assert (noted._state[0] < 0).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("plus", [False, True])
def test_an_infinite_margin_leaves_nothing_alone(name, plus):
  game = game_of(name)
  solver, plain = pruned(game, Pruning(margin=math.inf), plus), unpruned(game, plus)
  for each in (solver, plain):
    each.run(150)
  assert solver._strategy.tobytes() == plain._strategy.tobytes()
  assert solver._cumulative.tobytes() == plain._cumulative.tobytes()
  assert (solver.num_pruned, solver.active_share) == (0, 1.0)


def rows_at(game, wanted):
  """Which sequences are at these infosets."""
  result = np.zeros(game.end, bool)
  for tree in game.treeplexes:
    for sequences, infosets in tree.blocks():
      result[sequences] = wanted[tree.first_infoset :][infosets]
  return result


@pytest.mark.parametrize("name", [*EVERY, "one-sided"])
def test_what_is_left_of_a_game_is_worth_the_same(name):
  """Where the pruned is not played, what is left is worth what it is in the whole game, and the rest nothing."""
  game = one_sided_game() if name == "one-sided" else game_of(name)
  rows, rng = all_leaves(game), np.random.default_rng(0)
  for share in (0.1, 0.4):
    pruned = rng.random(game.end) < share
    real = np.zeros(game.end, bool)
    for tree in game.treeplexes:
      for sequences, _ in tree.blocks():
        real[sequences] = True
        # An infoset has something left to play.
        pruned[sequences[0]] = False
    pruned &= real
    weights = rng.random(game.end) * ~pruned
    x = spiel_cfr.policy.sequence_form(game, spiel_cfr.policy.behavioral_form(game, weights))
    left = compact(game, rows, pruned)
    small = np.zeros(left.game.end)
    small[left.places] = x[left.sequences]
    whole, found = gradients(game, x), gradients(left.game, small)
    actions_left = np.zeros(game.num_infosets, int)
    actions_left[left.kept.infosets] = left.live
    there = rows_at(game, actions_left > 0)
    # Forced moves are left out with and without pruning.
    there[game.decisions.forced] = True
    dropped = real & ~there & (x > 0)
    np.testing.assert_allclose(whole[dropped], 0, atol=1e-12)
    assert not pruned[left.sequences].any()
    local = spiel_cfr.policy.behavioral_form(game, weights)
    small[left.places] = local[left.sequences]
    for each, utilities, strategy in ((game, whole, local), (left.game, found, small)):
      game_backward_pass(each, expect, utilities, strategy=strategy)
    np.testing.assert_allclose(found[left.places], whole[left.sequences], atol=1e-12)
    assert (left.game.groups[:, ACTIONS] > 1).all()
    assert (actions_left > 1).sum() == left.game.num_infosets
    assert (actions_left[left.infosets] > 1).all()
    assert 0 <= left.share < 1
  assert left.game.num_infosets < (actions_left > 0).sum()


@pytest.mark.parametrize("name", [*EVERY, "one-sided"])
def test_sorted_rows_are_the_same_payoffs(name):
  """Gradients and leaves, of some of the leaves too."""
  game = one_sided_game() if name == "one-sided" else game_of(name)
  rows, rng = all_leaves(game), np.random.default_rng(1)
  for wanted in (np.ones(len(rows.arrays.values), bool), rows.arrays.values > 0):
    payoff = sorted_rows(rows, wanted)
    some = LeafRows(rows.arrays._replace(values=rows.arrays.values * wanted))
    x = rng.random(game.end)
    for player in range(2):
      expected, found = np.zeros((2, game.end))
      some.gradient_into(player, x, expected)
      payoff.gradient_into(player, x, found)
      np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
      listed = [
        sorted(zip(own, other, values, strict=True))
        for own, (other,), values in (payoff.leaves(player), some.leaves(player))
      ]
      assert listed[0] == [leaf for leaf in listed[1] if leaf[2] != 0]


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("rule", [*RULES, "partial"])
@pytest.mark.parametrize("name", ["leduc", "random 5"])
def test_it_resumes_inside_a_window(name, rule, plus, tmp_path):
  game = game_of(name)
  whole, solver = (pruned(game, daring(rule), plus) for _ in range(2))
  whole.run(200)
  for count in (71, 1, 13):
    solver.run(count)
  assert solver.iteration < solver._epoch_end
  if rule != "partial" or name != "leduc":
    assert solver.num_pruned or name != "leduc"
  solver.save(tmp_path / "solver.npz")
  others = [
    solver,
    spiel_cfr.Solver.load(tmp_path / "solver.npz", game),
    copy.copy(solver),
  ]
  average = solver.average_probabilities().tobytes()
  for each in others:
    assert each.average_probabilities().tobytes() == average
    each.run(200 - each.iteration)
    for key, value in each.state_dict().items():
      assert np.array_equal(value, whole.state_dict()[key]), key


@pytest.mark.parametrize("rule", RULES)
def test_how_good_it_is(rule):
  """CFR+ with pruning is about as good as without, while less than two thirds of the leaves are looked at."""
  for name, slack in (("leduc", 1.3), ("liar's dice", 2.0)):
    game = game_of(name)
    solver = spiel_cfr.CFRPlusSolver(game, pruning=often(rule, shortest=50))
    plain = unpruned(game, True)
    for each in (solver, plain):
      each.run(600)
    assert solver.active_share < 0.65
    assert solver.exploitability() < slack * plain.exploitability() + 1e-5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rule", RULES)
def test_full_caution_is_sound(name, rule):
  """What is left alone comes back without a positive regret, and until then all is as without pruning."""
  game = game_of(name)
  solver, plain = (
    pruned(game, often(rule, certain=True), False),
    unpruned(game, False),
  )
  for _ in range(30):
    solver.run(20)
    plain.run(20)
    again = looked_at_again(solver)
    positive = again._state[0][solver._pruned]
    assert (positive <= 1e-9).all()
  assert solver.exploitability() < 3 * plain.exploitability() + 1e-6


@pytest.mark.parametrize(
  "name", names([*EVERY, *IN_VECTORS], always=("random 2", "random 11", "river endgame"))
)
@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_what_nobody_looked_at_is_brought_up_to_date(name, plus, rule):
  """Averages are sequence forms wherever one looks, and what the ledger says of others' absence keeps its weight."""
  game = game_of(name)
  solver, unseen = pruned(game, daring(rule), plus), 0
  for _ in range(14):
    solver.run(7)
    solver.run(max(1, solver._epoch_end - solver.iteration))
    again = looked_at_again(solver)
    for sums in (solver._sums(), again._cumulative):
      for tree in game.treeplexes:
        for sequences, infosets in tree.blocks():
          above = sums[tree.parent[infosets]]
          np.testing.assert_allclose(sums[sequences].sum(axis=0), above, rtol=1e-9, atol=1e-9)
    if not solver.num_pruned:
      continue
    looked_at = np.zeros(game.num_infosets, bool)
    looked_at[solver._left().infosets] = True
    rows = (find_kept(game, solver._pruned).place != NOWHERE) & rows_at(game, ~looked_at)
    before, after = solver._state[0][rows], again._state[0][rows]
    weights = [solver._weight(each) for each in (solver._epoch_start, solver.iteration)]
    factor = np.where(before < 0, weights[0] / weights[1], 1.0)
    np.testing.assert_allclose(after, factor * before, rtol=1e-12)
    unseen += int((before < 0).sum())
  assert unseen or name not in ("random 2", "random 11")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("name", ["leduc", "leduc in vectors"])
def test_a_window_that_misses_too_much_is_gone_back_on(rule, plus, name, monkeypatch):
  """Then its iterations are those of a solver that left nothing alone in it, bit for bit."""
  game, opened, wrong, compared = game_of(name), [], [], []
  next_epoch, go_back = PruningSolver._next_epoch, PruningSolver._go_back

  def notice_epoch(solver, interrupt):
    if solver is watched and len(wrong) > len(compared):
      compare(*wrong[-1])
    next_epoch(solver, interrupt)
    if solver is watched and solver.num_pruned:
      opened[:] = [copy.copy(solver)]

  def notice_return(solver, *rest):
    wrong.append((solver._epoch_start, solver.iteration, opened[0]))
    go_back(solver, *rest)

  def compare(start, end, there):
    again = looked_at_again(there)
    assert again.iteration == start < end == watched.iteration
    again.run(end - start)
    for each in ("_strategy", "_cumulative", "_state", "_local"):
      np.testing.assert_array_equal(getattr(watched, each), getattr(again, each))
    compared.append(end)

  monkeypatch.setattr(PruningSolver, "_next_epoch", notice_epoch)
  monkeypatch.setattr(PruningSolver, "_go_back", notice_return)
  watched = pruned(game, often(rule, margin=0.1, caution=0.0, tolerance=0.01), plus)
  for done in range(1, 400):
    watched.run(1)
    assert watched.iteration == done
  assert len(compared) > 1
  assert watched._caution == min(2.0 ** (len(wrong) - 1), 64.0)


@pytest.mark.parametrize("again", [1, 2])
def test_ctrl_c_while_iterations_come_again(again, monkeypatch):
  """Then the window is not yet gone back on, and the next call does so; a second one acts at once."""
  solver, plain = (
    pruned(game_of("leduc"), daring(margin=0.1, tolerance=0.0, shortest=300)) for _ in range(2)
  )
  go_back, run_loop, left = PruningSolver._go_back, FullWidthSolver._run_loop, [again]
  next_epoch, ended = PruningSolver._next_epoch, {}

  def press_there(self, numbers):
    run_loop(self, numbers)
    if len(numbers.parameters) == 100 and self is solver and left[0] and back[0]:
      left[0] -= 1
      for _ in range(again):
        signal.raise_signal(signal.SIGINT)

  def notice(self, *rest):
    back[0] = True
    go_back(self, *rest)
    back[0] = False

  def note_end(self, interrupt):
    if self is solver:
      ended.update(self.state_dict())
    next_epoch(self, interrupt)

  back = [False]
  monkeypatch.setattr(PruningSolver, "_next_epoch", note_end)
  monkeypatch.setattr(FullWidthSolver, "_run_loop", press_there)
  monkeypatch.setattr(PruningSolver, "_go_back", notice)
  interrupted = 0
  while solver.iteration < 3000:
    before = solver.iteration
    try:
      solver.run(100)
    except KeyboardInterrupt:
      interrupted += 1
      back[0] = False
      for name, value in solver.state_dict().items():
        np.testing.assert_array_equal(value, ended[name], name)
    assert solver.iteration >= before
  assert interrupted
  plain.run(solver.iteration)
  assert_same_state(solver, plain)


def assert_same_state(solver, other):
  """All that both remember is the same, bit for bit."""
  for (name, value), expected in zip(
    solver.state_dict().items(), other.state_dict().values(), strict=True
  ):
    np.testing.assert_array_equal(value, expected, name)


@pytest.mark.parametrize("rule", ["partial", *RULES])
def test_a_solver_inside_a_window_is_pickled(rule):
  solver = pruned(game_of("leduc"), often(rule))
  while not solver.num_pruned:
    solver.run(7)
  again = pickle.loads(pickle.dumps(solver))
  assert_same_state(solver, again)
  for each in (solver, again):
    each.run(100)
  assert_same_state(solver, again)


def test_it_goes_on_from_other_strategies():
  """From within a window: nothing of that counts any more. Where regrets are noted, it is refused by name."""
  game = game_of("leduc")
  uniform = spiel_cfr.policy.sequence_form(game, spiel_cfr.policies.forms.uniform(game))
  for rule in RULES:
    with pytest.raises(errors.RestartError):
      pruned(game, often(rule)).restart_from(uniform)
  solver = pruned(game, often("partial"))
  while not solver.num_pruned:
    solver.run(7)
  solver.restart_from(uniform)
  assert not solver.num_pruned
  again = copy.copy(solver)
  for each in (solver, again):
    each.run(200)
  assert_same_state(solver, again)


@pytest.mark.parametrize(
  ("name", "forge"),
  [
    ("_epoch_start", lambda value: -5),
    ("_epoch_start", lambda value: 10**15),
    ("iteration", lambda value: 10**11),
    ("_epoch_end", lambda value: value + 10**6),
    ("_opened", lambda value: -value - 1),
    ("_opened", lambda value: 3 * value + 1),
    ("_opened_strategy", lambda value: value + 1),
    ("_opened_regrets", lambda value: value * np.nan),
    ("_caution", lambda value: math.nan),
  ],
)
def test_forged_windows_are_refused(name, forge):
  solver = pruned(game_of("leduc"), often("best_response"))
  while not solver.num_pruned:
    solver.run(7)
  state = solver.state_dict()
  with pytest.raises(errors.CheckpointMismatchError):
    solver.load_state_dict(state | {name: forge(state[name])})
  assert_same_state(solver, pruned_again := copy.copy(solver))
  assert pruned_again.num_pruned


@pytest.mark.parametrize("plus", [False, True])
def test_what_is_missed_costs_no_more_than_is_tolerated(plus):
  """Where pruning is most unwise, policies are as good as without it, because windows are gone back on."""
  game, found = game_of("leduc"), {}
  for tolerance in (0.01, math.inf):
    unwise = often("best_response", margin=0.1, caution=0.0, tolerance=tolerance)
    solver = pruned(game, unwise, plus)
    solver.run(1000)
    found[tolerance] = solver.nash_conv()
  plain = unpruned(game, plus)
  plain.run(1000)
  assert found[0.01] < 1.5 * plain.nash_conv()
  assert found[math.inf] > 10 * found[0.01]


def test_reading_changes_nothing():
  game = game_of("leduc")
  solver, other = pruned(game, daring()), pruned(game, daring())
  for _ in range(6):
    solver.run(17)
    other.run(17)
    solver.nash_conv()
    solver.average_policy()
    assert solver.active_share <= 1
  for name, value in solver.state_dict().items():
    assert np.array_equal(value, other.state_dict()[name]), name


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("rule", ["best_response", "partial"])
def test_every_form_works_or_is_refused(form, rule):
  game = form.compiled
  too_many = game.num_players > 2 and rule != "partial"
  parts = form.is_vector and (rule == "partial" or not form.is_whole_in_float64)
  if too_many or parts or form.buckets is not None:
    with pytest.raises(errors.PruningError, match="take no pruning"):
      pruned(game, rule)
    return
  solver = pruned(game, daring(rule))
  solver.run(100)
  by_dict = spiel_cfr.nash_conv(game, solver.average_policy_dict())
  assert solver.nash_conv() == pytest.approx(by_dict, abs=1e-9)


def test_what_is_refused():
  for arguments in (
    {"rule": "all"},
    {"margin": -1.0},
    {"margin": math.nan},
    {"shortest": 0},
    {"longest": 0},
    {"shortest": 6, "longest": 5},
    {"worthwhile": -0.1},
  ):
    with pytest.raises(errors.ArgumentError):
      Pruning(**arguments)
  with pytest.raises(errors.ArgumentError, match="'best_response'"):
    spiel_cfr.CFRSolver("kuhn_poker", pruning="no such rule")
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker", pruning="regret")
  with pytest.raises(errors.RestartError):
    spiel_cfr.Restarted(solver)
  with pytest.raises(errors.LockError, match="without pruning"):
    solver.lock(solver.average_policy_dict())
  with pytest.raises(errors.WarmStartError):
    solver.warm_start(solver.average_policy_dict())
  with pytest.raises(errors.PruningError, match="tapered"):
    solver.with_tapered_average()
  with pytest.raises(errors.PruningError, match="correlated=False"):
    spiel_cfr.TabularCFRSolver("kuhn_poker", False, correlated=True, pruning="partial")
  state = solver.state_dict()
  state["_pruned"] = np.ones_like(state["_pruned"])
  with pytest.raises(errors.CheckpointMismatchError, match="pruned"):
    solver.load_state_dict(state)


@pytest.mark.parametrize(
  ("make", "rule", "reason"),
  [
    (spiel_cfr.DCFRSolver, "regret", "beta <= 0"),
    (spiel_cfr.DCFRSolver, "partial", "discounts"),
    (functools.partial(spiel_cfr.DCFRSolver, beta=0.5), "best_response", "beta=1"),
    (functools.partial(spiel_cfr.LCFRSolver), "partial", "discounts"),
    (functools.partial(spiel_cfr.DCFRPlusSolver, alpha=0.0), "regret", "forgets positive"),
    (
      functools.partial(spiel_cfr.TabularCFRSolver, linear_averaging=True),
      "regret",
      "fade otherwise",
    ),
    (
      functools.partial(PruningSolver, minimizer=Hedge()),
      "regret",
      "no cumulative regrets",
    ),
    (functools.partial(PruningSolver, minimizer=Hedge()), "partial", "steps"),
    (
      functools.partial(PruningSolver, minimizer=RegretMatching.discounted_plus(predictive=True)),
      "best_response",
      "no cumulative regrets",
    ),
    (
      functools.partial(PruningSolver, minimizer=RegretMatching(), average_weights=Power(0.0, 10)),
      "best_response",
      "weigh nothing",
    ),
  ],
)
def test_minimizers_for_which_it_is_not_sound_are_refused_by_name(make, rule, reason):
  with pytest.raises(errors.PruningError, match=reason) as caught:
    make(game="kuhn_poker", pruning=rule)
  assert "CFRPlusSolver" in str(caught.value)


PLAYERS = {
  **{name: GAMES[name] for name in EVERY},
  "three players": lambda: random_games.random_game(4, num_players=3, max_histories=300),
  "general-sum": lambda: random_games.random_game(3, zero_sum=False, max_histories=200),
}


@pytest.mark.parametrize("name", PLAYERS)
@pytest.mark.parametrize("alternating", [False, True])
def test_partial_pruning_changes_no_bit(name, alternating):
  """Strategies, regrets and averages; the whole game is in leaf rows."""
  game = spiel_cfr.compile_game(PLAYERS[name]())
  pruning, windows = often("partial"), 0
  for minimizer, weights in (
    (RegretMatching(), 0.0),
    (RegretMatching.plus(), 1.0),
    (RegretMatching.predictive_plus(), 2.0),
  ):
    options = {"alternating_updates": alternating, "average_weights": weights}
    solver = PruningSolver(game, minimizer, pruning=pruning, **options)
    plain = FullWidthSolver(solver._rule.game, minimizer, **options)
    for _ in range(30):
      solver.run(10)
      plain.run(10)
      windows += solver.num_pruned > 0
      for each in ("_strategy", "_cumulative", "_state"):
        assert getattr(solver, each).tobytes() == getattr(plain, each).tobytes()
  assert windows > 4 or name == "leduc"


def test_a_wrong_guess_is_gone_back_on(monkeypatch):
  """Also one that nobody would make: that nothing is played but the first action."""
  game = game_of("random 5")
  solver = pruned(game, "partial")
  plain = spiel_cfr.CFRPlusSolver(solver._rule.game)
  guesses = []

  def guess(self, solver, length):
    later = np.concatenate([rows[1:].ravel() for rows, _ in tree.blocks()])
    solver._pruned[:] = False
    solver._pruned[later] = solver._strategy[later] == 0
    guesses.append(int(solver._pruned.sum()))
    return True

  tree = game.treeplexes[0]
  monkeypatch.setattr(type(solver._rule), "decide", guess)
  for _ in range(20):
    solver._epoch_end = solver.iteration
    solver.run(25)
    plain.run(25)
    assert solver._strategy.tobytes() == plain._strategy.tobytes()
    assert solver._cumulative.tobytes() == plain._cumulative.tobytes()
  assert max(guesses)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
  ("cls", "arguments"),
  [
    (spiel_cfr.LCFRSolver, {}),
    (spiel_cfr.PCFRPlusSolver, {}),
    (spiel_cfr.DCFRPlusSolver, {}),
    (spiel_cfr.DCFRSolver, {"beta": 1.0, "gamma": 1.0}),
  ],
)
def test_other_solvers_prune_too(cls, arguments, rule):
  """With nothing left alone the iterates are the same; with pruning it is about as good."""
  game = game_of("liar's dice")
  plain = cls(game, **arguments)
  noted = cls(game, **arguments, pruning=Pruning(rule, margin=math.inf))
  solver = cls(game, **arguments, pruning=often(rule))
  noted.run(60)
  plain.run(60)
  np.testing.assert_allclose(
    noted.current_sequence_form(), plain.current_sequence_form(), atol=1e-9
  )
  plain.run(440)
  share = 1.0
  for _ in range(10):
    solver.run(50)
    share = min(share, solver.active_share)
  assert share < 0.7
  assert solver.exploitability() < 2 * plain.exploitability() + 1e-5


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["random 2", "random 5"])
def test_until_something_comes_back_iterates_are_the_same(name, rule):
  """In sound windows."""
  game = game_of(name)
  sound = often(rule, certain=True)
  solver, plain = pruned(game, sound, False), unpruned(game, False)
  compared = 0
  for _ in range(200):
    before = solver._pruned.copy()
    for each in (solver, plain):
      each.run(1)
    if (before & ~solver._pruned).any():
      break
    compared += int(solver.num_pruned > 0)
    # Where somebody plays to, and that is all that the other player sees.
    np.testing.assert_allclose(
      solver.current_sequence_form(), plain.current_sequence_form(), atol=1e-9
    )
  assert compared


def test_what_has_to_be_held_falls():
  game, held = game_of("liar's dice"), {}
  for rule in (None, "partial", *RULES):
    solver = pruned(game, often(rule) if rule else None)
    before = solver.held_bytes
    solver.run(600)
    assert (solver.num_pruned > 0) == (rule is not None)
    held[rule] = solver.held_bytes / before
    copy.copy(solver).run(10)
  assert held[None] == held["partial"] == 1
  assert held["best_response"] < held["regret"] < 0.95


@pytest.mark.parametrize("rule", ["partial", *RULES])
def test_where_nothing_is_to_be_decided_nothing_is_left_alone(rule):
  forced = 'p "" 1 1 "alone" { "a" } 0 p "" 2 1 "likewise" { "a" } 0 t "" 1 "" { 1 -1 }'
  game = spiel_cfr.compile_game(
    pyspiel.load_efg_game(f'EFG 2 R "forced" {{ "0" "1" }} "" {forced}')
  )
  solver = pruned(game, often(rule))
  solver.run(100)
  assert (solver.num_pruned, solver.active_share, solver.nash_conv()) == (0, 1.0, 0.0)
  assert solver.held_bytes == 0


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("name", ["liar's dice", "random 2", "leduc"])
def test_what_need_not_be_held_is_never_looked_at(name, plus):
  """Whatever stands there below what best-response pruning leaves alone, all goes on bit for bit."""
  game, rng, forgotten = game_of(name), np.random.default_rng(3), 0
  solver, plain = (pruned(game, daring(), plus) for _ in range(2))
  for _ in range(20):
    for each in (solver, plain):
      each.run(9)
    dropped = rows_at(game, np.ones(game.num_infosets, bool)) & ~solver._pruned
    dropped &= find_kept(game, solver._pruned).place == NOWHERE
    dropped[game.decisions.forced] = False
    for tree in game.treeplexes:
      for sequences, infosets in tree.blocks():
        gone = dropped[sequences[0]]
        solver._local[0, tree.first_infoset :][infosets][gone] = 1e6 * rng.standard_normal(
          gone.sum()
        )
        solver._strategy[sequences[:, gone]] = rng.dirichlet(np.ones(len(sequences)), gone.sum()).T
    solver._state[0][dropped] = 1e6 * rng.standard_normal(dropped.sum())
    forgotten += int(dropped.sum())
    assert solver.average_probabilities().tobytes() == plain.average_probabilities().tobytes()
    np.testing.assert_array_equal(solver.current_sequence_form(), plain.current_sequence_form())
  again, expected = looked_at_again(solver), looked_at_again(plain)
  for array, other in zip(
    (again._cumulative, again._state[0], again._strategy, again._local[0]),
    (expected._cumulative, expected._state[0], expected._strategy, expected._local[0]),
    strict=True,
  ):
    np.testing.assert_array_equal(array, other)
  assert forgotten


def test_windows_take_longer_than_their_opening_but_are_a_tenth_of_all_so_far_at_most():
  rule = make_rule(game_of("leduc"), Pruning(longest=10**6))
  long_ago, left = 10**6, rule.work // 4
  assert rule.length(0, rule.work) == rule.length(long_ago, rule.work) == rule.shortest
  assert rule.shortest * rule.work >= 5 * rule.opening_work > (rule.shortest - 1) * rule.work
  assert rule.length(long_ago, left) == pytest.approx(4 * rule.shortest, rel=0.01)
  assert rule.length(20 * rule.shortest, left) == 2 * rule.shortest
  assert rule.length(long_ago) == long_ago // 10
  for constants in ({"longest": 3}, {"shortest": 3, "longest": 3}):
    assert make_rule(game_of("leduc"), Pruning(**constants)).length(long_ago, left) == 3
