"""The public tree of a poker game: what everybody sees, walked once without a list of deals.

Betting does not depend on the cards, so one deal shows all of it. The walk takes two, a pair of hands and the same
pair swapped, side by side: a terminal at which both return the same is a fold, one at which they return opposite
amounts is a showdown. Likewise one public card stands for all that chance could deal there.

What is taken from two deals is then held against many random ones, see `check_random_deals`.
"""

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker import cards
from spiel_cfr.poker.deal import Deal

MOST_NODES = 100_000
_TRIALS = 1000
_TOLERANCE = 1e-9


class Kind(enum.Enum):
  """What happens at a public node."""

  DECISION = enum.auto()
  CHANCE = enum.auto()
  FOLD = enum.auto()
  SHOWDOWN = enum.auto()


@dataclasses.dataclass
class PublicNode:
  """A node of the public tree, whatever the public cards are.

  Attributes:
    kind: what happens here.
    level: how many times public cards were dealt before it.
    path: the actions of the players that lead here, `DEALT` for public cards.
    player: who decides, of a decision.
    actions: legal actions, of a decision, all kept by the filter.
    children: the next nodes: one per action, or one of a chance node.
    num_cards: how many public cards are dealt, of a chance node.
    payoff: what player 0 gets, at a fold; what the winner gets, at a showdown.
    last: each player's last decision before this node: its number in the list of nodes, and the index of the action.
  """

  kind: Kind
  level: int
  path: tuple[int, ...]
  player: int = -1
  actions: tuple[int, ...] = ()
  children: list[int] = dataclasses.field(default_factory=list)
  num_cards: int = 0
  payoff: float = 0.0
  last: tuple[tuple[int, int] | None, ...] = (None, None)


DEALT = -1


def walk_public_tree(view: GameView, deal: Deal) -> list[PublicNode]:
  """Walks the public tree.

  Args:
    view: a poker game.
    deal: how it deals.

  Returns:
    The nodes, parents first, in the order of histories sorted as strings.

  Raises:
    UnsupportedGameError: the game does something that the vector form can't hold.
    GameTooLargeError: there are more than `MOST_NODES` nodes.
    ArgumentError: see `GameView.legal_actions`; or the filter looks at private cards.
  """
  nodes: list[PublicNode] = []

  def visit(
    pair: tuple[Any, Any],
    level: int,
    path: tuple[int, ...],
    last: tuple[tuple[int, int] | None, ...],
  ) -> int:
    number = len(nodes)
    if number == MOST_NODES:
      raise errors.GameTooLargeError(
        f"The public tree has more than {MOST_NODES:,} nodes. Keep fewer actions with an action "
        "filter."
      )
    state, swapped = pair
    player = state.current_player()
    if player != swapped.current_player():
      raise _unsupported(state, "who is to move depends on private cards")
    if state.is_terminal():
      nodes.append(_terminal(pair, level, path, last))
    elif state.is_chance_node():
      count = deal.streets[level]
      for _ in range(count):
        card = _first_card(pair, deal)
        pair = pair[0].child(card), pair[1].child(card)
      node = PublicNode(Kind.CHANCE, level, path, num_cards=count, last=last)
      nodes.append(node)
      node.children.append(visit(pair, level + 1, (*path, *[DEALT] * count), last))
    else:
      if state.legal_actions() != swapped.legal_actions():
        raise _unsupported(state, "legal actions depend on private cards")
      kept = view.legal_actions(state)
      if kept != view.legal_actions(swapped):
        raise errors.ArgumentError(
          "The action filter treats states differently that differ in private cards only, here "
          f"after the history [{state.history_str()}]."
        )
      node = PublicNode(Kind.DECISION, level, path, player, tuple(kept), last=last)
      nodes.append(node)
      children = {}
      for index, action in sorted(enumerate(kept), key=lambda move: str(move[1])):
        after = tuple(
          (number, index) if owner == player else before for owner, before in enumerate(last)
        )
        both = state.child(action), swapped.child(action)
        children[index] = visit(both, level, (*path, action), after)
      node.children = [children[index] for index in range(len(kept))]
    return number

  visit(_decided_pair(view, deal), 0, (), (None, None))
  return nodes


def _decided_pair(view: GameView, deal: Deal) -> tuple[Any, Any]:
  """Returns the states after a deal and after the swapped one, such that the showdown is no tie, unless all are.

  Raises:
    UnsupportedGameError: no such deal was found, though showdowns may differ.
  """
  root = view.new_initial_state()
  rng = np.random.default_rng(0)
  pair: tuple[Any, Any] | None = None
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
      # Action 1 is to call, to check, or in Kuhn poker to bet: it leads to a showdown in all games here.
      action = 1
      if trial.is_chance_node():
        action = trial.legal_actions()[0]
        board.append(action)
      trial.apply_action(action)
    if trial.returns()[0] != 0:
      return pair
  strengths = cards.hand_strengths(deal.hands, deal.board, deal.num_suits)
  if pair is None or len(board) > len(deal.board) or np.ptp(strengths) > 0:
    raise errors.UnsupportedGameError("No two hands of the game have a showdown that is no tie.")
  # Everybody plays the board, and showdowns are folds at which nobody pays.
  return pair


def _terminal(
  pair: tuple[Any, Any], level: int, path: tuple[int, ...], last: tuple[Any, ...]
) -> PublicNode:
  (gain, loss), (swapped_gain, swapped_loss) = pair[0].returns(), pair[1].returns()
  scale = _TOLERANCE * max(1.0, abs(gain))
  if abs(gain + loss) > scale or abs(swapped_gain + swapped_loss) > scale:
    raise _unsupported(pair[0], "the players' payoffs don't sum to 0")
  if abs(gain - swapped_gain) <= scale:
    return PublicNode(Kind.FOLD, level, path, payoff=gain, last=last)
  if abs(gain + swapped_gain) > scale:
    raise _unsupported(pair[0], "the loser of a showdown pays not what the winner would have paid")
  return PublicNode(Kind.SHOWDOWN, level, path, payoff=abs(gain), last=last)


