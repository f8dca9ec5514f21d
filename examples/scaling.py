"""Time and memory of solving against the size of games: the part `scaling` of benchmark.py.

Each game is measured in a separate process, which gets the arguments of `measure` in JSON. Times are CPU seconds,
which other load affects little.
"""

from results import draws, pyplot, save

import csv
import functools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pyspiel

import spiel_cfr

_LEDUC = (
  "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,numSuits={},numRanks={},"
  "numHoleCards={},numBoardCards=0 {},raiseSize=2 4,maxRaises=2 2)"
)


class Member(NamedTuple):
  """A game of a family.

  Attributes:
    name: str. The name in tables.
    game: str. OpenSpiel's string.
    leaves: int. The number of terminal states. In vector form, cards dealt at the same time count in one order only.
    vector_form: bool. True if it is compiled in vector form.
  """

  name: str
  game: str
  leaves: int
  vector_form: bool = False


def _leduc(suits: int, ranks: int, *, vector_form: bool = False) -> Member:
  # Of the betting lines of a round, 4 end in a fold, and 5 in the next card or a showdown.
  cards = suits * ranks
  leaves = cards * (cards - 1) * (4 + (cards - 2) * 5 * (4 + 5))
  name = f"Leduc, {suits} x {ranks} cards" + ", vectors" * vector_form
  return Member(name, _LEDUC.format(suits, ranks, 1, 1), leaves, vector_form)


def _hands_of_two(suits: int, ranks: int) -> Member:
  cards = suits * ranks
  boards = math.comb(cards - 4, 3)
  leaves = math.comb(cards, 2) * math.comb(cards - 2, 2) * (4 + boards * 5 * (4 + 5))
  game = _LEDUC.format(suits, ranks, 2, 3)
  return Member(f"hands of two and a flop, {suits} x {ranks} cards", game, leaves, True)


def _liars_dice(sides: int, dice: int = 1, *, vector_form: bool = False) -> Member:
  # Bids rise, and a challenge ends the game: every non-empty set of bids is a line.
  types = math.comb(sides + dice - 1, dice)
  leaves = types**2 * (2 ** (2 * dice * sides) - 1)
  game = f"liars_dice(numdice={dice},dice_sides={sides})"
  name = (
    f"liar's dice, {sides} sides" if dice == 1 else f"liar's dice, {dice} dice of {sides} sides"
  )
  return Member(f"{name}, vectors" if vector_form else name, game, leaves, vector_form)


def _goofspiel(cards: int) -> Member:
  game = f"goofspiel(num_cards={cards},imp_info=True,points_order=descending)"
  return Member(f"goofspiel, {cards} cards", game, math.factorial(cards) ** 2)


# Families of games from small to large; the largest exceed this machine.
FAMILIES = {
  "Leduc with 2 to 13 ranks, 2 to 4 suits": [
    _leduc(suits, ranks)
    for suits, ranks in ((2, 2), (2, 3), (2, 4), (2, 6), (2, 9), (2, 13), (3, 13), (4, 13))
  ],
  "Leduc with 6 to 13 ranks, 2 to 4 suits, in vector form": [
    _leduc(suits, ranks, vector_form=True)
    for suits, ranks in ((2, 6), (2, 9), (2, 13), (3, 13), (4, 13))
  ],
  "liar's dice, a die of 2 to 11 sides": [_liars_dice(sides) for sides in range(2, 12)],
  "liar's dice, a die of 5 to 11 sides, in vector form": [
    _liars_dice(sides, vector_form=True) for sides in range(5, 12)
  ],
  "liar's dice, 2 dice of 2 to 6 sides, in vector form": [
    _liars_dice(sides, 2, vector_form=True) for sides in range(2, 7)
  ],
  "hands of two and a flop, 2 suits of 4 to 12 ranks, in vector form": [
    _hands_of_two(2, ranks) for ranks in (4, 5, 6, 8, 10, 12)
  ],
  "goofspiel with 3 to 8 cards": [_goofspiel(cards) for cards in range(3, 9)],
}
_SOLVER, _TARGETS, _ROUNDS = "pdcfr+", (1e-3, 1e-6), 3
_GIBIBYTES, _ESTIMATE_SECONDS = 24, 2.0
# Drawn column -> title, and OpenSpiel's column beside it.
_PANELS = {
  "compile_seconds": ("compiling, seconds", None),
  "megabytes": ("peak of memory above Kuhn poker's, MB", None),
  "microseconds": ("an iteration of CFR+, microseconds", "open_spiel_microseconds"),
  "seconds_to_0.001": (f"{_SOLVER} to exploitability 1e-3, seconds", None),
  "seconds_to_1e-06": (f"{_SOLVER} to exploitability 1e-6, seconds", None),
}


