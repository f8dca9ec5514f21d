"""Public trees: the interface that all of search uses, independent of the form of the game.

`SearchTree` contains the public states of a game: all of them, or the rivers of hold'em. `PublicState` is a view of one
of them. `Blueprint` has the ranges of a policy and the opponent's values. At a public state, each player has a list of
private states, and two arrays over it:

    ranges                  the probability that the player plays to each private state
    counterfactual values   expected payoffs, times the probability that chance and the other player lead there

Payoffs are those of the game, less half of the constant to which returns sum. One player's payoff is thus the other
player's loss. A policy is an array over *entries*, the actions of all infosets. `ListedTree` orders entries as
OpenSpiel does; in the other trees, entries are the sequences of the compiled game.
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
from spiel_cfr.search.cut_outs import CutOut, PerPlayer, Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.private_forest import NONE

# Margins may be negative by this fraction of the largest payoff, because solutions of linear programs have errors.
TOLERANCE = 1e-9

# By the index of a public state: both players' ranges there.
RangesByState: TypeAlias = Mapping[int, PerPlayer]


class PublicState:
  """A public state: a set of histories. Both players know that the history of the play is in the set.

  Attributes:
    tree: `SearchTree`. All public states of the game.
    number: int. The index of the public state in `tree`. Parents have smaller indices than their children.
  """

  def __init__(self, tree: "SearchTree", number: int) -> None:
    """Takes the attributes with these names.

    Raises:
      ArgumentError: the tree has no public state with this index.
    """
    self.tree = tree
    self.number = arguments.integer(number, "number", 0, len(tree) - 1)

  @property
  def depth(self) -> int:
    """The number of moves before the public state, chance's included."""
    return self.tree.depth(self.number)

  @property
  def players(self) -> tuple[int, ...]:
    """The players who may be to move; chance is -1."""
    return self.tree.players(self.number)

  @property
  def parent(self) -> Self | None:
    """The public state before the last move; None at the root."""
    above = int(self.tree.above[self.number])
    return None if above == NONE else type(self)(self.tree, above)

  @functools.cached_property
  def children(self) -> tuple[Self, ...]:
    """The public states after one more move, in order."""
    below = (self.tree.above == self.number).nonzero()[0]
    return tuple(type(self)(self.tree, number) for number in below.tolist())

  def private_states(self, player: int) -> list[str]:
    """Returns the information state strings of a player's private states; an empty list where chance moves."""
    return self.tree.names(self.number, arguments.integer(player, "player", 0, 1))

  @property
  def num_private_states(self) -> tuple[int, int]:
    """The number of each player's private states: the lengths of ranges, also where chance moves."""
    return self.tree.num_private_states(self.number)

  def states(self) -> Iterator[Any]:
    """Yields OpenSpiel's states of the histories in the public state."""
    yield from self.tree.states(self.number)

  def reach(self, policy: AnyPolicy) -> Float64s:
    """Returns the probability of each history under a policy of both players, in the order of `states`."""
    first, second, chance = self.tree.pairs(self.number)
    ranges = self.ranges(policy)
    return np.asarray(chance * ranges[0][first] * ranges[1][second])

  def ranges(self, policy: AnyPolicy) -> PerPlayer:
    """Returns the probability that each player plays to each of its private states: the ranges of a `Subgame`.

    Each call evaluates the whole game. `tree.blueprint(tree.entries(policy), 0)` evaluates it once: see its `ranges`.
    """
    return self.tree.blueprint(self.tree.entries(policy), 0).ranges(self.number)

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
    arguments.integer(player, "player", 0, 1)
    blueprint = self.tree.blueprint(self.tree.entries(policy), 1 - player).played_by(player)
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
  """A policy of both players, with its ranges and the values of the opponent's best response.

  Attributes:
    tree: `SearchTree`. The public states.
    policy: float64 (entries,). The policy.
    searcher: int. The player whose strategy will be re-solved. The other player is the opponent.
  """

  tree: "SearchTree"
  policy: Float64s
  searcher: int

  @abc.abstractmethod
  def played_by(self, player: int) -> Self:
    """Returns a blueprint whose opponent, `player`, plays the policy itself. The other player is the searcher."""

  @property
  @abc.abstractmethod
  def opponent_value(self) -> float:
    """The value of the opponent's best response in the whole game."""

  @abc.abstractmethod
  def action_values(self) -> Float64s:
    """Returns the opponent's counterfactual values of its actions, 0 at the searcher's; shape (entries,)."""

  @abc.abstractmethod
  def with_policy(self, entries: Float64s, *, answers_all: bool = False) -> Self:
    """Returns the blueprint of another policy.

    Args:
      entries: float64 (entries,). The policy.
      answers_all: True if the policy has an answer to all actions of the opponent. False if the unanswered actions are
        those of this blueprint.
    """

  @abc.abstractmethod
  def ranges(self, number: int) -> PerPlayer:
    """Returns both players' ranges at a public state, given its index."""

  @abc.abstractmethod
  def values(self, number: int) -> Float64s:
    """Returns the opponent's counterfactual value of each J at a public state, given its index; shape (J,)."""

  def gifts(self, number: int) -> Float64s:
    """Returns g at a public state: the expected payoff that the opponent has lost on its way to each J; shape (J,).

    0 where a form of game does not compute gifts.
    """
    return np.zeros(self.tree.num_private_states(number)[1 - self.searcher])

  def has_unanswered(self, number: int) -> bool:
    """Returns True if the policy has no answer to an action of the opponent above or below a public state."""
    return False

  def expected_payoffs(self, number: int) -> Float64s:
    """Returns v at a public state: the opponent's expected payoff at each J, 0 where w is 0; shape (J,)."""
    reach = self.tree.counterfactual_reach(
      number, 1 - self.searcher, self.ranges(number)[self.searcher]
    )
    payoffs = np.divide(self.values(number), reach, out=np.zeros(len(reach)), where=reach > 0)
    # A rounded value, divided by a tiny probability, can be far outside the payoffs of the game.
    return np.asarray(np.clip(payoffs, -self.tree.largest_payoff, self.tree.largest_payoff))

  def margins(self, start: Start) -> Float64s:
    """Returns the margin at each J with w above 0: the bound minus the opponent's expected payoff."""
    return (start.bound - self.expected_payoffs(start.number))[start.w > 0]


