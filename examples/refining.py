r"""Compares refinement while solving with solving at once, and two rules that continue in the larger game.

    python examples/refining.py --picture=results/refining.png

The first table is for a river endgame in vector form: infosets, memory, iterations and time to a target. The whole game
has all bets of `fchpa`; the first abstraction has `few_bets`, or only checks, calls and folds. Memory is that of an
iteration; the whole game, which evaluates policies, is not counted. Times do not include compiling.

The second table is for games in listed form. The first abstraction has the first and the last action of each infoset.
When actions are added, the solver has a warm start from its policy (rule "policy"), or continues with the discounted
regrets that the past iterations have in the larger game (rule "regrets"). Leaves are counted over iterations and
evaluations: until NashConv in the whole game is 2 % of the range of payoffs, and in total.
"""

from results import NAMED_GAMES, draws, pyplot, river_endgame, save, start, writable

import pathlib
from typing import Any

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr.abstraction.refining import Rule
from spiel_cfr.poker import bet_filters

_TARGET = flags.DEFINE_float("target", 5.0, "NashConv to reach, in chips", lower_bound=0.0)
_ITERATIONS = flags.DEFINE_integer(
  "iterations", 2000, "number of iterations in each game of the second table", lower_bound=1
)
_PICTURE = flags.DEFINE_string(
  "picture", "results/refining.png", "file of the picture; empty for none"
)

Runs = dict[str, spiel_cfr.abstraction.Refined]

_LISTED = {
  "Leduc": NAMED_GAMES["leduc"],
  "liar's dice, 4 sides": NAMED_GAMES["liars_dice_4"],
  "goofspiel, 5 cards": NAMED_GAMES["goofspiel_5"],
  "poker, all bet sizes": (
    "universal_poker(betting=nolimit,bettingAbstraction=fullgame,numPlayers=2,numRounds=2,blind=1 2,firstPlayer=1 1,"
    "numSuits=2,numRanks=3,numHoleCards=1,numBoardCards=0 1,stack=7 7)"
  ),
}
# A solver, and how it begins in a larger game; None where all actions are there at once.
_RULES: tuple[tuple[str, str, Rule | None], ...] = (
  ("CFR+", "cfr+", None),
  ("CFR+", "cfr+", "policy"),
  ("CFR, simultaneous", "cfr_simultaneous", None),
  ("CFR, simultaneous", "cfr_simultaneous", "policy"),
  ("CFR, simultaneous", "cfr_simultaneous", "regrets"),
)


def main() -> None:
  path = writable(_PICTURE.value) if _PICTURE.value else None
  loaded, title = river_endgame()
  game = spiel_cfr.poker.compile_public_game(loaded.load())
  starts: dict[str, Any] = {
    "at once": all_actions,
    "from few bets": bet_filters.few_bets,
    "from no bets": no_bets,
  }
  # This compiles the kernels before any timing.
  spiel_cfr.abstraction.solve_refining(game, no_bets, _TARGET.value, iterations=100)
  runs = {
    name: spiel_cfr.abstraction.solve_refining(game, start, _TARGET.value)
    for name, start in starts.items()
  }
  print(table(title, runs))
  print()
  print(table_of_rules())
  if path:
    draw(title, runs, path)


def all_actions(state: Any, actions: list[int]) -> list[int]:
  """Keeps all actions."""
  return actions


def no_bets(state: Any, actions: list[int]) -> list[int]:
  """Returns folds, checks and calls."""
  return [action for action in actions if action < 2]


def table(title: str, runs: Runs) -> str:
  rows = [
    "| game | | infosets | MB | iterations | seconds | NashConv |",
    "| --- | --- | --- | --- | --- | --- | --- |",
  ]
  for name, refined in runs.items():
    last = refined.history[-1]
    rows.append(
      f"| {title} | {name} | {last.infosets:,} | {last.bytes / 1e6:z.2f} | {last.iterations:,} | {last.seconds:z.2f} | "
      f"{refined.nash_conv:z.4g} |"
    )
  return "\n".join(rows)


def table_of_rules() -> str:
  rows = [
    "| game | solver | rule | infosets | actions | leaves to 2 % | leaves | NashConv |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
  ]
  for title, name in _LISTED.items():
    game = spiel_cfr.compile_game(name, vector_form=False)
    low, high = game.payoff_range
    for label, solver, rule in _RULES:
      refined = spiel_cfr.abstraction.solve_refining(
        game,
        None if rule else all_actions,
        target=0.0,
        solver=solver,
        iterations=_ITERATIONS.value,
        rule=rule or "policy",
      )
      near = [stage.leaves for stage in refined.history if stage.nash_conv <= 0.02 * (high - low)]
      first = f"{near[0] / 1e6:z.2f} M" if near else "not reached"
      rows.append(
        f"| {title} | {label} | {rule or 'at once'} | {refined.small.num_infosets:,} | "
        f"{len(refined.small.all_action_sequences):,} | {first} | {refined.history[-1].leaves / 1e6:z.2f} M | "
        f"{refined.nash_conv:z.4f} |"
      )
  return "\n".join(rows)


@draws
def draw(title: str, runs: Runs, path: pathlib.Path) -> None:
  figure, (gaps, sizes) = pyplot().subplots(2, 1, figsize=(5.2, 7), layout="constrained")
  for name, refined in runs.items():
    seconds = [stage.seconds for stage in refined.history]
    gaps.plot(seconds, [stage.nash_conv for stage in refined.history], ".-", label=name)
    sizes.plot(seconds, np.array([stage.bytes for stage in refined.history]) / 1e6, ".-")
  gaps.set(title=title, yscale="log", ylabel="NashConv in the whole game")
  gaps.legend()
  sizes.set(ylabel="memory of an iteration, MB", xlabel="seconds")
  for plot in (gaps, sizes):
    plot.set_xscale("log")
    plot.grid(alpha=0.3, which="both", linewidth=0.4)
  save(figure, path, 110)


if __name__ == "__main__":
  start(main)
