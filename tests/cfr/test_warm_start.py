"""Warm starts: priced by the identity, steady, refused by name, and in the state."""

import functools
import math

import numpy as np
import pyspiel
import pytest
import random_games
from composition.forms import FORMS
from pruning_games import gap_of_regrets
from rotation import rotated

import spiel_cfr
from spiel_cfr import FullWidthSolver, TabularCFRSolver, catalogue, errors, policies
from spiel_cfr.cfr.substitute_regrets import policy_values, proportional, substitute
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.games.compiled.counterfactual_values import (
  backward_pass,
  expected,
  gradients,
)
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.stable_predictive import check_proof

ITERATIONS = 30
# Unequal numbers of actions, several roots a player, infosets with a single action, a player that may never move.
GAMES = [
  lambda seed=seed: random_games.random_game(seed, max_histories=200, idle_player=seed == 7)
  for seed in (2, 5, 7, 11)
] + [lambda: pyspiel.load_game("leduc_poker")]


@functools.cache
def game_of(number):
  return spiel_cfr.compile_game(GAMES[number]())


@functools.cache
def leduc():
  return spiel_cfr.compile_game("leduc_poker")


def random_policy(game, seed, zeros=0.3):
  """A policy that leaves out some actions, so that some infosets are never reached."""
  rng = np.random.default_rng(seed)
  weights = rng.random(game.end) ** 3 * (rng.random(game.end) > zeros)
  return policies.behavioral_form(game, weights)


def dictionary(game, probabilities):
  return policies.to_dict(game, probabilities)


def weight_of(solver, iterations):
  return float(solver.averaging.weights(np.arange(1, iterations + 1)).sum())


def price_of(game, probabilities, start):
  """Returns the cost of an invented history: values at the roots minus the policy's expected values."""
  found = policy_values(game, probabilities, policies.sequence_form(game, probabilities))
  return found.regrets_at({"substitute": substitute}.get(start.form, proportional), start.scale)[1]


@pytest.mark.parametrize("number", range(len(GAMES)))
@pytest.mark.parametrize("weights", [0.0, 1.0])
def test_the_identity_prices_substitutes_exactly(number, weights):
  """W NashConv(average) = max <R, x> + the price of the history that was made up, 30 iterations later too.

  It is a sum over all infosets, so that none may be left out.
  """
  game = random_games.visiting_all(game_of(number))
  # Linear CFR, the regrets of which, times t, are the sum of weighted ones.
  minimizer = RegretMatching() if not weights else RegretMatching.discounted(1.0, 1.0)
  for seed, iterations in ((0, 1), (1, 7), (2, 1000)):
    solver = FullWidthSolver(
      game, minimizer, alternating_updates=False, averaging=spiel_cfr.Averaging(weights)
    )
    given = random_policy(game, seed)
    start = solver.warm_start(dictionary(game, given), iterations, "substitute")
    first, price = weight_of(solver, iterations), price_of(game, given, start)
    for _ in range(2):
      t = solver.iteration
      total = weight_of(solver, t)
      regrets = solver.state.action_state[0] * t**weights
      found = gap_of_regrets(game, regrets) + first * price
      low, high = game.payoff_range
      assert total * solver.nash_conv() == pytest.approx(
        found, rel=1e-9, abs=1e-9 * total * (high - low)
      )
      solver.run(ITERATIONS)


@rotated(
  "number,minimizer,weights,form,alternating",
  range(len(GAMES)),
  [
    (RegretMatching(), 0.0, "proportional"),
    (RegretMatching.plus(), 1.0, "substitute"),
    (RegretMatching.plus(), 1.0, "proportional"),
    (RegretMatching(forgets_negative=True, prediction=1.0), 2.0, "proportional"),
    (RegretMatching.discounted(1.0, 0.0), 1.0, "proportional"),
    (RegretMatching.discounted(1.0, 0.0), 1.0, "substitute"),
  ],
  [False, True],
)
def test_the_identity_bounds_minimizers_that_forget(number, minimizer, weights, form, alternating):
  """Rounded-up regrets and alternating updates satisfy the identity as an inequality."""
  if alternating and minimizer.prediction:
    pytest.skip("Only what never steps downhill may alternate for nothing.")
  game = game_of(number)
  for seed, iterations in ((0, 3), (1, 50)):
    solver = FullWidthSolver(
      game,
      minimizer,
      alternating_updates=alternating,
      averaging=spiel_cfr.Averaging(weights, "faced"),
    )
    given = random_policy(game, seed, 0.0)
    start = solver.warm_start(dictionary(game, given), iterations, form)
    first, price = weight_of(solver, iterations), price_of(game, given, start)
    for _ in range(2):
      t = solver.iteration
      found = t**weights * gap_of_regrets(game, solver.state.action_state[0]) + first * price
      assert weight_of(solver, t) * solver.nash_conv() <= found * (1 + 1e-9) + 1e-9
      solver.run(ITERATIONS)


