"""Expected values, ranges and equities of hands at the public states of a poker game, under a policy.

A public state is a board and a node of the betting. Let r_i(h) be the weight of player i's hand h there: chance's reach
times the player's reach. Let V_i(h) be the sum of r_-i(g) u_i(h, g) over the opponent's hands g that share no card with
h, the counterfactual value up to a factor. The expected value (EV) of the hand is

    v_i(h) = V_i(h) / sum over g of r_-i(g)

`PlayedBoard` computes V from the terminals up, for all hands of a board at once:

- at player i's decisions, the mean by its strategy, or the maximum if the player plays a best response;
- at the opponent's decisions, the sum over actions, because r_-i includes the strategy;
- at chance nodes, the sum over the boards that follow, weighted by probability. With merged suits, a board represents
  all its images; the mean over the hands of an infoset replaces the sum over images.

A board needs the later boards only through V at its chance nodes. `HandValues` computes these numbers once for all
boards; then any board takes milliseconds.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.betting_tree import NodeKind
from spiel_cfr.poker.boards import hand_pairs
from spiel_cfr.poker.hand_tree import HandTree
from spiel_cfr.poker.street import Layer, Street, StreetTerminals

# Probability 1 in 16 bits.
ONE = 0xFFFF


class RunoutValues(NamedTuple):
  """Values and wins of a board's runouts: sums over the boards that follow, weighted by probability.

  Attributes:
    values: one float (2, chance nodes, hands) a player. V at the board's chance nodes, in the order of the betting: by
      the policy, then by the player's best response.
    wins: float (hands of player 0, hands of player 1). The probability that player 0's hand wins at showdown, a tie
      counted half; 0 for pairs that share a card.
  """

  values: tuple[npt.NDArray[Any], npt.NDArray[Any]]
  wins: npt.NDArray[Any]


class PlayedBoard:
  """Ranges and values at all betting nodes of a board, under a policy. Make one with `HandValues.board`.

  Attributes:
    number: int. The number of the board.
    street: Street. The betting on this board.
    hands: one int64 (hands,) a player. The player's hands, as rows of `Deal.hands`.
    ranges: one float64 (nodes, hands) a player. The weights r.
    disjoint: float64 (hands of player 0, hands of player 1). 1 for pairs of hands that share no card, else 0.
    wins: float64 (hands of player 0, hands of player 1). The probability that player 0's hand wins at showdown, over
      all runouts, a tie counted half; 0 for pairs that share a card.
    counterfactual_values: one float64 (nodes, hands) a player. The values V under the policy.
    best_counterfactual_values: one float64 (nodes, hands) a player. The values V if the player plays a best response.
  """

  def __init__(self, values: "HandValues", number: int, above: "PlayedBoard | None") -> None:
    """Computes the ranges, given the board one street earlier; `compute_values` computes the values."""
    self._values, self._tree, self.number = values, values.tree, number
    board = self._tree.boards[number]
    self.street = values.street(number)
    self.hands = board.hands
    pairs = hand_pairs(self._tree.deal, board, 0)
    self.disjoint = pairs.disjoint.astype(np.float64)
    self.wins = (1.0 + pairs.ahead) / 2 * self.disjoint
    num_nodes = len(self.street.nodes)
    self.ranges = [np.empty((num_nodes, len(hands))) for hands in self.hands]
    for player in PLAYERS:
      begin = board.reaches[player] if above is None else above.range_after_deal(player, number)
      self.ranges[player][self.street.first_positions] = begin
    for layer in self.street.layers:
      for weights in self.ranges:
        weights[layer.children] = weights[layer.parents]
      self.ranges[layer.player][layer.children] *= values.layer_strategy(number, layer)
    self.counterfactual_values = [np.zeros_like(weights) for weights in self.ranges]
    self.best_counterfactual_values = [np.zeros_like(weights) for weights in self.ranges]

  def range_after_deal(self, player: int, following: int) -> Float64s:
    """Returns a player's weights r at the chance nodes, float64 (chance nodes, hands of the following board)."""
    first_hands = self._tree.representatives(player, self.number)
    hands = first_hands[self._tree.infoset_offsets(player, self.number, following)]
    return np.asarray(self.ranges[player][self.street.chances][:, hands])

  def compute_values(self, runouts: RunoutValues | None) -> None:
    """Computes the values V from the terminals up; `runouts` is None on the boards of the last deal."""
    street, both = self.street, (self.counterfactual_values, self.best_counterfactual_values)
    if runouts is not None:
      self.wins = np.asarray(runouts.wins, np.float64)
      for player in PLAYERS:
        for values, at_chances in zip(both, runouts.values[player], strict=True):
          values[player][street.chances] = at_chances
    for kind, terminals in street.terminals.items():
      for player in PLAYERS:
        terminal_values = self._terminal_values(player, kind, terminals)
        for values in both:
          values[player][terminals.positions] = terminal_values
    for layer in reversed(street.layers):
      mover, other = layer.player, 1 - layer.player
      strategy = self._values.layer_strategy(self.number, layer)
      weighted = strategy * self.counterfactual_values[mover][layer.children]
      self.counterfactual_values[mover][layer.positions] = np.add.reduceat(weighted, layer.begins)
      below = self.best_counterfactual_values[mover][layer.children]
      best = np.maximum.reduceat(below, layer.begins)
      self.best_counterfactual_values[mover][layer.positions] = best
      for values in both:
        of_actions = values[other][layer.children]
        values[other][layer.positions] = np.add.reduceat(of_actions, layer.begins)

  def _terminal_values(self, player: int, kind: NodeKind, terminals: StreetTerminals) -> Float64s:
    """Returns a player's values V at folds or showdowns, float64 (terminals, hands)."""
    others = self.ranges[1 - player][terminals.positions]
    mass = self._mass(player, others)
    is_fold = kind is NodeKind.FOLD
    gain = (1 - 2 * player) * mass if is_fold else 2 * self._won_mass(player, others) - mass
    return np.asarray(terminals.stakes * gain - terminals.rakes / 2 * mass)

  def _mass(self, player: int, others: Float64s) -> Float64s:
    """Returns the total weight of the opponent's hands that share no card with each hand of a player.

    Args:
      player: the player.
      others: float64 (..., opponent's hands). The opponent's weights.

    Returns:
      float64 (..., hands).
    """
    return np.asarray(others @ (self.disjoint.T if player == 0 else self.disjoint))

  def _won_mass(self, player: int, others: Float64s) -> Float64s:
    """Returns the part of `_mass` against which each hand wins at showdown; arguments are those of `_mass`."""
    won = others @ (self.wins.T if player == 0 else self.wins)
    return np.asarray(won if player == 0 else self._mass(1, others) - won)

  def _position(self, node: int) -> int:
    """Returns the index of a betting node in `street.nodes`.

    Raises:
      ArgumentError: the board does not have the node.
    """
    position = self.street.position.get(node) if isinstance(node, int | np.integer) else None
    if position is None:
      raise errors.ArgumentError(
        f"node must be a betting node of board {self.number}, one of street.nodes, not {arguments.shortened(node)}."
      )
    return position

  def _decision(self, node: int) -> tuple[int, list[int]]:
    """Returns the player to move at a decision, and the positions of its children.

    Raises:
      ArgumentError: the node is not a decision of the board.
    """
    self._position(node)
    decision = self._tree.nodes[node]
    if decision.kind is not NodeKind.DECISION:
      raise errors.ArgumentError(f"node {node} is not a decision: no player moves there.")
    return decision.player, [self.street.position[child] for child in decision.children]

  def opponent_mass(self, player: int, node: int) -> Float64s:
    """Returns the total weight of the opponent's hands that share no card with each hand, float64 (hands,)."""
    player = arguments.integer(player, "player", 0, 1)
    return self._mass(player, self.ranges[1 - player][self._position(node)])

  def equity(self, player: int, node: int) -> Float64s:
    """Returns each hand's probability to win if betting ended here, float64 (hands,).

    A tie counts half. NaN for hands beside which the opponent has no hand.
    """
    mass = self.opponent_mass(player, node)
    return quotient(self._won_mass(player, self.ranges[1 - player][self._position(node)]), mass)

  def values(self, player: int, node: int) -> Float64s:
    """Returns the expected payoff of each hand of a player, float64 (hands,).

    NaN for hands beside which the opponent has no hand.
    """
    mass = self.opponent_mass(player, node)
    return quotient(self.counterfactual_values[player][self._position(node)], mass)

  def strategy(self, node: int) -> Float64s:
    """Returns the strategy at a decision, float64 (actions, hands of the player to move)."""
    self._decision(node)
    return self._values.strategy(self.number, node)

  def action_values(self, node: int) -> Float64s:
    """Returns the expected payoff of each action with each hand of the player to move, float64 (actions, hands)."""
    player, children = self._decision(node)
    return quotient(self.counterfactual_values[player][children], self.opponent_mass(player, node))

  def best_actions(self, node: int) -> npt.NDArray[np.bool_]:
    """Returns True for the action of a best response with each hand, bool (actions, hands).

    Of several best actions it is the first.
    """
    player, children = self._decision(node)
    best = self.best_counterfactual_values[player][children].argmax(axis=0)
    return np.asarray(best == np.arange(len(children))[:, None])

  def node_mass(self) -> Float64s:
    """Returns the sum of r_0(h) r_1(g) over all pairs of hands that share no card, float64 (nodes,)."""
    return np.asarray((self.ranges[0] * self._mass(0, self.ranges[1])).sum(axis=1))

  def expected_values(self, *, best: bool = False) -> Float64s:
    """Returns each player's expected payoff at each node, float64 (nodes, players); NaN at unreachable nodes.

    Args:
      best: whether the player plays a best response from the node on.
    """
    values = self.best_counterfactual_values if best else self.counterfactual_values
    totals = [(self.ranges[player] * values[player]).sum(axis=1) for player in PLAYERS]
    return quotient(np.stack(totals, axis=1), self.node_mass()[:, None])


