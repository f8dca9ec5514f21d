"""Policies to and from OpenSpiel: its methods work on ours, and ours read all of its kinds."""

import copy
import dataclasses
import pickle

import numpy as np
import pyspiel
import pytest
import random_games
from hypothesis import given, settings
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python.algorithms import exploitability as open_spiel_exploitability
from open_spiel.python.algorithms import policy_utils

import spiel_cfr
from spiel_cfr import errors, policies

NAMES = [
  "kuhn_poker",
  "kuhn_poker(players=3)",
  "leduc_poker",
  "tiny_hanabi",
  "goofspiel(num_cards=3,imp_info=True)",
  "liars_dice(dice_sides=3)",
  "blotto(coins=3,fields=3)",
  "sheriff(max_items=2,max_bribe=2,num_rounds=1)",
]


def random_probabilities(compiled, seed=0):
  """Returns a random policy in behavioral form."""
  generator = np.random.default_rng(seed)
  return policies.behavioral_form(compiled, generator.random(compiled.end))


@pytest.fixture(params=NAMES)
def compiled(request):
  return spiel_cfr.compile_game(request.param)


def check_same_as_open_spiels(ours, theirs):
  """Checks everything that OpenSpiel's TabularPolicy promises, against one made by its own walk."""
  assert isinstance(ours, open_spiel_policy.TabularPolicy)
  assert list(ours.state_lookup.items()) == list(theirs.state_lookup.items())
  assert ours.states_per_player == theirs.states_per_player
  assert ours.player_ids == theirs.player_ids
  np.testing.assert_array_equal(ours.legal_actions_mask, theirs.legal_actions_mask)
  assert ours.action_probability_array.shape == theirs.action_probability_array.shape
  assert [str(state) for state in ours.states] == [str(state) for state in theirs.states]
  if theirs.state_in is None:
    assert ours.state_in is None
  else:
    np.testing.assert_array_equal(ours.state_in, theirs.state_in)
  assert ours.game_type.short_name == theirs.game_type.short_name


def test_tabular_policy(compiled):
  theirs = open_spiel_policy.TabularPolicy(compiled.game)
  ours = policies.CompiledTabularPolicy(compiled, policies.uniform(compiled))
  check_same_as_open_spiels(ours, theirs)
  np.testing.assert_array_equal(ours.action_probability_array, theirs.action_probability_array)
  assert ours.to_dict() == theirs.to_dict()


@given(random_games.games())
@settings(max_examples=30)
def test_tabular_policy_of_random_games(game):
  compiled = spiel_cfr.compile_game(game)
  if not compiled.num_infosets:
    return
  ours = policies.CompiledTabularPolicy(compiled, policies.uniform(compiled))
  theirs = open_spiel_policy.TabularPolicy(game)
  assert list(ours.state_lookup.items()) == list(theirs.state_lookup.items())
  assert ours.states_per_player == theirs.states_per_player
  assert [str(state) for state in ours.states] == [str(state) for state in theirs.states]
  np.testing.assert_array_equal(ours.action_probability_array, theirs.action_probability_array)


def test_every_method(compiled):
  probabilities = random_probabilities(compiled)
  ours = policies.CompiledTabularPolicy(compiled, probabilities)
  array = ours.action_probability_array.copy()
  table = policies.to_dict(compiled, probabilities)
  for state in ours.states:
    infostate = state.information_state_string()
    assert ours.action_probabilities(state) == table[infostate] == ours(state)
    assert ours.action_probabilities(state, state.current_player()) == table[infostate]
    assert ours.state_index(state) == ours.state_lookup[infostate]
    assert ours.sample_action(state) in state.legal_actions()
  for copied in (copy.copy(ours), ours.to_tabular(), copy.deepcopy(ours)):
    np.testing.assert_allclose(copied.action_probability_array, array)
    copied.action_probability_array[:] = 0
    np.testing.assert_array_equal(ours.action_probability_array, array)
  noisy = ours.copy_with_noise(alpha=0.5, beta=1.0, random_state=np.random.RandomState(0))
  np.testing.assert_allclose(noisy.action_probability_array.sum(axis=1), 1.0)
  assert not np.allclose(noisy.action_probability_array, array)
  ours.policy_for_key(infostate)[:] = 0
  assert not ours.action_probability_array[ours.state_lookup[infostate]].any()


