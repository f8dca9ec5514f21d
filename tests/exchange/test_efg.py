"""Games written in Gambit's format are the same games when OpenSpiel reads them."""

import re
from fractions import Fraction

import numpy as np
import pyspiel
import pytest
import random_games
from composition.forms import FORMS, never_fold_early

import spiel_cfr
from spiel_cfr import errors, policies

# Labels that some infosets share: written in another order, OpenSpiel would take one for the other.
SHARED = """EFG 2 R "shared" { "0" "1" } ""
p "" 1 1 "first" { "b" "c" } 0
p "" 2 1 "second" { "b" "a" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { 2 -2 }
p "" 2 2 "third" { "c" "a" } 0
t "" 3 "" { 3 -3 }
t "" 4 "" { 4 -4 }
"""
GAMES = {
  "shared labels": lambda: pyspiel.load_efg_game(SHARED),
  "kuhn_poker": lambda: "kuhn_poker",
  "kuhn, 3 players": lambda: "kuhn_poker(players=3)",
  "leduc_poker": lambda: "leduc_poker",
  "goofspiel": lambda: "goofspiel(imp_info=True,num_cards=3,points_order=descending)",
  "liars_dice": lambda: "liars_dice(dice_sides=3)",
  "general-sum": lambda: random_games.random_game(1, zero_sum=False, max_histories=120),
  "ties": lambda: random_games.random_game(4, 3, payoff_ties=True, max_histories=120),
  "matrix_rps": lambda: "matrix_rps",
  "odd chances": lambda: pyspiel.load_efg_game(random_games.ODD_CHANCES),
}


def carried_over(compiled, read, table):
  """Returns a policy, infostate -> action -> probability, for the game that was read, walking both side by side."""
  result = {}
  by_words = {}

  def visit(state, other):
    if state.is_terminal():
      np.testing.assert_allclose(other.returns(), state.returns(), rtol=1e-14)
      return
    if state.is_chance_node():
      outcomes = {state.action_to_string(-1, a): (a, p) for a, p in state.chance_outcomes()}
      for action, chance in other.chance_outcomes():
        own, expected = outcomes[other.action_to_string(-1, action)]
        assert chance == pytest.approx(expected, rel=1e-14)
        visit(state.child(own), other.child(action))
      return
    player = state.current_player()
    assert other.current_player() == player
    name = compiled.view.infostate(state)
    actions = compiled.view.legal_actions(state)
    words = {state.action_to_string(player, action): action for action in actions}
    legal = other.legal_actions()
    pairs = {action: words[other.action_to_string(player, action)] for action in legal}
    assert by_words.setdefault(name, pairs) == pairs
    chances = {action: table[name][own] for action, own in pairs.items()}
    assert result.setdefault(other.information_state_string(), chances) == chances
    for action, own in pairs.items():
      visit(state.child(own), other.child(action))

  visit(compiled.view.new_initial_state(), read.new_initial_state())
  return result


@pytest.mark.parametrize("name", GAMES)
def test_the_game_is_the_same(tmp_path, name):
  compiled = spiel_cfr.compile_game(GAMES[name](), vector_form=False)
  path = tmp_path / "game.efg"
  spiel_cfr.exchange.save_efg(compiled, path)
  read = pyspiel.load_game(f"efg_game(filename={path})")
  again = spiel_cfr.compile_game(read)
  assert again.num_states == compiled.num_states
  assert [len(own) for own in again.infostates] == [len(own) for own in compiled.infostates]
  rng = np.random.default_rng(0)
  table = policies.to_dict(compiled, policies.behavioral_form(compiled, rng.random(compiled.end)))
  found = spiel_cfr.nash_conv(again, carried_over(compiled, read, table))
  assert found == pytest.approx(spiel_cfr.nash_conv(compiled, table), rel=1e-12)


@pytest.mark.parametrize("name", GAMES)
def test_chance_sums_to_one_and_remembers(tmp_path, name):
  """Otherwise Gambit refuses the file or reports imperfect recall; see `test_gambit`."""
  spiel_cfr.exchange.save_efg(GAMES[name](), tmp_path / "game.efg")
  lines = (tmp_path / "game.efg").read_text().splitlines()
  nodes = [re.match(r'c "" (\d+) "" \{ (.*) \} 0$', line) for line in lines if line[0] == "c"]
  for node in nodes:
    chances = re.findall(r'"[^"]*" (\S+)', node[2])
    assert sum(map(Fraction, chances)) == 1
  assert len({node[1] for node in nodes}) == len(nodes)


def test_simple_fractions(tmp_path):
  spiel_cfr.exchange.save_efg("kuhn_poker", tmp_path / "game.efg")
  lines = (tmp_path / "game.efg").read_text().splitlines()
  assert lines[1] == 'c "" 1 "" { "Deal:0" 1/3 "Deal:1" 1/3 "Deal:2" 1/3 } 0'
  assert 't "" 1 "" { -1 1 }' in lines


def test_filters_are_kept(tmp_path):
  form = next(form for form in FORMS if form.action_filter is never_fold_early)
  spiel_cfr.exchange.save_efg(form.compiled, tmp_path / "game.efg")
  again = spiel_cfr.compile_game(f"efg_game(filename={tmp_path / 'game.efg'})")
  assert again.num_states == form.compiled.num_states
  found = spiel_cfr.solve_lp(again).value
  assert found == pytest.approx(spiel_cfr.solve_lp(form.compiled).value, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_numbers_of_any_size(tmp_path, scale):
  rows = (scale * np.array([[1.0, -1 / 3], [-1 / 7, 1.0]])).tolist()
  game = pyspiel.create_matrix_game(rows, [[-entry for entry in row] for row in rows])
  spiel_cfr.exchange.save_efg(game, tmp_path / "game.efg")
  again = spiel_cfr.compile_game(f"efg_game(filename={tmp_path / 'game.efg'})")
  assert spiel_cfr.solve_lp(again).value == pytest.approx(spiel_cfr.solve_lp(game).value, rel=1e-12)


def test_limits_leave_no_file(tmp_path):
  with pytest.raises(errors.GameTooLargeError, match="max_nodes=10"):
    spiel_cfr.exchange.save_efg("kuhn_poker", tmp_path / "game.efg", max_nodes=10)
  assert not list(tmp_path.iterdir())
