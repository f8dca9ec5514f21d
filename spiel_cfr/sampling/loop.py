"""The compiled traversals of every Monte Carlo solver, and what both engines do at the end of one.

A traversal estimates the regrets of one player. With h a history, p that player, sigma the current strategies, q(h) the
probability that the traversal reaches h, and pi_{-p}(h) the probability that chance and the other players bring h
about, it computes from the leaves up

    v(h) = sum over actions a of  sigma(a | h) v(h, a)
    v(h, a) = b(h, a) + (v(ha) - b(h, a)) / probability that a is explored   if it is, else b(h, a)

where b is a baseline, or zero (Schmid et al. 2019, "Variance Reduction in Monte Carlo Counterfactual Regret
Minimization for Extensive Form Games using Baselines"). Where p is to move, v(h, a) pi_{-p}(h) / q(h) then estimates
the counterfactual utility of a without bias (Lanctot et al. 2009, "Monte Carlo Sampling for Regret Minimization in
Extensive Games"). Strategies change when the traversal is over, not before.

Random numbers are a function of a key and a count (SplitMix64; Steele, Lea and Flood 2014, "Fast Splittable
Pseudorandom Number Generators"), so that all there is to remember of the stream is a position.
"""

from collections.abc import MutableSequence, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types

from spiel_cfr.kernels.arrays import (
  COUNT,
  COUNT_TABLE,
  COUNTS,
  FLOAT_TABLE,
  FLOATS,
  INDICES,
  Float64s,
  Uint32s,
  Uint64s,
  tuple_type,
)
from spiel_cfr.kernels.compile import inlined, kernel
from spiel_cfr.sampling.histories import (
  CHANCE,
  CHILDREN,
  FIRST_CHILD,
  HISTORIES,
  INDEX,
  MOVER,
  TERMINAL,
  Histories,
)
from spiel_cfr.sampling.rules import AverageType, Rule
from spiel_cfr.sampling.table import ENTRIES, Entries

_ZERO: Any = np.uint64(0)
_ONE: Any = np.uint64(1)
_CHANCE, _TERMINAL = np.uint64(CHANCE), np.uint64(TERMINAL)
# Entries of a solver's counters: the key and the position of its random numbers, iterations done, nodes visited.
KEY, POSITION, ITERATIONS, VISITED = range(4)
NUM_COUNTERS = 4
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1, _MULTIPLIER_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_TO_53_BITS, _FROM_53_BITS = np.uint64(11), 2.0**-53


# Compiled code knows integers of a fixed size only.
_EVERY_ACTION, _BY_STRATEGY = int(Rule.EVERY_ACTION), int(Rule.BY_STRATEGY)
_BY_EXPLORING_STRATEGY = int(Rule.BY_EXPLORING_STRATEGY)
_FULL, _IMPORTANCE = np.uint64(AverageType.FULL.value), np.uint64(AverageType.IMPORTANCE.value)


class Schedule(NamedTuple):
  """What depends on the iteration, for some iterations in a row.

  Attributes:
    logarithms: shape (iterations, 2): sums of the logarithms of all that positive and negative regrets have been
      multiplied by, the iteration's own factors included.
    weights: shape (iterations,): what strategies weigh in the average.
    discounting: whether any of these is not 0.
    forgets_negative: see `LocalMinimizer`.
    tie: regrets up to this count as 0.
  """

  logarithms: Float64s
  weights: Float64s
  discounting: bool
  forgets_negative: bool
  tie: float


SCHEDULE = tuple_type(Schedule, FLOAT_TABLE, FLOATS, types.boolean, types.boolean, types.float64)


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
def _next_uniform(counters: Uint64s) -> float:
  """Returns the next random number in [0, 1)."""
  counters[POSITION] += _ONE
  bits = counters[KEY] + counters[POSITION] * _GAMMA
  bits = (bits ^ (bits >> _SHIFT_1)) * _MULTIPLIER_1
  bits = (bits ^ (bits >> _SHIFT_2)) * _MULTIPLIER_2
  bits = bits ^ (bits >> _SHIFT_3)
  return np.float64(bits >> _TO_53_BITS) * _FROM_53_BITS


@kernel(types.void(COUNTS, FLOATS))
def fill_uniform(counters: Uint64s, numbers: Float64s) -> None:
  """Draws as many random numbers in [0, 1) as there is room for."""
  for i in range(numbers.shape[0]):
    numbers[i] = _next_uniform(counters)


def pick(probabilities: Sequence[float], begin: int, count: int, uniform: float) -> int:
  """Returns which of `count` outcomes a uniform number in [0, 1) stands for; never one of probability 0."""
  chosen = begin - begin
  total = 0.0
  for outcome in range(count):
    if probabilities[begin + outcome] > 0.0:
      chosen = outcome
      total += probabilities[begin + outcome]
      if uniform < total:
        break
  return chosen


