"""Policies at infosets that their owners never reach, and regrets of infosets."""

import math

import numpy as np
import pyspiel
import pytest
import random_games
from composition.forms import FORMS
from infoset_values import action_values
from open_spiel.python import policy as open_spiel_policy

import spiel_cfr
from spiel_cfr import catalogue, errors, policies
from spiel_cfr.cfr.off_path import unreached_sequences, with_best_responses

# Player 0 may leave with nothing, or go in and lose for certain; there it has a choice that only a fool does not see.
ENTRY = """EFG 2 R "entry" { "0" "1" } ""
p "" 1 1 "door" { "leave" "enter" } 0
t "" 1 "" { 0 0 }
c "" 1 "" { "unlucky" 1/2 "lucky" 1/2 } 0
p "" 2 1 "inside" { "fight" "wait" } 0
t "" 2 "" { -5 5 }
t "" 5 "" { -4 4 }
p "" 1 2 "offer" { "take" "refuse" } 0
t "" 3 "" { -2 2 }
t "" 4 "" { -9 9 }
"""


def regrets_by_hand(compiled, chances):
  """Returns the regret of every infoset from its definition, walking states; -inf where others never lead."""
  worths, masses = action_values(compiled.game, chances)
  result = {}
  for name, own in worths.items():
    expected = sum(chances[name][action] * worth for action, worth in own.items())
    gained = max(own.values()) - expected
    result[name] = gained / masses[name] if masses[name] else -math.inf
  return result


