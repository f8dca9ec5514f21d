"""Search with a blueprint: each decision is re-solved as soon as the rest of the game is small enough to be listed.

`BlueprintSearch` finds the subgame of a decision. `ContinualResolving` re-solves the decisions in it, each from the
latest solution. The search follows the public state from the root of the game on, in segments of one decision. Both
players' ranges come from the blueprint. At the first decision below which at most `max_histories` histories follow, the
rest of the game is walked. Above, the player plays its blueprint.
"""

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr.bots import PolicyReader
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.search.gadgets import GADGETS
from spiel_cfr.search.play.segments import Segment, read_blueprint
from spiel_cfr.search.subgames.search_step import search_step
from spiel_cfr.search.subgames.subgame_solver import SearchOptions
from spiel_cfr.search.trees.forest_tree import EvaluatedForestPolicy
from spiel_cfr.search.trees.history_tree import HistoryTree, tree_of
from spiel_cfr.search.trees.listed_tree import ListedTree


class SegmentState(NamedTuple):
  """A public state of a segment.

  Attributes:
    segment: `Segment`. The segment.
    state: int. The index of the public state in the segment.
  """

  segment: Segment
  state: int


class BlueprintSearch:
  """A player's search in a game whose histories are listed, with a blueprint; a `GameSearch`.

  Attributes:
    view: `GameView`. The game as its walks see it.
  """

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
    self.view, self._player, self._options = view, player, options
    self._blueprint = blueprint
    self._first: Segment | None = None
    # By the public state where re-solving begins, None for the root.
    self._attempts: dict[SegmentState | None, _Attempt] = {}

  @property
  def size(self) -> int:
    """The approximate count of numbers that the search keeps."""
    return sum(each.resolving.size for each in self._attempts.values() if each.resolving)

  def prepare(self) -> None:
    """Walks the game, if it is small enough."""
    self._attempt(None, math.inf)

  def policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns (action, probability) for each legal action at a decision of the player.

    Raises:
      GameTooLargeError: too many histories follow, and the blueprint has no probabilities.
      PolicyError: the blueprint lacks an infoset to which it plays.
      UnsupportedGameError: see `HistoryTree`.
    """
    deadline = self._options.deadline()
    resolving = self._resolving_of(state, deadline)
    if resolving is None:
      return self._blueprint.strategy(state, self._player)
    return resolving.policy(state.history(), deadline)

  def _resolving_of(self, state: Any, deadline: float) -> "ContinualResolving | None":
    """Returns the re-solving of a subgame that contains a decision; None where the player plays the blueprint."""
    whole = self._attempt(None, deadline).resolving
    if whole is not None:
      return whole
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
        resolving = self._resolving_at_decision(candidates, decision, deadline)
        if resolving is not None:
          return resolving
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

  def _resolving_at_decision(
    self, candidates: list[SegmentState | None], decision: Any, deadline: float
  ) -> "ContinualResolving | None":
    """Returns the re-solving of a decision's subgame; None where the player plays the blueprint.

    Args:
      candidates: the public states since the player's previous decision; the last one contains the decision.
      decision: OpenSpiel's state of the decision.
      deadline: the time by which the search has to answer.

    Raises:
      SpielCFRError: the blueprint does not know the decision, and no subgame of the candidates can be searched.
    """
    attempt = self._attempt(candidates[-1], deadline)
    if attempt.resolving or self._blueprint.look_up(decision, self._player) is not None:
      return attempt.resolving
    # After an action that the blueprint does not know, it gives no bounds. It does at public states before the action.
    for earlier in reversed(candidates[:-1]):
      attempt = self._attempt(earlier, deadline)
      if attempt.resolving:
        return attempt.resolving
    assert attempt.error is not None
    # Each time an error is raised, its traceback would grow.
    raise attempt.error.with_traceback(None)

  def _attempt(self, begin: SegmentState | None, deadline: float) -> "_Attempt":
    """Returns the re-solving of the subgame below a public state, None for the root, or the error that prevents it."""
    if begin in self._attempts:
      return self._attempts[begin]
    now, most = time.perf_counter(), self._options.max_histories
    walk_deadline = now + (deadline - now) / 2
    try:
      if begin is None:
        tree = tree_of(self.view, most, walk_deadline)
      else:
        segment, index = begin
        states, probabilities = segment.states_in(index)
        tree = HistoryTree(self.view, states, most, probabilities, walk_deadline)
      result = _Attempt(ContinualResolving(tree, self._blueprint, self._player, self._options))
    except (errors.GameTooLargeError, errors.PolicyError) as error:
      # A traceback would keep the histories that were walked.
      result = _Attempt(error=error.with_traceback(None))
      if isinstance(error, errors.GameTooLargeError) and time.perf_counter() > walk_deadline:
        # The error is not kept, since another decision may have more time.
        return result
    self._attempts[begin] = result
    return result


class ContinualResolving:
  """Re-solving in the subgame below a public state, decision by decision. Each decision is re-solved once."""

  def __init__(
    self,
    histories: HistoryTree,
    blueprint: PolicyReader,
    searcher: int,
    options: SearchOptions,
  ) -> None:
    """Reads the blueprint.

    Args:
      histories: the histories of the subgame.
      blueprint: the blueprint.
      searcher: the player who searches.
      options: the gadgets and solvers of subgames. If the blueprint has no answer to an action of the opponent,
        "follow" replaces the chosen gadget.

    Raises:
      PolicyError: the opponent cannot avoid an infoset of the searcher at which the blueprint has no probabilities.
    """
    self._tree, self._searcher, self._options = ListedTree(None, histories), searcher, options
    self._decision_states = set(self._tree.decision_states(searcher).tolist())
    policy, unknown = read_blueprint(histories, blueprint)
    start = time.perf_counter()
    unanswered = _unanswered_actions(self._tree, policy, unknown, searcher)
    # The policy before any re-solving, and by the index of a public state: the policy after that state was re-solved.
    self._first = EvaluatedForestPolicy(self._tree, policy, searcher, unanswered=unanswered)
    self._solved = dict[int, EvaluatedForestPolicy]()
    _ = self._first.counterfactual_values
    # The time that checking margins takes, by the time of these values.
    self._reserve = 2 * (time.perf_counter() - start)

  @property
  def size(self) -> int:
    """The approximate count of numbers that the object keeps."""
    histories = self._tree.histories
    # Both players' ranges, and the opponent's values, gifts and probabilities.
    rows = 3 * sum(len(forest.above) for forest in self._tree.forests)
    return 12 * len(histories.parent) + (1 + len(self._solved)) * (2 * histories.num_entries + rows)

  def policy(self, history: list[int], deadline: float) -> list[tuple[int, float]]:
    """Returns the strategy at a decision of the searcher, after re-solving its earlier decisions on the path.

    Args:
      history: the moves that lead to the decision.
      deadline: the time, by `time.perf_counter`, by which all these decisions should be re-solved.
    """
    histories, latest = self._tree.histories, self._first
    path = histories.path(history)
    indices = [int(self._tree.state_of[node]) for node in path]
    pending = [
      index for index in indices if index in self._decision_states and index not in self._solved
    ]
    for index in indices:
      if index in pending:
        now = time.perf_counter()
        share = (deadline - now) / (len(pending) - pending.index(index))
        self._resolve(index, latest, now + share - self._reserve)
      latest = self._solved.get(index, latest)
    span = histories.entries_of(int(histories.infoset[path[-1]]))
    legal = np.concatenate(histories.actions)[span]
    return list(zip(legal.tolist(), latest.policy[span].tolist(), strict=True))

  def _resolve(self, index: int, before: EvaluatedForestPolicy, deadline: float) -> None:
    """Re-solves a public state from the latest policy."""
    gadget, solver = self._options.choose(self._num_sequences(index), deadline)
    if before.has_unanswered(index):
      gadget = GADGETS["follow"]
    after, step = search_step(before, [self._tree[index]], gadget, solver)
    # Earlier gifts were measured against values of an earlier policy, so they do not count.
    self._solved[index] = after.with_gifts_from(step.min_depth)

  def _num_sequences(self, index: int) -> int:
    """Returns the number of sequences in the linear program of a subgame, the gadget's included."""
    tree, result = self._tree, 0
    for player, forest in enumerate(tree.forests):
      inside = forest.subtree_roots(tree.rows(index, player)) != NONE
      result += int(np.count_nonzero(inside[forest.row_of_slot[forest.infosets.slots]]))
    return result + tree.num_private_states(index)[1 - self._searcher]


