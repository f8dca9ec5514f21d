"""Gambit, which shares no code with OpenSpiel, reads the games that are written for it as the same games.

There is no other reader of the format than Gambit and OpenSpiel; `test_efg` asks OpenSpiel.
"""

import re

import numpy as np
import pyspiel
import pytest
import random_games
from composition.forms import FORMS, never_fold_early

import spiel_cfr

pygambit = pytest.importorskip(
  "pygambit",
  minversion="17.0.0b2",
  reason="Gambit is not installed: pip install 'pygambit>=17.0.0b2', where there is a wheel of it",
)

GAMES = {
  "kuhn_poker": lambda: "kuhn_poker",
  "goofspiel": lambda: "goofspiel(imp_info=True,num_cards=3,points_order=descending)",
  "liars_dice": lambda: "liars_dice(dice_sides=2)",
  "matrix_rps": lambda: "matrix_rps",
  "blotto": lambda: "blotto(coins=4,fields=2)",
  "random": lambda: random_games.random_game(20, max_histories=60),
  "ties": lambda: random_games.random_game(24, payoff_ties=True, max_histories=60),
  "impossible outcomes": lambda: random_games.random_game(7, zero_chance=True, max_histories=60),
  "odd chances": lambda: pyspiel.load_efg_game(random_games.ODD_CHANCES),
  "thirds": lambda: pyspiel.create_matrix_game(
    [[1 / 3, 0], [0, 2 / 3]], [[-1 / 3, 0], [0, -2 / 3]]
  ),
  "tiny": lambda: pyspiel.create_matrix_game(
    [[1e-12 / 3, 0], [0, 1e-12]], [[-1e-12 / 3, 0], [0, -1e-12]]
  ),
}
# What has no linear program, or one that takes Gambit longer than a test should.
MORE_GAMES = {
  "leduc_poker": lambda: "leduc_poker",
  "short Leduc": lambda: (
    next(form for form in FORMS if form.action_filter is never_fold_early).compiled
  ),
  "kuhn, 3 players": lambda: "kuhn_poker(players=3)",
  "general-sum": lambda: random_games.random_game(1, zero_sum=False, max_histories=120),
  "3 players": lambda: random_games.random_game(4, 3, payoff_ties=True, max_histories=120),
  "4 players, general-sum": lambda: random_games.random_game(5, 4, False, max_histories=120),
  "auction": lambda: "first_sealed_auction(max_value=4)",
  "sheriff": lambda: "sheriff(max_items=3,num_rounds=1,max_bribe=2)",
}


def read_by_gambit(game, path):
  spiel_cfr.exchange.save_efg(game, path)
  read = pygambit.read_efg(path)
  assert read.is_perfect_recall
  return read


def payoffs(profile):
  return [float(value) for _, value in profile.payoffs]


def random_policies(compiled, path):
  """Returns a random policy as Gambit takes it, by player, infoset and action of the file, and the same as we do."""
  rng = np.random.default_rng(0)
  found = [{} for _ in range(compiled.num_players)]
  for line in path.read_text().splitlines():
    if node := re.fullmatch(r'p "" (\d+) \d+ ("[^"]*") \{ (.*) \} 0', line):
      labels = re.findall('"([^"]*)"', node[3])
      chances = rng.dirichlet(np.ones(len(labels))).tolist()
      found[int(node[1]) - 1].setdefault(node[2], dict(zip(labels, chances, strict=True)))
  table = {}
  stack = [compiled.view.new_initial_state()]
  while stack:
    state = stack.pop()
    player, actions = state.current_player(), []
    if state.is_chance_node():
      actions = [action for action, _ in state.chance_outcomes()]
    elif player >= 0:
      actions = compiled.view.legal_actions(state)
      infostate = compiled.view.infostate(state)
      chances = found[player][spiel_cfr.exchange.efg._quoted(infostate)]
      words = {action: state.action_to_string(player, action) for action in actions}
      table[infostate] = {action: chances[word] for action, word in words.items()}
    stack += [state.child(action) for action in actions]
  return [[list(own.values()) for own in player.values()] for player in found], table


@pytest.mark.quick(except_for=["leduc_poker"])
@pytest.mark.parametrize("name", GAMES | MORE_GAMES)
def test_policies_are_worth_the_same(tmp_path, name):
  compiled = spiel_cfr.compile_game((GAMES | MORE_GAMES)[name](), vector_form=False)
  read = read_by_gambit(compiled, tmp_path / "game.efg")
  theirs, ours = random_policies(compiled, tmp_path / "game.efg")
  # In float64, Gambit turns payoffs of many digits into numbers of seven.
  profile = read.mixed_behavior_profile(theirs, rational=True)
  scale = max(read.max_payoff, -read.min_payoff)
  expected = spiel_cfr.expected_values(compiled, ours)
  assert payoffs(profile) == pytest.approx(expected, rel=1e-12, abs=1e-14 * scale)
  gains = spiel_cfr.nash_conv(compiled, ours, return_only_nash_conv=False).player_improvements
  assert profile.max_regret() == pytest.approx(max(gains), rel=1e-12)


@pytest.mark.parametrize("name", GAMES)
def test_equilibria_are_worth_the_same(tmp_path, name):
  compiled = spiel_cfr.compile_game(GAMES[name](), vector_form=False)
  found = pygambit.nash.lp_solve(read_by_gambit(compiled, tmp_path / "game.efg")).equilibrium
  value = spiel_cfr.solve_lp(compiled).value
  assert payoffs(found)[0] == pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
  "name", ["kuhn_poker", "goofspiel", "odd chances", "3 players", "general-sum"]
)
def test_open_spiel_reads_gambits_files(tmp_path, name):
  compiled = spiel_cfr.compile_game((GAMES | MORE_GAMES)[name](), vector_form=False)
  read = read_by_gambit(compiled, tmp_path / "game.efg")
  read.to_efg(tmp_path / "again.efg")
  again = spiel_cfr.compile_game(f"efg_game(filename={tmp_path / 'again.efg'})")
  assert again.num_states == compiled.num_states
  ours, theirs = (
    spiel_cfr.expected_values(game, spiel_cfr.CFRSolver(game).average_policy())
    for game in (compiled, again)
  )
  assert theirs == pytest.approx(ours, rel=1e-12, abs=1e-14)