@pytest.mark.parametrize("number", range(len(GAMES)))
def test_substitutes_satisfy_their_definition(number):
  game = game_of(number)
  probabilities = random_policy(game, 3)
  found = policy_values(game, probabilities, policies.sequence_form(game, probabilities))
  # At c = 0 the values are those of best responses, and the sum at the roots is NashConv.
  wanted = spiel_cfr.nash_conv(game, dictionary(game, probabilities))
  assert found.regrets_at(substitute, 0.0)[1] == pytest.approx(wanted, abs=1e-12)
  assert found.nash_conv == pytest.approx(wanted, abs=1e-12)
  scale = found.least_scale(substitute)
  regrets, price = found.regrets_at(substitute, scale)
  assert abs(price) < 1e-9
  for tree in game.treeplexes:
    own = found.weights[0, tree.first_infoset : tree.first_infoset + tree.num_infosets]
    for sequences, infosets in tree.infoset_groups():
      squares = (np.maximum(regrets[sequences], 0) ** 2).sum(axis=0)
      expected = scale * own[infosets] ** 2 * len(sequences)
      np.testing.assert_allclose(squares, expected, rtol=1e-9, atol=1e-15)
      # Where the others never lead, there is nothing to regret.
      assert (regrets[sequences][:, own[infosets] == 0] <= 1e-12).all()
  before = math.inf
  for rho in (0.0, 0.01, 0.1, 1.0):
    price = found.regrets_at(proportional, rho)[1]
    assert price <= before
    before = price


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_gradients_of_every_form(form):
  """Expected values from the gradients are those of the evaluation, and best responses too."""
  game = form.compiled
  rng = np.random.default_rng(0)
  probabilities = policies.behavioral_form(game, rng.random(game.end))
  sequence_form = policies.sequence_form(game, probabilities)
  gradient = gradients(game, sequence_form)
  evaluation = spiel_cfr.evaluation.evaluate.evaluate(game, sequence_form)
  assert expected(game, gradient, sequence_form) == pytest.approx(
    evaluation.expected_values.sum(), abs=1e-9
  )
  carried = backward_pass(game, take_best, gradient)
  np.testing.assert_allclose(carried, evaluation.best_response_values, atol=1e-9)


def test_the_scale_is_steady_on_leduc():
  """t c* is that of a prototype, in digits that it printed; so T = 0.03 / c* finds about t."""
  wanted = {10: 0.018, 30: 0.025, 100: 0.031, 300: 0.031, 1000: 0.033}
  solver = TabularCFRSolver(leduc(), alternating_updates=False)
  for t, steady in wanted.items():
    solver.run(t - solver.iteration)
    warm = TabularCFRSolver(leduc(), alternating_updates=False)
    start = warm.warm_start(solver)
    assert t * start.scale == pytest.approx(steady, abs=6e-4)
    assert start.iterations == pytest.approx(t, rel=0.75)


def test_the_table_of_leduc():
  """Exploitability after 10 to 900 more iterations from the average at 30, as a prototype in NumPy had them."""
  wanted = [0.297, 0.241, 0.136, 0.068, 0.039]
  solver = TabularCFRSolver(leduc(), alternating_updates=False)
  solver.run(30)
  warm = TabularCFRSolver(leduc(), alternating_updates=False)
  warm.warm_start(solver.average_policy(), 30)
  found = []
  for more in (10, 30, 100, 300, 900):
    warm.run(30 + more - warm.iteration)
    found.append(warm.exploitability())
  np.testing.assert_allclose(found, wanted, atol=6e-4)


def iterations_to(solver, target, limit=900):
  first = solver.iteration
  while solver.exploitability() > target:
    solver.run(5)
    assert solver.iteration <= limit + first
  return solver.iteration - first


def test_it_pays_for_cfr_in_turn():
  """CFR with alternating updates converges about like 1 / t; with T = 0.03 / c* it was slower than from scratch."""
  source = spiel_cfr.CFRSolver(leduc())
  source.run(300)
  target = source.exploitability() / 2
  warm = spiel_cfr.CFRSolver(leduc())
  start = warm.warm_start(source)
  assert start.form == "substitute"
  assert start.iterations == round(math.sqrt(0.03 / start.scale)) == 39
  assert iterations_to(warm, target) < 0.6 * iterations_to(spiel_cfr.CFRSolver(leduc()), target)


