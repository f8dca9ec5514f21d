"""Symmetries found by color refinement, with numbers of infosets known from elsewhere."""

import re

import numpy as np
import pyspiel
import pytest
import random_games

import spiel_cfr
from spiel_cfr import policies
from spiel_cfr._numba.arrays import aligned_zeros
from spiel_cfr.abstraction.lossless_symmetries import lossless_buckets
from spiel_cfr.evaluation import evaluate

_BATTLESHIP = (
  "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=2,"
  "allow_repeated_shots=False)"
)
# Infosets of the game and of its colors.
_SIZES = {
  "leduc_poker": (936, 288),
  _BATTLESHIP: (1586, 50),
  "sheriff(num_rounds=2)": (73, 14),
  "dark_hex(board_size=2)": (134, 52),
  "liars_dice(dice_sides=4)": (1024, 1021),
  "kuhn_poker": (12, 12),
  "goofspiel(num_cards=4,imp_info=True,points_order=descending)": (162, 162),
}


@pytest.mark.parametrize("name", _SIZES)
def test_number_of_infosets(name):
  game = spiel_cfr.compile_game(name)
  small = spiel_cfr.abstraction.lossless_abstraction(name)
  assert (game.num_infosets, small.num_infosets) == _SIZES[name]
  assert small.shared_infosets is None
  assert small.is_exact
  # Whatever is played: the gap is that of the full game.
  solver = spiel_cfr.DCFRSolver(small)
  for iterations in (1, 20):
    solver.run(iterations)
    full = small.to_original(solver.average_sequence_form())
    expected = evaluate.evaluate(game, full)
    found = evaluate.evaluate(small, solver.average_sequence_form())
    scale = max(map(abs, game.payoff_range))
    np.testing.assert_allclose(found.expected_values, expected.expected_values, atol=1e-12 * scale)
    np.testing.assert_allclose(
      found.best_response_values, expected.best_response_values, atol=1e-12 * scale
    )
    lifted = spiel_cfr.nash_conv(game, spiel_cfr.abstraction.lift(small, solver.average_policy()))
    assert solver.nash_conv() == pytest.approx(lifted, abs=1e-12 * scale)


def test_leduc_is_that_of_open_spiel():
  """OpenSpiel's option makes the same smaller game."""
  small = spiel_cfr.abstraction.lossless_abstraction("leduc_poker")
  merged = spiel_cfr.compile_game("leduc_poker(suit_isomorphism=True)")
  assert small.num_infosets == merged.num_infosets
  found, expected = spiel_cfr.CFRPlusSolver(small), spiel_cfr.CFRPlusSolver(merged)
  for solver in (found, expected):
    solver.run(100)
  assert found.nash_conv() == pytest.approx(expected.nash_conv(), rel=1e-8)


@pytest.mark.parametrize(
  ("name", "iterations"), [("leduc_poker", 30), ("sheriff(num_rounds=2)", 200)]
)
def test_iterates_are_those_of_the_full_game(name, iterations):
  game = spiel_cfr.compile_game(name)
  small = spiel_cfr.abstraction.lossless_abstraction(name)
  found, expected = spiel_cfr.CFRPlusSolver(small), spiel_cfr.CFRPlusSolver(game)
  for solver in (found, expected):
    solver.run(iterations)
  current = small.to_original(found.current_sequence_form())
  np.testing.assert_allclose(current, expected.current_sequence_form(), atol=1e-12)
  average = small.to_original(found.average_sequence_form())
  np.testing.assert_allclose(average, expected.average_sequence_form(), atol=1e-12)


@pytest.mark.parametrize("name", ["leduc_poker", _BATTLESHIP])
def test_gradients_are_the_same_within_colors(name):
  """Symmetric strategies have symmetric gradients."""
  game = spiel_cfr.compile_game(name)
  small = spiel_cfr.abstraction.lossless_abstraction(name)
  rng = np.random.default_rng(5)
  sums = np.zeros(small.end)
  sums[small.all_action_sequences] = rng.random(len(small.all_action_sequences))
  probabilities = policies.behavioral_form(small, sums)
  full = aligned_zeros(game.end)
  full[:] = small.to_original(policies.sequence_form(small, probabilities))
  utility = aligned_zeros(game.end)
  for player in range(2):
    game.payoff.gradient_into(player, full, utility)
  cells = game.all_action_sequences
  colors = small.all_action_sequences
  low = np.full(small.end, np.inf)
  np.minimum.at(low, colors, utility[cells])
  np.testing.assert_allclose(utility[cells], low[colors], atol=1e-12)
  assert np.ptp(utility[cells]) > 0.01


