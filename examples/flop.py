r"""Solves hold'em from the flop, the turn or the river on, with ranges and bet sizes in common notation.

    python examples/flop.py --board=Td9d6h --oop="66+,A8s+" --ip="QQ-22" --pot=200 --stack=900 --bets="50%,a" --raises=a

prints an estimate of the memory, the exploitability during the run, and at the end both players' strategies at their
first decisions, by hand class. It saves the solution, results/Td9d6h.solution, and a page to click through,
results/Td9d6h.html. Ctrl-C ends the run and keeps the strategies so far. With --checkpoint, the same command continues
an interrupted run.

    python examples/explore.py --solution=results/Td9d6h.solution --runouts=2c7s,Ah

opens the solution in a second, and makes a page of other runouts.

    python examples/flop.py --boards=flops.txt --oop="66+,A8s+" --ip="QQ-22" --pot=200 --stack=900

solves each board of a file, one board per line, and compares them. results/flops.csv has EV, equity and frequencies of
both players' first decisions by hand class; results/flops.png is a picture.
"""

from results import draws, pyplot, save, start, writable

import csv
import math
import pathlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from absl import flags

import spiel_cfr
from spiel_cfr import poker
from spiel_cfr.explorer import HandReport, hand_report
from spiel_cfr.poker import ranges

_BOARD = flags.DEFINE_string("board", "Td9d6h", "three to five public cards")
_BOARDS = flags.DEFINE_string("boards", None, "file of boards, one per line, in place of --board")
_OOP = flags.DEFINE_string("oop", "66+,A8s+", "range of the player that acts first on each street")
_IP = flags.DEFINE_string("ip", "QQ-22", "range of the other player")
_POT = flags.DEFINE_integer("pot", 200, "chips in the pot", lower_bound=2)
_STACK = flags.DEFINE_integer("stack", 900, "chips that each player has behind", lower_bound=1)
_BETS = flags.DEFINE_string("bets", "50%,a", "sizes of first bets on a street, see poker.bet_sizes")
_RAISES = flags.DEFINE_string("raises", "a", "sizes of raises")
_DONK = flags.DEFINE_string("donk", None, "sizes of donk bets; by default the sizes of other bets")
_ADD_ALL_IN = flags.DEFINE_float(
  "add_all_in", 0.0, "also offer all-in where it is at most X times the pot", 0.0
)
_FORCE_ALL_IN = flags.DEFINE_float(
  "force_all_in",
  0.0,
  "replace a bet by all-in if the stack left behind is at most X times the pot after a call",
  0.0,
)
_MERGE = flags.DEFINE_float("merge", 0.0, "merging threshold (0.1 is typical)", 0.0)
_TARGET = flags.DEFINE_float("target", 0.5, "exploitability to reach, in percent of the pot", 0.0)
_ITERATIONS = flags.DEFINE_integer(
  "iterations", 1000, "maximum number of iterations", lower_bound=1
)
_THREADS = flags.DEFINE_integer("threads", 1, "threads that share the subtrees", lower_bound=1)
_RAKE = flags.DEFINE_float("rake", 0.0, "percentage of each pot that the house keeps", 0.0, 100.0)
_RAKE_CAP = flags.DEFINE_float("rake_cap", math.inf, "largest rake of a pot, in chips", 0.0)
_MERGE_SUITS = flags.DEFINE_bool("merge_suits", True, "merge equivalent suits")
_CHECKPOINT = flags.DEFINE_string("checkpoint", None, "file of the solver's state, to resume from")
_RUNOUTS = flags.DEFINE_list("runouts", [], "turn and river cards on the page, such as 2c7s,Ah")
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", "results", "folder of solutions, pages, tables and pictures; empty to write none"
)

# The decisions of OOP and of IP that are reported.
_DECISIONS = ("first", "after a check")
# Iterations between two evaluations, each of which takes as long as two iterations.
_EVERY = 20


