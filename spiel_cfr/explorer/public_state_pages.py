"""The content of a page for a poker game in vector form.

A public state is a board and a node of the public tree. With r_i(h) what player i's hand h weighs there, chance's reach
times what i plays, and V_i(h) the sum over the opponent's hands g that share no card with h of r_-i(g) u_i(h, g), the
hand is worth

    v_i(h) = V_i(h) / sum over g of r_-i(g)

V is found from the ends of the game up, for all hands at once: from decisions of i the average by its strategy, from
those of the opponent the sum, whose weights are in r_-i already, and from chance the sum over boards by probability.
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
from spiel_cfr.poker.boards import hand_pairs
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree, first_deal
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import Kind
from spiel_cfr.policies import forms


class _PlayedBoard:
  """A board under a policy.

  Attributes:
    game: the game.
    tree: its public tree.
    number: which board it is; 0 is the trunk.
    nodes: which nodes of the public tree are on it, parents first.
    place: of each of them among these.
    ranges: per player, float64 (nodes, hands): r above.
    sums: per player, float64 (nodes, hands): V above.
    apart: per player, float64 (hands, opponent's hands): 1 for pairs that share no card.
    wins: per player, likewise: 1 for a win, 1/2 for a tie, 0 for pairs that share a card.
    equities: per player, likewise: `wins`, averaged over the boards that may come.
    mass: float64 (nodes,): the sum of the products of r over all pairs of hands.
  """

  def __init__(
    self, game: PublicGame, behavioral: Float64s, sequence_form: Float64s, number: int
  ) -> None:
    """Weighs the hands; `settle` finds what they are worth."""
    self.game, self.tree = game, game.tree
    tree, self._behavioral, self.number = game.tree, behavioral, number
    board = tree.boards[number]
    self.nodes = [index for index, node in enumerate(tree.nodes) if node.level == board.level]
    self.place = {node: place for place, node in enumerate(self.nodes)}
    pairs = [hand_pairs(tree.deal, tree.boards[number], player) for player in PLAYERS]
    self.apart = [pair.apart.astype(np.float64) for pair in pairs]
    self.wins = [(1.0 + pair.ahead) / 2 * pair.apart for pair in pairs]
    self.equities = self.wins
    self.ranges = []
    for player in PLAYERS:
      weights = tree.deal.reaches[player, board.hands[player]]
      rows = [game.layout.sequences_above(player, tree.place(number, node)) for node in self.nodes]
      self.ranges.append(np.stack([sequence_form[row] * weights for row in rows]))
    opponents = self.ranges[1] @ self.apart[1]
    self.mass = np.asarray((self.ranges[0] * opponents).sum(axis=1))
    self.sums = [np.zeros_like(own) for own in self.ranges]

  def settle(self) -> None:
    """Goes up from the ends of the game; what chance nodes are worth must be in `sums` already."""
    tree = self.tree
    for kind in TERMINALS:
      ends = [place for place, node in enumerate(self.nodes) if tree.nodes[node].kind is kind]
      payoff = np.array([tree.nodes[self.nodes[place]].payoff for place in ends])[:, None]
      for player in PLAYERS:
        others = self.ranges[1 - player][ends]
        if kind is Kind.FOLD:
          won = (1 - 2 * player) * others @ self.apart[player].T
        else:
          won = others @ (2 * self.wins[player] - self.apart[player]).T
        self.sums[player][ends] = payoff * won
    for place in range(len(self.nodes) - 1, -1, -1):
      node = tree.nodes[self.nodes[place]]
      if node.kind is Kind.DECISION:
        children = [self.place[child] for child in node.children]
        played = self._behavioral[
          self.game.layout.sequences(tree.place(self.number, self.nodes[place]))
        ]
        self.sums[node.player][place] = (played * self.sums[node.player][children]).sum(axis=0)
        self.sums[1 - node.player][place] = self.sums[1 - node.player][children].sum(axis=0)

  def add_to_trunk(self, trunk: "_PlayedBoard") -> None:
    """Adds what follows the deal of this board to the trunk's chance nodes, and to its equities."""
    tree, board = self.tree, self.tree.boards[self.number]
    lanes = [tree.lanes(player, 0, self.number) for player in PLAYERS]
    for place, index in enumerate(trunk.nodes):
      if tree.nodes[index].kind is Kind.CHANCE:
        child = self.place[tree.nodes[index].children[0]]
        for player in PLAYERS:
          trunk.sums[player][place, lanes[player]] += board.probability * self.sums[player][child]
    for player in PLAYERS:
      trunk.equities[player][np.ix_(lanes[player], lanes[1 - player])] += (
        board.probability * self.wins[player]
      )

  def expected_values(self) -> Float64s:
    """Returns what each player expects at each node, shape (nodes, players); NaN where nobody comes."""
    sums = np.stack(
      [(self.ranges[player] * self.sums[player]).sum(axis=1) for player in PLAYERS], axis=1
    )
    with np.errstate(invalid="ignore", divide="ignore"):
      return np.where(self.mass[:, None] > 0, sums / self.mass[:, None], np.nan)

  def hand_range(self, player: int, node: int) -> HandRange:
    """Returns a player's hands at a node."""
    place = self.place[node]
    others = self.ranges[1 - player][place]
    with np.errstate(invalid="ignore", divide="ignore"):
      mass = self.apart[player] @ others
      return HandRange(
        hands=self.tree.boards[self.number].hands[player],
        weight=self.ranges[player][place],
        beside=mass,
        value=self.sums[player][place] / mass,
        equity=self.equities[player] @ others / mass,
      )

  def action_values(self, node: int) -> Float64s:
    """Returns what the hands of the player to move expect of each action, shape (actions, hands)."""
    decision = self.tree.nodes[node]
    children = [self.place[child] for child in decision.children]
    mass = self.apart[decision.player] @ self.ranges[1 - decision.player][self.place[node]]
    with np.errstate(invalid="ignore", divide="ignore"):
      return np.asarray(self.sums[decision.player][children] / mass)


def describe(game: PublicGame, behavioral: Float64s, *, max_infosets: int) -> Content:
  """Describes a policy of a game in vector form; the header says what was left out.

  Args:
    game: the game.
    behavioral: the policy in behavioural form, shape (sequences,).
    max_infosets: how many hands the public states of the page may have together; the likeliest states are kept.
  """
  tree = game.tree
  tree.check_one_deal("No page of ranges")
  sequence_form = forms.sequence_form(game, behavioral)
  responses = evaluate.evaluate(game, sequence_form, responses=True).best_responses

  def board(number: int) -> _PlayedBoard:
    return _PlayedBoard(game, behavioral, sequence_form, number)

  trunk = board(0)
  if len(tree.boards) > 1:
    trunk.equities = [np.zeros_like(wins) for wins in trunk.wins]
  # What the tree needs of each board; the hands themselves would be too many to keep.
  reach, values, places = [trunk.mass], [trunk.sums[0][:0]], dict(trunk.place)
  for number in range(1, len(tree.boards)):
    each = board(number)
    each.settle()
    each.add_to_trunk(trunk)
    reach.append(each.mass * tree.boards[number].probability)
    values.append(each.expected_values())
    places.update(each.place)
  trunk.settle()
  values[0] = trunk.expected_values()

  namer = _Namer(game)
  states = list(_public_states(tree, namer))
  weights = np.array([reach[number][places[node]] for number, node, _ in states])
  expected = np.array([values[number][places[node]] for number, node, _ in states])
  # Rounding must not make a state likelier than the one before it.
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
  for number, own in places_by_board.items():
    each = trunk if number == 0 else board(number)
    if number:
      each.settle()
    for place in own:
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
  """Yields board, node and the number of the parent of every public state, the children of a state together."""
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
  sequences = board.game.layout.sequences(tree.place(number, node))[order]
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
  """Names boards and moves, and puts bets in order.

  Attributes:
    cards: names of all cards.
    names: numbers of all names of moves.
  """

  def __init__(self, game: PublicGame) -> None:
    self._game = game
    self._moves = MoveNames(game.game)
    self.cards = self._moves.cards
    self.names = {"": 0}
    self._known: dict[int, tuple[list[int], list[int]]] = {}
    given = game.game.get_parameters().get("boardCards", "")
    # As the user wrote them: boards have them in the order of the deck.
    self._board = [given[start : start + 2] for start in range(0, len(given), 2)]

  def board(self, number: int) -> list[str]:
    """Returns the names of a board's cards, those of the beginning first."""
    return [*self._board, *(self.cards[card] for card in self._dealt(number))]

  def move(self, number: int, node: int, child: int) -> int:
    """Returns the name of what leads from a node to a child of it on a board."""
    tree = self._game.tree
    if tree.nodes[node].kind is Kind.CHANCE:
      return number_name(self.names, " ".join(self.cards[card] for card in self._dealt(number)))
    return self.moves(number, node)[tree.nodes[node].children.index(child)]

  def moves(self, number: int, node: int) -> list[int]:
    """Returns the names of a decision's actions, which are the same on all boards."""
    return self._look_up(number, node)[0]

  def order(self, number: int, node: int) -> list[int]:
    """Returns a decision's actions, as places among them, by what they cost; in other games as they are."""
    return self._look_up(number, node)[1]

  def _dealt(self, number: int) -> tuple[int, ...]:
    tree = self._game.tree
    return tree.boards[number].cards[len(tree.deal.board) :]

  def _look_up(self, number: int, node: int) -> tuple[list[int], list[int]]:
    if node not in self._known:
      tree, view = self._game.tree, self._game.view
      decision, board = tree.nodes[node], tree.boards[number]
      state = view.new_initial_state()
      dealt = first_deal(tree.deal, board, decision.player, int(board.hands[decision.player][0]))
      for action in (*dealt, *tree.actions_above(int(tree.number[number, node]))):
        state.apply_action(action)
      names = [
        number_name(self.names, self._moves.name(state, action)) for action in decision.actions
      ]
      costs = [self._moves.cost(state, action) for action in decision.actions]
      self._known[node] = names, sorted(range(len(costs)), key=costs.__getitem__)
    return self._known[node]


def hand_grid(deal: Deal, card_names: list[str]) -> dict[str, Any]:
  """Returns `Content.grid`: of two cards by ranks, suited ones above the diagonal; of one by suit and rank."""
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
