"""Public states of listed histories, and policies evaluated over them.

Two histories of the same length belong to one public state if a player can't tell them apart, or if a chain of such
pairs joins them; and if two histories below them do. So all that follows a public state is a subgame: no infoset is
partly in it. Public states are the nodes of a tree of their own, as in Burch, Johanson and Bowling, "Solving Imperfect
Information Games Using Decomposition" (2014), and Kovařík, Schmid, Burch, Bowling and Lisý, "Rethinking Formal Models
of Partially Observable Multiagent Decision Making" (2022).
"""

import copy
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import open_spiel
from spiel_cfr.search.cut_outs import CutOut
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.history_walk import CHANCE, NONE, TERMINAL
from spiel_cfr.search.listed_cut_out import Roots, cut_out, roots_of
from spiel_cfr.search.public_trees import (
  AnyPublicState,
  AnyPublicTree,
  Blueprint,
  Pair,
  Pairs,
  Start,
)


class PublicState(AnyPublicState):
  """A set of histories, one of which is the true one by common knowledge.

  Attributes:
    tree: all public states of the game.
    number: its place in `tree`, parents first.
    histories: int64 (histories,). Their numbers in `HistoryTree`.
  """

  tree: "PublicTree"

  def __init__(self, tree: "PublicTree", number: int) -> None:
    """Looks at a public state of a tree.

    Raises:
      ArgumentError: there is no such one.
    """
    super().__init__(tree, number)
    self.histories = tree.histories_of[self.number]

  @property
  def length(self) -> int:
    return int(self.tree.histories.length[self.histories[0]])

  @property
  def players(self) -> tuple[int, ...]:
    return tuple(np.unique(self.tree.histories.mover[self.histories]).tolist())

  def private_states(self, player: int) -> list[str]:
    """Returns a player's private states here, by their information state strings; empty where chance moves."""
    player = arguments.integer(player, "player", 0, 1)
    if max(self.players) < 0:
      return []
    first, found = self.tree.first_histories(self.number)[player], self.tree.histories
    return [found.private_state_name(player, node) for node in first.tolist()]

  def states(self) -> Iterator[Any]:
    """Yields OpenSpiel's states of its histories."""
    yield from map(self.tree.histories.state, self.histories.tolist())

  def reach(self, policy: open_spiel.AnyPolicy) -> Float64s:
    """Returns the probability of each history under a policy of both players, shape (histories,)."""
    return self._reach(self.tree.entries(policy))

  def _reach(self, entries: Float64s) -> Float64s:
    first, second = self.tree.reach(entries)
    return np.asarray((self.tree.histories.chance * first * second)[self.histories])

  def beliefs(self, policy: open_spiel.AnyPolicy, player: int) -> dict[str, float]:
    """Returns how likely each private state of a player's is under a policy of both, given that play has come here.

    In poker, its range. NaN where the policy never comes here.
    """
    arguments.integer(player, "player", 0, 1)
    reach = self.reach(policy)
    likely = self._by_private_state(player, reach) / (reach.sum() or np.nan)
    return dict(zip(self.private_states(player), likely.tolist(), strict=True))

  def private_values(self, policy: open_spiel.AnyPolicy, player: int) -> dict[str, float]:
    """Returns what a player expects under a policy of both at each of its private states, even if it avoids them.

    NaN where chance and the other player never let it happen.
    """
    arguments.integer(player, "player", 0, 1)
    entries, found = self.tree.entries(policy), self.tree.histories
    weights = (found.chance * found.reach(entries, 1 - player))[self.histories]
    mass = self._by_private_state(player, weights)
    worth = self._by_private_state(player, weights * found.values(entries)[self.histories])
    half = (self.tree.game.constant_sum or 0.0) / 2
    means = half + (1 - 2 * player) * worth / np.where(mass > 0, mass, np.nan)
    return dict(zip(self.private_states(player), means.tolist(), strict=True))

  def _by_private_state(self, player: int, numbers: Float64s) -> Float64s:
    """Returns sums of numbers of the histories over each private state; none where chance moves."""
    count = len(self.private_states(player))
    return np.bincount(self.tree.places(self.number)[player], numbers)[:count].astype(np.float64)

  def value(self, policy: open_spiel.AnyPolicy, player: int = 0) -> float:
    """Returns what a player expects under a policy, given that this public state is reached; NaN where it never is."""
    arguments.integer(player, "player", 0, 1)
    entries = self.tree.entries(policy)
    reach, worth = self._reach(entries), self.tree.histories.values(entries)[self.histories]
    half = (self.tree.game.constant_sum or 0.0) / 2
    return half + (1 - 2 * player) * float(reach @ worth / reach.sum()) if reach.any() else np.nan

  def __repr__(self) -> str:
    known = " x ".join(str(len(self.private_states(player))) for player in (0, 1))
    history = " ".join(map(str, self.tree.histories.history(int(self.histories[0]))))
    return f"<PublicState {self.number}: {len(self.histories):,} histories such as [{history}], {known} private states>"


