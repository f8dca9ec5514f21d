"""Compiling: every kind of game is correct, and unsolvable games are refused by name."""

import dataclasses
import itertools
import json
import math
import subprocess
import sys
import zipfile

import numpy as np
import pyspiel
import pytest
import random_games
from hypothesis import given, settings

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr._numba.sort_columns import lexicographic_order
from spiel_cfr._util import memory
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled import enumerated_game
from spiel_cfr.games.openspiel import game_size, terminal_histories
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.walk import enumerate_game


def efg(body):
  """Loads a two-player game from Gambit's format, whose lines after the title are `body`."""
  return pyspiel.load_efg_game('EFG 2 R "test" { "A" "B" } ""\n' + body)


def uniform_values(state):
  """Returns the players' expected returns under uniform play."""
  if state.is_terminal():
    return np.array(state.returns())
  if state.is_chance_node():
    return sum(p * uniform_values(state.child(action)) for action, p in state.chance_outcomes())
  actions = state.legal_actions()
  return sum(uniform_values(state.child(action)) for action in actions) / len(actions)


def check_against_walk(compiled):
  """Checks sizes, infosets, actions and payoffs against a walk that shares no code."""
  infosets = [{} for _ in range(compiled.num_players)]
  num_states = num_terminals = 0
  stack = [compiled.game.new_initial_state()]
  while stack:
    state = stack.pop()
    num_states += 1
    if state.is_terminal():
      num_terminals += 1
      continue
    if not state.is_chance_node():
      own = infosets[state.current_player()]
      own[state.information_state_string()] = state.legal_actions()
    stack += [state.child(action) for action in state.legal_actions()]
  assert (compiled.num_states, compiled.num_terminals) == (num_states, num_terminals)
  for player, own in enumerate(infosets):
    flat = iter(compiled.actions[player].tolist())
    counts = compiled.num_actions[player].tolist()
    assert own == {
      infostate: [next(flat) for _ in range(count)]
      for infostate, count in zip(compiled.infostates[player], counts, strict=True)
    }
  sequence = policies.sequence_form(compiled, policies.uniform(compiled))
  assert evaluate.evaluate(compiled, sequence).expected_values == pytest.approx(
    uniform_values(compiled.game.new_initial_state()), abs=1e-12
  )


def check_layout(compiled):
  """Checks that each sequence belongs to one infoset, blocks are aligned and parents come first."""
  seen = np.zeros(compiled.end, bool)
  for treeplex in compiled.treeplexes:
    seen[treeplex.root] = True
    for sequences, infosets in treeplex.infoset_groups():
      assert sequences[0, 0] % 8 == 0
      assert seen[treeplex.parent[infosets]].all(), "a parent comes after its child"
      assert not seen[sequences].any(), "two infosets share a sequence"
      seen[sequences] = True
    assert seen[treeplex.root : treeplex.end].sum() == treeplex.num_sequences
  assert len(np.unique(compiled.all_action_sequences)) == len(compiled.all_action_sequences)
  assert seen[compiled.all_action_sequences].all()


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
  ],
)
def test_games(name):
  compiled = spiel_cfr.compile_game(name)
  check_against_walk(compiled)
  check_layout(compiled)


@given(random_games.games())
@settings(max_examples=60)
def test_random_games(game):
  compiled = spiel_cfr.compile_game(game)
  check_against_walk(compiled)
  check_layout(compiled)


def test_perfect_information():
  compiled = spiel_cfr.compile_game("nim(pile_sizes=1;2;3)")
  check_against_walk(compiled)
  check_layout(compiled)


@pytest.mark.slow
def test_half_a_million_states():
  assert spiel_cfr.compile_game("tic_tac_toe").num_states == 549_946


def test_game_objects_and_strings_are_the_same():
  by_string = spiel_cfr.compile_game("leduc_poker")
  by_object = spiel_cfr.compile_game(pyspiel.load_game("leduc_poker"))
  assert by_string.infostates == by_object.infostates
  assert (by_string.payoff.arrays.values == by_object.payoff.arrays.values).all()
  assert spiel_cfr.compile_game(by_string) is by_string


def chain(length):
  """A game in which two players take turns to stop or to go on, `length` times."""
  lines = []
  for step in range(length):
    player = step % 2 + 1
    lines.append(f'p "" {player} {step // 2 + 1} "" {{ "stop" "go" }} 0')
    lines.append(f't "" {step + 1} "" {{ {step} {-step} }}')
  lines.append(f't "" {length + 1} "" {{ {length} {-length} }}')
  return efg("\n".join(lines))


