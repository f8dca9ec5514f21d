"""Bounds on best responses from a list of histories, computed in integers."""

from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.certificates import fixed_point
from spiel_cfr.certificates.fixed_point import Interval, IntervalArray
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import HistoryWalk
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL


class PolicyBounds(NamedTuple):
  """Bounds on the values of a policy.

  Attributes:
    expected: one `Interval` a player. Bounds on its expected payoff.
    best_responses: one `Interval` a player. Bounds on the value of its best response.
    constant_sum: `Interval`. Bounds on the sum of all payoffs; None if it is not constant.
    is_rational: bool. True if all payoffs and chance probabilities stand for rationals.
  """

  expected: list[Interval]
  best_responses: list[Interval]
  constant_sum: Interval | None
  is_rational: bool


def listed_bounds(compiled: CompiledGame, entries: Float64s, max_nodes: int) -> PolicyBounds:
  """Returns bounds on the values of a policy.

  Args:
    compiled: the game.
    entries: float64 (actions,). The probability of each action of `CompiledGame.actions`. The probabilities of an
      infoset are divided by their exact sum.
    max_nodes: the largest number of histories of the game.

  Raises:
    GameTooLargeError: the game has more than `max_nodes` histories.
    PolicyError: a probability is negative or not finite, or all probabilities of an infoset are 0.
    ImperfectRecallError: a player forgets its own actions.
  """
  walk = HistoryWalk(compiled, max_nodes)
  ends = walk.mover == TERMINAL
  returns = [[fixed_point.payoff(payoff) for payoff in row] for row in walk.returns.tolist()]
  chances = _chances(walk)
  policy_and_chance = zip(_policy(compiled, entries), IntervalArray.around(chances), strict=True)
  # The probability of the last move of each history.
  moves = IntervalArray(*(walk.along_edges(*probabilities) for probabilities in policy_and_chance))
  payoffs = [
    IntervalArray.around(of_player).take(walk.index[ends])
    for of_player in zip(*returns, strict=True)
  ]
  players = range(compiled.num_players)
  reach = _reach(walk, moves, None).take(ends)
  expected = [_total(reach.times(of_player)) for of_player in payoffs]
  best = [_best_response(compiled, walk, moves, payoffs[player], player) for player in players]
  sums = [Interval.total(row) for row in returns]
  lows, highs = [total.low for total in sums], [total.high for total in sums]
  # The sum may be constant if all intervals have a common point.
  is_constant = max(lows) <= min(highs)
  intervals = [*chances, *(payoff for row in returns for payoff in row)]
  return PolicyBounds(
    expected=expected,
    best_responses=best,
    constant_sum=Interval(min(lows), max(highs)) if is_constant else None,
    is_rational=all(low == high for low, high in intervals),
  )


def _policy(compiled: CompiledGame, entries: Float64s) -> IntervalArray:
  """Returns the probability of each action of `CompiledGame.actions`.

  Raises:
    PolicyError: see `listed_bounds`.
  """
  if not np.isfinite(entries).all() or (entries < 0).any():
    raise errors.PolicyError(
      "The policy has probabilities that are negative or not finite. Give finite numbers of at least 0."
    )
  result: list[Interval] = []
  begin, probabilities = 0, entries.tolist()
  for count in np.concatenate(compiled.num_actions).tolist():
    distribution = probabilities[begin : begin + count]
    if not any(distribution):
      raise errors.PolicyError(
        f"The policy has an infoset of {count} actions with all probabilities 0. Give one a positive probability."
      )
    result += fixed_point.distribution(distribution)
    begin += count
  return IntervalArray.around(result)


def _chances(walk: HistoryWalk) -> list[Interval]:
  """Returns the probability of every outcome of chance, in the order of `HistoryWalk.chances`."""
  cached: dict[tuple[float, ...], list[Interval]] = {}
  result: list[Interval] = []
  nodes = np.flatnonzero(walk.mover == CHANCE)
  first = walk.index[nodes]
  for node in nodes[np.argsort(first)].tolist():
    begin = int(walk.index[node])
    numbers = tuple(walk.chances[begin : begin + int(walk.num_children[node])].tolist())
    if numbers not in cached:
      cached[numbers] = fixed_point.chances(numbers)
    result += cached[numbers]
  return result


def _reach(walk: HistoryWalk, moves: IntervalArray, player: int | None) -> IntervalArray:
  """Returns the reach probability of each history, without the moves of `player`."""
  result = IntervalArray.ones(len(walk.mover))
  for level in walk.levels[1:]:
    above = result.take(walk.parent[level])
    reach = above.times(moves.take(level))
    is_own_move = walk.mover[walk.parent[level]] == player
    reach.put(is_own_move, above.take(is_own_move))
    result.put(level, reach)
  return result


def _total(numbers: IntervalArray) -> Interval:
  """Returns bounds on the sum of numbers."""
  total = IntervalArray.zeros(1)
  total.add_at(np.zeros(len(numbers.low), np.int64), numbers)
  return total.intervals()[0]


def _best_response(
  compiled: CompiledGame,
  walk: HistoryWalk,
  moves: IntervalArray,
  payoffs: IntervalArray,
  player: int,
) -> Interval:
  """Returns bounds on the value of a player's best response, given its payoff at each terminal history."""
  ends = walk.mover == TERMINAL
  sequence = _last_sequences(walk, player)
  # The last element is the empty sequence.
  values = IntervalArray.zeros(1 + len(compiled.all_action_sequences))
  values.add_at(sequence[ends], _reach(walk, moves, player).take(ends).times(payoffs))
  nodes = np.flatnonzero(walk.mover == player)
  above = np.full(len(values.low), -1)
  above[walk.entry[nodes]] = sequence[nodes]
  if (above[walk.entry[nodes]] != sequence[nodes]).any():
    raise errors.ImperfectRecallError(
      f"Player {player} forgets its own actions, and certificates need perfect recall."
    )
  counts = np.concatenate(compiled.num_actions)
  starts = np.cumsum(counts) - counts
  rows = compiled.infoset_rows(player)
  for first, count in zip(starts[rows][::-1].tolist(), counts[rows][::-1].tolist(), strict=True):
    for bounds in values:
      bounds[above[first]] += bounds[first : first + count].max()
  return values.take([-1]).intervals()[0]


def _last_sequences(walk: HistoryWalk, player: int) -> Int64s:
  """Returns the place in `CompiledGame.actions` of a player's last action before each history; -1 if there is none."""
  result = np.full(len(walk.mover), -1)
  for level in walk.levels[1:]:
    parent = walk.parent[level]
    is_own_move = walk.mover[parent] == player
    action = walk.entry[parent] + level - walk.first_child[parent]
    result[level] = np.where(is_own_move, action, result[parent])
  return result
