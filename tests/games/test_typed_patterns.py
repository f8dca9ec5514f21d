"""Typed patterns hold the same payoffs as leaf rows, for any number of players and types."""

import functools
import itertools
import os
import re
import unittest.mock
from types import SimpleNamespace

import numpy as np
import pyspiel
import pytest
import random_games

import spiel_cfr
from spiel_cfr._numba.arrays import aligned_zeros
from spiel_cfr._numba.simd import LANES
from spiel_cfr.games.compiled import enumerated_game
from spiel_cfr.games.payoffs import private_types, typed_patterns
from spiel_cfr.games.payoffs.leaf_rows import LeafRows, Leaves
from spiel_cfr.games.payoffs.runs import rows_of
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns

LIARS_DICE = "liars_dice(numdice=1,dice_sides=4)"


def compile_as(form, game):
  """Compiles a game with its payoff in the given form."""

  def build(leaf_sequences, leaf_payoffs, treeplexes, states):
    if form == LeafRows.form:
      return LeafRows.build(leaf_sequences, leaf_payoffs, treeplexes)
    tensors = private_types.find_tensors(leaf_sequences, treeplexes, states)
    return TypedPatterns.build(tensors, leaf_payoffs, treeplexes)

  with unittest.mock.patch.object(enumerated_game, "build_payoff", build):
    return spiel_cfr.compile_game(game)


def compile_both(game):
  result = [compile_as(form, game) for form in (LeafRows.form, TypedPatterns.form)]
  assert [compiled.payoff.form for compiled in result] == ["leaf rows", "typed patterns"]
  return result


def typed_game(seed, num_types, *, zero_sum=True, num_matrices=2, impossible=0.2, noise=0.0):
  """Returns a random game in which chance deals each player a type, and all moves after that are public.

  Args:
    seed: of everything random.
    num_types: how many types each player has.
    zero_sum: whether payoffs sum to 0.
    num_matrices: how many payoff tensors there are; where the play ends decides which one applies, and its factor.
    impossible: which part of the combinations of types is not dealt.
    noise: by what part, at most, each payoff differs from that.
  """
  rng = np.random.default_rng(seed)
  num_players = len(num_types)
  deals = list(itertools.product(*map(range, num_types)))
  weights = rng.integers(1, 6, len(deals)) * (rng.random(len(deals)) >= impossible)
  weights[rng.integers(len(deals))] += 1
  matrices = rng.integers(-3, 4, (num_matrices, len(deals), num_players))

  def grow(depth):
    """A place of the public tree: its player and what follows each action, or a matrix and a factor."""
    if depth == 0 or (depth < 3 and rng.random() < 0.3):
      return int(rng.integers(num_matrices)), int(rng.integers(1, 9))
    return int(rng.integers(num_players)), [grow(depth - 1) for _ in range(rng.integers(2, 4))]

  tree = grow(4)
  numbers = itertools.count(1)
  infosets = [{} for _ in range(num_players)]

  def write(place, path, deal):
    first, rest = place
    if isinstance(rest, int):
      payoff = matrices[first, deal] * rest * (1 + noise * rng.random(num_players))
      if zero_sum:
        payoff[-1] = -payoff[:-1].sum()
      values = " ".join(repr(float(value)) for value in payoff)
      yield f't "" {next(numbers)} "" {{ {values} }}'
      return
    infoset = infosets[first].setdefault((path, deals[deal][first]), len(infosets[first]) + 1)
    actions = " ".join(f'"{action}"' for action in range(len(rest)))
    yield f'p "" {first + 1} {infoset} "{first} {infoset}" {{ {actions} }} 0'
    for action, below in enumerate(rest):
      yield from write(below, (*path, action), deal)

  dealt = np.flatnonzero(weights)
  outcomes = " ".join(f'"d{deal}" {weights[deal]}/{weights.sum()}' for deal in dealt)
  names = " ".join(f'"{player}"' for player in range(num_players))
  lines = [f'EFG 2 R "seed {seed}" {{ {names} }} ""', f'c "" 1 "" {{ {outcomes} }} 0']
  for deal in dealt:
    lines += write(tree, (), deal)
  return pyspiel.load_efg_game("\n".join(lines) + "\n")


