"""Games played on OpenSpiel's states from root to end, by bots, or by a policy against a player who responds."""

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
from spiel_cfr.policies.open_spiel import asked, check_game, one_per_player

_ROUNDING = 1e-9
# How many answers of a player's policy are kept.
_MOST_KNOWN = 200_000

# A player's infostate and legal actions -> the place of an action among them; None: as the policy plays.
Respond: TypeAlias = Callable[[str, list[int]], int | None]


class Seats:
  """A game and who plays it.

  Attributes:
    view: the game.
    payoff_range: the least and the most that a player can get.
    constant_sum: what all players get together, None where that differs.
    states: how many states the games so far have visited.
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
        f"{view.game} says that payoffs are from {self.payoff_range[0]} to {self.payoff_range[1]}: without limits, no "
        "number of games bounds a mean."
      )
    check_payoffs(str(view.game), self.payoff_range)
    policies = one_per_player(policy, view.num_players)
    check_game(view.game, *policies)
    self._bots = [
      each if isinstance(each, pyspiel.Bot) else PolicyBot(each, player)
      for player, each in enumerate(policies)
    ]
    # Those that may remember a game have to be told of it, and are asked anew each time.
    self._told = [None if isinstance(bot, DrawingBot) else bot for bot in self._bots]
    for player, bot in enumerate(self._bots):
      seat = bot.player_id() if isinstance(bot, DrawingBot) else player
      if seat != player or policy is bot:
        raise errors.PolicyError(
          "Give a list of bots, one for each player, in the order of players."
        )
    if any(self._told) and isinstance(view.new_initial_state(), pyspiel.TurnBasedSimultaneousState):
      raise errors.UnsupportedGameError(
        f"In {view.game} players move at once. That is played in turns, and bots would see what they must not; give "
        "policies."
      )
    self._distributions: list[dict[str, list[float]]] = [{} for _ in self._bots]

  def distribution(
    self, state: Any, player: int, infostate: str, legal: Sequence[int]
  ) -> list[float]:
    """Returns the probabilities with which a player takes the legal actions; uniform for bots that do not tell."""
    known = self._distributions[player].get(infostate)
    if known is not None:
      return known
    bot = self._bots[player]
    if not bot.provides_policy():
      return [1 / len(legal)] * len(legal)
    whose = f"After the history [{state.history_str()}] player {player}"
    result = distribution(dict(asked(bot.get_policy, state)), legal, whose)
    if isinstance(bot, DrawingBot):
      if len(self._distributions[player]) >= _MOST_KNOWN:
        self._distributions[player].clear()
      self._distributions[player][infostate] = result
    return result

  def play(self, player: int, respond: Respond, luck: Callable[[int], float]) -> list[float]:
    """Plays a game in which one player responds, or none for -1; returns the payoff of each player.

    Where it has no response the policy plays, uniformly for a bot that does not tell it. `luck` returns the next random
    number of chance, or of a player.
    """
    view = self.view

    def choose(state: Any, mover: int) -> int:
      self.states += 1
      if mover == CHANCE:
        drawn, chances = zip(*view.chance_outcomes(state), strict=True)
        return int(drawn[pick(chances, 0, len(chances), luck(mover))])
      infostate, legal = view.infostate(state), view.legal_actions(state)
      place = respond(infostate, legal) if mover == player else None
      if place is not None:
        return legal[place]
      bot = self._bots[mover]
      if mover != player and not bot.provides_policy():
        action = asked(bot.step, state)
        if action not in legal:
          raise errors.PolicyError(
            f"After the history [{state.history_str()}] player {mover} plays {action!r}; legal is {legal}."
          )
        return int(action)
      played = self.distribution(state, mover, infostate, legal)
      return legal[pick(played, 0, len(played), luck(mover))]

    # A bot in whose place another one plays need not know.
    told = [None if each == player else bot for each, bot in enumerate(self._told)]
    state = play(view, choose, told)
    self.states += 1
    returns: list[float] = list(view.returns(state))
    low, high = self.payoff_range
    rounding = _ROUNDING * max(1.0, abs(low), abs(high))
    possible = len(returns) == view.num_players
    possible &= all(low - rounding <= each <= high + rounding for each in returns)
    if self.constant_sum is not None:
      possible &= abs(math.fsum(returns) - self.constant_sum) <= rounding
    if not possible:
      raise errors.InvalidPayoffError(
        f"After the history [{state.history_str()}] the returns are {returns}; the game promises numbers from {low} to "
        f"{high}" + ("." if self.constant_sum is None else f" whose sum is {self.constant_sum}.")
      )
    return returns


def play(
  view: GameView, choose: Callable[[Any, int], int], told: Sequence[pyspiel.Bot | None]
) -> Any:
  """Plays a game from root to end; returns the terminal state.

  Args:
    view: the game.
    choose: (state, the player to move or chance) -> an action.
    told: a bot for each player, which learns what chance and the others do; None for a player who need not.
  """
  state = view.new_initial_state()
  for bot in told:
    if bot is not None:
      asked(bot.restart_at, state)
  while (mover := view.mover(state)) != TERMINAL:
    action = choose(state, mover)
    for player, bot in enumerate(told):
      if bot is not None and player != mover:
        asked(bot.inform_action, state, mover, action)
    view.apply(state, action)
  return state
