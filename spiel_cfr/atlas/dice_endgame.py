"""Liar's dice of two players with a number of dice for each player, as a game of OpenSpiel in Python.

OpenSpiel's liar's dice gives both players the same number of dice. This game has the rules of Thomas Ahle's tables,
github.com/thomasahle/snyd. A bid is a number of dice and a face. The other player makes a higher bid, or calls. A bid
that is called wins if the dice of both players show the face at least that number of times. There are four rules:

- "normal": dice show what is on them;
- "joker": ones count as any face, and are not bid;
- "stairs": a roll of 1, 2 and so on, in any order, counts as one die more, of any face; ones are not bid;
- "ordered_stairs": dice have an order, and only the roll 1, 2 and so on in this order counts as stairs.
"""

import itertools
from collections import Counter
from typing import Any

import pyspiel

from spiel_cfr import errors
from spiel_cfr._util import arguments

NAME = "dice_endgame"
RULES = ("normal", "joker", "stairs", "ordered_stairs")
_MOST_DICE, _MOST_SIDES = 5, 6
_CALL = 0
_TYPE = pyspiel.GameType(
  short_name=NAME,
  long_name="Liar's dice with a number of dice for each player",
  dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
  chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
  information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
  utility=pyspiel.GameType.Utility.ZERO_SUM,
  reward_model=pyspiel.GameType.RewardModel.TERMINAL,
  max_num_players=2,
  min_num_players=2,
  provides_information_state_string=True,
  provides_information_state_tensor=False,
  provides_observation_string=False,
  provides_observation_tensor=False,
  parameter_specification={"dice": "1 1", "sides": 6, "rule": "normal"},
)


class DiceEndgame(pyspiel.Game):  # type: ignore[misc]
  """A game of liar's dice.

  Attributes:
    rolls: for each player, a list of (tuple of int, float). The dice of each roll, and its probability.
    bids: list of (int, int). The number and the face of each bid, ascending. Action 0 calls, action k is bid k - 1.
  """

  def __init__(self, dice: str = "1 1", sides: int = 6, rule: str = "normal") -> None:
    """Lists rolls and bids.

    Args:
      dice: the numbers of dice of player 0, who bids first, and of player 1.
      sides: the number of sides of each die.
      rule: one of `RULES`.

    Raises:
      ArgumentError: an argument is invalid.
    """
    arguments.of_type(dice, "dice", str)
    counts = dice.split()
    if len(counts) != 2 or not all(text.isdecimal() for text in counts):
      raise errors.ArgumentError(f"dice must be two numbers such as '2 1', not {dice!r}.")
    numbers = [arguments.integer(int(text), "dice", 1, _MOST_DICE) for text in counts]
    sides = arguments.integer(sides, "sides", 1, _MOST_SIDES)
    arguments.one_of(rule, "rule", RULES)
    self._rule = rule
    self.rolls = [self._distribution(number, sides) for number in numbers]
    most = sum(numbers) * (2 if "stairs" in rule else 1)
    faces = range(1 if rule == "normal" else 2, sides + 1)
    self._dice_shown = [
      [[self._shown(roll, face) for face in range(sides + 1)] for roll, _ in rolls]
      for rolls in self.rolls
    ]
    self.bids = [*itertools.product(range(1, most + 1), faces)]
    info = pyspiel.GameInfo(
      num_distinct_actions=len(self.bids) + 1,
      max_chance_outcomes=max(map(len, self.rolls)),
      num_players=2,
      min_utility=-1.0,
      max_utility=1.0,
      utility_sum=0.0,
      max_game_length=len(self.bids) + 1,
    )
    super().__init__(_TYPE, info, {"dice": dice, "sides": sides, "rule": rule})

  def _distribution(self, number: int, sides: int) -> list[tuple[tuple[int, ...], float]]:
    """Returns rolls and their probabilities. Dice have an order only in ordered stairs."""
    rolls = itertools.product(range(1, sides + 1), repeat=number)
    if self._rule == "ordered_stairs":
      return [(roll, 1 / sides**number) for roll in rolls]
    counts = Counter(tuple(sorted(roll)) for roll in rolls)
    return [(roll, count / sides**number) for roll, count in counts.items()]

  def wins(self, bid: int, rolls: tuple[int, ...]) -> bool:
    """Returns whether a bid wins if it is called, given the index of each player's roll in `rolls`."""
    number, face = self.bids[bid]
    return (
      sum(shown[roll][face] for shown, roll in zip(self._dice_shown, rolls, strict=True)) >= number
    )

  def _shown(self, hand: tuple[int, ...], face: int) -> int:
    """Returns the number of dice of a roll that show a face."""
    if "stairs" in self._rule and hand == tuple(range(1, len(hand) + 1)):
      return len(hand) + 1
    jokers = hand.count(1) if self._rule == "joker" else 0
    return hand.count(face) + jokers

  def new_initial_state(self) -> "DiceState":
    """Returns the root."""
    return DiceState(self)

  def __deepcopy__(self, memo: Any) -> "DiceEndgame":
    """Returns the game itself, which is immutable."""
    return self


