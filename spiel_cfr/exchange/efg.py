"""Games in Gambit's extensive form, which Gambit and OpenSpiel's `efg_game` read.

The format is that of the Gambit manual, "The extensive game (.efg) file format". Gambit computes with fractions: it
takes chance probabilities that sum to exactly one, and no others.
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
from spiel_cfr.games.openspiel.answers import CHANCE, TERMINAL, word

# Fractions with a larger denominator are written as decimals. OpenSpiel reads numerators as integers of 32 bits.
_MAX_DENOMINATOR = 10**6
_MAX_NUMERATOR = 2**31 - 1
# By how much a chance probability may be off, relative to itself: OpenSpiel rounds what it multiplies and divides.
_ROUNDING = 1e-14
# More digits than a sum of probabilities can have: the smallest has 324 after the point.
_DIGITS = 1000


class _Names:
  """Names of infosets and actions, the same wherever they are met.

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
    self._num_chance_nodes = 0

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
      words = {action: word(state, player, action) for action in actions}
      known = self._labels[player, infostate] = distinct(words)
    ordered = self._in_order(known, 0)
    labels = " ".join(_quoted(known[action]) for action in ordered)
    return f'p "" {player + 1} {number} {_quoted(infostate)} {{ {labels} }} 0', ordered

  def chance(self, state: Any) -> tuple[str, list[int]]:
    """Returns the line of a node at which chance moves, and the outcomes in its order."""
    outcomes = dict(self._view.chance_outcomes(state))
    words = distinct({action: word(state, CHANCE, action) for action in outcomes})
    ordered = self._in_order(words, 1)
    chances = _exact_chances(tuple(outcomes[action] for action in ordered))
    pairs = zip(ordered, chances, strict=True)
    labels = " ".join(f"{_quoted(words[action])} {chance}" for action, chance in pairs)
    # Nodes with one number would be one infoset to Gambit, and chance a player who forgets what it has drawn.
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

  Infosets are named by their infostates, line breaks as spaces; actions by OpenSpiel's words for them. Payoffs are
  fractions or decimals that are rounded to exactly what they are here; chance probabilities, up to rounding, fractions
  that sum to exactly one. The file is whole or not there.

  Args:
    game: a compiled game, or what `compile_game` takes; what its action filter leaves out is left out.
    path: where to.
    max_nodes: how many histories the game may have.

  Raises:
    GameTooLargeError: the game has more histories.
    ArgumentError: `max_nodes` is not a positive integer, or `path` is none.
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
  """Returns words for actions, with the numbers of the actions if two words are the same."""
  if len(set(words.values())) == len(words):
    return words
  return {action: f"{word} ({action})" for action, word in words.items()}


def one_line(text: str) -> str:
  """Returns a text as it may stand between quotation marks of the format."""
  return " ".join(text.split()).replace("\\", "/").replace('"', "'")


def _quoted(text: str) -> str:
  return f'"{one_line(text)}"'


@functools.lru_cache(1000)
def _number(value: float) -> str:
  """Returns the simplest fraction that is rounded to a number, or else the number with all its digits."""
  simplest = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
  if float(simplest) == value and abs(simplest.numerator) <= _MAX_NUMERATOR:
    return str(simplest)
  return format(Decimal(repr(float(value))), "f")


@functools.lru_cache(1000)
def _exact_chances(chances: tuple[float, ...]) -> list[str]:
  """Returns the probabilities of a chance node as numbers whose sum is exactly one.

  These are the simplest fractions nearby, or else, where they are not what chance plays, decimals, of which the largest
  is what the others leave.
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
