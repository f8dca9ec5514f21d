"""The form of private moves equals listed histories, and other games are refused by name."""

import copy
import functools
import pickle
import random
import re
import unittest.mock
from typing import Any

import numpy as np
import private_moves_games
import pyspiel
import pytest
from open_spiel.python import policy as open_spiel_policy
from private_moves_games import PrivateMovesGame

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games import WorldKeys, compile_private_moves_game
from spiel_cfr.games.compiled import enumerated_game
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.private_moves import (
  compile_private_moves,
  core_histories,
  cores,
  saved_game,
  size_estimate,
  trunk,
  worlds,
)
from spiel_cfr.policies import forms

# How infosets are told apart, where OpenSpiel's strings forget.
_GAMES = {
  "Kuhn": ("kuhn_poker", None),
  "Leduc": ("leduc_poker", None),
  "dice": ("liars_dice(dice_sides=3)", None),
  "dark hex 2x2": ("dark_hex(num_rows=2,num_cols=2)", None),
  "dark hex 2x2, observations": ("dark_hex(num_rows=2,num_cols=2)", "history"),
  "dark hex 2x3": ("dark_hex(num_rows=2,num_cols=3)", "history"),
  "battleship": (
    "battleship(board_height=2,board_width=2,num_shots=2,ship_sizes=[1],ship_values=[1.0])",
    None,
  ),
  "goofspiel": ("goofspiel(imp_info=True,num_cards=3,points_order=descending)", None),
  "abrupt dark hex 2x2": ("dark_hex(num_rows=2,num_cols=2,gameversion=adh)", None),
}
_SEEDS = range(8)
_SOLVERS = {
  "CFR": spiel_cfr.CFRSolver,
  "CFR+": spiel_cfr.CFRPlusSolver,
  "DCFR": spiel_cfr.DCFRSolver,
  "PCFR+": spiel_cfr.PCFRPlusSolver,
}
_KEYS = WorldKeys(str, lambda state, player: state.observation_string(player), "the test's keys")


@functools.cache
def _pair(name: str) -> tuple[Any, Any]:
  """Returns a game of `_GAMES` with its histories listed, and in private moves form."""
  game, infostate = _GAMES[name]
  return (
    spiel_cfr.compile_game(game, vector_form=False, infostate=infostate),
    compile_private_moves_game(game, infostate=infostate),
  )


@functools.cache
def _random_pair(seed: int, zero_sum: bool = True) -> tuple[Any, Any]:
  game = PrivateMovesGame(seed, zero_sum=zero_sum)
  return (
    spiel_cfr.compile_game(game, vector_form=False),
    compile_private_moves_game(game, keys=_KEYS),
  )


def _by_name(game: Any, values: Any) -> dict[tuple[str, int], float]:
  """Returns the number of each action by infostate and action."""
  result = {}
  for own in game.infosets:
    names = np.repeat(np.array(own.infostates, object), own.num_actions).tolist()
    actions, numbers = own.actions.tolist(), values[own.action_sequences].tolist()
    result |= dict(zip(zip(names, actions, strict=True), map(float, numbers), strict=True))
  return result


def _from_names(game: Any, numbers: dict[tuple[str, int], float]) -> Any:
  """Returns numbers by infostate and action as an array over sequences."""
  places = _by_name(game, np.arange(game.end))
  result = np.zeros(game.end)
  result[[int(places[key]) for key in numbers]] = list(numbers.values())
  return result


def _assert_alike(listed: Any, private: Any) -> None:
  """Asserts that two forms have the same facts, infosets and gradients."""
  for fact in ("num_states", "num_terminals", "payoff_range", "constant_sum", "game_string"):
    assert getattr(private, fact) == getattr(listed, fact), fact
  for mine, theirs in zip(private.infosets, listed.infosets, strict=True):
    assert sorted(mine.infostates) == sorted(theirs.infostates)
    assert len(set(mine.infostates)) == len(mine.num_actions)
  names = _by_name(listed, np.random.default_rng(0).exponential(size=listed.end))
  strategies = [
    forms.sequence_form(each, forms.behavioral_form(each, _from_names(each, names)))
    for each in (listed, private)
  ]
  scale = max(map(abs, listed.payoff_range))
  for player in (0, 1):
    gradients = []
    for each, strategy in zip((listed, private), strategies, strict=True):
      gradient = np.zeros(each.end)
      each.payoff.gradient_into(player, strategy, gradient)
      gradients.append(_by_name(each, gradient))
    for key, value in gradients[0].items():
      if key[0] in set(listed.infostates[player]):
        assert gradients[1][key] == pytest.approx(value, abs=1e-12 * scale)
  if listed.constant_sum is not None:
    value = spiel_cfr.solve_lp(listed).value
    assert spiel_cfr.solve_lp(private).value == pytest.approx(value, abs=1e-9 * scale)