class _Attempt(NamedTuple):
  """The re-solving of a subgame, or the error that prevents it.

  Attributes:
    resolving: `ContinualResolving`. The re-solving; None with an error.
    error: SpielCFRError. The error; None without one.
  """

  resolving: ContinualResolving | None = None
  error: errors.SpielCFRError | None = None


def _unanswered_actions(
  tree: ListedTree, policy: Float64s, unknown: Bools, searcher: int
) -> Bools | None:
  """Returns True at actions of the opponent to which the blueprint has no answer; None if it answers all.

  An action has no answer if the searcher may afterwards come to an infoset that the blueprint does not know, whatever
  the opponent plays.

  Args:
    tree: the public states.
    policy: float64 (slots,). The blueprint, uniform at infosets that it does not know.
    unknown: bool (infosets,). True at infosets that the blueprint does not know.
    searcher: the player who searches.

  Raises:
    PolicyError: the opponent cannot avoid an unknown infoset.
  """
  histories, forest = tree.histories, tree.forests[1 - searcher]
  is_reached = histories.chance * tree.reach(policy)[searcher][tree.row_of[searcher]] > 0
  is_unknown = (histories.mover == searcher) & unknown[histories.infoset] & is_reached
  unknown_nodes = np.flatnonzero(is_unknown)
  if not len(unknown_nodes):
    return None
  unanswered = np.zeros(histories.num_entries, bool)
  # By row of the opponent: whether an unknown infoset may follow, whatever the opponent does.
  leads_there = np.zeros(len(forest.above), bool)
  leads_there[tree.row_of[1 - searcher, unknown_nodes]] = True
  for level in reversed(forest.levels):
    leads_there[forest.above[level.passing[leads_there[level.passing]]]] = True
    unanswered[forest.slot[level.moved[leads_there[level.moved]]]] = True
    if len(level.slots):
      has_no_other = np.logical_and.reduceat(unanswered[level.slots], level.starts)
      leads_there[level.infoset_rows[has_no_other]] = True
  if leads_there[: forest.begins[1]].any():
    name = histories.infostate(int(histories.infoset[unknown_nodes[0]]))
    raise errors.PolicyError(
      f"The blueprint plays to infostate {name!r} of player {searcher}, and has no probabilities there."
    )
  return unanswered
