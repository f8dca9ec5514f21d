"""Regrets of deviations: the increments of an iteration, and the next strategy.

Let pi be a player's strategy at infoset I, u(a) the counterfactual values there, v their mean under pi, and w the
probability of a memory. An iteration adds to the regrets of the memory

    external, to play a              w (u(a) - v)
    internal, to play a instead of b w pi(b) (u(a) - u(b))

The next strategy is a fixed point of all deviations at I. Each is weighted by its positive regret times the probability
of its memory under the next strategies above I: Morrill et al. (2021), algorithm 1.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, CountTable, Double, Doubles
from spiel_cfr._numba.steps import Chain, step
from spiel_cfr.correlated.deviations import Memories, make_memories
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.treeplex import (
  ACTIONS,
  COUNT,
  FIRST_INFOSET,
  FIRST_SEQUENCE,
  STRIDE,
)
from spiel_cfr.regret_minimizers.regret_minimizer import TIE

# Rates of transition are 0 below this share of the largest.
_NEGLIGIBLE = 1e-16


@inlined
def infosets_of(groups: Uint64s, group: int) -> tuple[Any, ...]:
  """Returns a group's first sequence, stride, infosets, actions and first infoset, as signed integers."""
  line = groups[group]
  return (
    np.int64(line[FIRST_SEQUENCE]),
    np.int64(line[STRIDE]),
    np.int64(line[COUNT]),
    np.int64(line[ACTIONS]),
    np.int64(line[FIRST_INFOSET]),
  )


class RegretUpdate(NamedTuple):
  """The arguments of `add_regrets`.

  Attributes:
    groups: uint64 (groups, 6). See `treeplex.Treeplex`.
    memories: `Memories`. The layout of the regrets.
    reach: float64 (nodes,). The probability of each node.
    strategy: float64 (sequences,). The current strategy in behavioral form.
    utility: float64 (sequences,). The counterfactual values.
    regrets: float64 (regrets,). The cumulative regrets.
    weight: float. The weight of the iteration.
  """

  groups: CountTable
  memories: Memories
  reach: Doubles
  strategy: Doubles
  utility: Doubles
  regrets: Doubles
  weight: Double


@step(RegretUpdate, single=False)
def add_regrets(record: RegretUpdate) -> None:
  """Adds the weighted regrets of an iteration."""
  groups, memories, reach, regrets = record.groups, record.memories, record.reach, record.regrets
  strategy, utility, weight = record.strategy, record.utility, record.weight
  for group in range(groups.shape[0]):
    first, stride, count, actions, infoset = infosets_of(groups, group)
    for i in range(count):
      row = first + i
      value = 0.0
      for a in range(actions):
        value += strategy[row + a * stride] * utility[row + a * stride]
      for memory in range(memories.begin[infoset + i], memories.begin[infoset + i + 1]):
        share, place = weight * reach[memories.node[memory]], memories.offset[memory]
        if memories.internal[memory]:
          for b in range(actions):
            chance = share * strategy[row + b * stride]
            for a in range(actions):
              regrets[place + a] += chance * (utility[row + a * stride] - utility[row + b * stride])
            place += actions
        else:
          for a in range(actions):
            regrets[place + a] += share * (utility[row + a * stride] - value)


@inlined
def _sum_weights(
  memories: Memories,
  infoset: int,
  actions: int,
  reach: Float64s,
  regrets: Float64s,
  tie: float,
  rates: Float64s,
  shares: Float64s,
) -> tuple[float, float]:
  """Sums the weights of the deviations at an infoset; returns the sums over external and over internal ones.

  Overwrites `shares`, (actions,), with the weights of external deviations to a, and `rates`, (actions, actions), with
  those of internal deviations from b, the row, to a, the column.
  """
  external, internal = 0.0, 0.0
  for a in range(actions):
    shares[a] = 0.0
    for b in range(actions):
      rates[b, a] = 0.0
  for memory in range(memories.begin[infoset], memories.begin[infoset + 1]):
    chance, place = reach[memories.node[memory]], memories.offset[memory]
    if memories.internal[memory]:
      for b in range(actions):
        for a in range(actions):
          if a != b and regrets[place + a] > tie:
            rates[b, a] += chance * regrets[place + a]
            internal += chance * regrets[place + a]
        place += actions
    else:
      for a in range(actions):
        if regrets[place + a] > tie:
          shares[a] += chance * regrets[place + a]
          external += chance * regrets[place + a]
  return external, internal


@inlined
def _find_reachable(rates: Float64s, leads: Float64s, actions: int) -> None:
  """Writes 1 to `leads[b, a]` if a Markov chain of these rates can get from b to a, otherwise 0 (Warshall 1962).

  Divides `rates` by the largest, and sets negligible ones to 0, because their products may underflow.
  """
  most = 0.0
  for b in range(actions):
    for a in range(actions):
      if a != b:
        most = max(most, rates[b, a])
  for b in range(actions):
    for a in range(actions):
      rates[b, a] = rates[b, a] / most if rates[b, a] > _NEGLIGIBLE * most else 0.0
      leads[b, a] = 1.0 if a == b or rates[b, a] > 0.0 else 0.0
  for via in range(actions):
    for b in range(actions):
      if leads[b, via] > 0.0:
        for a in range(actions):
          if leads[via, a] > 0.0:
            leads[b, a] = 1.0


