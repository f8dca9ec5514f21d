"""Search on rivers of hold'em: the betting after the last public card, solved in vector form during play.

A river is solved at the player's first decision there. The solution covers all bets, so later decisions on the river
need no further search. The range of each player has the probability with which its blueprint plays each hand to the
river. With bounds in its gadget, the solution does not depend on the opponent's range.
"""

import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.bots import PolicyReader, distribution
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.betting_tree import check_random_deals, walk_betting_tree
from spiel_cfr.poker.boards import list_boards
from spiel_cfr.poker.deal import Deal, find_deal, public_moves
from spiel_cfr.poker.hand_tree import TERMINALS, hand_tree
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.search.gadget_games import PerPlayer
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.subgames.search_step import search_step
from spiel_cfr.search.subgames.subgame_solver import SearchOptions, SubgameSolver, solve_unsafe
from spiel_cfr.search.trees.rivers import RiverTree

# The number of random deals that are played in OpenSpiel, to check the vector form of a river.
_CHECKED_DEALS = 200


class UnsafeSearchWarning(UserWarning):
  """Warning that a subgame was solved without bounds, because the blueprint provides none."""


class RiverSolution(NamedTuple):
  """A strategy of the searcher on a river.

  Attributes:
    tree: `RiverTree`. The public tree, in which the river is the only public state.
    strategy: float64 (slots,). The strategy, in behavioral form.
    gadget: `Gadget`. The gadget with which the river was solved.
  """

  tree: RiverTree
  strategy: Float64s
  gadget: Gadget

  def policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns (action, probability) at a decision; uniform for a hand that does not play to the river."""
    hands, history, node = self.tree.game.tree, state.history(), 0
    deal, nodes = hands.deal, hands.nodes
    for action in history[deal.num_private_moves + len(deal.path) :]:
      node = nodes[node].children[nodes[node].actions.index(action)]
    player, actions = state.current_player(), nodes[node].actions
    position = np.flatnonzero(_hands(self.tree)[player] == deal.hand(history, player))
    if not len(position):
      return [(action, 1 / len(actions)) for action in actions]
    probabilities = self.strategy[_slots_at(self.tree, node)[:, position[0]]]
    return list(zip(actions, probabilities.tolist(), strict=True))


class RiverSearch:
  """A player's search in poker over vectors of hands; a `GameSearch`.

  Before the last public card, the player plays the blueprint. A river is solved at the player's first decision there.
  The solution is kept for later plays: two solutions of one river together may be unsafe.

  Attributes:
    view: `GameView`. The game as its walks see it.
  """

  def __init__(
    self,
    view: GameView,
    player: int,
    blueprint: PolicyReader,
    options: SearchOptions,
  ) -> None:
    """Takes the game and the blueprint; the arguments are those of `BlueprintSearch`."""
    self.view, self._player, self._options = view, player, options
    self._blueprint = blueprint
    # By the moves that lead to a river: its solution, and why there is none.
    self._solutions = dict[tuple[int, ...], RiverSolution]()
    self._problems = dict[tuple[int, ...], str]()

  @property
  def size(self) -> int:
    """The approximate count of numbers that the search keeps."""
    return sum(len(solution.strategy) for solution in self._solutions.values())

  def prepare(self) -> None:
    """Does nothing: rivers are solved when they are played."""

  def policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns (action, probability) for each legal action at a decision of the player.

    Raises:
      GameTooLargeError: the river cannot be searched, and the blueprint has no probabilities.
    """
    deadline, problem = self._options.deadline(), "public cards are still to be dealt"
    moves = public_moves(self.view, state)
    if moves is not None:
      solution, problem = self._solution_or_problem(*moves, deadline)
      if solution is not None:
        return solution.policy(state)
    try:
      return self._blueprint.strategy(state, self._player)
    except errors.PolicyError as error:
      raise errors.GameTooLargeError(f"{error} It can't be searched: {problem}.") from None

  def _solution_or_problem(
    self, path: list[int], dealt: list[int], deadline: float
  ) -> tuple[RiverSolution | None, str]:
    """Returns the solution of a river, or None and the message of the error that prevents it."""
    key = tuple(path)
    if key not in self._solutions and key not in self._problems:
      # A game over vectors of hands has no infoset in which the opponent could pick a hand.
      gadget = self._options.gadget_for(can_pick=False, is_linear_program=False)
      solver = self._options.iterative_solver(deadline)
      try:
        self._solutions[key] = solve_river(
          self.view, path, dealt, self._blueprint, solver, self._player, gadget
        )
      except errors.GameError as error:
        self._problems[key] = str(error)
    return self._solutions.get(key), self._problems.get(key, "")


