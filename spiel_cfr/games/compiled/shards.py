"""Shards: the processes among which the subtrees of a game are divided."""

import concurrent.futures
import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class Shards:
  """Processes that go through the subtrees. Its pickle is None, since they belong to this process.

  Attributes:
    executors: one for each shard, with a single process.
    game: the game, for the processes, pickled.
  """

  executors: Sequence[concurrent.futures.Executor]
  game: bytes

  def __reduce__(self) -> Any:
    """Pickles as None."""
    return type(None), ()
