"""Quantal response equilibria: by their definition on states, against Gambit, and against OpenSpiel's MMD."""

import math
import re

import numpy as np
import pyspiel
import pytest
import random_games
from composition.forms import FORMS
from infoset_values import action_values
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python.algorithms import mmd_dilated

import spiel_cfr
from spiel_cfr import errors

GENERAL = {"zero_sum": False, "max_histories": 80}
# Rationality 3 is passed three times on the principal branch, which turns back at 4.21 and again at 0.84.
TURNS = pyspiel.create_matrix_game(
  [[7, 0, 6], [7, 8, 3], [5, 9, 3]], [[1, 1, 6], [7, 8, 1], [6, 7, 9]]
)
GAMES = {
  "kuhn_poker": "kuhn_poker",
  "kuhn, 3 players": "kuhn_poker(players=3)",
  "goofspiel": "goofspiel(imp_info=True,num_cards=3,points_order=descending)",
  "matrix_rps": "matrix_rps",
  "turns": TURNS,
  "odd chances": pyspiel.load_efg_game(random_games.ODD_CHANCES),
  "auction": "first_sealed_auction(max_value=4)",
  "sheriff": "sheriff(max_items=3,num_rounds=1,max_bribe=2)",
  "liars_dice": "liars_dice(dice_sides=2)",
  "ties": random_games.random_game(24, payoff_ties=True, max_histories=60),
  "general-sum": random_games.random_game(1, **GENERAL),
  "3 players": random_games.random_game(4, 3, **GENERAL),
  "4 players": random_games.random_game(5, 4, **GENERAL),
}


def responses(game, table, rationality):
  """Returns the strategies of a fixed point from its definition, at infosets that chance and the others reach."""
  worths, masses = action_values(game, table)
  result = {}
  for name, own in worths.items():
    if masses[name]:
      weights = {a: math.exp(rationality * value / masses[name]) for a, value in own.items()}
      result[name] = {a: weight / sum(weights.values()) for a, weight in weights.items()}
  return result


