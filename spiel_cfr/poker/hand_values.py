"""Ranges, values and equities of hands at the public states of a poker game, under a policy.

A public state is a board and a node of the betting. Let r_i(h) be the weight of player i's hand h there: chance's reach
times the player's. Let V_i(h) be the sum of r_-i(g) u_i(h, g) over the opponent's hands g that share no card with h.
The value of the hand is

    v_i(h) = V_i(h) / sum over g of r_-i(g)

V is computed from the terminals up, for all hands of a board at once. At player i's decisions it is the average by its
strategy, or the maximum if the player plays a best response. At the opponent's decisions it is the sum over actions,
because r_-i includes the strategy. At chance nodes it is the sum over the boards that follow, weighted by probability.
If suits are merged, a board stands for all its images; the mean over an infoset's hands replaces the sum over images.

A board's values need nothing of the boards after it except the values at its own chance nodes. `HandValues` computes
these once; then any board takes milliseconds.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.betting_tree import Kind
from spiel_cfr.poker.boards import hand_pairs
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree

# Probability 1 in 16 bits.
ONE = 0xFFFF


class AfterBoard(NamedTuple):
  """The outcome of the boards that follow a board.

  Attributes:
    values: one float (2, chance nodes, hands) a player. V at the board's chance nodes, in the order of the betting: by
      the policy, then by the player's best response.
    wins: float (hands of player 0, hands of player 1). The share of the boards that follow on which the hand of player
      0 wins at showdown; ties count half. 0 for pairs that share a card.
  """

  values: tuple[npt.NDArray[Any], npt.NDArray[Any]]
  wins: npt.NDArray[Any]


class _Decisions(NamedTuple):
  """The decisions of one player at one depth of a street, and their actions as edges.

  Attributes:
    player: int. The player to move.
    places: int64 (decisions,). Their places among the nodes of the street.
    begins: int64 (decisions,). The first edge of each decision.
    above: int64 (edges,). The place of the decision above each edge.
    below: int64 (edges,). The place of the node below each edge.
    nodes: int64 (edges,). The betting node of the decision above each edge.
    actions: int64 (edges,). The index of the action.
  """

  player: int
  places: Int64s
  begins: Int64s
  above: Int64s
  below: Int64s
  nodes: Int64s
  actions: Int64s


class Street:
  """The betting between two deals of public cards, which is the same on all boards of a level.

  Attributes:
    nodes: list of int. The betting nodes, parents first.
    place: dictionary. Node -> its index in `nodes`.
    steps: list of `_Decisions`, from the beginning of the street on.
    chances: list of int. The places of chance nodes.
    entries: list of int. The places at which the street begins, in the order of the chance nodes of the street before.
    ends: dictionary. Kind of terminals -> their places, and two float64 (terminals, 1): stakes and rakes, see `rake`.
  """

  def __init__(self, tree: HandTree, level: int) -> None:
    """Lists the nodes of a level of the betting."""
    self.nodes = [number for number, node in enumerate(tree.nodes) if node.level == level]
    self.place = {node: place for place, node in enumerate(self.nodes)}
    found = [tree.nodes[node] for node in self.nodes]
    depth = np.zeros(len(found), np.int64)
    groups: dict[tuple[int, int], list[int]] = {}
    for place, node in enumerate(found):
      if node.kind is Kind.DECISION:
        groups.setdefault((int(depth[place]), node.player), []).append(place)
        depth[[self.place[child] for child in node.children]] = depth[place] + 1
    self.steps = [self._step(tree, groups[key], key[1]) for key in sorted(groups)]
    self.chances = [place for place, node in enumerate(found) if node.kind is Kind.CHANCE]
    before = [node for node in tree.nodes if node.level == level - 1 and node.kind is Kind.CHANCE]
    self.entries = [self.place[node.children[0]] for node in before] if level else [0]
    self.ends = {}
    for kind in TERMINALS:
      places = [place for place, node in enumerate(found) if node.kind is kind]
      payoff, rake = (
        np.array([getattr(found[place], name) for place in places])[:, None]
        for name in ("payoff", "rake")
      )
      self.ends[kind] = places, np.copysign(np.abs(payoff) - rake / 2, payoff), rake

  def _step(self, tree: HandTree, places: list[int], player: int) -> _Decisions:
    nodes = np.array([self.nodes[place] for place in places])
    children = [tree.nodes[node].children for node in nodes.tolist()]
    counts = np.array([len(own) for own in children])
    begins = np.cumsum(counts) - counts
    return _Decisions(
      player=player,
      places=np.array(places),
      begins=begins,
      above=np.repeat(places, counts),
      below=np.array([self.place[child] for own in children for child in own]),
      nodes=np.repeat(nodes, counts),
      actions=concatenated_ranges(np.zeros_like(counts), counts),
    )


class PlayedBoard:
  """Ranges and values at all nodes of a board, under a policy. Make one with `HandValues.board`.

  Attributes:
    number: int. The number of the board.
    street: Street. The betting on this board.
    hands: one int64 (hands,) a player. The rows of `Deal.hands`.
    ranges: one float64 (nodes, hands) a player. The weights r.
    disjoint: float64 (hands of player 0, hands of player 1). 1 for pairs of hands that share no card, else 0.
    wins: float64 (hands of player 0, hands of player 1). See `AfterBoard`; at the last deal, on this board.
    sums: one float64 (nodes, hands) a player. The values V by the policy.
    best_sums: one float64 (nodes, hands) a player. The values V by the player's best response to the other's policy.
  """

  def __init__(self, values: "HandValues", number: int, above: "PlayedBoard | None") -> None:
    """Computes the ranges, given the board before; `compute_values` computes the values."""
    self._values, self._tree, self.number = values, values.tree, number
    board = self._tree.boards[number]
    self.street = values.street(number)
    self.hands = board.hands
    pairs = hand_pairs(self._tree.deal, board, 0)
    self.disjoint = pairs.apart.astype(np.float64)
    self.wins = (1.0 + pairs.ahead) / 2 * self.disjoint
    shape = len(self.street.nodes)
    self.ranges = [np.empty((shape, len(hands))) for hands in self.hands]
    for player in PLAYERS:
      first = board.reaches[player] if above is None else above.carried(player, number)
      self.ranges[player][self.street.entries] = first
    for step in self.street.steps:
      for weights in self.ranges:
        weights[step.below] = weights[step.above]
      self.ranges[step.player][step.below] *= values.played(number, step)
    self.sums = [np.zeros_like(weights) for weights in self.ranges]
    self.best_sums = [np.zeros_like(weights) for weights in self.ranges]

  def carried(self, player: int, following: int) -> Float64s:
    """Returns a player's weights at the chance nodes, float64 (chance nodes, hands of a board that follows)."""
    first = self._tree.representatives(player, self.number)
    hands = first[self._tree.infoset_offsets(player, self.number, following)]
    return np.asarray(self.ranges[player][self.street.chances][:, hands])

  def compute_values(self, after: AfterBoard | None) -> None:
    """Fills `sums` and `best_sums` from the terminals up; `after` is None on the boards of the last deal."""
    street = self.street
    if after is not None:
      self.wins = np.asarray(after.wins, np.float64)
      for player in PLAYERS:
        policy, best = after.values[player]
        self.sums[player][street.chances] = policy
        self.best_sums[player][street.chances] = best
    for kind, (places, stake, rake) in street.ends.items():
      for player in PLAYERS:
        others = self.ranges[1 - player][places]
        mass = self._mass(player, others)
        is_fold = kind is Kind.FOLD
        won = (1 - 2 * player) * mass if is_fold else 2 * self._won(player, others) - mass
        sums = stake * won - rake / 2 * mass
        self.sums[player][places] = self.best_sums[player][places] = sums
    for step in reversed(street.steps):
      mover, other = step.player, 1 - step.player
      below = self._values.played(self.number, step) * self.sums[mover][step.below]
      self.sums[mover][step.places] = np.add.reduceat(below, step.begins)
      below = self.best_sums[mover][step.below]
      self.best_sums[mover][step.places] = np.maximum.reduceat(below, step.begins)
      for sums in (self.sums[other], self.best_sums[other]):
        sums[step.places] = np.add.reduceat(sums[step.below], step.begins)

  def _mass(self, player: int, others: Float64s) -> Float64s:
    """Returns the weight of the opponent's hands that are possible beside each hand; the last axis is hands."""
    return np.asarray(others @ (self.disjoint.T if player == 0 else self.disjoint))

  def _won(self, player: int, others: Float64s) -> Float64s:
    """Returns the part of `_mass` against which each hand wins at showdown."""
    won = others @ (self.wins.T if player == 0 else self.wins)
    return np.asarray(won if player == 0 else self._mass(1, others) - won)

  def opponent_mass(self, player: int, node: int) -> Float64s:
    """Returns the weight of the opponent's hands that are possible beside each hand of a player, float64 (hands,)."""
    return self._mass(player, self.ranges[1 - player][self.street.place[node]])

  def equity(self, player: int, node: int) -> Float64s:
    """Returns the probability to win if betting ended, ties counted half; float64 (hands,), NaN without opponents."""
    others = self.ranges[1 - player][self.street.place[node]]
    return quotient(self._won(player, others), self._mass(player, others))

  def values(self, player: int, node: int) -> Float64s:
    """Returns the expected payoff of a player's hands, float64 (hands,); NaN without opponents."""
    return quotient(self.sums[player][self.street.place[node]], self.opponent_mass(player, node))

  def strategy(self, node: int) -> Float64s:
    """Returns the strategy at a decision, float64 (actions, hands of the player to move)."""
    return self._values.strategy(self.number, node)

  def action_values(self, node: int) -> Float64s:
    """Returns the value of each action to the hands of the player to move, float64 (actions, hands)."""
    decision = self._tree.nodes[node]
    children = [self.street.place[child] for child in decision.children]
    return quotient(self.sums[decision.player][children], self.opponent_mass(decision.player, node))

  def best_actions(self, node: int) -> npt.NDArray[np.bool_]:
    """Returns whether a best response takes an action: the first of the best ones; bool (actions, hands)."""
    decision = self._tree.nodes[node]
    children = [self.street.place[child] for child in decision.children]
    best = self.best_sums[decision.player][children].argmax(axis=0)
    return np.asarray(best == np.arange(len(children))[:, None])

  def node_mass(self) -> Float64s:
    """Returns the sum of the products of weights over all pairs of hands, float64 (nodes,)."""
    return np.asarray((self.ranges[0] * self._mass(0, self.ranges[1])).sum(axis=1))

  def expected_values(self, *, best: bool = False) -> Float64s:
    """Returns each player's expected payoff at each node, float64 (nodes, players); NaN at unreachable nodes.

    Args:
      best: whether the player plays a best response from the node on.
    """
    sums = self.best_sums if best else self.sums
    totals = [(self.ranges[player] * sums[player]).sum(axis=1) for player in PLAYERS]
    return quotient(np.stack(totals, axis=1), self.node_mass()[:, None])


