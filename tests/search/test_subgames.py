"""Subgames from ranges: strategies and values of private states, in all forms of games."""

import functools
import time

import numpy as np
import pyspiel
import pytest
from blueprints import blueprint

import spiel_cfr
from spiel_cfr import errors, poker, search
from spiel_cfr.search.play import blueprint_search
from spiel_cfr.search.subgames import subgame as subgame_module
from spiel_cfr.search.trees.rivers import RiverTree

_DICE = "liars_dice(dice_sides=3)"


@functools.cache
def trees(name):
  """Returns the public states of a game, with listed histories and in vector form."""
  forms = (spiel_cfr.compile_game(name, vector_form=vector) for vector in (False, True))
  return [search.public_states(game) for game in forms]


def ones(tree, number):
  return [np.ones(count) for count in tree.num_private_states(number)]


def by_name(state, player, numbers):
  return dict(zip(state.private_states(player), numbers.tolist(), strict=True))


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", _DICE])
def test_values_are_the_same_in_both_forms_and_sum_to_nothing(name):
  listed, vector = trees(name)
  rng = np.random.default_rng(0)
  for state in listed.natural_cut()[:2]:
    same = vector.public_state_of(next(state.states()))
    ranges = [rng.random(count) * 3 for count in listed.num_private_states(state.index)]
    ranges[0][0] = 0.0
    places = [
      [state.private_states(player).index(each) for each in same.private_states(player)]
      for player in (0, 1)
    ]
    found = search.Subgame(state, ranges).solve()
    other = search.Subgame(same, [own[place] for own, place in zip(ranges, places, strict=True)])
    again = other.solve("lp")
    assert ranges[0] @ found.values[0] == pytest.approx(-ranges[1] @ found.values[1], abs=1e-9)
    for player, (own, values) in enumerate(zip(ranges, found.values, strict=True)):
      wanted = by_name(state, player, values)
      likely = by_name(state, player, own)
      for private, value in by_name(same, player, again.values[player]).items():
        assert value == pytest.approx(wanted[private], abs=1e-9) or likely[private] == 0
    # An equilibrium of the subgame: no best response gets more than the value, whatever the scale of ranges.
    double = search.Subgame(state, [2 * own for own in ranges]).solve()
    assert ranges[0] @ double.values[0] == pytest.approx(2 * ranges[0] @ found.values[0], abs=1e-9)
    played = ~np.isnan(found.strategies)
    assert played.any() and not played.all()


def test_the_first_public_state_is_worth_the_game():
  for tree in trees("leduc_poker"):
    found = search.Subgame(tree[0], ones(tree, 0)).solve("lp")
    assert found.values[0].sum() == pytest.approx(-0.0856064240780, abs=1e-9)
    assert spiel_cfr.exploitability(tree.game, found_policy(tree, found)) < 1e-9


def found_policy(tree, solution):
  return spiel_cfr.policies.CompiledTabularPolicy(tree.game, np.nan_to_num(solution.strategies))


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("searcher", [0, 1])
def test_bounds_hold(form, searcher):
  tree = trees("leduc_poker")[form]
  before = tree.evaluated(tree.policy_array(blueprint(trees("leduc_poker")[0].game)), searcher)
  for state in tree.natural_cut()[:3]:
    ranges, values = before.ranges(state.index), before.opponent_values(state.index)
    bounds = search.Bounds(searcher, values)
    subgame = search.Subgame(state, ranges, bounds)
    found = subgame.solve("lp")
    assert (found.values[1 - searcher] <= values + 1e-9).all()
    # The opponent plays a best response to the searcher's strategy from each private state.
    unsafe = search.Subgame(state, ranges).solve("lp")
    best = unsafe.values[searcher] @ ranges[searcher]
    assert found.values[searcher] @ ranges[searcher] <= best + 1e-9
    assert spiel_cfr.solve_lp(subgame.game).nash_conv < 1e-9


@pytest.mark.parametrize("wrong", [["a"] * 2, [[1.0], [1.0, 2.0]], "x", {}, 1j])
@pytest.mark.parametrize("name", ["values", "gifts"])
def test_bounds_of_wrong_types_are_named(name, wrong):
  state = trees("kuhn_poker")[0].natural_cut()[0]
  ranges, zeros = ones(state.tree, state.index), np.zeros(state.num_private_states[1])
  bounds = search.Bounds(0, **{"values": zeros, name: wrong})
  with pytest.raises(errors.ArgumentError, match=f"{name} must be"):
    search.Subgame(state, ranges, bounds)


