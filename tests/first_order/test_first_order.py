"""First-order methods satisfy their proven bounds and their definitions."""

import functools
import math

import numpy as np
import pyspiel
import pytest
import random_games
from rotation import rotated

import spiel_cfr
from spiel_cfr import errors

PLAIN = {
  "kuhn_poker": lambda: "kuhn_poker",
  "leduc_poker": lambda: "leduc_poker",
  "random": lambda: random_games.random_game(2, max_histories=200),
  "one player is idle": lambda: random_games.random_game(5, idle_player=True, max_histories=60),
  "constant sum": lambda: pyspiel.create_matrix_game([[3.0, 1.0], [0, 2]], [[2.0, 4.0], [5, 3]]),
}
KINDS = [("entropy", "farina2021"), ("entropy", "kroer2017"), ("euclidean", "kroer2017")]


@functools.cache
def game(name):
  return spiel_cfr.compile_game(PLAIN[name]())


def close_to_zero(compiled):
  low, high = compiled.payoff_range
  return 1e-11 * (high - low)


@rotated("name,regularizer,weights,aggressive", list(PLAIN), KINDS, [False, True])
def test_the_excess_is_never_negative(name, regularizer, weights, aggressive):
  compiled = game(name)
  solver = spiel_cfr.first_order.ExcessiveGapSolver(compiled, aggressive, regularizer, weights)
  rounding = close_to_zero(compiled)
  bounds = [solver.bound]
  for iteration in range(1, 61):
    solver.run(1)
    excess = solver.excess()
    assert excess >= -rounding, iteration
    assert solver.nash_conv() <= solver.bound - excess + rounding
    bounds.append(solver.bound)
  assert bounds == sorted(bounds, reverse=True)
  if not aggressive:
    assert min(solver.distance.diameters) == 0 or bounds[60] == pytest.approx(
      solver.coupling * math.sqrt(math.prod(solver.distance.diameters)) * (2 / 61 + 2 / 62)
    )


@rotated("name,regularizer,weights,aggressive", list(PLAIN), KINDS, [False, True])
def test_mirror_prox_keeps_its_bound(name, regularizer, weights, aggressive):
  compiled = game(name)
  solver = spiel_cfr.first_order.MirrorProxSolver(compiled, aggressive, regularizer, weights)
  assert solver.bound == math.inf
  for iteration in range(1, 61):
    solver.run(1)
    assert solver.nash_conv() <= solver.bound + close_to_zero(compiled), iteration
  if not aggressive:
    area = math.prod(diameter or 1 for diameter in solver.distance.diameters)
    assert solver.bound == pytest.approx(2 * solver.coupling * math.sqrt(area) / 60)


@pytest.mark.quick(except_for=["egt_as"])
@pytest.mark.parametrize("name", ["egt", "egt_as", "mirror_prox_as", "domwu", "komwu"])
def test_gaps_fall_like_one_over_t(name):
  solver = spiel_cfr.catalogue.make(name, game("kuhn_poker"), 1600)
  gaps = []
  for horizon in (400, 1600):
    solver.run(horizon - solver.iteration)
    gaps.append(solver.nash_conv())
  # A quarter, give or take what theory leaves open; CFR's T^(-1/2) would be a half.
  assert gaps[1] < 0.36 * gaps[0]


def test_aggressive_steps_pay():
  plain, aggressive = (
    spiel_cfr.first_order.ExcessiveGapSolver(game("leduc_poker"), aggressive)
    for aggressive in (False, True)
  )
  for solver in (plain, aggressive):
    solver.run(200)
  assert aggressive.nash_conv() < plain.nash_conv() / 20
  assert aggressive.bound < plain.bound / 20
  # Three gradients a step, and two to look at the excess.
  assert plain.num_gradients == 602
  assert 5 * 200 < aggressive.num_gradients < 7 * 200