def solve() -> None:
  if _OUTPUT_DIR.value:
    writable(pathlib.Path(_OUTPUT_DIR.value, "solution"))
  if _BOARDS.value is None:
    solution, is_finished = solve_board(_BOARD.value)
    for report in reports(solution):
      print(f"\n{report}")
    if not is_finished:
      raise KeyboardInterrupt
    return
  compare(list(boards_in(_BOARDS.value)))


def solve_board(board: str) -> tuple[poker.PokerSolution, bool]:
  """Solves and saves a board; returns the solution, and whether the run was not interrupted."""
  game = compile_board(board)
  solver = spiel_cfr.DCFRSolver(game)
  if _CHECKPOINT.value and pathlib.Path(_CHECKPOINT.value).exists():
    solver.restore(_CHECKPOINT.value)
    print(f"resumed after {solver.iteration} iterations")
  is_finished = True
  try:
    iterate(solver)
  except KeyboardInterrupt:
    if not solver.iteration:
      raise
    is_finished = False
    print(
      f"\nstopped after {solver.iteration} iterations; the strategies so far are saved", flush=True
    )
  if _CHECKPOINT.value:
    solver.save(_CHECKPOINT.value)
    print(f"saved to {_CHECKPOINT.value}")
  solution = poker.PokerSolution.of(solver)
  oop, ip = (solution.expected_values + _POT.value / 2).tolist()
  print(f"EV: OOP {oop:z.2f}, IP {ip:z.2f} chips of a pot of {_POT.value}")
  if _OUTPUT_DIR.value:
    path = pathlib.Path(_OUTPUT_DIR.value, f"{board}.solution")
    solution.save(path)
    print(f"Wrote {path}, {path.stat().st_size / 1e6:z.1f} MB")
    page = path.with_suffix(".html")
    print(f"Wrote {spiel_cfr.explore(solution, page, title=title(board), runouts=runouts())}")
  return solution, is_finished


def compile_board(board: str) -> poker.PublicGame:
  """Compiles a board, after an estimate of the memory."""
  endgame = ranges.endgame(_OOP.value, _IP.value, board=board, pot=_POT.value, stack=_STACK.value)
  sizes = poker.bet_sizes(
    _BETS.value,
    _RAISES.value,
    donk=_DONK.value,
    add_all_in=_ADD_ALL_IN.value,
    force_all_in=_FORCE_ALL_IN.value,
    merge=_MERGE.value,
  )
  options: dict[str, Any] = {"dtype": "float32", "merge_suits": _MERGE_SUITS.value}
  print(f"{title(board)}: {poker.estimate(endgame, sizes, **options)}", flush=True)
  if _RAKE.value:
    options["rake"] = poker.Rake(_RAKE.value / 100, _RAKE_CAP.value)
  if _THREADS.value > 1:
    options |= {"partitioned": True, "num_threads": _THREADS.value}
  began = time.perf_counter()
  game = poker.compile_public_game(endgame, sizes, **options)
  print(f"compiled in {time.perf_counter() - began:z.1f} s", flush=True)
  return game


def iterate(solver: Any) -> None:
  """Iterates until the target is reached, and prints exploitability."""
  spent = 0.0
  while solver.iteration < _ITERATIONS.value:
    began = time.perf_counter()
    solver.run(min(_EVERY, _ITERATIONS.value - solver.iteration))
    spent += time.perf_counter() - began
    # With rake, exploitability is not defined; this is the mean gain of best responses.
    share = 100 * solver.nash_conv() / 2 / _POT.value
    print(
      f"{solver.iteration:6} iterations, {spent:z7.1f} s: exploitability {share:z.3f} % of the pot",
      flush=True,
    )
    if share <= _TARGET.value:
      return


def title(board: str) -> str:
  return f"{board}, pot {_POT.value:,}, stack {_STACK.value:,}, SPR {_STACK.value / _POT.value:zg}"


