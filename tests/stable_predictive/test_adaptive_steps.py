"""Stable-predictive CFR with adaptive steps against plain transcriptions of its equations."""

import hypothesis
import numpy as np
import poker_games
import pytest
import random_games
from composition.forms import FORMS
from hypothesis import strategies as st

import spiel_cfr
from spiel_cfr import policies
from spiel_cfr.cfr import FullWidthSolver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.stable_predictive import step_sizes


def _project(scores):
  """The point of the simplex nearest to `scores`."""
  ordered = np.sort(scores)[::-1]
  thresholds = (np.cumsum(ordered) - 1) / np.arange(1, len(scores) + 1)
  return np.maximum(scores - thresholds[np.flatnonzero(ordered > thresholds)[-1]], 0)


class _Plain:
  """One player: the equations of docs/theory/stable_predictive.md, infoset by infoset."""

  def __init__(self, tree, bounds, regularizer, delta, power):
    self.tree, self.regularizer = tree, regularizer
    self.delta, self.power = delta, power
    self.sequences = [None] * tree.num_infosets
    for block, infosets in tree.infoset_groups():
      for column, j in enumerate(range(infosets.start, infosets.stop)):
        self.sequences[j] = block[:, column]
    self.parent = tree.parent.astype(int).tolist()
    self.bounds = bounds
    self.x = [np.full(len(own), 1 / len(own)) for own in self.sequences]
    self.total = [np.zeros(len(own)) for own in self.sequences]
    self.predicted = [np.zeros(len(own)) for own in self.sequences]
    self.squares = [0.0] * tree.num_infosets
    self.centers = [np.zeros(len(own)) for own in self.sequences]

  def restart(self, strategies):
    self.x = strategies
    self.total = [np.zeros(len(own)) for own in self.sequences]
    self.centers = [np.log(x) if self.regularizer == "entropy" else x for x in strategies]

  def counterfactual(self, j, gradient):
    values = []
    for s in self.sequences[j]:
      below = [i for i in range(len(self.x)) if self.parent[i] == s]
      values.append(gradient[s] + sum(self.x[i] @ self.counterfactual(i, gradient) for i in below))
    return np.array(values)

  def update(self, gradient, t):
    utilities = [self.counterfactual(j, gradient) for j in range(len(self.x))]
    for j in reversed(range(len(self.x))):
      # The layout has parents first, so that everything below is new already.
      carried = self.counterfactual(j, gradient)
      self.x[j] = self.choose(j, utilities[j], carried, t)

  def choose(self, j, utility, prediction, t):
    n, error = len(utility), utility - self.predicted[j]
    w, later, growth = t**self.power, (t + 1) ** self.power, t ** (2 * self.power + 0.5)
    self.total[j] = self.total[j] + w * utility
    self.predicted[j] = prediction
    if n == 1 or self.bounds[j] == 0:
      return np.full(n, 1 / n)
    score = self.total[j] + later * prediction
    if self.regularizer == "entropy":
      self.squares[j] += (w * (error.max() - error.min()) / 2) ** 2
      v = self.squares[j] + (self.delta * self.bounds[j]) ** 2 * growth
      score = self.centers[j] + np.sqrt(np.log(n) / v) * score
      weights = np.exp(score - score.max())
      return weights / weights.sum()
    self.squares[j] += w**2 * ((error - error.mean()) ** 2).sum()
    v = self.squares[j] + n * (self.delta * self.bounds[j]) ** 2 * growth
    return _project(self.centers[j] + np.sqrt(2) * np.sqrt((1 - 1 / n) / 2 / v) * score)


def _gradient(game, player, sequence_form):
  own, others, values = game.payoff.leaves(player)
  reaches = np.prod([sequence_form[theirs] for theirs in others], axis=0)
  result = np.zeros(game.end)
  np.add.at(result, own, values * reaches)
  return result


def _plain_players(game, regularizer, delta, gamma):
  """One player of the transcription per player of the game."""
  bounds = np.split(
    game.loss_bounds, np.cumsum([tree.num_infosets for tree in game.treeplexes])[:-1]
  )
  return [
    _Plain(tree, own, regularizer, delta, gamma)
    for tree, own in zip(game.treeplexes, bounds, strict=True)
  ]


def _sequence_form(game, players):
  """Returns the current strategies."""
  behavioral = policies.uniform(game)
  for player in players:
    for own, x in zip(player.sequences, player.x, strict=True):
      behavioral[own] = x
  return policies.sequence_form(game, behavioral)


