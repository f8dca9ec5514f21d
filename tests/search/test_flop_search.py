"""Search on the rivers of poker games that deal public cards several times."""

import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import poker, search
from spiel_cfr.poker import public_game

# Twelve cards, 66 hands, a turn and a river; bets on the river only.
_GAME = (
  "universal_poker(numPlayers=2,betting=limit,numRounds=3,blind=1 1,firstPlayer=1 1 1,numSuits=2,"
  "numRanks=6,numHoleCards=2,numBoardCards=0 1 1,raiseSize=2 4 4,maxRaises=0 0 1)"
)


def _blueprint(game):
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(5)
  return solver


@pytest.mark.slow
def test_rivers_after_several_deals_are_resolved(monkeypatch):
  found = []
  for most_names in (10**6, 0):
    # Without names, the game with merged suits is searched itself.
    monkeypatch.setattr(public_game, "MOST_NAMES", most_names)
    game = poker.compile_public_game(_GAME, merge_suits=True)
    blueprint = _blueprint(game)
    result = search.resolve(game, blueprint, iterations=50)
    found.append(spiel_cfr.exploitability(game, result))
    assert found[-1] < 0.9 * blueprint.exploitability()
  assert found[0] == pytest.approx(found[1], abs=1e-3)


def test_bots_search_rivers_after_several_deals():
  game = pyspiel.load_game(_GAME)
  blueprint = _blueprint(poker.compile_public_game(game))
  bot = search.SearchBot(blueprint, 0, iterations=100)
  state = game.new_initial_state()
  # Two hands each, then a card, two checks, another card.
  for action in (0, 1, 2, 3, 1, 1, 4, 1, 1, 5):
    state.apply_action(action)
  before = blueprint.average_policy().action_probabilities(state)
  after = dict(bot.get_policy(state))
  assert after.keys() == before.keys()
  assert sum(after.values()) == pytest.approx(1)
  assert after != pytest.approx(before, abs=1e-6)
