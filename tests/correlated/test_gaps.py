"""Gaps of correlated play, against walks of histories, OpenSpiel's on explicit mixtures, and each other."""

import itertools

import numpy as np
import open_spiel_efr
import pyspiel
import pytest
import random_games

import spiel_cfr
from spiel_cfr import correlated, errors
from spiel_cfr.correlated import correlation_plans, optimal_equilibria

GAMES = {
  "kuhn": lambda: pyspiel.load_game("kuhn_poker"),
  "kuhn, 3 players": lambda: pyspiel.load_game("kuhn_poker(players=3)"),
  "unequal actions, general-sum": lambda: random_games.random_game(
    6, num_players=3, zero_sum=False, max_histories=150
  ),
  "sheriff": lambda: pyspiel.load_game(
    "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=1,max_items=1,num_rounds=1,sheriff_penalty=1.0)"
  ),
}
WORDS = (
  ("at the start", "unseen", "seen"),
  ("never", "later", "later, seen", "at once", "hearing all"),
)
# What can be gained in one way can be gained in the next.
CHAINS = (
  ("coarse", "extensive-form coarse", "extensive-form", "causal partial sequence"),
  ("coarse", "blind counterfactual", "informed counterfactual", "counterfactual partial sequence"),
  (
    "agent-form coarse",
    "blind partial sequence",
    "causal partial sequence",
    "twice informed partial sequence",
  ),
  (
    "agent-form",
    "counterfactual partial sequence",
    "twice informed partial sequence",
    "behavioural",
    "normal-form",
  ),
)


def mixed(game, seed, count=3):
  """Returns policies at random, some of whose probabilities are 0, and weights."""
  rng = np.random.default_rng(seed)
  result = []
  for weight in rng.dirichlet(np.ones(count)):
    policy = {}
    for own, counts in zip(game.infostates, game.num_actions, strict=True):
      for infostate, actions in zip(own, counts.tolist(), strict=True):
        policy[infostate] = rng.dirichlet(np.ones(actions)) * (rng.random(actions) < 0.7)
    entries = np.concatenate([row + (not row.any()) for row in policy.values()])
    probabilities = spiel_cfr.policies.forms.behavioral_form(game, game.from_actions(entries))
    result.append((float(weight), spiel_cfr.policies.open_spiel.to_pyspiel(game, probabilities)))
  return result


def pure(game, rows):
  entries = game.from_actions(np.concatenate(rows))
  return spiel_cfr.policies.open_spiel.to_pyspiel(game, entries)


def played(game, mixture, deviations="twice informed partial sequence"):
  play = correlated.EmpiricalPlay(game, deviations)
  for weight, policy in mixture:
    # Weights need not sum to 1.
    play.add(policy, 3.0 * weight)
  return play


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("kind", correlated.KINDS)
def test_gaps_are_what_the_best_deviator_gains(name, kind):
  source = GAMES[name]()
  game = spiel_cfr.compile_game(source)
  mixture = mixed(game, 1, 2)
  begins, ends = (
    words[number] for words, number in zip(WORDS, correlated.KINDS[kind], strict=True)
  )
  expected = [
    open_spiel_efr.best_gain(source, mixture, player, begins, ends)
    for player in range(game.num_players)
  ]
  assert max(expected) > 1e-3
  for deviations, measured in correlated.MEASURED.items():
    if kind in measured:
      found = played(game, mixture, deviations).gap(kind)
      np.testing.assert_allclose(
        found.player_improvements, expected, atol=1e-12, err_msg=deviations
      )
      assert found.gap == pytest.approx(np.maximum(expected, 0).sum(), abs=1e-12)
      assert found.kind == kind


@pytest.mark.parametrize("name", GAMES)
def test_open_spiel_finds_the_same_coarse_gap(name):
  source = GAMES[name]()
  game = spiel_cfr.compile_game(source)
  mixture = mixed(game, 2, 5)
  found = played(game, mixture, "blind cf").gap()
  expected = pyspiel.cce_dist(source, mixture)
  np.testing.assert_allclose(
    np.maximum(found.player_improvements, 0), expected.deviation_incentives, atol=1e-12
  )
  np.testing.assert_allclose(found.expected_values, expected.on_policy_values, atol=1e-12)


