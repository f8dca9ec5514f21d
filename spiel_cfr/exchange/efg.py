"""Games in Gambit's extensive form, which Gambit and OpenSpiel's `efg_game` read.

The format is that of the Gambit manual, "The extensive game (.efg) file format".
"""

import os
from typing import Any

from spiel_cfr import errors
from spiel_cfr._util import arguments, files
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game


class _Names:
  """What infosets and actions are called, the same wherever they are met.

  OpenSpiel numbers labels in the order in which it meets them and sorts the actions of a node by these numbers, but not
  what follows them; so actions are written in that order.
  """

  def __init__(self, compiled: CompiledGame) -> None:
    self._view = compiled.view
    self._numbers = [
      {infostate: number for number, infostate in enumerate(own, 1)} for own in compiled.infostates
    ]
    self._labels: dict[tuple[int, str], dict[int, str]] = {}
    self._ids: list[dict[str, int]] = [{}, {}]

  def decision(self, state: Any) -> tuple[str, list[int]]:
    """Returns the line of a node at which a player moves, and the actions in its order."""
    player, infostate = state.current_player(), self._view.infostate(state)
    number = self._numbers[player].get(infostate)
    if number is None:
      raise errors.InconsistentInfosetError(
        f"The infostate {infostate!r} is not in the compiled game. Compile it again with its action filter."
      )
    actions = self._view.legal_actions(state)
    known = self._labels.get((player, infostate))
    if known is None:
      words = [state.action_to_string(player, action) for action in actions]
      if len(set(words)) < len(words):
        words = [f"{word} ({action})" for word, action in zip(words, actions, strict=True)]
      known = self._labels[player, infostate] = dict(zip(actions, words, strict=True))
    ordered = self._in_order(known, 0)
    labels = " ".join(_quoted(known[action]) for action in ordered)
    return f'p "" {player + 1} {number} {_quoted(infostate)} {{ {labels} }} 0', ordered

  def chance(self, state: Any) -> tuple[str, list[int]]:
    """Returns the same of a node at which chance moves."""
    outcomes = dict(self._view.chance_outcomes(state))
    words = {action: state.action_to_string(-1, action) for action in outcomes}
    if len(set(words.values())) < len(words):
      words = {action: f"{word} ({action})" for action, word in words.items()}
    ordered = self._in_order(words, 1)
    labels = " ".join(f"{_quoted(words[action])} {_number(outcomes[action])}" for action in ordered)
    return f'c "" {1 + len(self._ids[1])} "" {{ {labels} }} 0', ordered

  def _in_order(self, words: dict[int, str], kind: int) -> list[int]:
    ids = self._ids[kind]
    return sorted(words, key=lambda action: ids.setdefault(words[action], len(ids)))


def save_efg(game: AnyGame, path: str | os.PathLike[str], max_nodes: int = 10_000_000) -> None:
  """Writes a game to a file in Gambit's extensive form.

      save_efg("leduc_poker", "leduc.efg")
      pyspiel.load_game("efg_game(filename=leduc.efg)")

  Infosets are named by their infostates, line breaks as spaces; actions by OpenSpiel's words for them. Probabilities
  and payoffs have all their digits. The file is whole or not there.

  Args:
    game: a compiled game, or what `compile_game` takes; what its action filter leaves out is left out.
    path: where to.
    max_nodes: how many histories the game may have.

  Raises:
    GameTooLargeError: the game has more histories.
    ArgumentError: `max_nodes` is not a positive integer.
    GameError: see `compile_game`.
    OSError: the file can't be written.
  """
  compiled = compile_game(game)
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  names = _Names(compiled)
  players = " ".join(_quoted(f"Player {player}") for player in range(compiled.num_players))
  lines = 0
  with files.replacing(path) as file:
    file.write(f'EFG 2 R {_quoted(compiled.game_string)} {{ {players} }} ""\n'.encode())
    stack, outcomes = [compiled.view.new_initial_state()], 0
    while stack:
      state = stack.pop()
      lines += 1
      if lines > max_nodes:
        raise errors.GameTooLargeError(
          f"The game has more than max_nodes={max_nodes:,} histories, and each is a line of the file."
        )
      if state.is_terminal():
        outcomes += 1
        payoffs = " ".join(map(_number, state.returns()))
        line = f't "" {outcomes} "" {{ {payoffs} }}'
      else:
        node = names.chance if state.is_chance_node() else names.decision
        line, ordered = node(state)
        stack += [state.child(action) for action in reversed(ordered)]
      file.write(line.encode() + b"\n")


def _quoted(text: str) -> str:
  """Returns a text as the format has it: on one line, without what would end it."""
  return '"' + " ".join(text.split()).replace("\\", "/").replace('"', "'") + '"'


def _number(value: float) -> str:
  """Returns a number with all its digits, as a fraction of powers of ten where it would need an exponent."""
  text = repr(float(value))
  return text if "e" not in text else f"{value:.1074f}".rstrip("0")