def test_a_subgame_that_stops_at_leaves_is_no_game():
  state = trees("leduc_poker")[0][0]
  subgame = search.Subgame(state, ones(state.tree, 0), leaf_values=search.no_values, depth=1)
  with pytest.raises(errors.ArgumentError, match="leave out leaf_values"):
    _ = subgame.game
  assert "leaf values at depth 1" in repr(subgame)
  assert repr(state) in repr(search.Subgame(state, ones(state.tree, 0)))


def test_rivers_have_values():
  game = poker.compile_public_game(
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 2,firstPlayer=1 1,numSuits=2,numRanks=4,"
    "numHoleCards=1,numBoardCards=0 1,raiseSize=2 2,maxRaises=1 1)"
  )
  tree = RiverTree(game)
  listed = search.public_states(spiel_cfr.compile_game(game.game, vector_form=False))
  river = tree[1]
  state = listed.public_state_of(next(river.states()))
  assert set(state.private_states(0)) == set(river.private_states(0))
  ranges = [np.linspace(0.1, 1.0, count) for count in tree.num_private_states(1)]
  found = search.Subgame(river, ranges).solve(iterations=2000)
  by_names = [by_name(river, player, own) for player, own in enumerate(ranges)]
  in_order = [
    np.array([by_names[player][each] for each in state.private_states(player)]) for player in (0, 1)
  ]
  wanted = search.Subgame(state, in_order).solve("lp")
  for player in (0, 1):
    exact = by_name(state, player, wanted.values[player])
    assert by_name(river, player, found.values[player]) == pytest.approx(exact, abs=1e-3)
  bounds = search.Bounds(0, found.values[1], "resolving")
  again = search.Subgame(river, ranges, bounds).solve(iterations=2000)
  assert (again.values[1] <= found.values[1] + 1e-3).all()
  assert again.values[0] @ ranges[0] == pytest.approx(-again.values[1] @ ranges[1], abs=1e-3)


