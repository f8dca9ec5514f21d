"""The example programs run as a user runs them: from the folder of a clone, with flags."""

import csv
import importlib
import json
import os
import pathlib
import re
import runpy
import signal
import subprocess
import sys
import time

import explorer_pages
import poker_games
import programs
import pytest

import spiel_cfr

ROOT = pathlib.Path(__file__).parent.parent


def run(name, *flags, fails=False, typed=None, missing=None):
  """Runs an example with typed input, perhaps without a package; returns its output."""
  path = pathlib.Path("examples", f"{name}.py")
  status, output, errors = programs.run(path, flags, ROOT, typed, 300, missing)
  assert (status != 0) == fails, output + errors
  assert "Traceback" not in errors
  return output + errors


@pytest.mark.slow
def test_refining(tmp_path):
  printed = run("refining", "--target=300", f"--picture={tmp_path}/refining.png")
  assert "| goofspiel, 5 cards | CFR, simultaneous | regrets | " in printed
  assert "| at once | 22,464 |" in printed
  assert (tmp_path / "refining.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("agents", ["q_learners", "network"])
def test_judge_agents(tmp_path, agents):
  if agents == "network":
    pytest.importorskip("jax")
  printed = run("judge_agents", f"--agents={agents}", "--steps=4", f"--page={tmp_path}/page.html")
  assert "after 4 steps: exploitability 0." in printed
  assert (tmp_path / "page.html").stat().st_size > 10_000


@pytest.mark.slow
def test_head_to_head(tmp_path):
  printed = run("head_to_head", "--deals=2", f"--picture={tmp_path}/matrix.png")
  assert "| CFR+ 100 | +0.7439 |" in printed
  assert (tmp_path / "matrix.png").stat().st_size > 10_000


@pytest.mark.slow
def test_transfer():
  lines = (ROOT / "docs" / "results.jsonl").read_text().splitlines()
  (known,) = (line for line in map(json.loads, lines) if line["name"] == "transfer")
  printed = run("transfer", "--game=Kuhn poker")
  for row in known["rows"][:3]:
    assert f"| {' | '.join(row)} |\n" in printed


@pytest.mark.parametrize(
  "name",
  sorted(path.stem for path in (ROOT / "examples").glob("*.py") if "DEFINE_" in path.read_text()),
)
def test_help_in_a_plain_install(name):
  # absl's --help exits with 1.
  assert "flags:" in run(name, "--help", fails=True, missing="matplotlib")


@pytest.mark.parametrize(
  ("name", "flags", "printed"),
  [
    ("solve", ["--game=kuhn_poker", "--iterations=8"], "all iterations are done"),
    ("quantal_response", ["--rationality=1"], "QuantalResponse of kuhn_poker"),
    *(
      pytest.param(*row, marks=pytest.mark.slow)
      for row in [
        ("abstraction", ["--games=kuhn_poker", "--sizes=2", "--iterations=9"], "| curve |"),
        ("blind_breakthrough", [], "7,648 terminal histories, 1,008 core histories"),
        ("compare_solvers", ["--game=kuhn_poker", "--iterations=8"], "iterations  "),
        ("convergence_rate", ["--powers=6"], "stable-predictive, the paper's steps"),
        ("correlated", ["--items=2", "--iterations=9"], "| EFCE |"),
        ("first_order", ["--games=kuhn", "--iterations=20", "--rounds=1"], "| KOMWU |"),
        ("head_to_head", ["--deals=2"], "| CFR+ 100 | +0.7439 |"),
        ("libratus_endgames", ["--iterations=2", "--methods=cfr"], "| cfr |"),
        ("lower_bound", ["--policies=0", "--episodes=99", "--evaluation_episodes=9"], "| kuhn, 3"),
        ("mccfr", ["--game=kuhn_poker", "--seconds=0.01"], "external_linear"),
        ("n_players", ["--games=0", "--iterations=9"], "| Kuhn, 3 players | EFR |"),
        ("phantom_race", ["--seconds=0.01"], "| outcome sampling | 1 |"),
        ("phantom_ttt", ["--game=dark_hex(num_rows=2,num_cols=3)", "--history"], "520"),
        ("refining", ["--target=9999", "--iterations=9"], "| at once | 22,464 |"),
        ("restarts", ["--games=0", "--scale=0.01", "--rounds=1"], "| restarted CFR |"),
        ("search", ["--games=kuhn", "--iterations=2"], "| kuhn, CFR 2 |"),
        ("stable_predictive", ["--games=kuhn", "--iterations=10"], "| OFTRL, paper |"),
        ("tour", [], ""),
        ("track", ["--iterations=9"], "Wrote "),
        ("warm_start", ["--game=kuhn_poker", "--iterations=9"], "| CFR+, cold |"),
        ("way_of_libratus", ["--stack=3", "--iterations=9"], "safe search of round 2"),
      ]
    ),
  ],
)
def test_without_matplotlib(name, flags, printed, tmp_path):
  """Without matplotlib, a program that draws says so first, and every program does its work."""
  where = (ROOT / "examples" / f"{name}.py").read_text()
  for flag, path in (
    ("output_dir", ""),
    ("picture", "a.png"),
    ("output", "a.png"),
    ("policy", "a.json"),
  ):
    if re.search(rf'DEFINE_\w+\(\s*"{flag}"', where):
      flags = [*flags, f"--{flag}={tmp_path / path}"]
  output = run(name, *flags, missing="matplotlib")
  assert printed in output
  has_picture = re.search(r"^@(results\.)?draws$", where, re.MULTILINE) is not None
  assert output.count("There will be no picture: matplotlib is not installed") == has_picture
  assert not list(tmp_path.glob("*.png"))


@pytest.mark.slow
def test_way_of_libratus(tmp_path):
  printed = run("way_of_libratus", "--stack=3", "--iterations=100", f"--output_dir={tmp_path}")
  found = re.findall(r"^.{44} (\d\.\d{5})$", printed, re.MULTILINE)
  blueprint, translated, _, cut, continual, bot = map(float, found)
  assert blueprint < translated
  assert bot < translated / 4
  assert continual < cut < translated
  assert (tmp_path / "way_of_libratus.png").stat().st_size > 10_000


def test_solve(tmp_path):
  policy = tmp_path / "new" / "policy.json"
  output = run(
    "solve",
    "--game=kuhn_poker",
    "--solver=dcfr",
    "--iterations=50",
    "--eval_every=20",
    f"--policy={policy}",
  )
  table = output[output.index("NashConv\n") :].splitlines()[1:]
  assert [int(line.split()[0]) for line in table[:3]] == [20, 40, 50]
  assert float(table[2].split()[2]) < 0.1
  assert "all iterations are done" in output
  entries = json.loads(policy.read_text())
  assert len(entries) == 12
  assert all(abs(sum(entry.values()) - 1) < 1e-9 for entry in entries.values())


def test_sweep(tmp_path):
  config, folder = tmp_path / "config.json", tmp_path / "sweep"
  config.write_text('{"game": ["kuhn_poker"], "solver": ["dcfr", "no such"], "gamma": [1, 2]}')
  flags = [f"--config={config}", f"--folder={folder}", "--iterations=20", "--processes=1"]
  for _ in range(2):
    output = run("sweep", *flags)
    assert output.count(" 20 ") == 2
    assert output.count("There is no solver") == 2
  config.write_text("{")
  assert "error: " in run("sweep", *flags, fails=True)


@pytest.mark.slow
def test_ctrl_c_in_a_sweep(tmp_path):
  """Finished runs are in a table; the program names the others, and how to continue."""
  folder = tmp_path / "sweep"
  command = [sys.executable, "examples/sweep.py", "--games=kuhn_poker", "--processes=1"]
  command += [f"--folder={folder}", "--iterations=10_000_000", "--solvers=no such,cfr"]
  environment = os.environ | {"PYTHONPATH": str(ROOT)}
  with subprocess.Popen(
    command,
    cwd=ROOT,
    env=environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  ) as process:
    deadline = time.monotonic() + 120
    while not list(folder.glob("*/trace.csv")) and time.monotonic() < deadline:
      time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
  assert process.returncode == 130
  assert errors.splitlines()[-1] == "Interrupted. The same command continues all runs."
  assert "Traceback" not in errors
  assert "There is no solver 'no such'" in output
  assert re.search(r"cfr  \(not done\)\n", output)


@pytest.mark.slow
def test_solve_stops_at_a_target(tmp_path):
  output = run(
    "solve",
    "--game=kuhn_poker",
    "--target_nash_conv=0.1",
    "--iterations=100000",
    f"--policy={tmp_path / 'policy.json'}",
  )
  assert "the target is reached" in output


def test_solve_picks_the_solver(tmp_path):
  policy = tmp_path / "policy.json"
  output = run("solve", "--game=kuhn_poker", f"--policy={policy}")
  assert "Uses 'restarted', for constant-sum games of two players" in output
  assert "the target is reached" in output
  assert float(output.split("exploitability ")[1].split()[0]) <= 1e-9
  assert len(json.loads(policy.read_text())) == 12


@pytest.mark.parametrize("game", ["kuhn_pokr", "kuhn_poker(players=77)", "catch", "kuhn_poker("])
def test_solve_refuses(game):
  output = run("solve", f"--game={game}", fails=True)
  assert output.startswith("error: ")


@pytest.mark.slow
def test_restarts(tmp_path):
  picture = tmp_path / "new" / "restarts.png"
  output = run("restarts", "--games=0", "--scale=0.05", "--rounds=2", f"--picture={picture}")
  rows = [line.split("|")[1:-1] for line in output.splitlines() if line.startswith("| ")]
  table = {cells[0].strip(): cells[1:] for cells in rows}
  # How good each is after 50 ms depends on the machine; what restarts have kept never gets worse.
  kept = [float(cell) for cell in table["restarted CFR"][:3] if cell.strip()]
  assert kept == sorted(kept, reverse=True)
  assert 0 <= kept[-1] < 1
  assert int(table["OpenSpiel's CFR+"][-1]) < int(table["CFR+"][-1].replace(",", "")) / 10
  assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_first_order(tmp_path):
  output = run(
    "first_order", "--games=kuhn", "--iterations=30", "--rounds=3", f"--output_dir={tmp_path}"
  )
  rows = [line.split("|")[1:-1] for line in output.splitlines() if line.startswith("| ")]
  table = {cells[0].strip(): float(cells[1].split("/")[0]) for cells in rows[2:]}
  # EGT keeps its bound; with steps that are searched for it is ahead of what theory allows.
  assert table["EGT/AS"] < table["EGT"] / 3
  assert len(table) == 12
  for suffix in (".csv", ".md", ".png"):
    assert (tmp_path / "first_order").with_suffix(suffix).stat().st_size > 500


@pytest.mark.slow
def test_n_players(tmp_path):
  picture = tmp_path / "new" / "players.png"
  output = run("n_players", "--games=4", "--iterations=300", f"--picture={picture}")
  rows = [line.split("|")[1:-1] for line in output.splitlines() if line.startswith("| Shapley")]
  assert len(rows) == 3
  for _, _, gap, _, nash_conv in rows:
    assert float(gap) < float(nash_conv) / 3
  assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_correlated(tmp_path):
  picture = tmp_path / "new" / "correlated.png"
  flags = "--items=3", "--rounds=1", "--iterations=500"
  output = run("correlated", *flags, f"--picture={picture}")
  assert "| EFCE | 5.3165 | 3.8861 | 1.4304 |" in output
  assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_step_rule(tmp_path):
  """A table that was cut off goes on where it ended."""
  path = tmp_path / "new" / "results.jsonl"
  flags = "--groups=seen", "--games=0", "--budgets=100,3000", f"--results={path}"
  run("step_rule", *flags, "--runs=1", "--columns=CFR+,HS-PCFR+")
  path.write_text(path.read_text() + '\n{"game": "Kuhn po')
  output = run("step_rule", *flags, "--runs=2", "--columns=CFR+,HS-PCFR+,restarted")
  records = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
  keys = [(record["game"], record["column"], record["run"]) for record in records]
  assert len(keys) == len(set(keys)) == 6
  by_key = {
    (column, number): record for (_, column, number), record in zip(keys, records, strict=True)
  }
  assert by_key["CFR+", 0]["time"] == by_key["CFR+", 0]["iterations"]
  # Perturbed by 0.1 %.
  one, other = (by_key["CFR+", number]["iterations"]["100"] for number in (0, 1))
  assert one != other
  assert one == pytest.approx(other, rel=0.5)
  assert abs(by_key["restarted", 0]["iterations"]["3000"]) < 1e-12
  equal_time, equal_iterations = output.split("Equal iterations:")
  assert "100: at or below the best of others on 0 of 1 games, in 0 of 2 runs" in equal_time
  assert "3,000: at or below the best of others on 1 of 1 games, in 2 of 2 runs" in equal_iterations
  again = run("step_rule", *flags, "--report")
  assert again == output


@pytest.mark.slow
def test_abstraction(tmp_path):
  printed = run(
    "abstraction",
    "--iterations=20",
    "--sizes=1,3",
    "--hands=2",
    "--turn_hands=2",
    "--turn_iterations=2",
    "--games=kuhn_poker",
    "--rounds=1",
    f"--picture={tmp_path / 'abstraction.png'}",
  )
  assert "| lossless | 12 |" in printed
  assert "| potential-aware |" in printed
  assert (tmp_path / "abstraction.png").stat().st_size > 10_000


@pytest.mark.slow
def test_pruning():
  output = run("pruning", "--games=0", "--at=20,150")
  rows = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in output.splitlines()
    if "_pruned |" in line
  ]
  solvers = ["cfr_pruned", "cfr+_pruned", "hedge_pruned"]
  assert [row[:2] for row in rows] == [[name, at] for name in solvers for at in ("20", "150")]
  for _, _, bare, pruned, nodes, rollbacks, _ in rows:
    assert float(pruned) < 2 * float(bare)
    assert float(nodes) > 0
    assert int(rollbacks) >= 0
  # Until something is pruned, they are the same.
  assert rows[0][2] == rows[0][3]


