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
