"""Iterations in a game that is cut into a trunk and subtrees.

The subtrees are visited before the trunk, one at a time: the opponents' reach probabilities, the gradients, and the
backward passes, which leave values for the trunk. So one small workspace serves all subtrees. They are visited by this
process, or by others (`sharded_subtrees`).

Averages of subtrees are *deferred*. A subtree is visited once a turn. A player's new strategy is added to its average
at the next visit, that of the opponent's turn, which computes its reach probabilities anyway. Its weight is then the
one after this update plus the one before the next.
"""

from collections.abc import Callable

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._numba.steps import Chain
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.arrays import SolverArrays
from spiel_cfr.cfr.loops.loop import Loop, Turn
from spiel_cfr.cfr.loops.subtrees import LocalSubtrees, Subtrees
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition, Visit, Workspace
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


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

  def _run(self, turns: tuple[Turn, ...], rows: Float64s) -> None:
    if not len(rows):
      self._compile(turns)
      return
    deferred, players = self.arrays.deferred, len(self.arrays.walk.players)
    # By iteration and player, before and after the update.
    weights = rows[:, : 2 * players].reshape(len(rows), players, 2)
    deferred[:, 1] = weights[0, :, 0]

    def iterate(number: int, last: bool) -> None:
      self.set_numbers(rows[number])
      adds = self.arrays.numbers.addition[0] != 0.0
      upcoming = np.zeros(players) if last else weights[number + 1, :, 0]
      for turn in turns:
        self._take_turn(turn)
        deferred[turn, 1] = weights[number, turn, 1]
        if not (last or adds):
          deferred[turn, 1] += upcoming[list(turn)]
      if last or adds:
        self._complete_averages()
        deferred[:, 1] = upcoming
      if adds:
        self._subtrees.gather_averages()
      self.count()

    whole_steps(iterate, len(rows))
    self._subtrees.check()

  def _compile(self, turns: tuple[Turn, ...]) -> None:
    """Compiles the steps of an iteration without running one."""
    self.arrays.deferred[:, 1] = 1.0
    for turn in turns:
      self.subtree(1, self.arrays.walk.workspaces[0], turn)
      self.update(turn)
    self.taper()
    self.arrays.deferred[:] = 0.0

  def _take_turn(self, turn: Turn) -> None:
    self._subtrees.visit(turn)
    self.arrays.deferred[:] = 0.0
    self.update(turn).run()

  def _complete_averages(self) -> None:
    """Adds to the averages of subtrees what is deferred, in a visit that does nothing else."""
    if self.arrays.deferred.any():
      self._subtrees.visit(())
      self.arrays.deferred[:] = 0.0

  def update_player(self, player: int, row: Float64s) -> None:
    self.set_numbers(row)
    before, after = self.arrays.numbers.weights[player].tolist()
    self.arrays.deferred[player, 1] = before
    self._take_turn((player,))
    self.arrays.deferred[player, 1] = after
    self._complete_averages()
    self._subtrees.check()

  def gather(self) -> None:
    self._subtrees.gather()
    self._forced.run()

  def subtree(self, number: int, workspace: Workspace, turn: Turn) -> Chain:
    """Returns the steps in which players update at once in a subtree, and the averages that are due."""
    due = (self.arrays.deferred[:, 1] != 0.0).tolist()
    key = number, workspace, turn, *due
    if key in self._chains:
      return self._chains[key]
    walk, steps = self.arrays.walk, []
    visits = [Visit(number, player, workspace) for player in walk.players]
    for visit in visits:
      if due[visit.player]:
        steps += walk.enter(visit)
        steps.append(self.forward(visit, self.arrays.deferred[visit.player]))
      elif any(player != visit.player for player in turn):
        steps += walk.reach(visit, self.arrays.strategy(visit))
    steps += [walk.gradient(visits[player]) for player in turn]
    for player in turn:
      steps += self.choose(visits[player])
    self._chains[key] = Chain(steps)
    return self._chains[key]
