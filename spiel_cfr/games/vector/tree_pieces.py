"""A public tree in pieces, which several processes can walk: the top, and the subtrees below it, the tasks."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s
from spiel_cfr.games.vector.deals import RULED_OUT, Deals, refused
from spiel_cfr.games.vector.typed_tree import TypedTree

# What an edge to the root of task t has as its child is this plus t, above all nodes.
TASK = 1 << 30
# Of the largest return: what sums of returns may differ by and still count as constant.
_TOLERANCE = 1e-9


class Piece(NamedTuple):
  """What has been walked of a public tree; arrays as of `TypedTree`, numbered from 0.

  Attributes:
    child: node, -1 - k for terminal k, or `TASK` + t for the root of the piece of task t.
    hashes: by player, of all infostates, node by node, to find those that two nodes have; that hashes collide only
      refuses a game.
    places, weights: by kind, the deals that are alive and their probabilities.
    matrices: what the players get at some terminals, times weights.
    payoff_range: smallest and largest return.
    sums: smallest and largest sum of the players' returns.
  """

  player: Any
  kind: Int32s
  first_edge: Int64s
  action: Int32s
  child: Int32s
  matrix: Int32s
  hashes: list[Int64s]
  places: list[Int64s]
  weights: list[Float64s]
  matrices: list[Float64s]
  payoff_range: tuple[float, float]
  sums: tuple[float, float]


def join(deals: Deals, pieces: Sequence[Piece]) -> TypedTree:
  """Puts the pieces of a tree together: the top, then all tasks in order.

  Raises:
    UnsupportedGameError: an infostate belongs to two nodes.
  """
  ends = [
    np.cumsum([0, *map(len, own)]) for own in zip(*(piece[:6] for piece in pieces), strict=True)
  ]
  nodes, edges, terminals = ends[0], ends[3], ends[5]
  # What is the same in several pieces gets one number.
  kinds: dict[tuple[bytes, bytes], int] = {}
  known: dict[bytes, int] = {}
  alive: list[Float64s] = []
  matrices: list[Float64s] = []
  kind, child, matrix = [], [], []
  for number, piece in enumerate(pieces):
    here = []
    for places, weights in zip(piece.places, piece.weights, strict=True):
      here.append(kinds.setdefault((places.tobytes(), weights.tobytes()), len(kinds)))
      if len(kinds) > len(alive):
        alive.append(np.full(len(deals.weights), RULED_OUT))
        alive[-1][places] = weights
    kind.append(np.array(here, np.int32)[piece.kind])
    here = []
    for own in piece.matrices:
      here.append(known.setdefault(own.tobytes(), len(known)))
      if len(known) > len(matrices):
        matrices.append(own)
    matrix.append(np.array(here, np.int32)[piece.matrix])
    below = piece.child.astype(np.int64)
    moved = np.where(below < 0, below - terminals[number], below + nodes[number])
    # Tasks are the pieces behind the top; the first node of each is its root.
    is_task = below >= TASK
    moved[is_task] = nodes[1 + below[is_task] - TASK]
    child.append(moved.astype(np.int32))
  low, high = (
    np.min([piece.sums[0] for piece in pieces]),
    np.max([piece.sums[1] for piece in pieces]),
  )
  lowest, highest = (
    min(piece.payoff_range[0] for piece in pieces),
    max(piece.payoff_range[1] for piece in pieces),
  )
  off = _TOLERANCE * max(abs(lowest), abs(highest))
  tree = TypedTree(
    deals=deals,
    weights=np.array(alive),
    player=np.concatenate([piece.player for piece in pieces]),
    kind=np.concatenate(kind),
    first_edge=np.append(
      np.concatenate([piece.first_edge + edges[k] for k, piece in enumerate(pieces)]), edges[-1]
    ),
    action=np.concatenate([piece.action for piece in pieces]),
    child=np.concatenate(child),
    matrix=np.concatenate(matrix),
    matrices=np.array(matrices),
    payoff_range=(lowest, highest),
    constant_sum=float(low) if high - low <= off else None,
  )
  for player in (0, 1):
    _check_different(tree, player, np.concatenate([piece.hashes[player] for piece in pieces]))
  return tree


def _check_different(tree: TypedTree, player: int, hashes: Int64s) -> None:
  """Raises UnsupportedGameError, with two histories, where an infostate of a player belongs to two nodes."""
  in_order = np.sort(hashes)
  same = np.flatnonzero(in_order[1:] == in_order[:-1])
  if not len(same):
    return
  nodes = np.flatnonzero(tree.player == player)
  widths = [len(tree.types[kind][player]) for kind in tree.kind[nodes]]
  ends = np.cumsum(widths)
  histories = []
  for place in np.flatnonzero(hashes == in_order[same[0]])[:2].tolist():
    which = int(np.searchsorted(ends, place, side="right"))
    node = int(nodes[which])
    own = tree.types[tree.kind[node]][player][place - ends[which] + widths[which]]
    alive = (tree.weights[tree.kind[node]] >= 0) & (tree.deals.types[player] == own)
    path = tree.deals.paths[np.argmax(alive)]
    histories.append([*path[path >= 0].tolist(), *tree.actions_above(node)])
  first, second = (", ".join(map(str, history)) for history in histories)
  raise refused(
    f"player {player} knows the same after the history [{first}] and after the history [{second}], or forgets its type"
  )
