"""CFR and CFR+.

docs/concepts.md has CFR+ on the same arrays in 15 lines of NumPy, to read first. An iteration as it runs:

    cfr.cfr                              `CFRPlusSolver`: the minimizer, and the weights of the average
    cfr.full_width_solver                `FullWidthSolver._iterate`: the numbers of the next iterations, and the loop
    cfr.loops.loop                       `Loop.update`, `choose`, `_average`: an iteration as a list of steps
    games.payoffs                        the gradient, the first step: `leaf_rows` in Kuhn, `typed_gradient` in Leduc
    games.sequence_form.tree_passes      `backward_pass` and `forward_pass`: the two passes over a player's tree
    regret_minimizers.regret_matching    `match_regrets_plus`: the work at one infoset

The numbers of an iteration are rows of `cfr.iteration_schedule`; the arrays of a solver are in `cfr.loops.arrays`, by
parts as `games.compiled.trunk_and_subtrees` cuts them; `_numba.steps` calls the steps.

`cfr.variants` has the other variants with a name. A new one is a minimizer or a schedule of weights.

- CFR: Zinkevich et al., "Regret Minimization in Games with Incomplete Information" (2007).
- CFR+: Tammelin, "Solving Large Imperfect Information Games Using CFR+" (2014).
"""

from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.full_width_solver import FullWidthSolver
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching


@recorded
def CFRSolver(game: AnyGame) -> FullWidthSolver:
  """CFR: regret matching, a uniform average, alternating updates."""
  return FullWidthSolver(game, RegretMatching())


@recorded
def CFRPlusSolver(game: AnyGame) -> FullWidthSolver:
  """CFR+: regret matching+, a linear average, alternating updates.

      solver = CFRPlusSolver("leduc_poker")
      solver.run(1000)
      solver.average_policy()  # OpenSpiel's TabularPolicy
      solver.exploitability()

  Args:
    game: a compiled game, or what `compile_game` takes: an OpenSpiel game or its string.

  Returns:
    The solver before its first iteration; help(FullWidthSolver) lists what it can do.

  Raises:
    GameError: the game can't be loaded or compiled.
  """
  return FullWidthSolver(game, RegretMatching.plus(), averaging=Averaging(1.0))
