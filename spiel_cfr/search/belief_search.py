"""Continual re-solving with leaf values: each subgame takes its ranges and limits from the subgame above it.

The method is that of DeepStack (Moravčík et al. 2017). The first subgame begins at the root of the game. Each later one
begins at a leaf of the previous subgame, with the average ranges of both players at that leaf. A gadget in front limits
the opponent to the average values that it had at the leaf. The search needs no blueprint, and walks the game only as
far as it is played.
"""

import numpy as np

from spiel_cfr import errors
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.lookahead import Front, LeafValues
from spiel_cfr.search.segments import Segment


class BeliefSearch:
  """One player's search from the root of the game on; each subgame is solved once."""

  def __init__(
    self,
    view: GameView,
    player: int,
    leaf_values: LeafValues,
    depth: int,
    iterations: int,
    max_histories: int,
    gadget: Gadget = GADGETS["follow"],
  ) -> None:
    """Solves the first subgame.

    Args:
      view: the game.
      player: the player who searches.
      leaf_values: the values of private states at the leaves.
      depth: the number of moves of a subgame, see `Lookahead`.
      iterations: the number of iterations of PCFR+ in each subgame.
      max_histories: the largest number of histories of a subgame, down to its leaves.
      gadget: the gadget in front of all subgames except the first, with the front "deal" or "choice".

    Raises:
      GameTooLargeError: a subgame has more histories.
      UnsupportedGameError: see `HistoryTree` and `Lookahead`.
    """
    self._player, self._leaf_values, self._iterations = player, leaf_values, iterations
    self._gadget = gadget
    self._first = Segment(view, [view.new_initial_state()], None, depth, max_histories)
    root = np.ones((1, 1))
    found = self._first.lookahead.solve((root, root), leaf_values, iterations)
    # By segment: the solution of its subgame.
    self._solved = {self._first: found}

  @property
  def size(self) -> int:
    """The approximate count of numbers that the object keeps."""
    return sum(12 * len(each.tree.histories.parent) for each in self._solved)

  def policy(self, history: list[int]) -> list[tuple[int, float]]:
    """Returns the strategy at a decision of the player, after solving the subgames on the way.

    Raises:
      ArgumentError: the game has no such history.
    """
    segment = self._first
    while True:
      histories = segment.tree.histories
      node = histories.path(history)[-1]
      # Decisions at leaves, where the walk ends, have no infoset.
      if histories.mover[node] < 0 or histories.infoset[node] >= 0:
        break
      segment = self._below(segment, int(segment.tree.state_of[node]))
    if histories.length[node] < len(history):
      raise errors.ArgumentError(
        f"{histories.view.game} has no history {history}: its action {history[histories.length[node]]} is not listed."
      )
    begin = int(histories.first_entry[histories.infoset[node]])
    span = slice(begin, begin + int(histories.num_actions[histories.infoset[node]]))
    entries = segment.lookahead.sides[self._player].entries
    chances = np.zeros(histories.num_entries)
    chances[entries] = self._solved[segment].strategies[self._player][:, 0]
    legal = np.concatenate(histories.actions)[span]
    return list(zip(legal.tolist(), chances[span].tolist(), strict=True))

  def _below(self, above: Segment, number: int) -> Segment:
    """Returns the segment below a leaf, after solving it; `number` is the leaf's index as a public state."""
    leaf = [each.number for each in above.lookahead.leaves].index(number)
    segment = above.below(leaf)
    if segment not in self._solved:
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
