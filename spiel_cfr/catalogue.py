"""Every solver by name: one catalogue for programs, examples and tests.

    >>> from spiel_cfr import catalogue
    >>> solver = catalogue.SOLVERS["hsdcfr"]("kuhn_poker", 1000)
    >>> solver.run(1000)
    >>> solver.nash_conv() < 0.01
    True

An entry is a class and the arguments of its constructor. Called with a game and the number of iterations that the
solver is going to run, it makes the solver; only solvers with a horizon look at that number.
"""

import dataclasses
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

from spiel_cfr import errors
from spiel_cfr._util import arguments as checked
from spiel_cfr.cfr.cfr import CFRPlusSolver, CFRSolver, FullWidthSolver
from spiel_cfr.cfr.pruning.pruned import Pruned
from spiel_cfr.cfr.restarts import Restarted, RestartedCFRSolver
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.variants import (
  AdaptiveOptimisticCFRSolver,
  APCFRPlusSolver,
  APDCFRPlusSolver,
  CFRBRSolver,
  DCFRPlusSolver,
  DCFRSolver,
  HedgeCFRSolver,
  HSDCFRSolver,
  HSPCFRPlusSolver,
  LCFRSolver,
  PCFRPlusSolver,
  PDCFRPlusSolver,
  SAPCFRPlusSolver,
  TabularCFRSolver,
  TremblingHandSolver,
  VADCFRSolver,
)
from spiel_cfr.deep_cfr.deep_cfr_solvers import DeepCFRSolver, DeepDiscountedCFRSolver
from spiel_cfr.first_order.excessive_gap import ExcessiveGapSolver
from spiel_cfr.first_order.komwu import KOMWUSolver
from spiel_cfr.first_order.mirror_descent import OptimisticMirrorDescentSolver
from spiel_cfr.first_order.mirror_prox import MirrorProxSolver
from spiel_cfr.first_order.reward_transformation import RTCFRPlusSolver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.mccfr.mccfr_solvers import (
  AverageStrategySamplingSolver,
  ChanceSamplingSolver,
  ExternalSamplingSolver,
  OutcomeSamplingSolver,
)
from spiel_cfr.mccfr.sampling_rules import AverageType
from spiel_cfr.regret_minimizers.adaptive_mirror_descent import AdaptiveOptimisticDescent
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.stable_predictive.stable_predictive_cfr import StablePredictiveCFRSolver


