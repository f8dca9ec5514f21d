"""The infosets of a game in vector form by name, in the order of OpenSpiel's `TabularPolicy`."""

from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import spread
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.typed_layout import TypedLayout


def list_infosets(layout: TypedLayout, view: GameView, player: int) -> Infosets:
  """Lists a player's infosets, by the first deals to them; raises FileFormatError where the tree is another game's."""
  tree = layout.tree
  types = tree.deals.types[player]
  # By kind: the first deal of each type that is alive, and the place of each deal's type in the rows of the kind.
  first = [np.zeros(0, bool) for _ in tree.weights]
  lane = [np.zeros(0, np.int64) for _ in tree.weights]
  for kind, weights in enumerate(tree.weights):
    alive = np.flatnonzero(weights >= 0)
    _, found = np.unique(types[alive], return_index=True)
    first[kind] = np.isin(np.arange(len(types)), alive[found])
    lane[kind] = np.searchsorted(tree.types[kind][player], types)
  names: list[str] = []
  nodes: list[int] = []
  lanes: list[int] = []

  def require(is_so: bool, state: Any) -> None:
    if not is_so:
      raise errors.FileFormatError(
        f"What was read says that it is {view.game}, but that has other actions after the history "
        f"[{state.history_str()}]."
      )

  def visit(state: Any, node: int, deal: int) -> None:
    kind, mover = tree.kind[node], tree.player[node]
    edges = np.arange(tree.first_edge[node], tree.first_edge[node + 1])
    below = edges[tree.child[edges] >= 0]
    below = below[tree.weights[tree.kind[tree.child[below]], deal] >= 0]
    # What chance can do may depend on the deal.
    asked = tree.action[below if mover < 0 else edges].tolist()
    require(state.current_player() == mover and {*asked} <= {*state.legal_actions()}, state)
    if mover == player and first[kind][deal]:
      names.append(view.infostate(state))
      nodes.append(node)
      lanes.append(int(lane[kind][deal]))
    for edge in sorted(below.tolist(), key=lambda each: str(tree.action[each])):
      visit(state.child(int(tree.action[edge])), tree.child[edge], deal)

  roots = {int(deal) for own in first for deal in np.flatnonzero(own)}
  for deal in sorted(roots):
    state = view.new_initial_state()
    path = tree.deals.paths[deal]
    for action in path[path >= 0].tolist():
      require(state.is_chance_node() and action in state.legal_actions(), state)
      state.apply_action(action)
    visit(state, 0, deal)
  own, place = np.array(nodes, np.int64), np.array(lanes, np.int64)
  counts = tree.num_actions[own].astype(np.int64)
  return Infosets(
    infostates=names,
    actions=tree.action[spread(tree.first_edge[own], counts)].astype(np.int64),
    num_actions=counts,
    position=(layout.infoset[own] - layout.first_infosets[player, 0] + place).astype(np.uint32),
    first_sequence=(layout.first[own] + place).astype(np.uint32),
    stride=layout.stride[own].astype(np.uint32),
  )
