"""Plays of a game on OpenSpiel's states, by bots, or by a policy and a responding player."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyspiel

from spiel_cfr import errors
from spiel_cfr.bots import DrawingBot, PolicyBot, distribution
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.games.openspiel.answers import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.mccfr.random_draws import pick
from spiel_cfr.policies.bot_calls import call_bot
from spiel_cfr.policies.open_spiel import check_game, one_per_player

_ROUNDING = 1e-9
# The most cached distributions of a player's policy.
_MOST_CACHED = 200_000

# (infostate, legal actions) -> index of the action; None to follow the policy.
Respond: TypeAlias = Callable[[str, list[int]], int | None]


class Seats:
  """A game and its players: a policy or a bot in each seat.

  Attributes:
    view: `GameView`. The game.
    payoff_range: two floats. The least and the largest payoff of a player.
    constant_sum: float. The sum of all payoffs; None if it is not constant.
    states: int. The number of states visited so far.
  """

  payoff_range: tuple[float, float]
  constant_sum: float | None

  def __init__(self, game: AnyGame, policy: Any) -> None:
    """Seats a policy, or one policy or bot for each player; for arguments and errors see `nash_conv_lower_bound`."""
    if isinstance(game, CompiledGame):
      view, self.payoff_range, self.constant_sum = game.view, game.payoff_range, game.constant_sum
    else:
      view = GameView(load_game(game))
      self.payoff_range = view.game.min_utility(), view.game.max_utility()
      self.constant_sum = view.game.utility_sum()
    self.view, self.states = view, 0
    if not all(map(math.isfinite, self.payoff_range)):
      raise errors.UnsupportedGameError(
        f"{view.game} declares payoffs from {self.payoff_range[0]} to {self.payoff_range[1]}: without limits, no "
        "number of plays bounds a mean."
      )
    check_payoffs(str(view.game), self.payoff_range)
    policies = one_per_player(policy, view.num_players)
    check_game(view.game, *policies)
    self._bots = [
      each if isinstance(each, pyspiel.Bot) else PolicyBot(each, player)
      for player, each in enumerate(policies)
    ]
    # Bots that may have a memory are informed of all moves, and called at every state.
    self._informed = [None if isinstance(bot, DrawingBot) else bot for bot in self._bots]
    for player, bot in enumerate(self._bots):
      seat = bot.player_id() if isinstance(bot, DrawingBot) else player
      if seat != player or policy is bot:
        raise errors.PolicyError(
          "Give a list of bots, one for each player, in the order of players."
        )
    is_simultaneous = isinstance(view.new_initial_state(), pyspiel.TurnBasedSimultaneousState)
    if is_simultaneous and any(self._informed):
      raise errors.UnsupportedGameError(
        f"In {view.game} players move at once. It is played in turns here, and bots would see the others' moves. Give "
        "policies."
      )
    self._distributions: list[dict[str, list[float]]] = [{} for _ in self._bots]

  def distribution(
    self, state: Any, player: int, infostate: str, legal: Sequence[int]
  ) -> list[float]:
    """Returns the probabilities of the legal actions, shape (actions,); uniform for bots without a policy."""
    cached = self._distributions[player].get(infostate)
    if cached is not None:
      return cached
    bot = self._bots[player]
    if not bot.provides_policy():
      return [1 / len(legal)] * len(legal)
    whose = f"After the history [{state.history_str()}] player {player}"
    result = distribution(dict(call_bot(bot.get_policy, state)), legal, whose)
    if isinstance(bot, DrawingBot):
      if len(self._distributions[player]) >= _MOST_CACHED:
        self._distributions[player].clear()
      self._distributions[player][infostate] = result
    return result

  def play(self, player: int, respond: Respond, luck: Callable[[int], float]) -> list[float]:
    """Plays a game with a responding player, or none for -1; returns the payoff of each player.

    If the response is None, the player follows its policy, uniform for bots without one. `luck` returns the next random
    number in [0, 1) for chance or a player.
    """
    view = self.view

    def choose(state: Any, mover: int) -> int:
      self.states += 1
      if mover == CHANCE:
        outcomes, chances = zip(*view.chance_outcomes(state), strict=True)
        return int(outcomes[pick(chances, 0, len(chances), luck(mover))])
      infostate, legal = view.infostate(state), view.legal_actions(state)
      place = respond(infostate, legal) if mover == player else None
      if place is not None:
        return legal[place]
      bot = self._bots[mover]
      if mover != player and not bot.provides_policy():
        action = call_bot(bot.step, state)
        if action not in legal:
          raise errors.PolicyError(
            f"After the history [{state.history_str()}] player {mover} plays {action!r}; the legal actions are {legal}."
          )
        return int(action)
      probabilities = self.distribution(state, mover, infostate, legal)
      return legal[pick(probabilities, 0, len(probabilities), luck(mover))]

    # The bot that the responding player replaces is not informed.
    informed = [None if seat == player else bot for seat, bot in enumerate(self._informed)]
    state = play(view, choose, informed)
    self.states += 1
    returns: list[float] = list(view.returns(state))
    low, high = self.payoff_range
    rounding = _ROUNDING * max(1.0, abs(low), abs(high))
    is_possible = len(returns) == view.num_players
    is_possible &= all(low - rounding <= each <= high + rounding for each in returns)
    if self.constant_sum is not None:
      is_possible &= abs(math.fsum(returns) - self.constant_sum) <= rounding
    if not is_possible:
      raise errors.InvalidPayoffError(
        f"After the history [{state.history_str()}] the returns are {returns}; the game declares numbers from {low} to "
        f"{high}" + ("." if self.constant_sum is None else f" whose sum is {self.constant_sum}.")
      )
    return returns


def play(
  view: GameView, choose: Callable[[Any, int], int], informed: Sequence[pyspiel.Bot | None]
) -> Any:
  """Plays a game from the root to a terminal state, which it returns.

  Args:
    view: the game.
    choose: (state, player to move or chance) -> action.
    informed: one bot a player, which is informed of the moves of chance and the others; None for players without a bot.
  """
  state = view.new_initial_state()
  for bot in informed:
    if bot is not None:
      call_bot(bot.restart_at, state)
  while (mover := view.mover(state)) != TERMINAL:
    action = choose(state, mover)
    for player, bot in enumerate(informed):
      if bot is not None and player != mover:
        call_bot(bot.inform_action, state, mover, action)
    view.apply(state, action)
  return state
