"""Polytope of the correlated equilibria of a game in which each player decides once, in exact numbers.

A correlated equilibrium is a distribution over joint actions such that no player gains by replacing one recommended
action by another. These conditions are linear, so correlated equilibria are a polytope (Nau, Canovas and Hansen, "On
the geometry of Nash equilibria and correlated equilibria", 2004). Without the condition that probabilities sum to 1, it
is a cone. The double description method finds the extreme rays of the cone: it begins with those of the orthant x >= 0,
and cuts them by one condition after the other.
"""

import itertools
import math
import operator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame

Row = tuple[int, ...]
# The largest denominator of a payoff, and the largest number of joint actions.
_DENOMINATOR, _MOST_OUTCOMES = 10**6, 16


class Polytope(NamedTuple):
  """Polytope of correlated equilibria.

  Attributes:
    dimension: int. The dimension.
    num_vertices: int. The number of vertices.
    num_facets: int. The number of facets; 0 if the polytope is a point.
    best_welfare: Fraction. The largest sum of expected payoffs.
  """

  dimension: int
  num_vertices: int
  num_facets: int
  best_welfare: Fraction


def correlated_polytope(compiled: CompiledGame) -> Polytope | None:
  """Returns the polytope; None if a player has several infosets, or if there are more than 16 joint actions.

  Payoffs are the rationals with denominators up to 10^6 next to the floats.
  """
  if any(tree.num_infosets != 1 for tree in compiled.treeplexes):
    return None
  num_actions = [int(of_player[0]) for of_player in compiled.num_actions]
  if math.prod(num_actions) > _MOST_OUTCOMES:
    return None
  outcomes = [*itertools.product(*map(range, num_actions))]
  payoffs = {outcome: _payoffs(compiled, num_actions, outcome) for outcome in outcomes}
  rays = extreme_rays(len(outcomes), _incentives(outcomes, payoffs, num_actions))
  welfare = [sum(payoffs[outcome], Fraction(0)) for outcome in outcomes]
  sums = [Fraction(sum(map(operator.mul, ray, welfare))) / sum(ray) for ray, _ in rays]
  dimension = _rank([ray for ray, _ in rays]) - 1
  facets = set()
  for condition in range(max(zeros.bit_length() for _, zeros in rays)):
    tight = [ray for ray, zeros in rays if zeros >> condition & 1]
    if tight and _rank(tight) == dimension:
      facets.add(tuple(sorted(tight)))
  return Polytope(dimension, len(rays), len(facets), max(sums))


def _payoffs(
  compiled: CompiledGame, num_actions: list[int], outcome: tuple[int, ...]
) -> list[Fraction]:
  """Returns each player's expected payoff of a joint action."""
  played, first = np.zeros(compiled.end), 0
  for tree, count, action in zip(compiled.treeplexes, num_actions, outcome, strict=True):
    played[[tree.root, compiled.all_action_sequences[first + action]]] = 1.0
    first += count
  values = evaluate.evaluate(compiled, played).expected_values
  return [Fraction(value).limit_denominator(_DENOMINATOR) for value in values.tolist()]


def _incentives(
  outcomes: list[tuple[int, ...]],
  payoffs: dict[tuple[int, ...], list[Fraction]],
  num_actions: list[int],
) -> list[Row]:
  """Returns the conditions: row x >= 0 for each player, recommended action and other action."""
  rows = []
  for player, count in enumerate(num_actions):
    for recommended, other in itertools.permutations(range(count), 2):
      row = [Fraction(0)] * len(outcomes)
      for place, outcome in enumerate(outcomes):
        if outcome[player] == recommended:
          deviation = (*outcome[:player], other, *outcome[player + 1 :])
          row[place] = payoffs[outcome][player] - payoffs[deviation][player]
      rows.append(_whole(row))
  return rows


def extreme_rays(size: int, conditions: list[Row]) -> list[tuple[Row, int]]:
  """Returns the extreme rays of {x >= 0: row x >= 0 for each row of `conditions`}.

  Each ray has the set of its tight conditions, those that it meets with equality, as bits: first x_i >= 0 for each i,
  then the rows. Two rays span a face of the cone if no other ray meets all conditions that are tight for both. Then
  the point of the face at which a new condition is tight is a new ray.
  """
  orthant = (1 << size) - 1
  rays = [
    (tuple(int(place == unit) for place in range(size)), orthant & ~(1 << unit))
    for unit in range(size)
  ]
  for number, row in enumerate(conditions, size):
    bit = 1 << number
    values = [_dot(ray, row) for ray, _ in rays]
    kept = [
      (ray, zeros | (0 if value else bit))
      for (ray, zeros), value in zip(rays, values, strict=True)
      if value >= 0
    ]
    inside = [place for place, value in enumerate(values) if value > 0]
    outside = [place for place, value in enumerate(values) if value < 0]
    for first, second in itertools.product(inside, outside):
      common = rays[first][1] & rays[second][1]
      if any(
        common & ~zeros == 0
        for place, (_, zeros) in enumerate(rays)
        if place not in (first, second)
      ):
        continue
      pairs = zip(rays[first][0], rays[second][0], strict=True)
      cut = _reduced([values[first] * out - values[second] * into for into, out in pairs])
      kept.append((cut, common | bit))
    rays = kept
  return rays


def _dot(left: Row, right: Row) -> int:
  return sum(map(operator.mul, left, right))


def _whole(row: list[Fraction]) -> Row:
  """Returns the smallest whole multiple of a row."""
  scale = math.lcm(*(number.denominator for number in row))
  return _reduced([int(number * scale) for number in row])


def _reduced(row: list[int]) -> Row:
  """Returns a row without a common divisor."""
  divisor = math.gcd(*row) or 1
  return tuple(number // divisor for number in row)


def _rank(rows: list[Row]) -> int:
  """Returns the rank of a matrix, by exact elimination."""
  matrix, rank = [[Fraction(number) for number in row] for row in rows], 0
  for column in range(len(rows[0])):
    pivot = next((row for row in matrix[rank:] if row[column]), None)
    if pivot is None:
      continue
    matrix.remove(pivot)
    matrix.insert(rank, pivot)
    for place in range(rank + 1, len(matrix)):
      factor = matrix[place][column] / pivot[column]
      matrix[place] = [a - factor * b for a, b in zip(matrix[place], pivot, strict=True)]
    rank += 1
  return rank
