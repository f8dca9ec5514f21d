"""Policies as tables: CSV with a row an action, JSON with an entry an infostate."""

import csv
import io
import json
import os
import pathlib

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import files
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import CompiledTabularPolicy, open_spiel

_COLUMNS = ["infostate", "action", "probability"]


def save_policy(
  game: AnyGame, policies: open_spiel.AnyPolicy, path: str | os.PathLike[str]
) -> None:
  """Writes a policy to a table, with all digits. The file is whole or not there.

  Args:
    game: a compiled game, or what `compile_game` takes.
    policies: anything that `policies.from_policy` reads.
    path: `*.csv`, with the columns infostate, action and probability; or `*.json`, an object of infostates whose
      entries are objects of actions.

  Raises:
    ArgumentError: the path ends in something else.
    PolicyError: the policy is not one for this game.
    GameError: see `compile_game`.
    OSError: the file can't be written.
  """
  suffix = _suffix(path)
  compiled = compile_game(game)
  table = open_spiel.to_dict(compiled, open_spiel.from_policy(compiled, policies))
  if suffix == ".json":
    text = json.dumps(table, indent=1)
  else:
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(_COLUMNS)
    for infostate, chances in table.items():
      writer.writerows([infostate, action, repr(chance)] for action, chance in chances.items())
    text = written.getvalue()
  with files.replacing(path) as file:
    file.write(text.encode())


def load_policy(game: AnyGame, path: str | os.PathLike[str]) -> CompiledTabularPolicy:
  """Reads a policy that `save_policy`, or another program, has written; actions left out have probability 0.

  Args:
    game: a compiled game, or what `compile_game` takes.
    path: `*.csv` or `*.json`, see `save_policy`.

  Raises:
    ArgumentError: the path ends in something else.
    FileFormatError: the file is no such table.
    PolicyError: the policy is not one for this game.
    GameError: see `compile_game`.
    OSError: the file can't be read.
  """
  suffix = _suffix(path)
  compiled = compile_game(game)
  try:
    text = pathlib.Path(path).read_bytes().decode()
    table = _from_json(text) if suffix == ".json" else _from_csv(text)
  except (ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error) as error:
    raise errors.FileFormatError(
      f"{path} is not a table of a policy: {type(error).__name__}: {str(error)[:200]}."
    ) from error
  return CompiledTabularPolicy(compiled, _checked(compiled, table, path))


def _checked(
  compiled: CompiledGame, table: open_spiel.PolicyDict, path: str | os.PathLike[str]
) -> Float64s:
  unknown = [infostate for infostate in table if infostate not in compiled.rows]
  if unknown:
    raise errors.PolicyError(
      f"{path} has the infostate {unknown[0]!r}, which {compiled.game_string} has not. It is for another game."
    )
  return open_spiel.from_policy(compiled, table)


def _suffix(path: str | os.PathLike[str]) -> str:
  suffix = pathlib.Path(path).suffix
  if suffix not in (".csv", ".json"):
    raise errors.ArgumentError(f"{path} must end in .csv or .json.")
  return suffix


def _from_json(text: str) -> open_spiel.PolicyDict:
  return {
    infostate: {int(action): float(chance) for action, chance in chances.items()}
    for infostate, chances in json.loads(text).items()
  }


def _from_csv(text: str) -> open_spiel.PolicyDict:
  result: open_spiel.PolicyDict = {}
  reader = csv.reader(io.StringIO(text, newline=""))
  header = next(reader, None)
  if header != _COLUMNS:
    raise ValueError(f"the first row is {header}, not {_COLUMNS}")
  for infostate, action, chance in reader:
    chances = result.setdefault(infostate, {})
    if int(action) in chances:
      raise ValueError(f"infostate {infostate!r} has action {action} twice")
    chances[int(action)] = float(chance)
  return result
