"""Games given as arrays equal games from a walk."""

import copy
import pickle

import numpy as np
import pytest
import random_games

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.games import game_from_arrays
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.walk import enumerate_game

_PENNIES = {
  "parents": [[0], [0]],
  "num_actions": [[2], [2]],
  "leaf_sequences": [[1, 1, 2, 2], [1, 2, 1, 2]],
  "payoffs": [1, -1, -1, 1],
}


def _both(game, **options):
  """Returns a game as it is walked, and as it is made of plain lists of what the walk finds, in another order."""
  walk = enumerate_game(GameView(loading.load_game(game)), 10**6, 10**9, False)
  order = np.random.default_rng(0).permutation(len(walk.leaf_payoffs))
  made = game_from_arrays(
    [own.parents.tolist() for own in walk.infosets],
    [own.num_actions.tolist() for own in walk.infosets],
    walk.leaf_sequences[:, order].tolist(),
    walk.leaf_payoffs[order].tolist(),
    infostates=[own.infostates for own in walk.infosets],
    **options,
  )
  return spiel_cfr.compile_game(game), made


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("num_players", "zero_sum"), [(2, True), (2, False), (3, True)])
def test_random_games_are_solved_as_if_they_had_been_walked(seed, num_players, zero_sum):
  walked, made = _both(
    random_games.random_game(seed, num_players, zero_sum=zero_sum, max_histories=100)
  )
  assert made.constant_sum == walked.constant_sum
  for solver in (spiel_cfr.CFRPlusSolver, spiel_cfr.DCFRSolver, spiel_cfr.PCFRPlusSolver):
    expected, found = solver(walked), solver(made)
    expected.run(20)
    found.run(20)
    assert np.array_equal(found.average_probabilities(), expected.average_probabilities())
    assert found.nash_conv() == expected.nash_conv()


@pytest.mark.parametrize("game", ["leduc_poker", "liars_dice(dice_sides=3)", "kuhn_poker"])
def test_all_that_needs_no_states_works(game, tmp_path):
  walked, made = _both(game, payoff_range=spiel_cfr.compile_game(game).payoff_range, name="mine")
  assert made.payoff.form == walked.payoff.form
  for solver in (
    spiel_cfr.RestartedCFRSolver,
    spiel_cfr.first_order.MirrorProxSolver,
    lambda each: spiel_cfr.Pruned(spiel_cfr.CFRPlusSolver(each)),
    spiel_cfr.StablePredictiveCFRSolver,
  ):
    expected, found = solver(walked), solver(made)
    expected.run(30)
    found.run(30)
    assert np.array_equal(found.average_probabilities(), expected.average_probabilities())
  assert spiel_cfr.solve_lp(made).value == spiel_cfr.solve_lp(walked).value
  assert found.average_policy_dict().keys() == expected.average_policy_dict().keys()
  policy = found.average_policy()
  for given in (policy, copy.copy(policy), pickle.loads(pickle.dumps(policy)), policy.to_dict()):
    assert spiel_cfr.nash_conv(made, given) == pytest.approx(found.nash_conv(), abs=1e-12)
  assert spiel_cfr.best_response(made, policy, 0).value >= spiel_cfr.solve_lp(made).value - 1e-9
  made.save(tmp_path / "game.npz")
  found.save(tmp_path / "solver.npz")
  loaded = spiel_cfr.load_compiled_game(tmp_path / "game.npz")
  assert (loaded.digest, str(loaded)) == (made.digest, str(made))
  resumed = spiel_cfr.Solver.load(tmp_path / "solver.npz", loaded)
  assert resumed.nash_conv() == found.nash_conv()
  warm = spiel_cfr.CFRPlusSolver(loaded)
  warm.warm_start(policy, 10)
  warm.run(5)
  small = spiel_cfr.abstraction.lossless_abstraction(made)
  assert small.num_infosets == spiel_cfr.abstraction.lossless_abstraction(walked).num_infosets
  assert spiel_cfr.CFRPlusSolver(small).average_policy().action_probability_array.any()