class HandValues:
  """Values of hands under a policy, board by board.

  Attributes:
    tree: HandTree. The public tree.
    layout: Layout. The numbers of its sequences.
    probabilities: float64 or uint16 (sequences,). The policy in behavioral form; uint16 counts steps of 1 / 65,535.
    streets: list of `Street`. The betting of each level.
    following: list of lists of int. The boards that follow each board.
  """

  def __init__(
    self,
    tree: HandTree,
    layout: Layout,
    probabilities: npt.NDArray[Any],
    after: Mapping[int, AfterBoard] | None = None,
  ) -> None:
    """Takes a policy; `after` has known results of `after_boards`, by board."""
    self.tree, self.layout, self.probabilities = tree, layout, probabilities
    levels = 1 + max(board.level for board in tree.boards)
    self.streets = [Street(tree, level) for level in range(levels)]
    self.following: list[list[int]] = [[] for _ in tree.boards]
    for number, board in enumerate(tree.boards[1:], 1):
      self.following[board.parent].append(number)
    self._after = after
    # The last board that was made on each level.
    self._made: dict[int, PlayedBoard] = {}

  def street(self, board: int) -> Street:
    """Returns the betting on a board."""
    return self.streets[self.tree.boards[board].level]

  def strategy(self, board: int, node: int) -> Float64s:
    """Returns the strategy at a decision, float64 (actions, hands of the player to move)."""
    found = self.probabilities[self.layout.sequences(self.tree.node_at(board, node))]
    return np.asarray(found if found.dtype == np.float64 else found / found.sum(axis=0))

  def played(self, board: int, step: _Decisions) -> Float64s:
    """Returns the strategies at some decisions of a player, float64 (edges, hands)."""
    nodes = self.tree.node_of[board, step.nodes]
    starts = self.layout.first[nodes].astype(np.int64) + step.actions * self.layout.stride[nodes]
    classes = self.tree.classes[board][step.player]
    found = self.probabilities[starts[:, None] + classes]
    if found.dtype == np.float64:
      return np.asarray(found)
    total = np.add.reduceat(found, step.begins, dtype=np.float64)
    return np.asarray(found / np.repeat(total, np.diff(step.begins, append=len(found)), axis=0))

  def after_boards(self) -> Mapping[int, AfterBoard]:
    """Returns the results of following boards, for each board that has some."""
    if self._after is None:
      found: dict[int, AfterBoard] = {}
      self._compute(0, None, found)
      self._after = found
    return self._after

  def _compute(
    self, number: int, above: PlayedBoard | None, found: dict[int, AfterBoard]
  ) -> PlayedBoard:
    """Computes a board's values, those of all boards below first, and adds their results to `found`."""
    board = PlayedBoard(self, number, above)
    if self.following[number]:
      chances = len(board.street.chances)
      sums = tuple(np.zeros((2, chances, len(hands))) for hands in board.hands)
      found[number] = AfterBoard((sums[0], sums[1]), np.zeros(board.disjoint.shape))
      for following in self.following[number]:
        self._add(self._compute(following, board, found), number, found[number])
    board.compute_values(found.get(number))
    return board

  def _add(self, board: PlayedBoard, before: int, total: AfterBoard) -> None:
    """Adds a board's values and wins to those at the chance nodes of the board before."""
    boards, below = self.tree.boards, board.street.entries
    probability = boards[board.number].probability / boards[before].probability
    for player in PLAYERS:
      for line, sums in enumerate((board.sums, board.best_sums)):
        means = self._means(player, before, board.number, sums[player][below])
        total.values[player][line] += probability * means
    wins = self._means(1, before, board.number, board.wins)
    total.wins[:] += probability * self._means(0, before, board.number, wins.T).T

  def _means(self, player: int, before: int, after: int, numbers: Float64s) -> Float64s:
    """Returns the mean of numbers of hands over each infoset of a board before, for that board's hands.

    The last axis is hands; hands that are impossible on the later board count as 0.
    """
    classes = self.tree.classes[before][player]
    places = self.tree.infoset_offsets(player, before, after)
    order = np.argsort(places, kind="stable")
    infosets, begins = np.unique(places[order], return_index=True)
    counts = np.bincount(classes)
    result = np.zeros((*numbers.shape[:-1], len(counts)))
    result[..., infosets] = np.add.reduceat(numbers[..., order], begins, axis=-1)
    return np.asarray((result / counts)[..., classes])

  def board(self, number: int) -> PlayedBoard:
    """Returns a board with its ranges and values. The boards before it are kept for the next call."""
    board = self.tree.boards[number]
    known = self._made.get(board.level)
    if known is None or known.number != number:
      above = self.board(board.parent) if board.level else None
      known = PlayedBoard(self, number, above)
      known.compute_values(self.after_boards().get(number))
      self._made[board.level] = known
    return known


def quotient(sums: Float64s, mass: Float64s) -> Float64s:
  """Returns sums / mass; NaN if the mass is 0."""
  with np.errstate(invalid="ignore", divide="ignore"):
    return np.asarray(np.where(mass > 0, sums / mass, np.nan))
