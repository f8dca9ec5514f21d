"""The mediator: its recommendations, and best responses in the game with recommendations."""

import collections
import copy
import pickle

import numpy as np
import pyspiel
import pytest
import random_games

import spiel_cfr
from spiel_cfr import catalogue, correlated, errors
from spiel_cfr._numba.arrays import range_starts

SHERIFF = "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=1,max_items=2,num_rounds=1,sheriff_penalty=1.0)"


def best_response(game, laws, player, concept):
  """Returns what a player gets by a best response to a mediator whom all others obey, by a walk of OpenSpiel's states.

  Args:
    game: compiled.
    laws: (probability, how recommendations are drawn) of what is drawn before a play.
    player: who may leave.
    concept: when.
  """
  rows = [{name: row for row, name in enumerate(own.infostates)} for own in game.infosets]

  def sequences(state):
    mover = state.current_player()
    own, row = game.infosets[mover], rows[mover][state.information_state_string()]
    return own.action_sequences[range_starts(own.num_actions)[row] :][: own.num_actions[row]]

  def told(known, mover, sequence):
    return (*known[:mover], int(sequence), *known[mover + 1 :])

  def moved(node, place, law_told, left):
    state, law, _, _, chance = node
    return state.child(state.legal_actions()[place]), law, law_told, left, chance

  def value(nodes):
    """Returns the value of nodes (state, law, told, left, probability) with the same information of the player."""
    total, groups = 0.0, collections.defaultdict(list)
    while nodes:
      state, law, now, left, chance = nodes.pop()
      if state.is_terminal():
        total += chance * state.returns()[player]
      elif state.is_chance_node():
        nodes += [(state.child(a), law, now, left, chance * p) for a, p in state.chance_outcomes()]
      elif state.current_player() == player:
        groups[state.information_state_string()].append((state, law, now, left, chance))
      else:
        mover, names = state.current_player(), sequences(state)
        weights = law(now, mover, names)
        for place in np.flatnonzero(weights > 1e-12):
          node = state, law, now, left, chance * weights[place] / weights.sum()
          nodes.append(moved(node, place, told(now, mover, names[place]), left))
    return total + sum(best(group) for group in groups.values())

  def best(group):
    state, _, _, left, _ = group[0]
    names = sequences(state)
    alone = [
      lambda place=place: value([moved(node, place, node[2], True) for node in group])
      for place in range(len(names))
    ]
    if left:
      return max(each() for each in alone)
    by_order = []
    for order, name in enumerate(names):
      given = []
      for node in group:
        weights = node[1](node[2], player, names)
        if weights[order] > 1e-12:
          given.append((*node[:4], node[4] * weights[order] / weights.sum()))
      if given:
        by_order.append(
          [
            lambda given=given, name=name, place=place, order=order: value(
              [moved(each, place, told(each[2], player, name), place != order) for each in given]
            )
            for place in range(len(names))
          ]
          if concept == "EFCE"
          else [
            lambda given=given, name=name, order=order: value(
              [moved(each, order, told(each[2], player, name), False) for each in given]
            )
          ]
        )
    obeys = sum(max(each() for each in options) for options in by_order)
    return obeys if concept == "EFCE" else max(obeys, *(each() for each in alone))

  roots = tuple(int(tree.root) for tree in game.treeplexes)
  start = game.game.new_initial_state()
  return value([(start.clone(), law, roots, False, p) for p, law in laws])


@pytest.mark.parametrize("concept", ["EFCE", "EFCCE"])
@pytest.mark.parametrize("name", ["sheriff", "kuhn"])
def test_leaving_gains_nothing(name, concept):
  """Kuhn poker has private cards: a mediator cannot draw the plan beforehand."""
  game = spiel_cfr.compile_game(SHERIFF if name == "sheriff" else "kuhn_poker")
  found = correlated.optimal_equilibrium(game, concept, 1)
  assert found.gains == pytest.approx([0, 0], abs=1e-9)
  for player in (0, 1):
    value = best_response(game, [(1.0, found.policy._joint_probabilities)], player, concept)
    assert value == pytest.approx(found.expected_values[player], abs=1e-7)


def pure_profiles(game, count):
  """Returns profiles in behavioral form, drawn by chance, of players who never mix."""
  rng, profiles = np.random.default_rng(0), []
  for _ in range(count):
    profile = np.zeros(game.end)
    for tree in game.treeplexes:
      for names, _ in tree.infoset_groups():
        profile[rng.permuted(names, axis=0)[0]] = 1.0
    profiles.append(profile)
  return profiles


@pytest.mark.parametrize("source", [SHERIFF, "kuhn_poker", 3, 8])
def test_gains_of_mixtures(source):
  """Also where the best deviation obeys first and leaves later."""
  if isinstance(source, int):
    source = random_games.random_game(source, zero_sum=False, max_depth=5, max_histories=40)
  game = spiel_cfr.compile_game(source)
  profiles, weights = pure_profiles(game, 4), np.arange(1.0, 5.0)
  policy = correlated.MixturePolicy(game, profiles, weights)
  laws = [
    (weight / 10, lambda told, player, names, profile=profile: profile[names])
    for weight, profile in zip(weights, profiles, strict=True)
  ]
  expected = sum(
    weight * spiel_cfr.expected_values(game, spiel_cfr.policies.to_dict(game, profile))
    for weight, profile in zip(weights / 10, profiles, strict=True)
  )
  for concept, kind in (("EFCE", "extensive-form"), ("EFCCE", "extensive-form coarse")):
    gains = policy.gap(kind).player_improvements
    for player in (0, 1):
      # Whether a profile is drawn before the play, or one action after the other as the mediator does.
      for drawn in (laws, [(1.0, policy._joint_probabilities)]):
        value = best_response(game, drawn, player, concept)
        assert gains[player] == pytest.approx(value - expected[player], abs=1e-9)