@pytest.mark.parametrize(
  "use",
  [
    lambda game: game.game,
    lambda game: game.first_states(),
    lambda game: spiel_cfr.ExternalSamplingSolver(game).run(1),
    lambda game: spiel_cfr.OutcomeSamplingSolver(game, engine="states").run(1),
    lambda game: spiel_cfr.DeepCFRSolver(game),
    lambda game: spiel_cfr.explore(spiel_cfr.CFRSolver(game), path="x.html"),
    lambda game: spiel_cfr.exchange.save_efg(game, "x.efg"),
    lambda game: spiel_cfr.CFRSolver(game).average_policy().states,
    lambda game: spiel_cfr.CFRSolver(game).average_policy().state_in,
  ],
)
def test_operations_that_need_states_say_so(use):
  made = game_from_arrays(**_PENNIES, name="my pennies")
  with pytest.raises(errors.NoStatesError, match="'my pennies' has none: it was made of arrays"):
    use(made)


@pytest.mark.parametrize(
  ("wrong", "message"),
  [
    ({"parents": [[0]]}, r"parents must have a list for each of two players"),
    ({"parents": 3}, r"parents must have a list for each of two players"),
    ({"parents": [[0], [0, 0]]}, r"parents\[1\] has 2 infosets, but num_actions\[1\] 1"),
    ({"parents": [[0], [1]]}, r"parents\[1\]\[0\] must be 0, the empty sequence, or .* not 1"),
    ({"parents": [[0], [-1]]}, r"parents\[1\]\[0\] must be 0, .* not -1"),
    ({"parents": [[0.5], [0]]}, r"parents must have a list of integers for each of 2 players"),
    ({"num_actions": [[2], [0]]}, r"num_actions\[1\]\[0\] must be at least 1, .* not 0"),
    ({"num_actions": [[2], [1 << 40]]}, r"num_actions\[1\]\[0\] must be .* less than 2\^31"),
    ({"num_actions": [[2]]}, r"num_actions must have a list of integers for each of 2 players"),
    (
      {"leaf_sequences": [[1, 1, 2, 3], [1, 2, 1, 2]]},
      r"leaf_sequences\[0\]\[3\] .* 0 to 2,.* not 3",
    ),
    (
      {"leaf_sequences": [[1, 1, 2, 2], [1, 2, 1]]},
      r"as long for all .* player 0 has 4, player 1 3",
    ),
    ({"leaf_sequences": [[], []]}, r"not empty"),
    ({"payoffs": [1, 2]}, r"payoffs must be numbers of shape \(4, 2\)"),
    ({"payoffs": ["a", "b", "c", "d"]}, r"payoffs must be numbers"),
    ({"infostates": [["a"], []]}, r"infostates\[1\] must be 1 different strings"),
    ({"infostates": [["a"], [2]]}, r"infostates\[1\] must be 1 different strings"),
    ({"infostates": ["a", 1]}, r"infostates must have a list for each of 2 players"),
    ({"infostates": [["a"]]}, r"infostates must have a list for each of 2 players"),
    ({"payoff_range": (1.0, -1.0)}, r"payoff_range\[1\] must be a number from 1"),
    ({"payoff_range": 2.0}, r"payoff_range must be two numbers"),
    ({"payoff_range": (-1.0, 0.5)}, r"\(-1, 0.5\), but player 0 gets 1 at .* \[1, 1\]"),
    ({"payoff_range": (0.0, 1.0)}, r"\(0, 1\), but player 1 gets -1 at .* \[1, 1\]"),
  ],
)
def test_wrong_arguments_are_named(wrong, message):
  with pytest.raises(errors.ArgumentError, match=message):
    game_from_arrays(**_PENNIES | wrong)


@pytest.mark.parametrize("payoff", [np.nan, np.inf])
def test_payoffs_are_finite(payoff):
  with pytest.raises(errors.InvalidPayoffError, match="At leaf 2, player 0 gets"):
    game_from_arrays(**_PENNIES | {"payoffs": [1, 1, payoff, 1]})


def test_leaves_that_are_listed_twice_add_up_and_players_may_have_no_infoset():
  once = game_from_arrays([[0], []], [[2], []], [[1, 2], [0, 0]], [[3, 1], [0, 1]])
  twice = game_from_arrays([[0], []], [[2], []], [[1, 2, 1], [0] * 3], [[2, 1], [0, 1], [1, 0]])
  assert once.digest == twice.digest
  assert once.constant_sum is None
  assert spiel_cfr.best_response(once, {"0:0": {0: 0.0, 1: 1.0}}, 0).value == 3.0
  solver = spiel_cfr.CFRPlusSolver(once)
  solver.run(10)
  assert solver.average_policy_dict() == {
    "0:0": {0: pytest.approx(1, abs=0.01), 1: pytest.approx(0, abs=0.01)}
  }
