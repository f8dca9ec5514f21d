"""Payoffs that are linear in parameters: values by bet size, derivatives, transfers."""

import copy
import functools
import pickle

import numpy as np
import pyspiel
import pytest
import random_games
from open_spiel.python.algorithms import exploitability
from scipy import optimize

import spiel_cfr
from spiel_cfr import TabularCFRSolver, errors, policies
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, gradients
from spiel_cfr.games.sequence_form.blocks import block_kernel, expected_value, vector_starts
from spiel_cfr.parametric_games import kuhn_bets, leduc_bets, linear_game, optimize_parameters


@functools.cache
def kuhn():
  return linear_game("kuhn_poker", kuhn_bets)


@functools.cache
def leduc():
  return linear_game("leduc_poker", leduc_bets)


def random_components(state):
  """Player 0's returns change with the last and with the number of actions; the game stays zero-sum."""
  history = state.history()
  own = np.array([state.returns()[0], (history[-1] % 3) / 2, len(history) / 5 - 0.3])
  return np.stack([own, -own], axis=1)


@functools.cache
def random_linear_game(seed):
  return linear_game(random_games.random_game(seed, max_histories=120), random_components)


def value_by_linear_program(game):
  """Player 0's value: the sequence-form program, solved by another library."""
  first, second = game.treeplexes
  own, (others,), payoffs = game.payoff.leaves(0)
  matrix = np.zeros((first.end - first.root, second.end - second.root))
  np.add.at(matrix, (own - first.root, others - second.root), payoffs)

  def constraints(tree):
    rows = [np.zeros(tree.end - tree.root)]
    rows[0][0] = 1.0
    for sequences, infosets in tree.infoset_groups():
      for column, parent in zip(sequences.T, tree.parent[infosets], strict=True):
        row = np.zeros(tree.end - tree.root)
        row[column - tree.root], row[int(parent) - tree.root] = 1.0, -1.0
        rows.append(row)
    return np.array(rows)

  # max over x and free q of q[0], where for every sequence of player 1: (F' q) <= A' x.
  mine, theirs = constraints(first), constraints(second)
  count = matrix.shape[0]
  goal = np.zeros(count + len(theirs))
  goal[count] = -1.0
  solved = optimize.linprog(
    goal,
    A_ub=np.hstack([-matrix.T, theirs.T]),
    b_ub=np.zeros(matrix.shape[1]),
    A_eq=np.hstack([mine, np.zeros((len(mine), len(theirs)))]),
    b_eq=np.eye(len(mine))[0],
    bounds=[(0, None)] * count + [(None, None)] * len(theirs),
  )
  assert solved.status == 0
  return -solved.fun


@pytest.mark.parametrize(("bet", "value"), [(0.5, -1 / 60), (1, -1 / 18), (1.5, -1 / 28), (2, 0)])
def test_kuhn_by_bet_size(bet, value):
  game = kuhn()([bet])
  solution = spiel_cfr.solve(game, exploitability=1e-11)
  assert solution.expected_values[0] == pytest.approx(value, abs=1e-10)
  assert value_by_linear_program(game) == pytest.approx(value, abs=1e-10)


def test_leduc_by_bet_size():
  """Values and derivatives of a prototype, in the digits that it printed."""
  for sizes, value in (
    ((2, 4), -0.0856),
    ((4, 4), -0.0535),
    ((4, 8), -0.0312),
    ((5, 12), -0.0006),
    ((7, 16), 0.0221),
  ):
    solution = spiel_cfr.solve(
      leduc()([*sizes, 2, 4]), exploitability=1e-7 if sizes == (2, 4) else 2e-5
    )
    assert solution.expected_values[0] == pytest.approx(value, abs=6e-5)
    if sizes == (2, 4):
      assert solution.expected_values[0] == pytest.approx(-0.0856064241, abs=1e-7)
      slopes = leduc().values(solution.sequence_form)[1:, 0].reshape(2, 2).sum(axis=0)
      np.testing.assert_allclose(slopes, [0.009097, -0.016733], atol=1e-4)


def test_the_base_is_open_spiels_game():
  for game, parameters in ((kuhn(), [1.0]), (leduc(), [2.0, 4.0, 2.0, 4.0])):
    same = game(parameters)
    uniform = policies.uniform(same)
    x = policies.sequence_form(same, uniform)
    np.testing.assert_allclose(gradients(same, x), gradients(game.base, x), atol=1e-12)
    assert (same.payoff_range, same.constant_sum) == (game.base.payoff_range, 0.0)