def measure(
  game: str,
  vector_form: bool,
  seconds: float,
  most_leaves_of_open_spiel: float,
  most_gigabytes: float,
) -> dict[str, Any]:
  """Measures one game in this process; targets that are not reached in time are None."""
  kuhn = spiel_cfr.CFRPlusSolver("kuhn_poker")
  kuhn.prepare()
  before = _peak_megabytes()
  start = _processor_seconds()
  compiled = spiel_cfr.compile_game(
    game, max_nodes=10**10, max_bytes=int(most_gigabytes * 1e9), vector_form=vector_form
  )
  row: dict[str, Any] = {
    "infosets": compiled.num_infosets,
    "compile_seconds": _processor_seconds() - start,
  }
  row.update(_seconds_to_targets(compiled, seconds))
  row["megabytes"] = _peak_megabytes() - before
  # Last, because the memory of these solvers must not count.
  ours = spiel_cfr.CFRPlusSolver(compiled)
  ours.prepare()
  theirs = None
  if not vector_form and compiled.num_terminals <= most_leaves_of_open_spiel:
    theirs = pyspiel.CFRPlusSolver(compiled.game)
  times: dict[str, list[float]] = {}
  for _ in range(_ROUNDS):
    times.setdefault("microseconds", []).append(_microseconds(ours.run))
    if theirs is not None:
      microseconds = _microseconds(functools.partial(_repeat, theirs.evaluate_and_update_policy))
      times.setdefault("open_spiel_microseconds", []).append(microseconds)
  row.update({name: statistics.median(column) for name, column in times.items()})
  return row


def _seconds_to_targets(compiled: spiel_cfr.CompiledGame, seconds: float) -> dict[str, Any]:
  """Solves a game; returns the seconds to each target, without evaluations; None if it is not reached in time."""
  solver = spiel_cfr.catalogue.make(_SOLVER, compiled, iterations=1)
  solver.prepare()
  reached: dict[str, float | None] = {_column(target): None for target in _TARGETS}
  spent, due = 0.0, spiel_cfr.runs.Powers(1.2)
  while spent < seconds and None in reached.values():
    start = time.process_time()
    solver.run(int(due(solver.iteration)) - solver.iteration)
    spent += time.process_time() - start
    exploitability = solver.exploitability()
    for target in _TARGETS:
      if reached[_column(target)] is None and exploitability <= target:
        reached[_column(target)] = spent
  return reached


def _processor_seconds() -> float:
  """Returns the CPU seconds of this process and of its finished child processes."""
  return sum(os.times()[:4])


def _column(target: float) -> str:
  return f"seconds_to_{target:zg}"


def _microseconds(run: Callable[[int], object]) -> float:
  """Returns the microseconds of an iteration, measured over a tenth of a second."""
  count, seconds = 1, 0.0
  while True:
    start = time.process_time()
    run(count)
    seconds = time.process_time() - start
    if seconds >= 0.1:
      return seconds / count * 1e6
    count *= 2


def _repeat(step: Callable[[], object], count: int) -> None:
  for _ in range(count):
    step()


def _peak_megabytes() -> float:
  """Returns the peak memory of this process, in megabytes."""
  status = pathlib.Path("/proc/self/status").read_text().splitlines()
  return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1000


