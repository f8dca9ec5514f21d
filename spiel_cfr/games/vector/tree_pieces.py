"""A public tree in pieces, which several processes can walk: the top, and the subtrees below it, the tasks."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s
from spiel_cfr.games.vector.deals import RULED_OUT, Deals, refused
from spiel_cfr.games.vector.typed_tree import TypedTree

# What an edge to the root of task t has as its child is this plus t, above all nodes.
TASK = 1 << 30
# Of the largest return: what sums of returns may differ by and still count as constant.
_TOLERANCE = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
  """What has been walked of a public tree, numbered from 0; the child of an edge may be `TASK` + t, the root of task t.

  Attributes:
    player, kind, first_edge, action, child, matrix: as of `TypedTree`, kinds and matrices by number in this piece.
    hashes: by player, of all infostates, node by node, to find those that two nodes have; that hashes collide only
      refuses a game. Whoever joins pieces takes them.
    alive, weights: by kind, the deals that are possible and their probabilities.
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
  alive: list[Int64s]
  weights: list[Float64s]
  matrices: list[Float64s]
  payoff_range: tuple[float, float]
  sums: tuple[float, float]


def join(deals: Deals, pieces: Sequence[Piece]) -> TypedTree:
  """Joins the top and all tasks in order; raises UnsupportedGameError where an infostate belongs to two nodes."""
  nodes, edges, terminals = (
    np.cumsum([0, *(len(getattr(piece, name)) for piece in pieces)])
    for name in ("player", "child", "matrix")
  )
  # What is the same in several pieces gets one number.
  kinds: dict[tuple[bytes, bytes], int] = {}
  known: dict[bytes, int] = {}
  weights: list[Float64s] = []
  matrices: list[Float64s] = []
  kind, child, matrix = [], [], []
  for number, piece in enumerate(pieces):
    here = []
    for alive, own in zip(piece.alive, piece.weights, strict=True):
      here.append(kinds.setdefault((alive.tobytes(), own.tobytes()), len(kinds)))
      if len(kinds) > len(weights):
        weights.append(np.full(len(deals.weights), RULED_OUT))
        weights[-1][alive] = own
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
  low, high = min(each.sums[0] for each in pieces), max(each.sums[1] for each in pieces)
  lows, highs = zip(*(each.payoff_range for each in pieces), strict=True)
  lowest, highest = min(lows), max(highs)
  off = _TOLERANCE * max(abs(lowest), abs(highest))
  tree = TypedTree(
    deals=deals,
    weights=np.array(weights),
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
    # These are most of all that was walked.
    _check_different(tree, player, np.concatenate([piece.hashes.pop(0) for piece in pieces]))
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
