"""The tree of histories equals the game's, and matches the compiled arrays."""

import numpy as np
import poker_games
import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.histories import (
  CHILDREN,
  MOVER,
  UNSIGNED_CHANCE,
  UNSIGNED_TERMINAL,
  compile_histories,
)


def histories_of(compiled, view=None, max_nodes=10**6):
  return compile_histories(
    view or compiled.view, compiled.infostates, compiled.actions, compiled.num_actions, max_nodes
  )


def without_raises(state, actions):
  return [action for action in actions if action != 2]


@pytest.mark.parametrize("action_filter", [None, without_raises])
@pytest.mark.parametrize("name", ["leduc_poker", "kuhn_poker"])
def test_trees_of_all_forms_are_the_same(name, action_filter):
  enumerated = spiel_cfr.compile_game(name, action_filter=action_filter)
  vector = spiel_cfr.poker.compile_public_game(name, action_filter)
  trees = [histories_of(compiled) for compiled in (enumerated, vector)]
  assert trees[0][1] == trees[1][1]
  for ours, theirs in zip(trees[0][0], trees[1][0], strict=True):
    np.testing.assert_array_equal(ours, theirs)
  nodes = trees[0][0].nodes
  assert len(nodes) == enumerated.num_states
  assert (nodes[:, MOVER] == UNSIGNED_TERMINAL).sum() == enumerated.num_terminals
  chance = nodes[nodes[:, MOVER] == UNSIGNED_CHANCE]
  assert chance[:, CHILDREN].sum() == len(trees[0][0].probabilities)


@pytest.mark.slow
def test_an_endgame_has_the_histories_of_possible_deals():
  compiled = spiel_cfr.poker.compile_public_game(
    poker_games.random_endgame(1, 5).load(), poker_games.check_or_pot
  )
  tree, _ = histories_of(compiled)
  assert (tree.probabilities > 0).all()
  enumerated = spiel_cfr.compile_game(
    compiled.game, action_filter=poker_games.check_or_pot, vector_form=False
  )
  assert len(tree.nodes) == enumerated.num_states


def test_max_nodes():
  compiled = spiel_cfr.compile_game("leduc_poker")
  histories_of(compiled, max_nodes=compiled.num_states)
  with pytest.raises(errors.GameTooLargeError, match="max_nodes=9,456"):
    histories_of(compiled, max_nodes=compiled.num_states - 1)


@pytest.mark.parametrize(
  ("compiled_filter", "walked_filter", "message"),
  [
    # Fewer actions than compiled, more, others of the same number.
    (None, without_raises, "different legal actions"),
    (without_raises, None, "different legal actions"),
    (lambda _, actions: actions[:1], lambda _, actions: actions[-1:], "different legal actions"),
  ],
)
def test_other_legal_actions_are_named(compiled_filter, walked_filter, message):
  compiled = spiel_cfr.compile_game("leduc_poker", action_filter=compiled_filter)
  view = GameView(compiled.game, walked_filter)
  with pytest.raises(errors.InconsistentInfosetError, match=message):
    histories_of(compiled, view)


def test_other_infostates_are_named():
  compiled = spiel_cfr.compile_game("kuhn_poker")
  with pytest.raises(errors.InconsistentInfosetError, match="not in the compiled game"):
    histories_of(
      compiled,
      GameView(pyspiel.load_game("kuhn_poker"), infostate=lambda state, player: str(state)),
    )


def test_a_filter_lost_with_a_file_is_named(tmp_path):
  path = tmp_path / "filtered.npz"
  spiel_cfr.compile_game("leduc_poker", action_filter=without_raises).save(path)
  with pytest.raises(errors.InconsistentInfosetError, match="files do not keep filters"):
    spiel_cfr.ExternalSamplingSolver(spiel_cfr.load_compiled_game(path))
