"""Search on a river of hold'em: the last round of betting in vector form, from the ranges that lead to it."""

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.bots import PolicyReader, distribution
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.betting_tree import check_random_deals, walk_betting_tree
from spiel_cfr.poker.boards import list_boards
from spiel_cfr.poker.deal import Deal, find_deal, public_moves
from spiel_cfr.poker.hand_tree import TERMINALS, hand_tree
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.search.cut_outs import Pair
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.game_search import GameSearch, SearchLimits
from spiel_cfr.search.rivers import RiverTree
from spiel_cfr.search.search_step import search_step
from spiel_cfr.search.subgame_solver import SubgameSolver

# The number of random deals that are played in OpenSpiel, to check the vector form of a subgame.
_CHECKED_DEALS = 200


class UnsafeSearchWarning(UserWarning):
  """Warning that a subgame was solved without bounds, because the blueprint provides none."""


class HandSearch:
  """The betting after the last public card, solved once with its full betting tree.

  The range of each player has the probability with which its blueprint plays each hand to the river. The subgame
  contains all bets, so later decisions on the river need no further search. With a safe gadget, the solution does not
  depend on the opponent's range. A safe gadget needs the blueprint wherever the searcher plays to on the river. If the
  blueprint does not answer everywhere, or not in time, the river is solved from both ranges, as with the gadget
  "unsafe".

  Attributes:
    gadget: the gadget that was used.
  """

  def __init__(
    self,
    view: GameView,
    path: Sequence[int],
    dealt: Sequence[int],
    policy: PolicyReader,
    solver: SubgameSolver,
    searcher: int,
    gadget: Gadget,
  ) -> None:
    """Solves the river.

    Args:
      view: the game.
      path: the moves after the hands were dealt, down to the last public card.
      dealt: the public cards among these moves.
      policy: the blueprint.
      solver: the solver. Reading the blueprint may take half of the time until its deadline.
      searcher: the player who plays the solution.
      gadget: a gadget in which the opponent does not pick.

    Raises:
      PolicyError: an answer of the blueprint is not a distribution.
      GameTooLargeError: the betting has too many public states.
      UnsupportedGameError: see `poker.compile_public_game`.
    """
    self._deal = find_deal(view.game, path, dealt)
    self._nodes = walk_betting_tree(view, self._deal)
    check_random_deals(view.game, self._deal, self._nodes, _CHECKED_DEALS, np.random.default_rng(0))
    tree = hand_tree(self._deal, self._nodes, list_boards(self._deal, self._nodes))
    self._tree = RiverTree(PublicGame(view, tree, np.float64, None), is_river=True)
    ranges = self._ranges(view, policy)
    entries = None
    if gadget.is_safe:
      now = time.perf_counter()
      entries = self._read(view, policy, searcher, now + (solver.deadline - now) / 2)
    if entries is not None:
      self.gadget, blueprint = gadget, self._tree.blueprint(entries, searcher, {0: ranges})
      self._entries = search_step(blueprint, self._tree[:1], gadget, solver)[0].entries
    else:
      if gadget.is_safe:
        warnings.warn(
          "A river is solved with the gadget 'unsafe', without any guarantee, because the blueprint lacks a decision "
          "there or was not read in half of the time. Give a blueprint that has all rivers, or more seconds.",
          UnsafeSearchWarning,
          stacklevel=2,
        )
      self.gadget, self._entries = GADGETS["unsafe"], self._tree.uniform()
      start = self._tree.start(
        0, ranges, searcher, self.gadget, np.zeros(len(ranges[1 - searcher]))
      )
      assert start is not None
      cut = self._tree.cut_out([start], self.gadget)
      cut.write(solver.solve(cut), self._entries, searcher)

  @property
  def size(self) -> int:
    """The count of numbers that the object keeps."""
    return len(self._entries)

  def policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns the strategy at a decision of the searcher; uniform for a hand that does not play to the river."""
    deal, history = self._deal, state.history()
    at = 0
    for action in history[deal.num_private_moves + len(deal.path) :]:
      at = self._nodes[at].children[self._nodes[at].actions.index(action)]
    player, game = state.current_player(), self._tree.game
    here = np.flatnonzero(game.tree.boards[0].hands[player] == deal.hand(history, player))
    actions = self._nodes[at].actions
    if not len(here):
      return [(action, 1 / len(actions)) for action in actions]
    sequences = game.layout.sequences(game.tree.node_at(0, at))[:, here[0]]
    return list(zip(actions, self._entries[sequences].tolist(), strict=True))

  def _read(
    self, view: GameView, policy: PolicyReader, searcher: int, deadline: float
  ) -> Float64s | None:
    """Returns the searcher's blueprint in behavioural form; None if the blueprint does not answer in time."""
    nodes, game = self._nodes, self._tree.game
    result = self._tree.uniform()
    begins = _begins(self._deal, searcher)
    for place, hand in enumerate(game.tree.boards[0].hands[searcher].tolist()):
      begin = view.new_initial_state()
      for action in begins[hand]:
        begin.apply_action(action)
      stack = [(0, begin)]
      while stack:
        at, state = stack.pop()
        chances = [1.0] * len(nodes[at].actions)
        if nodes[at].player == searcher:
          strategy = policy.look_up(state, searcher)
          if strategy is None or time.perf_counter() > deadline:
            return None
          chances = distribution(strategy, nodes[at].actions, "On a river the blueprint")
          result[game.layout.sequences(game.tree.node_at(0, at))[:, place]] = chances
        moves = zip(nodes[at].actions, nodes[at].children, chances, strict=True)
        for action, child, chance in moves:
          if chance > 0 and nodes[child].kind not in TERMINALS:
            stack.append((child, state.child(action)))
    return result

  def _ranges(self, view: GameView, policy: PolicyReader) -> Pair:
    """Returns both players' ranges over the hands on the board, by the blueprint along the path."""
    deal = self._deal
    weights, hands = deal.reaches.copy(), self._tree.game.tree.boards[0].hands
    for player in (0, 1) if deal.path else ():
      for hand, actions in _begins(deal, player).items():
        state = view.new_initial_state()
        for place, action in enumerate(actions):
          if place >= deal.num_private_moves and state.current_player() == player:
            strategy = policy.look_up(state, player)
            if strategy is not None:
              weights[player, hand] *= strategy.get(action, 0.0)
          state.apply_action(action)
      if not weights[player] @ deal.compatible_mass(deal.reaches[1 - player]) > 0:
        # The blueprint never plays to this river.
        weights[player] = deal.reaches[player]
    # Each pair of hands in the two ranges may share a card.
    if not weights[0] @ deal.compatible_mass(weights[1]) > 0:
      weights = deal.reaches
    first, second = (
      weights[player, own] / deal.reaches[player, own] for player, own in enumerate(hands)
    )
    return first, second


