r"""Measures speed, always as ratios of things timed in the same run: medians over rounds that take turns.

    python examples/benchmark.py
    python examples/benchmark.py --only=iterations --games=leduc

Parts: `iterations` times a full iteration of CFR+, all players, against OpenSpiel's solvers in C++ and in Python,
against LiteEFG if it is installed, against our own with payoffs in the plainest form, and against the streaming floor;
`solvers` times an iteration of our solvers against CFR+; `sampling` times Monte Carlo CFR against OpenSpiel's; `states`
does so on games too large to compile, from the first iteration on, and times what is left to OpenSpiel's states;
`evaluation` times NashConv against OpenSpiel's; `compiling` times the walk against a bare one; `start` times a first
and a second start of Python with one iteration of Leduc.

The streaming floor is the time that reading what an iteration must touch would take at the speed with which this
machine reads memory of that size: all payoffs, and of every sequence its regret, strategy, reach and average.
"""

import dataclasses
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyspiel
from absl import app, flags
from named_solvers import SOLVERS
from open_spiel.python.algorithms import cfr as open_spiel_cfr
from open_spiel.python.algorithms import exploitability as open_spiel_exploitability
from open_spiel.python.algorithms import external_sampling_mccfr as open_spiel_external

import spiel_cfr
from spiel_cfr.game.compiled import CompiledGame
from spiel_cfr.game.enumerate import enumerate_game
from spiel_cfr.game.payoff import LEAF_ROWS, leaf_rows

GAMES = {
  "kuhn": "kuhn_poker",
  "leduc": "leduc_poker",
  "goofspiel 5": "goofspiel(num_cards=5,imp_info=True,points_order=descending)",
  "liar's dice 1x6": "liars_dice",
  "leduc 3 players": "leduc_poker(players=3)",
}
_GAMES = flags.DEFINE_list("games", list(GAMES), "which of the games")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "how often everything is timed", lower_bound=1)
_SECONDS = flags.DEFINE_float("seconds", 0.2, "about how long each timing of ours takes", 0.001)

Step = Callable[[int], object]
_PARTS: dict[str, Callable[[], None]] = {}


def part(function: Callable[[], None]) -> Callable[[], None]:
  """Registers a part of the benchmark under its function's name."""
  _PARTS[function.__name__] = function
  return function


def medians(steps: dict[str, Step]) -> dict[str, float]:
  """Returns the median seconds that each takes for one repetition; all are timed in turn, round by round."""
  counts = {}
  for name, step in steps.items():
    step(1)
    start = time.perf_counter()
    step(1)
    seconds = max(time.perf_counter() - start, 1e-7)
    counts[name] = max(1, int(_SECONDS.value / seconds))
  times: dict[str, list[float]] = {name: [] for name in steps}
  for _ in range(_ROUNDS.value):
    for name, step in steps.items():
      start = time.perf_counter()
      step(counts[name])
      times[name].append((time.perf_counter() - start) / counts[name])
  return {name: statistics.median(found) for name, found in times.items()}


def repeat(function: Callable[..., object], *arguments: Any) -> Step:
  """Turns a call into something that repeats it."""

  def step(count: int) -> None:
    for _ in range(count):
      function(*arguments)

  return step


def show(title: str, found: dict[str, float], base: str) -> None:
  """Prints times, and how many times as long as `base` each takes."""
  print(f"\n{title}")
  for name, seconds in found.items():
    print(f"  {name:34} {seconds * 1e6:14,.2f} us {seconds / found[base]:12,.2f}", flush=True)


def compiled(name: str) -> CompiledGame:
  """Compiles a game of the list, or one given by OpenSpiel's string."""
  return spiel_cfr.compile_game(GAMES.get(name, name))


@numba.njit(fastmath=True)
def read(array: npt.NDArray[np.float64], times: int) -> float:
  """Reads an array as fast as the machine can, several times."""
  total = 0.0
  for _ in range(times):
    for index in range(array.size):
      total += array[index]
  return total


