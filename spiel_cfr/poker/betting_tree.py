"""Betting tree of a poker game: decisions, deals of public cards, folds and showdowns, for any cards.

Betting does not depend on the cards, so one deal shows the whole tree. `walk_betting_tree` follows two deals side by
side in OpenSpiel: a pair of hands, and the same pair swapped. A terminal with equal returns in both is a fold; a
terminal with opposite returns is a showdown. At each deal of public cards the walk follows a single card.

`check_random_deals` compares the tree with OpenSpiel on many random deals.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker import cards
from spiel_cfr.poker.deal import Deal

MOST_NODES = 100_000
# Near 64 actions on a street, OpenSpiel forces players to call.
_MOST_ON_STREET = 50
_TRIALS = 1000
_TOLERANCE = 1e-9


class NodeKind(enum.Enum):
  """Kinds of nodes of the betting."""

  DECISION = enum.auto()
  CHANCE = enum.auto()
  FOLD = enum.auto()
  SHOWDOWN = enum.auto()


@dataclasses.dataclass
class BettingNode:
  """Node of the betting, for any public cards.

  Attributes:
    kind: NodeKind. Decision, chance, fold or showdown.
    level: int. The number of public deals before the node.
    path: tuple of int. The actions of the players that lead to the node, and `DEALT` for each public card.
    player: int. The player to move at a decision; -1 at other nodes.
    actions: tuple of int. The legal actions that the filter keeps at a decision.
    children: list of int. The numbers of the next nodes: one for each action, or a single one after a chance node.
    num_cards: int. The number of public cards that a chance node deals.
    payoff: float. The payoff of player 0 at a fold, of the winner at a showdown, before the rake.
    rake: float. The chips that the house takes from the pot at a fold or a showdown.
    last: for each player, a tuple of int or None. Its last decision before this node, and the index of the action
      there; None before its first decision.
  """

  kind: NodeKind
  level: int
  path: tuple[int, ...]
  player: int = -1
  actions: tuple[int, ...] = ()
  children: list[int] = dataclasses.field(default_factory=list)
  num_cards: int = 0
  payoff: float = 0.0
  rake: float = 0.0
  last: tuple[tuple[int, int] | None, ...] = (None, None)


# The element of `BettingNode.path` for a public card.
DEALT = -1
# The states after a deal and after the same deal with the hands swapped.
_Pair: TypeAlias = tuple[Any, Any]
# The type of `BettingNode.last`.
_LastActions: TypeAlias = tuple[tuple[int, int] | None, ...]


def path_after(state: Any, num_moves_before: int) -> tuple[int, ...]:
  """Returns `BettingNode.path` of a state, given `Deal.num_moves_before`."""
  moves = state.full_history()[num_moves_before:]
  return tuple(DEALT if move.player < 0 else move.action for move in moves)


def stakes(payoff: Float64s, rake: Float64s) -> Float64s:
  """Returns the stakes of terminals: sign(`payoff`) * (|`payoff`| - `rake` / 2). See `HandTree.stake`."""
  return np.asarray(np.copysign(np.abs(payoff) - rake / 2, payoff))


def walk_betting_tree(view: GameView, deal: Deal) -> list[BettingNode]:
  """Walks the betting of a game in OpenSpiel.

  Args:
    view: the game.
    deal: the cards and hands of the game.

  Returns:
    The nodes, parents first, in the order of histories sorted as strings.

  Raises:
    UnsupportedGameError: the game does not fit the vector form.
    GameTooLargeError: the tree has more than `MOST_NODES` nodes, or 50 actions on a street.
    ArgumentError: see `GameView.legal_actions`; or the filter looks at private cards.
  """
  walk = _Walk(view, deal)
  walk.visit(_decided_pair(view, deal), 0, (), (None, None))
  return walk.nodes


class _Walk:
  """Walk of the betting, with the states of two deals side by side. Its methods take fields of `BettingNode`."""

  def __init__(self, view: GameView, deal: Deal) -> None:
    self.nodes: list[BettingNode] = []
    self._view, self._deal = view, deal

  def visit(self, pair: _Pair, level: int, path: tuple[int, ...], last: _LastActions) -> int:
    """Adds a node and the subtree below it; returns the number of the node."""
    number = len(self.nodes)
    if number == MOST_NODES:
      raise errors.GameTooLargeError(
        f"The public tree has more than {MOST_NODES:,} nodes. Keep fewer actions with an action "
        "filter."
      )
    on_street = len(path) if DEALT not in path else path[::-1].index(DEALT)
    if on_street > _MOST_ON_STREET:
      raise errors.GameTooLargeError(
        f"The public tree has more than {_MOST_ON_STREET} actions on a street. Keep fewer actions with an action "
        "filter."
      )
    state, swapped = pair
    if state.current_player() != swapped.current_player():
      raise _unsupported(state, "the player to move depends on private cards")
    if state.is_terminal():
      self.nodes.append(_terminal(pair, level, path, last))
    elif state.is_chance_node():
      self._visit_chance(pair, level, path, last)
    else:
      self._visit_decision(pair, level, path, last)
    return number

  def _visit_chance(
    self, pair: _Pair, level: int, path: tuple[int, ...], last: _LastActions
  ) -> None:
    """Adds a chance node and its subtree after the first cards that can be dealt."""
    count = self._deal.streets[level]
    for _ in range(count):
      card = _first_card(pair, self._deal)
      pair = pair[0].child(card), pair[1].child(card)
    node = BettingNode(NodeKind.CHANCE, level, path, num_cards=count, last=last)
    self.nodes.append(node)
    node.children.append(self.visit(pair, level + 1, (*path, *[DEALT] * count), last))

  def _visit_decision(
    self, pair: _Pair, level: int, path: tuple[int, ...], last: _LastActions
  ) -> None:
    """Adds a decision and its subtree."""
    state, swapped = pair
    if state.legal_actions() != swapped.legal_actions():
      raise _unsupported(state, "legal actions depend on private cards")
    kept = self._view.legal_actions(state)
    if kept != self._view.legal_actions(swapped):
      raise errors.ArgumentError(
        "The action filter treats states differently that differ in private cards only, here "
        f"after the history [{state.history_str()}]."
      )
    number, player = len(self.nodes), state.current_player()
    node = BettingNode(NodeKind.DECISION, level, path, player, tuple(kept), last=last)
    self.nodes.append(node)
    children = {}
    for index, action in sorted(enumerate(kept), key=lambda move: str(move[1])):
      after = tuple(
        (number, index) if owner == player else before for owner, before in enumerate(last)
      )
      both = state.child(action), swapped.child(action)
      children[index] = self.visit(both, level, (*path, action), after)
    node.children = [children[index] for index in range(len(kept))]


def _decided_pair(view: GameView, deal: Deal) -> _Pair:
  """Returns the states after a deal in which one hand wins at showdown, and after the same deal with swapped hands.

  If both players always play the board, every showdown is a tie. The function then returns any deal.

  Raises:
    UnsupportedGameError: all random deals that were tried are ties, though another deal may have a winner.
  """
  root = view.new_initial_state()
  rng = np.random.default_rng(0)
  pair: _Pair | None = None
  for _ in range(_TRIALS):
    first, second = deal.hands[rng.choice(len(deal.hands), 2)].tolist()
    if set(first) & set(second):
      continue
    pair = root.clone(), root.clone()
    for state, dealt in zip(pair, ((first, second), (second, first)), strict=True):
      for action in deal.actions(*dealt):
        state.apply_action(action)
    trial = pair[0].clone()
    board = list(deal.board)
    while not trial.is_terminal():
      # Action 1 is a call or check, in Kuhn poker a bet. It leads to a showdown in all supported games.
      action = 1
      if trial.is_chance_node():
        action = trial.legal_actions()[0]
        board.append(action)
      trial.apply_action(action)
    if trial.returns()[0] != 0:
      return pair
  strengths = cards.hand_strengths(deal.hands, deal.board, deal.num_suits)
  if pair is None or len(board) > len(deal.board) or np.ptp(strengths) > 0:
    raise errors.UnsupportedGameError(
      f"{_TRIALS:,} random deals have a showdown without a winner: the game has no vector form."
    )
  # Both players play the board. `_terminal` then lists showdowns, which pay 0, as folds.
  return pair


def _terminal(pair: _Pair, level: int, path: tuple[int, ...], last: _LastActions) -> BettingNode:
  """Returns the node of a terminal: a fold or a showdown, by the returns of both states.

  Raises:
    UnsupportedGameError: the returns fit neither, or the game is not of zero sum.
  """
  (gain, loss), (swapped_gain, swapped_loss) = pair[0].returns(), pair[1].returns()
  scale = _TOLERANCE * max(1.0, abs(gain))
  if abs(gain + loss) > scale or abs(swapped_gain + swapped_loss) > scale:
    raise _unsupported(pair[0], "the players' payoffs don't sum to 0")
  if abs(gain - swapped_gain) <= scale:
    return BettingNode(NodeKind.FOLD, level, path, payoff=gain, last=last)
  if abs(gain + swapped_gain) > scale:
    raise _unsupported(pair[0], "the payoff of a showdown depends on the winner")
  return BettingNode(NodeKind.SHOWDOWN, level, path, payoff=abs(gain), last=last)


def _first_card(pair: _Pair, deal: Deal) -> int:
  """Returns the first card that chance can deal.

  Raises:
    UnsupportedGameError: the cards that are left are not equally likely, or not the same in both states.
  """
  outcomes = pair[0].chance_outcomes()
  cards_left = {card for card, _ in outcomes}
  if any(abs(probability * len(outcomes) - 1) > _TOLERANCE for _, probability in outcomes) or not (
    cards_left <= set(range(deal.num_cards)) and outcomes == pair[1].chance_outcomes()
  ):
    raise _unsupported(pair[0], "public cards are not dealt uniformly from the rest of the deck")
  return int(min(cards_left))


def _unsupported(state: Any, problem: str) -> errors.UnsupportedGameError:
  """Returns the error for a game that does not fit the vector form, with the history that shows it."""
  return errors.UnsupportedGameError(
    f"The game has no vector form: {problem} after the history [{state.history_str()}]. Compile "
    "it with compile_game(game, vector_form=False)."
  )


def check_random_deals(
  game: pyspiel.Game, deal: Deal, nodes: list[BettingNode], num_deals: int, rng: np.random.Generator
) -> None:
  """Checks the betting and `hand_strengths` against OpenSpiel, by random deals that are played to random showdowns.

  Args:
    game: the game.
    deal: the cards and hands of the game.
    nodes: the betting.
    num_deals: number of deals.
    rng: source of deals and public cards.

  Raises:
    UnsupportedGameError: a player to move, a legal action or a return differs in OpenSpiel.
  """
  showdowns = [node for node in nodes if node.kind is NodeKind.SHOWDOWN]
  if not showdowns:
    return
  by_path = {node.path: node for node in nodes}
  root = game.new_initial_state()
  pairs = _draw_pairs(deal, num_deals, rng)
  boards: list[list[int]] = []
  gains: list[float] = []
  chosen = [showdowns[index] for index in rng.integers(len(showdowns), size=num_deals).tolist()]
  for (first, second), showdown in zip(deal.hands[pairs].tolist(), chosen, strict=True):
    state = root.clone()
    for action in deal.actions(first, second):
      state.apply_action(action)
    boards.append([*deal.board, *_play(state, showdown.path, by_path, rng)])
    gains.append(state.returns()[0])
  stakes = np.array([showdown.payoff for showdown in chosen])
  expected = _winners(deal, pairs, boards) * stakes
  wrong = np.flatnonzero(np.abs(expected - gains) > _TOLERANCE * stakes)
  if len(wrong):
    first_wrong = wrong[0]
    dealt = [*deal.hands[pairs[first_wrong]].ravel().tolist(), *boards[first_wrong]]
    names = [cards.card_name(card, deal.num_suits) for card in dealt]
    raise errors.UnsupportedGameError(
      f"OpenSpiel pays player 0 {gains[first_wrong]:zg} where {' '.join(names)} are dealt, the evaluator "
      f"of hands {expected[first_wrong]:zg}. Compile the game with compile_game(game, vector_form=False)."
    )


def _draw_pairs(deal: Deal, count: int, rng: np.random.Generator) -> Int64s:
  """Draws pairs of hands that share no card, with probability proportional to reaches; int64 (count, 2)."""
  weights = deal.reaches / deal.reaches.sum(axis=1, keepdims=True)
  pairs = np.zeros((0, 2), np.int64)
  while len(pairs) < count:
    drawn = np.stack([rng.choice(len(deal.hands), count, p=weight) for weight in weights])
    shares = (deal.hands[drawn[0]][:, :, None] == deal.hands[drawn[1]][:, None, :]).any(axis=(1, 2))
    pairs = np.concatenate([pairs, drawn.T[~shares]])[:count]
  return pairs


def _play(
  state: Any,
  showdown: tuple[int, ...],
  by_path: Mapping[tuple[int, ...], BettingNode],
  rng: np.random.Generator,
) -> list[int]:
  """Plays a state along the path of a showdown with random public cards; returns the public cards.

  Raises:
    UnsupportedGameError: another player is to move, an action is illegal, or the path does not end the hand.
  """
  path: tuple[int, ...] = ()
  dealt = []
  for move in showdown:
    action = move
    if move == DEALT:
      action = int(rng.choice(state.legal_actions()))
      dealt.append(action)
    else:
      player = by_path[path].player
      if state.current_player() != player or action not in state.legal_actions():
        raise _unsupported(state, f"player {player} does not have action {action}")
    path = (*path, move)
    state.apply_action(action)
  if not state.is_terminal():
    raise _unsupported(state, "the hand goes on where another deal ends with a showdown")
  return dealt


def _winners(deal: Deal, pairs: Int64s, boards: Sequence[Sequence[int]]) -> Int64s:
  """Returns 1 for each pair of hands on its board that player 0 wins, 0 for a tie, -1 otherwise; int64 (pairs,)."""
  strengths = np.zeros((2, len(pairs)), np.int64)
  sizes = np.array([len(board) for board in boards])
  for size in np.unique(sizes).tolist():
    chosen = np.flatnonzero(sizes == size)
    public = np.array([boards[index] for index in chosen.tolist()], np.int64).reshape(
      len(chosen), size
    )
    for player in (0, 1):
      shown = np.hstack([deal.hands[pairs[chosen, player]], public])
      strengths[player, chosen] = cards.hand_strengths(shown, (), deal.num_suits)
  return np.asarray(np.sign(strengths[0] - strengths[1]))


def betting_subtree(nodes: Sequence[BettingNode], start: int) -> list[BettingNode]:
  """Returns the betting below a node, which becomes node 0. No public cards may be dealt in it."""
  last = start
  while nodes[last].children:
    last = max(nodes[last].children)
  subtree = nodes[start : last + 1]
  return [renumbered(node, 0, [-start, -start], (None, None), start) for node in subtree]


def renumbered(
  node: BettingNode,
  level: int,
  shifts: Sequence[int],
  last_before: _LastActions,
  start: int = 0,
) -> BettingNode:
  """Returns a copy of a node for another betting tree, in which nodes have other numbers.

  Args:
    node: the node.
    level: the level of the copy.
    shifts: for each player, the increase of the numbers of its decisions in `last`. The shift of the player to move
      also increases the numbers in `children`.
    last_before: `BettingNode.last` at the point of the other tree where the copied nodes begin.
    start: the first copied node. `last_before` replaces decisions before it.
  """
  last = tuple(
    before if decision is None or decision[0] < start else (decision[0] + shift, decision[1])
    for decision, before, shift in zip(node.last, last_before, shifts, strict=True)
  )
  children = [child + shifts[node.player] for child in node.children]
  return dataclasses.replace(node, level=level, children=children, last=last)
