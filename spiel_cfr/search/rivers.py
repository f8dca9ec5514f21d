"""Public trees over vectors of hands: the rivers of a poker game.

A river is the public state after the last public card. Its private states are the hands that its board allows. Its
subgame is a poker game in vector form. A gadget is a choice of the opponent in front of that game, see
`poker.choice_front`.
"""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.betting_tree import NodeKind, betting_subtree
from spiel_cfr.poker.choice_front import GO_ON, NUM_CHOICE_NODES, with_choice
from spiel_cfr.poker.hand_tree import TERMINALS, hand_tree
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import forms
from spiel_cfr.search.compiled_river import CompiledRiver
from spiel_cfr.search.cut_outs import CutOut, PerPlayer, Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.private_forest import NONE
from spiel_cfr.search.search_tree import Blueprint, PublicState, RangesByState, SearchTree

# The part of the pot by which the opponent may exceed its bounds, as the mean over its hands, weighted by w.
_TOLERANCE = 1e-3
# The largest number of sequences in the rivers that a blueprint keeps as games.
_MOST_KEPT_SEQUENCES = 10_000_000


class RiverTree(SearchTree):
  """All rivers of a poker game in vector form.

  Attributes:
    game: `PublicGame`. The whole game.
    board_and_node: list. The index of each river's board, and the index of its first node in the betting tree.
    betting: dict. By the first node of a river, the betting tree from there on.
  """

  game: PublicGame
  can_pick = keeps_gains = False

  def __init__(self, game: PublicGame, *, is_river: bool = False) -> None:
    """Finds the rivers of a game.

    Args:
      game: the game.
      is_river: True if the game begins on the river, and is the only river.

    Raises:
      ArgumentError: no public cards are dealt.
    """
    self.game, nodes = game, game.tree.nodes
    last = game.tree.boards[-1].level
    boards = [index for index, board in enumerate(game.tree.boards) if board.level == last]
    firsts = [node.children[0] for node in nodes if node.kind is NodeKind.CHANCE]
    firsts = [first for first in firsts if nodes[first].level == last]
    self.board_and_node = [(board, first) for first in firsts for board in boards]
    if is_river:
      self.board_and_node = [(0, 0)]
    if not self.board_and_node:
      raise errors.ArgumentError(
        "No public cards are dealt in this game, so it has no river to re-solve: solve the game itself."
      )
    self.betting = {first: betting_subtree(nodes, first) for _, first in self.board_and_node}
    self.above = np.full(len(self.board_and_node), NONE)
    self.largest_payoff = max(game.payoff_range)

  def natural_cut(self) -> list[PublicState]:
    """Returns all rivers."""
    return list(self)

  def decision_states(self, player: int) -> Int64s:
    numbers = [
      number
      for number, (_, first) in enumerate(self.board_and_node)
      if any(node.player == player for node in self.betting[first])
    ]
    return np.array(numbers, np.int64)

  def decisions(self, player: int) -> list[list[PublicState]]:
    """Returns all rivers on which a player may be to move, in a single list: one search step re-solves all of them."""
    rivers = [self[number] for number in self.decision_states(player).tolist()]
    return [rivers] if rivers else []

  def depth(self, number: int) -> int:
    deal, first = self.game.tree.deal, self.board_and_node[number][1]
    return deal.num_private_moves + len(deal.path) + len(self.game.tree.nodes[first].path)

  def players(self, number: int) -> tuple[int, ...]:
    return (self.game.tree.nodes[self.board_and_node[number][1]].player,)

  def names(self, number: int, player: int) -> list[str]:
    game, (board, first) = self.game, self.board_and_node[number]
    deal, hands = game.tree.deal, game.tree.boards[board].hands
    own_hands, other_hands = (deal.hands[hands[who]] for who in (player, 1 - player))
    moves, result = game.tree.actions_above(game.tree.node_at(board, first)), []
    for hand in own_hands.tolist():
      other = next(cards for cards in other_hands.tolist() if not {*hand} & {*cards})
      state = game.game.new_initial_state()
      for action in [*deal.actions(*(hand, other)[:: 1 - 2 * player]), *moves]:
        state.apply_action(action)
      result.append(game.view.named(state, player))
    return result

  def public_state_of(self, state: Any) -> PublicState:
    raise errors.UnsupportedGameError(
      "Over vectors of hands, rivers are not found by states of OpenSpiel. public_states(game)[number] is a river."
    )

  def states(self, number: int) -> Iterable[Any]:
    raise errors.UnsupportedGameError(
      "Over vectors of hands no histories are listed. Use private_states, beliefs and private_values."
    )

  def pairs(self, number: int) -> tuple[Int64s, Int64s, Float64s]:
    raise errors.UnsupportedGameError(
      "Over vectors of hands no histories are listed. Use counterfactual_reach of the tree, beliefs and private_values."
    )

  def check_search(self, solver: str | None, *, has_cut: bool, has_checkpoint: bool) -> None:
    if has_cut or has_checkpoint:
      raise errors.ArgumentError(
        "Over vectors of hands, the cut is always all rivers, and checkpoints are not supported: leave out cut and "
        "checkpoint."
      )
    if solver == "lp":
      raise errors.ArgumentError(
        "Over vectors of hands, linear programs would be too large: name a full-width solver."
      )

  def described(self, number: int) -> str:
    hands = " x ".join(map(str, self.num_private_states(number)))
    return f"a river, {hands} hands"

  @property
  def num_entries(self) -> int:
    """See `SearchTree.num_entries`."""
    return self.game.end

  def owned(self, player: int) -> Bools:
    return np.asarray((np.arange(self.game.end) >= self.game.treeplexes[1].root) == player)

  def per_infoset(self, numbers: Float64s, reduce: np.ufunc) -> Float64s:
    result = np.zeros_like(numbers)
    for tree in self.game.treeplexes:
      for sequences, _ in tree.infoset_groups():
        result[sequences] = reduce.reduce(numbers[sequences], axis=0)
    return result

  def num_private_states(self, number: int) -> tuple[int, int]:
    first, second = map(len, self.game.tree.boards[self.board_and_node[number][0]].hands)
    return first, second

  def counterfactual_reach(self, number: int, player: int, weights: Float64s) -> Float64s:
    deal, board = self.game.tree.deal, self.game.tree.boards[self.board_and_node[number][0]]
    of_hands = np.zeros(len(deal.hands))
    of_hands[board.hands[1 - player]] = board.reaches[1 - player] * weights
    # Integer counts are exactly 0 for a hand that is compatible with no hand of the other player.
    is_possible = deal.compatible_mass((of_hands > 0).astype(np.int64)) > 0
    reach = np.where(is_possible, deal.compatible_mass(of_hands), 0.0)[board.hands[player]]
    return np.asarray(reach * board.reaches[player] * board.probability / deal.total)

  def blueprint(
    self, entries: Float64s, searcher: int, given_ranges: RangesByState | None = None
  ) -> "RiverBlueprint":
    return RiverBlueprint(self, entries, searcher, given_ranges)

  def cut_out(self, starts: Sequence[Start], gadget: Gadget, *, program: bool = False) -> CutOut:
    """Returns the subgame of a single river."""
    (start,) = starts
    opponent = 1 - start.searcher
    shares = gadget.shares(start.w, start.r)
    dealt = shares[1] if len(shares) > 1 else None
    chooser = opponent if gadget.is_safe else None
    river = RiverGame(self, start.number, start.weights, chooser, start.bound, dealt)
    none = np.zeros(0, np.int64), np.zeros(0, np.int64)
    first, second = (
      none if player == chooser else river.action_sequences(player) for player in PLAYERS
    )
    searchers_actions = (first, second)[start.searcher][0]
    return CutOut(
      river.game,
      start.searcher,
      (first[0], second[0]),
      (first[1], second[1]),
      np.zeros(len(searchers_actions), np.int64),
    )

  def is_harmful(self, start: Start, margins: Float64s) -> bool:
    nodes = self.betting[self.board_and_node[start.number][1]]
    pot = 2 * min(abs(node.payoff) for node in nodes if node.kind in TERMINALS)
    mean_excess = np.maximum(-margins, 0.0) @ start.w[start.w > 0]
    return not mean_excess <= _TOLERANCE * pot

  def __repr__(self) -> str:
    return f"<RiverTree of {self.game.name}: {len(self):,} rivers>"


