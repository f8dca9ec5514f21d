"""CFR, CFR+ and their variants: all are configurations of `FullWidthSolver`.

A full-width solver visits the whole game in every iteration. At every infoset a regret minimizer chooses the next
strategy from counterfactual utilities. The solver computes the utilities and averages the strategies. docs/arrays.md
has CFR+ on the same arrays in NumPy.

To follow the code from `CFRPlusSolver(game).run(1)` to the line that adds a regret, read in this order:

    cfr.cfr                              `CFRPlusSolver`, `FullWidthSolver._iterate`: the configuration, and the loop
    cfr.loops.loop                       `WholeGameLoop.advance`, `Loop.update_chain`: an iteration as a list of steps
    _numba.steps                         `Chain.repeat`, `repeat_chain`: compiled code that runs the list many times
    games.sequence_form.tree_passes      `backward_pass`, `forward_pass`: steps that visit a player's infosets
    regret_minimizers.regret_matching    `regret_matching_plus`: regrets and the next strategy at an infoset
    games.sequence_form.blocks           `expected_value`, `tolerance`, `normalize`: the functions that it calls
    _numba.simd                          `load`, `store`, `where_greater`: arithmetic on vectors of eight infosets

`Solver.run` calls `FullWidthSolver._advance` repeatedly, each time for about a tenth of a second. `make_loop` picks
`WholeGameLoop`, unless the game is in parts. These modules are beside the path:

    games.payoffs                        `Payoff.gradient_step`: the gradient, which is the first step of an update
    cfr.iteration_schedule               the averaging weight and the minimizer's parameters of each iteration
    cfr.loops.arrays                     the arrays that steps read and write
    games.compiled.trunk_and_subtrees    a game in parts; a whole game is one part, with one `Visit` for each player
    cfr.full_width_base                  policies, regrets, locks, and starts from a policy or from regrets

- CFR: Zinkevich et al., "Regret Minimization in Games with Incomplete Information" (2007).
- CFR+: Tammelin, "Solving Large Imperfect Information Games Using CFR+" (2014).
"""

import math
from typing import Any, get_args

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr_br import advance_against_best_responses
from spiel_cfr.cfr.full_width_base import FullWidthBase, Opponents, Runtime
from spiel_cfr.cfr.iteration_schedule import IterationSchedule
from spiel_cfr.cfr.loops import make_loop
from spiel_cfr.cfr.loops.averaging_steps import check_sums_of_rule
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class FullWidthSolver(FullWidthBase):
  """CFR with any regret minimizer: every iteration visits the whole game.

  Attributes:
    compiled_game: `CompiledGame`. The game as arrays.
    averaging: the weights of strategies in the average.
  """

  def __init__(
    self,
    game: AnyGame,
    minimizer: RegretMinimizer,
    *,
    alternating_updates: bool = True,
    averaging: Averaging = Averaging(),  # noqa: B008 - it is frozen
    opponents: Opponents = "current",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or an argument of `compile_game`. Compile it yourself to share it or to cache it.
      minimizer: the regret minimizer at every infoset.
      alternating_updates: whether a player sees the new strategies of the players before it. Otherwise all players see
        the strategies of the last iteration.
      averaging: the weights of strategies in the average: `Averaging(2.0)` gives iteration t the weight t^2.
      opponents: the strategies that a player learns against: the others' "current" ones, or, in CFR-BR, the others'
        "best_response".

    Raises:
      GameError: see `compile_game`.
      ArgumentError: `minimizer` or `averaging` has another type.
      UnsupportedGameError: the average has a rule, but the game is in parts.
      InvalidPayoffError: the payoffs are too large or too small to compute with.
    """
    arguments.of_type(minimizer, "minimizer", RegretMinimizer)
    arguments.of_type(averaging, "averaging", Averaging)
    arguments.one_of(opponents, "opponents", get_args(Opponents))
    self.compiled_game = game = compile_game(game)
    self.minimizer = minimizer
    self.alternating_updates = bool(alternating_updates)
    self.averaging = averaging
    self.opponents = opponents
    check_payoffs(game.game_string, game.payoff_range)
    averaging.check(game)
    self.reset()

  def reset(self) -> None:
    before = self.__dict__.get("_runtime")
    game = self.compiled_game
    players = tuple(range(game.num_players))
    updates = tuple((player,) for player in players) if self.alternating_updates else (players,)
    self._runtime = Runtime(
      make_loop(game, self.minimizer, self.averaging, updates),
      IterationSchedule(game, self.minimizer, self.averaging),
    )
    if before is not None and before.loop.arrays.state.locked.any():
      self._lock(before.loop.arrays.state.locked, before.loop.arrays.state.strategy)

  def _advance(self, count: int) -> None:
    self._iterate(count)
    if self.averaging.rule is not None:
      check_sums_of_rule(self._runtime.loop.arrays, self.averaging.rule)
    # The backward pass carries a number that is not finite up to the root.
    values = self._runtime.loop.arrays.root_values()
    if not all(map(math.isfinite, values)):
      raise errors.NotFiniteError(
        f"After {self.iteration:,} iterations the value of the game is {values} for its players: the "
        f"strategies or regrets of {self.minimizer} have left the range of floating-point numbers."
      )

  def _iterate(self, count: int) -> None:
    """Runs iterations of CFR, usually in one call of compiled code, or of CFR-BR."""
    loop, schedule = self._runtime
    numbers = schedule.next_numbers(self.state, count)
    if self.opponents == "best_response":
      advance_against_best_responses(self.compiled_game, loop, numbers)
    else:
      loop.advance(numbers)

  def prepare(self) -> None:
    """Compiles the kernels of an iteration and of NashConv, or loads them from disk."""
    # A loop without iterations only compiles.
    self._iterate(0)
    self.nash_conv()

  def constructor_arguments(self) -> dict[str, Any]:
    """Returns the arguments of the constructor besides the game, by name."""
    return {
      "minimizer": self.minimizer,
      "alternating_updates": self.alternating_updates,
      "averaging": self.averaging,
      "opponents": self.opponents,
    }


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
    game: a compiled game, or an argument of `compile_game`: an OpenSpiel game or its string.

  Returns:
    The solver before its first iteration; help(FullWidthSolver) lists its methods.

  Raises:
    GameError: the game can't be loaded or compiled.
  """
  return FullWidthSolver(game, RegretMatching.plus(), averaging=Averaging(1.0))
