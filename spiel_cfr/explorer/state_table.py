"""Table of the public states of a game in vector form, and the content of a page with the likeliest of them."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.explorer.page_content import Content, PageState, PageTree, kept_tree
from spiel_cfr.games.openspiel.history_list import NONE


@dataclasses.dataclass(frozen=True, eq=False)
class StateTable:
  """Public states that may be on a page: parents come first, and the children of a state are adjacent.

  Attributes:
    parent: int64 (states,). The state above each state; 0 for the root.
    mover: int64 (states,). The player to move, `CHANCE` or `TERMINAL`.
    num_infosets: int64 (states,). The number of hands or types of the player to move; 0 at other states.
    weight: float64 (states,). The probability of each state, up to a common factor.
    values: float64 (states, players). The expected payoff of each player; NaN at unreachable states.
    group: int64 (states,). The group of each state, such as its board. States of a group are described in sequence.
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
    describe: Callable[[int], PageState | None],
    grid: dict[str, Any],
    spent: Int64s | None = None,
  ) -> Content:
    """Returns the content of a page; its header names the parts left out.

    Args:
      max_infosets: the largest number of infosets on the page. If there are more, the likeliest states are shown.
      names: name of a move -> its index in `Content.names`. `move` and `describe` may add names.
      move: function of a state; returns the move that leads there, as an index of `Content.names`. It is not called for
        the root.
      describe: function of a state; returns its ranges, or None for a state without ranges.
      grid: `Content.grid`.
      spent: int64 (states, players). The chips of each player in the pot of hold'em; None for other games.
    """
    weight = self.weight.copy()
    # Rounding must not make a state likelier than its parent.
    for state, above in enumerate(self.parent.tolist()):
      weight[state] = min(weight[state], weight[above])
    order = np.argsort(-weight, kind="stable")
    fits = np.cumsum(self.num_infosets[order]) <= max_infosets
    # The root is always kept.
    kept = np.sort(order[: max(1, np.count_nonzero(fits))])
    cut = []
    if len(kept) < len(order):
      cut.append(
        f"{len(order) - len(kept):,} of {len(order):,} public states (this page has the {len(kept):,} likeliest)"
      )
    moves = np.array([0, *map(move, kept[1:].tolist())])
    rows: list[PageState] = []
    row = np.full(len(kept), NONE)
    for index in np.argsort(self.group[kept], kind="stable").tolist():
      described = describe(int(kept[index]))
      if described is not None:
        row[index] = len(rows)
        rows.append(described)
    first_child, num_children, num_cut = kept_tree(self.parent, kept)
    with np.errstate(invalid="ignore", divide="ignore"):
      shares = np.nan_to_num(weight[kept] / weight[self.parent[kept]])
    tree = PageTree(
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
