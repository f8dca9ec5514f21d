"""A game walked piece by piece: from a public state down to the leaves of a lookahead, and on from there when asked."""

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
  """Raises UnsupportedGameError if a game can't be searched piece by piece."""
  if view.num_players != 2:
    raise errors.UnsupportedGameError(
      f"Search is for constant-sum games of two players; {view.game} has {view.num_players}."
    )
  if view.declared_sum is None or view.game.get_type().short_name == "efg_game":
    raise errors.UnsupportedGameError(
      "Bots search where returns sum to a constant by the game's type, and where players who are not to move know "
      f"what they are told; {view.game} says nothing of the one, or of the other. Compile it and call resolve."
    )


class Segment:
  """The histories from a public state down to the leaves of its lookahead.

  Attributes:
    tree: their public states; the first one is 0.
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
      states: OpenSpiel's states of the public state.
      probabilities: float64 (3, states), see `HistoryTree`; 1 by default.
      depth: see `Lookahead`.
      max_histories: the most histories.

    Raises:
      GameTooLargeError: there are more histories.
      UnsupportedGameError: see `HistoryTree` and `Lookahead`.
    """
    self._more = view, depth, max_histories
    histories = HistoryTree(view, states, max_histories, probabilities, depth=depth)
    self.tree = ListedTree(None, histories)
    self.lookahead = Lookahead(self.tree[0], depth)
    self._below: dict[int, Segment] = {}

  def below(self, leaf: int) -> "Segment":
    """Returns the segment below a leaf, by its place; walked once."""
    if leaf not in self._below:
      view, depth, max_histories = self._more
      nodes = self.tree.listed.histories_of[self.lookahead.leaves[leaf].number]
      states = [self.tree.histories.state(node) for node in nodes.tolist()]
      probabilities = np.stack([self.tree.histories.chance[nodes], *np.ones((2, len(nodes)))])
      self._below[leaf] = Segment(view, states, probabilities, depth, max_histories)
    return self._below[leaf]
