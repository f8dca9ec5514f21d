"""Bounds of best responses in games whose histories are listed, computed in integers."""

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
  """Bounds of the values of a policy, one interval a player.

  Attributes:
    expected: the utility when all play the policy.
    best_responses: the utility of a best response to the other players.
    constant_sum: the sum of all utilities; None where it is not constant.
    is_rational: whether all payoffs and chance probabilities stand for rationals.
  """

  expected: list[Interval]
  best_responses: list[Interval]
  constant_sum: Interval | None
  is_rational: bool


def listed_bounds(compiled: CompiledGame, entries: Float64s, max_nodes: int) -> PolicyBounds:
  """Bounds the values of a policy.

  Args:
    compiled: the game.
    entries: float64 (actions,). The probability of every entry of `CompiledGame.actions`, normalized exactly here.
    max_nodes: how many histories the game may have.

  Raises:
    GameTooLargeError: the game has more histories.
    PolicyError: an infoset has no distribution.
    ImperfectRecallError: a player forgets its own actions.
  """
  walk = HistoryWalk(compiled, max_nodes)
  ends = walk.mover == TERMINAL
  returns = [[fixed_point.payoff(each) for each in row] for row in walk.returns.tolist()]
  chances = _chances(walk)
  numbers = zip(_policy(compiled, entries), Bounds.around(chances), strict=True)
  moves = Bounds(*(walk.along_edges(*each) for each in numbers))
  worth = [Bounds.around(own).take(walk.index[ends]) for own in zip(*returns, strict=True)]
  players = range(compiled.num_players)
  together = _reach(walk, moves, None).take(ends)
  expected = [_total(together.times(own)) for own in worth]
  best = [_best_response(compiled, walk, moves, worth[player], player) for player in players]
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
    raise errors.PolicyError("Probabilities of a policy are finite numbers, none of them negative.")
  result: list[Interval] = []
  begin, numbers = 0, entries.tolist()
  for count in np.concatenate(compiled.num_actions).tolist():
    here = numbers[begin : begin + count]
    if not any(here):
      raise errors.PolicyError(
        f"A policy has an infoset of {count} actions at which none is played."
      )
    result += fixed_point.distribution(here)
    begin += count
  return Bounds.around(result)


def _chances(walk: HistoryWalk) -> list[Interval]:
  """Returns the probability of every outcome of chance, in the order of `HistoryWalk.chances`."""
  known: dict[tuple[float, ...], list[Interval]] = {}
  result: list[Interval] = []
  nodes = np.flatnonzero(walk.mover == CHANCE)
  first = walk.index[nodes]
  for node in nodes[np.argsort(first)].tolist():
    begin = int(walk.index[node])
    numbers = tuple(walk.chances[begin : begin + int(walk.num_children[node])].tolist())
    if numbers not in known:
      known[numbers] = fixed_point.chances(numbers)
    result += known[numbers]
  return result


def _reach(walk: HistoryWalk, moves: Bounds, player: int | None) -> Bounds:
  """Returns the product of all moves on the way to each history, those of a player left out."""
  result = Bounds.ones(len(walk.mover))
  for level in walk.levels[1:]:
    above = result.take(walk.parent[level])
    made = above.times(moves.take(level))
    own = walk.mover[walk.parent[level]] == player
    made.put(own, above.take(own))
    result.put(level, made)
  return result


def _total(numbers: Bounds) -> Interval:
  total = Bounds.zeros(1)
  total.add_at(np.zeros(len(numbers.low), np.int64), numbers)
  return total.intervals()[0]


def _best_response(
  compiled: CompiledGame, walk: HistoryWalk, moves: Bounds, worth: Bounds, player: int
) -> Interval:
  """Bounds the value of a player's best response, given its payoff at each terminal history."""
  ends = walk.mover == TERMINAL
  sequence = _last_sequences(walk, player)
  # The last place is that of the empty sequence.
  values = Bounds.zeros(1 + len(compiled.all_action_sequences))
  values.add_at(sequence[ends], _reach(walk, moves, player).take(ends).times(worth))
  own = np.flatnonzero(walk.mover == player)
  above = np.full(len(values.low), -1)
  above[walk.entry[own]] = sequence[own]
  if (above[walk.entry[own]] != sequence[own]).any():
    raise errors.ImperfectRecallError(f"Player {player} forgets its own actions.")
  counts = np.concatenate(compiled.num_actions)
  starts = np.cumsum(counts) - counts
  rows = compiled.infoset_rows(player)
  for first, count in zip(starts[rows][::-1].tolist(), counts[rows][::-1].tolist(), strict=True):
    for bounds in values:
      bounds[above[first]] += bounds[first : first + count].max()
  return values.take([-1]).intervals()[0]


def _last_sequences(walk: HistoryWalk, player: int) -> Int64s:
  """Returns the entry of a player's last action before each history, -1 where it has not acted."""
  result = np.full(len(walk.mover), -1)
  for level in walk.levels[1:]:
    parent = walk.parent[level]
    own = walk.mover[parent] == player
    taken = walk.entry[parent] + level - walk.first_child[parent]
    result[level] = np.where(own, taken, result[parent])
  return result
