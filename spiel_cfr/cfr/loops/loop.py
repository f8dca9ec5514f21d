"""Iterations of a full-width solver, as lists of steps.

In each iteration the players update one after the other, or all at once. The update of a player is

    gradient        utility[s] = the payoff of the player's sequence s against the others' strategies
    backward pass   from the deepest infosets up:
                      value = sum over actions a of strategy[a] * utility[a]
                      the minimizer adds utility[a] - value to its regrets, and chooses the next strategy
                      utility[the sequence above the infoset] += value
    forward pass    from the root down:
                      cumulative[s] += weight * sequence_form[s]
                      sequence_form[s] = the product of strategy on the way to s

If the average counts strategies after the update, the last two lines change places. `Loop.update_chain` returns this
list, and adds steps that some minimizers and averages need. `WholeGameLoop` runs the list many times in one call of
compiled code. `partitioned_loop` is for games cut into a trunk and subtrees.
"""

import abc

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s
from spiel_cfr._numba.steps import Chain, Step, StepKernel
from spiel_cfr._util import arguments
from spiel_cfr.cfr.averaging import Averaging, averages_after
from spiel_cfr.cfr.loops.arrays import SolverArrays
from spiel_cfr.cfr.loops.averaging_steps import (
  averaging_pass,
  rule_step,
  taper_steps,
  weight_sum_step,
)
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition, Visit
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel_address, try_block_kernel
from spiel_cfr.games.sequence_form.shared_infosets import shared_backward_pass
from spiel_cfr.games.sequence_form.tree_passes import Backward, Tree, backward_pass
from spiel_cfr.games.sequence_form.treeplex import ACTIONS
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

# Players that update at the same time.
Players = tuple[int, ...]