def _agrees(game, iterations=30, alternating=False, gamma=1, delta=0.01, **settings):
  """Compares current and average policies, whose average takes what the docs say, after each iteration."""
  solver = spiel_cfr.StablePredictiveCFRSolver(
    game, alternating_updates=alternating, gamma=gamma, delta=delta, **settings
  )
  regularizer = settings.get("regularizer", "entropy")
  players = _plain_players(game, regularizer, delta, gamma)

  def sequence_form():
    return _sequence_form(game, players)

  used = game.all_action_sequences
  average, weights = np.zeros(game.end), 0.0
  for t in range(1, iterations + 1):
    before = sequence_form()
    for number, player in enumerate(players):
      seen = sequence_form() if alternating else before
      player.update(_gradient(game, number, seen), t)
    after, last = sequence_form(), game.treeplexes[-1].root
    weight = t**gamma
    average[:last] += weight * (after if alternating else before)[:last]
    average[last:] += weight * before[last:]
    weights += weight
    solver.evaluate_and_update_policy()
    np.testing.assert_allclose(solver.current_sequence_form()[used], after[used], atol=1e-10)
    np.testing.assert_allclose(
      solver.average_sequence_form()[used], (average / weights)[used], atol=1e-10
    )
  return solver


@pytest.mark.parametrize("alternating", [False, True])
@pytest.mark.parametrize("regularizer", ["entropy", "euclidean"])
def test_a_restart_makes_the_strategy_the_center(regularizer, alternating):
  """After a restart, play is proportional to center * exp(step * (sum + prediction))."""
  game = spiel_cfr.compile_game("kuhn_poker")
  solver = spiel_cfr.StablePredictiveCFRSolver(
    game, regularizer=regularizer, alternating_updates=alternating, delta=0.01
  )
  minimizer = solver.minimizer.resumable()
  solver = FullWidthSolver(game, **solver.constructor_arguments() | {"minimizer": minimizer})
  players = _plain_players(game, regularizer, 0.01, 1)
  for t in range(1, 31):
    if t in (11, 21):
      restart = solver.average_sequence_form()
      behavioral = policies.behavioral_form(game, restart)
      solver.init_from_strategy(restart)
      for player in players:
        player.restart([behavioral[own] for own in player.sequences])
    before = _sequence_form(game, players)
    for number, player in enumerate(players):
      seen = _sequence_form(game, players) if alternating else before
      player.update(_gradient(game, number, seen), t)
    solver.evaluate_and_update_policy()
    np.testing.assert_allclose(
      solver.current_sequence_form(), _sequence_form(game, players), atol=1e-10
    )


@pytest.mark.parametrize("regularizer", ["entropy", "euclidean"])
@hypothesis.given(game=random_games.games(max_histories=60), seed=st.integers(0, 99))
@hypothesis.settings(max_examples=10, deadline=None)
def test_regret_since_a_restart_is_bounded(regularizer, game, seed):
  """By K' sqrt(V) + 2 d sqrt(sigma) D, whatever the strategy is from which it goes on."""
  game = spiel_cfr.compile_game(game)
  players = _plain_players(game, regularizer, 0.01, 0)
  rng = np.random.default_rng(seed)
  distance, scale = (2, 1) if regularizer == "entropy" else (np.sqrt(2), np.sqrt(2))
  for t in range(1, 60):
    if t == 20:
      for player in players:
        player.restart([rng.dirichlet(np.full(len(own), 0.3)) + 1e-12 for own in player.sequences])
      regrets = [[0.0 * total for total in player.total] for player in players]
    form = _sequence_form(game, players)
    for number, player in enumerate(players):
      played = player.x
      gradient = _gradient(game, number, form)
      seen = [player.counterfactual(j, gradient) for j in range(len(played))]
      player.update(gradient, t)
      if t < 20:
        continue
      for j, (x, utility) in enumerate(zip(played, seen, strict=True)):
        regrets[number][j] += utility - x @ utility
        n = len(x)
        entropy = regularizer == "entropy"
        largest, own_range = (np.log(n), 30.0) if entropy else ((1 - 1 / n) / 2, 1.0)
        spread = 1 if entropy else n
        v = player.squares[j] + spread * (0.01 * player.bounds[j]) ** 2 * np.sqrt(t)
        if n == 1 or v == 0.0:
          continue
        root = scale * np.sqrt(largest)
        factor = own_range / root + (root + np.sqrt(root**2 + 4 * distance**2)) / 2
        bound = factor * np.sqrt(v) + 2 * distance * np.sqrt(spread) * player.bounds[j]
        assert regrets[number][j].max() <= bound


@pytest.mark.parametrize("gamma", [0, 1, 2])
@pytest.mark.parametrize("regularizer", ["entropy", "euclidean"])
def test_iterates_are_those_of_the_equations(regularizer, gamma):
  for name in ("kuhn_poker", "kuhn_poker(players=3)"):
    game = spiel_cfr.compile_game(name)
    solver = _agrees(game, gamma=gamma, regularizer=regularizer)
    assert (
      np.abs(
        solver.current_sequence_form() - policies.sequence_form(game, policies.uniform(game))
      ).max()
      > 0.1
    )


@hypothesis.settings(max_examples=15)
@hypothesis.given(
  random_games.games(max_histories=60),
  st.sampled_from(["entropy", "euclidean"]),
  st.booleans(),
  st.sampled_from([0, 1]),
  st.sampled_from([1e-3, 0.1, 3.0]),
)
def test_iterates_on_random_games(game, regularizer, alternating, gamma, delta):
  _agrees(
    spiel_cfr.compile_game(game),
    alternating=alternating,
    gamma=gamma,
    delta=delta,
    regularizer=regularizer,
  )


