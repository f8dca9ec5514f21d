"""What public states have in common, whether their histories are listed or they are nodes of a public tree."""

import abc
import functools
from collections.abc import Sequence
from typing import Any, Generic, Self, TypeVar

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import open_spiel
from spiel_cfr.search.history_walk import NONE


class AnyPublicState(abc.ABC):
  """What everybody knows of where they are.

  Attributes:
    tree: all public states of the game.
    number: its place in `tree`, parents first.
  """

  tree: Any

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
  def place(self) -> Any:
    """What an `AnyStanding` calls it."""

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


class AnyPublicTree(Sequence[State], Generic[State]):
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
  def entries(self, policy: open_spiel.AnyPolicy) -> Float64s:
    """Returns a policy in the form in which search carries it.

    Raises:
      PolicyError: the policy is not one for this game.
    """

  @abc.abstractmethod
  def behavioral_form(self, entries: Float64s) -> Float64s:
    """Returns what `entries` returns as behavioural form, shape (sequences,)."""

  @abc.abstractmethod
  def owned(self, player: int) -> Bools:
    """Returns which of the entries are a player's."""

  @abc.abstractmethod
  def deciding(self, player: int) -> Int64s:
    """Returns the numbers of the public states where a player may be to move."""

  @abc.abstractmethod
  def natural_cut(self) -> list[State]:
    """Returns the public states where play first goes on after chance has moved again, or else after both have moved.

    That is where the public card of Leduc poker has been dealt, and where liar's dice has two bids.
    """

  def decisions(self, player: int) -> list[list[State]]:
    """Returns where a player may be to move, by the number of moves before."""
    arguments.integer(player, "player", 0, 1)
    levels: dict[int, list[State]] = {}
    for number in self.deciding(player).tolist():
      state = self[number]
      levels.setdefault(state.length, []).append(state)
    return [levels[length] for length in sorted(levels)]

  def below(self, states: Sequence[State]) -> set[int]:
    """Returns the numbers of some public states and of all that follow them."""
    result = {state.number for state in states}
    for number, above in enumerate(self.above.tolist()):
      if above in result:
        result.add(number)
    return result

  def first_of(self, marked: Bools) -> list[State]:
    """Returns the first public state on each path that is marked, shape (public states,)."""
    passed: set[int] = set()
    result = []
    for number, (above, here) in enumerate(zip(self.above.tolist(), marked.tolist(), strict=True)):
      if above in passed:
        passed.add(number)
      elif here:
        passed.add(number)
        result.append(self[number])
    return result
