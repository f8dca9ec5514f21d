"""Trees of whole games, walked once for all who hold them at a time."""

import math
import weakref

from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.history_tree import HistoryTree

_HELD: "weakref.WeakKeyDictionary[GameView, weakref.ref[HistoryTree]]"
_HELD = weakref.WeakKeyDictionary()


def tree_of(view: GameView, max_nodes: int, deadline: float = math.inf) -> HistoryTree:
  """Returns all histories of a game; arguments and errors are those of `HistoryTree`."""
  held = _HELD.get(view)
  found = None if held is None else held()
  if found is None or len(found.parent) > max_nodes:
    found = HistoryTree(view, [view.new_initial_state()], max_nodes, deadline=deadline)
    _HELD[view] = weakref.ref(found)
  return found
