"""A last round of betting over vectors of hands, solved again by one player behind a gadget; all rivers of a turn."""

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from spiel_cfr import catalogue
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.counterfactual_values import backward_pass, gradients
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.policies import forms
from spiel_cfr.poker.boards import list_boards
from spiel_cfr.poker.choice_front import FRONT, GO_ON, nodes_below, with_choice
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_layout import Layout
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import Kind, PublicNode
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.search_step import Step, run_until

# Hands that are this unlikely beside the likeliest are left out: bounds are divided by what their probabilities sum to.
_UNLIKELY = 1e-12
# By how much of the largest payoff a margin may be below 0.
_TOLERANCE = 1e-3


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
      gadget: what is in front: a choice of the opponent's, or nothing.
    """
    self._view, self._nodes, self._ranges = view, nodes, ranges
    self._searcher, self._opponent, self._gadget = searcher, 1 - searcher, gadget
    reaches = np.where(ranges > _UNLIKELY * ranges.max(axis=1, keepdims=True), ranges, 0.0)
    if gadget.is_safe:
      reaches[self._opponent] = deal.reaches[self._opponent]
    self._deal = dataclasses.replace(deal, reaches=reaches)

  @property
  def is_reached(self) -> bool:
    """Whether anybody comes here."""
    return self._deal.total > 0

  @functools.cached_property
  def _behind(self) -> Layout:
    """What is behind the gadget."""
    return Layout(self._deal, self._nodes, list_boards(self._deal, self._nodes))

  @property
  def hands(self) -> Int64s:
    """The searcher's hands, as rows of `Deal.hands`."""
    return self._behind.boards[0].hands[self._searcher]

  def _offering(self, offers: Float64s) -> PublicGame:
    """Returns the game whose gadget offers something to each of the opponent's hands."""
    layout, dealt = self._behind, None
    if self._gadget.is_safe:
      if self._gadget.mixed:
        hands = layout.boards[0].hands[self._opponent]
        likely = self._ranges[self._opponent, hands] / self._deal.reaches[self._opponent, hands]
        dealt = self._gadget.mixed * likely / max(float(likely.max()), 1e-300)
      layout = with_choice(layout, self._opponent, offers, dealt)
    return PublicGame(self._view, layout, np.float64, None)

  @functools.cached_property
  def game(self) -> PublicGame:
    """The subgame, whose gadget offers nothing."""
    return self._offering(np.zeros(len(self._behind.boards[0].hands[self._opponent])))

  def sequences(self, node: int) -> Int64s:
    """Returns the sequences of a decision in `game`, shape (actions, hands)."""
    return self.game.layout.sequences(0, node + (FRONT if self._gadget.is_safe else 0))

  def solve(
    self, blueprint: Float64s, solve: Callable[[PublicGame], Float64s]
  ) -> tuple[Float64s | None, float]:
    """Solves it again.

    Args:
      blueprint: the searcher's, in behavioural form of `game`; of no matter if the gadget is not safe.
      solve: takes a game, returns strategies in sequence form.

    Returns:
      Strategies in behavioural form, None if they would not be safe; and the smallest margin, NaN where none is asked for.
    """
    if not self._gadget.is_safe:
      return forms.behavioral_form(self.game, solve(self.game)), math.nan
    offers = self.values(forms.sequence_form(self.game, blueprint))
    found = solve(self._offering(offers))
    margin = float((offers - self.values(found)).min())
    is_refused = margin < -_TOLERANCE * max(self.game.payoff_range)
    return None if is_refused else forms.behavioral_form(self.game, found), margin

  def values(self, strategies: Float64s) -> Float64s:
    """Returns v: what each of the opponent's hands that goes on expects from a best response; shape (hands,)."""
    worth, largest = gradients(self.game, strategies), max(self.game.payoff_range)
    backward_pass(self.game, take_best, worth)
    result = worth[self.game.layout.sequences(0, 0)[GO_ON]] / self._mass()
    return np.asarray(np.clip(result, -largest, largest))

  def _mass(self) -> Float64s:
    """Returns w of each of the opponent's hands that goes on, shape (hands,)."""
    board, deal = self.game.layout.boards[0], self._deal
    mass = deal.compatible_mass(deal.reaches[self._searcher])[board.hands[self._opponent]]
    return np.asarray(board.reaches[self._opponent] * mass / deal.total)


