"""A search in poker with many hands: a last round of betting in vector form, from the ranges that lead there."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.bots import distribution
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.deal import Deal, find_deal
from spiel_cfr.poker.hand_tree import TERMINALS
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import check_random_deals, walk_public_tree
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.hand_subgame import HandSubgame
from spiel_cfr.search.trunk import LookUp

# How many random deals of a subgame are played in OpenSpiel, to see that it is what the vector form makes of it.
_CHECKED_DEALS = 200


class HandSearch:
  """The betting after the last public card, solved once, from the first decision on.

  Hands are dealt by ranges: what the blueprint has played with each until there. All that players can do is part of it,
  so that what is played later need not be solved again. With a safe gadget the opponent's range does not matter. That
  needs the blueprint in all of the round, wherever the searcher plays to; where it does not answer, or not in time, the
  round is solved from both ranges, as by the gadget "unsafe", which promises nothing.
  """

  def __init__(
    self,
    view: GameView,
    path: Sequence[int],
    dealt: Sequence[int],
    look_up: LookUp,
    solve: Callable[[PublicGame], Float64s],
    searcher: int,
    gadget: Gadget,
    deadline: float,
  ) -> None:
    """Solves it.

    Args:
      view: the game.
      path: what has been played after the hands were dealt, down to the last public card.
      dealt: the public cards among it.
      look_up: the blueprint.
      solve: returns strategies in sequence form.
      searcher: who plays what is found.
      gadget: whose opponent does not pick.
      deadline: when `solve` returns, by `time.perf_counter`; half of the time may go into reading the blueprint.

    Raises:
      PolicyError: the blueprint answers with what is no distribution.
      GameTooLargeError: the betting has too many public states.
      UnsupportedGameError: see `poker.compile_public_game`.
    """
    self._deal = find_deal(view.game, path, dealt)
    self._nodes = walk_public_tree(view, self._deal)
    check_random_deals(view.game, self._deal, self._nodes, _CHECKED_DEALS, np.random.default_rng(0))
    ranges = _ranges(view, self._deal, look_up)
    self._river = HandSubgame(view, self._deal, self._nodes, ranges, searcher, gadget)
    blueprint = None
    if gadget.is_safe:
      now = time.perf_counter()
      blueprint = self._read(view, look_up, searcher, now + (deadline - now) / 2)
    if blueprint is None:
      self._river = HandSubgame(view, self._deal, self._nodes, ranges, searcher, GADGETS["unsafe"])
    self._strategies = self._river.solve(blueprint, solve).strategies

  @property
  def size(self) -> int:
    """How many numbers are kept."""
    return len(self._strategies)

  def policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns what is played at a decision of the searcher's."""
    deal, history = self._deal, state.history()
    at = 0
    for action in history[deal.num_private_moves + len(deal.path) :]:
      at = self._nodes[at].children[self._nodes[at].actions.index(action)]
    here = np.flatnonzero(self._river.hands == deal.hand(history, state.current_player()))
    actions = self._nodes[at].actions
    sums = self._strategies[self._river.sequences(at)[:, here]].sum(axis=1)
    # A hand that is out of range, or does not play to here.
    chances = sums / sums.sum() if sums.sum() > 0 else np.full(len(actions), 1 / len(actions))
    return list(zip(actions, chances.tolist(), strict=True))

  def _read(
    self, view: GameView, look_up: LookUp, searcher: int, deadline: float
  ) -> Float64s | None:
    """Returns the searcher's blueprint in behavioural form, None if it does not answer in time."""
    nodes, river = self._nodes, self._river
    result = np.zeros(river.game.end)
    begins = _begins(self._deal, searcher)
    for place, hand in enumerate(river.hands.tolist()):
      begin = view.new_initial_state()
      for action in begins[hand]:
        begin.apply_action(action)
      stack = [(0, begin)]
      while stack:
        at, state = stack.pop()
        chances = [1.0] * len(nodes[at].actions)
        if nodes[at].player == searcher:
          known = look_up(state, searcher)
          if known is None or time.perf_counter() > deadline:
            return None
          chances = distribution(known, nodes[at].actions, "On a river the blueprint")
          result[river.sequences(at)[:, place]] = chances
        moves = zip(nodes[at].actions, nodes[at].children, chances, strict=True)
        for action, child, chance in moves:
          if chance > 0 and nodes[child].kind not in TERMINALS:
            stack.append((child, state.child(action)))
    return result


def _begins(deal: Deal, player: int) -> dict[int, list[int]]:
  """Returns, for each hand of a player's, the actions that lead to where the subgame begins, whatever the other has."""
  has = np.zeros((len(deal.hands), deal.num_cards), np.float32)
  np.put_along_axis(has, deal.hands, 1, axis=1)
  others = (has @ has.T == 0) & (deal.reaches[1 - player] > 0)
  result = {}
  for hand in np.flatnonzero(deal.reaches[player] * others.any(axis=1)).tolist():
    pair = [deal.hands[each].tolist() for each in (hand, int(np.argmax(others[hand])))]
    result[hand] = deal.actions(*(pair if player == 0 else pair[::-1]))
  return result


def _ranges(view: GameView, deal: Deal, look_up: LookUp) -> Float64s:
  """Returns what each hand weighs after the path, shape (2, hands)."""
  result = deal.reaches.copy()
  for player in (0, 1) if deal.path else ():
    for hand, actions in _begins(deal, player).items():
      state = view.new_initial_state()
      for number, action in enumerate(actions):
        if number >= deal.num_private_moves and state.current_player() == player:
          known = look_up(state, player)
          if known is not None:
            result[player, hand] *= known.get(action, 0.0)
        state.apply_action(action)
    if not result[player] @ deal.compatible_mass(deal.reaches[1 - player]) > 0:
      # The blueprint never plays this.
      result[player] = deal.reaches[player]
  # Their likely hands may share a card.
  return result if result[0] @ deal.compatible_mass(result[1]) > 0 else deal.reaches
