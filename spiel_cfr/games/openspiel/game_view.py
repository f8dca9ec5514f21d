"""`GameView`: a game of OpenSpiel, perhaps with fewer actions, other infostates or other returns.

Code that visits states uses a `GameView`. So a change, such as an action filter, holds wherever states are visited.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import pyspiel

from spiel_cfr import errors
from spiel_cfr.games.openspiel import checked_calls, loading
from spiel_cfr.games.openspiel.checked_calls import guarded
from spiel_cfr.games.openspiel.perfect_recall_infostates import OwnHistory, check_infostate

# (state, its legal actions) -> the actions to keep.
ActionFilter: TypeAlias = Callable[[Any, list[int]], list[int]]
# (state, player to move) -> the name of that player's infoset.
InfostateFunction: TypeAlias = Callable[[Any, int], str]
# A function that names infosets; "history" stands for `OwnHistory`.
Infostates: TypeAlias = InfostateFunction | Literal["history"]
# terminal state -> the return of each player.
ReturnsFunction: TypeAlias = Callable[[Any], Sequence[float]]


class GameView:
  """A sequential game with the actions and infostates that the library uses. Immutable.

  `mover`, `infostate` and other attributes are functions of states that descend from `new_initial_state`. If the view
  changes nothing, they are OpenSpiel's own functions. The view checks the answers of games in Python, of games from
  files, and of a user's functions. An exception or an answer of the wrong type raises an error with the history.

      view = GameView(pyspiel.load_game("leduc_poker"), lambda state, actions: actions[:2])
      state = view.new_initial_state()
      view.chance_outcomes(state)

  Attributes:
    game: pyspiel.Game. The game, from `loading.load_game`.
    action_filter: function of a state and its legal actions; returns those to keep, the same at all states of an
      infoset. None keeps all.
    possible_only: bool. Whether chance outcomes of probability 0 are left out. Endgames of `universal_poker` list every
      deal, and their states after an impossible deal can't be used.
    num_players: int. The number of players.
    mover: function of a state; returns the player to move, `checked_calls.CHANCE` or `checked_calls.TERMINAL`.
    child: function of a state and an action; returns the state after it.
    apply: function of a state and an action; changes the state to the one after the action.
    infostate: function of a state at which a player moves; returns the name of the player's infoset. The constructor's
      argument is a function of state and player, or "history", see `OwnHistory`. By default, names are OpenSpiel's
      `information_state_string`.
    named: function of a state and a player; returns that player's infostate, also if another player moves.
    legal_actions: function of a state at which a player moves; returns the kept actions in ascending order. Raises
      ArgumentError if the filter keeps no action, an illegal action, or an action twice.
    chance_outcomes: function of a chance node; returns (action, probability) pairs.
    returns: function of a terminal state; returns each player's return, by default OpenSpiel's.
  """

  def __init__(
    self,
    game: pyspiel.Game,
    action_filter: ActionFilter | None = None,
    *,
    infostate: Infostates | None = None,
    returns: ReturnsFunction | None = None,
  ) -> None:
    check_infostate(infostate)
    self.game = game
    self.action_filter = action_filter
    self.possible_only = loading.is_endgame(game)
    self.num_players = int(game.num_players())
    self._infostate, self._returns = infostate, returns
    self._is_turn_based = checked_calls.is_turn_based(game)
    own_names = OwnHistory(game) if infostate == "history" else infostate
    root = game.new_initial_state()
    checks = checked_calls.AnswerChecks(game)

    def method(name: str, check: checked_calls.Check) -> Callable[..., Any]:
      function = _method(type(root), name)
      return function if checked_calls.is_trusted(game, root) else guarded(function, check)

    self.mover: Callable[[Any], int] = method("current_player", checks.mover)
    self.child: Callable[[Any, int], Any] = method("child", checked_calls.child)
    self.apply: Callable[[Any, int], None] = method("apply_action", checked_calls.anything)
    self._all_actions = method("legal_actions", checks.actions)
    self._all_outcomes = method("chance_outcomes", checked_calls.outcomes)
    self.named: Callable[[Any, int], str] = guarded(
      own_names or _method(type(root), "information_state_string"),
      checked_calls.given_name if own_names else checked_calls.name,
    )
    self.infostate: Callable[[Any], str] = (
      self._name_of_mover if own_names else method("information_state_string", checked_calls.name)
    )
    self.legal_actions: Callable[[Any], list[int]] = self._all_actions
    if action_filter is not None:
      self.legal_actions = guarded(self._kept_actions, checked_calls.anything)
    self.chance_outcomes: Callable[[Any], list[tuple[int, float]]] = (
      self._possible_outcomes if self.possible_only else self._all_outcomes
    )
    self.returns: ReturnsFunction = (
      guarded(returns, checks.returns) if returns else method("returns", checks.returns)
    )

  def __reduce__(self) -> tuple[Any, ...]:
    """Copies and pickles as a call of the constructor, since OpenSpiel's functions can't be pickled."""
    make = functools.partial(GameView, infostate=self._infostate, returns=self._returns)
    mark = loading.PythonGames() if "python_" in str(self.game) else None
    return _unpickled, (make, mark, self.game, self.action_filter)

  def __deepcopy__(self, memo: Any) -> "GameView":
    """Returns the view itself, since it never changes."""
    return self

  def with_returns(self, returns: ReturnsFunction) -> "GameView":
    """Returns the same view with other returns."""
    return GameView(self.game, self.action_filter, infostate=self._infostate, returns=returns)

  @property
  def has_own_names(self) -> bool:
    """True if infostates are not OpenSpiel's strings."""
    return self._infostate is not None

  @property
  def has_own_histories(self) -> bool:
    """True if infostates are made of the player's observations and actions, see `OwnHistory`."""
    return self._infostate == "history"

  @property
  def is_whole(self) -> bool:
    """True if the view shows OpenSpiel's game unchanged."""
    changes = (self.action_filter, self._infostate, self._returns, self.possible_only or None)
    return all(change is None for change in changes)

  @property
  def declared_sum(self) -> float | None:
    """The sum of all players' returns by the game's type; NaN for a constant of unknown size, None if it may vary.

    It is None if the view replaces the returns.
    """
    utility, kind = pyspiel.GameType.Utility, self.game.get_type().utility
    if self._returns is not None or kind not in (utility.ZERO_SUM, utility.CONSTANT_SUM):
      return None
    total = 0.0 if kind == utility.ZERO_SUM else self.game.utility_sum()
    return math.nan if total is None else float(total)

  def new_initial_state(self) -> Any:
    """Returns the root."""
    return self.game.new_initial_state()

  def open_spiel_game(self) -> "pyspiel.Game | ViewedGame":
    """Returns the game for OpenSpiel's own Python algorithms: a `ViewedGame` if the view changes the game."""
    return self.game if self.is_whole else ViewedGame(self)

  def states(self) -> Iterator[tuple[Any, list[int]]]:
    """Yields all states in the order of histories as strings, with the actions or outcomes of chance at each state."""
    stack = [self.new_initial_state()]
    while stack:
      state, moves = stack.pop(), []
      player = self.mover(state)
      if player == checked_calls.CHANCE:
        moves = [action for action, _ in self.chance_outcomes(state)]
      elif player >= 0:
        moves = self.legal_actions(state)
      yield state, moves
      stack += [self.child(state, action) for action in sorted(moves, key=str, reverse=True)]

  def first_states(self, infostates: Sequence[Sequence[str]]) -> list[Any]:
    """Returns a state of every infoset: the first in the order of histories, as in OpenSpiel's `TabularPolicy`.

    Args:
      infostates: for each player, its infostates as from `enumerate_game`.

    Returns:
      The states, player by player in the order of `infostates`.

    Raises:
      InconsistentInfosetError: the game has no such infostate.
    """
    states_of: list[dict[str, Any]] = [dict.fromkeys(names) for names in infostates]
    num_missing = sum(map(len, infostates))
    for state, _ in self.states():
      if not num_missing:
        break
      player = self.mover(state)
      if player >= 0:
        states, infostate = states_of[player], self.infostate(state)
        if infostate in states and states[infostate] is None:
          states[infostate] = state
          num_missing -= 1
    for player, states in enumerate(states_of):
      for infostate, state in states.items() if num_missing else ():
        if state is None:
          raise errors.InconsistentInfosetError(
            f"{self.game} has no infostate {infostate!r} of player {player}."
          )
    return [state for states in states_of for state in states.values()]

  def look_up(self, state: Any, player: int | None = None) -> tuple[str, list[int]]:
    """Returns the infostate and legal actions of a state at which a player moves.

    Args:
      state: a state of the game, a `ViewedState`, or a state of the simultaneous game if the view's game is its
        turn-based version.
      player: the player; None for the player to move. It is required if several players move at once.
    """
    if not isinstance(state, pyspiel.State):
      return state.information_state_string(), state.legal_actions()
    if self._is_simultaneous(state):
      mover = state.current_player() if player is None else player
      if self.action_filter is None and self._infostate is None:
        # The infostate in OpenSpiel's turn-based version of the game.
        infostate = f"Current player: {mover}\n{state.information_state_string(mover)}"
        return infostate, state.legal_actions(mover)
      state = self._in_turns(state, mover)
    return self.infostate(state), self.legal_actions(state)

  def check_state(self, state: Any) -> None:
    """Checks that `look_up` takes a state.

    Raises:
      ArgumentError: it is a state of another game, or no state.
    """
    game, simultaneous = checked_calls.game_of(state), self.game.get_parameters().get("game", {})
    accepted = _name_and_players(self.game), (simultaneous.get("name"), self.num_players)
    if _name_and_players(game) not in accepted:
      raise errors.ArgumentError(f"The state is one of {game}, not of {self.game}.")

  def own_state(self, state: Any, player: int) -> Any:
    """Converts a state that `look_up` takes to a state of the view's game; raises the errors of `check_state`."""
    self.check_state(state)
    if isinstance(state, ViewedState):
      return state.unrestricted
    if self._is_simultaneous(state):
      return self._in_turns(state, player)
    return state

  def _name_of_mover(self, state: Any) -> str:
    return self.named(state, self.mover(state))

  def _is_simultaneous(self, state: Any) -> bool:
    """Returns whether the view's game is turn-based and the state is one of the simultaneous game."""
    return self._is_turn_based and not checked_calls.is_turn_based(state.get_game())

  def _in_turns(self, state: Any, player: int) -> Any:
    """Converts a simultaneous state to a turn-based one at which `player` moves, after the others' first actions."""
    result = self.new_initial_state()
    for action in state.history():
      result.apply_action(action)
    while result.current_player() != player:
      result.apply_action(result.legal_actions()[0])
    return result

  def _kept_actions(self, state: Any) -> list[int]:
    legal = self._all_actions(state)
    kept: Any = self.action_filter(state, list(legal)) if self.action_filter is not None else legal
    try:
      kept = list(kept)
      different = set(kept)
      is_right = 0 < len(different) == len(kept) and different <= set(legal)
    except TypeError:  # The answer is not iterable, or has elements that can't be compared.
      is_right = False
    if not is_right:
      raise errors.ArgumentError(
        f"The action filter turns the legal actions {legal} after the history "
        f"[{state.history_str()}] into {kept}; it must keep at least one of them, each once."
      )
    return sorted(action for action in legal if action in different)

  def _possible_outcomes(self, state: Any) -> list[tuple[int, float]]:
    # An endgame lists a million deals at its root, which are filtered once.
    if state.is_initial_state():
      return [*self._first_outcomes]
    return [outcome for outcome in self._all_outcomes(state) if outcome[1] > 0]

  @functools.cached_property
  def _first_outcomes(self) -> list[tuple[int, float]]:
    root = self.new_initial_state()
    return [outcome for outcome in self._all_outcomes(root) if outcome[1] > 0]


