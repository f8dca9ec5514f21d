"""The interface of a public tree, on which all of search is written.

At a public state each player has a list of private states. Arrays over them are

    ranges                  the probability that the player plays to each private state
    counterfactual values   payoffs times the probability that chance and the other player come there

Three trees implement the interface: `listed_states`, where the pairs of private states are sparse, `vector_states`, and
`rivers` for hands of cards, where they are all pairs. Payoffs are those of the game
less half of what the players' returns sum to, so that what one player gets the other one loses.
"""

import abc
import copy
import dataclasses
import functools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms
from spiel_cfr.policies.open_spiel import AnyPolicy, from_policy
from spiel_cfr.search.cut_outs import CutOut
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_walk import NONE

# Private states this much less likely than the likeliest are left out: bounds are divided by their probability.
_UNLIKELY = 1e-12
# A margin may be below 0 by this part of the largest payoff: the error of linear programs.
TOLERANCE = 1e-9

# An array over the private states of each player, or one over those of all public states.
Pair: TypeAlias = tuple[Float64s, Float64s]
# Pairs for some public states, by their numbers.
Pairs: TypeAlias = Mapping[int, Pair]


class AnyPublicState(abc.ABC):
  """All that is common knowledge at a point of the game.

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
    """The number of moves before it, chance's included."""

  @property
  @abc.abstractmethod
  def players(self) -> tuple[int, ...]:
    """The players who may be to move; chance is -1."""

  @abc.abstractmethod
  def private_states(self, player: int) -> list[str]:
    """Returns a player's private states here, by their information state strings; empty where chance moves."""

  @property
  def parent(self) -> Self | None:
    """The public state before the last move; None of the first."""
    above = int(self.tree.above[self.number])
    return None if above == NONE else self.tree[above]

  @functools.cached_property
  def children(self) -> tuple[Self, ...]:
    """The public states after one more move, in order."""
    below = (self.tree.above == self.number).nonzero()[0]
    return tuple(self.tree[number] for number in below.tolist())

  def __eq__(self, other: object) -> bool:
    return (
      isinstance(other, AnyPublicState) and other.tree is self.tree and other.number == self.number
    )

  def __hash__(self) -> int:
    return hash(self.number)


State = TypeVar("State", bound=AnyPublicState)


@dataclasses.dataclass(frozen=True)
class Start:
  """The beginning of a subgame, which the searcher solves again.

  J numbers the opponent's private states; w and r are those of `gadgets`.

  Attributes:
    number: the public state.
    searcher: the player who is solved again.
    weights: by player, float64 (private states,). A pair of private states has the probability of chance times both
      weights, which sums to 1 over all pairs.
    mass: float64 (J,). w of each J; 0 of those that are left out.
    dealt: float64 (J,). w r of each J.
    bound: float64 (J,). The most that the opponent may expect at each J.
  """

  number: int
  searcher: int
  weights: Pair
  mass: Float64s
  dealt: Float64s
  bound: Float64s

  @property
  def mixture(self) -> Float64s:
    """The probability that the blueprint's opponent is at each J; by w alone where it never comes."""
    weights = self.dealt if self.dealt.sum() > 0 else self.mass
    result: Float64s = weights / weights.sum()
    return result


