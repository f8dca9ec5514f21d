"""Search that stops before the end of the game: what it is worth, by depth and by what stands for the rest.

    python examples/search_depth.py

A policy is the average of a few iterations of CFR. The game is solved from its first move to a cut, where the opponent
chooses among continuations of the policy, or a network says what is worth what; then what is below the cut is solved
again. Printed and drawn is the exploitability of everything that is then played.
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

# The numbers of moves, chance's included, after which the game is cut; None is `natural_cut()` of the public tree.
_CUTS: dict[str, dict[str, int | None]] = {
  "kuhn": {"1 bet": 3},
  "leduc": {"1 bet": 3, "2 bets": 4, "public card": None},
  "liars_dice_4": {"1 bid": 3, "2 bids": 4, "3 bids": 5},
  "goofspiel_4": {"1 card": 2, "2 cards": 4},
  "turn": {"river": None},
}
_GAMES = flags.DEFINE_list(
  "games", ["leduc", "liars_dice_4", "goofspiel_4", "turn"], f"which of {', '.join(_CUTS)}"
)
_ITERATIONS = flags.DEFINE_list(
  "iterations", ["10", "100"], "how many iterations make a policy; 0 takes an equilibrium"
)
_CONTINUATIONS = flags.DEFINE_list(
  "continuations", ["1", "2", "4", "10"], "how many best responses"
)
_GADGET = flags.DEFINE_string("gadget", "safe", "how what is below a cut is solved again")
_ROUNDS = flags.DEFINE_integer("rounds", 400, "what networks learn from; 0 leaves them out", 0)
_SOLVED = flags.DEFINE_integer("solved", 300, "iterations with exact values; 0 leaves them out", 0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "where picture and table go")
_PLOT = flags.DEFINE_bool("plot", True, "whether to draw; needs matplotlib")

# How ways to search are drawn that are no choice among continuations.
_STYLES = {
  "no trunk": ("0.4", ":"),
  "network": ("C3", "--"),
  "exact": ("C1", "-."),
}
# Below this part of the policy's own exploitability there is hardly anything left to see.
_LEAST = 1e-3

# Exploitabilities and seconds.
Cell = tuple[list[float], float]
# By game, policy and cut, and way to search.
Results = dict[tuple[str, str, str], dict[str, Cell]]


def main() -> None:
  path = writable(pathlib.Path(_OUTPUT_DIR.value, "search_depth.md"))
  results: Results = {}
  try:
    for name in _GAMES.value:
      if name not in _CUTS:
        raise ValueError(f"there is no game {name!r}; there are {', '.join(_CUTS)}.")
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
  print("\nExploitability with the policy below the cut / when that is solved again\n\n" + table)
  print(f"\nSeconds, what is below the cut included\n\n{seconds}")
  if _PLOT.value:
    draw(path.with_suffix(".png"), results)


def load(name: str) -> spiel_cfr.games.CompiledGame:
  """Returns a game; "turn" is the turn and the river of hold'em with twelve hands a side and bets of the pot."""
  if name != "turn":
    return spiel_cfr.compile_game(NAMED_GAMES[name])
  first = "AhKh,AsKd,QdQc,JsTs,Tc9h,9c9d,8h8d,5s5h,AdTd,KcQc,6d5d,AsJs"
  second = "AcKc,AdQd,KhQh,QhQs,JcTc,9h8h,8s8c,7c7h,6s5s,AhTh,JdJh,Kd9d"
  endgame = ranges.endgame(first, second, board="9s7s4h2s", pot=500, stack=2000)
  # Fold, call, and a bet of the pot.
  return spiel_cfr.compile_game(
    endgame.load(), action_filter=lambda _, legal: [action for action in legal if action < 3]
  )


def measure(name: str, iterations: Sequence[int]) -> Results:
  """Returns, by game, policy and cut, exploitability and seconds of each way to search."""
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
    shared = dict(ways_of_all(game, first, cut))
    for policy_name, policy in policies.items():
      row = results[name, policy_name, label] = dict(ways(game, policy, cut)) | shared
      for column, (found, seconds) in row.items():
        numbers = " / ".join(f"{number:z.5g}" for number in found)
        print(f"  {policy_name:10} {column:20} {numbers:20} {seconds:z6.1f} s", flush=True)
  return results


def ways(
  game: spiel_cfr.games.CompiledGame,
  policy: spiel_cfr.policies.AnyPolicy,
  cut: Sequence[search.PublicState],
) -> Iterator[tuple[str, Cell]]:
  """Yields a name, exploitabilities and seconds for each way to search with a policy."""
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


def ways_of_all(
  game: spiel_cfr.games.CompiledGame,
  policy: spiel_cfr.policies.AnyPolicy,
  cut: Sequence[search.PublicState],
) -> Iterator[tuple[str, Cell]]:
  """Yields the same for what does not depend on a policy: this one is played where nobody comes."""
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
  """Returns how many seconds have passed."""
  return time.perf_counter() - begin


@draws
def draw(path: pathlib.Path, results: Results) -> None:
  """Draws a panel a game and policy: exploitability against the cut, a line a way to search."""
  by_policy: dict[tuple[str, str], dict[str, dict[str, Cell]]] = {}
  for (name, policy, cut), found in results.items():
    by_policy.setdefault((name, policy), {})[cut] = found
  plt, figure, grid = panels(len(by_policy), min(4, len({name for name, _ in by_policy})))
  # By columns, so that the policies of a game are below each other.
  for axes, (panel, cuts) in zip(grid.T.flat, by_policy.items(), strict=False):
    ways = [way for way in next(iter(cuts.values())) if way != "all at once"]
    choices = [way for way in ways if way.startswith("choice")]
    for way in ways:
      color, line = _STYLES.get(way, ("C2", ":"))
      if way in choices:
        blue = 0.2 + 0.8 * (choices.index(way) + 1) / len(choices)
        color, line = plt.get_cmap("Blues")(blue), "-"
      heights = [
        max(found[way][0][-1], _LEAST * next(iter(cuts.values()))["no trunk"][0][0])
        for found in cuts.values()
      ]
      axes.plot(list(cuts), heights, marker="o", label=way, color=color, linestyle=line)
    axes.set(yscale="log", title=", ".join(panel))
    axes.margins(x=0.15)
  grid[0, 0].set_ylabel("exploitability")
  handles, labels = grid[0, 0].get_legend_handles_labels()
  figure.legend(handles, labels, loc="outside lower center", ncols=8)
  figure.suptitle("Search that stops at a cut, and what is below solved again")
  save(figure, path, 90)


if __name__ == "__main__":
  start(main)
