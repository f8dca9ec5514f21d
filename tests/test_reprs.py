"""A `repr` is one line, and zero is printed without a sign."""

import ast
import pathlib
import re

import numpy as np

import spiel_cfr
from spiel_cfr import referee
from spiel_cfr.poker import ranges

_ROOT = pathlib.Path(__file__).parent.parent


def test_games_with_strings_of_several_lines():
  game = spiel_cfr.compile_game("markov_soccer(horizon=1)", infostate="history")
  assert "\n" not in repr(game) + repr(spiel_cfr.CFRSolver(game))


def test_one_line_each(tmp_path):
  game = spiel_cfr.compile_game("leduc_poker")
  solver = spiel_cfr.CFRPlusSolver(game)
  result = spiel_cfr.run(solver, 20, progress=False)
  policy = solver.average_policy()
  found = {
    repr(game): "936" if "936" in repr(game) else "468",
    repr(solver): "iteration 20",
    repr(result): f"NashConv {result.last.nash_conv:.6g}",
    repr(spiel_cfr.best_response(game, policy, 0)): "468 infosets",
    repr(spiel_cfr.nash_conv(game, policy, return_only_nash_conv=False)): "players gain",
    repr(ranges.endgame("AA", "KK", board="7s9h9cTc", pot=2000, stack=500)): "6 x 6 hands",
    repr(spiel_cfr.estimate_size("kuhn_poker", seconds=0.01)): "states",
  }
  for text, part in found.items():
    assert part in text
    assert "\n" not in text
    assert len(text) < 250


def test_strings_with_all_hands_are_cut_off():
  endgame = ranges.endgame("22+,A2s+", "22+,AJs+", board="7s9h9cTc2d", pot=2000, stack=9000)
  game = spiel_cfr.compile_game(endgame.load())
  solution = spiel_cfr.solve(game, exploitability=1e5, progress=False)
  assert len(game.game_string) > 10_000
  assert game.name.startswith("universal_poker(") and game.name.endswith("...")
  for each in (game, solution.solver, solution, spiel_cfr.judge(game, solution)):
    assert game.name in repr(each)
    assert len(repr(each)) < 300


def test_sums_that_rounding_leaves_below_zero_have_no_sign():
  # On one processor a sum is 0, on another -1e-17.
  tables = [
    str(referee.HeadToHead(("one", "other"), np.full((2, 2, 2), off))) for off in (0.0, -1e-17)
  ]
  assert tables[0] == tables[1]
  match = referee.Match(np.full((3, 2), -0.0), np.full((3, 2), -0.0))
  assert "gets 0 a game" in repr(match)
  assert "-0" not in repr(match)


def test_every_float_is_formatted_without_the_sign_of_zero():
  """The `z` of a format says so; without it -1e-17 is printed as -0.000."""
  paths = [path for folder in ("spiel_cfr", "examples") for path in (_ROOT / folder).rglob("*.py")]
  signed = [
    f"{path.relative_to(_ROOT)}:{node.lineno}: {form}"
    for path in paths
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.FormattedValue) and node.format_spec is not None
    for form in [ast.unparse(node.format_spec)[2:-1]]
    if re.search("[eEfFgG%]$", form) and "z" not in re.sub("{.*?}", "", form)
  ]
  assert signed == []
