"""Each minimizer of the literature against its formulas in plain Python, and against published convergence."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pyspiel
import pytest
from block_driver import run_kernel

import spiel_cfr
from spiel_cfr import RegretMatching, errors
from spiel_cfr._numba.simd import LANES
from spiel_cfr.regret_minimizers import adaptive_mirror_descent, hedge
from spiel_cfr.regret_minimizers.asymmetric_matching import AsymmetricMatching
from spiel_cfr.regret_minimizers.schedules import Discount, FallingPower, Saturating

_COUNT, _ACTIONS, _ROUNDS = 4, 3, 12


def _game():
  return spiel_cfr.compile_game("kuhn_poker")


def _play(minimizer, utilities):
  """Returns the strategies of a block of infosets, shape (rounds + 1, infosets, actions)."""
  game = _game()
  rows = minimizer.parameters(np.arange(1, len(utilities) + 1), game)
  # Rows are padded to whole vectors, and what is there must not matter.
  state = np.full((minimizer.action_lines, _ACTIONS, LANES), 7.0)
  state[..., :_COUNT] = 0
  local = np.zeros((minimizer.infoset_lines, LANES))
  if isinstance(minimizer, hedge.Hedge):
    local[0] = minimizer.rate * math.sqrt(8 * math.log(_ACTIONS)) / np.ptp(game.payoff_range)
  strategy = np.full((_ACTIONS, LANES), 1 / _ACTIONS)
  result = [np.full((_COUNT, _ACTIONS), 1 / _ACTIONS)]
  for row, utility in zip(rows, utilities, strict=True):
    padded = np.full((_ACTIONS, LANES), 7.0)
    padded[:, :_COUNT] = utility.T
    arrays = strategy.ravel(), padded.ravel(), state.reshape(-1, _ACTIONS * LANES), local
    value = run_kernel(minimizer.observe, _COUNT, *arrays, row)
    assert value == pytest.approx((result[-1] * utility).sum(axis=1), rel=1e-12, abs=1e-12)
    if minimizer.predict:
      run_kernel(minimizer.predict, _COUNT, *arrays, row)
    result.append(strategy[:, :_COUNT].T.copy())
  return np.array(result)


def _matched(regret):
  positive = np.maximum(regret, 0)
  total = positive.sum()
  return positive / total if total else np.full(len(regret), 1 / len(regret))


def _d(t, power):
  return t**power / (t**power + 1) if t else 0.0


def _signed(regret, t, alpha, beta):
  return np.where(regret > 0, regret * _d(t, alpha), regret * _d(t, beta))


def _projected(y):
  ordered = np.sort(y)[::-1]
  thresholds = (np.cumsum(ordered) - 1) / np.arange(1, len(y) + 1)
  return np.maximum(y - thresholds[np.flatnonzero(ordered > thresholds)[-1]], 0)


# Each rule is given all utilities up to t, and returns the strategy of iteration t + 1.


def _replayed(update):
  """Makes a rule from an update (memory, t, regrets) -> strategy, replayed from the start."""

  def rule(utilities):
    memory, strategy = {"R": np.zeros(_ACTIONS)}, np.full(_ACTIONS, 1 / _ACTIONS)
    for t, utility in enumerate(utilities, start=1):
      strategy = update(memory, t, utility - strategy @ utility)
    return strategy

  return rule


def _dcfr(alpha, beta, order):
  def update(memory, t, r):
    if order == "openspiel":
      memory["R"] = _signed(memory["R"] + r, t, alpha(t), beta(t))
    else:
      memory["R"] = _signed(memory["R"], t, alpha(t), beta(t)) + r
    return _matched(memory["R"])

  return _replayed(update)


def _pcfr_plus(weight):
  def update(memory, t, r):
    memory["R"] = np.maximum(memory["R"] + r, 0)
    return _matched(memory["R"] + weight * r)

  return _replayed(update)


def _dcfr_plus(alpha, predictive):
  def update(memory, t, r):
    memory["R"] = np.maximum(memory["R"] * _d(t - 1, alpha) + r, 0)
    return _matched(memory["R"] * _d(t, alpha) + r if predictive else memory["R"])

  return _replayed(update)


def _asymmetric(weight, most):
  """The paper's equations, with all sums computed again in each iteration."""

  def rule(utilities):
    strategy, r, memory = (
      np.full(_ACTIONS, 1 / _ACTIONS),
      [np.zeros(_ACTIONS)],
      [np.zeros(_ACTIONS)],
    )
    for t, utility in enumerate(utilities, start=1):
      r.append(utility - strategy @ utility)
      memory.append(np.maximum(memory[-1] + weight(t) * r[-1], 0))
      errors = sum(np.linalg.norm(new - old) ** 2 for old, new in itertools.pairwise(r))
      moves = sum(np.linalg.norm(new - old) ** 2 for old, new in itertools.pairwise(memory))
      asymmetry = min(math.sqrt(errors / moves), most)
      strategy = _matched(weight(t + 1) * memory[-1] + r[-1] / (1 + asymmetry))
    return strategy

  return rule


