"""A game walked in segments: each begins at a public state and ends at the leaves of a lookahead."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.listed_tree import ListedTree
from spiel_cfr.search.lookahead import Lookahead


def check_view(view: GameView) -> None:
  """Raises UnsupportedGameError if a game cannot be searched in segments."""
  if view.num_players != 2:
    raise errors.UnsupportedGameError(
      f"Search is for constant-sum games of two players; {view.game} has {view.num_players}."
    )
  if view.declared_sum is None or view.game.get_type().short_name == "efg_game":
    raise errors.UnsupportedGameError(
      "Bots search only games whose type says that returns sum to a constant, and in which players who are not to move "
      f"know what they are told. {view.game} is not such a game, or does not say so. Compile it and call resolve."
    )


class Segment:
  """The histories from a public state down to the leaves of its lookahead.

  Attributes:
    tree: the public states of these histories; the first public state has index 0.
    lookahead: the sequences of both players.
  """

  def __init__(
    self,
    view: GameView,
    states: Sequence[Any],
    probabilities: Float64s | None,
    depth: int,
    max_histories: int,
  ) -> None:
    """Walks the histories.

    Args:
      view: the game.
      states: OpenSpiel's states in the public state.
      probabilities: float64 (3, states), see `HistoryTree`; 1 by default.
      depth: the number of moves of the segment, see `Lookahead`.
      max_histories: the largest number of histories.

    Raises:
      GameTooLargeError: the segment has more histories.
      UnsupportedGameError: see `HistoryTree` and `Lookahead`.
    """
    self._more = view, depth, max_histories
    histories = HistoryTree(view, states, max_histories, probabilities, depth=depth)
    self.tree = ListedTree(None, histories)
    self.lookahead = Lookahead(self.tree[0], depth)
    self._below: dict[int, Segment] = {}

  def below(self, leaf: int) -> "Segment":
    """Returns the segment below a leaf, given the leaf's position; each segment is walked once."""
    if leaf not in self._below:
      view, depth, max_histories = self._more
      nodes = self.tree.histories_of[self.lookahead.leaves[leaf].number]
      states = [self.tree.histories.state(node) for node in nodes.tolist()]
      probabilities = np.stack([self.tree.histories.chance[nodes], *np.ones((2, len(nodes)))])
      self._below[leaf] = Segment(view, states, probabilities, depth, max_histories)
    return self._below[leaf]