class Loop(abc.ABC):
  """Base class of the iterations of one solver.

  Call `complete_arrays` before reading the arrays. After writing to them, call `lock` with the locked sequences and
  `SolverArrays.compute_reach`.

  Attributes:
    arrays: the state of the solver, and its workspaces.
  """

  def __init__(
    self,
    game: CompiledGame,
    minimizer: RegretMinimizer,
    averaging: Averaging,
    updates: tuple[Players, ...],
    partition: Partition,
  ) -> None:
    """Allocates the arrays. Call `SolverArrays.initialize` before the first iteration.

    Args:
      game: the game.
      minimizer: the regret minimizer.
      averaging: the average.
      updates: the updates of an iteration, one after the other. Each is the tuple of players that update at once.
      partition: the parts of the game.
    """
    self._game, self._minimizer, self._averaging = game, minimizer, averaging
    self._updates = updates
    self.arrays = SolverArrays(game, minimizer, averaging, partition)
    # The steps of an update, by its players.
    self._update_chains: dict[Players, Chain] = {}
    # Iterations leave out forced moves. These steps update the sums there.
    sums = self.arrays.state.cumulative, self.arrays.state.tapered
    self._forced_moves = Chain(
      step for line in sums for step in self.arrays.fill_forced_moves(line).steps
    )

  @abc.abstractmethod
  def advance(self, numbers: Float64s) -> None:
    """Runs iterations, and counts them in the state.

    Args:
      numbers: float64 (iterations, columns). The `IterationNumbers` of each iteration.
    """

  @abc.abstractmethod
  def compile(self) -> None:
    """Compiles the steps of an iteration, or loads them from disk, without running them."""

  def update_chain(self, players: Players) -> Chain:
    """Returns the steps in which `players` update at the same time in part 0, the whole game or its trunk.

    For CFR+, these are the gradient, the backward pass, the forward pass, and the sum of weights.
    """
    if players in self._update_chains:
      return self._update_chains[players]
    part_steps = self.arrays.part_steps
    visits = [visit for visit in part_steps.visits(0) if visit.player in players]
    steps = [part_steps.gradient(visit) for visit in visits]
    for visit in visits:
      steps += [*self.minimizer_steps(visit), *self._averaging_steps(visit)]
    self._update_chains[players] = Chain(steps)
    return self._update_chains[players]

  def minimizer_steps(self, visit: Visit) -> list[Step]:
    """Returns the steps in which a player's minimizer observes the gradient in a part, and chooses the next strategy.

    For CFR+ on a whole game, this is one backward pass. A predictive minimizer has a second one. In a game in parts,
    the trunk first adds the values of the subtrees, and a subtree passes up its values at the end.
    """
    part_steps, predict = self.arrays.part_steps, self.arrays.predict
    steps = [part_steps.copy_to_prediction(visit)] if predict is not None else []
    steps += part_steps.add_passed_up_values(visit)
    steps.append(self._backward_step(visit, self._minimizer.observe, predicts=False))
    if predict is not None:
      steps.append(self._backward_step(visit, predict, predicts=True))
    return [*steps, *part_steps.pass_up_values(visit), *self.arrays.restore_locked_steps(visit)]

  def _backward_step(self, visit: Visit, kernel: StepKernel, *, predicts: bool) -> Step:
    """Returns the backward pass of a block kernel over utilities; if `predicts`, over predicted utilities."""
    utility = visit.prediction if predicts else visit.utility
    game, parameters = self._game, self.arrays.iteration_numbers.parameters
    record = self.backward_arguments(visit, kernel, utility, parameters)
    if game.shared_infosets is None:
      return backward_pass.on(record, game.dtype)
    # `SharedInfosets.levels` numbers the groups of all players, so this pass receives all of them.
    record = record._replace(tree=Tree(game.groups, game.parent))
    return shared_backward_pass(record, game.shared_infosets, visit.player, predicts)

  def backward_arguments(
    self, visit: Visit, kernel: StepKernel, utility: AnyFloats, parameters: Float64s
  ) -> Backward:
    """Returns the arguments of a backward pass of a block kernel over utilities, shape (sequences,).

    Raises:
      ArgumentError: a user's kernel reads beyond its arrays, see `try_block_kernel`.
    """
    arrays = self.arrays
    block = Block(
      strategy=arrays.strategy(visit),
      utility=utility,
      action_state=arrays.action_state(visit),
      infoset_state=arrays.infoset_state(visit),
      scale=arrays.scale(visit),
      value=visit.workspace.scratch.line,
      scratch=visit.workspace.scratch.lines,
      parameters=parameters,
    )
    tree, minimizer = arrays.tree(visit), self._minimizer
    # Steps do not check indices, so a user's kernel first runs once with checks.
    if not arguments.is_built_in(minimizer) and len(tree.groups):
      try_block_kernel(kernel, block, int(tree.groups[:, ACTIONS].max()), minimizer)
    return Backward(tree, block_kernel_address(kernel, self._game.dtype), block)

  def _averaging_steps(self, visit: Visit) -> list[Step]:
    """Returns the steps that compute a player's sequence form in part 0, and add it to the average."""
    arrays, averaging = self.arrays, self._averaging
    after = averages_after(averaging, visit.player, self._updates)
    if averaging.rule is None:
      forward = averaging_pass(arrays, visit, arrays.iteration_numbers.weight, after)
      return [forward, weight_sum_step(arrays, visit.player)]
    forward_steps = arrays.part_steps.reach(visit, arrays.strategy(visit))
    average = rule_step(arrays, visit, averaging.rule)
    return [*forward_steps, average] if after else [average, *forward_steps]

  def set_iteration_numbers(self, numbers: Float64s) -> None:
    """Writes the weight and the parameters of the current iteration."""
    self.arrays.iteration_numbers.joined[:] = numbers

  @abc.abstractmethod
  def update_player(self, player: int, numbers: Float64s) -> None:
    """Updates one player, as a part of an iteration with these numbers. Call `end_iteration` after all players."""

  def end_iteration(self) -> None:
    """Ends an iteration: adds to the tapered sums if that is due, and counts the iteration."""
    Chain(taper_steps(self.arrays)).run()
    self.arrays.state.counts[0] += np.uint64(1)

  @abc.abstractmethod
  def complete_arrays(self) -> None:
    """Writes the numbers that iterations leave out: of forced moves, and of subtrees that other processes hold."""

  def lock(self, sequences: Int64s) -> None:
    """Locks the current probabilities of these sequences in all following iterations, and unlocks all others."""
    self.arrays.lock(sequences)
    # Chains have steps that restore locked probabilities.
    self._update_chains.clear()


class WholeGameLoop(Loop):
  """Iterations in a game of one part."""

  # The steps of a whole iteration; None before they are needed.
  _iteration: Chain | None = None

  def advance(self, numbers: Float64s) -> None:
    if self._iteration is None:
      steps = [step for players in self._updates for step in self.update_chain(players).steps]
      self._iteration = Chain([*steps, *taper_steps(self.arrays)])
    self._iteration.repeat(numbers, self.arrays.iteration_numbers.joined, self.arrays.state.counts)
    self._forced_moves.run()

  def compile(self) -> None:
    # Zero iterations: `advance` makes all steps, for which it compiles them, and repeats them 0 times.
    self.advance(np.zeros((0, len(self.arrays.iteration_numbers.joined))))

  def lock(self, sequences: Int64s) -> None:
    super().lock(sequences)
    self._iteration = None

  def update_player(self, player: int, numbers: Float64s) -> None:
    self.set_iteration_numbers(numbers)
    self.update_chain((player,)).run()

  def complete_arrays(self) -> None:
    self._forced_moves.run()
