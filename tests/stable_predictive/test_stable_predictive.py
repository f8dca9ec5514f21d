"""Stable-predictive CFR against a plain transcription of its equations."""

import hypothesis
import numpy as np
import pyspiel
import pytest
import random_games

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr.games.payoffs.utility_bounds import counterfactual_bounds
from spiel_cfr.stable_predictive import check_proof, paper_steps
from spiel_cfr.stable_predictive.stable_predictive_cfr import steps_of


def _children(tree, sequence):
  """Infosets of the player, numbered from 0, that may be the next after a sequence."""
  return [j for j in range(tree.num_infosets) if tree.parent[j] == sequence]


def _sequences(tree):
  """The sequences of each infoset."""
  result = [None] * tree.num_infosets
  for block, infosets in tree.infoset_groups():
    for column, j in enumerate(range(infosets.start, infosets.stop)):
      result[j] = block[:, column]
  return result


class _Plain:
  """Equations (10) to (17), point by point."""

  def __init__(self, tree, loss_norm, kappa, regularizer):
    self.tree, self.regularizer = tree, regularizer
    self.sequences = _sequences(tree)
    self.children = {s: _children(tree, s) for s in [tree.root, *np.concatenate(self.sequences)]}
    self.total = [np.zeros(len(s)) for s in self.sequences]
    self.x = [np.full(len(s), 1 / len(s)) for s in self.sequences]
    self.steps, self.kappas = {}, {}
    self._descend(tree.root, kappa, loss_norm)

  def norm(self, j):
    below = [sum(self.norm(child) ** 2 for child in self.children[s]) for s in self.sequences[j]]
    return np.sqrt(1 + max(below))

  def _descend(self, sequence, gamma, loss_norm):
    for j in self.children[sequence]:
      own = gamma / np.sqrt(len(self.children[sequence]))
      n = len(self.sequences[j])
      self.kappas[j] = own / (2 * np.sqrt(n) * self.norm(j))
      self.steps[j] = self.kappas[j] / (3 * loss_norm[j])
      for below in self.sequences[j]:
        self._descend(below, own / (2 * np.sqrt(n)), loss_norm)

  def value(self, sequence, loss):
    """Returns the value of a sequence from a gradient and the strategies below it."""
    return sum(self.x[j] @ self.counterfactual(j, loss) for j in self.children[sequence])

  def counterfactual(self, j, loss):
    return np.array([loss[s] + self.value(s, loss) for s in self.sequences[j]])

  def update(self, loss):
    for j, total in enumerate(self.total):
      total += self.counterfactual(j, loss)
    self._choose(self.tree.root, loss)

  def _choose(self, sequence, loss):
    for j in self.children[sequence]:
      for below in self.sequences[j]:
        self._choose(below, loss)
      score = -self.steps[j] * (self.total[j] + self.counterfactual(j, loss))
      if self.regularizer == "entropy":
        weights = np.exp(score - score.max())
        self.x[j] = weights / weights.sum()
      else:
        ordered = np.sort(score)[::-1]
        thresholds = (np.cumsum(ordered) - 1) / np.arange(1, len(score) + 1)
        self.x[j] = np.maximum(score - thresholds[np.flatnonzero(ordered > thresholds)[-1]], 0)


def _gradient(game, player, sequence):
  result = np.zeros(game.end)
  game.payoff.gradient_into(player, sequence, result)
  return result


def _probabilities(solver):
  """The current policy without padding."""
  return solver.current_probabilities()[solver.compiled_game.all_action_sequences]


@pytest.mark.quick("kuhn*", "efg*", "leduc_poker-True-entropy-payoffs")
@pytest.mark.parametrize(
  ("regularizer", "loss_bounds"),
  [("entropy", "payoffs"), ("entropy", None), ("euclidean", "payoffs"), ("euclidean", "infosets")],
)
@pytest.mark.parametrize("alternating", [False, True])
@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "kuhn_poker(players=3)", "efg"])
def test_iterates_are_those_of_the_equations(name, alternating, regularizer, loss_bounds):
  game = spiel_cfr.compile_game(random_games.random_game(5) if name == "efg" else name)
  kappa = 400.0
  solver = spiel_cfr.StablePredictiveCFRSolver(
    game,
    kappa=kappa,
    steps="paper",
    regularizer=regularizer,
    alternating_updates=alternating,
    loss_bounds=loss_bounds,
  )
  largest = max(map(abs, game.payoff_range))
  plain = []
  for tree in game.treeplexes:
    actions = np.array([len(sequences) for sequences in _sequences(tree)])
    if loss_bounds == "payoffs":
      loss_norm = np.full(len(actions), largest * np.sqrt(actions.max()))
    else:
      own = slice(tree.first_infoset, tree.first_infoset + tree.num_infosets)
      loss_norm = np.sqrt(actions) * game.loss_bounds[own]
    plain.append(_Plain(tree, loss_norm, kappa, regularizer))

  def behavioral():
    result = policies.uniform(game)
    for player in plain:
      for j, sequences in enumerate(player.sequences):
        result[sequences] = player.x[j]
    return result

  for _ in range(8):
    before = policies.sequence_form(game, behavioral())
    for number, player in enumerate(plain):
      seen = policies.sequence_form(game, behavioral()) if alternating else before
      player.update(-_gradient(game, number, seen))
    solver.evaluate_and_update_policy()
    expected = behavioral()[game.all_action_sequences]
    assert _probabilities(solver) == pytest.approx(expected, abs=1e-12)
  assert np.abs(behavioral() - policies.uniform(game)).max() > 1e-2