def test_copies_of_games_that_open_spiel_cannot_load_again(capfd):
  """Such as a matrix game; OpenSpiel's own copy of one lists all games that it knows on stderr, and fails."""
  game = pyspiel.create_matrix_game([[1, -1], [-1, 1]], [[-1, 1], [1, -1]])
  solution = spiel_cfr.solve(game, progress=False)
  policy = solution.policy
  capfd.readouterr()
  copied, pickled = copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))
  assert copied.game is policy.game
  assert pickled.game is None
  for other in (copied, pickled):
    np.testing.assert_array_equal(other.action_probability_array, policy.action_probability_array)
    assert spiel_cfr.nash_conv(game, other) == solution.nash_conv
  assert not capfd.readouterr().err


@pytest.mark.quick(except_for=["leduc_poker"])
def test_open_spiels_tools_take_it(compiled):
  probabilities = random_probabilities(compiled)
  ours = policies.CompiledTabularPolicy(compiled, probabilities)
  theirs = open_spiel_policy.TabularPolicy(compiled.game)
  for infostate, row in ours.state_lookup.items():
    theirs.policy_for_key(infostate)[:] = ours.action_probability_array[row]
  assert open_spiel_exploitability.nash_conv(compiled.game, ours) == pytest.approx(
    open_spiel_exploitability.nash_conv(compiled.game, theirs), abs=1e-14
  )
  merged = open_spiel_policy.merge_tabular_policies([ours] * compiled.num_players, compiled.game)
  np.testing.assert_array_equal(merged.action_probability_array, ours.action_probability_array)
  assert policy_utils.policy_to_dict(ours, compiled.game) == policy_utils.policy_to_dict(
    theirs, compiled.game
  )
  in_cpp = open_spiel_policy.python_policy_to_pyspiel_policy(ours)
  assert in_cpp.policy_table() == policies.to_pyspiel(compiled, probabilities).policy_table()


def test_changes_stay_with_the_policy():
  solver, twin = spiel_cfr.CFRSolver("kuhn_poker"), spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(8)
  twin.run(4)
  damaged = twin.average_policy()
  damaged.action_probability_array[:] = 0
  damaged.state_lookup.clear()
  damaged.states_per_player.clear()
  del damaged
  twin.run(4)
  np.testing.assert_array_equal(
    twin.average_policy().action_probability_array, solver.average_policy().action_probability_array
  )


def test_solvers_hand_out_every_kind():
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker")
  solver.run(3)
  for tabular, in_cpp, table in (
    (solver.current_policy(), solver.tabular_current_policy(), solver.current_policy_dict()),
    (solver.average_policy(), solver.tabular_average_policy(), solver.average_policy_dict()),
  ):
    for infostate, entries in table.items():
      assert in_cpp.action_probabilities(infostate) == entries
      row = tabular.policy_for_key(infostate)
      assert {action: row[action] for action in entries} == entries


def test_making_a_policy_walks_nothing(monkeypatch):
  compiled = spiel_cfr.compile_game("leduc_poker")
  monkeypatch.setattr(
    open_spiel_policy.get_all_states, "get_all_states", lambda *_, **__: pytest.fail("walked")
  )
  monkeypatch.setattr(type(compiled), "first_states", lambda _: pytest.fail("walked"))
  solver = spiel_cfr.CFRSolver(compiled)
  solver.run(1)
  assert solver.average_policy().policy_for_key(compiled.infostates[0][0]).sum() == 1
  copy.copy(solver.average_policy())


def test_reading_every_kind(compiled):
  expected = random_probabilities(compiled)
  cells = compiled.all_action_sequences
  tabular = policies.CompiledTabularPolicy(compiled, expected)
  table = policies.to_dict(compiled, expected)

  class OnStates(open_spiel_policy.Policy):
    def action_probabilities(self, state, player_id=None):
      return tabular.action_probabilities(state)

  kinds = {
    "ours": tabular,
    "OpenSpiel's": tabular.to_tabular(),
    "in C++": policies.to_pyspiel(compiled, expected),
    "dictionary": table,
    "dictionary of lists": {key: list(entry.items()) for key, entry in table.items()},
    "on states": OnStates(compiled.game, list(range(compiled.num_players))),
    "one a player": [tabular] * compiled.num_players,
  }
  for name, kind in kinds.items():
    found = policies.from_policy(compiled, kind)
    np.testing.assert_allclose(found[cells], expected[cells], atol=1e-15, err_msg=name)
  uniform = policies.uniform(compiled)[cells]
  for kind in (
    open_spiel_policy.UniformRandomPolicy(compiled.game),
    pyspiel.UniformRandomPolicy(compiled.game),
  ):
    np.testing.assert_allclose(policies.from_policy(compiled, kind)[cells], uniform)


