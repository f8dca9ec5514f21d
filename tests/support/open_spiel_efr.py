"""OpenSpiel's EFR without its slips, and gaps of correlated play by the definition: to compare with."""

import collections
import itertools

import numpy as np
from open_spiel.python.algorithms import efr

_NOISE = 1e-12


class ExactEFR(efr.EFRSolver):
  """OpenSpiel's, where rounding decides nothing.

  Weights of deviations begin at 0 in every iteration, also at unreached infosets. Regrets of 1e-17 count as 0, and
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
  """The same with the paper's sets of deviations, given as for `deviations.Deviations`.

  Users patch `efr.create_probs_from_index` with `remembered`.
  """

  def __init__(self, game, external, internal):
    listed = listing(external, internal)
    efr._EFRSolver.__init__(
      self, game, lambda actions, history, legal: listed(actions, history, legal[:-1])
    )
    self._external_only = False


# What efr.py has under these names, where that is something else than in the paper: external and internal deviations.
IN_OPEN_SPIEL = {
  "blind partial sequence": (("forced", "partial", "followed"), ()),
  "counterfactual partial sequence": ((), ("forced", "partial", "followed")),
  "causal partial sequence": (("forced", "repeated", "followed"), ("forced",)),
  "twice informed partial sequence": ((), ("forced", "repeated")),
  "behavioral": ((), ("recalled in part",)),
}


def listing(external, internal):
  """Returns the function of a set that OpenSpiel's solver asks: (number of actions, own actions, legal ones) above."""

  def deviations(num_actions, history, legal_actions):
    result = []
    for kinds, made in (
      (external, efr.return_all_external_deviations),
      (internal, efr.return_all_non_identity_internal_deviations),
    ):
      for kind in kinds:
        for weights, actions in memories(kind, list(history), legal_actions):
          result += list(made(num_actions, [weights], actions))
    return result

  return deviations


def remembered(path, policy):
  """Returns the probabilities of the actions at the infosets of a path, by action."""
  return [
    {action: policy.action_probability_array[row][action] for action in legal}
    for legal, row in path
  ]


def memories(kind, history, legal_actions):
  """Yields which actions are remembered, as weights, and the actions."""
  length = len(history)
  if kind == "forced":
    yield np.zeros(length), history
  if kind == "followed":
    yield np.ones(length), history
  if kind == "recalled":
    for actions in itertools.product(*legal_actions):
      yield np.ones(length), list(actions)
  if kind == "recalled in part":
    # All lists but the last action of each, as often as there are last actions.
    for k in range(max(1, length)):
      for actions in itertools.product(*legal_actions[: k + 1]):
        yield np.arange(length) < k, [*actions, *history[k + 1 :]]
  for k in range(length):
    if kind in ("partial", "repeated"):
      for _ in legal_actions[k] if kind == "repeated" else [None]:
        yield np.arange(length) < k, history
    if kind == "triggered":
      for action in set(legal_actions[k]) - {history[k]}:
        yield np.arange(length) <= k, [*history[:k], action, *history[k + 1 :]]


def best_gain(game, mixture, player, begins, ends):
  """Returns what the best deviator gains, by walking histories with all that it knows of what was drawn.

  Args:
    game: OpenSpiel's, sequential.
    mixture: probabilities and policies.
    player: the deviator.
    begins: "at the start", "unseen" or "seen".
    ends: "never", "later", "later, seen", "at once" or "hearing all", of who is told everything all the while.
  """

  def often(state, policy):
    return policy.action_probabilities(state)

  def value(particles, status):
    total, groups, stack = 0.0, collections.defaultdict(list), list(particles)
    while stack:
      state, weight, policy = stack.pop()
      if state.is_terminal():
        total += weight * state.returns()[player]
      elif state.is_chance_node():
        stack += [(state.child(a), weight * p, policy) for a, p in state.chance_outcomes()]
      elif state.current_player() != player:
        stack += [
          (state.child(a), weight * p, policy) for a, p in often(state, policy).items() if p
        ]
      else:
        groups[state.information_state_string()].append((state, weight, policy))
    return total + sum(decide(group, status) for group in groups.values())

  def decide(group, status):
    legal = group[0][0].legal_actions()

    def play(action, status, recommended=None):
      """All play an action; those only to whom this was recommended."""
      return value(
        [
          (state.child(action), weight * (1 if recommended is None else p), policy)
          for state, weight, policy in group
          if (p := 1 if recommended is None else often(state, policy)[recommended])
        ],
        status,
      )

    if ends == "hearing all" and status == "following":
      return sum(max(play(a, "following", b) for a in legal) for b in legal)
    follow = {
      b: play(b, "following" if status == "following" else "again", b)
      for b in legal
      if status != "deviating" or ends.startswith("later")
    }
    if status == "again":
      return sum(follow.values())
    deviate = "again" if ends == "at once" else "deviating"
    if status == "following":
      if begins == "unseen":
        return max(
          sum(follow.values()),
          decide(group, "deviating") if ends != "at once" else max(play(a, deviate) for a in legal),
        )
      return sum(max([follow[b], *(play(a, deviate, b) for a in legal if a != b)]) for b in legal)
    options = [play(a, "deviating") for a in legal]
    if ends.startswith("later"):
      options.append(sum(follow.values()))
    if ends == "later, seen":
      options.append(sum(max(play(a, "again", b) for a in legal) for b in legal))
    return max(options)

  particles = [(game.new_initial_state(), weight, policy) for weight, policy in mixture]
  best = value(particles, "deviating" if begins == "at the start" else "following")
  return best - value(particles, "again")
