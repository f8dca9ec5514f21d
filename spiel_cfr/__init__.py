"""Counterfactual regret minimization and its family, for any OpenSpiel game.

The names here are enough for most programs. Subpackages have further names, such as `spiel_cfr.poker.few_bets`.
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
  # `python -m spiel_cfr` imports this module first. Until the job begins, Ctrl-C ends the program without a traceback.
  signal.signal(signal.SIGINT, lambda *_: (os.write(2, b"interrupted\n"), os._exit(130)))

import importlib.metadata
import importlib.util
from typing import TYPE_CHECKING, Any

# Subpackages that are imported at once, so that completion of `spiel_cfr.` shows them.
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
    """Imports a subpackage, or a name of `late_imports`, when it is first used."""
    if not name.startswith("_") and importlib.util.find_spec(f"spiel_cfr.{name}"):
      with DeferredInterrupt():
        return importlib.import_module(f"spiel_cfr.{name}")
    if name not in __all__:
      raise AttributeError(f"module 'spiel_cfr' has no attribute {name!r}")
    # An interrupted import would leave half a module behind.
    with DeferredInterrupt():
      return getattr(importlib.import_module("spiel_cfr.late_imports"), name)

  def __dir__() -> list[str]:
    late = vars(importlib.import_module("spiel_cfr.late_imports"))
    return sorted({*globals(), *(name for name in late if not name.startswith("_"))})


# Checkpoints of solvers that are imported late can be loaded too.
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
