"""Search in vector form equals search of listed histories, and lists none."""

import functools
import pickle

import numpy as np
import pyspiel
import pytest
import typed_games
from blueprints import blueprint, subgame

import spiel_cfr
from spiel_cfr import errors, search
from spiel_cfr.games import compile_vector_game
from spiel_cfr.policies import forms
from spiel_cfr.search.subgames import resolving
from spiel_cfr.search.subgames.subgame_solver import SubgameSolver, start_from_policy
from spiel_cfr.search.trees import forest_gadget_games
from spiel_cfr.search.trees.history_tree import HistoryTree

_DICE = "liars_dice(dice_sides=4)"
_GADGETS = [*search.GADGETS, search.Gadget("choice", reach=True, forced=0.5)]


@functools.cache
def _both(name):
  """Returns a game, both ways, their public states, and a policy."""
  listed = spiel_cfr.compile_game(name, vector_form=False)
  vector = compile_vector_game(name)
  trees = search.public_states(listed), search.public_states(vector)
  return listed, vector, *trees, blueprint(listed)


def _pairs_of(name, states):
  """Yields public states of lists, and the same in vector form."""
  tree = _both(name)[3]
  for state in states:
    yield state, tree.public_state_of(next(state.states()))


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", _DICE])
def test_public_states_are_those_of_lists(name):
  _, _, listed, vector, policy = _both(name)
  for player in (0, 1):
    levels = listed.decisions(player), vector.decisions(player)
    assert [len(level) for level in levels[0]] == [len(level) for level in levels[1]]
  cuts = [{same for _, same in _pairs_of(name, listed.natural_cut())}, {*vector.natural_cut()}]
  assert cuts[0] == cuts[1]
  for state, same in _pairs_of(name, listed.natural_cut()[:3]):
    for player in (0, 1):
      assert state.beliefs(policy, player) == pytest.approx(same.beliefs(policy, player))
      private = state.private_values(policy, player)
      assert private == pytest.approx(same.private_values(policy, player), nan_ok=True)
      value = state.value(policy, player)
      assert value == pytest.approx(same.value(policy, player), nan_ok=True)
    assert (same.depth, same.players) == (state.depth, state.players)
    assert same.parent is None or same in same.parent.children
    for player in (0, 1):
      assert sorted(same.private_states(player)) == sorted(state.private_states(player))
    for each in (same, state):
      likely = dict(zip(map(str, each.states()), each.reach(policy), strict=True))
      assert likely == pytest.approx(
        dict(zip(map(str, state.states()), state.reach(policy), strict=True))
      )
    assert {vector.public_state_of(each) for each in same.states()} == {same}
  assert repr(vector[0]).endswith(" private states>")
  others = [pyspiel.load_game(other).new_initial_state() for other in ("tic_tac_toe", "kuhn_poker")]
  if name != "kuhn_poker":
    # Its deals are deals of Leduc poker, too.
    others.append(others[1].child(0).child(1))
  for none in (vector.game.game.new_initial_state(), *others):
    with pytest.raises(errors.ArgumentError, match=r"none of|, not of"):
      vector.public_state_of(none)


