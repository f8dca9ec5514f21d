"""Iterations in a game that is cut into a trunk and subtrees.

An update visits every subtree once, and then the trunk. A visit computes the opponents' reach probabilities, the
gradients, and the backward passes, which pass values up to the trunk. One small workspace therefore serves all
subtrees. This process visits them, or other processes do (`sharded_subtrees`).

Averages of subtrees are *deferred*. A player's new strategy is added to the average at the next visit, which belongs to
the opponent's update and computes the player's reach probabilities anyway. The strategy then has two weights: that
after this update plus that before the next one.
"""

import abc
from collections.abc import Callable

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.steps import Chain
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.averaging import Averaging, averages_after
from spiel_cfr.cfr.loops.arrays import WEIGHT, SolverArrays
from spiel_cfr.cfr.loops.averaging_steps import averaging_pass, taper_steps
from spiel_cfr.cfr.loops.loop import Loop, Players
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition, PartWorkspace, Visit
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class Subtrees(abc.ABC):
  """Visits to the subtrees of a game. By default this process holds all arrays, so there is nothing to fetch."""

  @abc.abstractmethod
  def visit(self, players: Players) -> None:
    """Runs `PartitionedLoop.subtree_chain` in each subtree; `players` update."""

  def fetch_to_write(self) -> None:  # noqa: B027
    """Fetches the arrays of subtrees from other processes. The caller may write to them."""

  def fetch_to_read(self) -> None:  # noqa: B027
    """Fetches the arrays of subtrees from other processes. The caller only reads them."""

  def check(self) -> None:  # noqa: B027
    """Raises ShardError if other processes failed since the last call. This process has then done their work."""


class LocalSubtrees(Subtrees):
  """Visits to the subtrees in this process, in one thread or several."""

  def __init__(
    self, arrays: SolverArrays, subtree_chain: Callable[[int, PartWorkspace, Players], Chain]
  ) -> None:
    """Takes the arrays and `PartitionedLoop.subtree_chain`."""
    self._part_steps, self._subtree_chain = arrays.part_steps, subtree_chain

  def visit(self, players: Players) -> None:
    self._part_steps.for_each_subtree(
      lambda number, workspace: self._subtree_chain(number, workspace, players).run()
    )


class PartitionedLoop(Loop):
  """Iterations in a game that is cut into a trunk and subtrees."""

  def __init__(
    self,
    game: CompiledGame,
    minimizer: RegretMinimizer,
    averaging: Averaging,
    updates: tuple[Players, ...],
    partition: Partition,
    subtrees: Callable[[SolverArrays, Callable[..., Chain]], Subtrees] = LocalSubtrees,
  ) -> None:
    """Allocates the arrays; `subtrees`, a class or function, makes the object that visits the subtrees."""
    super().__init__(game, minimizer, averaging, updates, partition)
    self._averages_after = np.array(
      [averages_after(averaging, player, updates) for player in self.arrays.part_steps.players]
    )
    self._subtrees = subtrees(self.arrays, self.subtree_chain)
    # The steps of visits, by the arguments of `subtree_chain` and whether each player's average is deferred.
    self._subtree_chains: dict[tuple[int, PartWorkspace, Players, tuple[bool, ...]], Chain] = {}

  def advance(self, numbers: Float64s) -> None:
    deferred = self.arrays.deferred_weights
    # Shape (iterations, players): the weights of each player's strategy before its update, and after it.
    before = numbers[:, WEIGHT, None] * ~self._averages_after
    after = numbers[:, WEIGHT, None] * self._averages_after
    deferred[:] = before[0]

    def iterate(number: int, last: bool) -> None:
      self.set_iteration_numbers(numbers[number])
      tapers = self.arrays.iteration_numbers.taper_factor[0] != 0.0
      # Callers and tapered sums read the averages, so that nothing may stay deferred.
      completes = last or tapers
      before_next = np.zeros_like(deferred) if last else before[number + 1]
      for players in self._updates:
        self._update(players)
        updated = list(players)
        deferred[updated] = after[number, updated]
        if not completes:
          deferred[updated] += before_next[updated]
      if completes:
        self._complete_averages()
        deferred[:] = before_next
      if tapers:
        self._subtrees.fetch_to_read()
      self.end_iteration()

    whole_steps(iterate, len(numbers))
    self._subtrees.check()

  def compile(self) -> None:
    self.arrays.deferred_weights[:] = 1.0
    for players in self._updates:
      self.subtree_chain(1, self.arrays.part_steps.subtree_workspaces[0], players)
      self.update_chain(players)
    taper_steps(self.arrays)
    self.arrays.deferred_weights[:] = 0.0

  def _update(self, players: Players) -> None:
    """Updates `players` at the same time, first in the subtrees and then in the trunk."""
    self._subtrees.visit(players)
    self.arrays.deferred_weights[:] = 0.0
    self.update_chain(players).run()

  def _complete_averages(self) -> None:
    """Adds all deferred strategies to the averages of subtrees, in a visit without updates."""
    if self.arrays.deferred_weights.any():
      self._subtrees.visit(())
      self.arrays.deferred_weights[:] = 0.0

  def update_player(self, player: int, numbers: Float64s) -> None:
    self.set_iteration_numbers(numbers)
    after = self._averages_after[player]
    self.arrays.deferred_weights[player] = numbers[WEIGHT] * (not after)
    self._update((player,))
    self.arrays.deferred_weights[player] = numbers[WEIGHT] * after
    self._complete_averages()
    self._subtrees.check()

  def complete_arrays(self) -> None:
    self._subtrees.fetch_to_write()
    self._forced_moves.run()

  def subtree_chain(self, number: int, workspace: PartWorkspace, players: Players) -> Chain:
    """Returns the steps of a visit to a subtree: deferred strategies are averaged, then `players` update at once."""
    deferred = self.arrays.deferred_weights
    is_deferred = tuple((deferred != 0.0).tolist())
    key = number, workspace, players, is_deferred
    if key in self._subtree_chains:
      return self._subtree_chains[key]
    part_steps, steps = self.arrays.part_steps, []
    visits = [Visit(number, player, workspace) for player in part_steps.players]
    for visit in visits:
      own = visit.player
      # A forward pass computes the reach probabilities too.
      if is_deferred[own]:
        weight = deferred[own : own + 1]
        steps += part_steps.enter(visit)
        steps.append(averaging_pass(self.arrays, visit, weight, averages_after=True))
      elif any(player != own for player in players):
        steps += part_steps.reach(visit, self.arrays.strategy(visit))
    steps += [part_steps.gradient(visits[player]) for player in players]
    for player in players:
      steps += self.minimizer_steps(visits[player])
    self._subtree_chains[key] = Chain(steps)
    return self._subtree_chains[key]

  def lock(self, sequences: Int64s) -> None:
    super().lock(sequences)
    self._subtree_chains.clear()
