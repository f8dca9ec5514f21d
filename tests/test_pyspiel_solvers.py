"""Programs for OpenSpiel's C++ solvers run with one changed import."""

import os
import pathlib
import pickle
import re
import subprocess
import sys

import open_spiel
import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import errors, pyspiel_solvers

EXAMPLES = pathlib.Path(open_spiel.__path__[0], "python", "examples")
FULL_WIDTH = ("CFRSolver", "CFRPlusSolver", "CFRBRSolver")
MONTE_CARLO = ("ExternalSamplingMCCFRSolver", "OutcomeSamplingMCCFRSolver")


def output(tmp_path, name, changed, *flags):
  source = (EXAMPLES / name).read_text()
  if changed:
    before = source
    source = source.replace(
      "import pyspiel\n", "from spiel_cfr import pyspiel_solvers as pyspiel\n"
    )
    assert source != before
  # Also where it writes its pickles.
  program = tmp_path / f"{changed}.py"
  program.write_text(source)
  done = subprocess.run(
    [sys.executable, str(program), *flags],
    cwd=tmp_path,
    env={**os.environ, "TMPDIR": str(tmp_path)},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  return done.stdout


ACPC = "universal_poker_cfr_cpp_load_from_acpc_gamedef_example.py"


@pytest.mark.parametrize(
  ("example", "flags"),
  [
    pytest.param("cfr_cpp_example.py", ["--solver=cfr"], marks=pytest.mark.slow),
    ("cfr_cpp_example.py", ["--solver=cfrplus", "--game=leduc_poker", "--iterations=6"]),
    pytest.param(ACPC, ["--solver=cfr", "--iterations=10"], marks=pytest.mark.slow),
  ],
)
def test_examples_print_the_same(tmp_path, example, flags):
  theirs, ours = (output(tmp_path, example, changed, *flags) for changed in (False, True))
  if "--solver=cfrplus" in flags:
    # OpenSpiel's CFR+ forgets its iteration when it is pickled, and goes on as another solver.
    theirs, ours = (text.split("Loading")[0] for text in (theirs, ours))
  assert ours == theirs
  assert ours.count("Iteration ") >= 3


@pytest.mark.parametrize(
  "example", ["cfr_cpp_example.py", pytest.param(ACPC, marks=pytest.mark.slow)]
)
def test_the_examples_run_with_cfr_br(tmp_path, example):
  """OpenSpiel's own end with an error: its CFR-BR has no `tabular_average_policy`."""
  found = output(tmp_path, example, True, "--solver=cfrbr", "--iterations=20")
  values = [float(value) for value in re.findall(r"exploitability: ([\d.]+)", found)]
  assert len(values) == 20
  assert 0 < values[-1] < values[0]


@pytest.mark.parametrize("sampling", ["external", pytest.param("outcome", marks=pytest.mark.slow)])
def test_the_sampling_example_runs(tmp_path, sampling):
  found = output(tmp_path, "mccfr_cpp_example.py", True, f"--sampling={sampling}")
  values = [float(value) for value in re.findall(r"exploitability: ([\d.]+)", found)]
  assert len(values) == 50
  assert 0 < values[-1] < values[0]


@pytest.mark.parametrize("name", [*FULL_WIDTH, *MONTE_CARLO])
def test_every_method_of_open_spiel_is_there(name):
  theirs, ours = getattr(pyspiel, name), getattr(pyspiel_solvers, name)
  methods = [method for method in dir(theirs) if not method.startswith("_")]
  game = pyspiel.load_game("kuhn_poker")
  solver = ours(game)
  (solver.run_iteration if name in MONTE_CARLO else solver.evaluate_and_update_policy)()
  for method in methods:
    result = getattr(solver, method)()
    if "policy" in method and "update" not in method:
      assert isinstance(result, pyspiel.Policy)
      assert pyspiel.nash_conv(game, result) == pytest.approx(pyspiel.nash_conv(game, result, True))
      assert pyspiel.exploitability(game, result) == pytest.approx(
        pyspiel.nash_conv(game, result) / 2
      )
  twin = pickle.loads(pickle.dumps(solver))
  solver.run(3)
  twin.run(3)
  assert twin.average_policy_dict() == solver.average_policy_dict()


@pytest.mark.parametrize(
  ("name", "ours"),
  [
    (MONTE_CARLO[0], spiel_cfr.ExternalSamplingSolver),
    (MONTE_CARLO[1], spiel_cfr.OutcomeSamplingSolver),
  ],
)
def test_monte_carlo_on_games_too_large_to_compile(name, ours):
  game = pyspiel.load_game("liars_dice(dice_sides=2)")
  solver = getattr(pyspiel_solvers, name)(game, seed=3)
  large = pyspiel_solvers.PyspielSolver(ours(game, seed=3, engine="states"))
  assert large.engine == "states"
  for _ in range(30):
    solver.run_iteration()
    large.run_iteration()
  values = [pyspiel.nash_conv(game, each.average_policy(), True) for each in (solver, large)]
  assert values[0] == pytest.approx(values[1])


def test_arguments(tmp_path):
  game = pyspiel.load_game("kuhn_poker")
  solver = pyspiel_solvers.ExternalSamplingMCCFRSolver(
    game, avg_type=pyspiel.MCCFRAverageType.FULL, seed=-5
  )
  solver.run(10)
  solver.save(tmp_path / "ten.npz")
  loaded = spiel_cfr.Solver.load(tmp_path / "ten.npz", game)
  assert type(loaded) is type(solver.solver)
  assert loaded.average_policy_dict() == solver.average_policy_dict()
  with pytest.raises(errors.ArgumentError, match="seed"):
    pyspiel_solvers.OutcomeSamplingMCCFRSolver(game, 0.6, 1.5)
  # Without a seed, OpenSpiel's external sampler is the same every time, the other one is not.
  pairs = [[getattr(pyspiel_solvers, name)(game) for _ in range(2)] for name in MONTE_CARLO]
  same = [
    one.state_dict()["counters"][0] == other.state_dict()["counters"][0] for one, other in pairs
  ]
  assert same == [True, False]


def test_the_rest_is_open_spiels():
  assert pyspiel_solvers.load_game is pyspiel.load_game
  assert pyspiel_solvers.GameType is pyspiel.GameType
  assert {"load_game", "CFRSolver"} <= set(dir(pyspiel_solvers))


def test_checkpoints_of_the_python_names_stay_theirs(tmp_path):
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(2)
  solver.save(tmp_path / "two.npz")
  loaded = spiel_cfr.Solver.load(tmp_path / "two.npz", "kuhn_poker")
  assert type(loaded) is type(solver)
  assert loaded.recipe == solver.recipe
