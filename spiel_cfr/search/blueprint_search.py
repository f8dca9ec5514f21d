"""Search with a blueprint: each decision is re-solved as soon as the rest of the game is small enough to be listed.

The search follows the public state from the root of the game on, in segments of one decision. Both players' ranges come
from the blueprint. At the first decision below which at most `max_histories` histories follow, the rest of the game is
walked, and `SubgameResolver` re-solves each decision there. Above, the player plays its blueprint.
"""

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from spiel_cfr import errors
from spiel_cfr.bots import PolicyReader
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.game_search import GameSearch, SearchOptions
from spiel_cfr.search.history_tree import HistoryTree, tree_of
from spiel_cfr.search.segments import Segment
from spiel_cfr.search.subgame_resolver import SubgameResolver


class SegmentState(NamedTuple):
  """A public state of a segment.

  Attributes:
    segment: `Segment`. The segment.
    state: int. The index of the public state in the segment.
  """

  segment: Segment
  state: int


class BlueprintSearch(GameSearch):
  """A player's search in a game whose histories are listed, with a blueprint."""

  def __init__(
    self,
    view: GameView,
    player: int,
    blueprint: PolicyReader,
    options: SearchOptions,
  ) -> None:
    """Takes the game and the blueprint.

    Args:
      view: the game.
      player: the player who searches.
      blueprint: the blueprint.
      options: the solvers of subgames, and the largest number of histories that are listed.
    """
    super().__init__(view, player, options)
    self._blueprint = blueprint
    self._first: Segment | None = None
    # By the public state where re-solving begins, None for the root: the resolver, or the error that prevents one.
    self._found: dict[SegmentState | None, SubgameResolver | errors.SpielCFRError] = {}

  @property
  def size(self) -> int:
    return sum(each.size for each in self._found.values() if isinstance(each, SubgameResolver))

  def prepare(self) -> None:
    """Walks the game, if it is small enough."""
    self._resolver_below(None, math.inf)

  def policy(self, state: Any, deadline: float) -> list[tuple[int, float]]:
    """Returns the strategy at a decision, see `GameSearch`.

    Raises:
      GameTooLargeError: too many histories follow, and the blueprint has no probabilities.
      PolicyError: the blueprint lacks an infoset to which it plays.
      UnsupportedGameError: see `HistoryTree`.
    """
    resolver = self._resolver_of(state, deadline)
    if resolver is None:
      return self._blueprint.strategy(state, self._player)
    return resolver.policy(state.history(), deadline)

  def _resolver_of(self, state: Any, deadline: float) -> SubgameResolver | None:
    """Returns the resolver whose subgame contains a decision; None where the player plays the blueprint."""
    found = self._resolver_below(None, deadline)
    if isinstance(found, SubgameResolver):
      return found
    # The public states since the player's previous decision.
    candidates: list[SegmentState | None] = [None]
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
      candidates.append(SegmentState(segment, int(segment.tree.state_of[node])))
      if segment.tree.histories.mover[node] == self._player:
        decision = segment.tree.histories.state(node)
        resolver = self._resolver_at_decision(candidates, decision, deadline)
        if resolver is not None:
          return resolver
        candidates = candidates[-1:]

  def _nodes(self, history: Sequence[int]) -> Iterator[tuple[Segment, int]]:
    """Yields, after each move of a history, a segment and the index of the history so far in it.

    Raises:
      GameTooLargeError: a segment has more than `max_histories` histories.
    """
    if self._first is None:
      start = [self.view.new_initial_state()]
      self._first = Segment(self.view, start, None, 1, self._options.max_histories, self._blueprint)
    segment, length = self._first, 0
    while True:
      path = segment.path(history)
      for node in path[1:]:
        yield segment, node
      length += len(path) - 1
      if length == len(history):
        return
      index = int(segment.tree.state_of[path[-1]])
      segment = segment.segment_below(index)

  def _resolver_at_decision(
    self, candidates: list[SegmentState | None], decision: Any, deadline: float
  ) -> SubgameResolver | None:
    """Returns the resolver of a decision's subgame; None where the player plays the blueprint.

    Args:
      candidates: the public states since the player's previous decision; the last one contains the decision.
      decision: OpenSpiel's state of the decision.
      deadline: the time by which the search has to answer.

    Raises:
      SpielCFRError: the blueprint does not know the decision, and no subgame of the candidates can be searched.
    """
    found = self._resolver_below(candidates[-1], deadline)
    if isinstance(found, SubgameResolver):
      return found
    if self._blueprint.look_up(decision, self._player) is not None:
      return None
    # After an action that the blueprint does not know, it gives no bounds. It does at public states before the action.
    for earlier in reversed(candidates[:-1]):
      found = self._resolver_below(earlier, deadline)
      if isinstance(found, SubgameResolver):
        return found
    # Each time an error is raised, its traceback would grow.
    raise found.with_traceback(None)

  def _resolver_below(
    self, begin: SegmentState | None, deadline: float
  ) -> SubgameResolver | errors.SpielCFRError:
    """Returns the resolver of the subgame below a public state, None for the root, or the error that prevents it."""
    if begin in self._found:
      return self._found[begin]
    now, most = time.perf_counter(), self._options.max_histories
    walk_deadline = now + (deadline - now) / 2
    found: SubgameResolver | errors.SpielCFRError
    try:
      if begin is None:
        tree = tree_of(self.view, most, walk_deadline)
      else:
        segment, index = begin
        states, probabilities = segment.states_in(index)
        tree = HistoryTree(self.view, states, most, probabilities, walk_deadline)
      found = SubgameResolver(tree, self._blueprint, self._player, self._options)
    except errors.GameTooLargeError as error:
      if time.perf_counter() > walk_deadline:
        # The error is not kept, since another decision may have more time.
        return error
      found = error
    except errors.PolicyError as error:
      found = error
    if isinstance(found, errors.SpielCFRError):
      # A traceback would keep the histories that were walked.
      found = found.with_traceback(None)
    self._found[begin] = found
    return found