def test_leduc5():
  """Two players, whose returns sum to zero wherever random play ends."""
  output = subprocess.run(
    [
      sys.executable,
      "-c",
      "import random, leduc5\n"
      "game = leduc5.Leduc5Game()\n"
      "random.seed(1)\n"
      "for _ in range(200):\n"
      "  state = game.new_initial_state()\n"
      "  while not state.is_terminal():\n"
      "    state.apply_action(random.choice(state.legal_actions()))\n"
      "  assert sum(state.returns()) == 0\n"
      "print(game.num_players(), game.max_utility())",
    ],
    cwd=ROOT,
    env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'examples'}"},
    capture_output=True,
    text=True,
    timeout=300,
    check=True,
  ).stdout
  assert output.split()[0] == "2"


def test_compare_solvers(tmp_path):
  output = run(
    "compare_solvers",
    "--game=kuhn_poker",
    "--solvers=cfr,cfr+,restarted_stable_predictive,open_spiel_cfr,open_spiel_cfr+,restarted",
    "--iterations=64",
    f"--output_dir={tmp_path}",
  )
  rows = {
    line.split()[0]: line.split()[1:] for line in output.splitlines() if line.strip()[:1].isdigit()
  }
  assert (
    "by iteration; alternating updates; simultaneous in restarted_stable_predictive\n" in output
  )
  assert list(rows) == ["1", "2", "4", "8", "16", "32", "64"]
  (last,) = re.findall(r"^ last iter +(.*)$", output, re.MULTILINE)
  assert len(last.split()) == 6
  assert last.split()[0] == last.split()[3] != rows["64"][0]
  assert "so its line never rises" in output
  for row in rows.values():
    cfr, plus, _, open_spiel_cfr, open_spiel_plus, _ = row
    assert (cfr, plus) == (open_spiel_cfr, open_spiel_plus)
  assert (tmp_path / "compare_kuhn_poker.png").read_bytes().startswith(b"\x89PNG")
  differences = [line.split()[-1] for line in output.splitlines() if "largest difference" in line]
  assert len(differences) == 2
  assert all(float(difference) < 1e-9 for difference in differences)


