"""Liar's dice of Thomas Ahle's tables, github.com/thomasahle/snyd, where it is too large for a list of histories.

Bids only go up, so what was bid is a set of bids. A solver of its own goes through these sets as numbers whose bits are
bids: predictive CFR+ with quadratic averages, whose best responses bound the value. It shares nothing with the library.
"""

import itertools
from collections import Counter
from fractions import Fraction

import numba
import numpy as np
import pytest


def dice(numbers, sides, rule):
  """Returns bids; each player's probabilities of rolls; and whether each bid is met by each pair of rolls."""
  faces = range(1 if rule == "normal" else 2, sides + 1)
  bids = [*itertools.product(range(1, sum(numbers) * (2 if rule == "stairs" else 1) + 1), faces)]
  # The program behind the tables knows stairs only in order.
  rolls = [
    Counter(
      roll if rule == "stairs" else tuple(sorted(roll))
      for roll in itertools.product(range(1, sides + 1), repeat=number)
    )
    for number in numbers
  ]

  def shown(roll, face):
    if rule == "stairs" and roll == (*range(1, len(roll) + 1),):
      return len(roll) + 1
    return roll.count(face) + (roll.count(1) if rule == "joker" else 0)

  met = [[[shown(a, f) + shown(b, f) >= n for b in rolls[1]] for a in rolls[0]] for n, f in bids]
  return [np.array([*own.values()]) / own.total() for own in rolls], np.array(met)


@numba.njit
def last(bids):
  """Returns the number of the last bid of a set, and who is to move."""
  top, count = -1, 0
  while bids >> (top + 1):
    top += 1
    count += bids >> top & 1
  return top, count & 1


@numba.njit
def forward(player, num_bids, hopes, call_hopes, played, call_played):
  """Computes a player's sequence form: its probability of the bids in each set, and of calling after them."""
  played[0] = 1.0
  call_played[:] = 0.0
  for bids in range(1 << num_bids):
    top, mover = last(bids)
    for roll in range(played.shape[1]):
      if mover != player:
        for bid in range(top + 1, num_bids):
          played[bids | 1 << bid, roll] = played[bids, roll]
        continue
      total = max(call_hopes[bids, roll], 0.0) if bids else 0.0
      for bid in range(top + 1, num_bids):
        total += max(hopes[bids | 1 << bid, roll], 0.0)
      choices = num_bids - 1 - top + (bids > 0)
      for bid in range(top + 1, num_bids):
        chance = max(hopes[bids | 1 << bid, roll], 0.0) / total if total else 1.0 / choices
        played[bids | 1 << bid, roll] = played[bids, roll] * chance
      if bids:
        chance = max(call_hopes[bids, roll], 0.0) / total if total else 1.0 / choices
        call_played[bids, roll] = played[bids, roll] * chance


@numba.njit
def backward(
  player, num_bids, weights, met, other, call_other, hopes, call_hopes, sums, call_sums, values
):
  """Returns a player's value, and updates its regrets; with empty regrets, that of a best response.

  `sums` are the regrets, `hopes` the regrets and the last gains. `met` is 1 or -1, for the player and the bidder 0.
  """
  learns = len(sums) > 0
  rolls = values.shape[1]
  for bids in range((1 << num_bids) - 1, -1, -1):
    top, mover = last(bids)
    called = np.zeros(rolls)
    if bids:
      # A bidder wins if its bid is met; the caller is the mover.
      sign = 1.0 if mover != player else -1.0
      calls = call_other if mover != player else other
      for roll in range(rolls):
        for theirs in range(len(weights)):
          called[roll] += sign * weights[theirs] * calls[bids, theirs] * met[top, roll, theirs]
    for roll in range(rolls):
      if mover != player:
        value = called[roll]
        for bid in range(top + 1, num_bids):
          value += values[bids | 1 << bid, roll]
      elif not learns:
        value = called[roll] if bids else -np.inf
        for bid in range(top + 1, num_bids):
          value = max(value, values[bids | 1 << bid, roll])
      else:
        total, value = 0.0, 0.0
        if bids:
          total = max(call_hopes[bids, roll], 0.0)
          value = total * called[roll]
        for bid in range(top + 1, num_bids):
          hope = max(hopes[bids | 1 << bid, roll], 0.0)
          total += hope
          value += hope * values[bids | 1 << bid, roll]
        if total:
          value /= total
        else:
          value = called[roll]
          for bid in range(top + 1, num_bids):
            value += values[bids | 1 << bid, roll]
          value /= num_bids - 1 - top + (bids > 0)
        for bid in range(top + 1, num_bids):
          child = bids | 1 << bid
          gain = values[child, roll] - value
          sums[child, roll] = max(sums[child, roll] + gain, 0.0)
          hopes[child, roll] = sums[child, roll] + gain
        if bids:
          gain = called[roll] - value
          call_sums[bids, roll] = max(call_sums[bids, roll] + gain, 0.0)
          call_hopes[bids, roll] = call_sums[bids, roll] + gain
      values[bids, roll] = value
  return values[0]


