"""Bots that re-solve the rest of the game at each of their decisions, and their complete policies."""

import copy
import math
import time
from typing import Any

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
from spiel_cfr.search.belief_search import BeliefSearch
from spiel_cfr.search.blueprint_search import BlueprintSearch
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.game_search import GameSearch, SearchOptions
from spiel_cfr.search.lookahead import LeafValues, check_leaf_values
from spiel_cfr.search.river_search import RiverSearch
from spiel_cfr.search.segments import check_view

# The largest count of numbers that solutions keep from one game to the next.
_KEPT = 50_000_000


class SearchBot(DrawingBot):
  """Bot that improves a blueprint by continual re-solving, for games that need not be compiled.

      bot = SearchBot(blueprint, player=0)
      pyspiel.evaluate_bots(state, [bot, other], seed)

  The bot follows the public state during play. It plays the blueprint until at most `max_histories` histories follow
  one of its decisions. From then on, it re-solves the public state of each decision. Ranges come from its latest
  solution, and bounds from a best response to that solution. Subgames include actions of both players that the
  blueprint does not know. After an action to which the blueprint has no answer, the bound is the opponent's value
  before the action. The bot finds each solution once and keeps it for later games. Solutions depend only on the
  player's information.

  A game of at most `max_histories` histories is walked when the bot is made, if the blueprint knows its game. Otherwise
  it is walked by `restart_at`, or at the first decision. A list of two bots, one for each player, is a policy for every
  function that accepts one.

      SearchBot(None, player=0, leaf_values=network)

  Without a blueprint, the bot solves subgames of limited depth with values at their leaves, from the first move on. It
  then walks the game only as far as it is played.
  """

  def __init__(
    self,
    blueprint: AnyPolicy | None,
    player: int,
    *,
    leaf_values: LeafValues | None = None,
    depth: int = 2,
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
        may lack infosets after actions that it does not know. None with `leaf_values`.
      player: the player for whom the bot plays.
      leaf_values: the values of private states at the leaves of subgames, see `LeafValues`.
      depth: with `leaf_values`, the number of moves of a subgame, see `Subgame`.
      seconds: the time for a decision, including a first walk of the game. The bot's moves then depend on the machine.
      iterations: the largest number of iterations of `solver` in each subgame; 200 by default with `leaf_values`.
        Without `seconds`, `iterations` and `solver`, the bot solves linear programs. Where a program would be large, it
        runs 1,000 iterations instead.
      gadget: a name in `GADGETS`, or a `Gadget`. The default is "safe" for linear programs and "follow" for iterations.
        If the blueprint has no answer to a possible action of the opponent, the gadget is "follow". On rivers of
        hold'em and with `leaf_values`, the opponent cannot pick a private state.
      solver: a name in `catalogue.SOLVERS`. The bot then runs iterations of this solver in all subgames, 1,000 by
        default. None solves linear programs where `iterations` says so, and otherwise runs "dcfr".
      max_histories: the largest number of histories of a subgame.
      seed: the seed of the bot's random draws.

    Raises:
      ArgumentError: an argument is not as above.
      UnsupportedGameError: see `get_policy`; only if the blueprint knows its game.
    """
    if (blueprint is None) != (leaf_values is not None):
      given = "None" if blueprint is None else "a policy, and there are leaf_values"
      raise errors.ArgumentError(
        f"The blueprint is {given}: give either a blueprint, or None with leaf_values."
      )
    if leaf_values is not None and (seconds is not None or solver is not None):
      raise errors.ArgumentError(
        "With leaf_values, the bot always runs iterations of SAPCFR+: leave seconds and solver out."
      )
    super().__init__({} if blueprint is None else blueprint, player, seed=seed)
    arguments.integer(player, "player", 0, 1)
    if leaf_values is not None:
      check_leaf_values(leaf_values)
    self._leaf_values = leaf_values
    self._depth = arguments.positive_integer(depth, "depth")
    if iterations is not None:
      arguments.positive_integer(iterations, "iterations")
    if solver is not None:
      arguments.one_of(solver, "solver", list(catalogue.SOLVERS))
    self._options = SearchOptions(
      None if gadget is None else find_gadget(gadget, can_pick=leaf_values is None),
      solver,
      iterations,
      math.inf if seconds is None else arguments.positive_number(seconds, "seconds"),
      arguments.positive_integer(max_histories, "max_histories"),
    )
    # The search in the game that is played, and OpenSpiel's strings of that game: it has a second one if players move
    # simultaneously.
    self._search: GameSearch | None = None
    self._names = set[str]()
    compiled = getattr(self._reader.policy, "compiled_game", None)
    if compiled is not None:
      view = compiled.original.view
      check_view(view)
      self._search_in(view if view.is_whole else GameView(view.game)).prepare()

  def __repr__(self) -> str:
    values = type(self._reader.policy).__name__ if self._leaf_values is None else "leaf values"
    return f"<SearchBot of player {self._player} with {values}>"

  def restart(self) -> None:
    """Discards all solutions if they take too much memory."""
    if self._search is not None and self._search.size > _KEPT:
      self._search = None

  def restart_at(self, state: Any) -> None:
    """Does what `restart` does, then walks the game of a state if it fits.

    Raises:
      GameTooLargeError: see `get_policy`; only with `leaf_values`.
      UnsupportedGameError: see `get_policy`.
    """
    self.restart()
    self._search_of(state).prepare()

  def get_policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns (action, probability) for each legal action; empty where the player is not to move.

    The bot searches, unless it already has a solution here. It also searches at earlier decisions of the history at
    which it was not asked.

    Raises:
      GameTooLargeError: more than `max_histories` histories follow, and the blueprint has no probabilities.
      PolicyError: the blueprint lacks an infoset to which it plays.
      UnsupportedGameError: the game is not a constant-sum game of two players, or an infoset is reached after different
        numbers of moves.
    """
    deadline = time.perf_counter() + self._options.seconds
    # In games with simultaneous moves, players also have legal actions at chance nodes.
    is_decision = checked_calls.current_player(state) not in (CHANCE, TERMINAL)
    if not is_decision or not checked_calls.legal_actions(state, self._player):
      return []
    search = self._search_of(state)
    return search.policy(search.view.own_state(state, self._player), deadline)

  def _search_of(self, state: Any) -> GameSearch:
    """Returns the search in the game of a state."""
    game = checked_calls.game_of(state)
    if self._search is not None and str(game) in self._names:
      return self._search
    result = self._search_in(GameView(loading.load_game(game)))
    self._names.add(str(game))
    return result

  def _search_in(self, view: GameView) -> GameSearch:
    """Returns the search in a game, after discarding the solutions of any other game."""
    name = str(view.game)
    if self._search is None or name not in self._names:
      check_view(view)
      self._search, self._names = self._new_search(view), {name}
    return self._search

  def _new_search(self, view: GameView) -> GameSearch:
    if self._leaf_values is not None:
      return BeliefSearch(view, self._player, self._leaf_values, self._depth, self._options)
    if has_many_hands(view.game):
      return RiverSearch(view, self._player, self._reader, self._options)
    return BlueprintSearch(view, self._player, self._reader, self._options)

  def twin(self) -> "SearchBot":
    """Returns a bot with the same arguments for the other player, without solutions."""
    result = copy.copy(self)
    result._player, result._search = 1 - self._player, None
    return result


def played_policy(game: AnyGame, bot: SearchBot) -> CompiledTabularPolicy:
  """Returns the policy that a bot plays as either player; the bot is asked once at each infoset.

      spiel_cfr.exploitability(game, played_policy(game, bot))

  Args:
    game: a compiled game, or anything that `compile_game` accepts.
    bot: a bot for one of the players; its twin plays for the other.

  Raises:
    ArgumentError: `bot` is not a `SearchBot`.
    UnsupportedGameError: see `SearchBot.get_policy`.
    GameTooLargeError: see `SearchBot.get_policy`.
    PolicyError: see `SearchBot.get_policy`.
    GameError: see `compile_game`.
  """
  arguments.of_type(bot, "bot", SearchBot)
  compiled = compile_game(game).original
  bots = [bot, bot.twin()] if bot.player_id() == 0 else [bot.twin(), bot]
  return CompiledTabularPolicy(compiled, from_policy(compiled, bots))