def test_deep_game():
  # Deeper than Python's own stack.
  compiled = spiel_cfr.compile_game(chain(2 * sys.getrecursionlimit()))
  assert [treeplex.depth for treeplex in compiled.treeplexes] == [sys.getrecursionlimit()] * 2
  solver = spiel_cfr.CFRPlusSolver(compiled)
  solver.run(10)
  # Player 1 loses the least by stopping at its first move, so that player 0 gets 1.
  assert evaluate.best_response(compiled, solver.average_policy(), 0).value >= 1.0


def test_recall_error_names_the_infostate():
  game = efg(
    'p "" 1 1 "" { "l" "r" } 0\n'
    'p "" 1 2 "forgot" { "x" "y" } 0\nt "" 1 "" { 1 -1 }\nt "" 2 "" { 2 -2 }\n'
    'p "" 1 2 "forgot" { "x" "y" } 0\nt "" 3 "" { 3 -3 }\nt "" 4 "" { 4 -4 }\n'
  )
  with pytest.raises(errors.ImperfectRecallError, match="forgot"):
    spiel_cfr.compile_game(game)


def test_imperfect_recall_in_the_registry():
  with pytest.raises(errors.ImperfectRecallError, match="infostate"):
    spiel_cfr.compile_game("liars_dice_ir(dice_sides=3)")


def test_different_actions_in_one_infoset():
  game = efg(
    'c "" 1 "" { "h" 1/2 "t" 1/2 } 0\n'
    'p "" 1 1 "same" { "a" "b" } 0\nt "" 1 "" { 1 -1 }\nt "" 2 "" { 2 -2 }\n'
    'p "" 1 1 "same" { "a" "c" } 0\nt "" 3 "" { 3 -3 }\nt "" 4 "" { 4 -4 }\n'
  )
  with pytest.raises(errors.InconsistentInfosetError, match="same"):
    spiel_cfr.compile_game(game)


class Wrapped:
  """A game or state whose methods can be replaced, to stand for one that misbehaves."""

  def __init__(self, wrapped, **replaced):
    self.wrapped, self.replaced = wrapped, replaced

  def __getattr__(self, name):
    if name in self.replaced:
      return lambda *arguments: self.replaced[name]
    method = getattr(self.wrapped, name)
    if name in ("child", "new_initial_state"):
      return lambda *arguments: Wrapped(method(*arguments), **self.replaced)
    return method


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_payoffs_must_be_finite(bad):
  game = Wrapped(pyspiel.load_game("kuhn_poker"), returns=[bad, 0.0])
  with pytest.raises(errors.InvalidPayoffError, match="finite"):
    enumerate_game(GameView(game), 1000, 10**9)


@pytest.mark.parametrize("bad", [[(0, 0.5), (1, 0.6)], [(0, 1.5), (1, -0.5)], [(0, math.nan)]])
def test_chance_must_be_probabilities(bad):
  game = Wrapped(pyspiel.load_game("kuhn_poker"), chance_outcomes=bad)
  with pytest.raises(errors.GameError, match="sum to 1"):
    enumerate_game(GameView(game), 1000, 10**9)


def test_max_nodes():
  compiled = spiel_cfr.compile_game("leduc_poker", max_nodes=9457)
  assert compiled.num_states == 9457
  with pytest.raises(errors.GameTooLargeError, match=r"max_nodes=9,456.*infosets"):
    spiel_cfr.compile_game("leduc_poker", max_nodes=9456)


def test_max_bytes(monkeypatch):
  """Games with large states stop early: without the limit, 10,000 states of this one take 3 GB."""
  monkeypatch.setattr(game_size, "SECONDS_BEFORE_ESTIMATE", np.inf)
  before = memory.resident_bytes()
  with pytest.raises(errors.GameTooLargeError, match=r"max_bytes=200,000,000"):
    spiel_cfr.compile_game("crazyhouse", max_bytes=200_000_000)
  assert memory.resident_bytes() - before < 400_000_000
  sizes = itertools.chain([10**9, 10**9 + 10**6], itertools.repeat(10**9 + 10**6 + 1))
  monkeypatch.setattr(memory, "resident_bytes", lambda: next(sizes))
  with pytest.raises(errors.GameTooLargeError):
    spiel_cfr.compile_game("leduc_poker", max_bytes=10**6)