@pytest.mark.parametrize("seed", [2, 4, 9])
def test_the_envelope_is_the_difference_of_linear_programs(seed):
  game, here = random_linear_game(seed), np.array([0.7, -0.4])
  solution = spiel_cfr.solve(game(here), exploitability=1e-11, iterations=40_000)
  slopes = game.values(solution.sequence_form)[1:, 0]
  assert game.values(solution.sequence_form)[:, 0] @ [1, *here] == pytest.approx(
    solution.expected_values[0], abs=1e-9
  )
  for number, slope in enumerate(slopes):
    # An equilibrium need not be unique where the value has a kink: then the slope is between the one-sided ones.
    step = 1e-4 * np.eye(2)[number]
    middle = value_by_linear_program(game(here))
    left = (middle - value_by_linear_program(game(here - step))) / 1e-4
    right = (value_by_linear_program(game(here + step)) - middle) / 1e-4
    assert min(left, right) - 1e-5 <= slope <= max(left, right) + 1e-5


@block_kernel
def take_value(block):
  """The value of an infoset is that of its strategy; state = utility - value."""
  for i in vector_starts(block):
    expected_value(block, i)
  for action in range(block.actions):
    for i in range(block.size):
      at = block.first + action * block.stride + i
      block.action_state[0, at] = block.utility[at] - block.value[i]


@pytest.mark.parametrize("seed", [2, 4])
def test_regrets_of_components_add_up(seed):
  """For the same play, sum theta_k R_k are the regrets in the game at theta, the basis of transfer."""
  game, rng = random_linear_game(seed), np.random.default_rng(0)
  there = [0.3, 1.7]

  def regrets(compiled, strategy):
    state = np.zeros((1, compiled.end))
    gradient = gradients(compiled, policies.sequence_form(compiled, strategy))
    backward_pass(compiled, take_value, gradient, strategy=strategy.copy(), state=state)
    return state[0]

  for _ in range(5):
    strategy = policies.uniform(game.base)
    strategy[:] = policies.behavioral_form(game.base, rng.random(game.base.end))
    corners = [regrets(game(each), strategy) for each in ([0, 0], [1, 0], [0, 1])]
    added = corners[0] + sum(
      factor * (corner - corners[0]) for factor, corner in zip(there, corners[1:], strict=True)
    )
    np.testing.assert_allclose(added, regrets(game(there), strategy), atol=1e-12)


@pytest.mark.parametrize("alternating", [True, False])
def test_regrets_of_the_same_play(alternating):
  """In the game itself nothing changes; in another, the first strategy is that of the transferred regrets."""
  bets = linear_game("kuhn_poker", kuhn_bets)
  solver = spiel_cfr.TabularCFRSolver(bets([1.0]), alternating_updates=alternating)
  solver.run(40)
  same = spiel_cfr.cfr.transfer(solver, bets([1.0]), 40, rule="regrets")
  np.testing.assert_allclose(same.cumulative_regrets(), solver.cumulative_regrets(), atol=1e-12)
  for each in (same, solver):
    each.run(30)
  np.testing.assert_allclose(
    same.average_probabilities(), solver.average_probabilities(), atol=1e-12
  )
  # Regrets are linear in the payoffs, and halved by counting for half as many iterations.
  regrets = [
    spiel_cfr.cfr.transfer(solver, bets([bet]), 35, rule="regrets").cumulative_regrets()
    for bet in (1.0, 1.5, 2.0)
  ]
  np.testing.assert_allclose(regrets[0] + regrets[2], 2 * regrets[1], atol=1e-12)
  np.testing.assert_allclose(2 * regrets[0], solver.cumulative_regrets(), atol=1e-12)
  bounded = spiel_cfr.cfr.transfer(solver, bets([2.0]), rule="regrets")
  assert 1 <= bounded.warm_iterations <= 70


