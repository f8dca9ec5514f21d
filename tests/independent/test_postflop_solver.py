"""Expected values that postflop-solver's tests have, on rivers of hold'em and a flop.

Source: github.com/b-inary/postflop-solver, src/game/tests.rs (one_raise_all_range_with_river, node_locking,
node_locking_partial, solve_pio_preset_normal). It counts a player's share of the pot as won; here half of the pot is
the player's own already.
"""

import numpy as np
import pytest
import tree_games

import spiel_cfr
from spiel_cfr import poker, policies
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.poker import Endgame, ranges

FOLD, CALL, HALF_POT = 0, 1, 4


def done(state):
  return state.information_state_string().rpartition("|")[2].rstrip("]")


def one_half_pot(state, actions):
  """Only the first player may bet, half of the pot."""
  allowed = {"": (CALL, HALF_POT), "c": (CALL,)}.get(done(state), (FOLD, CALL))
  return [action for action in actions if action in allowed]


@pytest.mark.slow
def test_everybody_plays_uniformly():
  endgame = Endgame(board="Td9d6hQc7s", pot=60, stack=1000, reaches=np.ones((2, 1326)))
  game = spiel_cfr.compile_game(endgame.game_string(), action_filter=one_half_pot)
  uniform = policies.to_dict(game, policies.uniform(game))
  values = spiel_cfr.expected_values(game, uniform)
  assert values + 30 == pytest.approx([37.5, 22.5], abs=1e-4)


def against_kings(pot, stack, strong):
  """Hands of the first player, and whether they beat the kings of the second; any bet is all-in."""
  share = pot / 2

  def betting(hand, wins):
    sign = 1 if wins else -1
    small, large = ([sign * stake, -sign * stake] for stake in (share, share + stack))
    checked_to = (1, "checked to", small, (0, f"{hand} bet into", [-share, share], large))
    return (0, hand, checked_to, (1, "bet into", [share, -share], large))

  return ("chance", *((1 / len(strong), betting(*each)) for each in strong.items()))


@pytest.mark.parametrize(
  ("pot", "strong", "locked", "checks", "values"),
  [
    # Whether queens bluff depends on how often kings fold.
    (20, {"AA": True, "QQ": False}, {"1:bet into": 0.25}, [0, 1], [(27.5 + 0) / 2, 6.25]),
    (20, {"AA": True, "QQ": False}, {"1:bet into": 0.5}, [0, 0], [(25 + 5) / 2, 5]),
    # Jacks bluff a fifth of the time, so queens bluff less.
    (10, {"AA": True, "QQ": False, "JJ": False}, {"0:JJ": 0.8}, [0, 0.7, 0.8], [15 / 3, 5]),
  ],
)
def test_locked(pot, strong, locked, checks, values):
  game = tree_games.arrays(against_kings(pot, 10, strong))
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.lock({infoset: {0: chance, 1: 1 - chance} for infoset, chance in locked.items()})
  solver.run(2000)
  policy = solver.average_policy_dict()
  assert [policy[f"0:{hand}"][0] for hand in strong] == pytest.approx(checks, abs=1e-3)
  assert spiel_cfr.expected_values(game, policy) + pot / 2 == pytest.approx(values, abs=5e-2)


@pytest.mark.slow
def test_equity_on_a_flop():
  oop = (
    "88+,A8s+,A5s-A2s:0.5,AJo+,ATo:0.75,K9s+,KQo,KJo:0.75,KTo:0.25,Q9s+,QJo:0.5,J8s+,JTo:0.25,"
    "T8s+,T7s:0.45,97s+,96s:0.45,87s,86s:0.75,85s:0.45,75s+:0.75,74s:0.45,65s:0.75,64s:0.5,"
    "63s:0.45,54s:0.75,53s:0.5,52s:0.45,43s:0.5,42s:0.45,32s:0.45"
  )
  ip = (
    "AA:0.25,99-22,AJs-A2s,AQo-A8o,K2s+,K9o+,Q2s+,Q9o+,J6s+,J9o+,T6s+,T9o,96s+,95s:0.5,98o,86s+,"
    "85s:0.5,75s+,74s:0.5,64s+,63s:0.5,54s,53s:0.5,43s"
  )
  endgame = ranges.endgame(oop, ip, board="QsJh2h", pot=180, stack=910)
  # Without bets, a player's share of the pot is its equity.
  game = poker.compile_public_game(endgame, poker.bet_sizes({}), merge_suits=True)
  checks = spiel_cfr.CFRPlusSolver(game).average_sequence_form()
  values = evaluate(game, checks).expected_values
  assert values / 180 + 0.5 == pytest.approx([0.55347, 0.44653], abs=1e-5)