def _method(state_type: type[Any], name: str) -> Callable[..., Any]:
  """Returns a method of states as a function of a state.

  A call of `pyspiel.State`'s function is faster than a method call. It is used unless the state's class overrides it.
  """
  function: Callable[..., Any] = getattr(pyspiel.State, name)
  if getattr(state_type, name, None) is not function:
    return lambda state, *arguments: getattr(state, name)(*arguments)
  # The C function inside pybind11's wrapper is faster still.
  inner: Callable[..., Any] = getattr(function, "__func__", function)
  return inner


class ViewedGame:
  """A game with the actions, infostates and returns of a `GameView`, for OpenSpiel's algorithms in Python.

  OpenSpiel's C++ algorithms see the unrestricted game and must not be used: `exploitability.nash_conv(game, policy,
  use_cpp_br=False)`. Attributes that are not defined here are those of the unrestricted game.
  """

  def __init__(self, view: GameView) -> None:
    """Takes the view."""
    self._view = view

  def new_initial_state(self) -> "ViewedState":
    """Returns the root."""
    return ViewedState(self, self._view, self._view.new_initial_state())

  def new_initial_states(self) -> "list[ViewedState]":
    """Returns a list with the root, since games that can be compiled have one root."""
    return [self.new_initial_state()]

  def __getattr__(self, name: str) -> Any:
    # `copy` and `pickle` read attributes before `_view` exists.
    if name.startswith("_"):
      raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
    return getattr(self._view.game, name)

  def __str__(self) -> str:
    return str(self._view.game)