def test_mean_returns_of_bots_equal_expected_values():
  game = pyspiel.load_game(SHERIFF)
  found = correlated.optimal_equilibrium(game)
  bots = found.policy.bots(seed=0)
  returns = np.array(
    [pyspiel.evaluate_bots(game.new_initial_state(), bots, seed) for seed in range(400)]
  )
  error = returns.std(axis=0) / 20
  assert (np.abs(returns.mean(axis=0) - found.expected_values) < 5 * error).all()
  assert [bot.player_id() for bot in bots] == [0, 1]


def test_simultaneous_moves_get_joint_recommendations():
  """In Shapley's game the best equilibrium avoids the diagonal, where both get nothing."""
  game = pyspiel.load_game("matrix_shapleys_game")
  mediator = correlated.optimal_equilibrium(game).policy.mediator(seed=1)
  state, seen = game.new_initial_state(), collections.Counter()
  for first in 20 * [0, 1]:
    actions = {player: mediator.recommend(state, player) for player in (first, 1 - first)}
    assert actions[0] != actions[1]
    assert mediator.recommend(state, first) == actions[first]
    seen[actions[0], actions[1]] += 1
    mediator.restart()
  assert len(seen) == 6


def test_players_who_leave_get_no_more_advice():
  game = pyspiel.load_game("sheriff(num_rounds=2,max_items=1,max_bribe=1)")
  policy = correlated.MixturePolicy(
    game, [spiel_cfr.policies.uniform(spiel_cfr.compile_game(game))]
  )
  mediator = policy.mediator(seed=0)
  state = game.new_initial_state()
  order = mediator.recommend(state)
  state.apply_action(next(action for action in state.legal_actions() if action != order))
  with pytest.raises(errors.PolicyError, match="told no more"):
    mediator.recommend(state)
  state.apply_action(state.legal_actions()[0])
  # The sheriff goes on, whether the smuggler has left or never asked.
  assert mediator.recommend(state) in state.legal_actions()
  with pytest.raises(errors.PolicyError, match="it is player 1 to move"):
    mediator.recommend(state, 0)
  silent = policy.bots(seed=0)[1]
  assert silent.step(state) in state.legal_actions()


def test_three_players_are_told_one_profile():
  game = spiel_cfr.compile_game("kuhn_poker(players=3)")
  plays = []
  for place in (0, 1):
    profile = np.zeros(game.end)
    for tree in game.treeplexes:
      for names, _ in tree.infoset_groups():
        profile[names[place]] = 1.0
    plays.append(profile)
  policy = correlated.MixturePolicy(game, plays, [1, 3])
  assert {each[1] for each in policy.marginals().values() if each} >= {0.75}
  bots, seen = policy.bots(seed=0), collections.Counter()
  for seed in range(40):
    # All pass, or all bet: pots are 3 or 6, so the winner gets 2 or 4.
    returns = pyspiel.evaluate_bots(game.game.new_initial_state(), bots, seed)
    seen[max(returns)] += 1
  assert set(seen) == {2.0, 4.0}
  assert 18 < seen[4.0] < 40


def test_invalid_mixtures_are_refused():
  uniform = spiel_cfr.policies.uniform(spiel_cfr.compile_game("kuhn_poker"))
  for weights in ([1, 2], [-1], [0], [np.nan], ["a"]):
    with pytest.raises(errors.ArgumentError, match="one for each"):
      correlated.MixturePolicy("kuhn_poker", [uniform], weights)
  with pytest.raises(errors.ArgumentError, match="profiles is empty"):
    correlated.MixturePolicy("kuhn_poker", [])
  for profile in (uniform[:5], 2 * uniform):
    with pytest.raises(errors.PolicyError, match="behavioral form"):
      correlated.MixturePolicy("kuhn_poker", [profile])
  with pytest.raises(errors.PolicyError, match="no probabilities"):
    correlated.MixturePolicy("kuhn_poker", [{}])


def test_copies_and_pickles_of_bots_share_a_mediator():
  policy = correlated.optimal_equilibrium(SHERIFF).policy
  game = pyspiel.load_game(SHERIFF)
  bots = policy.bots(seed=3)
  twins = pickle.loads(pickle.dumps(bots)), copy.deepcopy(bots)
  for seed in range(5):
    wanted = pyspiel.evaluate_bots(game.new_initial_state(), bots, seed)
    for twin in twins:
      assert pyspiel.evaluate_bots(game.new_initial_state(), twin, seed) == wanted
  single = copy.copy(bots[1])
  assert (type(single), single.player_id()) == (correlated.MediatedBot, 1)


@pytest.mark.parametrize(
  "table",
  [correlated.DEVIATIONS, correlated.MEASURABLE_GAPS, correlated.GAP_KINDS, catalogue.SOLVERS],
)
def test_tables_of_names_can_be_copied_and_not_changed(table):
  for twin in (copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
    assert [*twin] == [*table]
    assert len(twin) == len(table)
    assert repr(twin) == repr(table)
  with pytest.raises(TypeError):
    table["own"] = None
