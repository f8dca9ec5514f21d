"""A search in poker with many hands: a last round of betting in vector form, from the ranges that lead there."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.boards import list_boards
from spiel_cfr.poker.deal import Deal, find_deal
from spiel_cfr.poker.hand_layout import Layout
from spiel_cfr.poker.public_game import WORTHWHILE_HANDS, PublicGame
from spiel_cfr.poker.public_tree import check_random_deals, walk_public_tree
from spiel_cfr.search.trunk import LookUp

# How many random deals of a subgame are played in OpenSpiel, to see that it is what the vector form makes of it.
_CHECKED_DEALS = 200


class HandSearch:
  """The betting after the last public card, solved once, from the first decision on.

  Hands are dealt by ranges: what both players' blueprints have played with each until there. Nothing stands in front of
  it: this is the gadget "unsafe", which promises nothing. All that players can do is part of it, so that what is played
  later need not be solved again.
  """

  def __init__(
    self,
    view: GameView,
    path: Sequence[int],
    dealt: Sequence[int],
    look_up: LookUp,
    solve: Callable[[PublicGame], Float64s],
  ) -> None:
    """Solves it.

    Args:
      view: the game.
      path: what has been played after the hands were dealt, down to the last public card.
      dealt: the public cards among it.
      look_up: the blueprint.
      solve: returns strategies in sequence form.

    Raises:
      GameTooLargeError: the betting has too many public states.
      UnsupportedGameError: see `poker.compile_public_game`.
    """
    self._deal = find_deal(view.game, path, dealt)
    self._deal.reaches[:] = _ranges(view, self._deal, look_up)
    nodes = walk_public_tree(view, self._deal)
    check_random_deals(view.game, self._deal, nodes, _CHECKED_DEALS, np.random.default_rng(0))
    self._layout = Layout(self._deal, nodes, list_boards(self._deal, nodes))
    self._strategies = solve(PublicGame(view, self._layout, np.float64, None))

  @property
  def size(self) -> int:
    """How many numbers are kept."""
    return len(self._strategies)

  def policy(self, state: Any, player: int) -> list[tuple[int, float]]:
    """Returns what is played at a decision."""
    deal, nodes, history = self._deal, self._layout.nodes, state.history()
    at = 0
    for action in history[deal.num_private_moves + len(deal.path) :]:
      at = nodes[at].children[nodes[at].actions.index(action)]
    hands = self._layout.boards[0].hands[player]
    here = np.flatnonzero(hands == deal.hand(history, player))
    actions = nodes[at].actions
    sums = self._strategies[self._layout.sequences(0, at)[:, here]].sum(axis=1)
    # A hand that is out of range, or does not play to here.
    chances = sums / sums.sum() if sums.sum() > 0 else np.full(len(actions), 1 / len(actions))
    return list(zip(actions, chances.tolist(), strict=True))


def _ranges(view: GameView, deal: Deal, look_up: LookUp) -> Float64s:
  """Returns what each hand weighs after the path, shape (2, hands)."""
  result = deal.reaches.copy()
  if not deal.path:
    return result
  has = np.zeros((len(deal.hands), deal.num_cards), np.float32)
  np.put_along_axis(has, deal.hands, 1, axis=1)
  apart = has @ has.T == 0
  for player in (0, 1):
    others = apart & (deal.reaches[1 - player] > 0)
    for hand in np.flatnonzero(deal.reaches[player] * others.any(axis=1)).tolist():
      # A player's infostate is the same whatever the other has.
      pair = [deal.hands[each].tolist() for each in (hand, int(np.argmax(others[hand])))]
      state = view.new_initial_state()
      for number, action in enumerate(deal.actions(*(pair if player == 0 else pair[::-1]))):
        if number >= deal.num_private_moves and state.current_player() == player:
          known = look_up(state, player)
          if known is not None:
            result[player, hand] *= known.get(action, 0.0)
        state.apply_action(action)
    if not result[player].any():
      # The blueprint never plays this.
      result[player] = deal.reaches[player]
  return result


def has_many_hands(game: pyspiel.Game) -> bool:
  """Returns whether histories are not to be listed, since there is one for each pair of hands."""
  parameters = game.get_parameters()
  if game.get_type().short_name != "universal_poker":
    return False
  deck = parameters["numRanks"] * parameters["numSuits"]
  return math.comb(deck, parameters["numHoleCards"]) >= WORTHWHILE_HANDS


def public_moves(view: GameView, state: Any) -> tuple[list[int], list[int]] | None:
  """Returns the moves after the hands were dealt, down to the last public card, and the public cards among them.

  Returns:
    None before the last public card.
  """
  parameters = view.game.get_parameters()
  private = 1 if view.possible_only else 2 * parameters["numHoleCards"]
  moves = [(each.player, each.action) for each in state.full_history()][private:]
  dealt = [action for player, action in moves if player < 0]
  board = sum(map(int, parameters["numBoardCards"].split()))
  if len(dealt) + len(parameters["boardCards"]) // 2 < board:
    return None
  last = max((place + 1 for place, (player, _) in enumerate(moves) if player < 0), default=0)
  return [action for _, action in moves[:last]], dealt
