"""All public states of a game in vector form, and the content of a page with the likeliest of them."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.explorer.page_content import Content, PublicState, Tree, kept_states, kept_tree
from spiel_cfr.games.openspiel.history_list import NONE


@dataclasses.dataclass(frozen=True, eq=False)
class PublicStates:
  """Public states that may be on a page: parents come first, and the children of a state are adjacent.

  Attributes:
    parent: int64 (states,). The state above each state; 0 for the root.
    mover: int64 (states,). The player to move, `CHANCE` or `TERMINAL`.
    num_infosets: int64 (states,). The number of hands or types to move.
    weight: float64 (states,). The probability of each state, up to a common factor.
    values: float64 (states, players). The expected payoff of each player; NaN at unreachable states.
    group: int64 (states,). States of a group, such as those of a board, are described one after the other.
  """

  parent: Int64s
  mover: Int64s
  num_infosets: Int64s
  weight: Float64s
  values: Float64s
  group: Int64s

  def content(
    self,
    max_infosets: int,
    names: dict[str, int],
    move: Callable[[int], int],
    describe: Callable[[int], PublicState | None],
    grid: dict[str, Any],
    spent: Int64s | None = None,
  ) -> Content:
    """Returns the content of a page; its header names the parts left out.

    Args:
      max_infosets: the most infosets on the page; the likeliest states are shown.
      names: the numbers of the names of moves, to which `move` and `describe` may add.
      move: function of a state; returns the number of the move that leads there. Not called for the root.
      describe: function of a state; returns its ranges, or None for a state without ranges.
      grid: `Content.grid`.
      spent: `Tree.spent` of all states.
    """
    weight = self.weight.copy()
    # Rounding must not make a state likelier than its parent.
    for state, above in enumerate(self.parent.tolist()):
      weight[state] = min(weight[state], weight[above])
    kept, cut = kept_states(weight, self.num_infosets, max_infosets)
    moves = np.array([0, *map(move, kept[1:].tolist())])
    rows: list[PublicState] = []
    row = np.full(len(kept), NONE)
    for place in np.argsort(self.group[kept], kind="stable").tolist():
      found = describe(int(kept[place]))
      if found is not None:
        row[place] = len(rows)
        rows.append(found)
    first_child, num_children, num_cut = kept_tree(self.parent, kept)
    with np.errstate(invalid="ignore", divide="ignore"):
      shares = np.nan_to_num(weight[kept] / weight[self.parent[kept]])
    tree = Tree(
      mover=self.mover[kept],
      first_child=first_child,
      num_children=num_children,
      num_cut=num_cut,
      move=moves,
      probability=np.append(1.0, shares[1:]),
      values=self.values[kept],
      row=row,
      spent=None if spent is None else spent[kept],
    )
    return Content({"cut": cut}, list(names), tree, public_states=rows, grid=grid)