@pytest.mark.slow
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


def test_compare_no_solvers():
  assert "--solvers names none" in run("compare_solvers", "--solvers=", fails=True)


@pytest.mark.parametrize(
  ("name", "flag"),
  [
    ("solve", "--policy=/proc/none/policy.json"),
    ("compare_solvers", "--output_dir=/proc/none"),
    ("convergence_rate", "--output=/proc/none/rate.png"),
    ("mccfr", "--output_dir=/proc/none"),
    ("track", "--output_dir=/proc/none"),
    ("restarts", "--picture=/proc/none/restarts.png"),
    ("stable_predictive", "--output_dir=/proc/none"),
  ],
)
def test_where_nothing_can_be_written(name, flag):
  """The program says so before the run."""
  output = run(name, flag, fails=True)
  assert output.startswith("error: ")
  assert output.count("\n") == 1


@pytest.mark.parametrize(
  ("name", "flag"),
  [("restarts", "--games=3"), ("restarts", "--games=x"), ("step_rule", "--games=0,-1")],
)
def test_games_that_have_no_number(name, flag):
  output = run(name, flag, fails=True)
  assert output.startswith("error: there is no game ")


def test_no_two_games_share_a_file():
  parameters = "betting=nolimit,numPlayers=2,numRounds=1,blind=1 1,stack={} 8,firstPlayer=1 1"
  games = [
    *("kuhn_poker()", "kuhn_poker(players=3)", "matrix_pd()", "misere(game=matrix_pd())"),
    *(f"add_noise(epsilon={number},game=kuhn_poker(),seed=1)" for number in ("0.5", "-0.5", "5")),
    *(f"universal_poker({parameters.format(stack)},numSuits=1)" for stack in (7, 8)),
  ]
  file_name = runpy.run_path(str(ROOT / "examples" / "results.py"))["file_name"]
  names = [file_name("policy", game, ".json") for game in games]
  assert len(set(names)) == len(games)
  assert names[0] == "policy_kuhn_poker.json"
  assert max(map(len, names)) < 100


