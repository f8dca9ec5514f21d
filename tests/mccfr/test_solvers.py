"""Monte Carlo solvers as solvers: arguments, runs, checkpoints."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
import pytest
import samplers

import spiel_cfr
from spiel_cfr import RegretMatching, errors
from spiel_cfr.regret_minimizers import Hedge
from spiel_cfr.regret_minimizers.oftrl import OFTRL
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class _NoRegretMatching(RegretMinimizer):
  observe = RegretMatching.observe


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: spiel_cfr.OutcomeSamplingSolver("kuhn_poker", 0.0), "epsilon"),
    (lambda: spiel_cfr.OutcomeSamplingSolver("kuhn_poker", 1.5), "epsilon"),
    (lambda: spiel_cfr.OutcomeSamplingSolver("kuhn_poker", float("nan")), "epsilon"),
    (lambda: spiel_cfr.OutcomeSamplingSolver("kuhn_poker", "0.5"), "epsilon"),  # type: ignore[arg-type]
    (lambda: spiel_cfr.OutcomeSamplingSolver("kuhn_poker", baseline_rate=-1), "baseline_rate"),
    (lambda: spiel_cfr.mccfr.AverageStrategySamplingSolver("kuhn_poker", 0.0), "epsilon"),
    (lambda: spiel_cfr.mccfr.AverageStrategySamplingSolver("kuhn_poker", beta=-1.0), "beta"),
    (lambda: spiel_cfr.mccfr.AverageStrategySamplingSolver("kuhn_poker", tau=np.inf), "tau"),
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", "MEAN"), "average_type"),  # type: ignore[arg-type]
    (
      lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", average_weights=-1.0),
      "average_weights",
    ),
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", engine="fast"), "engine"),  # type: ignore[arg-type]
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", max_infosets=0), "max_infosets"),
    (
      lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", minimizer=_NoRegretMatching()),
      "RegretMatching",
    ),
    (
      lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", minimizer=OFTRL(np.ones(12))),
      "OFTRL.*need Hedge",
    ),
    (
      lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", minimizer=Hedge(threshold=2.0)),
      "threshold=2.0.*need Hedge",
    ),
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", minimizer="rm+"), "need Hedge"),  # type: ignore[arg-type]
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", seed=-1), "seed"),
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", seed=1.5), "seed"),  # type: ignore[arg-type]
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker").run(0), "iterations"),
  ],
)
def test_bad_arguments_are_named(make: Callable[[], Any], message: str) -> None:
  with pytest.raises(errors.ArgumentError, match=message):
    make()


@pytest.mark.quick(
  "average strategy",
  "chance",
  "external with baseline",
  "hedge by outcomes",
  "outcome",
  "importance",
)
@samplers.every_variant
def test_checkpoints_go_on_as_if_nothing_had_stopped(make: samplers.Make, tmp_path: Any) -> None:
  path = tmp_path / "solver.npz"
  solver = make("leduc_poker", seed=3)
  solver.run(60)
  solver.save(path)
  loaded = spiel_cfr.Solver.load(path, "leduc_poker")
  assert isinstance(loaded, type(solver))
  assert loaded.iteration == 60
  later = make("leduc_poker", seed=3)
  later.run(200)
  later.restore(path)
  for other in (solver, loaded, later):
    other.run(60)
    assert samplers.tables(other) == samplers.tables(solver)
    assert other.nodes_touched == solver.nodes_touched


def test_hedge_plays_the_softmax_of_regrets_and_is_uniform_where_payoffs_are_the_same() -> None:
  solver = spiel_cfr.ExternalSamplingSolver("kuhn_poker", minimizer=Hedge(2.0), seed=5)
  solver.run(400)
  # All infosets of Kuhn poker have two actions; payoffs range from -2 to 2.
  current = solver.current_policy_dict()
  ratios = []
  for note in solver.snapshots():
    passes, bets = current[note.infostate].values()
    ratios.append(np.log(bets / passes) / (note.regrets[1] - note.regrets[0]))
  # The steps are those of each infoset's last visit.
  last = 2.0 * np.sqrt(8.0 * np.log(2.0) / 400) / 4.0
  assert min(ratios) == pytest.approx(last, rel=1e-9)
  assert max(ratios) < 1.5 * last
  no_payoffs = pyspiel.create_matrix_game([[0.0, 0.0]] * 2, [[0.0, 0.0]] * 2)
  constant = spiel_cfr.ExternalSamplingSolver(no_payoffs, minimizer=Hedge(), seed=5)
  constant.run(10)
  assert list(constant.current_policy_dict().values()) == [{0: 0.5, 1: 0.5}] * 2


def test_runs_and_traces(tmp_path: Any) -> None:
  solver = spiel_cfr.ExternalSamplingSolver("kuhn_poker")
  path = tmp_path / "trace.csv"
  result = spiel_cfr.run(
    solver, target_exploitability=0.01, traces=[spiel_cfr.runs.TraceFile(path)], progress=False
  )
  assert result.reason == "target"
  rows = spiel_cfr.runs.read_trace(path).rows
  assert rows[-1].iteration == solver.iteration
  assert rows[-1].nodes_touched == solver.nodes_touched
  assert rows[-1].exploitability == solver.exploitability() <= 0.01


def test_runs_and_checkpoints_need_a_compiled_game(tmp_path: Any) -> None:
  solver = spiel_cfr.ExternalSamplingSolver("kuhn_poker", engine="states")
  with pytest.raises(errors.UnsupportedGameError, match="works on states"):
    spiel_cfr.run(solver, 10, progress=False)
  with pytest.raises(errors.UnsupportedGameError, match="works on states"):
    solver.save(tmp_path / "solver.npz")


def test_iteration_counts_and_iterates() -> None:
  solver = spiel_cfr.ExternalSamplingSolver("kuhn_poker")
  assert solver.iteration == 0
  solver.iteration()
  solver.run(4)
  assert solver.iteration == 5
  assert f"{solver.iteration:,}" == "5"


@pytest.mark.parametrize("engine", ["compiled", "states"])
def test_snapshots_describe_infosets(engine: Any) -> None:
  options: Any = {"minimizer": RegretMatching.discounted(1.0, 0.5), "seed": 4, "engine": engine}
  game = spiel_cfr.compile_game("leduc_poker")
  solver = spiel_cfr.ExternalSamplingSolver(game, **options)
  solver.run(120)
  average, current = solver.average_policy_dict(), solver.current_policy_dict()
  assert len(average) > 100
  before = _snapshots(solver)
  assert len(before) > 100
  for note in before.values():
    assert (note.iteration, note.nodes_touched) == (120, solver.nodes_touched)
    assert dict(zip(note.actions, note.average, strict=True)) == average[note.infostate]
    assert note.current == pytest.approx(list(current[note.infostate].values()))
    positive = np.maximum(note.regrets, 0)
    if positive.any():
      assert note.current == pytest.approx(positive / positive.sum(), abs=1e-9)
  solver.run(1)
  after = _snapshots(solver)
  shrunk = 120**0.5 / (120**0.5 + 1)
  # Where samples have not been, regrets are discounted all the same.
  idle = [
    np.allclose(
      after[name].regrets,
      np.array(note.regrets) * np.where(np.array(note.regrets) > 0, 120 / 121, shrunk),
      rtol=1e-9,
      atol=0,
    )
    for name, note in before.items()
  ]
  assert 0.7 * len(before) < sum(idle) < len(before)
  whole = spiel_cfr.ExternalSamplingSolver("leduc_poker", **options | {"engine": "compiled"})
  whole.run(121)
  expected = _snapshots(whole)
  for name, note in after.items():
    for ours, other in zip(note[4:], expected[name][4:], strict=True):
      assert ours == pytest.approx(other, abs=1e-12)
  untouched = spiel_cfr.ExternalSamplingSolver("leduc_poker", **options)
  untouched.run(121)
  assert samplers.tables(untouched) == samplers.tables(solver)
  with pytest.raises(errors.ArgumentError, match="7pb"):
    solver.snapshot("7pb")


def _snapshots(solver: Any) -> dict[str, Any]:
  return {each.infostate: each for each in solver.snapshots()}
