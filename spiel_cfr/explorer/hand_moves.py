"""Names of the boards and moves of a poker game in vector form, and the cost of moves in chips."""

from typing import Any, NamedTuple

from spiel_cfr.explorer.move_names import MoveNames
from spiel_cfr.explorer.page_content import number_name
from spiel_cfr.poker.betting_tree import NodeKind
from spiel_cfr.poker.hand_tree import first_deal
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.suit_symmetries import symmetries


class _Decision(NamedTuple):
  """Actions of a decision, which are the same on all boards.

  Attributes:
    name_indices: list of int. The index of each action's name in `HandMoves.names`.
    costs: list of int. The chips that each action puts into the pot; -1 for a fold.
    order: list of int. The indices of the actions, in the order of their costs.
  """

  name_indices: list[int]
  costs: list[int]
  order: list[int]


class HandMoves:
  """Names of boards and moves, and the cost of moves, of a poker game.

  A board is given by its index in the game's tree, a node by its index in the betting.

  Attributes:
    cards: list of str. The names of all cards.
    names: dict from str to int. The index of each name of a move so far, as in `Content.names`.
  """

  def __init__(self, game: PublicGame) -> None:
    self._game, self._tree = game, game.tree
    self._moves = MoveNames(game.game)
    self.cards = self._moves.cards
    self.names = {"": 0}
    self._cached: dict[int, _Decision] = {}
    given = game.game.get_parameters().get("boardCards", "")
    # The first board in the order of the game string; `Board.cards` has the order of the deck.
    self._first_board = [given[start : start + 2] for start in range(0, len(given), 2)]
    if self._tree.deal.board and not given:
      moves = self._state(0, 0).full_history()[self._tree.deal.num_private_moves :]
      dealt = [self.cards[move.action] for move in moves if move.player < 0]
      # The flop in descending order, then turn and river.
      self._first_board = [*dealt[2::-1], *dealt[3:]]
    self._symmetries = symmetries(self._tree.deal) if self._tree.is_merged else []

  def board_cards(self, board: int) -> list[str]:
    """Returns the names of a board's cards, in the order in which they were dealt."""
    dealt = self._tree.boards[board].cards[len(self._tree.deal.board) :]
    return [*self._first_board, *(self.cards[card] for card in dealt)]

  def move(self, board: int, node: int, child: int) -> int:
    """Returns the index of the name of the move from a node to its child on a board."""
    if self._tree.nodes[node].kind is NodeKind.CHANCE:
      return number_name(self.names, self._dealt(board))
    return self.moves(board, node)[self._tree.nodes[node].children.index(child)]

  def moves(self, board: int, node: int) -> list[int]:
    """Returns the indices of the names of a decision's actions."""
    return self._look_up(board, node).name_indices

  def order(self, board: int, node: int) -> list[int]:
    """Returns the indices of a decision's actions, in the order of their cost in chips."""
    return self._look_up(board, node).order

  def cost(self, board: int, node: int, child: int) -> tuple[int, int]:
    """Returns the player who moves from a node to its child, and the chips that the move puts into the pot.

    A move of chance returns 0, 0.
    """
    above = self._tree.nodes[node]
    if above.kind is NodeKind.CHANCE:
      return 0, 0
    cost = self._look_up(board, node).costs[above.children.index(child)]
    return above.player, max(cost, 0)

  def spent_at_root(self) -> list[int] | None:
    """Returns the chips of each player in the pot at the beginning; None for games other than hold'em."""
    return self._moves.spent(self._state(0, 0))

  def stakes(self) -> dict[str, Any] | None:
    """Returns the players' names and stacks for postflop hold'em (the flop, turn or river); None for other games."""
    if self._moves.stacks is None or not self._tree.deal.board:
      return None
    return {"players": ["OOP", "IP"], "stacks": self._moves.stacks}

  def _dealt(self, board: int) -> str:
    """Returns the cards of a board's last deal; in brackets, the isomorphic deals that the board represents."""
    cards, parent = self._tree.boards[board].cards, self._tree.boards[board].parent
    above = self._tree.boards[parent]
    dealt = cards[len(above.cards) :]
    images = {dealt}
    for symmetry in self._symmetries:
      begin, keeps_board = len(self._tree.deal.board), True
      for count in self._tree.deal.streets[: above.level]:
        street = above.cards[begin : begin + count]
        keeps_board &= symmetry.moved(street) == street
        begin += count
      if keeps_board:
        images.add(symmetry.moved(dealt))
    first, *others = (
      " ".join(self.cards[card] for card in image) for image in [dealt, *sorted(images - {dealt})]
    )
    return f"{first} ({', '.join(others)})" if others else first

  def _look_up(self, board: int, node: int) -> _Decision:
    """Returns the actions of a decision; the first call for a node names them by a state on the given board."""
    if node not in self._cached:
      state, actions = self._state(board, node), self._tree.nodes[node].actions
      name_indices = [number_name(self.names, self._moves.name(state, each)) for each in actions]
      costs = [self._moves.cost(state, action) for action in actions]
      order = sorted(range(len(costs)), key=costs.__getitem__)
      self._cached[node] = _Decision(name_indices, costs, order)
    return self._cached[node]

  def _state(self, board: int, node: int) -> Any:
    """Returns OpenSpiel's state at a betting node on a board, after the first deal that leads there."""
    tree = self._tree
    player, board_of_tree = max(tree.nodes[node].player, 0), tree.boards[board]
    dealt = first_deal(tree.deal, board_of_tree, player, int(board_of_tree.hands[player][0]))
    state = self._game.view.new_initial_state()
    for action in (*dealt, *tree.actions_above(tree.node_at(board, node))):
      state.apply_action(action)
    return state
