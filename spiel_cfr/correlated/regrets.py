"""Regrets of deviations: kernels that add the regrets of an iteration, and that choose the next strategy.

A memory is what a deviating player knows, at an infoset, of the mediator's recommendations at its earlier infosets. The
kinds of memories are listed in `deviations`. Each memory has regrets of its own. Deviations are of two kinds: an
external deviation plays action a whatever is recommended; an internal deviation plays a if b is recommended.

Let pi be the player's strategy at infoset I, u(a) the counterfactual value of action a, and v the mean of u under pi.
Let w be the probability of the memory: the probability that the player's strategy makes the recommendations in it. An
iteration adds to the regrets of the memory

    for an external deviation to a          w (u(a) - v)
    for an internal deviation from b to a   w pi(b) (u(a) - u(b))

The next strategy at I is a fixed point of the weighted sum of all deviations at I: if the player draws an action from
it and then applies a deviation, drawn by weight, it plays the same distribution. The weight of a deviation is its
positive regret, times w. Strategies are chosen from the root down, so this w is computed with the new strategies at the
infosets above I. Source: Morrill et al. (2021), algorithm 1.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Double, Doubles
from spiel_cfr._numba.steps import Chain, step
from spiel_cfr.correlated.deviations import Memories, make_memories
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.regret_minimizer import TIE

# Transition rates of a Markov chain are set to 0 if they are below this share of the largest rate.
_NEGLIGIBLE = 1e-16


class RegretUpdate(NamedTuple):
  """The arguments of `add_regrets`.

  Attributes:
    memories: `Memories`. The layout of the regrets.
    reach: float64 (nodes,). The probability of each node of `Memories`, from `update_strategy`.
    strategy: float64 (sequences,). The current strategy in behavioral form.
    utility: float64 (sequences,). The counterfactual value of each sequence.
    regrets: float64 (regrets,). The cumulative regrets, which the kernel increases.
    weight: float. The weight of the iteration.
  """

  memories: Memories
  reach: Doubles
  strategy: Doubles
  utility: Doubles
  regrets: Doubles
  weight: Double


@step(RegretUpdate, single=False)
def add_regrets(record: RegretUpdate) -> None:
  """Adds the weighted regrets of an iteration."""
  memories, reach, regrets = record.memories, record.reach, record.regrets
  strategy, utility, weight = record.strategy, record.utility, record.weight
  for infoset in range(memories.sequence.shape[0]):
    row, stride = memories.sequence[infoset], memories.stride[infoset]
    actions = memories.num_actions[infoset]
    value = 0.0
    for a in range(actions):
      value += strategy[row + a * stride] * utility[row + a * stride]
    for memory in range(memories.begin[infoset], memories.begin[infoset + 1]):
      scale, offset = weight * reach[memories.node[memory]], memories.offset[memory]
      if memories.internal[memory]:
        for b in range(actions):
          scale_of_b = scale * strategy[row + b * stride]
          for a in range(actions):
            gain = utility[row + a * stride] - utility[row + b * stride]
            regrets[offset + a] += scale_of_b * gain
          offset += actions
      else:
        for a in range(actions):
          regrets[offset + a] += scale * (utility[row + a * stride] - value)


@inlined
def _sum_deviations(
  memories: Memories,
  infoset: int,
  actions: int,
  reach: Float64s,
  regrets: Float64s,
  tie: float,
  external: Float64s,
  internal: Float64s,
) -> tuple[float, float]:
  """Sums the weights of the deviations at an infoset over its memories.

  Writes the weights of external deviations to a to `external`, shape (actions,), and the weights of internal deviations
  from b, the row, to a, the column, to `internal`, shape (actions, actions).

  Returns:
    The sum of all external and of all internal weights.
  """
  external_total, internal_total = 0.0, 0.0
  for a in range(actions):
    external[a] = 0.0
    for b in range(actions):
      internal[b, a] = 0.0
  for memory in range(memories.begin[infoset], memories.begin[infoset + 1]):
    probability, offset = reach[memories.node[memory]], memories.offset[memory]
    if memories.internal[memory]:
      for b in range(actions):
        for a in range(actions):
          if a != b and regrets[offset + a] > tie:
            internal[b, a] += probability * regrets[offset + a]
            internal_total += probability * regrets[offset + a]
        offset += actions
    else:
      for a in range(actions):
        if regrets[offset + a] > tie:
          external[a] += probability * regrets[offset + a]
          external_total += probability * regrets[offset + a]
  return external_total, internal_total


@inlined
def _find_reachable(rates: Float64s, reachable: Float64s, actions: int) -> None:
  """Writes 1 to `reachable[b, a]` if a Markov chain gets from b to a with positive probability, otherwise 0.

  Divides the transition rates `rates` by the largest, and sets negligible rates to 0, because products of them may
  underflow. The algorithm is Warshall's (1962).
  """
  largest = 0.0
  for b in range(actions):
    for a in range(actions):
      if a != b:
        largest = max(largest, rates[b, a])
  for b in range(actions):
    for a in range(actions):
      rates[b, a] = rates[b, a] / largest if rates[b, a] > _NEGLIGIBLE * largest else 0.0
      reachable[b, a] = 1.0 if a == b or rates[b, a] > 0.0 else 0.0
  for via in range(actions):
    for b in range(actions):
      if reachable[b, via] > 0.0:
        for a in range(actions):
          if reachable[via, a] > 0.0:
            reachable[b, a] = 1.0


@inlined
def _find_stationary(rates: Float64s, members: Int64s, size: int, result: Float64s) -> float:
  """Writes the stationary distribution of a closed class of a Markov chain to `result`; returns its sum of squares.

  The class consists of the first `size` actions in `members`. Elimination without subtractions avoids cancellation
  (Grassmann, Taksar and Heyman 1985). Overwrites `rates`.
  """
  for last in range(size - 1, 0, -1):
    end, leaving = members[last], 0.0
    for j in range(last):
      leaving += rates[end, members[j]]
    for i in range(last):
      rates[members[i], end] /= leaving
      for j in range(last):
        if i != j:
          rates[members[i], members[j]] += rates[members[i], end] * rates[end, members[j]]
  total = result[members[0]] = 1.0
  for last in range(1, size):
    inflow = 0.0
    for j in range(last):
      inflow += result[members[j]] * rates[members[j], members[last]]
    result[members[last]] = inflow
    total += inflow
  squares = 0.0
  for j in range(size):
    result[members[j]] /= total
    squares += result[members[j]] ** 2
  return squares


@inlined
def _fixed_point(
  rates: Float64s, reachable: Float64s, members: Int64s, actions: int, result: Float64s
) -> None:
  """Writes the stationary distribution of a Markov chain with transition rates `rates` to `result`.

  If there are several stationary distributions, it is the one of least Euclidean norm, as in OpenSpiel: each closed
  class is weighted by 1 divided by the sum of squares of its stationary distribution. `reachable` and `members` are
  workspace.
  """
  _find_reachable(rates, reachable, actions)
  for a in range(actions):
    # -1 marks actions whose probability is not computed yet.
    result[a] = -1.0
  total = 0.0
  for a in range(actions):
    if result[a] >= 0.0:
      continue
    size, closed = 0, True
    for b in range(actions):
      if reachable[a, b] > 0.0:
        members[size] = b
        size += 1
        closed = closed and reachable[b, a] > 0.0
    if not closed:
      result[a] = 0.0
      continue
    squares = _find_stationary(rates, members, size, result)
    for j in range(size):
      result[members[j]] /= squares
    total += 1.0 / squares
  for a in range(actions):
    result[a] /= total


@inlined
def _reach_below(memories: Memories, infoset: int, strategy: Float64s, reach: Float64s) -> None:
  """Writes the probabilities of the sequences and action lists that end at an infoset to `reach`."""
  row, stride = memories.sequence[infoset], memories.stride[infoset]
  sequence_above, num_sequences = memories.sequence_above[infoset], strategy.shape[0]
  for a in range(memories.num_actions[infoset]):
    sequence = row + a * stride
    reach[sequence] = reach[sequence_above] * strategy[sequence]
  for number in range(memories.action_list_begin[infoset], memories.action_list_begin[infoset + 1]):
    reach[num_sequences + number] = (
      reach[memories.action_list_parent[number]] * strategy[memories.action_list_last[number]]
    )


class NodeReach(NamedTuple):
  """The arguments of `compute_reach`.

  Attributes:
    memories: `Memories`. The layout of the regrets.
    strategy: float64 (sequences,). The strategy in behavioral form.
    reach: float64 (nodes,). The probability of each node of `Memories`, which the kernel overwrites.
  """

  memories: Memories
  strategy: Doubles
  reach: Doubles


@step(NodeReach, single=False)
def compute_reach(record: NodeReach) -> None:
  """Computes the probability of each node of `Memories` under a strategy."""
  for infoset in range(record.memories.sequence.shape[0]):
    _reach_below(record.memories, infoset, record.strategy, record.reach)


class StrategyUpdate(NamedTuple):
  """The arguments of `update_strategy`.

  Attributes:
    memories: `Memories`. The layout of the regrets.
    ties: float64 (infosets,). The largest regret that counts as 0 at each infoset.
    regrets: float64 (regrets,). The cumulative regrets.
    strategy: float64 (sequences,). The strategy in behavioral form, which the kernel overwrites.
    reach: float64 (nodes,). The probability of each node of `Memories`, which the kernel overwrites.
  """

  memories: Memories
  ties: Doubles
  regrets: Doubles
  strategy: Doubles
  reach: Doubles


@step(StrategyUpdate, single=False)
def update_strategy(record: StrategyUpdate) -> None:
  """Chooses strategies from the root down, and computes the probability of each node of `Memories` under them."""
  memories, ties, regrets = record.memories, record.ties, record.regrets
  strategy, reach, most_actions = record.strategy, record.reach, 1
  for infoset in range(memories.num_actions.shape[0]):
    most_actions = max(most_actions, memories.num_actions[infoset])
  internal = np.empty((most_actions, most_actions))
  reachable = np.empty((most_actions, most_actions))
  external, result = np.empty(most_actions), np.empty(most_actions)
  members = np.empty(most_actions, np.int64)
  for infoset in range(memories.sequence.shape[0]):
    row, stride = memories.sequence[infoset], memories.stride[infoset]
    actions = memories.num_actions[infoset]
    external_total, internal_total = _sum_deviations(
      memories, infoset, actions, reach, regrets, ties[infoset], external, internal
    )
    if internal_total > 0.0:
      # An external deviation to a is an internal one from every action b.
      for a in range(actions):
        for b in range(actions):
          internal[b, a] += external[a]
      _fixed_point(internal, reachable, members, actions, result)
    for a in range(actions):
      if internal_total <= 0.0:
        result[a] = external[a] / external_total if external_total > 0.0 else 1.0 / actions
      strategy[row + a * stride] = result[a]
    _reach_below(memories, infoset, strategy, reach)


class DeviationRegrets:
  """Layout of the regrets of a set of deviations in a game, and the passes over them. It is immutable.

  Its methods take strategies and counterfactual values of shape (sequences,), and regrets of shape (size,). The array
  `reach`, of shape (nodes,), contains the probability of each node of `Memories`: first the sequence form of the
  strategy, then the probability of each list of recommended actions.

  Attributes:
    game: `CompiledGame`. The game.
    deviations: str. The name of the set in `DEVIATIONS`.
    memories: `Memories`. The layout of the regrets.
    size: int. The number of regrets.
  """

  def __init__(self, game: CompiledGame, deviations: str) -> None:
    """Makes the layout, see `deviations.make_memories`.

    Raises:
      AbstractionError: infosets of the game are shared.
      GameTooLargeError: the set has more than 2^26 regrets.
    """
    if game.shared_infosets is not None:
      raise errors.AbstractionError(
        f"In {game} infosets are shared (imperfect recall), so players forget earlier recommendations. Use the full "
        "game."
      )
    self.game, self.deviations = game, deviations
    self.memories = make_memories(game, deviations)
    self.size = int(self.memories.offset[-1])
    # `game.scale` has the upper 16 bits of the largest payoff of each infoset, a float64.
    scale = game.scale[: game.num_infosets].astype(np.uint64) << np.uint64(48)
    self._ties = TIE * scale.view(np.float64)

  def reach(self, strategy: Float64s) -> Float64s:
    """Returns the probability of each node of `Memories` under a strategy, shape (nodes,)."""
    result = np.zeros(self.game.end + len(self.memories.action_list_last))
    result[[tree.root for tree in self.game.treeplexes]] = 1.0
    Chain([compute_reach.on(NodeReach(self.memories, strategy, result))]).run()
    return result

  def update_strategy(self, regrets: Float64s, strategy: Float64s, reach: Float64s) -> None:
    """Overwrites `strategy` with the next strategy, and `reach` with its probabilities of nodes."""
    arguments = StrategyUpdate(self.memories, self._ties, regrets, strategy, reach)
    Chain([update_strategy.on(arguments)]).run()

  def add(
    self,
    regrets: Float64s,
    strategy: Float64s,
    utility: Float64s,
    reach: Float64s,
    weight: float = 1.0,
  ) -> None:
    """Adds the weighted regrets of a strategy to `regrets`, given its `reach` and its `utility`."""
    arguments = RegretUpdate(self.memories, reach, strategy, utility, regrets, weight)
    Chain([add_regrets.on(arguments)]).run()
