"""Random games of private moves, written in Python as OpenSpiel has it, and some that almost are.

The truth is a random graph of cores in layers. At each core a player or chance moves. A player's move may fail, which
it alone notices, and which leaves the core as it is; else it leads to a core of the next layer, of which each player
sees something. Odd on purpose: views that hardly tell anything, so that infosets hold histories of different lengths;
players who move twice in a row; action numbers with gaps; payoffs that are not zero-sum.

`FLAWS` are what makes such a game another one.
"""

import random
from typing import Any

import pyspiel
from python_games import game_type

CHANCE, TERMINAL = int(pyspiel.PlayerId.CHANCE), int(pyspiel.PlayerId.TERMINAL)
FLAWS = (
  "returns depend on failed attempts",
  "failed attempts are seen",
  "legal actions depend on the other's attempts",
  "chance depends on what a player has seen",
  "moves depend on what the other has seen",
  "moves depend on what no key tells",
  "infostates forget",
  "attempts never end",
)
_WIDTH, _VIEWS, _MOST_ACTIONS = 3, 3, 9


class PrivateMovesGame(pyspiel.Game):
  """A random game.

  Attributes:
    flaw: what is wrong, "" for nothing.
    depth: the number of layers of cores above the last.
    abrupt: whether each move ends the turn, failed attempts too; then players take turns.
  """

  def __init__(
    self, seed: int, flaw: str = "", *, depth: int = 4, zero_sum: bool = True, abrupt: bool = False
  ):
    """Draws a game, the same for the same arguments."""
    self.flaw, self.depth, self._seed, self._drawn = flaw, depth, seed, dict[Any, int]()
    self.zero_sum, self.abrupt = zero_sum, abrupt
    utility = pyspiel.GameType.Utility
    kind = game_type(
      "private_moves", utility.ZERO_SUM if zero_sum else utility.GENERAL_SUM, observations=True
    )
    bounds = -4.0, 4.0
    info = pyspiel.GameInfo(_MOST_ACTIONS, 3, 2, *bounds, 0.0 if zero_sum else None, 4 * depth)
    super().__init__(kind, info, {})

  def draw(self, count: int, *key: Any) -> int:
    """Returns a number below `count` that depends on the seed and the key."""
    if key not in self._drawn:
      self._drawn[key] = random.Random(repr((self._seed, key))).randrange(10**6)
    return self._drawn[key] % count

  def mover(self, layer: int, core: int, turn: int) -> int:
    """Returns the player to move at a core."""
    if layer == self.depth:
      return TERMINAL
    if self.abrupt:
      return CHANCE if layer == 0 and self.draw(2, "chance begins") else turn
    return (0, 1, 0, 1, CHANCE)[self.draw(5, "mover", layer, core)]

  def new_initial_state(self) -> "PrivateMovesState":
    """Returns the root."""
    return PrivateMovesState(self)

  def __deepcopy__(self, memo: Any) -> "PrivateMovesGame":
    """Returns the game itself, which is immutable."""
    return self

  def num_distinct_actions(self) -> int:
    """Returns the number of actions."""
    return _MOST_ACTIONS


