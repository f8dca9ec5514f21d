r"""Plays a game against a solved policy, in the terminal.

    python examples/play.py --game=leduc_poker

solves the game first, for ten seconds at most.

    python examples/play.py --game=leduc_poker --policy=results/policy.json
    python examples/play.py --game=leduc_poker --checkpoint=results/leduc/iteration-000001000000.npz

play against a policy that `solve.py` has written, or against a solver that was saved. With `--opponent=search` the
policy is a blueprint only: a bot solves again what follows each of its decisions. Answer with the number or the
name of an action; `q` ends. After each hand, `p` shows what the policy plays at every decision of it, yours too.
"""

import sys
from typing import Any

import numpy as np
import pyspiel
from absl import app, flags
from open_spiel.python.algorithms.evaluate_bots import evaluate_bots

import spiel_cfr
from spiel_cfr.search import SearchBot

_GAME = flags.DEFINE_string("game", "leduc_poker", "any OpenSpiel game, with its parameters")
_POLICY = flags.DEFINE_string("policy", None, "a policy that solve.py has written")
_CHECKPOINT = flags.DEFINE_string("checkpoint", None, "a solver that was saved")
_OPPONENT = flags.DEFINE_enum(
  "opponent", "policy", ["policy", "search"], "whether to play the policy, or to search from it"
)
_SECONDS = flags.DEFINE_float("seconds", 10.0, "how long to solve where there is neither", 0.0)
_PLAYER = flags.DEFINE_integer(
  "player", None, "which player you are; by default a seat further each hand", lower_bound=0
)
_HANDS = flags.DEFINE_integer("hands", None, "stop after so many; by default with q", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", None, "of the cards and of the policy's draws", lower_bound=0)


class Quit(Exception):
  """The person has had enough."""


class Person(pyspiel.Bot):  # type: ignore[misc]
  """Somebody at the terminal."""

  def __init__(self, player: int) -> None:
    """Sits down."""
    super().__init__()
    self._player = player

  def player_id(self) -> int:
    """Returns which player it is."""
    return self._player

  def restart_at(self, state: Any) -> None:
    """Does nothing."""

  def inform_action(self, state: Any, player: int, action: int) -> None:
    """Says what others do; what chance does shows in what one sees."""
    if player != self._player and player >= 0:
      print(f"  player {player}: {state.action_to_string(player, action)}")

  def step(self, state: Any) -> int:
    """Asks."""
    actions = state.legal_actions(self._player)
    if not actions:
      return int(pyspiel.INVALID_ACTION)
    names = [str(state.action_to_string(self._player, action)) for action in actions]
    print(f"\n{state.information_state_string(self._player)}")
    print("  ".join(f"[{number}] {name}" for number, name in enumerate(names, 1)))
    while True:
      answer = ask("you: ").lower()
      by_name = [name.lower().startswith(answer) for name in names]
      if answer.isdigit() and 1 <= int(answer) <= len(actions):
        return int(actions[int(answer) - 1])
      if answer and sum(by_name) == 1:
        return int(actions[by_name.index(True)])
      print(f"Please give a number from 1 to {len(actions)}, the name of an action, or q.")


def ask(question: str) -> str:
  """Returns a line that was typed in.

  Raises:
    Quit: it was q, or there are no more.
  """
  try:
    answer = input(question).strip()
  except EOFError:
    raise Quit from None
  if answer.lower() in ("q", "quit"):
    raise Quit
  return answer


def opponent(game: pyspiel.Game) -> spiel_cfr.policies.AnyPolicy:
  """Returns the policy to play against."""
  compiled = spiel_cfr.compile_game(game)
  if _POLICY.value is not None:
    return spiel_cfr.load_policy(compiled, _POLICY.value)
  if _CHECKPOINT.value is not None:
    return spiel_cfr.Solver.load(_CHECKPOINT.value, compiled)
  solution = spiel_cfr.solve(compiled, exploitability=1e-6, seconds=_SECONDS.value, progress=True)
  print(f"{solution}\n")
  return solution


def replay(state: Any, bots: list[pyspiel.Bot]) -> None:
  """Shows what the policy plays at every decision of a hand."""
  again = state.get_game().new_initial_state()
  for action in state.history():
    player = again.current_player()
    if player >= 0:
      chances = bots[player].get_policy(again)
      words = ", ".join(
        f"{'*' if each == action else ''}{again.action_to_string(player, each)} {chance:z.1%}"
        for each, chance in chances
      )
      print(f"  player {player} at {again.information_state_string(player)!r}: {words}")
    again.apply_action(action)
  print("  * is what was played.")


def play() -> None:
  # Moves that are simultaneous are made in turns, as in the policy.
  game = spiel_cfr.games.load_game(_GAME.value)
  players = game.num_players()
  if _PLAYER.value is not None and _PLAYER.value >= players:
    raise app.UsageError(f"--player must be from 0 to {players - 1}.")
  policy = opponent(game)
  rng = np.random.default_rng(_SEED.value)
  seeds = rng.integers(2**31, size=players + 1).tolist()
  kind = SearchBot if _OPPONENT.value == "search" else spiel_cfr.PolicyBot
  bots = [kind(policy, player, seed=seeds[player]) for player in range(players)]
  chance = np.random.RandomState(seeds[-1])
  total, hand = 0.0, 0
  try:
    while _HANDS.value is None or hand < _HANDS.value:
      me = hand % players if _PLAYER.value is None else _PLAYER.value
      print(f"\n--- hand {hand + 1}: you are player {me}; q ends ---")
      table: list[pyspiel.Bot] = list(bots)
      table[me] = Person(me)
      state = game.new_initial_state()
      returns = evaluate_bots(state, table, chance)
      hand += 1
      total += returns[me]
      print(f"\n{state}\nreturns: {', '.join(f'{value:zg}' for value in returns)}")
      print(f"you: {returns[me]:+zg}, {total:+zg} after {hand} hands")
      if ask("p for what the policy plays here, return for the next hand: ").lower() == "p":
        replay(state, bots)
  except (Quit, KeyboardInterrupt):
    pass
  print(f"\n{hand} hands, {total:+zg} in all.")


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  try:
    play()
  except (spiel_cfr.errors.SpielCFRError, OSError, ValueError, AttributeError) as error:
    sys.exit(f"error: {error}")


if __name__ == "__main__":
  app.run(main)