def test_regrets_that_cannot_be_transferred():
  bets = linear_game("kuhn_poker", kuhn_bets)
  game, plus = bets([1.0]), spiel_cfr.CFRPlusSolver(bets([1.0]))
  plus.run(3)
  with pytest.raises(errors.WarmStartError, match="only CFR that was run from scratch can"):
    spiel_cfr.cfr.transfer(plus, game, rule="regrets")
  warm = spiel_cfr.CFRSolver(game)
  warm.warm_start(plus)
  with pytest.raises(errors.WarmStartError, match="from scratch"):
    spiel_cfr.cfr.transfer(warm, game, rule="regrets")
  locked = spiel_cfr.CFRSolver(game)
  locked.lock({"0": {0: 0.7, 1: 0.3}})
  locked.run(3)
  with pytest.raises(errors.WarmStartError, match="changed or locked"):
    spiel_cfr.cfr.transfer(locked, game, rule="regrets")
  plain = spiel_cfr.CFRSolver(game)
  plain.run(3)
  with pytest.raises(errors.ArgumentError, match="takes no form"):
    spiel_cfr.cfr.transfer(plain, game, form="substitute", rule="regrets")
  with pytest.raises(errors.ArgumentError, match="'policy', 'regrets'"):
    spiel_cfr.cfr.transfer(plain, game, rule="paper")


def test_transfer():
  """From sizes 2, 4 to 3, 3, as a prototype had it; 30 iterations from scratch are much worse than 30 after it."""
  solver = TabularCFRSolver(leduc()([2, 4, 2, 4]), alternating_updates=False)
  solver.run(300)
  other = leduc()([3, 3, 3, 3])
  moved = spiel_cfr.cfr.transfer(solver, other)
  assert moved.description() == solver.description()
  assert not moved.alternating_updates
  assert moved.compiled_game is other
  assert moved.iteration == pytest.approx(32, abs=1)
  found = [moved.exploitability()]
  for more in (30, 100, 300):
    moved.run(more + 32 - moved.iteration)
    found.append(moved.exploitability())
  np.testing.assert_allclose(found, [0.258, 0.164, 0.087, 0.046], rtol=0.05)
  cold = TabularCFRSolver(other, alternating_updates=False)
  cold.run(30)
  assert cold.exploitability() > 2 * found[1]


def test_everybody_sees_the_same_returns():
  """Solvers on arrays, samplers on histories and on states, and OpenSpiel's Python functions."""
  game = kuhn()([1.7])
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(50)
  in_python = exploitability.nash_conv(
    game.view.open_spiel_game(), solver.average_policy(), use_cpp_br=False
  )
  assert in_python == pytest.approx(solver.nash_conv(), abs=1e-12)
  on_arrays, on_states = (
    spiel_cfr.ExternalSamplingSolver(each, seed=1, engine=engine)
    for each, engine in ((game, "compiled"), (game, "states"))
  )
  for sampled in (on_arrays, on_states):
    sampled.run(300)
  np.testing.assert_allclose(
    on_states.average_probabilities(), on_arrays.average_probabilities(), atol=1e-9
  )
  for same in (pickle.loads(pickle.dumps(game)), copy.copy(game)):
    assert same.digest == game.digest
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (2, 1, 1, 1):
      state.apply_action(action)
    assert list(same.view.returns(state)) == [2.7, -2.7]
  assert game.digest != kuhn()([1.6]).digest


def test_optimal_bets():
  found = optimize_parameters(leduc(), [2, 4, 2, 4], fixed=(2, 3), length=2.0, steps=25)
  best = max(found, key=lambda step: step.value - step.nash_conv)
  assert best.value > found[0].value + 0.08
  # Each value is that of a policy, certified.
  for step in found[::6]:
    value = spiel_cfr.solve(leduc()(step.parameters), exploitability=1e-6).expected_values[0]
    assert step.value == pytest.approx(value, abs=step.nash_conv + 1e-6)
  assert (best.parameters[2:] == [2, 4]).all()


def test_refusals():
  with pytest.raises(errors.ArgumentError, match="4 finite numbers"):
    leduc()([2, 4])
  with pytest.raises(errors.ArgumentError, match="finite"):
    kuhn()([np.nan])
  with pytest.raises(errors.ArgumentError, match="same shape"):
    linear_game("kuhn_poker", lambda state: [[1.0]])
  with pytest.raises(errors.ArgumentError, match="full-width"):
    spiel_cfr.cfr.transfer(spiel_cfr.ExternalSamplingSolver("kuhn_poker", seed=0), "kuhn_poker")
  with pytest.raises(errors.PolicyError, match="another game"):
    spiel_cfr.cfr.transfer(spiel_cfr.CFRSolver("kuhn_poker"), "leduc_poker")
