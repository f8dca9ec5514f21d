"""The papers' algorithms: partial pruning and sound windows change nothing until they may, and visit less."""

import numpy as np
import pytest
import random_games
from pruning_games import GAMES, game_of, gap_of_regrets, names, unpruned

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.cfr.pruning.reference_pruning import RULES, ReferenceCFR
from spiel_cfr.evaluation.counterfactual_values import gradients
from spiel_cfr.evaluation.evaluate import original_nash_conv

NAMES = names((name for name in GAMES if name != "goofspiel"), always=("kuhn", "random 5"))


def real_rows(game):
  return np.concatenate([rows.ravel() for tree in game.treeplexes for rows, _ in tree.blocks()])


def has_own_below(game):
  """Which sequences have an infoset of their owner right below, shape (sequences,)."""
  result = np.zeros(game.end, bool)
  result[game.parent] = True
  return result


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("plus", [False, True])
def test_partial_pruning_changes_nothing(name, plus):
  game = game_of(name)
  solver, reference = unpruned(game, plus), ReferenceCFR(game, "partial", plus)
  rows = real_rows(game)
  for _ in range(4):
    solver.run(10)
    reference.run(10)
    np.testing.assert_allclose(reference.strategy[rows], solver.state.strategy[rows], atol=1e-8)
    np.testing.assert_allclose(reference.average(), solver.average_probabilities(), atol=1e-8)
  whole = 2 * 40 * reference.num_histories
  assert reference.visited < whole * (0.95)


@pytest.mark.parametrize("rule", ["regret", "best_response"])
@pytest.mark.parametrize("name", NAMES)
def test_where_no_own_infoset_follows_it_is_cfr_for_ever(name, rule):
  """A best response below a last action is what was played there, so nothing is made up."""
  game = game_of(name)
  solver, reference = unpruned(game, False), ReferenceCFR(game, rule)
  reference.may_close = ~has_own_below(game)
  solver.run(80)
  reference.run(80)
  rows = real_rows(game)
  np.testing.assert_allclose(reference.strategy[rows], solver.state.strategy[rows], atol=1e-9)
  assert reference.num_returns or name == "liar's dice"
  assert reference.visited < 2 * 80 * reference.num_histories


@pytest.mark.parametrize("rule", ["regret", "best_response"])
@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_windows_are_sound(name, rule, plus):
  """Nothing returns with more regret than was foreseen; the identity is exact; and play is as good."""
  game = game_of(name)
  solver, reference = unpruned(game, plus), ReferenceCFR(game, rule, plus)
  solver.run(50)
  reference.run(50)
  if reference.num_returns:
    assert reference.largest_excess <= 1e-9
  # Nobody is left alone any longer than that.
  assert all(window.most <= 0 for window in reference.windows.values())
  found = original_nash_conv(game, reference.faced)
  assert found < 2 * solver.nash_conv() + 1e-9
  for row in list(reference.windows):
    reference.bring_back(row)
  assert np.isfinite(reference.regrets).all()
  if plus:
    return
  # W NashConv = max <R, x> + what the roots' values sum to, less what was to be had.
  price = gradients(game, reference.faced)[[tree.root for tree in game.treeplexes]].sum()
  for tree in game.treeplexes:
    own = reference.values[tree.first_infoset : tree.first_infoset + tree.num_infosets]
    price += own[tree.parent == tree.root].sum()
  total = reference.iteration
  price -= total * game.constant_sum
  assert total * found == pytest.approx(gap_of_regrets(game, reference.regrets) + price, abs=1e-8)
  # Players who update in turn never step downhill.
  assert price <= 1e-8


def test_until_something_comes_back_it_is_cfr():
  game = game_of("leduc")
  rows = real_rows(game)
  solver, reference = unpruned(game, False), ReferenceCFR(game, "regret")
  for _ in range(100):
    solver.run(1)
    reference.run(1)
    if reference.num_returns:
      break
    np.testing.assert_allclose(reference.strategy[rows], solver.state.strategy[rows], atol=1e-10)
  assert reference.closed.any()
  assert reference.visited < 2 * reference.iteration * reference.num_histories


def test_what_is_refused():
  game = game_of("kuhn")
  with pytest.raises(errors.ArgumentError, match="rule"):
    ReferenceCFR(game, "all")
  three = spiel_cfr.compile_game(random_games.random_game(1, num_players=3, max_histories=100))
  with pytest.raises(errors.PruningError, match="3 players"):
    ReferenceCFR(three, RULES[0])
