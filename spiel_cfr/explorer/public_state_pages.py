"""Content of a page for a poker game in vector form.

A public state is a board and a node of the public tree. Let r_i(h) be the weight of player i's hand h there: chance's
reach times the player's. Let V_i(h) be the sum of r_-i(g) u_i(h, g) over the opponent's hands g that share no card with
h. The value of the hand is

    v_i(h) = V_i(h) / sum over g of r_-i(g)

V is computed from the terminals up, for all hands at once. At player i's decisions it is the average by its strategy.
At the opponent's decisions it is the sum over actions, because r_-i includes the strategy. At chance nodes it is the
sum over boards, weighted by probability.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.evaluation import evaluate
from spiel_cfr.explorer.move_names import MoveNames
from spiel_cfr.explorer.page_content import (
  Content,
  HandRange,
  PublicState,
  Tree,
  kept_states,
  kept_tree,
  number_name,
)
from spiel_cfr.games.openspiel.history_list import CHANCE, NONE, TERMINAL
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.betting_tree import Kind
from spiel_cfr.poker.boards import hand_pairs
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree, first_deal
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import forms


class _PlayedBoard:
  """Ranges and values at all nodes of a board, under a policy.

  Attributes:
    game: `PublicGame`. The game.
    tree: `HandTree`. Its public tree.
    number: int. The number of the board; 0 is the first board, before chance deals further cards.
    nodes: list of int. The nodes of the public tree on this board, parents first.
    place: dictionary. Node -> its index in `nodes`.
    ranges: one float64 (nodes, hands) a player. The weights r.
    sums: one float64 (nodes, hands) a player. The values V.
    disjoint: one float64 (hands, opponent's hands) a player. 1 for pairs of hands that share no card, else 0.
    wins: one float64 (hands, opponent's hands) a player. 1 for a win, 1/2 for a tie, 0 for pairs that share a card.
    equities: one float64 (hands, opponent's hands) a player. `wins`, averaged over the boards that may follow.
    mass: float64 (nodes,). The sum of the products of weights over all pairs of hands.
  """

  def __init__(
    self, game: PublicGame, behavioral: Float64s, sequence_form: Float64s, number: int
  ) -> None:
    """Computes the weights of hands; `compute_values` computes their values."""
    self.game, self.tree = game, game.tree
    tree, self._behavioral, self.number = game.tree, behavioral, number
    board = tree.boards[number]
    self.nodes = [index for index, node in enumerate(tree.nodes) if node.level == board.level]
    self.place = {node: place for place, node in enumerate(self.nodes)}
    pairs = [hand_pairs(tree.deal, tree.boards[number], player) for player in PLAYERS]
    self.disjoint = [pair.apart.astype(np.float64) for pair in pairs]
    self.wins = [(1.0 + pair.ahead) / 2 * pair.apart for pair in pairs]
    self.equities = self.wins
    self.ranges = []
    for player in PLAYERS:
      weights = tree.deal.reaches[player, board.hands[player]]
      rows = [
        game.layout.sequences_above(player, tree.node_at(number, node)) for node in self.nodes
      ]
      self.ranges.append(np.stack([sequence_form[row] * weights for row in rows]))
    opponents = self.ranges[1] @ self.disjoint[1]
    self.mass = np.asarray((self.ranges[0] * opponents).sum(axis=1))
    self.sums = [np.zeros_like(weights) for weights in self.ranges]

  def compute_values(self) -> None:
    """Fills `sums` from the terminals up; those of chance nodes must be there already."""
    tree = self.tree
    for kind in TERMINALS:
      ends = [place for place, node in enumerate(self.nodes) if tree.nodes[node].kind is kind]
      terminals = -1 - tree.node_of[self.number, np.array(self.nodes)[ends]]
      stake, rake = tree.stake[terminals, None], tree.rake[terminals, None]
      for player in PLAYERS:
        others = self.ranges[1 - player][ends]
        if kind is Kind.FOLD:
          won = (1 - 2 * player) * others @ self.disjoint[player].T
        else:
          won = others @ (2 * self.wins[player] - self.disjoint[player]).T
        self.sums[player][ends] = stake * won - rake / 2 * (others @ self.disjoint[player].T)
    for place in range(len(self.nodes) - 1, -1, -1):
      node = tree.nodes[self.nodes[place]]
      if node.kind is Kind.DECISION:
        children = [self.place[child] for child in node.children]
        played = self._behavioral[
          self.game.layout.sequences(tree.node_at(self.number, self.nodes[place]))
        ]
        self.sums[node.player][place] = (played * self.sums[node.player][children]).sum(axis=0)
        self.sums[1 - node.player][place] = self.sums[1 - node.player][children].sum(axis=0)

  def add_to(self, first_board: "_PlayedBoard") -> None:
    """Adds this board's values to the first board's chance nodes, and its wins to the first board's equities."""
    tree, board = self.tree, self.tree.boards[self.number]
    lanes = [tree.infoset_places(player, 0, self.number) for player in PLAYERS]
    for place, index in enumerate(first_board.nodes):
      if tree.nodes[index].kind is Kind.CHANCE:
        child = self.place[tree.nodes[index].children[0]]
        for player in PLAYERS:
          values = board.probability * self.sums[player][child]
          first_board.sums[player][place, lanes[player]] += values
    for player in PLAYERS:
      pairs = np.ix_(lanes[player], lanes[1 - player])
      first_board.equities[player][pairs] += board.probability * self.wins[player]

  def expected_values(self) -> Float64s:
    """Returns each player's expected payoff at each node, shape (nodes, players); NaN at unreachable nodes."""
    sums = np.stack(
      [(self.ranges[player] * self.sums[player]).sum(axis=1) for player in PLAYERS], axis=1
    )
    with np.errstate(invalid="ignore", divide="ignore"):
      return np.where(self.mass[:, None] > 0, sums / self.mass[:, None], np.nan)

  def hand_range(self, player: int, node: int) -> HandRange:
    """Returns a player's range at a node."""
    place = self.place[node]
    others = self.ranges[1 - player][place]
    with np.errstate(invalid="ignore", divide="ignore"):
      mass = self.disjoint[player] @ others
      return HandRange(
        hands=self.tree.boards[self.number].hands[player],
        weight=self.ranges[player][place],
        opponent_weight=mass,
        value=self.sums[player][place] / mass,
        equity=self.equities[player] @ others / mass,
      )

  def action_values(self, node: int) -> Float64s:
    """Returns the value of each action to the hands of the player to move, shape (actions, hands)."""
    decision = self.tree.nodes[node]
    children = [self.place[child] for child in decision.children]
    mass = self.disjoint[decision.player] @ self.ranges[1 - decision.player][self.place[node]]
    with np.errstate(invalid="ignore", divide="ignore"):
      return np.asarray(self.sums[decision.player][children] / mass)


def describe(game: PublicGame, behavioral: Float64s, *, max_infosets: int) -> Content:
  """Returns the content of a page; its header names the parts left out.

  Args:
    game: the game.
    behavioral: the policy in behavioral form, shape (sequences,).
    max_infosets: the most hands of all public states on the page; the likeliest states are shown.
  """
  tree = game.tree
  tree.require_one_deal("No page of ranges")
  sequence_form = forms.sequence_form(game, behavioral)
  responses = evaluate.evaluate(game, sequence_form, responses=True).best_responses

  def board(number: int) -> _PlayedBoard:
    return _PlayedBoard(game, behavioral, sequence_form, number)

  first_board = board(0)
  if len(tree.boards) > 1:
    first_board.equities = [np.zeros_like(wins) for wins in first_board.wins]
  # Reach, values and places of each board; its ranges would take too much memory.
  reach, values, places = [first_board.mass], [first_board.sums[0][:0]], dict(first_board.place)
  for number in range(1, len(tree.boards)):
    each = board(number)
    each.compute_values()
    each.add_to(first_board)
    reach.append(each.mass * tree.boards[number].probability)
    values.append(each.expected_values())
    places.update(each.place)
  first_board.compute_values()
  values[0] = first_board.expected_values()

  namer = _Namer(game)
  states = list(_public_states(tree, namer))
  weights = np.array([reach[number][places[node]] for number, node, _ in states])
  expected = np.array([values[number][places[node]] for number, node, _ in states])
  # Rounding must not make a state likelier than its parent.
  for index, (_, _, parent) in enumerate(states):
    weights[index] = min(weights[index], weights[parent])
  sizes = np.zeros(len(states), np.int64)
  for index, (number, node, _) in enumerate(states):
    if tree.nodes[node].kind is Kind.DECISION:
      sizes[index] = len(tree.boards[number].hands[tree.nodes[node].player])
  kept, cut = kept_states(weights, sizes, max_infosets)

  rows: list[PublicState] = []
  row = np.full(len(kept), NONE)
  places_by_board: dict[int, list[int]] = {}
  for place, index in enumerate(kept.tolist()):
    places_by_board.setdefault(states[index][0], []).append(place)
  for number, kept_places in places_by_board.items():
    each = first_board if number == 0 else board(number)
    if number:
      each.compute_values()
    for place in kept_places:
      node = states[kept[place]][1]
      if tree.nodes[node].kind not in TERMINALS:
        row[place] = len(rows)
        rows.append(_state(each, node, behavioral, responses, namer))

  histories = _tree(tree, states, kept, weights, expected, row, namer)
  return Content(
    header={"cut": cut},
    names=list(namer.names),
    tree=histories,
    public_states=rows,
    grid=hand_grid(tree.deal, namer.cards),
  )


def _public_states(tree: HandTree, namer: "_Namer") -> Iterator[tuple[int, int, int]]:
  """Yields the board, the node and the parent's number of every public state; children of a state are adjacent."""
  yield 0, 0, 0
  queue = [(0, 0)]
  for parent, (number, node) in enumerate(queue):
    found = tree.nodes[node]
    boards = range(1, len(tree.boards)) if found.kind is Kind.CHANCE else [number]
    order = namer.order(number, node) if found.kind is Kind.DECISION else range(len(found.children))
    for child in (found.children[place] for place in order):
      for board in boards:
        queue.append((board, child))
        yield board, child, parent


def _state(
  board: _PlayedBoard, node: int, behavioral: Float64s, responses: Float64s, namer: "_Namer"
) -> PublicState:
  tree, number = board.tree, board.number
  ranges = (board.hand_range(0, node), board.hand_range(1, node))
  names = namer.board(number)
  if tree.nodes[node].kind is not Kind.DECISION:
    none = np.zeros((0, 0))
    return PublicState(names, ranges, [], none, none, none > 0)
  order = namer.order(number, node)
  sequences = board.game.layout.sequences(tree.node_at(number, node))[order]
  return PublicState(
    board=names,
    ranges=ranges,
    moves=[namer.moves(number, node)[place] for place in order],
    probability=behavioral[sequences],
    action_value=board.action_values(node)[order],
    is_best=responses[sequences] > 0,
  )


def _tree(
  tree: HandTree,
  states: list[tuple[int, int, int]],
  kept: Int64s,
  weights: Float64s,
  expected: Float64s,
  row: Int64s,
  namer: "_Namer",
) -> Tree:
  parents = np.array([parent for _, _, parent in states])
  first_child, num_children, num_cut = kept_tree(parents, kept)
  mover, move = np.zeros((2, len(kept)), np.int64)
  probability = np.ones(len(kept))
  for place, index in enumerate(kept.tolist()):
    number, node, parent = states[index]
    found = tree.nodes[node]
    mover[place] = {Kind.DECISION: found.player, Kind.CHANCE: CHANCE}.get(found.kind, TERMINAL)
    if index:
      move[place] = namer.move(number, states[parent][1], node)
      probability[place] = weights[index] / weights[parent] if weights[parent] > 0 else 0.0
  return Tree(
    mover=mover,
    first_child=first_child,
    num_children=num_children,
    num_cut=num_cut,
    move=move,
    probability=probability,
    values=expected[kept],
    row=row,
  )


class _Namer:
  """Names of boards and moves, and the order of bets by size.

  Attributes:
    cards: list of str. The names of all cards.
    names: dictionary. Name of a move -> its number.
  """

  def __init__(self, game: PublicGame) -> None:
    self._game = game
    self._moves = MoveNames(game.game)
    self.cards = self._moves.cards
    self.names = {"": 0}
    self._cached: dict[int, tuple[list[int], list[int]]] = {}
    given = game.game.get_parameters().get("boardCards", "")
    # In the order in which the user wrote them; boards have the order of the deck.
    self._board = [given[start : start + 2] for start in range(0, len(given), 2)]

  def board(self, number: int) -> list[str]:
    """Returns the names of a board's cards; the game's given cards come first."""
    return [*self._board, *(self.cards[card] for card in self._dealt(number))]

  def move(self, number: int, node: int, child: int) -> int:
    """Returns the number of the name of the move from a node to its child on a board."""
    tree = self._game.tree
    if tree.nodes[node].kind is Kind.CHANCE:
      return number_name(self.names, " ".join(self.cards[card] for card in self._dealt(number)))
    return self.moves(number, node)[tree.nodes[node].children.index(child)]

  def moves(self, number: int, node: int) -> list[int]:
    """Returns the numbers of the names of a decision's actions, which are equal on all boards."""
    return self._look_up(number, node)[0]

  def order(self, number: int, node: int) -> list[int]:
    """Returns the indices of a decision's actions, in the order of their cost in chips."""
    return self._look_up(number, node)[1]

  def _dealt(self, number: int) -> tuple[int, ...]:
    tree = self._game.tree
    return tree.boards[number].cards[len(tree.deal.board) :]

  def _look_up(self, number: int, node: int) -> tuple[list[int], list[int]]:
    """Returns the numbers of a decision's names, and the order of its actions."""
    if node not in self._cached:
      tree, view = self._game.tree, self._game.view
      decision, board = tree.nodes[node], tree.boards[number]
      state = view.new_initial_state()
      dealt = first_deal(tree.deal, board, decision.player, int(board.hands[decision.player][0]))
      for action in (*dealt, *tree.actions_above(int(tree.node_of[number, node]))):
        state.apply_action(action)
      names = [
        number_name(self.names, self._moves.name(state, action)) for action in decision.actions
      ]
      costs = [self._moves.cost(state, action) for action in decision.actions]
      self._cached[node] = names, sorted(range(len(costs)), key=costs.__getitem__)
    return self._cached[node]


def hand_grid(deal: Deal, card_names: list[str]) -> dict[str, Any]:
  """Returns `Content.grid`: two cards by ranks, with suited hands above the diagonal; one card by suit and rank."""
  names = ["".join(card_names[card] for card in hand[::-1]) for hand in deal.hands.tolist()]
  if deal.hand_size == 1:
    rank, suit = np.divmod(deal.hands[:, 0], deal.num_suits)
    row, column = deal.num_suits - 1 - suit, deal.num_ranks - 1 - rank
    labels = np.reshape(card_names, (deal.num_ranks, deal.num_suits)).T[::-1, ::-1].tolist()
  else:
    low, high = deal.hands.T
    suited = low % deal.num_suits == high % deal.num_suits
    place = deal.num_ranks - 1 - np.stack([high, low]) // deal.num_suits
    row, column = np.where(suited, place, place[::-1])
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
