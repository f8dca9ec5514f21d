"""Search below the decisions where the rest of the game fits; above them, a player plays its blueprint.

The search follows the public state from the root of the game on, in segments of one decision. Both players' ranges come
from the blueprint. At the first decision below which at most `max_histories` histories follow, the rest of the game is
walked, and `LocalSearch` re-solves each decision there.
"""

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.bots import PolicyReader
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.game_search import GameSearch, SearchLimits
from spiel_cfr.search.history_tree import HistoryTree, tree_of
from spiel_cfr.search.local_search import LocalSearch, read_blueprint
from spiel_cfr.search.segments import Segment


class Place(NamedTuple):
  """A public state on the way of a play.

  Attributes:
    segment: the segment that contains the public state.
    number: its index there.
  """

  segment: Segment
  number: int


class BlueprintSearch(GameSearch):
  """A player's search in a game whose histories are listed, with a blueprint."""

  def __init__(
    self,
    view: GameView,
    player: int,
    blueprint: PolicyReader,
    limits: SearchLimits,
  ) -> None:
    """Takes the game and the blueprint.

    Args:
      view: the game.
      player: the player who searches.
      blueprint: the blueprint.
      limits: the solvers of subgames, and the largest subgame.
    """
    self.view, self._player, self._blueprint, self._limits = view, player, blueprint, limits
    self._first: Segment | None = None
    self._entries = dict[Segment, Float64s]()
    # By the public state where a search begins, None for the whole game: the search, or the error that prevents it.
    self._found: dict[Place | None, LocalSearch | errors.SpielCFRError] = {}

  @property
  def size(self) -> int:
    return sum(each.size for each in self._found.values() if isinstance(each, LocalSearch))

  def prepare(self) -> None:
    """Walks the game, if it fits."""
    self._begin(None, math.inf)

  def policy(self, state: Any, deadline: float) -> list[tuple[int, float]]:
    """Returns the strategy at a decision, see `GameSearch`.

    Raises:
      GameTooLargeError: too many histories follow, and the blueprint has no probabilities.
      PolicyError: the blueprint lacks an infoset to which it plays.
      UnsupportedGameError: see `HistoryTree`.
    """
    search = self._search_of(state, deadline)
    if search is None:
      return self._blueprint.strategy(state, self._player)
    return search.policy(state.history(), self._limits.choose, deadline)

  def _search_of(self, state: Any, deadline: float) -> LocalSearch | None:
    """Returns the search that covers a decision; None where the player plays the blueprint."""
    found = self._begin(None, deadline)
    if isinstance(found, LocalSearch):
      return found
    # The public states since the player's previous decision.
    above: list[Place | None] = [None]
    nodes = self._nodes(state.history())
    while True:
      try:
        segment, node = next(nodes)
      except StopIteration:
        return None
      except errors.GameTooLargeError:
        if self._blueprint.look_up(state, self._player) is None:
          raise
        return None
      above.append(Place(segment, int(segment.tree.state_of[node])))
      if segment.tree.histories.mover[node] == self._player:
        search = self._first_search(above, segment.tree.histories.state(node), deadline)
        if search is not None:
          return search
        above = above[-1:]

  def _nodes(self, history: Sequence[int]) -> Iterator[tuple[Segment, int]]:
    """Yields, after each move of a history, a segment and the index of the history so far in it.

    Raises:
      GameTooLargeError: a segment has more than `max_histories` histories.
    """
    if self._first is None:
      start = [self.view.new_initial_state()]
      self._first = Segment(self.view, start, None, 1, self._limits.max_histories)
    segment, length = self._first, 0
    while True:
      path = segment.path(history)
      for node in path[1:]:
        yield segment, node
      length += len(path) - 1
      if length == len(history):
        return
      segment = segment.below(int(segment.tree.state_of[path[-1]]), self._entries_of(segment))

  def _entries_of(self, segment: Segment) -> Float64s:
    """Returns the blueprint's probabilities of the actions in a segment; each is read once."""
    if segment not in self._entries:
      histories = segment.tree.histories
      self._entries[segment] = read_blueprint(histories, self._blueprint)[0]
    return self._entries[segment]

  def _first_search(
    self, above: list[Place | None], at: Any, deadline: float
  ) -> LocalSearch | None:
    """Returns the search below a decision; None where the player plays the blueprint.

    Args:
      above: the public states since the player's previous decision, including that of this decision.
      at: the state of this decision.
      deadline: the time by which the search has to answer.

    Raises:
      SpielCFRError: the blueprint does not know the decision, and no search fits below any of these public states.
    """
    found = self._begin(above[-1], deadline)
    if isinstance(found, LocalSearch):
      return found
    if self._blueprint.look_up(at, self._player) is not None:
      return None
    # The blueprint gives no bounds after an action that it does not know. It does at public states before that action.
    for earlier in reversed(above[:-1]):
      found = self._begin(earlier, deadline)
      if isinstance(found, LocalSearch):
        return found
    raise found

  def _begin(self, place: Place | None, deadline: float) -> LocalSearch | errors.SpielCFRError:
    """Returns the search below a public state, None for the whole game, or the error that prevents it."""
    if place in self._found:
      return self._found[place]
    now, most = time.perf_counter(), self._limits.max_histories
    until = now + (deadline - now) / 2
    found: LocalSearch | errors.SpielCFRError
    try:
      if place is None:
        tree = tree_of(self.view, most, until)
      else:
        segment, number = place
        states, probabilities = segment.start(number, self._entries_of(segment))
        tree = HistoryTree(self.view, states, most, probabilities, until)
      found = LocalSearch(tree, self._blueprint, self._player)
    except errors.GameTooLargeError as error:
      if time.perf_counter() > until:
        # The error is not kept, since another decision may have more time.
        return error
      found = error
    except errors.PolicyError as error:
      found = error
    if isinstance(found, errors.SpielCFRError):
      # A traceback would keep the histories that were walked.
      found = found.with_traceback(None)
    self._found[place] = found
    return found