def explore(
  rule: int,
  strategy: Sequence[float],
  average: Float64s,
  first: int,
  actions: int,
  parameters: Sequence[float],
  probabilities: MutableSequence[float],
) -> bool:
  """Applies a `Rule` other than `EVERY_ACTION` to an infoset.

  Args:
    rule: which one.
    strategy: the current strategy at the infoset, `actions` numbers from `first` on.
    average: likewise, the sums of its average strategy.
    first: see there.
    actions: see there.
    parameters: of the rule.
    probabilities: filled, from 0 on, with the probability that an action is explored.

  Returns:
    Whether each action is drawn by itself, or one of them from the distribution.
  """
  if rule == _BY_STRATEGY:
    for action in range(actions):
      probabilities[action] = strategy[first + action]
    return False
  epsilon = parameters[0]
  if rule == _BY_EXPLORING_STRATEGY:
    for action in range(actions):
      probabilities[action] = epsilon / actions + (1.0 - epsilon) * strategy[first + action]
    return False
  beta, tau = parameters[1], parameters[2]
  total = beta
  for action in range(actions):
    total += average[first + action]
  for action in range(actions):
    share = (beta + tau * average[first + action]) / total if total > 0.0 else 1.0
    probabilities[action] = max(epsilon, min(1.0, share))
  return True


# The engine that works on states calls the functions themselves.
_pick = inlined(pick)
_explore = inlined(explore)


@inlined
def _match_regrets(
  reached: Uint32s, count: int, schedule: Schedule, iteration: int, entries: Entries
) -> None:
  """Regret matching, with discounts, at the first `count` infosets that a traversal has reached; clears increments."""
  regret, strategy, increment = entries.regret, entries.strategy, entries.increment
  caught_up, logarithms, tie = entries.caught_up, schedule.logarithms, schedule.tie
  for i in range(count):
    begin = np.uint64(reached[i])
    end = begin + np.uint64(entries.touched[begin])
    entries.touched[begin] = 0
    if schedule.discounting:
      of_positive = np.exp(logarithms[iteration, 0] - caught_up[0, begin])
      of_negative = np.exp(logarithms[iteration, 1] - caught_up[1, begin])
      for entry in range(begin, end):
        regret[entry] *= of_positive if regret[entry] > tie else of_negative
      caught_up[0, begin], caught_up[1, begin] = logarithms[iteration, 0], logarithms[iteration, 1]
    total = 0.0
    for entry in range(begin, end):
      updated = regret[entry] + increment[entry]
      increment[entry] = 0.0
      positive = updated if updated > tie else 0.0
      regret[entry] = positive if schedule.forgets_negative else updated
      strategy[entry] = positive
      total += positive
    for entry in range(begin, end):
      strategy[entry] = strategy[entry] / total if total > 0.0 else 1.0 / (end - begin)


@inlined
def _average_all(num_players: int, num_infosets: int, weight: float, entries: Entries) -> None:
  """Adds every infoset's strategy to its average, weighted by `weight` and own reach."""
  reach, strategy, average = entries.reach, entries.strategy, entries.average
  for player in range(num_players):
    reach[player] = 1.0
    average[player] += weight
  for infoset in range(num_infosets):
    begin = np.uint64(entries.first[infoset])
    above = reach[entries.parent[infoset]]
    for entry in range(begin, begin + np.uint64(entries.num_actions[infoset])):
      reach[entry] = above * strategy[entry]
      average[entry] += weight * reach[entry]


@kernel(types.void(COUNT, COUNT, types.float64, ENTRIES))
def average_all(num_players: int, num_infosets: int, weight: float, entries: Entries) -> None:
  """Adds every infoset's strategy to its average, weighted by `weight` and own reach."""
  _average_all(num_players, num_infosets, weight, entries)


@kernel(types.void(INDICES, FLOATS, INDICES, FLOATS, INDICES, SCHEDULE, COUNT, ENTRIES))
def absorb(
  averaged: Uint32s,
  average_weights: Float64s,
  valued: Uint32s,
  estimates: Float64s,
  reached: Uint32s,
  schedule: Schedule,
  iteration: int,
  entries: Entries,
) -> None:
  """Ends a traversal that only took notes.

  Args:
    averaged: the infosets whose strategies are to be averaged, in the order of visits.
    average_weights: what each of these visits weighs.
    valued: the infosets whose regrets were estimated, in the order in which that was done.
    estimates: the regrets of their actions, end to end.
    reached: workspace as long as `valued`.
    schedule: see `Schedule`.
    iteration: which row of it.
    entries: the table.
  """
  average, increment = entries.average, entries.increment
  for i in range(averaged.shape[0]):
    infoset = averaged[i]
    begin = np.uint64(entries.first[infoset])
    for entry in range(begin, begin + np.uint64(entries.num_actions[infoset])):
      average[entry] += average_weights[i] * entries.strategy[entry]
  estimate, count = _ZERO, _ZERO
  for i in range(valued.shape[0]):
    infoset = valued[i]
    begin = np.uint64(entries.first[infoset])
    if entries.touched[begin] == 0:
      entries.touched[begin] = entries.num_actions[infoset]
      reached[count] = begin
      count += _ONE
    for entry in range(begin, begin + np.uint64(entries.num_actions[infoset])):
      increment[entry] += estimates[estimate]
      estimate += _ONE
  _match_regrets(reached, count, schedule, iteration, entries)


