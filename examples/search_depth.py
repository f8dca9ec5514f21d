"""Depth-limited search: exploitability by depth and by the model of the rest of the game.

    python examples/search_depth.py

A policy is the average of a few iterations of CFR. The game is solved from the root to a cut. At the cut, the opponent
chooses among continuations of the policy, or a network gives the values. Then the subgames below the cut are re-solved.
Printed and drawn is the exploitability of the combined policy.
"""

from results import NAMED_GAMES, draws, markdown, panels, save, start, writable

import pathlib
import sys
import time
from collections.abc import Iterator, Sequence

from absl import flags

import spiel_cfr
from spiel_cfr import search
from spiel_cfr.poker import ranges

# Game -> name of a cut -> number of moves before it, chance's included; None for `natural_cut()` of the public tree.
_CUTS: dict[str, dict[str, int | None]] = {
  "kuhn": {"1 bet": 3},
  "leduc": {"1 bet": 3, "2 bets": 4, "public card": None},
  "liars_dice_4": {"1 bid": 3, "2 bids": 4, "3 bids": 5},
  "goofspiel_4": {"1 card": 2, "2 cards": 4},
  "turn": {"river": None},
}
_GAMES = flags.DEFINE_list(
  "games", ["leduc", "liars_dice_4", "goofspiel_4", "turn"], f"games, from: {', '.join(_CUTS)}"
)
_ITERATIONS = flags.DEFINE_list(
  "iterations", ["10", "100"], "iterations of the policies; 0 for an equilibrium"
)
_CONTINUATIONS = flags.DEFINE_list(
  "continuations", ["1", "2", "4", "10"], "numbers of continuations, which are best responses"
)
_GADGET = flags.DEFINE_string("gadget", "safe", "gadget for the subgames below the cut")
_ROUNDS = flags.DEFINE_integer("rounds", 400, "rounds of learning of the network; 0 for none", 0)
_SOLVED = flags.DEFINE_integer("solved", 300, "iterations with exact values; 0 for none", 0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "folder of picture and table")
_PLOT = flags.DEFINE_bool("plot", True, "draw the picture, which needs matplotlib")

# Colours and lines of methods without a choice among continuations.
_STYLES = {
  "no trunk": ("0.4", ":"),
  "network": ("C3", "--"),
  "exact": ("C1", "-."),
}
# The lower end of the axis, relative to the policy's exploitability.
_LEAST = 1e-3

# (exploitabilities, seconds).
Cell = tuple[list[float], float]
# (game, policy, cut) -> method -> cell.
Results = dict[tuple[str, str, str], dict[str, Cell]]


def main() -> None:
  path = writable(pathlib.Path(_OUTPUT_DIR.value, "search_depth.md"))
  results: Results = {}
  try:
    for name in _GAMES.value:
      if name not in _CUTS:
        raise ValueError(f"there is no game {name!r}; take {', '.join(_CUTS)}.")
      results |= measure(name, [int(each) for each in _ITERATIONS.value])
  except ValueError as error:
    sys.exit(f"error: {error}")
  columns = list(next(iter(results.values())))
  table, seconds = (
    markdown(
      "game, policy, cut",
      columns,
      {", ".join(row): [text(*found[each]) for each in columns] for row, found in results.items()},
    )
    for text in (
      lambda each, _: " / ".join(f"{round(number, 5):z.4g}" for number in each),
      lambda _, seconds: f"{seconds:z.1f}",
    )
  )
  path.write_text(f"{table}\n{seconds}")
  print("\nExploitability with the policy below the cut / with re-solved subgames\n\n" + table)
  print(f"\nSeconds, including the subgames below the cut\n\n{seconds}")
  if _PLOT.value:
    draw(path.with_suffix(".png"), results)


def load(name: str) -> spiel_cfr.games.CompiledGame:
  """Returns a game; "turn" is the turn and the river of hold'em with twelve hands a side and bets of the pot."""
  if name != "turn":
    return spiel_cfr.compile_game(NAMED_GAMES[name])
  first = "AhKh,AsKd,QdQc,JsTs,Tc9h,9c9d,8h8d,5s5h,AdTd,KcQc,6d5d,AsJs"
  second = "AcKc,AdQd,KhQh,QhQs,JcTc,9h8h,8s8c,7c7h,6s5s,AhTh,JdJh,Kd9d"
  endgame = ranges.endgame(first, second, board="9s7s4h2s", pot=500, stack=2000)
  # Actions below 3 are fold, call, and a bet of the pot.
  return spiel_cfr.compile_game(
    endgame.load(), action_filter=lambda _, legal: [action for action in legal if action < 3]
  )


