"""Public states: what all players know together of where they are.

Two histories of the same length belong to one public state if a player can't tell them apart, or if a chain of such
pairs joins them; and if two histories below them do. So all that follows a public state is a subgame: no infoset is
partly in it. Public states are the nodes of a tree of their own, as in Burch, Johanson and Bowling, "Solving Imperfect
Information Games Using Decomposition" (2014), and Kovařík, Schmid, Burch, Bowling and Lisý, "Rethinking Formal Models
of Partially Observable Multiagent Decision Making" (2022).
"""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.policies import open_spiel
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.history_walk import CHANCE, NONE, TERMINAL
from spiel_cfr.search.public_nodes import AnyPublicState, AnyPublicTree, State
from spiel_cfr.search.shared_trees import tree_of
from spiel_cfr.search.standing import Standing
from spiel_cfr.search.vector_states import VectorPublicTree

DEFAULT_MAX_HISTORIES = 5_000_000


class PublicState(AnyPublicState):
  """Histories among which everybody knows the true one to be.

  Attributes:
    tree: all public states of the game.
    number: its place in `tree`, parents first.
    histories: int64, as `HistoryTree` numbers them.
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
    """How many moves there were, chance's included."""
    return int(self.tree.histories.length[self.histories[0]])

  @property
  def players(self) -> tuple[int, ...]:
    """Who may be to move; chance is -1."""
    return tuple(np.unique(self.tree.histories.mover[self.histories]).tolist())

  @property
  def place(self) -> Int64s:
    """Its histories."""
    return self.histories

  def private_states(self, player: int) -> list[str]:
    """Returns what a player may know here: its information state strings; empty where nobody decides."""
    arguments.integer(player, "player", 0, 1)
    known = self.tree.histories.knows[self.histories, player]
    return [self.tree.histories.known[number][1] for number in np.unique(known[known >= 0])]

  def states(self) -> Iterator[Any]:
    """Yields OpenSpiel's states of its histories."""
    yield from map(self.tree.histories.state, self.histories.tolist())

  def reach(self, policy: open_spiel.AnyPolicy) -> Float64s:
    """Returns the probability of each history under a policy of both players, shape (histories,)."""
    return self._reach(self.tree.entries(policy))

  def _reach(self, entries: Float64s) -> Float64s:
    found = self.tree.histories
    both = found.chance * found.reach(entries, 0) * found.reach(entries, 1)
    result: Float64s = both[self.histories]
    return result

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
    """Returns sums of numbers of the histories, in the order of `private_states`."""
    known = self.tree.histories.knows[self.histories, player]
    _, place = np.unique(known[known >= 0], return_inverse=True)
    return np.bincount(place, numbers[known >= 0]).astype(np.float64)

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
    game: the compiled game.
    histories: its histories as arrays.
    state_of: int64 (histories,), the public state of each, `NONE` of those that are terminal.
    histories_of: int64, of each public state, its histories in order.
    above: int64 (public states,), the one before the last move, `NONE` of the first.
  """

  _kind = PublicState

  def __init__(self, game: CompiledGame, histories: HistoryTree) -> None:
    """Finds the public states of histories."""
    self.game, self.histories = game, histories
    self.state_of = number_public_states(histories)
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
    """Returns the numbers of the public states where a player may be to move."""
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
    """Returns these as behavioural form."""
    return self.game.from_actions(entries)

  def standing(self, entries: Float64s, searcher: int) -> Standing:
    """Returns where both players stand when they play these, before one of them searches."""
    return Standing(self.histories, entries, arguments.integer(searcher, "searcher", 0, 1))

  def owned(self, player: int) -> Bools:
    """Returns which of the entries are a player's."""
    player = arguments.integer(player, "player", 0, 1)
    return np.asarray(self.histories.player_of_entry == player)

  def __repr__(self) -> str:
    sizes = np.array([len(own) for own in self.histories_of])
    alone = " (common knowledge splits nothing)" if len(self) == len(self.histories.levels) else ""
    return (
      f"<PublicTree of {self.game.name}: {len(self):,} public states{alone}, the largest of "
      f"{int(sizes.max()):,} histories>"
    )


