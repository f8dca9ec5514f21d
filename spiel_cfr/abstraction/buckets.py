"""Buckets of an abstraction: sets of infosets that play alike.

    buckets = make_buckets(game, lambda infostate: infostate.replace("private:2", "private:3"))

Whoever knows more of the game than its infostate strings gives a dictionary: `game.first_states()` are a state of each.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s, spread
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# Infostate -> name of its bucket.
Labels: TypeAlias = Callable[[str], Hashable] | Mapping[str, Hashable]


@dataclasses.dataclass(frozen=True, eq=False)
class Buckets:
  """Each player's infosets in buckets, in order of discovery. Make one with `make_buckets`, or of arrays of your own.

  Attributes:
    labels: int64 of shape (infosets,) per player: the bucket of each infoset. Numbers are a player's own.
    slots: int64 of shape (actions of all infosets,) per player: which of its bucket's actions each action is, so that
      infosets with other actions may play alike. Actions of an infoset that are the same to everybody share one.
    is_lossless: whether strategies that are alike within buckets are all that solvers of the full game would find.
  """

  labels: tuple[Int64s, ...]
  slots: tuple[Int64s, ...]
  is_lossless: bool = False

  @property
  def num_buckets(self) -> int:
    """Number of buckets of all players."""
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
  """Returns players as a set; raises ArgumentError where there is no such player."""
  chosen = set(players)
  if not chosen <= set(range(game.num_players)):
    raise errors.ArgumentError(
      f"players must be of 0 to {game.num_players - 1}, not {sorted(chosen, key=repr)}."
    )
  return chosen


def identity(game: CompiledGame) -> Buckets:
  """Returns a bucket for each infoset."""
  counts = [own.num_actions for own in game.infosets]
  return Buckets(
    tuple(np.arange(len(own)) for own in counts),
    tuple(spread(np.zeros_like(own), own) for own in counts),
    True,
  )


@typed
def make_buckets(game: CompiledGame, buckets: AnyBuckets) -> Buckets:
  """Puts infosets into buckets.

  Args:
    game: the game.
    buckets: a function from infostate strings to names of buckets; or a mapping from some infostates to such names, in
      which those left out stay by themselves. A name is anything hashable; players' names have nothing to do with each
      other.

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
      # What a mapping leaves out is apart from every name that somebody gives.
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
          "they are to play alike all the same, make Buckets(labels, slots), in which slots say which of them do."
        )
      own_labels.append(number)
    labels.append(np.array(own_labels, np.int64))
  return Buckets(tuple(labels), identity(game).slots)


def _check_fit(game: CompiledGame, buckets: Buckets) -> None:
  """Raises AbstractionError where buckets are of another game, or the infosets of one have other numbers of slots."""
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
