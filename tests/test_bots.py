"""Policies as bots: their actions, and OpenSpiel's evaluation of bots."""

import copy
import json
import pickle

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python.algorithms import evaluate_bots

import spiel_cfr
from spiel_cfr import errors, exploitation
from spiel_cfr.bots import SafeBot


def play(game, bots, games, seed=0):
  """Returns the mean returns, and their standard errors, of games that OpenSpiel's C++ plays."""
  returns = np.array(
    [
      pyspiel.evaluate_bots(game.new_initial_state(), bots, seed + number)
      for number in range(games)
    ]
  )
  return returns.mean(axis=0), returns.std(axis=0) / np.sqrt(games)


@pytest.mark.parametrize(
  "name",
  ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "goofspiel(num_cards=3,imp_info=True)"],
)
def test_mean_returns_equal_expected_values(name):
  game = pyspiel.load_game(name)
  solver = spiel_cfr.CFRSolver(game)
  solver.run(20)
  bots = [spiel_cfr.PolicyBot(solver, player, seed=player) for player in range(game.num_players())]
  mean, error = play(game, bots, 500)
  expected = spiel_cfr.expected_values(solver.compiled_game, solver.average_policy())
  assert (np.abs(mean - expected) < 5 * error + 1e-9).all()
  returns = evaluate_bots.evaluate_bots(game.new_initial_state(), bots, np.random.RandomState(0))
  assert len(returns) == game.num_players()


def test_kinds_of_policies():
  game = pyspiel.load_game("leduc_poker")
  solution = spiel_cfr.solve(game, iterations=50)
  state = game.new_initial_state()
  for action in (0, 3, 1):
    state.apply_action(action)
  table = solution.policy_dict()
  kinds = [
    solution,
    solution.solver,
    solution.policy,
    table,
    json.loads(json.dumps(table), object_hook=_with_numbers),
    solution.solver.tabular_average_policy(),
  ]
  wanted = table[state.information_state_string()]
  for each in kinds:
    bot = spiel_cfr.PolicyBot(each, 1, seed=0)
    assert dict(bot.get_policy(state)) == pytest.approx(wanted)
    chances, action = bot.step_with_policy(state)
    assert dict(chances)[action] > 0
    assert bot.step(state) in wanted
    assert bot.get_policy(game.new_initial_state()) == []
    assert bot.step(game.new_initial_state()) == pyspiel.INVALID_ACTION
  sampled = spiel_cfr.ExternalSamplingSolver(game, engine="states", seed=0)
  sampled.run(50)
  assert spiel_cfr.PolicyBot(sampled, 1).step(state) in wanted


def _with_numbers(table):
  return {
    int(key) if key.isdigit() and not isinstance(value, dict) else key: value
    for key, value in table.items()
  }


def test_bot_stays_as_it_is():
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(1)
  bot = spiel_cfr.PolicyBot(solver, 0)
  state = solver.game.new_initial_state()
  state.apply_action(0)
  state.apply_action(1)
  before = bot.get_policy(state)
  solver.run(100)
  # This call brings the policy that the solver hands out up to date.
  now = solver.average_policy().action_probabilities(state)
  assert bot.get_policy(state) == before
  assert dict(before) != now


def test_bots_are_a_policy_in_the_order_of_players():
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(10)
  bots = [spiel_cfr.PolicyBot(solver, player) for player in (0, 1)]
  found = spiel_cfr.exploitability("kuhn_poker", bots)
  assert found == pytest.approx(solver.exploitability(), abs=1e-12)
  for wrong in (bots[::-1], bots[0]):
    with pytest.raises(errors.PolicyError, match="plays as one player"):
      spiel_cfr.exploitability("kuhn_poker", wrong)


def test_seeds():
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  state = solver.game.new_initial_state()
  state.apply_action(0)
  state.apply_action(1)
  first, second, other = (
    [bot.step(state) for _ in range(64)]
    for bot in (spiel_cfr.PolicyBot(solver, 0, seed=seed) for seed in (1, 1, 2))
  )
  assert first == second != other


def test_invalid_policies_are_refused():
  game = pyspiel.load_game("kuhn_poker")
  state = game.new_initial_state()
  state.apply_action(0)
  state.apply_action(1)
  with pytest.raises(errors.ArgumentError, match="not a policy"):
    spiel_cfr.PolicyBot([1], 0)
  with pytest.raises(errors.ArgumentError, match="player"):
    spiel_cfr.PolicyBot({}, -1)
  with pytest.raises(errors.PolicyError, match="'0'"):
    spiel_cfr.PolicyBot({}, 0).step(state)
  with pytest.raises(errors.PolicyError, match="not a distribution"):
    spiel_cfr.PolicyBot({"0": {0: 0.5}}, 0).step(state)
  uniform = open_spiel_policy.UniformRandomPolicy(game)
  assert dict(spiel_cfr.PolicyBot(uniform, 0).get_policy(state)) == {0: 0.5, 1: 0.5}


def test_a_safe_bot_learns_from_games():
  game = pyspiel.load_game("kuhn_poker")
  told, seen = (exploitation.SafeExploiter("kuhn_poker", 0) for _ in range(2))
  bot = SafeBot(seen, seed=0)
  others = [bot, spiel_cfr.PolicyBot(open_spiel_policy.UniformRandomPolicy(game), 1, seed=1)]
  for seed in range(20):
    state = game.new_initial_state()
    evaluate_bots.evaluate_bots(state, others, np.random.RandomState(seed))
    told.observe(state.history())
  bot.restart()
  assert seen.budget == told.budget > 0.1
  np.testing.assert_array_equal(
    seen.policy.action_probability_array, told.policy.action_probability_array
  )
  # OpenSpiel's C++ shows a bot the states in which it moves. It then sees fewer gifts.
  for seed in range(20):
    pyspiel.evaluate_bots(game.new_initial_state(), others, seed)
  assert pickle.loads(pickle.dumps(bot)).get_policy(state) == []
  assert seen.budget > told.budget
  bot.inform_action(state, 0, 5)
  with pytest.raises(errors.ArgumentError, match="not legal"):
    bot.restart()
  bot.restart()
  with pytest.raises(errors.ArgumentError, match="exploiter"):
    SafeBot(told.policy)


class Named(spiel_cfr.PolicyBot):
  """A bot with more attributes and another constructor."""

  def __init__(self, name, solver):
    super().__init__(solver, 0, seed=3)
    self.name = name


def test_copies_and_pickles_play_on():
  game = pyspiel.load_game("kuhn_poker")
  solver = spiel_cfr.CFRSolver(game)
  solver.run(10)
  state = game.new_initial_state().child(0).child(1)
  for policy in (solver, solver.average_policy_dict(), solver.tabular_average_policy()):
    bot = spiel_cfr.PolicyBot(policy, 0, seed=0)
    bot.step(state)
    twins = [pickle.loads(pickle.dumps(bot)), copy.deepcopy(bot)]
    drawn = [[each.step(state) for _ in range(30)] for each in (bot, *twins)]
    assert drawn[0] == drawn[1] == drawn[2]
    assert len(set(drawn[0])) == 2
    assert twins[0].player_id() == 0
  twin = pickle.loads(pickle.dumps(Named("Ada", solver)))
  assert (type(twin), twin.name) == (Named, "Ada")
  assert pyspiel.evaluate_bots(
    game.new_initial_state(), [twin, spiel_cfr.PolicyBot(solver, 1, seed=0)], 0
  )
