"""Sweep: runs of all combinations of games, solvers and arguments, on any executor.

A sweep continues where an earlier call was interrupted, and does not repeat finished runs.
"""

import concurrent.futures
import csv
import dataclasses
import io
import itertools
import os
import pathlib
import pickle
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tqdm

from spiel_cfr import errors
from spiel_cfr._util import arguments, files
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import compile_game
from spiel_cfr.runs import sweep_cells
from spiel_cfr.runs.checkpoint_folder import Checkpoints
from spiel_cfr.runs.folder_lock import held_lock
from spiel_cfr.runs.process_executor import ProcessExecutor
from spiel_cfr.runs.run_loop import StoppingRules
from spiel_cfr.runs.run_progress import SECONDS_BETWEEN_LINES
from spiel_cfr.runs.run_schedules import Every, Powers, RunSchedule, next_due
from spiel_cfr.runs.sweep_cells import Cell, failed
from spiel_cfr.runs.trace import TraceContents, read_trace

Grid = Mapping[str, Sequence[Any]]

# The folder of compiled games is hidden, and removed at the end.
_GAMES, _TABLE = ".compiled_games", "table.csv"
# The default number of checkpoints of a run with a known end.
_CHECKPOINTS = 10


@dataclasses.dataclass(frozen=True, repr=False)
class SweepTable:
  """Results of `sweep`, which are also in `table.csv` in its folder.

  Attributes:
    columns: tuple of str. The names of the columns: the varied arguments, the values of the last evaluation as in
      `Row`, the `reason` why the run stopped ("error" if it failed), the `error`, and the `folder` of the run.
    rows: list of dictionaries. For each run, in the order of the grid: column -> value.
  """

  columns: tuple[str, ...]
  rows: Sequence[Mapping[str, Any]]

  @property
  def failed(self) -> Sequence[Mapping[str, Any]]:
    """The rows of runs that failed."""
    return [row for row in self.rows if row["error"]]

  def trace(self, row: Mapping[str, Any]) -> TraceContents:
    """Returns all evaluations of the run of a row.

    Raises:
      FileFormatError: the trace is damaged.
      OSError: the run has no trace.
    """
    return read_trace(pathlib.Path(row["folder"]) / sweep_cells.TRACE)

  def solver(self, row: Mapping[str, Any], game: Any) -> Solver:
    """Returns the solver of a row, in its state at the end of the run.

    Args:
      row: one of `rows`.
      game: the row's game: compiled, or an argument of `compile_game`.

    Raises:
      ArgumentError: the run has no checkpoint.
      CheckpointMismatchError: the checkpoint belongs to another game.
      FileFormatError: the checkpoint is damaged.
    """
    folder = row["folder"]
    paths = (
      Checkpoints(pathlib.Path(folder, sweep_cells.CHECKPOINTS), every=1).paths() if folder else []
    )
    if not paths:
      raise errors.ArgumentError(
        f"The run has left no checkpoint in {folder!r}. Run the sweep again."
      )
    return Solver.load(paths[0], game)

  def __repr__(self) -> str:
    return f"<SweepTable: {len(self.rows)} runs, {len(self.failed)} without a result>"


