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

from spiel_cfr import cfr, deep_cfr, errors, first_order, mccfr
from spiel_cfr._util import arguments as checked
from spiel_cfr.cfr import Restarted, Solver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers import AdaptiveOptimisticDescent, RegretMatching
from spiel_cfr.stable_predictive import StablePredictiveCFRSolver


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
    ArgumentError: also if there is no such solver.
    GameError: see there.
  """
  if name not in SOLVERS:
    raise errors.ArgumentError(f"There is no solver {name!r}; there are: {', '.join(SOLVERS)}.")
  return SOLVERS[name](game, iterations, **arguments)


def _entry(
  solver: Callable[..., Solver],
  summary: str,
  horizon: str | None = None,
  wrapper: Callable[[Any], Solver] | None = None,
  **arguments: Any,
) -> Entry:
  return Entry(solver, summary, arguments, horizon, wrapper)


# What players who update at once have in place of alternating updates.
_AT_ONCE: Mapping[str, Any] = {"alternating_updates": False, "average_weights": 2.0}
_BASELINES: Mapping[str, Any] = {"baseline_rate": 0.1}
# fmt: off
_TABLE: Mapping[str, Entry] = {
  "cfr": _entry(cfr.CFRSolver, "CFR: regret matching, a uniform average"),
  "cfr+": _entry(cfr.CFRPlusSolver, "CFR+: regret matching+, a linear average"),
  "lcfr": _entry(cfr.LCFRSolver, "linear CFR: iteration t weighs t"),
  "dcfr": _entry(cfr.DCFRSolver, "discounted CFR, discounts after adding as in OpenSpiel"),
  "dcfr_paper": _entry(cfr.DCFRSolver, "discounted CFR, discounts before adding as in the paper", order="paper"),
  "pcfr+": _entry(cfr.PCFRPlusSolver, "predictive CFR+"),
  "dcfr+": _entry(cfr.DCFRPlusSolver, "discounted CFR+"),
  "pdcfr+": _entry(cfr.PDCFRPlusSolver, "predictive discounted CFR+"),
  "sapcfr+": _entry(cfr.SAPCFRPlusSolver, "simple asymmetric predictive CFR+"),
  "apcfr+": _entry(cfr.APCFRPlusSolver, "asymmetric predictive CFR+"),
  "apdcfr+": _entry(cfr.APDCFRPlusSolver, "asymmetric predictive discounted CFR+"),
  "vadcfr": _entry(cfr.VADCFRSolver, "volatility-adaptive discounted CFR"),
  "hsdcfr": _entry(cfr.HSDCFRSolver, "discounted CFR with hyperparameter schedules", "horizon"),
  "hspcfr+": _entry(cfr.HSPCFRPlusSolver, "predictive CFR+ with a scheduled average", "horizon"),
  "cfr_br": _entry(cfr.CFRBRSolver, "CFR-BR: CFR against best responses"),
  "cfr_br+": _entry(
    cfr.CFRBRSolver, "CFR-BR with regret matching+ and a linear average",
    linear_averaging=True, regret_matching_plus=True,
  ),
  "hedge": _entry(cfr.HedgeCFRSolver, "CFR with multiplicative weights"),
  "hedge_threshold": _entry(cfr.HedgeCFRSolver, "CFR with multiplicative weights, small ones dropped", threshold=2.0),
  "cfr_simultaneous": _entry(cfr.TabularCFRSolver, "CFR, all players update at once", alternating_updates=False),
  "cfr+_simultaneous": _entry(
    cfr.TabularCFRSolver, "CFR+, all players update at once",
    alternating_updates=False, linear_averaging=True, regret_matching_plus=True,
  ),
  "dcfr_simultaneous": _entry(
    cfr.FullWidthSolver, "discounted CFR, all players update at once", minimizer=RegretMatching.discounted(), **_AT_ONCE
  ),
  "pcfr+_simultaneous": _entry(
    cfr.FullWidthSolver, "predictive CFR+, all players update at once",
    minimizer=RegretMatching.predictive_plus(), **_AT_ONCE,
  ),
  "restarted": _entry(cfr.RestartedCFRSolver, "restarted CFR: discounts, fading predictions, tentative restarts"),
  "restarted_dcfr": _entry(cfr.DCFRSolver, "discounted CFR, tentative restarts", wrapper=Restarted),
  "restarted_adaptive": _entry(
    cfr.AdaptiveOptimisticCFRSolver, "adaptive optimistic CFR, tentative restarts", wrapper=Restarted
  ),
  "adaptive": _entry(cfr.AdaptiveOptimisticCFRSolver, "adaptive optimistic CFR: nothing to tune"),
  # Simultaneous updates need the whole prediction.
  "adaptive_simultaneous": _entry(
    cfr.FullWidthSolver, "adaptive optimistic CFR, all players update at once",
    minimizer=AdaptiveOptimisticDescent(prediction=1.0), **_AT_ONCE,
  ),
  "stable_predictive": _entry(StablePredictiveCFRSolver, "stable-predictive CFR, adaptive steps, a linear average"),
  "restarted_stable_predictive": _entry(
    StablePredictiveCFRSolver, "stable-predictive CFR, tentative restarts", wrapper=Restarted
  ),
  "stable_predictive_uniform": _entry(
    StablePredictiveCFRSolver, "stable-predictive CFR, a uniform average", averaging="uniform"
  ),
  "stable_predictive_euclidean": _entry(
    StablePredictiveCFRSolver, "stable-predictive CFR, Euclidean", regularizer="euclidean"
  ),
  "stable_predictive_last": _entry(
    StablePredictiveCFRSolver, "stable-predictive CFR, predicts the last utilities", prediction="last"
  ),
  "stable_predictive_alternating": _entry(
    StablePredictiveCFRSolver, "stable-predictive CFR, players update in turn", alternating_updates=True
  ),
  # Steps that are given, unlike adaptive ones, are for a number of iterations.
  "stable_predictive_farina2019": _entry(
    StablePredictiveCFRSolver, "stable-predictive CFR, steps of the paper's figures, nothing proven",
    "horizon", steps="farina2019",
  ),
  "stable_predictive_paper": _entry(
    StablePredictiveCFRSolver, "stable-predictive CFR, the paper's steps", "horizon", steps="paper"
  ),
  "stable_predictive_paper_euclidean": _entry(
    StablePredictiveCFRSolver, "stable-predictive CFR, the paper's steps, Euclidean",
    "horizon", steps="paper", regularizer="euclidean",
  ),
  "stable_predictive_threshold": _entry(
    StablePredictiveCFRSolver, "stable-predictive CFR, 10,000 times the paper's steps, small probabilities dropped",
    "horizon",
    steps=1e4, threshold=1.0,
  ),
  "stable_predictive_x10000": _entry(
    StablePredictiveCFRSolver, "stable-predictive CFR, 10,000 times the paper's steps", "horizon", steps=1e4
  ),
  "cfr+_pruned": _entry(cfr.CFRPlusSolver, "CFR+, best-response pruning", wrapper=cfr.Pruned),
  "trembling_hand": _entry(cfr.TremblingHandSolver, "CFR+ whose hand trembles, for sensible play off the path"),
  "rtcfr+": _entry(first_order.RTCFRPlusSolver, "reward transformation CFR+: its last iterate converges"),
  "egt": _entry(first_order.ExcessiveGapSolver, "excessive gap technique, dilated entropy"),
  "egt_as": _entry(first_order.ExcessiveGapSolver, "excessive gap technique, aggressive steps", aggressive=True),
  "mirror_prox_as": _entry(first_order.MirrorProxSolver, "mirror prox, aggressive steps", aggressive=True),
  "domwu": _entry(first_order.OptimisticMirrorDescentSolver, "optimistic mirror descent, dilated entropy (DOMWU)"),
  "komwu": _entry(first_order.KOMWUSolver, "kernelized optimistic multiplicative weights"),
  "external_sampling": _entry(mccfr.ExternalSamplingSolver, "external-sampling Monte Carlo CFR"),
  "external_sampling_full": _entry(
    mccfr.ExternalSamplingSolver, "external sampling, averages of full trees", average_type=mccfr.AverageType.FULL
  ),
  "external_sampling_linear": _entry(
    mccfr.ExternalSamplingSolver, "external sampling with the weights of linear CFR",
    minimizer=RegretMatching.discounted(1.0, 1.0), average_weights=1.0,
  ),
  "external_sampling_plus": _entry(
    mccfr.ExternalSamplingSolver, "external sampling with regret matching+ and a linear average",
    minimizer=RegretMatching.plus(), average_weights=1.0,
  ),
  "external_sampling_baseline": _entry(mccfr.ExternalSamplingSolver, "external sampling with baselines", **_BASELINES),
  "outcome_sampling": _entry(mccfr.OutcomeSamplingSolver, "outcome-sampling Monte Carlo CFR"),
  "outcome_sampling_baseline": _entry(mccfr.OutcomeSamplingSolver, "outcome sampling with baselines", **_BASELINES),
  "chance_sampling": _entry(mccfr.ChanceSamplingSolver, "chance-sampling Monte Carlo CFR"),
  "average_strategy_sampling": _entry(
    mccfr.AverageStrategySamplingSolver, "average-strategy-sampling Monte Carlo CFR"
  ),
  "deep_cfr": _entry(deep_cfr.DeepCFRSolver, "deep CFR: networks, exact memory, an exact average"),
  "deep_dcfr+": _entry(deep_cfr.DeepDiscountedCFRSolver, "deep CFR, bootstrapped, discounted"),
  "deep_pdcfr+": _entry(
    deep_cfr.DeepDiscountedCFRSolver, "deep CFR, bootstrapped, discounted, with predictions", predictive=True
  ),
  "deep_pdcfr+_outcome": _entry(
    deep_cfr.DeepDiscountedCFRSolver, "deep PDCFR+ with outcome sampling and baselines",
    predictive=True, sampler="outcome", **_BASELINES,
  ),
}
# fmt: on
SOLVERS: Mapping[str, Entry] = types.MappingProxyType(_TABLE)
