"""Policies and regrets of Monte Carlo CFR solvers, from the table of the infosets that were sampled."""

import copy
from typing import Any, Literal

import numpy as np
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr._numba.arrays import Float64s, concatenated_ranges
from spiel_cfr.cfr.synchronization import FairMutex, synchronized
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.infosets import entry_slices
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.mccfr.compiled_engine import CompiledEngine
from spiel_cfr.mccfr.infoset_table import Table
from spiel_cfr.mccfr.state_engine import StateEngine
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.tabular_policy import player_to_move

Engine = CompiledEngine | StateEngine
# The array in `Entries` to which a policy is proportional: "cumulative" for the average, "strategy" for the current.
Source = Literal["cumulative", "strategy"]


def regrets_now(table: Table, logarithms: Float64s) -> Float64s:
  """Returns the cumulative regrets of a table, with the discounts of the iterations since an infoset's last visit.

  Args:
    table: the table.
    logarithms: float64 (2,). The sums of the logarithms of all discounts so far, on positive and on negative regrets.

  Returns:
    float64 (entries,).
  """
  entries, used_rows = table.entries, slice(0, table.num_infosets)
  first = entries.first[used_rows].astype(np.int64)
  counts = entries.num_actions[used_rows].astype(np.int64)
  discounts = np.exp(logarithms[:, None] - entries.caught_up[:, first])
  positive, negative = np.repeat(discounts, counts, axis=1)
  used, result = concatenated_ranges(first, counts), np.zeros(len(entries.regret))
  result[used] = entries.regret[used] * np.where(entries.regret[used] > 0, positive, negative)
  return result


def sampled_probabilities(compiled: CompiledGame, engine: Engine, source: Source) -> Float64s:
  """Returns a policy in behavioral form, shape (sequences,); uniform at infosets that were not sampled."""
  entries = in_action_order(compiled, engine, getattr(engine.table.entries, source))
  return forms.behavioral_form(compiled, compiled.from_actions(entries))


def in_action_order(compiled: CompiledGame, engine: Engine, values: Float64s) -> Float64s:
  """Returns values of a table's entries in the order of `CompiledGame.actions`; 0 at infosets that were not sampled."""
  if isinstance(engine, CompiledEngine):
    result: Float64s = values[compiled.num_players + compiled.shared_entries]
    return result
  first, result = engine.table.entries.first, np.zeros(len(compiled.all_action_sequences))
  for slices, sampled in zip(entry_slices(compiled.infosets), engine.infostates, strict=True):
    for infostate, infoset in sampled.items():
      entries = slices[infostate]
      result[entries] = values[first[infoset] :][: entries.stop - entries.start]
  return result


def sampled_dict(engine: StateEngine, source: Source) -> open_spiel.PolicyDict:
  """Returns the policy at the sampled infosets, as infostate -> action -> probability."""
  result: open_spiel.PolicyDict = {}
  first, sums = engine.table.entries.first, getattr(engine.table.entries, source)
  for infostates in engine.infostates:
    for infostate, infoset in infostates.items():
      actions = engine.actions[infoset]
      probabilities = _normalized(sums[first[infoset] :][: len(actions)])
      result[infostate] = dict(zip(actions, probabilities, strict=True))
  return result


def _normalized(sums: Float64s) -> list[float]:
  """Returns the sums divided by their total, or the uniform distribution if all sums are 0."""
  total = sums.sum()
  result: list[float] = (sums / total if total > 0 else np.full(len(sums), 1 / len(sums))).tolist()
  return result


class SampledPolicy(open_spiel_policy.Policy):  # type: ignore[misc]
  """Policy of a solver on states, uniform at infosets that were not sampled. It changes as the solver runs."""

  def __init__(self, view: GameView, engine: StateEngine, source: Source, mutex: FairMutex) -> None:
    super().__init__(view.open_spiel_game(), list(range(view.num_players)))
    self._view, self._engine, self._source, self._mutex = view, engine, source, mutex

  @synchronized
  def __copy__(self) -> "SampledPolicy":
    return copy.deepcopy(self)

  @synchronized
  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability; raises PolicyError if `player_id` is not to move."""
    player = player_to_move(state, player_id)
    infostate, actions = self._view.look_up(state, player)
    infoset = self._engine.infostates[player].get(infostate)
    sums = np.zeros(len(actions))
    if infoset is not None:
      entries = self._engine.table.entries
      sums = getattr(entries, self._source)[entries.first.item(infoset) :][: len(actions)]
    return dict(zip(actions, _normalized(sums), strict=True))
