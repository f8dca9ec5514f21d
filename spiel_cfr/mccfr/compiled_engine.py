"""Engine of Monte Carlo CFR on compiled games: traversals and updates in compiled code, over a list of histories."""

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
from spiel_cfr.mccfr.updates import average_all


class CompiledEngine:
  """Engine that samples a compiled game.

  The constructor walks the game. `fresh_copy` then returns engines that can run; only they have the attributes.

  Attributes:
    table: `Table`. Regrets, strategies and averages.
    counters: uint64 (4,). See `random_draws.new_counters`.
    numbers: float64 (3,). The weight and discounts of the current iteration; see `traversal.AVERAGE_WEIGHT`.
  """

  table: Table
  counters: Uint64s
  numbers: Float64s
  _workspace: Workspace
  _chain: Chain | None

  def __init__(self, compiled: CompiledGame, sampler: Sampler, max_nodes: int) -> None:
    """Lists the game's histories.

    Raises:
      GameTooLargeError: the game has more than `max_nodes` histories, and more than the compiled game lists.
      AbstractionError: averages are full, and infosets of the game are shared.
      InconsistentInfosetError: the compiled game differs from its OpenSpiel game.
    """
    # In vector form, `num_states` counts public states, which are far fewer than histories.
    max_nodes = max(max_nodes, compiled.num_states)
    if compiled.num_infosets > max_nodes:
      raise errors.GameTooLargeError(
        f"The game has {compiled.num_infosets:,} infosets, and so more than {max_nodes=:,} histories."
      )
    if compiled.shared_infosets is not None and sampler.average_type == AverageType.FULL.value:
      raise errors.AbstractionError(
        f"{compiled} has shared infosets, and full averages need a unique sequence to each infoset. "
        "Use another average_type, such as AverageType.SIMPLE."
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

  def fresh_copy(self, counters: Uint64s) -> Self:
    """Returns an engine for this game before its first iteration. The engine advances `counters` as it runs."""
    result = copy.copy(self)
    result.counters = counters
    result.table = table = table_of(self.compiled_game, self.sampler.baseline_rate > 0)
    actions = int(table.entries.num_actions.max(initial=1))
    result.numbers, result._chain = np.zeros(3), None
    result._workspace = new_workspace(self._depth, actions, table.num_infosets)
    return result

  def traversal(self, player: int) -> Traversal:
    """Returns the arguments of traversals for a player."""
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
    """Runs one iteration for each row of numbers.

    Args:
      rows: float64 (iterations, 3). The weight and discounts of each iteration; see `traversal.AVERAGE_WEIGHT`.
      updates: function from a traversal to the steps that update regrets and strategies after it. Only the first call
        of `run` uses it.
    """
    if self._chain is None:
      players, steps = range(self.compiled_game.num_players), list[Step]()
      for record in map(self.traversal, players):
        steps += [begin_traversal.on(record), traverse.on(record), *updates(record)]
      if self.sampler.average_type == AverageType.FULL.value:
        steps.append(average_all.on(self.traversal(0)))
      self._chain = Chain(steps)
    self._chain.repeat(rows, self.numbers, self.counters[ITERATIONS:])