@pytest.mark.parametrize("bad", [0, -1, 1.5, "many", True, None])
def test_max_nodes_must_be_a_positive_integer(bad):
  with pytest.raises(errors.ArgumentError, match="max_nodes"):
    spiel_cfr.compile_game("kuhn_poker", max_nodes=bad)


@pytest.mark.parametrize(("distinct", "most"), [(20_000, 3), (1000, 10)])
def test_leaves_are_sorted_a_bounded_number_of_times(monkeypatch, distinct, most):
  """Few sorts suffice for many leaves, whether most of them are distinct or few, in little memory."""
  monkeypatch.setattr(terminal_histories, "_MERGE_EVERY", 16)
  lengths = []

  def order(rows):
    lengths.append(len(rows[0]))
    return lexicographic_order(rows)

  monkeypatch.setattr(terminal_histories, "lexicographic_order", order)
  leaves = terminal_histories.TerminalHistories(3)
  sequences = np.arange(20_000) * 7919 % distinct
  for some in np.split(sequences, 2000):
    leaves.new_sequences += [int(each) << 64 | int(each) + 1 for each in some]
    leaves.new_returns += [[1.0, 2.0, float(each)] for each in some]
    leaves.new_reaches += [0.5] * len(some)
    leaves.collect()
  found, payoffs = leaves.merged()
  assert (found == [np.arange(1, distinct + 1), np.zeros(distinct), np.arange(distinct)]).all()
  each = 10_000 / distinct
  assert payoffs == pytest.approx(
    each * np.stack([np.ones(distinct), 2 * np.ones(distinct), np.arange(distinct)], axis=1)
  )
  assert sum(lengths) <= most * len(sequences)
  # The first time that most are known already, there are at most twice as many.
  assert max(lengths) <= 2 * distinct


# Tracing a walk takes twenty times as long as the walk, and little of the memory is its own; so what it brings home
# is traced as it is collected and laid out.
_PEAK = """
import sys, tracemalloc, numpy as np
from spiel_cfr.games.compiled import enumerated_game
from spiel_cfr.games.openspiel import game_view, loading, terminal_histories, walk as walking
name, walks_traced = sys.argv[1], sys.argv[2] == "all"
def walked(name):
  return walking.enumerate_game(game_view.GameView(loading.load_game(name)), 10**9, 10**12, False)
def laid_out(walk, leaves):
  numbers = [[own.parents for own in walk.infosets], [own.num_actions for own in walk.infosets]]
  return enumerated_game.lay_out_arrays(*numbers, *leaves)
# What is loaded when it is first needed is not the game's: kernels, and the modules that NumPy imports by itself. Both
# forms of payoffs need some, so a small game of each goes first.
for small, form in ("kuhn_poker(players=3)", "leaf rows"), ("liars_dice(dice_sides=3)", "typed patterns"):
  walk = walked(small)
  assert laid_out(walk, (walk.leaf_sequences, walk.leaf_payoffs))[1].form == form
if not walks_traced:
  walk = walked(name)
  columns, payoffs = walk.leaf_sequences.T.copy(), walk.leaf_payoffs.copy()
  shuffled = np.random.default_rng(0).permutation(len(columns))
  walk.leaf_sequences = walk.leaf_payoffs = None
tracemalloc.start()
if walks_traced:
  walk = walked(name)
  leaves = walk.leaf_sequences, walk.leaf_payoffs
  walk.leaf_sequences = walk.leaf_payoffs = None
else:
  collected = terminal_histories.TerminalHistories(columns.shape[1])
  for some in np.array_split(shuffled, 1 + len(columns) // 4096):
    collected.new_sequences += [int.from_bytes(each.tobytes(), "little") for each in columns[some]]
    collected.new_returns += payoffs[some].tolist()
    collected.new_reaches += [1.0] * len(some)
    collected.collect()
  leaves = collected.merged()
  del collected
num_leaves = leaves[0].shape[1]
laid_out(walk, leaves)
strings = sum(sys.getsizeof(text) for own in walk.infosets for text in own.infostates)
peak = tracemalloc.get_traced_memory()[1] - (strings if walks_traced else 0)
print(peak, num_leaves, sum(len(own.parents) for own in walk.infosets))
"""


