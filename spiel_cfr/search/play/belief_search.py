"""Continual re-solving with leaf values, without a blueprint: the search, and the bot that plays by it.

The method is that of DeepStack (Moravčík et al. 2017). The first subgame begins at the root of the game. Each later one
begins at a leaf of the previous subgame, with the average ranges of both players at that leaf. A gadget in front bounds
the opponent by the average values that it had at the leaf. The search walks the game only as far as it is played.
"""

from typing import Any

import numpy as np

from spiel_cfr._util import arguments
from spiel_cfr.bots import DrawingBot
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.play.search_bot import SearchingBot
from spiel_cfr.search.play.segments import Segment
from spiel_cfr.search.subgames.lookahead import (
  ChoiceFront,
  LeafValues,
  LookaheadSolution,
  check_leaf_values,
)


class BeliefSearch:
  """One player's search from the root of the game on; each subgame is solved once. A `GameSearch`.

  Attributes:
    view: `GameView`. The game as its walks see it.
  """

  def __init__(
    self,
    view: GameView,
    player: int,
    leaf_values: LeafValues,
    depth: int,
    iterations: int,
    gadget: Gadget,
    max_histories: int,
  ) -> None:
    """Takes the game and the leaf values.

    Args:
      view: the game.
      player: the player who searches.
      leaf_values: the values of private states at the leaves.
      depth: the number of moves of a subgame, see `Lookahead`.
      iterations: the number of iterations of SAPCFR+ in each subgame.
      gadget: the gadget in front of all subgames except the first.
      max_histories: the largest number of histories of a subgame, down to its leaves.
    """
    self.view, self._player = view, player
    self._leaf_values, self._depth, self._iterations = leaf_values, depth, iterations
    self._gadget, self._max_histories = gadget, max_histories
    self._first: Segment | None = None
    self._solved = dict[Segment, LookaheadSolution]()

  @property
  def size(self) -> int:
    """The approximate count of numbers that the search keeps."""
    return sum(12 * len(segment.tree.histories.parent) for segment in self._solved)

  def prepare(self) -> None:
    """Solves the first subgame.

    Raises:
      GameTooLargeError: the subgame has more than `max_histories` histories.
      UnsupportedGameError: see `HistoryTree` and `Lookahead`.
    """
    self._root_segment()

  def _root_segment(self) -> Segment:
    """Returns the segment at the root of the game, after solving it."""
    if self._first is None:
      start = [self.view.new_initial_state()]
      first = Segment(self.view, start, None, self._depth, self._max_histories)
      root = np.ones((1, 1))
      self._solved[first] = first.lookahead.solve((root, root), self._leaf_values, self._iterations)
      self._first = first
    return self._first

  def policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns (action, probability) at a decision of the player, after solving the subgames on the way.

    Raises:
      ArgumentError: the game has no such history.
      GameTooLargeError: a subgame has more than `max_histories` histories.
    """
    segment, history = self._root_segment(), state.history()
    while True:
      path = segment.path(history)
      leaves = {leaf.index for leaf in segment.lookahead.leaves}
      reached = [index for index in segment.tree.state_of[path].tolist() if index in leaves]
      if not reached:
        break
      segment = self._segment_below(segment, reached[0])
    histories = segment.tree.histories
    span = histories.entries_of(int(histories.infoset[path[-1]]))
    slots = segment.lookahead.sequences[self._player].slots
    strategy = np.zeros(histories.num_entries)
    strategy[slots] = self._solved[segment].strategies[self._player][:, 0]
    legal = np.concatenate(histories.actions)[span]
    return list(zip(legal.tolist(), strategy[span].tolist(), strict=True))

  def _segment_below(self, above: Segment, index: int) -> Segment:
    """Returns the segment below a leaf, after solving it; `index` is the leaf's index as a public state."""
    segment = above.segment_below(index)
    if segment not in self._solved:
      leaf = [each.index for each in above.lookahead.leaves].index(index)
      solution, counts = self._solved[above], above.lookahead.counts[leaf]
      first, second = (solution.leaf_ranges[leaf, player, : counts[player]] for player in (0, 1))
      opponent = 1 - self._player
      bounds = solution.leaf_values[leaf, opponent, : counts[opponent], 0]
      ranges = first[:, 0], second[:, 0]
      front = ChoiceFront.of_gadget(segment.tree, 0, self._player, ranges, self._gadget, bounds)
      self._solved[segment] = segment.lookahead.solve(
        (first, second), self._leaf_values, self._iterations, front
      )
    return segment


class BeliefBot(SearchingBot, DrawingBot):
  """Bot that solves subgames of limited depth with values at their leaves, from the first move on.

      bot = BeliefBot(leaf_values, player=0)
      pyspiel.evaluate_bots(state, [bot, other], seed)

  The bot needs no blueprint. It walks the game only as far as it is played. It finds each solution once and keeps it
  for later games.
  """

  def __init__(
    self,
    leaf_values: LeafValues,
    player: int,
    *,
    depth: int = 2,
    iterations: int = 200,
    gadget: str | Gadget | None = None,
    max_histories: int = 50_000,
    seed: int | np.random.Generator | None = None,
  ) -> None:
    """Makes the bot.

    Args:
      leaf_values: the values of private states at the leaves of subgames, see `LeafValues`.
      player: the player for whom the bot plays.
      depth: the number of moves of a subgame, see `Subgame`.
      iterations: the number of iterations of SAPCFR+ in each subgame.
      gadget: a name in `GADGETS`, or a `Gadget` in which the opponent does not pick its private state; "follow" by
        default.
      max_histories: the largest number of histories of a subgame, down to its leaves.
      seed: the seed of the bot's random draws.

    Raises:
      ArgumentError: an argument is not as above.
    """
    super().__init__({}, player, seed=seed)
    arguments.integer(player, "player", 0, 1)
    check_leaf_values(leaf_values)
    self._leaf_values = leaf_values
    self._depth = arguments.positive_integer(depth, "depth")
    self._iterations = arguments.positive_integer(iterations, "iterations")
    self._gadget = find_gadget(gadget, can_pick=False, is_linear_program=False)
    self._max_histories = arguments.positive_integer(max_histories, "max_histories")

  def __repr__(self) -> str:
    return f"<BeliefBot of player {self._player} with leaf values>"

  def _new_search(self, view: GameView) -> BeliefSearch:
    return BeliefSearch(
      view,
      self._player,
      self._leaf_values,
      self._depth,
      self._iterations,
      self._gadget,
      self._max_histories,
    )
