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

A traversal goes down to a terminal history (enter), hands the value to the decision above (resume), and there explores
the next action or, if there is none, hands the decision's own value up (leave).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  COUNT,
  COUNT_TABLE,
  COUNTS,
  FLOAT_TABLE,
  FLOATS,
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
_BY_AVERAGE = int(Rule.BY_AVERAGE)
_FULL, _IMPORTANCE = AverageType.FULL.value, AverageType.IMPORTANCE.value


class Workspace(NamedTuple):
  """Room for one traversal, and where it is.

  Attributes:
    position: shape (4,): `NODE`, the node of the history to enter; `DEPTH`, the number of decisions above that wait for
      values; `REACHED`, the number of infosets valued; `LISTED`, the one node that a traversal which waits can enter.
    pending: shape (2,), the weights of samples below that history: `WEIGHT` in regrets, `AVERAGE` in averages.
    frames: shape (depth, 3), a row for each decision that waits: its node, the action under way, the end of the actions
      to explore.
    weights: shape (depth, 2): the weights of the decision's estimates in regrets, and of its strategy in averages.
    explored: shape (depth, actions): the probability that an action is explored.
    values: shape (depth, actions): v(h, a).
    reached: shape (infosets,): the infosets valued, each by the sequence of its action 0.
  """

  position: Uint64s
  pending: Float64s
  frames: Uint64s
  weights: Float64s
  explored: Float64s
  values: Float64s
  reached: Uint32s


NODE, DEPTH, REACHED, LISTED = range(4)
WEIGHT, AVERAGE = range(2)
# The node of a traversal that is over.
OVER = 0xFFFF_FFFF_FFFF_FFFF
_NODE, _ACTION, _END = range(3)
WORKSPACE = tuple_type(
  Workspace, COUNTS, FLOATS, COUNT_TABLE, FLOAT_TABLE, FLOAT_TABLE, FLOAT_TABLE, INDICES
)


def new_workspace(depth: int, num_actions: int, num_infosets: int) -> Workspace:
  """Returns room for traversals with at most so many decisions above each other, of at most so many actions."""
  return Workspace(
    position=np.zeros(4, np.uint64),
    pending=np.zeros(2),
    frames=np.zeros((depth, 3), np.uint64),
    weights=np.zeros((depth, 2)),
    explored=np.zeros((depth, num_actions)),
    values=np.zeros((depth, num_actions)),
    reached=np.zeros(num_infosets, np.uint32),
  )


@inlined
def _resume(
  rule: int,
  sampler: Sampler,
  player: int,
  begin: int,
  frame: int,
  value: float,
  entries: Entries,
  workspace: Workspace,
) -> None:
  """Takes the value of the action under way at a decision."""
  values, action = workspace.values, workspace.frames[frame, _ACTION]
  if rule == _EVERY_ACTION:
    values[frame, action] = value
  else:
    chance = workspace.explored[frame, action]
    expected = values[frame, action]
    values[frame, action] = expected + (value - expected) / chance
  if sampler.baseline_rate > 0.0:
    entry = begin + action
    entries.baseline[player, entry] += sampler.baseline_rate * (
      value - entries.baseline[player, entry]
    )
  workspace.frames[frame, _ACTION] = action + _ONE


@inlined
def _next_action(rule: int, frame: int, counters: Uint64s, workspace: Workspace) -> Any:
  """Returns the next action to explore at a decision, which is then under way; the end if there is none."""
  action, end = workspace.frames[frame, _ACTION], workspace.frames[frame, _END]
  if rule == _BY_AVERAGE:
    while action < end:
      chance = workspace.explored[frame, action]
      # No random number is used for what is certain.
      if chance >= 1.0 or next_uniform(counters) < chance:
        break
      action += _ONE
    workspace.frames[frame, _ACTION] = action
  return action


@inlined
def _leave(
  learns: bool, begin: int, actions: int, frame: int, entries: Entries, workspace: Workspace
) -> float:
  """Returns the value of a decision whose actions are explored; adds estimates of regrets if its player `learns`."""
  strategy, increment, values = entries.strategy, entries.increment, workspace.values
  value = 0.0
  for action in range(actions):
    value += strategy[begin + action] * values[frame, action]
  if learns:
    weight = workspace.weights[frame, 0]
    if entries.touched[begin] == 0:
      entries.touched[begin], entries.reach[begin] = actions, weight
      workspace.reached[workspace.position[REACHED]] = begin
      workspace.position[REACHED] += _ONE
    for action in range(actions):
      increment[begin + action] += weight * (values[frame, action] - value)
  return value


@inlined
def begin_traversal(average_weight: float, workspace: Workspace) -> None:
  """Puts a traversal at the root; strategies there weigh `average_weight` in averages."""
  workspace.position[NODE] = workspace.position[DEPTH] = workspace.position[REACHED] = _ZERO
  workspace.pending[WEIGHT], workspace.pending[AVERAGE] = 1.0, average_weight