@pytest.mark.quick("kuhn_poker-*", "liars_dice*-0")
@pytest.mark.parametrize("searcher", [0, 1])
@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", _DICE])
def test_bounds_and_subgames_are_those_of_lists(name, searcher):
  *_, tree, same_tree, policy = _both(name)
  before, other = (
    each.evaluated(each.policy_array(policy), searcher) for each in (tree, same_tree)
  )
  assert other.opponent_value == pytest.approx(before.opponent_value, abs=1e-12)
  assert same_tree.largest_payoff == pytest.approx(tree.largest_payoff)
  cut = tree.natural_cut()
  for state, same in _pairs_of(name, [tree.decisions(1)[0][0], *cut[:: 1 + len(cut) // 3]]):
    for gadget in _GADGETS:
      chosen = search.gadgets.find_gadget(gadget)
      start = start_from_policy(before, state.index, chosen)
      same_start = start_from_policy(other, same.index, chosen)
      for attribute in ("w", "bound", "r"):
        numbers = [np.sort(getattr(each, attribute)[each.w > 0]) for each in (start, same_start)]
        np.testing.assert_allclose(*numbers, atol=1e-12)
      wanted = subgame(state, policy, searcher, gadget=gadget)
      again = subgame(same, policy, searcher, gadget=gadget)
      value, found = spiel_cfr.solve_lp(wanted).value, spiel_cfr.solve_lp(again)
      assert found.value == pytest.approx(value, abs=1e-9)
      assert found.nash_conv <= 1e-9
      # Its strategies have the names of the whole.
      for player in (0, 1):
        assert {*again.infostates[player]} == {*wanted.infostates[player]}


@pytest.mark.parametrize(
  ("name", "gadget", "continual"),
  [
    *(("kuhn_poker", gadget, continual) for gadget in _GADGETS for continual in (False, True)),
    (_DICE, "follow", False),
    *(pytest.param(_DICE, gadget, True, marks=pytest.mark.slow) for gadget in ("follow", "unsafe")),
    pytest.param("liars_dice(dice_sides=5)", "follow", False, marks=pytest.mark.slow),
  ],
)
def test_whole_policies_are_searched_as_where_histories_are_listed(name, gadget, continual):
  listed, vector, *_, policy = _both(name)
  expected, found = (
    search.resolve(game, policy, gadget=gadget, continual=continual, solver="lp")
    for game in (listed, vector)
  )
  for own, wanted in zip(found.steps, expected.steps, strict=True):
    for fact in ("player", "min_depth", "max_depth", "solved", "unreached", "refused"):
      assert getattr(own, fact) == getattr(wanted, fact)
  assert found.exploitability == pytest.approx(expected.exploitability, abs=1e-9)


@pytest.mark.quick("3", "9")
@pytest.mark.parametrize(
  "seed", [3, 5, 9, 10, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(11, 80))]
)
def test_search_of_random_games_never_does_harm(seed):
  game = compile_vector_game(typed_games.TypedGame(seed, max_depth=4, total=float(seed % 3)))
  drawn = np.random.default_rng(seed).gamma(0.5, size=game.end)
  # A policy with zeros, so that some infosets are never reached.
  drawn[drawn < 0.2] = 0.0
  policy = spiel_cfr.policies.CompiledTabularPolicy(game, forms.behavioral_form(game, drawn))
  better = 0
  for gadget in ("resolving", "follow", "safe", _GADGETS[-1]):
    for continual in (False, True):
      for solver, number in (("lp", 1), ("dcfr", 20)):
        found = search.resolve(
          game, policy, gadget=gadget, continual=continual, solver=solver, iterations=number
        )
        assert found.exploitability <= found.blueprint_exploitability + 1e-8
        better += found.exploitability < found.blueprint_exploitability - 1e-8
  assert better or found.blueprint_exploitability < 1e-9


def test_many_subgames_at_once_are_solved_as_each_alone(monkeypatch):
  _, vector, _, tree, policy = _both(_DICE)
  cut = tree.natural_cut()
  arguments = {"continual": False, "cut": cut, "solver": "cfr+", "iterations": 30}
  together = search.resolve(vector, policy, gadget="resolving", **arguments)
  monkeypatch.setattr(forest_gadget_games, "_MOST_END_PAIRS", 0)
  alone = search.resolve(vector, policy, gadget="resolving", **arguments)
  assert sum(step.solved for step in alone.steps) > len(cut)
  np.testing.assert_allclose(together.probabilities, alone.probabilities, atol=1e-9)


def test_a_public_state_without_a_safe_solution_keeps_the_blueprint(monkeypatch):
  _, vector, _, tree, policy = _both(_DICE)
  found = search.resolve(vector, policy, continual=False, player=0, iterations=5)
  (step,) = found.steps
  assert step.solved > 0
  assert step.refused > 0
  before = tree.evaluated(tree.policy_array(policy), 0)
  after = before.with_policy(found.probabilities)
  for state in tree.natural_cut():
    start = start_from_policy(before, state.index, search.GADGETS["follow"])
    assert after.margins(start).min() >= -1e-9
  calls = []

  def failing(*arguments):
    calls.append(arguments)
    if len(calls) == 2:
      raise errors.NoSolutionError("")
    return solve(*arguments)

  solve = SubgameSolver.solve
  monkeypatch.setattr(SubgameSolver, "solve", failing)
  (step,) = search.resolve(vector, policy, continual=False, player=0, solver="lp").steps
  assert (step.solved, step.refused) == (len(calls) - 1, 1)


def test_a_type_that_never_comes_somewhere_keeps_the_blueprint():
  _, vector, _, tree, _ = _both("kuhn_poker")
  policy = {
    name: {0: 0.0, 1: 1.0} if name == "0" else {0: 0.3, 1: 0.7}
    for own in vector.infostates
    for name in own
  }
  passed_and_bet = tree[0].children[0].children[0]
  arguments = {"continual": False, "solver": "lp", "player": 0}
  found = search.resolve(vector, policy, cut=[passed_and_bet], **arguments).policy_dict()
  assert found["0pb"] == policy["0pb"]
  assert found["2pb"] == {0: 0.0, 1: 1.0}
  policy |= {name: {0: 0.0, 1: 1.0} for name in "012"}
  assert search.resolve(vector, policy, cut=[passed_and_bet], **arguments).steps[0].unreached == 1
  with pytest.raises(errors.ArgumentError, match="probability 0"):
    subgame(passed_and_bet, policy, 0)


def test_no_history_is_listed_and_all_layouts_are_taken(monkeypatch):
  _, vector, _, _, policy = _both("leduc_poker")
  monkeypatch.setattr(HistoryTree, "__init__", None)
  cut = search.resolve(vector, policy, iterations=50, continual=False)
  assert cut.exploitability < 0.8 * cut.blueprint_exploitability
  for arguments in ({"partitioned": True, "num_threads": 2}, {"dtype": "float32"}):
    other = compile_vector_game(vector, **arguments)
    found = search.resolve(other, policy, iterations=50, continual=False)
    assert found.exploitability == pytest.approx(cut.exploitability, rel=1e-3)
  again = search.resolve(vector, cut, iterations=50, player=0)
  assert again.blueprint_exploitability == pytest.approx(cut.exploitability, abs=1e-12)


def test_checkpoints_go_on_to_the_same_bits(tmp_path, monkeypatch):
  _, vector, *_, policy = _both("kuhn_poker")
  path = tmp_path / "search.npz"
  whole = search.resolve(vector, policy, solver="lp")
  step, kept = resolving.search_step, []

  def dying(*arguments, **options):
    if len(kept) == 2:
      raise MemoryError
    kept.append(arguments)
    return step(*arguments, **options)

  with monkeypatch.context() as patch:
    patch.setattr(resolving, "search_step", dying)
    with pytest.raises(MemoryError):
      search.resolve(vector, policy, solver="lp", checkpoint=path)
  found = search.resolve(vector, policy, solver="lp", checkpoint=path)
  assert found.probabilities.tobytes() == whole.probabilities.tobytes()
  assert len(str(found).splitlines()) == 2 + len(found.steps)
  with pytest.raises(errors.CheckpointMismatchError):
    search.resolve(vector, policy, solver="cfr", checkpoint=path)


def test_subgames_have_no_states_and_are_pickled_and_saved_with_their_names(tmp_path):
  *_, tree, policy = _both("kuhn_poker")
  sub = subgame(tree[1], policy, 0)
  sub.save(tmp_path / "subgame.npz")
  for again in (
    pickle.loads(pickle.dumps(sub)),
    spiel_cfr.load_compiled_game(tmp_path / "subgame.npz"),
  ):
    assert [*map(list, again.infostates)] == [*map(list, sub.infostates)]
  assert "pick: where to be" in sub.infostates[1]
  assert any(name.startswith("forced: ") for name in sub.infostates[1])
  with pytest.raises(errors.NoStatesError):
    _ = sub.game


def test_bad_cuts_and_games_are_named():
  listed, vector, listed_tree, tree, policy = _both("kuhn_poker")
  for game, cut, message in (
    (listed, tree[:1], "compiled in another way"),
    (vector, listed_tree[:1], "compiled in another way"),
    (vector, [tree[0], tree[1]], "none may be below"),
    (vector, [], "has no public state"),
  ):
    with pytest.raises(errors.ArgumentError, match=message):
      search.resolve(game, policy, cut=cut)
  with pytest.raises(errors.UnsupportedGameError, match="constant-sum"):
    search.public_states(compile_vector_game("tiny_bridge_2p"))