class RiverGame:
  """A river as a compiled game, with or without a choice of one player in front.

  Attributes:
    game: `CompiledGame`. The game of the river.
    scale: float. The probability of the river's pairs of hands in the whole game, with the given weights.
  """

  def __init__(
    self,
    rivers: RiverTree,
    number: int,
    weights: PerPlayer,
    chooser: int | None = None,
    bounds: Float64s | None = None,
    dealt: Float64s | None = None,
  ) -> None:
    """Makes the game of a river.

    Args:
      rivers: all rivers.
      number: the index of the river.
      weights: by player, float64 (hands,). The factors of the probabilities of hands.
      chooser: the player who takes its bound or plays on; None without a choice.
      bounds: float64 (hands,). The chooser's payoff with each hand if it takes the bound; 0 by default.
      dealt: float64 (hands,). The share of each hand that has no choice and plays on; 0 by default.
    """
    self._rivers, tree = rivers, rivers.game.tree
    self._board, self._first_in_whole = rivers.board_and_node[number]
    self._nodes, whole = rivers.betting[self._first_in_whole], tree.boards[self._board]
    reaches = whole.reaches[0] * weights[0], whole.reaches[1] * weights[1]
    board = dataclasses.replace(whole, level=0, parent=0, probability=1.0, reaches=reaches)
    of_hands = np.zeros_like(tree.deal.reaches)
    for reach_of_hands, hands, reach in zip(of_hands, board.hands, reaches, strict=True):
      reach_of_hands[hands] = reach
    self._is_possible = [
      (reach > 0) & (rivers.counterfactual_reach(number, player, weights[1 - player]) > 0)
      for player, reach in enumerate(reaches)
    ]
    deal = dataclasses.replace(tree.deal, board=board.cards, reaches=of_hands)
    self.scale = deal.total / tree.deal.total * whole.probability
    river_tree, self._first = hand_tree(deal, self._nodes, [board]), 0
    if chooser is not None:
      payoffs = np.zeros_like(reaches[chooser]) if bounds is None else bounds
      river_tree = with_choice(river_tree, chooser, payoffs, dealt)
      self._first = NUM_CHOICE_NODES
    self.game = CompiledRiver(rivers.game, river_tree)

  def action_sequences(self, player: int) -> tuple[Int64s, Int64s]:
    """Returns the sequences of a player's actions in the river, and those of the same actions in the whole game.

    Hands with probability 0 are left out.
    """
    whole, hands = self._rivers.game, self._is_possible[player]
    here, there = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, node in enumerate(self._nodes):
      if node.player == player:
        node_here = self.game.tree.node_at(0, self._first + number)
        here.append(self.game.layout.sequences(node_here)[:, hands].ravel())
        node_there = whole.tree.node_at(self._board, self._first_in_whole + number)
        there.append(whole.layout.sequences(node_there)[:, hands].ravel())
    return np.concatenate(here), np.concatenate(there)


