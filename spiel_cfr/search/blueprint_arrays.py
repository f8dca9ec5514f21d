"""Blueprints as arrays: the probabilities of a policy at all infosets of listed histories."""

import itertools

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr.bots import PolicyReader, distribution
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.policies import CompiledTabularPolicy
from spiel_cfr.search.history_tree import HistoryTree


def read_blueprint(histories: HistoryTree, blueprint: PolicyReader) -> tuple[Float64s, Bools]:
  """Returns a policy as probabilities of entries, and True at infosets that the policy does not know.

  Unknown infosets have uniform probabilities. Shapes: (entries,) and (infosets,).

  Args:
    histories: the histories.
    blueprint: the policy.

  Raises:
    PolicyError: the probabilities at an infoset are not a distribution.
  """
  policy = blueprint.policy
  if isinstance(policy, CompiledTabularPolicy) and not policy.compiled_game.view.has_own_names:
    entries, unknown = _read_table(histories, policy)
  else:
    entries, unknown = _ask_everywhere(histories, blueprint)
  _check_distributions(histories, entries)
  return entries, unknown


def _uniform(histories: HistoryTree) -> Float64s:
  return np.asarray(1 / histories.num_actions[histories.infoset_of_entry])


def _read_table(histories: HistoryTree, policy: CompiledTabularPolicy) -> tuple[Float64s, Bools]:
  """Reads a policy that has a table, without states of OpenSpiel; returns as `read_blueprint`."""
  legal, infoset_of_entry = np.concatenate(histories.actions), histories.infoset_of_entry
  names = itertools.chain(*histories.names)
  rows = np.array([policy.state_lookup.get(name, NONE) for name in names])
  unknown = rows == NONE
  table: Float64s = policy.action_probability_array
  # The history may have actions that the policy's game does not have, above its largest action.
  most = table.shape[1] - 1
  in_table = table[rows[infoset_of_entry], np.minimum(legal, most)]
  probabilities = np.where(legal > most, 0.0, in_table)
  return np.where(unknown[infoset_of_entry], _uniform(histories), probabilities), unknown


def _ask_everywhere(histories: HistoryTree, blueprint: PolicyReader) -> tuple[Float64s, Bools]:
  """Asks a policy at one state of each infoset; returns as `read_blueprint`."""
  legal, entries = np.concatenate(histories.actions), _uniform(histories)
  unknown = np.zeros(len(histories.owner), bool)
  nodes = np.flatnonzero(histories.infoset >= 0)
  infosets, firsts = np.unique(histories.infoset[nodes], return_index=True)
  for infoset, node in zip(infosets.tolist(), nodes[firsts].tolist(), strict=True):
    strategy = blueprint.look_up(histories.state(node), int(histories.owner[infoset]))
    unknown[infoset] = strategy is None
    if strategy is not None:
      span = histories.entries_of(infoset)
      entries[span] = [strategy.get(action, 0.0) for action in legal[span].tolist()]
  return entries, unknown


def _check_distributions(histories: HistoryTree, entries: Float64s) -> None:
  """Raises PolicyError if the probabilities at an infoset are not a distribution."""
  legal = np.concatenate(histories.actions)
  error = np.abs(np.add.reduceat(entries, histories.first_entry) - 1)
  is_wrong = ~(error < 1e-9) | (np.minimum.reduceat(entries, histories.first_entry) < 0)
  for infoset in np.flatnonzero(is_wrong).tolist():
    span = histories.entries_of(infoset)
    strategy = dict(zip(legal[span].tolist(), entries[span].tolist(), strict=True))
    distribution(
      strategy, list(strategy), f"At infostate {histories.infostate(infoset)!r} the blueprint"
    )