class Blueprint(abc.ABC):
  """A policy of both players before a search step: ranges, and the opponent's values of a best response.

  Attributes:
    tree: the public states.
    entries: float64 (entries,). The policy.
    searcher: the player who is going to be solved again.
    responds: whether values are those of a best response; if not, the opponent plays the policy.
    leaves: by public state, the opponent's counterfactual values, float64 (J,), in place of what follows there.
  """

  tree: "AnyPublicTree[Any]"
  entries: Float64s
  searcher: int
  responds: bool = True
  leaves: Mapping[int, Float64s] = types.MappingProxyType({})

  def expected(self, player: int, leaves: Mapping[int, Float64s]) -> Self:
    """Returns the same policy with a player's values when it plays the policy, and values at some public states."""
    result = copy.copy(self)
    # Of what is computed once, only ranges stay.
    for name in ("others", "worth"):
      result.__dict__.pop(name, None)
    result.searcher, result.responds, result.leaves = 1 - player, False, leaves
    return result

  @property
  @abc.abstractmethod
  def opponent_gets(self) -> float:
    """The opponent's value in the whole game."""

  @abc.abstractmethod
  def action_values(self) -> Float64s:
    """Returns the opponent's counterfactual values of its actions, 0 of the searcher's; shape (entries,)."""

  @abc.abstractmethod
  def playing(self, entries: Float64s, *, answered: bool = False) -> Self:
    """Returns the blueprint of another policy; `answered` if it has an answer to all of the opponent's actions."""

  @abc.abstractmethod
  def ranges(self, number: int) -> Pair:
    """Returns both players' ranges at a public state."""

  @abc.abstractmethod
  def values(self, number: int) -> Float64s:
    """Returns the opponent's counterfactual values at a public state, shape (J,)."""

  @abc.abstractmethod
  def gifts(self, number: int) -> Float64s:
    """Returns g: what the opponent has given away on the way to each J, per unit of w; shape (J,)."""

  def is_open(self, number: int) -> bool:
    """Returns whether an action of the opponent's below or above a public state has no answer in the policy."""
    return False

  def expectations(self, number: int) -> Float64s:
    """Returns v: the opponent's expected payoff at each J, 0 where w is; shape (J,)."""
    mass = self.tree.chance_mass(number, 1 - self.searcher, self.ranges(number)[self.searcher])
    return np.divide(self.values(number), mass, out=np.zeros(len(mass)), where=mass > 0)

  def start(self, number: int, gadget: Gadget) -> Start | None:
    """Returns the beginning of the subgame at a public state; None if it has probability 0."""
    ranges = self.ranges(number)
    bound = np.zeros(len(ranges[1 - self.searcher]))
    if gadget.is_safe:
      bound += self.expectations(number)
    if gadget.reach:
      bound += self.gifts(number)
    return self.tree.start(number, ranges, self.searcher, gadget, bound)

  def margins(self, start: Start) -> Float64s:
    """Returns bounds less what the opponent expects, at each J with w above 0."""
    return (start.bound - self.expectations(start.number))[start.mass > 0]


