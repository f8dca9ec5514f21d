"""Subgames of limited depth: exact values at leaves, in all forms of games, with zeros in ranges and unequal deals."""

import numpy as np
import pytest
from blueprints import blueprint
from partly_seen_games import PartlySeenGame
from typed_games import TypedGame

import spiel_cfr
from spiel_cfr import errors, search
from spiel_cfr.evaluation import evaluate
from spiel_cfr.policies import forms
from spiel_cfr.search.subgames.lookahead import ChoiceFront, Lookahead

_DICE = "liars_dice(dice_sides=3)"
_UNEQUAL = "leduc_poker(suit_isomorphism=True)"


def game_of(name, vector=False):
  """Returns a game; "typed" is a random one of private types, "seen in part" one whose moves are."""
  made = {
    "typed": lambda: TypedGame(3, total=2.0),
    "seen in part": lambda: PartlySeenGame(1, num_types=(3, 2), depth=4),
  }
  game = made[name]() if name in made else name
  return spiel_cfr.compile_game(game, vector_form=vector)


def random_ranges(tree, number, rng, columns=None):
  """Returns ranges of both players, of which the first private state of player 0 is 0."""
  shapes = [
    count if columns is None else (count, columns) for count in tree.num_private_states(number)
  ]
  ranges = [3 * rng.random(shape) for shape in shapes]
  if len(ranges[0]) > 1:
    ranges[0][0] = 0.0
  return ranges


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_without_leaves_one_column_runs_sapcfr_plus(name):
  """With simultaneous updates, as leaf values need them: the same strategies as by the library's solver."""
  tree = search.public_states(game_of(name))
  lookahead = Lookahead(tree[0], 20)
  assert not lookahead.leaves
  root = np.ones((1, 1))
  strategies = lookahead.solve((root, root), search.no_values, 30).strategies
  alike = spiel_cfr.cfr.SAPCFRPlusSolver(tree.game)
  solver = spiel_cfr.FullWidthSolver(
    tree.game, alike.minimizer, averaging=alike.averaging, alternating_updates=False
  )
  solver.run(30)
  wanted = tree.policy_array(solver.average_policy())
  for sequences, strategy in zip(lookahead.sequences, strategies, strict=True):
    np.testing.assert_allclose(strategy[:, 0], wanted[sequences.slots], atol=1e-9)


@pytest.mark.parametrize("vector", [False, True])
def test_with_given_ranges_the_opponents_value_is_that_of_their_public_states(vector):
  tree = search.public_states(game_of(_DICE, vector))
  cut, rng = tree.natural_cut(), np.random.default_rng(2)
  given = {state.index: random_ranges(tree, state.index, rng) for state in cut[:2]}
  evaluated = tree.evaluated(tree.uniform(), 0, given)
  wanted = sum(evaluated.opponent_values(index).sum() for index in given)
  assert evaluated.opponent_value == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("player", [0, 1])
def test_best_responses_by_histories_are_those_by_sequences(player):
  game = spiel_cfr.compile_game("leduc_poker")
  tree = search.public_states(game)
  drawn = np.random.default_rng(1).random(tree.histories.num_entries)
  entries = tree.to_slots(forms.behavioral_form(game, tree.behavioral_form(drawn)))
  blueprint_values = tree.evaluated(entries, 1 - player)
  sequence_form = forms.sequence_form(game, tree.behavioral_form(entries))
  expected = evaluate.evaluate(game, sequence_form).best_response_values[player]
  assert blueprint_values.opponent_value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["leduc_poker", _UNEQUAL])
def test_solved_values_are_those_of_an_equilibrium(name):
  game = spiel_cfr.compile_game(name)
  tree = search.public_states(game)
  cut, equilibrium = tree.natural_cut(), spiel_cfr.solve_lp(game)
  width = max(max(tree.num_private_states(state.index)) for state in cut)
  ranges = np.zeros((len(cut), 2, width))
  for row, state in zip(ranges, cut, strict=True):
    for own, given in zip(row, state.ranges(equilibrium.policy), strict=True):
      own[: len(given)] = given
  values = search.SolvedValues(tree)
  found = values(cut, ranges)
  sums = (ranges * found).sum(axis=2)
  np.testing.assert_allclose(sums[:, 0], -sums[:, 1], atol=1e-9)
  for state, value in zip(cut, sums[:, 0], strict=True):
    reach = state.reach(equilibrium.policy).sum()
    expected = reach * state.value(equilibrium.policy) if reach > 0 else 0.0
    assert value == pytest.approx(expected, abs=1e-9)
  # A player that has one private state only: the others are still worth what a best response gets.
  alone = ranges.copy()
  alone[:, 0, 1:] = 0.0
  for own, other in zip(values(cut, alone)[:, 0], ranges[:, 1], strict=True):
    assert (own[1:3] != 0).all() or not other.any()
  # Public states that come more than once are solved as often.
  twice = values([*cut, *cut], np.concatenate([ranges, 2 * ranges]))
  np.testing.assert_allclose(twice, np.concatenate([found, 2 * found]), atol=1e-9)


