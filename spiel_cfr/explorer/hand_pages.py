"""Content of a page for a poker game in vector form, with the numbers of `poker.hand_values`.

A flop has thousands of boards. Its page shows the boards of some runouts, and the values of every card that chance may
deal next.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s
from spiel_cfr._util import arguments
from spiel_cfr.explorer.hand_moves import HandMoves
from spiel_cfr.explorer.page_content import Content, PageState, PrivateRange
from spiel_cfr.explorer.state_table import StateTable
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker import cards
from spiel_cfr.poker.betting_tree import NodeKind
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree
from spiel_cfr.poker.hand_values import HandValues, PlayedBoard
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.suit_symmetries import symmetries


class _State(NamedTuple):
  """Public state of a page.

  Attributes:
    board: int. The number of the board.
    node: int. The betting node.
    parent: int. The number of the public state above.
  """

  board: int
  node: int
  parent: int


def describe(
  game: PublicGame,
  values: HandValues,
  *,
  max_infosets: int,
  runouts: Iterable[str] | None = None,
) -> Content:
  """Returns the content of a page; its header contains the values of the game, and names the parts left out.

  Args:
    game: the game.
    values: the policy.
    max_infosets: the largest number of hands at all public states of the page together. If there are more, the
      likeliest states are shown.
    runouts: cards dealt after the first board, such as "2c" or "2c7s". The page shows the boards of these runouts and
      the boards on the way there. None shows all boards if only one deal follows or all infosets fit; else the first
      board.

  Raises:
    ArgumentError: a runout can't be dealt.
  """
  tree, namer = game.tree, HandMoves(game)
  shown = _shown_boards(tree, max_infosets, runouts)
  states = list(_walk_states(tree, values, shown, namer))
  public_states = _public_states(tree, values, shown, states)

  def move(index: int) -> int:
    """Returns the move to a public state, as an index of `Content.names`."""
    state = states[index]
    return namer.move(state.board, states[state.parent].node, state.node)

  def describe_state(index: int) -> PageState | None:
    """Returns a public state with its ranges; None for a terminal or a board that is not on the page."""
    board, node, _ = states[index]
    if board not in shown or tree.nodes[node].kind in TERMINALS:
      return None
    return _state(tree, values.board(board), node, namer)

  grid = hand_grid(tree.deal, namer.cards)
  content = public_states.content(
    max_infosets, namer.names, move, describe_state, grid, _spent(states, namer)
  )
  expected_values = public_states.values[0]
  best_response_values = values.board(0).expected_values(best=True)[0]
  content.header.update(
    values=expected_values.tolist(),
    best_responses=best_response_values.tolist(),
    nash_conv=float((best_response_values - expected_values).sum()),
    poker=namer.stakes(),
  )
  if len(shown) < len(tree.boards):
    content.header["cut"].append(
      f"{len(tree.boards) - len(shown):,} of {len(tree.boards):,} boards; choose the boards to show, as in "
      'explore(..., runouts=["2c7s"])'
    )
  return content


def _public_states(
  tree: HandTree, values: HandValues, shown: set[int], states: list[_State]
) -> StateTable:
  """Returns public states with their probabilities, expected values and numbers of infosets.

  Args:
    tree: the public tree.
    values: the policy.
    shown: the boards that are on the page with all their public states.
    states: the public states.
  """
  board_of_state = np.array([state.board for state in states])
  positions = np.array([values.street(state.board).position[state.node] for state in states])
  weight, expected = np.zeros(len(states)), np.zeros((len(states), len(PLAYERS)))
  for number in np.unique(board_of_state).tolist():
    board, here = values.board(number), np.flatnonzero(board_of_state == number)
    weight[here] = board.node_mass()[positions[here]] * tree.boards[number].probability
    expected[here] = board.expected_values()[positions[here]]
  mover = [_mover(tree, state.node) for state in states]
  num_infosets = [
    len(tree.boards[state.board].hands[player]) if player >= 0 and state.board in shown else 0
    for state, player in zip(states, mover, strict=True)
  ]
  return StateTable(
    parent=np.array([state.parent for state in states]),
    mover=np.array(mover),
    num_infosets=np.array(num_infosets),
    weight=weight,
    values=expected,
    group=board_of_state,
  )


def _mover(tree: HandTree, number: int) -> int:
  """Returns the player to move at a betting node, `CHANCE` or `TERMINAL`."""
  node = tree.nodes[number]
  return {NodeKind.DECISION: node.player, NodeKind.CHANCE: CHANCE}.get(node.kind, TERMINAL)


def _shown_boards(tree: HandTree, max_infosets: int, runouts: Iterable[str] | None) -> set[int]:
  """Returns the boards that are on the page with all their public states; arguments are those of `describe`."""
  boards = tree.boards
  if runouts is None:
    num_infosets = tree.num_sequences / np.maximum(tree.num_actions, 1)
    fits = boards[-1].level <= 1 or num_infosets.sum() <= max_infosets
    return set(range(len(boards))) if fits else {0}
  numbers = {board.cards: number for number, board in enumerate(boards)}
  shown = {0}
  for runout in runouts:
    number = _find_board(tree.deal, numbers, runout)
    while number:
      shown.add(number)
      number = boards[number].parent
  return shown


def _find_board(deal: Deal, numbers: dict[tuple[int, ...], int], runout: str) -> int:
  """Returns the number of the board that represents a runout, given the numbers of boards by their cards.

  Raises:
    ArgumentError: the runout can't be dealt.
  """
  dealt = cards.parse_cards(arguments.text(runout, "a runout"), deal.num_suits)
  ends = list(itertools.accumulate(deal.streets))
  streets = [dealt[end - count : end] for end, count in zip(ends, deal.streets, strict=True)]
  is_whole_streets = max(dealt, default=0) < deal.num_cards and len(dealt) in (0, *ends)
  for symmetry in symmetries(deal) if is_whole_streets else ():
    board = (*deal.board, *(card for street in streets for card in symmetry.moved(street)))
    if board in numbers:
      return numbers[board]
  raise errors.ArgumentError(
    f"The runout {runout!r} can't be dealt: write the cards of each deal in order, such as '2c7s', without cards of "
    "the board."
  )


def _walk_states(
  tree: HandTree, values: HandValues, shown: set[int], namer: HandMoves
) -> Iterator[_State]:
  """Yields the public states of the shown boards, and the first states of all boards that follow them.

  Children of a state are adjacent.
  """
  yield _State(0, 0, 0)
  queue = [(0, 0)]
  for parent, (board, number) in enumerate(queue):
    if board not in shown:
      continue
    node = tree.nodes[number]
    boards = values.following[board] if node.kind is NodeKind.CHANCE else [board]
    children = node.children
    if node.kind is NodeKind.DECISION:
      children = [children[index] for index in namer.order(board, number)]
    for child in children:
      for board_below in boards:
        queue.append((board_below, child))
        yield _State(board_below, child, parent)


def _state(tree: HandTree, board: PlayedBoard, node: int, namer: HandMoves) -> PageState:
  """Returns a public state with ranges, strategy and values; actions are in the order of their cost in chips."""
  number = board.number
  first, second = (
    PrivateRange(
      hands=board.hands[player],
      weight=board.ranges[player][board.street.position[node]],
      opponent_weight=board.opponent_mass(player, node),
      value=board.values(player, node),
      equity=board.equity(player, node),
    )
    for player in PLAYERS
  )
  names = namer.board_cards(number)
  if tree.nodes[node].kind is not NodeKind.DECISION:
    none = np.zeros((0, 0))
    return PageState(names, (first, second), [], none, none, none > 0)
  order = namer.order(number, node)
  return PageState(
    board=names,
    ranges=(first, second),
    moves=[namer.moves(number, node)[index] for index in order],
    probability=board.strategy(node)[order],
    action_value=board.action_values(node)[order],
    is_best=board.best_actions(node)[order],
  )


def _spent(states: list[_State], namer: HandMoves) -> Int64s | None:
  """Returns the chips of each player in the pot at each state; None for games other than hold'em."""
  spent_at_root = namer.spent_at_root()
  if spent_at_root is None:
    return None
  result = np.zeros((len(states), len(PLAYERS)), np.int64)
  result[0] = spent_at_root
  for index, state in enumerate(states[1:], 1):
    result[index] = result[state.parent]
    above = states[state.parent]
    player, cost = namer.cost(above.board, above.node, state.node)
    result[index, player] += cost
  return result


