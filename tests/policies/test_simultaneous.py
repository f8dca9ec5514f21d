"""Games with simultaneous moves are solved as turn-based ones; policies answer at the states of both."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python.algorithms import exploitability

import spiel_cfr
from spiel_cfr import errors

GAMES = (
  "matrix_rpsw",
  "goofspiel(num_cards=3,imp_info=true)",
  "goofspiel(num_cards=3,imp_info=true,players=3)",
  "blotto(coins=4,fields=2)",
)


def every_state(state):
  if not state.is_terminal():
    yield state
    for action in state.legal_actions():
      yield from every_state(state.child(action))


@pytest.mark.parametrize("name", GAMES)
def test_open_spiels_nash_conv_of_the_game_that_was_loaded(name):
  game = pyspiel.load_game(name)
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(7)
  for policy in (solver.average_policy(), solver.current_policy()):
    found = exploitability.nash_conv(game, policy)
    assert found == pytest.approx(spiel_cfr.nash_conv(solver.compiled_game, policy), abs=1e-9)
  assert solver.nash_conv() == pytest.approx(
    exploitability.nash_conv(game, solver.average_policy()), abs=1e-9
  )


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("engine", ["compiled", "states"])
def test_answers_for_each_player(name, engine):
  game = pyspiel.load_game(name)
  solver = spiel_cfr.ExternalSamplingSolver(game, seed=1, engine=engine)
  solver.run(200)
  policy, table = solver.average_policy(), solver.average_policy_dict()
  states = 0
  for state in every_state(game.new_initial_state()):
    if not state.is_simultaneous_node():
      continue
    states += 1
    for player in range(game.num_players()):
      found = policy.action_probabilities(state, player)
      assert list(found) == state.legal_actions(player)
      infostate = f"Current player: {player}\n{state.information_state_string(player)}"
      assert found == table.get(infostate, dict.fromkeys(found, 1 / len(found)))
    with pytest.raises(errors.PolicyError, match="player_id"):
      policy.action_probabilities(state)
  assert states


def test_with_an_action_filter():
  """The filter is asked about turn-based states, as when the game was compiled."""
  game = pyspiel.load_game("goofspiel(num_cards=3,imp_info=true)")
  compiled = spiel_cfr.compile_game(game, action_filter=lambda state, actions: actions[:2])
  policy = spiel_cfr.CFRSolver(compiled).average_policy()
  root = game.new_initial_state().child(0)
  assert root.is_simultaneous_node()
  for state in (root, root.child(4)):
    for player in (0, 1):
      found = policy.action_probabilities(state, player)
      assert list(found) == state.legal_actions(player)[:2]
      assert sum(found.values()) == pytest.approx(1)


def test_reads_tabular_policies_of_the_game_that_was_loaded():
  game = pyspiel.load_game("goofspiel(num_cards=3,imp_info=true)")
  theirs = open_spiel_policy.TabularPolicy(game)
  generator = np.random.default_rng(3)
  for row, mask in zip(theirs.action_probability_array, theirs.legal_actions_mask, strict=True):
    row[:] = mask * generator.random(len(row))
    row /= row.sum()
  expected = exploitability.nash_conv(game, theirs)
  assert spiel_cfr.nash_conv(game, theirs) == pytest.approx(expected, abs=1e-12)
