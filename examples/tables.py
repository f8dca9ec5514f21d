r"""Writes the measured tables of README and docs/ from docs/results.jsonl, the only source of their numbers.

    python examples/tables.py                            # writes the tables into the pages
    python examples/tables.py --run=warm_start,n_players  # measures these tables first

A line of the file is a table that a command has printed: its name, the command, its number among the printed tables,
the machine, columns and rows. On a page, the table is between `<!-- table: NAME -->` and `<!-- end of table -->`;
`<!-- table: NAME: COLUMN | COLUMN -->` shows some of its columns.
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from absl import app, flags

from spiel_cfr._util import environment

_ROOT = pathlib.Path(__file__).parent.parent
_RUN = flags.DEFINE_list("run", [], "names of tables to measure again")
_FOLDER = flags.DEFINE_string("folder", str(_ROOT), "folder of README.md and docs/")

_PLACE = re.compile(
  r"(<!-- table: ([^:\n]+?)(?:: ([^\n]+))? -->\n).*?(<!-- end of table -->)", re.DOTALL
)
_NUMBER = re.compile(r"[-*]*\d")

Table = dict[str, Any]


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  folder = pathlib.Path(_FOLDER.value)
  path = folder / "docs" / "results.jsonl"
  tables = read(path)
  if not set(_RUN.value) <= set(tables):
    raise app.UsageError(f"--run takes names of tables: {', '.join(tables)}")
  commands = dict.fromkeys(tables[name]["command"] for name in _RUN.value)
  for command in commands:
    measure(command, [table for table in tables.values() if table["command"] == command])
    path.write_text(
      "".join(json.dumps(table, ensure_ascii=False) + "\n" for table in tables.values())
    )
  for page in pages(folder):
    page.write_text(filled(page.read_text(), tables))


def pages(folder: pathlib.Path) -> list[pathlib.Path]:
  """Returns the pages that may have tables."""
  return [folder / "README.md", *sorted((folder / "docs").rglob("*.md"))]


def read(path: pathlib.Path) -> dict[str, Table]:
  """Returns name -> table of the file."""
  return {table["name"]: table for table in map(json.loads, path.read_text().splitlines())}


def filled(text: str, tables: dict[str, Table]) -> str:
  """Returns a page with all its tables from the file."""

  def table(match: re.Match[str]) -> str:
    begin, name, columns, end = match.groups()
    return begin + markdown(tables[name], columns.split(" | ") if columns else None) + end

  return _PLACE.sub(table, text)


def markdown(table: Table, columns: Sequence[str] | None = None) -> str:
  """Returns a table, or some of its columns, in Markdown; numbers are aligned to the right."""
  names = table["columns"]
  chosen = range(len(names)) if columns is None else [names.index(name) for name in columns]
  rows = [[row[index] for index in chosen] for row in table["rows"]]
  lines = [[names[index] for index in chosen], [], *rows]
  for cells in zip(*rows, strict=True):
    lines[1].append("---:" if all(_NUMBER.match(cell) for cell in cells if cell) else "---")
  return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def measure(command: str, tables: Sequence[Table]) -> None:
  """Runs a command, and updates its tables from the output."""
  program, *rest = shlex.split(command)
  assert program == "python"
  print(command, flush=True)
  output = subprocess.run(
    [sys.executable, *rest], cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True
  ).stdout
  printed = list(printed_tables(output))
  for table in tables:
    table["columns"], *table["rows"] = printed[table["number"]]
    table["on"] = environment.machine() | environment.versions()


def printed_tables(output: str) -> Iterator[list[list[str]]]:
  """Yields the tables in an output, each as a list of columns and lists of cells."""
  for text in re.findall(r"(?:^\|.*\|\n)+", output, re.MULTILINE):
    lines = [
      [cell.strip() for cell in line[1:-1].split("|")]
      for line in text.replace("\\|", "/").splitlines()
    ]
    yield [lines[0], *lines[2:]]


if __name__ == "__main__":
  app.run(main)