@pytest.mark.quick("Kuhn", "goofspiel", "abrupt dark hex 2x2", "dark hex 2x2, observations")
@pytest.mark.parametrize("name", _GAMES)
def test_a_game_is_the_same_in_both_forms(name):
  _assert_alike(*_pair(name))


@pytest.mark.quick("True-1", "False-2")
@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("zero_sum", [True, False])
def test_a_random_game_is_the_same_in_both_forms(seed, zero_sum):
  _assert_alike(*_random_pair(seed, zero_sum))


def _shared(game: Any, depth: int, infostate: Any = None, keys: Any = None) -> Any:
  """Returns a game with subgames that are shared after some moves."""
  view = GameView(loading.load_game(game, needs_strings=infostate is None), infostate=infostate)
  return compile_private_moves.compile_view(view, 10**4, 10**9, False, keys, depth=depth)


@pytest.mark.quick("Kuhn-1", "abrupt dark hex 2x2-3")
@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("name", ["Kuhn", "Leduc", "abrupt dark hex 2x2"])
def test_a_game_with_shared_subgames_is_the_same(name, depth):
  game, infostate = _GAMES[name]
  listed, private = _pair(name)
  if name == "Kuhn" and depth > 2:
    depth = 2
  shared = _shared(game, depth, infostate)
  assert shared.payoff.form == "shared rectangles"
  assert shared.num_leaves == private.num_leaves
  _assert_alike(listed, shared)
  _assert_states_fit(shared)


@functools.cache
def _random_abrupt(seed: int) -> tuple[Any, Any]:
  game = PrivateMovesGame(seed, depth=5, zero_sum=seed % 2 == 0, abrupt=True)
  return game, spiel_cfr.compile_game(game, vector_form=False)


@pytest.mark.quick("1-0", "2-3")
@pytest.mark.parametrize("depth", [0, 2, 3, 4])
@pytest.mark.parametrize("seed", [1, 2, 3, 7])
def test_a_random_game_with_shared_subgames_is_the_same(seed, depth, monkeypatch):
  # Rows are merged after each walk.
  monkeypatch.setattr(core_histories, "_BATCH", 0)
  game, listed = _random_abrupt(seed)
  shared = _shared(game, depth, keys=_KEYS)
  _assert_alike(listed, shared)
  _assert_states_fit(shared)


@pytest.mark.quick("CFR+")
@pytest.mark.parametrize("solver", _SOLVERS)
def test_iterates_are_the_same_with_shared_subgames(solver):
  game, listed_game = _random_abrupt(2)
  shared_game = _shared(game, 3, keys=_KEYS)
  assert (
    len(shared_game.payoff.subgame_of_group)
    > len(shared_game.payoff.first_rectangle_of_subgame) - 1
  )
  listed, shared = (_SOLVERS[solver](each) for each in (listed_game, shared_game))
  for each in (listed, shared):
    each.run(20)
  found = shared.average_policy_dict()
  for infostate, expected in listed.average_policy_dict().items():
    assert found[infostate] == pytest.approx(expected, abs=1e-9)
  assert shared.nash_conv() == pytest.approx(listed.nash_conv(), abs=1e-9)


def test_subgames_are_shared_where_sides_are_too_long(monkeypatch):
  name = "dark_hex(num_rows=2,num_cols=2,gameversion=adh)"
  monkeypatch.setattr(trunk, "_MOST_AT_CUT", 1_000)
  monkeypatch.setattr(trunk, "_MOST_UNSHARED", 0)
  game = compile_private_moves_game(name)
  assert game.payoff.form == "shared rectangles"
  _assert_alike(_pair("abrupt dark hex 2x2")[0], game)
  again = pickle.loads(pickle.dumps(game))
  assert again.digest == game.digest
  # A failed attempt leaves it open how many moves there were.
  with pytest.raises(errors.PrivateMovesError, match="before or after"):
    _shared("dark_hex(num_rows=2,num_cols=2)", 3, "history")
  game = compile_private_moves_game("dark_hex(num_rows=2,num_cols=2)", infostate="history")
  assert game.payoff.form == "rectangles"
  monkeypatch.setattr(core_histories, "_BATCH", 0)
  monkeypatch.setattr(trunk, "_MOST_AT_CUT", 20)
  with pytest.raises(errors.GameTooLargeError, match=r"of [\d,]+ subgames, arrays take"):
    compile_private_moves_game(name, max_bytes=2_000)


