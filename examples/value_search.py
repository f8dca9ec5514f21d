"""Search with values, from self-play to the exploitability of the bot's policy, in a few minutes.

    python examples/value_search.py
    python examples/value_search.py --games=liars_dice_5,turn --exact=0

In each round a bot plays against itself with the network so far, and the network learns from the values of all public
states that were solved. Then one bot searches with the network at the leaves of its subgames, and another bot with
exact values. The difference of their exploitabilities is the cost of the network's error. All decisions of both players
are measured exactly.
"""

from results import NAMED_GAMES, markdown, small_turn, start

import re
import sys
import time

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr import search
from spiel_cfr.deep_cfr import MLP
from spiel_cfr.poker import cards

_MORE_GAMES = {
  "liars_dice_2": "liars_dice(dice_sides=2)",
  "liars_dice_3": "liars_dice(dice_sides=3)",
  "liars_dice_5": "liars_dice(dice_sides=5)",
  "liars_dice_2x3": "liars_dice(numdice=2,dice_sides=3)",
  "turn": small_turn(stack=1000).game_string(),
}
_GAMES = flags.DEFINE_list("games", ["leduc", "liars_dice_4"], "names of games")
_DEPTH = flags.DEFINE_integer("depth", 2, "number of moves in a subgame", 1)
_ROUNDS = flags.DEFINE_integer(
  "rounds", 60, "number of times that the network learns; 0 for no network", 0
)
_PLAYS = flags.DEFINE_integer("plays", 10, "plays in a round", 1)
_BATCH = flags.DEFINE_integer("batch", 64, "ranges at each public state", 1)
_STEPS = flags.DEFINE_integer("steps", 1000, "steps of each fit", 1)
_LAYERS = flags.DEFINE_list("layers", ["128", "128"], "units of the network's layers")
_LEARNING = flags.DEFINE_integer(
  "learning", 256, "iterations of a subgame in the last rounds of self-play", 1
)
_PLAYING = flags.DEFINE_integer("playing", 512, "iterations of a subgame that is played", 1)
_EXACT = flags.DEFINE_integer(
  "exact", 64, "iterations with exact values; 0 for no search with exact values", 0
)
_GADGET = flags.DEFINE_string("gadget", "follow", "the gadget in front of subgames")
_CARDS = 52
# Rounds whose examples the network learns from: earlier ones have values of worse networks.
_RECENT = 12
# Rounds with the same number of iterations in self-play. The next rounds have twice as many, because early values are
# inaccurate anyway.
_ROUNDS_BEFORE_DOUBLING, _FEWEST_ITERATIONS = 15, 32


def main() -> None:
  games = NAMED_GAMES | _MORE_GAMES
  rows = {}
  for name in _GAMES.value:
    if name not in games:
      sys.exit(f"error: there is no game {name!r}; there are {', '.join(games)}.")
    rows[name] = measure(name, games[name])
  columns = list(next(iter(rows.values())))
  print("\n" + markdown("game", columns, {name: list(row.values()) for name, row in rows.items()}))


def measure(name: str, game_string: str) -> dict[str, str]:
  """Returns exploitabilities of the played policies, and CPU seconds, as text by column."""
  game, result = spiel_cfr.compile_game(game_string, vector_form=False), {}
  if _ROUNDS.value:
    begin = time.process_time()
    network = learned(name, game_string)
    result["error of the network"] = f"{network.error:z.3f}"
    result["CPU seconds to learn"] = f"{time.process_time() - begin:z.0f}"
    result |= played("network", game, network, _PLAYING.value)
  if _EXACT.value:
    result |= played("exact values", game, search.SolvedValues(game), _EXACT.value)
  return result


def legal_moves(state: search.PublicState) -> np.ndarray:
  """Returns the legal actions and the player to move; in liar's dice, earlier bids matter only through ranges."""
  history = next(iter(state.states()))
  return np.append(history.legal_actions_mask(), history.current_player())