@pytest.mark.quick("kuhn_poker-*", "seen in part-*", "typed-*")
@pytest.mark.parametrize(
  ("name", "vector"),
  [
    ("kuhn_poker", True),
    (_DICE, False),
    (_DICE, True),
    (_UNEQUAL, True),
    ("typed", True),
    ("seen in part", False),
  ],
)
def test_down_to_the_end_values_are_those_of_the_program(name, vector):
  """Without leaves, CFR+ comes to the values of a linear program, for all ranges at once."""
  game = game_of(name, vector)
  tree, rng = search.public_states(game), np.random.default_rng(0)
  for state in [tree[0], *tree.natural_cut()[:2]]:
    ranges = random_ranges(tree, state.index, rng, columns=3)
    lookahead = Lookahead(state, 100)
    assert not lookahead.leaves
    found = lookahead.solve(ranges, None, 500)
    for column in range(3):
      own = [each[:, column] for each in ranges]
      wanted = search.Subgame(state, own).solve("lp").values[0] @ own[0]
      tolerance = 2e-3 * tree.largest_payoff * tree.counterfactual_reach(state.index, 0, own[1])
      got = [each @ values[:, column] for each, values in zip(own, found.values, strict=True)]
      assert got[0] == pytest.approx(wanted, abs=tolerance @ own[0] + 1e-9)
      assert got[1] == pytest.approx(-wanted, abs=tolerance @ own[0] + 1e-9)


@pytest.mark.quick(except_for=["kuhn*", "seen in part*"])
@pytest.mark.parametrize(
  ("name", "iterations", "close"),
  [
    ("kuhn_poker", 300, 0.02),
    # The error falls with the square root of iterations: exact values jump where what follows changes.
    (_DICE, 60, 0.1),
    pytest.param(_DICE, 1000, 0.025, marks=pytest.mark.slow),
    ("typed", 100, 0.02),
    ("seen in part", 100, 0.02),
    pytest.param(_UNEQUAL, 100, 0.02, marks=pytest.mark.slow),
    pytest.param("leduc_poker", 150, 0.02, marks=pytest.mark.slow),
  ],
)
def test_exact_values_at_leaves_are_as_good_as_what_follows(name, iterations, close):
  tree = search.public_states(game_of(name, vector=name == "typed"))
  values, rng = search.SolvedValues(tree), np.random.default_rng(1)
  levels = tree.decisions(0)
  for state in (tree[0], levels[min(1, len(levels) - 1)][0]):
    ranges = random_ranges(tree, state.index, rng)
    wanted = search.Subgame(state, ranges).solve("lp").values[0] @ ranges[0]
    subgame = search.Subgame(state, ranges, leaf_values=values, depth=1)
    found = subgame.solve(iterations=iterations)
    scale = tree.largest_payoff * (tree.counterfactual_reach(state.index, 0, ranges[1]) @ ranges[0])
    assert found.values[0] @ ranges[0] == pytest.approx(wanted, abs=close * scale)
    assert found.values[1] @ ranges[1] == pytest.approx(-wanted, abs=close * scale)
    played = ~np.isnan(found.strategies)
    assert played.any() and not played.all()


def test_both_forms_find_the_same():
  solutions = []
  for vector in (False, True):
    tree = search.public_states(game_of("leduc_poker", vector))
    ones = [np.ones(count) for count in tree.num_private_states(0)]
    values = search.ResponseValues(tree, blueprint(tree.game))
    solution = search.Subgame(tree[0], ones, leaf_values=values).solve(iterations=20)
    solutions.append([own.sum() for own in solution.values])
  np.testing.assert_allclose(solutions[0], solutions[1], atol=1e-9)


def test_best_responses_to_an_equilibrium_are_exact_at_its_ranges():
  tree = search.public_states("leduc_poker")
  equilibrium, cut = spiel_cfr.solve_lp(tree.game), tree.natural_cut()
  ranges = np.array([state.ranges(equilibrium.policy) for state in cut])
  one, other = (
    (ranges * values(cut, ranges)).sum(axis=2)
    for values in (search.SolvedValues(tree), search.ResponseValues(tree, equilibrium))
  )
  assert other[:, 0] == pytest.approx(-other[:, 1], abs=1e-6)
  np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.quick("None-0", "resolving-1")
@pytest.mark.parametrize("searcher", [0, 1])
@pytest.mark.parametrize("gadget", [None, "resolving"])
def test_bounds_hold_with_values_at_leaves(searcher, gadget):
  tree = search.public_states(_DICE)
  values, rng = search.SolvedValues(tree), np.random.default_rng(2)
  state, opponent = tree.decisions(0)[1][0], 1 - searcher
  ranges = random_ranges(tree, state.index, rng)
  exact = search.Subgame(state, ranges).solve("lp")
  bounds = search.Bounds(searcher, exact.values[opponent], gadget)
  solved = search.Subgame(state, ranges, bounds, values).solve(iterations=100)
  mine = tree.owned(searcher)
  entries = tree.game.to_actions(np.nan_to_num(solved.strategies))
  assert entries[mine].any() and not entries[~mine].any()
  # At each private state the opponent gets what it may get, or less.
  assert (solved.values[opponent] <= exact.values[opponent] + 0.02).all()


