"""How far play is from a correlated equilibrium: the measures that make sense for more than two players.

If all players minimize regret at once, what they play, a profile drawn from the iterations in proportion to their
weights, tends to a coarse correlated equilibrium: nobody gains by a strategy that ignores the draw. That holds for any
number of players and any payoffs, where the product of their average strategies, whose NashConv solvers report, need
not tend to anything. Hart and Mas-Colell (2000); for regret minimization in extensive form, Celli, Marchesi, Bianchi
and Gatti, "Learning to Correlate in Multi-Player General-Sum Sequential Games" (2019).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, aligned
from spiel_cfr._util import arguments
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.evaluation import counterfactual_values, evaluate
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms, open_spiel


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

  def __repr__(self) -> str:
    """Returns one line: the gap and what it consists of."""
    gains = ", ".join(f"{gain:.6g}" for gain in self.player_improvements.tolist())
    return f"<CorrelatedGap {self.gap:.6g}: players gain {gains}>"


def _gap(best: Float64s, expected: Float64s) -> CorrelatedGap:
  gains = best - expected
  return CorrelatedGap(float(np.maximum(gains, 0.0).sum()), gains, expected)


def coarse_correlated_gap(solver: FullWidthSolver) -> CorrelatedGap:
  """Returns how far a solver's play so far is from a coarse correlated equilibrium, exactly.

      solver = TabularCFRSolver("kuhn_poker(players=3)", alternating_updates=False, correlated=True)
      solver.run(1000)
      coarse_correlated_gap(solver).gap

  With w_t the weight of iteration t and g_p^t player p's gradient, what p would gain is

      max over x_p of <sum w_t g_p^t / sum w_t, x_p>  -  sum w_t u_p(x^t) / sum w_t

  which is p's average regret. With two players and constant sums the gap is NashConv of the averages.

  Args:
    solver: a full-width solver made with `correlated=True`, which has done iterations.

  Raises:
    ArgumentError: it is another, or has done none.
  """
  if not isinstance(solver, FullWidthSolver) or not solver.correlated:
    raise errors.ArgumentError(
      f"{solver!r} does not keep what its play sums to. Make a FullWidthSolver or TabularCFRSolver with "
      "correlated=True and alternating_updates=False."
    )
  game, total = solver.compiled_game, float(solver.state.cumulative[0])
  if not total:
    raise errors.ArgumentError(f"{solver!r} has played nothing yet. Run it first.")
  expected = solver.state.play_values / total
  if game.num_players == 2:
    best = evaluate.evaluate(game, solver.state.cumulative).best_response_values
  else:
    best = _best_values(game, solver.state.gradients / total)
  return _gap(best, expected)


def extensive_form_correlated_gap(
  game: AnyGame, profiles: Sequence[open_spiel.AnyPolicy], weights: Sequence[float] | None = None
) -> CorrelatedGap:
  """Returns how far a mixture of profiles is from an extensive-form correlated equilibrium.

  A profile is drawn, and whoever moves is told what the drawn profile's pure strategy does there, infoset by infoset as
  they come. A player who is told an action may at that moment stop to obey, and does what is best from there on,
  knowing what it has been told so far and nothing more of the draw (von Stengel and Forges 2008). With x^t profile t,
  for a trigger s = (I, a) of player p

      gain(s) = max over y of  sum w_t x_p^t(s) <g_p^t, y>  -  sum w_t <g_p^t, x_p^t at and below s>

  where y is a strategy from I on. What p would gain is the most that any one trigger, or leaving at the very beginning,
  gives; a gap of 0 is an equilibrium, for which no trigger gains. It takes a gradient a profile and a sweep a trigger,
  so that it is for small games.

  Args:
    game: a compiled game, or what `compile_game` takes.
    profiles: policies, each anything that `policies.from_policy` reads.
    weights: of the profiles, not negative; the same for all by default.

  Raises:
    ArgumentError: there are no profiles, or not as many weights, or these are no distribution up to a factor.
    PolicyError: a policy is not one for this game.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game)
  chances = np.ones(len(profiles)) if weights is None else np.asarray(weights, np.float64)
  valid = chances.shape == (len(profiles),) and np.isfinite(chances).all() and (chances >= 0).all()
  if not valid or not chances.sum() > 0:
    raise errors.ArgumentError(
      f"There are {len(profiles)} profiles with the weights {arguments.shortened(chances.tolist())}; give one or more, "
      "with a weight each that is not negative, and not all 0."
    )
  chances /= chances.sum()
  played = np.zeros((len(profiles), compiled.end))
  gradients = np.zeros_like(played)
  for row, gradient, profile in zip(played, gradients, profiles, strict=True):
    row[:] = forms.sequence_form(compiled, open_spiel.from_policy(compiled, profile))
    gradient[:] = counterfactual_values.gradients(compiled, aligned(row))
  expected = np.zeros(compiled.num_players)
  best = _best_values(compiled, chances @ gradients)
  for player, tree in enumerate(compiled.treeplexes):
    own = slice(tree.root, tree.end)
    worth = chances[:, None] * gradients[:, own] * played[:, own]
    expected[player] = worth.sum()
    # What is expected at and below each sequence.
    below = np.append(worth.sum(axis=0), 0.0)
    for sequences, infosets in list(tree.blocks())[::-1]:
      sums = below[sequences - tree.root].sum(axis=0)
      np.add.at(below, tree.parent[infosets].astype(np.int64) - tree.root, sums)
    for sequences, infosets in tree.blocks():
      for action in sequences:
        for place, trigger in enumerate(action.tolist()):
          told = chances * played[:, trigger]
          if not told.any():
            continue
          values = _infoset_values(compiled, told @ gradients, player)
          gain = values[infosets.start + place] - below[trigger - tree.root]
          best[player] = max(best[player], expected[player] + gain)
  return _gap(best, expected)


def _best_values(compiled: CompiledGame, gradients: Float64s) -> Float64s:
  """Returns what each player's best strategy is worth against a gradient of all, shape (players,)."""
  utility = _carried_up(compiled, gradients)
  return np.array([utility[tree.root] for tree in compiled.treeplexes])


def _infoset_values(compiled: CompiledGame, gradients: Float64s, player: int) -> Float64s:
  """Returns what each of a player's infosets is worth if the best is done from there on, shape (infosets,)."""
  utility, tree = _carried_up(compiled, gradients), compiled.treeplexes[player]
  result = np.zeros(tree.num_infosets)
  for sequences, infosets in tree.blocks():
    result[infosets] = utility[sequences].max(axis=0)
  return result


def _carried_up(compiled: CompiledGame, gradients: Float64s) -> Float64s:
  """Returns gradients to which at each sequence the best that follows has been added."""
  utility = aligned(gradients)
  counterfactual_values.backward_pass(compiled, take_best, utility)
  return utility
