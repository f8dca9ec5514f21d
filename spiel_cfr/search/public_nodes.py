"""What public states have in common, whether their histories are listed or they are nodes of a public tree."""

import abc
import functools
from collections.abc import Sequence
from typing import Any, Self, TypeVar

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies.open_spiel import AnyPolicy
from spiel_cfr.search.history_walk import NONE


class AnyPublicState(abc.ABC):
  """What everybody knows of where they are.

  Attributes:
    tree: all public states of the game.
    number: its place in `tree`, parents first.
  """

  tree: "AnyPublicTree[Any]"

  def __init__(self, tree: Any, number: int) -> None:
    """Looks at a public state of a tree.

    Raises:
      ArgumentError: there is no such one.
    """
    self.tree = tree
    self.number = arguments.integer(number, "number", 0, len(tree) - 1)

  @property
  @abc.abstractmethod
  def length(self) -> int:
    """How many moves there were, chance's included."""

  @property
  @abc.abstractmethod
  def players(self) -> tuple[int, ...]:
    """Who may be to move; chance is -1."""

  @property
  @abc.abstractmethod
  def place(self) -> Any:
    """Where it is, as standings take it."""

  @abc.abstractmethod
  def private_states(self, player: int) -> list[str]:
    """Returns what a player may know here: its information state strings; empty where nobody decides."""

  @property
  def parent(self) -> Self | None:
    """The public state before the last move; None of the first."""
    above = int(self.tree.above[self.number])
    return None if above == NONE else self.tree[above]

  @functools.cached_property
  def children(self) -> tuple[Self, ...]:
    """What it can become by one move, in order."""
    below = (self.tree.above == self.number).nonzero()[0]
    return tuple(self.tree[number] for number in below.tolist())

  def __eq__(self, other: object) -> bool:
    return (
      isinstance(other, AnyPublicState) and other.tree is self.tree and other.number == self.number
    )

  def __hash__(self) -> int:
    return hash(self.number)


State = TypeVar("State", bound=AnyPublicState)


class AnyPublicTree(Sequence[State]):
  """All public states of a game, parents first.

  Attributes:
    game: the compiled game.
    above: int64 (public states,), the one before the last move, `NONE` of the first.
  """

  game: CompiledGame
  above: Int64s
  _kind: type[State]

  def __len__(self) -> int:
    return len(self.above)

  def __getitem__(self, number: Any) -> Any:
    if isinstance(number, slice):
      return [self._kind(self, each) for each in range(len(self))[number]]
    return self._kind(self, range(len(self))[number])

  @abc.abstractmethod
  def public_state_of(self, state: Any) -> State:
    """Returns the public state of one of OpenSpiel's states."""

  @abc.abstractmethod
  def natural_cut(self) -> list[State]:
    """Returns where play first goes on after chance has moved again, or else after both have moved."""

  @abc.abstractmethod
  def entries(self, policy: AnyPolicy) -> Float64s:
    """Returns a policy as the numbers that search changes."""

  @abc.abstractmethod
  def behavioral_form(self, entries: Float64s) -> Float64s:
    """Returns these in behavioural form."""

  @abc.abstractmethod
  def owned(self, player: int) -> Bools:
    """Returns which of these are a player's."""

  @abc.abstractmethod
  def standing(self, entries: Float64s, searcher: int) -> Any:
    """Returns where both players stand when they play these, before one of them searches."""

  @abc.abstractmethod
  def _deciding(self, player: int) -> Int64s:
    """Returns the numbers of the public states where a player may be to move."""

  def decisions(self, player: int) -> list[list[State]]:
    """Returns where a player may be to move, by the number of moves before."""
    levels: dict[int, list[State]] = {}
    for number in self._deciding(arguments.integer(player, "player", 0, 1)).tolist():
      state = self[number]
      levels.setdefault(state.length, []).append(state)
    return [levels[length] for length in sorted(levels)]

  def first_of(self, marked: Bools) -> list[State]:
    """Returns the first public state on each path that is marked, shape (public states,)."""
    passed: set[int] = set()
    result = []
    for number, (above, here) in enumerate(zip(self.above.tolist(), marked.tolist(), strict=True)):
      if above in passed or here:
        passed.add(number)
      if here and above not in passed:
        result.append(self[number])
    return result
