"""Public trees: the interface that all of search uses, independent of the form of the game.

`SearchTree` lists the public states of a game: all of them, or the rivers of hold'em. `PublicState` is a view of one of
them. A tree makes two other objects: an `EvaluatedPolicy`, with the ranges of a policy and the opponent's values, and a
`GadgetGameBuilder`, which makes games of subgames. At a public state, each player has a list of private states, and two
arrays over it:

    ranges                  the probability that the player plays to each private state
    counterfactual values   expected payoffs, times the probability that chance and the other player lead there

One player is the *searcher*, whose strategy may be re-solved, and the other is the *opponent*. J is an index of the
opponent's private states at a public state.

Payoffs are those of the game, less half of the constant to which returns sum. One player's payoff is thus the other
player's loss. A policy is an array over *slots*. Each action of an infoset has a slot. In a `ListedTree`, slots are the
entries of its histories: actions in OpenSpiel's order. In the other trees, slots are the sequences of the compiled
game, so the slots of empty sequences and of padding have no action.
"""

import abc
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.policies import forms
from spiel_cfr.policies.open_spiel import AnyPolicy, from_policy
from spiel_cfr.search.gadget_games import GadgetGameBuilder, PerPlayer, SubgameStart

# Margins may be negative by this fraction of the largest payoff, because solutions of linear programs have errors.
TOLERANCE = 1e-9

# By the index of a public state: both players' ranges there.
RangesByState: TypeAlias = Mapping[int, PerPlayer]