@pytest.mark.parametrize("solver", ["cfr+", "adaptive"])
def test_kuhn_poker(tmp_path, solver):
  tree = tmp_path / "tree.png"
  output = run("kuhn_poker", f"--solver={solver}", "--iterations=20000", f"--picture={tree}")
  assert f"iterations of {solver}: exploitability" in output
  table = re.findall(
    r"^ +([12])  (jack|queen|king) .* (\d\.\d{4}) +(\d\.\d{4})$", output, re.MULTILINE
  )
  assert len(table) == 12
  assert all(abs(float(passes) + float(bets) - 1) < 2e-4 for *_, passes, bets in table)
  assert ("2", "king", "0.0000", "1.0000") in table
  assert output.count("  ok ") == 13
  assert tree.read_bytes().startswith(b"\x89PNG")


def test_kuhn_poker_explains_errors():
  assert "WRONG" in run("kuhn_poker", "--iterations=3", fails=True)


@pytest.mark.parametrize(
  "part",
  [
    "iterations",
    *(
      pytest.param(part, marks=pytest.mark.slow) for part in ("solvers", "evaluation", "compiling")
    ),
  ],
)
def test_benchmark(part):
  output = run("benchmark", "--games=kuhn", "--rounds=1", "--seconds=0.001", f"--only={part}")
  assert " us " in output


