"""Search that stops at a cut: the opponent's choice among continuations, exact values, networks."""

import sys

import numpy as np
import pytest
from blueprints import blueprint

import spiel_cfr
from spiel_cfr import errors, policies, search
from spiel_cfr.deep_cfr import MLP, LeastSquares, network
from spiel_cfr.evaluation import evaluate
from spiel_cfr.policies import forms


@pytest.fixture(scope="module")
def kuhn():
  """Kuhn poker, its public states after the first bet, and a policy of ten iterations."""
  game = spiel_cfr.compile_game("kuhn_poker")
  cut = [state for state in search.public_states(game) if state.length == 3]
  return game, cut, blueprint(game)


def test_depth_limits_have_the_measured_effect():
  game = spiel_cfr.compile_game("liars_dice(dice_sides=3)")
  policy = blueprint(game, 30)
  one = search.solve_trunk(game, policy, number=1)
  some = search.solve_trunk(game, policy, number=6)
  # One continuation ruins it; six, and safe search below, are better than safe search alone by far.
  assert one.exploitability > 5 * one.blueprint_exploitability
  assert search.resolve(game, some.policy, continual=False).exploitability < 0.002
  assert search.resolve(game, policy, continual=False).exploitability > 0.02
  drawn, same = (
    search.solve_trunk(game, policy, continuations="pure", number=4, seed=3) for _ in range(2)
  )
  assert drawn.exploitability == same.exploitability != one.exploitability
  own = search.solve_trunk(game, policy, continuations=[policy], player=1)
  assert own.steps[0].player == 1
  # There are no bounds, so no margins.
  assert np.isnan(own.steps[0].smallest_margin)
  assert str(own).splitlines()[-1].split()[5] == "-"


@pytest.mark.parametrize("player", [0, 1])
def test_best_responses_by_histories_are_those_by_sequences(player):
  game = spiel_cfr.compile_game("leduc_poker")
  tree = search.public_states(game)
  drawn = np.random.default_rng(1).random(tree.histories.num_entries)
  entries = tree.normalized(drawn, drawn)
  blueprint_values = tree.blueprint(entries, 1 - player)
  sequence_form = forms.sequence_form(game, tree.behavioral_form(entries))
  expected = evaluate.evaluate(game, sequence_form).best_response_values[player]
  assert blueprint_values.opponent_gets == pytest.approx(expected, abs=1e-12)


def test_solved_values_are_those_of_an_equilibrium():
  game = spiel_cfr.compile_game("leduc_poker")
  tree = search.public_states(game)
  cut, equilibrium = tree.natural_cut(), spiel_cfr.solve_lp(game)
  values = search.SolvedValues(cut)
  before = tree.blueprint(tree.entries(equilibrium.policy), 0)
  ranges = [before.ranges(state.number) for state in cut]
  sums = np.array(
    [
      [own @ worth for own, worth in zip(*each, strict=True)]
      for each in zip(ranges, values.values(ranges), strict=True)
    ]
  )
  np.testing.assert_allclose(sums[:, 0], -sums[:, 1], atol=1e-9)
  for state, found in zip(cut, sums[:, 0], strict=True):
    reach = state.reach(equilibrium.policy).sum()
    expected = reach * state.value(equilibrium.policy) if reach > 0 else 0.0
    assert found == pytest.approx(expected, abs=1e-9)
  # Where a player never comes with some cards, these are still worth what a best response gets.
  alone = [(np.arange(len(own)) == 0, other) for own, other in ranges]
  for (first, _), (_, other) in zip(values.values(alone), ranges, strict=True):
    assert (first[1:] != 0).all() or not other.any()


@pytest.mark.parametrize(
  ("name", "length", "iterations", "least"),
  [
    ("kuhn_poker", 3, 50, 0.008),
    ("kuhn_poker", None, 50, 0.02),
    pytest.param("kuhn_poker", None, 800, 0.004, marks=pytest.mark.slow),
    pytest.param("leduc_poker", None, 150, 0.04, marks=pytest.mark.slow),
    pytest.param("liars_dice(dice_sides=3)", 4, 300, 0.02, marks=pytest.mark.slow),
  ],
)
def test_with_exact_values_the_whole_becomes_an_equilibrium(name, length, iterations, least):
  game = spiel_cfr.compile_game(name)
  tree = search.public_states(game)
  cut = [state for state in tree if state.length == length] or tree.natural_cut()
  uniform = policies.CompiledTabularPolicy(game, forms.uniform(game))
  found = search.solve_by_values(uniform, search.SolvedValues(cut), iterations=iterations)
  assert found.exploitability < least < found.blueprint_exploitability / 10
  assert sum(step.solved + step.unreached for step in found.steps) == 2 * len(cut)


