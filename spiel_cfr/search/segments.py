"""Segments of games, for searches that walk a game only as far as it is played.

A segment begins at a public state and ends at decisions, where further segments begin.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.bots import PolicyReader
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.search.blueprint_arrays import read_blueprint
from spiel_cfr.search.gadget_games import PerPlayer
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
  """The histories from a public state down to the first decisions after a number of moves.

  Attributes:
    tree: `ListedTree`. The public states of these histories; the first public state has index 0.
  """

  def __init__(
    self,
    view: GameView,
    states: Sequence[Any],
    probabilities: Float64s | None,
    depth: int,
    max_histories: int,
    blueprint: PolicyReader | None = None,
  ) -> None:
    """Walks the histories.

    Args:
      view: the game.
      states: OpenSpiel's states in the public state.
      probabilities: float64 (3, states), see `HistoryTree`; 1 by default.
      depth: the number of moves of the segment, see `Lookahead`.
      max_histories: the largest number of histories.
      blueprint: the policy of both players in this segment and those below. With None, both play to all states with
        probability 1.

    Raises:
      GameTooLargeError: the segment has more histories.
      UnsupportedGameError: see `HistoryTree`.
    """
    # The arguments that segments below share.
    self._view, self._depth, self._max_histories = view, depth, max_histories
    self._blueprint = blueprint
    self.tree = ListedTree(
      None, HistoryTree(view, states, max_histories, probabilities, depth=depth)
    )
    # By the index of a public state where this segment ends.
    self._below: dict[int, Segment] = {}

  @functools.cached_property
  def lookahead(self) -> Lookahead:
    """The sequences of both players; raises UnsupportedGameError as `Lookahead` does."""
    return Lookahead(self.tree[0], self._depth)

  @functools.cached_property
  def _reach(self) -> PerPlayer | None:
    """The probability that each player plays to each of its rows by the blueprint; None without a blueprint."""
    if self._blueprint is None:
      return None
    return self.tree.reach(read_blueprint(self.tree.histories, self._blueprint)[0])

  def path(self, history: Sequence[int]) -> list[int]:
    """Returns the indices of the histories along some moves, from the segment's first public state to its end.

    Raises:
      ArgumentError: the game has no such history.
    """
    histories = self.tree.histories
    path = histories.path(history)
    last = path[-1]
    is_end = histories.mover[last] >= 0 and histories.infoset[last] == NONE
    if histories.length[last] < len(history) and not is_end:
      raise errors.ArgumentError(
        f"{histories.view.game} has no history {list(history)}: its action {history[histories.length[last]]} is not "
        "listed."
      )
    return path

  def states_in(self, index: int) -> tuple[list[Any], Float64s]:
    """Returns OpenSpiel's states in a public state of the segment, and their probabilities as `HistoryTree` takes them.

    Args:
      index: the index of the public state.

    Raises:
      PolicyError: the blueprint's probabilities at an infoset are not a distribution.
    """
    tree, nodes = self.tree, self.tree.histories_of[index]
    probabilities = np.ones((3, len(nodes)))
    probabilities[0] = tree.histories.chance[nodes]
    if self._reach is not None:
      for player, reach in enumerate(self._reach):
        probabilities[1 + player] = reach[tree.row_of[player, nodes]]
    return [tree.histories.state(node) for node in nodes.tolist()], probabilities

  def segment_below(self, index: int) -> "Segment":
    """Returns the segment below a public state where this one ends. Each segment is walked once.

    Args:
      index: the index of the public state.
    """
    if index not in self._below:
      states, probabilities = self.states_in(index)
      self._below[index] = Segment(
        self._view, states, probabilities, self._depth, self._max_histories, self._blueprint
      )
    return self._below[index]
