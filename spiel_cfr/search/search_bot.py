"""A bot that re-solves the rest of the game at each of its decisions."""

import copy
import math
import time
from typing import Any

import numpy as np

from spiel_cfr import catalogue, errors
from spiel_cfr._util import arguments
from spiel_cfr.bots import DrawingBot
from spiel_cfr.games.openspiel import answers, loading
from spiel_cfr.games.openspiel.answers import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker.deal import public_moves
from spiel_cfr.poker.public_game import has_many_hands
from spiel_cfr.policies import AnyPolicy
from spiel_cfr.search.belief_search import BeliefSearch
from spiel_cfr.search.cut_outs import SubgameSolver
from spiel_cfr.search.gadgets import GADGETS, Gadget, find_gadget
from spiel_cfr.search.hand_search import HandSearch
from spiel_cfr.search.history_tree import HistoryTree, tree_of
from spiel_cfr.search.local_search import LocalSearch
from spiel_cfr.search.lookahead import LeafValues, check_leaf_values
from spiel_cfr.search.segments import check_view
from spiel_cfr.search.states_above import StateAbove

# The largest number of sequences of a linear program, the gadget's included. Larger subgames use iterations.
_LP_SEQUENCES = 5000
_ITERATIONS, _MOST_ITERATIONS, _ITERATIONS_TO_LEAVES = 1000, 1 << 30, 200
_SOLVER = "dcfr"
# The largest count of numbers that solutions keep from one game to the next.
_KEPT = 50_000_000


