"""Estimates of size and memory of poker in vector form."""

import pytest

import spiel_cfr
from spiel_cfr import errors, poker
from spiel_cfr._util import memory
from spiel_cfr.poker.ranges import endgame


@pytest.mark.quick("*s-*")
@pytest.mark.parametrize("merge_suits", [False, True])
@pytest.mark.parametrize("board", ["Td9d6hQc2s", "Td9d6hTc"])
def test_estimates_equal_compiled_sizes(board, merge_suits):
  made = endgame("AA,KQs", "QQ,A9s", board=board, pot=200, stack=900)
  sizes = poker.bet_sizes("50%, a", "a")
  told = poker.estimate(made, sizes, merge_suits=merge_suits)
  game = poker.compile_public_game(made, sizes, merge_suits=merge_suits)
  assert told.num_boards == len(game.tree.boards)
  assert told.num_states == game.num_states
  assert told.num_infosets == game.num_infosets
  assert told.num_sequences == game.tree.num_sequences.sum()
  assert str(told).endswith("MB")


def test_more_memory_than_there_is_is_refused(monkeypatch):
  made = endgame("AA,KQs", "QQ,A9s", board="Td9d6hTc", pot=200, stack=900)
  told = poker.estimate(made.load(), poker.few_bets, dtype="float32")
  monkeypatch.setattr(memory, "available_bytes", lambda: told.num_bytes)
  poker.compile_public_game(made.load(), poker.few_bets, dtype="float32")
  with pytest.raises(errors.GameTooLargeError, match=r"are free.*float32"):
    poker.compile_public_game(made.load(), poker.few_bets)
  monkeypatch.setattr(memory, "available_bytes", lambda: None)
  poker.compile_public_game(made.load(), poker.few_bets)


def test_available_memory():
  left = memory.available_bytes()
  assert left is None or left > 0


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"board": "TdTd6h"}, "Td twice"),
    ({"board": "Td9d"}, "2 cards"),
    ({"board": "Td9dXx"}, "not a card"),
    ({"first": "TdTc"}, "No pair of hands"),
    ({"first": "AcAd", "second": "AdKd"}, "No pair of hands"),
    ({"stack": 0}, "stack"),
    ({"pot": 201}, "even"),
  ],
)
def test_flops_that_can_not_be_are_refused_by_name(changes, message):
  arguments = {"first": "AA", "second": "KK", "board": "Td9d6h", "pot": 200, "stack": 900} | changes
  first, second = arguments.pop("first"), arguments.pop("second")
  with pytest.raises((errors.EndgameError, errors.ArgumentError), match=message):
    endgame(first, second, **arguments)


def test_betting_that_is_too_large_is_refused():
  made = endgame("AA", "KK", board="Td9d6h", pot=200, stack=900)
  with pytest.raises(errors.GameTooLargeError, match="Keep fewer actions"):
    poker.estimate(made)
  assert isinstance(made, spiel_cfr.poker.Endgame)
