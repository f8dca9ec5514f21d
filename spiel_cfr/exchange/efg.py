"""Games in Gambit's extensive form, which Gambit and OpenSpiel's `efg_game` read.

The format is that of the Gambit manual, "The extensive game (.efg) file format". Gambit computes with fractions, and
requires chance probabilities that sum to exactly one.
"""

import functools
import os
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from spiel_cfr import errors
from spiel_cfr._util import arguments, files
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL, action_name

# Fractions with a larger denominator are written as decimals. OpenSpiel reads numerators as integers of 32 bits.
_MAX_DENOMINATOR = 10**6
_MAX_NUMERATOR = 2**31 - 1
# The largest relative difference between a chance probability and its fraction: OpenSpiel's products are rounded.
_ROUNDING = 1e-14
# More digits than a sum of probabilities can have: the smallest has 324 after the point.
_DIGITS = 1000


class _Names:
  """Names of infosets and actions, consistent over the whole game.

  OpenSpiel numbers action labels in order of appearance, and sorts the labels of a node by these numbers, but not its
  children. So actions are written in the order of these numbers.
  """

  def __init__(self, compiled: CompiledGame) -> None:
    self._view = compiled.view
    self._numbers = [
      {infostate: number for number, infostate in enumerate(infostates, 1)}
      for infostates in compiled.infostates
    ]
    self._labels: dict[tuple[int, str], dict[int, str]] = {}
    self._ids: list[dict[str, int]] = [{}, {}]
    self._num_chance_nodes = 0

  def decision(self, state: Any) -> tuple[str, list[int]]:
    """Returns the line of a decision node, and its actions in the line's order."""
    player, infostate = state.current_player(), self._view.infostate(state)
    number = self._numbers[player].get(infostate)
    if number is None:
      raise errors.InconsistentInfosetError(
        f"The infostate {infostate!r} is not in the compiled game. Compile it again with its action filter."
      )
    actions = self._view.legal_actions(state)
    words = self._labels.get((player, infostate))
    if words is None:
      words = {action: action_name(state, player, action) for action in actions}
      words = self._labels[player, infostate] = distinct(words)
    ordered = self._in_order(words, 0)
    labels = " ".join(_quoted(words[action]) for action in ordered)
    return f'p "" {player + 1} {number} {_quoted(infostate)} {{ {labels} }} 0', ordered

  def chance(self, state: Any) -> tuple[str, list[int]]:
    """Returns the line of a chance node, and its outcomes in the line's order."""
    outcomes = dict(self._view.chance_outcomes(state))
    words = distinct({action: action_name(state, CHANCE, action) for action in outcomes})
    ordered = self._in_order(words, 1)
    chances = _exact_chances(tuple(outcomes[action] for action in ordered))
    pairs = zip(ordered, chances, strict=True)
    labels = " ".join(f"{_quoted(words[action])} {chance}" for action, chance in pairs)
    # Every chance node gets its own number: Gambit takes nodes with one number for one infoset.
    self._num_chance_nodes += 1
    return f'c "" {self._num_chance_nodes} "" {{ {labels} }} 0', ordered

  def _in_order(self, words: dict[int, str], kind: int) -> list[int]:
    ids = self._ids[kind]
    return sorted(words, key=lambda action: ids.setdefault(words[action], len(ids)))


def save_efg(game: AnyGame, path: str | os.PathLike[str], max_nodes: int = 10_000_000) -> None:
  """Writes a game to a file in Gambit's extensive form.

      save_efg("leduc_poker", "leduc.efg")
      pyspiel.load_game("efg_game(filename=leduc.efg)")

      pygambit.read_efg("leduc.efg")

  Infosets are named by their infostates, with spaces for line breaks; actions by OpenSpiel's action strings. Payoffs
  are fractions or decimals that round to the exact payoffs. Chance probabilities are rounded to fractions that sum to
  exactly one. The file is written as a whole or not at all.

  Args:
    game: a compiled game, or an argument of `compile_game`. Actions removed by its action filter are left out.
    path: the file to write.
    max_nodes: the most histories of the game.

  Raises:
    GameTooLargeError: the game has more than `max_nodes` histories.
    ArgumentError: `max_nodes` is not a positive integer, or `path` is no path.
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
          f"The game has more than max_nodes={max_nodes:,} histories, and the file has a line for each. Raise "
          "max_nodes if there is room."
        )
      mover = compiled.view.mover(state)
      if mover == TERMINAL:
        outcomes += 1
        payoffs = " ".join(map(_number, compiled.view.returns(state)))
        line = f't "" {outcomes} "" {{ {payoffs} }}'
      else:
        node = names.chance if mover == CHANCE else names.decision
        line, ordered = node(state)
        stack += [compiled.view.child(state, action) for action in reversed(ordered)]
      file.write(line.encode() + b"\n")


def distinct(words: dict[int, str]) -> dict[int, str]:
  """Returns the words of actions; if two are equal, with the actions' numbers appended."""
  if len(set(words.values())) == len(words):
    return words
  return {action: f"{word} ({action})" for action, word in words.items()}


def one_line(text: str) -> str:
  """Returns a text in one line, without backslashes and double quotes, as the format requires."""
  return " ".join(text.split()).replace("\\", "/").replace('"', "'")


def _quoted(text: str) -> str:
  return f'"{one_line(text)}"'


@functools.lru_cache(1000)
def _number(value: float) -> str:
  """Returns the simplest fraction that rounds to a number; if it is too large, the number with all its digits."""
  simplest = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
  if float(simplest) == value and abs(simplest.numerator) <= _MAX_NUMERATOR:
    return str(simplest)
  return format(Decimal(repr(float(value))), "f")


@functools.lru_cache(1000)
def _exact_chances(chances: tuple[float, ...]) -> list[str]:
  """Returns the probabilities of a chance node as numbers whose sum is exactly one.

  They are the simplest fractions nearby if these are accurate, otherwise decimals; the largest decimal then makes up
  the rest to one.
  """
  simplest = [Fraction(chance).limit_denominator(_MAX_DENOMINATOR) for chance in chances]
  if sum(simplest) == 1 and all(
    abs(float(near) - chance) <= _ROUNDING * chance
    for near, chance in zip(simplest, chances, strict=True)
  ):
    return [str(near) for near in simplest]
  with localcontext(prec=_DIGITS):
    digits = [Decimal(repr(float(chance))) for chance in chances]
    digits[digits.index(max(digits))] += 1 - sum(digits)
    return [format(number, "f") for number in digits]
