"""Gaps of correlated play, against walks of histories, OpenSpiel's on explicit mixtures, and each other."""

import copy
import itertools
import math

import numpy as np
import open_spiel_efr
import pyspiel
import pytest
import random_games

import spiel_cfr
from spiel_cfr import correlated, errors
from spiel_cfr.correlated import correlation_plans, normal_form_gap, optimal_equilibria

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


def test_the_coarse_gap_of_two_players_is_nash_conv_of_the_average():
  solver = spiel_cfr.TabularCFRSolver(
    "leduc_poker", alternating_updates=False, linear_averaging=True, regret_matching_plus=True
  )
  play = correlated.EmpiricalPlay(solver.compiled_game, "blind counterfactual")
  for iteration in range(1, 8):
    play.add(solver.current_probabilities(), iteration)
    solver.run(1)
  assert play.gap("coarse").gap == pytest.approx(solver.nash_conv(), abs=1e-12)


def test_the_coarse_gap_falls_where_nash_conv_of_the_product_does_not():
  """Shapley's game, slightly off its symmetry: play cycles and stays away from the only equilibrium."""
  game = pyspiel.create_matrix_game(
    [[0.0, 1.1, 0.0], [0, 0, 1], [1, 0, 0]], [[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]
  )
  solver = spiel_cfr.EFRSolver(game, "blind counterfactual")
  solver.run(10_000)
  assert solver.gap("coarse").gap < 0.002
  assert solver.nash_conv() > 0.2


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
    "behavioral",
    "normal-form",
    "mixed normal-form",
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
@pytest.mark.parametrize("kind", correlated.GAP_KINDS)
def test_gaps_equal_the_gain_of_the_best_deviation(name, kind):
  source = GAMES[name]()
  game = spiel_cfr.compile_game(source)
  mixture = mixed(game, 1, 2)
  begins, ends = (
    words[point.value] for words, point in zip(WORDS, correlated.GAP_KINDS[kind], strict=True)
  )
  expected = [
    open_spiel_efr.best_gain(source, mixture, player, begins, ends)
    for player in range(game.num_players)
  ]
  assert max(expected) > 1e-3
  for deviations, measured in correlated.MEASURABLE_GAPS.items():
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
  """Gaps if every profile tells different strategies, and if some strategies repeat."""
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
    found.append(correlated.MixturePolicy(game, mixture, weights).gap("mixed normal-form"))
    expected = pyspiel.ce_dist(source, device)
    np.testing.assert_allclose(
      found[-1].player_improvements, expected.deviation_incentives, atol=1e-12
    )
    np.testing.assert_allclose(found[-1].expected_values, expected.on_policy_values, atol=1e-12)
  # Who is told less can do less against the same play of others.
  worth = [each.player_improvements[0] + each.expected_values[0] for each in found]
  assert worth[1] < worth[0] - 1e-3


def drawn(game, profiles, weights):
  """Returns all pure profiles that the players of a mixture may be told together, and their probabilities."""
  result = {}
  for profile, weight in zip(profiles, weights, strict=True):
    columns = [
      [(rows[place], profile[rows[place]]) for place in range(len(rows))]
      for tree in game.treeplexes
      for sequences, _ in tree.infoset_groups()
      for rows in sequences.T
    ]
    for choice in itertools.product(*columns):
      chance = weight * math.prod(chances for _, chances in choice)
      if chance > 0:
        key = tuple(sequence for sequence, _ in choice)
        result[key] = result.get(key, 0.0) + chance
  strategies = []
  for key in result:
    strategy = np.zeros(game.end)
    strategy[list(key)] = 1.0
    strategies.append(strategy)
  return strategies, list(result.values())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("players", [2, 3])
def test_the_normal_form_gap_is_that_of_the_pure_strategies_that_are_told(seed, players):
  source = random_games.random_game(seed, players, zero_sum=False, max_histories=25)
  game = spiel_cfr.compile_game(source)
  weights, profiles = zip(*mixed(game, seed, 3), strict=True)
  profiles = [spiel_cfr.policies.from_policy(game, profile) for profile in profiles]
  found = correlated.MixturePolicy(game, profiles, weights)
  pure_ones, chances = drawn(game, profiles, weights)
  device = correlated.MixturePolicy(game, pure_ones, chances)
  expected = pyspiel.ce_dist(
    source,
    [
      (chance, spiel_cfr.policies.to_pyspiel(game, each))
      for chance, each in zip(chances, pure_ones, strict=True)
    ],
  )
  for each in (
    found.gap("normal-form"),
    device.gap("normal-form"),
    device.gap("mixed normal-form"),
  ):
    np.testing.assert_allclose(each.player_improvements, expected.deviation_incentives, atol=1e-11)
    np.testing.assert_allclose(each.expected_values, expected.on_policy_values, atol=1e-11)
  more = found.gap("mixed normal-form").player_improvements
  assert (more >= np.array(expected.deviation_incentives) - 1e-11).all()


def test_mixed_strategies_reveal_more():
  """Matching pennies: three profiles that mix to uniform play, so recommendations carry no information."""
  game = spiel_cfr.compile_game("matrix_mp")
  chances = ((0.6, 0.6), (0.4, 0.6), (0.5, 0.3))
  mixture = correlated.MixturePolicy(
    game, [pure(game, [np.array([x, 1 - x]), np.array([y, 1 - y])]) for x, y in chances]
  )
  assert mixture.gap("normal-form").gap == pytest.approx(0, abs=1e-12)
  # Who is told 0.5 knows that the other plays 0.3.
  assert mixture.gap("mixed normal-form").gap == pytest.approx(0.8 / 3)


def test_too_many_pure_strategies_are_refused(monkeypatch):
  monkeypatch.setattr(normal_form_gap, "_MOST_PROBABILITIES", 1 << 10)
  game = spiel_cfr.compile_game("leduc_poker")
  solver = spiel_cfr.CFRSolver(game)
  solver.run(10)
  profiles = [solver.current_probabilities(), solver.average_probabilities()]
  mixture = correlated.MixturePolicy(game, profiles)
  with pytest.raises(errors.GameTooLargeError, match="mixed normal-form"):
    mixture.gap("normal-form")
  assert mixture.gap("mixed normal-form").gap > 0


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
      spiel_cfr.policies.sequence_form(game, strategies)[own.indices] for own in pairs.players
    )
    plan += weight * own[pairs.first] * other[pairs.second]
  for concept, kind in (
    ("EFCE", "extensive-form"),
    ("EFCCE", "extensive-form coarse"),
    ("NFCCE", "coarse"),
  ):
    expected = [
      optimal_equilibria.IncentiveConstraints(pairs, player, concept).gain(plan)
      for player in (0, 1)
    ]
    found = play.gap(kind).player_improvements
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", GAMES)
def test_larger_sets_of_deviations_gain_more(name):
  game = spiel_cfr.compile_game(GAMES[name]())
  weights, profiles = zip(*mixed(game, 4, 4), strict=True)
  mixture = correlated.MixturePolicy(game, profiles, weights)
  gains = {
    kind: mixture.gap(kind).player_improvements
    for kind in (*correlated.GAP_KINDS, "normal-form", "mixed normal-form")
  }
  for chain in CHAINS:
    for less, more in itertools.pairwise(chain):
      assert (gains[less] <= gains[more] + 1e-12).all(), (less, more)