class RiverBlueprint(Blueprint):
  """A policy of both players over vectors of hands, see `Blueprint`."""

  tree: RiverTree

  def __init__(
    self,
    tree: RiverTree,
    entries: Float64s,
    searcher: int,
    given_ranges: RangesByState | None = None,
  ) -> None:
    """Takes a policy in behavioral form; the arguments are those of `SearchTree.blueprint`."""
    self.tree, self.policy, self.searcher = tree, entries, searcher
    self._given_ranges, self._responds = given_ranges or {}, True
    # The latest river whose values were computed: its game, and the opponent's utility of each sequence in it.
    self._latest: dict[int, tuple[RiverGame, Float64s]] = {}
    # By the index of a river: its game, shared by blueprints that have the same ranges there.
    self._games: dict[int, RiverGame] = {}

  def played_by(self, player: int) -> "RiverBlueprint":
    result = RiverBlueprint(self.tree, self.policy, 1 - player, self._given_ranges)
    result._responds = False
    return result

  def with_policy(self, entries: Float64s, *, answers_all: bool = False) -> "RiverBlueprint":
    result = RiverBlueprint(self.tree, entries, self.searcher, self._given_ranges)
    strategies = zip(self._above_rivers(), result._above_rivers(), strict=True)
    if self._given_ranges or all(np.array_equal(*pair) for pair in strategies):
      result._games = self._games
    return result

  def _above_rivers(self) -> list[Float64s]:
    """Returns each player's strategy above all rivers. It determines the player's ranges on the rivers."""
    first_sequences = self.tree.game.layout.first_sequences
    return [self.policy[sequences[0] : sequences[1]] for sequences in first_sequences]

  @functools.cached_property
  def _sequence_form(self) -> Float64s:
    return forms.sequence_form(self.tree.game, self.policy)

  @functools.cached_property
  def opponent_value(self) -> float:
    """The opponent's best response value in the whole game; with given ranges, in the rivers that have them."""
    if self._given_ranges:
      return float(sum(self.values(number).sum() for number in self._given_ranges))
    return float(
      evaluate(self.tree.game, self._sequence_form).best_response_values[1 - self.searcher]
    )

  def ranges(self, number: int) -> PerPlayer:
    if number in self._given_ranges:
      return self._given_ranges[number]
    game = self.tree.game
    node = game.tree.node_at(*self.tree.board_and_node[number])
    first, second = (
      self._sequence_form[game.layout.sequences_above(player, node)] for player in PLAYERS
    )
    return first, second

  def _evaluated(self, number: int) -> tuple[RiverGame, Float64s]:
    """Returns a river with a choice of the opponent in front, and the opponent's utility of each sequence in it."""
    if number not in self._latest:
      opponent, ranges = 1 - self.searcher, self.ranges(number)
      ones = np.ones_like(ranges[opponent])
      weights = (ones, ranges[1]) if opponent == 0 else (ranges[0], ones)
      river = self._games.get(number) or RiverGame(self.tree, number, weights, opponent)
      if (1 + len(self._games)) * river.game.end <= _MOST_KEPT_SEQUENCES:
        self._games[number] = river
      strategies = np.asarray(forms.uniform(river.game))
      for player in PLAYERS:
        here, there = river.action_sequences(player)
        strategies[here] = self.policy[there]
      utilities = gradients(river.game, forms.sequence_form(river.game, strategies))
      if self._responds:
        backward_pass(river.game, take_best, utilities)
      else:
        backward_pass(river.game, expect, utilities, strategy=strategies)
      # Callers read one river after another, so only the latest is kept.
      self._latest = {number: (river, utilities)}
    return self._latest[number]

  def values(self, number: int) -> Float64s:
    opponent = 1 - self.searcher
    searcher_range = self.ranges(number)[self.searcher]
    if not self.tree.counterfactual_reach(number, opponent, searcher_range).any():
      return np.zeros(self.tree.num_private_states(number)[opponent])
    river, utilities = self._evaluated(number)
    return np.asarray(river.scale * utilities[river.game.layout.sequences(0)[GO_ON]])

  def action_values(self) -> Float64s:
    result = np.zeros_like(self.policy)
    for number in self._given_ranges:
      river, utilities = self._evaluated(number)
      here, there = river.action_sequences(1 - self.searcher)
      result[there] = river.scale * utilities[here]
    return result

  def gifts(self, number: int) -> Float64s:
    """Raises ArgumentError: gifts are not computed over vectors of hands."""
    raise errors.ArgumentError(
      "Over vectors of hands bounds are v(J), without gifts: give the gadget 'unsafe', 'resolving' or 'follow', or a "
      "Gadget('choice', mixed=...)."
    )
