"""Samples a compiled game: traversals are compiled code over a tree of its histories."""

import copy
import functools
from collections.abc import Sequence

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Uint64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.histories import compile_histories
from spiel_cfr.mccfr.engines.engine import Scheme
from spiel_cfr.mccfr.infoset_table import Entries, table_of
from spiel_cfr.mccfr.sampling_rules import AverageType
from spiel_cfr.mccfr.traversal import Workspace, sample_advantages, sample_iterations
from spiel_cfr.mccfr.updates import Batch


class CompiledEngine:
  """Samples a compiled game.

  Attributes:
    compiled_game: the game.
    table: what is kept of each infoset of the game.
    infostates: a player's information state strings -> the infoset's number in `table`.
  """

  def __init__(
    self, compiled: CompiledGame, scheme: Scheme, counters: Uint64s, max_nodes: int
  ) -> None:
    """Walks the game's histories.

    Args:
      compiled: the game, in any form.
      scheme: what to sample and how to average.
      counters: see `draws.new_counters`; the engine advances them.
      max_nodes: how many histories the game may have. A compiled game that lists its states may have as many as those.

    Raises:
      GameTooLargeError: it has more.
      InconsistentInfosetError: its states are not those that were compiled.
    """
    # A game in vector form counts public states, far fewer than it has histories.
    max_nodes = max(max_nodes, compiled.num_states)
    if compiled.num_infosets > max_nodes:
      raise errors.GameTooLargeError(
        f"The game has {compiled.num_infosets:,} infosets, and so more than {max_nodes=:,} histories."
      )
    self.compiled_game = compiled
    self._actions = np.concatenate(compiled.actions)
    self._scheme = scheme
    self._shared = compiled.shared_entries
    if compiled.shared_infosets is not None and scheme.average_type is AverageType.FULL:
      raise errors.AbstractionError(
        f"{compiled} has shared infosets: there is no one way to them by which full averages could be weighted. "
        "Take another average_type, such as AverageType.SIMPLE."
      )
    self._counters = counters
    self._histories, depth = compile_histories(
      compiled.view,
      compiled.infostates,
      compiled.actions,
      compiled.num_actions,
      max_nodes,
      self._shared,
    )
    self._depth = depth
    self._start()

  def _start(self) -> None:
    self.table = table_of(self.compiled_game, self._scheme.baseline_rate > 0)
    self.infostates = self._numbers()
    actions = int(self.table.entries.num_actions.max(initial=1))
    self._workspace = Workspace(
      frames=np.zeros((self._depth, 3), np.uint64),
      weights=np.zeros((self._depth, 2)),
      explored=np.zeros((self._depth, actions)),
      values=np.zeros((self._depth, actions)),
      reached=np.zeros(self.table.num_infosets, np.uint32),
    )

  def _numbers(self) -> list[dict[str, int]]:
    compiled = self.compiled_game
    counts = np.concatenate(compiled.num_actions)
    # Infosets that share entries have the same number.
    firsts = (
      np.minimum.reduceat(self._shared, np.cumsum(counts) - counts) if len(counts) else counts
    )
    places = compiled.num_players + firsts
    first = self.table.entries.first[: self.table.num_infosets]
    numbers = iter(np.searchsorted(first, places).tolist())
    return [dict(zip(own, numbers, strict=False)) for own in compiled.infostates]

  @property
  def view(self) -> GameView:
    """How the game was walked."""
    return self.compiled_game.view

  def fresh(self, counters: Uint64s) -> "CompiledEngine":
    """Returns an engine for the same game before its first iteration, which advances these counters."""
    result = copy.copy(self)
    result._counters = counters
    result._start()
    return result

  def run(self, batch: Batch) -> None:
    """Does the iterations of a batch."""
    scheme = self._scheme
    sample_iterations(
      self._histories,
      int(scheme.sampler.own),
      int(scheme.sampler.others),
      np.array(scheme.sampler.parameters, np.float64),
      scheme.sampler.repeats_draws,
      int(not scheme.averages_own),
      scheme.average_type.value,
      scheme.baseline_rate,
      batch,
      self._counters,
      self.table.entries,
      self._workspace,
    )

  def sample_advantages(
    self, player: int, num_traversals: int, weight: float, entries: Entries, visits: Float64s
  ) -> None:
    """Runs traversals for one player under strategies that stay, see `traversal.sample_advantages`.

    Args:
      player: whose advantages are estimated.
      num_traversals: how many.
      weight: what each weighs in sums.
      entries: the table's, with other arrays to sum into.
      visits: see there.
    """
    scheme = self._scheme
    sample_advantages(
      self._histories,
      int(scheme.sampler.own),
      int(scheme.sampler.others),
      np.array(scheme.sampler.parameters, np.float64),
      player,
      int(not scheme.averages_own),
      num_traversals,
      weight,
      scheme.baseline_rate,
      self._counters,
      entries,
      visits,
      self._workspace,
    )

  def legal_actions(self, player: int, infostate: str) -> Sequence[int]:
    """Returns the legal actions at an infoset in the table, in the table's order."""
    first = self._first_actions[player][infostate]
    here = slice(first, first + self.table.entries.num_actions[self.infostates[player][infostate]])
    actions: list[int] = self._actions[here][np.argsort(self._shared[here])].tolist()
    return actions

  @functools.cached_property
  def _first_actions(self) -> list[dict[str, int]]:
    """For each infostate, where its actions begin in those of all players."""
    result, begin = [], 0
    for own in self.compiled_game.infosets:
      starts = begin + np.cumsum(own.num_actions) - own.num_actions
      result.append(dict(zip(own.infostates, starts.tolist(), strict=True)))
      begin += len(own.actions)
    return result


def compile_engine(
  game: AnyGame,
  scheme: Scheme,
  counters: Uint64s,
  max_nodes: int,
  required: bool,
) -> CompiledEngine | None:
  """Returns the engine for any game, or None where the game does not fit and the engine is not required.

  Args:
    game: what `compile_game` takes.
    scheme: see `CompiledEngine`.
    counters: likewise.
    max_nodes: how many histories the game may have.
    required: whether to raise an error instead of returning None.

  Raises:
    GameTooLargeError: there are more histories, and the engine is required.
    ImperfectRecallError: a player forgets something, and the engine is required.
    GameError: see `compile_game`.
  """
  try:
    # Histories are needed anyway, so that the vector form would save nothing.
    compiled = compile_game(game, max_nodes=max_nodes, vector_form=False)
    return CompiledEngine(compiled, scheme, counters, max_nodes)
  except errors.GameTooLargeError as error:
    if required and 'engine="states"' in str(error):
      raise
    if required:
      raise errors.GameTooLargeError(
        f'{error} Or sample OpenSpiel\'s states, with engine="states".'
      ) from error
  except errors.ImperfectRecallError:
    if required:
      raise
  return None
