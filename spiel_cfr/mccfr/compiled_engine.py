"""Samples a compiled game: traversals are compiled code over a tree of its histories."""

import copy
import functools
from typing import Self

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s, Uint64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.histories import compile_histories
from spiel_cfr.mccfr.infoset_table import Table, table_of
from spiel_cfr.mccfr.sampling_rules import AverageType, Sampler
from spiel_cfr.mccfr.traversal import Workspace, new_workspace, sample_iterations
from spiel_cfr.mccfr.updates import Batch


class CompiledEngine:
  """Samples a compiled game; what `begun` returns has what a run needs, from `table` on.

  Attributes:
    infostates: a player's information state strings -> the infoset's number in `table`.
    counters: see `random_draws.new_counters`.
  """

  table: Table
  counters: Uint64s
  workspace: Workspace

  def __init__(self, compiled: CompiledGame, sampler: Sampler, max_nodes: int) -> None:
    """Walks the game's histories, at most `max_nodes`, or as many as a compiled game that lists its states has states.

    Raises:
      GameTooLargeError: it has more.
      AbstractionError: averages are full, and infosets of the game are shared.
      InconsistentInfosetError: its states are not those that were compiled.
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
    numbers = iter(self._numbers().tolist())
    self.infostates = [dict(zip(own, numbers, strict=False)) for own in compiled.infostates]

  def _numbers(self) -> np.ndarray:
    """Returns the number of every infoset in a table; those that share entries have the same."""
    counts = np.concatenate(self.compiled_game.num_actions)
    if not len(counts):
      return counts
    firsts = np.minimum.reduceat(self.compiled_game.shared_entries, np.cumsum(counts) - counts)
    return np.unique(firsts, return_inverse=True)[1]

  def begun(self, counters: Uint64s) -> Self:
    """Returns an engine for the same game before its first iteration, which advances these counters."""
    result = copy.copy(self)
    result.counters = counters
    result.table = table = table_of(self.compiled_game, self.sampler.baseline_rate > 0)
    actions = int(table.entries.num_actions.max(initial=1))
    result.workspace = new_workspace(self._depth, actions, table.num_infosets)
    return result

  @functools.cached_property
  def _places(self) -> list[dict[str, int]]:
    """Which of its player's infosets each is."""
    return [{key: place for place, key in enumerate(own)} for own in self.compiled_game.infostates]

  def actions_of(self, player: int, infostate: str) -> tuple[list[int], Int64s]:
    """Returns an infoset's legal actions, and the entry of the table that each has."""
    compiled, place = self.compiled_game, self._places[player][infostate]
    counts = compiled.num_actions[player]
    begin = int(counts[:place].sum())
    own = slice(begin, begin + int(counts[place]))
    before = sum(map(len, compiled.actions[:player]))
    entries = compiled.num_players + compiled.shared_entries[before:][own]
    return compiled.actions[player][own].tolist(), entries

  def run(self, batch: Batch) -> None:
    """Does the iterations of a batch."""
    sample_iterations(
      self.histories, self.sampler, batch, self.counters, self.table.entries, self.workspace
    )