class PublicState:
  """A public state: a set of histories. Both players know that the history of the play is in the set.

  Attributes:
    tree: `SearchTree`. All public states of the game.
    index: int. The index of the public state in `tree`. Parents have smaller indices than their children.
  """

  def __init__(self, tree: "SearchTree", index: int) -> None:
    """Takes the attributes with these names.

    Raises:
      ArgumentError: the tree has no public state with this index.
    """
    self.tree = tree
    self.index = arguments.integer(index, "index", 0, len(tree) - 1)

  @property
  def depth(self) -> int:
    """The number of moves before the public state, chance's included."""
    return self.tree.depth(self.index)

  @property
  def players(self) -> tuple[int, ...]:
    """The players who may be to move; chance is -1."""
    return self.tree.players(self.index)

  @property
  def parent(self) -> Self | None:
    """The public state before the last move; None at the root."""
    above = int(self.tree.above[self.index])
    return None if above == NONE else type(self)(self.tree, above)

  @functools.cached_property
  def children(self) -> tuple[Self, ...]:
    """The public states after one more move, in order."""
    below = (self.tree.above == self.index).nonzero()[0]
    return tuple(type(self)(self.tree, index) for index in below.tolist())

  def private_states(self, player: int) -> list[str]:
    """Returns the information state strings of a player's private states; an empty list where chance moves."""
    return self.tree.names(self.index, arguments.integer(player, "player", 0, 1))

  @property
  def num_private_states(self) -> tuple[int, int]:
    """The number of each player's private states: the lengths of ranges, also where chance moves."""
    return self.tree.num_private_states(self.index)

  def states(self) -> Iterator[Any]:
    """Yields OpenSpiel's states of the histories in the public state."""
    yield from self.tree.states(self.index)

  def reach(self, policy: AnyPolicy) -> Float64s:
    """Returns the probability of each history under a policy of both players, in the order of `states`."""
    first, second, chance = self.tree.pairs(self.index)
    ranges = self.ranges(policy)
    return np.asarray(chance * ranges[0][first] * ranges[1][second])

  def ranges(self, policy: AnyPolicy) -> PerPlayer:
    """Returns the probability that each player plays to each of its private states: the ranges of a `Subgame`."""
    return self.tree.evaluated_for(policy, 0).ranges(self.index)

  def beliefs(self, policy: AnyPolicy, player: int) -> dict[str, float]:
    """Returns the probability of each private state of a player under a policy of both, given this public state.

    In poker, this is the player's range of hands. NaN if the policy never reaches the public state.
    """
    range_, reach, _ = self._range_reach_values(policy, player)
    probabilities = range_ * reach
    return self._by_name(player, probabilities / (probabilities.sum() or np.nan))

  def private_values(self, policy: AnyPolicy, player: int) -> dict[str, float]:
    """Returns a player's expected payoff at each of its private states, under a policy of both players.

    The value is defined even if the player itself never plays to the private state. NaN if chance and the other player
    never lead there.
    """
    _, reach, values = self._range_reach_values(policy, player)
    payoffs = self._half_of_sum + values / np.where(reach > 0, reach, np.nan)
    return self._by_name(player, payoffs)

  def value(self, policy: AnyPolicy, player: int = 0) -> float:
    """Returns a player's expected payoff under a policy, given this public state.

    NaN if the policy never reaches the public state.
    """
    range_, reach, values = self._range_reach_values(policy, player)
    return self._half_of_sum + float(range_ @ values / (range_ @ reach or np.nan))

  @property
  def _half_of_sum(self) -> float:
    """Half of the constant to which returns sum, which counterfactual values leave out."""
    return (self.tree.game.constant_sum or 0.0) / 2

  def _range_reach_values(
    self, policy: AnyPolicy, player: int
  ) -> tuple[Float64s, Float64s, Float64s]:
    """Returns a player's range, counterfactual reach probabilities and counterfactual values at the public state."""
    evaluated = self.tree.evaluated_for(policy, arguments.integer(player, "player", 0, 1))
    ranges = evaluated.ranges(self.index)
    reach = self.tree.counterfactual_reach(self.index, player, ranges[1 - player])
    return ranges[player], reach, evaluated.opponent_values(self.index)

  def _by_name(self, player: int, numbers: Float64s) -> dict[str, float]:
    names = self.private_states(player)
    return dict(zip(names, numbers[: len(names)].tolist(), strict=True))

  def __eq__(self, other: object) -> bool:
    return isinstance(other, PublicState) and other.tree is self.tree and other.index == self.index

  def __hash__(self) -> int:
    return hash(self.index)

  def __repr__(self) -> str:
    counts = " x ".join(map(str, self.num_private_states))
    history = next(self.states()).history_str()
    return f"<PublicState {self.index}: histories such as [{history}], {counts} private states>"