def sweep(
  grid: Grid | Sequence[Grid],
  *,
  folder: str | os.PathLike[str],
  iterations: int | None = None,
  target_nash_conv: float | None = None,
  target_exploitability: float | None = None,
  seconds: float | None = None,
  evaluate_at: RunSchedule = Powers(2),  # noqa: B008
  checkpoint_every: int | RunSchedule | None = None,
  executor: concurrent.futures.Executor | None = None,
  progress: bool = True,
) -> SweepTable:
  """Runs all combinations of a grid; a run continues where an earlier sweep left it.

      table = sweep(
        {"game": ["kuhn_poker", "leduc_poker"], "solver": ["dcfr", "pdcfr+"], "gamma": [2, 4]},
        folder="results/gamma",
        iterations=10_000,
      )

  A run has a folder, named by a hash of the game, the solver with all arguments, and the rules. The folder contains a
  trace, checkpoints and, once the run is finished, a result. The same call therefore continues a sweep that was
  interrupted or killed. With an extended grid, it adds the new runs. A run that fails becomes a row with its error, and
  the others go on.

  Games are compiled once. If a process is killed, its run loses the work since the last checkpoint.

  Args:
    grid: name -> list of values. Names are "game" (values: arguments of `compile_game`), "solver" (values: names in
      `catalogue.SOLVERS`, or classes), and arguments of the solvers' constructors. A sequence of grids stands for
      their union.
    folder: the folder of the sweep, which all participating machines must see.
    iterations: see `run`.
    target_nash_conv: see `run`.
    target_exploitability: see `run`.
    seconds: the time limit of each run. Solvers with a horizon also need `iterations`.
    evaluate_at: the schedule of evaluations: `Every(n)`, `Powers(base)` or a function of a module.
    checkpoint_every: the number of iterations between checkpoints, or a schedule; None for ten checkpoints.
    executor: any `concurrent.futures.Executor` that pickles its calls, such as `RayExecutor`. None starts one
      process for each core. Programs must then guard their main part by `if __name__ == "__main__":`, as always with
      processes of Python.
    progress: True to show the number of finished runs on standard error.

  Returns:
    A table with one row for each combination.

  Raises:
    ArgumentError: the grid has no game or no solver, a rule is invalid, or `folder` is not a path.
    GameError: a game can't be compiled.
    FolderInUseError: another sweep uses the folder.
    OSError: the folder can't be written to.
    KeyboardInterrupt: Ctrl-C was pressed. The runs have saved checkpoints, and `table.csv` has the results so far.
  """
  arguments.boolean(progress, "progress")
  rules = StoppingRules(iterations, target_nash_conv, target_exploitability, seconds)
  if checkpoint_every is None:
    checkpoint_every = (
      Powers(2) if rules.iterations is None else Every(-(-rules.iterations // (_CHECKPOINTS + 1)))
    )
  elif not callable(checkpoint_every):
    checkpoint_every = Every(checkpoint_every)
  next_due(evaluate_at, 0, "evaluate_at")
  combinations = list(_combinations(grid))
  if executor is not None and not isinstance(executor, concurrent.futures.Executor):
    raise errors.ArgumentError(
      f"executor must be a concurrent.futures.Executor, not {arguments.shortened(executor)}."
    )
  folder = pathlib.Path(os.path.abspath(arguments.path(folder, "folder")))
  varied = {name: None for combination in combinations for name in combination}
  with held_lock(folder):
    try:
      rows, unfinished = _prepare(combinations, rules, evaluate_at, checkpoint_every, folder)
      table = SweepTable((*varied, *sweep_cells.RESULTS, "folder"), rows)
      try:
        _run(unfinished, rows, executor, progress)
      finally:
        _write_table(table, folder / _TABLE)
    finally:
      shutil.rmtree(folder / _GAMES, ignore_errors=True)
  return table


def _write_table(table: SweepTable, path: pathlib.Path) -> None:
  text = io.StringIO()
  writer = csv.DictWriter(text, table.columns, lineterminator="\n")
  writer.writeheader()
  writer.writerows(table.rows)
  with files.replacing(path) as file:
    file.write(text.getvalue().encode())


def _combinations(grid: Grid | Sequence[Grid]) -> Iterator[dict[str, Any]]:
  """Yields the combinations of a grid, or of several: for each run, name -> value.

  Raises:
    ArgumentError: the grid has another form.
  """
  grids = [grid] if isinstance(grid, Mapping) else grid
  if not isinstance(grids, Sequence) or not grids:
    raise errors.ArgumentError(
      f"The grid must be a mapping, or a sequence of some, not {arguments.shortened(grids)}."
    )
  for axes in grids:
    if not isinstance(axes, Mapping) or not {"game", "solver"} <= set(axes):
      raise errors.ArgumentError(
        f'A grid must map "game", "solver" and arguments of solvers to lists of values; this is '
        f"{arguments.shortened(axes)}."
      )
    for name, values in axes.items():
      if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise errors.ArgumentError(
          f"The grid must have a list of values for {name!r}, not {arguments.shortened(values)}."
        )
    for values in itertools.product(*axes.values()):
      yield dict(zip(axes, values, strict=True))


def _prepare(
  combinations: Sequence[Mapping[str, Any]],
  rules: StoppingRules,
  evaluate_at: RunSchedule,
  checkpoint_every: RunSchedule,
  folder: pathlib.Path,
) -> tuple[list[dict[str, Any]], list[Cell]]:
  """Returns one row for each combination, and the cells of unfinished runs.

  The row of a finished run, or of one that can't be run, has its result.
  """
  # Combinations by game: each game is compiled once, and released after its combinations.
  games: dict[Any, list[int]] = {}
  for index, combination in enumerate(combinations):
    game = combination["game"]
    games.setdefault(game if isinstance(game, str) else id(game), []).append(index)
  rows: list[dict[str, Any]] = [{} for _ in combinations]
  unfinished: dict[str, Cell] = {}
  for indices in games.values():
    compiled = compile_game(combinations[indices[0]]["game"])
    game_path = None
    for index in indices:
      arguments = dict(combinations[index])
      solver_type = arguments.pop("solver")
      del arguments["game"]
      row = rows[index] = {
        **combinations[index],
        "game": compiled.game_string,
        "solver": getattr(solver_type, "__name__", solver_type),
        "folder": "",
      }
      try:
        solver = sweep_cells.make_solver(solver_type, compiled, arguments, rules.iterations)
        run = str(folder / sweep_cells.key(solver, rules, evaluate_at))
        result = sweep_cells.read_result(pathlib.Path(run))
        if result is not None:
          row.update(result, folder=run)
          continue
        # The kernels are compiled once here; other processes then load them from the disk.
        solver.prepare()
        game_path = game_path or _write(compiled, folder / _GAMES / compiled.digest)
        cell = Cell(game_path, solver_type, arguments, rules, evaluate_at, checkpoint_every, run)
        pickle.dumps(cell)
      except Exception as error:
        # The error concerns only this combination; the others go on.
        row.update(failed(error))
      else:
        unfinished[run] = cell
        row["folder"] = run
  return rows, list(unfinished.values())


def _write(game: CompiledGame, path: pathlib.Path) -> str:
  """Pickles a game to a file; returns its path."""
  files.make_folder(path.parent)
  with files.replacing(path) as file:
    pickle.dump(game, file)
  return str(path)


def _run(
  cells: Sequence[Cell],
  rows: Sequence[dict[str, Any]],
  executor: concurrent.futures.Executor | None,
  progress: bool,
) -> None:
  """Runs cells, and adds each result to the rows of its folder as soon as it is available."""
  if not cells:
    return
  for cell in cells:
    files.make_folder(pathlib.Path(cell.folder))
  starts_processes = executor is None
  if executor is None:
    executor = ProcessExecutor(min(os.cpu_count() or 1, len(cells)))
  num_failed = 0
  futures: dict[concurrent.futures.Future[dict[str, Any]], Cell] = {}
  try:
    with tqdm.tqdm(
      total=len(rows),
      initial=len(rows) - len(cells),
      desc="sweep",
      unit="run",
      disable=not progress,
      mininterval=0.1 if sys.stderr.isatty() else SECONDS_BETWEEN_LINES,
    ) as bar:
      for cell in cells:
        futures[executor.submit(sweep_cells.run_cell, cell)] = cell
      for future in concurrent.futures.as_completed(futures):
        folder, error = futures[future].folder, future.exception()
        # Such an error means that the run's process has died, or that the executor could not start it.
        result = future.result() if error is None else failed(error)
        for row in rows:
          if row["folder"] == folder:
            row.update(result)
        num_failed += bool(result["error"])
        bar.set_postfix_str(f"{num_failed} failed" if num_failed else "", refresh=False)
        bar.update()
  except BaseException:
    for future in futures:
      future.cancel()
    if isinstance(executor, ProcessExecutor):
      executor.interrupt()
    raise
  finally:
    if starts_processes:
      executor.shutdown(cancel_futures=True)
