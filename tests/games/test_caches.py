"""What comes out of a cache is the game that was asked for."""

import pathlib
from typing import Any

import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.games import compiling
from spiel_cfr.games.compiling import cache_path
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game


def _path(folder: pathlib.Path, game: str) -> pathlib.Path:
  path = cache_path(folder, GameView(load_game(game)))
  assert path is not None
  return path


def test_a_file_of_another_game_is_refused(tmp_path: pathlib.Path) -> None:
  kuhn = spiel_cfr.compile_game("kuhn_poker", cache_dir=tmp_path)
  spiel_cfr.compile_game("leduc_poker").save(_path(tmp_path, "kuhn_poker"))
  found = spiel_cfr.compile_game("kuhn_poker", cache_dir=tmp_path)
  assert found.digest == kuhn.digest
  # It has been written anew.
  assert spiel_cfr.load_compiled_game(_path(tmp_path, "kuhn_poker")).digest == kuhn.digest


def test_a_file_must_fit_the_game_that_it_names(tmp_path: pathlib.Path) -> None:
  leduc: Any = spiel_cfr.compile_game("leduc_poker")
  path = tmp_path / "game.npz"
  leduc.game_string = "kuhn_poker()"
  leduc.save(path)
  loaded = spiel_cfr.load_compiled_game(path)
  with pytest.raises(errors.FileFormatError, match="2 actions"):
    loaded.game  # noqa: B018


@pytest.mark.parametrize(
  "game", ["python_kuhn_poker", "misere(game=python_kuhn_poker())", "python_tic_tac_toe"]
)
def test_games_in_python_are_not_kept(game: str, tmp_path: pathlib.Path) -> None:
  assert cache_path(tmp_path, GameView(pyspiel.load_game(game))) is None


def test_simultaneous_games_in_python_are_not_kept(tmp_path: pathlib.Path) -> None:
  game = pyspiel.load_game_as_turn_based("python_iterated_prisoners_dilemma(max_game_length=2)")
  assert cache_path(tmp_path, GameView(game)) is None


def test_named_infostates_are_not_kept(tmp_path: pathlib.Path) -> None:
  view = GameView(load_game("kuhn_poker"), infostate=lambda state: str(state.history()))
  assert cache_path(tmp_path, view) is None


def test_an_unwritable_folder_is_found_before_the_walk(
  tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
  def walk(*arguments: Any) -> None:
    raise AssertionError("walked")

  monkeypatch.setattr(compiling, "enumerate_game", walk)
  file = tmp_path / "file"
  file.touch()
  for folder in (file, file / "folder", "/proc/none"):
    with pytest.raises(OSError, match=r"file|proc"):
      spiel_cfr.compile_game("kuhn_poker", cache_dir=folder)
