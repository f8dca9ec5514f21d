"""Public trees over vectors of hands: the rivers of a poker game.

A river is the public state after the last public card. Its private states are the hands that its board allows. Its
subgame is a poker game in vector form. `poker.choice_front` puts a gadget in front of that game.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.betting_tree import NodeKind, betting_subtree
from spiel_cfr.poker.boards import Board
from spiel_cfr.poker.hand_tree import TERMINALS, first_deal
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import forms
from spiel_cfr.search.gadget_games import GadgetGame, GadgetGameBuilder, PerPlayer, SubgameStart
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.trees.river_game import RiverGame, counterfactual_reach
from spiel_cfr.search.trees.search_tree import (
  EvaluatedPolicy,
  PublicState,
  RangesByState,
  SearchTree,
)

# The part of the pot by which the opponent may exceed its bounds, as the mean over its hands, weighted by w.
_POT_TOLERANCE = 1e-3
# The largest number of sequences in the rivers that an evaluated policy keeps as games.
_MOST_KEPT_SEQUENCES = 10_000_000


class RiverTree(SearchTree):
  """All rivers of a poker game in vector form.

  Attributes:
    game: `PublicGame`. The whole game.
    board_and_node: list. The index of each river's board, and the index of its first node in the betting tree.
    betting: dict. By the first node of a river, the betting tree from there on.
  """

  game: PublicGame

  def __init__(self, game: PublicGame, *, is_river: bool = False) -> None:
    """Finds the rivers of a game.

    Args:
      game: the game.
      is_river: True if the game begins on the river, so that the tree has this river only.

    Raises:
      ArgumentError: no public cards are dealt.
    """
    super().__init__()
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

  def natural_cut(self) -> list[PublicState]:
    """Returns all rivers."""
    return list(self)

  def decisions(self, player: int) -> list[list[PublicState]]:
    """Returns all rivers on which a player may be to move, in a single list: one search step re-solves all of them."""
    arguments.integer(player, "player", 0, 1)
    rivers = [
      self[index]
      for index, (_, first) in enumerate(self.board_and_node)
      if any(node.player == player for node in self.betting[first])
    ]
    return [rivers] if rivers else []

  def depth(self, index: int) -> int:
    deal, first = self.game.tree.deal, self.board_and_node[index][1]
    return deal.num_private_moves + len(deal.path) + len(self.game.tree.nodes[first].path)

  def players(self, index: int) -> tuple[int, ...]:
    return (self.game.tree.nodes[self.board_and_node[index][1]].player,)

  def names(self, index: int, player: int) -> list[str]:
    deal, board, moves = self.game.tree.deal, self._board(index), self._moves(index)
    return [
      self.game.view.named(self._state([*first_deal(deal, board, player, hand), *moves]), player)
      for hand in board.hands[player].tolist()
    ]

  def _board(self, index: int) -> Board:
    return self.game.tree.boards[self.board_and_node[index][0]]

  def _moves(self, index: int) -> list[int]:
    """Returns the moves from the beginning of the game to a river."""
    tree = self.game.tree
    return tree.actions_above(tree.node_at(*self.board_and_node[index]))

  def _state(self, actions: Sequence[int]) -> Any:
    state = self.game.view.new_initial_state()
    for action in actions:
      state.apply_action(action)
    return state

  @functools.cached_property
  def _indices(self) -> dict[tuple[int, ...], int]:
    """The index of each river, by the moves that lead to it from the beginning of the game."""
    return {tuple(self._moves(index)): index for index in range(len(self))}

  def public_state_of(self, state: Any) -> PublicState:
    """Returns the river of a state of OpenSpiel.

    Raises:
      ArgumentError: the state is not at the beginning of a river, its river is merged with another one, or it does not
        belong to this game.
    """
    deal, view = self.game.tree.deal, self.game.view
    moves = view.own_state(state, max(0, checked_calls.current_player(state))).full_history()
    history, end = [move.action for move in moves], deal.num_private_moves + len(deal.path)
    begin = end
    # A street is one public state, in whatever order chance has dealt its cards.
    for size in deal.streets:
      while end < len(moves) and moves[end].player >= 0:
        end += 1
      history[end : end + size] = sorted(history[end : end + size], key=str)
      end += size
    index = self._indices.get(tuple(history[begin:]))
    if index is None or history[begin - len(deal.path) : begin] != list(deal.path):
      raise errors.ArgumentError(
        f"The history [{state.history_str()}] does not end where a river of {self.game} begins."
      )
    return PublicState(self, index)

  def states(self, index: int) -> Iterator[Any]:
    tree, board, moves = self.game.tree, self._board(index), self._moves(index)
    first, second = (tree.deal.hands[hands].tolist() for hands in board.hands)
    for own, other in zip(
      *(positions.tolist() for positions in self._compatible(board)), strict=True
    ):
      yield self._state([*tree.deal.actions(first[own], second[other]), *moves])

  def pairs(self, index: int) -> tuple[Int64s, Int64s, Float64s]:
    board = self._board(index)
    first, second = self._compatible(board)
    reach = board.reaches[0][first] * board.reaches[1][second]
    return first, second, reach * board.probability / self.game.tree.deal.total

  def _compatible(self, board: Board) -> tuple[Int64s, Int64s]:
    """Returns the pairs of hands on a board that share no card, as positions of both players' hands."""
    first, second = (self.game.tree.deal.hands[hands] for hands in board.hands)
    shares = (first[:, None, :, None] == second[None, :, None, :]).any(axis=(2, 3))
    positions = np.nonzero(~shares)
    return positions[0], positions[1]

  def num_private_states(self, index: int) -> tuple[int, int]:
    first, second = map(len, self._board(index).hands)
    return first, second

  def counterfactual_reach(self, index: int, player: int, weights: Float64s) -> Float64s:
    return counterfactual_reach(self.game.tree.deal, self._board(index), player, weights)

  def river_game(
    self,
    index: int,
    weights: PerPlayer,
    chooser: int | None = None,
    bounds: Float64s | None = None,
    forced: Float64s | None = None,
  ) -> RiverGame:
    """Returns the game of a river, given its index; the other arguments are those of `RiverGame`."""
    board, first = self.board_and_node[index]
    return RiverGame(self.game, board, first, self.betting[first], weights, chooser, bounds, forced)

  def evaluated(
    self,
    policy: Float64s,
    searcher: int,
    given_ranges: RangesByState | None = None,
    *,
    responds: bool = True,
  ) -> "EvaluatedRiverPolicy":
    return EvaluatedRiverPolicy(self, policy, searcher, given_ranges, responds=responds)

  @property
  def builder(self) -> "RiverGameBuilder":
    """See `SearchTree.builder`."""
    return RiverGameBuilder(self)

  def __repr__(self) -> str:
    return f"<RiverTree of {self.game.name}: {len(self):,} rivers>"


