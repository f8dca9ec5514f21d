"""Files of games in Gambit's extensive form (.efg), which Gambit and OpenSpiel's `efg_game` read.

The Gambit manual describes the format: "The extensive game (.efg) file format". Gambit computes with fractions, and
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

# A fraction with a larger denominator or numerator is written as a decimal. OpenSpiel reads numerators of 32 bits.
_MAX_DENOMINATOR = 10**6
_MAX_NUMERATOR = 2**31 - 1
# The largest relative difference between a chance probability of OpenSpiel, which is rounded, and its fraction.
_ROUNDING = 1e-14
# The precision of sums of probabilities, in digits. The smallest probability has 324 digits after the point.
_DIGITS = 1000


class _NodeLines:
  """Lines of decision and chance nodes, with names and numbers that are consistent over the whole game.

  OpenSpiel numbers action labels in order of appearance. It sorts the labels of a node by these numbers, but not the
  children of the node. Actions are therefore written in the order of these numbers.
  """

  def __init__(self, compiled: CompiledGame) -> None:
    self._view = compiled.view
    self._infoset_numbers = [
      {infostate: number for number, infostate in enumerate(infostates, 1)}
      for infostates in compiled.infostates
    ]
    # The labels of the actions of each infoset, by player and infostate.
    self._labels: dict[tuple[int, str], dict[int, str]] = {}
    # OpenSpiel's numbers of the labels of players' actions and of chance's outcomes.
    self._action_numbers: dict[str, int] = {}
    self._outcome_numbers: dict[str, int] = {}
    self._num_chance_nodes = 0

  def decision(self, state: Any) -> tuple[str, list[int]]:
    """Returns the line of a decision node, and its actions in the line's order."""
    player, infostate = state.current_player(), self._view.infostate(state)
    number = self._infoset_numbers[player].get(infostate)
    if number is None:
      raise errors.InconsistentInfosetError(
        f"The infostate {infostate!r} is not in the compiled game. Compile it again with its action filter."
      )
    actions = self._view.legal_actions(state)
    labels = self._labels.get((player, infostate))
    if labels is None:
      labels = distinct({action: action_name(state, player, action) for action in actions})
      self._labels[player, infostate] = labels
    ordered = _in_order(labels, self._action_numbers)
    quoted = " ".join(_quoted(labels[action]) for action in ordered)
    return f'p "" {player + 1} {number} {_quoted(infostate)} {{ {quoted} }} 0', ordered

  def chance(self, state: Any) -> tuple[str, list[int]]:
    """Returns the line of a chance node, and its outcomes in the line's order."""
    outcomes = dict(self._view.chance_outcomes(state))
    labels = distinct({action: action_name(state, CHANCE, action) for action in outcomes})
    ordered = _in_order(labels, self._outcome_numbers)
    chances = _exact_chances(tuple(outcomes[action] for action in ordered))
    pairs = zip(ordered, chances, strict=True)
    quoted = " ".join(f"{_quoted(labels[action])} {chance}" for action, chance in pairs)
    # Every chance node has a number of its own, since Gambit merges nodes with equal numbers to one infoset.
    self._num_chance_nodes += 1
    return f'c "" {self._num_chance_nodes} "" {{ {quoted} }} 0', ordered


def _in_order(labels: dict[int, str], numbers: dict[str, int]) -> list[int]:
  """Returns actions in the order of the numbers of their labels; new labels get the next numbers."""
  return sorted(labels, key=lambda action: numbers.setdefault(labels[action], len(numbers)))


def save_efg(game: AnyGame, path: str | os.PathLike[str], max_nodes: int = 10_000_000) -> None:
  """Writes a game to a file in Gambit's extensive form.

      save_efg("leduc_poker", "leduc.efg")
      pyspiel.load_game("efg_game(filename=leduc.efg)")

      pygambit.read_efg("leduc.efg")

  The name of an infoset is its infostate, with spaces instead of line breaks; the name of an action is OpenSpiel's
  action string. Payoffs are fractions or decimals that round to OpenSpiel's payoffs. Chance probabilities are rounded
  to numbers that sum to exactly one. The file is written as a whole or not at all.

  Args:
    game: a compiled game, or an argument of `compile_game`. Actions removed by its action filter are left out.
    path: the file to write.
    max_nodes: the largest number of histories that the game may have.

  Raises:
    GameTooLargeError: the game has more than `max_nodes` histories.
    ArgumentError: `max_nodes` is not a positive integer, or `path` is not a path.
    GameError: see `compile_game`.
    OSError: the file can't be written.
  """
  compiled = compile_game(game)
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  node_lines = _NodeLines(compiled)
  players = " ".join(_quoted(f"Player {player}") for player in range(compiled.num_players))
  num_nodes = num_outcomes = 0
  with files.replacing(path) as file:
    file.write(f'EFG 2 R {_quoted(compiled.game_string)} {{ {players} }} ""\n'.encode())
    stack = [compiled.view.new_initial_state()]
    while stack:
      state = stack.pop()
      num_nodes += 1
      if num_nodes > max_nodes:
        raise errors.GameTooLargeError(
          f"The game has more than max_nodes={max_nodes:,} histories, and the file has one line for each history. "
          "Raise max_nodes if there is room."
        )
      mover = compiled.view.mover(state)
      if mover == TERMINAL:
        num_outcomes += 1
        payoffs = " ".join(map(_number, compiled.view.returns(state)))
        line = f't "" {num_outcomes} "" {{ {payoffs} }}'
      else:
        line_of = node_lines.chance if mover == CHANCE else node_lines.decision
        line, ordered = line_of(state)
        stack += [compiled.view.child(state, action) for action in reversed(ordered)]
      file.write(line.encode() + b"\n")


def distinct(words: dict[int, str]) -> dict[int, str]:
  """Returns the words of actions; if two words are equal, all words get the number of the action appended."""
  if len(set(words.values())) == len(words):
    return words
  return {action: f"{word} ({action})" for action, word in words.items()}


def one_line(text: str) -> str:
  """Returns a text in one line without backslashes and double quotes, which the format does not allow."""
  return " ".join(text.split()).replace("\\", "/").replace('"', "'")


def _quoted(text: str) -> str:
  """Returns a text in one line, in double quotes."""
  return f'"{one_line(text)}"'


@functools.lru_cache(1000)
def _number(value: float) -> str:
  """Returns the simplest fraction that rounds to a number; if its terms are too large, the number as a decimal."""
  simplest = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
  if float(simplest) == value and abs(simplest.numerator) <= _MAX_NUMERATOR:
    return str(simplest)
  return format(Decimal(repr(float(value))), "f")


@functools.lru_cache(1000)
def _exact_chances(chances: tuple[float, ...]) -> list[str]:
  """Returns the probabilities of a chance node as numbers whose sum is exactly one.

  The numbers are the nearest simple fractions if these are accurate and sum to one. Otherwise they are decimals, of
  which the largest is corrected so that the sum is one.
  """
  fractions = [Fraction(chance).limit_denominator(_MAX_DENOMINATOR) for chance in chances]
  if sum(fractions) == 1 and all(
    abs(float(fraction) - chance) <= _ROUNDING * chance
    for fraction, chance in zip(fractions, chances, strict=True)
  ):
    return [str(fraction) for fraction in fractions]
  with localcontext(prec=_DIGITS):
    decimals = [Decimal(repr(float(chance))) for chance in chances]
    decimals[decimals.index(max(decimals))] += 1 - sum(decimals)
    return [format(decimal, "f") for decimal in decimals]
