"""What is printed is one line."""

import spiel_cfr
from spiel_cfr.poker import ranges


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
