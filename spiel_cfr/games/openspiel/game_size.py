"""Estimates of a game's size from random descents, and the limits of walks in states and memory.

A descent chooses uniformly among the moves of every state, including those of chance. If the states above a state have
b_1, ..., b_d moves, the state represents b_1 ... b_d states. The sum over a descent is an unbiased estimate of the
number of states: Knuth, "Estimating the Efficiency of Backtrack Programs" (1975). The number of infosets is estimated
from repeated visits. If descents visit f_1 infosets once and f_2 twice, at least about f_1^2 / (2 f_2) infosets have
not been visited: Chao, "Nonparametric Estimation of the Number of Classes in a Population" (1984).
"""

import collections
import dataclasses
import math
import random
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import tqdm

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import memory
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL, cannot_be_walked
from spiel_cfr.games.openspiel.game_view import GameView

# Default limits of a walk.
DEFAULT_MAX_NODES = 20_000_000
DEFAULT_MAX_BYTES = 1_500_000_000
_MOST_DESCENTS = 20_000
# `fewest_states`: the probability that a game has fewer states, and the number of estimates whose smallest it uses.
_RISK, _GROUPS = 1e-3, 10
# Memory of a compiled game for each infoset and each terminal state.
_BYTES_PER_INFOSET, _BYTES_PER_TERMINAL = 500.0, 50.0
# A walk estimates the size of the game after this many seconds, for this many seconds.
SECONDS_BEFORE_ESTIMATE = 0.8
ESTIMATE_SECONDS = 0.7
ADVICE = (
  "Choose smaller parameters; or sample the game with ExternalSamplingSolver or OutcomeSamplingSolver and "
  'engine="states", which start at once.'
)


@dataclasses.dataclass(frozen=True)
class SizeEstimate:
  """Estimated size of a game; infinite if the numbers overflow.

  Attributes:
    states: float. The number of states.
    error: float. The standard error of `states`, as a share of it.
    terminals: float. The number of terminal states.
    infosets: floats. The number of infosets of each player.
    bytes: float. The memory of the compiled game.
    seconds: float. The time to compile it on this machine.
    descents: int. The number of descents.
    fewest_states: float. A lower bound of the number of states that holds with a probability of 99.9% for any game. By
      Markov's inequality, the probability that an unbiased estimate of a positive number is a times too large is at
      most 1 / a. For the smallest of k estimates it is at most 1 / a^k.
    fewest_terminals: float. A lower bound of the number of terminal states that holds with a probability of 99.9%.
  """

  states: float
  error: float
  terminals: float
  infosets: tuple[float, ...]
  bytes: float
  seconds: float
  descents: int
  fewest_states: float
  fewest_terminals: float = dataclasses.field(repr=False)

  def __str__(self) -> str:
    infosets = " + ".join(map(_in_words, self.infosets))
    error = f" (standard error {self.error:z.0%})" if math.isfinite(self.error) else ""
    return (
      f"{_in_words(self.states)} states{error}, {infosets} infosets, "
      f"{_in_words(self.bytes / 2**20)} MiB, {_in_words(self.seconds)} s to compile, from {self.descents:,} descents"
    )


def estimate_view(
  view: GameView, seconds: float = 1.0, descents: int = _MOST_DESCENTS
) -> SizeEstimate:
  """Estimates the size of the game of a view.

  Args:
    view: the game.
    seconds: time for descents. If the first descent takes longer, it is cut off, and the estimate is too small.
    descents: largest number of descents.

  Raises:
    UnsupportedGameError: the game raises an exception, or a state has no player or no action.
    GameError: a descent has more moves than the game declares.
  """
  start = time.perf_counter()
  walk = _Descents(view, start + seconds)
  while len(walk.samples) < descents and not (walk.samples and walk.is_out_of_time()):
    walk.descend()
  elapsed, samples = time.perf_counter() - start, walk.samples
  # Descents of games of a thousand moves overflow.
  with np.errstate(over="ignore", invalid="ignore"):
    mean, terminals = np.mean(samples, axis=0).tolist()
    error = float(np.std(samples, axis=0)[0] / (mean * math.sqrt(len(samples))))
  infosets = tuple(map(estimate_classes, walk.visits))
  return SizeEstimate(
    states=mean,
    error=error,
    terminals=terminals,
    infosets=infosets,
    bytes=_BYTES_PER_INFOSET * sum(infosets) + _BYTES_PER_TERMINAL * terminals,
    seconds=mean * elapsed / max(walk.num_visited, 1),
    descents=len(samples),
    fewest_states=at_least(np.array(samples)[:, 0]),
    fewest_terminals=at_least(np.array(samples)[:, 1]),
  )


