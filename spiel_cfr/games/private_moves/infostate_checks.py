"""Checks that infostates say what their owner has seen and done, by the keys of worlds, no more and no less."""

import collections
import random
from typing import Any, NamedTuple

from spiel_cfr import errors
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import imperfect_recall
from spiel_cfr.games.private_moves.world_keys import WorldKeys

# How many short histories are compared, the shortest first, and how many random ones, to their ends.
SHORT, RANDOM = 5_000, 300
_LONGEST = 300


class Memory(NamedTuple):
  """Numbers of what players remember at a state.

  Attributes:
    known: of each player, the sequence of what it has seen and done.
    told: of each player, the sequence of its infostates and actions.
  """

  known: tuple[int, int] = (0, 0)
  told: tuple[int, int] = (0, 0)


class InfostateChecks:
  """Infostates met in the histories so far."""

  def __init__(self, view: GameView, keys: WorldKeys) -> None:
    """Takes the game and the keys of its worlds."""
    self._view, self._keys = view, keys
    self._numbers: dict[tuple[int, Any], int] = {}
    # Of each player, the infostate of what it has seen and done, and the other way round; each with a history.
    self._names: tuple[dict[int, tuple[str, list[int]]], ...] = ({}, {})
    self._of_name: tuple[dict[str, tuple[int, int, list[int]]], ...] = ({}, {})

  def arrive(self, state: Any, memory: Memory) -> Memory:
    """Adds what the player to move sees, and compares its infostate with those of other histories.

    Raises:
      PrivateMovesError: an infostate says more or less than what its owner has seen and done.
      ImperfectRecallError: it forgets what its owner was told before.
    """
    player = state.current_player()
    if player < 0:
      return memory
    name, history = self._view.infostate(state), state.history()
    known = self._longer(memory.known, player, self._keys.seen(state, player))
    told = self._longer(memory.told, player, name)
    by_name = self._of_name[player].setdefault(name, (known[player], told[player], history))
    if by_name[1] != told[player]:
      raise imperfect_recall(self._view, state)
    by_known = self._names[player].setdefault(known[player], (name, history))
    for is_same, other, difference in (
      (by_name[0] == known[player], by_name[2], "differ, and are one infostate"),
      (by_known[0] == name, by_known[1], "are the same, and have different infostates"),
    ):
      if not is_same:
        raise errors.PrivateMovesError(
          f"By what player {player} has seen and done, the histories {other} and {history} {difference}. Worlds are "
          f"told by {self._keys}."
        )
    return Memory(known, told)

  def after(self, memory: Memory, mover: int, action: int) -> Memory:
    """Adds the action of a player; chance remembers nothing."""
    if mover < 0:
      return memory
    known, told = (self._longer(each, mover, action) for each in memory)
    return Memory(known, told)

  def _longer(self, numbers: tuple[int, int], player: int, added: Any) -> tuple[int, int]:
    number = self._numbers.setdefault((numbers[player], added), 1 + len(self._numbers))
    return (number, numbers[1]) if player == 0 else (numbers[0], number)


def check_infostates(view: GameView, keys: WorldKeys) -> None:
  """Compares the infostates of short histories and of random ones, before worlds are looked for.

  Raises:
    PrivateMovesError: see `InfostateChecks.arrive` and `check_length`.
    ImperfectRecallError: see there.
  """
  checks, choice = InfostateChecks(view, keys), random.Random(0)

  def moves_of(state: Any) -> list[int]:
    if state.is_chance_node():
      return [action for action, _ in view.chance_outcomes(state)]
    return view.legal_actions(state)

  queue = collections.deque([(view.new_initial_state(), Memory())])
  for _ in range(SHORT):
    if not queue:
      return
    state, memory = queue.popleft()
    check_length(state)
    if not state.is_terminal():
      memory = checks.arrive(state, memory)
      mover = state.current_player()
      queue += [(state.child(move), checks.after(memory, mover, move)) for move in moves_of(state)]
  for _ in range(RANDOM):
    state, memory = view.new_initial_state(), Memory()
    while not state.is_terminal():
      memory, mover = checks.arrive(state, memory), state.current_player()
      move = choice.choice(moves_of(state))
      memory = checks.after(memory, mover, move)
      state.apply_action(move)
      check_length(state)


def check_length(state: Any) -> None:
  """Refuses histories that are so long that the game may never end.

  Raises:
    PrivateMovesError: the history has more than 300 moves.
  """
  if state.move_number() > _LONGEST:
    raise errors.PrivateMovesError(
      f"A history has not ended after {_LONGEST:,} moves, and begins with {state.history()[:20]}. Games in private "
      "moves form are shorter."
    )
