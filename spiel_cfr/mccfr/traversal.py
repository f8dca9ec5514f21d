"""Traversal of Monte Carlo CFR, in compiled code: it samples histories and estimates the regrets of one player.

Let h be a history, p the updating player, sigma the current strategies, and q(h) the probability that the traversal
reaches h. Let pi_{-p}(h) be the reach probability of chance and the other players. The traversal computes, from the
leaves up,

    v(h) = sum over actions a of  sigma(a | h) v(h, a)
    v(h, a) = b(h, a) + (v(ha) - b(h, a)) / P(a is explored)   if a is explored, otherwise b(h, a)

where b is a baseline, or zero (Schmid et al. 2019, "Variance Reduction in Monte Carlo Counterfactual Regret
Minimization for Extensive Form Games using Baselines"). If p is to move at h, v(h, a) pi_{-p}(h) / q(h) is an unbiased
estimate of the counterfactual value of a (Lanctot et al. 2009, "Monte Carlo Sampling for Regret Minimization in
Extensive Games"). Strategies change after the traversal.

The traversal is a loop, because histories may be too long for recursion. An open decision is a decision on the way from
the root whose actions are not all explored. Each has a frame, which these functions manage:

    sample_child     draws one action and goes to its child; the child's value is the estimate, so no frame is needed
    open_decision    adds a frame with the actions to explore
    next_child       goes to the next child to explore in the last frame
    close_decision   returns the value of the decision in the last frame, once all its actions are explored
    receive_value    writes the value of an action to the last frame
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, Counts, CountTable, Doubles, DoubleTable, Indices
from spiel_cfr._numba.steps import step
from spiel_cfr.games.openspiel.histories import (
  CHILDREN,
  FIRST_CHILD,
  INDEX,
  MOVER,
  UNSIGNED_CHANCE,
  UNSIGNED_TERMINAL,
  Histories,
)
from spiel_cfr.mccfr.infoset_table import Entries
from spiel_cfr.mccfr.random_draws import (
  POSITION,
  VISITED,
  compiled_explore,
  draw,
  next_uniform,
)
from spiel_cfr.mccfr.sampling_rules import AverageType, Rule, Sampler

_ZERO: Any = np.uint64(0)
_ONE: Any = np.uint64(1)
_CHANCE, _TERMINAL = np.uint64(UNSIGNED_CHANCE), np.uint64(UNSIGNED_TERMINAL)
# Compiled code needs integers of a fixed size.
_EVERY_ACTION, _BY_STRATEGY = np.uint64(Rule.EVERY_ACTION), np.uint64(Rule.BY_STRATEGY)
_BY_AVERAGE = np.uint64(Rule.BY_AVERAGE)
_FULL, _IMPORTANCE = AverageType.FULL.value, np.uint64(AverageType.IMPORTANCE.value)

# Indices of `Workspace.position`, and columns of its `weights` and `frames`.
NODE, DEPTH, REACHED, LISTED, START = range(5)
WEIGHT, AVERAGE = range(2)
_NODE, _ACTION, _END = range(3)
# Sentinels in place of a node: the traversal is over; no child is left.
OVER, _NONE = np.uint64(0xFFFF_FFFF_FFFF_FFFF), np.uint64(0xFFFF_FFFF_FFFF_FFFE)
# Entries of the numbers of an iteration: its averaging weight, and the sums of the logarithms of the discounts on
# positive and on negative regrets, up to and including this iteration.
AVERAGE_WEIGHT, POSITIVE, NEGATIVE = range(3)


class Workspace(NamedTuple):
  """The position of a traversal, and the frames of its open decisions.

  Attributes:
    position: uint64 (5,). `NODE`: the next history, or `OVER`. `DEPTH`: the number of frames. `REACHED`: the number of
      the updating player's infosets with estimates. `LISTED`: the only history that a traversal with `waits` may enter.
      `START`: the position of the random numbers at the beginning of the iteration.
    frames: uint64 (depth, 3). For each open decision: its node, the action under exploration, and one past the last
      action to explore.
    weights: float64 (depth + 1, 2). The sample weights in regrets, `WEIGHT`, and in averages, `AVERAGE`, of each open
      decision and, in the last row in use, of the next history.
    explored: float64 (depth, actions). The probability that each action of an open decision is explored.
    values: float64 (depth, actions). The values v(h, a) of the open decisions.
    reached: uint32 (infosets,). The entry of action 0 of each of the updating player's infosets with estimates.
  """

  position: Counts
  frames: CountTable
  weights: DoubleTable
  explored: DoubleTable
  values: DoubleTable
  reached: Indices


class Traversal(NamedTuple):
  """The arguments of a traversal.

  Attributes:
    histories: `Histories`. All histories of the game, or those that the state engine has listed.
    entries: `Entries`. Strategies, averages and estimates.
    workspace: `Workspace`. The position and the open decisions.
    counters: uint64 (4,). See `random_draws.new_counters`.
    numbers: float64 (3,). The weight and discounts of the iteration; see `AVERAGE_WEIGHT`.
    sampler: `Sampler`. The sampling scheme.
    player: int. The updating player, whose regrets are estimated.
    averaged: int. The player whose strategies the traversal averages; the number of players for none.
    waits: bool. True if histories are listed on demand. The traversal then stops before every history except `LISTED`.
  """

  histories: Histories
  entries: Entries
  workspace: Workspace
  counters: Counts
  numbers: Doubles
  sampler: Sampler
  player: Count
  averaged: Count
  waits: Count


def new_workspace(depth: int, num_actions: int, num_infosets: int) -> Workspace:
  """Returns a workspace for up to `depth` open decisions of up to `num_actions` actions."""
  return Workspace(
    position=np.zeros(5, np.uint64),
    frames=np.zeros((depth, 3), np.uint64),
    weights=np.zeros((depth + 1, 2)),
    explored=np.zeros((depth, num_actions)),
    values=np.zeros((depth, num_actions)),
    reached=np.zeros(num_infosets, np.uint32),
  )


def averaged_player(sampler: Sampler, player: int, num_players: int) -> int:
  """Returns `Traversal.averaged` of a traversal for the updating player `player`."""
  if sampler.average_type == _FULL:
    return num_players
  return player if sampler.averages_updating else (player + 1) % num_players


@step(Traversal, single=False)
def begin_traversal(record: Traversal) -> None:
  """Starts a traversal at the root."""
  position, counters = record.workspace.position, record.counters
  position[NODE] = position[DEPTH] = position[REACHED] = _ZERO
  weights = record.workspace.weights
  weights[_ZERO, WEIGHT], weights[_ZERO, AVERAGE] = 1.0, record.numbers[AVERAGE_WEIGHT]
  if record.player == _ZERO:
    position[START] = counters[POSITION]
  elif record.sampler.repeats_draws:
    counters[POSITION] = position[START]


@step(Traversal, single=False)
def traverse(record: Traversal) -> None:
  """Continues a traversal until it is over or waits for a history. Adds estimated regrets to `Entries.increment`."""
  position, nodes, player = record.workspace.position, record.histories.nodes, record.player
  sampler, node, depth = record.sampler, position[NODE], position[DEPTH]
  opponents_need_no_frame = sampler.opponent_rule == _BY_STRATEGY and sampler.baseline_rate == 0.0
  while node != OVER and (not record.waits or node == position[LISTED]):
    record.counters[VISITED] += _ONE
    mover = nodes[node, MOVER]
    if mover == _CHANCE:
      node = sample_child(record, node, depth, record.histories.probabilities)
      continue
    if mover == _TERMINAL:
      receive_value(record, depth, record.histories.returns[nodes[node, INDEX], player])
    else:
      if mover == record.averaged:
        add_to_average(record, node, depth)
      if opponents_need_no_frame and mover != player:
        node = sample_child(record, node, depth, record.entries.strategy)
        continue
      open_decision(record, node, depth)
      depth += _ONE
    node = next_child(record, depth)
    while node == _NONE:
      depth -= _ONE
      receive_value(record, depth, close_decision(record, depth))
      node = next_child(record, depth)
  position[NODE], position[DEPTH] = node, depth


@inlined
def sample_child(record: Traversal, node: int, depth: int, probabilities: Any) -> Any:
  """Returns a child of a node, drawn with these probabilities."""
  nodes = record.histories.nodes
  begin = np.uint64(nodes[node, INDEX])
  action = draw(probabilities, begin, np.uint64(nodes[node, CHILDREN]), record.counters)
  if record.sampler.average_type == _IMPORTANCE and nodes[node, MOVER] != record.averaged:
    record.workspace.weights[depth, AVERAGE] /= probabilities[begin + action]
  return np.uint64(nodes[node, FIRST_CHILD]) + action


@inlined
def add_to_average(record: Traversal, node: int, depth: int) -> None:
  """Adds the strategy at a decision to its average, with the sample weight."""
  nodes, entries, weight = (
    record.histories.nodes,
    record.entries,
    record.workspace.weights[depth, AVERAGE],
  )
  begin = np.uint64(nodes[node, INDEX])
  for entry in range(begin, begin + np.uint64(nodes[node, CHILDREN])):
    entries.cumulative[entry] += weight * entries.strategy[entry]


@inlined
def rule_of(record: Traversal, node: int) -> Any:
  """Returns the sampling rule of the player to move at a node."""
  is_updating = record.histories.nodes[node, MOVER] == record.player
  return record.sampler.updating_rule if is_updating else record.sampler.opponent_rule


@inlined
def open_decision(record: Traversal, node: int, depth: int) -> None:
  """Writes the frame of a decision: draws the actions to explore, and sets their values to the baselines."""
  workspace, nodes, entries = record.workspace, record.histories.nodes, record.entries
  begin, actions = np.uint64(nodes[node, INDEX]), np.uint64(nodes[node, CHILDREN])
  sampler, rule = record.sampler, rule_of(record, node)
  explored, first, end = workspace.explored[depth], _ZERO, actions
  if not compiled_explore(
    rule, sampler, entries.strategy, entries.cumulative, begin, actions, explored
  ):
    first = draw(explored, _ZERO, actions, record.counters)
    end = first + _ONE
  frames = workspace.frames
  frames[depth, _NODE], frames[depth, _ACTION], frames[depth, _END] = node, first, end
  for action in range(actions):
    value = 0.0
    if sampler.baseline_rate > 0.0 and rule != _EVERY_ACTION:
      value = entries.baseline[record.player, begin + action]
    workspace.values[depth, action] = value


@inlined
def next_child(record: Traversal, depth: int) -> Any:
  """Returns the next child to explore in the last of `depth` frames.

  The result is `_NONE` if all actions are explored, and `OVER` if there is no frame.
  """
  workspace, nodes, counters = record.workspace, record.histories.nodes, record.counters
  weights = workspace.weights
  if depth == _ZERO:
    return OVER
  frame = depth - _ONE
  node, action = workspace.frames[frame, _NODE], workspace.frames[frame, _ACTION]
  end, explored = workspace.frames[frame, _END], workspace.explored[frame]
  if rule_of(record, node) == _BY_AVERAGE:
    # Actions explored with probability 1 draw no random number.
    while action < end and explored[action] < 1.0 and next_uniform(counters) >= explored[action]:
      action += _ONE
    workspace.frames[frame, _ACTION] = action
  if action == end:
    return _NONE
  mover, exploration = nodes[node, MOVER], explored[action]
  probability = record.entries.strategy[np.uint64(nodes[node, INDEX]) + action]
  weight, average_weight = weights[frame, WEIGHT], weights[frame, AVERAGE]
  if mover != record.player:
    weight *= probability / exploration
  else:
    weight /= exploration
  if mover == record.averaged:
    average_weight *= probability / exploration
  elif mover == record.player or record.sampler.average_type == _IMPORTANCE:
    average_weight /= exploration
  weights[depth, WEIGHT], weights[depth, AVERAGE] = weight, average_weight
  return np.uint64(nodes[node, FIRST_CHILD]) + action


@inlined
def receive_value(record: Traversal, depth: int, value: float) -> None:
  """Writes the value of the action under exploration to the last of `depth` frames. Without frames, does nothing."""
  workspace, entries, rate = record.workspace, record.entries, record.sampler.baseline_rate
  if depth == _ZERO:
    return
  frame = depth - _ONE
  node, action = workspace.frames[frame, _NODE], workspace.frames[frame, _ACTION]
  baseline, exploration = workspace.values[frame, action], workspace.explored[frame, action]
  workspace.values[frame, action] = baseline + (value - baseline) / exploration
  if rate > 0.0:
    entry = np.uint64(record.histories.nodes[node, INDEX]) + action
    old = entries.baseline[record.player, entry]
    entries.baseline[record.player, entry] = old + rate * (value - old)
  workspace.frames[frame, _ACTION] = action + _ONE


@inlined
def close_decision(record: Traversal, depth: int) -> float:
  """Returns the value v(h) of the decision in frame `depth`. For the updating player, adds the estimates of regrets."""
  workspace, nodes, entries = record.workspace, record.histories.nodes, record.entries
  position, values = workspace.position, workspace.values
  node = workspace.frames[depth, _NODE]
  begin, actions = np.uint64(nodes[node, INDEX]), np.uint64(nodes[node, CHILDREN])
  value = 0.0
  for action in range(actions):
    value += entries.strategy[begin + action] * values[depth, action]
  if nodes[node, MOVER] == record.player:
    weight = workspace.weights[depth, WEIGHT]
    if entries.touched[begin] == 0:
      entries.touched[begin], entries.reach[begin] = actions, weight
      workspace.reached[position[REACHED]] = begin
      position[REACHED] += _ONE
    for action in range(actions):
      entries.increment[begin + action] += weight * (values[depth, action] - value)
  return value


@inlined
def num_visited(workspace: Workspace) -> Any:
  """Returns the number of the updating player's infosets with estimates; 0 while the traversal is unfinished."""
  return workspace.position[REACHED] if workspace.position[NODE] == OVER else _ZERO