GAMES = {
  "kuhn_poker": lambda: "kuhn_poker",
  "kuhn_poker, 3 players": lambda: "kuhn_poker(players=3)",
  "kuhn_poker, 4 players": lambda: "kuhn_poker(players=4)",
  "leduc_poker": lambda: "leduc_poker",
  "liars_dice": lambda: LIARS_DICE,
  "goofspiel": lambda: "goofspiel(players=2,num_cards=4,imp_info=True,points_order=descending)",
  "goofspiel, 3 players": lambda: "goofspiel(players=3,num_cards=3,imp_info=True)",
  "matrix game": lambda: "matrix_rps",
  "types 5 3": lambda: typed_game(0, (5, 3)),
  "types 8 8, general-sum": lambda: typed_game(1, (8, 8), zero_sum=False),
  "types 9 2": lambda: typed_game(2, (9, 2)),
  "types 3 20": lambda: typed_game(3, (3, 20)),
  "types 17 16": lambda: typed_game(4, (17, 16), zero_sum=False),
  "types 1 4": lambda: typed_game(5, (1, 4)),
  "types 4 3 5": lambda: typed_game(6, (4, 3, 5)),
  "types 9 2 10, general-sum": lambda: typed_game(7, (9, 2, 10), zero_sum=False),
  "types 10 17 9": lambda: typed_game(21, (10, 17, 9)),
  "types 2 9 3 17": lambda: typed_game(22, (2, 9, 3, 17), zero_sum=False),
  "types 2 3 4 3": lambda: typed_game(8, (2, 3, 4, 3), zero_sum=False),
  "types 2 1 2 3 2": lambda: typed_game(9, (2, 1, 2, 3, 2)),
  "payoffs that differ a little": lambda: typed_game(10, (6, 6), noise=1e-9),
}
every_game = pytest.mark.parametrize("make", GAMES.values(), ids=GAMES)


def random_strategy(compiled, seed):
  """Returns a strategy in sequence form, with zeros in places."""
  rng = np.random.default_rng(seed)
  sequence = aligned_zeros(compiled.end)
  for treeplex in compiled.treeplexes:
    sequence[treeplex.root] = 1.0
    for sequences, infosets in treeplex.infoset_groups():
      weights = rng.random(sequences.shape) * (rng.random(sequences.shape) > 0.2) + 1e-3
      reach = sequence[treeplex.parent[infosets]]
      sequence[sequences] = reach * (weights / weights.sum(axis=0)).round(2)
  return sequence


def gradient(compiled, player, sequence, utility):
  compiled.payoff.gradient_into(player, sequence, utility)
  return utility


def assert_gradients_agree(rows, typed):
  scale = max(map(abs, rows.payoff_range))
  for seed, player in itertools.product(range(3), range(rows.num_players)):
    sequence = random_strategy(rows, seed)
    own = slice(rows.treeplexes[player].root, rows.treeplexes[player].end)
    expected = gradient(rows, player, sequence, np.full(rows.end, np.nan))
    found = gradient(typed, player, sequence, np.full(typed.end, np.nan))
    assert np.abs(expected[own]).max() > 0
    for sequences, _ in rows.treeplexes[player].infoset_groups():
      np.testing.assert_allclose(found[sequences], expected[sequences], atol=1e-14 * scale, rtol=0)
    # Sequences of other players do not change.
    others = np.delete(np.arange(rows.end), own)
    assert np.isnan(found[others]).all()


@every_game
def test_gradients_are_those_of_leaf_rows(make):
  assert_gradients_agree(*compile_both(make()))


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_gradients_of_games_without_types(num_players):
  for seed in range(15):
    game = random_games.random_game(seed, num_players, zero_sum=seed % 2 == 0)
    assert_gradients_agree(*compile_both(game))


@pytest.mark.parametrize("num_others", [1, 2, 3])
@pytest.mark.parametrize("longest", [3, 12, 90])
def test_leaf_rows_are_sums_over_leaves(num_others, longest):
  """Sums over rows of all lengths, side by side and alone, for each player."""
  rng = np.random.default_rng(longest)
  bounds = [(player * 200, (player + 1) * 200) for player in range(num_others + 1)]
  listed = []
  for root, end in bounds:
    own = np.repeat(np.arange(root, end), rng.integers(0, longest, 200))
    rng.shuffle(own)
    others = rng.integers(0, bounds[-1][1], (num_others, len(own))).astype(np.uint32)
    listed.append(Leaves(own.astype(np.uint32), others, rng.normal(size=len(own))))
  trees = [SimpleNamespace(root=root, end=end) for root, end in bounds]
  payoff, sequence = LeafRows.of_leaves(listed, trees), rng.random(bounds[-1][1])
  for player, ((root, end), leaves) in enumerate(zip(bounds, listed, strict=True)):
    expected, found = np.full((2, len(sequence)), 7.0)
    expected[root:end] = 0.0
    np.add.at(expected, leaves.own, leaves.values * sequence[leaves.others].prod(axis=0))
    payoff.gradient_into(player, sequence, found)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    order = np.argsort(leaves.own, kind="stable")
    for one, other in zip(payoff.leaves(player), leaves, strict=True):
      np.testing.assert_array_equal(one, other[..., order])