def pure_strategies(compiled, tree):
  """Yields the sequence forms of a player's reduced pure strategies, shape (sequences of the player,)."""
  infosets = [
    (block[:, i], int(tree.parent[own.start + i]))
    for block, own in tree.infoset_groups()
    for i in range(block.shape[1])
  ]

  def extend(reached, rest):
    if not rest:
      yield reached
      return
    (actions, parent), *more = rest
    if parent not in reached:
      yield from extend(reached, more)
      return
    for action in actions:
      yield from extend(reached | {int(action)}, more)

  for reached in extend(frozenset([tree.root]), infosets):
    result = np.zeros(compiled.end)
    result[list(reached)] = 1.0
    yield result


@pytest.mark.parametrize("seed", [None, 3, 8])
def test_komwu_is_multiplicative_weights_of_all_pure_strategies(seed):
  source = "kuhn_poker" if seed is None else random_games.random_game(seed, max_histories=30)
  compiled = spiel_cfr.compile_game(source)
  solver = spiel_cfr.first_order.KOMWUSolver(compiled, step=2.0)
  eta = 2.0 / solver.coupling
  vertices = [np.array(list(pure_strategies(compiled, tree))) for tree in compiled.treeplexes]
  assert min(map(len, vertices)) > 1
  sums = np.zeros(compiled.end)
  last = np.zeros(compiled.end)
  for _ in range(10):
    expected = np.zeros(compiled.end)
    for own in vertices:
      scores = eta * own @ (sums + last)
      weights = np.exp(scores - scores.max())
      expected += weights / weights.sum() @ own
    np.testing.assert_allclose(solver.current_sequence_form(), expected, atol=1e-12)
    last = np.zeros(compiled.end)
    for player in range(2):
      compiled.payoff.gradient_into(player, solver.current_sequence_form(), last)
    sums += last
    solver.run(1)


def test_domwu_on_a_matrix_game():
  payoffs = np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -1.0], [-2.0, 1.0, 0.0]])
  source = pyspiel.create_matrix_game(payoffs.tolist(), (-payoffs).tolist())
  solver = spiel_cfr.first_order.OptimisticMirrorDescentSolver(source, step=0.3, weights="one")
  eta = 0.3 / solver.coupling
  centers, points = [np.full(3, 1 / 3)] * 2, [np.full(3, 1 / 3)] * 2

  def moved(center, gradient):
    result = center * np.exp(eta * gradient)
    return result / result.sum()

  # Away from the start, where no deviation gains.
  for _ in range(20):
    gradients = payoffs @ points[1], -payoffs.T @ points[0]
    centers = [moved(*pair) for pair in zip(centers, gradients, strict=True)]
    points = [moved(*pair) for pair in zip(centers, gradients, strict=True)]
    solver.run(1)
    current = solver.current_sequence_form()
    for player, tree in enumerate(solver.compiled_game.treeplexes):
      found = current[next(tree.infoset_groups())[0][:, 0]]
      np.testing.assert_allclose(found, points[player], atol=1e-12)
  assert np.abs(points[0] - 1 / 3).max() > 0.01


def test_the_last_iterate_of_dogda_converges_linearly():
  solver = spiel_cfr.first_order.OptimisticMirrorDescentSolver(
    game("kuhn_poker"), 0.5, "euclidean", "one"
  )
  solver.run(3000)
  assert spiel_cfr.nash_conv(solver.compiled_game, solver.current_policy()) < 1e-9
  assert solver.nash_conv() > 1e-5


@pytest.mark.parametrize(
  "name",
  ["random", *(pytest.param(n, marks=pytest.mark.slow) for n in ("kuhn_poker", "leduc_poker"))],
)
def test_the_last_iterate_of_rtcfr_converges(name):
  compiled = game(name)
  solver = spiel_cfr.first_order.RTCFRPlusSolver(compiled)
  gaps = []
  for horizon in (100, 10_000):
    solver.run(horizon - solver.iteration)
    gaps.append(spiel_cfr.nash_conv(compiled, solver.current_policy()))
    assert gaps[-1] == pytest.approx(solver.nash_conv(), abs=1e-12)
  assert gaps[0] > 1e-3
  assert gaps[1] < 1e-7
  # CFR+ itself does not.
  plain = spiel_cfr.CFRPlusSolver(compiled)
  plain.run(10_000)
  assert spiel_cfr.nash_conv(compiled, plain.current_policy()) > 1e-5