def winning_chances(state: search.PublicState) -> np.ndarray:
  """Returns the public facts of a hold'em turn, and the probability that each hand wins at showdown, less a half.

  The other player's hands are equally likely, and so are the rivers that are still to come.
  """
  history = next(iter(state.states()))
  names = [state.private_states(player) for player in (0, 1)]
  board = parsed_cards("Public", names[0][0])
  hands = [np.array([parsed_cards("Private", name) for name in each]) for each in names]
  has_card = [(each[:, :, None] == np.arange(_CARDS)).any(axis=1) for each in hands]
  wins, deals = np.zeros((2, len(hands[0]), len(hands[1])))
  for river in [[card] for card in range(_CARDS) if card not in board] if len(board) == 4 else [[]]:
    strengths = [cards.hand_strengths(each, board + river, num_suits=4) for each in hands]
    is_possible = np.outer(*(~each[:, river].any(axis=1) for each in has_card))
    is_possible &= ~(has_card[0] @ has_card[1].T)
    wins += is_possible * (np.sign(np.subtract.outer(*strengths)) + 1) / 2
    deals += is_possible
  chances = [
    each.sum(axis=axis) / deals.sum(axis=axis) - 0.5
    for axis, each in enumerate((deals - wins, wins))
  ]
  bets = np.array(history.observation_tensor(0)[-2:]) / 500
  facts = [legal_moves(state), [len(board) == 5], bets]
  return np.concatenate(
    [*facts, *(np.pad(each, (0, 12 - len(each))) for each in reversed(chances))]
  )


def parsed_cards(kind: str, infostate: str) -> list[int]:
  """Returns the "Private" or "Public" cards of an information state string."""
  return cards.parse_cards(re.findall(rf"{kind}: (\w+)", infostate)[0])


def learned(name: str, game_string: str) -> search.ValueNetwork:
  """Returns a network that has learned from self-play. The game is never walked as a whole."""
  values: search.LeafValues = search.no_values
  network: MLP | search.ValueNetwork = MLP(tuple(int(units) for units in _LAYERS.value))
  features = legal_moves if name.startswith("liars_dice") else None
  if name == "turn":
    features = winning_chances
  recent: list[search.Examples] = []
  for number in range(_ROUNDS.value):
    doublings_left = (_ROUNDS.value - 1 - number) // _ROUNDS_BEFORE_DOUBLING
    examples = search.self_play(
      game_string,
      values,
      depth=_DEPTH.value,
      plays=_PLAYS.value,
      batch=_BATCH.value,
      iterations=max(_LEARNING.value >> doublings_left, min(_LEARNING.value, _FEWEST_ITERATIONS)),
      seed=number,
    )
    recent = [*recent, examples][-_RECENT:]
    values = network = search.learn_values(
      recent, network=network, features=features, steps=_STEPS.value, seed=number
    )
    print(f"{name}, round {number}: error {network.error:z.4f}", flush=True)
  assert isinstance(network, search.ValueNetwork)
  return network


def played(
  label: str, game: spiel_cfr.games.CompiledGame, values: search.LeafValues, iterations: int
) -> dict[str, str]:
  """Returns the exploitability of the policy that a bot plays with values, and CPU seconds."""
  bot = search.BeliefBot(
    values,
    0,
    depth=_DEPTH.value,
    iterations=iterations,
    gadget=_GADGET.value,
  )
  begin = time.process_time()
  exploitability = spiel_cfr.exploitability(game, search.played_policy(game, bot))
  seconds = time.process_time() - begin
  print(f"{label}, {iterations} iterations: {exploitability:z.4f} in {seconds:z.0f} s", flush=True)
  return {
    f"{label}, {iterations} iterations": f"{exploitability:z.4f}",
    f"CPU seconds, {label}": f"{seconds:z.0f}",
  }


if __name__ == "__main__":
  start(main)
