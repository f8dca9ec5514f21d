"""Continual re-solving with leaf values, without a blueprint.

The method is that of DeepStack (Moravčík et al. 2017). The first subgame begins at the root of the game. Each later one
begins at a leaf of the previous subgame, with the average ranges of both players at that leaf. A gadget in front bounds
the opponent by the average values that it had at the leaf. The search walks the game only as far as it is played.
"""

from typing import Any

import numpy as np

from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.game_search import GameSearch, SearchOptions
from spiel_cfr.search.lookahead import ChoiceGadget, LeafValues, LookaheadSolution
from spiel_cfr.search.segments import Segment

_ITERATIONS = 200


class BeliefSearch(GameSearch):
  """One player's search from the root of the game on; each subgame is solved once."""

  def __init__(
    self,
    view: GameView,
    player: int,
    leaf_values: LeafValues,
    depth: int,
    options: SearchOptions,
  ) -> None:
    """Takes the game and the leaf values.

    Args:
      view: the game.
      player: the player who searches.
      leaf_values: the values of private states at the leaves.
      depth: the number of moves of a subgame, see `Lookahead`.
      options: the number of iterations of SAPCFR+ in each subgame, 200 by default; the largest number of histories of a
        subgame, down to its leaves; and the gadget in front of all subgames except the first, "follow" by default.
    """
    super().__init__(view, player, options)
    self._leaf_values, self._depth = leaf_values, depth
    self._iterations = options.iterations or _ITERATIONS
    self._gadget = options.gadget_for(can_pick=False, is_iterative=True)
    self._first: Segment | None = None
    self._solved = dict[Segment, LookaheadSolution]()

  @property
  def size(self) -> int:
    """The approximate count of numbers that the object keeps."""
    return sum(12 * len(segment.tree.histories.parent) for segment in self._solved)

  def prepare(self) -> None:
    """Solves the first subgame.

    Raises:
      GameTooLargeError: the subgame has more than `max_histories` histories.
      UnsupportedGameError: see `HistoryTree` and `Lookahead`.
    """
    self._root_segment()

  def _root_segment(self) -> Segment:
    """Returns the segment at the root of the game, after solving it."""
    if self._first is None:
      start = [self.view.new_initial_state()]
      first = Segment(self.view, start, None, self._depth, self._options.max_histories)
      root = np.ones((1, 1))
      self._solved[first] = first.lookahead.solve((root, root), self._leaf_values, self._iterations)
      self._first = first
    return self._first

  def policy(self, state: Any, deadline: float) -> list[tuple[int, float]]:
    """Returns the strategy at a decision of the player, after solving the subgames on the way, whatever the deadline.

    Raises:
      ArgumentError: the game has no such history.
      GameTooLargeError: a subgame has more than `max_histories` histories.
    """
    segment, history = self._root_segment(), state.history()
    while True:
      path = segment.path(history)
      leaves = {leaf.index for leaf in segment.lookahead.leaves}
      reached = [index for index in segment.tree.state_of[path].tolist() if index in leaves]
      if not reached:
        break
      segment = self._segment_below(segment, reached[0])
    histories = segment.tree.histories
    span = histories.entries_of(int(histories.infoset[path[-1]]))
    slots = segment.lookahead.sequences[self._player].slots
    strategy = np.zeros(histories.num_entries)
    strategy[slots] = self._solved[segment].strategies[self._player][:, 0]
    legal = np.concatenate(histories.actions)[span]
    return list(zip(legal.tolist(), strategy[span].tolist(), strict=True))

  def _segment_below(self, above: Segment, index: int) -> Segment:
    """Returns the segment below a leaf, after solving it; `index` is the leaf's index as a public state."""
    segment = above.segment_below(index)
    if segment not in self._solved:
      leaf = [each.index for each in above.lookahead.leaves].index(index)
      solution, counts = self._solved[above], above.lookahead.counts[leaf]
      first, second = (solution.leaf_ranges[leaf, player, : counts[player]] for player in (0, 1))
      opponent = 1 - self._player
      bounds = solution.leaf_values[leaf, opponent, : counts[opponent], 0]
      ranges = first[:, 0], second[:, 0]
      gadget = ChoiceGadget.in_front(segment.tree, 0, self._player, ranges, self._gadget, bounds)
      self._solved[segment] = segment.lookahead.solve(
        (first, second), self._leaf_values, self._iterations, gadget
      )
    return segment
