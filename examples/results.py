"""Common parts of the example programs: start, pictures, tables, choice of games. This is a module, not a program."""

import os
import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
  # Programs import this first. Until they start, Ctrl-C ends them without a traceback of imports.
  signal.signal(signal.SIGINT, lambda *_: (os.write(2, b"interrupted\n"), os._exit(130)))

import functools
import hashlib
import importlib.util
import pathlib
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec

from absl import app, flags

import spiel_cfr
from spiel_cfr._util.files import check_writable
from spiel_cfr.poker import ranges

# The games on which solvers are compared, by short names.
NAMED_GAMES = {
  "kuhn": "kuhn_poker",
  "leduc": "leduc_poker",
  "liars_dice_4": "liars_dice(dice_sides=4)",
  "liars_dice_6": "liars_dice(dice_sides=6)",
  "goofspiel_4": "goofspiel(imp_info=True,num_cards=4,points_order=descending)",
  "goofspiel_5": "goofspiel(imp_info=True,num_cards=5,points_order=descending)",
  "battleship_2x3": (
    "battleship(board_height=2,board_width=3,ship_sizes=[2],ship_values=[2],num_shots=2,"
    "allow_repeated_shots=False)"
  ),
}
_LONGEST = 80
# Function that repeats a step a given number of times.
Step = Callable[[int], object]
_Arguments = ParamSpec("_Arguments")


def start(main: Callable[[], None]) -> None:
  """Runs a program that has flags only; Ctrl-C and errors of the library or the disk end it with one line."""

  def checked(arguments: list[str]) -> None:
    if len(arguments) > 1:
      raise app.UsageError(f"unknown arguments: {arguments[1:]}")
    try:
      if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
      main()
    except KeyboardInterrupt:
      print("interrupted", file=sys.stderr)
      sys.exit(130)
    except (spiel_cfr.errors.SpielCFRError, OSError) as error:
      sys.exit(f"error: {error}")

  app.run(checked)


def draws(draw: Callable[_Arguments, None]) -> Callable[_Arguments, None]:
  """Decorates a function that draws: without matplotlib it does nothing, and the program says so at the start."""
  if importlib.util.find_spec("matplotlib"):
    return draw
  _announce_no_picture()
  return lambda *_, **__: None


@functools.cache
def _announce_no_picture() -> None:
  def announce() -> None:
    wanted = getattr(flags.FLAGS, "plot", True) and getattr(flags.FLAGS, "picture", None) != ""
    if wanted:
      print(
        "There will be no picture: matplotlib is not installed (pip install matplotlib).",
        file=sys.stderr,
      )

  # Flags are parsed by then.
  app.call_after_init(announce)


def pyplot() -> Any:
  """Returns matplotlib's pyplot, which writes files and opens no windows."""
  import matplotlib

  matplotlib.use("Agg")
  import matplotlib.pyplot as plt

  return plt


def save(figure: Any, path: str | pathlib.Path, dpi: int) -> None:
  """Writes a picture, makes its folder if it is missing, and prints its path."""
  pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
  figure.savefig(path, dpi=dpi)
  pyplot().close(figure)
  print(f"Wrote {path}")


def median_seconds(
  steps: Mapping[str, Step],
  rounds: int,
  seconds: float,
  clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
  """Returns the median seconds of one repetition of each step, by this clock.

  Steps take turns in each round, so that other load affects all of them. Each timing takes about `seconds` seconds.
  """
  counts = {}
  for name, step in steps.items():
    step(1)
    start = clock()
    step(1)
    counts[name] = max(1, int(seconds / max(clock() - start, 1e-7)))
  times: dict[str, list[float]] = {name: [] for name in steps}
  for _ in range(rounds):
    for name, step in steps.items():
      start = clock()
      step(counts[name])
      times[name].append((clock() - start) / counts[name])
  return {name: statistics.median(timings) for name, timings in times.items()}


def river_endgame() -> tuple[spiel_cfr.poker.Endgame, str]:
  """Returns the built-in river endgame of hold'em, and its title."""
  board = "4s8hTc9h2s"
  first, second = "22+,A2s+,KTs+,QTs+,JTs,ATo+", "22+,A8s+,K9s+,Q9s+,J9s+,T9s"
  return ranges.endgame(first, second, board=board, pot=500, stack=19750), f"river {board}"


def turn_endgame() -> tuple[spiel_cfr.poker.Endgame, str]:
  """Returns the built-in turn endgame of hold'em, with fewer hands and two equivalent suits, and its title."""
  board = "9s7s4h2s"
  first, second = "99+,ATs+,KQs,T8s,AKo", "88+,A9s+,KJs+,JTs,AQo+"
  return ranges.endgame(first, second, board=board, pot=500, stack=1250), f"turn {board}"


def small_turn(stack: int) -> spiel_cfr.poker.Endgame:
  """Returns a hold'em turn with twelve hands for each player, a pot of 500 chips, and `stack` chips behind."""
  first = "AhKh,AsKd,QdQc,JsTs,Tc9h,9c9d,8h8d,5s5h,AdTd,KcQc,6d5d,AsJs"
  second = "AcKc,AdQd,KhQh,QhQs,JcTc,9h8h,8s8c,7c7h,6s5s,AhTh,JdJh,Kd9d"
  return ranges.endgame(first, second, board="9s7s4h2s", pot=500, stack=stack)


def file_name(kind: str, game: str, suffix: str) -> str:
  """Returns the name of a file, which is different for each game string.

  Args:
    kind: the content of the file.
    game: OpenSpiel's string of the game.
    suffix: the file's suffix, such as ".png".
  """
  game = game.removesuffix("()")
  words = re.sub(r"[^a-zA-Z0-9.+-]+", "_", game).strip("_")
  name = f"{kind}_{words}"
  if len(name) > _LONGEST:
    # The part that is cut off may be the only difference between two games.
    name = f"{name[:_LONGEST]}_{hashlib.sha256(game.encode()).hexdigest()[:8]}"
  return name + suffix


def writable(path: str | pathlib.Path) -> pathlib.Path:
  """Returns a path; ends the program if no file can be written there."""
  path = pathlib.Path(path)
  try:
    check_writable(path)
  except OSError as error:
    sys.exit(f"error: {error}")
  return path


def panels(count: int, columns: int) -> tuple[Any, Any, Any]:
  """Returns pyplot, a figure, and its grid of at least `count` panels."""
  plt, rows = pyplot(), -(-count // columns)
  size = 3.1 * columns, 3.2 * rows
  return plt, *plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)


def markdown(head: str, columns: Sequence[str], rows: Mapping[str, Iterable[str]]) -> str:
  """Returns a table in Markdown."""
  lines = [f"| {head} | {' | '.join(columns)} |", f"| --- {'| ---: ' * len(columns)}|"]
  lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
  return "\n".join(lines) + "\n"


def chosen(games: Iterable[str], numbers: Sequence[str]) -> list[str]:
  """Returns the games of these numbers, from 0; ends the program if a number is wrong."""
  names = list(games)
  for number in numbers:
    if not number.isdecimal() or int(number) >= len(names):
      sys.exit(f"error: there is no game {number!r}; they are numbered from 0 to {len(names) - 1}.")
  return [names[int(number)] for number in numbers]
