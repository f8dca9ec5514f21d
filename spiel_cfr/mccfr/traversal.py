"""The compiled traversals of every Monte Carlo solver.

A traversal estimates the regrets of one player. With h a history, p that player, sigma the current strategies, q(h) the
probability that the traversal reaches h, and pi_{-p}(h) the probability that chance and the other players bring h
about, it computes from the leaves up

    v(h) = sum over actions a of  sigma(a | h) v(h, a)
    v(h, a) = b(h, a) + (v(ha) - b(h, a)) / probability that a is explored   if it is, else b(h, a)

where b is a baseline, or zero (Schmid et al. 2019, "Variance Reduction in Monte Carlo Counterfactual Regret
Minimization for Extensive Form Games using Baselines"). Where p is to move, v(h, a) pi_{-p}(h) / q(h) then estimates
the counterfactual utility of a without bias (Lanctot et al. 2009, "Monte Carlo Sampling for Regret Minimization in
Extensive Games"). Strategies change when the traversal is over, not before.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOAT_TABLE,
  INDICES,
  Float64s,
  Uint32s,
  Uint64s,
  borrowed,
  tuple_type,
)
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr.games.openspiel.histories import (
  CHANCE,
  CHILDREN,
  FIRST_CHILD,
  HISTORIES,
  INDEX,
  MOVER,
  TERMINAL,
  Histories,
)
from spiel_cfr.mccfr.infoset_table import ENTRIES, Entries
from spiel_cfr.mccfr.random_draws import (
  ITERATIONS,
  POSITION,
  VISITED,
  compiled_explore,
  compiled_pick,
  next_uniform,
)
from spiel_cfr.mccfr.sampling_rules import SAMPLER, AverageType, Rule, Sampler
from spiel_cfr.mccfr.updates import BATCH, Batch, average_all_inlined, match_regrets

_ZERO: Any = np.uint64(0)
_ONE: Any = np.uint64(1)
_CHANCE, _TERMINAL = np.uint64(CHANCE), np.uint64(TERMINAL)
# Compiled code knows integers of a fixed size only.
_EVERY_ACTION, _BY_STRATEGY = int(Rule.EVERY_ACTION), int(Rule.BY_STRATEGY)
_FULL, _IMPORTANCE = AverageType.FULL.value, AverageType.IMPORTANCE.value


class Workspace(NamedTuple):
  """Room for one traversal.

  Attributes:
    frames: shape (depth, 3), a row a decision on the path: node, action under way, what the rule returned.
    weights: shape (depth, 2): what the decision's estimates weigh in regrets, and its strategy in averages.
    explored: shape (depth, actions): the probability that an action is explored.
    values: shape (depth, actions): v(h, a).
    reached: shape (infosets,): the infosets valued, each by the sequence of its action 0.
  """

  frames: Uint64s
  weights: Float64s
  explored: Float64s
  values: Float64s
  reached: Uint32s


_NODE, _ACTION, _EACH = 0, 1, 2
WORKSPACE = tuple_type(Workspace, COUNT_TABLE, FLOAT_TABLE, FLOAT_TABLE, FLOAT_TABLE, INDICES)


@inlined
def traverse(
  histories: Histories,
  sampler: Sampler,
  player: int,
  average_weight: float,
  counters: Uint64s,
  entries: Entries,
  workspace: Workspace,
) -> Any:
  """Runs one traversal for a player, and adds what it estimates to `Entries.increment`.

  Strategies weigh `average_weight` in the average; for the counters see `random_draws.new_counters`. Returns how many
  infosets have been valued, the first of `Workspace.reached`.
  """
  own, others, baseline_rate = sampler.own, sampler.others, sampler.baseline_rate
  averaged = player
  if not sampler.averages_own:
    averaged = (player + _ONE) % np.uint64(histories.returns.shape[1])
  nodes, probabilities, returns = histories.nodes, histories.probabilities, histories.returns
  strategy, cumulative = entries.strategy, entries.cumulative
  increment, reach = entries.increment, entries.reach
  touched, baseline = entries.touched, entries.baseline
  frames, weights, reached = workspace.frames, workspace.weights, workspace.reached
  explored, values = workspace.explored, workspace.values
  learns = baseline_rate > 0.0
  full, importance = sampler.average_type == _FULL, sampler.average_type == _IMPORTANCE
  visited = _ZERO
  num_reached = _ZERO
  node, depth, value, entering = _ZERO, _ZERO, 0.0, True
  # What a sample here weighs in estimates of regrets.
  weight = 1.0
  while True:
    if entering:
      visited += _ONE
      mover, begin = np.uint64(nodes[node, MOVER]), np.uint64(nodes[node, INDEX])
      actions = np.uint64(nodes[node, CHILDREN])
      if mover == _CHANCE:
        action = compiled_pick(probabilities, begin, actions, next_uniform(counters))
        if importance:
          average_weight /= probabilities[begin + action]
        node = np.uint64(nodes[node, FIRST_CHILD]) + action
        continue
      if mover == _TERMINAL:
        value, entering = returns[begin, player], False

    if entering:
      if mover == averaged and not full:
        for entry in range(begin, begin + actions):
          cumulative[entry] += average_weight * strategy[entry]
      rule = own if mover == player else others
      if rule == _BY_STRATEGY and mover != player and not learns:
        # The value of what is drawn is the estimate: there is nothing to come back for.
        action = compiled_pick(strategy, begin, actions, next_uniform(counters))
        if importance and mover != averaged:
          average_weight /= strategy[begin + action]
        node = np.uint64(nodes[node, FIRST_CHILD]) + action
        continue
      action, end, each = _ZERO, actions, True
      if rule != _EVERY_ACTION:
        each = compiled_explore(
          rule, sampler, strategy, cumulative, begin, actions, explored[depth]
        )
        if not each:
          action = compiled_pick(explored[depth], _ZERO, actions, next_uniform(counters))
          end = action + _ONE
        for other in range(actions):
          values[depth, other] = baseline[player, begin + other] if learns else 0.0
      frames[depth, _NODE], frames[depth, _EACH] = node, each
      weights[depth, 0], weights[depth, 1] = weight, average_weight
      frame, depth = depth, depth + _ONE
    elif depth == _ZERO:
      break
    else:
      frame = depth - _ONE
      node, action = frames[frame, _NODE], frames[frame, _ACTION]
      each = frames[frame, _EACH] == _ONE
      weight, average_weight = weights[frame, 0], weights[frame, 1]
      mover, begin = np.uint64(nodes[node, MOVER]), np.uint64(nodes[node, INDEX])
      actions = np.uint64(nodes[node, CHILDREN])
      rule = own if mover == player else others
      if rule != _EVERY_ACTION:
        chance = explored[frame, action]
        expected = values[frame, action]
        values[frame, action] = expected + (value - expected) / chance
      else:
        values[frame, action] = value
      if learns:
        entry = begin + action
        baseline[player, entry] += baseline_rate * (value - baseline[player, entry])
      action += _ONE
      end = actions if each else action

    if each and rule != _EVERY_ACTION:
      while action < end:
        chance = explored[frame, action]
        if chance >= 1.0 or next_uniform(counters) < chance:
          break
        action += _ONE
    if action < end:
      frames[frame, _ACTION] = action
      chance = 1.0 if rule == _EVERY_ACTION else explored[frame, action]
      played = strategy[begin + action]
      if mover != player:
        weight *= played / chance
      elif chance < 1.0:
        weight /= chance
      if mover == averaged:
        average_weight *= played / chance
      elif mover == player or importance:
        average_weight /= chance
      node, entering = np.uint64(nodes[node, FIRST_CHILD]) + action, True
    else:
      value = 0.0
      for other in range(actions):
        value += strategy[begin + other] * values[frame, other]
      if mover == player:
        if touched[begin] == 0:
          touched[begin], reach[begin] = actions, weight
          reached[num_reached] = begin
          num_reached += _ONE
        for other in range(actions):
          increment[begin + other] += weight * (values[frame, other] - value)
      depth, entering = frame, False
  counters[VISITED] += visited
  return num_reached


@kernel(types.void(HISTORIES, SAMPLER, BATCH, COUNTS, ENTRIES, WORKSPACE))
def sample_iterations(
  histories: Histories,
  sampler: Sampler,
  batch: Batch,
  counters: Uint64s,
  entries: Entries,
  workspace: Workspace,
) -> None:
  """Runs the iterations of a batch, one traversal per player each; arguments as for `traverse`."""
  num_players = np.uint64(histories.returns.shape[1])
  histories, entries = borrowed(histories), borrowed(entries)
  workspace, counters = borrowed(workspace), borrowed(counters)
  for iteration in range(np.uint64(batch.weights.shape[0])):
    start, weight = counters[POSITION], batch.weights[iteration]
    for player in range(num_players):
      if sampler.repeats_draws:
        counters[POSITION] = start
      count = traverse(histories, sampler, player, weight, counters, entries, workspace)
      match_regrets(workspace.reached, count, batch, iteration, entries)
    if sampler.average_type == _FULL:
      average_all_inlined(num_players, np.uint64(entries.first.shape[0]), weight, entries)
    counters[ITERATIONS] += _ONE