@kernel(
  types.void(
    HISTORIES,
    types.int64,
    types.int64,
    FLOATS,
    types.boolean,
    COUNT,
    COUNT,
    types.float64,
    SCHEDULE,
    COUNTS,
    ENTRIES,
    WORKSPACE,
  ),
)
def sample_iterations(
  histories: Histories,
  own: int,
  others: int,
  rule_parameters: Float64s,
  repeats_draws: bool,
  averaged_after: int,
  averaging: int,
  baseline_rate: float,
  schedule: Schedule,
  counters: Uint64s,
  entries: Entries,
  workspace: Workspace,
) -> None:
  """Runs the iterations of a schedule, one traversal a player each.

  Args:
    histories: the game.
    own: see `rules.Sampler`.
    others: likewise.
    rule_parameters: likewise.
    repeats_draws: likewise.
    averaged_after: a traversal for player p averages strategies of player (p + averaged_after) mod players.
    averaging: the value of an `AverageType`.
    baseline_rate: how far a baseline moves to a new value; 0 for no baselines.
    schedule: see `Schedule`.
    counters: see `KEY` and the others.
    entries: the table.
    workspace: see `Workspace`.
  """
  nodes, probabilities, returns = histories.nodes, histories.probabilities, histories.returns
  strategy, average, increment = entries.strategy, entries.average, entries.increment
  touched, baseline = entries.touched, entries.baseline
  frames, weights, reached = workspace.frames, workspace.weights, workspace.reached
  explored, values = workspace.explored, workspace.values
  learns = baseline_rate > 0.0
  num_players = np.uint64(returns.shape[1])
  full, importance = averaging == _FULL, averaging == _IMPORTANCE
  for iteration in range(np.uint64(schedule.weights.shape[0])):
    start, visited = counters[POSITION], _ZERO
    for player in range(num_players):
      if repeats_draws:
        counters[POSITION] = start
      averaged = (player + averaged_after) % num_players
      num_reached = _ZERO
      node, depth, value, entering = _ZERO, _ZERO, 0.0, True
      # What a sample here weighs in estimates of regrets, and in averages.
      weight, average_weight = 1.0, schedule.weights[iteration]
      while True:
        if entering:
          visited += _ONE
          mover, begin = np.uint64(nodes[node, MOVER]), np.uint64(nodes[node, INDEX])
          actions = np.uint64(nodes[node, CHILDREN])
          if mover == _CHANCE:
            action = _pick(probabilities, begin, actions, _next_uniform(counters))
            if importance:
              average_weight /= probabilities[begin + action]
            node = np.uint64(nodes[node, FIRST_CHILD]) + action
            continue
          if mover == _TERMINAL:
            value, entering = returns[begin, player], False

        if entering:
          if mover == averaged and not full:
            for entry in range(begin, begin + actions):
              average[entry] += average_weight * strategy[entry]
          rule = own if mover == player else others
          if rule == _BY_STRATEGY and mover != player and not learns:
            # The value of what is drawn is the estimate: there is nothing to come back for.
            action = _pick(strategy, begin, actions, _next_uniform(counters))
            if importance and mover != averaged:
              average_weight /= strategy[begin + action]
            node = np.uint64(nodes[node, FIRST_CHILD]) + action
            continue
          action, end, each = _ZERO, actions, True
          if rule != _EVERY_ACTION:
            each = _explore(
              rule, strategy, average, begin, actions, rule_parameters, explored[depth]
            )
            if not each:
              action = _pick(explored[depth], _ZERO, actions, _next_uniform(counters))
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
            if chance >= 1.0 or _next_uniform(counters) < chance:
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
              touched[begin] = actions
              reached[num_reached] = begin
              num_reached += _ONE
            for other in range(actions):
              increment[begin + other] += weight * (values[frame, other] - value)
          depth, entering = frame, False
      _match_regrets(reached, num_reached, schedule, iteration, entries)
    if full:
      num_infosets = np.uint64(entries.first.shape[0])
      _average_all(num_players, num_infosets, schedule.weights[iteration], entries)
    counters[ITERATIONS] += _ONE
    counters[VISITED] += visited
