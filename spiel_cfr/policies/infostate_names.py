"""Names of infosets in a policy's table: those of the compiled game, or OpenSpiel's information state strings.

The two differ in a game compiled with `infostate`, and in turn-based versions of simultaneous games.
"""

import random
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import pyspiel
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.game_view import GameView

# The largest difference of two probabilities that are equal up to rounding.
TOLERANCE = 1e-6
# The number of infosets at which `_check_other_states` compares distributions, and of random states at each.
_DRAWN_INFOSETS, _DRAWN_STATES = 200, 10


def tabular_names(
  compiled: CompiledGame, policy: open_spiel_policy.TabularPolicy, player: int
) -> Sequence[str]:
  """Returns the names that a tabular policy has for a player's infosets, in order of discovery."""
  game_type, infostates = policy.game_type, compiled.infostates[player]
  if game_type is None or game_type.dynamics != pyspiel.GameType.Dynamics.SIMULTANEOUS:
    return infostates
  # OpenSpiel's turn-based version puts a line before the simultaneous game's names.
  return [infostate.partition("\n")[2] for infostate in infostates]


def names_in_table(
  compiled: CompiledGame,
  player: int,
  names: Sequence[str],
  table: Container[str],
  read_row: Callable[[str], dict[int, float]],
) -> Iterable[str]:
  """Returns the names under which a table lists a player's infosets, in order of discovery.

  Args:
    compiled: the game.
    player: the player.
    names: the names of the player's infosets in the compiled game, which are tried first. Then OpenSpiel's are tried.
    table: the names in the table.
    read_row: returns action -> probability for a name in the table.

  Raises:
    PolicyError: OpenSpiel has several names for an infoset, and the table has different distributions for them.
  """
  if not len(names) or names[0] in table or not _has_other_names(compiled):
    return names
  states = compiled.first_states(player)
  if _open_spiel_name(states[0]) not in table:
    return names
  rng = random.Random(0)
  for index in range(0, len(states), -(-len(states) // _DRAWN_INFOSETS)):
    _check_other_states(compiled, states[index], rng, table, read_row)
  return map(_open_spiel_name, states)


def _check_other_states(
  compiled: CompiledGame,
  state: Any,
  rng: random.Random,
  table: Container[str],
  read_row: Callable[[str], dict[int, float]],
) -> None:
  """Checks that a table has one distribution for a state and for random other states of its infoset.

  The states are looked up under OpenSpiel's names.

  Raises:
    PolicyError: the table has different distributions for them.
  """
  name = _open_spiel_name(state)
  for _ in range(_DRAWN_STATES):
    other = _other_state(compiled.view, state, rng)
    alias = name if other is None else _open_spiel_name(other)
    if alias == name or name not in table or alias not in table:
      continue
    first, second = read_row(name), read_row(alias)
    if any(abs(first.get(a, 0.0) - second.get(a, 0.0)) > TOLERANCE for a in first | second):
      raise errors.PolicyError(
        f"The infostates {name!r} and {alias!r} are one infoset of {compiled.name} as it was compiled, but the "
        f"policy plays {first} at the first and {second} at the second. Compile a game in which these are "
        "two infosets."
      )


def _other_state(view: GameView, state: Any, choice: random.Random) -> Any | None:
  """Returns a state of the same infoset, with random moves of chance and of the other players.

  Args:
    view: the game.
    state: a state at which a player moves.
    choice: the source of random moves.

  Returns:
    The state, which may be equal to the given one; None if the random moves lead to another infoset.
  """
  player = state.current_player()
  actions_left = [move.action for move in state.full_history() if move.player == player]
  result = view.new_initial_state()
  while not result.is_terminal():
    mover = result.current_player()
    if mover == player and not actions_left:
      return result if view.infostate(result) == view.infostate(state) else None
    if result.is_chance_node():
      moves = [action for action, _ in view.chance_outcomes(result)]
    else:
      moves = view.legal_actions(result)
    move = actions_left.pop(0) if mover == player else choice.choice(moves)
    if move not in moves:
      return None
    result.apply_action(move)
  return None


def _has_other_names(compiled: CompiledGame) -> bool:
  """Returns True if the names of the game's infosets differ from OpenSpiel's."""
  try:
    return compiled.view.has_own_names
  except (errors.NoStatesError, errors.FileFormatError):
    return False


def _open_spiel_name(state: Any) -> str:
  return str(state.information_state_string())
