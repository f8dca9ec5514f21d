"""Deep CFR: exploitability against traversals and seconds, with networks and with tables.

  python examples/deep_cfr.py --game=leduc_poker --iterations=100 --num_traversals=1500
  python examples/deep_cfr.py --game=phantom_ttt --engine=states --iterations=10 --num_traversals=200

The second command is for games that can't be compiled: it plays the policy against a uniform opponent. With
--open_spiel, the first command also runs OpenSpiel's Deep CFR, with the same iterations, traversals and network sizes.
A traversal of OpenSpiel's takes a tenth of a second, so begin with few traversals.
"""

from results import draws, pyplot, save, start

import logging
import sys
import time
from typing import Any

import numpy as np
from absl import flags
from open_spiel.python import policy as open_spiel_policy

import spiel_cfr
from spiel_cfr.deep_cfr.network import LeastSquares
from spiel_cfr.referee import play_match

_GAME = flags.DEFINE_string("game", "leduc_poker", "OpenSpiel game string")
_SOLVERS = flags.DEFINE_list(
  "solvers", ["deep", "dcfr+", "pdcfr+"], "solvers to run, from: deep, dcfr+, pdcfr+"
)
_ITERATIONS = flags.DEFINE_integer("iterations", 100, "iterations of each solver", lower_bound=1)
_NUM_TRAVERSALS = flags.DEFINE_integer(
  "num_traversals", 1500, "traversals for each player in an iteration"
)
_BATCH_SIZE = flags.DEFINE_integer(
  "batch_size",
  None,
  "rows of a training step; by default all infosets, or 512 on states",
  lower_bound=1,
)
_TABLES = flags.DEFINE_bool("tables", True, "also run the solvers with tables in place of networks")
_OPEN_SPIEL = flags.DEFINE_bool(
  "open_spiel", False, "also run OpenSpiel's Deep CFR, which needs flax and chex"
)
_ENGINE = flags.DEFINE_enum(
  "engine",
  "compiled",
  ["compiled", "states"],
  "compiled arrays, or OpenSpiel's states for large games (docs/deep.md)",
)
_EPISODES = flags.DEFINE_integer(
  "episodes", 1000, "games of each evaluation on states", lower_bound=2
)
_SEED = flags.DEFINE_integer("seed", 1, "seed of all random numbers")
_PICTURE = flags.DEFINE_string("picture", "", "file of the picture; empty for none")

_POINTS = 20


def make(name: Any, game: Any, **options: Any) -> Any:
  """Returns the solver of a name of this program."""
  options |= {"num_traversals": _NUM_TRAVERSALS.value, "seed": _SEED.value}
  options.setdefault("batch_size_advantage", _BATCH_SIZE.value)
  return spiel_cfr.DeepCFRSolver(game, algorithm="linear" if name == "deep" else name, **options)


def main() -> None:
  # JAX logs missing devices in programs that use absl.
  logging.getLogger("jax").setLevel(logging.WARNING)
  unknown = set(_SOLVERS.value) - {"deep", "dcfr+", "pdcfr+"}
  if unknown:
    sys.exit(f"error: unknown solvers {', '.join(sorted(unknown))}: take deep, dcfr+, pdcfr+")
  if _ENGINE.value == "states":
    play()
  else:
    compare()


