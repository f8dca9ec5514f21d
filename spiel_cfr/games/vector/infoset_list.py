"""`list_infosets`, which walks a game in vector form to name its infosets, in the order of OpenSpiel's policies."""

import functools
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import concatenated_ranges
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.public_tree import IMPOSSIBLE, wrong_game_error


def list_infosets(layout: Layout, view: GameView, player: int) -> Infosets:
  """Lists a player's infosets in the order of their first histories, that of OpenSpiel's `TabularPolicy`.

  Only the deals that are first at some infoset are walked, see `PublicTree.first_deals`.

  Raises:
    FileFormatError: the public tree is that of another game.
  """
  tree = layout.tree
  names: list[str] = []
  node_list: list[int] = []
  offset_list: list[int] = []
  kinds = tree.kind.tolist()

  @functools.cache
  def moves(node: int) -> tuple[int, list[tuple[list[int], int]], set[int]]:
    """Returns the player to move at a node, (actions, child) in the order of histories, and the edges' first actions.

    Children that are terminals are left out.
    """
    edges = range(tree.first_edge[node], tree.first_edge[node + 1])
    inner = [(tree.moves(edge), int(tree.child[edge])) for edge in edges if tree.child[edge] >= 0]
    inner.sort(key=lambda move: list(map(str, move[0])))
    return int(tree.player[node]), inner, {tree.moves(edge)[0] for edge in edges}

  def visit(state: Any, node: int, offset_by_kind: list[int]) -> None:
    """Adds the infosets of a state and of all states after it, given the offsets of a deal from `first_deals`."""
    mover, inner, actions = moves(node)
    inner = [move for move in inner if offset_by_kind[kinds[move[1]]] != IMPOSSIBLE]
    if mover < 0:
      # The outcomes of chance may depend on the deal.
      actions = {move[0][0] for move in inner}
    if state.current_player() != mover or not actions.issubset(state.legal_actions()):
      raise wrong_game_error(state)
    if mover == player and offset_by_kind[kinds[node]] >= 0:
      names.append(view.infostate(state))
      node_list.append(node)
      offset_list.append(offset_by_kind[kinds[node]])
    for (first_action, *later_actions), child in inner:
      after = state.child(first_action)
      for action in later_actions:
        after.apply_action(action)
      visit(after, child, offset_by_kind)

  for state, offset_by_kind in tree.first_deals(view, player):
    visit(state, 0, offset_by_kind.tolist())
  nodes, offsets = np.array(node_list, np.int64), np.array(offset_list, np.int64)
  counts = tree.num_actions[nodes].astype(np.int64)
  action = concatenated_ranges(np.zeros_like(counts), counts)
  sequences = np.repeat(layout.first[nodes] + offsets, counts)
  sequences += action * np.repeat(layout.stride[nodes].astype(np.int64), counts)
  return Infosets(
    infostates=names,
    actions=tree.action[concatenated_ranges(tree.first_edge[nodes], counts)].astype(np.int64),
    num_actions=counts,
    sequences=np.append(layout.roots[player], sequences).astype(np.uint32),
    position=(layout.infoset[nodes] - layout.first_infosets[player, 0] + offsets).astype(np.uint32),
  )
