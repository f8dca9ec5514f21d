"""Read-only mappings and bots that can be copied and pickled, unlike those of Python and pybind11."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, final

import pyspiel

K = TypeVar("K")
V = TypeVar("V")


@final
class FrozenMapping(Mapping[K, V]):
  """A read-only mapping. Copies and pickles are equal to it, which `types.MappingProxyType` does not allow."""

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
  """Base class of bots whose copies and pickles have the attributes of the bot."""

  def __reduce__(self) -> tuple[Any, ...]:
    """Returns the function and arguments that make the bot again. Of OpenSpiel's C++ policies, only tables work."""
    return _revived, (type(self), vars(self))


def _revived(cls: type[CopyableBot], attributes: dict[str, Any]) -> CopyableBot:
  bot = cls.__new__(cls)
  pyspiel.Bot.__init__(bot)
  bot.__dict__.update(attributes)
  return bot
