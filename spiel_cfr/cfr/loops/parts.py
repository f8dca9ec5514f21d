"""The loop over a game that is cut into a trunk and subtrees.

The same three steps as in the flat loop, in another order: a subtree is gone through from its reach probabilities to
the new strategies before the next one is touched. What a solver must remember lies in one block per subtree; all else
is a workspace that serves one subtree after the other.

An iteration of the players that update together:

1. In each subtree: reach probabilities from the trunk's, of the opponents; the gradients of the players that update;
   the backward pass, whose values at the trunk's sequences are kept.
2. In the trunk: the gradients, to which those values are added; the backward and forward passes.

Averages are added to where reach probabilities are computed anyway, in the opponent's next update. So a strategy's
weight is *owed* until then: what it weighs after its own update, and before the next one.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, aligned_zeros
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.loops.loop import FullWidthState, IterationNumbers, Loop
from spiel_cfr.cfr.loops.part_steps import PartSteps, new_memory
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Partition
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, resumption


class PartsLoop(Loop):
  """See the module's docstring.

  `strategy` and `cumulative` are in the game's order; of `regrets` and `local` each part has a block of all its lines.
  """

  def __init__(
    self,
    game: CompiledGame,
    minimizer: RegretMinimizer,
    partition: Partition,
    tapered: bool,
    correlated: bool,
  ) -> None:
    """Allocates the arrays; strategies are uniform."""
    super().__init__(game, minimizer)
    self._steps = PartSteps(game, minimizer, partition, new_memory(game, minimizer))
    memory = self._steps.memory
    # There are two players, so that averages say what gradients were.
    self.state = FullWidthState(
      strategy=memory.strategy,
      cumulative=memory.cumulative,
      tapered=aligned_zeros(game.end if tapered else 0, dtype=game.dtype),
      regrets=memory.state,
      local=memory.local,
      gradients=aligned_zeros(0),
      play_values=np.zeros(len(PLAYERS) if correlated else 0),
      locked=np.zeros(game.num_infosets, np.uint8),
    )
    for treeplex in game.treeplexes:
      for sequences, _ in treeplex.blocks():
        memory.strategy[sequences] = 1.0 / len(sequences)
    self._parts = partition.parts
    self.lock(np.zeros(0, np.int64))
    for line, values in enumerate(self._initial_local):
      self.set_local_line(line, values)

  def advance(self, alternating: bool, numbers: IterationNumbers) -> None:
    parameters, before, after, additions = numbers
    done = self.state.counts
    turns = [(0,), (1,)] if alternating else [PLAYERS]
    owed = before[:1].sum(axis=0)

    def iterate(number: int, last: bool) -> None:
      complete = last or additions[number] != 0.0
      upcoming = np.zeros(len(PLAYERS)) if last else before[number + 1]
      for turn in turns:
        self._update(turn, parameters[number], before[number], after[number], owed)
        for player in turn:
          owed[player] = after[number, player] + (0.0 if complete else upcoming[player])
      if complete:
        self._pay(owed)
        owed[:] = upcoming
      if additions[number]:
        self._add_to_tapered(additions[number])
        done[1] = done[0] + np.uint64(1)
      done[0] += np.uint64(1)

    self._enter_trunk()
    whole_steps(iterate, len(parameters))

  def update(self, player: int, numbers: IterationNumbers) -> None:
    parameters, before, after = (
      numbers.parameters[0],
      numbers.weights_before[0],
      numbers.weights_after[0],
    )
    self._enter_trunk()
    owed = np.zeros(len(PLAYERS))
    owed[player] = before[player]
    self._update((player,), parameters, before, after, owed)
    owed[player] = after[player]
    self._pay(owed)

  def _add_to_tapered(self, factor: float) -> None:
    """Adds a multiple of the sums to the tapered ones."""
    for part in self._parts:
      for own in part.sequences:
        self.state.tapered[own] += factor * self.state.cumulative[own]

  def _enter_trunk(self) -> None:
    """Computes the reach probabilities of the trunk."""
    for player in PLAYERS:
      self._steps.reach(0, player, self._steps.walk.trunk)

  def init_from_strategy(self, sequence_form: Float64s, parameters: Float64s) -> None:
    kernel = resumption(self._minimizer)
    for number in range(len(self._parts)):
      walk = self._steps.walk
      workspace = walk.workspaces[0] if number else walk.trunk
      workspace.scratch.value[:] = 0.0
      for player in PLAYERS:
        self._steps.adopt(number, player, workspace, sequence_form)
        self._restore_locked()
        utility = workspace.utility[player][0]
        self._steps.backward_pass(kernel, number, player, utility, workspace, parameters)

  def refresh(self) -> None:
    """Does nothing: reach probabilities are computed anew in each call of `advance`."""

  def values(self) -> list[float]:
    return [float(self._steps.walk.trunk.utility[player][0][0]) for player in PLAYERS]

  def regret_line(self, line: int) -> Float64s:
    result = np.zeros(self._game.end)
    for own, lines in self._state_blocks():
      result[own] = lines[line]
    return result

  def set_regret_line(self, line: int, values: Float64s) -> None:
    for own, lines in self._state_blocks():
      lines[line] = values[own]

  def local_line(self, line: int) -> Float64s:
    result = np.zeros(self._game.num_infosets)
    for own, lines in self._local_blocks():
      result[own] = lines[line]
    return result

  def set_local_line(self, line: int, values: Float64s) -> None:
    for own, lines in self._local_blocks():
      lines[line] = values[own]

  def _state_blocks(self) -> Iterator[tuple[slice, AnyFloats]]:
    """Yields which sequences each part has of each player, and their state."""
    for part in self._parts:
      for own in part.sequences:
        yield own, self._steps.state_of(self._steps.memory, own)

  def _local_blocks(self) -> Iterator[tuple[slice, AnyFloats]]:
    """Yields which infosets each part has of each player, and what the minimizer keeps there."""
    for part in self._parts:
      for own in part.infosets:
        yield own, self._steps.local_of(self._steps.memory, own)

  def _update(
    self,
    turn: Sequence[int],
    parameters: Float64s,
    before: Float64s,
    after: Float64s,
    owed: Float64s,
  ) -> None:
    """Does an iteration of the players that update together, and pays what is owed to averages."""
    self._visit_subtrees(turn, parameters, owed)
    self._restore_locked()
    self._update_trunk(turn, parameters, before, after)
    owed[:] = 0.0

  def _pay(self, owed: Float64s) -> None:
    """Adds to averages what is owed, where nothing else is to be done."""
    if owed.any():
      self._visit_subtrees((), np.zeros(0), owed)
      owed[:] = 0.0

  def _visit_subtrees(self, turn: Sequence[int], parameters: Float64s, owed: Float64s) -> None:
    """Calls `PartSteps.visit` for each subtree."""
    self._steps.walk.for_each_subtree(
      lambda number, workspace: self._steps.visit(number, workspace, turn, parameters, owed)
    )

  def _update_trunk(
    self, turn: Sequence[int], parameters: Float64s, before: Float64s, after: Float64s
  ) -> None:
    """Does step 2."""
    steps, workspace = self._steps, self._steps.walk.trunk
    for player in turn:
      steps.walk.gradient(0, player, workspace)
    for player in turn:
      steps.observe(0, player, workspace, parameters)
      self._restore_locked()
      if len(self.state.play_values):
        self.state.play_values[player] += before[player] * workspace.utility[player][0][0]
      weights = float(before[player]), float(after[player])
      total = steps.total(player)
      self.state.cumulative[self._parts[0].sequences[player].start] += sum(weights)
      steps.forward_pass(0, player, workspace, *weights, total)
