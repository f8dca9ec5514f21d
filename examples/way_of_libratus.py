r"""The steps of Libratus on a small game: abstraction, blueprint, safe and nested search, a bot; each step measured.

    python examples/way_of_libratus.py --output_dir=docs

The game is no-limit poker with one private card per player, one public card and a few chips; any number of chips may be
bet. The blueprint has raises to 3 chips, to 9 and all-in; in the second round, its infosets have only the rank of the
hand. The program prints and draws the exploitability in the full game after each step, by exact best responses. The
steps are those of Brown and Sandholm, "Superhuman AI for heads-up no-limit poker: Libratus beats top professionals"
(2018).
"""

from results import draws, pyplot, save, start, writable

import pathlib
import re
from typing import Any

from absl import flags

import spiel_cfr
from spiel_cfr import abstraction, referee, search

_STACK = flags.DEFINE_integer("stack", 5, "chips of each player", lower_bound=3)
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "iterations of the blueprint", lower_bound=1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "folder of the picture")
_PLOT = flags.DEFINE_bool("plot", True, "draw the picture, which needs matplotlib")
_GAME = (
  "universal_poker(betting=nolimit,bettingAbstraction=fullgame,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,"
  "numSuits=2,numRanks=3,numHoleCards=1,numBoardCards=0 1,stack={0} {0})"
)


def few_bets(_: Any, actions: list[int]) -> list[int]:
  """Returns fold, call, and raises to 3 chips, to 9 and all-in."""
  return [action for action in actions if action in (0, 1, 3, 9, _STACK.value)]


def coarse(infostate: str) -> str:
  """Returns an infostate without suits; with a public card, the private card is "pair", "above" or "below"."""
  before, private, board, after = re.split(r"\[Private: (.).\]\[Public: (.?).?\]", infostate)
  hand = private
  if board:
    hand = "pair" if private == board else "above" if private > board else "below"
  return before + hand + after


def size(state: Any, action: int) -> float | None:
  """Returns the size of a raise in pots, 0 for a call, None for a fold."""
  money = re.findall(r"\d+", state.information_state_string().partition("Money: ")[2])[:2]
  stake = _STACK.value - min(map(int, money))
  return (max(action, stake) - stake) / (2 * stake) if action else None


def main() -> None:
  path = writable(pathlib.Path(_OUTPUT_DIR.value, "way_of_libratus.png"))
  game = spiel_cfr.compile_game(_GAME.format(_STACK.value))
  # An abstraction of actions, then of cards. Players forget their card in round 2, so no theorem bounds the
  # exploitability of CFR's policy: it is measured.
  small = spiel_cfr.compile_game(game.game, action_filter=few_bets)
  solver = spiel_cfr.DCFRSolver(abstraction.abstract(small, coarse))
  solver.run(_ITERATIONS.value)
  print(f"{game}\n{solver.compiled_game}\n", flush=True)
  blueprint = abstraction.lift(solver.compiled_game, solver)
  nearest = abstraction.nearest_sizes(small, size)
  translated = abstraction.translated_policy(game, small, blueprint, nearest)
  # Re-solves the second round with all bets; then every decision, given the strategies of the earlier solutions.
  unsafe = search.resolve(game, translated, gadget="unsafe", continual=False)
  safe = search.resolve(game, translated, continual=False)
  continual = search.resolve(game, translated)
  # Bots with the blueprint only, without translation: they solve bets outside the blueprint as they occur.
  bots = [search.SearchBot(blueprint, player, max_histories=10**6) for player in range(2)]
  exploitabilities = {
    "blueprint, if all bet as it does": spiel_cfr.exploitability(small, blueprint),
    "translated": spiel_cfr.exploitability(game, translated),
    "unsafe search of round 2": unsafe.exploitability,
    "safe search of round 2": safe.exploitability,
    "safe search of every decision": continual.exploitability,
    "the bot, from the blueprint": spiel_cfr.exploitability(game, bots),
  }
  for step, exploitability in exploitabilities.items():
    print(f"{step:44} {exploitability:z.5f}")
  print(referee.head_to_head(game, {"bot": bots, "translated": translated}))
  if _PLOT.value:
    draw(exploitabilities, path)


@draws
def draw(exploitabilities: dict[str, float], path: pathlib.Path) -> None:
  """Draws one bar for each step."""
  figure, axes = pyplot().subplots(figsize=(8, 3), layout="constrained")
  colors = ["0.7", "C3", "C3", "C0", "C0", "C2"]
  bars = axes.barh(list(exploitabilities), list(exploitabilities.values()), color=colors)
  axes.bar_label(bars, fmt="%.3f", padding=4)
  axes.invert_yaxis()
  axes.set_xlabel("exploitability, chips a hand")
  axes.spines[["top", "right"]].set_visible(False)
  save(figure, path, 90)


if __name__ == "__main__":
  start(main)
