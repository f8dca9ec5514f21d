"""What all full-width solvers have in common: arrays, a count of iterations, and policies made from them."""

import copy
import sys
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
import pyspiel

from spiel_cfr import arguments, evaluate, policy
from spiel_cfr.game.compiled import CompiledGame, compile_game
from spiel_cfr.kernels.arrays import Float64s, Int64s, aligned_zeros
from spiel_cfr.kernels.compile import CHUNK
from spiel_cfr.minimizers.base import SCRATCH_LINES, LocalMinimizer, no_prediction
from spiel_cfr.runs.slices import Slices
from spiel_cfr.solvers.iterative import IterativeSolver
from spiel_cfr.solvers.loop import run_iterations
from spiel_cfr.solvers.subtree_loop import SubtreeLoop

AnyGame: TypeAlias = "str | pyspiel.Game | CompiledGame"
# Which of its strategies of iteration t a player's average takes: the one before its update or the one after.
Averaged = Literal["before", "after"]


class Solver(IterativeSolver):
  """A full-width solver: a local minimizer, the weights of its average, and an order of updates.

  It is used as OpenSpiel's solvers are:

      solver = CFRPlusSolver(pyspiel.load_game("leduc_poker"))
      for _ in range(1000):
        solver.evaluate_and_update_policy()
      solver.average_policy()

  and `run(1000)` does the same, faster.

  Attributes:
    compiled_game: the game as arrays.
    minimizer: what every infoset does.
    alternating_updates: whether a player sees the strategies to which those before it have just updated.
  """

  state_names: ClassVar[tuple[str, ...]] = (
    "iteration",
    "_strategy",
    "_sequence",
    "_average",
    "_state",
    "_local",
  )

  def __init__(
    self,
    game: AnyGame,
    minimizer: LocalMinimizer,
    *,
    alternating_updates: bool = True,
    average_power: float = 0.0,
    averaged: tuple[Averaged, ...] | Averaged = "before",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes; compile it yourself to share it or to cache it.
      minimizer: the local minimizer at every infoset.
      alternating_updates: whether a player sees the strategies to which those before it have just updated, or all see
        those of the last iteration.
      average_power: the strategy of iteration t weighs t^average_power in the average, times the reach of its owner.
      averaged: which strategies of an iteration the averages take, OpenSpiel's "before" or "after" the update; one for
        all players, or one a player.

    Raises:
      GameError: see `compile_game`.
      ArgumentError: the power is not a finite number, or negative.
    """
    self.compiled_game = compile_game(game)
    self.minimizer = minimizer
    self._slices = Slices()
    self.alternating_updates = bool(alternating_updates)
    self._average_power = arguments.real_number(
      average_power, "average_power", 0.0, sys.float_info.max
    )
    num_players = self.compiled_game.num_players
    each = (averaged,) * num_players if isinstance(averaged, str) else averaged
    self._after = np.array([which == "after" for which in each])
    self._start()

  def _start(self) -> None:
    """Sets everything that iterations change to what it is before the first."""
    minimizer, end = self.minimizer, self.compiled_game.end
    self._iteration = np.zeros(1, np.uint64)
    # Games that are cut into subtrees bring their own loop, and do without arrays for the whole game but these.
    self._subtree_loop = None
    if self.compiled_game.subtrees:
      loop = self._subtree_loop = SubtreeLoop(self.compiled_game, minimizer)
      self._strategy, self._average = loop.strategy, loop.average
      self._state, self._local = loop.state, loop.local
      self._sequence = np.zeros(0)
      return
    self._strategy = policy.uniform(self.compiled_game)
    self._sequence = policy.sequence_form(self.compiled_game, self._strategy)
    self._average = aligned_zeros(end)
    self._state = aligned_zeros(minimizer.state_lines, end)
    self._local = minimizer.initial_local(self.compiled_game)
    self._utility = aligned_zeros(end)
    self._prediction = aligned_zeros(end if minimizer.predict else 0)
    self._scratch = aligned_zeros(SCRATCH_LINES, CHUNK)

  @property
  def iteration(self) -> int:
    """How many iterations have been done."""
    return int(self._iteration[0])

  @iteration.setter
  def iteration(self, number: int) -> None:
    self._iteration[0] = number

  def restarted(self) -> Self:
    """Returns the same solver before its first iteration; this one is left alone."""
    result = copy.copy(self)
    result._start()
    return result

  @property
  def game(self) -> pyspiel.Game:
    """The game, sequential, as OpenSpiel has it."""
    return self.compiled_game.game

  @property
  def nodes_touched(self) -> int:
    """How many states a recursive implementation would have visited: all of them, once a player that updates alone."""
    walks = self.compiled_game.num_players if self.alternating_updates else 1
    return self.iteration * walks * self.compiled_game.num_states

  def prepare(self) -> None:
    """Compiles kernels or takes them from disk, so that the first iteration is not slower than others."""
    self._advance(0)
    self.nash_conv()

  def evaluate_and_update_policy(self) -> None:
    """Does one iteration: every player evaluates the current policies and updates its own."""
    self._advance(1)

  def run(self, iterations: int) -> None:
    """Does many iterations: the same numbers as single steps, bit for bit.

    Ctrl-C raises KeyboardInterrupt after a whole number of them, `self.iteration`.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
    """
    for count in self._slices(arguments.positive_integer(iterations, "iterations")):
      self._advance(count)

  def _advance(self, count: int) -> None:
    """Does `count` iterations in one call of compiled code."""
    game = self.compiled_game
    iterations = np.arange(self.iteration + 1, self.iteration + count + 1)
    weights = self._average_weights(iterations)[:, None]
    parameters = self._parameters(iterations)
    before, after = weights * ~self._after, weights * self._after
    if self._subtree_loop is not None:
      gradient = game.subtrees[0].payoff.gradient
      alternating = self.alternating_updates
      self._subtree_loop.advance(gradient, alternating, parameters, before, after, self._iteration)
      return
    predict = self.minimizer.predict or no_prediction
    payoff = game.payoff
    run_iterations(
      payoff.gradient,
      payoff.table,
      payoff.rows,
      payoff.others,
      payoff.values,
      self.minimizer.observe,
      predict,
      self.minimizer.predict is not None,
      self.alternating_updates,
      game.players,
      game.groups,
      game.parent,
      self._state,
      self._local,
      self._strategy,
      self._sequence,
      self._average,
      self._utility,
      self._prediction,
      self._scratch,
      parameters,
      before,
      after,
      self._iteration,
    )

  def _parameters(self, iterations: Int64s) -> Float64s:
    """Returns what the minimizer's kernels are told at these iterations, shape (iterations, numbers)."""
    return self.minimizer.parameters(iterations, self.compiled_game)

  def _average_weights(self, iterations: Int64s) -> Float64s:
    """Returns what the strategies of these iterations weigh in the average, shape (iterations,)."""
    return iterations.astype(np.float64) ** self._average_power

  def current_probabilities(self) -> Float64s:
    """Returns a copy of the current policy in behavioural form, shape (sequences,)."""
    return self._strategy.copy()

  def current_sequence_form(self) -> Float64s:
    """Returns a copy of the current policy in sequence form, shape (sequences,)."""
    return self._sequence.copy()

  def average_probabilities(self) -> Float64s:
    """Returns the average policy in behavioural form, shape (sequences,); uniform where never played to."""
    return policy.behavioral_form(self.compiled_game, self._average)

  def current_policy(self) -> policy.CompiledTabularPolicy:
    """Returns a copy of the current policy, which need not converge."""
    return policy.CompiledTabularPolicy(self.compiled_game, self._strategy)

  def average_policy(self) -> policy.CompiledTabularPolicy:
    """Returns a copy of the average policy, which in two-player zero-sum games converges to a Nash equilibrium.

    Where its owner has never played to, it is uniform, as in OpenSpiel.
    """
    return policy.CompiledTabularPolicy(self.compiled_game, self.average_probabilities())

  def tabular_average_policy(self) -> pyspiel.TabularPolicy:
    """Returns a copy of the average policy as OpenSpiel's C++ class; also the name there."""
    return policy.to_pyspiel(self.compiled_game, self.average_probabilities())

  def tabular_current_policy(self) -> pyspiel.TabularPolicy:
    """Returns a copy of the current policy as OpenSpiel's C++ class."""
    return policy.to_pyspiel(self.compiled_game, self._strategy)

  def average_policy_dict(self) -> policy.PolicyDict:
    """Returns a copy of the average policy as infostate -> action -> probability."""
    return policy.to_dict(self.compiled_game, self.average_probabilities())

  def current_policy_dict(self) -> policy.PolicyDict:
    """Returns a copy of the current policy as infostate -> action -> probability."""
    return policy.to_dict(self.compiled_game, self._strategy)

  def average_sequence_form(self) -> Float64s:
    """Returns the average policy in sequence form, shape (sequences,), without a detour by infosets."""
    result = np.empty(len(self._average))
    for treeplex in self.compiled_game.treeplexes:
      own = slice(treeplex.root, treeplex.end)
      source = self._average if self.iteration else self._current_sequence_form()
      np.divide(source[own], source[treeplex.root], out=result[own])
    return result

  def _current_sequence_form(self) -> Float64s:
    """Returns the current policy in sequence form, shape (sequences,)."""
    if self._subtree_loop is None:
      return self._sequence
    return policy.sequence_form(self.compiled_game, self._strategy)

  def nash_conv(self) -> float:
    """Returns the NashConv of the average policy, without leaving the arrays."""
    if self._subtree_loop is not None:
      gradient = self.compiled_game.subtrees[0].payoff.gradient
      values = self._subtree_loop.best_response_values(gradient, of_uniform=not self.iteration)
      return sum(values) - (self.compiled_game.constant_sum or 0.0)
    return evaluate.evaluate(self.compiled_game, self.average_sequence_form()).nash_conv