def measure_all(
  most_leaves: float,
  seconds: float,
  most_leaves_of_open_spiel: float,
  most_minutes: float,
  most_gigabytes: float,
  picture: pathlib.Path,
  keep: bool,
) -> None:
  """Measures games of each family in turn, from the smallest, and draws them.

  A CSV file is written beside the picture. If `keep` is True, its measurements are not repeated.
  """
  rows: list[dict[str, Any]] = []
  known = _read(picture.with_suffix(".csv")) if keep else {}
  for family, members in FAMILIES.items():
    print(f"\n{family}")
    for member in members:
      if member.name in known:
        rows.append(known[member.name])
        continue
      if member.leaves > most_leaves:
        print(f"  {member.name} and larger: not measured, {member.leaves:,} leaves")
        break
      arguments = {
        "game": member.game,
        "vector_form": member.vector_form,
        "seconds": seconds,
        "most_leaves_of_open_spiel": most_leaves_of_open_spiel,
        "most_gigabytes": most_gigabytes,
      }
      try:
        done = subprocess.run(
          [sys.executable, __file__, json.dumps(arguments)],
          capture_output=True,
          text=True,
          timeout=60 * most_minutes,
          check=True,
        )
      except subprocess.TimeoutExpired:
        print(f"  {member.name} and larger: not measured, more than {most_minutes:zg} minutes")
        break
      except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"])[-1]
        print(f"  {member.name} and larger: not measured, {reason}")
        break
      row = {"family": family, **member._asdict(), **json.loads(done.stdout.splitlines()[-1])}
      rows.append(row)
      # Written after each game, so an interrupted program keeps its results.
      _write(rows + [old for old in known.values() if old not in rows], picture.with_suffix(".csv"))
      print(
        f"  {row['name']}: {row['leaves']:,} leaves, {row['compile_seconds']:z.2f} s to compile, "
        f"{row['megabytes']:z,.1f} MB, {row['microseconds']:z,.1f} us per iteration",
        flush=True,
      )
  if not rows:
    print("No game is small enough: raise --most_leaves.")
    return
  _write(rows, picture.with_suffix(".csv"))
  _draw(rows, picture)
  _print_tables(rows, seconds)
  _print_predictions(rows, seconds)
  print(f"\nWrote {picture.with_suffix('.csv')}")


def _write(rows: list[dict[str, Any]], path: pathlib.Path) -> None:
  with path.open("w", newline="") as file:
    names = list({name: None for row in rows for name in row})
    writer = csv.DictWriter(file, names)
    writer.writeheader()
    writer.writerows(rows)


def _read(path: pathlib.Path) -> dict[str, dict[str, Any]]:
  """Returns the rows of a file that `measure_all` has written, by name."""
  with path.open(newline="") as file:
    rows = list(csv.DictReader(file))
  words = {"family", "name", "game", "vector_form"}
  for row in rows:
    for name in row.keys() - words:
      row[name] = json.loads(row[name]) if row[name] else None
  return {row["name"]: row for row in rows}


def _begin_table(*columns: str) -> None:
  print(f"\n| {' | '.join(columns)} |\n" + "| --- " * len(columns) + "|")


def _print_tables(rows: list[dict[str, Any]], seconds: float) -> None:
  """Prints the measurements, and estimates of the largest game of each family, in Markdown."""
  columns = "game", "leaves", "infosets", "compiling", "memory", "iteration"
  _begin_table(*columns, "OpenSpiel's C++", "to 1e-3", "to 1e-6")
  for row in rows:
    theirs = row.get("open_spiel_microseconds")
    cells = [
      row["name"],
      f"{row['leaves']:,}",
      f"{row['infosets']:,}",
      _shown(row["compile_seconds"]),
      f"{row['megabytes']:z,.3g} MB" if row["megabytes"] < 1000 else f"{row['megabytes']:z,.0f} MB",
      _shown(row["microseconds"] / 1e6),
      "" if theirs is None else f"{theirs / row['microseconds']:z,.0f} times",
      *(_shown(row[_column(target)]) for target in _TARGETS),
    ]
    print(f"| {' | '.join(cells)} |")
  sizes_of = "leaves", "GiB", "estimate_size"
  _begin_table(
    "family", f"largest in {_GIBIBYTES} GiB, by estimate", *sizes_of, "the next", *sizes_of
  )
  for family, members in FAMILIES.items():
    sizes = _estimated_gibibytes(family, rows)
    fitting = sum(size <= _GIBIBYTES for size in sizes)
    cells = [family]
    for index in (fitting - 1, fitting):
      known = sizes and 0 <= index < len(members)
      member = members[index] if known else None
      cells += (
        [member.name, f"{member.leaves:,}", f"{sizes[index]:z,.3g}", _estimated(member, seconds)]
        if member
        else [""] * 4
      )
    print(f"| {' | '.join(cells)} |")


