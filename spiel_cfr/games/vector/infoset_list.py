"""The infosets of a game in vector form with their names, in the order of OpenSpiel's `TabularPolicy`."""

import functools
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import concatenated_ranges
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.public_tree import IMPOSSIBLE, wrong_game_error


def list_infosets(layout: Layout, view: GameView, player: int) -> Infosets:
  """Lists a player's infosets in the order of their first histories, by a walk below the deals of these.

  Raises:
    FileFormatError: the public tree is that of another game.
  """
  tree = layout.tree
  names: list[str] = []
  nodes: list[int] = []
  places: list[int] = []
  kinds = tree.kind.tolist()

  @functools.cache
  def moves(node: int) -> tuple[int, list[tuple[list[int], int]], set[int]]:
    """Returns the player to move at a node, the moves to its children in the order of histories, and all actions."""
    edges = range(tree.first_edge[node], tree.first_edge[node + 1])
    below = [(tree.moves(edge), int(tree.child[edge])) for edge in edges if tree.child[edge] >= 0]
    below.sort(key=lambda move: list(map(str, move[0])))
    return int(tree.player[node]), below, {tree.moves(edge)[0] for edge in edges}

  def visit(state: Any, node: int, place_by_kind: list[int]) -> None:
    mover, below, actions = moves(node)
    below = [move for move in below if place_by_kind[kinds[move[1]]] != IMPOSSIBLE]
    if mover < 0:
      # The outcomes of chance may depend on the deal.
      actions = {move[0][0] for move in below}
    if state.current_player() != mover or not actions.issubset(state.legal_actions()):
      raise wrong_game_error(state)
    if mover == player and place_by_kind[kinds[node]] >= 0:
      names.append(view.infostate(state))
      nodes.append(node)
      places.append(place_by_kind[kinds[node]])
    for (first, *others), child in below:
      after = state.child(first)
      for action in others:
        after.apply_action(action)
      visit(after, child, place_by_kind)

  for state, place_by_kind in tree.first_deals(view, player):
    visit(state, 0, place_by_kind.tolist())
  own, place = np.array(nodes, np.int64), np.array(places, np.int64)
  counts = tree.num_actions[own].astype(np.int64)
  return Infosets(
    infostates=names,
    actions=tree.action[concatenated_ranges(tree.first_edge[own], counts)].astype(np.int64),
    num_actions=counts,
    position=(layout.infoset[own] - layout.first_infosets[player, 0] + place).astype(np.uint32),
    first_sequence=(layout.first[own] + place).astype(np.uint32),
    stride=layout.stride[own].astype(np.uint32),
  )