def test_the_opponent_takes_what_is_better():
  """With bounds below all payoffs the opponent plays on; with bounds above all payoffs it never does."""
  tree = search.public_states("kuhn_poker")
  state = tree.decisions(0)[0][0]
  lookahead, ones = Lookahead(state, 100), np.ones((3, 1))
  for bound, played in ((-10.0, True), (10.0, False)):
    gadget = ChoiceFront(0, np.full((3, 1), bound), np.zeros((3, 1)))
    found = lookahead.solve((ones, ones), None, 50, gadget)
    free = lookahead.solve((ones, ones), None, 50)
    if played:
      np.testing.assert_allclose(found.values[0], free.values[0], atol=0.1)
    else:
      assert np.abs(found.values[0]).max() < 0.05


def test_impossible_private_states_have_no_part_in_forced_play():
  """The opponent's range at a card that the searcher must have changes nothing."""
  tree = search.public_states("kuhn_poker")
  state = tree.decisions(0)[0][0]
  w, solutions = tree.counterfactual_reach(state.index, 1, np.array([1.0, 0.0, 0.0])), []
  for impossible in (0.0, 1.0):
    ranges = [np.array([1.0, 0.0, 0.0]), np.where(w > 0, [0.5, 0.25, 0.5], impossible)]
    bounds = search.Bounds(0, np.zeros(3), "follow")
    subgame = search.Subgame(state, ranges, bounds, search.no_values, depth=100)
    solutions.append(subgame.solve(iterations=20))
  np.testing.assert_array_equal(*(solution.values[0] for solution in solutions))


def test_functions_of_ones_own_are_asked_for_all_leaves_at_once():
  tree = search.public_states("kuhn_poker")
  asked = []

  def values(public_states, ranges):
    asked.append((public_states, ranges))
    return ranges.tolist()

  ones = [np.ones(count) for count in tree.num_private_states(0)]
  search.Subgame(tree[0], ones, leaf_values=values, depth=1).solve(iterations=4)
  states, ranges = asked[-1]
  assert len(asked) == 4
  assert [state.depth for state in states] == [3, 3]
  assert ranges.shape == (2, 2, 3)
  # Player 1 has not moved yet; player 0 has passed or bet.
  assert (ranges[:, 1] == 1).all()
  np.testing.assert_allclose(ranges[:, 0].sum(axis=0), 1.0)


@pytest.mark.parametrize(
  "change",
  [
    lambda found: None,
    lambda found: found[:-1],
    lambda found: np.nan,
    lambda found: found[:, :, :2],
    lambda found: found * np.nan,
    lambda found: found + np.inf,
    lambda found: "abc",
    lambda found: [found],
  ],
)
def test_values_of_the_wrong_kind_are_refused(change):
  tree = search.public_states("kuhn_poker")
  ones = [np.ones(count) for count in tree.num_private_states(0)]
  subgame = search.Subgame(tree[0], ones, leaf_values=lambda _, ranges: change(ranges))
  with pytest.raises(errors.ArgumentError, match="leaf_values must return"):
    subgame.solve(iterations=3)


def test_bad_arguments_are_named():
  tree = search.public_states("kuhn_poker")
  ones = [np.ones(count) for count in tree.num_private_states(0)]
  with pytest.raises(errors.ArgumentError, match="leaf_values must be a function"):
    search.Subgame(tree[0], ones, leaf_values=[1, 2])
  with pytest.raises(errors.ArgumentError, match="depth"):
    search.Subgame(tree[0], ones, leaf_values=lambda _, ranges: ranges, depth=0)
  bounds = search.Bounds(0, np.ones(1), "safe")
  with pytest.raises(errors.ArgumentError, match="with leaf values"):
    search.Subgame(tree[0], ones, bounds, lambda _, ranges: ranges)
  leduc = search.public_states("leduc_poker")
  with pytest.raises(errors.ArgumentError, match=", not of"):
    search.SolvedValues(tree)(leduc.natural_cut()[:1], np.ones((1, 2, 6)))
  with pytest.raises(errors.PolicyError):
    search.ResponseValues(tree, {"nonsense": {0: 1.0}})


def test_public_states_of_a_part_of_the_game_say_what_they_lack():
  found = search.self_play("leduc_poker", plays=1, batch=1, iterations=1)
  state = found.public_states[0]
  assert "leduc_poker" in repr(state.tree)
  policy = spiel_cfr.CFRSolver("leduc_poker")
  subgame = search.Subgame(state, [np.ones(6)] * 2)
  for use in (lambda: state.value(policy), lambda: subgame.solve("lp")):
    with pytest.raises(errors.UnsupportedGameError, match="part of the game"):
      use()
