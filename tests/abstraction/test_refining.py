"""Refinement during solving: certified in the whole game, and never larger than it.

`test_partial_game.py` compares gains and transferred regrets with slow walks.
"""

import numpy as np
import poker_games
import pytest
import random_games
from open_spiel.python.algorithms import exploitability

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.abstraction.partial_game import PartialGame
from spiel_cfr.poker import bet_filters
from spiel_cfr.policies import forms

_LISTED = (
  "leduc_poker",
  "liars_dice(dice_sides=3)",
  "goofspiel(num_cards=4,imp_info=True,points_order=descending)",
  poker_games.UNIVERSAL_POKER[3],
)
_FORMS = [{}, {"partitioned": True, "num_threads": 2}, {"dtype": np.float32}]


def call_only(state, actions):
  return [action for action in actions if action < 2]


def check(found, target, form):
  """Asserts the properties of every refinement."""
  game = found.compiled_game
  assert found.nash_conv <= target
  assert found.nash_conv == min(stage.nash_conv for stage in found.history)
  judge, judged = (spiel_cfr.nash_conv, game) if form else (exploitability.nash_conv, game.game)
  assert judge(judged, found.policy) == pytest.approx(found.nash_conv, abs=1e-9)
  sizes = [stage.infosets for stage in found.history]
  assert sizes == sorted(sizes)
  assert sizes[0] < sizes[-1] == found.small.num_infosets <= game.num_infosets
  # A policy of the smaller game gains no more from best responses there than from those of the whole game.
  for stage in found.history:
    assert stage.small_nash_conv <= stage.nash_conv + 1e-9 * max(map(abs, game.payoff_range))
  assert found.small.dtype == game.dtype
  assert (found.small.partition is None) == (game.partition is None)


@pytest.mark.quick("form0")
@pytest.mark.parametrize("form", [*_FORMS[:2], pytest.param(_FORMS[2], marks=pytest.mark.slow)])
def test_actions_come_in(form):
  name = poker_games.UNIVERSAL_POKER[0]
  game = spiel_cfr.poker.compile_public_game(name, **form)
  walked = spiel_cfr.poker.compile_public_game(name, poker_games.check_or_pot, **form)
  found = spiel_cfr.abstraction.solve_refining(game, poker_games.check_or_pot, 0.05)
  check(found, 0.05, form)
  # It begins as the game that is walked with the same actions.
  first, solver = found.history[0], spiel_cfr.CFRPlusSolver(walked)
  solver.run(first.iterations)
  assert first.infosets == walked.num_infosets
  tolerance = 1e-4 if form.get("dtype") else 1e-9
  assert first.small_nash_conv == pytest.approx(solver.nash_conv(), rel=tolerance)


def test_actions_below_public_cards_come_in():
  """The first game has no bets."""
  game = spiel_cfr.poker.compile_public_game("leduc_poker")
  found = spiel_cfr.abstraction.solve_refining(game, call_only, 0.1, solver="dcfr")
  check(found, 0.1, {})


def test_larger_games_continue_the_same_play():
  game = spiel_cfr.poker.compile_public_game(
    poker_games.random_endgame(0, 12, pot=200, starting_stack=600).load(), bet_filters.few_bets
  )
  made = PartialGame.filtered(game, poker_games.check_or_pot)
  before = spiel_cfr.CFRPlusSolver(made.small)
  before.run(5)
  policy = made.to_whole(before.average_sequence_form())
  larger = made.extended(policy)
  assert made.small.num_infosets < larger.small.num_infosets
  again = larger.to_whole(forms.sequence_form(larger.small, larger.to_small(policy)))
  played = forms.sequence_form(game, policy)
  assert np.allclose(forms.sequence_form(game, again), played, rtol=0, atol=1e-12)


def test_with_all_actions_it_is_the_plain_solver():
  game = spiel_cfr.poker.compile_public_game("leduc_poker")
  found = spiel_cfr.abstraction.solve_refining(
    game, lambda state, actions: actions, 0.0, iterations=100
  )
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(100)
  assert found.small is game
  assert found.history[-1].nash_conv == pytest.approx(solver.nash_conv(), rel=1e-12)


def test_missing_actions_are_answered_as_the_nearest():
  """A raise is taken for a call while there are no raises, and answered as a check or call is."""
  game = spiel_cfr.poker.compile_public_game("leduc_poker")
  made = PartialGame.filtered(game, call_only)
  sums = spiel_cfr.CFRPlusSolver(made.small).average_sequence_form()
  for tree in made.small.treeplexes:
    for sequences, _ in tree.infoset_groups():
      sums[sequences[:-1]], sums[sequences[-1]] = 0.0, 1.0
  policy = spiel_cfr.policies.CompiledTabularPolicy(game, made.to_whole(sums))
  state = game.game.new_initial_state()
  for action in (0, 2, 2):
    state.apply_action(action)
  assert policy.action_probabilities(state) == {0: 0.0, 1: 1.0, 2: 0.0}


@pytest.mark.parametrize("rule", ["policy", "regrets"])
@pytest.mark.parametrize("name", _LISTED)
def test_actions_come_into_listed_games(name, rule):
  target = 0.05 if rule == "policy" else 0.3
  found = spiel_cfr.abstraction.solve_refining(name, target=target, rule=rule)
  check(found, target, {})
  assert len(found.small.all_action_sequences) < len(found.compiled_game.all_action_sequences)