class PrivateMovesState(pyspiel.State):
  """A state: a core, and each player's observations."""

  def __init__(self, game: PrivateMovesGame) -> None:
    """Begins at the first core."""
    super().__init__(game)
    self._game = game
    self._core = (0, 0)
    # What each player sees, and how often it has failed at this core.
    self._views, self._failed = (0, 0), 0
    # What each player has seen and done at its decisions.
    self._known: tuple[tuple[Any, ...], ...] = ((), ())
    self._all_failed = 0
    # Whose turn it is in abrupt games, and how often players failed at this core.
    self._turn, self._in_vain = 0, 0

  def current_player(self) -> int:
    """Returns the player to move."""
    return self._game.mover(*self._core, self._turn)

  def is_terminal(self) -> bool:
    """Returns whether it is over."""
    return self.current_player() == TERMINAL

  def _seen(self, player: int) -> tuple[int, int]:
    failed = self._failed if player == self.current_player() else 0
    return self._views[player], failed

  def _legal_actions(self, player: int) -> list[int]:
    """Returns the player's actions, by what it has seen."""
    game = self._game
    key: tuple[Any, ...] = ("legal", player, *self._seen(player))
    if game.flaw == "legal actions depend on the other's attempts":
      key += (self._all_failed % 2,)
    count = 1 + game.draw(3, *key)
    return sorted({game.draw(_MOST_ACTIONS, *key, place) for place in range(count)})

  def chance_outcomes(self) -> list[tuple[int, float]]:
    """Returns the moves of chance, by the core."""
    key: tuple[Any, ...] = ("chance", *self._core)
    if self._game.flaw == "chance depends on what a player has seen":
      key += (self._views[0],)
    weights = [1 + self._game.draw(4, *key, outcome) for outcome in range(_WIDTH)]
    return [(outcome, weight / sum(weights)) for outcome, weight in enumerate(weights)]

  def _apply_action(self, action: int) -> None:
    """Fails, or leads to the next layer of cores."""
    game, player = self._game, self.current_player()
    if player == CHANCE:
      self._step(action, None)
      return
    key: tuple[Any, ...] = (*self._core, player, *self._seen(player), action)
    before, after = self._known[:player], self._known[player + 1 :]
    self._known = (*before, (*self._known[player], self._seen(player), action), *after)
    if game.abrupt:
      self._move(player, (*key, self._in_vain))
      return
    if game.flaw == "moves depend on what the other has seen":
      key += (self._views[1 - player],)
    if game.flaw == "moves depend on what no key tells":
      key += (self._all_failed % 2,)
    if self._failed == 0 and game.draw(3, "fails", *key) == 0:
      self._all_failed += 1
      if game.flaw == "attempts never end":
        return
      self._failed = 1
      self._look(player, game.draw(_VIEWS, "failed", *key))
      if game.flaw == "failed attempts are seen":
        self._look(1 - player, (self._views[1 - player] + 1) % _VIEWS)
      return
    view = game.draw(_VIEWS, "own view", *key)
    self._step(game.draw(_WIDTH, "event", *key), player)
    self._look(player, view)

  def _move(self, player: int, key: tuple[Any, ...]) -> None:
    """Makes a move of an abrupt game. The opponent may see something of a failed attempt."""
    game, other = self._game, 1 - player
    self._turn = other
    if self._in_vain < 2 and game.draw(3, "fails", *key) == 0:
      self._look(player, game.draw(_VIEWS, "failed", *key))
      self._look(other, game.draw(_VIEWS, "fail", *self._core, self._in_vain, self._views[other]))
      self._in_vain += 1
      return
    view = game.draw(_VIEWS, "own view", *key)
    self._step(game.draw(_WIDTH, "event", *key), player)
    self._look(player, view)
    self._in_vain = 0

  def _step(self, event: int, mover: int | None) -> None:
    """Moves to another core; the other players observe something of it."""
    for player in (0, 1):
      if player != mover:
        seen = self._game.draw(_VIEWS, "view", player, *self._core, event, self._views[player])
        self._look(player, seen)
    self._core, self._failed = (self._core[0] + 1, event), 0

  def _look(self, player: int, view: int) -> None:
    self._views = (view, self._views[1]) if player == 0 else (self._views[0], view)

  def _action_to_string(self, player: int, action: int) -> str:
    """Returns a name."""
    return f"move {action}"

  def returns(self) -> list[float]:
    """Returns the payoffs, by the last core."""
    if not self.is_terminal():
      return [0.0, 0.0]
    key: tuple[Any, ...] = ("returns", *self._core)
    if self._game.flaw == "returns depend on failed attempts":
      key += (self._all_failed % 2,)
    gain = float(self._game.draw(9, *key) - 4)
    return [gain, -gain if self._game.zero_sum else float(self._game.draw(9, *key, 1) - 4)]

  def observation_string(self, player: int) -> str:
    """Returns a player's observation."""
    return str(self._seen(player))

  def information_state_string(self, player: int | None = None) -> str:
    """Returns all that a player has seen and done, and what it sees."""
    player = self.current_player() if player is None else player
    known = self._known[player]
    if self._game.flaw == "infostates forget":
      known = known[2:]
    return f"player {player}: {known} {self._seen(player)}"

  def __str__(self) -> str:
    return str((self._core, self._in_vain))
