"""Regret transfer: CFR in a game with other payoffs, started from the regrets of earlier play under these payoffs.

Brown and Sandholm, "Regret Transfer and Parameter Optimization" (2014). Let R be the regrets of T iterations, computed
with the new payoffs. They are discounted to w R, which counts for w T iterations. The factor w is the largest number up
to 1 for which w R satisfies the bound on the regrets of w T iterations in the new game: at every infoset j

    sum_a max(w R(ja), 0)^2 <= w T (2 D_j)^2 |A_j|,        D_j a bound on the utilities at j.

A solver does not keep the strategies of its iterations. So they are repeated, each with one more gradient and backward
pass for the new payoffs.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.cfr import recipes
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching


@runtime_checkable
class Repeatable(Protocol):
  """The part of a full-width solver that regret transfer depends on."""

  compiled_game: CompiledGame
  minimizer: Any
  averaging: Averaging
  alternating_updates: bool
  iteration: int
  warm_iterations: int

  def description(self) -> dict[str, Any]:
    """Returns the recipe of the solver as JSON."""

  def current_probabilities(self) -> Float64s:
    """Returns the current policy in behavioral form."""

  def average_sequence_form(self) -> Float64s:
    """Returns the average policy in sequence form."""


def transfer_regrets(solver: Repeatable, game: CompiledGame, iterations: int | None) -> Any:
  """Makes a CFR solver of a game with other payoffs, with the discounted regrets of the play of `solver` there.

  Args:
    solver: CFR, that is regret matching with a uniform average, run from scratch. It is not changed.
    game: a game with the same infosets.
    iterations: w T, the number of iterations that the play counts for; by default, from the paper's bound.

  Raises:
    WarmStartError: the solver is not CFR, or did not begin from scratch.
  """
  plain = solver.minimizer == RegretMatching() and solver.averaging == Averaging()
  if not plain or not solver.iteration or solver.warm_iterations:
    raise errors.WarmStartError(
      f"{solver!r} can't transfer its regrets: only CFR that was run from scratch can, such as CFRSolver(game). Use "
      "rule='policy'."
    )
  regrets = repeated_regrets(solver, game)
  if iterations is None:
    factor = largest_factor(game, regrets, solver.iteration)
    iterations = max(1, round(factor * solver.iteration))
  else:
    factor = iterations / solver.iteration
  result = recipes.make(solver.description(), game)
  result.begin_with_regrets(factor * regrets, solver.average_sequence_form(), iterations)
  return result


def repeated_regrets(solver: Repeatable, game: CompiledGame) -> Float64s:
  """Repeats a solver's iterations, and returns their regrets under the payoffs of `game`, shape (sequences,).

  Raises:
    WarmStartError: the solver's strategies are not those of its iterations from scratch.
  """
  repeated, result = recipes.make(solver.description(), solver.compiled_game), np.zeros(game.end)
  for _ in range(solver.iteration):
    played = repeated.current_probabilities()
    repeated.run(1)
    utility = gradients(game, forms.sequence_form(game, played))
    if solver.alternating_updates:
      # A player faces the new strategies of the players before it.
      faced = played.copy()
      updated = repeated.current_probabilities()
      for previous, tree in zip(game.treeplexes, game.treeplexes[1:], strict=False):
        previous_player, player = slice(previous.root, previous.end), slice(tree.root, tree.end)
        faced[previous_player] = updated[previous_player]
        utility[player] = gradients(game, forms.sequence_form(game, faced))[player]
    backward_pass(game, expect, utility, strategy=played)
    for tree in game.treeplexes:
      for rows, _ in tree.infoset_groups():
        result[rows] += utility[rows] - (played[rows] * utility[rows]).sum(axis=0)
  if not np.array_equal(repeated.current_probabilities(), solver.current_probabilities()):
    raise errors.WarmStartError(
      f"{solver!r} has other strategies than its iterations from scratch: it was changed or locked. Use rule='policy'."
    )
  return result


def largest_factor(game: CompiledGame, regrets: Float64s, iterations: int) -> float:
  """Returns w, the largest factor up to 1 with which the regrets satisfy the bound of the module's docstring."""
  result, utility_bounds = 1.0, game.per_sequence(game.loss_bounds)
  for tree in game.treeplexes:
    for rows, _ in tree.infoset_groups():
      allowed = iterations * len(rows) * (2 * utility_bounds[rows[0]]) ** 2
      squares = np.square(np.maximum(regrets[rows], 0.0)).sum(axis=0)
      result = min(result, float((allowed[squares > 0] / squares[squares > 0]).min(initial=1.0)))
  return result