class SearchTree(Sequence[PublicState]):
  """The public states of a game, parents first; `public_states` makes a tree.

  Attributes:
    game: the compiled game.
    above: int64 (public states,). The index of the public state before the last move; `NONE` at the root.
    largest_payoff: float. The largest absolute payoff.
    default_solver: str. The default solver of subgames, "lp" or a name in `catalogue.SOLVERS`.
  """

  game: CompiledGame
  above: Int64s
  largest_payoff: float
  default_solver: ClassVar[str] = "dcfr"

  def __len__(self) -> int:
    return len(self.above)

  def __getitem__(self, number: Any) -> Any:
    if isinstance(number, slice):
      return [PublicState(self, index) for index in range(len(self))[number]]
    return PublicState(self, range(len(self))[number])

  @abc.abstractmethod
  def depth(self, number: int) -> int:
    """Returns the number of moves before a public state, given its index."""

  @abc.abstractmethod
  def players(self, number: int) -> tuple[int, ...]:
    """Returns the players who may be to move at a public state."""

  @abc.abstractmethod
  def names(self, number: int, player: int) -> list[str]:
    """Returns the information state strings of a player's private states at a public state."""

  @abc.abstractmethod
  def states(self, number: int) -> Iterable[Any]:
    """Returns OpenSpiel's states of the histories in a public state."""

  @abc.abstractmethod
  def pairs(self, number: int) -> tuple[Int64s, Int64s, Float64s]:
    """Returns three arrays over the histories of a public state, in the order of `states`.

    They contain the position of player 0's private state, that of player 1's private state, and chance's probability.
    """

  @abc.abstractmethod
  def public_state_of(self, state: Any) -> PublicState:
    """Returns the public state of a state of OpenSpiel; raises ArgumentError if the state belongs to none."""

  @abc.abstractmethod
  def described(self, number: int) -> str:
    """Returns a description of a public state for its `repr`."""

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

  def entries(self, policy: AnyPolicy) -> Float64s:
    """Returns the probability of each action under a policy, shape (entries,).

    Raises:
      PolicyError: the policy is not one for this game.
    """
    return from_policy(self.game, policy)

  def behavioral_form(self, entries: Float64s) -> Float64s:
    """Returns a policy over entries in the behavioral form of the compiled game, shape (sequences,)."""
    return entries

  @property
  @abc.abstractmethod
  def num_entries(self) -> int:
    """The number of entries of both players."""

  @abc.abstractmethod
  def owned(self, player: int) -> Bools:
    """Returns True at the entries of a player, shape (entries,)."""

  def uniform(self) -> Float64s:
    """Returns the uniform policy, shape (entries,)."""
    counts = self.per_infoset(np.ones(self.num_entries), np.add)
    return np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)

  @abc.abstractmethod
  def per_infoset(self, numbers: Float64s, reduce: np.ufunc) -> Float64s:
    """Reduces an array over the actions of each infoset, and returns the result at each of them; shape (entries,)."""

  @abc.abstractmethod
  def num_private_states(self, number: int) -> tuple[int, int]:
    """Returns the number of each player's private states at a public state."""

  def counterfactual_reach(self, number: int, player: int, weights: Float64s) -> Float64s:
    """Returns the probability that chance and the other player lead to each of a player's private states.

    `weights` is the other player's range at the public state.
    """
    *positions, chance = self.pairs(number)
    reach = chance * weights[positions[1 - player]]
    count = self.num_private_states(number)[player]
    return np.bincount(positions[player], reach, count).astype(np.float64)

  @abc.abstractmethod
  def blueprint(
    self, entries: Float64s, searcher: int, given_ranges: RangesByState | None = None
  ) -> Blueprint:
    """Returns a policy with its ranges and best response values.

    Args:
      entries: float64 (entries,). The policy of both players.
      searcher: the player whose strategy will be re-solved.
      given_ranges: ranges at some public states, which replace the ranges of the policy there.
    """

  @abc.abstractmethod
  def cut_out(self, starts: Sequence[Start], gadget: Gadget, *, program: bool = False) -> CutOut:
    """Returns subgames, none below another, as one game with gadgets; `program` if a linear program will solve it.

    Raises:
      ArgumentError: this form of game does not support the gadget.
    """

  def normalized(self, weights: Float64s, otherwise: Float64s) -> Float64s:
    """Returns weights of actions, shape (entries,), divided by their sum at each infoset.

    Entries of `otherwise` replace those of infosets where all weights are 0.
    """
    totals = self.per_infoset(weights, np.add)
    return np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), otherwise)

  def first_of(self, marked: Bools) -> list[PublicState]:
    """Returns the first marked public state on each path from the root; `marked` has shape (public states,)."""
    at_or_below: set[int] = set()
    result = []
    for number, (above, is_marked) in enumerate(
      zip(self.above.tolist(), marked.tolist(), strict=True)
    ):
      if above in at_or_below or is_marked:
        at_or_below.add(number)
      if is_marked and above not in at_or_below:
        result.append(self[number])
    return result

  def batches(self, starts: Iterable[Start], *, alone: bool) -> Iterator[list[Start]]:
    """Yields lists of subgames to solve together, as one game; if `alone`, each list has one subgame."""
    for start in starts:
      yield [start]

  def is_harmful(self, start: Start, margins: Float64s) -> bool:
    """Returns True if a new strategy must be rejected because of its margins."""
    return bool(margins.min() < -TOLERANCE * self.largest_payoff)
