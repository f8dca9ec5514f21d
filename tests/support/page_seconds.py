"""Measures Chromium's CPU time to open pages of the explorer.

PYTHONPATH=tests/support python -m page_seconds leduc_poker "liars_dice(dice_sides=7)"
"""

import os
import pathlib
import sys
import tempfile
import time

import explorer_pages

import spiel_cfr

_ROUNDS = 3


def processor_seconds(root):
  """Returns the CPU time of a process and its children."""
  children, used = {}, {}
  for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
    try:
      fields = path.read_text().rpartition(")")[2].split()
    except OSError:  # It has ended.
      continue
    children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    used[int(path.parent.name)] = int(fields[11]) + int(fields[12])
  total, found = 0, [root]
  while found:
    process = found.pop()
    total += used.get(process, 0)
    found += children.get(process, [])
  return total / os.sysconf("SC_CLK_TCK")


def main(games):
  with tempfile.TemporaryDirectory() as folder:
    browser = explorer_pages.browser(pathlib.Path(folder, "profile"))
    for number, game in enumerate(games):
      solver = spiel_cfr.CFRPlusSolver(game)
      solver.run(20)
      page = spiel_cfr.explore(solver, pathlib.Path(folder, f"{number}.html"), max_infosets=10**6)
      print(f"{game}: {page.path.stat().st_size:,} bytes, {page.num_infosets:,} infosets")
      for _ in range(_ROUNDS):
        browser.get("about:blank")
        time.sleep(1)
        before = processor_seconds(browser.service.process.pid)
        browser.get(page.path.as_uri())
        while not browser.execute_script("return document.documentElement.dataset.ready"):
          time.sleep(0.1)
        print(f"  {processor_seconds(browser.service.process.pid) - before:.2f} s")
    browser.quit()


if __name__ == "__main__":
  main(sys.argv[1:])
