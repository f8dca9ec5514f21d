"""Real Ray processes: killed workers and nodes, a restarted head."""

import os
import pathlib
import subprocess
import sys
from typing import Any

import poker_games
import pytest

import spiel_cfr
from spiel_cfr import errors

ray = pytest.importorskip("ray", reason="Ray is not installed")

_BEGINNING = """
import os, pathlib, signal, sys, time
import ray
import spiel_cfr

folder = pathlib.Path(sys.argv[1])

class Killed(spiel_cfr.FullWidthSolver):
  def __init__(self, game, lives):
    super().__init__(game, spiel_cfr.RegretMatching())
    self._lives = pathlib.Path(lives)

  def run(self, iterations):
    super().run(iterations)
    if self.iteration >= 50 and self._lives.exists():
      self._lives.unlink()
      os.kill(os.getpid(), signal.SIGKILL)

def solve(game):
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(100)
  # Ray passes read-only arrays.
  return game.payoff.arrays.values.flags.owndata, solver.nash_conv()

def start(address=None):
  # Workers are to import the same source.
  environment = {"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}}
  own = {} if address else {"num_cpus": 2, "include_dashboard": False}
  ray.init(address, log_to_driver=False, runtime_env=environment, **own)

def show(*things):
  print("result:", *things, flush=True)

def sweep(*grids):
  table = spiel_cfr.sweep(
    grids,
    folder=folder / "sweep",
    iterations=100,
    checkpoint_every=10,
    executor=executor,
    progress=False,
  )
  for row in table.rows:
    show(row["game"], row["solver"], row["iteration"], repr(row["nash_conv"]), row["error"] or "-")

def grid(*solvers):
  return {"game": ["kuhn_poker", "leduc_poker"], "solver": list(solvers)}

def same(solver, plain):
  plain = spiel_cfr.CFRPlusSolver(plain)
  plain.run(solver.iteration)
  states = solver.complete_state(), plain.complete_state()
  names = "strategy", "cumulative", "action_state"
  return all(len({getattr(state, name).tobytes() for state in states}) == 1 for name in names)
"""

_SHARED = """
start()
with spiel_cfr.runs.RayExecutor() as executor:
  game = spiel_cfr.compile_game("leduc_poker")
  shared = ray.put(game)
  show(*ray.get(ray.remote(solve).remote(shared)))
  show(executor.submit(solve, game).result()[1])
  deadline = time.monotonic() + 60
  while executor._references and time.monotonic() < deadline:
    time.sleep(0.01)
  show(len(executor._references), "results are kept")
try:
  executor.submit(len, "")
except RuntimeError:
  show("closed")
"""

_SHARDS = """
import threading

game = spiel_cfr.poker.compile_public_game(sys.argv[2], partitioned=True)

with spiel_cfr.runs.RayExecutor() as executor:
  solver = spiel_cfr.CFRPlusSolver(spiel_cfr.games.shard(game, executor, num_shards=2))
  solver.run(30)
  actor = executor._actors[1]
  pid = actor.submit(os.getpid).result()
  killing = threading.Timer(0.1, os.kill, (pid, signal.SIGKILL))
  killing.start()
  while killing.is_alive():
    solver.run(1)
  solver.run(30)
  show(pid != os.getpid(), actor.submit(os.getpid).result() != pid, same(solver, game))
  try:
    spiel_cfr.games.shard(game, executor, num_shards=3)
  except spiel_cfr.errors.ShardError as error:
    show(error)
"""