@pytest.mark.quick("*-Kuhn", "CFR+-1", "CFR-dark hex 2x2")
@pytest.mark.parametrize("name", ["Kuhn", "dark hex 2x2", "dark hex 2x3", 1, 2])
@pytest.mark.parametrize("solver", _SOLVERS)
def test_iterates_are_those_of_listed_histories(name, solver):
  pair = _random_pair(name) if isinstance(name, int) else _pair(name)
  listed, private = (_SOLVERS[solver](each) for each in pair)
  for iterations in (1, 4, 20):
    listed.run(iterations)
    private.run(iterations)
    found = private.average_policy_dict()
    for infostate, expected in listed.average_policy_dict().items():
      assert found[infostate] == pytest.approx(expected, abs=1e-9)
    assert private.nash_conv() == pytest.approx(listed.nash_conv(), abs=1e-9)
    # A policy of one form is read in the other.
    assert spiel_cfr.nash_conv(pair[1], listed.average_policy()) == pytest.approx(
      listed.nash_conv(), abs=1e-9
    )


@pytest.mark.quick("Kuhn", "abrupt dark hex 2x2")
@pytest.mark.parametrize("name", _GAMES)
def test_each_infoset_has_a_state(name):
  _assert_states_fit(_pair(name)[1])


def _assert_states_fit(private: Any) -> None:
  """Asserts that the state of each infoset has its infostate and actions."""
  for player, own in enumerate(private.infosets):
    actions = np.split(own.actions, np.cumsum(own.num_actions)[:-1])
    states = private.first_states(player)
    assert len(states) == len(own.infostates)
    for state, infostate, legal in zip(states, own.infostates, actions, strict=True):
      assert state.current_player() == player
      assert private.view.infostate(state) == infostate
      assert state.legal_actions() == legal.tolist()


def test_solvers_and_games_are_copied_and_kept(tmp_path):
  _, game = _pair("dark hex 2x3")
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(10)
  solver.save(tmp_path / "solver.npz")
  again = pickle.loads(pickle.dumps(game))
  assert again.digest == game.digest
  assert copy.copy(game) is game
  resumed = spiel_cfr.Solver.load(tmp_path / "solver.npz", again)
  for each in (solver, resumed):
    each.run(10)
  assert np.array_equal(solver.average_probabilities(), resumed.average_probabilities())
  solution = spiel_cfr.solve(game, exploitability=1e-3, progress=False)
  assert solution.exploitability <= 1e-3
  verdict = spiel_cfr.judge(game, solution)
  assert verdict.exploitability == pytest.approx(solution.exploitability)
  # It looks for no states, which would take a walk of all histories.
  with unittest.mock.patch.object(GameView, "first_states", side_effect=AssertionError):
    assert "infosets in private moves form" in str(verdict)


def _arrays(game: Any) -> list[Any]:
  """Returns all arrays of a game in private moves form."""
  result = [game.payoff.payoffs]
  for player, tree in enumerate(game.treeplexes):
    infosets = game.infosets[player]
    result += [tree.groups, tree.parent, *game._states.players[player]]
    result += [infosets.position, infosets.action_sequences]
    result += game.payoff.side_arrays(player)
  if game.payoff.form == "shared rectangles":
    payoff = game.payoff
    result += [payoff.subgame_of_group, payoff.reach_of_group, payoff.first_rectangle_of_subgame]
    result.append(payoff.payoff)
  return result


def _assert_file_holds(game: Any, path: Any) -> Any:
  """Saves and loads a game, asserts that all arrays and iterates are the same, and returns the loaded game."""
  game.save(path)
  loaded = spiel_cfr.load_compiled_game(path)
  assert repr(loaded) == repr(game)
  assert loaded.digest == game.digest
  for saved, found in zip(_arrays(game), _arrays(loaded), strict=True):
    assert saved.dtype == found.dtype
    assert np.array_equal(saved, found)
  found = [spiel_cfr.CFRPlusSolver(each) for each in (game, loaded)]
  for solver in found:
    solver.run(5)
  assert np.array_equal(*(solver.average_probabilities() for solver in found))
  return loaded