def test_rivers_have_the_histories_of_lists():
  game = poker.compile_public_game(
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 2,firstPlayer=1 1,numSuits=2,numRanks=3,"
    "numHoleCards=1,numBoardCards=0 2,raiseSize=2 2,maxRaises=1 1)"
  )
  tree = RiverTree(game)
  listed = search.public_states(spiel_cfr.compile_game(game.game, vector_form=False))
  rng = np.random.default_rng(0)
  for river in tree[:: len(tree) // 5]:
    states = list(river.states())
    assert {tree.public_state_of(state) for state in states} == {river}
    assert len({listed.public_state_of(state) for state in states}) == 1
    ranges = [rng.random(count) for count in river.num_private_states]
    *positions, chance = tree.pairs(river.index)
    for player in (0, 1):
      names = river.private_states(player)
      own = [names[position] for position in positions[player]]
      assert [state.information_state_string(player) for state in states] == own
      other = ranges[1 - player]
      mass = np.bincount(positions[player], chance * other[positions[1 - player]])
      reach = tree.counterfactual_reach(river.index, player, other)
      np.testing.assert_allclose(mass, reach, atol=1e-12)
  # The public cards of one street come in either order.
  first, second = game.game.new_initial_state(), game.game.new_initial_state()
  for state, moves in ((first, [0, 1, 1, 1, 3, 2]), (second, [0, 1, 1, 1, 2, 3])):
    for move in moves:
      state.apply_action(move)
  assert tree.public_state_of(first) == tree.public_state_of(second)
  for wrong in (states[0].child(1), game.game.new_initial_state()):
    with pytest.raises(errors.ArgumentError, match="where a river"):
      tree.public_state_of(wrong)
  with pytest.raises(errors.ArgumentError, match=", not of"):
    tree.public_state_of(pyspiel.load_game("kuhn_poker").new_initial_state())


def test_solvers_that_iterate_take_a_gadget_whose_equilibria_are_safe():
  game = trees("kuhn_poker")[0].game
  options = {"solver": "cfr+", "iterations": 50}
  found, wanted = (
    search.resolve(game, blueprint(game), gadget=gadget, **options) for gadget in (None, "follow")
  )
  assert found.probabilities.tobytes() == wanted.probabilities.tobytes()


def test_a_walk_that_ran_out_of_time_is_tried_again(monkeypatch):
  state = pyspiel.load_game("kuhn_poker").new_initial_state().child(0).child(1)
  game = trees("kuhn_poker")[0].game
  table = spiel_cfr.policies.to_dict(game, spiel_cfr.policies.uniform(game))
  bot, tree_of, calls = search.SearchBot(table, 0, seconds=0.5), blueprint_search.tree_of, []

  def slow(view, limit, deadline):
    calls.append(deadline)
    if len(calls) == 1:
      time.sleep(max(0.0, deadline - time.perf_counter()))
      raise errors.GameTooLargeError("too late")
    return tree_of(view, limit, deadline)

  monkeypatch.setattr(blueprint_search, "tree_of", slow)
  bot.get_policy(state)
  assert None not in bot._search._attempts
  bot.get_policy(state)
  assert len(calls) == 2
  assert bot._search._attempts[None].resolving is not None


@pytest.mark.parametrize(("solver", "gadget"), [("lp", "safe"), ("dcfr", "follow")])
def test_bounds_count_gifts_where_the_gadget_of_the_solver_does(solver, gadget):
  tree = trees("leduc_poker")[0]
  policy = blueprint(tree.game)
  for state in tree.natural_cut()[:2]:
    subgame = search.Subgame(
      state, state.ranges(policy), search.Bounds.from_policy(state, policy, 0)
    )
    wanted = search.Subgame(
      state, state.ranges(policy), search.Bounds.from_policy(state, policy, 0, gadget)
    )
    found, same = (each.solve(solver, 20).strategies for each in (subgame, wanted))
    assert found.tobytes() == same.tobytes()


@pytest.mark.parametrize("form", [0, 1])
def test_a_bound_beyond_all_payoffs_leaves_the_others_exact(form):
  tree = trees("leduc_poker")[form]
  state = tree.natural_cut()[0]
  # The searcher almost surely has one card, so that the opponent almost surely does not have it.
  ranges = [
    np.full(count, eps) for count, eps in zip(state.num_private_states, (1e-8, 1.0), strict=True)
  ]
  ranges[0][0] = 1.0
  w = tree.counterfactual_reach(state.index, 1, ranges[0])
  unlikely = np.argmin(w)
  values = search.Subgame(state, ranges).solve("lp").values[1]
  values[unlikely] = 0.3 * w.max()
  subgame = search.Subgame(state, ranges, search.Bounds(0, values, "max_margin"))
  assert subgame.game.payoff_range[1] < 1000
  excess = (subgame.solve("lp").values[1] - values) / w
  assert np.delete(excess, unlikely).max() < 1e-9


def test_private_states_count_as_their_ranges_say():
  tree = trees("leduc_poker")[0]
  for state in (tree[0], *tree.natural_cut()[:2]):
    assert state.num_private_states == tree.num_private_states(state.index)
  assert state.num_private_states == tuple(len(state.private_states(player)) for player in (0, 1))


def test_bad_arguments_are_named():
  tree = trees("kuhn_poker")[0]
  state, good = tree.natural_cut()[0], [np.ones(3), np.ones(3)]
  for ranges in ([np.ones(3)], [np.ones(3), np.ones(2)], [np.ones(3), -np.ones(3)], None, "xy"):
    with pytest.raises(errors.ArgumentError, match="ranges must be 3 and 3"):
      search.Subgame(state, ranges)
  with pytest.raises(errors.ArgumentError, match="probability 0"):
    search.Subgame(state, [np.zeros(3), np.ones(3)])
  with pytest.raises(errors.ArgumentError, match="public_state must"):
    search.Subgame(0, good)
  with pytest.raises(errors.ArgumentError, match="values must be 3"):
    search.Subgame(state, good, search.Bounds(0, np.ones(2)))
  with pytest.raises(errors.ArgumentError, match="gifts must be 3"):
    search.Subgame(state, good, search.Bounds(0, np.ones(3), gifts=np.ones(2)))
  with pytest.raises(errors.ArgumentError, match="solver"):
    search.Subgame(state, good).solve("magic")


def test_gadgets_of_bounds_suit_the_solver(monkeypatch):
  """ "safe" keeps its promise in a linear program only, so solvers that iterate take "follow"."""
  tree = search.public_states("kuhn_poker")
  state = next(state for state in tree if len(state.private_states(0)) > 1)
  taken, find = [], subgame_module.find_gadget

  def noted(*arguments, **named):
    taken.append(find(*arguments, **named))
    return taken[-1]

  monkeypatch.setattr(subgame_module, "find_gadget", noted)
  values = np.ones(len(state.private_states(1)))
  subgame = search.Subgame(state, ones(tree, state.index), search.Bounds(0, values))
  for solver, expected in (("lp", "safe"), ("dcfr", "follow")):
    subgame.solve(solver, 10)
    assert taken[-1] == search.GADGETS[expected], solver