@pytest.mark.parametrize("name", ["domwu", "komwu", "rtcfr+", "trembling_hand"])
def test_any_number_of_players(name):
  solver = spiel_cfr.catalogue.make(name, "kuhn_poker(players=3)", 500)
  before = solver.nash_conv()
  solver.run(500)
  assert 0 < solver.nash_conv() < before / 2


@pytest.mark.parametrize(
  "solver", [spiel_cfr.first_order.ExcessiveGapSolver, spiel_cfr.first_order.MirrorProxSolver]
)
@pytest.mark.parametrize("players", [2, 3])
def test_saddle_points_only(solver, players):
  source = random_games.random_game(3, players, zero_sum=players == 3, max_histories=60)
  with pytest.raises(errors.UnsupportedGameError, match="Use a solver that minimizes regret"):
    solver(source)


def test_names():
  for name in ("regularizer", "weights"):
    with pytest.raises(errors.ArgumentError, match=f"{name} must be one of"):
      spiel_cfr.first_order.ExcessiveGapSolver("kuhn_poker", **{name: "log"})


@pytest.mark.parametrize(
  "solver", [spiel_cfr.first_order.ExcessiveGapSolver, spiel_cfr.first_order.MirrorProxSolver]
)
def test_words_are_not_booleans(solver):
  with pytest.raises(errors.ArgumentError, match="aggressive must be True or False, not 'no'"):
    solver("kuhn_poker", "no")
  assert solver("kuhn_poker", np.True_).aggressive is True


@pytest.mark.parametrize("regularizer", ["entropy", "euclidean"])
def test_steps_that_are_too_large_are_no_numbers_or_still_strategies(regularizer):
  solver = spiel_cfr.first_order.OptimisticMirrorDescentSolver("kuhn_poker", 1e300, regularizer)
  try:
    solver.run(50)
  except errors.NotFiniteError as error:
    assert "smaller steps" in str(error)
  else:
    assert math.isfinite(solver.nash_conv())


@rotated("name,factor", ["egt_as", "mirror_prox_as", "domwu", "komwu", "rtcfr+"], [1e-6, 1e6])
def test_units_do_not_matter(name, factor):
  rows = np.array([[2.0, -1.0, 0.5], [-1.0, 1.0, 0.0]])
  gaps = []
  for scale in (1.0, factor):
    source = pyspiel.create_matrix_game((scale * rows).tolist(), (-scale * rows).tolist())
    solver = spiel_cfr.catalogue.make(name, source, 30)
    solver.run(30)
    gaps.append(solver.nash_conv() / scale)
  assert gaps[0] == pytest.approx(gaps[1], rel=1e-6)


def test_states_that_are_none():
  solver = spiel_cfr.first_order.ExcessiveGapSolver("kuhn_poker")
  solver.run(3)
  state = solver.state_dict()
  for name, value in (("point", -1.0), ("smoothing", math.nan), ("num_gradients", -1)):
    wrong = dict(state)
    wrong[name] = value if name == "num_gradients" else np.full_like(state[name], value)
    with pytest.raises(errors.CheckpointMismatchError):
      solver.load_state_dict(wrong)


@pytest.mark.parametrize("name", ["point", "cumulative"])
def test_averages_that_are_no_multiple_of_a_sequence_form(name):
  """NashConv of infeasible strategies can be negative."""
  solver = spiel_cfr.first_order.KOMWUSolver("kuhn_poker")
  solver.run(3)
  state = solver.state_dict()
  solver.load_state_dict(state)
  wrong = state[name].copy()
  wrong[np.flatnonzero(wrong)[-1]] *= 2
  with pytest.raises(errors.CheckpointMismatchError, match="sum to that of the sequence above"):
    solver.load_state_dict(state | {name: wrong})