@pytest.mark.parametrize(
  ("name", "depth"),
  [
    ("Leduc", None),
    ("dark hex 2x3", None),
    ("Kuhn", 0),
    ("Kuhn", 2),
    ("Leduc", 3),
    ("Leduc", 8),
    ("abrupt dark hex 2x2", 3),
  ],
)
def test_files_hold_the_game(name, depth, tmp_path):
  game = _pair(name)[1] if depth is None else _shared(_GAMES[name][0], depth)
  path, again = tmp_path / "game.npz", tmp_path / "again.npz"
  loaded = _assert_file_holds(game, path)
  assert loaded.infostates == game.infostates
  loaded.save(again)
  assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("depth", [0, 2, 4])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_files_hold_random_games_with_shared_subgames(seed, depth, tmp_path, monkeypatch):
  # OpenSpiel can't load the game, so that the loaded one has no names.
  monkeypatch.setattr(saved_game, "check_names", lambda view: None)
  _assert_file_holds(_shared(_random_abrupt(seed)[0], depth, keys=_KEYS), tmp_path / "game.npz")


def test_files_of_games_without_names_are_refused(tmp_path):
  for refused in (
    _random_pair(0)[1],
    compile_private_moves_game(
      "kuhn_poker", infostate=lambda state, _: state.information_state_string()
    ),
  ):
    with pytest.raises(errors.UnsupportedGameError, match="no names of infosets"):
      refused.save(tmp_path / "game.npz")


_LEDUC_FORGERIES = {
  "legal": ("0.legal", 0, 10**6, "lists of actions"),
  "parent": ("1.parent", 5, 10**6, "after their parents"),
  "opponent": ("0.opponent_sequence", 3, 10**6, "opponents"),
  "path of an infoset": ("0.chance_path", 3, 10**6, "paths of chance"),
  "path": ("chance_before", 0, 0, "begin at the root"),
  "class of an entry": ("0.entries", 0, 0, "sides have classes"),
  "large class of an entry": ("1.entries", 0, 10**6, "sides have classes"),
  "class": ("0.classes", 3, 10**6, "sequences have classes"),
  "side": ("0.side_end", 1, 10**6, "sides end"),
  "last side": ("0.side_end", -1, 10**6, "entries are those of sides"),
  "sides": ("sides", (1, 0), 10**6, "rectangles have sides"),
  "payoff": ("payoffs", 0, np.nan, "finite"),
  "actions": ("actions", slice(None), 9, "ascend"),
  "large actions": ("actions", slice(None), slice(100, None), "actions are the game's"),
}


@functools.cache
def _shared_hex() -> Any:
  return _shared(_GAMES["abrupt dark hex 2x2"][0], 3)


_SHARED_FORGERIES = {
  "legal": ("0.legal", 0, 10**6, "lists of actions"),
  "subgame of a group": ("subgame_of_group", 0, 10**6, "groups have subgames"),
  "no probability": ("reach_of_group", 0, 0.0, "groups have probabilities"),
  "large probability": ("reach_of_group", 0, 2.0, "groups have probabilities"),
  "rectangles of a subgame": ("first_rectangle_of_subgame", 1, 10**6, "rectangles ascend"),
  "last rectangle": ("first_rectangle_of_subgame", -1, 10**6, "rectangles are in ranges"),
  "payoff of a rectangle": ("payoff", 0, 10**6, "rectangles and leaves have payoffs"),
  "sum of payoffs": ("payoffs", (0, 0), 0.5, "payoffs sum to 0"),
  "not a number": ("payoffs", (0, 0), np.nan, "finite"),
  "classes of a subgame": ("0.first_class_of_subgame", -1, 10**6, "classes have sequences"),
  "class of a root": ("0.class_of_root", 0, 10**6, "roots have classes"),
  "paying sequences": ("1.first_paying_of_subgame", 1, 10**6, "paying sequences ascend"),
  "class of a sequence": ("0.class_of_paying", 0, 10**6, "paying sequences have classes"),
  "sides of a subgame": ("0.first_side_of_subgame", 1, 10**6, "sides ascend"),
  "entries of a side": ("1.first_entry_of_side", 1, 10**6, "entries ascend"),
  "class of an entry": ("1.class_of_entry", 0, 10**6, "entries have classes"),
  "side of a rectangle": ("1.side_of_rectangle", 0, 10**6, "rectangles have sides"),
  "bundles of a group": ("0.first_bundle_of_group", 1, 0, "bundles are not empty"),
  "members of a bundle": ("0.first_member_of_bundle", 1, 0, "members are not empty"),
  "positions of a bundle": ("0.first_position_of_bundle", 0, 10**6, "positions"),
  "copy": ("0.copy_of_member", 0, 10**6, "copies have sequences of their player"),
  "member": ("1.root_of_member", 0, 10**6, "members have sequences"),
  "member of the opponent": ("1.root_of_member", 0, 0, "members have sequences of their player"),
  "position": ("0.positions", 0, 10**6, "positions have sequences"),
  "padding": ("0.positions", 0, 1, "copies have sequences of their player"),
  "leaf": ("0.sequence_of_leaf", slice(None), 10**6, "leaves have sequences"),
}


