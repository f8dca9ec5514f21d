"""Checkpoint files of solvers: the solver's recipe, the identity of its game, and its state."""

import os
from typing import Any, Protocol

import numpy as np

from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr._util.environment import versions
from spiel_cfr.cfr import recipes
from spiel_cfr.games.compiling import AnyGame, compile_game

KIND = "checkpoint of spiel_cfr"
FORMAT = 3
_RECIPE = "solver"


class Checkpointable(Protocol):
  """The part of a solver that a checkpoint keeps."""

  def description(self) -> dict[str, Any]:
    """Returns the recipe as JSON."""

  def game_identity(self) -> dict[str, str | None]:
    """Returns the string and the digest that identify the game."""

  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of the state, as numbers and arrays by name."""


def save(solver: Checkpointable, path: str | os.PathLike[str]) -> None:
  """Writes a checkpoint, see `Solver.save`."""
  state = solver.state_dict()
  arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
  others = {name: value for name, value in state.items() if name not in arrays}
  header = {_RECIPE: solver.description(), **solver.game_identity(), "versions": versions()}
  header["state"] = recipes.to_json(others)
  files.write(path, KIND, FORMAT, header, arrays)


def read_state(solver: Checkpointable, path: str | os.PathLike[str]) -> dict[str, Any]:
  """Returns the state in a checkpoint of a solver with the same recipe and game.

  Raises:
    CheckpointMismatchError: the checkpoint belongs to another solver or game.
    FileFormatError: the file is not a checkpoint, is damaged, or has another format.
    OSError: the file can't be read.
  """
  return _checked_state(solver, path, *files.read(path, KIND, FORMAT))


def _checked_state(
  solver: Checkpointable, path: str | os.PathLike[str], header: dict[str, Any], arrays: files.Arrays
) -> dict[str, Any]:
  """Returns the state in the header and arrays of a checkpoint, after comparing the game and the recipe."""
  expected = solver.game_identity()
  try:
    game, recipe = {name: header[name] for name in expected}, header[_RECIPE]
    state: dict[str, Any] = header["state"] | arrays
  except (KeyError, TypeError) as error:
    raise errors.FileFormatError(f"{path} is not a {KIND}: its header lacks {error}.") from error
  # One game may have several strings. Without a digest, the string decides.
  same_digest = game["game_sha256"] == expected["game_sha256"]
  if not same_digest or (expected["game_sha256"] is None and game != expected):
    raise errors.CheckpointMismatchError(
      f"{path} is of the game {game['game']}, not of {expected['game']}; or of that game in another form "
      "(listed, in vector form, in parts, in float32), with another filter, or in another version. Compile the game as "
      "it was compiled for the checkpoint."
    )
  if recipe != solver.description():
    raise errors.CheckpointMismatchError(
      f"{path} is of {recipes.as_call(recipe)}, not of {recipes.as_call(solver.description())}."
    )
  return state


def load(path: str | os.PathLike[str], game: AnyGame) -> Any:
  """Makes the solver of a checkpoint, see `Solver.load`."""
  header, arrays = files.read(path, KIND, FORMAT)
  # Compiling here keeps errors of the game apart from those of the constructor.
  game = compile_game(game) if header.get("game_sha256") else game
  try:
    solver = recipes.make(header[_RECIPE], game)
  # A constructor of another version can raise anything.
  except Exception as error:
    raise errors.CheckpointMismatchError(
      f"{path} is of {recipes.as_call(header.get(_RECIPE))}, which can't be made here: {error}. Import its class "
      "first if it is your own."
    ) from error
  solver.load_state_dict(_checked_state(solver, path, header, arrays))
  return solver