def _hedge(utilities):
  rate = math.sqrt(8 * math.log(_ACTIONS) / len(utilities)) / np.ptp(_game().payoff_range)
  weights = np.exp(rate * np.sum(utilities, axis=0))
  return weights / weights.sum()


def _adaptive(utilities):
  """With one infoset on each path the prediction is the last utility."""
  z = x = np.full(_ACTIONS, 1 / _ACTIONS)
  predicted, v = np.zeros(_ACTIONS), 0.0
  for t, u in enumerate(utilities, start=1):
    d = (t - 1) ** 1.5 / ((t - 1) ** 1.5 + 2)
    error = u - predicted
    v = d**2 * v + ((error - error.mean()) ** 2).sum()
    step = 1 / (4 * math.sqrt(v))
    z = _projected(z + step * u)
    x = _projected(z + 0.2 * step * u)
    predicted = u
  return x


_RULES = [
  (RegretMatching.discounted(), _dcfr(lambda t: 1.5, lambda t: 0.0, "openspiel")),
  (
    RegretMatching(Discount(1.2), Discount(-0.5)),
    _dcfr(lambda t: 1.2, lambda t: -0.5, "paper"),
  ),
  (RegretMatching(forgets_negative=True, prediction=1.0), _pcfr_plus(1.0)),
  (RegretMatching(forgets_negative=True, prediction=1 / 3), _pcfr_plus(1 / 3)),
  (RegretMatching(Discount(1.5, delay=1), forgets_negative=True), _dcfr_plus(1.5, False)),
  (
    RegretMatching(Discount(2.3, delay=1), 1.0, True, Discount(2.3), 1.0),
    _dcfr_plus(2.3, True),
  ),
  (
    RegretMatching(Discount(1.0, 3.0, 8), Discount(-1.0, -2.0, 8)),
    _dcfr(lambda t: 1 + 3 * min(t / 8, 1), lambda t: -1 - 2 * min(t / 8, 1), "paper"),
  ),
  (AsymmetricMatching(), _asymmetric(lambda t: 1.0, 5.0)),
  (AsymmetricMatching(largest_asymmetry=0.5), _asymmetric(lambda t: 1.0, 0.5)),
  (
    AsymmetricMatching(Saturating(20.0, 500.0, 1.5), 9.0),
    _asymmetric(lambda t: 20 * t**1.5 / (500 + t**1.5), 9.0),
  ),
  (hedge.Hedge(), _hedge),
  (adaptive_mirror_descent.AdaptiveOptimisticDescent(), _adaptive),
]


@pytest.mark.parametrize(("minimizer", "rule"), _RULES, ids=[repr(rule) for rule, _ in _RULES])
@pytest.mark.parametrize("seed", range(5))
def test_strategies_are_those_of_the_formulas(minimizer, rule, seed):
  utilities = np.random.default_rng(seed).normal(size=(_ROUNDS, _COUNT, _ACTIONS))
  strategies = _play(minimizer, utilities)
  for t in range(1, _ROUNDS + 1):
    for i in range(_COUNT):
      assert strategies[t, i] == pytest.approx(rule(utilities[:t, i]), abs=1e-12)


