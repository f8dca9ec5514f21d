"""What keeps an eye on a walk over a game: limits, a look at how far there is to go, and progress."""

import sys
import time
from typing import Any

import tqdm

from spiel_cfr import errors
from spiel_cfr._util import memory
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.size_estimate import SizeEstimate, estimate_view

# When a walk that has not ended looks ahead, and for how long.
_SECONDS_BEFORE_ESTIMATE = 0.8
_ESTIMATE_SECONDS = 0.7
_SECONDS_BETWEEN_LINES = 10.0


class Watch:
  """Watches a walk. `close` it at its end."""

  def __init__(self, view: GameView, max_nodes: int, max_bytes: int, progress: bool | None) -> None:
    """Starts the clock.

    Args:
      view: the game that is walked.
      max_nodes: how many states it may have.
      max_bytes: how much the resident memory of the process may grow.
      progress: whether to show progress; None is the same as True.
    """
    self._view = view
    self._max_nodes, self._max_bytes = max_nodes, max_bytes
    self._bytes_before = memory.resident_bytes()
    self._start = self._shown = time.perf_counter()
    self._estimate: SizeEstimate | None = None
    self._shows_lines = progress is not False and not sys.stderr.isatty()
    self._bar: Any = None
    if progress is not False and not self._shows_lines:
      self._bar = tqdm.tqdm(
        desc="walking the game", unit=" states", unit_scale=True, delay=1.0, leave=False
      )

  def check(self, num_states: int, num_infosets: int) -> None:
    """Notes how far the walk has come.

    Raises:
      GameTooLargeError: there are more states than they may be, or it is certain that there will be.
    """
    now = time.perf_counter()
    if num_states > self._max_nodes:
      raise self._too_large(f"more than max_nodes={self._max_nodes:,} states", num_infosets)
    if memory.resident_bytes() - self._bytes_before > self._max_bytes:
      raise self._too_large(
        f"{num_states:,} states and more, which need over max_bytes={self._max_bytes:,}",
        num_infosets,
      )
    if self._estimate is None and now - self._start > _SECONDS_BEFORE_ESTIMATE:
      self._estimate = estimate_view(self._view, _ESTIMATE_SECONDS)
      # The walk has gone on without its end in sight, so this is no game that would fit.
      if self._estimate.fewest_states > self._max_nodes:
        raise errors.GameTooLargeError(
          f"The game is far too large to compile: about {self._estimate}. It may have "
          f"max_nodes={self._max_nodes:,} states. {_ADVICE}"
        )
    if self._bar is not None:
      self._bar.update(num_states - self._bar.n)
    elif self._shows_lines and now - self._shown > _SECONDS_BETWEEN_LINES:
      self._shown = now
      of_all = "" if self._estimate is None else f" of about {self._estimate.states}"
      print(
        f"walking the game: {num_states:,} states{of_all}, {num_infosets:,} infosets, "
        f"{now - self._start:.0f} s",
        file=sys.stderr,
        flush=True,
      )

  def close(self) -> None:
    """Removes the bar."""
    if self._bar is not None:
      self._bar.close()

  def _too_large(self, size: str, num_infosets: int) -> errors.GameTooLargeError:
    estimate = "" if self._estimate is None else f" By an estimate, it has {self._estimate}."
    return errors.GameTooLargeError(
      f"The game has {size}. So far it had {num_infosets:,} infosets.{estimate} Raise the limit if there is "
      "the time (a few microseconds a state) and the memory (about 0.5 kB an infoset and 50 bytes a "
      f"terminal state). {_ADVICE}"
    )


_ADVICE = (
  "Choose smaller parameters; or sample the game with ExternalSamplingSolver or OutcomeSamplingSolver and "
  'engine="states", which start at once.'
)