class EvaluatedPolicy(abc.ABC):
  """A policy of both players, with its ranges and the opponent's values against the searcher's part of the policy.

  Attributes:
    tree: `SearchTree`. The public states.
    policy: float64 (slots,). The policy.
    searcher: int. The player whose strategy the opponent faces.
    responds: bool. True if the values are those of the opponent's best response to the policy, False if they are those
      of the opponent's part of the policy.
    given_ranges: dict or None. By the index of a public state, ranges that replace those of the policy.
  """

  tree: "SearchTree"
  policy: Float64s
  searcher: int
  responds: bool
  given_ranges: RangesByState | None

  @functools.cached_property
  def opponent_value(self) -> float:
    """The opponent's value of the whole game; with given ranges, the sum of its values where ranges are given."""
    if self.given_ranges:
      return float(sum(self.opponent_values(index).sum() for index in self.given_ranges))
    return self._value_of_game()

  @abc.abstractmethod
  def _value_of_game(self) -> float:
    """Returns the opponent's value of the whole game by the ranges of the policy."""

  @abc.abstractmethod
  def opponent_action_values(self) -> Float64s:
    """Returns the opponent's counterfactual values of its actions, 0 at the searcher's; shape (slots,).

    With given ranges, values are defined only at and below the public states that have them.
    """

  @abc.abstractmethod
  def with_policy(self, policy: Float64s, *, answers_all: bool = False) -> Self:
    """Returns another policy, evaluated in the same way.

    Args:
      policy: float64 (slots,). The other policy.
      answers_all: True if it has an answer to all actions of the opponent. False if its unanswered actions are those of
        this policy.
    """

  @abc.abstractmethod
  def ranges(self, index: int) -> PerPlayer:
    """Returns both players' ranges at a public state, given its index."""

  @abc.abstractmethod
  def opponent_values(self, index: int) -> Float64s:
    """Returns the opponent's counterfactual value of each J at a public state, given its index; shape (J,)."""

  def gifts(self, index: int) -> Float64s:
    """Returns the expected payoff that the opponent has lost on its way to each J, its gift g(J); shape (J,).

    0 where a form of game does not compute gifts.
    """
    return np.zeros(self.tree.num_private_states(index)[1 - self.searcher])

  def has_unanswered(self, index: int) -> bool:
    """Returns True if the policy has no answer to an action of the opponent above or below a public state."""
    return False

  def expected_payoffs(self, index: int) -> Float64s:
    """Returns the opponent's expected payoff at each J, 0 where chance and the searcher never lead; shape (J,)."""
    reach = self.tree.counterfactual_reach(
      index, 1 - self.searcher, self.ranges(index)[self.searcher]
    )
    values = self.opponent_values(index)
    payoffs = np.divide(values, reach, out=np.zeros(len(reach)), where=reach > 0)
    # A rounded value, divided by a tiny probability, can be far outside the payoffs of the game.
    return np.asarray(np.clip(payoffs, -self.tree.largest_payoff, self.tree.largest_payoff))

  def margins(self, start: SubgameStart) -> Float64s:
    """Returns the margin at each J of a subgame with w above 0: the bound minus the expected payoff."""
    return (start.bound - self.expected_payoffs(start.index))[start.w > 0]

  def is_harmful(self, start: SubgameStart, margins: Float64s) -> bool:
    """Returns True if the margins at a public state are too negative for its strategy to stay."""
    return bool(margins.min() < -TOLERANCE * self.tree.largest_payoff)