class RiverGameBuilder(GadgetGameBuilder):
  """Makes games of rivers. Each game has a single river, whose bounds do not count gifts."""

  def __init__(self, tree: RiverTree) -> None:
    """Takes the tree."""
    self._tree = tree

  def batches(
    self, starts: Iterable[SubgameStart], *, is_linear_program: bool
  ) -> Iterator[list[SubgameStart]]:
    for start in starts:
      yield [start]

  def build(
    self, starts: Sequence[SubgameStart], gadget: Gadget, *, is_linear_program: bool = False
  ) -> GadgetGame:
    """Returns the subgame of a single river.

    Raises:
      ArgumentError: the opponent picks its private state in the gadget, or its gifts count.
    """
    find_gadget(gadget, can_pick=False)
    if gadget.reach:
      raise errors.ArgumentError(
        "Over vectors of hands bounds are v(J), without gifts: give the gadget 'unsafe', 'resolving' or 'follow', or a "
        "Gadget('choice', forced=...)."
      )
    (start,) = starts
    opponent = 1 - start.searcher
    forced = gadget.entrances(start.w, start.r).forced if gadget.forced else None
    chooser = opponent if gadget.has_bounds else None
    river = self._tree.river_game(start.index, start.weights, chooser, start.bound, forced)
    none = np.zeros(0, np.int64), np.zeros(0, np.int64)
    first, second = (
      none if player == chooser else river.action_sequences(player) for player in PLAYERS
    )
    return GadgetGame(
      river,
      start.searcher,
      (first[0], second[0]),
      (first[1], second[1]),
      np.zeros(len((first, second)[start.searcher][0]), np.int64),
    )


