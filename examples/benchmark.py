r"""Measures the speed of the library and of OpenSpiel, as ratios of times in one run: medians over interleaved rounds.

    python examples/benchmark.py
    python examples/benchmark.py --only=iterations --games=leduc

The parts:

- `iterations`: an iteration of CFR+, all players, against OpenSpiel in C++ and Python, the library's leaf rows and the
  streaming floor;
- `solvers`: an iteration of the library's solvers against CFR+;
- `sampling`: Monte Carlo CFR against OpenSpiel's;
- `states`: Monte Carlo CFR on games too large to compile, from the first iteration on, against OpenSpiel's;
- `evaluation`: NashConv against OpenSpiel's;
- `compiling`: compiling against a walk through OpenSpiel's states that does nothing else;
- `endgames`: hold'em in vector form against dense matrix products and OpenSpiel's list of deals;
- `start`: the first and the second start of Python, with one iteration on Leduc;
- `shards`, only if named: a turn endgame on threads and on processes;
- `scaling`, only if named: the growth of costs with the size of games, with a picture.

    python examples/benchmark.py --only=scaling --most_leaves=1e6 --picture=results/scaling.png

`endgames` takes endgames with random reaches, or files in the LibratusEndgames format:

    python examples/benchmark.py --only=endgames --river=subgame3.txt --turn=subgame1.txt

The streaming floor is the time to read all payoffs, and the regret, strategy, reach and average of every sequence, at
the speed with which this machine reads memory of that size.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

# Set before NumPy is imported: one thread of NumPy is compared with one of ours.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from results import Step, median_seconds, writable

import numba
import numpy as np
import numpy.typing as npt
import pyspiel
import scaling
from absl import app, flags
from named_solvers import SOLVERS
from open_spiel.python.algorithms import cfr as open_spiel_cfr
from open_spiel.python.algorithms import exploitability as open_spiel_exploitability
from open_spiel.python.algorithms import external_sampling_mccfr as open_spiel_external

import spiel_cfr
from spiel_cfr import policies
from spiel_cfr.games import EnumeratedGame
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.walk import enumerate_game
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.poker import bet_filters
from spiel_cfr.poker.betting_tree import NodeKind

GAMES = {
  "kuhn": "kuhn_poker",
  "leduc": "leduc_poker",
  "goofspiel 5": "goofspiel(num_cards=5,imp_info=True,points_order=descending)",
  "liar's dice 1x6": "liars_dice",
  "leduc 3 players": "leduc_poker(players=3)",
}
_GAMES = flags.DEFINE_list("games", list(GAMES), "games to measure")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "rounds of timing", lower_bound=1)
_SECONDS = flags.DEFINE_float("seconds", 0.2, "approximate seconds of each timing", 0.001)

_PARTS: dict[str, Callable[[], None]] = {}


def part(function: Callable[[], None]) -> Callable[[], None]:
  """Registers a part of the benchmark under its function's name."""
  _PARTS[function.__name__] = function
  return function


def medians(steps: dict[str, Step]) -> dict[str, float]:
  """Returns the median seconds of one repetition of each step; steps take turns in each round."""
  return median_seconds(steps, _ROUNDS.value, _SECONDS.value)


def repeat(function: Callable[..., object], *arguments: Any) -> Step:
  """Returns a step that repeats a call."""

  def step(count: int) -> None:
    for _ in range(count):
      function(*arguments)

  return step


def show(title: str, timings: dict[str, float], base: str) -> None:
  """Prints times, and their ratios to the time of `base`."""
  print(f"\n{title}")
  for name, seconds in timings.items():
    print(f"  {name:34} {seconds * 1e6:z14,.2f} us {seconds / timings[base]:z12,.2f}", flush=True)


def compiled(name: str) -> EnumeratedGame:
  """Compiles a game of the list, or one given by OpenSpiel's string."""
  game = spiel_cfr.compile_game(GAMES.get(name, name), vector_form=False)
  assert isinstance(game, EnumeratedGame)
  return game


@numba.njit(fastmath=True)
def read(array: npt.NDArray[np.float64], times: int) -> float:
  """Reads an array several times, as fast as the machine can."""
  total = 0.0
  for _ in range(times):
    for index in range(array.size):
      total += array[index]
  return total


