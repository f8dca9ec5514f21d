r"""Compares this library with postflop-solver, another solver of hold'em: the same trees, ranges and bets.

    python examples/postflop_solver.py                     # prints what docs/postflop_solver.jsonl has, and draws it
    python examples/postflop_solver.py --trees=river,turn  # measures this library again on two trees
    python examples/postflop_solver.py --trees=turn --threads=2  # two threads; the file keeps one thread

The file contains the measurements of both solvers, with the processor, the versions and the compiler. With `--program`,
both solvers are measured, a few iterations of each in turn, and the file is written again. The program is a harness
around postflop-solver; `Peer` has the lines that it reads and prints.

Seconds are CPU seconds, summed over threads. The time of an iteration is the smallest over the periods between two
evaluations, since other programs disturb this period least. The seconds to a target are this time multiplied by the
number of iterations. Between two evaluations, the logarithm of exploitability is interpolated.
"""

from results import draws, markdown, panels, save, start, writable

import contextlib
import json
import math
import pathlib
import subprocess
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from absl import flags

import spiel_cfr
from spiel_cfr import poker
from spiel_cfr._util import environment
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.poker import ranges

_RECORD = pathlib.Path(__file__).parent.parent / "docs" / "postflop_solver.jsonl"
_THEIRS, _OURS = "postflop-solver", "spiel_cfr"


class Tree(NamedTuple):
  """A game: its board, bets, raises, ranges and chips; the grammar is that of `poker.bet_sizes`.

  Ranges are those of postflop-solver's README.
  """

  board: str
  bets: str = "50%,100%,a"
  raises: str = "100%,a"
  oop: str = "66+,A8s+,A5s-A4s,AJo+,K9s+,KQo,QTs+,JTs,96s+,85s+,75s+,65s,54s"
  ip: str = "QQ-22,AQs-A2s,ATo+,K5s+,KJo+,Q8s+,J8s+,T7s+,96s+,86s+,75s+,64s+,53s+"
  pot: int = 200
  stack: int = 900


TREES = {
  "river": Tree("Td9d6hQc2s"),
  "turn": Tree("Td9d6hQc"),
  "flop": Tree("Td9d6h"),
  "monotone flop": Tree("9d8d7d"),
  "river three sizes": Tree("KsTs7d4d2d", "33%,75%,a", "2.5x,a"),
  "river geometric": Tree("AhKdJc9s9h", "e", "3x", pot=60, stack=970),
  "river shallow": Tree("7c7d5s4h3c", "50%", "a", pot=400, stack=150),
  "turn one size": Tree("AsKd7h2c", "60%", "2.5x"),
  "turn three hearts": Tree("QhJh8h3s", "33%,a", "a"),
  "turn geometric": Tree("6s5s4d4c", "2e", "e", stack=500),
  "flop narrow": Tree("AsKs5d", "50%", "a", "QQ-99,AQs+,KQs", "JJ-77,ATs+,KJs+,QJs"),
  "flop low": Tree(
    "8h7h6c", "75%", "60%", "AA-TT,AKs,T9s,98s", "TT-66,A8s+,T9s,87s,76s", stack=500
  ),
}
# Trees in the table of speed and in the picture, if any is shown; values are compared on all.
_TIMED = ("river", "turn", "flop", "monotone flop")
# The iterations after which exploitability is evaluated.
_MARKS = [10, 20, 30, 40, 60, 80, 100, 130, 160, 200, 250, 320, 400, 500, 640, 800, 1000, 1280]

_TREES = flags.DEFINE_list("trees", [], f"trees to measure, of {', '.join(TREES)}")
_TARGET = flags.DEFINE_float("target", 0.1, "exploitability at the end, in percent of the pot", 0.0)
_PROGRAM = flags.DEFINE_string("program", None, "harness of postflop-solver, to measure it too")
_THREADS = flags.DEFINE_integer("threads", 1, "threads of each solver, on turns and flops", 1)
_BUILT = flags.DEFINE_string("built", "", "the harness's commit and compiler, for the file")
_PICTURE = flags.DEFINE_string(
  "picture", "results/postflop_solver.png", "file of the picture; empty for none"
)


class Curve(NamedTuple):
  """The measurements of one solver on one tree.

  Attributes:
    tree: name of the tree.
    solver: name of the solver.
    about: dict. The machine and the versions.
    build: CPU seconds until the first iteration; here, until its end.
    memory: bytes of the tree with its strategies, as the solver says.
    points: list of (iterations, CPU seconds of an iteration since the last point, exploitability in percent of
      the pot, OOP's EV in chips).
  """

  tree: str
  solver: str
  about: dict[str, Any]
  build: float
  memory: int
  points: list[tuple[int, float, float, float]]

  @property
  def iteration(self) -> float:
    """CPU seconds of an iteration."""
    return min(seconds for _, seconds, _, _ in self.points)

  def seconds(self, target: float) -> float:
    """Returns the seconds until exploitability stays below a target, in percent of the pot; infinity if it does not."""
    above = [index for index, point in enumerate(self.points) if point[2] > target]
    if not above:
      return self.points[0][0] * self.iteration
    if above[-1] + 1 == len(self.points):
      return math.inf
    (before, _, high, _), (after, _, low, _) = self.points[above[-1] : above[-1] + 2]
    part = math.log(high / target) / math.log(high / low)
    return (before + (after - before) * part) * self.iteration


