"""The command line: its jobs and its messages."""

import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import __main__, catalogue


def output(capsys, *arguments):
  assert __main__.main(arguments) == 0
  return capsys.readouterr().out


def test_as_a_module():
  done = subprocess.run(
    [sys.executable, "-m", "spiel_cfr", "--help"], capture_output=True, text=True, check=True
  )
  for job in ("solve", "compare", "explore", "play", "size", "games", "solvers"):
    assert re.search(rf"\n +{job} ", done.stdout)


def test_solve(capsys, tmp_path):
  path = tmp_path / "new" / "policy.json"
  found = output(
    capsys, "solve", "kuhn_poker", "--solver=cfr+", "--iterations=300", f"--policy={path}"
  )
  assert "58 states" in found
  policy = {
    infostate: {int(action): chance for action, chance in entries.items()}
    for infostate, entries in json.loads(path.read_text()).items()
  }
  printed = float(re.search(r"exploitability ([\d.e-]+)", found).group(1))
  assert spiel_cfr.exploitability("kuhn_poker", policy) == pytest.approx(printed, rel=1e-2)


@pytest.mark.parametrize(
  ("arguments", "status"),
  [
    ([], 0),
    (["--iterations=9"], 0),
    (["--iterations=9", "--exploitability=1e-9"], 1),
    (["--exploitability=1e-9", "--seconds=0"], 1),
    (["--exploitability=0.1", "--solver=cfr+", "--iterations=1000"], 0),
  ],
)
def test_a_missed_target_is_a_status(capsys, arguments, status):
  assert __main__.main(["solve", "kuhn_poker", *arguments]) == status
  reached = "the target is reached" in capsys.readouterr().out
  assert reached == (status == 0 and arguments != ["--iterations=9"])


def test_explore(capsys, tmp_path):
  path = tmp_path / "new" / "page.html"
  found = output(capsys, "explore", "kuhn_poker", f"--output={path}")
  assert "12 infosets" in found
  assert "<title>Kuhn Poker" in path.read_text()
  assert __main__.main(["explore", "kuhn_poker", f"--output={tmp_path}"]) == 1


def test_compare(capsys):
  found = output(capsys, "compare", "kuhn_poker", "--solvers=cfr,cfr_br", "--iterations=50")
  assert re.search(r"\bcfr +50 ", found)
  assert re.search(r"\bcfr_br +50 ", found)


def test_compare_for_equal_times(capsys):
  """Without --iterations, the seconds are the only limit, and each solver has as many."""
  found = output(capsys, "compare", "kuhn_poker", "--solvers=cfr,dcfr", "--seconds=0.2")
  counts = re.findall(r"\bd?cfr +([\d,]+) ", found)
  assert len(counts) == 2
  # Elsewhere a thousand iterations are what is done by default.
  assert "1,000" not in counts
  found = output(capsys, "compare", "kuhn_poker", "--solvers=cfr", "--seconds=60", "--iterations=7")
  assert re.search(r"\bcfr +7 ", found)


def test_a_size_beyond_numbers_has_no_error(capsys):
  found = output(capsys, "size", "chess")
  assert found.startswith("more than 1e308 states, ")
  assert "nan" not in found


def test_lists_and_sizes(capsys):
  names = [line.split("  ")[0] for line in output(capsys, "solvers").splitlines()]
  assert names == list(catalogue.SOLVERS)
  assert " states " in output(capsys, "size", "kuhn_poker")


def test_verdicts_on_games(capsys, monkeypatch):
  """They are those of docs/games.md."""
  names = ["kuhn_poker", "leduc_poker", "chess", "backgammon", "efg_game", "chat_game", "2048"]
  monkeypatch.setattr(pyspiel, "registered_names", lambda: names)
  verdicts = dict(line.split(maxsplit=1) for line in output(capsys, "games").splitlines())
  assert list(verdicts) == names
  assert verdicts["kuhn_poker"] == "can be solved: 58 states"
  assert re.match(r"can be solved: about \d?\d,\d{3} states$", verdicts["leduc_poker"])
  assert verdicts["chess"].startswith("GameTooLargeError: more than 1e308 states")
  refused = {name: verdicts[name].partition(":")[0] for name in names[3:]}
  assert refused == {
    "backgammon": "NoInformationStateError",
    "efg_game": "GameParameterError",
    "chat_game": "UnsupportedGameError",
    "2048": "SinglePlayerGameError",
  }
  page = (pathlib.Path(__file__).parents[1] / "docs" / "games.md").read_text()
  assert all(f"(`{error}`)" in page for error in refused.values())


@pytest.mark.parametrize(
  "arguments",
  [
    ["solve", "kuhn_pokr"],
    ["solve", "kuhn_poker", "--iterations=0"],
    ["solve", "kuhn_poker", "--solver=cfrr"],
    ["solve", "kuhn_poker", "--policy=/proc/none/policy.json"],
    ["solve", "kuhn_poker", f"--policy={pathlib.Path(__file__).parent}"],
    ["compare", "kuhn_poker", "--solvers="],
    ["compare", "kuhn_poker", "--seconds=-1"],
    ["compare", "kuhn_poker", "--seconds=nan"],
    ["compare", "kuhn_poker", "--solvers=cfr,cfx"],
    ["size", "mfg_crowd_modelling"],
  ],
)
def test_mistakes_are_one_line(capsys, arguments, monkeypatch):
  # Nothing is run before the mistake is found.
  monkeypatch.setattr(spiel_cfr.FullWidthSolver, "run", lambda *_: pytest.fail("ran"))
  assert __main__.main(arguments) == 1
  text = capsys.readouterr().err
  assert text.startswith("error: ")
  assert text.count("\n") == 1


