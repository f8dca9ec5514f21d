r"""Draws traces of runs together: NashConv or exploitability against iterations, seconds or nodes touched.

    python examples/plot_traces.py --output=traces.png results/cfr.csv results/cfr_plus.csv

A trace is named by its solver, or by its file where two have the same solver.
"""

import collections
import pathlib
from typing import Any

import matplotlib.pyplot as plt
from absl import app, flags

import spiel_cfr

_X_AXES = {
  "iterations": ("iteration", "Iterations"),
  "seconds": ("solver_seconds", "Seconds in the solver"),
  "nodes": ("nodes_touched", "Nodes touched"),
}

_X = flags.DEFINE_enum("x", "iterations", list(_X_AXES), "what the horizontal axis shows")
_OUTPUT = flags.DEFINE_string("output", "traces.png", "the picture; its suffix says which format")


def main(arguments: list[str]) -> None:
  paths = [pathlib.Path(argument) for argument in arguments[1:]]
  if not paths:
    raise app.UsageError("name one or more traces")
  try:
    traces = [spiel_cfr.runs.read_trace(path) for path in paths]
  except (OSError, spiel_cfr.errors.SpielCFRError) as error:
    raise app.UsageError(str(error)) from error
  labels = [_label(trace.header) for trace in traces]
  counts = collections.Counter(labels)
  exploitability = all(row.exploitability is not None for trace in traces for row in trace.rows)
  column, axis = _X_AXES[_X.value]

  figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
  for path, trace, label in zip(paths, traces, labels, strict=True):
    axes.plot(
      [getattr(row, column) for row in trace.rows],
      [row.nash_conv / 2 if exploitability else row.nash_conv for row in trace.rows],
      label=label if counts[label] == 1 else f"{label}, {path.stem}",
      marker=".",
    )
  axes.set(
    xscale="log",
    yscale="log",
    xlabel=axis,
    ylabel="Exploitability" if exploitability else "NashConv",
    title=", ".join(sorted({trace.header["game"].removesuffix("()") for trace in traces})),
  )
  axes.grid(which="major", color="0.9")
  axes.legend()
  figure.savefig(_OUTPUT.value, dpi=150)
  print(f"Wrote {_OUTPUT.value}")


def _label(header: dict[str, Any]) -> str:
  solver = header["solver"]
  arguments = ", ".join(f"{name}={value}" for name, value in solver["arguments"].items())
  return f"{solver['class']}({arguments})" if arguments else str(solver["class"])


if __name__ == "__main__":
  app.run(main)