def test_patterns_that_stay_in_no_cache_are_read_in_their_order(monkeypatch):
  by_pattern = compile_as(TypedPatterns.form, "leduc_poker")
  monkeypatch.setattr(typed_patterns, "_CACHED", by_pattern.payoff.arrays.patterns.nbytes - 1)
  in_order = compile_as(TypedPatterns.form, "leduc_poker")
  assert (np.diff(in_order.payoff.arrays.rows.astype(int)) > 0).all()
  assert len(by_pattern.payoff.arrays.runs) < len(in_order.payoff.arrays.runs) / 3
  for player in range(2):
    sequence, (one, other) = random_strategy(in_order, 0), aligned_zeros(2, in_order.end)
    by_pattern.payoff.gradient_into(player, sequence, one)
    in_order.payoff.gradient_into(player, sequence, other)
    np.testing.assert_array_equal(one, other)


def leaf_table(compiled, player):
  """Returns the payoffs of a player by its last sequence and those of the others, but for zeros that are rounding."""
  own, others, values = compiled.payoff.leaves(player)
  keys = map(tuple, np.vstack([own, others]).T.tolist())
  table = dict(zip(keys, values.tolist(), strict=True))
  assert len(table) == len(values)
  return {key: value for key, value in table.items() if abs(value) > 1e-14}


@every_game
def test_leaves_are_those_of_leaf_rows(make):
  rows, typed = compile_both(make())
  assert typed.num_leaves == rows.num_leaves
  for player in range(rows.num_players):
    assert leaf_table(typed, player) == pytest.approx(leaf_table(rows, player), rel=1e-9)


def assert_iterates_agree(make_solver, game, iterations, tolerance=1e-9):
  solvers = [make_solver(compiled) for compiled in compile_both(game)]
  for _ in range(iterations):
    for solver in solvers:
      solver.evaluate_and_update_policy()
    rows, typed = (solver.current_probabilities() for solver in solvers)
    np.testing.assert_allclose(typed, rows, atol=tolerance, rtol=0)
  rows, typed = (solver.average_probabilities() for solver in solvers)
  np.testing.assert_allclose(typed, rows, atol=tolerance, rtol=0)
  assert np.abs(rows - solvers[0].current_probabilities()).max() > 0.01
  return solvers


SOLVERS = [
  spiel_cfr.CFRSolver,
  spiel_cfr.CFRPlusSolver,
  spiel_cfr.DCFRSolver,
  lambda game: spiel_cfr.TabularCFRSolver(game, False, True, True),
]


@pytest.mark.parametrize("make_solver", SOLVERS)
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", LIARS_DICE])
def test_iterates_are_those_of_leaf_rows(make_solver, game):
  # Strategies magnify rounding where the sum of regrets is small: DCFR's on Leduc poker tenfold in 5 iterations.
  assert_iterates_agree(make_solver, game, 30)


@pytest.mark.parametrize("make_solver", SOLVERS)
@pytest.mark.parametrize("num_types", [(5, 3), (11, 6), (3, 4, 5)])
def test_iterates_on_random_types(make_solver, num_types):
  game = typed_game(20, num_types, zero_sum=len(num_types) == 2)
  assert_iterates_agree(make_solver, game, 30)


@pytest.mark.slow
@pytest.mark.parametrize(
  ("game", "iterations"), [("leduc_poker(players=3)", 20), ("liars_dice", 60)]
)
def test_iterates_on_large_games(game, iterations):
  solvers = assert_iterates_agree(spiel_cfr.CFRPlusSolver, game, iterations)
  assert solvers[1].nash_conv() == pytest.approx(solvers[0].nash_conv(), abs=1e-12)