@pytest.mark.slow
def test_how_cost_grows(tmp_path, monkeypatch):
  picture = tmp_path / "scaling.png"
  output = run(
    "benchmark", "--only=scaling", "--most_leaves=50", "--seconds_each=0.1", f"--picture={picture}"
  )
  assert output.count("us per iteration") == 1
  assert output.count("and larger: not measured") == 7
  monkeypatch.syspath_prepend(str(ROOT / "examples"))
  measured, largest, estimates = importlib.import_module("tables").printed_tables(output)
  assert [row[:2] for row in measured[1:]] == [["goofspiel, 3 cards", "36"]]
  assert [bool(row[1]) for row in largest[1:]] == [False] * 6 + [True]
  # So small a game is met as a whole.
  assert [row[0] for row in estimates[1:]] == ["goofspiel, 3 cards"]
  assert estimates[1][1].startswith("1.0")
  assert estimates[1][2].startswith("1.00")
  again = run(
    "benchmark",
    "--only=scaling",
    "--most_leaves=1",
    "--seconds_each=0.1",
    "--keep",
    f"--picture={picture}",
  )
  assert "us per iteration" not in again
  measured_again, largest_again, _ = importlib.import_module("tables").printed_tables(again)
  # What is estimated anew is another number every time.
  for table in (largest, largest_again):
    for row in table:
      del row[8], row[4]
  assert [measured_again, largest_again] == [measured, largest]
  _, row = picture.with_suffix(".csv").read_text().splitlines()
  assert "goofspiel with 3 to 8 cards" in row
  assert picture.stat().st_size > 10_000


@pytest.mark.slow
def test_costs_of_shards():
  output = run("benchmark", "--only=shards", "--hands=40", "--rounds=1", "--seconds=0.001")
  assert output.count("2 processes") == 2


@pytest.mark.slow
def test_libratus_endgames(tmp_path, monkeypatch):
  """Runs all files of a folder, leaves out what is known, and goes on where it was killed."""
  monkeypatch.syspath_prepend(str(ROOT / "examples"))
  files, out = tmp_path / "endgames", tmp_path / "results"
  files.mkdir()
  for seed in range(2):
    poker_games.random_endgame(seed, 40).save(files / f"river{seed}.txt")
  command = [
    "libratus_endgames",
    f"--subgame_folder={files}",
    "--starting_stack=1600",
    "--iterations=150",
    "--methods=cfr,oftrl",
    "--factors=1,1000",
    "--regularizer=entropy,euclidean",
    f"--output_dir={out}",
  ]
  output = run(*command, "--page")
  assert output.count("each solver takes about") == 2
  of_oftrl = ["oftrl", "oftrl x1000", "oftrl euclidean", "oftrl euclidean x1000"]
  for number, updates in enumerate(("simultaneous", "alternating")):
    columns, *rows = list(importlib.import_module("tables").printed_tables(output))[number]
    assert columns == [updates, "method", "10", "100", "150", "last iterate", "seconds"]
    assert [row[:2] for row in rows] == [
      [river, method] for river in ("river0", "river1") for method in ("cfr", *of_oftrl)
    ]
    assert all(len(row) == len(columns) and all(row) for row in rows)
    assert (out / f"endgames_{updates}.png").read_bytes().startswith(b"\x89PNG")
  assert (out / "endgame_river0.html").stat().st_size > 10_000

  # Stopped before the last rows of one method: it goes on from there to the same numbers.
  numbers = {path: spiel_cfr.runs.read_trace(path).rows for path in out.glob("*.csv")}
  assert len(numbers) == 20
  cut = out / "river1 alternating cfr.csv"
  cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:-2]))
  run(*command)
  for path, rows in numbers.items():
    again = spiel_cfr.runs.read_trace(path).rows
    assert [row.nash_conv for row in again] == [row.nash_conv for row in rows]
    assert (again == rows) == (path != cut)


