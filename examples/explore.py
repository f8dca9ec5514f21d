r"""Writes a page to click through a saved policy or solution.

    python examples/explore.py --game=leduc_poker --policy=results/policy.json --trace=results/leduc.csv

shows a policy that `solve.py` has written, and the convergence of its run. The page is results/explore.html, one file
that opens in any browser, without a server or a network.

    python examples/explore.py --solution=results/Td9d6h.solution --runouts=2c7s,Ah

shows a solution that `flop.py` has saved, with the boards of these runouts. `python -m spiel_cfr explore leduc_poker`
solves a game and writes its page.
"""

from results import start

import pathlib

from absl import app, flags

import spiel_cfr

_GAME = flags.DEFINE_string("game", "kuhn_poker", "OpenSpiel game string")
_POLICY = flags.DEFINE_string("policy", None, "file of a policy that solve.py has written")
_TRACE = flags.DEFINE_multi_string("trace", [], "files of traces to draw as curves")
_SOLUTION = flags.DEFINE_string("solution", None, "file of a solution that flop.py has saved")
_RUNOUTS = flags.DEFINE_list("runouts", [], "with --solution: turn and river cards to show")
_OUTPUT = flags.DEFINE_string("output", "results/explore.html", "file of the page")
_MAX_INFOSETS = flags.DEFINE_integer(
  "max_infosets",
  100_000,
  "largest number of infosets on the page; the likeliest are shown",
  lower_bound=1,
)


def explore() -> None:
  path = pathlib.Path(_OUTPUT.value)
  path.parent.mkdir(parents=True, exist_ok=True)
  traces = {pathlib.Path(trace).stem: trace for trace in _TRACE.value} or None
  if _SOLUTION.value is not None:
    solution = spiel_cfr.poker.load_solution(_SOLUTION.value)
    page = spiel_cfr.explore(
      solution,
      path,
      title=pathlib.Path(_SOLUTION.value).stem,
      traces=traces,
      runouts=_RUNOUTS.value or None,
      max_infosets=_MAX_INFOSETS.value,
    )
  elif _POLICY.value is not None:
    game = spiel_cfr.compile_game(_GAME.value)
    policy = spiel_cfr.load_policy(game, _POLICY.value)
    page = spiel_cfr.explore(
      policy, path, game=game, traces=traces, max_infosets=_MAX_INFOSETS.value
    )
  else:
    raise app.UsageError(
      "give --policy or --solution; `python -m spiel_cfr explore` solves a game and writes its page"
    )
  print(page)


if __name__ == "__main__":
  start(explore)