@pytest.mark.parametrize("game", ["kuhn_poker(players=3)", "leduc_poker"])
def test_evaluation_agrees_with_open_spiel(game):
  solver = spiel_cfr.CFRPlusSolver(compile_as(TypedPatterns.form, game))
  solver.run(10)
  in_cpp = pyspiel.nash_conv(solver.game, solver.tabular_average_policy())
  assert solver.nash_conv() == pytest.approx(in_cpp, abs=1e-12)


@pytest.mark.parametrize(
  "make, form",
  [
    (lambda: "kuhn_poker", "leaf rows"),
    (lambda: "leduc_poker", "typed patterns"),
    (lambda: LIARS_DICE, "typed patterns"),
    (lambda: typed_game(0, (20, 20)), "typed patterns"),
    (lambda: typed_game(0, (6, 6, 6)), "typed patterns"),
    (lambda: typed_game(0, (20, 1)), "leaf rows"),
    (lambda: random_games.random_game(0), "leaf rows"),
  ],
)
def test_the_form_that_touches_less_is_chosen(make, form):
  assert spiel_cfr.compile_game(make()).payoff.form == form


@pytest.mark.parametrize("seed", range(20))
def test_public_states_are_the_classes_of_infosets_that_share_sequences_of_others(seed):
  rng = np.random.default_rng(seed)
  num_actions = rng.integers(1, 4, 40)
  leaves = rng.integers(0, [1 + num_actions.sum(), 7, 9], (30, 3)).T.astype(np.uint32)
  for player, others in ((0, [1, 2]), (1, [0, 2])):
    counts = num_actions if player == 0 else np.full(6, 1)
    owner = [None, *np.repeat(np.arange(len(counts)), counts).tolist()]
    classes = [{infoset} for infoset in range(len(counts))]
    for one, other in itertools.combinations(leaves.T, 2):
      first, second = owner[one[player]], owner[other[player]]
      if (one[others] == other[others]).all() and first is not None and second is not None:
        merged = classes[first] | classes[second]
        for infoset in merged:
          classes[infoset] = merged
    owner = np.append(-1, np.repeat(np.arange(len(counts)), counts))
    found = private_types.group_public_states(leaves, player, owner, len(counts))
    assert found.tolist() == [min(members) for members in classes]
  chain = np.array([[3, 1, 2, 1, 4, 2], [1, 1, 2, 2, 3, 3]], np.uint32)
  assert private_types.group_public_states(chain[:, :4], 0, np.arange(-1, 4), 4).tolist() == [
    0,
    0,
    0,
    3,
  ]
  assert private_types.group_public_states(chain, 0, np.arange(-1, 4), 4).tolist() == [0, 0, 0, 0]


def num_patterns(compiled):
  """Number of squares of payoffs; with two players, the number of patterns."""
  return len(compiled.payoff.arrays.patterns) // LANES**2


def test_liars_dice_has_one_pattern_a_bid():
  # Who wins 1 depends on the dice and the bid that was called: one of 4 faces, once or twice.
  compiled = spiel_cfr.compile_game(LIARS_DICE)
  assert num_patterns(compiled) == 2 * 4 * compiled.num_players


def test_factors_share_patterns():
  compiled = compile_as("typed patterns", typed_game(11, (6, 5), num_matrices=3, impossible=0.0))
  ends = len(np.unique(compiled.payoff.arrays.others[:, 1]))
  # A player who never gets to move has no types, and thus patterns of its own.
  assert num_patterns(compiled) <= 3 * compiled.num_players + 2 < ends