@dataclasses.dataclass(frozen=True)
class Entry:
  """A class of solvers with arguments, to be called with a game and a number of iterations.

  Attributes:
    solver: the class, or a function that makes it.
    summary: what it is, in a line.
    arguments: what the constructor is given besides the game.
    horizon: the constructor's argument for the number of iterations, None if it has none.
    wrapper: what is made of that in the end, `Restarted` or `Pruned`; None for nothing.
  """

  solver: Callable[..., Solver]
  summary: str
  arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  horizon: str | None = None
  wrapper: Callable[[Any], Solver] | None = None

  @property
  def family(self) -> type[Solver]:
    """The class of the solvers, before they are wrapped."""
    if isinstance(self.solver, type):
      return self.solver
    result: type[Solver] = inspect.signature(self.solver).return_annotation
    return result

  def __call__(self, game: AnyGame, iterations: int, **arguments: Any) -> Solver:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      iterations: how many the solver is going to run.
      **arguments: more arguments of the constructor, which go before those of the entry.

    Raises:
      ArgumentError: an argument makes no sense.
      GameError: see `compile_game`; or the solver can't take the game.
    """
    iterations = checked.positive_integer(iterations, "iterations")
    horizon = {} if self.horizon is None else {self.horizon: iterations}
    result = self.solver(game, **horizon | dict(self.arguments) | arguments)
    return self.wrapper(result) if self.wrapper else result


def make(name: str, game: AnyGame, iterations: int, **arguments: Any) -> Solver:
  """Makes the solver of this name, see `Entry.__call__`.

  Raises:
    ArgumentError: there is no such solver, or an argument makes no sense.
    GameError: see `compile_game`; or the solver can't take the game.
  """
  if name not in SOLVERS:
    raise errors.ArgumentError(f"There is no solver {name!r}; there are: {', '.join(SOLVERS)}.")
  return SOLVERS[name](game, iterations, **arguments)


def _simultaneous(minimizer: Any, gamma: float) -> dict[str, Any]:
  return {"minimizer": minimizer, "alternating_updates": False, "average_weights": gamma}


SOLVERS: Mapping[str, Entry] = types.MappingProxyType(
  {
    "cfr": Entry(CFRSolver, "CFR: regret matching, a uniform average"),
    "cfr+": Entry(CFRPlusSolver, "CFR+: regret matching+, a linear average"),
    "lcfr": Entry(LCFRSolver, "linear CFR: iteration t weighs t"),
    "dcfr": Entry(DCFRSolver, "discounted CFR, discounts after adding as in OpenSpiel"),
    "dcfr_paper": Entry(
      DCFRSolver, "discounted CFR, discounts before adding as in the paper", {"order": "paper"}
    ),
    "pcfr+": Entry(PCFRPlusSolver, "predictive CFR+"),
    "dcfr+": Entry(DCFRPlusSolver, "discounted CFR+"),
    "pdcfr+": Entry(PDCFRPlusSolver, "predictive discounted CFR+"),
    "sapcfr+": Entry(SAPCFRPlusSolver, "simple asymmetric predictive CFR+"),
    "apcfr+": Entry(APCFRPlusSolver, "asymmetric predictive CFR+"),
    "apdcfr+": Entry(APDCFRPlusSolver, "asymmetric predictive discounted CFR+"),
    "vadcfr": Entry(VADCFRSolver, "volatility-adaptive discounted CFR"),
    "hsdcfr": Entry(
      HSDCFRSolver, "discounted CFR with hyperparameter schedules", horizon="horizon"
    ),
    "hspcfr+": Entry(
      HSPCFRPlusSolver, "predictive CFR+ with a scheduled average", horizon="horizon"
    ),
    "cfr_br": Entry(CFRBRSolver, "CFR-BR: CFR against best responses"),
    "cfr_br+": Entry(
      CFRBRSolver,
      "CFR-BR with regret matching+ and a linear average",
      {"linear_averaging": True, "regret_matching_plus": True},
    ),
    "hedge": Entry(HedgeCFRSolver, "CFR with multiplicative weights"),
    "hedge_threshold": Entry(
      HedgeCFRSolver, "CFR with multiplicative weights, small ones dropped", {"threshold": 2.0}
    ),
    "cfr_simultaneous": Entry(
      TabularCFRSolver, "CFR, all players update at once", {"alternating_updates": False}
    ),
    "cfr+_simultaneous": Entry(
      TabularCFRSolver,
      "CFR+, all players update at once",
      {"alternating_updates": False, "linear_averaging": True, "regret_matching_plus": True},
    ),
    "dcfr_simultaneous": Entry(
      FullWidthSolver,
      "discounted CFR, all players update at once",
      _simultaneous(RegretMatching.discounted(), 2.0),
    ),
    "pcfr+_simultaneous": Entry(
      FullWidthSolver,
      "predictive CFR+, all players update at once",
      _simultaneous(RegretMatching.predictive_plus(), 2.0),
    ),
    "restarted": Entry(
      RestartedCFRSolver, "restarted CFR: discounts, fading predictions, restarts on trial"
    ),
    "restarted_dcfr": Entry(DCFRSolver, "discounted CFR, restarts on trial", wrapper=Restarted),
    "restarted_adaptive": Entry(
      AdaptiveOptimisticCFRSolver, "adaptive optimistic CFR, restarts on trial", wrapper=Restarted
    ),
    "adaptive": Entry(AdaptiveOptimisticCFRSolver, "adaptive optimistic CFR: nothing to tune"),
    "adaptive_simultaneous": Entry(
      FullWidthSolver,
      "adaptive optimistic CFR, all players update at once",
      # Simultaneous updates need the whole prediction.
      _simultaneous(AdaptiveOptimisticDescent(prediction=1.0), 2.0),
    ),
    "stable_predictive": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, adaptive steps, a linear average",
    ),
    "restarted_stable_predictive": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, adaptive steps, restarts on trial",
      wrapper=Restarted,
    ),
    "stable_predictive_uniform": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, adaptive steps, a uniform average",
      {"averaging": "uniform"},
    ),
    "stable_predictive_euclidean": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, adaptive steps, Euclidean regularizer",
      {"regularizer": "euclidean"},
    ),
    "stable_predictive_last": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, adaptive steps, predicts the last counterfactual utilities",
      {"prediction": "last"},
    ),
    "stable_predictive_alternating": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, adaptive steps, players update in turn",
      {"alternating_updates": True},
    ),
    "stable_predictive_farina2019": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, the steps of the paper's figures, nothing proven",
      {"steps": "farina2019"},
      "horizon",
    ),
    "stable_predictive_paper": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, the paper's steps",
      {"steps": "paper"},
      "horizon",
    ),
    "stable_predictive_paper_euclidean": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, the paper's steps, Euclidean regularizer",
      {"steps": "paper", "regularizer": "euclidean"},
      "horizon",
    ),
    "stable_predictive_threshold": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, 10,000 times the paper's steps, small probabilities dropped",
      {"steps": 1e4, "threshold": 1.0},
      "horizon",
    ),
    "stable_predictive_x10000": Entry(
      StablePredictiveCFRSolver,
      "stable-predictive optimistic CFR, 10,000 times the paper's steps",
      {"steps": 1e4},
      "horizon",
    ),
    "cfr+_pruned": Entry(CFRPlusSolver, "CFR+, best-response pruning", wrapper=Pruned),
    "trembling_hand": Entry(
      TremblingHandSolver, "CFR+ whose hand trembles, for sensible play off the path"
    ),
    "rtcfr+": Entry(RTCFRPlusSolver, "reward transformation CFR+: its last iterate converges"),
    "egt": Entry(ExcessiveGapSolver, "excessive gap technique, dilated entropy"),
    "egt_as": Entry(
      ExcessiveGapSolver, "excessive gap technique, aggressive steps", {"aggressive": True}
    ),
    "mirror_prox_as": Entry(
      MirrorProxSolver, "mirror prox, aggressive steps", {"aggressive": True}
    ),
    "domwu": Entry(
      OptimisticMirrorDescentSolver, "optimistic mirror descent, dilated entropy (DOMWU)"
    ),
    "komwu": Entry(KOMWUSolver, "kernelized optimistic multiplicative weights"),
    "external_sampling": Entry(ExternalSamplingSolver, "external-sampling Monte Carlo CFR"),
    "external_sampling_full": Entry(
      ExternalSamplingSolver,
      "external sampling, averages of full trees",
      {"average_type": AverageType.FULL},
    ),
    "external_sampling_linear": Entry(
      ExternalSamplingSolver,
      "external sampling with the weights of linear CFR",
      {"minimizer": RegretMatching.discounted(1.0, 1.0), "average_weights": 1.0},
    ),
    "external_sampling_plus": Entry(
      ExternalSamplingSolver,
      "external sampling with regret matching+ and a linear average",
      {"minimizer": RegretMatching.plus(), "average_weights": 1.0},
    ),
    "external_sampling_baseline": Entry(
      ExternalSamplingSolver, "external sampling with baselines", {"baseline_rate": 0.1}
    ),
    "outcome_sampling": Entry(OutcomeSamplingSolver, "outcome-sampling Monte Carlo CFR"),
    "outcome_sampling_baseline": Entry(
      OutcomeSamplingSolver, "outcome sampling with baselines", {"baseline_rate": 0.1}
    ),
    "chance_sampling": Entry(ChanceSamplingSolver, "chance-sampling Monte Carlo CFR"),
    "average_strategy_sampling": Entry(
      AverageStrategySamplingSolver, "average-strategy-sampling Monte Carlo CFR"
    ),
    "deep_cfr": Entry(DeepCFRSolver, "deep CFR: networks, exact memory, an exact average"),
    "deep_dcfr+": Entry(DeepDiscountedCFRSolver, "deep CFR, bootstrapped, discounted"),
    "deep_pdcfr+": Entry(
      DeepDiscountedCFRSolver,
      "deep CFR, bootstrapped, discounted, with predictions",
      {"predictive": True},
    ),
    "deep_pdcfr+_outcome": Entry(
      DeepDiscountedCFRSolver,
      "deep CFR, bootstrapped, discounted, with predictions, outcome sampling and baselines",
      {"predictive": True, "sampler": "outcome", "baseline_rate": 0.1},
    ),
  }
)