class PublicTree(AnyPublicTree[PublicState]):
  """All public states of a game, parents first. Make one with `public_states`.

  Attributes:
    game: the compiled game; absent where a bot has walked the histories below some states.
    histories: its histories as arrays.
    state_of: int64 (histories,). The public state of each history, `NONE` of terminal ones.
    histories_of: of each public state, int64 (its histories,), in order.
    above: int64 (public states,). The public state before the last move, `NONE` of the first.
  """

  picks = True
  _kind = PublicState

  def __init__(self, game: CompiledGame | None, histories: HistoryTree) -> None:
    """Finds the public states of histories."""
    self.histories = histories
    if game is not None:
      self.game = game
    self.largest_payoff = float(np.abs(histories.payoff).max())
    self.state_of = histories.number_public_states()
    self._private_states: dict[int, tuple[tuple[Int64s, Int64s], tuple[Int64s, Int64s]]] = {}
    order = np.argsort(self.state_of, kind="stable")
    ends = np.searchsorted(self.state_of[order], np.arange(self.state_of.max() + 2))
    self.histories_of = np.split(order, ends)[1:-1]
    firsts = histories.parent[[own[0] for own in self.histories_of]]
    self.above = np.where(firsts >= 0, self.state_of[firsts], NONE)

  def public_state_of(self, state: Any) -> PublicState:
    """Returns the public state of one of OpenSpiel's states.

    Raises:
      ArgumentError: the state is terminal, or none of this game.
    """
    found = self.histories
    own = self.game.view.own_state(state, max(0, state.current_player()))
    if own.get_game().get_type().short_name != self.game.game.get_type().short_name:
      raise errors.ArgumentError(f"The state of {own.get_game()} is none of {self.game}.")
    path = found.path(own.history())
    if not path:
      raise errors.ArgumentError(f"The history [{state.history_str()}] is none of {self.game}.")
    if found.mover[path[-1]] == TERMINAL:
      raise errors.ArgumentError(f"The history [{state.history_str()}] has ended.")
    return PublicState(self, int(self.state_of[path[-1]]))

  def _deciding(self, player: int) -> Int64s:
    return np.unique(self.state_of[self.histories.mover == player])

  def natural_cut(self) -> list[PublicState]:
    """Returns where play first goes on after chance has moved again, or else after both have moved."""
    found = self.histories
    acted = np.asarray(np.any(found.last >= 0, axis=0))
    after = np.zeros(len(found.parent), bool)
    for level in found.levels:
      above = found.parent[level]
      after[level] = after[above] | ((found.mover[above] == CHANCE) & acted[above])
    starts = after & (found.mover >= 0)
    if not starts.any():
      starts = np.all(found.last >= 0, axis=0) & (found.mover >= 0)
    marked = np.ones(len(self), bool)
    marked[self.state_of[(self.state_of != NONE) & ~starts]] = False
    return self.first_of(marked)

  def entries(self, policy: open_spiel.AnyPolicy) -> Float64s:
    """Returns a policy as probabilities of the entries of `histories`.

    Raises:
      PolicyError: the policy is not one for this game.
    """
    return self.game.to_actions(open_spiel.from_policy(self.game, policy))

  def behavioral_form(self, entries: Float64s) -> Float64s:
    return self.game.from_actions(entries)

  def owned(self, player: int) -> Bools:
    player = arguments.integer(player, "player", 0, 1)
    return np.asarray(self.histories.player_of_entry == player)

  def _private(self, number: int) -> tuple[tuple[Int64s, Int64s], tuple[Int64s, Int64s]]:
    """Returns what `first_histories` and `places` do."""
    if number not in self._private_states:
      states = self.histories.private_state[:, self.histories_of[number]]
      (first, own), (second, other) = (np.unique(each, return_inverse=True) for each in states)
      self._private_states[number] = (first, second), (own, other)
    return self._private_states[number]

  def first_histories(self, number: int) -> tuple[Int64s, Int64s]:
    """Returns a history of each private state at a public state, by player."""
    return self._private(number)[0]

  def places(self, number: int) -> tuple[Int64s, Int64s]:
    """Returns the place of the private state at each history of a public state, by player."""
    return self._private(number)[1]

  def num_private_states(self, number: int) -> tuple[int, int]:
    first, second = map(len, self.first_histories(number))
    return first, second

  def by_private_state(self, number: int, player: int, numbers: Float64s) -> Float64s:
    """Returns sums of numbers of shape (all histories,) over each private state of a player at a public state."""
    own = self.places(number)[player]
    return np.bincount(own, numbers[self.histories_of[number]]).astype(np.float64)

  def chance_mass(self, number: int, player: int, weights: Float64s) -> Float64s:
    chance, places = self.histories.chance[self.histories_of[number]], self.places(number)
    return np.bincount(places[player], chance * weights[places[1 - player]]).astype(np.float64)

  def reach(self, entries: Float64s, begins: Pairs | None = None) -> Pair:
    """Returns the probability that each player plays to each history, two arrays of shape (histories,)."""
    given = np.full((2, len(self.state_of)), np.nan)
    for number, ranges in (begins or {}).items():
      for own, weights, places in zip(given, ranges, self.places(number), strict=True):
        own[self.histories_of[number]] = weights[places]
    first, second = (
      self.histories.reach(entries, player, own if begins else None)
      for player, own in enumerate(given)
    )
    return first, second

  def blueprint(
    self, entries: Float64s, searcher: int, begins: Pairs | None = None
  ) -> "ListedBlueprint":
    return ListedBlueprint(self, entries, searcher, begins)

  def uniform(self) -> Float64s:
    return 1.0 / self.histories.num_actions[self.histories.infoset_of_entry]

  def normalized(self, sums: Float64s, otherwise: Float64s) -> Float64s:
    return self.histories.normalized(sums, otherwise)

  def sequence_form(self, entries: Float64s, begins: Pairs | None = None) -> Float64s:
    found, result = self.histories, np.zeros(self.histories.num_entries)
    for player, own in enumerate(self.reach(entries, begins)):
      moved = np.flatnonzero(found.entry >= 0)
      moved = moved[found.player_of_entry[found.entry[moved]] == player]
      result[found.entry[moved]] = own[found.parent[moved]] * entries[found.entry[moved]]
    return result

  def per_infoset(self, numbers: Float64s, reduce: np.ufunc) -> Float64s:
    found = self.histories
    return np.asarray(reduce.reduceat(numbers, found.first_entry)[found.infoset_of_entry])

  def cut_out(self, starts: Sequence[Start], gadget: Gadget, *, program: bool = False) -> CutOut:
    return cut_out(self.histories, self.roots(starts, gadget), gadget, program=program)

  def roots(self, starts: Sequence[Start], gadget: Gadget) -> Roots:
    """Returns the histories at which subgames begin."""
    numbers = [start.number for start in starts]
    private = [(self.histories_of[each], *self._private(each)) for each in numbers]
    return roots_of(self.histories, starts, private, gadget)

  def __repr__(self) -> str:
    sizes = np.array([len(own) for own in self.histories_of])
    alone = " (common knowledge splits nothing)" if len(self) == len(self.histories.levels) else ""
    return (
      f"<PublicTree of {self.game.name}: {len(self):,} public states{alone}, the largest of "
      f"{int(sizes.max()):,} histories>"
    )


