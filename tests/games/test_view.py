"""A view shows the same game to every walk, and to OpenSpiel's Python algorithms."""

import copy
import itertools
import operator
import pickle

import numpy as np
import poker_games
import pyspiel
import pytest
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.walk import enumerate_game


def _names(walk):
  """Returns each player's infostates."""
  return [own.infostates for own in walk.infosets]


def drop_first(state, actions):
  """A filter that must not be applied twice."""
  return actions[1:] or actions


def backwards(state, player):
  return state.information_state_string(player)[::-1]


def test_a_whole_view_is_the_game_itself():
  game = pyspiel.load_game("leduc_poker")
  view = GameView(game)
  assert view.open_spiel_game() is game
  state = view.new_initial_state()
  assert view.chance_outcomes(state) == state.chance_outcomes()
  state = state.child(0).child(1)
  assert view.legal_actions(state) == state.legal_actions()
  assert view.infostate(state) == state.information_state_string()
  assert view.look_up(state) == (state.information_state_string(), state.legal_actions())


def test_python_states_may_override_methods():
  class Turned(pyspiel.State):
    def legal_actions(self, player=None):
      return [1]

  class Game:
    def new_initial_state(self):
      return Turned.__new__(Turned)

    def __getattr__(self, name):
      return getattr(pyspiel.load_game("kuhn_poker"), name)

  view = GameView(Game())
  assert view.legal_actions(view.new_initial_state()) == [1]


@pytest.mark.parametrize(
  "view",
  [
    GameView(pyspiel.load_game("leduc_poker")),
    GameView(pyspiel.load_game("leduc_poker"), drop_first, infostate=backwards),
    GameView(poker_games.random_endgame(1, 3).load()),
  ],
  ids=["whole", "restricted", "endgame"],
)
def test_copies_and_pickles(view):
  for twin in (copy.copy(view), copy.deepcopy(view), pickle.loads(pickle.dumps(view))):
    assert str(twin.game) == str(view.game)
    assert (twin.action_filter, twin.possible_only) == (view.action_filter, view.possible_only)
    state = view.new_initial_state()
    assert twin.chance_outcomes(state) == view.chance_outcomes(state)
    while state.is_chance_node():
      state.apply_action(view.chance_outcomes(state)[0][0])
    assert twin.look_up(state) == view.look_up(state)


def test_endgames_leave_out_impossible_deals():
  game = poker_games.random_endgame(1, 4).load()
  view = GameView(game)
  assert view.possible_only
  outcomes = view.chance_outcomes(view.new_initial_state())
  assert len(outcomes) <= 16
  assert sum(map(operator.itemgetter(1), outcomes)) == pytest.approx(1)
  assert len(game.new_initial_state().chance_outcomes()) > 10**6
  assert not GameView(pyspiel.load_game("leduc_poker")).possible_only


def test_infostates_can_be_named_by_a_function():
  game = pyspiel.load_game("kuhn_poker")
  walk, named = (
    enumerate_game(GameView(game, infostate=function), 1000, 10**9)
    for function in (None, backwards)
  )
  assert _names(named) == [[name[::-1] for name in own] for own in _names(walk)]
  tabular = open_spiel_policy.TabularPolicy(GameView(game, infostate=backwards).open_spiel_game())
  assert list(tabular.state_lookup) == [name for own in _names(named) for name in own]


@pytest.mark.parametrize("name", ["leduc_poker", "kuhn_poker(players=3)", "goofspiel(num_cards=3)"])
def test_open_spiel_walks_the_filtered_game(name):
  compiled = spiel_cfr.compile_game(name, action_filter=drop_first)
  game = compiled.view.open_spiel_game()
  tabular = open_spiel_policy.TabularPolicy(game)
  assert list(compiled.table_rows) == list(tabular.state_lookup)
  np.testing.assert_array_equal(compiled.legal_actions_mask, tabular.legal_actions_mask)
  solver = spiel_cfr.CFRSolver(compiled)
  for policy in (tabular, open_spiel_policy.UniformRandomPolicy(game), solver.average_policy()):
    expected = exploitability.nash_conv(game, policy, use_cpp_br=False)
    assert spiel_cfr.nash_conv(compiled, policy.to_tabular()) == pytest.approx(expected, abs=1e-9)
    values = expected_game_score.policy_value(
      game.new_initial_state(), [policy] * game.num_players()
    )
    np.testing.assert_allclose(
      spiel_cfr.expected_values(compiled, policy.to_tabular()), values, atol=1e-9
    )
  if "goofspiel" not in name:
    # Actions have been removed, and more than one is left somewhere.
    assert compiled.num_infosets < spiel_cfr.compile_game(name).num_infosets


def test_states_of_the_restricted_game():
  view = GameView(pyspiel.load_game("leduc_poker"), drop_first)
  game = view.open_spiel_game()
  assert str(game) == "leduc_poker()"
  assert game.num_players() == 2
  state = game.new_initial_state()
  assert state.get_game() is game
  assert state.legal_actions() == list(range(6))
  assert state.legal_actions_mask() == [1] * 6
  state = state.child(0).clone()
  state.apply_action(1)
  assert state.legal_actions() == state.legal_actions(0) == [2]
  assert state.legal_actions(1) == []
  assert state.legal_actions_mask() == [0, 0, 1]
  assert view.look_up(state) == (state.information_state_string(0), [2])
  assert state.information_state_string(1) != state.information_state_string()
  assert copy.copy(state).legal_actions() == [2]
  assert str(state) == str(view.new_initial_state().child(0).child(1))
  while not state.is_terminal():
    state = state.child(state.legal_actions()[0])
  assert state.legal_actions() == []
  with pytest.raises(AttributeError):
    state._nothing  # noqa: B018


def test_first_states_are_of_the_view():
  view = GameView(pyspiel.load_game("leduc_poker"), drop_first)
  infostates = _names(enumerate_game(view, 10**5, 10**9))
  states = view.first_states(infostates)
  assert [state.information_state_string() for state in states] == list(
    itertools.chain(*infostates)
  )
  # The whole game has these infostates as well, among others.
  whole = GameView(view.game).first_states(infostates)
  assert [state.information_state_string() for state in whole] == list(itertools.chain(*infostates))
  with pytest.raises(errors.InconsistentInfosetError, match="nowhere"):
    view.first_states([[*infostates[0], "nowhere"], infostates[1]])


def test_compiled_games_have_a_view(tmp_path):
  for compiled in (
    spiel_cfr.compile_game("leduc_poker", action_filter=drop_first),
    spiel_cfr.poker.compile_public_game("leduc_poker", drop_first),
  ):
    assert compiled.view.action_filter is drop_first
    assert compiled.game is compiled.view.game
  path = tmp_path / "leduc.npz"
  spiel_cfr.compile_game("leduc_poker").save(path)
  loaded = spiel_cfr.load_compiled_game(path)
  assert loaded.view is loaded.view
  assert str(loaded.game) == "leduc_poker()"
  assert loaded.view.action_filter is None
