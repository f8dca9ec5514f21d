"""Games of rivers of hold'em: the betting after the last public card, with given ranges and a gadget in front."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.parts import PayoffBuilder
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame
from spiel_cfr.poker.betting_tree import BettingNode
from spiel_cfr.poker.boards import Board
from spiel_cfr.poker.choice_front import GO_ON, NUM_CHOICE_NODES, with_choice
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_payoff import PokerTerminals
from spiel_cfr.poker.hand_tree import HandTree, hand_tree
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.search.gadget_games import PerPlayer


class RiverGame(PublicTreeGame):
  """A river as a compiled game, with or without a choice of one player in front.

  States of OpenSpiel begin at the root of the whole game, so this game has none.

  Attributes:
    probability: float. The probability of the river's pairs of hands in the whole game, with the given weights.
  """

  tree: HandTree
  _skips_forced = False

  def __init__(
    self,
    whole: PublicGame,
    board: int,
    first: int,
    nodes: Sequence[BettingNode],
    weights: PerPlayer,
    chooser: int | None = None,
    bounds: Float64s | None = None,
    forced: Float64s | None = None,
  ) -> None:
    """Makes the game of a river.

    Args:
      whole: the whole game.
      board: the index of the river's board in the whole game.
      first: the index of the river's first node in the betting tree of the whole game.
      nodes: the betting tree of the river.
      weights: by player, float64 (hands,). The factors of the probabilities of hands.
      chooser: the player who takes its bound or plays on; None without a choice.
      bounds: float64 (hands,). The chooser's payoff with each hand if it takes the bound; 0 by default.
      forced: float64 (hands,). The probability with which each hand must play on; 0 by default.
    """
    self._whole, self._board, self._first_in_whole, self._nodes = whole, board, first, nodes
    deal, there = whole.tree.deal, whole.tree.boards[board]
    reaches = there.reaches[0] * weights[0], there.reaches[1] * weights[1]
    here = dataclasses.replace(there, level=0, parent=0, probability=1.0, reaches=reaches)
    self._is_possible = [
      (reach > 0) & (counterfactual_reach(deal, there, player, weights[1 - player]) > 0)
      for player, reach in enumerate(reaches)
    ]
    of_hands = np.zeros_like(deal.reaches)
    for reach_of_hands, hands, reach in zip(of_hands, here.hands, reaches, strict=True):
      reach_of_hands[hands] = reach
    own_deal = dataclasses.replace(deal, board=here.cards, reaches=of_hands)
    self.probability = own_deal.total / deal.total * there.probability
    tree, self._first = hand_tree(own_deal, list(nodes), [here]), 0
    if chooser is not None:
      payoffs = np.zeros_like(reaches[chooser]) if bounds is None else bounds
      tree = with_choice(tree, chooser, payoffs, forced)
      self._first = NUM_CHOICE_NODES
    facts = dataclasses.replace(
      whole.facts,
      payoff_range=(-tree.largest_payoff, tree.largest_payoff),
      num_states=tree.num_nodes + tree.num_terminals,
      num_terminals=tree.num_terminals,
    )
    super().__init__(facts, tree, np.float64, None, None)

  @property
  def view(self) -> GameView:
    """Raises NoStatesError: a river has no states of OpenSpiel."""
    raise errors.NoStatesError(
      "The game of a river has no OpenSpiel states, which sampling solvers need: name a full-width solver."
    )

  def _builder(self, layout: Layout, above: Int32s) -> PayoffBuilder:
    return functools.partial(PokerTerminals, self.tree, layout, above)

  @property
  def go_on_sequences(self) -> Int64s:
    """The sequences with which the chooser plays on, int64 (hands,)."""
    return np.asarray(self.layout.sequences(0)[GO_ON])

  def action_sequences(self, player: int) -> tuple[Int64s, Int64s]:
    """Returns the sequences of a player's actions in the river, and those of the same actions in the whole game.

    Hands with probability 0 are left out.
    """
    whole, hands = self._whole, self._is_possible[player]
    here, there = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, node in enumerate(self._nodes):
      if node.player == player:
        node_here = self.tree.node_at(0, self._first + number)
        here.append(self.layout.sequences(node_here)[:, hands].ravel())
        node_there = whole.tree.node_at(self._board, self._first_in_whole + number)
        there.append(whole.layout.sequences(node_there)[:, hands].ravel())
    return np.concatenate(here), np.concatenate(there)


def counterfactual_reach(deal: Deal, board: Board, player: int, weights: Float64s) -> Float64s:
  """Returns the probability that chance and the other player lead to each of a player's hands on a board.

  Args:
    deal: the deal of the whole game.
    board: the board.
    player: the player.
    weights: float64 (the other player's hands,). The other player's range.
  """
  of_hands = np.zeros(len(deal.hands))
  of_hands[board.hands[1 - player]] = board.reaches[1 - player] * weights
  # Integer counts are exactly 0 for a hand that is compatible with no hand of the other player.
  is_possible = deal.compatible_mass((of_hands > 0).astype(np.int64)) > 0
  reach = np.where(is_possible, deal.compatible_mass(of_hands), 0.0)[board.hands[player]]
  return np.asarray(reach * board.reaches[player] * board.probability / deal.total)
