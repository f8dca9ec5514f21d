"""Buckets of an abstraction: sets of infosets that share a strategy."""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s, concatenated_ranges
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.infosets import Infosets

# Function or mapping from infostates to names of their buckets.
Labels: TypeAlias = Callable[[str], Hashable] | Mapping[str, Hashable]


@dataclasses.dataclass(frozen=True, eq=False)
class Buckets:
  """Buckets of each player's infosets, in order of discovery. `cluster` makes them, or you make them from arrays.

  Attributes:
    labels: for each player, int64 (infosets,). The bucket of each infoset. Numbers of different players are unrelated.
    action_labels: for each player, int64 (actions,). The number of each action among the actions of its bucket, from 0.
      Infosets of a bucket may have different actions. Actions of one infoset with the same label are merged.
    is_lossless: bool. True if the full game has equilibria that are the same at all infosets of a bucket.
  """

  labels: tuple[Int64s, ...]
  action_labels: tuple[Int64s, ...]
  is_lossless: bool = False

  @property
  def num_buckets(self) -> int:
    """The number of buckets of all players."""
    return sum(len(np.unique(labels)) for labels in self.labels)

  def only(self, game: CompiledGame, players: Iterable[int]) -> "Buckets":
    """Returns the same buckets for some players. Every infoset of the other players is its own bucket.

    Raises:
      ArgumentError: a player does not exist.
    """
    chosen, single = checked_players(game, players), identity(game)
    sources = [self if player in chosen else single for player in range(game.num_players)]
    return Buckets(
      tuple(source.labels[player] for player, source in enumerate(sources)),
      tuple(source.action_labels[player] for player, source in enumerate(sources)),
      self.is_lossless,
    )


# The argument of `abstract` for games that list their leaves.
AnyBuckets: TypeAlias = Buckets | Labels


def checked_players(game: CompiledGame, players: Iterable[int]) -> set[int]:
  """Returns players as a set.

  Raises:
    ArgumentError: a player does not exist.
  """
  several = players if np.iterable(players) else [players]
  return {arguments.integer(player, "players", 0, game.num_players - 1) for player in several}


def identity(game: CompiledGame) -> Buckets:
  """Returns buckets that contain one infoset each."""
  num_actions = [infosets.num_actions for infosets in game.infosets]
  return Buckets(
    tuple(np.arange(len(counts)) for counts in num_actions),
    tuple(concatenated_ranges(np.zeros_like(counts), counts) for counts in num_actions),
    True,
  )


def make_buckets(game: CompiledGame, buckets: AnyBuckets) -> Buckets:
  """Returns the infosets of all players in buckets; for the argument and the errors see `abstract`."""
  if isinstance(buckets, Buckets):
    _check_fit(game, buckets)
    return buckets
  if isinstance(buckets, Mapping):
    known = {infostate for infosets in game.infosets for infostate in infosets.infostates}
    unknown = [infostate for infostate in buckets if infostate not in known]
    if unknown:
      raise errors.AbstractionError(f"The game has no infostate {unknown[0]!r}.")
  elif not callable(buckets):
    raise errors.ArgumentError(
      f"Buckets are a function or a mapping, not {type(buckets).__name__}."
    )
  labels = tuple(_labels(infosets, buckets) for infosets in game.infosets)
  return Buckets(labels, identity(game).action_labels)


def _labels(infosets: Infosets, buckets: Labels) -> Int64s:
  """Returns the number of the bucket of each infoset of a player, see `make_buckets`."""
  # Name of a bucket -> its number, its first infostate, and the legal actions there.
  known_buckets: dict[Hashable, tuple[int, str, list[int]]] = {}
  result, begin = [], 0
  for infostate, count in zip(infosets.infostates, infosets.num_actions.tolist(), strict=True):
    legal = infosets.actions[begin : begin + count].tolist()
    begin += count
    # Infostates that are missing in a mapping get a name that no mapping contains.
    single = (Buckets, infostate)
    name = buckets(infostate) if callable(buckets) else buckets.get(infostate, single)
    try:
      number, first, actions = known_buckets.setdefault(
        name, (len(known_buckets), infostate, legal)
      )
    except TypeError:
      raise errors.ArgumentError(f"The name of a bucket must be hashable, not {name!r}.") from None
    if actions != legal:
      raise errors.AbstractionError(
        f"Infostates {first!r} and {infostate!r} are in one bucket, but have the actions {actions} and {legal}. If "
        "they are to play alike, make Buckets(labels, action_labels), which pairs their actions."
      )
    result.append(number)
  return np.array(result, np.int64)


def _check_fit(game: CompiledGame, buckets: Buckets) -> None:
  """Checks that buckets fit a game.

  Raises:
    AbstractionError: the buckets belong to another game, or infosets of a bucket have different numbers of labels.
  """
  sizes = [(len(infosets.infostates), len(infosets.actions)) for infosets in game.infosets]
  bucket_sizes = [
    (len(labels), len(action_labels))
    for labels, action_labels in zip(buckets.labels, buckets.action_labels, strict=True)
  ]
  if bucket_sizes != sizes:
    raise errors.AbstractionError(
      f"The buckets belong to another game: they have {bucket_sizes} infosets and actions, {game} has {sizes}."
    )
  for infosets, labels, action_labels in zip(
    game.infosets, buckets.labels, buckets.action_labels, strict=True
  ):
    infoset_of_action = np.repeat(np.arange(len(labels)), infosets.num_actions)
    last_label = np.zeros(len(labels), np.int64)
    np.maximum.at(last_label, infoset_of_action, action_labels)
    _, first_infoset, bucket = np.unique(labels, return_index=True, return_inverse=True)
    if (last_label != last_label[first_infoset][bucket]).any():
      raise errors.AbstractionError(
        "Infosets of one bucket have different numbers of action_labels."
      )
