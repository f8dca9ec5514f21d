"""Shards: the processes among which the subtrees of a game are divided."""

import concurrent.futures
import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class Shards:
  """The processes that visit the subtrees. They pickle as None, since processes belong to this process.

  Attributes:
    executors: one executor with a single process for each shard.
    game: bytes. The pickled game, for the processes.
  """

  executors: Sequence[concurrent.futures.Executor]
  game: bytes

  def __reduce__(self) -> Any:
    """Pickles as None."""
    return type(None), ()
