"""Restarted CFR: the minimizer and the average that were chosen for restarts on trial."""

from collections.abc import Mapping
from typing import Any, Self

from spiel_cfr.cfr.averaging import Averaged
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.restarts import Restarted
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.schedules import Discount, Fading


class RestartedCFRSolver(Restarted):
  """CFR that converges linearly in the end, for constant-sum games of two players; nothing to tune.

  With r^t the regrets of iteration t, at every infoset

      R = max(R, 0) (t - 1)^1.5 / ((t - 1)^1.5 + 1) + min(R, 0) / 2 + r^t
      x^{t+1} proportional to max(R + 0.1 min(1, 100 / t)^2 r^t, 0)

  which is DCFR with a prediction that fades away. Updates alternate; every player but the last averages the strategies
  to which it has just updated, the last one those that the others have just faced, with weight t^4.
  """

  def __init__(self, game: AnyGame) -> None:
    """Makes the solver for a compiled game or what `compile_game` takes."""
    compiled = compile_game(game)
    averaged: list[Averaged] = ["after"] * (compiled.num_players - 1)
    minimizer = RegretMatching(
      positive=Discount(1.5, delay=1), negative=0.5, prediction=Fading(0.1, 100.0)
    )
    super().__init__(
      FullWidthSolver(compiled, minimizer, average_weights=4.0, averaged=(*averaged, "before"))
    )

  def description(self) -> dict[str, Any]:
    """Returns the class; the constructor has no arguments."""
    return Solver.description(self)

  @classmethod
  def _made(cls, first: Any, description: Mapping[str, Any]) -> Self:
    return cls(first)