@hypothesis.settings(max_examples=30)
@hypothesis.given(random_games.games(max_histories=150))
def test_counterfactual_utilities_never_exceed_their_bounds(game):
  game = spiel_cfr.compile_game(game)
  rng = np.random.default_rng(0)
  bounds = [
    counterfactual_bounds(game.payoff.leaves(p), game.treeplexes, p)
    for p in range(game.num_players)
  ]
  for _ in range(20):
    pure = policies.uniform(game)
    for tree in game.treeplexes:
      for sequences, _ in tree.infoset_groups():
        chosen = rng.integers(len(sequences), size=sequences.shape[1])
        pure[sequences] = chosen == np.arange(len(sequences))[:, None]
    sequence = policies.sequence_form(game, pure)
    for player, tree in enumerate(game.treeplexes):
      utility = _gradient(game, player, sequence)
      for sequences, infosets in reversed(list(tree.infoset_groups())):
        value = (pure[sequences] * utility[sequences]).sum(axis=0)
        np.add.at(utility, tree.parent[infosets], value)
      assert (np.abs(utility[tree.root : tree.end]) <= bounds[player] + 1e-12).all()


def test_bounds_of_kuhn_poker():
  """Each pair of cards has probability 1/6, for at most 2 chips."""
  game = spiel_cfr.compile_game("kuhn_poker")
  for player, tree in enumerate(game.treeplexes):
    bounds = counterfactual_bounds(game.payoff.leaves(player), game.treeplexes, player)
    for sequences, infosets in tree.infoset_groups():
      if player == 0 and infosets.start == 0:
        assert bounds[sequences[1] - tree.root] == pytest.approx(2 * 2 / 6)  # bet, and be called
    assert bounds[0] >= 0.5


@pytest.mark.parametrize("loss_bounds", ["infosets", "payoffs"])
def test_default_kappa_minimizes_the_guarantee(loss_bounds):
  game = spiel_cfr.compile_game("leduc_poker")

  def steps(horizon=None, kappa=None):
    return paper_steps.paper_steps(
      game, "entropy", horizon=horizon, kappa_root=kappa, loss_bounds=loss_bounds
    )

  chosen = steps(500)
  # But for what is lost at first, which is left out.
  best, shorter, longer = (
    each.guarantee(501) - (each.first_error_factor.sum() * each.kappa_root) / 501
    for each in (
      chosen,
      steps(kappa=0.99 * chosen.kappa_root),
      steps(kappa=1.01 * chosen.kappa_root),
    )
  )
  assert shorter > best < longer
  assert steps(500 * 16).kappa_root == pytest.approx(chosen.kappa_root / 2)


def test_bounds_of_infosets_hold():
  """On Leduc utilities are far from the largest payoff; steps that know that are longer and promise more."""
  game = spiel_cfr.compile_game("leduc_poker")
  local, crude = (
    paper_steps.paper_steps(game, "entropy", horizon=1000, loss_bounds=bounds)
    for bounds in ("infosets", "payoffs")
  )
  assert (crude.loss_norm == pytest.approx(13 * np.sqrt(3))) and local.loss_norm.min() < 0.4
  assert local.guarantee(1000) < 0.1 * crude.guarantee(1000)
  assert np.median(local.steps) > 10 * np.median(crude.steps)


def test_sensitivity_bounds_the_spectral_norm():
  for seed in range(5):
    game = spiel_cfr.compile_game(random_games.random_game(seed))
    own, (theirs,), values = game.payoff.leaves(0)
    matrix = np.zeros((game.end, game.end))
    matrix[own, theirs] = values
    exact = np.linalg.norm(matrix, ord=2)
    bound = paper_steps.paper_steps(game, "entropy", kappa_root=1.0).sensitivity[0]
    assert exact <= bound + 1e-12
    assert bound <= np.linalg.norm(matrix) + 1e-12


def _scaled(game, factor):
  low, high = game.payoff_range
  arrays = game.payoff.arrays
  payoff = type(game.payoff)(arrays._replace(values=arrays.values * factor))
  return game.with_payoff(payoff, payoff_range=(low * factor, high * factor))


def _make(game, steps, horizon=100, **settings):
  """Makes a solver; only those with constant steps have a horizon."""
  horizon = None if steps == "adaptive" else horizon
  return spiel_cfr.StablePredictiveCFRSolver(game, horizon, steps=steps, **settings)