@pytest.mark.parametrize(
  "solver", ["cfr", "dcfr", "pcfr+", "hedge", "adaptive", "cfr_simultaneous", "dcfr+"]
)
def test_full_width_solvers_of_the_catalogue(solver):
  found = spiel_cfr.abstraction.solve_refining(_LISTED[2], target=0.2, solver=solver)
  check(found, 0.2, {})


@pytest.mark.parametrize("seed", range(20))
def test_random_games_are_solved(seed):
  settings = {"max_histories": 200, "max_actions": 4, "chance_root": seed % 2 == 0}
  game = spiel_cfr.compile_game(random_games.random_game(seed, **settings))
  target = 0.03 * max(map(abs, game.payoff_range))
  for start in (None, lambda state, actions: actions[:1]):
    found = spiel_cfr.abstraction.solve_refining(game, start, target)
    assert found.nash_conv <= target
    judged = exploitability.nash_conv(game.game, found.policy)
    assert judged == pytest.approx(found.nash_conv, abs=1e-9)


@pytest.mark.parametrize("rule", ["policy", "regrets"])
def test_a_listed_game_with_all_actions_is_the_plain_game(rule):
  game = spiel_cfr.compile_game("leduc_poker")
  found = spiel_cfr.abstraction.solve_refining(
    game, lambda state, actions: actions, iterations=50, rule=rule
  )
  solver = spiel_cfr.CFRPlusSolver(game)
  if rule == "regrets":
    solver = spiel_cfr.TabularCFRSolver(game, alternating_updates=False)
  solver.run(50)
  assert found.small is game
  assert found.history[-1].nash_conv == pytest.approx(solver.nash_conv(), rel=1e-12)
  assert found.history[-1].leaves == 2 * game.num_leaves * (50 + len(found.history))


@pytest.mark.parametrize("form", _FORMS[:2])
def test_regrets_are_transferred_in_vector_form(form):
  game = spiel_cfr.poker.compile_public_game(poker_games.UNIVERSAL_POKER[0], **form)
  found = spiel_cfr.abstraction.solve_refining(game, poker_games.check_or_pot, 0.2, rule="regrets")
  check(found, 0.2, form)


def test_actions_come_into_games_of_arrays():
  """Matching pennies with a third action each that loses to all; the filter sees the infoset's name."""
  leaves = [[1, 1, 1, 2, 2, 2, 3, 3], [1, 2, 3, 1, 2, 3, 1, 2]]
  game = spiel_cfr.games.game_from_arrays(
    [[0], [0]], [[3], [3]], leaves, [1, -1, 2, -1, 1, 2, -2, -2]
  )
  asked = []

  def last(infoset, actions):
    asked.append(infoset)
    return actions[-1:]

  for rule in ("policy", "regrets"):
    found = spiel_cfr.abstraction.solve_refining(game, last, 0.05, rule=rule)
    assert spiel_cfr.nash_conv(game, found.policy) == pytest.approx(found.nash_conv, abs=1e-12)
    assert found.nash_conv <= 0.05
  assert asked == ["0:0", "1:0"] * 2
  with pytest.raises(errors.ArgumentError, match="At infoset '0:0' the action filter keeps"):
    spiel_cfr.abstraction.solve_refining(game, lambda infoset, actions: [], 0.1)


def test_invalid_arguments_are_refused():
  refine = spiel_cfr.abstraction.solve_refining
  name = poker_games.UNIVERSAL_POKER[0]
  game = spiel_cfr.poker.compile_public_game(name)
  abstracted = spiel_cfr.poker.compile_public_game(name, merge_suits=True)
  for other in (spiel_cfr.compile_game("leduc_poker", vector_form=True), abstracted):
    with pytest.raises(errors.UnsupportedGameError, match="compile_public_game"):
      refine(other, call_only, 0.1)
  for other in ("kuhn_poker(players=3)", "matrix_pd"):
    with pytest.raises(errors.UnsupportedGameError, match="two players with a constant sum"):
      refine(other, call_only, 0.1)
  with pytest.raises(errors.ArgumentError, match="rule must be"):
    refine(game, call_only, 0.1, rule="average")
  with pytest.raises(errors.ArgumentError, match="'cfr_simultaneous', not 'cfr\\+'"):
    refine(game, call_only, 0.1, rule="regrets", solver="cfr+")
  with pytest.raises(errors.ArgumentError, match="Begin with"):
    refine(game, 3, 0.1)
  with pytest.raises(errors.ArgumentError, match="solver must be of type str"):
    refine(game, call_only, 0.1, solver=[])
  for nothing in ([], None):
    with pytest.raises(errors.ArgumentError, match="none of the game's"):
      refine(game, lambda state, actions, answer=nothing: answer, 0.1)
  with pytest.raises(errors.ArgumentError, match="full-width"):
    refine(game, call_only, 0.1, solver="external_sampling")
  with pytest.raises(errors.WarmStartError):
    refine(game, call_only, 0.1, solver="stable_predictive")