@pytest.mark.parametrize(
  ("is_shared", "forgery"),
  [(False, name) for name in _LEDUC_FORGERIES] + [(True, name) for name in _SHARED_FORGERIES],
)
def test_forged_files_are_refused(is_shared, forgery, tmp_path):
  forgeries = _SHARED_FORGERIES if is_shared else _LEDUC_FORGERIES
  name, place, value, message = forgeries[forgery]
  path = tmp_path / "game.npz"
  game = _shared_hex() if is_shared else _pair("Leduc")[1]
  game.save(path)
  header, arrays = files.read(path, enumerated_game.KIND, enumerated_game.FORMAT)
  array = arrays[name]
  array[place] = np.arange(100, 100 + len(array)) if isinstance(value, slice) else value
  files.write(path, header.pop("kind"), header.pop("format"), header, arrays)
  with pytest.raises(errors.FileFormatError, match=message):
    spiel_cfr.load_compiled_game(path)


@pytest.mark.parametrize("seed", range(4))
def test_a_file_with_a_random_error_is_refused_or_harmless(seed, tmp_path):
  path, generator = tmp_path / "game.npz", np.random.default_rng(seed)
  _shared_hex().save(path)
  header, arrays = files.read(path, enumerated_game.KIND, enumerated_game.FORMAT)
  facts = {name: header[name] for name in header if name not in ("kind", "format")}
  num_refused = 0
  for _ in range(40):
    name = generator.choice([name for name, array in arrays.items() if array.size])
    array = arrays[name].copy()
    match generator.integers(3):
      case 0:
        array.flat[generator.integers(array.size)] += 1
      case 1:
        array.flat[generator.integers(array.size)] = array.flat[generator.integers(array.size)]
      case _:
        array = np.ascontiguousarray(array[..., : generator.integers(array.shape[-1])])
    files.write(path, header["kind"], header["format"], facts, arrays | {name: array})
    try:
      game = spiel_cfr.load_compiled_game(path)
    except errors.FileFormatError:
      num_refused += 1
      continue
    gradient = np.zeros(game.end)
    for player in (0, 1):
      game.payoff.gradient_into(player, np.ones(game.end), gradient)
      game.payoff.leaves(player)
    assert np.isfinite(gradient).all()
  assert num_refused > 10


def test_a_walk_begins_where_arrays_are_full(monkeypatch):
  # One walk for each history at the cut, each with a sequence of each player.
  monkeypatch.setattr(core_histories, "_ROOM", 8)
  _assert_alike(_pair("Leduc")[0], _shared(_GAMES["Leduc"][0], 8))


def test_a_file_of_another_game_is_noticed_when_its_states_are(tmp_path):
  path = tmp_path / "game.npz"
  _pair("Leduc")[1].save(path)
  header, arrays = files.read(path, enumerated_game.KIND, enumerated_game.FORMAT)
  arrays["chance_action"][:] = 10**6
  files.write(path, header.pop("kind"), header.pop("format"), header, arrays)
  loaded = spiel_cfr.load_compiled_game(path)
  with pytest.raises(errors.FileFormatError, match="other actions"):
    list(loaded.infostates[0])