@pytest.mark.slow
def test_stable_predictive(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(str(ROOT / "examples"))
  printed = run("stable_predictive", "--games=kuhn", "--iterations=100", f"--output_dir={tmp_path}")
  assert printed.count("the smallest probability at an infoset is") == 2
  tables = list(importlib.import_module("tables").printed_tables(printed))
  heads = [
    f"{order}{rest}"
    for order in ("simultaneous", "alternating")
    for rest in (", after 10 / 100 iterations", ", CPU seconds for 1,000 iterations")
  ]
  assert [columns for columns, *_ in tables] == [[head, "kuhn"] for head in heads]
  for _, *rows in tables[::2]:
    cells = dict(rows)
    for name in ("CFR", "CFR+"):
      assert cells[f"OpenSpiel's {name}"] == cells[name]
  assert all(float(row[1]) > 0 for _, *rows in tables[1::2] for row in rows)


def test_libratus_endgames_without_a_file(tmp_path):
  output = run(
    "libratus_endgames", "--iterations=2", "--methods=cfr", "--noplot", f"--output_dir={tmp_path}"
  )
  for updates in ("simultaneous", "alternating"):
    assert f"| {updates} | method | 2 | last iterate | seconds |" in output
  assert (
    len(re.findall(r"^\| river 4s8hTc9h2s \| cfr \| [\d,]+ \| [\d,]+ \|", output, re.MULTILINE))
    == 2
  )


def test_libratus_endgames_names_mistakes(tmp_path):
  (tmp_path / "bad.txt").write_text("-round 4\n")
  assert "has no line -board" in run(
    "libratus_endgames", f"--subgame_file={tmp_path / 'bad.txt'}", fails=True
  )


def test_solve_goes_on_from_a_checkpoint(tmp_path):
  def solve(iterations, *flags, name="split", fails=False):
    flags = (
      "--game=kuhn_poker",
      f"--iterations={iterations}",
      f"--policy={tmp_path / name}.json",
      f"--trace={tmp_path / name}.csv",
      f"--checkpoint_dir={tmp_path / name}",
      "--checkpoint_every=10",
      *flags,
    )
    return run("solve", *flags, fails=fails)

  solve(25)
  assert "resumed from iteration 25" in solve(64, "--resume", "--keep=2")
  solve(64, name="whole")
  for end in ("split.json", "split/iteration-000000000064.npz"):
    whole = tmp_path / end.replace("split", "whole")
    assert (tmp_path / end).read_bytes() == whole.read_bytes()
  # The lock stays in a folder too.
  assert len(list((tmp_path / "split").glob("*.npz"))) == 2
  assert len(list((tmp_path / "whole").glob("*.npz"))) == 3
  assert "not of CFRSolver" in solve(70, "--resume", "--solver=cfr", name="whole", fails=True)
  assert "--checkpoint_dir" in run("solve", "--game=kuhn_poker", "--resume", fails=True)
  refused = run(
    "solve", "--solver=open_spiel_cfr", f"--checkpoint_dir={tmp_path}/theirs", fails=True
  )
  assert "OpenSpiel's own solvers" in refused
  assert "iteration 1," not in refused


@pytest.mark.slow
def test_plot_traces(tmp_path):
  for solver in ("cfr", "cfr+"):
    run(
      "solve",
      "--game=kuhn_poker",
      "--iterations=8",
      f"--solver={solver}",
      f"--policy={tmp_path / 'policy.json'}",
      f"--trace={tmp_path / solver}.csv",
    )
  output = tmp_path / "traces.svg"
  traces = [str(path) for path in tmp_path.glob("*.csv")]
  run("plot_traces", "--x=nodes", f"--output={output}", *traces)
  # Matplotlib draws text as shapes, but says in comments what they spell.
  picture = output.read_text()
  for text in ("CFRPlusSolver", "CFRSolver", "Nodes touched", "Exploitability", "kuhn_poker"):
    assert f"<!-- {text} -->" in picture
  assert "No such file" in run("plot_traces", str(tmp_path / "nowhere.csv"), fails=True)


def test_traces_of_two_games_are_told_apart(tmp_path):
  paths = {}
  for game in ("kuhn_poker", "tiny_hanabi"):
    paths[game] = tmp_path / f"{game}.csv"
    trace = spiel_cfr.runs.TraceFile(paths[game])
    spiel_cfr.run(spiel_cfr.CFRSolver(game), 2, traces=[trace], progress=False)
  flags = f"--output={tmp_path}/a.png", *map(str, paths.values())
  printed = run("plot_traces", *flags, missing="matplotlib")
  for game in paths:
    assert f"| CFRSolver, {game} | 2 | " in printed


def test_list_games():
  output = run("list_games", "--max_nodes=20000", "kuhn_poker", "goofspiel", "chess", "2048")
  assert "kuhn_poker: solved, 58 states, 12 infosets" in output
  assert "goofspiel: ImperfectRecallError\n  goofspiel(imp_info=true" in output
  assert "chess: GameTooLargeError" in output
  assert "   1 solved with other parameters" in output


@pytest.mark.slow
def test_mccfr(tmp_path):
  output = run(
    "mccfr",
    "--game=kuhn_poker",
    "--samplers=external,outcome,cfr+",
    "--seconds=0.3",
    f"--output_dir={tmp_path}",
  )
  found = {line.split()[0]: line.split() for line in output.splitlines() if line}
  assert float(found["external"][-1]) < 0.02
  assert float(found["cfr+"][-1]) < 1e-3
  assert [path.name for path in tmp_path.glob("*.png")] == ["mccfr_kuhn_poker.png"]


def test_bet_sizes(tmp_path):
  picture = tmp_path / "sizes.png"
  printed = run("bet_sizes", "--iterations=300", "--certify=200", f"--picture={picture}")
  values = re.findall(
    r"^\| (\w+) poker \| ([^|]+) \| .* \| (-?\d\.\d+) \| [^|]+ \|$", printed, re.MULTILINE
  )
  found = {(game, rule): float(value) for game, rule, value in values}
  assert len(found) == 6
  for game in ("Kuhn", "Leduc"):
    assert found[game, "while solving"] > found[game, "as it is"] + 0.04
  assert picture.read_bytes().startswith(b"\x89PNG")


def test_warm_start_prints_the_condition():
  printed = run("warm_start", "--game=kuhn_poker", "--source=30", "--condition")
  assert "T by default, 0.03 / c*:" in printed
  rows = re.findall(r"^\| (\w+) \| ([^|]+) \| 2 \| (.*) \|$", printed, re.MULTILINE)
  assert len(rows) == 12
  for _, spread, cells in rows:
    square, threshold, most, bound = (float(cell) for cell in cells.split(" | "))
    assert square <= 0.035 * threshold
    assert most == pytest.approx(bound, rel=1e-2)
    assert threshold == pytest.approx(9 * 2 * float(spread) ** 2, rel=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["cfr+", "external_sampling", "adaptive"])
def test_track(tmp_path, solver):
  flags = (f"--solver={solver}", "--iterations=100", f"--output_dir={tmp_path}")
  run("track", "--track=^0", *flags)
  path = tmp_path / f"track_{solver}_kuhn_poker.jsonl"
  notes = [json.loads(line) for line in path.read_text().splitlines()]
  assert {note["infostate"] for note in notes} == {"0", "0p", "0b", "0pb"}
  assert {note["iteration"] for note in notes} >= {1, 2, 100}
  assert path.with_suffix(".png").stat().st_size > 10_000
  run("track", *flags, "--noplot")
  assert len({json.loads(line)["infostate"] for line in path.read_text().splitlines()}) == 12


def test_mccfr_explains_errors(tmp_path):
  folder = f"--output_dir={tmp_path}"
  assert "unknown samplers" in run("mccfr", "--samplers=magic", folder, fails=True)


def test_track_explains_errors(tmp_path):
  output = run("track", "--track=xyz", f"--output_dir={tmp_path}", fails=True)
  assert output.startswith("error: kuhn_poker")
  assert "no infoset that 'xyz' finds" in output


_TURN = "--board=Td9d6hQc", "--oop=AA,KQs", "--ip=QQ,A9s", "--bets=50%,a", "--raises=a"


def test_flop(tmp_path):
  checkpoint = tmp_path / "turn.npz"
  turn = *_TURN, f"--output_dir={tmp_path}"
  printed = run("flop", *turn, "--iterations=20", "--target=0", f"--checkpoint={checkpoint}")
  assert re.search(r"49 boards, .* about \d MB", printed)
  assert re.search(r"20 iterations, .* s: exploitability \d\d?\.\d{3} % of the pot", printed)
  assert re.search(r"OOP on Td9d6hQc +combos +EV +equity +Check +Bet 100 .*\nall +9\.00 ", printed)
  solution = tmp_path / "Td9d6hQc.solution"
  page = tmp_path / "page.html"
  printed = run("explore", f"--solution={solution}", "--runouts=2c,Ah", f"--output={page}")
  assert "46 of 49 boards" in printed
  printed = run("flop", *turn, "--iterations=40", f"--checkpoint={checkpoint}")
  assert "resumed after 20 iterations" in printed
  assert "40 iterations" in printed
  assert "EV: OOP" in run("flop", *turn, "--iterations=20", "--threads=2", "--nomerge_suits")
  assert "part 2 of '50%,b'" in run("flop", *turn[:3], "--bets=50%,b", fails=True)


def test_postflop_solver_as_recorded(tmp_path):
  printed = run("postflop_solver", f"--picture={tmp_path}/curves.png")
  assert "| river, postflop-solver | " in printed
  assert (tmp_path / "curves.png").stat().st_size > 10_000
  assert "--trees knows river, " in run("postflop_solver", "--trees=preflop", fails=True)


@pytest.mark.slow
def test_postflop_solver_has_the_same_values():
  trees = ["river", "river geometric", "river shallow", "river three sizes", "turn"]
  printed = run("postflop_solver", f"--trees={','.join(trees)}", "--picture=")
  rows = re.findall(
    r"^\| ([a-z ]+) \| -?[\d.]+ \| -?[\d.]+ \| ([\d.]+) \| ([\d.]+) \|$", printed, re.M
  )
  assert sorted(name for name, *_ in rows) == trees
  for name, difference, allowed in rows:
    assert float(difference) <= float(allowed) < 1.0, name


def test_many_flops(tmp_path):
  boards = tmp_path / "boards.txt"
  boards.write_text("# turns\nTd9d6h2c\n\nTd 9d 6h 2s\n")
  flags = f"--boards={boards}", f"--output_dir={tmp_path}", "--iterations=20", "--target=0"
  printed = run("flop", *_TURN[1:], *flags)
  assert "board 2 of 2" in printed
  assert (tmp_path / "boards.png").stat().st_size > 10_000
  with (tmp_path / "boards.csv").open() as file:
    rows = list(csv.DictReader(file))
  assert {row["board"] for row in rows} == {"Td9d6h2c", "Td9d6h2s"}
  # Clubs and spades play alike here.
  ours, theirs = ([row for row in rows if row["board"].endswith(suit)] for suit in "cs")
  for own, other in zip(ours, theirs, strict=True):
    assert (own["player"], own["class"]) == (other["player"], other["class"])
    for name in ("combos", "EV", "equity", "Check", "All-in 900"):
      assert float(own[name]) == pytest.approx(float(other[name]), abs=2e-3)
  whole = [row for row in rows if row["kind"] == "range"]
  for row in whole:
    shares = [float(row[name]) for name in ("Check", "Bet 100 (half the pot)", "All-in 900")]
    assert sum(shares) == pytest.approx(1, abs=2e-4)
  boards.write_text("# none\n")
  assert "has no boards" in run("flop", *flags, fails=True)


@pytest.mark.slow
def test_interrupted_flops_are_saved(tmp_path):
  command = [sys.executable, "examples/flop.py", *_TURN, f"--output_dir={tmp_path}", "--target=0"]
  environment = os.environ | {"PYTHONPATH": str(ROOT)}
  with subprocess.Popen(
    [*command, "--iterations=100000"],
    cwd=ROOT,
    env=environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  ) as process:
    assert process.stdout is not None
    for line in process.stdout:
      if "iterations" in line:
        break
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=300)
  assert process.returncode == 130
  assert "Traceback" not in errors
  assert "the strategies so far are saved" in output
  assert "OOP on Td9d6hQc" in output
  found = spiel_cfr.poker.load_solution(tmp_path / "Td9d6hQc.solution")
  assert spiel_cfr.explore(found, tmp_path / "page.html").num_nodes > 100


