"""CFR, CFR+ and their variants: all are configurations of `FullWidthSolver`.

A full-width solver visits the whole game in every iteration. At every infoset a regret minimizer chooses the next
strategy from counterfactual utilities. The solver computes the utilities and averages the strategies. docs/arrays.md
has CFR+ on the same arrays in NumPy.

To follow the code from `CFRPlusSolver(game).run(1)` to the line that adds a regret, read in this order:

    cfr.solver                           `Solver.run`: calls `_advance` for about a tenth of a second at a time
    cfr.cfr                              `CFRPlusSolver`, `FullWidthSolver._iterate`: the configuration, and one call of
                                         the loop
    cfr.loops                            `make_loop`: picks `WholeGameLoop`, unless the game is in parts
    cfr.loops.loop                       `WholeGameLoop.advance`, `Loop.update_chain`: an iteration as a list of steps
    cfr.loops.arrays                     `SolverArrays`: the arrays that steps read and write
    _numba.steps                         `Chain.repeat`, `repeat_chain`: compiled code that runs the list many times
    games.payoffs.leaf_rows              `_sum_rows`: the first step of an update, the gradient, in small games; in
                                         games of many private types, it is in `games.payoffs.typed_gradient`
    games.sequence_form.tree_passes      `backward_pass`, `forward_pass`: steps that visit a player's infosets
    cfr.loops.averaging_steps            `averaging_pass`: the arguments of the forward pass, which adds to the average
    regret_minimizers.regret_matching    `regret_matching_plus`: regrets and the next strategy at an infoset
    games.sequence_form.blocks           `expected_value`, `tolerance`, `normalize`: the functions that it calls
    _numba.simd                          `load`, `store`, `where_greater`: arithmetic on vectors of eight infosets

Two modules are beside the path. `cfr.iteration_schedule` has the averaging weight and the minimizer's parameters of
each iteration. `games.compiled.trunk_and_subtrees` is about games in parts; a whole game is one part, with one `Visit`
for each player. Three are not needed: `cfr.gradient_solver` (the base of other solvers), `_util.time_slices` (the
length of a call of `_advance`) and `_numba.records` (how a kernel receives its arguments).

- CFR: Zinkevich et al., "Regret Minimization in Games with Incomplete Information" (2007).
- CFR+: Tammelin, "Solving Large Imperfect Information Games Using CFR+" (2014).
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s
from spiel_cfr._util import arguments
from spiel_cfr.cfr.averaging import MOST_LINES, Averaging
from spiel_cfr.cfr.cfr_br import advance_against_best_responses
from spiel_cfr.cfr.iteration_schedule import IterationSchedule
from spiel_cfr.cfr.loops import FullWidthState, Loop, make_loop
from spiel_cfr.cfr.loops.averaging_steps import check_sums_of_rule
from spiel_cfr.cfr.loops.resume import resume_from
from spiel_cfr.cfr.loops.state import check_numbers
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.substitute_regrets import PolicyValues, WarmStart
from spiel_cfr.cfr.synchronization import synchronized
from spiel_cfr.cfr.warm_start import WarmStartMixin, write_warm_start
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.locked import Mask, locked_part, locked_sequences
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

# The strategies that players learn against: the others' current ones, or best responses to all current strategies.
Opponents = Literal["current", "best_response"]


class Runtime(NamedTuple):
  """The state of a full-width solver, which is in `loop.arrays`, and the objects that iterate on it."""

  loop: Loop
  schedule: IterationSchedule


class FullWidthSolver(WarmStartMixin, Solver):
  """CFR with any regret minimizer: every iteration visits the whole game.

  Attributes:
    compiled_game: `CompiledGame`. The game as arrays.
    minimizer: the regret minimizer at every infoset.
    alternating_updates: whether a player sees the new strategies of the players before it.
    averaging: the weights of strategies in the average.
    opponents: the strategies that a player learns against, "current" or "best_response".
  """

  _runtime: Runtime

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
      ArgumentError: an argument has another type, or a kernel has parameters of another shape than it must.
      UnsupportedGameError: the average has a rule, but the game is in parts.
      InvalidPayoffError: the payoffs are too large or too small to compute with.
    """
    arguments.of_type(minimizer, "minimizer", RegretMinimizer)
    for lines in ("action_lines", "infoset_lines"):
      arguments.integer(getattr(minimizer, lines), lines, 0, MOST_LINES)
    arguments.of_type(averaging, "averaging", Averaging)
    arguments.one_of(opponents, "opponents", get_args(Opponents))
    self.alternating_updates = arguments.boolean(alternating_updates, "alternating_updates")
    self.compiled_game = game = compile_game(game)
    self.minimizer = minimizer
    self.averaging = averaging
    self.opponents = opponents
    check_payoffs(game.game_string, game.payoff_range)
    averaging.check(game)
    self.reset()

  def reset(self) -> None:
    before: Runtime | None = self._runtime
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
    self._runtime.loop.compile()
    self.nash_conv()

  def constructor_arguments(self) -> dict[str, Any]:
    """Returns the arguments of the constructor besides the game, by name."""
    return {
      "minimizer": self.minimizer,
      "alternating_updates": self.alternating_updates,
      "averaging": self.averaging,
      "opponents": self.opponents,
    }

  # The state.

  @property
  def state(self) -> FullWidthState:
    return self._runtime.loop.arrays.state

  def complete_state(self) -> FullWidthState:
    self._runtime.loop.complete_arrays()
    return self.state

  def refresh(self) -> None:
    super().refresh()
    loop = self._runtime.loop
    loop.lock(locked_sequences(self.compiled_game, self.state.locked))
    loop.arrays.compute_reach()

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    check_numbers(self.compiled_game, state)
    for name in ("cumulative", "tapered"):
      forms.check_sums(self.compiled_game, state[name])

  @property
  def iteration(self) -> int:  # type: ignore[override]
    """The number of iterations so far."""
    return int(self.state.counts[0])

  @property
  def nodes_touched(self) -> int:
    """The number of states that a recursive implementation visits: every state once in each traversal."""
    # Alternating updates traverse the game once for each player, simultaneous updates once for all.
    traversals = self.compiled_game.num_players if self.alternating_updates else 1
    if self.opponents == "best_response":
      # One traversal for each player's best response, and one for its update.
      traversals = 2 * self.compiled_game.num_players
    return (self.iteration - self.warm_iterations) * traversals * self.compiled_game.num_states

  # Policies and regrets.

  @synchronized
  def sums(self) -> AnyFloats:
    """Returns a multiple of the average policy in sequence form; the current policy while the sum of weights is 0."""
    state = self.complete_state()
    return state.sums() if state.total_weight else self.current_sequence_form()

  def current_probabilities(self) -> Float64s:
    strategy = self.complete_state().strategy
    forms.check_finite(strategy)
    return strategy.astype(np.float64)

  def current_sequence_form(self) -> Float64s:
    self.complete_state()
    return self._runtime.loop.arrays.sequence_form().astype(np.float64)

  def average_probabilities(self) -> Float64s:
    return forms.behavioral_form(self.compiled_game, self.sums())

  def average_sequence_form(self) -> Float64s:
    # `Solver` would convert to the behavioral form and back.
    return forms.normalized(self.compiled_game, self.sums())

  def nash_conv(self) -> float:
    return evaluate.original_nash_conv(self.compiled_game, self.sums())

  def cumulative_regrets(self) -> Float64s | None:
    if not self.minimizer.keeps_regrets:
      return None
    self.complete_state()
    regrets: Float64s = self._runtime.loop.arrays.action_state_in_game_order()[0]
    return regrets[self.compiled_game.all_action_sequences]

  @synchronized
  def infoset_numbers(self, line: int) -> Float64s:
    """Returns one line of `FullWidthState.infoset_state`, in the game's order of infosets, shape (infosets,)."""
    self.complete_state()
    result: Float64s = self._runtime.loop.arrays.infoset_state_in_game_order()[line]
    return result

  # Locks.

  def lock(self, policy: open_spiel.AnyPolicy, infostates: Iterable[Any] | None = None) -> None:
    game = self.compiled_game
    if self.iteration:
      raise errors.LockError(f"{self!r} has run. Lock a policy before the first iteration.")
    if game.shared_infosets is not None:
      raise errors.LockError(
        f"In {game} infosets are shared (imperfect recall), and one can't be locked without the others. Use buckets "
        "that remember the player's own actions, or the full game."
      )
    if self.opponents == "best_response":
      raise errors.LockError(
        f"{self!r} can't lock a policy, since its best responses would ignore the lock. Use CFRPlusSolver."
      )
    self._lock(*locked_part(game, policy, infostates))

  @synchronized
  def lock_as(self, other: "FullWidthSolver") -> None:
    """Locks the infosets that another solver of the same game has locked, before this solver's first iteration."""
    state = other.complete_state()
    if state.locked.any():
      self._lock(state.locked, state.strategy)

  def _lock(self, locked: Mask, probabilities: AnyFloats) -> None:
    """Locks more infosets, a mask of shape (infosets,), at these probabilities, shape (sequences,)."""
    state = self.complete_state()
    state.locked |= locked
    sequences = locked_sequences(self.compiled_game, locked)
    state.strategy[sequences] = probabilities[sequences]
    self.refresh()

  # Starts from given strategies, from a policy (warm start), or from regrets.

  @synchronized
  def init_from_strategy(self, sequence_form: Float64s) -> None:
    """Continues from the given strategies. The average begins anew; `iteration` continues to count.

    Args:
      sequence_form: the strategies, shape (sequences,). An infoset that its owner never reaches keeps its strategy.

    Raises:
      RestartError: the minimizer can't go on from a strategy.
      PolicyError: the array has another shape.
    """
    state, (loop, schedule) = self.complete_state(), self._runtime
    parameters = schedule.minimizer_parameters(np.array([max(1, self.iteration)]))[0]
    resume_from(self.compiled_game, loop, self.minimizer, sequence_form, parameters)
    state.begin_average()

  @property
  def warm_iterations(self) -> int:
    """The number of iterations that the policy of a warm start counts for; 0 without a warm start."""
    return self.state.warm_iterations

  @property
  def full_width_solver(self) -> "FullWidthSolver":
    return self

  def begin_warm(self, values: PolicyValues, planned: WarmStart, keep_average: bool) -> None:
    self.reset()
    write_warm_start(*self._runtime, self.minimizer, values, planned, keep_average)
    self._num_loads += 1

  @synchronized
  def begin_with_regrets(self, regrets: Float64s, sequence_form: Float64s, iterations: int) -> None:
    """Begins regret matching anew from the regrets and the average policy of earlier iterations.

    Args:
      regrets: shape (sequences,). Cumulative regrets.
      sequence_form: shape (sequences,). The average policy in sequence form.
      iterations: the number of iterations that both count for.

    Raises:
      PolicyError: an array has another shape.
      ArgumentError: `iterations` is not a positive integer.
    """
    iterations = arguments.positive_integer(iterations, "iterations")
    shape = (self.compiled_game.end,)
    if np.shape(regrets) != shape or np.shape(sequence_form) != shape:
      raise errors.PolicyError(
        f"Regrets and the sequence form of this game have the shape {shape}, not {np.shape(regrets)} and "
        f"{np.shape(sequence_form)}."
      )
    self.reset()
    arrays = self._runtime.loop.arrays
    arrays.set_action_state(regrets[None])
    arrays.set_strategy(forms.behavioral_form(self.compiled_game, np.maximum(regrets, 0.0)))
    self.state.begin_warm(iterations, iterations * sequence_form)
    self.refresh()


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
