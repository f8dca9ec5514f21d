"""Iterations in a game that is cut into a trunk and subtrees.

The subtrees are visited before the trunk, one at a time: the opponents' reach probabilities, the gradients, and the
backward passes, which leave values for the trunk. So one small workspace serves all subtrees. They are visited by this
process, or by others (`sharded_subtrees`).

Averages of subtrees are *deferred*. A subtree is visited once an update. A player's new strategy is added to its
average at the next visit, in the opponent's update, which computes its reach probabilities anyway. Its weight is then
the one after this update plus the one before the next.
"""

import abc
from collections.abc import Callable

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._numba.steps import Chain
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.arrays import SolverArrays
from spiel_cfr.cfr.loops.loop import Loop, Players
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition, Visit, Workspace
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class Subtrees(abc.ABC):
  """The visits to the subtrees of a game."""

  @abc.abstractmethod
  def visit(self, players: Players) -> None:
    """Runs `PartsLoop.subtree` in each subtree; `players` update."""

  def gather(self) -> None:  # noqa: B027
    """Brings the arrays of subtrees up to date in this process; the caller may write to them."""

  def gather_averages(self) -> None:  # noqa: B027
    """Brings the arrays of subtrees up to date in this process; the caller only reads them."""

  def check(self) -> None:  # noqa: B027
    """Raises ShardError if a visit failed elsewhere since the last call; this process has done its work."""


class LocalSubtrees(Subtrees):
  """Visits to the subtrees in this process, in one thread or several."""

  def __init__(
    self, arrays: SolverArrays, subtree: Callable[[int, Workspace, Players], Chain]
  ) -> None:
    """Takes the arrays and `PartsLoop.subtree`."""
    self._walk, self._subtree = arrays.walk, subtree

  def visit(self, players: Players) -> None:
    self._walk.for_each_subtree(
      lambda number, workspace: self._subtree(number, workspace, players).run()
    )


class PartsLoop(Loop):
  """Iterations in a game that is cut into parts."""

  def __init__(
    self,
    game: CompiledGame,
    minimizer: RegretMinimizer,
    averaging: Averaging,
    partition: Partition,
    subtrees: Callable[[SolverArrays, Callable[..., Chain]], Subtrees] = LocalSubtrees,
  ) -> None:
    """Allocates the arrays; `subtrees` makes the visits to subtrees."""
    super().__init__(game, minimizer, averaging, partition)
    self._subtrees = subtrees(self.arrays, self.subtree)

  def advance(self, updates: tuple[Players, ...], rows: Float64s) -> None:
    if not len(rows):
      self.set_numbers(np.zeros(rows.shape[1]))
      self._compile(updates)
      return
    deferred, num_players = self.arrays.deferred, len(self.arrays.walk.players)
    # By iteration and player, before and after the update.
    weights = rows[:, : 2 * num_players].reshape(len(rows), num_players, 2)
    deferred[:, 1] = weights[0, :, 0]

    def iterate(number: int, last: bool) -> None:
      self.set_numbers(rows[number])
      adds = self.arrays.numbers.addition[0] != 0.0
      upcoming = np.zeros(num_players) if last else weights[number + 1, :, 0]
      for players in updates:
        self._update(players)
        deferred[players, 1] = weights[number, players, 1]
        if not (last or adds):
          deferred[players, 1] += upcoming[list(players)]
      if last or adds:
        self._complete_averages()
        deferred[:, 1] = upcoming
      if adds:
        self._subtrees.gather_averages()
      self.count()

    whole_steps(iterate, len(rows))
    self._subtrees.check()

  def _compile(self, updates: tuple[Players, ...]) -> None:
    """Compiles the steps of an iteration without running one."""
    self.arrays.deferred[:, 1] = 1.0
    for players in updates:
      self.subtree(1, self.arrays.walk.workspaces[0], players)
      self.update_chain(players)
    self.taper_chain()
    self.arrays.deferred[:] = 0.0

  def _update(self, players: Players) -> None:
    self._subtrees.visit(players)
    self.arrays.deferred[:] = 0.0
    self.update_chain(players).run()

  def _complete_averages(self) -> None:
    """Adds deferred strategies to the averages of subtrees, in a visit without updates."""
    if self.arrays.deferred.any():
      self._subtrees.visit(())
      self.arrays.deferred[:] = 0.0

  def update_player(self, player: int, row: Float64s) -> None:
    self.set_numbers(row)
    before, after = self.arrays.numbers.weights[player].tolist()
    self.arrays.deferred[player, 1] = before
    self._update((player,))
    self.arrays.deferred[player, 1] = after
    self._complete_averages()
    self._subtrees.check()

  def gather(self) -> None:
    self._subtrees.gather()
    self._forced.run()

  def subtree(self, number: int, workspace: Workspace, players: Players) -> Chain:
    """Returns the steps in which players update at the same time in a subtree, and the averages that are due."""
    due = (self.arrays.deferred[:, 1] != 0.0).tolist()
    key = number, workspace, players, *due
    if key in self._chains:
      return self._chains[key]
    walk, steps = self.arrays.walk, []
    visits = [Visit(number, player, workspace) for player in walk.players]
    for visit in visits:
      if due[visit.player]:
        steps += walk.enter(visit)
        steps.append(self.forward_step(visit, self.arrays.deferred[visit.player]))
      elif any(player != visit.player for player in players):
        steps += walk.reach(visit, self.arrays.strategy(visit))
    steps += [walk.gradient(visits[player]) for player in players]
    for player in players:
      steps += self.choose_steps(visits[player])
    self._chains[key] = Chain(steps)
    return self._chains[key]
