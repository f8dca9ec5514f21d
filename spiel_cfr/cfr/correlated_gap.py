"""How far play is from a correlated equilibrium: the measures that make sense for more than two players.

If all players minimize regret at once, what they play, a profile drawn from the iterations in proportion to their
weights, tends to a coarse correlated equilibrium: nobody gains by a strategy that ignores the draw. That holds for any
number of players and any payoffs, where the product of their average strategies, whose NashConv solvers report, need
not tend to anything. Hart and Mas-Colell (2000); for regret minimization in extensive form, Celli, Marchesi, Bianchi
and Gatti, "Learning to Correlate in Multi-Player General-Sum Sequential Games" (2019).
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, aligned
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.evaluation import counterfactual_values, evaluate
from spiel_cfr.evaluation.best_responses import take_best


class CorrelatedGap(NamedTuple):
  """What players would gain by leaving a correlated equilibrium that is none.

  Attributes:
    gap: the sum of what each would gain, nobody's gain counting as less than 0.
    player_improvements: what each would gain, shape (players,); negative where even the best deviation loses.
    expected_values: what each expects, shape (players,).
  """

  gap: float
  player_improvements: Float64s
  expected_values: Float64s


def coarse_correlated_gap(solver: FullWidthSolver) -> CorrelatedGap:
  """Returns how far a solver's play so far is from a coarse correlated equilibrium, exactly.

      averaging = Averaging(correlated=True)
      solver = FullWidthSolver(game, RegretMatching(), alternating_updates=False, averaging=averaging)
      solver.run(1000)
      coarse_correlated_gap(solver).gap

  With w_t the weight of iteration t and g_p^t player p's gradient, what p would gain is

      max over x_p of <sum w_t g_p^t / sum w_t, x_p>  -  sum w_t u_p(x^t) / sum w_t

  which is p's average regret. With two players and constant sums the gap is NashConv of the averages.

  Args:
    solver: a full-width solver made with `Averaging(correlated=True)`, which has done iterations.

  Raises:
    ArgumentError: it is another, or has done none.
  """
  if not isinstance(solver, FullWidthSolver) or not solver.averaging.correlated:
    raise errors.ArgumentError(
      f"{solver!r} does not keep what its play sums to. Make a FullWidthSolver with "
      "averaging=Averaging(correlated=True) and alternating_updates=False."
    )
  game, state = solver.compiled_game, solver.state_dict()
  total = float(state["cumulative"][0])
  if not total:
    raise errors.ArgumentError(f"{solver!r} has played nothing yet. Run it first.")
  expected = state["play_values"] / total
  if game.num_players == 2:
    best = evaluate.evaluate(game, state["cumulative"]).best_response_values
  else:
    utility = aligned(state["gradients"] / total)
    best = counterfactual_values.backward_pass(game, take_best, utility)
  gains = best - expected
  return CorrelatedGap(float(np.maximum(gains, 0.0).sum()), gains, expected)