class SearchTree(Sequence[PublicState]):
  """The public states of a game, parents first; `public_states` makes a tree.

  Attributes:
    game: the compiled game.
    above: int64 (public states,). The index of the public state before the last move; `NONE` at the root.
    default_solver: str. The default solver of subgames, "lp" or a name in `catalogue.SOLVERS`.
  """

  game: CompiledGame
  above: Int64s
  default_solver: ClassVar[str] = "dcfr"

  def __init__(self) -> None:
    """Begins without evaluated policies."""
    # By player: the latest result of `evaluated_for`.
    self._latest_evaluated = dict[int, EvaluatedPolicy]()

  @functools.cached_property
  def largest_payoff(self) -> float:
    """The largest absolute payoff, less half of the constant to which returns sum."""
    middle = (self.game.constant_sum or 0.0) / 2
    return max(abs(payoff - middle) for payoff in self.game.payoff_range)

  def __len__(self) -> int:
    return len(self.above)

  def __getitem__(self, index: Any) -> Any:
    if isinstance(index, slice):
      return [PublicState(self, each) for each in range(len(self))[index]]
    return PublicState(self, range(len(self))[index])

  @abc.abstractmethod
  def depth(self, index: int) -> int:
    """Returns the number of moves before a public state, given its index."""

  @abc.abstractmethod
  def players(self, index: int) -> tuple[int, ...]:
    """Returns the players who may be to move at a public state."""

  @abc.abstractmethod
  def names(self, index: int, player: int) -> list[str]:
    """Returns the information state strings of a player's private states at a public state."""

  @abc.abstractmethod
  def states(self, index: int) -> Iterable[Any]:
    """Returns OpenSpiel's states of the histories in a public state."""

  @abc.abstractmethod
  def pairs(self, index: int) -> tuple[Int64s, Int64s, Float64s]:
    """Returns three arrays over the histories of a public state, in the order of `states`.

    They contain the position of player 0's private state, that of player 1's private state, and chance's probability.
    """

  @abc.abstractmethod
  def public_state_of(self, state: Any) -> PublicState:
    """Returns the public state of a state of OpenSpiel; raises ArgumentError if the state belongs to none."""

  @abc.abstractmethod
  def natural_cut(self) -> list[PublicState]:
    """Returns the first public states after chance has moved in the course of play.

    If chance moves only before the players do, returns the first public states after both players have moved.
    """

  @abc.abstractmethod
  def decisions(self, player: int) -> list[list[PublicState]]:
    """Returns the public states where a player may be to move, a list for each step of a search.

    No public state of a list is below another one of the list.
    """

  def to_slots(self, probabilities: Float64s) -> Float64s:
    """Converts the behavioral form of the compiled game to an array of shape (slots,)."""
    return probabilities

  def behavioral_form(self, policy: Float64s) -> Float64s:
    """Converts an array of shape (slots,) to the behavioral form of the compiled game, shape (sequences,)."""
    return policy

  def policy_array(self, policy: AnyPolicy) -> Float64s:
    """Returns the probability of each action under a policy, shape (slots,).

    Raises:
      PolicyError: the policy is not one for this game.
    """
    return self.to_slots(from_policy(self.game, policy))

  def uniform(self) -> Float64s:
    """Returns the uniform policy, shape (slots,)."""
    return self.to_slots(forms.uniform(self.game))

  def owned(self, player: int) -> Bools:
    """Returns True at the slots of a player, shape (slots,)."""
    is_second = np.arange(self.game.end) >= self.game.treeplexes[1].root
    return np.asarray(self.to_slots(is_second.astype(np.float64)) == player)

  @abc.abstractmethod
  def num_private_states(self, index: int) -> tuple[int, int]:
    """Returns the number of each player's private states at a public state."""

  def counterfactual_reach(self, index: int, player: int, weights: Float64s) -> Float64s:
    """Returns the probability that chance and the other player lead to each of a player's private states.

    `weights` is the other player's range at the public state.
    """
    *positions, chance = self.pairs(index)
    reach = chance * weights[positions[1 - player]]
    count = self.num_private_states(index)[player]
    return np.bincount(positions[player], reach, count).astype(np.float64)

  @abc.abstractmethod
  def evaluated(
    self,
    policy: Float64s,
    searcher: int,
    given_ranges: RangesByState | None = None,
    *,
    responds: bool = True,
  ) -> EvaluatedPolicy:
    """Returns a policy with its ranges and the opponent's values; the arguments are attributes of the result."""

  def evaluated_for(self, policy: AnyPolicy, player: int) -> EvaluatedPolicy:
    """Evaluates a policy: both ranges, and the values of `player`, the opponent of the result, when both follow it.

    The latest result is kept, so that all public states can be asked about one policy.

    Raises:
      PolicyError: the policy is not one for this game.
    """
    array, latest = self.policy_array(policy), self._latest_evaluated.get(player)
    if latest is None or not np.array_equal(latest.policy, array):
      # The array may be the caller's, who may change it.
      latest = self.evaluated(array.copy(), 1 - player, responds=False)
      self._latest_evaluated[player] = latest
    return latest

  @property
  @abc.abstractmethod
  def builder(self) -> GadgetGameBuilder:
    """Makes the gadget games of this tree."""

  def first_of(self, marked: Bools) -> list[PublicState]:
    """Returns the first marked public state on each path from the root; `marked` has shape (public states,)."""
    at_or_below: set[int] = set()
    result = []
    for index, (above, is_marked) in enumerate(
      zip(self.above.tolist(), marked.tolist(), strict=True)
    ):
      if above in at_or_below or is_marked:
        at_or_below.add(index)
      if is_marked and above not in at_or_below:
        result.append(self[index])
    return result
