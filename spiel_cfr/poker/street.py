"""Betting of one street as arrays: its decisions in layers, its folds and showdowns, and its deals of public cards.

`hand_values` evaluates all hands of a board along these arrays.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.poker.betting_tree import NodeKind, stakes
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree


class Layer(NamedTuple):
  """Decisions of one player at one depth of a street, and their actions as edges.

  A position is an index in `Street.nodes`.

  Attributes:
    player: int. The player to move.
    positions: int64 (decisions,). The position of each decision.
    begins: int64 (decisions,). The first edge of each decision.
    parents: int64 (edges,). The position of the decision above each edge.
    children: int64 (edges,). The position of the node below each edge.
    nodes: int64 (edges,). The betting node of the decision above each edge.
    actions: int64 (edges,). The index of each edge's action at its decision.
  """

  player: int
  positions: Int64s
  begins: Int64s
  parents: Int64s
  children: Int64s
  nodes: Int64s
  actions: Int64s


class StreetTerminals(NamedTuple):
  """Folds or showdowns of a street.

  Attributes:
    positions: list of int. The index of each terminal in `Street.nodes`.
    stakes: float64 (terminals, 1). The payoff less half of the rake, see `betting_tree.stakes`.
    rakes: float64 (terminals, 1). The rake of the pot.
  """

  positions: list[int]
  stakes: Float64s
  rakes: Float64s


class Street:
  """Betting between two deals of public cards, which is the same on all boards of a level.

  Attributes:
    nodes: list of int. The betting nodes, parents first.
    position: dict from int to int. The index in `nodes` of each betting node.
    layers: list of `Layer`. The decisions, by depth from the beginning of the street on.
    chances: list of int. The positions of the chance nodes.
    first_positions: list of int. The positions at which the street begins, one for each chance node of the street
      before.
    terminals: dict from `NodeKind` to `StreetTerminals`. The folds and the showdowns.
  """

  def __init__(self, tree: HandTree, level: int) -> None:
    """Lists the betting nodes of a level."""
    self.nodes = [number for number, node in enumerate(tree.nodes) if node.level == level]
    self.position = {node: position for position, node in enumerate(self.nodes)}
    of_street = [tree.nodes[node] for node in self.nodes]
    depth = np.zeros(len(of_street), np.int64)
    decisions: dict[tuple[int, int], list[int]] = {}
    for position, node in enumerate(of_street):
      if node.kind is NodeKind.DECISION:
        decisions.setdefault((int(depth[position]), node.player), []).append(position)
        depth[[self.position[child] for child in node.children]] = depth[position] + 1
    self.layers = [self._layer(tree, decisions[key], key[1]) for key in sorted(decisions)]
    self.chances = [
      position for position, node in enumerate(of_street) if node.kind is NodeKind.CHANCE
    ]
    deals = [
      node for node in tree.nodes if node.level == level - 1 and node.kind is NodeKind.CHANCE
    ]
    self.first_positions = [self.position[node.children[0]] for node in deals] if level else [0]
    self.terminals = {}
    for kind in TERMINALS:
      positions = [position for position, node in enumerate(of_street) if node.kind is kind]
      payoffs, rakes = (
        np.array([getattr(of_street[position], name) for position in positions])[:, None]
        for name in ("payoff", "rake")
      )
      self.terminals[kind] = StreetTerminals(positions, stakes(payoffs, rakes), rakes)

  def _layer(self, tree: HandTree, positions: list[int], player: int) -> Layer:
    """Returns the decisions at some positions, all of one player, as a layer."""
    nodes = np.array([self.nodes[position] for position in positions])
    children = [tree.nodes[node].children for node in nodes.tolist()]
    counts = np.array([len(of_node) for of_node in children])
    begins = np.cumsum(counts) - counts
    return Layer(
      player=player,
      positions=np.array(positions),
      begins=begins,
      parents=np.repeat(positions, counts),
      children=np.array([self.position[child] for of_node in children for child in of_node]),
      nodes=np.repeat(nodes, counts),
      actions=concatenated_ranges(np.zeros_like(counts), counts),
    )
