"""Transfer of a solver to a game with other payoffs: by a warm start from its policy, or by its regrets.

Regret transfer is for CFR, and starts from the regrets of earlier play under the new payoffs (Brown and Sandholm,
"Regret Transfer and Parameter Optimization", 2014). Let R be the regrets of T iterations, computed with the new
payoffs. They are discounted to w R, which counts for w T iterations. The factor w is the largest number up to 1 for
which w R satisfies the bound on the regrets of w T iterations in the new game: at every infoset j

    sum_a max(w R(ja), 0)^2 <= w T (2 D_j)^2 |A_j|,        D_j a bound on the utilities at j.

A solver does not keep the strategies of its iterations. So they are repeated, each with one more gradient and backward
pass for the new payoffs.
"""

from typing import Any, Literal

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.cfr import recipes
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.restarts import Restarted
from spiel_cfr.cfr.substitute_regrets import MOST
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import WarmForm


def transfer(
  solver: FullWidthSolver | Restarted,
  game: AnyGame,
  iterations: int | None = None,
  form: WarmForm | None = None,
  keep_average: bool = True,
  rule: Literal["policy", "regrets"] = "policy",
) -> Any:
  """Makes a solver of the same kind for a game with other payoffs, started from the average policy of `solver`.

  Args:
    solver: a full-width solver, or one with restarts, which stays as it is.
    game: a compiled game with the same infosets, or an argument of `compile_game`.
    iterations: the number of iterations that the policy counts for, see `warm_start.plan`.
    form: see `warm_start.plan`.
    keep_average: whether the policy enters the average, with the weight of these iterations. Use False if the policy
      is worse than the result you want.
    rule: "policy" for a warm start from the average policy. "regrets", for CFR only, repeats the solver's iterations
      with the new payoffs and discounts their regrets, see the module; it takes no `form` and keeps the average.

  Raises:
    ArgumentError: `solver` is not a full-width solver, an argument is invalid, or an argument of the solver's
      constructor can't be written as JSON.

  It also raises the errors of `warm_start.plan` and `compile_game`.
  """
  if not isinstance(solver, FullWidthSolver | Restarted):
    raise errors.ArgumentError(f"Only a full-width solver can be transferred, not {solver!r}.")
  arguments.one_of(rule, "rule", ("policy", "regrets"))
  if rule == "regrets":
    if form is not None or not keep_average or not isinstance(solver, FullWidthSolver):
      raise errors.ArgumentError(
        f"rule='regrets' is for CFRSolver, not {solver!r}; it takes no form, and keeps the average."
      )
    if iterations is not None:
      iterations = arguments.integer(iterations, "iterations", 1, MOST)
    return transfer_regrets(solver, compile_game(game), iterations)
  result = recipes.make(solver.description(), compile_game(game))
  result.warm_start(solver, iterations, form, keep_average)
  return result


def transfer_regrets(solver: FullWidthSolver, game: CompiledGame, iterations: int | None) -> Any:
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


def repeated_regrets(solver: FullWidthSolver, game: CompiledGame) -> Float64s:
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