def _first_card(pair: tuple[Any, Any], deal: Deal) -> int:
  """Returns the first card that chance can deal, after a look at the probabilities."""
  outcomes = pair[0].chance_outcomes()
  cards_left = {card for card, _ in outcomes}
  if any(abs(probability * len(outcomes) - 1) > _TOLERANCE for _, probability in outcomes) or not (
    cards_left <= set(range(deal.num_cards)) and outcomes == pair[1].chance_outcomes()
  ):
    raise _unsupported(pair[0], "public cards are not dealt uniformly from the rest of the deck")
  return int(min(cards_left))


def _unsupported(state: Any, problem: str) -> errors.UnsupportedGameError:
  return errors.UnsupportedGameError(
    f"The game has no vector form: {problem} after the history [{state.history_str()}]. Compile "
    "it with compile_game(game, vector_form=False)."
  )


def check_random_deals(
  game: pyspiel.Game, deal: Deal, nodes: list[PublicNode], num_deals: int, rng: np.random.Generator
) -> None:
  """Plays random deals to random showdowns in OpenSpiel, and compares players, actions and returns on the way.

  Args:
    game: a poker game.
    deal: how it deals.
    nodes: its public tree.
    num_deals: how many deals.
    rng: source of the deals and of the public cards.

  Raises:
    UnsupportedGameError: OpenSpiel plays it differently from what the public tree and `hand_strengths` say.
  """
  showdowns = [node for node in nodes if node.kind is Kind.SHOWDOWN]
  if not showdowns:
    return
  by_path = {node.path: node for node in nodes}
  root = game.new_initial_state()
  weights = deal.reaches / deal.reaches.sum(axis=1, keepdims=True)
  pairs = np.zeros((0, 2), np.int64)
  while len(pairs) < num_deals:
    drawn = np.stack([rng.choice(len(deal.hands), num_deals, p=weight) for weight in weights])
    apart = ~(deal.hands[drawn[0]][:, :, None] == deal.hands[drawn[1]][:, None, :]).any(axis=(1, 2))
    pairs = np.concatenate([pairs, drawn.T[apart]])[:num_deals]
  boards: list[list[int]] = []
  gains: list[float] = []
  chosen = [showdowns[index] for index in rng.integers(len(showdowns), size=num_deals).tolist()]
  for (first, second), showdown in zip(deal.hands[pairs].tolist(), chosen, strict=True):
    state, board = root.clone(), list(deal.board)
    path: tuple[int, ...] = ()
    for action in deal.actions(first, second):
      state.apply_action(action)
    for action in showdown.path:
      if action == DEALT:
        action = int(rng.choice(state.legal_actions()))
        board.append(action)
        path = (*path, DEALT)
      else:
        node = by_path[path]
        legal = state.legal_actions()
        if state.current_player() != node.player or action not in legal:
          raise _unsupported(state, f"player {node.player} was to have action {action}")
        path = (*path, action)
      state.apply_action(action)
    if not state.is_terminal():
      raise _unsupported(state, "the hand goes on where it was to end with a showdown")
    boards.append(board)
    gains.append(state.returns()[0])
  stakes = np.array([showdown.payoff for showdown in chosen])
  strengths = np.zeros((2, num_deals), np.int64)
  sizes = np.array([len(board) for board in boards])
  for size in np.unique(sizes).tolist():
    own = np.flatnonzero(sizes == size)
    public = np.array([boards[index] for index in own], np.int64).reshape(len(own), size)
    for player in (0, 1):
      shown = np.hstack([deal.hands[pairs[own, player]], public])
      strengths[player, own] = cards.hand_strengths(shown, (), deal.num_suits)
  wrong = np.flatnonzero(
    np.abs(np.sign(strengths[0] - strengths[1]) * stakes - gains) > _TOLERANCE * stakes
  )
  if len(wrong):
    worst = wrong[0]
    dealt = [*deal.hands[pairs[worst]].ravel().tolist(), *boards[worst]]
    names = [cards.card_name(card, deal.num_suits) for card in dealt]
    raise errors.UnsupportedGameError(
      f"OpenSpiel pays player 0 {gains[worst]:zg} where {' '.join(names)} are dealt, the evaluator "
      f"of hands {np.sign(strengths[0] - strengths[1])[worst] * stakes[worst]:zg}. Compile the game "
      "with compile_game(game, vector_form=False)."
    )


def nodes_below(nodes: Sequence[PublicNode], start: int) -> list[PublicNode]:
  """Returns a node of a public tree and all that follows it, which deals no more public cards, as a public tree."""
  end = start
  while nodes[end].children:
    end = max(nodes[end].children)
  below = nodes[start : end + 1]
  return [moved(node, 0, [-start, -start], (None, None), start) for node in below]


def moved(
  node: PublicNode,
  level: int,
  shifts: Sequence[int],
  first: tuple[tuple[int, int] | None, ...],
  start: int = 0,
) -> PublicNode:
  """Returns a node elsewhere.

  Args:
    node: of another public tree.
    level: where it is now.
    shifts: how much is added to the numbers of each player's decisions above it.
    first: what each player has done before all else.
    start: decisions with lower numbers are not there.
  """
  last = tuple(
    before if acted is None or acted[0] < start else (acted[0] + shift, acted[1])
    for acted, before, shift in zip(node.last, first, shifts, strict=True)
  )
  children = [child + shifts[node.player] for child in node.children]
  return dataclasses.replace(node, level=level, children=children, last=last)