def hand_grid(deal: Deal, card_names: list[str]) -> dict[str, Any]:
  """Returns `Content.grid`: hands of two cards by ranks, suited hands above the diagonal; one card by suit and rank."""
  names = ["".join(card_names[card] for card in hand[::-1]) for hand in deal.hands.tolist()]
  if deal.hand_size == 1:
    rank, suit = np.divmod(deal.hands[:, 0], deal.num_suits)
    row, column = deal.num_suits - 1 - suit, deal.num_ranks - 1 - rank
    labels = np.reshape(card_names, (deal.num_ranks, deal.num_suits)).T[::-1, ::-1].tolist()
  else:
    low, high = deal.hands.T
    suited = low % deal.num_suits == high % deal.num_suits
    # Aces are in the first row and column.
    position = deal.num_ranks - 1 - np.stack([high, low]) // deal.num_suits
    row, column = np.where(suited, position, position[::-1])
    ranks = [name[0] for name in card_names[:: -deal.num_suits]]
    suffixes = ("o", "", "s") if deal.num_suits > 1 else ("", "", "")
    labels = [
      [
        ranks[min(down, across)]
        + ranks[max(down, across)]
        + suffixes[int(np.sign(across - down)) + 1]
        for across in range(len(ranks))
      ]
      for down in range(len(ranks))
    ]
  return {
    "unit": "hand",
    "names": names,
    "row": row.tolist(),
    "column": column.tolist(),
    "labels": labels,
  }