def read_seconds(num_bytes: int) -> float:
  """Returns the seconds in which this machine reads an array of this size for the second time."""
  array = np.ones(num_bytes // 8)
  return medians({"read": lambda times: read(array, times)})["read"]


def with_leaf_rows(game: EnumeratedGame) -> EnumeratedGame:
  """Returns the game with its payoffs as leaf rows, the plainest form."""
  sequences, payoffs = [], []
  for player in range(game.num_players):
    own, others, values = game.payoff.leaves(player)
    sequences.append(np.roll(np.vstack([own, others]), player, axis=0))
    payoffs.append(np.outer(values, np.arange(game.num_players) == player))
  payoff = LeafRows.build(np.hstack(sequences), np.vstack(payoffs), game.treeplexes)
  return game.with_payoff(payoff)


@part
def iterations() -> None:
  columns = ["OpenSpiel C++", "OpenSpiel Python", "spiel_cfr, leaf rows"]
  table = [f"\n| game | spiel_cfr | {' | '.join(columns)} |", "| --- " * (2 + len(columns)) + "|"]
  for name in _GAMES.value:
    game = compiled(name)
    ours = spiel_cfr.CFRPlusSolver(game)
    theirs = pyspiel.CFRPlusSolver(game.game)
    steps: dict[str, Step] = {
      "spiel_cfr": ours.run,
      "OpenSpiel C++": repeat(theirs.evaluate_and_update_policy),
    }
    if game.payoff.form != LeafRows.form:
      steps["spiel_cfr, leaf rows"] = spiel_cfr.CFRPlusSolver(with_leaf_rows(game)).run
    if game.num_states < 50_000:
      python = open_spiel_cfr.CFRPlusSolver(game.game)
      steps["OpenSpiel Python"] = repeat(python.evaluate_and_update_policy)
    timings = medians(steps)
    timings["streaming floor"] = read_seconds(game.payoff.num_bytes + 4 * 8 * game.end)
    show(
      f"one iteration of CFR+ on {game.game_string}: time, and ratio to ours",
      timings,
      "spiel_cfr",
    )
    base = timings["spiel_cfr"]
    cells = [times(timings[column] / base) if column in timings else "" for column in columns]
    table.append(f"| {name} | {base * 1e6:z.3g} us | {' | '.join(cells)} |")
  print("\n".join(table))


def times(ratio: float) -> str:
  """Writes a ratio in words."""
  return f"{ratio:z,.0f} times" if ratio >= 10 else f"{ratio:z.1f} times"


@part
def solvers() -> None:
  for name in _GAMES.value:
    game = compiled(name)
    if game.num_players > 2:
      continue
    names = [solver for solver in SOLVERS if not solver.startswith("open_spiel")]
    timings = medians({solver: SOLVERS[solver](game, 1000).run for solver in names})
    show(f"one iteration on {game.game_string}: time, and ratio to CFR+", timings, "cfr+")


@part
def sampling() -> None:
  for name in _GAMES.value:
    game = compiled(name)
    solver = spiel_cfr.ExternalSamplingSolver(game)
    # Later iterations reach a part of the game only, and cost less.
    solver.run(10_000)
    timings = medians(
      {
        "spiel_cfr": solver.run,
        "spiel_cfr, outcome sampling": spiel_cfr.OutcomeSamplingSolver(game).run,
        "spiel_cfr, chance sampling": spiel_cfr.mccfr.ChanceSamplingSolver(game).run,
        "spiel_cfr, average strategy": spiel_cfr.mccfr.AverageStrategySamplingSolver(game).run,
        "OpenSpiel C++": repeat(pyspiel.ExternalSamplingMCCFRSolver(game.game).run_iteration),
        "OpenSpiel C++, outcome sampling": repeat(
          pyspiel.OutcomeSamplingMCCFRSolver(game.game).run_iteration
        ),
        "OpenSpiel Python": repeat(open_spiel_external.ExternalSamplingSolver(game.game).iteration),
      }
    )
    show(
      f"one iteration of external sampling on {game.game_string}: time, and ratio to ours",
      timings,
      "spiel_cfr",
    )


LARGE_GAMES = {"liars_dice(numdice=2)": 20, "leduc_poker(players=4)": 300, "phantom_ttt": 1}


@part
def states() -> None:
  spiel_cfr.ExternalSamplingSolver("kuhn_poker", engine="states").run(1)
  for name, count in LARGE_GAMES.items():
    game = pyspiel.load_game(name)
    times: dict[str, list[float]] = {}
    for seed in range(_ROUNDS.value):
      ours = spiel_cfr.ExternalSamplingSolver(game, seed=seed, engine="states")
      theirs = open_spiel_external.ExternalSamplingSolver(game)
      start = time.perf_counter()
      ours.run(count)
      times.setdefault("spiel_cfr", []).append((time.perf_counter() - start) / count)
      start = time.perf_counter()
      for _ in range(count):
        theirs.iteration()
      times.setdefault("OpenSpiel Python", []).append((time.perf_counter() - start) / count)
    timings = {label: statistics.median(column) for label, column in times.items()}
    show(
      f"an iteration of the first {count} on {name}: time, and ratio to ours",
      timings,
      "spiel_cfr",
    )


@part
def evaluation() -> None:
  for name in _GAMES.value:
    game = compiled(name)
    if game.num_states > 50_000:
      continue
    solver = spiel_cfr.CFRPlusSolver(game)
    solver.run(100)
    policy, in_cpp = solver.average_policy(), solver.tabular_average_policy()
    steps = {
      "spiel_cfr, of the solver": repeat(solver.nash_conv),
      "spiel_cfr, of a TabularPolicy": repeat(spiel_cfr.nash_conv, game, policy),
      "OpenSpiel Python": repeat(open_spiel_exploitability.nash_conv, game.game, policy),
      "OpenSpiel C++": repeat(pyspiel.nash_conv, game.game, in_cpp),
    }
    show(
      f"NashConv on {game.game_string}: time, and ratio to ours",
      medians(steps),
      "spiel_cfr, of the solver",
    )


def bare_walk(game: pyspiel.Game) -> None:
  """Visits all states depth first, and only calls the methods that compiling needs."""
  stack = [game.new_initial_state()]
  while stack:
    state = stack.pop()
    if state.is_terminal():
      state.returns()
    elif state.is_chance_node():
      stack.extend([state.child(action) for action, _ in state.chance_outcomes()])
    else:
      state.information_state_string()
      stack.extend([state.child(action) for action in state.legal_actions()])


@part
def compiling() -> None:
  for name in _GAMES.value:
    game = spiel_cfr.games.load_game(GAMES.get(name, name))
    steps = {
      "bare walk": repeat(bare_walk, game),
      "enumerate_game": repeat(enumerate_game, GameView(game), 10**9, 10**11),
      "compile_game": repeat(spiel_cfr.compile_game, game),
    }
    show(f"walking {game}: time, and ratio to a bare walk", medians(steps), "bare walk")


_RIVER = flags.DEFINE_string(
  "river", None, "file of a river endgame in the LibratusEndgames format"
)
_TURN = flags.DEFINE_string("turn", None, "file of a turn endgame in the LibratusEndgames format")


def endgame(path: str | None, board: str, num_hands: int = 1326) -> pyspiel.Game:
  """Loads an endgame, or makes one with random reaches of `num_hands` hands, minus the hands that the board blocks."""
  if path is not None:
    return spiel_cfr.load_endgame(path).load()
  rng = np.random.default_rng(0)
  reaches = rng.random((2, 1326))
  reaches[:, rng.permutation(1326)[num_hands:]] = 0.0
  return spiel_cfr.poker.Endgame(board, 500, reaches).load()


def dense_cfr_plus(game: spiel_cfr.poker.PublicGame) -> Step:
  """Returns CFR+ on a river endgame in plain NumPy: showdowns and folds are products with matrices over hands."""
  tree, hands, strengths = (
    game.tree,
    *(getattr(game.tree.boards[0], name) for name in ("hands", "strengths")),
  )
  first, second = (tree.deal.hands[numbers] for numbers in hands)
  apart = ~(first[:, None, :, None] == second[None, :, None, :]).any(axis=(2, 3))
  weights = apart * np.outer(*(tree.deal.reaches[player, hands[player]] for player in (0, 1)))
  fold = weights / tree.deal.total
  showdown = fold * np.sign(strengths[0][:, None] - strengths[1])
  terminals: list[tuple[npt.NDArray[np.float64], list[list[int]], npt.NDArray[np.float64]]] = []
  for kind, matrix in ((NodeKind.FOLD, fold), (NodeKind.SHOWDOWN, showdown)):
    nodes = tree.on_board(0, kind)
    above = [
      [game.layout.sequences_above(player, tree.node_at(0, node))[0] for node in nodes]
      for player in (0, 1)
    ]
    payoffs = np.array([tree.nodes[node].payoff for node in nodes])
    terminals.append((matrix, above, payoffs[:, None]))
  regret, average = np.zeros(game.end), np.zeros(game.end)
  strategy = policies.uniform(game)
  sequence = policies.sequence_form(game, strategy)
  count = 0

  def iterate() -> None:
    nonlocal count
    count += 1
    for player, tree in enumerate(game.treeplexes):
      lanes = [np.arange(len(numbers)) for numbers in hands]
      utility = np.zeros(game.end)
      for matrix, above, payoffs in terminals:
        reach = sequence[np.add.outer(above[1 - player], lanes[1 - player])]
        values = payoffs * (reach @ matrix.T if player == 0 else -(reach @ matrix))
        for row, value in zip(above[player], values, strict=True):
          utility[row : row + len(value)] += value
      for rows, infosets in reversed(list(tree.infoset_groups())):
        value = (strategy[rows] * utility[rows]).sum(axis=0)
        regret[rows] = np.maximum(regret[rows] + utility[rows] - value, 0)
        total = regret[rows].sum(axis=0)
        shares = regret[rows] / np.where(total > 0, total, 1)
        strategy[rows] = np.where(total > 0, shares, 1 / len(rows))
        np.add.at(utility, tree.parent[infosets], value)
      players_part = slice(tree.root, tree.end)
      average[players_part] += count * sequence[players_part]
      for rows, infosets in tree.infoset_groups():
        sequence[rows] = sequence[tree.parent[infosets]] * strategy[rows]

  return repeat(iterate)


@part
def endgames() -> None:
  river_game, turn_game = endgame(_RIVER.value, "4s8hTc9h2s"), endgame(_TURN.value, "7s9h9cTc")
  river = spiel_cfr.poker.compile_public_game(river_game, bet_filters.few_bets)
  solver = spiel_cfr.CFRPlusSolver(river)
  steps = {
    "spiel_cfr": solver.run,
    "spiel_cfr, DCFR": spiel_cfr.DCFRSolver(river).run,
    "dense matrices in NumPy": dense_cfr_plus(river),
  }
  show(
    f"one iteration of CFR+ on a river endgame\n{river}",
    medians(steps),
    "spiel_cfr",
  )

  turn = spiel_cfr.poker.compile_public_game(turn_game, bet_filters.few_bets)
  steps = {"river": solver.run, "turn": spiel_cfr.CFRPlusSolver(turn).run}
  for name, options in {"two threads": {"num_threads": 2}, "float32": {"dtype": "float32"}}.items():
    other = spiel_cfr.poker.compile_public_game(turn_game, bet_filters.few_bets, **options)  # type: ignore[arg-type]
    steps[f"turn, {name}"] = spiel_cfr.CFRPlusSolver(other).run
  show(f"one iteration of CFR+ on a turn endgame\n{turn}", medians(steps), "river")

  root = turn_game.new_initial_state()
  steps = {
    "OpenSpiel lists the deals": repeat(root.chance_outcomes),
    "compile_public_game, turn": repeat(
      spiel_cfr.poker.compile_public_game, turn_game, bet_filters.few_bets
    ),
    "compile_public_game, river": repeat(
      spiel_cfr.poker.compile_public_game, river_game, bet_filters.few_bets
    ),
  }
  show("compiling endgames", medians(steps), "OpenSpiel lists the deals")

  print("\npeak memory of a process that solves the turn endgame, MB")
  for dtype in ("float64", "float32"):
    program = (
      "import sys, spiel_cfr; from spiel_cfr.poker import bet_filters;"
      "import pyspiel; game = pyspiel.load_game(sys.stdin.read());"
      f"game = spiel_cfr.poker.compile_public_game(game, bet_filters.few_bets, dtype='{dtype}');"
      "solver = spiel_cfr.DCFRSolver(game); solver.run(2); solver.nash_conv();"
      "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'));"
      "print(round(game.memory_estimate() / 1e6), int(peak.split()[1]) // 1000)"
    )
    output = subprocess.run(
      [sys.executable, "-c", program],
      check=True,
      input=str(turn_game),
      capture_output=True,
      text=True,
    ).stdout
    estimate, peak = output.split()
    print(f"  {dtype}: {peak}, of which {estimate} were estimated for solver and game")


@part
def start() -> None:
  program = "import spiel_cfr; spiel_cfr.CFRPlusSolver('leduc_poker').run(1)"
  with tempfile.TemporaryDirectory() as folder:
    environment = os.environ | {"NUMBA_CACHE_DIR": folder}
    timings = {}
    for name in ("first start", "second start", "third start"):
      begin = time.perf_counter()
      subprocess.run([sys.executable, "-c", program], check=True, env=environment)
      timings[name] = time.perf_counter() - begin
  show("starting Python, importing, compiling Leduc, one iteration", timings, "second start")


def shards() -> None:
  """Times a turn endgame on threads and on Ray processes."""
  import ray

  # One core for the solver on one process, two for that on two.
  ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
  game = endgame(_TURN.value, "7s9h9cTc", _HANDS.value)
  plain, threaded = (
    spiel_cfr.poker.compile_public_game(
      game, bet_filters.few_bets, partitioned=True, num_threads=num_threads
    )
    for num_threads in (1, 2)
  )
  with spiel_cfr.runs.RayExecutor() as executor:
    timings = medians(
      {
        "1 thread": spiel_cfr.CFRPlusSolver(plain).run,
        "2 threads": spiel_cfr.CFRPlusSolver(threaded).run,
        "1 process": spiel_cfr.CFRPlusSolver(spiel_cfr.games.shard(plain, executor, 1)).run,
        "2 processes": spiel_cfr.CFRPlusSolver(spiel_cfr.games.shard(plain, executor, 2)).run,
      }
    )
  show(f"one iteration of CFR+ on a turn endgame\n{plain}", timings, "1 thread")
  print("\n| | milliseconds | of one thread |\n| --- | --- | --- |")
  for name, seconds in timings.items():
    print(f"| {name} | {1e3 * seconds:z.0f} | {seconds / timings['1 thread']:z.2f} |")


_HANDS = flags.DEFINE_integer(
  "hands", 400, "hands of each player in the endgame of `shards`", 10, 1326
)
_MOST_LEAVES = flags.DEFINE_float(
  "most_leaves", 1e5, "largest number of leaves of the games of `scaling`", 1
)
_MOST_LEAVES_OF_OPEN_SPIEL = flags.DEFINE_float(
  "most_leaves_of_open_spiel",
  2e6,
  "largest number of leaves of the games that OpenSpiel's C++ also solves",
  1,
)
_SECONDS_EACH = flags.DEFINE_float(
  "seconds_each", 60, "time limit to each exploitability of a game of `scaling`, in seconds", 0.001
)
_MOST_MINUTES = flags.DEFINE_float(
  "most_minutes", 10, "time limit of a game of `scaling`, in minutes", 0.001
)
_MOST_GIGABYTES = flags.DEFINE_float(
  "most_gigabytes", 4, "memory limit for compiling a game of `scaling`, in GB", 0.001
)
_PICTURE = flags.DEFINE_string("picture", "results/scaling.png", "file of the picture of `scaling`")
_KEEP = flags.DEFINE_bool(
  "keep", False, "keep the measurements in the CSV file beside the picture of `scaling`"
)


def growth() -> None:
  """Measures the growth of costs with the size of games."""
  scaling.measure_all(
    _MOST_LEAVES.value,
    _SECONDS_EACH.value,
    _MOST_LEAVES_OF_OPEN_SPIEL.value,
    _MOST_MINUTES.value,
    _MOST_GIGABYTES.value,
    writable(_PICTURE.value),
    _KEEP.value,
  )


# Long parts, which run only if they are named.
_ALONE = {"scaling": growth, "shards": shards}
_ONLY = flags.DEFINE_list("only", list(_PARTS), "parts to run")


def main(arguments: list[str]) -> None:
  if len(arguments) > 1 or not set(_ONLY.value) <= set(_PARTS | _ALONE):
    raise app.UsageError(f"the parts are {', '.join(_PARTS | _ALONE)}")
  for name in _ONLY.value:
    (_PARTS | _ALONE)[name]()


if __name__ == "__main__":
  app.run(main)