class AnyPublicTree(Sequence[State]):
  """All public states of a game, parents first.

  Attributes:
    game: the compiled game.
    above: int64 (public states,). The public state before the last move, `NONE` of the first.
    largest_payoff: the largest absolute payoff.
    picks: whether the opponent can pick its private state in front of a subgame.
    jointly: whether a step may keep negative margins if the opponent gets less of the whole game with them.
  """

  game: CompiledGame
  above: Int64s
  largest_payoff: float
  picks: ClassVar[bool] = False
  jointly: ClassVar[bool] = True
  _kind: type[State]

  def __len__(self) -> int:
    return len(self.above)

  def __getitem__(self, number: Any) -> Any:
    if isinstance(number, slice):
      return [self._kind(self, each) for each in range(len(self))[number]]
    return self._kind(self, range(len(self))[number])

  @abc.abstractmethod
  def natural_cut(self) -> list[State]:
    """Returns where play first goes on after chance has moved again, or else after both have moved."""

  @abc.abstractmethod
  def entries(self, policy: AnyPolicy) -> Float64s:
    """Returns a policy as the array of probabilities of actions that search changes, shape (entries,)."""

  @abc.abstractmethod
  def behavioral_form(self, entries: Float64s) -> Float64s:
    """Returns entries in behavioural form."""

  @abc.abstractmethod
  def owned(self, player: int) -> Bools:
    """Returns which entries are a player's, shape (entries,)."""

  @abc.abstractmethod
  def _deciding(self, player: int) -> Int64s:
    """Returns the numbers of the public states where a player may be to move."""

  @abc.abstractmethod
  def num_private_states(self, number: int) -> tuple[int, int]:
    """Returns how many private states each player has at a public state."""

  @abc.abstractmethod
  def chance_mass(self, number: int, player: int, weights: Float64s) -> Float64s:
    """Returns, for a player's private states, chance's probability times weights of the other player's, summed."""

  @abc.abstractmethod
  def blueprint(self, entries: Float64s, searcher: int, begins: Pairs | None = None) -> Blueprint:
    """Returns a policy with its best response values.

    Args:
      entries: the policy of both players, shape (entries,).
      searcher: the player who is going to be solved again.
      begins: ranges with which play comes to some public states, in place of the policy's.
    """

  @abc.abstractmethod
  def uniform(self) -> Float64s:
    """Returns the uniform policy, shape (entries,)."""

  @abc.abstractmethod
  def normalized(self, sums: Float64s, otherwise: Float64s) -> Float64s:
    """Returns sums of shape (entries,) as probabilities at each infoset; `otherwise` where all of an infoset are 0."""

  @abc.abstractmethod
  def sequence_form(self, entries: Float64s, begins: Pairs | None = None) -> Float64s:
    """Returns the probability that its owner plays to each entry, shape (entries,); `begins` as of `blueprint`."""

  @abc.abstractmethod
  def per_infoset(self, numbers: Float64s, reduce: np.ufunc) -> Float64s:
    """Returns numbers of shape (entries,), reduced over the actions of each infoset and given to each of them."""

  @abc.abstractmethod
  def cut_out(self, starts: Sequence[Start], gadget: Gadget, *, program: bool = False) -> CutOut:
    """Returns subgames, none of which follows another, as one game; `program` if a linear program is to solve it."""

  def decisions(self, player: int) -> list[list[State]]:
    """Returns the public states where a player may be to move, by the number of moves before."""
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

  def start(
    self, number: int, ranges: Pair, searcher: int, gadget: Gadget, bound: Float64s
  ) -> Start | None:
    """Returns the beginning of a subgame from ranges; None if it has probability 0."""
    own, other = (
      np.where(each > _UNLIKELY * each.max(), each, 0.0) for each in _facing(ranges, searcher)
    )
    theirs = np.ones_like(other) if gadget.is_safe else other
    mass = self.chance_mass(number, 1 - searcher, own) * theirs
    kept = mass > _UNLIKELY * mass.max()
    if not kept.any():
      return None
    total = mass[kept].sum()
    mass = np.where(kept, mass / total, 0.0)
    weights = _facing((own / total, np.where(kept, theirs, 0.0)), searcher)
    return Start(number, searcher, weights, mass, mass * ranges[1 - searcher], bound)

  def batches(self, starts: Iterable[Start], *, alone: bool) -> Iterator[list[Start]]:
    """Yields subgames that are solved as one game; each `alone` for linear programs."""
    for start in starts:
      yield [start]

  def is_harmful(self, start: Start, margins: Float64s) -> bool:
    """Returns whether margins are too negative for the new strategy to be kept."""
    return bool(margins.min() < -TOLERANCE * self.largest_payoff)


class BehavioralTree(AnyPublicTree[State]):
  """Public states of a game whose entries are sequences, and whose policies are in behavioural form."""

  def entries(self, policy: AnyPolicy) -> Float64s:
    """Returns a policy in behavioural form.

    Raises:
      PolicyError: the policy is not one for this game.
    """
    return from_policy(self.game, policy)

  def behavioral_form(self, entries: Float64s) -> Float64s:
    return entries

  def owned(self, player: int) -> Bools:
    second = np.arange(self.game.end) >= self.game.treeplexes[1].root
    return np.asarray(second == arguments.integer(player, "player", 0, 1))

  def uniform(self) -> Float64s:
    return np.asarray(forms.uniform(self.game))

  def normalized(self, sums: Float64s, otherwise: Float64s) -> Float64s:
    return forms.behavioral_form(self.game, sums, otherwise)

  def per_infoset(self, numbers: Float64s, reduce: np.ufunc) -> Float64s:
    result = np.zeros_like(numbers)
    for tree in self.game.treeplexes:
      for sequences, _ in tree.infoset_groups():
        result[sequences] = reduce.reduce(numbers[sequences], axis=0)
    return result


def _facing(pair: Pair, searcher: int) -> Pair:
  """Returns a pair with the searcher's array first; or back."""
  return pair if searcher == 0 else pair[::-1]
