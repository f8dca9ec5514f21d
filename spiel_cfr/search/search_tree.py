"""The interface of a public tree, on which all of search is written.

At a public state each player has a list of private states. Arrays over them are

    ranges                  the probability that the player plays to each private state
    counterfactual values   payoffs times the probability that chance and the other player come there

Payoffs are those of the game less half of what the players' returns sum to, so that one player gets what the other one
loses. A policy is an array over *entries*, the actions of all infosets: `ListedTree` numbers them in the order of
OpenSpiel, the other trees have the sequences of the compiled game.
"""

import abc
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies.open_spiel import AnyPolicy, from_policy
from spiel_cfr.search.cut_outs import CutOut, Pair, Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.private_forest import NONE

# Private states this much less likely than the likeliest are left out: bounds are divided by their probability.
_UNLIKELY = 1e-12
# A margin may be below 0 by this part of the largest payoff: the error of linear programs.
TOLERANCE = 1e-9

# Pairs for some public states, by their numbers.
Pairs: TypeAlias = Mapping[int, Pair]


class PublicState:
  """All that is common knowledge at a point of the game.

  Attributes:
    tree: all public states of the game.
    number: its place in `tree`, parents first.
  """

  def __init__(self, tree: "SearchTree", number: int) -> None:
    """Looks at a public state of a tree.

    Raises:
      ArgumentError: there is no such one.
    """
    self.tree = tree
    self.number = arguments.integer(number, "number", 0, len(tree) - 1)

  @property
  def length(self) -> int:
    """The number of moves before it, chance's included."""
    return self.tree.length(self.number)

  @property
  def players(self) -> tuple[int, ...]:
    """The players who may be to move; chance is -1."""
    return self.tree.players(self.number)

  @property
  def parent(self) -> Self | None:
    """The public state before the last move; None of the first."""
    above = int(self.tree.above[self.number])
    return None if above == NONE else type(self)(self.tree, above)

  @functools.cached_property
  def children(self) -> tuple[Self, ...]:
    """The public states after one more move, in order."""
    below = (self.tree.above == self.number).nonzero()[0]
    return tuple(type(self)(self.tree, number) for number in below.tolist())

  def private_states(self, player: int) -> list[str]:
    """Returns a player's private states here, by their information state strings; empty where chance moves."""
    return self.tree.names(self.number, arguments.integer(player, "player", 0, 1))

  def states(self) -> Iterator[Any]:
    """Yields OpenSpiel's states of its histories.

    Raises:
      UnsupportedGameError: histories are not listed over vectors of hands.
    """
    yield from self.tree.as_forest().states(self.number)

  def reach(self, policy: AnyPolicy) -> Float64s:
    """Returns the probability of each history under a policy of both players, in the order of `states`.

    Raises:
      UnsupportedGameError: histories are not listed over vectors of hands.
    """
    first, second, chance = self.tree.as_forest().pairs(self.number)
    ranges = self.ranges(policy)
    return np.asarray(chance * ranges[0][first] * ranges[1][second])

  def ranges(self, policy: AnyPolicy) -> Pair:
    """Returns the probability that each player plays to each of its private states, as `Subgame` takes them."""
    return self.tree.blueprint(self.tree.entries(policy), 0).ranges(self.number)

  def beliefs(self, policy: AnyPolicy, player: int) -> dict[str, float]:
    """Returns how likely each private state of a player's is under a policy of both, given that play has come here.

    In poker, its range. NaN where the policy never comes here.
    """
    own, reach, _ = self._facts(policy, player)
    likely = own * reach
    return self._by_name(player, likely / (likely.sum() or np.nan))

  def private_values(self, policy: AnyPolicy, player: int) -> dict[str, float]:
    """Returns what a player expects under a policy of both at each of its private states, even if it avoids them.

    NaN where chance and the other player never let it happen.
    """
    _, reach, values = self._facts(policy, player)
    return self._by_name(player, self._half + values / np.where(reach > 0, reach, np.nan))

  def value(self, policy: AnyPolicy, player: int = 0) -> float:
    """Returns what a player expects under a policy, given that this public state is reached; NaN where it never is."""
    own, reach, values = self._facts(policy, player)
    return self._half + float(own @ values / (own @ reach or np.nan))

  @property
  def _half(self) -> float:
    return (self.tree.game.constant_sum or 0.0) / 2

  def _facts(self, policy: AnyPolicy, player: int) -> tuple[Float64s, Float64s, Float64s]:
    """Returns a player's range, its probability by chance and the other player, and its counterfactual values."""
    arguments.integer(player, "player", 0, 1)
    blueprint = self.tree.blueprint(self.tree.entries(policy), 1 - player).expected(player)
    ranges = blueprint.ranges(self.number)
    reach = self.tree.counterfactual_reach(self.number, player, ranges[1 - player])
    return ranges[player], reach, blueprint.values(self.number)

  def _by_name(self, player: int, numbers: Float64s) -> dict[str, float]:
    names = self.private_states(player)
    return dict(zip(names, numbers[: len(names)].tolist(), strict=True))

  def __eq__(self, other: object) -> bool:
    return (
      isinstance(other, PublicState) and other.tree is self.tree and other.number == self.number
    )

  def __hash__(self) -> int:
    return hash(self.number)

  def __repr__(self) -> str:
    return f"<PublicState {self.number}: {self.tree.described(self.number)}>"


