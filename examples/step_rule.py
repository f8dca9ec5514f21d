r"""Compares rules of regret minimization at equal time and at equal iterations, in several perturbed runs.

A rule is what distinguishes one solver of the CFR family from another: how it updates regrets, chooses strategies and
weights the average. CFR+, DCFR and restarted CFR are examples.

    python examples/step_rule.py --groups=tuned,seen,fresh --results=results/step_rule.jsonl

runs every rule on every game of `rule_games.py` to budgets of 100, 1,000 and 10,000 iterations. It writes each result
to a file as one line, resumes from that file, and prints tables of the results; --report only prints the tables.

Time is counted in iterations of CFR+ on the same game. The cost of a rule is the ratio of CPU times of whole runs
of the rule and of CFR+, which take turns. "Equal time" is the exploitability after the time of N iterations of CFR+;
"equal iterations" is the exploitability after N iterations. The HS-* rules are given the number of iterations.

The late phase of most rules is chaotic, so a single run says little. Run 0 begins with uniform strategies, the other
runs with uniform strategies perturbed by 0.1 %. Values below 1e-12 of the payoff range are rounding errors, and count
as equal.

--endgames=subgame3.txt,subgame4.txt (of github.com/Sandholm-Lab/LibratusEndgames) adds these endgames, in mbb/g.
"""

from results import chosen

import contextlib
import functools
import json
import math
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import rule_games
from absl import app, flags

import spiel_cfr
from spiel_cfr import CompiledGame, Restarted, catalogue
from spiel_cfr.poker import bet_filters

_GROUPS = flags.DEFINE_list("groups", ["tuned"], f"groups of games: {', '.join(rule_games.GROUPS)}")
_GAMES = flags.DEFINE_list("games", [], "numbers of games of these groups, from 0; all by default")
_ENDGAMES = flags.DEFINE_list("endgames", [], "files of endgames in the LibratusEndgames format")
_BUDGETS = flags.DEFINE_list("budgets", ["100", "1000", "10000"], "budgets, in iterations")
_RUNS = flags.DEFINE_integer("runs", 3, "runs of each rule on each game", lower_bound=1)
_COLUMNS = flags.DEFINE_list("columns", [], "rules to run; all by default")
_RESULTS = flags.DEFINE_string("results", "", "file of the results; none by default")
_REPORT = flags.DEFINE_bool("report", False, "print the tables of the file, and run nothing")
_OURS = flags.DEFINE_string("ours", "restarted", "rule to compare with the others")

# Published rules with the papers' parameters -> names in the catalogue.
RIVALS = {
  "CFR+": "cfr+",
  "DCFR": "dcfr",
  "DCFR+": "dcfr+",
  "PCFR+": "pcfr+",
  "PDCFR+": "pdcfr+",
  "SAPCFR+": "sapcfr+",
  "APCFR+": "apcfr+",
  "APDCFR+": "apdcfr+",
  # No longer in the library; reports show measurements of an earlier version.
  "VAD-CFR": "",
  "HS-DCFR": "hsdcfr",
  "HS-PCFR+": "hspcfr+",
}
# Published rules without a horizon, with tentative restarts.
WRAPPED = {
  f"{column}, restarted": RIVALS[column]
  for column in ("CFR+", "DCFR", "PCFR+", "PDCFR+", "SAPCFR+", "APCFR+")
}
OURS = {
  "adaptive": "adaptive",
  "adaptive, restarted": "restarted_adaptive",
  "restarted": "restarted",
}
COLUMNS = [*RIVALS, *WRAPPED, *OURS]
RUN = [column for column in COLUMNS if column != "VAD-CFR"]

# The number of iterations after which a solver's cost is accurate enough.
_ENOUGH = 1000

# Cells of a budget that was not run.
_EMPTY = " | | "

Record = dict[str, Any]
# (game, rule, run) -> budgets that are not measured yet.
Missing = Callable[[str, str, int], list[int]]


def make(column: str, game: CompiledGame, horizon: int) -> spiel_cfr.Solver:
  """Returns the solver of a column."""
  if column in WRAPPED:
    wrapped = catalogue.make(WRAPPED[column], game, horizon)
    assert isinstance(wrapped, spiel_cfr.FullWidthSolver)
    return Restarted(wrapped)
  return catalogue.make((RIVALS | OURS)[column], game, horizon)