@pytest.mark.parametrize("observes", ["tensors", "strings", "states"])
@pytest.mark.parametrize("name", ["Leduc", "abrupt dark hex 2x2"])
def test_all_kinds_of_policies_are_judged_alike(name, observes):
  def answer(seen, legal):
    # A hash of what is seen.
    if observes == "tensors":
      keys = (seen @ np.arange(seen.shape[1])) % 7
    elif observes == "strings":
      keys = [len(each) % 5 for each in seen]
    else:
      keys = [len(each.history()) for each in seen]
    return legal * (1.0 + np.asarray(keys, float)[:, None] * np.arange(legal.shape[1]))

  found = [
    spiel_cfr.judge(game, answer, observes=observes, answers="logits", batch_size=9)
    for game in _pair(name)
  ]
  assert found[1].nash_conv == pytest.approx(found[0].nash_conv, abs=1e-12)
  assert np.allclose(found[1].expected_values, found[0].expected_values, atol=1e-12)


def test_compile_game_chooses_the_form_where_histories_are_too_many():
  game = "dark_hex(num_rows=2,num_cols=3)"
  found = spiel_cfr.compile_game(game, infostate="history", max_nodes=2_000)
  assert isinstance(found, spiel_cfr.games.PrivateMovesGame)
  assert found.num_states == 104_229
  with pytest.raises(errors.GameTooLargeError):
    spiel_cfr.compile_game(game, infostate="history", max_nodes=2_000, vector_form=False)


def test_compile_game_says_how_a_large_game_of_players_who_forget_fits():
  with pytest.raises(errors.ImperfectRecallError, match='infostate="history"'):
    spiel_cfr.compile_game("dark_hex(num_rows=2,num_cols=3)", max_nodes=2_000)


def _by_open_spiel_names(view: GameView, policy: Any) -> Any:
  """Returns a policy by OpenSpiel's information state strings, given one by the names of a view."""
  return {
    state.information_state_string(): policy[view.infostate(state)]
    for state, _ in view.states()
    if state.current_player() >= 0
  }


@pytest.mark.quick("private")
@pytest.mark.parametrize("form", [0, 1], ids=["listed", "private"])
def test_policies_are_read_by_the_game_s_names_and_by_open_spiel_s(form):
  game = _pair("dark hex 2x3")[form]
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(20)
  policy = solver.average_policy_dict()
  table = _by_open_spiel_names(game.view, policy)
  assert len(table) > game.num_infosets
  assert spiel_cfr.nash_conv(game, table) == spiel_cfr.nash_conv(game, policy)
  verdict = spiel_cfr.judge(game, [table, policy])
  assert verdict.nash_conv == pytest.approx(solver.nash_conv(), abs=1e-12)
  # Players of the game don't see the number of moves, the third line.
  for name in table:
    if int(name.split("\n")[2]) % 2:
      table[name] = dict.fromkeys(table[name], 1 / len(table[name]))
  with pytest.raises(errors.PolicyError, match="are one infoset"):
    spiel_cfr.nash_conv(game, table)


def test_open_spiel_s_tables_are_read_under_other_names():
  game = "dark_hex(num_rows=2,num_cols=2)"
  table = open_spiel_policy.TabularPolicy(pyspiel.load_game(game))
  private = compile_private_moves_game(game, infostate="history")
  uniform = evaluate.evaluate(private, forms.sequence_form(private, forms.uniform(private)))
  assert spiel_cfr.nash_conv(private, table) == pytest.approx(uniform.nash_conv, abs=1e-12)


def test_players_of_another_observation_type_see_the_number_of_moves():
  game = "dark_hex(num_rows=2,num_cols=2,obstype=reveal-numturns)"
  private = compile_private_moves_game(game)
  assert private.num_infosets > _pair("dark hex 2x2, observations")[1].num_infosets
  _assert_alike(spiel_cfr.compile_game(game, vector_form=False), private)


@pytest.mark.parametrize(
  "game",
  [
    # There are 1,797 worlds.
    pytest.param("dark_hex(num_rows=2,num_cols=3)", id="too many worlds"),
    pytest.param("nim", id="perfect information"),
    pytest.param("python_block_dominoes", id="a game in Python"),
    pytest.param("oshi_zumo", id="too many histories"),
  ],
)
def test_compile_game_does_not_try_the_form_in_vain(game, monkeypatch):
  def fail(*_, **__):
    raise AssertionError

  monkeypatch.setattr(compile_private_moves, "compile_view", fail)
  with pytest.raises(errors.GameTooLargeError, match="1,000"):
    spiel_cfr.compile_game(game, infostate="history", max_nodes=1_000)


