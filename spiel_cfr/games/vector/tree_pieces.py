"""Pieces of a public tree that several processes walk: the top of the tree, and the subtrees below it, the tasks."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s
from spiel_cfr.games.vector.deals import RULED_OUT, Deals, refused
from spiel_cfr.games.vector.typed_tree import TypedTree

# The child of an edge to the root of task t is this number plus t, which is larger than all nodes.
TASK = 1 << 30
# Returns have a constant sum if their sums differ by at most this share of the largest return.
_TOLERANCE = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
  """A piece of a public tree. Nodes, edges, terminals, kinds and matrices are numbered from 0 in each piece.

  Attributes:
    player: int8 (nodes,). `PublicTree.player`.
    kind: int32 (nodes,). The kind of each node.
    first_edge: int64 (nodes,). The first edge below each node.
    action: int32 (edges,). `PublicTree.action`.
    child: int32 (edges,). `PublicTree.child`, or `TASK` + t for the root of task t.
    matrix: int32 (terminals,). The matrix of each terminal.
    hashes: for each player, int64 (infosets,). The hashes of all infostates, node by node; `join` removes them. Equal
      hashes refuse the game, also in the rare case of different infostates.
    possible: for each kind, int64 (deals,). The deals that are possible at nodes of the kind.
    weights: for each kind, float64 (deals,). The probabilities of the possible deals.
    matrices: list of float64 (players, types of player 0, types of player 1). The different returns times weights.
    payoff_range: two floats. The smallest and the largest return.
    sums: two floats. The smallest and the largest sum of the players' returns.
  """

  player: Any
  kind: Int32s
  first_edge: Int64s
  action: Int32s
  child: Int32s
  matrix: Int32s
  hashes: list[Int64s]
  possible: list[Int64s]
  weights: list[Float64s]
  matrices: list[Float64s]
  payoff_range: tuple[float, float]
  sums: tuple[float, float]


def join(deals: Deals, pieces: Sequence[Piece]) -> TypedTree:
  """Joins the top and all tasks in order; raises UnsupportedGameError if an infostate belongs to two nodes."""
  kind, weights = _join_kinds(deals, pieces)
  matrix, matrices = _join_matrices(pieces)
  edges = np.cumsum([0, *(len(piece.child) for piece in pieces)])
  first_edges = [piece.first_edge + begin for piece, begin in zip(pieces, edges, strict=False)]
  low_sum, high_sum = min(piece.sums[0] for piece in pieces), max(piece.sums[1] for piece in pieces)
  lows, highs = zip(*(piece.payoff_range for piece in pieces), strict=True)
  lowest, highest = min(lows), max(highs)
  is_constant = high_sum - low_sum <= _TOLERANCE * max(abs(lowest), abs(highest))
  tree = TypedTree(
    deals=deals,
    weights=weights,
    player=np.concatenate([piece.player for piece in pieces]),
    kind=kind,
    first_edge=np.append(np.concatenate(first_edges), edges[-1]),
    action=np.concatenate([piece.action for piece in pieces]),
    child=_join_children(pieces),
    matrix=matrix,
    matrices=matrices,
    payoff_range=(lowest, highest),
    constant_sum=float(low_sum) if is_constant else None,
  )
  for player in (0, 1):
    # Hashes take most of the memory of the pieces.
    _check_different(tree, player, np.concatenate([piece.hashes.pop(0) for piece in pieces]))
  return tree


def _join_kinds(deals: Deals, pieces: Sequence[Piece]) -> tuple[Int32s, Float64s]:
  """Returns `TypedTree.kind` and `TypedTree.weights`; equal kinds of several pieces get one number."""
  numbers: dict[tuple[bytes, bytes], int] = {}
  weights: list[Float64s] = []
  kind = []
  for piece in pieces:
    new_numbers = []
    for possible, chances in zip(piece.possible, piece.weights, strict=True):
      key = possible.tobytes(), chances.tobytes()
      new_numbers.append(numbers.setdefault(key, len(numbers)))
      if len(numbers) > len(weights):
        weights.append(np.full(len(deals.weights), RULED_OUT))
        weights[-1][possible] = chances
    kind.append(np.array(new_numbers, np.int32)[piece.kind])
  return np.concatenate(kind), np.array(weights)


def _join_matrices(pieces: Sequence[Piece]) -> tuple[Int32s, Float64s]:
  """Returns `TypedTree.matrix` and `TypedTree.matrices`; equal matrices of several pieces get one number."""
  numbers: dict[bytes, int] = {}
  matrices: list[Float64s] = []
  matrix = []
  for piece in pieces:
    new_numbers = []
    for payoffs in piece.matrices:
      new_numbers.append(numbers.setdefault(payoffs.tobytes(), len(numbers)))
      if len(numbers) > len(matrices):
        matrices.append(payoffs)
    matrix.append(np.array(new_numbers, np.int32)[piece.matrix])
  return np.concatenate(matrix), np.array(matrices)


def _join_children(pieces: Sequence[Piece]) -> Int32s:
  """Returns `TypedTree.child`. The pieces after the top are the tasks; the root of a task is its first node."""
  first_node = np.cumsum([0, *(len(piece.player) for piece in pieces)])
  first_terminal = np.cumsum([0, *(len(piece.matrix) for piece in pieces)])
  result = []
  for number, piece in enumerate(pieces):
    child = piece.child.astype(np.int64)
    renumbered = np.where(child < 0, child - first_terminal[number], child + first_node[number])
    is_task = child >= TASK
    renumbered[is_task] = first_node[1 + child[is_task] - TASK]
    result.append(renumbered.astype(np.int32))
  return np.concatenate(result)


def _check_different(tree: TypedTree, player: int, hashes: Int64s) -> None:
  """Raises UnsupportedGameError, with two histories, if an infostate of a player belongs to two nodes."""
  in_order = np.sort(hashes)
  repeated = np.flatnonzero(in_order[1:] == in_order[:-1])
  if not len(repeated):
    return
  nodes = np.flatnonzero(tree.player == player)
  widths = [len(tree.types[kind][player]) for kind in tree.kind[nodes]]
  ends = np.cumsum(widths)
  histories = []
  for infoset in np.flatnonzero(hashes == in_order[repeated[0]])[:2].tolist():
    index = int(np.searchsorted(ends, infoset, side="right"))
    node = int(nodes[index])
    own_type = tree.types[tree.kind[node]][player][infoset - ends[index] + widths[index]]
    has_type = (tree.weights[tree.kind[node]] >= 0) & (tree.deals.types[player] == own_type)
    path = tree.deals.paths[np.argmax(has_type)]
    histories.append([*path[path >= 0].tolist(), *tree.actions_above(node)])
  first, second = (", ".join(map(str, history)) for history in histories)
  raise refused(
    f"player {player} has the same infostate after the histories [{first}] and [{second}], or forgets its type"
  )
