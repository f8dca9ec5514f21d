r"""Writes a page to click through a solved game.

    python examples/explore.py --game=kuhn_poker

solves the game and writes results/explore.html, one file that opens in any browser, without a server or a network.

    python examples/explore.py --game=leduc_poker --policy=results/policy.json --trace=results/leduc.csv

shows a policy that `solve.py` has written, and the convergence of a run.

    python examples/explore.py --board=7s9h9cTc2d --first="22+,A2s+,KTs+,ATo+,KQo" --second="22+,A2s+,K9s+,ATo+,KJo+"

solves a hold'em endgame, and shows both players' ranges at every public state.

    python examples/explore.py --solution=results/Td9d6h.solution --runouts=2c7s,Ah

shows a solution that `flop.py` has saved, with the boards of these runouts.
"""

from results import start

import pathlib
from typing import Any

from absl import flags

import spiel_cfr
from spiel_cfr.poker import ranges

_GAME = flags.DEFINE_string("game", "kuhn_poker", "OpenSpiel game string")
_POLICY = flags.DEFINE_string("policy", None, "file of a policy that solve.py has written")
_TRACE = flags.DEFINE_multi_string("trace", [], "files of traces to draw as curves")
_SECONDS = flags.DEFINE_float(
  "seconds", 30.0, "time limit of solving, in seconds, without --policy", 0.0
)
_SOLUTION = flags.DEFINE_string("solution", None, "file of a solution that flop.py has saved")
_RUNOUTS = flags.DEFINE_list("runouts", [], "with --solution: turn and river cards to show")
_OUTPUT = flags.DEFINE_string("output", "results/explore.html", "file of the page")
_MAX_INFOSETS = flags.DEFINE_integer(
  "max_infosets",
  100_000,
  "largest number of infosets on the page; the likeliest are shown",
  lower_bound=1,
)
_VECTOR = flags.DEFINE_bool("vector_form", None, "show poker as ranges of hands")
_BOARD = flags.DEFINE_string("board", None, "public cards of an endgame, such as 7s9h9cTc2d")
_FIRST = flags.DEFINE_string("first", "22+,A2s+,KTs+,ATo+", "the first player's range")
_SECOND = flags.DEFINE_string("second", "22+,A2s+,KTs+,ATo+", "the second player's range")
_POT = flags.DEFINE_integer("pot", 2000, "chips in the pot", lower_bound=1)
_STACK = flags.DEFINE_integer("stack", 9000, "chips that each player has behind", lower_bound=1)


def explore() -> None:
  title = None
  if _SOLUTION.value is not None:
    solution = spiel_cfr.poker.load_solution(_SOLUTION.value)
    write(solution, pathlib.Path(_SOLUTION.value).stem, runouts=_RUNOUTS.value or None)
    return
  if _BOARD.value is None:
    game = spiel_cfr.compile_game(_GAME.value, vector_form=_VECTOR.value)
  else:
    endgame = ranges.endgame(
      _FIRST.value, _SECOND.value, board=_BOARD.value, pot=_POT.value, stack=_STACK.value
    )
    game = spiel_cfr.compile_game(endgame.load())
    title = f"Endgame on {_BOARD.value}"
  print(game, flush=True)
  policies: Any
  if _POLICY.value is None:
    # The page shows four digits, so a thousandth of the largest payoff is enough.
    target = 1e-3 * max(map(abs, game.payoff_range))
    policies = spiel_cfr.solve(game, exploitability=target, seconds=_SECONDS.value, progress=True)
    print(policies)
  else:
    policies = spiel_cfr.load_policy(game, _POLICY.value)
  write(policies, title, game=game)


def write(policies: Any, title: str | None, **options: Any) -> None:
  """Writes the page of a policy."""
  path = pathlib.Path(_OUTPUT.value)
  path.parent.mkdir(parents=True, exist_ok=True)
  traces = {pathlib.Path(trace).stem: trace for trace in _TRACE.value} or None
  options |= {"traces": traces, "max_infosets": _MAX_INFOSETS.value}
  print(spiel_cfr.explore(policies, path, title=title, **options))


if __name__ == "__main__":
  start(explore)