def test_explore(tmp_path):
  page, policy, trace = (tmp_path / name for name in ("page.html", "policy.json", "cfr.csv"))
  solve = ("--game=kuhn_poker", "--solver=cfr", "--iterations=64")
  run("solve", *solve, f"--policy={policy}", f"--trace={trace}")
  game = ("--game=kuhn_poker", f"--output={page}")
  output = run("explore", *game, f"--policy={policy}", f"--trace={trace}")
  assert f"{page}: 58 nodes, 12 infosets" in output
  header = explorer_pages.read(page)["header"]
  assert [curve["name"] for curve in header["traces"]] == ["cfr"]
  table = json.loads(policy.read_text())
  table = {
    key: {int(action): chance for action, chance in row.items()} for key, row in table.items()
  }
  assert header["nash_conv"] == pytest.approx(spiel_cfr.nash_conv("kuhn_poker", table))
  assert "spiel_cfr explore" in run("explore", *game, fails=True)
  assert "No such file" in run("explore", *game, "--policy=nowhere.json", fails=True)


@pytest.mark.slow
def test_value_search():
  flags = ("--rounds=2", "--plays=5", "--batch=8", "--steps=50", "--layers=16", "--learning=10")
  output = run("value_search", "--games=liars_dice_2", *flags, "--playing=50", "--exact=100")
  row = next(line for line in output.splitlines() if line.startswith("| liars_dice_2"))
  error, _, network, _, exact, _ = map(float, row.strip(" |").split(" | ")[1:])
  assert 0.0 < error < 1.0
  assert exact < 0.002 < network < 0.5
  assert "there is no game 'magic'" in run("value_search", "--games=magic", fails=True)