_NODES = """
import threading
import ray.cluster_utils

cluster = ray.cluster_utils.Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
lost = [cluster.add_node(num_cpus=1) for _ in range(2)]
start(cluster.address)
game = spiel_cfr.games.compile_vector_game("liars_dice(dice_sides=5)", partitioned=True)

def nodes():
  here = lambda: ray.get_runtime_context().get_node_id()
  return [actor.submit(here).result() for actor in executor._actors]

with spiel_cfr.runs.RayExecutor() as executor:
  solver = spiel_cfr.CFRPlusSolver(spiel_cfr.games.shard(game, executor, num_shards=3))
  solver.run(50)
  before = nodes()
  show(len(set(before)), "machines", same(solver, game))
  # One says goodbye between two iterations, the other one is killed in the middle of one.
  cluster.remove_node(lost[0])
  solver.run(1)
  killing = threading.Timer(0.1, cluster.remove_node, (lost[1], False))
  killing.start()
  while killing.is_alive() or len(set(nodes())) > 1:
    solver.run(10)
  solver.run(50)
  show(len(set(nodes())), "machine", same(solver, game))
ray.shutdown()
cluster.shutdown()
"""

_SWEEPS = """
start()
lives = folder / "lives"
lives.touch()
with spiel_cfr.runs.RayExecutor() as executor:
  sweep({"game": ["kuhn_poker"], "solver": [Killed], "lives": [str(lives)]}, grid("cfr"))
ray.shutdown()
start()
with spiel_cfr.runs.RayExecutor() as executor:
  sweep(grid("cfr", "cfr+"))
show(lives.exists())
"""


def results(folder: pathlib.Path, program: str) -> list[str]:
  """Returns what a program on Ray shows."""
  path = folder / "program.py"
  path.write_text(_BEGINNING + program)
  source = str(pathlib.Path(spiel_cfr.__file__).parent.parent)
  paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
  done = subprocess.run(
    [sys.executable, str(path), str(folder), poker_games.UNIVERSAL_POKER[0]],
    env={**os.environ, "PYTHONPATH": paths},
    capture_output=True,
    text=True,
    timeout=600,
  )
  assert done.returncode == 0, done.stderr
  lines = done.stdout.splitlines()
  return [line.removeprefix("result: ") for line in lines if line.startswith("result: ")]


def expected(game: str, name: str) -> str:
  solver = spiel_cfr.catalogue.make(name, game, 100)
  solver.run(100)
  return repr(solver.nash_conv())


@pytest.mark.slow
def test_games_go_to_ray_and_back(tmp_path: pathlib.Path) -> None:
  """Shards on two processes, one of which is killed."""
  value = expected("leduc_poker", "cfr+")
  assert results(tmp_path, _SHARED + _SHARDS) == [
    f"False {value}",
    value,
    "0 results are kept",
    "closed",
    "True True True",
    "Ray has 2 cores, and each of 3 shards takes one. Use fewer shards, or start Ray with more cores.",
  ]


@pytest.mark.slow
def test_machines_that_are_lost(tmp_path: pathlib.Path) -> None:
  """Of three nodes one survives, and takes over the others' shards."""
  assert results(tmp_path, _NODES) == ["3 machines True", "1 machine True"]


@pytest.mark.slow
def test_a_sweep_on_ray(tmp_path: pathlib.Path) -> None:
  """A worker is killed; then the head is restarted, and only new combinations run."""
  kuhn, leduc = expected("kuhn_poker", "cfr"), expected("leduc_poker", "cfr")
  assert results(tmp_path, _SWEEPS) == [
    f"kuhn_poker() Killed 100 {kuhn} -",
    f"kuhn_poker() cfr 100 {kuhn} -",
    f"leduc_poker() cfr 100 {leduc} -",
    f"kuhn_poker() cfr 100 {kuhn} -",
    f"kuhn_poker() cfr+ 100 {expected('kuhn_poker', 'cfr+')} -",
    f"leduc_poker() cfr 100 {leduc} -",
    f"leduc_poker() cfr+ 100 {expected('leduc_poker', 'cfr+')} -",
    "False",
  ]


def test_ray_that_is_not_installed_is_asked_for(monkeypatch: Any) -> None:
  monkeypatch.setitem(sys.modules, "ray", None)
  with pytest.raises(errors.MissingPackageError, match="pip install"):
    spiel_cfr.runs.RayExecutor()