@pytest.mark.parametrize("name", GAMES)
def test_open_spiel_finds_the_same_normal_form_gap(name):
  """Where all are told another strategy each time, and where some are told the same."""
  source = GAMES[name]()
  game = spiel_cfr.compile_game(source)
  weights, profiles = zip(*mixed(game, 2, 4), strict=True)
  profiles = [spiel_cfr.policies.from_policy(game, profile) for profile in profiles]
  alike = [profile.copy() for profile in profiles]
  tree = game.treeplexes[0]
  for other in alike[1:3]:
    other[tree.root : tree.end] = alike[0][tree.root : tree.end]
  found = []
  for mixture in (profiles, alike):
    device = [
      (weight, spiel_cfr.policies.to_pyspiel(game, profile))
      for weight, profile in zip(weights, mixture, strict=True)
    ]
    found.append(correlated.MixturePolicy(game, mixture, weights).gap("normal-form"))
    expected = pyspiel.ce_dist(source, device)
    np.testing.assert_allclose(
      found[-1].player_improvements, expected.deviation_incentives, atol=1e-12
    )
    np.testing.assert_allclose(found[-1].expected_values, expected.on_policy_values, atol=1e-12)
  # Who is told less can do less against the same play of others.
  worth = [each.player_improvements[0] + each.expected_values[0] for each in found]
  assert worth[1] < worth[0] - 1e-3


def test_open_spiel_finds_the_same_gap_of_correlated_equilibria_in_matrix_games():
  source = pyspiel.convert_to_turn_based(
    pyspiel.create_matrix_game([[3.0, 1, 0], [0, 2, 5]], [[1.0, 2, 0], [4, 0, 1]])
  )
  game = spiel_cfr.compile_game(source)
  rng = np.random.default_rng(3)
  mixture = []
  for weight in rng.dirichlet(np.ones(6)):
    mixture.append((float(weight), pure(game, [np.eye(n)[rng.integers(n)] for n in (2, 3)])))
  found = played(game, mixture).gap("extensive-form")
  expected = pyspiel.ce_dist(source, mixture)
  np.testing.assert_allclose(found.player_improvements, expected.deviation_incentives, atol=1e-12)
  assert found.gap > 1e-2


@pytest.mark.parametrize("name", ["kuhn", "sheriff"])
def test_correlation_plans_say_the_same(name):
  game = spiel_cfr.compile_game(GAMES[name]())
  weights, profiles = zip(*mixed(game, 5), strict=True)
  play = played(game, zip(weights, profiles, strict=True))
  pairs = correlation_plans.RelevantPairs(game, 10_000)
  plan = np.zeros(len(pairs))
  for weight, profile in zip(weights, profiles, strict=True):
    strategies = spiel_cfr.policies.from_policy(game, profile)
    own, other = (
      spiel_cfr.policies.sequence_form(game, strategies)[each.places] for each in pairs.players
    )
    plan += weight * own[pairs.first] * other[pairs.second]
  for concept, kind in (
    ("EFCE", "extensive-form"),
    ("EFCCE", "extensive-form coarse"),
    ("NFCCE", "coarse"),
  ):
    expected = [
      optimal_equilibria.Deviations(pairs, player, concept).gain(plan) for player in (0, 1)
    ]
    found = play.gap(kind).player_improvements
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", GAMES)
def test_who_may_do_more_gains_more(name):
  game = spiel_cfr.compile_game(GAMES[name]())
  weights, profiles = zip(*mixed(game, 4, 4), strict=True)
  mixture = correlated.MixturePolicy(game, profiles, weights)
  gains = {
    kind: mixture.gap(kind).player_improvements for kind in (*correlated.KINDS, "normal-form")
  }
  for chain in CHAINS:
    for less, more in itertools.pairwise(chain):
      assert (gains[less] <= gains[more] + 1e-12).all(), (less, more)


def test_an_equilibrium_of_one_kind_that_is_none_of_the_next():
  """Rock, paper, scissors in which both always show the same: who sees what is recommended wins all."""
  game = spiel_cfr.compile_game("matrix_rps")
  play = correlated.EmpiricalPlay(game)
  for shown in np.eye(3):
    play.add(pure(game, [shown, shown]))
  assert play.gap("coarse").gap == 0.0
  assert play.gap("extensive-form coarse").gap == 0.0
  assert play.gap().gap == pytest.approx(2.0)


def test_what_a_play_does_not_keep():
  play = correlated.EmpiricalPlay("kuhn_poker", "blind action")
  with pytest.raises(errors.ArgumentError, match="has played nothing"):
    play.gap()
  with pytest.raises(errors.ArgumentError, match="causal partial sequence"):
    play.gap("extensive-form")
  with pytest.raises(errors.ArgumentError, match="kind must be one of"):
    play.gap("nash")
  with pytest.raises(errors.ArgumentError, match="MixturePolicy"):
    play.gap("normal-form")
