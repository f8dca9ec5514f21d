"""Bounds on best responses from a list of histories, computed in integers."""

from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.certificates import fixed_point
from spiel_cfr.certificates.fixed_point import Bounds, Interval
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import HistoryWalk
from spiel_cfr.games.openspiel.history_list import CHANCE, TERMINAL


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
    entries: float64 (actions,). The probability of every entry of `CompiledGame.actions`. It is normalized exactly.
    max_nodes: the most histories of the game.

  Raises:
    GameTooLargeError: the game has more than `max_nodes` histories.
    PolicyError: an infoset has no distribution.
    ImperfectRecallError: a player forgets its own actions.
  """
  walk = HistoryWalk(compiled, max_nodes)
  ends = walk.mover == TERMINAL
  returns = [[fixed_point.payoff(each) for each in row] for row in walk.returns.tolist()]
  chances = _chances(walk)
  numbers = zip(_policy(compiled, entries), Bounds.around(chances), strict=True)
  moves = Bounds(*(walk.along_edges(*each) for each in numbers))
  payoffs = [
    Bounds.around(of_player).take(walk.index[ends]) for of_player in zip(*returns, strict=True)
  ]
  players = range(compiled.num_players)
  reach = _reach(walk, moves, None).take(ends)
  expected = [_total(reach.times(of_player)) for of_player in payoffs]
  best = [_best_response(compiled, walk, moves, payoffs[player], player) for player in players]
  sums = [Interval.total(row) for row in returns]
  constant = Interval(min(each.low for each in sums), max(each.high for each in sums))
  is_constant = max(each.low for each in sums) <= min(each.high for each in sums)
  return PolicyBounds(
    expected,
    best,
    constant if is_constant else None,
    all(low == high for low, high in [*chances, *(each for row in returns for each in row)]),
  )


def _policy(compiled: CompiledGame, entries: Float64s) -> Bounds:
  """Returns the probability of every entry."""
  if not np.isfinite(entries).all() or (entries < 0).any():
    raise errors.PolicyError(
      "The policy has probabilities that are negative or not finite. Give finite numbers of at least 0."
    )
  result: list[Interval] = []
  begin, numbers = 0, entries.tolist()
  for count in np.concatenate(compiled.num_actions).tolist():
    distribution = numbers[begin : begin + count]
    if not any(distribution):
      raise errors.PolicyError(
        f"The policy has an infoset of {count} actions with all probabilities 0. Give one a positive probability."
      )
    result += fixed_point.distribution(distribution)
    begin += count
  return Bounds.around(result)


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


def _reach(walk: HistoryWalk, moves: Bounds, player: int | None) -> Bounds:
  """Returns the reach probability of each history, without the moves of `player`."""
  result = Bounds.ones(len(walk.mover))
  for level in walk.levels[1:]:
    above = result.take(walk.parent[level])
    reach = above.times(moves.take(level))
    is_left_out = walk.mover[walk.parent[level]] == player
    reach.put(is_left_out, above.take(is_left_out))
    result.put(level, reach)
  return result


def _total(numbers: Bounds) -> Interval:
  total = Bounds.zeros(1)
  total.add_at(np.zeros(len(numbers.low), np.int64), numbers)
  return total.intervals()[0]


def _best_response(
  compiled: CompiledGame, walk: HistoryWalk, moves: Bounds, payoffs: Bounds, player: int
) -> Interval:
  """Returns bounds on the value of a player's best response, given its payoff at each terminal history."""
  ends = walk.mover == TERMINAL
  sequence = _last_sequences(walk, player)
  # The last element is the empty sequence.
  values = Bounds.zeros(1 + len(compiled.all_action_sequences))
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
  """Returns the entry of a player's last action before each history; -1 before its first action."""
  result = np.full(len(walk.mover), -1)
  for level in walk.levels[1:]:
    parent = walk.parent[level]
    acts = walk.mover[parent] == player
    taken = walk.entry[parent] + level - walk.first_child[parent]
    result[level] = np.where(acts, taken, result[parent])
  return result
