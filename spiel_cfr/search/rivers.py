"""All rivers of a turn, or all that follows a deal of public cards, solved again in poker with many hands."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import Kind, nodes_below
from spiel_cfr.policies import forms
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.hand_subgame import HandSubgame
from spiel_cfr.search.search_step import Step

# What best responses are off, as a part of the largest payoff.
_ROUNDING = 1e-9


def resolve_rivers(
  game: PublicGame,
  start: Float64s,
  searchers: Sequence[int],
  gadget: Gadget,
  solve: Callable[[PublicGame], Float64s],
  stop: Callable[[], bool] = lambda: False,
) -> tuple[Float64s, list[Step]]:
  """Solves what follows each deal of public cards again, in poker over vectors of hands, and keeps what is safe.

  The blueprint is kept in a river where the opponent may get a thousandth of the pot more than its bounds, and in all
  of them if it gets more in all.

  Args:
    game: poker in vector form that deals public cards, such as an endgame of the turn.
    start: the blueprint of both players in behavioural form.
    searchers: who searches, each against the blueprint.
    gadget: one that `HandSubgame` takes.
    solve: takes a game, returns strategies in sequence form.
    stop: asked before each river; if it says so, the rest keeps the blueprint.

  Returns:
    Strategies in behavioural form, and what was done, a step for each searcher.

  Raises:
    ArgumentError: there is no such gadget over vectors of hands.
    NoStatesError: the solver samples.
  """
  played = forms.sequence_form(game, start)
  before = evaluate(game, played).best_response_values[::-1].tolist()
  result, steps = start.copy(), []
  moves = min((len(node.path) for node in game.tree.nodes if node.level), default=0)
  moves += game.tree.deal.num_private_moves
  for searcher in searchers:
    begin, probabilities = time.perf_counter(), start.copy()
    margins: list[float] = []
    unreached = refused = 0
    for river in _rivers(game, played, searcher, gadget):
      if stop():
        break
      if not river.is_reached:
        unreached += 1
        continue
      known = np.zeros(river.game.end)
      places = river.places()
      for here, there in places:
        known[here] = start[there]
      found = river.solve(known, solve)
      if found.is_refused:
        refused += 1
        continue
      margins.append(found.margin)
      for here, there in places:
        probabilities[there] = found.strategies[here]
    after = forms.sequence_form(game, probabilities)
    gets = float(evaluate(game, after).best_response_values[1 - searcher])
    if gadget.is_safe and gets > before[searcher] + _ROUNDING * max(game.payoff_range):
      probabilities, gets, refused, margins = start, before[searcher], refused + len(margins), []
    own = slice(game.treeplexes[searcher].root, game.treeplexes[searcher].end)
    result[own] = probabilities[own]
    worst, seconds = min(margins, default=math.nan), time.perf_counter() - begin
    steps.append(
      Step(
        searcher, moves, len(margins), unreached, refused, worst, before[searcher], gets, seconds
      )
    )
  return result, steps


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
    self._whole, self._board, self._first = game, board, first
    deal, known = game.tree.deal, game.tree.boards[board]
    ranges, reaches = np.zeros((2, *deal.reaches.shape))
    for player, hands in enumerate(known.hands):
      above = game.layout.sequences_above(player, game.tree.place(board, first))
      reaches[player, hands] = known.reaches[player]
      ranges[player, hands] = known.reaches[player] * played[above]
    deal = dataclasses.replace(deal, board=known.cards, reaches=reaches)
    nodes = nodes_below(game.tree.nodes, first)
    super().__init__(game.view, deal, nodes, ranges, searcher, gadget)

  def places(self) -> list[tuple[Int64s, Int64s]]:
    """Returns, for each of the searcher's decisions, its sequences here and in the whole, (actions, hands) each."""
    hands = self._whole.tree.boards[self._board].hands[self._searcher]
    order = np.argsort(hands)
    own = order[np.searchsorted(hands, self.hands, sorter=order)]
    return [
      (
        self.sequences(place),
        self._whole.layout.sequences(self._whole.tree.place(self._board, self._first + place))[
          :, own
        ],
      )
      for place, node in enumerate(self._nodes)
      if node.player == self._searcher
    ]


def _rivers(game: PublicGame, played: Float64s, searcher: int, gadget: Gadget) -> Iterator[_River]:
  """Yields all rivers in which the searcher decides something."""
  for node in game.tree.nodes:
    if node.kind is Kind.CHANCE:
      (first,) = node.children
      if any(below.player == searcher for below in nodes_below(game.tree.nodes, first)):
        for board in range(1, len(game.tree.boards)):
          yield _River(game, played, board, first, searcher, gadget)