def resolve_rivers(
  game: PublicGame,
  blueprint: Float64s,
  *,
  gadget: str | Gadget = "follow",
  player: int | None = None,
  solver: str = "dcfr",
  iterations: int = 100,
) -> tuple[Float64s, tuple[Step, ...]]:
  """Solves what follows each deal of public cards again, in poker with many hands.

  Args:
    game: poker in vector form that deals public cards, such as an endgame of the turn.
    blueprint: a policy of both players in sequence form, such as `solver.average_sequence_form()`.
    gadget: "unsafe", "resolving", "follow", or a `Gadget` whose opponent does not pick.
    player: who searches; None for both, each against the blueprint.
    solver: a name in `catalogue.SOLVERS`.
    iterations: how many it does in each river.

  Returns:
    The policy in sequence form, and what was done, a step for each searcher.

  Raises:
    ArgumentError: an argument is not as above.
  """
  chosen = find_gadget(gadget)
  arguments.positive_integer(iterations, "iterations")
  arguments.one_of(solver, "solver", list(catalogue.SOLVERS))
  searchers = (0, 1) if player is None else (arguments.integer(player, "player", 0, 1),)
  solve = functools.partial(run_until, solver=solver, iterations=iterations, deadline=math.inf)
  start = forms.behavioral_form(game, blueprint)
  played = forms.sequence_form(game, start)
  result, steps = start.copy(), []
  for searcher in searchers:
    begin, after = time.perf_counter(), start.copy()
    margins: list[float] = []
    unreached = refused = 0
    for number, first, deal, ranges in _rivers(game.layout, played):
      nodes = nodes_below(game.layout.nodes, first)
      river = HandSubgame(game.view, deal, nodes, ranges, searcher, chosen)
      if not river.is_reached:
        unreached += 1
        continue
      hands = game.layout.boards[number].hands[searcher]
      order = np.argsort(hands)
      own = order[np.searchsorted(hands, river.hands, sorter=order)]
      mine = [place for place, node in enumerate(nodes) if node.player == searcher]
      here = [river.sequences(place) for place in mine]
      there = [game.layout.sequences(number, first + place)[:, own] for place in mine]
      known = np.zeros(river.game.end)
      for one, other in zip(here, there, strict=True):
        known[one] = start[other]
      found, margin = river.solve(known, solve)
      if found is None:
        refused += 1
        continue
      margins.append(margin)
      for one, other in zip(here, there, strict=True):
        after[other] = found[one]
    steps.append(
      Step(
        searcher,
        0,
        len(margins),
        unreached,
        refused,
        min(margins, default=math.nan),
        *(
          float(evaluate(game, forms.sequence_form(game, each)).best_response_values[1 - searcher])
          for each in (start, after)
        ),
        time.perf_counter() - begin,
      )
    )
    tree = game.treeplexes[searcher]
    result[tree.root : tree.end] = after[tree.root : tree.end]
  return forms.sequence_form(game, result), tuple(steps)


def _rivers(layout: Layout, played: Float64s) -> Iterator[tuple[int, int, Deal, Float64s]]:
  """Yields, for each deal of public cards, the board, its first node, how chance deals hands there, and the ranges."""
  for node in layout.nodes:
    if node.kind is Kind.CHANCE:
      for number, board in enumerate(layout.boards[1:], 1):
        deals, ranges = np.zeros((2, *layout.deal.reaches.shape))
        for player in (0, 1):
          row = layout.row_above(player, number, node.children[0])
          deals[player, board.hands[player]] = board.reaches[player]
          ranges[player, board.hands[player]] = (
            board.reaches[player] * played[row.first + row.lanes]
          )
        deal = dataclasses.replace(layout.deal, board=board.cards, reaches=deals)
        yield number, node.children[0], deal, ranges
