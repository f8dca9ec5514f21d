"""Compiling: every kind of game comes out right, and those that can't be solved are refused by name."""

import dataclasses
import math
import subprocess
import sys
import tracemalloc

import numpy as np
import pyspiel
import pytest
import random_games
from hypothesis import given, settings

import spiel_cfr
from spiel_cfr import errors, policy
from spiel_cfr.game import enumerate as enumerate_module


def efg(body, players='"A" "B"'):
  return pyspiel.load_efg_game(f'EFG 2 R "test" {{ {players} }} ""\n{body}')


def walk(game):
  """Yields (state, chance's probability of it) for all states."""
  stack = [(game.new_initial_state(), 1.0)]
  while stack:
    state, reach = stack.pop()
    yield state, reach
    if state.is_chance_node():
      stack += [(state.child(action), reach * p) for action, p in state.chance_outcomes()]
    elif not state.is_terminal():
      stack += [(state.child(action), reach) for action in state.legal_actions()]


def check_against_walk(compiled):
  """Checks sizes, infosets, actions and payoffs against a second walk that shares no code."""
  infosets = [{} for _ in range(compiled.num_players)]
  num_states = num_terminals = 0
  uniform = np.zeros(compiled.num_players)
  for state, reach in walk(compiled.game):
    num_states += 1
    if state.is_terminal():
      num_terminals += 1
      played, probability = compiled.game.new_initial_state(), 1.0
      for action in state.history():
        if not played.is_chance_node():
          probability /= len(played.legal_actions())
        played.apply_action(action)
      uniform += reach * probability * np.array(state.returns())
    elif not state.is_chance_node():
      own = infosets[state.current_player()]
      own[state.information_state_string()] = state.legal_actions()
  assert (compiled.num_states, compiled.num_terminals) == (num_states, num_terminals)
  for player, own in enumerate(infosets):
    flat = iter(compiled.actions[player].tolist())
    found = {
      infostate: [next(flat) for _ in range(count)]
      for infostate, count in zip(
        compiled.infostates[player], compiled.num_actions[player].tolist(), strict=True
      )
    }
    assert found == own
  strategy = policy.uniform(compiled)
  assert spiel_cfr.evaluate.evaluate(
    compiled, policy.sequence_form(compiled, strategy)
  ).expected_values == pytest.approx(uniform, abs=1e-12)


def check_layout(compiled):
  """Checks that every sequence belongs to one infoset, blocks are aligned, and parents come first."""
  seen = np.zeros(compiled.end, bool)
  for treeplex in compiled.treeplexes:
    seen[treeplex.root] = True
    for sequences, infosets in treeplex.blocks():
      assert sequences[0, 0] % 8 == 0
      parents = treeplex.parent[infosets]
      assert seen[parents].all(), "a parent comes after its child"
      assert not seen[sequences].any(), "two infosets share a sequence"
      seen[sequences] = True
    assert seen[treeplex.root : treeplex.end].sum() == treeplex.num_sequences
  assert (np.sort(compiled.all_action_sequences) == np.unique(compiled.all_action_sequences)).all()
  assert len(compiled.all_action_sequences) == sum(
    treeplex.num_sequences - 1 for treeplex in compiled.treeplexes
  )


@pytest.mark.parametrize(
  "name",
  [
    "kuhn_poker",
    "kuhn_poker(players=4)",
    "leduc_poker",
    "liars_dice(dice_sides=3)",
    "matrix_rps",
    "matrix_pd",
    "blotto(coins=4,fields=2)",
    "goofspiel(num_cards=3,imp_info=True)",
    "oshi_zumo(coins=3,size=1,horizon=3)",
    "first_sealed_auction(players=3,max_value=3)",
    "sheriff(max_items=2,max_bribe=2,num_rounds=1)",
    "python_kuhn_poker",
    "python_iterated_prisoners_dilemma(max_game_length=2)",
    "tic_tac_toe",
    "mfg_garnet",
  ],
)
def test_known_games(name):
  if name == "mfg_garnet":
    with pytest.raises(errors.MeanFieldGameError):
      spiel_cfr.compile_game(name)
    return
  if name == "tic_tac_toe":
    compiled = spiel_cfr.compile_game(name)
    assert compiled.num_states == 549_946
    return
  compiled = spiel_cfr.compile_game(name)
  check_against_walk(compiled)
  check_layout(compiled)


@given(random_games.games())
@settings(max_examples=60)
def test_random_games(game):
  compiled = spiel_cfr.compile_game(game)
  check_against_walk(compiled)
  check_layout(compiled)