def test_random_games_have_no_symmetries():
  """With different payoffs everywhere, only infosets that do not matter are merged."""
  for seed in range(50, 56):
    for num_players, zero_sum in ((2, True), (3, False)):
      game = spiel_cfr.compile_game(
        random_games.random_game(seed, num_players, zero_sum, max_histories=120)
      )
      small = spiel_cfr.abstraction.lossless_abstraction(game)
      solver = spiel_cfr.CFRSolver(small)
      solver.run(10)
      found = spiel_cfr.nash_conv(game, solver.average_policy_dict())
      assert solver.nash_conv() == pytest.approx(found, abs=1e-10)
      assert small.num_infosets > 0.8 * game.num_infosets


def _numbered_anew(line, number):
  """Returns a line of a copy: terminals and chance nodes have a number, infosets a player, a number and a name."""
  line = re.sub(r'^([tc] "") (\d+)', lambda found: f"{found[1]} {2 * int(found[2]) + number}", line)
  return re.sub(
    r'^(p "" \d+) (\d+) "([^"]*)"',
    lambda found: f'{found[1]} {2 * int(found[2]) - 1 + number} "{found[3]} of copy {number}"',
    line,
  )


def _doubled(text):
  """Returns a game in which chance, seen by all, plays one of two copies of a game."""
  head, *lines = text.splitlines()
  copies = [[_numbered_anew(line, number) for line in lines] for number in range(2)]
  root = 'c "" 1 "" { "x" 1/2 "y" 1/2 } 0'
  return "\n".join([head, root, *copies[0], *copies[1]]) + "\n"


@pytest.mark.parametrize("seed", range(60, 66))
def test_copies_of_a_game_are_one(seed):
  """Copies of any random game are merged without loss, for two or three players, zero-sum or not."""
  text = random_games.random_efg(seed, 2 + seed % 2, bool(seed % 3), max_histories=150)
  game = spiel_cfr.compile_game(pyspiel.load_efg_game(text))
  twice = spiel_cfr.compile_game(pyspiel.load_efg_game(_doubled(text)))
  assert twice.num_infosets == 2 * game.num_infosets
  small = spiel_cfr.abstraction.lossless_abstraction(twice)
  assert small.num_infosets == lossless_buckets(game).num_buckets
  found, expected = spiel_cfr.CFRPlusSolver(small), spiel_cfr.CFRPlusSolver(game)
  for solver in (found, expected):
    solver.run(30)
  lifted = spiel_cfr.nash_conv(twice, found.average_policy_dict())
  assert found.nash_conv() == pytest.approx(lifted, abs=1e-11)
  assert found.nash_conv() == pytest.approx(expected.nash_conv(), abs=1e-9)


@pytest.mark.parametrize("name", ["leduc_poker", _BATTLESHIP, "dark_hex(board_size=2)"])
def test_merged_games_have_no_symmetries_left(name):
  """In the merged game, each infoset has its own color."""
  small = spiel_cfr.abstraction.lossless_abstraction(name)
  infosets = [
    _by_themselves(tree, own) for tree, own in zip(small.treeplexes, small.infosets, strict=True)
  ]
  alone = spiel_cfr.games.EnumeratedGame(small, small.treeplexes, tuple(infosets), small.payoff)
  assert lossless_buckets(alone).num_buckets == small.num_infosets


def _by_themselves(tree, own):
  """Names infosets by their places in the layout."""
  counts = tree.infoset_actions
  position = np.arange(len(counts), dtype=np.uint32)
  return type(own)(
    infostates=[str(place) for place in range(len(counts))],
    actions=np.concatenate([np.arange(count) for count in counts]),
    num_actions=counts,
    sequences=np.append(tree.root, tree.sequences_at(position)).astype(np.uint32),
    position=position,
  )


def test_solve_and_sample_with_symmetries():
  small = spiel_cfr.abstraction.lossless_abstraction("leduc_poker")
  solution = spiel_cfr.solve(small, exploitability=1e-3)
  game = spiel_cfr.compile_game("leduc_poker")
  assert solution.compiled_game.num_infosets == game.num_infosets
  found = spiel_cfr.exploitability(game, solution.policy)
  assert solution.exploitability == pytest.approx(found, abs=1e-12)
  assert found <= 1e-3
  solver = spiel_cfr.OutcomeSamplingSolver(small, seed=1)
  solver.run(500)
  assert solver.num_infosets == 288
  response = spiel_cfr.best_response(small, solver.average_policy(), 0)
  assert len(response.policy) == 468
