"""The loop over a game that is cut into a trunk and subtrees.

The same three steps as in `whole_game`, in another order: a subtree is gone through from its reach probabilities to
the new strategies before the next one is touched. What a solver must remember lies in one block per subtree; all else
is a workspace that serves one subtree after the other.

An iteration of the players that update together, a *turn*:

1. In each subtree: reach probabilities from the trunk's, of the opponents; the gradients of the players that update;
   the backward pass, whose values at the trunk's sequences are kept.
2. In the trunk: the gradients, to which those values are added; the backward and forward passes.

Updates of averages are *deferred*: they are done where reach probabilities are computed anyway, in the opponent's next
turn, with the weight that a strategy has after its own update and before the next one.

Who goes through the subtrees is a choice of the game: this process, or others, see `sharded_subtrees`.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, aligned_zeros
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.loop import FullWidthState, IterationNumbers, Loop
from spiel_cfr.cfr.loops.part_steps import LocalSubtrees, PartSteps, Subtrees
from spiel_cfr.cfr.loops.sharded_subtrees import ShardedSubtrees
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Partition
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, resumption


class PartitionedLoop(Loop):
  """See the module's docstring.

  `strategy` and `cumulative` are in the game's order; of `action_state` and `infoset_state` each part has a block of
  all its lines.
  """

  def __init__(
    self,
    game: CompiledGame,
    minimizer: RegretMinimizer,
    partition: Partition,
    averaging: Averaging,
  ) -> None:
    """Allocates the arrays; strategies are uniform.

    Raises:
      ShardError: other processes are to go through the subtrees, and the minimizer can't be pickled.
    """
    super().__init__(game, minimizer)
    self._steps = PartSteps(game, minimizer, partition)
    self._subtrees: Subtrees = LocalSubtrees(self._steps)
    if partition.shards is not None:
      self._subtrees = ShardedSubtrees(self._steps, partition.shards, minimizer)
    memory = self._steps.memory
    # There are two players, so that averages say what gradients were.
    self.state = FullWidthState(
      strategy=memory.strategy,
      cumulative=memory.cumulative,
      tapered=aligned_zeros(game.end if averaging.tapered else 0, dtype=game.dtype),
      action_state=memory.action_state,
      infoset_state=memory.infoset_state,
      gradients=aligned_zeros(0),
      play_values=np.zeros(len(PLAYERS) if averaging.correlated else 0),
      locked=np.zeros(game.num_infosets, np.uint8),
    )
    self._partition, self._parts = partition, partition.parts
    self.lock(np.zeros(0, np.int64))
    self._begin()

  def lock(self, sequences: Int64s) -> None:
    super().lock(sequences)
    self._steps.locked = self._locked, self._kept

  def advance(self, alternating: bool, numbers: IterationNumbers) -> None:
    parameters, before, after, additions = numbers
    done = self.state.counts
    turns = [(0,), (1,)] if alternating else [PLAYERS]
    deferred = before[:1].sum(axis=0)

    def iterate(number: int, last: bool) -> None:
      complete = last or additions[number] != 0.0
      upcoming = np.zeros(len(PLAYERS)) if last else before[number + 1]
      for turn in turns:
        self._update(turn, parameters[number], before[number], after[number], deferred)
        for player in turn:
          deferred[player] = after[number, player] + (0.0 if complete else upcoming[player])
      if complete:
        self._complete_averages(deferred)
        deferred[:] = upcoming
      if additions[number]:
        self._subtrees.gather_averages()
        self._add_to_tapered(additions[number])
        done[1] = done[0] + np.uint64(1)
      done[0] += np.uint64(1)

    self._reach_trunk()
    whole_steps(iterate, len(parameters))
    self._subtrees.check()

  def update(self, player: int, numbers: IterationNumbers) -> None:
    parameters, before, after = (row[0] for row in numbers[:3])
    self._reach_trunk()
    deferred = np.zeros(len(PLAYERS))
    deferred[player] = before[player]
    self._update((player,), parameters, before, after, deferred)
    deferred[player] = after[player]
    self._complete_averages(deferred)
    self._subtrees.check()

  def _update(
    self,
    turn: Sequence[int],
    parameters: Float64s,
    before: Float64s,
    after: Float64s,
    deferred: Float64s,
  ) -> None:
    """Does both steps of a turn, and what is deferred."""
    self._subtrees.visit(turn, parameters, deferred)
    deferred[:] = 0.0
    self._restore_locked()
    steps, workspace = self._steps, self._steps.walk.trunk
    for player in turn:
      steps.walk.gradient(0, player, workspace)
    for player in turn:
      steps.observe_trunk(player, parameters)
      self._restore_locked()
      if len(self.state.play_values):
        self.state.play_values[player] += before[player] * workspace.utility[player][0][0]
      weights = float(before[player]), float(after[player])
      total = steps.total(player)
      self.state.cumulative[self._parts[0].sequences[player].start] += sum(weights)
      steps.forward_trunk(player, *weights, total)

  def _complete_averages(self, deferred: Float64s) -> None:
    """Adds to averages what is deferred, where nothing else is to be done."""
    if deferred.any():
      self._subtrees.visit((), np.zeros(0), deferred)
      deferred[:] = 0.0

  def _add_to_tapered(self, factor: float) -> None:
    """Adds a multiple of the sums to the tapered ones; padding stays 0."""
    for part in self._parts:
      for own in part.sequences:
        self.state.tapered[own] += factor * self.state.cumulative[own]

  def _reach_trunk(self) -> None:
    """Computes the reach probabilities of the trunk."""
    for player in PLAYERS:
      self._steps.reach(0, player, self._steps.walk.trunk)

  def current_sequence_form(self) -> AnyFloats:
    result, walk = aligned_zeros(self._game.end, dtype=self._game.dtype), self._steps.walk
    for number, part in enumerate(self._parts):
      workspace = walk.workspaces[0] if number else walk.trunk
      for player, own in enumerate(part.sequences):
        reach = workspace.sequence_form[player]
        # Padding stays 0.
        reach[:] = 0.0
        self._steps.reach(number, player, workspace)
        result[own] = reach[: part.own_length(player)]
    for forced, chosen in self._partition.forced():
      result[forced] = result[chosen]
    return result

  def init_from_strategy(self, sequence_form: Float64s, parameters: Float64s) -> None:
    kernel, walk = resumption(self._minimizer), self._steps.walk
    for number in range(len(self._parts)):
      workspace = walk.workspaces[0] if number else walk.trunk
      workspace.scratch.value[:] = 0.0
      for player in PLAYERS:
        self._steps.adopt(number, player, workspace, sequence_form)
        self._restore_locked()
        utility = workspace.utility[player][0]
        self._steps.backward_pass(kernel, number, player, utility, workspace, parameters)

  def gather(self) -> None:
    self._subtrees.gather()
    # Where there is one action only, it is played as often as what leads to it.
    for forced, chosen in self._partition.forced():
      for sums in (self.state.cumulative, self.state.tapered):
        if len(sums):
          sums[forced] = sums[chosen]

  def refresh(self) -> None:
    """Does nothing: reach probabilities are computed anew in each call of `advance`."""

  def values(self) -> list[float]:
    return [float(self._steps.walk.trunk.utility[player][0][0]) for player in PLAYERS]

  def action_blocks(self) -> Iterator[tuple[slice, AnyFloats]]:
    for number, part in enumerate(self._parts):
      for player, own in enumerate(part.sequences):
        yield own, self._steps.state_of(number, player)

  def infoset_blocks(self) -> Iterator[tuple[slice, Float64s]]:
    for number, part in enumerate(self._parts):
      for player, own in enumerate(part.infosets):
        yield own, self._steps.local_of(number, player)
