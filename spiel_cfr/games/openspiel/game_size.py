"""Size of a game: estimated from random descents before a walk, and watched during the walk.

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
from typing import Any

import numpy as np
import tqdm

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import memory
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import (
  cannot_be_walked,
  check_actions,
  unknown_player,
)

# What a walk may take unless its caller says otherwise.
DEFAULT_MAX_NODES = 20_000_000
DEFAULT_MAX_BYTES = 1_500_000_000
_MOST_DESCENTS = 20_000
# How rarely a game has fewer states than `fewest_states`, and from how many estimates that is told.
_RISK, _GROUPS = 1e-3, 10
# What compiling keeps of an infoset and of a terminal state.
_BYTES_PER_INFOSET, _BYTES_PER_TERMINAL = 500.0, 50.0
# When a walk that has not ended looks ahead, and for how long.
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
    states: number of states.
    error: the standard error of `states`, as a share of it.
    terminals: number of terminal states.
    infosets: number of infosets of each player.
    bytes: memory of the compiled game.
    seconds: time to compile it on this machine.
    descents: number of descents.
    fewest_states: a lower bound of the number of states, with a probability of 99.9% for any game. By Markov's
      inequality an unbiased estimate of a positive number is a times too large with a probability of 1 / a at most, and
      the smallest of k estimates with 1 / a^k.
    fewest_terminals: a lower bound of the number of terminal states, with the same probability.
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
  """Estimates the size of the game that a view shows.

  Args:
    view: the game.
    seconds: how long to descend. If not even one descent has come to an end by then, it counts as it is, so that the
      estimate is too small.
    descents: how many descents there are at most.

  Raises:
    UnsupportedGameError: the game has raised an exception, or at a state nobody is to move, or there is no action.
    GameError: a descent goes on for more moves than the game says that there can be.
  """
  choose = random.Random(0).choice
  # Of each descent: states and terminals.
  samples: list[tuple[float, float]] = []
  # Of each player: how often each infoset has been met.
  met: list[collections.Counter[str]] = [collections.Counter() for _ in range(view.num_players)]
  visited, longest, start = 0, view.game.max_game_length(), time.perf_counter()

  def out_of_time() -> bool:
    return time.perf_counter() - start >= seconds

  while len(samples) < descents and not (samples and out_of_time()):
    state, weight, states, moves = view.new_initial_state(), 1.0, 1.0, 0
    try:
      while not state.is_terminal():
        if visited and out_of_time():
          break
        if state.is_chance_node():
          actions = [action for action, _ in view.chance_outcomes(state)]
        else:
          player = state.current_player()
          if not 0 <= player < view.num_players:
            raise unknown_player(state)
          moves += 1
          if moves > longest:
            raise errors.GameError(
              f"The game has not ended after {longest:,} moves, its max_game_length. Games must end: make it longer, "
              "or let states be terminal."
            )
          actions = view.legal_actions(state)
          met[player][view.infostate(state)] += 1
        if not actions:
          check_actions(view, state, actions)
        weight *= len(actions)
        states += weight
        state.apply_action(choose(actions))
        visited += 1
    except (errors.SpielCFRError, MemoryError):
      raise
    except Exception as problem:
      raise cannot_be_walked(state, problem) from problem
    if not samples or state.is_terminal():
      samples.append((states, weight))
  elapsed = time.perf_counter() - start
  # Descents of games of a thousand moves overflow.
  with np.errstate(over="ignore", invalid="ignore"):
    mean, terminals = np.mean(samples, axis=0).tolist()
    error = float(np.std(samples, axis=0)[0] / (mean * math.sqrt(len(samples))))
  infosets = tuple(map(estimate_classes, met))
  return SizeEstimate(
    states=mean,
    error=error,
    terminals=terminals,
    infosets=infosets,
    bytes=_BYTES_PER_INFOSET * sum(infosets) + _BYTES_PER_TERMINAL * terminals,
    seconds=mean * elapsed / max(visited, 1),
    descents=len(samples),
    fewest_states=at_least(np.array(samples)[:, 0]),
    fewest_terminals=at_least(np.array(samples)[:, 1]),
  )


def at_least(samples: Sequence[float] | Float64s) -> float:
  """Returns what the mean of positive numbers, of which these are samples, is not below but for the risk."""
  groups = np.array_split(np.asarray(samples), min(_GROUPS, len(samples)))
  with np.errstate(over="ignore"):
    smallest = min(float(np.mean(group)) for group in groups)
  return smallest * math.pow(_RISK, 1 / len(groups))


def estimate_classes(met: collections.Counter[Any]) -> float:
  """Estimates how many classes there are, given how often those have been met that have."""
  times = collections.Counter(met.values())
  return len(met) + (times[1] ** 2 / (2 * times[2]) if times[2] else math.comb(times[1], 2))


def _in_words(number: float) -> str:
  if math.isinf(number):
    return "more than 1e308"
  return f"{number:z.3g}" if number < 1e3 or number >= 1e7 else f"{float(f'{number:z.3g}'):z,.0f}"


class Watch:
  """Watches a walk, which may have `max_nodes` states and take `max_bytes` more memory. `close` it at its end."""

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
    """Notes how far the walk has come.

    Raises:
      GameTooLargeError: there are more states than they may be, or it is certain that there will be.
    """
    if num_states > self._max_nodes:
      raise self._too_large(f"more than max_nodes={self._max_nodes:,} states", num_infosets)
    if memory.resident_bytes() - self._bytes_before > self._max_bytes:
      raise self._too_large(
        f"{num_states:,} states and more, which need over max_bytes={self._max_bytes:,}",
        num_infosets,
      )
    if self._estimate is None and time.perf_counter() - self._start > SECONDS_BEFORE_ESTIMATE:
      self._estimate = estimate_view(self._view, ESTIMATE_SECONDS)
      # The walk has gone on without its end in sight, so this is no game that would fit.
      if self._estimate.fewest_states > self._max_nodes:
        raise errors.GameTooLargeError(
          f"The game is far too large to compile: about {self._estimate}. It may have "
          f"max_nodes={self._max_nodes:,} states. {ADVICE}"
        )
    self._bar.update(num_states - self._bar.n)

  def close(self) -> None:
    """Removes the bar."""
    self._bar.close()

  def _too_large(self, size: str, num_infosets: int) -> errors.GameTooLargeError:
    estimate = "" if self._estimate is None else f" By an estimate, it has {self._estimate}."
    return errors.GameTooLargeError(
      f"The game has {size}. So far it had {num_infosets:,} infosets.{estimate} Raise the limit if there is "
      "the time (a few microseconds a state) and the memory (about 0.5 kB an infoset and 50 bytes a "
      f"terminal state). {ADVICE}"
    )
