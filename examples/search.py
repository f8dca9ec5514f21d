r"""Re-solves subgames of weak policies with each gadget, and measures the exploitability of the results exactly.

    python examples/search.py

The policies are averages of a few iterations of CFR on five games. Each gadget re-solves the subgames of one cut, or
all decisions one after another ("continual"), for both players. The program prints and draws the exploitability of the
combined policy. Unsafe search and 1-KLSS may make a policy worse; the other gadgets never do.

    python examples/search.py --turns=small,subgame2.txt --iterations=20,100

re-solves all rivers of hold'em turns instead, in vector form: files in the LibratusEndgames format, or the small
built-in turn. The policies are then averages of CFR+.
"""

from results import NAMED_GAMES, draws, markdown, panels, save, small_turn, start, writable

import pathlib
import sys

from absl import flags

import spiel_cfr
from spiel_cfr import poker, search

_GAMES = flags.DEFINE_list(
  "games",
  ["kuhn", "leduc", "liars_dice_4", "goofspiel_4", "nolimit"],
  "names of the examples' games, or OpenSpiel game strings without commas",
)
_ITERATIONS = flags.DEFINE_list("iterations", ["10", "100"], "iterations of the policies")
_GADGETS = flags.DEFINE_list("gadgets", list(search.GADGETS), "gadgets to measure")
_TURNS = flags.DEFINE_list("turns", [], "hold'em turns in place of games: files, or small")
_RIVER_ITERATIONS = flags.DEFINE_integer("river_iterations", 200, "iterations for each river", 1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "folder of picture and table")
_PLOT = flags.DEFINE_bool("plot", True, "draw the picture, which needs matplotlib")
# Games whose strings have commas.
_MORE_GAMES = {
  "nolimit": (
    "universal_poker(betting=nolimit,numPlayers=2,numRounds=2,firstPlayer=1 1,numSuits=1,numRanks=4,numHoleCards=1,"
    "numBoardCards=0 1,stack=6 6,blind=1 1,bettingAbstraction=fcpa)"
  )
}


def main() -> None:
  path = writable(pathlib.Path(_OUTPUT_DIR.value, "search.md"))
  if _TURNS.value:
    print_turns()
    return
  try:
    results = {
      f"{name}, CFR {iterations}": compare(name, int(iterations))
      for name in _GAMES.value
      for iterations in _ITERATIONS.value
    }
  except ValueError as error:
    sys.exit(f"error: {error}")
  columns = ["alone", *_GADGETS.value]
  rows = {
    name: [" / ".join(f"{number:z.4f}" for number in by_gadget[column]) for column in columns]
    for name, by_gadget in results.items()
  }
  table = markdown("policy", columns, rows)
  path.write_text(table)
  print(f"\nExploitability of the combined policy: one cut / continual\n\n{table}")
  if _PLOT.value:
    draw(path.with_suffix(".png"), results)


def compare(name: str, iterations: int) -> dict[str, list[float]]:
  """Returns gadget -> exploitability after re-solving one cut and all decisions; "alone" is the policy itself."""
  game = spiel_cfr.compile_game({**NAMED_GAMES, **_MORE_GAMES}.get(name, name))
  solver = spiel_cfr.CFRSolver(game)
  solver.run(iterations)
  result = {"alone": [solver.exploitability()]}
  print(f"{game}, {iterations} iterations of CFR: {solver.exploitability():z.5f}", flush=True)
  for gadget in _GADGETS.value:
    resolved = [
      search.resolve(game, solver, gadget=gadget, continual=continual)
      for continual in (False, True)
    ]
    result[gadget] = [resolution.exploitability for resolution in resolved]
    numbers = " / ".join(f"{number:z.5f}" for number in result[gadget])
    print(f"  {gadget:18} {numbers}", flush=True)
  return result


def print_turns() -> None:
  """Prints a table with one row for each turn and policy: exploitability by gadget, and milliseconds per river."""
  rows = []
  for name in _TURNS.value:
    game = load_turn(name)
    for iterations in map(int, _ITERATIONS.value):
      solver = spiel_cfr.CFRPlusSolver(game)
      solver.run(iterations)
      cells = [f"{solver.exploitability():z.4g}"]
      for gadget in ("unsafe", "resolving", "follow"):
        resolved = search.resolve(game, solver, gadget=gadget, iterations=_RIVER_ITERATIONS.value)
        steps, exploitability = resolved.steps, resolved.exploitability
        count = sum(step.solved + step.refused for step in steps)
        refused = sum(step.refused for step in steps)
        milliseconds = 1000 * sum(step.seconds for step in steps) / max(count, 1)
        cells.append(
          f"{exploitability:z.4g} ({refused:,} of {count:,} kept; {milliseconds:z.0f} ms)"
        )
        print(f"{name}, CFR+ {iterations}, {gadget}: {cells[-1]}", flush=True)
      rows.append(" | ".join([f"| {name}, CFR+ {iterations}", *cells]) + " |")
  print("\n| policy | alone | unsafe | resolving | follow |\n| --- | ---: | ---: | ---: | ---: |")
  print(*rows, sep="\n")


def load_turn(name: str) -> poker.PublicGame:
  """Returns a turn with the bets of the Libratus endgames; "small" has twelve hands a side."""
  endgame = small_turn(stack=2000) if name == "small" else poker.load_endgame(name)
  return poker.compile_public_game(endgame.load(), poker.few_bets)


@draws
def draw(path: pathlib.Path, results: dict[str, dict[str, list[float]]]) -> None:
  """Draws one panel for each policy, and one bar for each gadget: exploitability relative to the policy's."""
  shown = {name: by_gadget for name, by_gadget in results.items() if by_gadget["alone"][0] > 1e-9}
  plt, figure, grid = panels(len(shown), min(5, len(shown)))
  for axes, (name, by_gadget) in zip(grid.flat, shown.items(), strict=False):
    alone = by_gadget["alone"][0]
    for index, gadget in enumerate(_GADGETS.value):
      for shift, value, color in zip((-0.2, 0.2), by_gadget[gadget], ("C0", "C1"), strict=True):
        # The axis ends at a thousandth.
        height = max(value / alone, 1e-3)
        axes.bar(
          index + shift,
          height,
          0.4,
          bottom=0,
          color=("C3", "C6")[shift > 0] if height > 1.001 else color,
        )
    axes.axhline(1.0, color="0.4", linewidth=0.8)
    axes.set(yscale="log", ylim=(1e-3, 12), title=f"{name}: {alone:z.3g}")
    axes.set_xticks(range(len(_GADGETS.value)), _GADGETS.value, rotation=60, ha="right", fontsize=7)
  for axes in list(grid.flat)[len(shown) :]:
    axes.axis("off")
  grid[0, 0].set_ylabel("exploitability / policy's")
  handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in ("C0", "C1", "C3", "C6")]
  labels = ["one cut", "continual", "one cut, worse than the policy", "continual, worse"]
  figure.legend(handles, labels, loc="outside lower center", ncols=4)
  figure.suptitle("Exploitability after re-solving subgames, relative to the policy's")
  save(figure, path, 90)


if __name__ == "__main__":
  start(main)