def test_learned_values_report_their_error(kuhn):
  game, cut, policy = kuhn
  one, same, other = (
    search.learn_values(game, cut=cut, rounds=20, network=LeastSquares(), seed=seed)
    for seed in (1, 1, 2)
  )
  assert one.error == same.error != other.error
  assert 0.01 < one.error < 0.7
  ranges = [(np.ones(3), np.linspace(0.1, 1.0, 3)) for _ in cut]
  exact = search.SolvedValues(cut).values(ranges)
  for learned, solved in zip(one.values(ranges), exact, strict=True):
    for own, wanted in zip(learned, solved, strict=True):
      # Chance deals each pair of cards with probability 1/6.
      assert np.abs(own - wanted).max() < 2.0 / 6
  found = search.solve_by_values(policy, one, iterations=50)
  assert found.exploitability < 0.15


def test_a_network_is_trained(kuhn):
  game, cut, _ = kuhn
  short, longer = (
    search.learn_values(game, cut=cut, rounds=5, network=MLP((16,)), steps=steps)
    for steps in (1, 200)
  )
  assert longer.error < 0.7 * short.error


def test_without_jax_an_error_says_what_to_install(kuhn, monkeypatch):
  network.libraries.cache_clear()
  network.compiled.cache_clear()
  monkeypatch.setitem(sys.modules, "jax", None)
  with pytest.raises(errors.MissingPackageError, match=r"spiel_cfr\[jax\]"):
    search.learn_values(kuhn[0])
  network.libraries.cache_clear()


@pytest.mark.parametrize(
  "change",
  [
    lambda found: None,
    lambda found: found[:-1],
    lambda found: np.nan,
    lambda found: [None, *found[1:]],
    lambda found: [found[0][:1], *found[1:]],
    lambda found: [(found[0][0], 0.0), *found[1:]],
    lambda found: [(found[0][0][:2], found[0][1]), *found[1:]],
    lambda found: [(found[0][0] * np.nan, found[0][1]), *found[1:]],
    lambda found: [(found[0][0], found[0][1] + np.inf), *found[1:]],
    lambda found: [("abc", found[0][1]), *found[1:]],
    lambda found: [(found[0][0] + 1j, found[0][1]), *found[1:]],
  ],
)
def test_own_values_of_the_wrong_kind_are_refused(kuhn, change):
  class Own(search.SolvedValues):
    def values(self, ranges):
      return change(super().values(ranges))

  _, cut, policy = kuhn
  with pytest.raises(errors.ArgumentError, match=r"Own\.values must return"):
    search.solve_by_values(policy, Own(cut), iterations=3)


def test_bad_arguments_are_named(kuhn):
  game, cut, policy = kuhn
  values = search.SolvedValues(cut)
  for name, call in {
    "rounds": lambda: search.learn_values(game, rounds=0),
    "steps": lambda: search.learn_values(game, steps=0),
    "seed": lambda: search.learn_values(game, seed=-1),
    "iterations": lambda: search.solve_by_values(policy, values, iterations=0),
    "number": lambda: search.solve_trunk(game, policy, number=0),
    "continuations must be one of": lambda: search.solve_trunk(game, policy, continuations="x"),
    "continuations must be at": lambda: search.solve_trunk(game, policy, continuations=[]),
    "named once": lambda: search.solve_trunk(game, policy, cut=[cut[0], cut[0]]),
    "not below each other": lambda: search.resolve(game, policy, cut=[cut[0].parent, cut[1]]),
    "is a public state of": lambda: search.learn_values("leduc_poker", cut=cut),
    "at least one public state": lambda: search.SolvedValues([]),
    "name a cut": lambda: search.solve_trunk("matrix_mp", {}),
  }.items():
    with pytest.raises(errors.ArgumentError, match=name):
      call()
  with pytest.raises(errors.PolicyError):
    search.solve_by_values({"nonsense": {0: 1.0}}, values)