@pytest.mark.parametrize("players", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_largest_regret_is_that_of_the_definition(seed, players):
  source = random_games.random_game(seed, players, zero_sum=False, max_histories=120)
  compiled, rng = spiel_cfr.compile_game(source), np.random.default_rng(seed)
  sums = rng.random(compiled.end) * (rng.random(compiled.end) < 0.6)
  chances = policies.to_dict(compiled, policies.behavioral_form(compiled, sums))
  found = spiel_cfr.evaluation.largest_infoset_regret(compiled, chances)
  expected = regrets_by_hand(compiled, chances)
  assert found.regret == pytest.approx(max(0.0, *expected.values()), abs=1e-12)
  assert expected[found.infostate] == pytest.approx(found.regret, abs=1e-12)
  assert found.unknown == list(expected.values()).count(-math.inf)


@pytest.mark.parametrize("form", [form for form in FORMS if not form.is_large], ids=str)
def test_forms_of_games(form):
  solver = spiel_cfr.CFRPlusSolver(form.compiled)
  solver.run(30)
  if form.loses:
    with pytest.raises(errors.AbstractionError, match="unreached='uniform'"):
      solver.average_policy("best_response")
    return
  found = solver.average_policy("best_response")
  assert spiel_cfr.nash_conv(form.compiled, found) >= 0
  on_enumerated = spiel_cfr.evaluation.largest_infoset_regret(
    form.enumerated, policies.to_dict(form.compiled, policies.from_policy(form.compiled, found))
  )
  own = spiel_cfr.evaluation.largest_infoset_regret(form.compiled, found)
  assert own.regret == pytest.approx(on_enumerated.regret, abs=1e-5 * form.scale)


def completed(game, solution, unreached):
  if unreached == "uniform":
    return solution.probabilities
  return with_best_responses(game, solution.sequence_form)


def test_a_game_where_uniform_play_is_embarrassing():
  game = spiel_cfr.compile_game(pyspiel.load_efg_game(ENTRY))
  solution = spiel_cfr.solve_lp(game)
  regrets = {}
  for unreached in ("uniform", "best_response"):
    table = policies.to_dict(game, completed(game, solution, unreached))
    assert spiel_cfr.nash_conv(game, table) == pytest.approx(0, abs=1e-12)
    regrets[unreached] = spiel_cfr.evaluation.largest_infoset_regret(game, table).regret
  # Taken at random, the offer costs 3.5 more than it needs.
  assert regrets["uniform"] == pytest.approx(3.5)
  assert regrets["best_response"] == 0


@pytest.mark.parametrize(
  ("game", "uniform"), [("leduc_poker", 10.0), ("liars_dice(dice_sides=3)", 1.0)]
)
def test_completed_equilibria_stay_equilibria_and_make_sense(game, uniform):
  solution = spiel_cfr.solve_lp(game)
  compiled = solution.compiled_game
  free = unreached_sequences(compiled, solution.sequence_form)
  regrets = {}
  for unreached in ("uniform", "best_response"):
    found = completed(compiled, solution, unreached)
    np.testing.assert_array_equal(found[~free], solution.probabilities[~free])
    assert spiel_cfr.nash_conv(compiled, policies.to_dict(compiled, found)) < 1e-9
    regrets[unreached] = spiel_cfr.evaluation.largest_infoset_regret(
      compiled, policies.to_dict(compiled, found)
    ).regret
  assert regrets["uniform"] > uniform
  assert regrets["best_response"] < 1e-9


@pytest.mark.parametrize(
  ("name", "iterations", "game", "regret"),
  [
    ("restarted", 1000, "leduc_poker", 0.02),
    ("cfr+", 10_000, "leduc_poker", 0.01),
    ("dcfr", 1000, "leduc_poker", 0.05),
    ("adaptive", 1000, "leduc_poker", 0.02),
    ("cfr+", 1000, "liars_dice(dice_sides=4)", 1e-3),
    ("restarted", 1000, "liars_dice(dice_sides=4)", 1e-9),
  ],
)
def test_dust_of_the_first_iterations_is_no_play(name, iterations, game, regret):
  """Reaches such as 7e-6 and 2.7e-34 preserve an infoset's first strategies."""
  solver = catalogue.make(name, game, iterations)
  solver.run(iterations)
  game, plain = solver.compiled_game, solver.average_policy()
  found = solver.average_policy("best_response")
  assert spiel_cfr.evaluation.largest_infoset_regret(game, plain).regret > 1
  assert spiel_cfr.evaluation.largest_infoset_regret(game, found).regret < regret
  assert spiel_cfr.nash_conv(game, found) <= 1.5 * solver.nash_conv() + 1e-11


def test_play_that_matters_is_no_dust():
  """An equilibrium mixes with 1/100,001; dropping that probability costs 1,000 times as much."""
  rare = 1e-5
  game = spiel_cfr.compile_game(
    pyspiel.create_matrix_game([[1 / rare, 0.0], [0.0, 1.0]], [[-1 / rare, 0.0], [0.0, -1.0]])
  )
  solution = spiel_cfr.solve_lp(game)
  assert solution.probabilities[game.all_action_sequences].min() < 1.01 * rare
  found = with_best_responses(game, solution.sequence_form)
  np.testing.assert_array_equal(found, solution.probabilities)


def test_solvers_hand_it_out():
  for name in ("cfr+", "egt_as", "external_sampling", "restarted"):
    solver = catalogue.make(name, "kuhn_poker", 20)
    solver.run(20)
    plain = solver.average_policy()
    assert solver.average_policy() is plain
    found = solver.average_policy("best_response")
    assert type(found) is spiel_cfr.policies.CompiledTabularPolicy
    assert isinstance(found, open_spiel_policy.TabularPolicy)
    with pytest.raises(errors.ArgumentError, match="'uniform', 'best_response'"):
      solver.average_policy("random")
  solver = spiel_cfr.ExternalSamplingSolver("kuhn_poker", engine="states")
  solver.run(5)
  with pytest.raises(errors.UnsupportedGameError):
    solver.average_policy("best_response")


def test_trembling_hands_learn_at_unreached_infosets():
  """CFR+ stops learning at unreached infosets; with trembles, all infosets keep learning."""
  regrets = []
  for solver in (
    spiel_cfr.CFRPlusSolver("leduc_poker"),
    spiel_cfr.cfr.TremblingHandSolver("leduc_poker"),
  ):
    solver.run(3000)
    assert solver.nash_conv() < 0.02
    found = spiel_cfr.evaluation.largest_infoset_regret(
      solver.compiled_game, solver.average_policy()
    )
    regrets.append(found.regret)
  assert found.unknown == 0
  assert regrets[0] > 1
  assert regrets[1] < regrets[0] / 5


def test_a_hand_that_always_trembles_finds_the_equilibrium_of_the_game_with_trembles():
  """Matching pennies with one payoff of 3, and trembles so large that they determine the mixture."""
  game = pyspiel.create_matrix_game([[3, -1], [-1, 1]], [[-3, 1], [1, -1]])
  solver = spiel_cfr.cfr.TremblingHandSolver(game, trembles=0.9, power=0.0)
  solver.run(4000)
  # Free, both play the first action with 1/3; with trembles of 0.9, from 0.45 to 0.55 is all that they can.
  first = [chances[0] for chances in solver.average_policy_dict().values()]
  assert first == pytest.approx([0.55, 0.45], abs=1e-3)
  assert solver.nash_conv() > 0.1


def test_mistakes():
  with pytest.raises(errors.GameTooLargeError, match="max_nodes"):
    uniform = spiel_cfr.CFRSolver("kuhn_poker").average_policy()
    spiel_cfr.evaluation.largest_infoset_regret("kuhn_poker", uniform, max_nodes=10)
  for trembles in (1.0, -0.1, math.nan):
    with pytest.raises(errors.ArgumentError, match="trembles"):
      spiel_cfr.cfr.TremblingHandSolver("kuhn_poker", trembles)
