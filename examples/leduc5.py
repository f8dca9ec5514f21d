"""Leduc-5: Leduc poker with five bet sizes, as an OpenSpiel game in Python.

Brown and Sandholm, "Regret-Based Pruning in Extensive-Form Games" (2015), measure pruning on this game. Bets are 0.5,
1, 2, 4 or 8 chips in the first round and 1, 2, 4, 8 or 16 in the second, with at most two bets in a round. The deck has
two cards of each rank, without suits, which never matter. The game has 34,224 infosets.

    python examples/leduc5.py

compiles the game, and prints its size and the exploitability of CFR+.
"""

from typing import Any

import pyspiel
from absl import app, flags

import spiel_cfr

RANKS, COPIES, ANTE = 3, 2, 1.0
SIZES = ((0.5, 1.0, 2.0, 4.0, 8.0), (1.0, 2.0, 4.0, 8.0, 16.0))
MOST_BETS = 2
FOLD, CALL = 0, 1

_ITERATIONS = flags.DEFINE_list(
  "iterations", ["100", "300"], "iterations of CFR+ at which to evaluate"
)

_TYPE = pyspiel.GameType(
  short_name="python_leduc5",
  long_name="Leduc poker with five sizes of bets",
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
)
_LARGEST = ANTE + MOST_BETS * (SIZES[0][-1] + SIZES[1][-1])
_INFO = pyspiel.GameInfo(
  num_distinct_actions=2 + len(SIZES[0]),
  max_chance_outcomes=RANKS,
  num_players=2,
  min_utility=-_LARGEST,
  max_utility=_LARGEST,
  utility_sum=0.0,
  max_game_length=2 * (MOST_BETS + 2),
)


class Leduc5Game(pyspiel.Game):  # type: ignore[misc]
  """The game Leduc-5."""

  def __init__(self, params: dict[str, Any] | None = None) -> None:
    super().__init__(_TYPE, _INFO, params or {})

  def new_initial_state(self) -> "Leduc5State":
    """Returns the state before the deal."""
    return Leduc5State(self)


class Leduc5State(pyspiel.State):  # type: ignore[misc]
  """State of Leduc-5: cards, chips in the pot, and the actions of each round."""

  def __init__(self, game: Leduc5Game) -> None:
    super().__init__(game)
    self._cards: list[int] = []
    self._stakes = [ANTE, ANTE]
    self._rounds: list[list[int]] = [[]]
    self._over = False
    self._mover = 0

  def current_player(self) -> int:
    """Returns the player to move, or the id of chance or terminal states."""
    if self._over:
      return int(pyspiel.PlayerId.TERMINAL)
    # Each player gets a card before the first round, and the board one before the second.
    is_dealt = len(self._cards) > len(self._rounds)
    return self._mover if is_dealt else int(pyspiel.PlayerId.CHANCE)

  def chance_outcomes(self) -> list[tuple[int, float]]:
    """Returns the ranks left in the deck, with their probabilities."""
    left = [COPIES - self._cards.count(rank) for rank in range(RANKS)]
    return [(rank, count / sum(left)) for rank, count in enumerate(left) if count]

  def _legal_actions(self, player: int) -> list[int]:
    done = self._rounds[-1]
    bets = [action for action in done if action > CALL]
    facing = [FOLD] if bets else []
    more = range(2, 2 + len(SIZES[0])) if len(bets) < MOST_BETS else ()
    return [*facing, CALL, *more]

  def _apply_action(self, action: int) -> None:
    if self.is_chance_node():
      self._cards.append(action)
      return
    done, mover = self._rounds[-1], self._mover
    done.append(action)
    self._mover = 1 - mover
    if action == FOLD:
      self._over = True
      return
    self._stakes[mover] = max(self._stakes)
    if action > CALL:
      self._stakes[mover] += SIZES[len(self._rounds) - 1][action - 2]
    elif len(done) > 1:
      self._mover = 0
      if len(self._rounds) == len(SIZES):
        self._over = True
      else:
        self._rounds.append([])

  def _action_to_string(self, player: int, action: int) -> str:
    if player == pyspiel.PlayerId.CHANCE:
      return f"Deal {'JQK'[action]}"
    return {FOLD: "Fold", CALL: "Call"}.get(action, f"Bet {action - 1}")

  def is_terminal(self) -> bool:
    """Returns True if the game is over."""
    return self._over

  def returns(self) -> list[float]:
    """Returns each player's winnings in chips."""
    if not self._over:
      return [0.0, 0.0]
    if self._rounds[-1][-1] == FOLD:
      # The player who would move next wins.
      winner = self._mover
    else:
      first, second, board = self._cards
      strength = [(card == board, card) for card in (first, second)]
      if first == second:
        return [0.0, 0.0]
      winner = int(strength[1] > strength[0])
    won = self._stakes[1 - winner]
    return [won, -won] if winner == 0 else [-won, won]

  def information_state_string(self, player: int | None = None) -> str:
    """Returns a player's information: its card, the board, and all actions."""
    player = self.current_player() if player is None else player
    private: int | str = self._cards[player] if player < len(self._cards) else "?"
    board: int | str = self._cards[2] if len(self._cards) > 2 else "?"
    done = "/".join("".join(map(str, actions)) for actions in self._rounds)
    return f"{private}{board} {done}"

  def __str__(self) -> str:
    done = "/".join("".join(map(str, actions)) for actions in self._rounds)
    return f"{self._cards} {done}"


pyspiel.register_game(_TYPE, Leduc5Game)


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  game = spiel_cfr.compile_game("python_leduc5")
  print(game)
  solver = spiel_cfr.CFRPlusSolver(game)
  for iterations in map(int, _ITERATIONS.value):
    solver.run(iterations - solver.iteration)
    print(f"CFR+ after {iterations:,} iterations: exploitability {solver.exploitability():z.4f}")


if __name__ == "__main__":
  app.run(main)
