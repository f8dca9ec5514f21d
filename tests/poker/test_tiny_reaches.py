"""Hands with tiny reaches are played as well as others: the tolerance for ties depends on the infoset."""

import dataclasses

import numpy as np
import poker_games
import pytest

import spiel_cfr
from spiel_cfr.poker.public_game import compile_public_game

_SOLVERS = {
  "CFR": spiel_cfr.CFRSolver,
  "CFR+": spiel_cfr.CFRPlusSolver,
  "predictive CFR+": spiel_cfr.PCFRPlusSolver,
}


def _endgame(seed, board, hands):
  """An endgame in which reaches are from 1e-9, as in the public files, to 1."""
  endgame = poker_games.random_endgame(seed, hands, board)
  exponents = np.random.default_rng(seed).uniform(-9, 0, endgame.reaches.shape)
  return dataclasses.replace(endgame, reaches=endgame.reaches * 10.0**exponents)


@pytest.mark.quick("river-10")
@pytest.mark.parametrize("seed", [10, pytest.param(13, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
  ("board", "hands"), [(poker_games.RIVER, 16), (poker_games.TURN, 6)], ids=["river", "turn"]
)
def test_hands_of_tiny_reach_play_as_in_the_enumerated_game(board, hands, seed):
  game = _endgame(seed, board, hands).load()
  vector = compile_public_game(game, poker_games.check_or_pot)
  listed = spiel_cfr.compile_game(game, action_filter=poker_games.check_or_pot, vector_form=False)
  for name, make in _SOLVERS.items():
    solver, reference = make(vector), make(listed)
    for each in (solver, reference):
      each.run(50)
    assert solver.nash_conv() == pytest.approx(reference.nash_conv(), rel=1e-9), name
    policy = reference.average_policy_dict()
    apart = [
      infostate
      for infostate, distribution in solver.average_policy_dict().items()
      if distribution != pytest.approx(policy[infostate], abs=1e-8)
    ]
    # There are ties on the turn: a hand that always wins is paid the same by a check and by a bet that all fold to.
    # Where reaches are as tiny as the rounding of running totals, which are of all hands, that decides some of them.
    assert len(apart) <= (0 if board == poker_games.RIVER else 0.05 * len(policy)), name


def test_a_hand_of_tiny_reach_is_not_tied():
  """One hand's reach does not change the game of players without that hand."""
  endgame = poker_games.random_endgame(5, 20)
  rare = int(np.flatnonzero(endgame.reaches[0])[0])
  policies = []
  for reach in (1e-3, 1e-13):
    reaches = endgame.reaches.copy()
    reaches[0, rare] = reach
    game = compile_public_game(
      dataclasses.replace(endgame, reaches=reaches).load(), poker_games.check_or_pot
    )
    solver = spiel_cfr.CFRSolver(game)
    solver.run(1)
    policies.append(solver.current_probabilities())
  # After one iteration player 0 has responded to the uniform strategy, which does not know the reach.
  root, end = game.treeplexes[0].root, game.treeplexes[0].end
  np.testing.assert_allclose(policies[0][root:end], policies[1][root:end], atol=1e-9)
