"""Runs every cell and writes docs/composition.md; fails if a cell does not do what the table expects.

PYTHONPATH=tests/support python -m composition [FILE]
"""

import collections
import pathlib
import re
import sys
import traceback

from composition import report, table

_ROOT = pathlib.Path(__file__).parents[3]


def _cause(error: Exception) -> str:
  """Returns what went wrong and in which line, without numbers, which differ from cell to cell."""
  message = next(iter(str(error).splitlines()), "")
  last = traceback.extract_tb(error.__traceback__)[-1]
  return re.sub(
    r"[\d.]+", "#", f"{type(error).__name__}: {message[:100]}  [{last.name}: {last.line}]"
  )


def main() -> None:
  path = pathlib.Path(sys.argv[1]) if sys.argv[1:] else _ROOT / "docs" / "composition.md"
  found = {}
  broken: dict[str, list[str]] = collections.defaultdict(list)
  for cell in table.cells():
    try:
      found[cell] = cell.found()
    except Exception as error:
      found[cell] = f"BROKEN: {type(error).__name__}"
      broken[_cause(error)].append(str(cell))
    else:
      if found[cell] != cell.expected:
        broken[f"{found[cell]} instead of {cell.expected}"].append(str(cell))
  path.write_text(report.render(found))
  print(f"Wrote {path}: {len(found):,} cells, {sum(map(len, broken.values())):,} broken")
  for cause, names in sorted(broken.items(), key=lambda item: -len(item[1])):
    print(f"\n{len(names)} x {cause}", *names[:5], sep="\n  ")
    if len(names) > 5:
      print(f"  and {len(names) - 5} more")
  sys.exit(bool(broken))


if __name__ == "__main__":
  main()