@pytest.mark.parametrize(
  ("make", "rule", "weight"),
  [
    (spiel_cfr.cfr.APCFRPlusSolver, _asymmetric(lambda t: 1.0, 5.0), lambda t: t**2),
    (
      spiel_cfr.cfr.APDCFRPlusSolver,
      _asymmetric(lambda t: 20 * t**1.5 / (500 + t**1.5), 9.0),
      lambda t: t**2.5,
    ),
  ],
)
def test_whole_solvers_on_a_matrix_game(make, rule, weight):
  """Updates alternate, and averages take what was played before the update."""
  matrix = np.random.default_rng(0).normal(size=(_ACTIONS, _ACTIONS))
  solver = make(pyspiel.create_matrix_game(matrix, -matrix))
  solver.run(_ROUNDS)
  strategies = [[np.full(_ACTIONS, 1 / _ACTIONS)] for _ in range(2)]
  utilities = [[], []]
  for _ in range(_ROUNDS):
    for player, payoffs in enumerate((matrix, -matrix.T)):
      utilities[player].append(payoffs @ strategies[1 - player][-1])
      strategies[player].append(rule(utilities[player]))
  current, average = solver.current_probabilities(), solver.average_probabilities()
  weights = [weight(t) for t in range(1, _ROUNDS + 1)]
  for player, tree in enumerate(solver.compiled_game.treeplexes):
    ((sequences, _),) = tree.infoset_groups()
    assert current[sequences].ravel() == pytest.approx(strategies[player][-1], abs=1e-12)
    expected = np.average(strategies[player][:-1], axis=0, weights=weights)
    assert average[sequences].ravel() == pytest.approx(expected, abs=1e-12)


def test_the_two_orders_of_dcfr_differ():
  utilities = np.random.default_rng(0).normal(size=(_ROUNDS, _COUNT, _ACTIONS))
  one, other = (
    _play(minimizer, utilities)
    for minimizer in (RegretMatching.discounted(), RegretMatching(Discount(1.5), Discount(0.0)))
  )
  assert np.abs(one - other).max() > 1e-3


def test_scheduled_weights_are_products_of_the_discounts():
  horizon = 20
  weights = [1.0]
  for s in range(1, 50):
    weights.append(weights[-1] * ((s + 1) / s) ** (30 - 5 * min(s / horizon, 1)))
  computed = FallingPower(30.0, horizon)(np.arange(1, 51))
  assert computed == pytest.approx(np.array(weights), rel=1e-10)
  assert np.isfinite(FallingPower(30.0, 10**9)(np.array([10**9]))).all()


def test_adaptive_minimizer_stays_put_while_nothing_is_at_stake():
  utilities = np.zeros((_ROUNDS, _COUNT, _ACTIONS))
  utilities[:, 1] = 5.0
  assert _play(adaptive_mirror_descent.AdaptiveOptimisticDescent(), utilities) == pytest.approx(
    1 / _ACTIONS
  )


def test_adaptive_minimizer_does_not_know_the_unit():
  utilities = np.random.default_rng(0).normal(size=(_ROUNDS, _COUNT, _ACTIONS))
  one, other = (
    _play(adaptive_mirror_descent.AdaptiveOptimisticDescent(), scale * utilities)
    for scale in (1.0, 1e8)
  )
  assert one == pytest.approx(other, abs=1e-9)