def compare() -> None:
  """Runs the solvers on a compiled game."""
  game = spiel_cfr.compile_game(_GAME.value)
  print(game)
  divisor = 2 if game.is_two_player_constant_sum else 1
  print(
    f"{'':16} {'traversals':>12} {'CPU s':>8} {'exploitability' if divisor == 2 else 'NashConv':>16}"
  )
  curves = {}
  for name in _SOLVERS.value:
    for tables in (False, True) if _TABLES.value else (False,):
      options = {"network": LeastSquares(), "features": "one_hot"} if tables else {}
      solver = make(name, game, **options)
      # A solver of its own compiles the kernels.
      make(name, game, **options).run(1)
      label = f"{name}, tables" if tables else name
      rows, start = [], time.process_time()
      for point in range(1, _POINTS + 1):
        target = max(1, _ITERATIONS.value * point // _POINTS)
        if target > solver.iteration:
          solver.run(target - solver.iteration)
        traversals = int(solver.iteration) * _NUM_TRAVERSALS.value * game.num_players
        rows.append((traversals, time.process_time() - start, solver.nash_conv() / divisor))
      curves[label] = rows
      traversals, seconds, quality = rows[-1]
      print(f"{label:16} {traversals:12,} {seconds:z8.1f} {quality:z16.4f}", flush=True)
  if _OPEN_SPIEL.value:
    traversals, seconds, fitting, nash_conv = run_open_spiel(game)
    curves["OpenSpiel"] = [(traversals, seconds, nash_conv / divisor)]
    print(f"{'OpenSpiel':16} {traversals:12,} {seconds:z8.1f} {nash_conv / divisor:z16.4f}")
    print(
      f"OpenSpiel: {fitting:z.1f} s for fits, {1e3 * (seconds - fitting) / traversals:z.1f} ms a traversal."
    )
  if _PICTURE.value:
    draw(game.game_string, curves, "exploitability" if divisor == 2 else "NashConv")


def run_open_spiel(game: spiel_cfr.CompiledGame) -> tuple[int, float, float, float]:
  """Runs OpenSpiel's Deep CFR; returns traversals, seconds, seconds of fits, and our evaluation of NashConv."""
  try:
    from open_spiel.python.jax import deep_cfr
  except ImportError as error:
    sys.exit(f"error: OpenSpiel's Deep CFR needs packages: pip install flax chex ({error})")
  fitting = 0.0

  class Timed(deep_cfr.DeepCFRSolver):  # type: ignore[misc]
    """Deep CFR that adds up the seconds of its fits."""

    def _learn_advantage_network(self, player: int) -> Any:
      nonlocal fitting
      start = time.process_time()
      loss = super()._learn_advantage_network(player)
      # JAX returns before it has finished; reading the loss waits for it.
      _ = loss is not None and float(loss)
      fitting += time.process_time() - start
      return loss

  # OpenSpiel draws actions from NumPy's global state.
  np.random.seed(_SEED.value)  # noqa: NPY002
  layers = (64, 64, 64)
  # OpenSpiel's solver learns only from full batches.
  batch_size = min(2048, _NUM_TRAVERSALS.value)
  start = time.process_time()
  solver = Timed(
    game.game,
    policy_network_layers=layers,
    advantage_network_layers=layers,
    num_iterations=_ITERATIONS.value,
    num_traversals=_NUM_TRAVERSALS.value,
    learning_rate=1e-3,
    batch_size_advantage=batch_size,
    batch_size_strategy=batch_size,
    seed=_SEED.value,
  )
  solver.solve()
  seconds = time.process_time() - start
  traversals = _ITERATIONS.value * _NUM_TRAVERSALS.value * game.num_players
  return traversals, seconds, fitting, spiel_cfr.nash_conv(game, solver)


def play() -> None:
  """Runs a solver on states, and plays its average policy against a uniform opponent, in both seats."""
  name = _SOLVERS.value[-1]
  batch_size = _BATCH_SIZE.value or 512
  solver = make(
    name, _GAME.value, engine="states", sampler="outcome", batch_size_advantage=batch_size
  )
  print(
    f"{name} on {_GAME.value}, outcome sampling, against uniform play ({_EPISODES.value} episodes)"
  )
  uniform = open_spiel_policy.UniformRandomPolicy(solver.game)
  for _ in range(5):
    match = play_match(
      solver.game, solver.average_policy(), uniform, deals=_EPISODES.value // 2, seed=_SEED.value
    )
    print(
      f"  iteration {int(solver.iteration):4}   mean return {match.mean:+z.3f} +- {match.standard_error:z.3f}",
      flush=True,
    )
    solver.run(max(1, _ITERATIONS.value // 4))


@draws
def draw(title: str, curves: dict[str, list[tuple[int, float, float]]], quality: str) -> None:
  plt = pyplot()
  figure, both = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
  colors = {name: f"C{number}" for number, name in enumerate(_SOLVERS.value)}
  for axes, column, label in zip(both, (0, 1), ("traversals", "CPU seconds"), strict=True):
    for name, rows in curves.items():
      kind, tables = name.removesuffix(", tables"), name.endswith("tables")
      axes.plot(
        [row[column] for row in rows],
        [row[2] for row in rows],
        color=colors.get(kind, "black"),
        marker="o" if len(rows) == 1 else None,
        linestyle=":" if tables else "-",
        label=name,
      )
    axes.set(xscale="log", yscale="log", xlabel=label)
    # Labels between powers of ten would overlap.
    axes.xaxis.set_minor_formatter(plt.NullFormatter())
    axes.grid(which="both", color="0.92")
  both[0].set_ylabel(f"{quality} of the average policy")
  both[0].legend()
  figure.suptitle(title.removesuffix("()"))
  save(figure, _PICTURE.value, 150)


if __name__ == "__main__":
  start(main)