def test_solvers_and_results_as_policies():
  """Functions of policies take solvers too; a bot plays its solver's current average."""
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker")
  solver.run(3)
  game, wanted = solver.compiled_game, solver.average_probabilities()
  solution = spiel_cfr.solve(game, exploitability=1e-3, progress=False)
  resolved = spiel_cfr.search.resolve(game, solver)
  verdict = spiel_cfr.judge(game, resolved)
  assert resolved.blueprint_exploitability == pytest.approx(solver.exploitability(), abs=1e-15)
  bots = [spiel_cfr.PolicyBot(solver, 0), spiel_cfr.search.SearchBot(resolved, 1)]
  solver.run(3)
  for found, expected in (
    (solver, solver.average_probabilities()),
    (solution, solution.probabilities),
    (resolved, resolved.probabilities),
    (verdict, resolved.probabilities),
    ([resolved, solver], None),
    ([bots[0], resolved], None),
  ):
    read = policies.from_policy(game, found)
    if expected is None:
      own = game.treeplexes[0]
      expected = read.copy()
      source = resolved.probabilities if found[0] is resolved else wanted
      expected[own.root : own.end] = source[own.root : own.end]
    np.testing.assert_allclose(read, expected, atol=1e-12)
    assert spiel_cfr.exploitability(game, found) < 0.2
  assert spiel_cfr.exploitability(game, bots) < 0.2


def test_rows_in_another_order():
  compiled = spiel_cfr.compile_game("kuhn_poker")
  expected = random_probabilities(compiled)
  shuffled = policies.CompiledTabularPolicy(compiled, expected)
  order = np.random.default_rng(0).permutation(len(shuffled.state_lookup))
  shuffled.action_probability_array = shuffled.action_probability_array[np.argsort(order)]
  shuffled.state_lookup = {key: int(order[row]) for key, row in shuffled.state_lookup.items()}
  cells = compiled.all_action_sequences
  np.testing.assert_array_equal(policies.from_policy(compiled, shuffled)[cells], expected[cells])


def change(table, infostate, entry):
  return {**table, infostate: entry}


@pytest.mark.parametrize(
  ("spoil", "message"),
  [
    (lambda table: {}, "another game"),
    (lambda table: change(table, "0", {0: 0.5, 1: 0.6}), "sum to 1"),
    (lambda table: change(table, "0", {0: 0.5, 1: 0.50001}), "sum to 1"),
    (lambda table: change(table, "0", {0: 1.5, 1: -0.5}), "non-negative"),
    (lambda table: change(table, "0", {0: np.nan, 1: 0.5}), "'0'"),
    (lambda table: change(table, "0", {0: np.inf, 1: -np.inf}), "'0'"),
    (lambda table: change(table, "0", {0: 0.5, 1: 0.5, 7: 0.1}), "legal actions"),
    (lambda table: change(table, "0", {}), "sum to 1"),
    (lambda table: 3, "not a policy"),
    (lambda table: [table], "players"),
    (lambda table: change(table, "0", "half"), "'0'"),
    (lambda table: change(table, "0", {0: "half", 1: "half"}), "'0'"),
  ],
)
def test_bad_policies(spoil, message):
  compiled = spiel_cfr.compile_game("kuhn_poker")
  table = policies.to_dict(compiled, policies.uniform(compiled))
  with pytest.raises(errors.PolicyError, match=message):
    spiel_cfr.nash_conv(compiled, spoil(table))


@pytest.mark.parametrize("other", ["leduc_poker", "kuhn_poker(players=3)", "tiny_hanabi"])
@pytest.mark.parametrize("kind", ["tabular", "pyspiel", "on states"])
def test_policy_of_another_game(other, kind):
  compiled, other = spiel_cfr.compile_game("kuhn_poker"), spiel_cfr.compile_game(other)
  foreign = {
    "tabular": lambda: policies.CompiledTabularPolicy(other, policies.uniform(other)),
    "pyspiel": lambda: policies.to_pyspiel(other, policies.uniform(other)),
    "on states": lambda: open_spiel_policy.TabularPolicy(other.game),
  }[kind]()
  if kind != "tabular" and str(other.game_string).startswith("kuhn_poker(players=3)"):
    # Its infostates include all of two-player Kuhn poker's, so a policy that is a table of strings does fit.
    assert np.isfinite(spiel_cfr.nash_conv(compiled, foreign))
    return
  with pytest.raises(errors.PolicyError, match="another game"):
    spiel_cfr.nash_conv(compiled, foreign)


