"""Random games in which the opponent sees a move only in part, written in Python as OpenSpiel has it, to be searched.

Chance deals each of two players a type, by a random law of both. What follows is a random tree of what all have seen:
of some moves the opponent can't tell two of three actions apart, so that a public state has histories of different
moves too. Chance may move on the way. Payoffs depend on everything.
"""

import numpy as np
import pyspiel
from python_games import game_type

_DEALS = 9


class PartlySeenGame(pyspiel.Game):
  """A random game, the same for the same arguments."""

  def __init__(self, seed: int, *, num_types: tuple[int, int] = (3, 2), depth: int = 4, total=0.0):
    """Draws the deal; everything else is drawn later, by seeds."""
    self.seed, self.num_types, self.depth, self.total = seed, num_types, depth, total
    self.deal = self.draw(1).dirichlet(np.ones(num_types[0] * num_types[1])).tolist()
    utility = pyspiel.GameType.Utility
    kind = game_type("partly_seen", utility.CONSTANT_SUM if total else utility.ZERO_SUM)
    super().__init__(kind, pyspiel.GameInfo(3, _DEALS, 2, -9.0, 9.0, total, depth + 1), {})

  def draw(self, *numbers: int) -> np.random.Generator:
    """Returns random numbers determined by the arguments."""
    return np.random.default_rng([self.seed, *numbers])

  def __deepcopy__(self, memo):
    """Returns the game itself, which is immutable."""
    return self

  def new_initial_state(self):
    """Returns the root."""
    return PartlySeenState(self)


class PartlySeenState(pyspiel.State):
  """A state: the moves so far, and each player's observations."""

  def __init__(self, game: PartlySeenGame) -> None:
    """Begins before the deal."""
    super().__init__(game)
    self._game = game
    self._moves: list[int] = []
    self._seen: tuple[list[int], list[int]] = ([], [])
    self._public: list[int] = []
    self._mover, self._count, self._hidden = int(pyspiel.PlayerId.CHANCE), len(game.deal), False

  def current_player(self):
    """Returns the player to move."""
    return self._mover

  def is_terminal(self):
    """Returns whether it is over."""
    return self._mover == pyspiel.PlayerId.TERMINAL

  def is_chance_node(self):
    """Returns whether chance is to move."""
    return self._mover == pyspiel.PlayerId.CHANCE

  def chance_outcomes(self):
    """Returns outcomes and probabilities."""
    if not self._moves:
      return list(enumerate(self._game.deal))
    chances = self._game.draw(7, *[1 + each for each in self._public]).dirichlet(np.ones(2))
    return list(enumerate(chances.tolist()))

  def legal_actions(self, player=None):
    """Returns the legal actions."""
    if self.is_terminal() or player not in (None, self._mover):
      return []
    return list(range(self._count))

  _legal_actions = legal_actions

  def _apply_action(self, action):
    if not self._moves:
      types = divmod(action, self._game.num_types[1])
      self._seen = ([types[0]], [types[1]])
      self._public = [0]
    else:
      coarse = min(action, 1) if self._hidden else action
      for player in (0, 1):
        self._seen[player].append(action if player == self._mover else coarse)
      self._public = [*self._public, coarse]
    self._moves = [*self._moves, action]
    rng, depth = self._game.draw(5, *[1 + each for each in self._public]), len(self._public) - 1
    chance, mover, count, hidden, ends = rng.random(5)
    if depth >= self._game.depth or (depth > 1 and ends < 0.15):
      self._mover = int(pyspiel.PlayerId.TERMINAL)
    elif chance < 0.2 and 0 < depth < self._game.depth - 1:
      self._mover, self._count, self._hidden = int(pyspiel.PlayerId.CHANCE), 2, False
    else:
      self._mover, self._count = int(mover < 0.5), 2 + int(count < 0.5)
      self._hidden = self._count == 3 and hidden < 0.5

  def information_state_string(self, player=None):
    """Returns a player's observations."""
    player = self._mover if player is None else player
    return f"{player}: {self._seen[player]}"

  def returns(self):
    """Returns the payoffs, different on every path."""
    if not self.is_terminal():
      return [0.0, 0.0]
    own = float(self._game.draw(3, *[1 + each for each in self._moves]).normal())
    return [own, self._game.total - own]

  def _action_to_string(self, player, action):
    return f"{player} does {action}"

  def __str__(self):
    return " ".join(map(str, self._moves))

  def __deepcopy__(self, memo):
    """Returns a copy, as `clone` needs it."""
    copy = PartlySeenState(self._game)
    for action in self._moves:
      copy.apply_action(action)
    return copy
