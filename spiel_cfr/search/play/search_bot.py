"""Bots that re-solve the rest of the game during play, and their complete policies.

`SearchBot` improves a blueprint. `BeliefBot`, in `belief_search`, has leaf values instead. Both are a `SearchingBot`,
which asks a `GameSearch` for the strategy at each decision.
"""

import copy
import math
from typing import Any, Protocol, Self

import numpy as np

from spiel_cfr import catalogue, errors
from spiel_cfr._util import arguments
from spiel_cfr.bots import DrawingBot
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel import checked_calls, loading
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.public_game import has_many_hands
from spiel_cfr.policies import AnyPolicy, CompiledTabularPolicy
from spiel_cfr.policies.open_spiel import from_policy
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.play.blueprint_search import BlueprintSearch
from spiel_cfr.search.play.river_search import RiverSearch
from spiel_cfr.search.play.segments import check_view
from spiel_cfr.search.subgames.subgame_solver import SearchOptions

# The largest count of numbers that solutions keep from one game to the next.
_KEPT = 50_000_000


class GameSearch(Protocol):
  """One player's search in one game, during all plays. A search keeps its solutions for later plays.

  Attributes:
    view: `GameView`. The game as its walks see it.
  """

  view: GameView

  @property
  def size(self) -> int:
    """The approximate count of numbers that the search keeps."""

  def prepare(self) -> None:
    """Does the work that is possible before the player's first decision."""

  def policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns (action, probability) for each legal action at a decision of the player.

    Args:
      state: OpenSpiel's state, with moves one after another.
    """


class SearchingBot:
  """The part that all bots that search share: one `GameSearch`, in the game that is played.

  The other base class of these bots is `DrawingBot`. Solutions depend only on the player's information. A list of two
  bots, one for each player, is a policy for every function that accepts one.
  """

  _player: int
  # The search, and OpenSpiel's strings of its game: there is a second string if players move simultaneously.
  _search: GameSearch | None = None
  _names: frozenset[str] = frozenset()

  def _new_search(self, view: GameView) -> GameSearch:
    """Returns a search of the bot's player in a game, without solutions."""
    raise NotImplementedError

  def restart(self) -> None:
    """Discards all solutions if they take too much memory."""
    if self._search is not None and self._search.size > _KEPT:
      self._search = None

  def restart_at(self, state: Any) -> None:
    """Does what `restart` does, then the work that is possible before the first decision of the game of a state.

    Raises:
      GameTooLargeError: see `get_policy`; only from a `BeliefBot`.
      UnsupportedGameError: see `get_policy`.
    """
    self.restart()
    self._search_of(state).prepare()

  def get_policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns (action, probability) for each legal action; empty where the player is not to move.

    The bot searches, unless it already has a solution here. It also searches at earlier decisions of the history at
    which it was not asked.

    Raises:
      GameTooLargeError: a subgame has more than `max_histories` histories, and there is no blueprint that has
        probabilities here.
      PolicyError: the blueprint lacks an infoset to which it plays.
      UnsupportedGameError: the game is not a constant-sum game of two players, or an infoset is reached after different
        numbers of moves.
    """
    # In games with simultaneous moves, players also have legal actions at chance nodes.
    is_decision = checked_calls.current_player(state) not in (CHANCE, TERMINAL)
    if not is_decision or not checked_calls.legal_actions(state, self._player):
      return []
    search = self._search_of(state)
    return search.policy(search.view.own_state(state, self._player))

  def _search_of(self, state: Any) -> GameSearch:
    """Returns the search in the game of a state."""
    game = checked_calls.game_of(state)
    if self._search is not None and str(game) in self._names:
      return self._search
    result = self._search_in(GameView(loading.load_game(game)))
    self._names |= {str(game)}
    return result

  def _search_in(self, view: GameView) -> GameSearch:
    """Returns the search in a game, after discarding the solutions of any other game."""
    name = str(view.game)
    if self._search is None or name not in self._names:
      check_view(view)
      self._search, self._names = self._new_search(view), frozenset({name})
    return self._search

  def twin(self) -> Self:
    """Returns a bot with the same arguments for the other player, without solutions."""
    result = copy.copy(self)
    result._player, result._search = 1 - self._player, None
    return result


class SearchBot(SearchingBot, DrawingBot):
  """Bot that improves a blueprint by continual re-solving, for games that need not be compiled.

      bot = SearchBot(blueprint, player=0)
      pyspiel.evaluate_bots(state, [bot, other], seed)

  The bot follows the public state during play. It plays the blueprint until at most `max_histories` histories follow
  one of its decisions. From then on, it re-solves the public state of each decision. Ranges come from its latest
  solution, and bounds from a best response to that solution. Subgames include actions of both players that the
  blueprint does not know. After an action to which the blueprint has no answer, the bound is the opponent's value
  before the action. The bot finds each solution once and keeps it for later games.

  A game of at most `max_histories` histories is walked when the bot is made, if the blueprint knows its game. Otherwise
  it is walked by `restart_at`, or at the first decision.
  """

  def __init__(
    self,
    blueprint: AnyPolicy,
    player: int,
    *,
    seconds: float | None = None,
    iterations: int | None = None,
    gadget: str | Gadget | None = None,
    solver: str | None = None,
    max_histories: int = 50_000,
    seed: int | np.random.Generator | None = None,
  ) -> None:
    """Makes the bot.

    Args:
      blueprint: a policy of both players, in any form that `PolicyBot` accepts; later changes to it have no effect. It
        may lack infosets after actions that it does not know.
      player: the player for whom the bot plays.
      seconds: the time for a decision, including a first walk of the game. The bot's moves then depend on the machine.
      iterations: the largest number of iterations of `solver` in each subgame. Without `seconds`, `iterations` and
        `solver`, the bot solves linear programs. Where a program would be large, it runs 1,000 iterations instead.
      gadget: a name in `GADGETS`, or a `Gadget`. The default is "safe" for linear programs and "follow" for iterations.
        If the blueprint has no answer to a possible action of the opponent, the gadget is "follow". On rivers of
        hold'em, the opponent cannot pick a private state.
      solver: a name in `catalogue.SOLVERS`. The bot then runs iterations of this solver in all subgames, 1,000 by
        default. None solves linear programs where `iterations` says so, and otherwise runs "dcfr".
      max_histories: the largest number of histories of a subgame.
      seed: the seed of the bot's random draws.

    Raises:
      ArgumentError: an argument is not as above.
      UnsupportedGameError: see `get_policy`; only if the blueprint knows its game.
    """
    super().__init__(blueprint, player, seed=seed)
    arguments.integer(player, "player", 0, 1)
    if iterations is not None:
      arguments.positive_integer(iterations, "iterations")
    if solver is not None:
      arguments.one_of(solver, "solver", list(catalogue.SOLVERS))
    self._options = SearchOptions(
      None if gadget is None else find_gadget(gadget),
      solver,
      iterations,
      math.inf if seconds is None else arguments.positive_number(seconds, "seconds"),
      arguments.positive_integer(max_histories, "max_histories"),
    )
    compiled = getattr(self._reader.policy, "compiled_game", None)
    if compiled is not None:
      view = compiled.original.view
      check_view(view)
      self._search_in(view if view.is_whole else GameView(view.game)).prepare()

  def __repr__(self) -> str:
    return f"<SearchBot of player {self._player} with {type(self._reader.policy).__name__}>"

  def _new_search(self, view: GameView) -> BlueprintSearch | RiverSearch:
    # As in `public_states`.
    kind = RiverSearch if has_many_hands(view.game) else BlueprintSearch
    return kind(view, self._player, self._reader, self._options)


def played_policy(game: AnyGame, bot: SearchingBot) -> CompiledTabularPolicy:
  """Returns the policy that a bot plays as either player; the bot is asked once at each infoset.

      spiel_cfr.exploitability(game, played_policy(game, bot))

  Args:
    game: a compiled game, or anything that `compile_game` accepts.
    bot: a `SearchBot` or `BeliefBot` for one of the players; its twin plays for the other.

  Raises:
    ArgumentError: `bot` is no such bot.
    UnsupportedGameError: see `SearchingBot.get_policy`.
    GameTooLargeError: see `SearchingBot.get_policy`.
    PolicyError: see `SearchingBot.get_policy`.
    GameError: see `compile_game`.
  """
  if not isinstance(bot, SearchingBot):
    raise errors.ArgumentError(
      f"bot must be a SearchBot or a BeliefBot, not {arguments.shortened(bot)}."
    )
  compiled = compile_game(game).original
  bots = [bot, bot.twin()] if bot._player == 0 else [bot.twin(), bot]
  return CompiledTabularPolicy(compiled, from_policy(compiled, bots))