def perturbed(solver: spiel_cfr.Solver, run: int) -> spiel_cfr.Solver:
  """Returns a new solver with its initial strategies perturbed by 0.1 %; run 0 is not perturbed."""
  if run:
    state, game = solver.state_dict(), solver.compiled_game
    (name,) = (name for name in state if name in ("strategy", "solver.strategy"))
    noise = np.random.default_rng(run).standard_normal(game.end)
    probabilities = solver.current_probabilities() * (1 + 1e-3 * np.clip(noise, -9, 9))
    for tree in game.treeplexes:
      for sequences, _ in tree.infoset_groups():
        probabilities[sequences] /= probabilities[sequences].sum(axis=0)
    state[name] = probabilities.astype(state[name].dtype)
    solver.load_state_dict(state)
  return solver


def seconds_of(solver: spiel_cfr.Solver, iterations: int) -> float:
  """Returns the CPU seconds of a run."""
  start = time.process_time()
  solver.run(iterations)
  return time.process_time() - start


def cost(column: str, game: CompiledGame, iterations: int) -> float:
  """Returns the ratio of a run's cost to that of CFR+: the median over rounds in which the two take turns."""
  if column == "CFR+":
    return 1.0
  columns = [column, "CFR+"]
  for name in columns:
    # This compiles the kernels that `prepare` does not.
    solver = make(name, game, iterations)
    solver.prepare()
    solver.run(20)
  ratios: list[float] = []
  spent = 0.0
  while len(ratios) < 25 and (len(ratios) < (3 if iterations <= _ENOUGH else 1) or spent < 0.05):
    solvers = {name: make(name, game, iterations) for name in columns}
    for solver in solvers.values():
      solver.prepare()
    seconds = dict.fromkeys(columns, 0.0)
    # Slices of both runs take turns, so that other load affects both; so does the first slice.
    parts = 4 if iterations >= _ENOUGH else 1
    for part in range(parts):
      for name in columns[:: 1 if (len(ratios) + part) % 2 else -1]:
        seconds[name] += seconds_of(solvers[name], iterations // parts)
    ratios.append(seconds[column] / max(seconds["CFR+"], 1e-9))
    spent += sum(seconds.values())
  return statistics.median(ratios)


def values(column: str, game: CompiledGame, run: int, counts: set[int]) -> dict[int, float]:
  """Returns iterations -> exploitability. A rule with a horizon has a separate run for each number of iterations."""
  result = {}
  has_horizon = column.startswith("HS-")
  solver = perturbed(make(column, game, max(counts)), run)
  for count in sorted(counts):
    if has_horizon:
      solver = perturbed(make(column, game, count), run)
    solver.run(count - solver.iteration)
    result[count] = solver.exploitability()
  return result


def measure(name: str, game: CompiledGame, unit: float, missing: Missing) -> Iterator[Record]:
  """Yields a record for each rule and each run with missing budgets."""
  low, high = game.payoff_range
  for column in _COLUMNS.value or RUN:
    costs: dict[int, float] = {}
    for run in range(_RUNS.value):
      budgets = missing(name, column, run)
      if not budgets:
        continue
      for budget in set(budgets) - costs.keys():
        # All iterations of published rules cost the same.
        counted = min(budget, _ENOUGH) if column in RIVALS else budget
        costs[budget] = costs.get(counted) or cost(column, game, counted)
      equal = {budget: max(1, round(budget / costs[budget])) for budget in budgets}
      found = values(column, game, run, {*budgets, *equal.values()})
      yield {
        "game": name,
        "column": column,
        "run": run,
        "rounding": 1e-12 * (high - low) * unit,
        "cost": {budget: round(costs[budget], 3) for budget in budgets},
        "iterations": {budget: found[budget] * unit for budget in budgets},
        "time": {budget: found[equal[budget]] * unit for budget in budgets},
      }


def games() -> Iterator[tuple[str, Callable[[], tuple[CompiledGame, float]]]]:
  """Yields names, and functions that compile the game and return the unit of its numbers."""
  texts = {name: text for group in _GROUPS.value for name, text in rule_games.GROUPS[group].items()}
  for name in chosen(texts, _GAMES.value) or texts:
    yield name, functools.partial(compiled, texts[name])
  for path in _ENDGAMES.value:
    yield f"endgame {pathlib.Path(path).stem}", functools.partial(compiled_endgame, path)


def compiled(text: str) -> tuple[CompiledGame, float]:
  """Compiles an OpenSpiel game; numbers are in its units."""
  return spiel_cfr.compile_game(text), 1.0


def compiled_endgame(path: str) -> tuple[CompiledGame, float]:
  """Compiles an endgame; numbers are in mbb/g."""
  endgame = spiel_cfr.load_endgame(path)
  game = spiel_cfr.poker.compile_public_game(endgame.load(), bet_filters.few_bets)
  return game, endgame.milli_big_blinds(1.0)


def report(records: list[Record]) -> None:
  """Prints tables of our rule against the best published rule, at equal time and at equal iterations."""
  by_key = {(record["game"], record["column"], record["run"]): record for record in records}
  names = list(dict.fromkeys(record["game"] for record in records))
  budgets = [str(budget) for budget in _BUDGETS.value]
  for measured in ("time", "iterations"):
    title = {
      "time": "Equal time, in iterations of CFR+",
      "iterations": "Equal iterations",
    }[measured]
    print(
      f"\n{title}: exploitability, the median of the runs. Best published rule; `{_OURS.value}`, with its [worst run]; "
      f"runs of `{_OURS.value}` that are at or below the best published rule.\n"
    )
    heads = (f" {int(b):,}: best published | {_OURS.value} | runs won |" for b in budgets)
    print("| game | group |" + "".join(heads))
    print("| --- " * (2 + 3 * len(budgets)) + "|")
    tally: dict[str, list[tuple[float, int, int]]] = {budget: [] for budget in budgets}
    for name in names:
      cells = []
      for budget in budgets:
        rounding = max(r["rounding"] for r in records if r["game"] == name)
        runs = {
          column: [
            max(by_key[name, column, run][measured][budget], 0.0)
            for run in range(1000)
            if (name, column, run) in by_key and budget in by_key[name, column, run][measured]
          ]
          for column in [*RIVALS, _OURS.value]
        }
        ours = runs.pop(_OURS.value)
        rivals = {column: found for column, found in runs.items() if found}
        if not ours or not rivals:
          cells.append(_EMPTY)
          continue
        best = min(rivals, key=lambda column: statistics.median(rivals[column]))
        other, mine = statistics.median(rivals[best]), statistics.median(ours)
        won = sum(value <= max(other, rounding) for value in ours)
        tally[budget].append((max(mine, rounding) / max(other, rounding), won, len(ours)))
        mark = "**" if mine <= max(other, rounding) else ""
        cells.append(
          f"{other:z.1e} {best} | {mark}{mine:z.1e}{mark} [{max(ours):z.1e}] | {won}/{len(ours)}"
        )
      # An interrupted run may have nothing to compare yet.
      if any(cell != _EMPTY for cell in cells):
        print(f"| {name} | {group_of(name)} | " + " | ".join(cells) + " |")
    for budget, found in tally.items():
      if found:
        ratios = [ratio for ratio, _, _ in found]
        print(
          f"\n{int(budget):,}: at or below the best of others on {sum(r <= 1 for r in ratios)} of {len(found)} "
          f"games, in {sum(won for _, won, _ in found)} of {sum(runs for _, _, runs in found)} runs; of the ratios "
          f"to it the geometric mean is {math.exp(statistics.fmean(map(math.log, ratios))):z.2g}, the median "
          f"{statistics.median(ratios):z.2g}, the worst {max(ratios):z.2g}."
        )
    against(by_key, names, budgets, measured)
  costs(by_key, names, budgets)


def group_of(name: str) -> str:
  """Returns the group of a game, see `rule_games`."""
  return next((group for group, games in rule_games.GROUPS.items() if name in games), "endgame")


def costs(by_key: Any, names: list[str], budgets: list[str]) -> None:
  """Prints the cost of our rule, including all checks and restarts."""
  print(f"\nThe cost of `{_OURS.value}`, in iterations of CFR+:\n")
  print(f"| game | {' | '.join(f'{int(budget):,}' for budget in budgets)} |")
  print("| --- " * (1 + len(budgets)) + "|")
  for name in names:
    found = by_key.get((name, _OURS.value, 0), {"cost": {}})["cost"]
    cells = [f"{found[budget]:z.2f}" if budget in found else "" for budget in budgets]
    if any(cells):
      print(f"| {name} | {' | '.join(cells)} |")


def against(by_key: Any, names: list[str], budgets: list[str], measured: str) -> None:
  """Prints the number of games in which our rule beats each other rule, and the geometric mean of the ratios."""
  heads = "".join(f" {int(b):,}: games won | ratio |" for b in budgets)
  print(f"\n| compared with |{heads} cost |")
  print("| --- " * (2 + 2 * len(budgets)) + "|")
  for column in COLUMNS:
    if column == _OURS.value:
      continue
    cells, costs = [], []
    for budget in budgets:
      ratios = []
      for name in names:
        pair = [_median(by_key, name, rule, measured, budget) for rule in (_OURS.value, column)]
        if None in pair:
          continue
        rounding = by_key[name, column, 0]["rounding"]
        ratios.append(max(pair[0], rounding) / max(pair[1], rounding))
        costs.append(by_key[name, column, 0]["cost"][budget])
      mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan
      cells.append(f"{sum(ratio <= 1 for ratio in ratios)}/{len(ratios)} | {mean:z.2g}")
    if costs:
      print(f"| {column} | {' | '.join(cells)} | {statistics.median(costs):z.2f} |")


def _median(by_key: Any, name: str, column: str, measured: str, budget: str) -> Any:
  found = [
    max(record[measured][budget], 0.0)
    for run in range(1000)
    if (record := by_key.get((name, column, run))) and budget in record[measured]
  ]
  return statistics.median(found) if found else None


def read(path: pathlib.Path) -> dict[tuple[str, str, int], Record]:
  """Returns the records in a file by game, rule and run; records of several budgets are merged."""
  records: dict[tuple[str, str, int], Record] = {}
  for line in path.read_text().splitlines() if path.exists() else ():
    # A line that was cut off is measured again.
    with contextlib.suppress(json.JSONDecodeError):
      add(records, json.loads(line))
  return records


def add(records: dict[tuple[str, str, int], Record], record: Record) -> None:
  """Adds a record, merged with the record of the same game, rule and run."""
  key = record["game"], record["column"], record["run"]
  known = records.setdefault(key, record)
  for numbers in ("cost", "iterations", "time"):
    known[numbers] |= record[numbers]


def check_flags() -> None:
  """Ends the program if a flag has an unknown name or number."""
  for flag, known in ((_GROUPS, rule_games.GROUPS), (_COLUMNS, RUN), (_OURS, COLUMNS)):
    for name in [flag.value] if isinstance(flag.value, str) else flag.value:
      if name not in known:
        sys.exit(f"error: --{flag.name}: there is no {name!r}; take {', '.join(known)}.")
  for budget in _BUDGETS.value:
    if not budget.isdecimal() or not int(budget):
      sys.exit(f"error: --budgets: {budget!r} is not a positive number of iterations.")


def main(_: list[str]) -> None:
  check_flags()
  path = pathlib.Path(_RESULTS.value) if _RESULTS.value else None
  records = read(path) if path is not None else {}

  def missing(name: str, column: str, run: int) -> list[int]:
    known = records.get((name, column, run), {"time": {}})["time"]
    return [int(budget) for budget in _BUDGETS.value if budget not in known]

  for name, make_game in () if _REPORT.value else games():
    if not any(
      missing(name, column, run) for column in _COLUMNS.value or RUN for run in range(_RUNS.value)
    ):
      continue
    game, unit = make_game()
    for record in measure(name, game, unit, missing):
      line = json.dumps(record)
      add(records, json.loads(line))
      if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
          file.write("\n" + line)
  report(list(records.values()))


if __name__ == "__main__":
  app.run(main)