def test_an_equilibrium_of_one_kind_that_is_none_of_the_next():
  """Rock, paper, scissors with equal recommendations: a player who sees its own wins always."""
  game = spiel_cfr.compile_game("matrix_rps")
  play = correlated.EmpiricalPlay(game)
  for shown in np.eye(3):
    play.add(pure(game, [shown, shown]))
  assert play.gap("coarse").gap == 0.0
  assert play.gap("extensive-form coarse").gap == 0.0
  assert play.gap().gap == pytest.approx(2.0)


def test_gaps_that_play_cannot_measure():
  play = correlated.EmpiricalPlay("kuhn_poker", "blind action")
  with pytest.raises(errors.ArgumentError, match="has played nothing"):
    play.gap()
  with pytest.raises(errors.ArgumentError, match="causal partial sequence"):
    play.gap("extensive-form")
  with pytest.raises(errors.ArgumentError, match="kind must be one of"):
    play.gap("nash")
  with pytest.raises(errors.ArgumentError, match="MixturePolicy"):
    play.gap("normal-form")


def efg(*lines):
  return pyspiel.load_efg_game("\n".join(['EFG 2 R "" { "1" "2" } ""', *lines]) + "\n")


def mixture_of(game, *plays):
  """Returns a mixture of pure profiles, each the weight and the action at every infoset, player by player."""
  counts = np.concatenate(game.num_actions)
  profiles = [
    game.from_actions(np.concatenate([np.eye(n)[a] for n, a in zip(counts, actions, strict=True)]))
    for _, *actions in plays
  ]
  return correlated.MixturePolicy(game, profiles, [weight for weight, *_ in plays])