@inlined
def _find_stationary(rates: Float64s, members: Int64s, size: int, result: Float64s) -> float:
  """Writes the stationary distribution of a closed class of actions to `result`; returns the sum of its squares.

  Elimination without subtractions avoids cancellation (Grassmann, Taksar and Heyman 1985). Overwrites `rates`.
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
    chance = 0.0
    for j in range(last):
      chance += result[members[j]] * rates[members[j], members[last]]
    result[members[last]] = chance
    total += chance
  squares = 0.0
  for j in range(size):
    result[members[j]] /= total
    squares += result[members[j]] ** 2
  return squares


@inlined
def _fixed_point(
  rates: Float64s, leads: Float64s, members: Int64s, actions: int, result: Float64s
) -> None:
  """Writes the stationary distribution of a Markov chain of these rates to `result`.

  If there are several, it is the one of least Euclidean norm, as in OpenSpiel: each closed class is weighted by one
  over the sum of squares of its stationary distribution.
  """
  _find_reachable(rates, leads, actions)
  for a in range(actions):
    # Marks actions that are not computed yet.
    result[a] = -1.0
  total = 0.0
  for a in range(actions):
    if result[a] >= 0.0:
      continue
    size, closed = 0, True
    for b in range(actions):
      if leads[a, b] > 0.0:
        members[size] = b
        size += 1
        closed = closed and leads[b, a] > 0.0
    if not closed:
      result[a] = 0.0
      continue
    squares = _find_stationary(rates, members, size, result)
    for j in range(size):
      result[members[j]] /= squares
    total += 1.0 / squares
  for a in range(actions):
    result[a] /= total


class StrategyChoice(NamedTuple):
  """The arguments of `choose`.

  Attributes:
    groups: uint64 (groups, 6). See `treeplex.Treeplex`.
    memories: `Memories`. The layout of the regrets.
    ties: float64 (infosets,). Regrets up to this value count as 0.
    regrets: float64 (regrets,). The cumulative regrets.
    strategy: float64 (sequences,). The strategy in behavioral form, overwritten if `learns`.
    reach: float64 (nodes,). The probability of each node, overwritten.
    learns: bool. True to choose a new strategy, False to compute `reach` only.
  """

  groups: CountTable
  memories: Memories
  ties: Doubles
  regrets: Doubles
  strategy: Doubles
  reach: Doubles
  learns: Count


@step(StrategyChoice, single=False)
def choose(record: StrategyChoice) -> None:
  """Chooses strategies from the root down, and computes the probability of each node."""
  groups, memories, ties, regrets = record.groups, record.memories, record.ties, record.regrets
  strategy, reach, learns = record.strategy, record.reach, record.learns
  lists, most = strategy.shape[0], 1
  for group in range(groups.shape[0]):
    most = max(most, infosets_of(groups, group)[3])
  rates, leads = np.empty((most, most)), np.empty((most, most))
  shares, result, members = np.empty(most), np.empty(most), np.empty(most, np.int64)
  for group in range(groups.shape[0]):
    first, stride, count, actions, infoset = infosets_of(groups, group)
    for i in range(count):
      row, number = first + i, infoset + i
      if learns:
        external, internal = _sum_weights(
          memories, number, actions, reach, regrets, ties[number], rates, shares
        )
        if internal > 0.0:
          for a in range(actions):
            for b in range(actions):
              rates[b, a] += shares[a]
          _fixed_point(rates, leads, members, actions, result)
        for a in range(actions):
          if internal <= 0.0:
            result[a] = shares[a] / external if external > 0.0 else 1.0 / actions
          strategy[row + a * stride] = result[a]
      above = memories.sequence_above[number]
      for a in range(actions):
        place = row + a * stride
        reach[place] = reach[above] * strategy[place]
      for last in range(memories.list_begin[number], memories.list_begin[number + 1]):
        reach[lists + last] = (
          reach[memories.list_parent[last]] * strategy[memories.list_played[last]]
        )


class DeviationRegrets:
  """Layout of the regrets of a set of deviations in a game, and the passes over them. It is immutable.

  Strategies and counterfactual values have shape (sequences,), regrets (size,). The probability of each node, `reach`,
  has shape (nodes,); its first part is the sequence form.

  Attributes:
    game: `CompiledGame`. The game.
    deviations: str. The name of the set in `DEVIATIONS`.
    memories: `Memories`. The layout of the regrets.
    size: int. The number of regrets.
  """

  def __init__(self, game: CompiledGame, deviations: str) -> None:
    """Lays out the regrets of a set, see `deviations.make_memories`.

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
    scale = game.scale[: game.num_infosets].astype(np.uint64) << np.uint64(48)
    self._ties = TIE * scale.view(np.float64)

  def new_reach(self) -> Float64s:
    """Returns zeros for the probability of each node, shape (nodes,)."""
    return np.zeros(self.game.end + len(self.memories.list_played))

  def choose(
    self, regrets: Float64s, strategy: Float64s, reach: Float64s, learns: bool = True
  ) -> None:
    """Overwrites the strategy with the next one if `learns`, and `reach` with the probability of each node."""
    reach[[tree.root for tree in self.game.treeplexes]] = 1.0
    record = StrategyChoice(
      self.game.groups, self.memories, self._ties, regrets, strategy, reach, learns
    )
    Chain([choose.on(record)]).run()

  def add(
    self,
    regrets: Float64s,
    strategy: Float64s,
    utility: Float64s,
    reach: Float64s,
    weight: float = 1.0,
  ) -> None:
    """Adds the weighted regrets of a strategy, given its `reach` from `choose` and its counterfactual values."""
    record = RegretUpdate(
      self.game.groups, self.memories, reach, strategy, utility, regrets, weight
    )
    Chain([add_regrets.on(record)]).run()
