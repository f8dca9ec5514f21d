"""Iterations of a full-width solver, as lists of steps.

For each player that updates, an iteration of CFR is

    gradient        utility = the value of each sequence to the player, given the strategies of the others
    backward pass   from the leaves up: at every infoset the minimizer observes its utilities and chooses the next
                    strategy; the value of the infoset is added to the sequence above it
    forward pass    from the root down: local strategies become sequence form, and are added to the average

`Loop.update` is that list, with the steps that some minimizers and averages need besides. `WholeLoop` runs many
iterations in one call of compiled code. `parts_loop` has the loop of games that are cut into a trunk and subtrees.
"""

import abc
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, aligned_zeros
from spiel_cfr._numba.line_steps import Pick, scatter_line
from spiel_cfr._numba.steps import Chain, Step, StepKernel
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.arrays import IterationNumbers, SolverArrays
from spiel_cfr.cfr.loops.summing import add_by_rule, sum_gradients, sum_values, taper
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
  Weigh,
  add_weight,
  backward_pass,
  forward_pass,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

# The players that update at once.
Turn = tuple[int, ...]


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
    # The sums of infosets that iterations leave out, since they have one action.
    sums = self.arrays.state.cumulative, self.arrays.state.tapered
    self._forced = Chain(each for line in sums for each in self.arrays.copy_forced(line).steps)

  def advance(self, alternating: bool, rows: Float64s) -> None:
    """Runs as many iterations as there are rows of `IterationNumbers`, and counts them in the state.

    With alternating updates, a player sees the new strategies of those before it. Otherwise all see the last ones.
    """
    players = tuple(self.arrays.walk.players)
    self.set_numbers(rows[0] if len(rows) else np.zeros(rows.shape[1]))
    self._run(tuple((player,) for player in players) if alternating else (players,), rows)

  @abc.abstractmethod
  def _run(self, turns: tuple[Turn, ...], rows: Float64s) -> None:
    """Runs iterations, each a list of turns; without rows, compiles what they need."""

  @abc.abstractmethod
  def update_player(self, player: int, row: Float64s) -> None:
    """Updates one player in an iteration of these numbers; `count` ends the iteration."""

  @abc.abstractmethod
  def gather(self) -> None:
    """Brings the arrays up to date."""

  def set_numbers(self, row: Float64s) -> None:
    """Makes this row the numbers of the current iteration."""
    arrays = self.arrays
    if len(row) != len(arrays.numbers.row):
      self._chains.clear()
      arrays.numbers = IterationNumbers(len(row), self._game.num_players)
    arrays.numbers.row[:] = row

  def lock(self, sequences: Int64s) -> None:
    """From now on keeps the probabilities of these sequences as they are, whatever the minimizer chooses."""
    self.arrays.lock(sequences)
    self._chains.clear()

  def count(self) -> None:
    """Adds to tapered sums, if the numbers of the iteration say so, and counts it."""
    self.taper().run()
    self.arrays.state.counts[0] += np.uint64(1)

  def taper(self) -> Chain:
    """Returns the steps that add to tapered sums at the end of an iteration."""
    if "taper" not in self._chains:
      self._chains["taper"] = Chain(taper(self.arrays))
    return self._chains["taper"]

  def update(self, turn: Turn) -> Chain:
    """Returns the steps in which players update at once in part 0, the whole game or its trunk."""
    if turn in self._chains:
      return self._chains[turn]
    arrays, steps = self.arrays, list[Step]()
    visits = [Visit(0, player, arrays.walk.trunk) for player in turn]
    for visit in visits:
      steps += [arrays.walk.gradient(visit), *sum_gradients(arrays, visit)]
    for visit in visits:
      steps += [*self.choose(visit), *sum_values(arrays, visit), *self._average(visit)]
    self._chains[turn] = Chain(steps)
    return self._chains[turn]

  def choose(self, visit: Visit) -> list[Step]:
    """Returns the steps in which a player observes its gradient in a part and chooses its next strategy there."""
    walk, predict, steps = self.arrays.walk, self.arrays.predict, []
    if predict is not None:
      steps.append(walk.copy_to_prediction(visit))
    steps += walk.collect(visit)
    steps.append(self._backward_pass(visit, self._minimizer.observe, visit.utility))
    if predict is not None:
      steps.append(self._backward_pass(visit, predict, visit.prediction))
    steps += walk.leave(visit)
    places, probabilities = self.arrays.locked_in(visit)
    if len(places):
      locked = Pick(probabilities, places.astype(np.uint32), self.arrays.strategy(visit))
      steps.append(scatter_line.on(locked, self._game.dtype))
    return steps

  def _backward_pass(self, visit: Visit, kernel: StepKernel, utility: AnyFloats) -> Step:
    """Returns the backward pass of utilities, or of predicted utilities."""
    shared = self._game.shared_infosets
    if shared is None:
      return backward_pass.on(self.backward(visit, kernel, utility), self._game.dtype)
    observes = utility is visit.utility
    pooled = utility if observes else self._pooled
    record = SharedBackward(
      self.backward(visit, kernel, pooled), shared, visit.player, utility, pooled
    )
    return (observe_shared if observes else predict_shared).on(record)

  def backward(self, visit: Visit, kernel: StepKernel, utility: AnyFloats) -> Backward:
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
      # Their levels count the groups of all players.
      tree = Tree(game.groups, game.parent)
    return Backward(tree, block_kernel_address(kernel, game.dtype), block)

  def _average(self, visit: Visit) -> list[Step]:
    """Returns the steps that compute a player's reach probabilities in part 0 and add them to its average."""
    arrays, averaging = self.arrays, self._averaging
    if averaging.rule is not None:
      only_reach = self.forward(visit, np.zeros(2))
      return add_by_rule(arrays, visit, averaging.rule, averaging.counted, only_reach)
    weights = arrays.numbers.weights[visit.player]
    total = add_weight.on(Weigh(arrays.total(visit.player), weights), self._game.dtype)
    return [self.forward(visit, weights), total]

  def forward(self, visit: Visit, weights: Float64s) -> Step:
    """Returns the forward pass, which adds to the average with these weights before and after the update."""
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


class WholeLoop(Loop):
  """Iterations in a game that is one part."""

  def _run(self, turns: tuple[Turn, ...], rows: Float64s) -> None:
    if turns not in self._chains:
      steps = [each for turn in turns for each in self.update(turn).steps]
      self._chains[turns] = Chain([*steps, *self.taper().steps])
    self._chains[turns].repeat(rows, self.arrays.numbers.row, self.arrays.state.counts)
    self._forced.run()

  def update_player(self, player: int, row: Float64s) -> None:
    self.set_numbers(row)
    self.update((player,)).run()

  def gather(self) -> None:
    self._forced.run()