# Exploitability at iterations 100, 1000, 10000 of an independent implementation.
_PUBLISHED = {
  ("kuhn_poker", spiel_cfr.CFRPlusSolver): (1.2e-3, 8.7e-5, 9.6e-6),
  ("kuhn_poker", spiel_cfr.DCFRSolver): (1.7e-3, 1.5e-4, 2.4e-5),
  ("kuhn_poker", spiel_cfr.PCFRPlusSolver): (2.3e-5, 2.4e-8, 2.4e-11),
  ("kuhn_poker", spiel_cfr.cfr.PDCFRPlusSolver): (1e-7, 1e-13, None),
  ("kuhn_poker", spiel_cfr.cfr.SAPCFRPlusSolver): (1.1e-5, 1.1e-8, 1.1e-11),
  ("kuhn_poker", spiel_cfr.AdaptiveOptimisticCFRSolver): (3.1e-5, 3.0e-8, 3.0e-11),
  ("leduc_poker", spiel_cfr.CFRPlusSolver): (1.3e-2, 2.5e-4, 5.6e-6),
  ("leduc_poker", spiel_cfr.DCFRSolver): (7.8e-3, 2.0e-4, None),
  ("leduc_poker", spiel_cfr.PCFRPlusSolver): (2.0e-2, 7.1e-4, 1.7e-5),
  ("leduc_poker", spiel_cfr.cfr.PDCFRPlusSolver): (1.8e-2, 9.0e-4, 3.3e-6),
  ("leduc_poker", spiel_cfr.cfr.SAPCFRPlusSolver): (1.3e-2, 1.9e-4, 1.4e-6),
  ("leduc_poker", spiel_cfr.AdaptiveOptimisticCFRSolver): (6.2e-3, 4.1e-5, 1.0e-7),
  ("leduc_poker", spiel_cfr.cfr.APCFRPlusSolver): (None, 1.7e-4, 1.1e-6),
}
_MORE_PUBLISHED = {
  ("liars_dice(dice_sides=4)", spiel_cfr.PCFRPlusSolver): (1.6e-3, 1.5e-6, 1.5e-9),
  ("liars_dice(dice_sides=4)", spiel_cfr.cfr.PDCFRPlusSolver): (7.5e-4, 2e-10, None),
  ("liars_dice(dice_sides=4)", spiel_cfr.cfr.SAPCFRPlusSolver): (4.3e-4, 4.6e-7, 4.6e-10),
  ("liars_dice(dice_sides=4)", spiel_cfr.AdaptiveOptimisticCFRSolver): (1.8e-4, 1.9e-7, None),
  ("liars_dice(dice_sides=5)", spiel_cfr.PCFRPlusSolver): (4.9e-3, 1.8e-4, None),
  ("liars_dice(dice_sides=5)", spiel_cfr.cfr.PDCFRPlusSolver): (7.2e-3, 4.5e-5, None),
  ("liars_dice(dice_sides=5)", spiel_cfr.AdaptiveOptimisticCFRSolver): (1.4e-3, 7.2e-7, None),
  ("goofspiel4", spiel_cfr.PCFRPlusSolver): (1.0e-4, 1.0e-7, 1.0e-10),
  ("goofspiel4", spiel_cfr.cfr.PDCFRPlusSolver): (4.6e-6, 5e-12, None),
  ("goofspiel4", spiel_cfr.cfr.SAPCFRPlusSolver): (1.3e-4, 1.3e-7, 1.3e-10),
  ("goofspiel4", spiel_cfr.AdaptiveOptimisticCFRSolver): (1.1e-4, 1.0e-7, 1.0e-10),
  ("goofspiel5", spiel_cfr.PCFRPlusSolver): (7.9e-3, 3.6e-5, 3.6e-8),
  ("goofspiel5", spiel_cfr.cfr.PDCFRPlusSolver): (7.9e-3, None, None),
  ("goofspiel5", spiel_cfr.cfr.SAPCFRPlusSolver): (2.9e-3, 2.4e-5, 1.3e-7),
  ("goofspiel5", spiel_cfr.AdaptiveOptimisticCFRSolver): (4.0e-3, 1.7e-5, None),
}


def _short(value):
  """Returns the name of a game and its solver, or what is published."""
  game, solver = value[:2]
  return f"{game}-{solver.__name__}" if callable(solver) else str(value)


def _check_published(game, solver_class, published):
  if game.startswith("goofspiel"):
    game = f"goofspiel(imp_info=True,num_cards={game[-1]},points_order=descending)"
  solver = solver_class(game)
  for iterations, expected in zip((100, 1000, 10000), published, strict=True):
    solver.run(iterations - solver.iteration)
    if expected is not None:
      assert abs(math.log10(solver.exploitability() / expected)) <= 0.2, iterations