def test_players_who_share_infostates():
  compiled = spiel_cfr.compile_game("kuhn_poker")
  shared = compiled.with_payoff(compiled.payoff)
  first, second = compiled.infosets
  shared._infosets = (first, dataclasses.replace(second, infostates=first.infostates))
  solver = spiel_cfr.CFRSolver(shared)
  solver.run(100)
  assert solver.nash_conv() == pytest.approx(_after(compiled, 100))
  with pytest.raises(errors.PolicyError, match="share"):
    solver.average_policy()


def _after(compiled, iterations):
  solver = spiel_cfr.CFRSolver(compiled)
  solver.run(iterations)
  return solver.nash_conv()


def _without_raises(state, actions):
  return [action for action in actions if action != 2]


@pytest.mark.parametrize("vector_form", [False, True])
def test_policies_with_filtered_actions_are_refused(vector_form):
  compiled = spiel_cfr.compile_game(
    "leduc_poker", action_filter=_without_raises, vector_form=vector_form
  )
  raising = spiel_cfr.compile_game("leduc_poker")
  for other in (
    open_spiel_policy.UniformRandomPolicy(compiled.game),
    pyspiel.UniformRandomPolicy(compiled.game),
    open_spiel_policy.TabularPolicy(compiled.game),
    policies.to_pyspiel(raising, policies.uniform(raising)),
    policies.to_dict(raising, policies.uniform(raising)),
  ):
    with pytest.raises(errors.PolicyError, match=r"action filter|sum to 1"):
      spiel_cfr.nash_conv(compiled, other)
  # It is the actions played that count, not those listed.
  passive = policies.to_dict(raising, policies.uniform(raising))
  for distribution in passive.values():
    distribution.update(dict.fromkeys(distribution, 0.0) | {1: 1.0})
  assert spiel_cfr.nash_conv(compiled, passive) >= 0


def test_states_that_a_filter_cut_off_are_named():
  solver = spiel_cfr.CFRSolver(spiel_cfr.compile_game("leduc_poker", action_filter=_without_raises))
  average = solver.average_policy()
  state = solver.game.new_initial_state().child(0).child(1)
  assert average(state) == {1: 1.0}
  with pytest.raises(errors.PolicyError, match="action filter"):
    average(state.child(2))
  other = spiel_cfr.compile_game("leduc_poker").game.new_initial_state().child(0).child(1)
  with pytest.raises(errors.PolicyError, match="not in the game that was compiled, kuhn_poker"):
    spiel_cfr.CFRSolver("kuhn_poker").average_policy()(other)


def test_a_table_of_open_spiels_is_copied_once_a_player(monkeypatch):
  """OpenSpiel copies the table in each call; reading must not be quadratic."""
  game = spiel_cfr.compile_game("leduc_poker")
  solver = pyspiel.CFRSolver(game.game)
  solver.evaluate_and_update_policy()
  calls, copied = [], pyspiel.TabularPolicy.policy_table
  monkeypatch.setattr(
    pyspiel.TabularPolicy, "policy_table", lambda table: calls.append(0) or copied(table)
  )
  read = policies.from_policy(game, solver.tabular_average_policy())
  assert len(calls) <= game.num_players
  assert (game.to_actions(read) > 0).all()


def test_a_policy_of_another_game_is_told_by_its_game():
  """Infostates of Kuhn poker for three players include those for two: its policies passed, with .2553."""
  solver = spiel_cfr.CFRSolver("kuhn_poker(players=3)")
  solver.run(5)
  solution = spiel_cfr.solve(solver.compiled_game, iterations=5, progress=False)
  for policy in (solver, solver.average_policy(), solution, [solver, solver]):
    for use in (spiel_cfr.exploitability, spiel_cfr.search.resolve):
      with pytest.raises(errors.PolicyError, match=r"another game, kuhn_poker\(players=3\), not"):
        use("kuhn_poker", policy)
  # Nothing but strings is known of a dictionary.
  assert spiel_cfr.exploitability("kuhn_poker", solver.average_policy_dict()) > 0
  # Defaults that are spelled out, and other forms, are the same game.
  two = spiel_cfr.CFRSolver("kuhn_poker")
  for game in (
    "kuhn_poker(players=2)",
    spiel_cfr.compile_game("kuhn_poker", vector_form=True),
    spiel_cfr.compile_game("kuhn_poker", action_filter=lambda _, legal: legal),
  ):
    assert spiel_cfr.exploitability(game, two) > 0