def measure(name: str, iterations: Sequence[int]) -> Results:
  """Returns the exploitability and seconds of each method, by game, policy and cut."""
  game = load(name)
  tree = search.public_states(game)
  policies: dict[str, spiel_cfr.policies.AnyPolicy] = {}
  for number in iterations:
    if number:
      solver = spiel_cfr.CFRSolver(game)
      solver.run(number)
      policies[f"CFR {number}"] = solver
    else:
      policies["equilibrium"] = spiel_cfr.solve_lp(game)
  results: Results = {}
  for label, length in _CUTS[name].items():
    cut = [state for state in tree if state.length == length] or tree.natural_cut()
    print(f"{name}, {game.num_states:,} states, {len(cut)} public states at {label}", flush=True)
    first, *_ = policies.values()
    shared = dict(methods_without_policy(game, first, cut))
    for policy_name, policy in policies.items():
      row = results[name, policy_name, label] = dict(methods(game, policy, cut)) | shared
      for column, (found, seconds) in row.items():
        numbers = " / ".join(f"{number:z.5g}" for number in found)
        print(f"  {policy_name:10} {column:20} {numbers:20} {seconds:z6.1f} s", flush=True)
  return results


def methods(
  game: spiel_cfr.games.CompiledGame,
  policy: spiel_cfr.policies.AnyPolicy,
  cut: Sequence[search.PublicState],
) -> Iterator[tuple[str, Cell]]:
  """Yields the name, exploitabilities and seconds of each method that depends on a policy."""
  begin = time.perf_counter()
  found = search.resolve(game, policy, cut=cut, continual=False, gadget=_GADGET.value)
  yield "no trunk", ([found.blueprint_exploitability, found.exploitability], since(begin))
  chosen = [("best_responses", int(number)) for number in _CONTINUATIONS.value]
  for kind, number in [*chosen, ("pure", max(number for _, number in chosen))]:
    begin = time.perf_counter()
    trunk = search.solve_trunk(game, policy, cut=cut, continuations=kind, number=number)
    found = search.resolve(game, trunk, cut=cut, continual=False, gadget=_GADGET.value)
    column = f"{number} pure" if kind == "pure" else f"choice of {number}"
    yield column, ([trunk.exploitability, found.exploitability], since(begin))


def methods_without_policy(
  game: spiel_cfr.games.CompiledGame,
  policy: spiel_cfr.policies.AnyPolicy,
  cut: Sequence[search.PublicState],
) -> Iterator[tuple[str, Cell]]:
  """Yields the name, exploitabilities and seconds of the other methods; `policy` is for unreached infosets."""
  begin = time.perf_counter()
  if _ROUNDS.value:
    learned = search.learn_values(game, cut=cut, rounds=_ROUNDS.value)
    found = search.solve_by_values(policy, learned)
    yield "network", ([found.exploitability], since(begin))
  begin = time.perf_counter()
  if _SOLVED.value:
    found = search.solve_by_values(policy, search.SolvedValues(cut), iterations=_SOLVED.value)
    yield "exact", ([found.exploitability], since(begin))
  begin = time.perf_counter()
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(1000)
  yield "all at once", ([solver.exploitability()], since(begin))


def since(begin: float) -> float:
  """Returns the seconds since a moment."""
  return time.perf_counter() - begin


@draws
def draw(path: pathlib.Path, results: Results) -> None:
  """Draws one panel a game and policy, and one line a method: exploitability against the cut."""
  by_policy: dict[tuple[str, str], dict[str, dict[str, Cell]]] = {}
  for (name, policy, cut), found in results.items():
    by_policy.setdefault((name, policy), {})[cut] = found
  plt, figure, grid = panels(len(by_policy), min(4, len({name for name, _ in by_policy})))
  # Filled by columns: the policies of a game are below each other.
  for axes, (panel, cuts) in zip(grid.T.flat, by_policy.items(), strict=False):
    names = [name for name in next(iter(cuts.values())) if name != "all at once"]
    choices = [name for name in names if name.startswith("choice")]
    for name in names:
      color, line = _STYLES.get(name, ("C2", ":"))
      if name in choices:
        blue = 0.2 + 0.8 * (choices.index(name) + 1) / len(choices)
        color, line = plt.get_cmap("Blues")(blue), "-"
      heights = [
        max(found[name][0][-1], _LEAST * next(iter(cuts.values()))["no trunk"][0][0])
        for found in cuts.values()
      ]
      axes.plot(list(cuts), heights, marker="o", label=name, color=color, linestyle=line)
    axes.set(yscale="log", title=", ".join(panel))
    axes.margins(x=0.15)
  grid[0, 0].set_ylabel("exploitability")
  handles, labels = grid[0, 0].get_legend_handles_labels()
  figure.legend(handles, labels, loc="outside lower center", ncols=8)
  figure.suptitle("Depth-limited search to a cut, with re-solved subgames below it")
  save(figure, path, 90)


if __name__ == "__main__":
  start(main)