class ListedBlueprint(Blueprint):
  """A policy of both players over listed histories, see `Blueprint`.

  Attributes:
    reach: by player, float64 (histories,). The probability that the player plays to each history.
  """

  tree: PublicTree

  def __init__(
    self,
    tree: PublicTree,
    entries: Float64s,
    searcher: int,
    begins: Pairs | None = None,
    barred: Bools | None = None,
    gifts_from: int = 0,
  ) -> None:
    """Evaluates a policy.

    Args:
      tree: the public states.
      entries: the policy of both players, shape (entries,).
      searcher: the player who searches.
      begins: ranges with which play comes to some public states.
      barred: actions of the opponent to which the policy has no answer, shape (entries,). Its best response leaves them
        out, and the histories below one keep the value before it.
      gifts_from: the number of moves from which on gifts count.
    """
    self.tree, self.entries, self.searcher = tree, entries, searcher
    self.barred, self.gifts_from, self._begins = barred, gifts_from, begins
    self.reach = tree.reach(entries, begins)

  @functools.cached_property
  def others(self) -> Float64s:
    """The probability that chance and the searcher play to each history, shape (histories,)."""
    return self.tree.histories.chance * self.reach[self.searcher]

  @functools.cached_property
  def worth(self) -> Float64s:
    """The opponent's counterfactual values of histories, shape (histories,)."""
    tree, opponent = self.tree, 1 - self.searcher
    leaves = np.full(len(self.others), np.nan)
    for number, values in self.leaves.items():
      # Histories of one private state go on from the same infosets: one of them stands for all.
      leaves[tree.histories_of[number]] = 0.0
      leaves[tree.first_histories(number)[opponent]] = values
    entries = None if self.responds else self.entries
    return tree.histories.counterfactual_values(
      self.others, opponent, entries, leaves=leaves if self.leaves else None, barred=self.barred
    )

  @property
  def opponent_gets(self) -> float:
    return float(self.worth[self.tree.histories.parent < 0].sum())

  def action_values(self) -> Float64s:
    found = self.tree.histories
    moved = np.flatnonzero(found.entry >= 0)
    moved = moved[found.player_of_entry[found.entry[moved]] == 1 - self.searcher]
    return np.bincount(found.entry[moved], self.worth[moved], found.num_entries).astype(np.float64)

  def playing(self, entries: Float64s, *, answered: bool = False) -> "ListedBlueprint":
    barred = None if answered else self.barred
    return ListedBlueprint(self.tree, entries, self.searcher, self._begins, barred, self.gifts_from)

  def ranges(self, number: int) -> Pair:
    first, second = (
      own[nodes] for own, nodes in zip(self.reach, self.tree.first_histories(number), strict=True)
    )
    return first, second

  def values(self, number: int) -> Float64s:
    return self.tree.by_private_state(number, 1 - self.searcher, self.worth)

  def gifts(self, number: int) -> Float64s:
    return np.asarray(self._gifts[self.tree.first_histories(number)[1 - self.searcher]])

  def with_gifts_from(self, length: int) -> "ListedBlueprint":
    """Returns the same, where gifts count from another number of moves on."""
    result = copy.copy(self)
    result.gifts_from = length
    result.__dict__.pop("_gifts", None)
    return result

  def is_open(self, number: int) -> bool:
    if self.barred is None:
      return False
    found = self.tree.histories
    lost = np.zeros(len(found.parent), bool)
    for level in found.levels:
      entry = found.entry[level]
      lost[level] = lost[found.parent[level]] | ((entry >= 0) & self.barred[entry])
    return bool(lost[found.below(self.tree.histories_of[number])].any())

  @functools.cached_property
  def _gifts(self) -> Float64s:
    """The opponent's gifts on the way to each history, per unit of w; shape (histories,)."""
    found, opponent = self.tree.histories, 1 - self.searcher
    decisions = np.flatnonzero(found.mover == opponent)
    infoset = found.infoset[decisions]
    count = len(found.owner)
    mass = np.bincount(infoset, self.others[decisions], count)[found.infoset_of_entry]
    best = np.bincount(infoset, self.worth[decisions], count)[found.infoset_of_entry]
    lost = np.divide(best - self.action_values(), mass, out=np.zeros(len(mass)), where=mass > 0)
    lost = np.maximum(lost, 0.0)
    result = np.zeros(len(found.parent))
    for level in found.levels:
      above, entry = found.parent[level], found.entry[level]
      mine = (found.mover[above] == opponent) & (found.length[above] >= self.gifts_from)
      result[level] = result[above] + np.where(mine, lost[entry], 0.0)
    return result
