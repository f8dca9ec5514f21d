"""How large a game is, estimated from random descents, before anybody walks it.

A descent chooses uniformly among the moves of every state, chance's too. If those it met before had b_1, ..., b_d
moves, a state at depth d stands for b_1 ... b_d states, and the sum over a descent is an unbiased estimate of their
number: Knuth, "Estimating the Efficiency of Backtrack Programs" (1975). Infosets are counted by how often descents meet
the same: if f_1 have been met once and f_2 twice, there are about f_1^2 / (2 f_2) more than have been met, or more
still: Chao, "Nonparametric Estimation of the Number of Classes in a Population" (1984).
"""

import collections
import dataclasses
import math
import random
import time
from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import check_actions, unknown_player

_MOST_DESCENTS = 20_000
_RESAMPLES = 200
_SPREAD = (2.5, 97.5)
# How rarely a game has fewer states than `fewest_states`, and from how many estimates that is told.
_RISK, _GROUPS = 1e-3, 10
# What compiling keeps of an infoset and of a terminal state.
_BYTES_PER_INFOSET, _BYTES_PER_TERMINAL = 500.0, 50.0


@dataclasses.dataclass(frozen=True)
class Estimate:
  """A number that has been estimated, and its spread.

  Attributes:
    value: the estimate.
    low: the lower end of its spread.
    high: the upper end.
  """

  value: float
  low: float
  high: float

  def __str__(self) -> str:
    if self.low == self.high:
      return _in_words(self.value)
    return f"{_in_words(self.value)} ({_in_words(self.low)} to {_in_words(self.high)})"

  def scaled(self, factor: float) -> "Estimate":
    """Returns the estimate of so many times the number."""
    return Estimate(factor * self.value, factor * self.low, factor * self.high)


@dataclasses.dataclass(frozen=True)
class SizeEstimate:
  """How large a game is, with spreads: 95% of what other descents would have said, from resampling.

  Attributes:
    states: how many there are.
    terminals: how many of them are terminal.
    infosets: how many each player has. The lower end is how many have been met, the upper one how many states there
      are at which the player moves.
    bytes: what the compiled game takes.
    seconds: how long compiling takes on this machine.
    descents: how many there have been.
    fewest_states: a number of states that the game has with a probability of 99.9%, whatever it is like. By Markov's
      inequality an unbiased estimate of what is positive is a times too large with a probability of 1 / a at most, and
      the smallest of k of them with 1 / a^k.
  """

  states: Estimate
  terminals: Estimate
  infosets: tuple[Estimate, ...]
  bytes: Estimate
  seconds: Estimate
  descents: int
  fewest_states: float

  def __str__(self) -> str:
    infosets = " + ".join(map(str, self.infosets))
    return (
      f"{self.states} states, {infosets} infosets, {self.bytes.scaled(2**-20)} MiB, {self.seconds} s to "
      f"compile, from {self.descents:,} descents"
    )

  def __repr__(self) -> str:
    return f"<{type(self).__name__}: {self}>"


def estimate_view(
  view: GameView, seconds: float = 1.0, descents: int = _MOST_DESCENTS
) -> SizeEstimate:
  """Estimates the size of the game that a view shows.

  Args:
    view: the game.
    seconds: how long to descend; there is at least one descent.
    descents: how many descents there are at most.
  """
  choose = random.Random(0).randrange
  columns: list[list[float]] = []
  # A player and how many moves it has made: how often each infoset has been met there.
  met: dict[tuple[int, int], collections.Counter[str]] = collections.defaultdict(
    collections.Counter
  )
  visited, start = 0, time.perf_counter()
  while len(columns) < descents and (not columns or time.perf_counter() - start < seconds):
    state, weight, moves = view.new_initial_state(), 1.0, [0] * view.num_players
    states, decisions = 1.0, [0.0] * view.num_players
    while not state.is_terminal():
      if state.is_chance_node():
        actions = [action for action, _ in view.chance_outcomes(state)]
      else:
        player = state.current_player()
        if not 0 <= player < view.num_players:
          raise unknown_player(state)
        actions = view.legal_actions(state)
        met[player, moves[player]][view.infostate(state)] += 1
        decisions[player] += weight
        moves[player] += 1
      if not actions:
        check_actions(view, state, actions)
      weight *= len(actions)
      states += weight
      state.apply_action(actions[choose(len(actions))])
      visited += 1
    columns.append([states, weight, *decisions])
  elapsed = time.perf_counter() - start
  spreads = _spreads(np.array(columns))
  infosets = tuple(
    _infosets([own for (each, _), own in met.items() if each == player], spread)
    for player, spread in enumerate(spreads[2:])
  )
  ends = zip(*(dataclasses.astuple(each) for each in infosets), strict=True)
  kept = [_BYTES_PER_INFOSET * sum(end) for end in ends]
  leaves = dataclasses.astuple(spreads[1].scaled(_BYTES_PER_TERMINAL))
  return SizeEstimate(
    states=spreads[0],
    terminals=spreads[1],
    infosets=infosets,
    bytes=Estimate(*(own + leaf for own, leaf in zip(kept, leaves, strict=True))),
    seconds=spreads[0].scaled(elapsed / max(visited, 1)),
    descents=len(columns),
    fewest_states=_at_least(np.array(columns)[:, 0]),
  )


def _at_least(samples: Float64s) -> float:
  """Returns what the mean of positive numbers, of which these are samples, is not below but for the risk."""
  groups = np.array_split(samples, min(_GROUPS, len(samples)))
  with np.errstate(over="ignore"):
    smallest = min(float(group.mean()) for group in groups)
  return smallest * math.pow(_RISK, 1 / len(groups))


def _spreads(samples: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> list[Estimate]:
  """Returns the mean of each column and its spread, from means of samples drawn anew."""
  count = len(samples)
  # Descents of games of a thousand moves overflow.
  with np.errstate(over="ignore", invalid="ignore"):
    means = samples.mean(axis=0)
    generator = np.random.default_rng(0)
    # One after the other, because all together would take more memory than a small game.
    drawn = [samples[generator.integers(count, size=count)].mean(axis=0) for _ in range(_RESAMPLES)]
    low, high = np.percentile(drawn, _SPREAD, axis=0)
  result = []
  for mean, lowest, highest in zip(means.tolist(), low.tolist(), high.tolist(), strict=True):
    finite = math.isfinite(mean + lowest + highest)
    result.append(Estimate(mean, lowest, highest) if finite else Estimate(*[math.inf] * 3))
  return result


def _infosets(met: Sequence[collections.Counter[str]], decisions: Estimate) -> Estimate:
  """Estimates how many infosets a player has, from those met after each number of its moves."""
  seen, total = 0, 0.0
  for own in met:
    times = collections.Counter(own.values())
    once, twice = times[1], times[2]
    seen += len(own)
    total += len(own) + (once**2 / (2 * twice) if twice else once * (once - 1) / 2)
  high = max(float(seen), decisions.high)
  return Estimate(min(total, high), float(seen), high)


def _in_words(number: float) -> str:
  if math.isinf(number):
    return "more than 1e308"
  return f"{number:.3g}" if number < 1e3 or number >= 1e7 else f"{float(f'{number:.3g}'):,.0f}"
