"""The traversal of every Monte Carlo solver, in compiled code.

A traversal estimates the regrets of one player. With h a history, p that player, sigma the current strategies, q(h) the
probability that the traversal reaches h, and pi_{-p}(h) the probability that chance and the other players bring h
about, it computes from the leaves up

    v(h) = sum over actions a of  sigma(a | h) v(h, a)
    v(h, a) = b(h, a) + (v(ha) - b(h, a)) / probability that a is explored   if it is, else b(h, a)

where b is a baseline, or zero (Schmid et al. 2019, "Variance Reduction in Monte Carlo Counterfactual Regret
Minimization for Extensive Form Games using Baselines"). Where p is to move, v(h, a) pi_{-p}(h) / q(h) then estimates
the counterfactual utility of a without bias (Lanctot et al. 2009, "Monte Carlo Sampling for Regret Minimization in
Extensive Games"). Strategies change when the traversal is over, not before.

The traversal is a loop, since histories may be longer than any stack. It keeps a frame for each decision above:

    pass_by   a history at which one action is drawn and its value is the estimate: go to that child
    enter     a decision: write a frame with the actions to explore
    descend   go to the next child to explore, if the last frame has one
    leave     otherwise take the last frame away: the decision has its value
    resume    hand a value to the decision above
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, Counts, CountTable, Doubles, DoubleTable, Indices
from spiel_cfr._numba.steps import step
from spiel_cfr.games.openspiel.histories import (
  CHANCE,
  CHILDREN,
  FIRST_CHILD,
  INDEX,
  MOVER,
  TERMINAL,
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
_CHANCE, _TERMINAL = np.uint64(CHANCE), np.uint64(TERMINAL)
# Compiled code knows integers of a fixed size only.
_EVERY_ACTION, _BY_STRATEGY = np.uint64(Rule.EVERY_ACTION), np.uint64(Rule.BY_STRATEGY)
_BY_AVERAGE = np.uint64(Rule.BY_AVERAGE)
_FULL, _IMPORTANCE = AverageType.FULL.value, np.uint64(AverageType.IMPORTANCE.value)

# Places in `Workspace.position`, and columns of its other arrays.
NODE, DEPTH, REACHED, LISTED, START = range(5)
WEIGHT, AVERAGE = range(2)
_NODE, _ACTION, _END = range(3)
# The node of a traversal that is over, and of a child that is not there.
OVER, _NONE = np.uint64(0xFFFF_FFFF_FFFF_FFFF), np.uint64(0xFFFF_FFFF_FFFF_FFFE)
# Places in the numbers of an iteration: what its strategies weigh in averages, and the sums of the logarithms of all
# that positive and negative regrets have been multiplied by, the iteration's own factors included.
AVERAGE_WEIGHT, POSITIVE, NEGATIVE = range(3)


class Workspace(NamedTuple):
  """The place of a traversal, and the decisions above it.

  Attributes:
    position: uint64 (5,). `NODE`, the history to go on at, or `OVER`; `DEPTH`, the number of frames; `REACHED`, the
      number of infosets valued; `LISTED`, the only history at which a traversal that waits may go on; `START`, the
      position of the random numbers at the beginning of the iteration.
    frames: uint64 (depth, 3). For each decision above its node, the action under way, the end of the actions to
      explore.
    weights: float64 (depth, 2). For each decision above, and last for the history to go on at, the weight of a sample
      in regrets, `WEIGHT`, and in averages, `AVERAGE`.
    explored: float64 (depth, actions). The probability that an action is explored.
    values: float64 (depth, actions). v(h, a).
    reached: uint32 (infosets,). The infosets valued, each by the entry of its action 0.
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
    histories: the histories of the game, or those that are listed.
    entries: strategies, averages and estimates.
    workspace: the workspace.
    counters: see `random_draws.new_counters`.
    numbers: float64. The numbers of the iteration.
    sampler: the rules.
    player: the player whose regrets are estimated.
    averaged: the player whose strategies are added to its average on the way; the number of players if there is none.
    waits: whether rows of histories are missing; the traversal then stops at every history but `LISTED`.
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
  """Returns room for traversals with at most so many decisions above each other, of at most so many actions."""
  return Workspace(
    position=np.zeros(5, np.uint64),
    frames=np.zeros((depth, 3), np.uint64),
    weights=np.zeros((depth + 1, 2)),
    explored=np.zeros((depth, num_actions)),
    values=np.zeros((depth, num_actions)),
    reached=np.zeros(num_infosets, np.uint32),
  )


def averaged_player(sampler: Sampler, player: int, num_players: int) -> int:
  """Returns `Traversal.averaged`."""
  if sampler.average_type == _FULL:
    return num_players
  return player if sampler.averages_own else (player + 1) % num_players