class Contender(Protocol):
  """A solver of a tree; attributes as in `Curve`."""

  about: dict[str, Any]
  build: float
  memory: int

  def run_to(self, iteration: int) -> float:
    """Runs up to an iteration; returns the CPU seconds of one."""

  def evaluate(self) -> tuple[float, float]:
    """Returns exploitability and OOP's EV, in chips."""


class Ours:
  """DCFR of this library, in float32."""

  def __init__(self, tree: Tree) -> None:
    # Compilation of kernels, once on a machine, is not counted.
    small = ranges.endgame("AA,KK", "QQ", board=tree.board, pot=tree.pot, stack=tree.stack)
    sizes = poker.bet_sizes(tree.bets, tree.raises)
    options: dict[str, Any] = {"dtype": "float32", "merge_suits": True}
    threads: dict[str, Any] = {}
    if _THREADS.value > 1:
      threads = {"partitioned": True, "num_threads": _THREADS.value}
    for partitioned in {False, len(tree.board) < 10}:
      game = poker.compile_public_game(small, sizes, partitioned=partitioned, **options)
      spiel_cfr.DCFRSolver(game).prepare()
    self.about = {**environment.machine(), **environment.versions()}
    self._tree, began = tree, time.process_time()
    endgame = ranges.endgame(tree.oop, tree.ip, board=tree.board, pot=tree.pot, stack=tree.stack)
    self._game = poker.compile_public_game(endgame, sizes, **options, **threads)
    self._solver = spiel_cfr.DCFRSolver(self._game)
    self._solver.run(1)
    self.memory = self._game.memory_estimate()
    self.build = time.process_time() - began

  def run_to(self, iteration: int) -> float:
    count, began = iteration - self._solver.iteration, time.process_time()
    self._solver.run(count)
    return (time.process_time() - began) / count

  def evaluate(self) -> tuple[float, float]:
    values = evaluate(self._game, self._solver.average_sequence_form()).expected_values
    return self._solver.exploitability(), values[0] + self._tree.pot / 2


class Peer:
  """A harness of postflop-solver in float32, which answers lines of text.

  Arguments: OOP's range, IP's range, flop, turn or -, river or -, pot, stack, bets, raises. At first it prints
  "built", wall seconds, CPU seconds, bytes. Then it reads and answers

      step K    "stepped", iterations so far, wall seconds, CPU seconds
      eval      "evaluated", iterations so far, exploitability, OOP's EV minus half of the pot, IP's
  """

  def __init__(self, tree: Tree, program: str) -> None:
    cards = tree.board[:6], tree.board[6:8] or "-", tree.board[8:] or "-"
    arguments = tree.oop, tree.ip, *cards, tree.pot, tree.stack, tree.bets, tree.raises
    self._process = subprocess.Popen(
      ["env", f"RAYON_NUM_THREADS={_THREADS.value}", program, *map(str, arguments)],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )
    self.about = {**environment.machine(), "built": _BUILT.value}
    self._half, self._iteration = tree.pot / 2, 0
    _, self.build, memory = self._answer()[:3]
    self.memory = int(memory)

  def _answer(self) -> list[float]:
    assert self._process.stdout
    line = self._process.stdout.readline()
    if not line:
      raise spiel_cfr.errors.ArgumentError(f"{_PROGRAM.value} ended without an answer.")
    return [float(word) for word in line.split()[1:]]

  def _ask(self, line: str) -> list[float]:
    assert self._process.stdin
    print(line, file=self._process.stdin, flush=True)
    return self._answer()

  def run_to(self, iteration: int) -> float:
    count, self._iteration = iteration - self._iteration, iteration
    return self._ask(f"step {count}")[2] / count

  def evaluate(self) -> tuple[float, float]:
    _, exploitability, value, _ = self._ask("eval")
    return exploitability, value + self._half

  def close(self) -> None:
    """Ends the program."""
    self._process.communicate()