@pytest.mark.parametrize(("key", "published"), _PUBLISHED.items(), ids=_short)
def test_convergence_on_poker_is_as_published(key, published):
  _check_published(*key, published)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "published"), _MORE_PUBLISHED.items(), ids=_short)
def test_convergence_on_other_games_is_as_published(key, published):
  _check_published(*key, published)


@pytest.mark.parametrize(
  "make",
  [
    lambda: RegretMatching.discounted(alpha=-1.0),
    lambda: spiel_cfr.cfr.DCFRPlusSolver("kuhn_poker", alpha=-1.0),
    lambda: spiel_cfr.cfr.PDCFRPlusSolver("kuhn_poker", alpha=math.nan),
    lambda: spiel_cfr.cfr.SAPCFRPlusSolver("kuhn_poker", weight=1.5),
    lambda: adaptive_mirror_descent.AdaptiveOptimisticDescent(step=0.0),
    lambda: adaptive_mirror_descent.AdaptiveOptimisticDescent(prediction=-0.1),
    lambda: adaptive_mirror_descent.AdaptiveOptimisticDescent(forgetting=math.inf),
    lambda: spiel_cfr.cfr.HSDCFRSolver("kuhn_poker", 0),
    lambda: spiel_cfr.cfr.HSDCFRSolver("kuhn_poker", 100, first_gamma=4.0),
    lambda: spiel_cfr.cfr.HSPCFRPlusSolver("kuhn_poker", 100, first_gamma=math.nan),
    lambda: spiel_cfr.cfr.HSPCFRPlusSolver("kuhn_poker", -5),
    lambda: spiel_cfr.PCFRPlusSolver("kuhn_poker", gamma=-1.0),
    lambda: spiel_cfr.cfr.APCFRPlusSolver("kuhn_poker", largest_asymmetry=0.0),
    lambda: spiel_cfr.cfr.APCFRPlusSolver("kuhn_poker", largest_asymmetry=math.inf),
    lambda: Saturating(-1.0, 500.0, 1.5),
  ],
)
def test_bad_arguments_raise(make):
  with pytest.raises(errors.ArgumentError):
    make()


@pytest.mark.parametrize("first_gamma", [15.0, 30.0])
def test_scheduled_solvers_converge(first_gamma):
  for solver, bound in (
    (spiel_cfr.cfr.HSPCFRPlusSolver("kuhn_poker", 500, first_gamma), 1e-10),
    (spiel_cfr.cfr.HSDCFRSolver("kuhn_poker", 500, first_gamma), 2e-3),
  ):
    solver.run(500)
    assert solver.exploitability() < bound


def test_hedge_converges_at_the_rate_of_its_bound():
  solver = spiel_cfr.cfr.HedgeCFRSolver("kuhn_poker")
  solver.run(100)
  early = solver.exploitability()
  solver.run(9900)
  assert solver.exploitability() < early / 5


_PREPARED = """
import spiel_cfr
from spiel_cfr._numba import cache
games = [
  spiel_cfr.compile_game("kuhn_poker"),
  spiel_cfr.games.compile_vector_game("leduc_poker", partitioned=True),
]
solvers = [
  spiel_cfr.FullWidthSolver(
    game,
    spiel_cfr.RegretMatching(forgets_negative=True, prediction=1.0),
    averaging=spiel_cfr.Averaging(1.0, tapered=True),
  )
  for game in games
]
compiled, asked = cache.compiled, []
for solver in solvers:
  solver.prepare()
  cache.compiled = lambda *given: asked.append(given[0].__name__) or compiled(*given)
  solver.run(8)
  cache.compiled = compiled
print(asked)
"""


def test_prepared_solvers_have_compiled_all_that_iterations_need():
  """A new process compiles only the needed kernels."""
  printed = subprocess.check_output([sys.executable, "-c", _PREPARED], text=True)
  assert printed.strip() == "[]"