class HandValues:
  """Values of hands under a policy, board by board.

  Attributes:
    tree: HandTree. The public tree.
    layout: Layout. The numbers of the sequences.
    probabilities: float64 or uint16 (sequences,). The policy in behavioral form; uint16 counts steps of 1 / 65,535.
    streets: list of `Street`. The betting of each level.
    following: list of lists of int. The boards that follow each board.
  """

  def __init__(
    self,
    tree: HandTree,
    layout: Layout,
    probabilities: npt.NDArray[Any],
    runouts: Mapping[int, RunoutValues] | None = None,
  ) -> None:
    """Takes a policy; `runouts` has the results of `runout_values` if they are known."""
    self.tree, self.layout, self.probabilities = tree, layout, probabilities
    levels = 1 + max(board.level for board in tree.boards)
    self.streets = [Street(tree, level) for level in range(levels)]
    self.following: list[list[int]] = [[] for _ in tree.boards]
    for number, board in enumerate(tree.boards[1:], 1):
      self.following[board.parent].append(number)
    self._runouts = runouts
    # The last board that was computed on each level.
    self._last_boards: dict[int, PlayedBoard] = {}

  def street(self, board: int) -> Street:
    """Returns the betting on a board."""
    return self.streets[self.tree.boards[board].level]

  def strategy(self, board: int, node: int) -> Float64s:
    """Returns the strategy at a decision, float64 (actions, hands of the player to move)."""
    steps = self.probabilities[self.layout.sequences(self.tree.node_at(board, node))]
    return np.asarray(steps if steps.dtype == np.float64 else steps / steps.sum(axis=0))

  def layer_strategy(self, board: int, layer: Layer) -> Float64s:
    """Returns the strategies at the decisions of a layer, float64 (edges, hands)."""
    nodes = self.tree.node_of[board, layer.nodes]
    starts = self.layout.first[nodes].astype(np.int64) + layer.actions * self.layout.stride[nodes]
    infosets = self.tree.classes[board][layer.player]
    steps = self.probabilities[starts[:, None] + infosets]
    if steps.dtype == np.float64:
      return np.asarray(steps)
    total = np.add.reduceat(steps, layer.begins, dtype=np.float64)
    return np.asarray(steps / np.repeat(total, np.diff(layer.begins, append=len(steps)), axis=0))

  def runout_values(self) -> Mapping[int, RunoutValues]:
    """Returns the values of the runouts of each board, by its number; boards of the last deal have none."""
    if self._runouts is None:
      runouts: dict[int, RunoutValues] = {}
      self._compute(0, None, runouts)
      self._runouts = runouts
    return self._runouts

  def _compute(
    self, number: int, above: PlayedBoard | None, runouts: dict[int, RunoutValues]
  ) -> PlayedBoard:
    """Computes a board and all boards that follow it; adds the values of their runouts to `runouts`."""
    board = PlayedBoard(self, number, above)
    if self.following[number]:
      chances = len(board.street.chances)
      first, second = (np.zeros((2, chances, len(hands))) for hands in board.hands)
      runouts[number] = RunoutValues((first, second), np.zeros(board.disjoint.shape))
      for following in self.following[number]:
        self._add(self._compute(following, board, runouts), number, runouts[number])
    board.compute_values(runouts.get(number))
    return board

  def _add(self, board: PlayedBoard, parent: int, runouts: RunoutValues) -> None:
    """Adds a board's values and wins to the runouts of its parent."""
    boards, first_positions = self.tree.boards, board.street.first_positions
    probability = boards[board.number].probability / boards[parent].probability
    for player in PLAYERS:
      both = board.counterfactual_values, board.best_counterfactual_values
      for line, values in enumerate(both):
        means = self._infoset_means(player, parent, board.number, values[player][first_positions])
        runouts.values[player][line] += probability * means
    wins = self._infoset_means(1, parent, board.number, board.wins)
    runouts.wins[:] += probability * self._infoset_means(0, parent, board.number, wins.T).T

  def _infoset_means(self, player: int, parent: int, board: int, numbers: Float64s) -> Float64s:
    """Returns the mean of the numbers of an infoset's hands, for each hand of the parent board.

    Args:
      player: the owner of the hands.
      parent: the parent board, whose infosets are meant.
      board: the board of the numbers.
      numbers: float64 (..., hands of the board). Hands of the parent that are impossible here count as 0.

    Returns:
      float64 (..., hands of the parent).
    """
    infoset_of_hand = self.tree.classes[parent][player]
    infosets = self.tree.infoset_offsets(player, parent, board)
    order = np.argsort(infosets, kind="stable")
    present, begins = np.unique(infosets[order], return_index=True)
    counts = np.bincount(infoset_of_hand)
    sums = np.zeros((*numbers.shape[:-1], len(counts)))
    sums[..., present] = np.add.reduceat(numbers[..., order], begins, axis=-1)
    return np.asarray((sums / counts)[..., infoset_of_hand])

  def board(self, number: int) -> PlayedBoard:
    """Returns a board with its ranges and values. The last board of each street is kept for the next call.

    Args:
      number: the index of the board in `tree.boards`; 0 for the first board.

    Raises:
      ArgumentError: `number` is not the number of a board.
    """
    number = arguments.integer(number, "The number of a board", 0, len(self.tree.boards) - 1)
    board = self.tree.boards[number]
    last = self._last_boards.get(board.level)
    if last is None or last.number != number:
      above = self.board(board.parent) if board.level else None
      last = PlayedBoard(self, number, above)
      last.compute_values(self.runout_values().get(number))
      self._last_boards[board.level] = last
    return last


def quotient(sums: Float64s, mass: Float64s) -> Float64s:
  """Returns sums / mass; NaN if the mass is 0."""
  with np.errstate(invalid="ignore", divide="ignore"):
    return np.asarray(np.where(mass > 0, sums / mass, np.nan))
