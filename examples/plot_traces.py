r"""Draws several traces in one picture: NashConv or exploitability against iterations, seconds or nodes touched.

    python examples/plot_traces.py --output=traces.png results/cfr.csv results/cfr_plus.csv

The name of a curve is its solver, with its game if there are several, and its file if names would be equal. The last
point of each curve is printed.
"""

from results import draws, pyplot, save, writable

import collections
import pathlib
import sys
from typing import Any

from absl import app, flags

import spiel_cfr

_X_AXES = {
  "iterations": ("iteration", "Iterations"),
  "seconds": ("solver_seconds", "Seconds in the solver"),
  "nodes": ("nodes_touched", "Nodes touched"),
}

_X = flags.DEFINE_enum("x", "iterations", list(_X_AXES), "horizontal axis")
_OUTPUT = flags.DEFINE_string("output", "traces.png", "file of the picture, in the suffix's format")


def main(arguments: list[str]) -> None:
  paths = [pathlib.Path(argument) for argument in arguments[1:]]
  if not paths:
    raise app.UsageError("give one or more files of traces")
  output = writable(_OUTPUT.value)
  try:
    traces = [spiel_cfr.runs.read_trace(path) for path in paths]
  except (OSError, spiel_cfr.errors.SpielCFRError) as error:
    sys.exit(f"error: {error}")
  exploitability = all(row.exploitability is not None for trace in traces for row in trace.rows)
  quality, divisor = ("Exploitability", 2) if exploitability else ("NashConv", 1)
  column, axis = _X_AXES[_X.value]
  curves = {
    label: [(getattr(row, column), row.nash_conv / divisor) for row in trace.rows]
    for label, trace in zip(labels(paths, traces), traces, strict=True)
    if trace.rows
  }
  print(f"| trace | {axis} | {quality} |\n| --- | ---: | ---: |")
  for label, points in curves.items():
    print(f"| {label} | {points[-1][0]:z,.6g} | {points[-1][1]:z.3e} |")
  draw(curves, axis, quality, ", ".join(sorted(set(map(game_of, traces)))), output)


def labels(paths: list[pathlib.Path], traces: list[Any]) -> list[str]:
  """Returns a different name for each trace: its solver, game and file, as far as they differ."""
  solvers = [solver_of(trace) for trace in traces]
  games = [game_of(trace) for trace in traces]
  if len(set(games)) > 1:
    solvers = [f"{solver}, {game}" for solver, game in zip(solvers, games, strict=True)]
  counts = collections.Counter(solvers)
  return [
    label if counts[label] == 1 else f"{label}, {path.with_suffix('')}"
    for label, path in zip(solvers, paths, strict=True)
  ]


def game_of(trace: Any) -> str:
  return str(trace.header["game"]).removesuffix("()")


def solver_of(trace: Any) -> str:
  solver = trace.header["solver"]
  arguments = ", ".join(f"{name}={value}" for name, value in solver["arguments"].items())
  return f"{solver['class']}({arguments})" if arguments else str(solver["class"])


@draws
def draw(
  curves: dict[str, list[tuple[float, float]]],
  axis: str,
  quality: str,
  title: str,
  path: pathlib.Path,
) -> None:
  figure, axes = pyplot().subplots(figsize=(8, 5), layout="constrained")
  for label, points in curves.items():
    axes.plot(*zip(*points, strict=True), label=label, marker=".")
  axes.set(xscale="log", yscale="log", xlabel=axis, ylabel=quality)
  axes.set_title(title, wrap=True)
  axes.grid(which="major", color="0.9")
  axes.legend()
  save(figure, path, 150)


if __name__ == "__main__":
  app.run(main)