@step(Traversal, single=False)
def begin_traversal(record: Traversal) -> None:
  """Puts a traversal at the root."""
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
  """Goes on with a traversal until it is over, or waits; adds what it estimates to `Entries.increment`."""
  position, nodes, player = record.workspace.position, record.histories.nodes, record.player
  sampler, node, depth = record.sampler, position[NODE], position[DEPTH]
  others_are_passed = sampler.others == _BY_STRATEGY and sampler.baseline_rate == 0.0
  while node != OVER and (not record.waits or node == position[LISTED]):
    record.counters[VISITED] += _ONE
    mover = nodes[node, MOVER]
    if mover == _CHANCE:
      node = pass_by(record, node, depth, record.histories.probabilities)
      continue
    if mover == _TERMINAL:
      resume(record, depth, record.histories.returns[nodes[node, INDEX], player])
    else:
      if mover == record.averaged:
        average(record, node, depth)
      if others_are_passed and mover != player:
        node = pass_by(record, node, depth, record.entries.strategy)
        continue
      enter(record, node, depth)
      depth += _ONE
    node = descend(record, depth)
    while node == _NONE:
      depth -= _ONE
      resume(record, depth, leave(record, depth))
      node = descend(record, depth)
  position[NODE], position[DEPTH] = node, depth


@inlined
def pass_by(record: Traversal, node: int, depth: int, probabilities: Any) -> Any:
  """Draws a child. There is nothing to come back for: its value is the estimate."""
  nodes = record.histories.nodes
  begin = np.uint64(nodes[node, INDEX])
  action = draw(probabilities, begin, np.uint64(nodes[node, CHILDREN]), record.counters)
  if record.sampler.average_type == _IMPORTANCE and nodes[node, MOVER] != record.averaged:
    record.workspace.weights[depth, AVERAGE] /= probabilities[begin + action]
  return np.uint64(nodes[node, FIRST_CHILD]) + action


@inlined
def average(record: Traversal, node: int, depth: int) -> None:
  """Adds the strategy of a decision to its average."""
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
  """Returns the rule of the player to move."""
  learns = record.histories.nodes[node, MOVER] == record.player
  return record.sampler.own if learns else record.sampler.others


@inlined
def enter(record: Traversal, node: int, depth: int) -> None:
  """Writes the frame of a decision."""
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
def descend(record: Traversal, depth: int) -> Any:
  """Returns the next child to explore below the last decision of `depth`.

  It is `_NONE` if none is left there, and `OVER` if there is no decision.
  """
  workspace, nodes, counters = record.workspace, record.histories.nodes, record.counters
  weights = workspace.weights
  if depth == _ZERO:
    return OVER
  frame = depth - _ONE
  node, action = workspace.frames[frame, _NODE], workspace.frames[frame, _ACTION]
  end, explored = workspace.frames[frame, _END], workspace.explored[frame]
  if rule_of(record, node) == _BY_AVERAGE:
    # No random number is used for what is certain.
    while action < end and explored[action] < 1.0 and next_uniform(counters) >= explored[action]:
      action += _ONE
    workspace.frames[frame, _ACTION] = action
  if action == end:
    return _NONE
  mover, chance = nodes[node, MOVER], explored[action]
  played = record.entries.strategy[np.uint64(nodes[node, INDEX]) + action]
  weight, average_weight = weights[frame, WEIGHT], weights[frame, AVERAGE]
  if mover != record.player:
    weight *= played / chance
  else:
    weight /= chance
  if mover == record.averaged:
    average_weight *= played / chance
  elif mover == record.player or record.sampler.average_type == _IMPORTANCE:
    average_weight /= chance
  weights[depth, WEIGHT], weights[depth, AVERAGE] = weight, average_weight
  return np.uint64(nodes[node, FIRST_CHILD]) + action


@inlined
def resume(record: Traversal, depth: int, value: float) -> None:
  """Hands the value of the action under way to the last decision, if there is one."""
  workspace, entries, rate = record.workspace, record.entries, record.sampler.baseline_rate
  if depth == _ZERO:
    return
  frame = depth - _ONE
  node, action = workspace.frames[frame, _NODE], workspace.frames[frame, _ACTION]
  expected, chance = workspace.values[frame, action], workspace.explored[frame, action]
  workspace.values[frame, action] = expected + (value - expected) / chance
  if rate > 0.0:
    entry = np.uint64(record.histories.nodes[node, INDEX]) + action
    expected = entries.baseline[record.player, entry]
    entries.baseline[record.player, entry] = expected + rate * (value - expected)
  workspace.frames[frame, _ACTION] = action + _ONE


@inlined
def leave(record: Traversal, depth: int) -> float:
  """Returns the decision's value; adds estimates of regrets of the player."""
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
def valued(workspace: Workspace) -> Any:
  """Returns the number of infosets that a traversal has valued; 0 before it is over."""
  return workspace.position[REACHED] if workspace.position[NODE] == OVER else _ZERO