@functools.cache
def _estimate(game: str, seconds: float) -> spiel_cfr.games.SizeEstimate:
  return spiel_cfr.estimate_size(game, seconds=min(seconds, _ESTIMATE_SECONDS))


def _estimated(member: Member, seconds: float) -> str:
  """Returns the GiB of `estimate_size`; an empty string in vector form, for which it is not made."""
  if member.vector_form:
    return ""
  return f"{_estimate(member.game, seconds).bytes / 2**30:z.2g}"


def _print_predictions(rows: list[dict[str, Any]], seconds: float) -> None:
  """Prints the estimates of `estimate_size` as multiples of the real sizes, for games with a list of leaves."""
  _begin_table(
    "game",
    "leaves, estimated / real",
    "infosets, estimated / real",
    "memory, compiled, estimated / peak",
  )
  for row in rows:
    # Rows read from a file have strings.
    if str(row["vector_form"]) == "True":
      continue
    size = _estimate(row["game"], seconds)
    cells = [row["name"]]
    for guess, real in (
      (size.terminals, row["leaves"]),
      (sum(size.infosets), row["infosets"]),
      (size.bytes, row["megabytes"] * 1e6),
    ):
      cells.append(f"{guess / real:z.2f}")
    print(f"| {' | '.join(cells)} |")


def _estimated_gibibytes(family: str, rows: list[dict[str, Any]]) -> list[float]:
  """Returns the memory of each game of a family, extrapolated from the largest measured game by leaves."""
  measured = [row for row in rows if row["family"] == family]
  if not measured:
    return []
  per_leaf = measured[-1]["megabytes"] * 1e6 / 2**30 / measured[-1]["leaves"]
  return [per_leaf * member.leaves for member in FAMILIES[family]]


def _shown(seconds: float | None) -> str:
  """Returns the text of a time with its unit; "not in time" for None."""
  if seconds is None:
    return "not in time"
  for unit, length in (("s", 1.0), ("ms", 1e-3)):
    if seconds >= length:
      return f"{seconds / length:z.3g} {unit}"
  return f"{seconds * 1e6:z.3g} us"


@draws
def _draw(rows: list[dict[str, Any]], path: pathlib.Path) -> None:
  figure, grid = pyplot().subplots(2, 3, figsize=(14, 8), layout="constrained")
  for axes, (name, (title, theirs)) in zip(grid.flat, _PANELS.items(), strict=False):
    for index, family in enumerate({row["family"]: None for row in rows}):
      of_family = [row for row in rows if row["family"] == family]
      for column, style in ((name, "o-"), (theirs, "x--")):
        shown = [row.get(column) or math.nan for row in of_family] if column else []
        if any(value == value for value in shown):
          axes.plot([row["leaves"] for row in of_family], shown, style, color=f"C{index}")
      if name == "megabytes":
        # The dotted line is the estimate from the last point on.
        sizes = zip(FAMILIES[family], _estimated_gibibytes(family, rows), strict=True)
        ahead = [(member.leaves, size * 2**30 / 1e6) for member, size in sizes][
          len(of_family) - 1 :
        ]
        axes.plot(*zip(*ahead, strict=True), ":", color=f"C{index}")
        axes.axhline(_GIBIBYTES * 2**30 / 1e6, color="gray", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="leaves", title=title)
    axes.grid(alpha=0.3)
  legend = grid.flat[-1]
  legend.axis("off")
  for index, family in enumerate({row["family"]: None for row in rows}):
    legend.plot([], [], "o-", color=f"C{index}", label=family)
  legend.plot([], [], "x--", color="black", label="OpenSpiel's CFR+ in C++")
  legend.plot([], [], ":", color="black", label="estimated from the last point")
  legend.plot([], [], "-", color="gray", linewidth=1, label=f"{_GIBIBYTES} GiB")
  legend.legend(loc="center", frameon=False)
  save(figure, path, 120)


if __name__ == "__main__":
  print(json.dumps(measure(**json.loads(sys.argv[1]))))
