"""Base classes of read-only mappings and of bots that can be copied and pickled.

Python's `types.MappingProxyType` and bots derived from `pyspiel.Bot` can't be pickled.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, final

import pyspiel

K = TypeVar("K")
V = TypeVar("V")


@final
class FrozenMapping(Mapping[K, V]):
  """Read-only mapping that can be copied and pickled."""

  def __init__(self, items: Mapping[K, V]) -> None:
    self._items = dict(items)

  def __getitem__(self, key: K) -> V:
    return self._items[key]

  def __iter__(self) -> Iterator[K]:
    return iter(self._items)

  def __len__(self) -> int:
    return len(self._items)

  def __repr__(self) -> str:
    return repr(self._items)


class CopyableBot(pyspiel.Bot):  # type: ignore[misc]
  """Base class of bots that can be copied and pickled with all their attributes."""

  def __reduce__(self) -> tuple[Any, ...]:
    """Returns the function and arguments that make the bot again.

    Among attributes that are C++ policies of OpenSpiel, only tabular policies can be pickled.
    """
    return _make_bot, (type(self), vars(self))


def _make_bot(cls: type[CopyableBot], attributes: dict[str, Any]) -> CopyableBot:
  bot = cls.__new__(cls)
  pyspiel.Bot.__init__(bot)
  bot.__dict__.update(attributes)
  return bot
