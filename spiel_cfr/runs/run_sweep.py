"""Runs every combination of games, solvers and arguments, on any executor, and picks up what was done before."""

import concurrent.futures
import contextlib
import csv
import dataclasses
import io
import itertools
import multiprocessing
import os
import pathlib
import pickle
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import tqdm

from spiel_cfr import errors
from spiel_cfr._util import arguments, files
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import compile_game
from spiel_cfr.runs import sweep_cells
from spiel_cfr.runs.checkpoint_folder import Checkpoints
from spiel_cfr.runs.folder_lock import locked
from spiel_cfr.runs.process_executor import ProcessExecutor
from spiel_cfr.runs.run_loop import StoppingRules
from spiel_cfr.runs.run_progress import SECONDS_BETWEEN_LINES
from spiel_cfr.runs.run_schedules import Every, NextDue, Powers, next_due
from spiel_cfr.runs.sweep_cells import Cell, failed
from spiel_cfr.runs.trace import TraceContents, read_trace

Grid = Mapping[str, Sequence[Any]]

# The first is hidden, since it is removed in the end with all its files.
_GAMES, _TABLE = ".compiled_games", "table.csv"
# The number of checkpoints of a run with a known end, by default.
_CHECKPOINTS = 10


@dataclasses.dataclass(frozen=True, repr=False)
class SweepTable:
  """The results of `sweep`, which are in `table.csv` in its folder too.

  Attributes:
    columns: the names of the columns: what was varied, what `Row` has of the last evaluation, the `reason` why the run
      stopped ("error" if it failed), the `error`, and the `folder` of the run.
    rows: a mapping per cell from columns to values, in the order of the grid.
  """

  columns: tuple[str, ...]
  rows: Sequence[Mapping[str, Any]]

  @property
  def failed(self) -> Sequence[Mapping[str, Any]]:
    """The rows of the cells that have no result."""
    return [row for row in self.rows if row["error"]]

  def trace(self, row: Mapping[str, Any]) -> TraceContents:
    """Returns all evaluations of a row's run.

    Raises:
      FileFormatError: the trace is damaged.
      OSError: there is none.
    """
    return read_trace(pathlib.Path(row["folder"]) / sweep_cells.TRACE)

  def solver(self, row: Mapping[str, Any], game: Any) -> Solver:
    """Returns the solver of a row as it was when its run stopped.

    Args:
      row: one of `rows`.
      game: the row's game, compiled or as `compile_game` takes it.

    Raises:
      ArgumentError: the row's run has left no checkpoint.
      CheckpointMismatchError: it is of another game.
      FileFormatError: the checkpoint is damaged.
    """
    folder = row["folder"]
    paths = (
      Checkpoints(pathlib.Path(folder, sweep_cells.CHECKPOINTS), every=1).paths() if folder else []
    )
    if not paths:
      raise errors.ArgumentError(f"The run has left no checkpoint in {folder!r}.")
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
  evaluate_at: NextDue = Powers(2),  # noqa: B008
  checkpoint_every: int | NextDue | None = None,
  executor: concurrent.futures.Executor | None = None,
  progress: bool = True,
) -> SweepTable:
  """Runs all combinations of what a grid names, each from where an earlier sweep has left it.

      table = sweep(
        {"game": ["kuhn_poker", "leduc_poker"], "solver": ["dcfr", "pdcfr+"], "gamma": [2, 4]},
        folder="results/gamma",
        iterations=10_000,
      )

  A run is known by its game, its solver with all arguments, and its rules; its folder, named by a hash of these, has a
  trace, checkpoints and, when it has come to its end, a result. So the same call goes on where it was interrupted,
  killed or extended by more combinations. What fails is a row with its error, and the others go on.

  Games are compiled once. A process that is killed costs what its run has done since the last checkpoint.

  Args:
    grid: the values of each name: "game" (anything that `compile_game` takes), "solver" (names of `catalogue.SOLVERS`,
      or classes), and arguments of the solvers' constructors. A sequence of grids is their union.
    folder: where everything is kept; on all machines that take part, if there are several.
    iterations: see `run`, for this and the next four.
    target_nash_conv: a NashConv that is good enough.
    target_exploitability: an exploitability that is good enough.
    seconds: how long each run may take; those of solvers with a horizon still need `iterations`.
    evaluate_at: when to evaluate: `Every(n)`, `Powers(base)` or a function of a module.
    checkpoint_every: the iterations from one checkpoint to the next, or a schedule; by default ten on the way.
    executor: who runs it: any `concurrent.futures.Executor` that pickles what it is given, such as `RayExecutor`. By
      default, as many processes as there are cores. Programs must then guard their main part by
      `if __name__ == "__main__":`, as for all of Python's processes.
    progress: whether to show how many runs are done.

  Returns:
    A row per combination.

  Raises:
    ArgumentError: the grid names no game or no solver, a rule makes no sense, or `folder` is no path.
    GameError: a game can't be compiled.
    FolderInUseError: another sweep uses the folder.
    OSError: the folder can't be written to.
    KeyboardInterrupt: Ctrl-C was pressed; the runs have left checkpoints, and `table.csv` has what is done.
  """
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
  with locked(folder):
    try:
      rows, waiting = _prepare(combinations, rules, evaluate_at, checkpoint_every, folder)
      table = SweepTable((*varied, *sweep_cells.RESULTS, "folder"), rows)
      try:
        _run(waiting, rows, executor, progress)
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
  """Yields what each run is given, by name."""
  grids = [grid] if isinstance(grid, Mapping) else grid
  if not isinstance(grids, Sequence) or not grids:
    raise errors.ArgumentError(
      f"The grid must be a mapping, or a sequence of some, not {arguments.shortened(grids)}."
    )
  for one in grids:
    if not isinstance(one, Mapping) or not {"game", "solver"} <= set(one):
      raise errors.ArgumentError(
        'A grid maps "game", "solver" and arguments of solvers to lists of values.'
      )
    for name, values in one.items():
      if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise errors.ArgumentError(
          f"The grid must have a list of values for {name!r}, not {arguments.shortened(values)}."
        )
    for values in itertools.product(*one.values()):
      yield dict(zip(one, values, strict=True))


