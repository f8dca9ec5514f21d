"""Cells of a sweep: single runs, each with a game, a solver, its arguments and stopping rules."""

import dataclasses
import functools
import hashlib
import json
import math
import pathlib
import pickle
from collections.abc import Mapping
from typing import Any

from spiel_cfr import catalogue, errors
from spiel_cfr._util import arguments as checked
from spiel_cfr._util import files
from spiel_cfr._util.environment import versions
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.mccfr.monte_carlo_solver import MonteCarloSolver
from spiel_cfr.runs.checkpoint_folder import Checkpoints
from spiel_cfr.runs.run_loop import StoppingRules, run
from spiel_cfr.runs.run_schedules import RunSchedule
from spiel_cfr.runs.trace import TraceFile

AnySolver = str | type[Solver]

RESULT, TRACE, CHECKPOINTS = "result.json", "trace.csv", "checkpoints"
# The columns of a run's result, and their values if the run fails.
RESULTS: Mapping[str, Any] = {
  "iteration": 0,
  "solver_seconds": math.nan,
  "evaluation_seconds": math.nan,
  "nodes_touched": 0,
  "nash_conv": math.nan,
  "exploitability": math.nan,
  "reason": "",
  "error": "",
}


@dataclasses.dataclass(frozen=True)
class Cell:
  """One run of a sweep, as it is sent to the executor.

  Attributes:
    game: str. The path of the pickled game.
    solver: str or class. The solver's name in the catalogue, or its class.
    arguments: dictionary. The arguments of the solver's constructor, without the game.
    rules: `StoppingRules`. The rules that end the run.
    evaluate_at: schedule. The iterations at which the policy is evaluated.
    checkpoint_every: schedule. The iterations at which a checkpoint is saved.
    folder: str. The folder of the run.
  """

  game: str
  solver: AnySolver
  arguments: Mapping[str, Any]
  rules: StoppingRules
  evaluate_at: RunSchedule
  checkpoint_every: RunSchedule
  folder: str


def make_solver(
  solver: AnySolver, game: CompiledGame, arguments: Mapping[str, Any], iterations: int | None
) -> Solver:
  """Returns the solver of a cell. A sampling solver without a seed gets seed 0, so that cells are reproducible.

  Args:
    solver: a name in the catalogue, or a class.
    game: the game.
    arguments: the arguments of the solver's constructor, without the game.
    iterations: the number of iterations of the run; None if it is unknown.

  Raises:
    ArgumentError: the solver is unknown, needs the number of iterations, or does not take the arguments.
  """
  if isinstance(solver, str):
    entry = catalogue.find(solver)
  elif callable(solver):
    entry = catalogue.SolverEntry(solver, "", {})
  else:
    raise errors.ArgumentError(
      f"solver must be a name of spiel_cfr.catalogue or a class of solvers, not {checked.shortened(solver)}."
    )
  if entry.horizon is not None and iterations is None:
    raise errors.ArgumentError(
      f"{solver!r} needs the number of iterations in advance: give iterations."
    )
  # Most sampling solvers take `seed` as one of `**options`, so their signatures do not have it.
  if issubclass(entry.family, MonteCarloSolver) and arguments.get("seed") is None:
    arguments = {**arguments, "seed": 0}
  try:
    return entry(game, iterations or 1, **arguments)
  except TypeError as error:
    raise errors.ArgumentError(f"{error}.") from error


def key(solver: Solver, rules: StoppingRules, evaluate_at: RunSchedule) -> str:
  """Returns the name of a run's folder: a hash of the game, the solver with its arguments, and the rules.

  Raises:
    ArgumentError: the schedule can't be pickled.
  """
  if dataclasses.is_dataclass(evaluate_at):
    schedule = repr(evaluate_at)
  else:
    # Pickles contain the module, the name and the arguments of a function, and the attributes of an object.
    try:
      schedule = pickle.dumps(evaluate_at, protocol=5).hex()
    except Exception as error:
      raise errors.ArgumentError(
        f"evaluate_at must be Every, Powers or a function of a module, not {checked.shortened(evaluate_at)}, which "
        f"can't be pickled ({error})."
      ) from error
  content = [
    solver.compiled_game.digest,
    solver.description(),
    dataclasses.asdict(rules) | {"evaluate_at": schedule},
  ]
  return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def run_cell(cell: Cell) -> dict[str, Any]:
  """Runs a cell, from its last checkpoint if there is one; returns the columns of `RESULTS`.

  An error becomes part of the result.
  """
  folder = pathlib.Path(cell.folder)
  try:
    solver = make_solver(cell.solver, _game(cell.game), cell.arguments, cell.rules.iterations)
    checkpoints = Checkpoints(folder / CHECKPOINTS, every=cell.checkpoint_every, keep=2)
    try:
      checkpoints.resume(solver)
    except errors.DamagedFileError:
      for path in checkpoints.paths():
        path.unlink()
    run_result = run(
      solver,
      **dataclasses.asdict(cell.rules),
      evaluate_at=cell.evaluate_at,
      traces=[TraceFile(folder / TRACE)],
      checkpoints=checkpoints,
      progress=False,
    )
    last = run_result.last.columns()
    result = {name: last.get(name, default) for name, default in RESULTS.items()}
    result["reason"] = run_result.reason
    if run_result.reason != "interrupt":
      content = {
        "run": folder.name,
        "solver": solver.description(),
        "game": solver.compiled_game.game_string,
        "versions": versions(),
        "result": result,
      }
      with files.replacing(folder / RESULT) as file:
        file.write(json.dumps(content, indent=1).encode())
    return _as_numbers(result)
  except Exception as error:
    # The error concerns only this cell; the others go on.
    return failed(error)


@functools.lru_cache(maxsize=1)
def _game(path: str) -> CompiledGame:
  """Returns the game of a cell. A process loads it once."""
  game: CompiledGame = pickle.loads(pathlib.Path(path).read_bytes())
  return game


def failed(error: BaseException) -> dict[str, Any]:
  """Returns the result of a run that failed, with the error in one line."""
  text = " ".join(str(error).split())
  if not isinstance(error, errors.SpielCFRError) or not text:
    text = f"{type(error).__name__}: {text}"
  return {**RESULTS, "reason": "error", "error": text}


def read_result(folder: pathlib.Path) -> dict[str, Any] | None:
  """Returns the result in a run's folder; None if the run is unfinished, or the result belongs to another run."""
  try:
    content = json.loads((folder / RESULT).read_bytes())
    result = _as_numbers({name: content["result"][name] for name in RESULTS})
    return result if content["run"] == folder.name else None
  except (OSError, ValueError, KeyError, TypeError):
    return None


def _as_numbers(result: dict[str, Any]) -> dict[str, Any]:
  """Returns a result with NaN for an undefined exploitability, which is None in files."""
  exploitability = result["exploitability"]
  return result | {"exploitability": math.nan if exploitability is None else exploitability}
