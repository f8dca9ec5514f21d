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
    barrier_every: after how many updates of a player they hand over what they remember, if nobody asks before.
  """

  executors: Sequence[concurrent.futures.Executor]
  game: bytes
  barrier_every: int

  def __reduce__(self) -> Any:
    """Pickles as None."""
    return type(None), ()
