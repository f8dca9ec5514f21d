"""Which infosets are to play alike: what makes an abstraction.

    buckets = make_buckets(game, lambda infostate: infostate.replace("private:2", "private:3"))

Whoever knows more of the game than its infostate strings gives a dictionary: `game.first_states()` are a state of each.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s, spread
from spiel_cfr.games.compiled.compiled_game import CompiledGame


class Permuted(NamedTuple):
  """A bucket whose infosets have different actions, or the same ones in another order.

  Attributes:
    bucket: its name.
    actions: the legal actions of the infoset; those in the same place play alike.
  """

  bucket: Hashable
  actions: Sequence[int]


# Infostate -> name of its bucket, or a `Permuted`.
Labels: TypeAlias = Callable[[str], Hashable] | Mapping[str, Hashable]


@dataclasses.dataclass(frozen=True, eq=False)
class Buckets:
  """Each player's infosets in buckets, in order of discovery. Make one with `make_buckets`.

  Attributes:
    labels: int64 of shape (infosets,) per player: the bucket of each infoset. Numbers are a player's own.
    slots: int64 of shape (actions of all infosets,) per player: which of its bucket's actions each action is. Actions
      of an infoset that are the same to everybody share one.
    is_lossless: whether strategies that are alike within buckets are all that solvers of the full game would find.
  """

  labels: tuple[Int64s, ...]
  slots: tuple[Int64s, ...]
  is_lossless: bool = False

  @property
  def num_buckets(self) -> int:
    """How many buckets all players have."""
    return sum(len(np.unique(own)) for own in self.labels)

  def only(self, game: CompiledGame, players: Iterable[int]) -> "Buckets":
    """Returns the same buckets for some players, while all infosets of the others stay apart.

    Raises:
      ArgumentError: there is no such player.
    """
    chosen, apart = checked_players(game, players), identity(game)
    pick = [self if player in chosen else apart for player in range(game.num_players)]
    return Buckets(
      tuple(each.labels[player] for player, each in enumerate(pick)),
      tuple(each.slots[player] for player, each in enumerate(pick)),
      self.is_lossless,
    )


# What `make_buckets` takes.
AnyBuckets: TypeAlias = Buckets | Labels


def checked_players(game: CompiledGame, players: Iterable[int]) -> set[int]:
  """Returns players as a set.

  Raises:
    ArgumentError: there is no such player.
  """
  chosen = set(players)
  if not chosen <= set(range(game.num_players)):
    raise errors.ArgumentError(
      f"players must be of 0 to {game.num_players - 1}, not {sorted(chosen, key=repr)}."
    )
  return chosen


def identity(game: CompiledGame) -> Buckets:
  """Returns a bucket for each infoset."""
  return Buckets(
    tuple(np.arange(len(own.infostates)) for own in game.infosets),
    tuple(_places(own.num_actions) for own in game.infosets),
    True,
  )


def _places(num_actions: Int64s) -> Int64s:
  """Returns, for each action of each infoset, which of the infoset's it is."""
  return spread(np.zeros_like(num_actions), num_actions)


def make_buckets(game: CompiledGame, buckets: AnyBuckets) -> Buckets:
  """Puts infosets into buckets.

  Args:
    game: the game.
    buckets: a function from infostate strings to names of buckets; or a mapping from some infostates to such names, in
      which those left out stay by themselves. A name is anything hashable, or a `Permuted`; players' names have nothing
      to do with each other.

  Raises:
    AbstractionError: infosets of a bucket have different actions, or a mapping names infosets that there are not.
    ArgumentError: it is none of these, or a name is not hashable.
  """
  if isinstance(buckets, Buckets):
    _check_fit(game, buckets)
    return buckets
  if isinstance(buckets, Mapping):
    known = {infostate for own in game.infosets for infostate in own.infostates}
    unknown = [infostate for infostate in buckets if infostate not in known]
    if unknown:
      raise errors.AbstractionError(f"The game has no infostate {unknown[0]!r}.")
    mapping = buckets

    def names(infostate: str) -> Hashable:
      # Apart from every name that somebody gives.
      return mapping[infostate] if infostate in mapping else Permuted((Permuted, infostate), ())

    find: Callable[[str], Hashable] = names
  elif callable(buckets):
    find = buckets
  else:
    raise errors.ArgumentError(
      f"Buckets are a function or a mapping, not {type(buckets).__name__}."
    )
  labels, slots = [], []
  for own in game.infosets:
    numbers: dict[Hashable, tuple[int, str, list[int]]] = {}
    own_labels, own_slots = [], _places(own.num_actions)
    begin = 0
    for infostate, count in zip(own.infostates, own.num_actions.tolist(), strict=True):
      legal = own.actions[begin : begin + count].tolist()
      found = find(infostate)
      name, order = found if isinstance(found, Permuted) else (found, legal)
      order = list(order) if len(order) else legal
      if sorted(order) != legal:
        raise errors.AbstractionError(
          f"The actions {order} given for infostate {infostate!r} are not its legal actions {legal}."
        )
      try:
        number, first, actions = numbers.setdefault(name, (len(numbers), infostate, order))
      except TypeError:
        raise errors.ArgumentError(
          f"The name of a bucket must be hashable, not {name!r}."
        ) from None
      same = len(actions) == count if isinstance(found, Permuted) else actions == order
      if not same:
        raise errors.AbstractionError(
          f"Infostates {first!r} and {infostate!r} are in one bucket, but have the actions {actions} and {order}. If "
          "they are to play alike all the same, say in which order, with Permuted(bucket, actions)."
        )
      own_labels.append(number)
      own_slots[begin : begin + count] = [order.index(action) for action in legal]
      begin += count
    labels.append(np.array(own_labels, np.int64))
    slots.append(own_slots)
  return Buckets(tuple(labels), tuple(slots))


def _check_fit(game: CompiledGame, buckets: Buckets) -> None:
  sizes = [(len(own.infostates), len(own.actions)) for own in game.infosets]
  found = [
    (len(labels), len(slots)) for labels, slots in zip(buckets.labels, buckets.slots, strict=True)
  ]
  if found != sizes:
    raise errors.AbstractionError(
      f"The buckets are of another game: they have {found} infosets and actions, {game} has {sizes}."
    )