def test_it_pays_for_cfr_plus():
  """From CFR's 1,000th average, three targets take less than three quarters of the iterations."""
  source = TabularCFRSolver(leduc(), alternating_updates=False)
  source.run(1000)
  for target in (1e-2, 2e-3, 5e-4):
    warm = spiel_cfr.CFRPlusSolver(leduc())
    start = warm.warm_start(source, keep_average=False)
    assert start.form == "proportional"
    assert start.iterations == 30
    cold = spiel_cfr.CFRPlusSolver(leduc())
    assert iterations_to(warm, target) < 0.75 * iterations_to(cold, target)


def test_from_an_equilibrium():
  """At an equilibrium the root is 0: the policy counts for many iterations, and stays as good."""
  solved = spiel_cfr.solve(leduc(), exploitability=1e-12)
  for name in ("cfr", "cfr+"):
    solver = catalogue.make(name, leduc(), 100)
    start = solver.warm_start(solved.policy)
    assert start.iterations >= 1000
    assert solver.exploitability() < 1e-11
    solver.run(10)
    assert solver.exploitability() < 5e-3, name


@pytest.mark.parametrize("name", ["cfr+", "restarted", "adaptive", "hedge"])
def test_all_sources_of_a_policy_are_one(name):
  game = leduc()
  source = spiel_cfr.CFRSolver(game)
  source.run(20)
  # Made by another walk of the game.
  other = spiel_cfr.CFRSolver("leduc_poker")
  other.run(20)
  states = []
  for given in (
    source,
    other,
    source.average_policy(),
    source.tabular_average_policy(),
    source.average_policy_dict(),
  ):
    solver = catalogue.make(name, game, 100)
    solver.run(3)  # What it has done before is forgotten.
    solver.warm_start(given)
    solver.run(10)
    states.append(solver.average_sequence_form())
  for state in states[1:]:
    np.testing.assert_allclose(state, states[0], atol=1e-9)


def test_the_current_policy_is_the_one_given():
  game = leduc()
  given = random_policy(game, 5)
  for name in ("cfr+", "dcfr", "pdcfr+", "adaptive"):
    solver = catalogue.make(name, game, 100)
    solver.warm_start(dictionary(game, given), 40, "proportional")
    np.testing.assert_allclose(solver.current_probabilities(), given, atol=1e-12)
    assert solver.nash_conv() == pytest.approx(spiel_cfr.nash_conv(game, dictionary(game, given)))
    assert (solver.iteration, solver.warm_iterations, solver.nodes_touched) == (40, 40, 0)


def test_refusals_change_nothing():
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker")
  solver.run(5)
  before = solver.state_dict()
  uniform = spiel_cfr.CFRSolver("kuhn_poker").average_policy_dict()
  for arguments, error, message in (
    ((spiel_cfr.CFRSolver(leduc()),), errors.PolicyError, "for another game"),
    ((uniform | {"0": {0: math.nan, 1: 1.0}},), errors.PolicyError, "non-negative and sum to 1"),
    ((uniform | {"0": {0: 0.7, 1: 0.7}},), errors.PolicyError, "sum to 1"),
    ((uniform, 0), errors.ArgumentError, "iterations"),
    ((uniform, 10**7), errors.ArgumentError, "iterations"),
    ((uniform, None, "warm"), errors.ArgumentError, "'substitute', 'proportional'"),
    ((None,), errors.PolicyError, "not a policy"),
  ):
    with pytest.raises(error, match=message):
      solver.warm_start(*arguments)
    for name, value in solver.state_dict().items():
      np.testing.assert_array_equal(value, before[name])
  adaptive = catalogue.make("adaptive", "kuhn_poker", 10)
  with pytest.raises(errors.WarmStartError, match=r"form 'substitute'.*'proportional'.*form=None"):
    adaptive.warm_start(uniform, form="substitute")
  stable = catalogue.make("stable_predictive", "kuhn_poker", 10)
  with pytest.raises(errors.WarmStartError, match=r"can't start warm.*kernel `resume`"):
    stable.warm_start(uniform)
  constant = catalogue.make("stable_predictive_x10000", "kuhn_poker", 10)
  constant.warm_start(uniform)
  with pytest.raises(errors.WarmStartError, match=r"solver\.reset\(\)"):
    check_proof(constant)


def test_an_array_is_a_policy():
  source, solver, other = (spiel_cfr.CFRPlusSolver("kuhn_poker") for _ in range(3))
  source.run(20)
  probabilities = source.average_probabilities()
  solver.warm_start(probabilities)
  other.warm_start(source.average_policy())
  for each in (solver, other):
    each.run(5)
  assert np.array_equal(solver.average_probabilities(), other.average_probabilities())
  for wrong in (probabilities[:-1], 2 * probabilities, np.full_like(probabilities, np.nan)):
    with pytest.raises(errors.PolicyError, match="behavioral form"):
      solver.warm_start(wrong)
