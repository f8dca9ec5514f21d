"""Every game in OpenSpiel's registry is either solved, or refused for the reason that its type gives."""

import importlib.util
import math
import pathlib
import sys
from typing import Any

import pyspiel
import pytest

from spiel_cfr import errors

_PATH = pathlib.Path(__file__).parents[2] / "examples" / "list_games.py"
_SPEC: Any = importlib.util.spec_from_file_location("list_games", _PATH)
list_games: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["list_games"] = list_games
_SPEC.loader.exec_module(list_games)

_TYPES = {game_type.short_name: game_type for game_type in pyspiel.registered_games()}
_MAX_MEGABYTES = 2000
_SECONDS = 500
# Games of ten billion histories, which OpenSpiel can't evaluate.
_IN_PRIVATE_MOVES_FORM = {("phantom_ttt", 1_000_000)}
_QUICK = sorted(name for name in _TYPES if not name.startswith("python_"))[::4]
_DEFAULTS = [
  pytest.param(name, 20_000, marks=() if name in _QUICK else pytest.mark.slow)
  for name in sorted(_TYPES)
] + [pytest.param(name, 1_000_000, marks=pytest.mark.slow) for name in sorted(_TYPES)]


def _reason(name: str) -> str | None:
  """Returns the refusal that a game's type calls for, None if it has to be walked."""
  game_type = _TYPES[name]
  if game_type.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
    return "MeanFieldGameError"
  sampled = game_type.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
  if sampled and game_type.default_loadable:
    return "SampledChanceError"
  if game_type.max_num_players == 1:
    return "SinglePlayerGameError"
  if not game_type.default_loadable:
    return "GameParameterError"
  if pyspiel.load_game(name).num_players() == 1:
    return "SinglePlayerGameError"
  if not game_type.provides_information_state_string:
    return "NoInformationStateError"
  return None


def _check_solved(outcome: Any, is_listed: bool = True) -> None:
  assert not outcome.error, outcome.text
  before, after, theirs = outcome.nash_convs
  assert math.isnan(theirs) != is_listed
  if is_listed:
    assert after == pytest.approx(theirs, rel=1e-9, abs=1e-9)
  if outcome.two_player_constant_sum:
    assert after <= max(0.5 * before, 1e-9)


@pytest.mark.quick(
  except_for=[
    "connect_four-20000",
    "tiny_bridge_4p-20000",
    "y-20000",
    "social_deduction-20000",
    "hive-20000",
    "go-20000",
    "latent_ttt-20000",
    "cursor_go-20000",
  ]
)
@pytest.mark.parametrize(("name", "max_nodes"), _DEFAULTS)
def test_default_parameters(name: str, max_nodes: int) -> None:
  outcome = list_games.solve_in_child(name, max_nodes, _SECONDS)
  is_listed = (name, max_nodes) not in _IN_PRIVATE_MOVES_FORM
  assert outcome.megabytes < (_MAX_MEGABYTES if is_listed else 2 * _MAX_MEGABYTES)
  reason = _reason(name)
  if reason is not None:
    assert outcome.error == reason, outcome.text
  elif outcome.error == "UnsupportedGameError":
    # Its legal actions are not among those that it says it has.
    assert name == "chat_game"
    assert "which must be different numbers from 0 to 1" in outcome.text
  elif outcome.error == "GameError":
    assert name == "go_fish"
    assert "chance outcomes" in outcome.text
  elif outcome.error:
    assert outcome.error in ("GameTooLargeError", "ImperfectRecallError"), outcome.text
  else:
    _check_solved(outcome, is_listed)
  if outcome.error:
    assert issubclass(getattr(errors, outcome.error), errors.GameError)
    assert len(outcome.text) > 40


@pytest.mark.quick(
  except_for=["repeated_leduc_poker", "dots_and_boxes", "restricted_nash_response"]
)
@pytest.mark.parametrize("name", list_games.SMALL)
def test_small_parameters(name: str) -> None:
  outcome = list_games.solve_in_child(list_games.SMALL[name], 50_000, _SECONDS)
  _check_solved(outcome)
  assert outcome.megabytes < _MAX_MEGABYTES


def test_child_that_dies_or_hangs_is_told_from_others(monkeypatch: Any) -> None:
  monkeypatch.setattr(list_games, "solve", lambda *_: __import__("os")._exit(1))
  assert list_games.solve_in_child("kuhn_poker", 100, _SECONDS).error == "crash"
  monkeypatch.setattr(list_games, "solve", lambda *_: __import__("time").sleep(100))
  assert list_games.solve_in_child("kuhn_poker", 100, 0.1).error == "timeout"