def runouts() -> list[str] | None:
  return _RUNOUTS.value or None


def reports(solution: poker.PokerSolution) -> list[HandReport]:
  """Returns the reports of OOP's first decision, and of IP's decision after a check."""
  return [hand_report(solution), hand_report(solution, [1])]


def boards_in(path: str) -> Iterator[str]:
  """Yields the boards of a file; empty lines and those that begin with # are skipped."""
  for line in pathlib.Path(path).read_text().splitlines():
    board = "".join(line.split())
    if board and not board.startswith("#"):
      yield board


def compare(boards: list[str]) -> None:
  """Solves boards one after the other; writes a table after each, and a picture at the end."""
  if not boards:
    sys.exit(f"error: {_BOARDS.value} has no boards")
  path = writable(pathlib.Path(_OUTPUT_DIR.value or ".", pathlib.Path(_BOARDS.value or "").stem))
  all_reports: list[list[HandReport]] = []
  is_finished = True
  for number, board in enumerate(boards, 1):
    print(f"\nboard {number} of {len(boards)}", flush=True)
    solution, is_finished = solve_board(board)
    all_reports.append(reports(solution))
    write_table(boards, all_reports, path.with_suffix(".csv"))
    if not is_finished:
      break
  print(f"Wrote {path.with_suffix('.csv')}")
  draw(boards, all_reports, path.with_suffix(".png"))
  if not is_finished:
    raise KeyboardInterrupt


def write_table(boards: list[str], all_reports: list[list[HandReport]], path: pathlib.Path) -> None:
  """Writes the hand classes of all boards, with a column for each action."""
  actions = list(dict.fromkeys(name for report in all_reports[0] for name in report.actions))
  fixed = ["board", "player", "decision", "kind", "class", "combos", "EV", "equity"]
  with path.open("w", newline="") as file:
    table = csv.DictWriter(file, [*fixed, *actions])
    table.writeheader()
    for board, of_board in zip(boards, all_reports, strict=False):
      for decision, report in zip(_DECISIONS, of_board, strict=True):
        for line in report.classes:
          names = board, report.player, decision, line.kind, line.name
          numbers = f"{line.combos:z.4g}", f"{line.ev:z.3f}", f"{line.equity:z.4f}"
          row = dict(zip(fixed, (*names, *numbers), strict=True))
          for name, share in zip(report.actions, line.frequencies.tolist(), strict=True):
            row[name] = f"{share:z.4f}"
          table.writerow(row)


@draws
def draw(boards: list[str], all_reports: list[list[HandReport]], path: pathlib.Path) -> None:
  """Draws EV and equity of both players, and the frequencies of their first actions, board by board."""
  plt = pyplot()
  figure, panels = plt.subplots(
    3, 1, figsize=(max(6.0, 2 + 0.35 * len(all_reports)), 8), layout="constrained", sharex=True
  )
  names = boards[: len(all_reports)]
  for player, color in enumerate(("tab:blue", "tab:orange")):
    whole = [of_board[player].classes[0] for of_board in all_reports]
    label = f"{all_reports[0][player].player} {_DECISIONS[player]}"
    shares = [100 * summary.ev / _POT.value for summary in whole]
    panels[0].plot(names, shares, "o", color=color, label=f"{label}: EV")
    equities = [100 * summary.equity for summary in whole]
    panels[0].plot(names, equities, "x", color=color, label=f"{label}: equity")
    bottom = [0.0] * len(all_reports)
    for index, action in enumerate(all_reports[0][player].actions):
      heights = [100 * float(summary.frequencies[index]) for summary in whole]
      panels[1 + player].bar(names, heights, bottom=bottom, label=action)
      bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    panels[1 + player].set_ylabel(f"{label}, %")
  panels[0].set_ylabel("percent of the pot")
  for panel in panels:
    panel.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
  panels[2].tick_params("x", rotation=90)
  save(figure, path, 120)


if __name__ == "__main__":
  start(solve)