def read_seconds(num_bytes: int) -> float:
  """Returns how long this machine takes to read so many bytes that it has just read before."""
  array = np.ones(num_bytes // 8)
  return medians({"read": lambda times: read(array, times)})["read"]


def with_leaf_rows(game: CompiledGame) -> CompiledGame:
  """Returns the game with its payoffs in the plainest form."""
  sequences, payoffs = [], []
  for player in range(game.num_players):
    own, others, values = game.payoff.leaves(player)
    sequences.append(np.roll(np.vstack([own, others]), player, axis=0))
    payoffs.append(np.outer(values, np.arange(game.num_players) == player))
  payoff = leaf_rows(np.hstack(sequences), np.vstack(payoffs), game.treeplexes)
  return dataclasses.replace(game, payoff=payoff)


@part
def iterations() -> None:
  for name in _GAMES.value:
    game = compiled(name)
    ours = spiel_cfr.CFRPlusSolver(game)
    theirs = pyspiel.CFRPlusSolver(game.game)
    steps: dict[str, Step] = {
      "spiel_cfr": ours.run,
      "OpenSpiel C++": repeat(theirs.evaluate_and_update_policy),
    }
    if game.payoff.form != LEAF_ROWS:
      steps["spiel_cfr, leaf rows"] = spiel_cfr.CFRPlusSolver(with_leaf_rows(game)).run
    if game.num_states < 50_000:
      python = open_spiel_cfr.CFRPlusSolver(game.game)
      steps["OpenSpiel Python"] = repeat(python.evaluate_and_update_policy)
    lite = lite_efg(game)
    if lite is not None:
      steps["LiteEFG"] = lite
    found = medians(steps)
    found["streaming floor"] = read_seconds(game.payoff.num_bytes + 4 * 8 * game.end)
    show(
      f"one iteration of CFR+ on {game.game_string}, and how many of ours it takes",
      found,
      "spiel_cfr",
    )


def lite_efg(game: CompiledGame) -> Step | None:
  """Returns LiteEFG's CFR+, or None where it is not installed. It writes files to the home folder: a temporary one."""
  try:
    import LiteEFG  # type: ignore[import-not-found]
  except ImportError:
    return None
  home = os.environ.get("HOME", "")
  with tempfile.TemporaryDirectory() as folder:
    os.environ["HOME"] = folder
    try:
      environment = LiteEFG.OpenSpielEnv(game.game, traverse_type="Enumerate", regenerate=False)
      graph = LiteEFG.baselines.CFRplus.graph()
      environment.set_graph(graph)
    finally:
      os.environ["HOME"] = home

  def iterate() -> None:
    graph.update_graph(environment)
    environment.update_strategy(graph.strategy)

  return repeat(iterate)


@part
def solvers() -> None:
  for name in _GAMES.value:
    game = compiled(name)
    if game.num_players > 2:
      continue
    names = [solver for solver in SOLVERS if not solver.startswith("open_spiel")]
    found = medians({solver: SOLVERS[solver](game, 1000).run for solver in names})
    show(f"one iteration on {game.game_string}, and how many of CFR+ it takes", found, "cfr+")


@part
def sampling() -> None:
  for name in _GAMES.value:
    game = compiled(name)
    solver = spiel_cfr.ExternalSamplingSolver(game)
    # Single iterations soon reach only a part of the game, and then cost less.
    solver.run(10_000)
    found = medians(
      {
        "spiel_cfr": solver.run,
        "spiel_cfr, outcome sampling": spiel_cfr.OutcomeSamplingSolver(game).run,
        "spiel_cfr, chance sampling": spiel_cfr.ChanceSamplingSolver(game).run,
        "spiel_cfr, average strategy": spiel_cfr.AverageStrategySamplingSolver(game).run,
        "OpenSpiel C++": repeat(pyspiel.ExternalSamplingMCCFRSolver(game.game).run_iteration),
        "OpenSpiel C++, outcome sampling": repeat(
          pyspiel.OutcomeSamplingMCCFRSolver(game.game).run_iteration
        ),
        "OpenSpiel Python": repeat(open_spiel_external.ExternalSamplingSolver(game.game).iteration),
      }
    )
    show(
      f"one iteration of external sampling on {game.game_string}, and how many of ours it takes",
      found,
      "spiel_cfr",
    )


LARGE_GAMES = {"liars_dice(numdice=2)": 20, "leduc_poker(players=4)": 300, "phantom_ttt": 1}


def bare_traversal(state: pyspiel.State, player: int, rng: random.Random) -> int:
  """Calls what external sampling must ask of states, with uniform strategies; returns how many nodes it visits."""
  nodes = 1
  mover = state.current_player()
  while mover != player:
    if mover == pyspiel.PlayerId.TERMINAL:
      state.player_return(player)
      return nodes
    if mover == pyspiel.PlayerId.CHANCE:
      action = rng.choice(state.chance_outcomes())[0]
    else:
      state.information_state_string()
      action = rng.choice(state.legal_actions())
    state.apply_action(action)
    mover = state.current_player()
    nodes += 1
  state.information_state_string()
  actions = state.legal_actions()
  for action in actions[:-1]:
    nodes += bare_traversal(state.child(action), player, rng)
  state.apply_action(actions[-1])
  return nodes + bare_traversal(state, player, rng)


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
      rng, nodes = random.Random(seed), 0
      start = time.perf_counter()
      while nodes < ours.nodes_touched / 4:
        for player in range(game.num_players()):
          nodes += bare_traversal(game.new_initial_state(), player, rng)
      seconds = (time.perf_counter() - start) * ours.nodes_touched / nodes / count
      times.setdefault("pyspiel alone, for as many nodes", []).append(seconds)
    found = {label: statistics.median(column) for label, column in times.items()}
    show(
      f"an iteration of {name}, the first {count}, and how many of ours it takes",
      found,
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
      f"NashConv on {game.game_string}, and how many of ours it takes",
      medians(steps),
      "spiel_cfr, of the solver",
    )


def bare_walk(game: pyspiel.Game) -> None:
  """Visits all states depth first and asks each for what compiling needs."""
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
    game = spiel_cfr.load_game(GAMES.get(name, name))
    steps = {
      "bare walk": repeat(bare_walk, game),
      "enumerate_game": repeat(enumerate_game, game, 10**9, 10**11),
      "compile_game": repeat(spiel_cfr.compile_game, game),
    }
    show(f"walking {game}, and how many bare walks it takes", medians(steps), "bare walk")


@part
def start() -> None:
  program = "import spiel_cfr; spiel_cfr.CFRPlusSolver('leduc_poker').run(1)"
  with tempfile.TemporaryDirectory() as folder:
    environment = os.environ | {"NUMBA_CACHE_DIR": folder}
    found = {}
    for name in ("first start", "second start", "third start"):
      begin = time.perf_counter()
      subprocess.run([sys.executable, "-c", program], check=True, env=environment)
      found[name] = time.perf_counter() - begin
  show("starting Python, importing, compiling Leduc, one iteration", found, "second start")


_ONLY = flags.DEFINE_list("only", list(_PARTS), "which parts to run")


def main(arguments: list[str]) -> None:
  if len(arguments) > 1 or not set(_ONLY.value) <= set(_PARTS):
    raise app.UsageError(f"the parts are {', '.join(_PARTS)}")
  for name in _ONLY.value:
    _PARTS[name]()


if __name__ == "__main__":
  app.run(main)