@inlined
def traverse(
  waits: bool,
  histories: Histories,
  sampler: Sampler,
  player: int,
  counters: Uint64s,
  entries: Entries,
  workspace: Workspace,
) -> bool:
  """Goes on with a traversal for a player, see `begin_traversal`; adds what it estimates to `Entries.increment`.

  Returns whether it is over, and `position[REACHED]` infosets are valued. If it `waits`, rows of histories are missing:
  it stops before every node but `position[LISTED]`. For the counters see `random_draws.new_counters`.
  """
  averaged = player
  if not sampler.averages_own:
    averaged = (player + _ONE) % np.uint64(histories.returns.shape[1])
  nodes, probabilities, returns = histories.nodes, histories.probabilities, histories.returns
  strategy, cumulative = entries.strategy, entries.cumulative
  frames, weights = workspace.frames, workspace.weights
  explored, values = workspace.explored, workspace.values
  has_baseline = sampler.baseline_rate > 0.0
  full, importance = sampler.average_type == _FULL, sampler.average_type == _IMPORTANCE
  visited = _ZERO
  node, depth = workspace.position[NODE], workspace.position[DEPTH]
  listed = workspace.position[LISTED]
  # What a sample here weighs in estimates of regrets, and in averages.
  weight, average_weight = workspace.pending[WEIGHT], workspace.pending[AVERAGE]
  while True:
    # Enter a history.
    if waits and node != listed:
      workspace.position[NODE], workspace.position[DEPTH] = node, depth
      workspace.pending[WEIGHT], workspace.pending[AVERAGE] = weight, average_weight
      counters[VISITED] += visited
      return False
    mover, begin = np.uint64(nodes[node, MOVER]), np.uint64(nodes[node, INDEX])
    actions = np.uint64(nodes[node, CHILDREN])
    value, is_end = 0.0, mover == _TERMINAL
    if mover == _CHANCE:
      visited += _ONE
      action = compiled_pick(probabilities, begin, actions, next_uniform(counters))
      if importance:
        average_weight /= probabilities[begin + action]
      node = np.uint64(nodes[node, FIRST_CHILD]) + action
      continue
    if is_end:
      value = returns[begin, player]
    else:
      if mover == averaged and not full:
        for entry in range(begin, begin + actions):
          cumulative[entry] += average_weight * strategy[entry]
      rule = sampler.own if mover == player else sampler.others
      if rule == _BY_STRATEGY and mover != player and not has_baseline:
        # The value of what is drawn is the estimate: there is nothing to come back for.
        visited += _ONE
        action = compiled_pick(strategy, begin, actions, next_uniform(counters))
        if importance and mover != averaged:
          average_weight /= strategy[begin + action]
        node = np.uint64(nodes[node, FIRST_CHILD]) + action
        continue
      frames[depth, _NODE], frames[depth, _ACTION], frames[depth, _END] = node, _ZERO, actions
      weights[depth, 0], weights[depth, 1] = weight, average_weight
      if rule != _EVERY_ACTION:
        if not compiled_explore(
          rule, sampler, strategy, cumulative, begin, actions, explored[depth]
        ):
          action = compiled_pick(explored[depth], _ZERO, actions, next_uniform(counters))
          frames[depth, _ACTION], frames[depth, _END] = action, action + _ONE
        for other in range(actions):
          values[depth, other] = entries.baseline[player, begin + other] if has_baseline else 0.0
      depth += _ONE
    visited += _ONE

    while depth > _ZERO:
      frame = depth - _ONE
      node = frames[frame, _NODE]
      mover, begin = np.uint64(nodes[node, MOVER]), np.uint64(nodes[node, INDEX])
      rule = sampler.own if mover == player else sampler.others
      if is_end:
        _resume(rule, sampler, player, begin, frame, value, entries, workspace)
      action = _next_action(rule, frame, counters, workspace)
      if action < frames[frame, _END]:
        weight, average_weight = weights[frame, 0], weights[frame, 1]
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
        node = np.uint64(nodes[node, FIRST_CHILD]) + action
        break
      actions = np.uint64(nodes[node, CHILDREN])
      value = _leave(mover == player, begin, actions, frame, entries, workspace)
      depth, is_end = frame, True
    else:
      counters[VISITED] += visited
      return True


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
      begin_traversal(weight, workspace)
      traverse(False, histories, sampler, player, counters, entries, workspace)
      match_regrets(workspace.reached, workspace.position[REACHED], batch, iteration, entries)
    if sampler.average_type == _FULL:
      average_all_inlined(num_players, np.uint64(entries.first.shape[0]), weight, entries)
    counters[ITERATIONS] += _ONE


@kernel(types.boolean(HISTORIES, SAMPLER, COUNT, BATCH, COUNT, COUNTS, ENTRIES, WORKSPACE))
def sample_on(
  histories: Histories,
  sampler: Sampler,
  player: int,
  batch: Batch,
  iteration: int,
  counters: Uint64s,
  entries: Entries,
  workspace: Workspace,
) -> Any:
  """Goes on with one traversal as far as histories are listed; returns whether it is over, and regrets matched."""
  histories, entries = borrowed(histories), borrowed(entries)
  workspace, counters = borrowed(workspace), borrowed(counters)
  is_over = traverse(True, histories, sampler, player, counters, entries, workspace)
  if is_over:
    workspace.position[NODE] = np.uint64(OVER)
    match_regrets(workspace.reached, workspace.position[REACHED], batch, iteration, entries)
  return is_over