class _Descents:
  """Random descents through a game, until a deadline by `time.perf_counter`.

  Attributes:
    samples: for each complete descent, estimates of the numbers of states and of terminals. The first descent counts
      even if the deadline ended it.
    visits: for each player, Counter. The number of visits to each infostate.
    num_visited: int. The number of moves of all descents.
  """

  def __init__(self, view: GameView, deadline: float) -> None:
    self._view, self._deadline = view, deadline
    self._choose = random.Random(0).choice
    self._longest = view.game.max_game_length()
    self.samples: list[tuple[float, float]] = []
    self.visits: list[collections.Counter[str]] = [
      collections.Counter() for _ in range(view.num_players)
    ]
    self.num_visited = 0

  def is_out_of_time(self) -> bool:
    """Returns whether the deadline has passed."""
    return time.perf_counter() >= self._deadline

  def descend(self) -> None:
    """Makes one descent."""
    state, weight, states, moves = self._view.new_initial_state(), 1.0, 1.0, 0
    try:
      while (player := self._view.mover(state)) != TERMINAL:
        if self.num_visited and self.is_out_of_time():
          break
        moves += player != CHANCE
        if moves > self._longest:
          raise errors.GameError(
            f"The game has not ended after {self._longest:,} moves, its max_game_length. Games must end. "
            "Raise max_game_length, or make a state terminal."
          )
        actions = self._actions_at(state, player)
        weight *= len(actions)
        states += weight
        self._view.apply(state, self._choose(actions))
        self.num_visited += 1
    except (errors.SpielCFRError, MemoryError):
      raise
    except Exception as problem:
      raise cannot_be_walked(state, problem) from problem
    if not self.samples or player == TERMINAL:
      self.samples.append((states, weight))

  def _actions_at(self, state: Any, player: int) -> Sequence[int]:
    """Returns the actions at a state, or chance's outcomes; counts the visit to a player's infoset."""
    view = self._view
    if player == CHANCE:
      return [action for action, _ in view.chance_outcomes(state)]
    self.visits[player][view.infostate(state)] += 1
    return view.legal_actions(state)


def at_least(samples: Sequence[float] | Float64s) -> float:
  """Returns a lower bound on the mean of positive numbers, given samples; it is wrong with probability `_RISK`."""
  groups = np.array_split(np.asarray(samples), min(_GROUPS, len(samples)))
  with np.errstate(over="ignore"):
    smallest = min(float(np.mean(group)) for group in groups)
  return smallest * math.pow(_RISK, 1 / len(groups))


def estimate_classes(visits: collections.Counter[Any]) -> float:
  """Estimates the number of all classes, visited or not, given the number of visits to each visited class."""
  num_visited = collections.Counter(visits.values())
  once, twice = num_visited[1], num_visited[2]
  return len(visits) + (once**2 / (2 * twice) if twice else math.comb(once, 2))


def _in_words(number: float) -> str:
  if math.isinf(number):
    return "more than 1e308"
  return f"{number:z.3g}" if number < 1e3 or number >= 1e7 else f"{float(f'{number:z.3g}'):z,.0f}"


class WalkLimits:
  """Limits and progress bar of a walk: `max_nodes` states, and `max_bytes` more memory. `close` it at the end."""

  def __init__(self, view: GameView, max_nodes: int, max_bytes: int, progress: bool) -> None:
    self._view = view
    self._max_nodes, self._max_bytes = max_nodes, max_bytes
    self._bytes_before = memory.resident_bytes()
    self._start = time.perf_counter()
    self._estimate: SizeEstimate | None = None
    self._bar: Any = tqdm.tqdm(
      desc="walking the game",
      unit=" states",
      unit_scale=True,
      delay=1.0,
      leave=False,
      disable=None if progress else True,
    )

  def check(self, num_states: int, num_infosets: int) -> None:
    """Checks the progress of the walk against its limits.

    Raises:
      GameTooLargeError: the walk has exceeded a limit, or the game certainly has more states.
    """
    if num_states > self._max_nodes:
      raise self._too_large(f"more than max_nodes={self._max_nodes:,} states", num_infosets)
    if memory.resident_bytes() - self._bytes_before > self._max_bytes:
      raise self._too_large(
        f"{num_states:,} states or more, which need over max_bytes={self._max_bytes:,}",
        num_infosets,
      )
    if self._estimate is None and time.perf_counter() - self._start > SECONDS_BEFORE_ESTIMATE:
      self._estimate = estimate_view(self._view, ESTIMATE_SECONDS)
      # The bound is wrong with probability `_RISK` at most, and small games have ended before this check.
      if self._estimate.fewest_states > self._max_nodes:
        raise errors.GameTooLargeError(
          f"The game is far too large to compile: by an estimate, {self._estimate}. The limit is "
          f"max_nodes={self._max_nodes:,} states. {ADVICE}"
        )
    self._bar.update(num_states - self._bar.n)

  def close(self) -> None:
    """Removes the bar."""
    self._bar.close()

  def _too_large(self, size: str, num_infosets: int) -> errors.GameTooLargeError:
    estimate = "" if self._estimate is None else f" By an estimate, it has {self._estimate}."
    return errors.GameTooLargeError(
      f"The game has {size}. So far the walk has found {num_infosets:,} infosets.{estimate} Raise the limit if there "
      "is the time (a few microseconds a state) and the memory (about 0.5 kB an infoset and 50 bytes a "
      f"terminal state). {ADVICE}"
    )