@pytest.mark.parametrize("num_types", [(9, 2, 10), (8, 2, 2), (2, 3, 2, 2)])
def test_squares_that_are_alike_are_kept_once(num_types):
  compiled = compile_as("typed patterns", typed_game(12, num_types, impossible=0.8))
  arrays = compiled.payoff.arrays
  places, squares = arrays.squares, arrays.patterns.reshape(-1, LANES, LANES)
  assert len(squares) < len(places)
  for player in range(len(num_types)):
    _, lengths, first = rows_of(*arrays[:3], player)
    lines = arrays.others[first : first + lengths.sum()].astype(int)
    used = {
      int(place) // 2 for line in lines for place in places[line[0] : line[0] + line[1:-1:2].prod()]
    }
    own = squares[sorted(used)].round(9) + 0.0
    assert len(np.unique(own, axis=0)) == len(own) > 1
  assert set(places // 2) == set(range(len(squares)))
  # Marked are those with something in the last column, which only eight types or more can have.
  np.testing.assert_array_equal(places % 2, squares[places // 2, -1].any(axis=1))
  assert any(places % 2) == (sorted(num_types)[-2] >= LANES)


DAMAGES = {
  # The array, where in it, what is added there, and what is then not true.
  "own": ("0.own", (0,), 1 << 30, "in treeplexes"),
  "other": ("0.others", (0, 0), 1 << 30, "in treeplexes"),
  "too few": ("1.others", np.s_[:, 1:], None, "others is"),
  "not finite": ("1.values", (0,), np.nan, "not finite"),
}
DAMAGES_OF_PATTERNS = {
  "unsorted": ("0.starts", (1,), 1 << 30, "in order"),
  "missing": ("0.starts", (0,), 1, "all sequences"),
  "beyond": ("0.starts", (-1,), 1 << 20, "in their treeplex"),
  "lengths": ("0.lengths", (0,), 1, "all terms"),
  "pattern": ("0.others", (0, 0), 1 << 30, "patterns are there"),
  "last": ("0.others", (0, -1), 1 << 30, "in their treeplexes"),
  "cut": ("patterns", np.s_[1:], None, "squares"),
}
DAMAGES_OF_THREE = {
  "place": ("squares", (-1,), 1 << 20, "squares are there"),
  "width": ("0.others", (0, 1), LANES + 1, "rows are cut|others' rows"),
}
DAMAGED = {
  "kuhn_poker": DAMAGES,
  "leduc_poker": DAMAGES_OF_PATTERNS,
  "types 9 8 10": DAMAGES_OF_PATTERNS | DAMAGES_OF_THREE,
}


@functools.cache
def _undamaged(game):
  return spiel_cfr.compile_game(typed_game(7, (9, 8, 10)) if " " in game else game)


@pytest.mark.parametrize(
  ("game", "damage"), [(game, damage) for game, damages in DAMAGED.items() for damage in damages]
)
def test_arrays_are_checked(game, damage):
  compiled = _undamaged(game)
  saved = compiled.payoff.saved()
  restored = type(compiled.payoff).restored(saved, compiled.treeplexes)
  for one, other in zip(compiled.payoff.arrays, restored.arrays, strict=True):
    np.testing.assert_array_equal(one, other)
  name, place, added, message = DAMAGED[game][damage]
  array = saved[name].copy()
  if added is None:
    array = np.ascontiguousarray(array[place])
  else:
    array[place] += np.array(added).astype(array.dtype)
  with pytest.raises(ValueError, match=message):
    type(compiled.payoff).restored(saved | {name: array}, compiled.treeplexes)


def test_payoffs_that_differ_a_little_are_told_apart():
  alike, different = (
    compile_as("typed patterns", typed_game(10, (6, 6), noise=noise)) for noise in (0.0, 1e-9)
  )
  assert num_patterns(different) > 2 * num_patterns(alike)


def test_types_of_leduc_poker_are_neighbors():
  # Before the public card six cards can be one's own, and five afterwards.
  compiled = spiel_cfr.compile_game("leduc_poker")
  for treeplex, own in zip(compiled.treeplexes, compiled.infosets, strict=True):
    in_layout = np.empty(len(own.infostates), object)
    in_layout[own.position] = own.infostates
    for _, infosets in treeplex.infoset_groups():
      publics, cards = [], []
      for infostate in in_layout[infosets]:
        card = re.search(r"\[Private: (\d)\]", infostate)
        publics.append(infostate.replace(card[0], ""))
        cards.append(int(card[1]))
      states = [list(group) for _, group in itertools.groupby(publics)]
      assert len(states) == len(set(publics))
      assert {len(state) for state in states} <= {5, 6}
      # The same order everywhere, as far as the cards are there.
      order = cards[: len(states[0])]
      rest = iter(cards)
      for state in states:
        here = [next(rest) for _ in state]
        common = set(here) & set(order)
        assert [c for c in here if c in common] == [c for c in order if c in common]


def test_save_and_load(tmp_path):
  original = spiel_cfr.compile_game("leduc_poker")
  original.save(tmp_path / "leduc.npz")
  loaded = spiel_cfr.load_compiled_game(os.fspath(tmp_path / "leduc.npz"))
  assert loaded.payoff.form == "typed patterns"
  assert loaded.digest == original.digest
  iterates = []
  for compiled in (original, loaded):
    solver = spiel_cfr.CFRPlusSolver(compiled)
    solver.run(50)
    iterates.append(solver.current_probabilities().tobytes())
  assert iterates[0] == iterates[1]
