"""Betting lines: the players' moves and the dealt cards that lead from the beginning of a game to a public state."""

from collections.abc import Sequence

from spiel_cfr import errors
from spiel_cfr.poker import cards
from spiel_cfr.poker.betting_tree import NodeKind
from spiel_cfr.poker.hand_tree import HandTree


def find_decision(tree: HandTree, moves: Sequence[int | str]) -> tuple[int, int]:
  """Returns the board and the betting node of the decision after some moves.

  Args:
    tree: the public tree.
    moves: a player's action as an integer, a deal of public cards as a string such as `"2c"`.

  Raises:
    ArgumentError: a move is not possible, or no player decides after the moves.
  """
  number, node = 0, 0
  number_of = {board.cards: index for index, board in enumerate(tree.boards)}
  for index, move in enumerate(moves):
    here = tree.nodes[node]
    if here.kind is NodeKind.CHANCE and isinstance(move, str):
      dealt = sorted(cards.parse_cards(move, tree.deal.num_suits))
      following = number_of.get((*tree.boards[number].cards, *dealt))
      if following is None or len(dealt) != here.num_cards:
        raise _impossible(tree, moves, index, node)
      number, node = following, here.children[0]
    elif not isinstance(move, str) and move in here.actions:
      node = here.children[here.actions.index(move)]
    else:
      raise _impossible(tree, moves, index, node)
  if tree.nodes[node].kind is not NodeKind.DECISION:
    raise _impossible(tree, moves, len(moves), node)
  return number, node


def _impossible(
  tree: HandTree, moves: Sequence[int | str], index: int, node: int
) -> errors.ArgumentError:
  """Returns the error for moves that fit the tree up to a betting node, where the move at an index does not."""
  here = tree.nodes[node]
  if here.kind is NodeKind.CHANCE:
    expected = (
      f"chance deals {here.num_cards} public card(s) there: give them as a string, such as '2c'"
    )
  elif here.kind is NodeKind.DECISION:
    expected = f"the actions there are {list(here.actions)}"
  else:
    expected = "the hand ends there"
  problem = (
    f"{moves[index]!r} is not possible after {list(moves[:index])}"
    if index < len(moves)
    else "no player decides after them"
  )
  return errors.ArgumentError(f"moves {list(moves)}: {problem}; {expected}.")