def test_core_histories_have_a_limit(monkeypatch):
  """The form is for games with more histories than core histories."""
  game = spiel_cfr.games.compile_private_moves_game("kuhn_poker")
  monkeypatch.setattr(core_histories, "_WORK", 1)
  for limit, is_refused in [(game.num_core_histories, False), (game.num_core_histories - 1, True)]:
    view = GameView(loading.load_game("kuhn_poker"))
    compiled = functools.partial(
      compile_private_moves.compile_view, view, 1_000, 10**9, False, max_core_histories=limit
    )
    if is_refused:
      with pytest.raises(errors.GameTooLargeError, match=f"more than {limit} core histories"):
        compiled()
    else:
      assert compiled().num_core_histories == limit


_REFUSALS = {
  "returns depend on failed attempts": "end in the same core, but return",
  "failed attempts are seen": "sees a move that does not change the core",
  "legal actions depend on the other's attempts": "its legal actions differ",
  "chance depends on what a player has seen": "the probabilities of chance depend",
  "moves depend on what the other has seen": "the effect of a move of player . depends",
  "moves depend on what no key tells": "the effect of a move of player . depends|but are one world",
  "infostates forget": "The player forgets",
  "attempts never end": "can repeat|has not ended",
}


@pytest.mark.parametrize("flaw", private_moves_games.FLAWS)
def test_a_flaw_is_refused_by_name(flaw):
  refusals = []
  for seed in range(4):
    game = PrivateMovesGame(seed, flaw, depth=5)
    try:
      private = compile_private_moves_game(game, keys=_KEYS)
    except (errors.PrivateMovesError, errors.ImperfectRecallError) as error:
      refusals.append(str(error))
    else:
      # The flaw is at an unreached place.
      _assert_alike(spiel_cfr.compile_game(game, vector_form=False), private)
  assert refusals
  for refusal in refusals:
    assert re.search(_REFUSALS[flaw], refusal)
    assert re.search(r"\[\d+(, \d+)*", refusal)


@pytest.mark.quick("0-*", "1-infostates forget")
@pytest.mark.parametrize("flaw", [each for each in private_moves_games.FLAWS if "end" not in each])
@pytest.mark.parametrize("seed", range(3))
def test_a_flawed_game_is_refused_or_right_with_any_keys(flaw, seed):
  game = PrivateMovesGame(seed, flaw)
  try:
    private = compile_private_moves_game(game)
  except errors.UnsupportedGameError:
    return
  _assert_alike(spiel_cfr.compile_game(game, vector_form=False), private)


_LIES = {
  "no core": (lambda _: 0, lambda state, player: state.observation_string(player)),
  "nothing seen": (str, lambda *_: 0),
  "the other's cards": (str, lambda state, player: state.observation_string(1 - player)),
  "half a core": (
    lambda state: len(state.history()),
    lambda state, player: state.observation_string(player),
  ),
}


@pytest.mark.parametrize("lie", _LIES)
@pytest.mark.parametrize("game", ["leduc_poker", "dark_hex(num_rows=2,num_cols=2)"])
def test_keys_that_lie_are_refused(lie, game):
  core, seen = _LIES[lie]
  with pytest.raises(errors.PrivateMovesError, match=r"\[\d*(, \d+)*\].*a lie"):
    compile_private_moves_game(game, infostate="history", keys=WorldKeys(core, seen, "a lie"))


@pytest.mark.parametrize(
  "seen",
  [
    pytest.param(lambda *_: [], id="not hashable"),
    pytest.param(lambda *_: 1 / 0, id="an exception"),
    pytest.param(lambda: 0, id="no arguments"),
  ],
)
def test_keys_that_fail_are_named(seen):
  for keys in (WorldKeys(str, seen, ""), WorldKeys(seen, _KEYS.seen, "")):
    with pytest.raises(errors.UnsupportedGameError, match="can't be walked"):
      compile_private_moves_game("kuhn_poker", keys=keys)


@pytest.mark.slow
def test_a_chance_node_of_many_outcomes_is_refused_soon(monkeypatch):
  monkeypatch.setattr(private_moves_games, "_WIDTH", 2_000)
  games = (PrivateMovesGame(seed, depth=2) for seed in range(100))
  game = next(each for each in games if each.mover(0, 0, 0) == private_moves_games.CHANCE)
  with pytest.raises(errors.GameTooLargeError, match="1,000 worlds"):
    compile_private_moves_game(game, keys=_KEYS, max_worlds=1_000)