@pytest.mark.parametrize(
  ("name", "traced", "per_infoset"),
  [
    pytest.param("liars_dice", "leaves", 100, marks=pytest.mark.slow),
    # 60.9 MB.
    pytest.param("leduc_poker(players=3)", "all", 400, marks=pytest.mark.slow),
  ],
)
def test_memory(name, traced, per_infoset):
  """A separate process, since threads of other tests use memory too."""
  printed = subprocess.check_output([sys.executable, "-c", _PEAK, name, traced])
  peak, leaves, infosets = map(int, printed.split())
  # A hundredth more, for what does not grow with the game.
  assert peak <= 1.01 * (48 * leaves + per_infoset * infosets)


def same_game(ours, other):
  """Whether two enumerated games are equal in everything but the version of OpenSpiel."""
  assert ours.digest == other.digest
  assert (ours.game_string, repr(ours)) == (other.game_string, repr(other))
  for mine, theirs in zip(ours.infosets, other.infosets, strict=True):
    for field in dataclasses.fields(mine):
      np.testing.assert_equal(getattr(mine, field.name), getattr(theirs, field.name))
  for name, array in ours.payoff.arrays._asdict().items():
    np.testing.assert_equal(array, getattr(other.payoff.arrays, name))
  for mine, theirs in zip(ours.treeplexes, other.treeplexes, strict=True):
    for name in ("root", "end", "first_infoset", "groups", "parent"):
      np.testing.assert_equal(getattr(mine, name), getattr(theirs, name))


@pytest.mark.parametrize("name", ["leduc_poker", "matrix_pd", "kuhn_poker(players=3)"])
def test_save_and_load(tmp_path, name):
  compiled = spiel_cfr.compile_game(name)
  path = tmp_path / "game.npz"
  compiled.save(path)
  loaded = spiel_cfr.load_compiled_game(path)
  same_game(compiled, loaded)
  assert [file.name for file in tmp_path.iterdir()] == ["game.npz"]
  solvers = [spiel_cfr.CFRPlusSolver(game) for game in (compiled, loaded)]
  for solver in solvers:
    solver.run(20)
  policies = [solver.average_policy().action_probability_array for solver in solvers]
  assert (policies[0] == policies[1]).all()
  assert str(loaded.game) == str(compiled.game)


def test_numpy_reads_files_of_games(tmp_path):
  compiled = spiel_cfr.compile_game("leduc_poker")
  compiled.save(tmp_path / "game.npz")
  with zipfile.ZipFile(tmp_path / "game.npz") as archive:
    assert archive.testzip() is None
  with np.load(tmp_path / "game.npz") as arrays:
    header = json.loads(arrays["header"].tobytes())
    assert (header["game_string"], header["num_states"]) == ("leduc_poker()", compiled.num_states)
    for player, own in enumerate(compiled.infosets):
      assert arrays[f"{player}.infostates"].tobytes().decode() == "".join(own.infostates)
      np.testing.assert_array_equal(arrays[f"{player}.actions"], own.actions)


def test_saving_is_all_or_nothing(tmp_path, monkeypatch):
  path = tmp_path / "game.npz"
  spiel_cfr.compile_game("kuhn_poker").save(path)
  before = path.read_bytes()

  def fail(*arguments, **named):
    raise OSError("disk full")

  monkeypatch.setattr(np, "savez", fail)
  with pytest.raises(OSError, match="disk full"):
    spiel_cfr.compile_game("leduc_poker").save(path)
  assert path.read_bytes() == before
  assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "flipped", "other", "newer"])
def test_damaged_files(tmp_path, monkeypatch, damage):
  path = tmp_path / "game.npz"
  if damage == "newer":
    monkeypatch.setattr(enumerated_game, "FORMAT", 9)
  spiel_cfr.compile_game("kuhn_poker").save(path)
  content = path.read_bytes()
  if damage == "truncated":
    path.write_bytes(content[: len(content) // 2])
  elif damage == "empty":
    path.write_bytes(b"")
  elif damage == "text":
    path.write_text("not a game")
  elif damage == "flipped":
    middle = content.index(b"infostates") + 200
    path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
  elif damage == "other":
    np.savez(path, numbers=np.arange(3))
  monkeypatch.undo()
  with pytest.raises(errors.FileFormatError, match="format 9" if damage == "newer" else "game"):
    spiel_cfr.load_compiled_game(path)