def test_winning_chances_of_value_search():
  """They follow from OpenSpiel's returns if both players check; also for two hands that can't be dealt together."""
  program = """
import numpy as np
import pyspiel
import value_search
from results import small_turn
from spiel_cfr import search
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.play.segments import Segment

view = GameView(pyspiel.load_game(small_turn(1000).game_string()))
segment = Segment(view, [view.new_initial_state()], None, 2, 50_000)
river = segment.lookahead.leaves[-1]
wins, deals = np.zeros((2, *river.num_private_states))
for (first, second), state in zip(zip(*river.tree.pairs(river.index)[:2]), river.states()):
  while not state.is_terminal():
    state.apply_action(1)
  wins[first, second] += (np.sign(state.returns()[0]) + 1) / 2
  deals[first, second] += 1
chances = wins.sum(axis=1) / deals.sum(axis=1), 1 - wins.sum(axis=0) / deals.sum(axis=0)
features = value_search.winning_chances(river)
assert deals.min() == 0 and len(features) == 33
for expected, found in zip(chances, (features[-24:-12], features[-12:])):
  np.testing.assert_allclose(found[: len(expected)], expected - 0.5, atol=1e-12)
"""
  folders = os.pathsep.join([str(ROOT), str(ROOT / "examples")])
  subprocess.run(
    [sys.executable, "-c", program], check=True, env=os.environ | {"PYTHONPATH": folders}
  )


def test_knowledge_limited():
  output = run("knowledge_limited", "--games=0", "--iterations=10", "--orders=1,2")
  for order in (1, 2):
    row = "0.06250 | 0.02500 | 0.02500 | 0 | 0"
    assert f"| dark_hex_2x2, CFR 10, order {order} | {row} |" in output
  assert "there is no game '9'" in run("knowledge_limited", "--games=9", fails=True)


@pytest.mark.slow
def test_rivers(tmp_path):
  flags = ("--iterations=10", "--river_iterations=50", f"--output_dir={tmp_path}")
  row = run("search", "--turns=small", *flags).splitlines()[-1]
  alone, *found = [float(cell.split()[0]) for cell in row.split(" | ")[1:]]
  assert max(found) < alone
  assert "error: " in run("search", "--turns=nowhere.txt", *flags, fails=True)


@pytest.mark.slow
def test_deep_cfr(tmp_path):
  picture = tmp_path / "deep.png"
  output = run(
    "deep_cfr",
    "--game=kuhn_poker",
    "--solvers=deep",
    "--iterations=20",
    "--num_traversals=300",
    f"--picture={picture}",
  )
  rows = {line[:16].strip(): line[16:].split() for line in output.splitlines()}
  for name in ("deep", "deep, tables"):
    assert rows[name][0] == "12,000"
    assert float(rows[name][2]) < 0.1
  assert picture.read_bytes().startswith(b"\x89PNG")
  assert "unknown solvers" in run("deep_cfr", "--solvers=magic", fails=True)
