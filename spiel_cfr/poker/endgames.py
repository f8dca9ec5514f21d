"""Endgames of no-limit hold'em in the public LibratusEndgames format, as games of OpenSpiel.

The format is that of github.com/Sandholm-Lab/LibratusEndgames. A file has one line for each of four keys:

    -round   2 for the flop (an extension of the format), 3 for the turn, 4 for the river
    -board   the public cards
    -pot     the chips in the pot, half of them from each player
    -reach   1,326 weights of the hands of the player who acts first on the street, then 1,326 of the other player

Hands are in lexicographic order of cards: ranks ascending; spades, hearts, diamonds, clubs.
"""

import dataclasses
import math
import os

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments, files
from spiel_cfr.poker import cards

NUM_HANDS = 1326
_KEYS = ("round", "board", "pot", "reach")
# OpenSpiel's chips have 32 bits.
_MOST_CHIPS = (1 << 30) - 1


@dataclasses.dataclass(frozen=True, repr=False)
class Endgame:
  """Endgame: the contents of an endgame file, the players' stacks and the big blind.

  Attributes:
    board: str. The public cards, as in `"7s9h9cTc2d"`: three on the flop, four on the turn, five on the river.
    pot: int. The chips in the pot, half of them from each player.
    reaches: float64 (2, 1326). The weights of hands, in the order of the file.
    starting_stack: int. The chips of each player at the start of the hand: half of the pot plus the chips behind.
    big_blind: int. The chips of the big blind, the unit of `milli_big_blinds`.
  """

  board: str
  pot: int
  reaches: Float64s
  starting_stack: int = 20_000
  big_blind: int = 100

  def __post_init__(self) -> None:
    """Checks the numbers, the board and the reaches.

    Raises:
      EndgameError: the endgame is impossible; the message says why.
    """
    board = self._normalize()
    if len(board) not in (3, 4, 5):
      raise errors.EndgameError(
        f"The board {self.board} has {len(board)} cards; the flop has 3, the turn 4, the river 5."
      )
    if self.pot % 2 or self.pot // 2 >= self.starting_stack:
      raise errors.EndgameError(
        f"The pot must be an even number of chips, less than twice the starting stack of {self.starting_stack}, "
        f"not {self.pot}."
      )
    self._check_reaches()

  def _normalize(self) -> list[int]:
    """Converts the fields to their types; returns the cards of the board."""
    try:
      # OpenSpiel ends the process if a stack is not a whole number.
      for name in ("pot", "starting_stack", "big_blind"):
        number = arguments.integer(getattr(self, name), name, 1, _MOST_CHIPS)
        object.__setattr__(self, name, number)
      if not isinstance(self.board, str):
        raise errors.ArgumentError(f"it must be a string such as '7s9h9cTc2d', not {self.board!r}.")
      board = cards.parse_cards(self.board)
      object.__setattr__(self, "reaches", np.array(self.reaches, np.float64))
    except (errors.ArgumentError, OverflowError, TypeError, ValueError) as error:
      raise errors.EndgameError(f"This is not an endgame: {error}") from None
    return board

  def _check_reaches(self) -> None:
    """Raises EndgameError if reaches are not weights, or no pair of hands can be dealt."""
    if self.reaches.shape != (2, NUM_HANDS):
      raise errors.EndgameError(
        f"There must be 2 x {NUM_HANDS} = {2 * NUM_HANDS} hand reaches, not {self.reaches.size}."
      )
    bad = np.argwhere(~(np.isfinite(self.reaches) & (self.reaches >= 0)))
    if len(bad):
      player, hand = bad[0].tolist()
      raise errors.EndgameError(
        f"Reach {hand + 1} of player {player} is {self.reaches[player, hand]}; reaches must be "
        "finite and not negative."
      )
    hands, possible = cards.file_hands(), self._possible_hands()
    shares = (hands[:, None, :, None] == hands[possible[1]][None, :, None, :]).any(axis=(2, 3))
    if not (~shares[possible[0]]).any():
      raise errors.EndgameError(
        "No pair of hands can be dealt: every two with a reach above 0 share a card with each "
        "other or with the board."
      )
    try:
      for player in range(2):
        arguments.weights(self.reaches[player], f"reaches of player {player}")
    except errors.ArgumentError as error:
      raise errors.EndgameError(f"This is not an endgame: {error}") from None

  @property
  def round(self) -> int:
    """The number of the street: 2 for the flop, 3 for the turn, 4 for the river."""
    return len(cards.parse_cards(self.board)) - 1

  def _possible_hands(self) -> npt.NDArray[np.bool_]:
    """Returns True for each player's hands with a reach above 0 and no card of the board, bool (2, 1326)."""
    on_board = np.isin(cards.file_hands(), cards.parse_cards(self.board)).any(axis=1)
    return np.asarray((self.reaches > 0) & ~on_board)

  def __repr__(self) -> str:
    """Returns one line."""
    hands = " x ".join(str(count) for count in self._possible_hands().sum(axis=1).tolist())
    behind = self.starting_stack - self.pot // 2
    return (
      f"<Endgame: board {self.board}, pot {self.pot:,}, {behind:,} chips behind, {hands} hands>"
    )

  def game_string(self) -> str:
    """Returns OpenSpiel's string of the endgame, with `bettingAbstraction=fchpa`.

    Blinds of half the pot each make the pot the players' chips. With `potSize` alone, OpenSpiel's payoffs and bets
    would be wrong.
    """
    half = self.pot // 2
    return (
      "universal_poker(betting=nolimit,bettingAbstraction=fchpa,numPlayers=2,numRounds=4,"
      f"blind={half} {half},firstPlayer=1 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,"
      f"numBoardCards=0 3 1 1,stack={self.starting_stack} {self.starting_stack},potSize={self.pot},"
      f"boardCards={self.board},handReaches={' '.join(map(repr, self.reaches.ravel().tolist()))})"
    )

  def load(self) -> pyspiel.Game:
    """Returns the endgame as a game of OpenSpiel. Player 0 acts first on each street (OOP)."""
    return pyspiel.load_game(self.game_string())

  def milli_big_blinds(self, chips: float) -> float:
    """Converts chips per hand to thousandths of `big_blind` per hand (mbb/g)."""
    return 1000 * arguments.real_number(chips, "chips") / self.big_blind

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the endgame in the format of `load_endgame`. An interrupted write leaves no file.

    Raises:
      ArgumentError: `path` is not a path.
      OSError: the file can't be written.
    """
    reach = " ".join(map(repr, self.reaches.ravel().tolist()))
    text = f"-round {self.round}\n-board {self.board}\n-pot {self.pot}\n-reach {reach}\n"
    with files.replacing(path) as file:
      file.write(text.encode())


def load_endgame(
  path: str | os.PathLike[str], *, starting_stack: int = 20_000, big_blind: int = 100
) -> Endgame:
  """Reads an endgame file.

  Args:
    path: the file.
    starting_stack: chips of each player at the start of the hand, which the file does not contain: the chips behind
      plus half of the pot.
    big_blind: chips of the big blind.

  Raises:
    EndgameError: the file is not in the format, or its endgame is impossible.
    ArgumentError: `path` is not a path.
    OSError: the file can't be read.
  """
  try:
    text = arguments.path(path, "path").read_bytes().decode()
  except UnicodeDecodeError as error:
    raise errors.EndgameError(f"{path} is not a text file: {error}.") from error
  fields: dict[str, str] = {}
  for number, line in enumerate(text.splitlines(), 1):
    key, _, value = line.strip().partition(" ")
    if not key:
      continue
    if not key.startswith("-") or key[1:] not in _KEYS or key[1:] in fields:
      raise errors.EndgameError(
        f"{path}, line {number}: expected one line each of {', '.join('-' + key for key in _KEYS)}, "
        f"not {key[:40]!r}."
      )
    fields[key[1:]] = value
  missing = [key for key in _KEYS if key not in fields]
  if missing:
    raise errors.EndgameError(f"{path} has no line -{missing[0]}.")
  try:
    reaches = np.array(fields["reach"].split(), np.float64)
    pot = float(fields["pot"])
    if not math.isfinite(pot) or pot != int(pot):
      raise ValueError(f"{fields['pot']} is not a whole number of chips")
    endgame = Endgame(
      board=fields["board"],
      pot=int(pot),
      reaches=reaches.reshape(2, -1) if reaches.size == 2 * NUM_HANDS else reaches,
      starting_stack=starting_stack,
      big_blind=big_blind,
    )
    if int(fields["round"]) != endgame.round:
      raise ValueError(
        f"round {fields['round']} does not fit the board {endgame.board}: the round is 2 for three cards, 3 for four, "
        "4 for five"
      )
  except (errors.EndgameError, ValueError) as error:
    raise errors.EndgameError(f"{path}: {error}") from None
  return endgame
