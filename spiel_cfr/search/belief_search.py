"""Continual re-solving with leaf values: each subgame takes its ranges and limits from the subgame above it.

The method is that of DeepStack (Moravčík et al. 2017). The first subgame begins at the root of the game. Each later one
begins at a leaf of the previous subgame, with the average ranges of both players at that leaf. A gadget in front limits
the opponent to the average values that it had at the leaf. The search needs no blueprint, and walks the game only as
far as it is played.
"""

from typing import Any

import numpy as np

from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.gadgets import GADGETS
from spiel_cfr.search.game_search import GameSearch, SearchLimits
from spiel_cfr.search.lookahead import Found, Front, LeafValues
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
    limits: SearchLimits,
  ) -> None:
    """Takes the game and the leaf values.

    Args:
      view: the game.
      player: the player who searches.
      leaf_values: the values of private states at the leaves.
      depth: the number of moves of a subgame, see `Lookahead`.
      limits: the number of iterations of PCFR+ in each subgame, 200 by default; the largest number of histories of a
        subgame, down to its leaves; and the gadget in front of all subgames except the first, "follow" by default.
    """
    self.view, self._player, self._leaf_values = view, player, leaf_values
    self._depth, self._limits = depth, limits
    self._iterations = limits.iterations or _ITERATIONS
    self._gadget = limits.gadget or GADGETS["follow"]
    self._first: Segment | None = None
    # By segment: the solution of its subgame.
    self._solved = dict[Segment, Found]()

  @property
  def size(self) -> int:
    """The approximate count of numbers that the object keeps."""
    return sum(12 * len(each.tree.histories.parent) for each in self._solved)

  def prepare(self) -> None:
    """Solves the first subgame.

    Raises:
      GameTooLargeError: the subgame has more than `max_histories` histories.
      UnsupportedGameError: see `HistoryTree` and `Lookahead`.
    """
    self._root()

  def _root(self) -> Segment:
    """Returns the segment at the root of the game, after solving it."""
    if self._first is None:
      start = [self.view.new_initial_state()]
      first = Segment(self.view, start, None, self._depth, self._limits.max_histories)
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
    segment, history = self._root(), state.history()
    while True:
      leaves = {each.number for each in segment.lookahead.leaves}
      path = segment.path(history)
      reached = [number for number in segment.tree.state_of[path].tolist() if number in leaves]
      if not reached:
        break
      segment = self._below(segment, reached[0])
    histories, node = segment.tree.histories, path[-1]
    begin = int(histories.first_entry[histories.infoset[node]])
    span = slice(begin, begin + int(histories.num_actions[histories.infoset[node]]))
    entries = segment.lookahead.sides[self._player].entries
    chances = np.zeros(histories.num_entries)
    chances[entries] = self._solved[segment].strategies[self._player][:, 0]
    legal = np.concatenate(histories.actions)[span]
    return list(zip(legal.tolist(), chances[span].tolist(), strict=True))

  def _below(self, above: Segment, number: int) -> Segment:
    """Returns the segment below a leaf, after solving it; `number` is the leaf's index as a public state."""
    segment = above.below(number)
    if segment not in self._solved:
      leaf = [each.number for each in above.lookahead.leaves].index(number)
      before, front = self._solved[above], None
      counts = above.lookahead.counts[leaf]
      ranges, values = (
        [own[leaf, player, : counts[player]] for player in (0, 1)]
        for own in (before.leaf_ranges, before.leaf_values)
      )
      if self._gadget.is_safe:
        opponent = 1 - self._player
        front = Front(self._player, values[opponent], self._gadget.follows(ranges[opponent]))
      self._solved[segment] = segment.lookahead.solve(
        (ranges[0], ranges[1]), self._leaf_values, self._iterations, front
      )
    return segment