def test_far_too_many_worlds_are_foreseen(monkeypatch):
  monkeypatch.setattr(worlds, "_ESTIMATE_FROM", 10)
  compiled = functools.partial(
    compile_private_moves_game, "dark_hex(num_rows=2,num_cols=3)", infostate="history"
  )
  assert compiled(max_worlds=1_797).num_infosets == 2_508
  with pytest.raises(errors.GameTooLargeError, match="by an estimate"):
    compiled(max_worlds=500)


@pytest.mark.parametrize(
  ("name", "is_chosen"),
  [("phantom_ttt", True), ("backgammon", False), ("kuhn_poker(players=3)", False)],
)
def test_the_form_is_chosen_by_how_often_worlds_come_again(name, is_chosen):
  view = GameView(loading.load_game(name, needs_strings=False))
  assert compile_private_moves.is_chosen_by_default(view, max_worlds=2_000_000) is is_chosen


def test_unsuitable_games_are_refused():
  with pytest.raises(errors.PrivateMovesError, match="3 players"):
    compile_private_moves_game("kuhn_poker(players=3)")
  with pytest.raises(errors.ImperfectRecallError, match='infostate="history"'):
    compile_private_moves_game("dark_hex(num_rows=2,num_cols=3)")
  with pytest.raises(errors.GameTooLargeError, match="1,000 worlds"):
    compile_private_moves_game("phantom_ttt", max_worlds=1_000)
  with pytest.raises(errors.GameTooLargeError, match="max_bytes=100,000"):
    compile_private_moves_game("leduc_poker", max_bytes=100_000)
  with pytest.raises(errors.ArgumentError, match="max_worlds"):
    compile_private_moves_game("kuhn_poker", max_worlds=0)


def test_the_size_of_sides_is_estimated_before_the_walk():
  view = GameView(loading.load_game("dark_hex(num_rows=2,num_cols=3)"), infostate="history")
  split = cores.split_worlds(worlds.find_worlds(view, _KEYS, 10_000, 10**9, progress=False))
  choice = random.Random(0)
  samples = [size_estimate.sample_entries(split, choice) for _ in range(2_000)]
  payoff = _pair("dark hex 2x3")[1].payoff
  expected = sum(payoff._side_sizes(player).sum() for player in (0, 1))
  assert np.mean(samples) == pytest.approx(expected, rel=0.05)
  samples = size_estimate.sample_bytes(split, core_histories.GAME_START)
  size_estimate.check_size(samples, 10**6)
  with pytest.raises(errors.GameTooLargeError, match="by an estimate"):
    size_estimate.check_size(samples, 1_000)


def test_too_many_pairs_of_sequences_are_not_listed(monkeypatch):
  _, game = _pair("dark hex 2x3")
  monkeypatch.setattr("spiel_cfr.games.private_moves.rectangles._MOST_LEAVES", 1_000)
  with pytest.raises(errors.GameTooLargeError, match="pairs of sequences"):
    spiel_cfr.solve_lp(game)


# Infosets of each player, and terminal histories: published for exp-a-spiel (Rudolph et al. 2025, "Reevaluating Policy
# Gradient Methods for Imperfect-Information Games").
_PUBLISHED = {
  "phantom_ttt": (None, 5_990_669, 9_829_101_024, (0.2968253968, 0.953125, 0.6243386243)),
  "dark_hex(num_rows=3,num_cols=3)": (
    "history",
    6_072_917,
    9_469_697_760,
    (1 / 3, 1.0, 0.832804),
  ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _PUBLISHED)
def test_published_sizes_and_values(name):
  infostate, infosets, histories, (value, first, second) = _PUBLISHED[name]
  game = spiel_cfr.compile_game(loading.load_game(name), infostate=infostate)
  assert (game.num_infosets, game.num_terminals) == (infosets, histories)
  found = evaluate.evaluate(game, forms.sequence_form(game, forms.uniform(game)))
  assert found.expected_values[0] == pytest.approx(value, abs=1e-9)
  assert found.best_response_values == pytest.approx([first, second], abs=1e-6)
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(30)
  assert solver.exploitability() < 0.02