def test_the_default_is_adaptive_with_linear_weights():
  plain = spiel_cfr.StablePredictiveCFRSolver("leduc_poker")
  named = spiel_cfr.StablePredictiveCFRSolver("leduc_poker", steps="adaptive", gamma=1, delta=0.001)
  for solver in (plain, named):
    solver.run(20)
  assert (plain.current_probabilities() == named.current_probabilities()).all()
  assert (plain.average_probabilities() == named.average_probabilities()).all()


# NashConv after 100 and 1,000 iterations with simultaneous updates, of three separate implementations.
_KNOWN = [
  ("kuhn_poker", 1, 0.001, 0.0044, 4.2e-4),
  ("kuhn_poker", 0, 0.01, 0.0113, 1.13e-3),
  ("leduc_poker", 1, 0.001, 0.0413, 2.31e-3),
  ("leduc_poker", 1, 0.01, 0.0413, 5.3e-3),
  ("leduc_poker", 0, 0.01, 0.113, 0.0112),
]


@pytest.mark.parametrize(("game", "gamma", "delta", "early", "late"), _KNOWN)
def test_gaps_are_the_known_ones(game, gamma, delta, early, late):
  solver = spiel_cfr.StablePredictiveCFRSolver(game, gamma=gamma, delta=delta)
  solver.run(100)
  assert solver.nash_conv() == pytest.approx(early, rel=0.03)
  solver.run(900)
  assert solver.nash_conv() == pytest.approx(late, rel=0.03)


def test_it_is_ahead_of_regret_matching_under_simultaneous_updates():
  solvers = {
    name: spiel_cfr.catalogue.make(name, "leduc_poker", 1000)
    for name in ("stable_predictive", "cfr_simultaneous", "cfr+_simultaneous", "dcfr_simultaneous")
  }
  gaps = {}
  for name, solver in solvers.items():
    solver.run(1000)
    gaps[name] = solver.nash_conv()
  ours = gaps.pop("stable_predictive")
  assert all(ours < gap / 4 for gap in gaps.values()), gaps


@pytest.mark.quick("vector form, float32", "parts, 2 threads")
@pytest.mark.parametrize(
  "form",
  [form for form in FORMS if form.is_vector and "poker" in form.game and not form.is_large],
  ids=str,
)
def test_vector_forms_do_the_same_given_the_same_bounds(form):
  """In vector form D is known less exactly; with those of the vector form a list of payoffs gives the same iterates."""
  plain = spiel_cfr.poker.compile_public_game(form.load(), partitioned=False)
  solver = spiel_cfr.StablePredictiveCFRSolver(form.compiled)
  solver.run(10)
  expected = _agrees(plain, iterations=10, delta=0.001).current_sequence_form()
  # Sequences have other numbers in parts.
  np.testing.assert_allclose(
    form.compiled.to_actions(solver.current_sequence_form()),
    plain.to_actions(expected),
    atol=min(1e-10 * form.tolerance / 1e-9, 1e-5),
  )


def bounds_of_players(game):
  """Returns each player's loss bounds, in the game's order of infosets."""
  pairs = zip(game.treeplexes, game.infosets, strict=True)
  return [game.loss_bounds[tree.first_infoset + own.position] for tree, own in pairs]


def test_loss_bounds_of_parts_are_those_of_the_whole():
  endgame = poker_games.random_endgame(3, 3, poker_games.TURN).load()
  whole, parts = (
    spiel_cfr.poker.compile_public_game(endgame, poker_games.check_or_pot, partitioned=partitioned)
    for partitioned in (False, True)
  )
  # Infosets have other numbers in parts.
  for first, second in zip(*(bounds_of_players(game) for game in (whole, parts)), strict=True):
    assert (first == second).all()


def test_loss_bounds_of_a_users_form_in_parts_are_those_of_the_whole():
  """Only poker's payoff of a part has the bounds of the whole game."""
  game = spiel_cfr.games.compile_vector_game("leduc_poker", partitioned=True)
  assert game.partition is not None
  inherited = CompiledGame.loss_bounds.func(game)
  assert inherited.shape == game.loss_bounds.shape
  assert (inherited > 0).all()


def test_current_steps_are_in_the_table():
  solver = spiel_cfr.StablePredictiveCFRSolver("kuhn_poker", gamma=0, delta=0.5)
  solver.run(1)
  row = next(row for row in step_sizes(solver) if row.infostate == "1b")
  assert row.loss_norm == pytest.approx(2 / 3)
  # The last player with the queen, facing a bet. Half the time the first player bets; it then has the jack or the king
  # with probability 1/6 each: folding loses 1 both times, calling wins 2 and loses 2.
  fold, call = -1 / 6, 0.0
  squares = ((call - fold) / 2) ** 2
  assert row.step == pytest.approx(np.sqrt(np.log(2) / (squares + 0.25 * row.loss_norm**2)))
  assert "gamma" not in str(step_sizes(solver)).splitlines()[0]
