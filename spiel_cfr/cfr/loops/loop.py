"""Iterations of a full-width solver, as lists of steps.

For each player that updates, an iteration of CFR is

    gradient        utility = the value of each sequence to the player, given the strategies of the others
    backward pass   from the leaves up: at every infoset the minimizer observes its utilities and chooses the next
                    strategy; the value of the infoset is added to the sequence above it
    forward pass    from the root down: local strategies become sequence form, and are added to the average

`Loop.trunk` is that list, with the steps that some minimizers and averages need besides. In a game that is one part,
many iterations are one call of compiled code.

In a game that is cut into a trunk and subtrees, the subtrees are visited before the trunk, one at a time: the
opponents' reach probabilities, the gradients, and the backward passes, which leave values for the trunk. So one small
workspace serves all subtrees. They are visited by this process, or by others (`sharded_subtrees`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, aligned_zeros
from spiel_cfr._numba.line_steps import Pick, scatter_line
from spiel_cfr._numba.steps import Chain, Step, StepKernel
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.arrays import IterationNumbers, SolverArrays
from spiel_cfr.cfr.loops.subtrees import LocalSubtrees, Subtrees, Turn
from spiel_cfr.cfr.loops.summing import sum_gradients, sum_values, taper
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition, Visit, Workspace
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel_address
from spiel_cfr.games.sequence_form.shared_infosets import (
  SharedBackward,
  observe_shared,
  predict_shared,
  spans_depths,
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
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, resumption


class Loop:
  """Iterations of one solver.

  Call `gather` before reading the arrays. After writing to them, call `lock` with the locked sequences and
  `SolverArrays.reach`.

  Attributes:
    arrays: the arrays.
  """

  def __init__(
    self,
    game: CompiledGame,
    minimizer: RegretMinimizer,
    averaging: Averaging,
    partition: Partition,
    subtrees: Callable[[SolverArrays, Callable[..., Chain]], Subtrees] = LocalSubtrees,
  ) -> None:
    """Allocates the arrays. Call `SolverArrays.begin` before the first iteration.

    Raises:
      AbstractionError: the minimizer predicts, and shared infosets differ in depth.
    """
    self._game, self._minimizer, self._dtype = game, minimizer, game.dtype
    shared = game.shared_infosets
    if shared is not None and minimizer.predict is not None and spans_depths(shared, game.groups):
      raise errors.AbstractionError(
        f"{minimizer} predicts utilities from the deepest infosets up, which needs buckets of infosets that are as "
        "deep; some in this game are not. Take a solver without predictions, such as DCFRSolver, or put the number of "
        "own actions into the names of the buckets."
      )
    self.arrays = SolverArrays(game, minimizer, averaging, partition)
    self._pooled = aligned_zeros(game.end if shared else 0, dtype=game.dtype)
    self._chains: dict[Any, Chain] = {}
    self._subtrees = subtrees(self.arrays, self.subtree)
    # The sums of infosets that iterations leave out, since they have one action.
    sums = self.arrays.state.cumulative, self.arrays.state.tapered
    self._forced = Chain(each for line in sums for each in self.arrays.copy_forced(line).steps)

  def advance(self, alternating: bool, rows: Float64s) -> None:
    """Runs as many iterations as there are rows of `IterationNumbers`, and counts them in the state.

    With alternating updates, a player sees the new strategies of those before it. Otherwise all see the last ones.
    """
    arrays, players = self.arrays, tuple(self.arrays.walk.players)
    turns = tuple((player,) for player in players) if alternating else (players,)
    self.set_numbers(rows[0] if len(rows) else np.zeros(rows.shape[1]))
    if len(arrays.parts) == 1:
      self._iteration(turns).repeat(rows, arrays.numbers.row, arrays.state.counts)
      self._forced.run()
      return
    if not len(rows):
      self._compile(turns)
      return
    # By iteration and player, before and after the update.
    weights = rows[:, : 2 * len(players)].reshape(len(rows), len(players), 2)
    self.arrays.deferred[:, 1] = weights[0, :, 0]

    def iterate(number: int, last: bool) -> None:
      self.set_numbers(rows[number])
      adds = arrays.numbers.addition[0] != 0.0
      upcoming = np.zeros(len(players)) if last else weights[number + 1, :, 0]
      for turn in turns:
        self._take_turn(turn)
        self.arrays.deferred[turn, 1] = weights[number, turn, 1]
        if not (last or adds):
          self.arrays.deferred[turn, 1] += upcoming[list(turn)]
      if last or adds:
        self._complete_averages()
        self.arrays.deferred[:, 1] = upcoming
      if adds:
        self._subtrees.gather_averages()
      self.count()

    whole_steps(iterate, len(rows))
    self._subtrees.check()

  def _compile(self, turns: tuple[Turn, ...]) -> None:
    """Compiles the steps of an iteration in a game that is cut into parts, without running one."""
    self.arrays.deferred[:, 1] = 1.0
    for turn in turns:
      self.subtree(1, self.arrays.walk.workspaces[0], turn)
      self.trunk(turn)
    self._taper()
    self.arrays.deferred[:] = 0.0

  def _take_turn(self, turn: Turn) -> None:
    self._subtrees.visit(turn)
    self.arrays.deferred[:] = 0.0
    self.trunk(turn).run()

  def _complete_averages(self) -> None:
    """Adds to the averages of subtrees what is deferred, in a visit that does nothing else."""
    if self.arrays.deferred.any():
      self._subtrees.visit(())
      self.arrays.deferred[:] = 0.0

  def update_player(self, player: int, row: Float64s) -> None:
    """Updates one player in an iteration of these numbers; `count` ends the iteration."""
    self.set_numbers(row)
    if len(self.arrays.parts) == 1:
      self.trunk((player,)).run()
      return
    before, after = self.arrays.numbers.weights[player].tolist()
    self.arrays.deferred[player, 1] = before
    self._take_turn((player,))
    self.arrays.deferred[player, 1] = after
    self._complete_averages()
    self._subtrees.check()

  def count(self) -> None:
    """Adds to tapered sums, if the numbers of the iteration say so, and counts it."""
    self._taper().run()
    self.arrays.state.counts[0] += np.uint64(1)

  def _taper(self) -> Chain:
    """Returns the steps that add to tapered sums at the end of an iteration."""
    if "taper" not in self._chains:
      self._chains["taper"] = Chain(taper(self.arrays))
    return self._chains["taper"]

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

  def gather(self) -> None:
    """Brings the arrays up to date."""
    self._subtrees.gather()
    self._forced.run()

  def init_from_strategy(self, sequence_form: Float64s, parameters: Float64s) -> None:
    """Goes on from other strategies: they become the current ones, and the minimizer's state is made to fit them.

    Args:
      sequence_form: shape (sequences,). An infoset that its owner never reaches keeps its strategy.
      parameters: the minimizer's parameters of the last iteration.
    """
    arrays, kernel = self.arrays, resumption(self._minimizer)
    arrays.adopt(sequence_form)
    for number, part in enumerate(arrays.parts):
      for visit, tree in zip(arrays.walk.visits(number), part.every_infoset, strict=True):
        visit.workspace.scratch.value[:] = 0.0
        record = self._backward(visit, kernel, visit.utility)
        block = record.block._replace(parameters=parameters)
        Chain([backward_pass.on(record._replace(tree=tree, block=block), self._dtype)]).run()
    arrays.reach()

  def _iteration(self, turns: tuple[Turn, ...]) -> Chain:
    """Returns an iteration in a game that is one part."""
    if turns not in self._chains:
      steps = [each for turn in turns for each in self.trunk(turn).steps]
      self._chains[turns] = Chain([*steps, *self._taper().steps])
    return self._chains[turns]

  def trunk(self, turn: Turn) -> Chain:
    """Returns the steps of players that update at once in part 0: gradients, updates, averages."""
    if turn in self._chains:
      return self._chains[turn]
    arrays, steps = self.arrays, list[Step]()
    visits = [Visit(0, player, arrays.walk.trunk) for player in turn]
    for visit in visits:
      steps += [arrays.walk.gradient(visit), *sum_gradients(arrays, visit)]
    for visit in visits:
      weights = arrays.numbers.weights[visit.player]
      steps += [*self._update(visit), *sum_values(arrays, visit), self._average(visit, weights)]
      total = Weigh(arrays.total(visit.player), weights)
      steps.append(add_weight.on(total, self._dtype))
    self._chains[turn] = Chain(steps)
    return self._chains[turn]

  def subtree(self, number: int, workspace: Workspace, turn: Turn) -> Chain:
    """Returns the steps of players that update at once in a subtree, and the averages that are due.

    Averages are *deferred*. A subtree is visited once a turn. A player's new strategy is added to its average at the
    next visit, that of the opponent's turn, which computes its reach probabilities anyway. Its weight is then the one
    after this update plus the one before the next.
    """
    due = (self.arrays.deferred[:, 1] != 0.0).tolist()
    key = number, workspace, turn, *due
    if key in self._chains:
      return self._chains[key]
    walk, steps = self.arrays.walk, []
    visits = [Visit(number, player, workspace) for player in walk.players]
    for visit in visits:
      if due[visit.player]:
        steps += walk.enter(visit)
        steps.append(self._average(visit, self.arrays.deferred[visit.player]))
      elif any(player != visit.player for player in turn):
        steps += walk.reach(visit, self.arrays.strategy(visit))
    steps += [walk.gradient(visits[player]) for player in turn]
    for player in turn:
      steps += self._update(visits[player])
    self._chains[key] = Chain(steps)
    return self._chains[key]

  def _update(self, visit: Visit) -> list[Step]:
    """Returns the steps in which a player observes its gradient and chooses its next strategy."""
    walk, predict, steps = self.arrays.walk, self.arrays.predict, []
    if predict is not None:
      steps.append(walk.copy_to_prediction(visit))
    steps += walk.collect(visit)
    steps.append(self._observe(visit))
    if predict is not None:
      steps.append(self._predict(visit, predict))
    steps += walk.leave(visit)
    places, probabilities = self.arrays.locked_in(visit)
    if len(places):
      locked = Pick(probabilities, places.astype(np.uint32), self.arrays.strategy(visit))
      steps.append(scatter_line.on(locked, self._dtype))
    return steps

  def _observe(self, visit: Visit) -> Step:
    """Returns the backward pass of utilities."""
    shared = self._game.shared_infosets
    record = self._backward(visit, self._minimizer.observe, visit.utility)
    if shared is None:
      return backward_pass.on(record, self._dtype)
    return observe_shared.on(
      SharedBackward(record, shared, visit.player, visit.utility, visit.utility)
    )

  def _predict(self, visit: Visit, kernel: StepKernel) -> Step:
    """Returns the backward pass of predicted utilities."""
    shared = self._game.shared_infosets
    if shared is None:
      return backward_pass.on(self._backward(visit, kernel, visit.prediction), self._dtype)
    record = self._backward(visit, kernel, self._pooled)
    return predict_shared.on(
      SharedBackward(record, shared, visit.player, visit.prediction, self._pooled)
    )

  def _backward(self, visit: Visit, kernel: StepKernel, utility: AnyFloats) -> Backward:
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
    return Backward(tree, block_kernel_address(kernel, self._dtype), block)

  def _average(self, visit: Visit, weights: Float64s) -> Step:
    """Returns the forward pass."""
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
    return forward_pass.on(record, self._dtype)
