"""The engine that samples a compiled game: a chain of steps over the tree of its histories."""

import copy
from collections.abc import Callable
from typing import Self

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Uint64s
from spiel_cfr._numba.steps import Chain, Step
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.histories import compile_histories
from spiel_cfr.mccfr.infoset_table import Table, table_of
from spiel_cfr.mccfr.random_draws import ITERATIONS
from spiel_cfr.mccfr.sampling_rules import AverageType, Sampler
from spiel_cfr.mccfr.traversal import (
  Traversal,
  Workspace,
  averaged_player,
  begin_traversal,
  new_workspace,
  traverse,
)
from spiel_cfr.mccfr.updates import FullAverage, average_all


class CompiledEngine:
  """The samples of a compiled game. `begun` returns an engine that can run, with `table` and what follows it.

  Attributes:
    table: the table.
    counters: see `random_draws.new_counters`.
    numbers: float64 (3,). The numbers of the current iteration.
  """

  table: Table
  counters: Uint64s
  numbers: Float64s
  _workspace: Workspace
  _chain: Chain | None

  def __init__(self, compiled: CompiledGame, sampler: Sampler, max_nodes: int) -> None:
    """Walks the game's histories: at most `max_nodes`, or as many as the compiled game has listed states.

    Raises:
      GameTooLargeError: the game has more histories.
      AbstractionError: averages are full, and infosets of the game are shared.
      InconsistentInfosetError: the states are not those that were compiled.
    """
    # A game in vector form counts public states, far fewer than it has histories.
    max_nodes = max(max_nodes, compiled.num_states)
    if compiled.num_infosets > max_nodes:
      raise errors.GameTooLargeError(
        f"The game has {compiled.num_infosets:,} infosets, and so more than {max_nodes=:,} histories."
      )
    if compiled.shared_infosets is not None and sampler.average_type == AverageType.FULL.value:
      raise errors.AbstractionError(
        f"{compiled} has shared infosets: there is no one way to them by which full averages could be weighted. "
        "Take another average_type, such as AverageType.SIMPLE."
      )
    self.compiled_game, self.sampler = compiled, sampler
    self.histories, self._depth = compile_histories(
      compiled.view,
      compiled.infostates,
      compiled.actions,
      compiled.num_actions,
      max_nodes,
      compiled.shared_entries,
    )

  def begun(self, counters: Uint64s) -> Self:
    """Returns an engine for the same game before its first iteration, which advances these counters."""
    result = copy.copy(self)
    result.counters = counters
    result.table = table = table_of(self.compiled_game, self.sampler.baseline_rate > 0)
    actions = int(table.entries.num_actions.max(initial=1))
    result.numbers, result._chain = np.zeros(3), None
    result._workspace = new_workspace(self._depth, actions, table.num_infosets)
    return result

  def traversal(self, player: int) -> Traversal:
    """Returns the arguments of the traversals for a player."""
    averaged = averaged_player(self.sampler, player, self.compiled_game.num_players)
    return Traversal(
      self.histories,
      self.table.entries,
      self._workspace,
      self.counters,
      self.numbers,
      self.sampler,
      player,
      averaged,
      waits=False,
    )

  def run(self, rows: Float64s, updates: Callable[[Traversal], list[Step]]) -> None:
    """Runs an iteration for each row of numbers.

    Args:
      rows: float64 (iterations, 3). The numbers of the iterations, see `traversal.AVERAGE_WEIGHT`.
      updates: returns the steps after a traversal; the same in all calls.
    """
    if self._chain is None:
      players, steps = range(self.compiled_game.num_players), list[Step]()
      for record in map(self.traversal, players):
        steps += [begin_traversal.on(record), traverse.on(record), *updates(record)]
      if self.sampler.average_type == AverageType.FULL.value:
        steps.append(average_all.on(FullAverage(self.table.entries, self.numbers, len(players))))
      self._chain = Chain(steps)
    self._chain.repeat(rows, self.numbers, self.counters[ITERATIONS:])
