"""Computes the atlas of solved games again, prints the changes, and writes the package's file and the page's tables.

An interrupted run continues with the games that it has not computed. Its results are in the file `--done`; delete that
file after a change of the code.
"""

import importlib.metadata
import json
import pathlib
import time
from typing import Any

import atlas_numbers
import atlas_page
from absl import app, flags

import spiel_cfr
from spiel_cfr import atlas
from spiel_cfr._util import files
from spiel_cfr.atlas.solved_games import from_json

_GAMES = flags.DEFINE_list("games", [], "games to compute; all by default")
_MISSING = flags.DEFINE_bool("missing", False, "compute only games without numbers")
_DONE = flags.DEFINE_string(
  "done", "build/atlas.jsonl", "file with the results of an interrupted run"
)
_ROOT = pathlib.Path(__file__).parent.parent
_FILE = _ROOT / "spiel_cfr" / "atlas" / "atlas.json"


def main(_: list[str]) -> None:
  listed = json.loads(_FILE.read_text())
  done = pathlib.Path(_DONE.value)
  done.parent.mkdir(parents=True, exist_ok=True)
  known = dict(_whole_lines(done))
  num_changes = 0
  for index, before in enumerate(listed):
    game = before["game"]
    if (_GAMES.value and game not in _GAMES.value) or (_MISSING.value and "num_states" in before):
      continue
    if game not in known:
      start = time.process_time()
      compiled = spiel_cfr.compile_game(
        atlas.load(game), infostate=before.get("infostate"), progress=False
      )
      known[game] = atlas_numbers.recompute(compiled)
      print(
        f"{index + 1} of {len(listed)}, {time.process_time() - start:z.0f} s: {game}", flush=True
      )
      with done.open("a") as file:
        file.write(json.dumps([game, known[game]]) + "\n")
    differs = ["new"]
    if "num_states" in before:
      differs = atlas_numbers.changes(from_json(before), known[game])
    if differs:
      listed[index] = before | known[game]
      num_changes += 1
      print(f"changed: {game}", *differs, sep="\n  ", flush=True)
  lines = ",\n".join(map(json.dumps, listed))
  with files.replacing(_FILE) as file:
    file.write(f"[\n{lines}\n]\n".encode())
  version = importlib.metadata.version("open_spiel")
  games = [from_json(text) for text in listed if "num_states" in text]
  page = _ROOT / "docs" / "atlas.md"
  page.write_text(atlas_page.page(page.read_text(), games, version))
  done.unlink(missing_ok=True)
  print(f"{num_changes} games changed; {len(games)} in {_FILE.relative_to(_ROOT)}, docs/atlas.md")


def _whole_lines(done: pathlib.Path) -> list[list[Any]]:
  """Returns the games of an interrupted run and their numbers. Its last line may be incomplete."""
  result = []
  for line in done.read_text().splitlines() if done.exists() else ():
    try:
      result.append(json.loads(line))
    except json.JSONDecodeError:
      done.write_text("".join(json.dumps(line) + "\n" for line in result))
  return result


if __name__ == "__main__":
  app.run(main)
