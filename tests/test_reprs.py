"""What is printed is one line."""

import sys

import numpy as np

import spiel_cfr
from spiel_cfr.poker import ranges
from spiel_cfr.runs import progress
from spiel_cfr.runs.progress import Progress


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


class Terminal:
  def __init__(self, is_terminal):
    self.is_terminal, self.text = is_terminal, ""

  def isatty(self):
    return self.is_terminal

  def write(self, text):
    self.text += text

  def flush(self):
    pass


def shown(monkeypatch, stream):
  monkeypatch.setattr(progress, "_SECONDS_BETWEEN_UPDATES", 0.0)
  monkeypatch.setattr("sys.stderr", stream)
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  bar = Progress(solver, iterations=1000, seconds=None)
  bar.evaluated(spiel_cfr.Row(1, 5.0, 1.0, 0, 0.5, 0.25))
  for iteration in range(1, 1000, 100):
    bar.update(iteration, 1.0)
  bar.close()
  return stream.text


def test_the_line_fits_the_terminal(monkeypatch):
  monkeypatch.setenv("COLUMNS", "30")
  text = shown(monkeypatch, Terminal(True))
  lines = text.split("\r\x1b[K")[1:-1]
  assert len(lines) == 10
  assert all(len(line) == 29 and line.endswith("...") for line in lines)


def test_notebooks_know_no_terminal(monkeypatch):
  monkeypatch.setitem(sys.modules, "ipykernel", np)
  text = shown(monkeypatch, Terminal(False))
  assert "\x1b" not in text
  assert text.count("\n") == 1
  *overwritten, last = text.split("\r")
  assert len(overwritten) > 10
  assert last.startswith("CFRSolver: iteration 1, exploitability 0.25")
