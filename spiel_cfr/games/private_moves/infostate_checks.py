"""Checks that the infostates of a player contain exactly what it has seen and done.

What a player has seen is defined by the keys of worlds (`world_keys`).
"""

import collections
import random
from typing import Any, NamedTuple

from spiel_cfr import errors
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import imperfect_recall
from spiel_cfr.games.private_moves.world_keys import WorldKeys

# The number of shortest histories that are compared, and of random ones.
SHORT, RANDOM = 5_000, 300
# The largest number of moves of a history.
_LONGEST = 300


class Memory(NamedTuple):
  """Both players' memories of a history. Equal memories have equal numbers.

  Attributes:
    seen: tuple of int (2,). The number of all that each player has seen and done.
    infostates: tuple of int (2,). The number of each player's infostates and actions so far.
  """

  seen: tuple[int, int] = (0, 0)
  infostates: tuple[int, int] = (0, 0)


class InfostateChecks:
  """Infostates of all histories so far, and comparisons with the next one."""

  def __init__(self, view: GameView, keys: WorldKeys) -> None:
    """Takes the game and the keys of its worlds."""
    self._view, self._keys = view, keys
    self._numbers: dict[tuple[int, Any], int] = {}
    # For each player, by `Memory.seen`: the infostate, and the first history. By infostate: `Memory.seen`,
    # `Memory.infostates`, and the first history.
    self._by_seen: tuple[dict[int, tuple[str, list[int]]], ...] = ({}, {})
    self._by_infostate: tuple[dict[str, tuple[int, int, list[int]]], ...] = ({}, {})

  def arrive(self, state: Any, memory: Memory) -> Memory:
    """Returns the memories with what the player to move sees now, and compares its infostate with earlier ones.

    Raises:
      PrivateMovesError: an infostate contains more or less than what the player has seen and done.
      ImperfectRecallError: the player forgets an earlier infostate or action.
    """
    player = state.current_player()
    if player < 0:
      return memory
    infostate, history = self._view.infostate(state), state.history()
    seen = self._longer(memory.seen, player, self._keys.seen(state, player))
    infostates = self._longer(memory.infostates, player, infostate)
    first_seen, first_infostates, first_history = self._by_infostate[player].setdefault(
      infostate, (seen[player], infostates[player], history)
    )
    if first_infostates != infostates[player]:
      raise imperfect_recall(self._view, state)
    infostate_of_seen, history_of_seen = self._by_seen[player].setdefault(
      seen[player], (infostate, history)
    )
    for agrees, other, difference in (
      (first_seen == seen[player], first_history, "differ, but have the same infostate"),
      (
        infostate_of_seen == infostate,
        history_of_seen,
        "are the same, but have different infostates",
      ),
    ):
      if not agrees:
        raise errors.PrivateMovesError(
          f"By what player {player} has seen and done, the histories {other} and {history} {difference}. Worlds are "
          f"identified by {self._keys}."
        )
    return Memory(seen, infostates)

  def after(self, memory: Memory, mover: int, action: int) -> Memory:
    """Returns the memories after a move. Moves of chance change none."""
    if mover < 0:
      return memory
    seen, infostates = (self._longer(numbers, mover, action) for numbers in memory)
    return Memory(seen, infostates)

  def _longer(self, numbers: tuple[int, int], player: int, added: Any) -> tuple[int, int]:
    number = self._numbers.setdefault((numbers[player], added), 1 + len(self._numbers))
    return (number, numbers[1]) if player == 0 else (numbers[0], number)


def check_infostates(view: GameView, keys: WorldKeys) -> None:
  """Compares the infostates of short histories and of random ones, before worlds are searched.

  Raises:
    PrivateMovesError: see `InfostateChecks.arrive` and `check_has_end`.
    ImperfectRecallError: see `InfostateChecks.arrive`.
  """
  checks, choice = InfostateChecks(view, keys), random.Random(0)

  def moves_of(state: Any) -> list[int]:
    if state.is_chance_node():
      return [action for action, _ in view.chance_outcomes(state)]
    return view.legal_actions(state)

  queue, room = collections.deque([(view.new_initial_state(), Memory())]), SHORT
  for _ in range(SHORT):
    if not queue:
      return
    state, memory = queue.popleft()
    check_has_end(state)
    if not state.is_terminal():
      memory = checks.arrive(state, memory)
      # A state may have millions of chance outcomes.
      mover, moves = state.current_player(), moves_of(state)[:room] if room else []
      room -= len(moves)
      queue += [(state.child(move), checks.after(memory, mover, move)) for move in moves]
  for _ in range(RANDOM):
    state, memory = view.new_initial_state(), Memory()
    while not state.is_terminal():
      memory, mover = checks.arrive(state, memory), state.current_player()
      move = choice.choice(moves_of(state))
      memory = checks.after(memory, mover, move)
      state.apply_action(move)
      check_has_end(state)


def check_has_end(state: Any) -> None:
  """Checks the length of a history; a very long one may have no end.

  Raises:
    PrivateMovesError: the history has more than 300 moves.
  """
  if state.move_number() > _LONGEST:
    raise errors.PrivateMovesError(
      f"A history has not ended after {_LONGEST:,} moves; it begins with {state.history()[:20]}. Games in private "
      "moves form must be shorter."
    )