@overload
def public_states(  # type: ignore[overload-overlap]
  game: VectorGame, *, max_histories: int = DEFAULT_MAX_HISTORIES
) -> VectorPublicTree: ...
@overload
def public_states(game: AnyGame, *, max_histories: int = DEFAULT_MAX_HISTORIES) -> PublicTree: ...
def public_states(
  game: AnyGame, *, max_histories: int = DEFAULT_MAX_HISTORIES
) -> PublicTree | VectorPublicTree:
  """Returns the tree of a game's public states.

      tree = public_states("leduc_poker")
      tree.public_state_of(state).private_states(0)

  A game that common knowledge does not split has one public state a length; its `repr` says so. In vector form public
  states are the nodes of the public tree, and no histories are listed.

  Args:
    game: a compiled game, or what `compile_game` takes; of an abstraction, the original. If it is not in vector form,
      it is walked once.
    max_histories: how many histories it may have then.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players, or infosets span lengths.
    GameTooLargeError: there are more histories.
    InconsistentInfosetError: the game was compiled with an action filter that a file has not kept.
    ArgumentError: `max_histories` is not a positive integer.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  if not isinstance(compiled, VectorGame):
    return list_histories(compiled, max_histories)
  _check_kind(compiled)
  arguments.positive_integer(max_histories, "max_histories")
  return VectorPublicTree(compiled)


def list_histories(game: AnyGame, max_histories: int = DEFAULT_MAX_HISTORIES) -> PublicTree:
  """Returns the tree of a game's public states by listing its histories, whatever form it is compiled to."""
  limit = arguments.positive_integer(max_histories, "max_histories")
  compiled = compile_game(game).original
  _check_kind(compiled)
  found = tree_of(compiled.view, limit)
  if [*map(list, compiled.infostates)] != found.names:
    raise errors.InconsistentInfosetError(
      f"{compiled} has other infosets than its states have now; compile it again. Files do not keep action filters."
    )
  return PublicTree(compiled, found)


def _check_kind(compiled: CompiledGame) -> None:
  if not compiled.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      f"Search is for constant-sum games of two players; {compiled.name} is not one. With more players, or "
      "other sums, no search is safe."
    )


def cut_of(
  game: AnyGame,
  cut: Sequence[PublicState] | None,
  max_histories: int = DEFAULT_MAX_HISTORIES,
) -> list[PublicState]:
  """Returns a cut as it is, or a game's natural one, of listed histories.

  Raises:
    ArgumentError: the public states are of another game, or one is below another; or there are none.
    GameError: as `public_states` does.
  """
  if cut is None:
    cut = list_histories(game, max_histories).natural_cut()
  return check_cut(game, cut, PublicState)


def check_cut(game: AnyGame, cut: Any, kind: type[State]) -> list[State]:
  """Returns a cut as it is.

  Raises:
    ArgumentError: the public states are of another game or kind, or one is below another; or there are none.
    GameError: see `compile_game`.
  """
  if not isinstance(cut, list | tuple) or not all(isinstance(each, kind) for each in cut):
    raise errors.ArgumentError(
      f"cut must be a list of public states, each a {kind.__name__}, not {arguments.shortened(cut)}."
    )
  if not cut:
    raise errors.ArgumentError(f"The cut of {game} has no public state: name a cut that has some.")
  check_game(game, cut[0])
  tree = cut[0].tree
  marked = np.zeros(len(tree), bool)
  marked[[state.number for state in cut]] = True
  if len(tree.first_of(marked)) < len(cut):
    raise errors.ArgumentError(
      "The public states of a cut are not below each other, and named once."
    )
  return list(cut)


def check_game(game: AnyGame, state: AnyPublicState) -> None:
  """Checks that a public state is one of a game.

  Raises:
    ArgumentError: it is not.
    GameError: see `compile_game`.
  """
  wanted, found = compile_game(game).original, state.tree.game
  if wanted.digest != found.digest:
    problem = "compiled otherwise" if found.name == wanted.name else f"not of {wanted.name}"
    raise errors.ArgumentError(
      f"{state!r} is a public state of {found.name}, {problem}: call public_states on this compiled game."
    )


def number_public_states(found: HistoryTree) -> Int64s:
  """Returns the public state of each history, `NONE` of terminal ones; parents have smaller numbers."""
  # What players know who are not to move, where anybody decides; they may be told more than they remember.
  decides = found.mover >= 0
  return found.joined([np.where(decides, found.told(player), NONE) for player in (0, 1)])
