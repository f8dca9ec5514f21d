"""Buckets of an abstraction: sets of infosets that play alike.

    buckets = make_buckets(game, lambda infostate: infostate.replace("private:2", "private:3"))

If infostate strings do not suffice, pass a dictionary made from `game.first_states()`, which has a state of each
infoset.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s, concatenated_ranges
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# From infostates to names of their buckets.
Labels: TypeAlias = Callable[[str], Hashable] | Mapping[str, Hashable]


@dataclasses.dataclass(frozen=True, eq=False)
class Buckets:
  """Each player's infosets in buckets, in order of discovery. Make one with `make_buckets`, or from arrays.

  Attributes:
    labels: for each player, int64 (infosets,). The bucket of each infoset; different players' numbers are unrelated.
    slots: for each player, int64 (actions,). The bucket's action that each action is, so that infosets with different
      actions may play alike. Equivalent actions of an infoset share a slot.
    is_lossless: bool. Whether the full game has equilibria that are the same at all infosets of a bucket.
  """

  labels: tuple[Int64s, ...]
  slots: tuple[Int64s, ...]
  is_lossless: bool = False

  @property
  def num_buckets(self) -> int:
    """Number of buckets of all players."""
    return sum(len(np.unique(own)) for own in self.labels)

  def only(self, game: CompiledGame, players: Iterable[int]) -> "Buckets":
    """Returns the same buckets for some players; the others' infosets all stay apart.

    Raises:
      ArgumentError: a player does not exist.
    """
    chosen, apart = checked_players(game, players), identity(game)
    pick = [self if player in chosen else apart for player in range(game.num_players)]
    return Buckets(
      tuple(buckets.labels[player] for player, buckets in enumerate(pick)),
      tuple(buckets.slots[player] for player, buckets in enumerate(pick)),
      self.is_lossless,
    )


# The argument of `make_buckets`.
AnyBuckets: TypeAlias = Buckets | Labels


def checked_players(game: CompiledGame, players: Iterable[int]) -> set[int]:
  """Returns players as a set; raises ArgumentError if one does not exist."""
  chosen = set(players) if np.iterable(players) else {players}
  if not chosen <= set(range(game.num_players)):
    raise errors.ArgumentError(
      f"players must be of 0 to {game.num_players - 1}, not {sorted(chosen, key=repr)}."
    )
  return chosen


def identity(game: CompiledGame) -> Buckets:
  """Returns buckets of one infoset each."""
  counts = [own.num_actions for own in game.infosets]
  return Buckets(
    tuple(np.arange(len(own)) for own in counts),
    tuple(concatenated_ranges(np.zeros_like(own), own) for own in counts),
    True,
  )


@typed
def make_buckets(game: CompiledGame, buckets: AnyBuckets) -> Buckets:
  """Puts infosets into buckets.

  Args:
    game: the game.
    buckets: a function from infostate strings to names of buckets; or a mapping from some infostates to such names,
      which leaves all others alone. A name is any hashable object. Different players' names are unrelated.

  Raises:
    AbstractionError: infosets of a bucket have different actions, or a mapping names an infostate that does not exist.
    ArgumentError: `buckets` is neither a function nor a mapping, or a name is not hashable.
  """
  if isinstance(buckets, Buckets):
    _check_fit(game, buckets)
    return buckets
  if isinstance(buckets, Mapping):
    known = {infostate for own in game.infosets for infostate in own.infostates}
    unknown = [infostate for infostate in buckets if infostate not in known]
    if unknown:
      raise errors.AbstractionError(f"The game has no infostate {unknown[0]!r}.")
  elif not callable(buckets):
    raise errors.ArgumentError(
      f"Buckets are a function or a mapping, not {type(buckets).__name__}."
    )
  labels = []
  for own in game.infosets:
    numbers: dict[Hashable, tuple[int, str, list[int]]] = {}
    own_labels, begin = [], 0
    for infostate, count in zip(own.infostates, own.num_actions.tolist(), strict=True):
      legal = own.actions[begin : begin + count].tolist()
      begin += count
      # Infostates that a mapping leaves out get a name that no mapping can have.
      apart = (Buckets, infostate)
      name = buckets(infostate) if callable(buckets) else buckets.get(infostate, apart)
      try:
        number, first, actions = numbers.setdefault(name, (len(numbers), infostate, legal))
      except TypeError:
        raise errors.ArgumentError(
          f"The name of a bucket must be hashable, not {name!r}."
        ) from None
      if actions != legal:
        raise errors.AbstractionError(
          f"Infostates {first!r} and {infostate!r} are in one bucket, but have the actions {actions} and {legal}. If "
          "they are to play alike, make Buckets(labels, slots), in which slots pair their actions."
        )
      own_labels.append(number)
    labels.append(np.array(own_labels, np.int64))
  return Buckets(tuple(labels), identity(game).slots)


def _check_fit(game: CompiledGame, buckets: Buckets) -> None:
  """Raises AbstractionError if buckets are of another game, or infosets of a bucket have different numbers of slots."""
  sizes = [(len(own.infostates), len(own.actions)) for own in game.infosets]
  found = [
    (len(labels), len(slots)) for labels, slots in zip(buckets.labels, buckets.slots, strict=True)
  ]
  if found != sizes:
    raise errors.AbstractionError(
      f"The buckets are of another game: they have {found} infosets and actions, {game} has {sizes}."
    )
  for own, labels, slots in zip(game.infosets, buckets.labels, buckets.slots, strict=True):
    last = np.zeros(len(labels), np.int64)
    np.maximum.at(last, np.repeat(np.arange(len(labels)), own.num_actions), slots)
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    if (last != last[first][which]).any():
      raise errors.AbstractionError("Infosets of one bucket have other numbers of slots.")
