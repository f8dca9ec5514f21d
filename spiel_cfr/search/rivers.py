"""All rivers of a turn, or all that follows a deal of public cards, solved again in poker with many hands."""

import dataclasses
import functools
import math
import time
from collections.abc import Iterator

import numpy as np

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.poker.choice_front import nodes_below
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import Kind
from spiel_cfr.policies import forms
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.hand_subgame import HandSubgame
from spiel_cfr.search.search_step import Step, run_until

# What best responses are off, as a part of the largest payoff.
_ROUNDING = 1e-9


def resolve_rivers(
  game: PublicGame,
  blueprint: Float64s,
  *,
  gadget: str | Gadget = "follow",
  player: int | None = None,
  solver: str = "dcfr",
  iterations: int = 200,
) -> tuple[Float64s, tuple[Step, ...]]:
  """Solves what follows each deal of public cards again, in poker with many hands, and keeps what is safe.

      found, steps = resolve_rivers(turn, solver.average_sequence_form())

  The blueprint is kept in a river where the opponent may get a thousandth of the pot more than its bounds, and in all
  of them if it gets more in all.

  Args:
    game: poker in vector form that deals public cards, such as an endgame of the turn.
    blueprint: both players' strategies in sequence form, such as `solver.average_sequence_form()`.
    gadget: "unsafe", "resolving", "follow", or a `Gadget` whose opponent does not pick.
    player: who searches; None for both, each against the blueprint.
    solver: a name in `catalogue.SOLVERS`, of a full-width solver.
    iterations: how many it does in each river.

  Returns:
    Strategies in sequence form, and what was done, a step for each searcher.

  Raises:
    ArgumentError: an argument is not as above, or the game is an abstraction.
    PolicyError: the blueprint has another shape.
    NotFiniteError: it is not finite, or 0.
    NoStatesError: the solver samples.
  """
  chosen = find_gadget(gadget)
  arguments.positive_integer(iterations, "iterations")
  arguments.one_of(solver, "solver", list(catalogue.SOLVERS))
  searchers = (0, 1) if player is None else (arguments.integer(player, "player", 0, 1),)
  solve = functools.partial(run_until, solver=solver, iterations=iterations, deadline=math.inf)
  if game.original is not game:
    raise errors.ArgumentError(
      "Rivers are solved again with all hands: give the abstraction's `original`, and `to_original(blueprint)`."
    )
  before = evaluate(game, blueprint).best_response_values[::-1].tolist()
  start = forms.behavioral_form(game, blueprint)
  played = forms.sequence_form(game, start)
  result, steps = played.copy(), []
  moves = min((len(node.path) for node in game.layout.nodes if node.level), default=0)
  moves += game.layout.deal.num_private_moves
  for searcher in searchers:
    begin, probabilities = time.perf_counter(), start.copy()
    margins: list[float] = []
    unreached = refused = 0
    for river in _rivers(game, played, searcher, chosen):
      if not river.is_reached:
        unreached += 1
        continue
      known = np.zeros(river.game.end)
      places = river.places()
      for here, there in places:
        known[here] = start[there]
      found, margin = river.solve(known if chosen.is_safe else None, solve)
      if found is known:
        refused += 1
        continue
      margins.append(margin)
      for here, there in places:
        probabilities[there] = found[here]
    own = slice(game.treeplexes[searcher].root, game.treeplexes[searcher].end)
    after = played.copy()
    after[own] = forms.sequence_form(game, probabilities)[own]
    gets = float(evaluate(game, after).best_response_values[1 - searcher])
    if chosen.is_safe and gets > before[searcher] + _ROUNDING * max(game.payoff_range):
      after, gets, refused, margins = played, before[searcher], refused + len(margins), []
    result[own] = after[own]
    worst, seconds = min(margins, default=math.nan), time.perf_counter() - begin
    steps.append(
      Step(
        searcher, moves, len(margins), unreached, refused, worst, before[searcher], gets, seconds
      )
    )
  return result, tuple(steps)


class _River(HandSubgame):
  """What follows a deal of public cards."""

  def __init__(
    self,
    game: PublicGame,
    played: Float64s,
    board: int,
    first: int,
    searcher: int,
    gadget: Gadget,
  ) -> None:
    """Takes what both play in the whole game, the number of the board, and that of the first node on it."""
    self._whole, self._board, self._first = game.layout, board, first
    deal, known = game.layout.deal, game.layout.boards[board]
    ranges, reaches = np.zeros((2, *deal.reaches.shape))
    for player, hands in enumerate(known.hands):
      row = game.layout.row_above(player, board, first)
      reaches[player, hands] = known.reaches[player]
      ranges[player, hands] = known.reaches[player] * played[row.first + row.lanes]
    deal = dataclasses.replace(deal, board=known.cards, reaches=reaches)
    nodes = nodes_below(game.layout.nodes, first)
    super().__init__(game.view, deal, nodes, ranges, searcher, gadget)

  def places(self) -> list[tuple[Int64s, Int64s]]:
    """Returns, for each of the searcher's decisions, its sequences here and in the whole, (actions, hands) each."""
    hands = self._whole.boards[self._board].hands[self._searcher]
    order = np.argsort(hands)
    own = order[np.searchsorted(hands, self.hands, sorter=order)]
    return [
      (self.sequences(place), self._whole.sequences(self._board, self._first + place)[:, own])
      for place, node in enumerate(self._nodes)
      if node.player == self._searcher
    ]


def _rivers(game: PublicGame, played: Float64s, searcher: int, gadget: Gadget) -> Iterator[_River]:
  """Yields all rivers in which the searcher decides something."""
  for node in game.layout.nodes:
    if node.kind is Kind.CHANCE:
      (first,) = node.children
      if any(below.player == searcher for below in nodes_below(game.layout.nodes, first)):
        for board in range(1, len(game.layout.boards)):
          yield _River(game, played, board, first, searcher, gadget)
