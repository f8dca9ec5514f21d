"""Catalogue of solvers by name, such as "cfr+" or "dcfr".

    >>> from spiel_cfr import catalogue
    >>> solver = catalogue.SOLVERS["hsdcfr"]("kuhn_poker", 1000)
    >>> solver.run(1000)
    >>> solver.nash_conv() < 0.01
    True

An entry has the class of a solver, or a function that makes it, and arguments. Calling the entry with a game and the
number of iterations of the run makes the solver. Only solvers with a horizon use that number.
"""

import dataclasses
import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from spiel_cfr import cfr, deep_cfr, errors, first_order, mccfr
from spiel_cfr._util import arguments as checked
from spiel_cfr._util.copying import FrozenMapping
from spiel_cfr.cfr import Restarted, Solver
from spiel_cfr.correlated import EFRSolver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers import AdaptiveOptimisticDescent, RegretMatching, RegretMinimizer
from spiel_cfr.stable_predictive import StablePredictiveCFRSolver


@dataclasses.dataclass(frozen=True)
class SolverEntry:
  """A solver of the catalogue: call it with a game and a number of iterations.

  Attributes:
    solver: the class of the solver, or a function that makes it.
    summary: a description in one line.
    arguments: the arguments of `solver` besides the game.
    horizon: the name of the argument of `solver` for the number of iterations; None if it has none.
    wrapper: the class of a solver that takes this solver as its argument, `Restarted`; None for no wrapper.
  """

  solver: Callable[..., Solver]
  summary: str
  arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  horizon: str | None = None
  wrapper: Callable[[Any], Solver] | None = None

  @property
  def family(self) -> type[Solver]:
    """The class of the solver, without the wrapper."""
    if isinstance(self.solver, type):
      return self.solver
    result: type[Solver] = inspect.signature(self.solver).return_annotation
    return result

  def __call__(self, game: AnyGame, iterations: int, **arguments: Any) -> Solver:
    """Makes the solver for a run of this number of iterations. Arguments here replace those of the entry.

    Raises:
      ArgumentError: an argument is invalid.
      GameError: see `compile_game`; or the solver does not take the game.
    """
    iterations = checked.positive_integer(iterations, "iterations")
    horizon = {} if self.horizon is None else {self.horizon: iterations}
    result = self.solver(game, **horizon | dict(self.arguments) | arguments)
    return self.wrapper(result) if self.wrapper else result


def find(name: str) -> SolverEntry:
  """Returns the entry of a name in any spelling, such as "cfr+", "CFR+", "cfrplus" or "CFRPlusSolver".

  Raises:
    ArgumentError: the name is unknown.
  """
  key = _key(str(name))
  if key not in _KEYS:
    similar = difflib.get_close_matches(key, SOLVERS, 3, cutoff=0.5)
    question = f" Did you mean {' or '.join(map(repr, similar))}?" if similar else ""
    raise errors.ArgumentError(
      f"There is no solver {name!r}.{question} `python -m spiel_cfr solvers` lists all of them."
    )
  return SOLVERS[_KEYS[key]]


def make(name: str, game: AnyGame, iterations: int, **arguments: Any) -> Solver:
  """Makes the solver of a name; for arguments and errors see `find` and `SolverEntry.__call__`."""
  return find(name)(game, iterations, **arguments)


def _simultaneous(name: str, minimizer: RegretMinimizer) -> SolverEntry:
  """Returns an entry of a full-width solver with simultaneous updates and quadratic averaging."""
  arguments = {
    "minimizer": minimizer,
    "alternating_updates": False,
    "averaging": cfr.Averaging(2.0),
  }
  return SolverEntry(cfr.FullWidthSolver, f"{name}, all players update at once", arguments)


def _stable_predictive(variant: str, **arguments: Any) -> SolverEntry:
  """Returns an entry of stable-predictive CFR. Constant steps have a horizon, adaptive ones do not."""
  summary = f"stable-predictive optimistic CFR, {variant}"
  horizon = "horizon" if "steps" in arguments else None
  return SolverEntry(StablePredictiveCFRSolver, summary, arguments, horizon)