class EvaluatedRiverPolicy(EvaluatedPolicy):
  """A policy of both players over vectors of hands, see `EvaluatedPolicy`."""

  tree: RiverTree

  def __init__(
    self,
    tree: RiverTree,
    policy: Float64s,
    searcher: int,
    given_ranges: RangesByState | None = None,
    *,
    responds: bool = True,
  ) -> None:
    """Takes a policy in behavioral form; the arguments are those of `SearchTree.evaluated`."""
    self.tree, self.policy, self.searcher, self.responds = tree, policy, searcher, responds
    self.given_ranges: RangesByState = given_ranges or {}
    # The latest river whose values were computed: its game, and the opponent's utility of each sequence in it.
    self._latest: dict[int, tuple[RiverGame, Float64s]] = {}
    # By the index of a river: its game, shared by policies that have the same ranges there.
    self._games: dict[int, RiverGame] = {}

  def with_policy(self, policy: Float64s, *, answers_all: bool = False) -> "EvaluatedRiverPolicy":
    result = EvaluatedRiverPolicy(
      self.tree, policy, self.searcher, self.given_ranges, responds=self.responds
    )
    strategies = zip(self._above_rivers(), result._above_rivers(), strict=True)
    if self.given_ranges or all(np.array_equal(*pair) for pair in strategies):
      result._games = self._games
    return result

  def is_harmful(self, start: SubgameStart, margins: Float64s) -> bool:
    nodes = self.tree.betting[self.tree.board_and_node[start.index][1]]
    pot = 2 * min(abs(node.payoff) for node in nodes if node.kind in TERMINALS)
    return not start.mean_excess(margins) <= _POT_TOLERANCE * pot

  def _above_rivers(self) -> list[Float64s]:
    """Returns each player's strategy above all rivers. It determines the player's ranges on the rivers."""
    first_sequences = self.tree.game.layout.first_sequences
    return [self.policy[sequences[0] : sequences[1]] for sequences in first_sequences]

  @functools.cached_property
  def _sequence_form(self) -> Float64s:
    return forms.sequence_form(self.tree.game, self.policy)

  def _value_of_game(self) -> float:
    evaluation = evaluate(self.tree.game, self._sequence_form)
    values = evaluation.best_response_values if self.responds else evaluation.expected_values
    return float(values[1 - self.searcher])

  def ranges(self, index: int) -> PerPlayer:
    if index in self.given_ranges:
      return self.given_ranges[index]
    game = self.tree.game
    node = game.tree.node_at(*self.tree.board_and_node[index])
    first, second = (
      self._sequence_form[game.layout.sequences_above(player, node)] for player in PLAYERS
    )
    return first, second

  def _evaluated(self, index: int) -> tuple[RiverGame, Float64s]:
    """Returns a river with a choice of the opponent in front, and the opponent's utility of each sequence in it."""
    if index not in self._latest:
      opponent, ranges = 1 - self.searcher, self.ranges(index)
      ones = np.ones_like(ranges[opponent])
      weights = (ones, ranges[1]) if opponent == 0 else (ranges[0], ones)
      river = self._games.get(index) or self.tree.river_game(index, weights, opponent)
      if (1 + len(self._games)) * river.end <= _MOST_KEPT_SEQUENCES:
        self._games[index] = river
      strategies = np.asarray(forms.uniform(river))
      for player in PLAYERS:
        sequences, slots = river.action_sequences(player)
        strategies[sequences] = self.policy[slots]
      # Callers read one river after another, so only the latest is kept.
      self._latest = {index: (river, self._utilities(river, strategies))}
    return self._latest[index]

  def _utilities(self, game: CompiledGame, strategies: Float64s) -> Float64s:
    """Returns the opponent's utility of each sequence in a game, given both strategies in behavioral form."""
    utilities = gradients(game, forms.sequence_form(game, strategies))
    if self.responds:
      backward_pass(game, take_best, utilities)
    else:
      backward_pass(game, expect, utilities, strategy=strategies)
    return utilities

  def opponent_values(self, index: int) -> Float64s:
    opponent = 1 - self.searcher
    searcher_range = self.ranges(index)[self.searcher]
    if not self.tree.counterfactual_reach(index, opponent, searcher_range).any():
      return np.zeros(self.tree.num_private_states(index)[opponent])
    river, utilities = self._evaluated(index)
    return np.asarray(river.probability * utilities[river.go_on_sequences])

  def opponent_action_values(self) -> Float64s:
    game, opponent, result = self.tree.game, 1 - self.searcher, np.zeros_like(self.policy)
    if not self.given_ranges:
      own_slots = game.infosets[opponent].action_sequences
      result[own_slots] = self._utilities(game, self.policy)[own_slots]
    for index in self.given_ranges:
      river, utilities = self._evaluated(index)
      sequences, slots = river.action_sequences(opponent)
      result[slots] = river.probability * utilities[sequences]
    return result
