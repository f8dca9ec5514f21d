"""Betting abstraction without another walk: a poker game in vector form without some of its actions."""

import dataclasses
from collections.abc import Mapping, Sequence

from spiel_cfr.poker.hand_layout import Layout
from spiel_cfr.poker.public_tree import Kind, PublicNode


def layout_with_actions(
  layout: Layout, kept: Mapping[int, Sequence[int]]
) -> tuple[Layout, list[int], list[int]]:
  """Lays a game out with some of its actions.

  Args:
    layout: of the whole game.
    kept: for each decision, by its number in `layout.nodes`, the indices of the actions that are kept, ascending.

  Returns:
    The layout; the number that each of its nodes has in the whole game; and those of its boards.
  """
  number: dict[int, int] = {}
  stack = [0]
  while stack:
    index = stack.pop()
    number[index] = len(number)
    children = layout.nodes[index].children
    # Parents first, in the order of the whole game's nodes.
    stack += sorted((children[place] for place in _places(layout, kept, index)), reverse=True)
  nodes: list[PublicNode] = []
  for index in number:
    node, places = layout.nodes[index], _places(layout, kept, index)
    last = tuple(
      None if own is None else (number[own[0]], list(kept[own[0]]).index(own[1]))
      for own in node.last
    )
    nodes.append(
      dataclasses.replace(
        node,
        actions=tuple(node.actions[place] for place in places) if index in kept else (),
        children=[number[node.children[place]] for place in places],
        last=last,
      )
    )
  levels = {node.level for node in nodes if node.kind is not Kind.CHANCE}
  # The board at the beginning is always the first.
  boards = [
    place for place, board in enumerate(layout.boards) if board.level in levels or not place
  ]
  small = Layout(layout.deal, nodes, [layout.boards[place] for place in boards])
  return small, list(number), boards


def _places(layout: Layout, kept: Mapping[int, Sequence[int]], node: int) -> Sequence[int]:
  return kept[node] if node in kept else range(len(layout.nodes[node].children))