class RiverSearch(GameSearch):
  """A player's search in poker over vectors of hands: on rivers. Before the last public card it plays the blueprint."""

  def __init__(
    self,
    view: GameView,
    player: int,
    blueprint: PolicyReader,
    limits: SearchLimits,
  ) -> None:
    """Takes the game and the blueprint; the arguments are those of `BlueprintSearch`."""
    self.view, self._player, self._blueprint, self._limits = view, player, blueprint, limits
    # By the moves that lead to a river: the search, or the error that prevents it.
    self._found: dict[tuple[int, ...], HandSearch | errors.GameError] = {}

  @property
  def size(self) -> int:
    return sum(each.size for each in self._found.values() if isinstance(each, HandSearch))

  def prepare(self) -> None:
    """Does nothing: rivers are solved when they are played."""

  def policy(self, state: Any, deadline: float) -> list[tuple[int, float]]:
    """Returns the strategy at a decision, see `GameSearch`.

    Raises:
      GameTooLargeError: the river cannot be searched, and the blueprint has no probabilities.
    """
    problem = "public cards are still to be dealt"
    moves = public_moves(self.view, state)
    if moves is not None:
      found = self._search(*moves, deadline)
      if isinstance(found, HandSearch):
        return found.policy(state)
      problem = str(found)
    try:
      return self._blueprint.strategy(state, self._player)
    except errors.PolicyError as error:
      raise errors.GameTooLargeError(f"{error} It can't be searched: {problem}.") from None

  def _search(
    self, path: list[int], dealt: list[int], deadline: float
  ) -> HandSearch | errors.GameError:
    """Returns the search on a river, or the error that prevents it."""
    key = tuple(path)
    if key not in self._found:
      # A game over vectors of hands has no infoset in which the opponent could pick a hand.
      gadget = self._limits.gadget or GADGETS["follow"]
      if gadget.front == "pick":
        gadget = GADGETS["follow"]
      solver = self._limits.iterative(deadline)
      try:
        self._found[key] = HandSearch(
          self.view, path, dealt, self._blueprint, solver, self._player, gadget
        )
      except errors.GameError as error:
        self._found[key] = error
    return self._found[key]


def _begins(deal: Deal, player: int) -> dict[int, list[int]]:
  """Returns, for each hand of a player, the actions that lead to the river with some hand of the other player."""
  has = np.zeros((len(deal.hands), deal.num_cards), np.float32)
  np.put_along_axis(has, deal.hands, 1, axis=1)
  others = (has @ has.T == 0) & (deal.reaches[1 - player] > 0)
  result = {}
  for hand in np.flatnonzero(deal.reaches[player] * others.any(axis=1)).tolist():
    pair = [deal.hands[each].tolist() for each in (hand, int(np.argmax(others[hand])))]
    result[hand] = deal.actions(*(pair if player == 0 else pair[::-1]))
  return result
