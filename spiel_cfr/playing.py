"""Play in the terminal: a person takes one seat of a game, bots that play a policy take the others."""

from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms.evaluate_bots import evaluate_bots

from spiel_cfr._util import arguments
from spiel_cfr.bots import PolicyBot
from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.policies.open_spiel import AnyPolicy
from spiel_cfr.search import SearchBot


class _Quit(Exception):
  """The person wants to quit."""


class _Person(pyspiel.Bot):  # type: ignore[misc]
  """A bot of OpenSpiel that asks the person at the terminal for actions."""

  def __init__(self, player: int) -> None:
    super().__init__()
    self._player = player

  def player_id(self) -> int:
    return self._player

  def restart_at(self, state: Any) -> None:
    pass

  def inform_action(self, state: Any, player: int, action: int) -> None:
    """Prints the action of another player. Moves of chance are part of the person's information state."""
    if player != self._player and player >= 0:
      print(f"  player {player}: {checked_calls.action_name(state, player, action)}")

  def step(self, state: Any) -> int:
    actions = checked_calls.legal_actions(state, self._player)
    if not actions:
      return int(pyspiel.INVALID_ACTION)
    names = [checked_calls.action_name(state, self._player, action) for action in actions]
    print(f"\n{state.information_state_string(self._player)}")
    print("  ".join(f"[{number}] {name}" for number, name in enumerate(names, 1)))
    while True:
      answer = _ask("you: ").lower()
      by_name = [name.lower().startswith(answer) for name in names]
      if answer.isdigit() and 1 <= int(answer) <= len(actions):
        return int(actions[int(answer) - 1])
      if answer and sum(by_name) == 1:
        return int(actions[by_name.index(True)])
      print(f"Please give a number from 1 to {len(actions)}, the name of an action, or q.")


def _ask(question: str) -> str:
  """Returns a line of input; raises _Quit for q or the end of input."""
  try:
    answer = input(question).strip()
  except (EOFError, KeyboardInterrupt):
    raise _Quit from None
  if answer.lower() in ("q", "quit"):
    raise _Quit
  return answer


def play(
  game: str | pyspiel.Game,
  policy: AnyPolicy,
  *,
  player: int | None = None,
  hands: int | None = None,
  search: bool = False,
  seed: int | None = None,
) -> None:
  """Plays hands in the terminal, until the person types `q`.

  Args:
    game: an OpenSpiel game or its string; simultaneous moves are made in turn.
    policy: the policy of the others, an argument of `PolicyBot`.
    player: the seat of the person, from 0; None for the next seat each hand.
    hands: the number of hands; None for no limit.
    search: whether the others search from the policy, see `SearchBot`.
    seed: the seed of the cards and of the others' actions.

  Raises:
    ArgumentError: the player, the number of hands or the seed is invalid.
    GameError: see `compile_game`.
    PolicyError: the policy has no probabilities for a decision.
  """
  game = load_game(game)
  players = game.num_players()
  if player is not None:
    player = arguments.integer(player, "player", 0, players - 1)
  if hands is not None:
    hands = arguments.positive_integer(hands, "hands")
  rng = np.random.default_rng(None if seed is None else arguments.integer(seed, "seed", 0))
  seeds = rng.integers(2**31, size=players + 1).tolist()
  bot_class = SearchBot if search else PolicyBot
  bots = [bot_class(policy, seat, seed=seeds[seat]) for seat in range(players)]
  chance = np.random.RandomState(seeds[-1])
  total, hand = 0.0, 0
  try:
    while hands is None or hand < hands:
      seat = hand % players if player is None else player
      print(f"\n--- hand {hand + 1}: you are player {seat}; q ends ---")
      state = game.new_initial_state()
      returns = evaluate_bots(state, [*bots[:seat], _Person(seat), *bots[seat + 1 :]], chance)
      hand += 1
      total += returns[seat]
      print(f"\n{state}\nreturns: {', '.join(f'{value:zg}' for value in returns)}")
      print(f"you: {returns[seat]:+zg}, {total:+zg} after {hand} hands")
      if (
        _ask("p for the policy's strategy in this hand, return for the next hand: ").lower() == "p"
      ):
        _replay(state, bots)
  except _Quit:
    pass
  print(f"\n{hand} hands, {total:+zg} in all.")


def _replay(state: Any, bots: list[pyspiel.Bot]) -> None:
  """Prints the policy's strategy at every decision of a hand."""
  replayed = state.get_game().new_initial_state()
  for action in state.history():
    player = replayed.current_player()
    if player >= 0:
      strategy = ", ".join(
        f"{'*' if legal == action else ''}{checked_calls.action_name(replayed, player, legal)} {chance:z.1%}"
        for legal, chance in bots[player].get_policy(replayed)
      )
      print(f"  player {player} at {replayed.information_state_string(player)!r}: {strategy}")
    replayed.apply_action(action)
  print("  * marks the action played.")
