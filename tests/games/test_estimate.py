"""Estimates of size: hopeless games are refused in seconds, and games that fit never."""

import gc
import math

import numpy as np
import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._util import memory
from spiel_cfr.games.openspiel import game_size
from spiel_cfr.games.openspiel.game_size import at_least, estimate_view
from spiel_cfr.games.openspiel.game_view import GameView

SMALL = (
  "kuhn_poker(players=3)",
  "leduc_poker",
  "liars_dice(dice_sides=4)",
  "goofspiel(num_cards=4,imp_info=true)",
  "phantom_go(board_size=2,max_game_length=4)",
)


@pytest.mark.parametrize("name", SMALL)
def test_estimates_are_near_the_truth(name):
  infostate = "history" if "phantom" in name else None
  compiled = spiel_cfr.compile_game(name, vector_form=False, infostate=infostate)
  # Not `estimate_size`, whose number of descents depends on the machine.
  found = estimate_view(compiled.view, 60.0, 5000)
  assert found.descents == 5000
  for estimate, truth, tolerance in (
    (found.states, compiled.num_states, 0.15),
    (found.terminals, compiled.num_terminals, 0.15),
    *(
      (estimate, len(own), 0.35)
      for estimate, own in zip(found.infosets, compiled.infostates, strict=True)
    ),
  ):
    assert estimate == pytest.approx(truth, rel=tolerance)
  assert found.states == pytest.approx(compiled.num_states, rel=4 * found.error + 1e-9)
  assert found.fewest_states < compiled.num_states


def test_one_line():
  found = spiel_cfr.estimate_size("leduc_poker", seconds=60)
  assert isinstance(found, spiel_cfr.games.SizeEstimate)
  for words in ("9,", " states", " infosets", " s to compile"):
    assert words in str(found)
  assert 0 < found.seconds < 5
  assert 0.1 * 2**20 < found.bytes < 10 * 2**20


@pytest.mark.parametrize(
  "name",
  [
    "bargaining",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("connect_four", "chess")),
  ],
)
def test_hopeless_games_are_refused_at_once(name):
  spiel_cfr.games.load_game(name)
  with pytest.raises(errors.GameTooLargeError, match="far too large") as caught:
    spiel_cfr.compile_game(name, progress=False)
  for words in ("states", "infosets", "MiB", "max_nodes=20,000,000", "ExternalSamplingSolver"):
    assert words in str(caught.value)
  # What it advises works.
  spiel_cfr.OutcomeSamplingSolver(name, seed=1, engine="states").run(1)


def test_small_games_are_walked(monkeypatch):
  """Games within the limit are never refused."""
  monkeypatch.setattr(game_size, "SECONDS_BEFORE_ESTIMATE", 0.0)
  # The fewer descents, the more an estimate may be off.
  monkeypatch.setattr(game_size, "ESTIMATE_SECONDS", 0.1)
  for name in SMALL[:4]:
    compiled = spiel_cfr.compile_game(name, vector_form=False)
    tight = spiel_cfr.compile_game(name, vector_form=False, max_nodes=compiled.num_states)
    assert tight.num_states == compiled.num_states


def test_fewest_states_are_certain():
  """The lower bound also holds on lopsided games, where few descents see most of the game."""
  generator = np.random.default_rng(5)
  wrong = 0
  for _ in range(2000):
    samples = 1.0 + 1e6 * (generator.random(40) < 1e-2)
    wrong += at_least(samples) > 1.0 + 1e4
  assert wrong <= 6
  # Where descents agree, it is no more than twice too low.
  assert at_least(np.full(40, 100.0)) == pytest.approx(100 * 1000**-0.1)
  assert at_least(np.array([100.0])) == pytest.approx(0.1)


def test_thousand_moves_overflow_into_infinity():
  found = estimate_view(GameView(spiel_cfr.games.load_game("go")), 0.1, 2)
  assert math.isinf(found.states)
  assert "more than 1e308" in str(found)


def test_games_after_one_descent():
  """There is an answer in any time limit."""
  found = spiel_cfr.estimate_size("kuhn_poker", seconds=1e-9)
  assert found.descents == 1
  with pytest.raises(errors.ArgumentError, match="seconds"):
    spiel_cfr.estimate_size("kuhn_poker", seconds=0)


@pytest.mark.slow
@pytest.mark.skipif(not memory.resident_bytes(), reason="memory can't be measured")
def test_refused_games_give_their_memory_back(monkeypatch):
  # However slow the machine is, the limit is what refuses.
  monkeypatch.setattr(game_size, "SECONDS_BEFORE_ESTIMATE", math.inf)
  grown = []
  for _ in range(3):
    with pytest.raises(errors.GameTooLargeError, match="max_bytes"):
      spiel_cfr.compile_game("chess", max_bytes=100_000_000, max_nodes=10**12, progress=False)
    gc.collect()
    grown.append(memory.resident_bytes())
  assert grown[-1] - grown[0] < 50_000_000


def test_no_bar_off_a_terminal(capfd):
  spiel_cfr.compile_game("liars_dice(dice_sides=4)", progress=True)
  assert capfd.readouterr().err == ""


def test_estimates_need_no_information_states():
  with pytest.raises(errors.NoInformationStateError):
    spiel_cfr.estimate_size("breakthrough")
  game = pyspiel.load_game("breakthrough(rows=4,columns=2)")
  found = spiel_cfr.estimate_size(game, infostate="history", seconds=0.5)
  assert found.states == pytest.approx(1761, rel=0.2)