def solve_river(
  view: GameView,
  path: Sequence[int],
  dealt: Sequence[int],
  blueprint: PolicyReader,
  solver: SubgameSolver,
  searcher: int,
  gadget: Gadget,
) -> RiverSolution:
  """Solves the betting after the last public card.

  A gadget with bounds needs the blueprint wherever the searcher plays to on the river. If the blueprint does not answer
  everywhere, or not in time, the river is solved from both ranges, with the gadget "unsafe" and a warning.

  Args:
    view: the game.
    path: the moves after the hands were dealt, down to the last public card.
    dealt: the public cards among these moves.
    blueprint: the blueprint.
    solver: the solver. Reading the blueprint may take half of the time until its deadline.
    searcher: the player who plays the solution.
    gadget: a gadget in which the opponent does not pick.

  Raises:
    PolicyError: an answer of the blueprint is not a distribution.
    GameTooLargeError: the betting has too many public states.
    UnsupportedGameError: see `poker.compile_public_game`.
  """
  tree = _find_river(view, path, dealt)
  ranges = blueprint_ranges(tree, blueprint)
  if gadget.has_bounds:
    now = time.perf_counter()
    policy = _read_blueprint(tree, blueprint, searcher, now + (solver.deadline - now) / 2)
    if policy is not None:
      before = tree.evaluated(policy, searcher, {0: ranges})
      after, _ = search_step(before, tree[:1], gadget, solver)
      return RiverSolution(tree, after.policy, gadget)
    warnings.warn(
      "A river is solved with the gadget 'unsafe', without any guarantee, because the blueprint lacks a decision "
      "there or was not read in half of the time. Give a blueprint that has all rivers, or more seconds.",
      UnsafeSearchWarning,
      stacklevel=2,
    )
  policy = tree.uniform()
  solve_unsafe(tree, {0: ranges}, solver, policy)
  return RiverSolution(tree, policy, GADGETS["unsafe"])


def _find_river(view: GameView, path: Sequence[int], dealt: Sequence[int]) -> RiverTree:
  """Returns a river, after checking its vector form by random deals; arguments as for `solve_river`."""
  deal = find_deal(view.game, path, dealt)
  nodes = walk_betting_tree(view, deal)
  check_random_deals(view.game, deal, nodes, _CHECKED_DEALS, np.random.default_rng(0))
  tree = hand_tree(deal, nodes, list_boards(deal, nodes))
  return RiverTree(PublicGame(view, tree, np.float64, None), is_river=True)


def _hands(tree: RiverTree) -> tuple[Int64s, Int64s]:
  """Returns the hands of both players on the board of the only river, as rows of `Deal.hands`."""
  return tree.game.tree.boards[0].hands


def _slots_at(tree: RiverTree, node: int) -> Int64s:
  """Returns the slots at a node of the betting, int64 (actions, hands of the player to move)."""
  return tree.game.layout.sequences(tree.game.tree.node_at(0, node))


def blueprint_ranges(tree: RiverTree, blueprint: PolicyReader) -> PerPlayer:
  """Returns both players' ranges over the hands on the board, by the blueprint along the path to the river."""
  deal, view = tree.game.tree.deal, tree.game.view
  weights = deal.reaches.copy()
  for player in (0, 1) if deal.path else ():
    for hand, actions in _paths_by_hand(deal, player).items():
      state = view.new_initial_state()
      for length, action in enumerate(actions):
        if length >= deal.num_private_moves and state.current_player() == player:
          strategy = blueprint.look_up(state, player)
          if strategy is not None:
            weights[player, hand] *= strategy.get(action, 0.0)
        state.apply_action(action)
    if not weights[player] @ deal.compatible_mass(deal.reaches[1 - player]) > 0:
      # The blueprint never plays to this river.
      weights[player] = deal.reaches[player]
  # All pairs of hands that the two blueprints play to the river may share a card.
  if not weights[0] @ deal.compatible_mass(weights[1]) > 0:
    weights = deal.reaches
  first, second = (
    weights[player, hands] / deal.reaches[player, hands]
    for player, hands in enumerate(_hands(tree))
  )
  return first, second


def _read_blueprint(
  tree: RiverTree, blueprint: PolicyReader, searcher: int, deadline: float
) -> Float64s | None:
  """Returns the searcher's blueprint in behavioral form; None if it lacks a decision or does not answer in time."""
  nodes, result = tree.game.tree.nodes, tree.uniform()
  paths = _paths_by_hand(tree.game.tree.deal, searcher)
  for position, hand in enumerate(_hands(tree)[searcher].tolist()):
    first = tree.game.view.new_initial_state()
    for action in paths[hand]:
      first.apply_action(action)
    stack = [(0, first)]
    while stack:
      at, state = stack.pop()
      probabilities = [1.0] * len(nodes[at].actions)
      if nodes[at].player == searcher:
        strategy = blueprint.look_up(state, searcher)
        if strategy is None or time.perf_counter() > deadline:
          return None
        probabilities = distribution(strategy, nodes[at].actions, "On a river the blueprint")
        result[_slots_at(tree, at)[:, position]] = probabilities
      moves = zip(nodes[at].actions, nodes[at].children, probabilities, strict=True)
      for action, child, probability in moves:
        if probability > 0 and nodes[child].kind not in TERMINALS:
          stack.append((child, state.child(action)))
  return result


def _paths_by_hand(deal: Deal, player: int) -> dict[int, list[int]]:
  """Returns, for each hand of a player, the actions that lead to the river with some hand of the other player."""
  has_card = np.zeros((len(deal.hands), deal.num_cards), np.float32)
  np.put_along_axis(has_card, deal.hands, 1, axis=1)
  compatible = (has_card @ has_card.T == 0) & (deal.reaches[1 - player] > 0)
  result = {}
  for hand in np.flatnonzero(deal.reaches[player] * compatible.any(axis=1)).tolist():
    other = int(np.argmax(compatible[hand]))
    cards = [deal.hands[each].tolist() for each in (hand, other)]
    result[hand] = deal.actions(*(cards if player == 0 else cards[::-1]))
  return result
