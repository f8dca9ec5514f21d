"""OpenSpiel's EFR without its slips, and gaps of correlated play by the definition: to compare with."""

import collections
import itertools

import numpy as np
from open_spiel.python.algorithms import efr

_NOISE = 1e-12


class ExactEFR(efr.EFRSolver):
  """OpenSpiel's, where rounding decides nothing.

  Weights of deviations begin at 0 in every iteration, also where nobody has played to. Regrets of 1e-17 count as 0, and
  so do probabilities of 1e-17, which least squares leave at actions that are never played.
  """

  def evaluate_and_update_policy(self):
    self._compute_cumulative_immediate_regret_for_player(
      self._root_node, None, np.ones(self._game.num_players() + 1), None
    )
    for node in self._info_state_nodes.values():
      node.y_values = collections.defaultdict(float)
      for deviation, regret in node.cumulative_regret.items():
        if abs(regret) < _NOISE:
          node.cumulative_regret[deviation] = 0.0
    self._update_current_policy(self._root_node, self._current_policy)

  def _regret_matching(self, node):
    found = super()._regret_matching(node)
    return {action: often if often > _NOISE else 0.0 for action, often in found.items()}


class PaperEFR(ExactEFR):
  """The same, with the sets of deviations of the paper, and the probabilities of the actions that are remembered."""

  def __init__(self, game, memories, internal):
    """`memories` takes how many actions each infoset above has, and the path's, and yields (weights, actions)."""

    def deviations(num_actions, history, legal_actions):
      result = []
      for inside, kind in ((False, memories), (True, internal)):
        for weights, remembered in kind(legal_actions[:-1], list(history)):
          make = efr.return_all_external_deviations
          if inside:
            make = efr.return_all_non_identity_internal_deviations
          result += make(num_actions, [np.array(weights, float)], remembered)
      return result

    efr._EFRSolver.__init__(self, game, deviations)
    self._external_only = False