SOLVERS: Mapping[str, SolverEntry] = FrozenMapping(
  {
    "cfr": SolverEntry(cfr.CFRSolver, "CFR: regret matching, a uniform average"),
    "cfr+": SolverEntry(cfr.CFRPlusSolver, "CFR+: regret matching+, a linear average"),
    "lcfr": SolverEntry(cfr.LCFRSolver, "linear CFR: iteration t has weight t"),
    "dcfr": SolverEntry(cfr.DCFRSolver, "discounted CFR, discounts after adding as in OpenSpiel"),
    "pcfr+": SolverEntry(cfr.PCFRPlusSolver, "predictive CFR+"),
    "dcfr+": SolverEntry(cfr.DCFRPlusSolver, "discounted CFR+"),
    "pdcfr+": SolverEntry(cfr.PDCFRPlusSolver, "predictive discounted CFR+"),
    "sapcfr+": SolverEntry(cfr.SAPCFRPlusSolver, "simple asymmetric predictive CFR+"),
    "apcfr+": SolverEntry(cfr.APCFRPlusSolver, "asymmetric predictive CFR+"),
    "apdcfr+": SolverEntry(cfr.APDCFRPlusSolver, "asymmetric predictive discounted CFR+"),
    "hsdcfr": SolverEntry(
      cfr.HSDCFRSolver, "discounted CFR with hyperparameter schedules", horizon="horizon"
    ),
    "hspcfr+": SolverEntry(
      cfr.HSPCFRPlusSolver, "predictive CFR+ with a scheduled average", horizon="horizon"
    ),
    "cfr_br": SolverEntry(cfr.CFRBRSolver, "CFR-BR: CFR against best responses"),
    "cfr_br+": SolverEntry(
      cfr.CFRBRSolver,
      "CFR-BR with regret matching+ and a linear average",
      {"linear_averaging": True, "regret_matching_plus": True},
    ),
    "hedge": SolverEntry(cfr.HedgeCFRSolver, "CFR with multiplicative weights"),
    "hedge_threshold": SolverEntry(
      cfr.HedgeCFRSolver, "CFR with multiplicative weights, small ones dropped", {"threshold": 2.0}
    ),
    "cfr_simultaneous": SolverEntry(
      cfr.TabularCFRSolver, "CFR, all players update at once", {"alternating_updates": False}
    ),
    "cfr+_simultaneous": SolverEntry(
      cfr.TabularCFRSolver,
      "CFR+, all players update at once",
      {"alternating_updates": False, "linear_averaging": True, "regret_matching_plus": True},
    ),
    "dcfr_simultaneous": _simultaneous("discounted CFR", RegretMatching.discounted()),
    "pcfr+_simultaneous": _simultaneous(
      "predictive CFR+", RegretMatching(forgets_negative=True, prediction=1.0)
    ),
    "restarted": SolverEntry(
      cfr.RestartedCFRSolver, "restarted CFR: discounts, fading predictions, tentative restarts"
    ),
    "restarted_dcfr": SolverEntry(
      cfr.DCFRSolver, "discounted CFR, tentative restarts", wrapper=Restarted
    ),
    "restarted_adaptive": SolverEntry(
      cfr.AdaptiveOptimisticCFRSolver,
      "adaptive optimistic CFR, tentative restarts",
      wrapper=Restarted,
    ),
    "adaptive": SolverEntry(
      cfr.AdaptiveOptimisticCFRSolver, "adaptive optimistic CFR, without parameters"
    ),
    # Simultaneous updates need the whole prediction.
    "adaptive_simultaneous": _simultaneous(
      "adaptive optimistic CFR", AdaptiveOptimisticDescent(prediction=1.0)
    ),
    "stable_predictive": _stable_predictive("adaptive steps, a linear average"),
    "restarted_stable_predictive": dataclasses.replace(
      _stable_predictive("adaptive steps, tentative restarts"), wrapper=Restarted
    ),
    "stable_predictive_uniform": _stable_predictive("adaptive steps, a uniform average", gamma=0),
    "stable_predictive_euclidean": _stable_predictive(
      "adaptive steps, Euclidean regularizer", regularizer="euclidean"
    ),
    "stable_predictive_alternating": _stable_predictive(
      "adaptive steps, players update in turn", alternating_updates=True
    ),
    "stable_predictive_paper": _stable_predictive("the paper's steps", steps="paper"),
    "stable_predictive_paper_euclidean": _stable_predictive(
      "the paper's steps, Euclidean regularizer", steps="paper", regularizer="euclidean"
    ),
    "stable_predictive_x10000": _stable_predictive("10,000 times the paper's steps", steps=1e4),
    "cfr_pruned": SolverEntry(cfr.RegretBasedPruningSolver, "CFR, regret-based pruning"),
    "cfr+_pruned": SolverEntry(cfr.BestResponsePruningSolver, "CFR+, best-response pruning"),
    "hedge_pruned": SolverEntry(
      cfr.DynamicThresholdingSolver, "multiplicative weights, dynamic thresholding, pruning"
    ),
    "trembling_hand": SolverEntry(
      cfr.TremblingHandSolver, "CFR+ with a trembling hand, for sensible play off the path"
    ),
    "rtcfr+": SolverEntry(
      first_order.RTCFRPlusSolver, "reward transformation CFR+: its last iterate converges"
    ),
    "egt": SolverEntry(first_order.ExcessiveGapSolver, "excessive gap technique, dilated entropy"),
    "egt_as": SolverEntry(
      first_order.ExcessiveGapSolver,
      "excessive gap technique, aggressive steps",
      {"aggressive": True},
    ),
    "mirror_prox_as": SolverEntry(
      first_order.MirrorProxSolver, "mirror prox, aggressive steps", {"aggressive": True}
    ),
    "domwu": SolverEntry(
      first_order.OptimisticMirrorDescentSolver,
      "optimistic mirror descent, dilated entropy (DOMWU)",
    ),
    "komwu": SolverEntry(first_order.KOMWUSolver, "kernelized optimistic multiplicative weights"),
    "efr": SolverEntry(
      EFRSolver, "extensive-form regret minimization: no regret for any causal deviation"
    ),
    "external_sampling": SolverEntry(
      mccfr.ExternalSamplingSolver, "external-sampling Monte Carlo CFR"
    ),
    "external_sampling_full": SolverEntry(
      mccfr.ExternalSamplingSolver,
      "external sampling, averages of full trees",
      {"average_type": mccfr.AverageType.FULL},
    ),
    "external_sampling_linear": SolverEntry(
      mccfr.ExternalSamplingSolver,
      "external sampling with the weights of linear CFR",
      {"minimizer": RegretMatching.discounted(1.0, 1.0), "average_weights": 1.0},
    ),
    "external_sampling_plus": SolverEntry(
      mccfr.ExternalSamplingSolver,
      "external sampling with regret matching+ and a linear average",
      {"minimizer": RegretMatching.plus(), "average_weights": 1.0},
    ),
    "external_sampling_baseline": SolverEntry(
      mccfr.ExternalSamplingSolver, "external sampling with baselines", {"baseline_rate": 0.1}
    ),
    "outcome_sampling": SolverEntry(
      mccfr.OutcomeSamplingSolver, "outcome-sampling Monte Carlo CFR"
    ),
    "outcome_sampling_baseline": SolverEntry(
      mccfr.OutcomeSamplingSolver, "outcome sampling with baselines", {"baseline_rate": 0.1}
    ),
    "chance_sampling": SolverEntry(mccfr.ChanceSamplingSolver, "chance-sampling Monte Carlo CFR"),
    "average_strategy_sampling": SolverEntry(
      mccfr.AverageStrategySamplingSolver, "average-strategy-sampling Monte Carlo CFR"
    ),
    "deep_cfr": SolverEntry(
      deep_cfr.DeepCFRSolver, "deep CFR: networks, exact memory, an exact average"
    ),
    "deep_dcfr+": SolverEntry(
      deep_cfr.DeepCFRSolver, "deep CFR, bootstrapped, discounted", {"algorithm": "dcfr+"}
    ),
    "deep_pdcfr+": SolverEntry(
      deep_cfr.DeepCFRSolver,
      "deep CFR, bootstrapped, discounted, with predictions",
      {"algorithm": "pdcfr+"},
    ),
  }
)


def _key(name: str) -> str:
  """Returns a name in lower case, without spaces, underscores and "Solver" at the end, and with "+" for "plus"."""
  compact = re.sub(r"[^a-z0-9+]", "", name.lower())
  return compact.removesuffix("solver").replace("plus", "+")


# The names of `SOLVERS` by their keys, and for entries without arguments also by the key of their class.
_KEYS = {
  _key(entry.solver.__name__): name
  for name, entry in SOLVERS.items()
  if not entry.arguments and entry.wrapper is None
} | {_key(name): name for name in SOLVERS}
