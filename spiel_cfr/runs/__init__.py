"""Long runs and many runs: stopping rules, evaluations, traces, checkpoints, sweeps and executors."""

from spiel_cfr.runs.checkpoint_folder import Checkpoints
from spiel_cfr.runs.merge_policies import merge
from spiel_cfr.runs.process_executor import ProcessExecutor
from spiel_cfr.runs.ray_executor import RayExecutor
from spiel_cfr.runs.run_loop import RunResult, run
from spiel_cfr.runs.run_schedules import Every, Powers
from spiel_cfr.runs.run_sweep import SweepTable, sweep
from spiel_cfr.runs.trace import Row, Trace, TraceFile, read_trace
from spiel_cfr.runs.tracker import Tracker

__all__ = [
  "Checkpoints",
  "Every",
  "Powers",
  "ProcessExecutor",
  "RayExecutor",
  "Row",
  "RunResult",
  "SweepTable",
  "Trace",
  "TraceFile",
  "Tracker",
  "merge",
  "read_trace",
  "run",
  "sweep",
]
