r"""The way of Libratus on a game that fits: abstraction, blueprint, safe and nested search, a bot; each step measured.

    python examples/way_of_libratus.py --output_dir=docs

The game is no-limit poker with one card each, one on the board and a few chips, any number of which may be bet. Its
blueprint knows raises to 3 chips, to 9 and of all chips, and in the second round only how good its hand is. What is
printed and drawn after each step is the exploitability in the whole game, by exact best responses. Brown and Sandholm,
"Superhuman AI for heads-up no-limit poker: Libratus beats top professionals" (2018).
"""

import pathlib
import re
import sys
from typing import Any

import pyspiel
from absl import app, flags
from open_spiel.python.policy import tabular_policy_from_callable
from results import writable

import spiel_cfr
from spiel_cfr import abstraction, search

_STACK = flags.DEFINE_integer("stack", 5, "how many chips each player has", lower_bound=3)
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "of the blueprint", lower_bound=1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "where the picture goes")
_PLOT = flags.DEFINE_bool("plot", True, "whether to draw; needs matplotlib")


def few_bets(state: Any, actions: list[int]) -> list[int]:
  """Fold, call, and raises to 3 chips, to 9 and of all chips."""
  del state
  return [action for action in actions if action in (0, 1, 3, 9, _STACK.value)]


def coarse(infostate: str) -> str:
  """No suits; with a card on the board, only whether the own one pairs it, or is above or below it."""

  def hand(cards: re.Match[str]) -> str:
    own, board = cards.groups()
    if not board:
      return own
    return "pair" if own == board else "above" if own > board else "below"

  return re.sub(r"\[Private: (.).\]\[Public: (.?).?\]", hand, infostate)


def translate(state: Any, action: int) -> dict[int, float]:
  """A raise is taken for the next smaller or larger one that the blueprint knows, by the pseudo-harmonic mapping."""
  money = re.findall(r"\d+", state.information_state_string().partition("Money: ")[2])[:2]
  stake = _STACK.value - min(map(int, money))
  # By how much each raises, in pots; a call raises by nothing.
  kept = [each for each in few_bets(state, state.legal_actions()) if each > 0]
  sizes = {each: (max(each, stake) - stake) / (2 * stake) for each in kept}
  size = (action - stake) / (2 * stake)
  below = max((each for each in sizes if sizes[each] <= size), key=sizes.__getitem__)
  larger = [each for each in sizes if sizes[each] > size]
  if not larger:
    return {below: 1.0}
  above = min(larger, key=sizes.__getitem__)
  taken = abstraction.pseudo_harmonic(size, sizes[below], sizes[above])
  return {below: taken, above: 1 - taken}


def walk() -> dict[str, float]:
  """Goes the whole way; returns the exploitability after each step."""
  found = {}

  def note(step: str, exploitability: float) -> None:
    found[step] = exploitability
    print(f"{step:44} {exploitability:.5f}", flush=True)

  name = (
    "universal_poker(betting=nolimit,bettingAbstraction=fullgame,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,"
    f"numSuits=2,numRanks=3,numHoleCards=1,numBoardCards=0 1,stack={_STACK.value} {_STACK.value})"
  )
  # An abstraction of actions, one of cards on top of it, and what CFR makes of that. Players forget their card in round
  # 2, so no theorem says how good this is: it is measured.
  game = spiel_cfr.compile_game(name)
  small = spiel_cfr.compile_game(name, action_filter=few_bets)
  tiny = abstraction.abstract(small, coarse)
  print(f"{game}\n{tiny}\n")
  solver = spiel_cfr.DCFRSolver(tiny)
  solver.run(_ITERATIONS.value)
  blueprint = abstraction.lift(tiny, solver.average_policy())
  note("blueprint, if all bet as it does", spiel_cfr.exploitability(small, blueprint))
  translated = abstraction.translated_policy(game, small, blueprint, translate)
  note("translated", spiel_cfr.exploitability(game, translated))

  # The second round solved again, every bet included; then every decision, each on what the last solution plays.
  for gadget in ("unsafe", "safe"):
    cut = search.resolve(game, translated, gadget=gadget, continual=False)
    note(f"{gadget} search of round 2", cut.exploitability)
  note("safe search of every decision", search.resolve(game, translated).exploitability)

  # A bot that has the blueprint alone, and needs no translation: what it does not know it solves when it comes.
  bots = [
    search.SearchBot(blueprint, player, max_histories=10**6, seed=player) for player in range(2)
  ]
  state = game.game.new_initial_state()
  pyspiel.evaluate_bots(state, bots, 1)
  print(f"\nA hand of two such bots:\n{state}\n")
  # What it plays at all of its decisions is a policy.
  played = tabular_policy_from_callable(
    game.game, lambda each: dict(bots[each.current_player()].get_policy(each))
  )
  note("the bot, from the blueprint", spiel_cfr.exploitability(game, played))
  pairs = [played, translated], [translated, played]
  wins = [spiel_cfr.expected_values(game, pair)[seat] for seat, pair in enumerate(pairs)]
  print(f"\nIt wins {sum(wins) / 2:+.4f} chips a hand from the translated blueprint.")
  return found


def draw(path: pathlib.Path, found: dict[str, float]) -> None:
  """Draws a bar a step."""
  try:
    import matplotlib.pyplot as plt
  except ImportError:
    sys.exit("No picture without matplotlib: pip install matplotlib, or pass --noplot.")
  figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
  colors = ["0.7", "C3", "C3", "C0", "C0", "C2"]
  bars = axes.barh(list(found), list(found.values()), color=colors)
  axes.bar_label(bars, fmt="%.3f", padding=4)
  axes.invert_yaxis()
  axes.set_xlabel("exploitability, chips a hand")
  axes.spines[["top", "right"]].set_visible(False)
  figure.savefig(path, dpi=90)
  plt.close(figure)
  print(f"Wrote {path}")


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  path = writable(pathlib.Path(_OUTPUT_DIR.value, "way_of_libratus.png"))
  found = walk()
  if _PLOT.value:
    draw(path, found)


if __name__ == "__main__":
  app.run(main)
