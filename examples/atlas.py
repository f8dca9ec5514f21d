"""Recomputes the atlas: prints changes, and writes the file of the package and docs/atlas.md.

An interrupted run continues with the games that it has not computed.
"""

import importlib.metadata
import json
import pathlib

from absl import app, flags

from spiel_cfr import atlas
from spiel_cfr.atlas.entries import read_entry

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
  known = dict(map(json.loads, done.read_text().splitlines())) if done.exists() else {}
  for place, before in enumerate(listed):
    game = before["game"]
    if (_GAMES.value and game not in _GAMES.value) or (_MISSING.value and "num_states" in before):
      continue
    if game not in known:
      known[game] = atlas.recompute(game)
      with done.open("a") as file:
        file.write(json.dumps([game, known[game]]) + "\n")
    differs = atlas.changes(read_entry(before), known[game]) if "num_states" in before else ["new"]
    for change in differs:
      print(f"{game}: new" if change == "new" else change)
    if differs:
      listed[place] = before | known[game]
  lines = ",\n".join(json.dumps(entry) for entry in listed)
  _FILE.write_text(f"[\n{lines}\n]\n")
  version = importlib.metadata.version("open_spiel")
  entries = [read_entry(entry) for entry in listed if "num_states" in entry]
  (_ROOT / "docs" / "atlas.md").write_text(atlas.page(entries, version))
  done.unlink(missing_ok=True)
  print(f"{len(entries)} games in {_FILE.relative_to(_ROOT)} and docs/atlas.md")


if __name__ == "__main__":
  app.run(main)
