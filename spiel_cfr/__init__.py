"""Counterfactual regret minimization and its family, for any OpenSpiel game.

The names here are enough for most programs. The packages below have the others, such as `spiel_cfr.poker.few_bets`.
"""

# ruff: noqa: F403, F405 - names of `late_imports`

import os
import signal
import sys

if (
  sys.argv[:1] == ["-m"]
  and "spiel_cfr" in sys.orig_argv
  and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
  # `python -m spiel_cfr` imports this first. Until its job begins, Ctrl-C ends it without a traceback of imports.
  signal.signal(signal.SIGINT, lambda *_: (os.write(2, b"interrupted\n"), os._exit(130)))

import importlib.metadata
import importlib.util
from typing import TYPE_CHECKING, Any

# The packages that completion of `spiel_cfr.` shows.
from spiel_cfr import (  # noqa: F401
  cfr,
  errors,
  evaluation,
  games,
  poker,
  policies,
  regret_minimizers,
)
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr import (
  AdaptiveOptimisticCFRSolver,
  Averaging,
  BestResponsePruningSolver,
  CFRPlusSolver,
  CFRSolver,
  DCFRSolver,
  DynamicThresholdingSolver,
  FullWidthSolver,
  LCFRSolver,
  PCFRPlusSolver,
  Pruned,
  RegretBasedPruningSolver,
  Restarted,
  RestartedCFRSolver,
  Solver,
  TabularCFRSolver,
)
from spiel_cfr.cfr.recipes import import_later
from spiel_cfr.evaluation import best_response, expected_values, exploitability, nash_conv, solve_lp
from spiel_cfr.games import CompiledGame, load_compiled_game
from spiel_cfr.games.compiling import compile_game, estimate_size
from spiel_cfr.poker import load_endgame
from spiel_cfr.regret_minimizers import RegretMatching, RegretMinimizer

if TYPE_CHECKING:
  from spiel_cfr.late_imports import *
else:

  def __getattr__(name: str) -> Any:
    """Imports a package, or a name of `late_imports`."""
    if not name.startswith("_") and importlib.util.find_spec(f"spiel_cfr.{name}"):
      with DeferredInterrupt():
        return importlib.import_module(f"spiel_cfr.{name}")
    if name not in __all__:
      raise AttributeError(f"module 'spiel_cfr' has no attribute {name!r}")
    # Half an import would be left behind.
    with DeferredInterrupt():
      return getattr(importlib.import_module("spiel_cfr.late_imports"), name)

  def __dir__() -> list[str]:
    return sorted({*globals(), *importlib.import_module("spiel_cfr.late_imports").__all__})


# Checkpoints of any solver can be loaded, wherever its class is.
import_later(lambda: importlib.import_module("spiel_cfr.late_imports"))

__version__ = importlib.metadata.version("spiel_cfr")

__all__ = [
  "AdaptiveOptimisticCFRSolver",
  "Averaging",
  "BestResponsePruningSolver",
  "CFRPlusSolver",
  "CFRSolver",
  "Checkpoints",
  "CompiledGame",
  "DCFRSolver",
  "DeepCFRSolver",
  "DynamicThresholdingSolver",
  "EFRSolver",
  "ExternalSamplingSolver",
  "FullWidthSolver",
  "LCFRSolver",
  "OutcomeSamplingSolver",
  "PCFRPlusSolver",
  "PolicyBot",
  "Pruned",
  "RegretBasedPruningSolver",
  "RegretMatching",
  "RegretMinimizer",
  "Restarted",
  "RestartedCFRSolver",
  "Solution",
  "Solver",
  "StablePredictiveCFRSolver",
  "TabularCFRSolver",
  "best_response",
  "catalogue",
  "certify",
  "compile_game",
  "errors",
  "estimate_size",
  "expected_values",
  "exploit",
  "exploitability",
  "explore",
  "judge",
  "load_compiled_game",
  "load_endgame",
  "load_policy",
  "nash_conv",
  "run",
  "save_policy",
  "solve",
  "solve_lp",
  "solve_qre",
  "sweep",
]
