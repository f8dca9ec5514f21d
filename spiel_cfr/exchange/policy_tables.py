"""Policies in JSON files for other programs: an object with an entry for each infostate."""

import json
import os

from spiel_cfr import errors
from spiel_cfr._util import arguments, files
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import CompiledTabularPolicy, open_spiel


def save_policy(game: AnyGame, policy: open_spiel.AnyPolicy, path: str | os.PathLike[str]) -> None:
  """Writes a policy to a JSON file.

  The file is an object from infostates to objects from actions to probabilities, which have all their digits. It is
  written as a whole or not at all.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    policy: a policy, or anything else that `policies.from_policy` reads.
    path: the file to write.

  Raises:
    PolicyError: the policy is not a policy of this game.
    GameError: see `compile_game`.
    ArgumentError: `path` is not a path.
    OSError: the file can't be written.
  """
  compiled = compile_game(game)
  table = open_spiel.to_dict(compiled, open_spiel.from_policy(compiled, policy))
  with files.replacing(path) as file:
    file.write(json.dumps(table, indent=1).encode())


def load_policy(game: AnyGame, path: str | os.PathLike[str]) -> CompiledTabularPolicy:
  """Reads a policy from a file of `save_policy` or of another program. Actions without an entry have probability 0.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    path: the file to read.

  Raises:
    FileFormatError: the file is not a JSON object of infostates, actions and probabilities.
    PolicyError: the policy is not a policy of this game.
    GameError: see `compile_game`.
    ArgumentError: `path` is not a path.
    OSError: the file can't be read.
  """
  path = arguments.path(path, "path")
  compiled = compile_game(game)
  try:
    table = {
      infostate: {int(action): float(chance) for action, chance in chances.items()}
      for infostate, chances in json.loads(path.read_bytes()).items()
    }
  except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
    raise errors.FileFormatError(
      f"{path} is not a table of a policy: {type(error).__name__}: {str(error)[:200]}."
    ) from error
  unknown = [infostate for infostate in table if infostate not in compiled.table_rows]
  if unknown:
    raise errors.PolicyError(
      f"{path} has the infostate {unknown[0]!r}, which is not in {compiled.name}. It is for another game."
    )
  return CompiledTabularPolicy(compiled, open_spiel.from_policy(compiled, table))