def test_the_signalling_game_of_von_stengel_and_forges():
  """Fig. 1 and section 2.3 of their paper of 2008: a student who may be good or bad signals, a professor hires or not.

  Good ones are told a signal at random, bad ones either, and only who has sent the good ones' is hired. As an
  extensive-form correlated equilibrium this pays (3.5, 6.5), and correlated equilibria pay (0, 6): who knows what a
  good one would be told sends that.
  """
  lines, outcome = ['c "" 1 "" { "good" 1/2 "bad" 1/2 } 0'], 0
  for number, (kind, hired) in enumerate((("good", "4 10"), ("bad", "6 0")), 1):
    lines.append(f'p "" 1 {number} "{kind}" {{ "X {kind}" "Y {kind}" }} 0')
    for signal in (1, 2):
      lines.append(f'p "" 2 {signal} "{signal}" {{ "l{signal}" "r{signal}" }} 0')
      for paid in (hired, "0 6"):
        outcome += 1
        lines.append(f't "" {outcome} "" {{ {paid} }}')
  game = spiel_cfr.compile_game(efg(*lines))
  device = mixture_of(game, *((1, good, bad, good, 1 - good) for good in (0, 1) for bad in (0, 1)))
  assert device.gap("extensive-form").gap == pytest.approx(0, abs=1e-12)
  assert device.gap().expected_values == pytest.approx([3.5, 6.5])
  assert correlated.optimal_equilibrium(game).value == pytest.approx(10)
  # Half of the bad ones are told the other signal.
  assert device.gap("normal-form").player_improvements == pytest.approx([6 / 4, 0])
  refused = mixture_of(game, *((1, good, bad, 1, 1) for good in (0, 1) for bad in (0, 1)))
  assert refused.gap("normal-form").gap == pytest.approx(0, abs=1e-12)
  assert refused.gap().expected_values == pytest.approx([0, 6])


def test_the_second_game_of_greenwald_and_sarfati():
  """As in OpenSpiel's corr_dist_test.cc: an extensive-form correlated equilibrium that is not a correlated one."""
  lines, outcome = ['p "" 1 1 "root" { "L" "R" } 0'], 0
  for number, side in ((2, "L"), (3, "R")):
    lines.append('p "" 2 1 "second" { "A" "B" } 0')
    for unseen in "AB":
      lines.append(f'p "" 1 {number} "{side}" {{ "l{number}" "r{number}" }} 0')
      for last in "lr":
        outcome += 1
        paid = {"LAr": "0 2", "RBr": "3 0"}.get(
          side + unseen + last, "2 2" if side == "L" else "0 0"
        )
        lines.append(f't "" {outcome} "" {{ {paid} }}')
  game = spiel_cfr.compile_game(efg(*lines))
  device = mixture_of(game, (2, 0, 0, 0, 0), (1, 0, 0, 1, 1), (1, 0, 1, 1, 1))
  assert device.gap("extensive-form").gap == pytest.approx(0, abs=1e-12)
  # Both strategies with r after R are told only where the other plays B: 3 for 2.
  assert device.gap("normal-form").player_improvements == pytest.approx([1 / 2, 0])


def test_copies_of_empirical_play_are_apart():
  """Profiles that a copy added counted in the original's regrets."""
  play = spiel_cfr.correlated.EmpiricalPlay("kuhn_poker")
  play.add(spiel_cfr.policies.uniform(play.compiled_game))
  gap, copied = play.gap().gap, copy.copy(play)
  copied.add(spiel_cfr.CFRSolver("kuhn_poker").current_policy(), 5.0)
  assert play.gap().gap == gap
  assert repr(copied).endswith("total weight 6>")


def test_the_game_of_gibson():
  """Section 2.2 of his "Regret Minimization in Non-Zero-Sum Games" (2013): an equilibrium that is only coarse."""
  game = spiel_cfr.compile_game(
    pyspiel.create_matrix_game([[1, 0], [0, 2], [-1, 1]], np.zeros((3, 2)))
  )
  device = mixture_of(game, (2, 0, 0), (1, 1, 1), (1, 2, 1))
  assert device.gap("coarse").gap == pytest.approx(0, abs=1e-12)
  for kind in ("normal-form", "extensive-form", "agent-form"):
    assert device.gap(kind).gap == pytest.approx(1 / 4)


@pytest.mark.parametrize("weight", [1e308, 1e101, 5e-324, 0.0, -1.0, math.nan, 10**400, None, "1"])
def test_weights_that_sums_can_not_carry(weight):
  """Weights that overflow are refused: twice 1e308 gave a gap of 0."""
  play = spiel_cfr.correlated.EmpiricalPlay("kuhn_poker")
  uniform = spiel_cfr.policies.uniform(play.compiled_game)
  with pytest.raises(errors.ArgumentError, match="weight must be a number"):
    play.add(uniform, weight)
  with pytest.raises(errors.ArgumentError, match="one for each profile, must be weights"):
    spiel_cfr.correlated.MixturePolicy(play.compiled_game, [uniform], [weight])
  gaps = []
  for scale in (1.0, 1e90, 1e-90):
    play = spiel_cfr.correlated.EmpiricalPlay(play.compiled_game)
    play.add(uniform, scale)
    play.add(uniform, scale)
    gaps.append(play.gap().gap)
  assert gaps == pytest.approx([gaps[0]] * 3, rel=1e-9)
  assert gaps[0] > 0.1