def value_bounds(numbers, sides, rule, iterations):
  """Returns bounds on the value of the player who bids first."""
  chances, met = dice(numbers, sides, rule)
  num_bids, size = len(met), 1 << len(met)
  wins = [np.where(met, 1.0, -1.0), np.where(met, 1.0, -1.0).transpose(0, 2, 1).copy()]
  state = [np.zeros((8, size, len(own))) for own in chances]
  nothing = np.zeros((0, 0))

  def respond(player, of_other, *regrets):
    own = state[player]
    found = backward(
      player,
      num_bids,
      chances[1 - player],
      wins[player],
      *of_other,
      own[0],
      own[1],
      *regrets,
      own[6],
    )
    return float(chances[player] @ found)

  for player in (0, 1):
    forward(player, num_bids, *state[player][:2], *state[player][4:6])
  averages = [np.zeros((2, size, len(own))) for own in chances]
  for iteration in range(1, iterations + 1):
    for player in (0, 1):
      own = state[player]
      respond(player, state[1 - player][4:6], own[2], own[3])
      forward(player, num_bids, *own[:2], *own[4:6])
      averages[player] += (own[4:6] - averages[player]) * min(1.0, 3 / (iteration + 2))
  best = [respond(player, averages[1 - player], nothing, nothing) for player in (0, 1)]
  return -best[1], best[0]


# Dice, sides, rule, the published value, iterations, and a width of bounds that they reach in some seconds.
_PUBLISHED = [
  ((1, 1), 6, "normal", "-1/9", 200, 0.001),
  ((1, 2), 4, "normal", "-1/8", 200, 0.001),
  ((2, 1), 5, "joker", "34/125", 200, 0.001),
  ((1, 2), 5, "joker", "-3/125", 200, 0.001),
  ((2, 1), 3, "stairs", "1/27", 200, 0.001),
  ((1, 2), 3, "stairs", "-1/27", 200, 0.001),
  ((2, 1), 5, "normal", "2128/8375", 60, 0.02),
  ((2, 1), 6, "joker", "7/27", 60, 0.02),
  ((1, 2), 5, "normal", "-27/125", 60, 0.02),
  ((1, 2), 6, "joker", "-5/54", 60, 0.03),
  ((1, 1), 5, "stairs", "1/25", 60, 0.1),
  ((2, 1), 6, "normal", "212027/771552", 25, 0.06),
  ((1, 2), 6, "normal", "-22/81", 25, 0.04),
  ((2, 1), 4, "stairs", "1/16", 25, 0.15),
  ((1, 2), 4, "stairs", "1/16", 25, 0.15),
  ((1, 1), 6, "stairs", "0", 25, 0.15),
]
_SMALL = [
  ((1, 1), 3, "normal", "-1/9", 500, 1e-5),
  ((2, 1), 3, "joker", "1/3", 500, 1e-5),
  ((1, 2), 2, "stairs", "-1/4", 500, 1e-5),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", _SMALL + _PUBLISHED, ids=str)
def test_published_values(case):
  numbers, sides, rule, published, iterations, width = case
  low, high = value_bounds(numbers, sides, rule, iterations)
  assert low - 1e-12 <= Fraction(published) <= high + 1e-12 and high - low < width