@pytest.mark.parametrize("constants", ["adaptive", "paper", 50.0])
def test_chips_or_big_blinds_make_no_difference(constants):
  game = spiel_cfr.compile_game("leduc_poker")
  iterates = []
  for factor in (1.0, 1e-6, 1e9):
    solver = _make(_scaled(game, factor), constants)
    solver.run(50)
    iterates.append(_probabilities(solver))
  assert iterates[0] == pytest.approx(iterates[1], abs=1e-12)
  assert iterates[0] == pytest.approx(iterates[2], abs=1e-12)


def test_payoffs_that_overflow_are_refused():
  game = _scaled(spiel_cfr.compile_game("kuhn_poker"), 1e200)
  with pytest.raises(errors.NotFiniteError, match="Scale"):
    spiel_cfr.StablePredictiveCFRSolver(game)


def test_a_game_without_payoffs_stays_uniform():
  game = _scaled(spiel_cfr.compile_game("kuhn_poker"), 0.0)
  for constants in ("adaptive", "paper"):
    solver = _make(game, constants)
    solver.run(10)
    assert check_proof(solver).holds
    uniform = policies.uniform(game)[game.all_action_sequences]
    assert _probabilities(solver) == pytest.approx(uniform)


def test_steps_as_a_factor_multiply_the_papers():
  game = spiel_cfr.compile_game("kuhn_poker")
  plain, tenfold = (
    steps_of(spiel_cfr.StablePredictiveCFRSolver(game, horizon=64, steps=steps))
    for steps in ("paper", 10)
  )
  assert tenfold.steps == pytest.approx(10 * plain.steps)
  assert tenfold.kappa_root == pytest.approx(10 * plain.kappa_root)


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"steps": "paper"}, "give horizon="),
    ({"steps": 100.0}, "give horizon="),
    ({"horizon": 9}, "take neither horizon nor kappa"),
    ({"kappa": 0.1}, "take neither horizon nor kappa"),
    ({"horizon": 9, "steps": "paper", "delta": 0.1}, "delta"),
    ({"delta": 0.0}, "delta"),
    ({"delta": float("inf")}, "delta"),
    ({"steps": "paper", "horizon": 0}, "horizon"),
    ({"steps": "paper", "horizon": 2.5}, "horizon"),
    ({"steps": "paper", "kappa": 0.0}, "kappa"),
    ({"steps": "paper", "kappa": -1}, "kappa"),
    ({"steps": "paper", "kappa": float("nan")}, "kappa"),
    ({"steps": "paper", "kappa": "small"}, "kappa"),
    ({"horizon": 9, "steps": 0}, "steps"),
    ({"horizon": 9, "steps": -2.0}, "steps"),
    ({"horizon": 9, "steps": "level"}, "'adaptive', 'paper'"),
    ({"horizon": 9, "regularizer": "entropic"}, "'entropy', 'euclidean'"),
    ({"horizon": 9, "gamma": 3}, "gamma"),
  ],
)
def test_bad_arguments_are_named(arguments, message):
  with pytest.raises(errors.ArgumentError, match=message):
    spiel_cfr.StablePredictiveCFRSolver("kuhn_poker", **arguments)


def _matrix_game(matrix):
  return pyspiel.create_matrix_game(matrix, [[-entry for entry in row] for row in matrix])


_BIASED = _matrix_game([[0, -1, 2], [1, 0, -1], [-2, 1, 0]])


@pytest.mark.parametrize("regularizer", ["entropy", "euclidean"])
@pytest.mark.parametrize("game", ["kuhn_poker", _BIASED], ids=["kuhn", "rock-paper-scissors"])
def test_gap_falls_as_fast_as_the_theory_says(game, regularizer):
  """The gap times T^(3/4) stays below one number for horizons 2^6 to 2^14."""
  scaled = []
  for power in range(6, 15, 2):
    horizon = 2**power
    solver = spiel_cfr.StablePredictiveCFRSolver(
      game, horizon, regularizer=regularizer, steps="paper"
    )
    solver.run(horizon)
    scaled.append(solver.nash_conv() * horizon**0.75)
  # The bound for the first horizon is one for all: it falls as T^(-3/4).
  first = spiel_cfr.StablePredictiveCFRSolver(game, 64, regularizer=regularizer, steps="paper")
  first.run(64)
  assert max(scaled) <= check_proof(first).guarantee * 64**0.75
  assert scaled[-1] <= 1.3 * max(scaled[:-1])


def test_cfr_falls_no_faster_than_one_over_the_root():
  scaled = []
  for power in range(8, 15, 2):
    solver = spiel_cfr.TabularCFRSolver(_BIASED, alternating_updates=False)
    solver.run(2**power)
    scaled.append(solver.nash_conv() * 2 ** (power / 2))
  assert min(scaled) > 0.5 * max(scaled)
