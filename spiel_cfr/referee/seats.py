"""Plays of a game on OpenSpiel's states: by bots, or by policies and one responding player."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyspiel

from spiel_cfr import errors
from spiel_cfr.bots import DrawingBot, PolicyBot, distribution
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.mccfr.random_draws import pick
from spiel_cfr.policies.bot_calls import call_bot
from spiel_cfr.policies.open_spiel import check_game, one_per_player

_ROUNDING = 1e-9
# The largest number of cached distributions of a player's policy.
_MOST_CACHED = 200_000

# Function from an infostate and its legal actions to the index of an action, or to None to follow the policy.
Respond: TypeAlias = Callable[[str, list[int]], int | None]


class Seats:
  """Game with a policy or a bot in the seat of each player.

  Attributes:
    view: `GameView`. The game.
    payoff_range: two floats. The smallest and the largest payoff of a player.
    constant_sum: float. The sum of the players' payoffs; None if it is not constant.
    states: int. The number of states visited so far.
  """

  payoff_range: tuple[float, float]
  constant_sum: float | None

  def __init__(self, game: AnyGame, policy: Any) -> None:
    """Makes the players' bots; see `nash_conv_lower_bound` for arguments and errors."""
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
      source if isinstance(source, pyspiel.Bot) else PolicyBot(source, player)
      for player, source in enumerate(policies)
    ]
    # Bots that may have a memory are informed of all moves.
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
    """Returns a player's probabilities of the legal actions at a state; uniform for bots without a policy."""
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

  def play(self, player: int, respond: Respond, draw: Callable[[int], float]) -> list[float]:
    """Plays the game once, with a player that may respond instead of following its policy.

    Args:
      player: the responding player; -1 for none.
      respond: the response of that player. Where it is None, the player follows its policy, uniform if it has none.
      draw: a function from a player, or chance, to its next random number in [0, 1).

    Returns:
      The payoff of each player.

    Raises:
      PolicyError: a bot or policy returns an illegal action or no distribution.
      InvalidPayoffError: the payoffs contradict the game's limits or its constant sum.
    """
    view = self.view

    def choose(state: Any, mover: int) -> int:
      self.states += 1
      if mover == CHANCE:
        outcomes, probabilities = zip(*view.chance_outcomes(state), strict=True)
        return int(outcomes[pick(probabilities, 0, len(probabilities), draw(mover))])
      infostate, legal = view.infostate(state), view.legal_actions(state)
      response = respond(infostate, legal) if mover == player else None
      if response is not None:
        return legal[response]
      bot = self._bots[mover]
      if mover != player and not bot.provides_policy():
        action = call_bot(bot.step, state)
        if action not in legal:
          raise errors.PolicyError(
            f"After the history [{state.history_str()}] player {mover} plays {action!r}; the legal actions are {legal}."
          )
        return int(action)
      distribution = self.distribution(state, mover, infostate, legal)
      return legal[pick(distribution, 0, len(distribution), draw(mover))]

    # The bot of the responding player does not play, and is not informed.
    informed = [None if seat == player else bot for seat, bot in enumerate(self._informed)]
    state = play_game(view, choose, informed)
    self.states += 1
    returns: list[float] = list(view.returns(state))
    self._check_returns(state, returns)
    return returns

  def _check_returns(self, state: Any, returns: list[float]) -> None:
    """Raises InvalidPayoffError if the returns of a terminal state contradict what the game declares."""
    low, high = self.payoff_range
    rounding = _ROUNDING * max(1.0, abs(low), abs(high))
    is_possible = len(returns) == self.view.num_players
    is_possible &= all(low - rounding <= payoff <= high + rounding for payoff in returns)
    if self.constant_sum is not None:
      is_possible &= abs(math.fsum(returns) - self.constant_sum) <= rounding
    if not is_possible:
      raise errors.InvalidPayoffError(
        f"After the history [{state.history_str()}] the returns are {returns}; the game declares numbers from {low} to "
        f"{high}" + ("." if self.constant_sum is None else f" whose sum is {self.constant_sum}.")
      )


def play_game(
  view: GameView, choose: Callable[[Any, int], int], informed: Sequence[pyspiel.Bot | None]
) -> Any:
  """Plays a game from the root to a terminal state; returns that state.

  Args:
    view: the game.
    choose: a function from a state and the player to move, or chance, to an action.
    informed: for each player, the bot that is informed of moves by chance and the other players; None for no bot.
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