@pytest.mark.parametrize("zero_chance", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_fixed_points_by_their_definition(seed, zero_chance):
  game = random_games.random_game(seed, 2 + seed % 3, zero_chance=zero_chance, **GENERAL)
  for rationality in (0.3, 4.0):
    found = spiel_cfr.solve_qre(game, rationality)
    table = found.policy_dict()
    expected = responses(game, table, rationality)
    assert (len(expected) < len(table)) <= zero_chance
    off = max(abs(table[name][a] - p) for name, own in expected.items() for a, p in own.items())
    assert off < 1e-8
    assert found.residual < 1e-8
    assert off == pytest.approx(found.residual, abs=1e-12)
    # Where chance never leads, every action is worth the same.
    for name in table.keys() - expected.keys():
      assert len(set(table[name].values())) == 1


@pytest.mark.parametrize("rationality", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("name", GAMES)
def test_gambit_finds_the_same(name, rationality, tmp_path):
  pygambit = pytest.importorskip(
    "pygambit",
    minversion="17.0.0b2",
    reason="Gambit is not installed: pip install 'pygambit>=17.0.0b2', where there is a wheel of it",
  )
  compiled, path = spiel_cfr.compile_game(GAMES[name], vector_form=False), tmp_path / "game.efg"
  spiel_cfr.exchange.save_efg(compiled, path)
  (theirs,) = pygambit.qre.logit_solve_lambda(pygambit.read_efg(path), [rationality])
  # Both go through the tree in the same order, Gambit by player.
  lines = re.findall(r'^p "" (\d+) \d+ ("[^"]*")', path.read_text(), re.MULTILINE)
  order = [
    list(dict.fromkeys(label for player, label in lines if int(player) == number + 1))
    for number in range(compiled.num_players)
  ]
  profiles = [
    dict(
      zip(labels, [list(dict(play).values()) for _, play in theirs.profile[player]], strict=True)
    )
    for labels, player in zip(order, theirs.game.players, strict=True)
  ]
  table = spiel_cfr.solve_qre(compiled, rationality).policy_dict()
  for player, infostates in enumerate(compiled.infostates):
    for infostate in infostates:
      label = spiel_cfr.exchange.efg._quoted(infostate)
      own = list(table[infostate].values())
      assert own == pytest.approx(profiles[player][label], abs=1e-7)


def cards():
  """Two players with one of two cards each, all equally likely, who move once, not knowing what the other does."""
  rng = np.random.default_rng(0)
  lines = ['EFG 2 R "cards" { "0" "1" } ""', 'c "" 1 "" { "a" 1/4 "b" 1/4 "c" 1/4 "d" 1/4 } 0']
  for first in (1, 2):
    for second in (1, 2):
      lines.append(f'p "" 1 {first} "0, {first}" {{ "check" "bet" }} 0')
      for _ in range(2):
        lines.append(f'p "" 2 {second} "1, {second}" {{ "fold" "raise" "call" }} 0')
        for _ in range(3):
          value = rng.integers(-4, 5)
          lines.append(f't "" {len(lines)} "" {{ {value} {-value} }}')
  return pyspiel.load_efg_game("\n".join(lines) + "\n")


@pytest.mark.parametrize(
  ("game", "chance", "same"),
  [
    (pyspiel.convert_to_turn_based(pyspiel.load_matrix_game("matrix_rps")), 1.0, True),
    (
      pyspiel.convert_to_turn_based(
        pyspiel.create_matrix_game([[2, -1, 0], [0, 1, -2]], [[-2, 1, 0], [0, -1, 2]])
      ),
      1.0,
      True,
    ),
    (cards(), 0.5, True),
    (pyspiel.load_game("kuhn_poker"), 1 / 3, False),
  ],
  ids=["rock, paper, scissors", "matrix", "cards", "kuhn"],
)
def test_mmd_means_the_same_where_everybody_moves_once(game, chance, same):
  """MMD's equilibria are of the reduced normal form: values are counterfactual, and later entropy counts too.

  So rationality at an infoset is 1 / alpha times the probability that chance and the others lead there, which is one
  number for all infosets only where nobody moves before anybody else, and types are equally likely.
  """
  alpha = 0.5
  solver = mmd_dilated.MMDDilatedEnt(game, alpha, stepsize=0.3)
  for _ in range(120):
    solver.update_sequences()
  assert solver.get_gap() < 1e-12
  theirs, off = solver.get_policies(), 0.0
  for infostate, own in spiel_cfr.solve_qre(game, chance / alpha).policy_dict().items():
    play = theirs.policy_for_key(infostate)
    off = max(off, *(abs(play[action] - chance) for action, chance in own.items()))
  assert off < 1e-6 if same else off > 0.1


def test_rationality_0_is_uniform():
  found = spiel_cfr.solve_qre("kuhn_poker(players=3)", 0)
  assert set(found.policy.action_probability_array.ravel()) == {0.5}
  assert len(found.path) == 1


def test_much_rationality_is_an_equilibrium():
  found = spiel_cfr.solve_qre("kuhn_poker", 1e4)
  assert isinstance(found.policy, open_spiel_policy.TabularPolicy)
  assert spiel_cfr.nash_conv("kuhn_poker", found.policy) < 3e-5
  assert spiel_cfr.expected_values("kuhn_poker", found.policy)[0] == pytest.approx(
    -1 / 18, abs=1e-7
  )
  # With the middle card to bet is never right, and how wrong is known though the probability is 0.
  logs = found.compiled_game.to_actions(found.log_probabilities)
  assert logs.min() < -1000
  assert found.probabilities.min() == 0
  assert "rationality 10000, residual" in repr(found)


@pytest.mark.slow
def test_leduc_poker():
  compiled = spiel_cfr.compile_game("leduc_poker")
  values = []
  for rationality in (10.0, 100.0, 1000.0):
    found = spiel_cfr.solve_qre(compiled, rationality)
    assert found.residual < 1e-8
    values.append(spiel_cfr.expected_values(compiled, found.policy)[0] + 0.0856064240780)
  assert np.abs(values[1:]).max() < 1e-5 < 1e-3 < abs(values[0]) < 1e-2
  assert spiel_cfr.nash_conv(compiled, found.policy) < 1e-3
  assert spiel_cfr.evaluation.largest_infoset_regret(compiled, found.policy).regret < 1e-3


def test_branches_that_turn_back():
  found = spiel_cfr.solve_qre(TURNS, 30.0)
  passed = [point.rationality for point in found.path]
  assert max(passed[:20]) > 4.1
  assert min(passed[20:]) < 0.9
  assert passed[-1] == 30.0
  # What comes first is found first.
  early = spiel_cfr.solve_qre(TURNS, 3.0)
  assert max(point.rationality for point in early.path) == 3.0


def test_forks_are_passed_straight_on():
  """At rationality 2, two coordinated equilibria leave the branch of uniform play."""
  game = pyspiel.create_matrix_game([[1, 0], [0, 1]], [[1, 0], [0, 1]])
  for rationality in (2.0, 30.0):
    table = spiel_cfr.solve_qre(game, rationality).policy.action_probability_array
    np.testing.assert_allclose(table, 0.5, atol=1e-12)


def test_shorter_steps_lead_to_the_same():
  coarse, fine = (spiel_cfr.solve_qre(TURNS, 30.0, step=step) for step in (0.5, 0.02))
  np.testing.assert_allclose(coarse.probabilities, fine.probabilities, atol=1e-9)
  assert len(fine.path) > 3 * len(coarse.path)
  for before, after in zip(fine.path, fine.path[1:], strict=False):
    assert np.abs(after.probabilities - before.probabilities).max() <= 0.02


@pytest.mark.parametrize("unit", [1e-12, 1e-100, 1e12])
def test_the_unit_of_payoffs_does_not_matter(unit):
  one, other = (
    spiel_cfr.solve_qre(
      pyspiel.create_matrix_game([[3 * u, -u], [-u, u]], [[-3 * u, u], [u, -u]]), 5.0 / u
    )
    for u in (1.0, unit)
  )
  np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-9)
  same = spiel_cfr.solve_qre(pyspiel.create_matrix_game([[1, 1]], [[1, 1]]), 5.0)
  assert len(same.policy.action_probability_array) == 2


@pytest.mark.parametrize(
  "form",
  [form for form in FORMS if form.is_vector and not form.is_large and not form.is_abstraction],
  ids=str,
)
def test_forms_of_games(form):
  own, enumerated = (spiel_cfr.solve_qre(game, 1.0) for game in (form.compiled, form.enumerated))
  rows = [found.policy.state_lookup for found in (own, enumerated)]
  assert rows[0].keys() == rows[1].keys()
  tables = [
    found.policy.action_probability_array[[place[name] for name in rows[0]]]
    for found, place in zip((own, enumerated), rows, strict=True)
  ]
  if str(form) == "private moves":
    # Its sums are in another order.
    np.testing.assert_allclose(*tables, rtol=0, atol=1e-14)
  else:
    np.testing.assert_array_equal(*tables)


def test_refusals():
  for rationality in (-1.0, math.nan, math.inf, 1e200):
    with pytest.raises(errors.ArgumentError, match="rationality"):
      spiel_cfr.solve_qre("kuhn_poker", rationality)
  with pytest.raises(errors.ArgumentError, match="step"):
    spiel_cfr.solve_qre("kuhn_poker", 1.0, step=0.0)
  with pytest.raises(errors.GameTooLargeError):
    spiel_cfr.solve_qre("kuhn_poker", 1.0, max_nodes=20)
  with pytest.raises(errors.GameTooLargeError):
    spiel_cfr.solve_qre(spiel_cfr.compile_game("kuhn_poker"), 1.0, max_nodes=20)
  with pytest.raises(errors.NoSolutionError, match="be followed beyond rationality"):
    spiel_cfr.solve_qre("kuhn_poker", 1e100)
  for form in FORMS:
    if form.is_abstraction and not form.is_large:
      with pytest.raises(errors.AbstractionError, match="original"):
        spiel_cfr.solve_qre(form.compiled, 1.0)
