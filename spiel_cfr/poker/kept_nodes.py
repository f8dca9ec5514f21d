"""A public tree without some of its actions."""

import dataclasses
from collections.abc import Mapping, Sequence

from spiel_cfr.poker.hand_layout import Layout
from spiel_cfr.poker.public_tree import Kind, PublicNode


def kept_layout(
  layout: Layout, kept: Mapping[int, Sequence[int]]
) -> tuple[Layout, list[int], list[int]]:
  """Lays a game out without some actions.

  Args:
    layout: of the whole game.
    kept: for each decision, by its number in `layout.nodes`, the indices of the actions that are kept, ascending.

  Returns:
    The layout; for each of its nodes the number of the whole game's; and for each of its boards likewise.
  """
  number: dict[int, int] = {}
  origin: list[int] = []
  stack = [0]
  while stack:
    index = stack.pop()
    number[index] = len(origin)
    origin.append(index)
    children = layout.nodes[index].children
    left = kept[index] if index in kept else range(len(children))
    # Parents first, in the order of the whole game's nodes.
    stack += sorted((children[place] for place in left), reverse=True)
  nodes: list[PublicNode] = []
  for index in origin:
    node = layout.nodes[index]
    places = list(kept[index] if index in kept else range(len(node.children)))
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
  return Layout(layout.deal, nodes, [layout.boards[place] for place in boards]), origin, boards