class DiceState(pyspiel.State):  # type: ignore[misc]
  """State of the game: the rolls, the bids, and whether the last bid was called."""

  def __init__(self, game: DiceEndgame) -> None:
    """Begins before the dice are rolled."""
    super().__init__(game)
    self._dice = game
    self._rolls: tuple[int, ...] = ()
    self._bids: tuple[int, ...] = ()
    self._is_called = False

  def current_player(self) -> int:
    """Returns the player to move."""
    if self._is_called:
      return int(pyspiel.PlayerId.TERMINAL)
    return len(self._bids) % 2 if len(self._rolls) == 2 else int(pyspiel.PlayerId.CHANCE)

  def chance_outcomes(self) -> list[tuple[int, float]]:
    """Returns the indices of the rolls of the next player, and their probabilities."""
    rolls = self._dice.rolls[len(self._rolls)]
    return [(number, chance) for number, (_, chance) in enumerate(rolls)]

  def _legal_actions(self, player: int) -> list[int]:
    """Returns the call, if there is something to call, and all higher bids."""
    last = self._bids[-1] if self._bids else 0
    calls = [_CALL] if self._bids else []
    return [*calls, *range(last + 1, len(self._dice.bids) + 1)]

  def _apply_action(self, action: int) -> None:
    if len(self._rolls) < 2:
      self._rolls = (*self._rolls, action)
    elif action == _CALL:
      self._is_called = True
    else:
      self._bids = (*self._bids, action)

  def _action_to_string(self, player: int, action: int) -> str:
    if player == pyspiel.PlayerId.CHANCE:
      return "roll " + "".join(map(str, self._dice.rolls[len(self._rolls)][action][0]))
    return "call" if action == _CALL else "{}x{}".format(*self._dice.bids[action - 1])

  def is_terminal(self) -> bool:
    """Returns whether the last bid was called."""
    return self._is_called

  def returns(self) -> list[float]:
    """Returns 1 for the winner, and -1 for the loser."""
    if not self._is_called:
      return [0.0, 0.0]
    bidder_wins = self._dice.wins(self._bids[-1] - 1, self._rolls)
    first_wins = bidder_wins == (len(self._bids) % 2 == 1)
    return [1.0, -1.0] if first_wins else [-1.0, 1.0]

  def information_state_string(self, player: int | None = None) -> str:
    """Returns a player's roll, and all bids."""
    player = self.current_player() if player is None else player
    rolled = len(self._rolls) > player
    roll = self._dice.rolls[player][self._rolls[player]][0] if rolled else ()
    bids = " ".join("{}x{}".format(*self._dice.bids[bid - 1]) for bid in self._bids)
    return f"{''.join(map(str, roll))} | {bids}{' call' if self._is_called else ''}"

  def __str__(self) -> str:
    """Returns both rolls and all bids."""
    return f"{self._rolls} {self._bids} {self._is_called}"


def from_string(text: str) -> DiceEndgame:
  """Returns the game of a string such as `dice_endgame(dice=2 1,sides=6,rule=joker)`.

  Raises:
    GameParameterError: the string is malformed, or a parameter is unknown or given twice.
    ArgumentError: a parameter is invalid.
  """
  try:
    given = pyspiel.game_parameters_from_string(text)
    parsed = pyspiel.game_parameters_to_string(given)
    # OpenSpiel's parser takes the last of two values.
    if "(" in text and any(text.count(symbol) != parsed.count(symbol) for symbol in "(=,)"):
      raise errors.GameParameterError(
        f"{text} gives a parameter twice, or has text that is not a parameter: OpenSpiel reads it as {parsed}."
      )
    return DiceEndgame(**{name: value for name, value in given.items() if name != "name"})
  except (TypeError, pyspiel.SpielError) as error:
    raise errors.GameParameterError(
      f"{text} is not a string such as '{NAME}(dice=2 1,sides=6,rule=joker)': {error}"
    ) from error
