"""Estimate of the memory of the sides of all rectangles, before core histories are walked.

A random descent follows one path of cores, with the number of sequences at each sight instead of lists of sequences.
Weighted as in `game_size` (Knuth), the number of entries on the path is an unbiased estimate of the number of all
entries.
"""

import collections
import random
import statistics
import time
from typing import TypeAlias

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.game_size import at_least
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.games.private_moves.cores import Split

# The number of sequences at each sight.
_Numbers: TypeAlias = collections.Counter[int]
_SECONDS, _MOST_DESCENTS = 2.0, 2_000
_BYTES_PER_ENTRY = 4


def sample_bytes(split: Split, starts: Int64s) -> list[float]:
  """Returns unbiased estimates of the memory of all sides, in bytes, one for each random descent.

  Args:
    split: cores and sights.
    starts: int64 (walks, 3). The core and the two sights at which each walk begins.
  """
  until, samples = time.perf_counter() + _SECONDS, list[float]()
  choice = random.Random(0)
  while len(samples) < _MOST_DESCENTS and (time.perf_counter() < until or len(samples) < 10):
    start = starts[choice.randrange(len(starts))].tolist()
    samples.append(_BYTES_PER_ENTRY * len(starts) * sample_entries(split, choice, *start))
  return samples


def check_size(samples: list[float], max_bytes: int) -> None:
  """Checks estimates of the memory of sides, in bytes.

  Raises:
    GameTooLargeError: sides certainly take more than `max_bytes`.
  """
  if at_least(samples) > max_bytes:
    raise errors.GameTooLargeError(
      f"The sides of all rectangles take about {statistics.fmean(samples):z.1e} bytes by an estimate, and certainly "
      f"over max_bytes={max_bytes:,}. Choose smaller parameters, or raise the limit if there is the memory."
    )


def sample_entries(
  split: Split, choice: random.Random, core: int = 0, first: int = 0, second: int = 0
) -> float:
  """Returns an unbiased estimate of the number of entries of all sides of a walk, from a random descent.

  The walk begins at a core, with a sight of each player.
  """
  cores, weight, result = split.cores, 1.0, 0.0
  numbers = [collections.Counter({first: 1}), collections.Counter({second: 1})]
  while True:
    mover, first_event = int(cores.mover[core]), int(cores.first_event[core])
    events = range(int(cores.first_event[core + 1]) - first_event)
    after = {event: numbers for event in events}
    if mover != CHANCE:
      moved = _moved(split, mover, numbers[mover])
      after = {
        event: [moved[event], numbers[1]] if mover == 0 else [numbers[0], moved[event]]
        for event in moved
      }
    going_on, ended = [], False
    for event, lists in after.items():
      target = int(cores.event_core[first_event + event])
      if cores.mover[target] != TERMINAL:
        going_on.append(event)
      elif cores.returns[target].any():
        # The other player's list is one side, for all events that end the game.
        result += weight * sum(
          lists[player].total() for player in (0, 1) if not ended or player == mover
        )
        ended = True
    if not going_on:
      return result
    weight *= len(going_on)
    event = choice.choice(going_on)
    numbers = [
      lists if player == mover else _observed(split, player, lists, event)
      for player, lists in enumerate(after[event])
    ]
    core = int(cores.event_core[first_event + event])


def _moved(split: Split, player: int, numbers: _Numbers) -> dict[int, _Numbers]:
  """Returns a player's numbers of sequences after each event that it causes; adds failed attempts to `numbers`."""
  sights = split.sights[player]
  result: dict[int, _Numbers] = collections.defaultdict(collections.Counter)
  queue = collections.deque(numbers.items())
  numbers.clear()
  while queue:
    sight, number = queue.popleft()
    numbers[sight] += number
    for move in range(sights.first_move[sight], sights.first_move[sight + 1]):
      event, after = int(sights.move_event[move]), int(sights.move_sight[move])
      if event == NONE:
        queue.append((after, number))
      else:
        result[event][after] += number
  return result


def _observed(split: Split, player: int, numbers: _Numbers, event: int) -> _Numbers:
  """Returns a player's numbers of sequences after an event that it does not cause."""
  sights = split.sights[player]
  result: _Numbers = collections.Counter()
  for sight, number in numbers.items():
    result[int(sights.observation_sight[sights.first_observation[sight] + event])] += number
  return result