def test_ctrl_c_while_a_game_is_walked_is_one_line(capsys, monkeypatch):
  def walk(*arguments):
    raise KeyboardInterrupt

  monkeypatch.setattr(spiel_cfr, "compile_game", walk)
  assert __main__.main(["compare", "kuhn_poker"]) == 130
  assert capsys.readouterr().err == "interrupted\n"


def test_play(tmp_path, capsys, monkeypatch):
  def run(*arguments, typed, status=0):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert __main__.main(["play", *arguments]) == status
    return capsys.readouterr()

  policy = tmp_path / "policy.json"
  output(capsys, "solve", "kuhn_poker", "--iterations=64", "--solver=cfr", f"--policy={policy}")
  flags = ("kuhn_poker", "--seed=3", "--player=0")
  # A wrong answer, passes until a hand is over, what the policy plays, and the end.
  typed = "x\npass\n" + "1\np\n" * 6 + "q\n"
  played = run(*flags, f"--policy={policy}", typed=typed).out
  assert "you are player 0" in played
  assert "give a number from 1 to 2" in played
  assert "* marks the action played" in played
  assert "hands, " in played.splitlines()[-1]
  assert played == run(*flags, f"--policy={policy}", typed=typed).out
  assert (
    "* marks the action played" in run(*flags, f"--policy={policy}", "--search", typed=typed).out
  )
  assert "0 hands, +0 in all" in run(*flags, "--seconds=1", typed="").out
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.save(tmp_path / "solver.npz")
  saved = f"--checkpoint={tmp_path / 'solver.npz'}"
  assert "you: " in run(*flags, saved, "--hands=1", typed="2\n2\n\n\n").out
  assert "error: " in run("leduc_poker", saved, typed="", status=1).err
  assert "player must be" in run("kuhn_poker", saved, "--player=2", typed="", status=1).err


def test_a_game_of_ones_own(tmp_path, capsys):
  """Every job takes a module that registers it, by its file or by its name."""
  name = "game_of_their_own"
  path = tmp_path / f"{name}.py"
  path.write_text(
    "import pyspiel\n"
    "from open_spiel.python.games import kuhn_poker\n"
    "old = kuhn_poker._GAME_TYPE\n"
    "fields = ('dynamics', 'chance_mode', 'information', 'utility', 'reward_model', 'max_num_players',\n"
    "  'min_num_players', 'provides_information_state_string', 'provides_information_state_tensor',\n"
    "  'provides_observation_string', 'provides_observation_tensor', 'provides_factored_observation_string')\n"
    f"kind = pyspiel.GameType(short_name='{name}', long_name='Kuhn again',\n"
    "  **{field: getattr(old, field) for field in fields})\n"
    "class Game(kuhn_poker.KuhnPokerGame):\n"
    "  def __init__(self, params=None):\n"
    "    pyspiel.Game.__init__(self, kind, kuhn_poker._GAME_INFO, params or {})\n"
    "pyspiel.register_game(kind, Game)\n"
  )
  page = f"--output={tmp_path / 'page.html'}"
  for job in (["solve"], ["compare", "--solvers=cfr"], ["explore", page], ["size"]):
    found = output(capsys, job[0], name, f"--import={path}", *job[1:])
    assert " states" in found
  assert __main__.main(["solve", name, "--import=no_such_module"]) == 1
  assert capsys.readouterr().err == (
    "error: --import=no_such_module: No module named 'no_such_module'.\n"
  )


def test_explore_takes_a_solver_and_a_target(capsys, tmp_path):
  path = f"--output={tmp_path / 'page.html'}"
  found = output(capsys, "explore", "kuhn_poker", "--solver=CFR+", "--exploitability=1e-4", path)
  assert "CFRPlusSolver: as requested" in found
  assert float(re.search(r"exploitability ([\d.e-]+)", found).group(1)) <= 1e-4


def test_a_reader_that_ends_is_no_error():
  """A closed pipe ends the command, as with `python -m spiel_cfr games | head -1`."""
  command = [sys.executable, "-m", "spiel_cfr", "solvers"]
  with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
    process.stdout.close()
    assert process.stderr.read() == b""
  assert process.returncode == -signal.SIGPIPE


def test_version(capsys):
  with pytest.raises(SystemExit):
    __main__.main(["--version"])
  assert capsys.readouterr().out == f"spiel_cfr {spiel_cfr.__version__}\n"


@pytest.mark.parametrize("program", [["-m", "spiel_cfr", "games"], ["examples/solve.py"]])
@pytest.mark.parametrize("module", ["numpy", "pyspiel", "tqdm"])
def test_an_interrupt_of_an_import_is_one_line(program, module, tmp_path):
  (tmp_path / f"{module}.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
  root = pathlib.Path(__file__).parents[1]
  path = os.pathsep.join([str(tmp_path), str(root)])
  done = subprocess.run(
    [sys.executable, *program],
    capture_output=True,
    text=True,
    cwd=root,
    env=os.environ | {"PYTHONPATH": path},
  )
  assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_an_interrupt_of_a_late_import_waits_for_its_end():
  code = """if True:
    import signal, sys, spiel_cfr
    class Finder:
      def find_spec(self, name, path, target=None):
        if name == "spiel_cfr.catalogue":
          sys.meta_path.remove(self)
          signal.raise_signal(signal.SIGINT)
    sys.meta_path.insert(0, Finder())
    try:
      spiel_cfr.run
    except KeyboardInterrupt:
      assert "spiel_cfr.runs" in sys.modules and "spiel_cfr.late_imports" in sys.modules
      sys.exit(3)
  """
  assert subprocess.run([sys.executable, "-c", code]).returncode == 3