class SearchBot(DrawingBot):
  """Bot that improves a blueprint by continual re-solving, for games that need not be compiled.

      bot = SearchBot(blueprint, player=0)
      pyspiel.evaluate_bots(state, [bot, other], seed)

  The bot follows the public state during play. It plays the blueprint until at most `max_histories` histories follow
  one of its decisions. From then on, it re-solves each of its public states. Ranges come from its latest solution, and
  bounds from a best response to that solution. Subgames include actions of both players that the blueprint does not
  know. After an action to which the blueprint has no answer, the bound is the opponent's value before the action. The
  bot finds each solution once and keeps it for later games. Solutions depend only on the player's information.

  A game that fits is walked when the bot is made, if the blueprint knows its game. Otherwise it is walked by
  `restart_at`, or at the first decision. A list of two bots, one for each player, is a policy for every function that
  accepts one.

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
    solver: str = _SOLVER,
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
        Without `seconds` and `iterations`, the bot solves linear programs. Where a program would be large, it runs
        1,000 iterations instead.
      gadget: a name in `GADGETS`, or a `Gadget`. The default is "safe" for linear programs and "follow" for iterations.
        If the blueprint has no answer to a possible action of the opponent, the gadget is "follow". On rivers of
        hold'em and with `leaf_values`, the opponent cannot pick a private state.
      solver: a name in `catalogue.SOLVERS`, for iterations.
      max_histories: the largest number of histories of a subgame.
      seed: the seed of the bot's random draws.

    Raises:
      ArgumentError: an argument is not as above.
      UnsupportedGameError: see `get_policy`; only if the blueprint knows its game.
    """
    if (blueprint is None) != (leaf_values is not None):
      given = "no policy" if blueprint is None else "a policy, and there are leaf_values"
      raise errors.ArgumentError(
        f"The blueprint is {given}: give either a blueprint, or None with leaf_values."
      )
    if leaf_values is not None and (seconds is not None or solver != _SOLVER):
      raise errors.ArgumentError(
        "With leaf_values, the bot always runs iterations of PCFR+: leave seconds and solver out."
      )
    super().__init__({} if blueprint is None else blueprint, player, seed=seed)
    arguments.integer(player, "player", 0, 1)
    if leaf_values is not None:
      check_leaf_values(leaf_values)
    self._leaf_values = leaf_values
    self._depth = arguments.positive_integer(depth, "depth")
    self._beliefs: BeliefSearch | None = None
    self._seconds = math.inf
    if seconds is not None:
      self._seconds = arguments.positive_number(seconds, "seconds")
    if iterations is not None:
      arguments.positive_integer(iterations, "iterations")
    self._iterations = iterations
    self._uses_programs = seconds is None and iterations is None
    self._gadget = None if gadget is None else find_gadget(gadget, picks=leaf_values is None)
    arguments.one_of(solver, "solver", list(catalogue.SOLVERS))
    self._solver = solver
    self._limit = arguments.positive_integer(max_histories, "max_histories")
    self._game: _Game | None = None
    # By the public state where a search begins: the search, or the error that prevents it.
    self._found: dict[StateAbove, LocalSearch | errors.SpielCFRError] = {}
    self._found_of_hands: dict[tuple[int, ...], HandSearch | errors.GameError] = {}
    compiled = getattr(self._policy, "compiled_game", None)
    if compiled is not None:
      view = compiled.original.view
      self._walk(self._take_up(view if view.is_whole else GameView(view.game)))

  def restart(self) -> None:
    """Discards all solutions if they take too much memory."""
    found = [*self._found.values(), *self._found_of_hands.values(), *filter(None, [self._beliefs])]
    if sum(each.size for each in found if not isinstance(each, Exception)) > _KEPT:
      self._forget()

  def restart_at(self, state: Any) -> None:
    """Does what `restart` does, then walks the game of a state if it fits.

    Raises:
      UnsupportedGameError: see `get_policy`.
    """
    self.restart()
    self._walk(self._game_of(state))

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
    deadline = time.perf_counter() + self._seconds
    # In games with simultaneous moves, players also have legal actions at chance nodes.
    is_decision = answers.current_player(state) not in (CHANCE, TERMINAL)
    if not is_decision or not answers.legal_actions(state, self._player):
      return []
    game = self._game_of(state)
    own = game.view.own_state(state, self._player)
    if self._leaf_values is not None:
      return self._search_to_leaves(game, self._leaf_values).policy(own.history())
    if game.has_many_hands:
      return self._of_hands(game.view, own, deadline)
    search = self._search_of(game, own, deadline)
    if search is None:
      return self._policy_at(own)
    return search.policy(own.history(), self._choose, deadline)

  def _search_to_leaves(self, game: "_Game", leaf_values: LeafValues) -> BeliefSearch:
    if self._beliefs is None:
      self._beliefs = BeliefSearch(
        game.view,
        self._player,
        leaf_values,
        self._depth,
        self._iterations or _ITERATIONS_TO_LEAVES,
        self._limit,
        self._gadget or GADGETS["follow"],
      )
    return self._beliefs

  def _look_up(self, state: Any, player: int) -> dict[int, float] | None:
    """Returns the blueprint's probabilities of a player's actions; None if the blueprint has none."""
    try:
      return self._ask(state, player) or None
    except (errors.PolicyError, KeyError):
      return None

  def _game_of(self, state: Any) -> "_Game":
    game = answers.game_of(state)
    name = str(game)
    if self._game is None or name not in self._game.names:
      self._game = self._take_up(GameView(loading.load_game(game)))
      self._game.names.add(name)
    return self._game

  def _take_up(self, view: GameView) -> "_Game":
    """Returns the game of a view, after discarding the solutions of any other game."""
    if self._game is not None and str(view.game) in self._game.names:
      return self._game
    check_view(view)
    self._forget()
    return _Game(view)

  def _forget(self) -> None:
    self._game = self._beliefs = None
    self._found.clear()
    self._found_of_hands.clear()

  def _walk(self, game: "_Game") -> None:
    """Walks the game, if it fits, before the bot's first decision."""
    self._game = game
    if not game.has_many_hands and self._leaf_values is None:
      self._begin(game, game.root, math.inf)

  def _of_hands(self, view: GameView, state: Any, deadline: float) -> list[tuple[int, float]]:
    """Returns the strategy at a decision in poker with many hands."""
    problem = "public cards are still to be dealt"
    moves = public_moves(view, state)
    if moves is not None:
      key = tuple(moves[0])
      if key not in self._found_of_hands:
        solver = SubgameSolver(self._solver, self._most_iterations, deadline)
        # A game over vectors of hands has no infoset in which the opponent could pick a hand.
        gadget = self._gadget or GADGETS["follow"]
        if gadget.front == "pick":
          gadget = GADGETS["follow"]
        try:
          self._found_of_hands[key] = HandSearch(
            view, *moves, self._look_up, solver, self._player, gadget
          )
        except errors.GameError as error:
          self._found_of_hands[key] = error
      found = self._found_of_hands[key]
      if isinstance(found, HandSearch):
        return found.policy(state)
      problem = str(found)
    try:
      return self._policy_at(state)
    except errors.PolicyError as error:
      raise errors.GameTooLargeError(f"{error} It can't be searched: {problem}.") from None

  def _search_of(self, game: "_Game", state: Any, deadline: float) -> LocalSearch | None:
    """Returns the search that covers a decision; None where the bot plays the blueprint."""
    found = self._begin(game, game.root, deadline)
    if isinstance(found, LocalSearch):
      return found
    history = tuple(state.history())
    above, at = [game.root], game.view.new_initial_state()
    for length, action in enumerate(history, 1):
      try:
        above.append(above[-1].child(history[:length], game.view, self._look_up, self._limit))
      except errors.GameTooLargeError:
        if self._look_up(state, self._player) is None:
          raise
        return None
      game.view.apply(at, action)
      if game.view.mover(at) == self._player:
        search = self._first_search(game, above, at, deadline)
        if search is not None:
          return search
        above = above[-1:]
    return None

  def _first_search(
    self, game: "_Game", above: list[StateAbove], at: Any, deadline: float
  ) -> LocalSearch | None:
    """Returns the search below a decision; None where the bot plays the blueprint.

    Args:
      game: the game.
      above: the public states since the bot's previous decision, including that of this decision.
      at: the state of this decision.
      deadline: the time by which the bot has to answer.

    Raises:
      SpielCFRError: the blueprint does not know the decision, and no search fits below any of these public states.
    """
    found = self._begin(game, above[-1], deadline)
    if isinstance(found, LocalSearch):
      return found
    if self._look_up(at, self._player) is not None:
      return None
    # The blueprint gives no bounds after an action that it does not know. It does at public states before that action.
    for earlier in reversed(above[:-1]):
      found = self._begin(game, earlier, deadline)
      if isinstance(found, LocalSearch):
        return found
    raise found

  def _begin(
    self, game: "_Game", start: StateAbove, deadline: float
  ) -> LocalSearch | errors.SpielCFRError:
    """Returns the search below a public state, or the error that prevents it."""
    if start in self._found:
      return self._found[start]
    now = time.perf_counter()
    until = now + (deadline - now) / 2
    found: LocalSearch | errors.SpielCFRError
    try:
      if start is game.root:
        tree = tree_of(game.view, self._limit, until)
      else:
        tree = HistoryTree(game.view, start.states, self._limit, start.probabilities, until)
      found = LocalSearch(tree, self._policy, self._look_up, self._player)
    except errors.GameTooLargeError as error:
      if time.perf_counter() > until:
        # The error is not kept, since another decision may have more time.
        return error
      found = error
    except errors.PolicyError as error:
      found = error
    self._found[start] = found
    return found

  def _choose(self, num_sequences: int, deadline: float) -> tuple[Gadget, SubgameSolver]:
    """Returns the gadget and the solver of a subgame."""
    solver = SubgameSolver(self._solver, self._most_iterations, deadline)
    if self._uses_programs and num_sequences <= _LP_SEQUENCES:
      solver = SubgameSolver("lp")
    return self._gadget or find_gadget(None, iterates=not solver.is_linear_program), solver

  def twin(self) -> "SearchBot":
    """Returns a bot with the same arguments for the other player, without solutions."""
    result = copy.copy(self)
    result._player, result._game, result._beliefs = 1 - self._player, None, None
    result._found, result._found_of_hands = {}, {}
    return result

  @property
  def _most_iterations(self) -> int:
    return self._iterations or (_ITERATIONS if self._seconds == math.inf else _MOST_ITERATIONS)


class _Game:
  """The game that a bot plays.

  Attributes:
    names: set of strings. OpenSpiel's strings of the game, with simultaneous moves and with turns.
    view: the view of the game for walks.
    has_many_hands: bool. True for poker over vectors of hands.
    root: the first public state.
  """

  def __init__(self, view: GameView) -> None:
    self.names, self.view = {str(view.game)}, view
    self.has_many_hands = has_many_hands(view.game)
    self.root = StateAbove([view.new_initial_state()], np.ones((3, 1)))
