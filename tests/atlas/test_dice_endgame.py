"""Liar's dice with a number of dice for each player."""

import random

import pytest

import spiel_cfr
from spiel_cfr import atlas, errors
from spiel_cfr.atlas.dice_endgame import DiceEndgame


@pytest.mark.parametrize(
  ("rule", "hand", "face", "shown"),
  [
    ("normal", (1, 2), 2, 1),
    ("joker", (1, 2), 2, 2),
    ("joker", (1, 1), 3, 2),
    ("stairs", (1, 2), 4, 3),
    ("stairs", (1, 1), 1, 2),
    ("stairs", (1, 3), 3, 1),
    ("ordered_stairs", (1, 2), 4, 3),
    ("ordered_stairs", (2, 1), 4, 0),
  ],
)
def test_what_dice_show(rule, hand, face, shown):
  game = DiceEndgame("2 1", 4, rule)
  roll = [each for each, _ in game.rolls[0]].index(hand)
  # The other player shows no such face.
  other = next(number for number, ((die,), _) in enumerate(game.rolls[1]) if die not in (1, face))
  wins = [number for number, (_, bid) in enumerate(game.bids) if bid == face]
  most = [game.bids[bid][0] for bid in wins if game.wins(bid, (roll, other))]
  assert max(most, default=0) == (0 if face == 1 and rule == "stairs" else shown)


@pytest.mark.parametrize("rule", ["normal", "joker", "stairs", "ordered_stairs"])
def test_random_games(rule):
  game, rng = DiceEndgame("2 1", 3, rule), random.Random(0)
  assert all(sum(chance for _, chance in rolls) == pytest.approx(1) for rolls in game.rolls)
  for _ in range(50):
    state = game.new_initial_state()
    while not state.is_terminal():
      if state.is_chance_node():
        actions = [action for action, chance in state.chance_outcomes() if chance]
      else:
        actions = state.legal_actions()
        assert len({state.action_to_string(action) for action in actions}) == len(actions)
      state.apply_action(rng.choice(actions))
    *_, last, call = state.history()
    assert call == 0
    wins = game.wins(last - 1, tuple(state.history()[:2]))
    bidder = (len(state.history()) - 4) % 2
    assert state.returns()[bidder] == (1 if wins else -1)
    assert sum(state.returns()) == 0
    assert str(state.clone()) == str(state)


def test_both_forms_are_the_same_game():
  game = DiceEndgame("2 1", 2, "joker")
  listed, vector = (spiel_cfr.compile_game(game, vector_form=form) for form in (False, True))
  assert spiel_cfr.solve_lp(listed).value == pytest.approx(spiel_cfr.solve_lp(vector).value)


@pytest.mark.parametrize(
  "text",
  [
    "dice_endgame(dice=2)",
    "dice_endgame(dice=2 x)",
    "dice_endgame(dice=0 1)",
    "dice_endgame(dice=-1 1)",
    "dice_endgame(dice=9 1)",
    "dice_endgame(dice=3)",
    "dice_endgame(sides=0)",
    "dice_endgame(sides=two)",
    "dice_endgame(rule=poker)",
    "dice_endgame(rule=3)",
    "dice_endgame(players=3)",
    "dice_endgame(dice=2 1",
    "dice_endgame(dice=1 1,dice=2 1)",
    "dice_endgame(dice=1 1,sides=2,sides=2)",
  ],
)
def test_bad_strings(text):
  with pytest.raises(errors.SpielCFRError):
    atlas.load(text)
