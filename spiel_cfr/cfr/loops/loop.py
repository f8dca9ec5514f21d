"""Iterations of a full-width solver, as lists of steps.

In each iteration the players update in turn, or all at once. The update of a player is

    gradient        utility[s] = the payoff of the player's sequence s against the others' strategies
    backward pass   from the deepest infosets up:
                      value = sum over actions a of strategy[a] * utility[a]
                      the minimizer adds utility[a] - value to its regrets, and chooses the next strategy
                      utility[the sequence above the infoset] += value
    forward pass    from the root down:
                      sequence_form[s] = the product of strategy on the way to s
                      cumulative[s] += weight * sequence_form[s]

`Loop.update_chain` is this list, with the steps that some minimizers and averages need besides. `WholeLoop` runs it
many times in one call of compiled code. `parts_loop` has the loop of games that are cut into a trunk and subtrees.
"""

import abc
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, aligned_zeros
from spiel_cfr._numba.steps import Chain, Step, StepKernel
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.arrays import IterationNumbers, SolverArrays
from spiel_cfr.cfr.loops.summing import (
  add_by_rule,
  sum_gradients,
  sum_values,
  sum_weights,
  taper,
)
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition, Visit
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel_address
from spiel_cfr.games.sequence_form.shared_infosets import (
  SharedBackward,
  observe_shared,
  predict_shared,
)
from spiel_cfr.games.sequence_form.tree_passes import (
  Backward,
  Forward,
  Tree,
  backward_pass,
  forward_pass,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

# Players that update at the same time.
Players = tuple[int, ...]


class Loop(abc.ABC):
  """Base class of the iterations of one solver.

  Call `gather` before reading the arrays. After writing to them, call `lock` with the locked sequences and
  `SolverArrays.reach`.

  Attributes:
    arrays: the arrays.
  """

  def __init__(
    self, game: CompiledGame, minimizer: RegretMinimizer, averaging: Averaging, partition: Partition
  ) -> None:
    """Allocates the arrays. Call `SolverArrays.begin` before the first iteration."""
    self._game, self._minimizer, self._averaging = game, minimizer, averaging
    self.arrays = SolverArrays(game, minimizer, averaging, partition)
    self._pooled = aligned_zeros(game.end if game.shared_infosets else 0, dtype=game.dtype)
    self._chains: dict[Any, Chain] = {}
    # Iterations leave out infosets with one action. These steps bring their sums up to date.
    sums = self.arrays.state.cumulative, self.arrays.state.tapered
    self._forced = Chain(step for line in sums for step in self.arrays.copy_forced(line).steps)

  @abc.abstractmethod
  def advance(self, updates: tuple[Players, ...], rows: Float64s) -> None:
    """Runs iterations, and counts them in the state.

    Args:
      updates: the updates of an iteration, one after the other.
      rows: float64 (iterations, numbers). The `IterationNumbers` of each iteration; without rows, the steps are
        compiled.
    """

  def update_chain(self, players: Players) -> Chain:
    """Returns the steps in which players update at the same time in part 0, the whole game or its trunk.

    For CFR+, these are the gradient, the backward pass, the forward pass, and the sum of weights.
    """
    if players in self._chains:
      return self._chains[players]
    arrays, steps = self.arrays, list[Step]()
    visits = [Visit(0, player, arrays.walk.trunk) for player in players]
    for visit in visits:
      steps += [arrays.walk.gradient(visit), *sum_gradients(arrays, visit)]
    for visit in visits:
      steps += [*self.choose_steps(visit), *sum_values(arrays, visit), *self._average(visit)]
    self._chains[players] = Chain(steps)
    return self._chains[players]

  def choose_steps(self, visit: Visit) -> list[Step]:
    """Returns the steps in which a player observes its gradient in a part and chooses its next strategy there.

    For CFR+ on a whole game, this is one backward pass.
    """
    walk, predict = self.arrays.walk, self.arrays.predict
    steps = [walk.copy_to_prediction(visit)] if predict is not None else []
    steps += walk.collect(visit)
    steps.append(self._backward_step(visit, self._minimizer.observe, visit.utility))
    if predict is not None:
      steps.append(self._backward_step(visit, predict, visit.prediction))
    return [*steps, *walk.leave(visit), *self.arrays.restore_locked_in(visit)]

  def _backward_step(self, visit: Visit, kernel: StepKernel, utility: AnyFloats) -> Step:
    """Returns the backward pass of utilities, or of predicted utilities."""
    shared = self._game.shared_infosets
    if shared is None:
      return backward_pass.on(self.backward_arguments(visit, kernel, utility), self._game.dtype)
    observes = utility is visit.utility
    pooled = utility if observes else self._pooled
    arguments = self.backward_arguments(visit, kernel, pooled)
    record = SharedBackward(arguments, shared, visit.player, utility, pooled)
    return (observe_shared if observes else predict_shared).on(record)

  def backward_arguments(self, visit: Visit, kernel: StepKernel, utility: AnyFloats) -> Backward:
    """Returns the arguments of a backward pass."""
    arrays, game = self.arrays, self._game
    block = Block(
      strategy=arrays.strategy(visit),
      utility=utility,
      action_state=arrays.action_state(visit),
      infoset_state=arrays.infoset_state(visit),
      scale=arrays.scale(visit),
      value=visit.workspace.scratch.value,
      scratch=visit.workspace.scratch.lines,
      parameters=arrays.numbers.parameters,
    )
    tree = arrays.tree(visit)
    if game.shared_infosets is not None:
      # The levels of shared infosets count the groups of all players.
      tree = Tree(game.groups, game.parent)
    return Backward(tree, block_kernel_address(kernel, game.dtype), block)

  def _average(self, visit: Visit) -> list[Step]:
    """Returns the steps that compute a player's sequence form in part 0 and add it to the average."""
    arrays, averaging = self.arrays, self._averaging
    if averaging.rule is not None:
      without_sums = self.forward_step(visit, np.zeros(2))
      return add_by_rule(arrays, visit, averaging.rule, averaging.counted, without_sums)
    forward = self.forward_step(visit, arrays.numbers.weights[visit.player])
    return [forward, sum_weights(arrays, visit.player)]

  def forward_step(self, visit: Visit, weights: Float64s) -> Step:
    """Returns the forward pass; `weights` are those of the sequence form before and after the update."""
    arrays = self.arrays
    record = Forward(
      tree=arrays.tree(visit),
      strategy=arrays.strategy(visit),
      sequence_form=visit.sequence_form,
      reach=visit.workspace.scratch.value,
      cumulative=arrays.cumulative(visit),
      weights=weights,
      total=arrays.total(visit.player),
    )
    return forward_pass.on(record, self._game.dtype)

  def taper_chain(self) -> Chain:
    """Returns the steps that add to tapered sums at the end of an iteration."""
    if "taper" not in self._chains:
      self._chains["taper"] = Chain(taper(self.arrays))
    return self._chains["taper"]

  def set_numbers(self, row: Float64s) -> None:
    """Makes a row the numbers of the current iteration."""
    arrays = self.arrays
    if len(row) != len(arrays.numbers.row):
      self._chains.clear()
      arrays.numbers = IterationNumbers(len(row), self._game.num_players)
    arrays.numbers.row[:] = row

  @abc.abstractmethod
  def update_player(self, player: int, row: Float64s) -> None:
    """Updates one player in an iteration with these numbers; `count` ends the iteration."""

  def count(self) -> None:
    """Ends an iteration: adds to tapered sums, if an addition is due, and counts it."""
    self.taper_chain().run()
    self.arrays.state.counts[0] += np.uint64(1)

  @abc.abstractmethod
  def gather(self) -> None:
    """Brings the arrays up to date."""

  def lock(self, sequences: Int64s) -> None:
    """Keeps the current probabilities of these sequences in all following iterations."""
    self.arrays.lock(sequences)
    self._chains.clear()


class WholeLoop(Loop):
  """Iterations in a game that is one part."""

  def advance(self, updates: tuple[Players, ...], rows: Float64s) -> None:
    self.set_numbers(rows[0] if len(rows) else np.zeros(rows.shape[1]))
    if updates not in self._chains:
      steps = [step for players in updates for step in self.update_chain(players).steps]
      self._chains[updates] = Chain([*steps, *self.taper_chain().steps])
    self._chains[updates].repeat(rows, self.arrays.numbers.row, self.arrays.state.counts)
    self._forced.run()

  def update_player(self, player: int, row: Float64s) -> None:
    self.set_numbers(row)
    self.update_chain((player,)).run()

  def gather(self) -> None:
    self._forced.run()
