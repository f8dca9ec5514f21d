"""Infostates of your own, for games without information state strings or with imperfect recall."""

import copy
import pickle

import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cfr
from spiel_cfr import errors

# Of each of OpenSpiel's games without information state strings that can be made small enough.
WITHOUT = (
  "breakthrough(rows=4,columns=2)",
  "capture_the_flag(horizon=1,grid=a.b)",
  "chinese_checkers(max_moves=2)",
  "coin_game(rows=2,columns=2,episode_length=2,num_coins_per_color=1,num_extra_coin_colors=0)",
  "coop_box_pushing(horizon=1)",
  "hanabi(players=2,colors=1,ranks=2,hand_size=1,max_information_tokens=1,max_life_tokens=1)",
  "laser_tag(horizon=1,grid=S.S)",
  "markov_soccer(horizon=2,grid=OB\nA.)",
  "oware(num_houses_per_player=1,num_seeds_per_house=2)",
  "phantom_go(board_size=2,max_game_length=4)",
  "pig(winscore=3,diceoutcomes=2,horizon=6)",
)
FORGETFUL = ("dark_hex_ir(num_rows=2,num_cols=2)",)


@pytest.mark.parametrize(
  "name", [pytest.param(WITHOUT[0], marks=pytest.mark.slow), *WITHOUT[1:], *FORGETFUL]
)
def test_solved_with_the_players_own_history(name):
  with pytest.raises(errors.UnsupportedGameError, match='infostate="history"'):
    spiel_cfr.compile_game(name)
  compiled = spiel_cfr.compile_game(name, infostate="history")
  solver = spiel_cfr.CFRPlusSolver(compiled)
  solver.run(30)
  policy = solver.average_policy()
  found = exploitability.nash_conv(compiled.view.open_spiel_game(), policy, use_cpp_br=False)
  assert solver.nash_conv() == pytest.approx(found, abs=1e-9)
  low, high = compiled.payoff_range
  assert solver.nash_conv() <= 0.1 * (high - low)
  sampler = spiel_cfr.ExternalSamplingSolver(compiled, seed=1, engine="states")
  sampler.run(10)
  assert set(sampler.average_policy_dict()) <= set(solver.average_policy_dict())


def test_players_have_perfect_recall():
  """Owners of an infoset have seen and done the same; who forgets in OpenSpiel does not."""
  compiled = spiel_cfr.compile_game(FORGETFUL[0], infostate="history")
  first = compiled.infostates[0]
  assert len(first) > 4
  assert all(name.startswith("Player 0\n") for name in first)
  assert max(name.count("\n> ") for name in first) > 1


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "liars_dice(dice_sides=2)"])
def test_is_as_fine_as_open_spiels_information(name):
  """If players observe everything in their information state strings, the game is the same."""
  game = pyspiel.load_game(name)
  theirs, ours = (spiel_cfr.compile_game(game, infostate=way) for way in (None, "history"))
  solvers = [spiel_cfr.CFRSolver(compiled) for compiled in (theirs, ours)]
  assert len(ours.infostates[0]) >= len(theirs.infostates[0])
  if len(ours.infostates[0]) == len(theirs.infostates[0]):
    for solver in solvers:
      solver.run(50)
    assert solvers[0].nash_conv() == pytest.approx(solvers[1].nash_conv(), abs=1e-9)


def test_a_function_of_state_and_player():
  asked = set()

  def blind(state, player):
    """Infostates of a player that remembers its card and its own bets, but not the opponent's."""
    asked.add(player)
    own = [action for mover, action in moves(state) if mover == player]
    return f"{player} {state.history()[player]} {own}"

  def moves(state):
    return [(each.player, each.action) for each in state.full_history()]

  compiled = spiel_cfr.compile_game("kuhn_poker", infostate=blind)
  assert asked == {0, 1}
  assert compiled.num_infosets == 3 * 2 + 3
  solver = spiel_cfr.CFRPlusSolver(compiled)
  solver.run(2000)
  assert solver.nash_conv() < 0.01
  assert spiel_cfr.CFRPlusSolver("kuhn_poker").compiled_game.num_infosets == 12


def test_copies():
  compiled = spiel_cfr.compile_game("leduc_poker", infostate="history")
  for twin in (copy.copy(compiled), pickle.loads(pickle.dumps(compiled))):
    state = compiled.game.new_initial_state().child(0).child(3).child(1)
    assert twin.view.look_up(state) == compiled.view.look_up(state)
    assert twin.digest == compiled.digest


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"infostate": "memory"}, "function of state and player"),
    ({"infostate": 3}, "function of state and player"),
    ({"infostate": lambda state, player: player}, "not a string"),
  ],
)
def test_bad_arguments(options, message):
  with pytest.raises(errors.ArgumentError, match=message):
    spiel_cfr.compile_game("kuhn_poker", **options)


def test_errors_name_alternatives():
  with pytest.raises(
    errors.NoInformationStateError, match="function of state and player"
  ) as caught:
    spiel_cfr.compile_game("python_iterated_prisoners_dilemma")
  assert "history" not in str(caught.value)
  with pytest.raises(errors.ImperfectRecallError, match=r'Monte Carlo.*engine="states"'):
    spiel_cfr.compile_game("dark_hex_ir(num_rows=2,num_cols=2)")
  with pytest.warns(spiel_cfr.mccfr.ImperfectRecallWarning):
    spiel_cfr.ExternalSamplingSolver("dark_hex_ir(num_rows=2,num_cols=2)", seed=1).run(50)
