"""The example programs run as a user runs them: from the folder of a clone, with flags."""

import json
import os
import pathlib
import subprocess
import sys

import poker_games
import pytest

ROOT = pathlib.Path(__file__).parent.parent


def run(name, *flags, fails=False):
  """Runs an example; returns what it printed."""
  result = subprocess.run(
    [sys.executable, f"examples/{name}.py", *flags],
    cwd=ROOT,
    env=os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"},
    capture_output=True,
    text=True,
    timeout=300,
    check=False,
  )
  assert (result.returncode != 0) == fails, result.stdout + result.stderr
  assert "Traceback" not in result.stderr
  return result.stdout + result.stderr


@pytest.mark.parametrize(
  "name", ["solve", "compare_solvers", "kuhn_poker", "libratus_endgames", "benchmark"]
)
def test_help(name):
  # absl's --help exits with 1.
  assert "flags:" in run(name, "--help", fails=True)


def test_solve(tmp_path):
  policy, picture = tmp_path / "new" / "policy.json", tmp_path / "picture.png"
  output = run(
    "solve",
    "--game=kuhn_poker",
    "--solver=dcfr",
    "--iterations=50",
    "--eval_every=20",
    f"--policy={policy}",
    "--plot",
    f"--picture={picture}",
    f"--cache_dir={tmp_path / 'cache'}",
  )
  table = output[output.index("NashConv\n") :].splitlines()[1:]
  assert [int(line.split()[0]) for line in table[:3]] == [20, 40, 50]
  assert float(table[2].split()[2]) < 0.1
  assert "all iterations are done" in output
  entries = json.loads(policy.read_text())
  assert len(entries) == 12
  assert all(abs(sum(entry.values()) - 1) < 1e-9 for entry in entries.values())
  assert picture.read_bytes().startswith(b"\x89PNG")
  assert list((tmp_path / "cache").iterdir())


def test_solve_stops_at_a_target(tmp_path):
  output = run(
    "solve",
    "--game=kuhn_poker",
    "--target_nash_conv=0.1",
    "--iterations=100000",
    f"--policy={tmp_path / 'policy.json'}",
  )
  assert "NashConv is at its target" in output


@pytest.mark.parametrize("game", ["kuhn_pokr", "kuhn_poker(players=77)", "catch", "kuhn_poker("])
def test_solve_refuses(game):
  output = run("solve", f"--game={game}", fails=True)
  assert output.startswith("error: ")


def test_compare_solvers(tmp_path):
  output = run(
    "compare_solvers",
    "--game=kuhn_poker",
    "--solvers=cfr,cfr+,stable_predictive,open_spiel_cfr,open_spiel_cfr+",
    "--iterations=64",
    f"--output_dir={tmp_path}",
  )
  rows = {
    line.split()[0]: line.split()[1:] for line in output.splitlines() if line.strip()[:1].isdigit()
  }
  assert list(rows) == ["1", "2", "4", "8", "16", "32", "64"]
  for row in rows.values():
    cfr, plus, _, open_spiel_cfr, open_spiel_plus = row
    assert (cfr, plus) == (open_spiel_cfr, open_spiel_plus)
  assert (tmp_path / "compare_kuhn_poker.png").read_bytes().startswith(b"\x89PNG")
  differences = [line.split()[-1] for line in output.splitlines() if "largest difference" in line]
  assert len(differences) == 2
  assert all(float(difference) < 1e-9 for difference in differences)


def test_compare_solvers_without_a_picture(tmp_path):
  output = run(
    "compare_solvers",
    "--game=matching_pennies_3p",
    "--solvers=cfr",
    "--iterations=4",
    "--noplot",
    f"--output_dir={tmp_path}",
  )
  assert "NashConv of the average policy" in output
  assert not list(tmp_path.iterdir())


def test_compare_unknown_solvers():
  assert "cfr++" in run("compare_solvers", "--solvers=cfr++", fails=True)


def test_kuhn_poker():
  output = run("kuhn_poker")
  assert "WRONG" not in output
  assert output.count("  ok ") == 13


def test_kuhn_poker_says_what_is_wrong():
  assert "WRONG" in run("kuhn_poker", "--iterations=3", fails=True)


@pytest.mark.parametrize("part", ["iterations", "solvers", "evaluation", "compiling"])
def test_benchmark(part):
  output = run("benchmark", "--games=kuhn", "--rounds=1", "--seconds=0.001", f"--only={part}")
  assert " us " in output


def test_libratus_endgames(tmp_path):
  endgame = poker_games.random_endgame(0, 40)
  endgame.save(tmp_path / "river.txt")
  output = run(
    "libratus_endgames",
    f"--subgame_file={tmp_path / 'river.txt'}",
    "--stack=1600",
    "--iterations=20",
    "--solvers=dcfr",
    "--solvers=oftrl x1e4, simultaneous",
    f"--output_dir={tmp_path}",
    "--show_state=check,half",
  )
  assert "each solver takes about" in output
  assert "exploitability" in output
  assert "F fold" in output
  gaps = json.loads((tmp_path / "endgame_river.json").read_text())
  assert set(gaps) == {"dcfr", "oftrl x1e4, simultaneous"}
  assert gaps["dcfr"]["20"] < gaps["dcfr"]["1"]
  for picture in ("endgame_river.png", "range_river.png"):
    assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


def test_libratus_endgames_names_mistakes(tmp_path):
  (tmp_path / "bad.txt").write_text("-round 4\n")
  assert "has no line -board" in run(
    "libratus_endgames", f"--subgame_file={tmp_path / 'bad.txt'}", fails=True
  )
