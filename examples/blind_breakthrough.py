"""Solves blind breakthrough, a game of hidden moves like Kriegspiel, written here in Python for OpenSpiel.

    python examples/blind_breakthrough.py --rows=4 --columns=2
    python examples/blind_breakthrough.py --rows=3 --columns=4

Each player has a row of pawns. A pawn moves a row ahead, straight to an empty square, or diagonally to an empty square
or to a pawn of the opponent, which it takes. A pawn on the opponent's first row wins, and so does the last pawn left.
Players see their own pawns, and how many the opponent has. A move straight ahead fails if a hidden pawn is in the way.
Then the mover tries another move, and the opponent does not notice.

So `str(state)` is the true board, which a failed attempt leaves as it is, and the game fits private moves form.
"""

from typing import Any

import pyspiel
from absl import app, flags

import spiel_cfr

_ROWS = flags.DEFINE_integer("rows", 4, "rows of the board", lower_bound=3)
_COLUMNS = flags.DEFINE_integer("columns", 2, "columns of the board", lower_bound=2)
_EXPLOITABILITY = flags.DEFINE_float(
  "exploitability", 1e-4, "exploitability at which to stop", lower_bound=0.0
)
# The middle one of a square's three actions: straight ahead. The others lead to the left and to the right.
_AHEAD = 1


class BlindBreakthrough(pyspiel.Game):  # type: ignore[misc]
  """Blind breakthrough. The actions of a pawn on a square are 3 * square, 3 * square + 1 and 3 * square + 2.

  Attributes:
    rows: int. The number of rows.
    columns: int. The number of columns, and of each player's pawns.
  """

  def __init__(self, rows: int, columns: int) -> None:
    """Takes the size of the board."""
    self.rows, self.columns = rows, columns
    game_type = pyspiel.GameType(
      short_name="blind_breakthrough",
      long_name="Blind breakthrough",
      dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
      chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
      information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
      utility=pyspiel.GameType.Utility.ZERO_SUM,
      reward_model=pyspiel.GameType.RewardModel.TERMINAL,
      max_num_players=2,
      min_num_players=2,
      provides_information_state_string=True,
      provides_information_state_tensor=False,
      provides_observation_string=True,
      provides_observation_tensor=False,
    )
    # Each move may follow a failed attempt of each pawn.
    most_moves = 2 * columns * rows * (1 + columns)
    info = pyspiel.GameInfo(3 * rows * columns, 0, 2, -1.0, 1.0, 0.0, most_moves)
    super().__init__(game_type, info, {})

  def new_initial_state(self) -> "BlindBreakthroughState":
    """Returns the state at the start."""
    return BlindBreakthroughState(self)


class BlindBreakthroughState(pyspiel.State):  # type: ignore[misc]
  """The true board, and what both players know about it."""

  def __init__(self, game: BlindBreakthrough) -> None:
    """Sets up the pawns: player 0's on the first row, player 1's on the last."""
    super().__init__(game)
    self._rows, self._columns = game.rows, game.columns
    first_row = frozenset(range(game.columns))
    last_row = frozenset(square + (game.rows - 1) * game.columns for square in first_row)
    self._pawns = (first_row, last_row)
    self._mover, self._winner = 0, -1
    # The failed attempts of this turn, and each player's observations and actions so far.
    self._failed: tuple[int, ...] = ()
    self._known: tuple[tuple[Any, ...], ...] = ((), ())

  def current_player(self) -> int:
    """Returns the player to move."""
    return self._mover if self._winner < 0 else int(pyspiel.PlayerId.TERMINAL)

  def is_terminal(self) -> bool:
    """Returns whether the game is over."""
    return self._winner >= 0

  def returns(self) -> list[float]:
    """Returns 1 for the winner and -1 for the loser."""
    return [[0.0, 0.0], [1.0, -1.0], [-1.0, 1.0]][self._winner + 1]

  def _target(self, player: int, action: int) -> int:
    """Returns the square that a move leads to; -1 beyond the left or right edge of the board."""
    square, direction = divmod(action, 3)
    column = square % self._columns + direction - _AHEAD
    if not 0 <= column < self._columns:
      return -1
    return square // self._columns * self._columns + column + self._columns * (1 - 2 * player)

  def _legal_actions(self, player: int) -> list[int]:
    """Returns the moves that look possible to a player, who sees only its own pawns."""
    own = self._pawns[player]
    moves = [3 * square + direction for square in sorted(own) for direction in range(3)]
    return [
      move
      for move in moves
      if move not in self._failed and self._target(player, move) not in own | {-1}
    ]

  def _apply_action(self, action: int) -> None:
    """Makes a move, or an attempt that fails."""
    player, target = self._mover, self._target(self._mover, action)
    known = (*self._known[player], self.observation_string(player), action)
    self._known = (known, self._known[1]) if player == 0 else (self._known[0], known)
    own, other = self._pawns[player], self._pawns[1 - player]
    if action % 3 == _AHEAD and target in other:
      self._failed = (*self._failed, action)
      return
    own, other = own - {action // 3} | {target}, other - {target}
    self._pawns = (own, other) if player == 0 else (other, own)
    self._mover, self._failed = 1 - player, ()
    if not other or target // self._columns == (self._rows - 1) * (1 - player):
      self._winner = player

  def _action_to_string(self, player: int, action: int) -> str:
    """Returns a name such as a1-b2."""
    begin, end = (
      f"{'abcdefgh'[square % self._columns]}{1 + square // self._columns}"
      for square in (action // 3, self._target(player, action))
    )
    return f"{begin}-{end}"

  def observation_string(self, player: int) -> str:
    """Returns a player's pawns, the number of the opponent's, and the player's failed attempts in this turn."""
    failed = sorted(self._failed) if player == self._mover else []
    return f"{sorted(self._pawns[player])} {len(self._pawns[1 - player])} {failed}"

  def information_state_string(self, player: int | None = None) -> str:
    """Returns all that a player has seen and done."""
    player = self._mover if player is None else player
    return f"player {player}: {[*self._known[player], self.observation_string(player)]}"

  def __str__(self) -> str:
    squares = range(self._rows * self._columns)
    return "".join(
      "w" if s in self._pawns[0] else "b" if s in self._pawns[1] else "." for s in squares
    )


def main(_: list[str]) -> None:
  game = spiel_cfr.games.compile_private_moves_game(BlindBreakthrough(_ROWS.value, _COLUMNS.value))
  print(game)
  print(f"{game.num_terminals:,} terminal histories, {game.num_core_histories:,} core histories")
  solution = spiel_cfr.solve(game, exploitability=_EXPLOITABILITY.value)
  print(f"value of player 0: {solution.value:z.4f} ± {solution.exploitability:z.1e}")
  state = game.view.new_initial_state()
  for action, probability in solution.policy.action_probabilities(state).items():
    print(f"{state.action_to_string(action)}: {probability:z.3f}")


if __name__ == "__main__":
  app.run(main)