def compare() -> None:
  unknown = set(_TREES.value) - set(TREES)
  if unknown:
    raise spiel_cfr.errors.ArgumentError(f"--trees knows {', '.join(TREES)}, not {unknown}.")
  picture = writable(_PICTURE.value) if _PICTURE.value else None
  curves = read()
  for name in _TREES.value:
    for curve in measure(name):
      curves[name, curve.solver] = curve
      if _PROGRAM.value and _THREADS.value == 1:
        lines = [json.dumps(curve._asdict()) + "\n" for curve in curves.values()]
        _RECORD.write_text("".join(lines))
  chosen = {key: curve for key, curve in curves.items() if key[0] in (_TREES.value or TREES)}
  timed = {key: curve for key, curve in chosen.items() if key[0] in _TIMED} or chosen
  print(table(timed))
  print(values(chosen))
  if picture:
    plot(timed, picture)


def read() -> dict[tuple[str, str], Curve]:
  """Returns the recorded curves, by tree and solver."""
  curves = [Curve(**json.loads(line)) for line in _RECORD.read_text().splitlines()]
  return {(curve.tree, curve.solver): curve for curve in curves}


def measure(name: str) -> Iterator[Curve]:
  """Runs the solvers in turns until both have reached the target; yields their curves after each evaluation."""
  contenders: dict[str, Contender] = {_OURS: Ours(TREES[name])}
  with contextlib.ExitStack() as stack:
    if _PROGRAM.value:
      peer = stack.enter_context(contextlib.closing(Peer(TREES[name], _PROGRAM.value)))
      contenders[_THEIRS] = peer
    curves = {
      solver: Curve(name, solver, contender.about, contender.build, contender.memory, [])
      for solver, contender in contenders.items()
    }
    for mark in _MARKS:
      for solver, contender in list(contenders.items()):
        seconds = contender.run_to(mark)
        exploitability, value = contender.evaluate()
        percent = 100 * exploitability / TREES[name].pot
        curves[solver].points.append((mark, seconds, percent, value))
        yield curves[solver]
        if percent <= _TARGET.value:
          del contenders[solver]


def table(curves: dict[tuple[str, str], Curve]) -> str:
  """Returns the table of speed, in Markdown."""
  rows = {f"{tree}, {solver}": cells(curve) for (tree, solver), curve in curves.items()}
  columns = [*next(iter(rows.values()))]
  return markdown("tree, solver", columns, {name: row.values() for name, row in rows.items()})


def cells(curve: Curve) -> dict[str, str]:
  """Returns a row of the table of speed, by column."""
  done, _, percent, value = curve.points[-1]
  seconds = {target: curve.seconds(target) for target in (2.0, 0.5, 0.1)}
  return {
    f"s to {target:zg} %": three_digits(taken) if math.isfinite(taken) else ""
    for target, taken in seconds.items()
  } | {
    "iterations": f"{done} ({percent:z.2g} %)",
    "ms an iteration": three_digits(1e3 * curve.iteration),
    "build, s": f"{curve.build:z.2g}",
    "MB": three_digits(curve.memory / 1e6),
    "EV of OOP": f"{value:z.2f}",
  }


def three_digits(number: float) -> str:
  """Returns a number rounded to three digits, without an exponent, such as 0.0423 or 1,760."""
  rounded = float(f"{number:z.3g}")
  return f"{rounded:z,.0f}" if rounded >= 1000 else f"{rounded:z.3g}"


def values(curves: dict[tuple[str, str], Curve]) -> str:
  """Returns the table of OOP's EV by both solvers, in Markdown.

  A solver's EV is at most its NashConv, twice its exploitability, from the value of the game.
  """
  rows = {}
  for tree in dict.fromkeys(tree for tree, solver in curves if solver == _THEIRS):
    (*_, gap, ours), (*_, their_gap, theirs) = (
      curves[tree, solver].points[-1] for solver in (_OURS, _THEIRS)
    )
    allowed = 2 * (gap + their_gap) * TREES[tree].pot / 100
    numbers = ours, theirs, abs(ours - theirs), allowed
    rows[tree] = [f"{number:z.3f}" for number in numbers]
  return markdown("tree", ["EV of OOP, here", _THEIRS, "difference", "allowed"], rows)


@draws
def plot(curves: dict[tuple[str, str], Curve], path: pathlib.Path) -> None:
  """Draws exploitability against CPU seconds, a panel for each tree."""
  trees = list(dict.fromkeys(tree for tree, _ in curves))
  _, figure, axes = panels(len(trees), len(trees))
  for tree, axis in zip(trees, axes.flat, strict=True):
    for solver, mark in ((_OURS, "o-"), (_THEIRS, "s--")):
      if (tree, solver) in curves:
        curve = curves[tree, solver]
        seconds = [iterations * curve.iteration for iterations, *_ in curve.points]
        percents = [percent for _, _, percent, _ in curve.points]
        axis.loglog(seconds, percents, mark, label=solver, markersize=3)
    axis.set(title=tree, xlabel="CPU seconds", ylabel="exploitability, % of the pot")
    axis.grid(alpha=0.3)
    axis.legend()
  save(figure, path, 120)


if __name__ == "__main__":
  start(compare)