class ViewedState:
  """A state of a `ViewedGame`."""

  def __init__(self, game: ViewedGame, view: GameView, state: Any) -> None:
    """Takes a state of OpenSpiel."""
    self._game = game
    self._view = view
    self._state = state

  def get_game(self) -> ViewedGame:
    """Returns the game."""
    return self._game

  @property
  def unrestricted(self) -> Any:
    """OpenSpiel's own state."""
    return self._state

  def clone(self) -> "ViewedState":
    """Returns a copy."""
    return ViewedState(self._game, self._view, self._state.clone())

  def child(self, action: int) -> "ViewedState":
    """Returns the state after an action."""
    return ViewedState(self._game, self._view, self._state.child(action))

  def chance_outcomes(self) -> list[tuple[int, float]]:
    """Returns the (action, probability) pairs of the view."""
    return self._view.chance_outcomes(self._state)

  def legal_actions(self, player: int | None = None) -> list[int]:
    """Returns the actions of the view; none for a player who does not move."""
    state = self._state
    if state.is_terminal() or player not in (None, state.current_player()):
      return []
    if state.is_chance_node():
      return [action for action, _ in self.chance_outcomes()]
    return self._view.legal_actions(state)

  def legal_actions_mask(self, player: int | None = None) -> list[int]:
    """Returns a mask of `legal_actions`: 1 at legal actions, 0 elsewhere."""
    game = self._view.game
    chance = self._state.is_chance_node()
    mask = [0] * (game.max_chance_outcomes() if chance else game.num_distinct_actions())
    for action in self.legal_actions(player):
      mask[action] = 1
    return mask

  def returns(self) -> list[float]:
    """Returns the view's return of a terminal state for each player."""
    return list(self._view.returns(self._state))

  def player_return(self, player: int) -> float:
    """Returns one player's element of `returns`."""
    return self.returns()[player]

  def information_state_string(self, player: int | None = None) -> str:
    """Returns the view's infostate of a player; by default, of the player who moves."""
    if player in (None, self._state.current_player()):
      return self._view.infostate(self._state)
    return self._view.named(self._state, player)

  def __getattr__(self, name: str) -> Any:
    if name.startswith("_"):
      raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
    return getattr(self._state, name)

  def __str__(self) -> str:
    return str(self._state)


def _name_and_players(game: Any) -> tuple[str, int]:
  return game.get_type().short_name, game.num_players()


def _unpickled(make: Callable[..., GameView], _: Any, *arguments: Any) -> GameView:
  """Makes a view; the second argument of a pickle registers OpenSpiel's games in Python first."""
  return make(*arguments)
