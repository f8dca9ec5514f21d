r"""The way of Libratus on a game that fits: abstraction, blueprint, safe and nested search, a bot; each step measured.

    python examples/way_of_libratus.py --output_dir=docs

The game is no-limit poker with one card each, one on the board and a few chips, any number of which may be bet. Its
blueprint knows raises to 3 chips, to 9 and of all chips, and in the second round only how good its hand is. What is
printed and drawn after each step is the exploitability in the whole game, by exact best responses. Brown and Sandholm,
"Superhuman AI for heads-up no-limit poker: Libratus beats top professionals" (2018).
"""

from results import draws, pyplot, save, start, writable

import pathlib
import re
from typing import Any

from absl import flags

import spiel_cfr
from spiel_cfr import abstraction, referee, search

_STACK = flags.DEFINE_integer("stack", 5, "how many chips each player has", lower_bound=3)
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "of the blueprint", lower_bound=1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "where the picture goes")
_PLOT = flags.DEFINE_bool("plot", True, "whether to draw; needs matplotlib")
_GAME = (
  "universal_poker(betting=nolimit,bettingAbstraction=fullgame,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,"
  "numSuits=2,numRanks=3,numHoleCards=1,numBoardCards=0 1,stack={0} {0})"
)


def few_bets(_: Any, actions: list[int]) -> list[int]:
  """Fold, call, and raises to 3 chips, to 9 and of all chips."""
  return [action for action in actions if action in (0, 1, 3, 9, _STACK.value)]


def coarse(infostate: str) -> str:
  """No suits; with a card on the board, only whether the own one pairs it, or is above or below it."""
  before, own, board, after = re.split(r"\[Private: (.).\]\[Public: (.?).?\]", infostate)
  hand = own if not board else "pair" if own == board else "above" if own > board else "below"
  return before + hand + after


def size(state: Any, action: int) -> float | None:
  """By how many pots an action raises: a call by none."""
  money = re.findall(r"\d+", state.information_state_string().partition("Money: ")[2])[:2]
  stake = _STACK.value - min(map(int, money))
  return (max(action, stake) - stake) / (2 * stake) if action else None


def main() -> None:
  path = writable(pathlib.Path(_OUTPUT_DIR.value, "way_of_libratus.png"))
  game = spiel_cfr.compile_game(_GAME.format(_STACK.value))
  # An abstraction of actions, one of cards on top of it, and what CFR makes of that. Players forget their card in round
  # 2, so no theorem says how good this is: it is measured.
  small = spiel_cfr.compile_game(game.game, action_filter=few_bets)
  solver = spiel_cfr.DCFRSolver(abstraction.abstract(small, coarse))
  solver.run(_ITERATIONS.value)
  print(f"{game}\n{solver.compiled_game}\n", flush=True)
  blueprint = abstraction.lift(solver.compiled_game, solver)
  nearest = abstraction.nearest_sizes(small, size)
  translated = abstraction.translated_policy(game, small, blueprint, nearest)
  # The second round solved again, every bet included; then every decision, each on what the last solution plays.
  unsafe = search.resolve(game, translated, gadget="unsafe", continual=False)
  safe = search.resolve(game, translated, continual=False)
  continual = search.resolve(game, translated)
  # Bots that have the blueprint alone, and need no translation: what they do not know they solve when it comes.
  bots = [search.SearchBot(blueprint, player, max_histories=10**6) for player in range(2)]
  found = {
    "blueprint, if all bet as it does": spiel_cfr.exploitability(small, blueprint),
    "translated": spiel_cfr.exploitability(game, translated),
    "unsafe search of round 2": unsafe.exploitability,
    "safe search of round 2": safe.exploitability,
    "safe search of every decision": continual.exploitability,
    "the bot, from the blueprint": spiel_cfr.exploitability(game, bots),
  }
  for step, exploitability in found.items():
    print(f"{step:44} {exploitability:z.5f}")
  print(referee.head_to_head(game, {"bot": bots, "translated": translated}))
  if _PLOT.value:
    draw(found, path)


@draws
def draw(found: dict[str, float], path: pathlib.Path) -> None:
  """Draws a bar a step."""
  figure, axes = pyplot().subplots(figsize=(8, 3), layout="constrained")
  colors = ["0.7", "C3", "C3", "C0", "C0", "C2"]
  bars = axes.barh(list(found), list(found.values()), color=colors)
  axes.bar_label(bars, fmt="%.3f", padding=4)
  axes.invert_yaxis()
  axes.set_xlabel("exploitability, chips a hand")
  axes.spines[["top", "right"]].set_visible(False)
  save(figure, path, 90)


if __name__ == "__main__":
  start(main)