def _prepare(
  combinations: Sequence[Mapping[str, Any]],
  rules: StoppingRules,
  evaluate_at: NextDue,
  checkpoint_every: NextDue,
  folder: pathlib.Path,
) -> tuple[list[dict[str, Any]], list[Cell]]:
  """Returns a row per combination, with its result if that is known or can't be had, and the cells of the others."""
  # By what it was given as, so that each game is compiled once and kept no longer than it is needed.
  games: dict[Any, list[int]] = {}
  for index, combination in enumerate(combinations):
    game = combination["game"]
    games.setdefault(game if isinstance(game, str) else id(game), []).append(index)
  rows: list[dict[str, Any]] = [{} for _ in combinations]
  waiting: dict[str, Cell] = {}
  for indices in games.values():
    compiled = compile_game(combinations[indices[0]]["game"])
    written = None
    for index in indices:
      arguments = dict(combinations[index])
      kind = arguments.pop("solver")
      del arguments["game"]
      row = rows[index] = {
        **combinations[index],
        "game": compiled.game_string,
        "solver": getattr(kind, "__name__", kind),
        "folder": "",
      }
      try:
        solver = sweep_cells.make_solver(kind, compiled, arguments, rules.iterations)
        run = str(folder / sweep_cells.key(solver, rules, evaluate_at))
        done = sweep_cells.read_result(pathlib.Path(run))
        if done is not None:
          row.update(done, folder=run)
          continue
        # Kernels that have to be compiled are now on the disk, and not compiled by each process anew.
        solver.prepare()
        written = written or _write(compiled, folder / _GAMES / compiled.digest)
        cell = Cell(written, kind, arguments, rules, evaluate_at, checkpoint_every, run)
        pickle.dumps(cell)
      except Exception as error:
        # This combination's own mistake: the others go on.
        row.update(failed(error))
      else:
        waiting[run] = cell
        row["folder"] = run
  return rows, list(waiting.values())


def _write(game: CompiledGame, path: pathlib.Path) -> str:
  files.make_folder(path.parent)
  with files.replacing(path) as file:
    pickle.dump(game, file)
  return str(path)


def _run(
  waiting: Sequence[Cell],
  rows: Sequence[dict[str, Any]],
  executor: concurrent.futures.Executor | None,
  progress: bool,
) -> None:
  """Runs cells, and adds the result of each to the rows of its folder as soon as it is there."""
  if not waiting:
    return
  for cell in waiting:
    files.make_folder(cell.folder)
  own = executor is None
  if executor is None:
    executor = ProcessExecutor(min(os.cpu_count() or 1, len(waiting)))
  num_failed = 0
  futures: dict[concurrent.futures.Future[dict[str, Any]], Cell] = {}
  try:
    with tqdm.tqdm(
      total=len(rows),
      initial=len(rows) - len(waiting),
      desc="sweep",
      unit="run",
      disable=not progress,
      mininterval=0.1 if sys.stderr.isatty() else SECONDS_BETWEEN_LINES,
    ) as shown:
      for cell in waiting:
        futures[executor.submit(sweep_cells.run_cell, cell)] = cell
      for future in concurrent.futures.as_completed(futures):
        cell = futures[future]
        error = future.exception()
        # An error means that the process of the run has ended, or that the executor could not start it.
        result = future.result() if error is None else failed(error)
        for row in rows:
          if row["folder"] == cell.folder:
            row.update(result)
        num_failed += bool(result["error"])
        shown.set_postfix_str(f"{num_failed} failed" if num_failed else "", refresh=False)
        shown.update()
  except BaseException:
    for future in futures:
      future.cancel()
    # What Ctrl-C sends: runs end after a whole number of iterations.
    for process in (
      multiprocessing.active_children() if isinstance(executor, ProcessExecutor) else []
    ):
      with contextlib.suppress(ProcessLookupError):
        os.kill(cast("int", process.pid), signal.SIGINT)
    raise
  finally:
    if own:
      executor.shutdown(cancel_futures=True)