class Blueprint(abc.ABC):
  """A policy of both players before a search step: ranges, and the opponent's values of a best response.

  Attributes:
    tree: the public states.
    entries: float64 (entries,). The policy.
    searcher: the player who is going to be solved again.
  """

  tree: "SearchTree"
  entries: Float64s
  searcher: int

  @abc.abstractmethod
  def expected(self, player: int) -> Self:
    """Returns the same policy with the values of a player that plays the policy too, as opponent of the searcher."""

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
    reach = self.tree.counterfactual_reach(
      number, 1 - self.searcher, self.ranges(number)[self.searcher]
    )
    means = np.divide(self.values(number), reach, out=np.zeros(len(reach)), where=reach > 0)
    # Sums that are rounded, divided by a tiny probability, can be anything.
    return np.asarray(np.clip(means, -self.tree.largest_payoff, self.tree.largest_payoff))

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
    return (start.bound - self.expectations(start.number))[start.w > 0]


class SearchTree(Sequence[PublicState]):
  """All public states of a game, parents first.

  Attributes:
    game: the compiled game.
    above: int64 (public states,). The public state before the last move, `NONE` of the first.
    largest_payoff: the largest absolute payoff.
    picks: whether the opponent can pick its private state in front of a subgame.
    trades_margins: whether a step may keep negative margins if the opponent gets less of the whole game with them.
  """

  game: CompiledGame
  above: Int64s
  largest_payoff: float
  picks: ClassVar[bool] = False
  trades_margins: ClassVar[bool] = True

  def __len__(self) -> int:
    return len(self.above)

  def __getitem__(self, number: Any) -> Any:
    if isinstance(number, slice):
      return [PublicState(self, each) for each in range(len(self))[number]]
    return PublicState(self, range(len(self))[number])

  @abc.abstractmethod
  def length(self, number: int) -> int:
    """Returns the number of moves before a public state."""

  @abc.abstractmethod
  def players(self, number: int) -> tuple[int, ...]:
    """Returns the players who may be to move at a public state."""

  @abc.abstractmethod
  def names(self, number: int, player: int) -> list[str]:
    """Returns a player's private states at a public state, by their information state strings."""

  @abc.abstractmethod
  def as_forest(self) -> Any:
    """Returns the tree, which is a `ForestTree`; raises UnsupportedGameError over vectors of hands."""

  def check_search(self, solver: str | None, *, has_cut: bool, has_checkpoint: bool) -> None:
    """Raises ArgumentError if the form refuses arguments of `resolve`."""

  @abc.abstractmethod
  def described(self, number: int) -> str:
    """Returns a public state in words."""

  @abc.abstractmethod
  def natural_cut(self) -> list[PublicState]:
    """Returns where play first goes on after chance has moved again, or else after both have moved."""

  @abc.abstractmethod
  def deciding(self, player: int) -> Int64s:
    """Returns the numbers of the public states where a player may be to move."""

  def entries(self, policy: AnyPolicy) -> Float64s:
    """Returns a policy as the array of probabilities of actions that search changes, shape (entries,).

    Raises:
      PolicyError: the policy is not one for this game.
    """
    return from_policy(self.game, policy)

  def behavioral_form(self, entries: Float64s) -> Float64s:
    """Returns entries in behavioural form."""
    return entries

  @abc.abstractmethod
  def owned(self, player: int) -> Bools:
    """Returns which entries are a player's, shape (entries,)."""

  def uniform(self) -> Float64s:
    """Returns the uniform policy, shape (entries,)."""
    counts = self.per_infoset(np.ones(len(self.owned(0))), np.add)
    return np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)

  @abc.abstractmethod
  def per_infoset(self, numbers: Float64s, reduce: np.ufunc) -> Float64s:
    """Returns numbers of shape (entries,), reduced over the actions of each infoset and given to each of them."""

  @abc.abstractmethod
  def num_private_states(self, number: int) -> tuple[int, int]:
    """Returns how many private states each player has at a public state."""

  @abc.abstractmethod
  def counterfactual_reach(self, number: int, player: int, weights: Float64s) -> Float64s:
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
  def cut_out(self, starts: Sequence[Start], gadget: Gadget, *, program: bool = False) -> CutOut:
    """Returns subgames, none of which follows another, as one game; `program` if a linear program is to solve it."""

  def normalized(self, sums: Float64s, otherwise: Float64s) -> Float64s:
    """Returns sums of shape (entries,) as probabilities at each infoset; `otherwise` where all of an infoset are 0."""
    totals = self.per_infoset(sums, np.add)
    return np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), otherwise)

  def decisions(self, player: int) -> list[list[PublicState]]:
    """Returns the public states where a player may be to move, by the number of moves before."""
    levels: dict[int, list[PublicState]] = {}
    for number in self.deciding(arguments.integer(player, "player", 0, 1)).tolist():
      levels.setdefault(self.length(number), []).append(self[number])
    return [levels[length] for length in sorted(levels)]

  def first_of(self, marked: Bools) -> list[PublicState]:
    """Returns the first public state on each path that is marked, shape (public states,)."""
    passed: set[int] = set()
    result = []
    for number, (above, is_marked) in enumerate(
      zip(self.above.tolist(), marked.tolist(), strict=True)
    ):
      if above in passed or is_marked:
        passed.add(number)
      if is_marked and above not in passed:
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
    w = self.counterfactual_reach(number, 1 - searcher, own)
    reach = w * theirs
    kept = reach > _UNLIKELY * reach.max()
    if not kept.any():
      return None
    total = reach[kept].sum()
    weights = _facing((own / total, np.where(kept, theirs, 0.0)), searcher)
    w = np.where(kept, w / total, 0.0)
    return Start(number, searcher, weights, w, ranges[1 - searcher], bound)

  def batches(self, starts: Iterable[Start], *, alone: bool) -> Iterator[list[Start]]:
    """Yields subgames that are solved as one game; each `alone` for linear programs."""
    for start in starts:
      yield [start]

  def is_harmful(self, start: Start, margins: Float64s) -> bool:
    """Returns whether margins are too negative for the new strategy to be kept."""
    return bool(margins.min() < -TOLERANCE * self.largest_payoff)


def _facing(pair: Pair, searcher: int) -> Pair:
  """Returns a pair with the searcher's array first; or back."""
  return pair if searcher == 0 else pair[::-1]
