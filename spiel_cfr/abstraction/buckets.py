"""Which infosets are to play alike: what makes an abstraction.

    buckets = make_buckets(game, lambda infostate: infostate.replace("private:2", "private:3"))

Whoever knows more of the game than its infostate strings gives a function of states, or a dictionary, or a file.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s, spread
from spiel_cfr.games.compiled.compiled_game import CompiledGame, Infosets
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.suits import number_in_order


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
    chosen, apart = _checked_players(game, players), identity(game)
    pick = [self if player in chosen else apart for player in range(game.num_players)]
    return Buckets(
      tuple(each.labels[player] for player, each in enumerate(pick)),
      tuple(each.slots[player] for player, each in enumerate(pick)),
      self.is_lossless,
    )

  def save(self, path: str | os.PathLike[str], game: CompiledGame) -> None:
    """Writes a JSON file that `make_buckets` reads: infostate -> [bucket, actions in the bucket's order].

    Raises:
      AbstractionError: actions of an infoset share a place in their bucket, which files do not say.
      OSError: the file can't be written.
    """
    content: dict[str, Any] = {}
    for own, labels, slots in zip(game.infosets, self.labels, self.slots, strict=True):
      begin = 0
      for infostate, label, count in zip(
        own.infostates, labels.tolist(), own.num_actions.tolist(), strict=True
      ):
        places, legal = slots[begin : begin + count], own.actions[begin : begin + count]
        if len(np.unique(places)) < count:
          raise errors.AbstractionError(
            f"At infostate {infostate!r} several actions are one; find such buckets again instead of keeping them."
          )
        content[infostate] = [label, legal[np.argsort(places)].tolist()]
        begin += count
    pathlib.Path(path).write_text(json.dumps(content))


@dataclasses.dataclass(frozen=True, eq=False)
class HandBuckets:
  """Which hands play alike in a poker game in vector form, and which boards. `hand_buckets` and `lossless` make them.

  Attributes:
    stands_for: int64 of shape (boards,): which board stands for each, by number; itself, unless boards are equal.
    labels: per player, for each board int64 of shape (hands,): the infoset that each hand has at the decisions of the
      board that stands for it, see `Board.classes`.
    is_lossless: see `Buckets`.
  """

  stands_for: Int64s
  labels: tuple[list[Int64s], list[Int64s]]
  is_lossless: bool = False

  def check_fit(self, game: CompiledGame) -> None:
    """Makes sure that these are buckets of a game.

    Raises:
      UnsupportedGameError: the game is not in vector form, or an abstraction itself.
      AbstractionError: they are of another game.
    """
    found = [[len(board) for board in own] for own in self.labels]
    boards = check_whole_public_game(game).layout.boards
    sizes = [[len(board.hands[player]) for board in boards] for player in PLAYERS]
    if found != sizes:
      raise errors.AbstractionError(f"The buckets are not of the boards and hands of {game}.")

  def only(self, game: CompiledGame, players: Iterable[int]) -> "HandBuckets":
    """Returns the same buckets for some players, while all hands of the other stay apart, on every board.

    Raises:
      ArgumentError: there is no such player.
    """
    chosen = _checked_players(game, players)
    labels = [
      [
        number_in_order(own if player in chosen else np.arange(len(own)))
        for own in self.labels[player]
      ]
      for player in PLAYERS
    ]
    boards = np.arange(len(self.stands_for))
    return HandBuckets(boards, (labels[0], labels[1]), self.is_lossless)


def check_whole_public_game(game: CompiledGame) -> PublicGame:
  """Returns a game that hands are told apart in.

  Raises:
    UnsupportedGameError: the game is not in vector form, or an abstraction itself.
  """
  if not isinstance(game, PublicGame) or game.original is not game:
    raise errors.UnsupportedGameError(f"{game} is not what compile_public_game returns.")
  return game


# What `make_buckets` takes.
AnyBuckets: TypeAlias = Buckets | HandBuckets | Labels | str | os.PathLike[str]


def _checked_players(game: CompiledGame, players: Iterable[int]) -> set[int]:
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


def shared_entries(infosets: Sequence[Infosets], buckets: Buckets) -> Int64s:
  """Returns `CompiledGame.shared_entries` of infosets in buckets."""
  result, begin = [np.zeros(0, np.int64)], 0
  for own, labels, slots in zip(infosets, buckets.labels, buckets.slots, strict=True):
    infoset = np.repeat(np.arange(len(labels)), own.num_actions)
    starts = np.cumsum(own.num_actions) - own.num_actions
    rank = np.empty_like(slots)
    rank[np.lexsort((slots, infoset))] = np.arange(len(slots)) - starts[infoset]
    _, first, bucket = np.unique(labels, return_index=True, return_inverse=True)
    # Buckets in order of discovery, each as long as its infosets.
    order = np.argsort(first)
    lengths = own.num_actions[first[order]]
    at = np.empty(len(order), np.int64)
    at[order] = begin + np.cumsum(lengths) - lengths
    result.append(at[bucket][infoset] + rank)
    begin += int(lengths.sum())
  return np.concatenate(result)


def make_buckets(
  game: CompiledGame,
  buckets: AnyBuckets,
  *,
  of_states: bool = False,
) -> Buckets:
  """Puts infosets into buckets.

  Args:
    game: the game.
    buckets: a function from infostate strings to names of buckets; a mapping from some infostates to such names, in
      which those left out stay by themselves; or what `Buckets.save` has written. A name is anything hashable, or a
      `Permuted`; players' names have nothing to do with each other.
    of_states: whether the function takes a state of OpenSpiel's, the first of each infoset, rather than a string.

  Raises:
    AbstractionError: infosets of a bucket have different actions, or a mapping names infosets that there are not.
    ArgumentError: it is none of these, or a name is not hashable.
    FileFormatError: the file is not one.
    OSError: the file can't be read.
  """
  if isinstance(buckets, HandBuckets):
    raise errors.ArgumentError("Buckets of hands are for abstract(game, buckets) alone.")
  if isinstance(buckets, Buckets):
    _check_fit(game, buckets)
    return buckets
  if isinstance(buckets, str | os.PathLike):
    buckets = _read(pathlib.Path(buckets))
  if isinstance(buckets, Mapping):
    known = {infostate for own in game.infosets for infostate in own.infostates}
    unknown = [infostate for infostate in buckets if infostate not in known]
    if unknown:
      raise errors.AbstractionError(f"The game has no infostate {unknown[0]!r}.")
    mapping = buckets

    def names(infostate: str) -> Hashable:
      # Apart from every name that somebody gives.
      return mapping[infostate] if infostate in mapping else Permuted((Permuted, infostate), ())

    find: Callable[[Any], Any] = names
  elif callable(buckets):
    find = buckets
  else:
    raise errors.ArgumentError(
      f"Buckets are a function, a mapping or a file, not {type(buckets).__name__}."
    )
  states = iter(game.first_states() if of_states else ())
  labels, slots = [], []
  for own in game.infosets:
    numbers: dict[Hashable, tuple[int, str, list[int]]] = {}
    own_labels, own_slots = [], _places(own.num_actions)
    begin = 0
    for infostate, count in zip(own.infostates, own.num_actions.tolist(), strict=True):
      legal = own.actions[begin : begin + count].tolist()
      found = find(next(states) if of_states else infostate)
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


def _read(path: pathlib.Path) -> dict[str, Hashable]:
  try:
    content = json.loads(path.read_bytes())
    return {
      infostate: Permuted(int(label), [int(action) for action in actions])
      for infostate, (label, actions) in content.items()
    }
  except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
    raise errors.FileFormatError(f"{path} does not hold buckets: {error}.") from error
