"""Shards: the processes that divide the subtrees of a game among them."""

import concurrent.futures
import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class Shards:
  """The processes that visit the subtrees. They pickle as None: another process can't use them.

  Attributes:
    executors: one executor for each shard, with a single process.
    game: bytes. The pickled game, which the processes load.
  """

  executors: Sequence[concurrent.futures.Executor]
  game: bytes

  def __reduce__(self) -> Any:
    """Pickles as None."""
    return type(None), ()
