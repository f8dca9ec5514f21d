"""A last round of betting over vectors of hands, solved again by one player behind a gadget."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.counterfactual_values import backward_pass, gradients
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.boards import list_boards
from spiel_cfr.poker.choice_front import FRONT, GO_ON, with_choice
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree, hand_tree
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import PublicNode
from spiel_cfr.policies import forms
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.standing import UNLIKELY

# Which part of the pot the opponent may get more than its bounds, in the mean over its hands by w.
_TOLERANCE = 1e-3


class HandSolution(NamedTuple):
  """What the searcher plays.

  Attributes:
    strategies: in behavioural form of the subgame.
    margin: the smallest that was found; NaN where none is asked for.
    is_refused: whether what was found is not safe, and the strategies are the blueprint.
  """

  strategies: Float64s
  margin: float
  is_refused: bool


class HandSubgame:
  """The betting after the last public card, which one player, the searcher, solves again."""

  def __init__(
    self,
    view: GameView,
    deal: Deal,
    nodes: list[PublicNode],
    ranges: Float64s,
    searcher: int,
    gadget: Gadget,
  ) -> None:
    """Takes what is known there.

    Args:
      view: how the game is walked.
      deal: how chance deals hands, and the public cards.
      nodes: the public tree.
      ranges: what each hand weighs, by chance and by what its player has played; shape (2, hands).
      searcher: who solves it again.
      gadget: what is in front: a choice of the opponent's, by v(J) alone, or nothing.

    Raises:
      ArgumentError: there is no such gadget over vectors of hands.
    """
    if gadget.front == "pick" or gadget.reach or gadget.knowledge_limited:
      raise errors.ArgumentError(
        "Over vectors of hands nobody picks a hand, bounds are v(J), and subgames have all hands: give the gadget "
        "'unsafe', 'resolving' or 'follow', or a Gadget('choice', mixed=...)."
      )
    self._view, self._nodes, self._ranges = view, nodes, ranges
    self._searcher, self._opponent, self._gadget = searcher, 1 - searcher, gadget
    reaches = np.where(ranges > UNLIKELY * ranges.max(axis=1, keepdims=True), ranges, 0.0)
    if gadget.is_safe:
      reaches[self._opponent] = deal.reaches[self._opponent]
    self._deal = dataclasses.replace(deal, reaches=reaches)

  @property
  def is_reached(self) -> bool:
    """Whether anybody comes here."""
    return self._deal.total > 0

  @functools.cached_property
  def _behind(self) -> HandTree:
    """What is behind the gadget."""
    return hand_tree(self._deal, self._nodes, list_boards(self._deal, self._nodes))

  @property
  def hands(self) -> Int64s:
    """The searcher's hands, as rows of `Deal.hands`."""
    return self._behind.boards[0].hands[self._searcher]

  def _offering(self, offers: Float64s) -> PublicGame:
    """Returns the game whose gadget offers something to each of the opponent's hands."""
    tree, dealt = self._behind, None
    if self._gadget.is_safe:
      if self._gadget.mixed:
        hands = tree.boards[0].hands[self._opponent]
        dealt = self._gadget.follows(
          self._ranges[self._opponent, hands], self._deal.reaches[self._opponent, hands]
        )
      tree = with_choice(tree, self._opponent, offers, dealt)
    return _Subgame(self._view, tree, np.float64, None)

  @functools.cached_property
  def game(self) -> PublicGame:
    """The subgame, whose gadget offers nothing."""
    return self._offering(np.zeros(len(self._behind.boards[0].hands[self._opponent])))

  def sequences(self, node: int) -> Int64s:
    """Returns the sequences of a decision in `game`, shape (actions, hands)."""
    place = self.game.tree.place(0, node + (FRONT if self._gadget.is_safe else 0))
    return self.game.layout.sequences(place)

  def solve(
    self, blueprint: Float64s | None, solve: Callable[[PublicGame], Float64s]
  ) -> HandSolution:
    """Solves it again, and refuses what is not safe: by which the opponent gets a thousandth of the pot too much.

    Args:
      blueprint: the searcher's, in behavioural form of `game`; a gadget that is not safe needs none.
      solve: takes a game, returns strategies in sequence form.

    Raises:
      ArgumentError: the gadget is safe, and there is no blueprint.
    """
    if not self._gadget.is_safe:
      return HandSolution(forms.behavioral_form(self.game, solve(self.game)), math.nan, False)
    if blueprint is None:
      raise errors.ArgumentError("Bounds are those of a blueprint: only 'unsafe' needs none.")
    bounds = self.values(forms.sequence_form(self.game, blueprint))
    found = solve(self._offering(bounds))
    margins, mass = bounds - self.values(found), self._mass()
    lost = float(np.maximum(-margins, 0.0) @ mass / mass.sum())
    pot = 2 * min(abs(node.payoff) for node in self._nodes if node.kind in TERMINALS)
    is_refused = not lost <= _TOLERANCE * pot
    strategies = blueprint if is_refused else forms.behavioral_form(self.game, found)
    return HandSolution(strategies, float(margins.min()), is_refused)

  def values(self, strategies: Float64s) -> Float64s:
    """Returns v: what each of the opponent's hands that goes on expects from a best response; shape (hands,)."""
    worth, largest = gradients(self.game, strategies), max(self.game.payoff_range)
    backward_pass(self.game, take_best, worth)
    result = worth[self.game.layout.sequences(0)[GO_ON]] / self._mass()
    return np.asarray(np.clip(result, -largest, largest))

  def _mass(self) -> Float64s:
    """Returns w of each of the opponent's hands that goes on, shape (hands,)."""
    board, deal = self.game.tree.boards[0], self._deal
    mass = deal.compatible_mass(deal.reaches[self._searcher])[board.hands[self._opponent]]
    return np.asarray(board.reaches[self._opponent] * mass / deal.total)


class _Subgame(PublicGame):
  """A game that has no states: those that its view knows begin elsewhere."""

  @property
  def view(self) -> GameView:
    """Raises NoStatesError."""
    raise errors.NoStatesError(
      "A river that is solved again has no states, which solvers need that sample: give a full-width solver."
    )
