"""The catalogue has all solvers."""

import pickle

import pytest

import spiel_cfr
from spiel_cfr import catalogue, errors
from spiel_cfr.deep_cfr.network import LeastSquares


def test_no_public_solver_is_missing():
  rooms = (
    spiel_cfr.cfr,
    spiel_cfr.stable_predictive,
    spiel_cfr.first_order,
    spiel_cfr.correlated,
    spiel_cfr.mccfr,
    spiel_cfr.deep_cfr,
  )
  public = {
    getattr(room, name) for room in rooms for name in room.__all__ if name.endswith("Solver")
  }
  # Nothing can be made of these without more arguments than a game.
  bases = {spiel_cfr.Solver, spiel_cfr.mccfr.MonteCarloSolver, spiel_cfr.mccfr.SamplingSolver}
  assert {entry.solver for entry in catalogue.SOLVERS.values()} == public - bases
  wrappers = {entry.wrapper for entry in catalogue.SOLVERS.values()}
  assert wrappers == {None, spiel_cfr.Restarted}


@pytest.mark.parametrize("name", catalogue.SOLVERS)
def test_entries_make_their_solvers(name):
  entry = catalogue.SOLVERS[name]
  # Networks take a second an iteration.
  quick = {"network": LeastSquares()} if name.startswith("deep") else {}
  solver = catalogue.make(name, "kuhn_poker", 30, **quick)
  assert type(solver) is (entry.wrapper or entry.family)
  assert entry.horizon is None or solver.recipe.arguments[entry.horizon] == 30
  solver.run(30)
  assert 0 < solver.nash_conv() < 2.0
  assert entry.summary
  assert not entry.summary.endswith(".")


def test_names_and_summaries_differ():
  assert len({entry.summary for entry in catalogue.SOLVERS.values()}) == len(catalogue.SOLVERS)
  calls = [
    (entry.solver, entry.wrapper, sorted(entry.arguments.items(), key=str))
    for entry in catalogue.SOLVERS.values()
  ]
  assert all(calls.count(call) == 1 for call in calls)


def test_arguments_go_before_those_of_the_entry():
  solver = catalogue.make("hsdcfr", "kuhn_poker", 30, horizon=7)
  assert solver.recipe.arguments["horizon"] == 7
  one, other = (catalogue.make("outcome_sampling", "kuhn_poker", 9, seed=seed) for seed in (1, 2))
  for solver in (one, other):
    solver.run(9)
  assert one.average_policy_dict() != other.average_policy_dict()


def test_unknown_names_are_an_error():
  with pytest.raises(errors.ArgumentError, match=r"'cfrr'.*'cfr'"):
    catalogue.make("cfrr", "kuhn_poker", 1)


@pytest.mark.parametrize(
  ("name", "spellings"),
  [
    ("cfr+", ["CFRPlusSolver", "CFR+", "cfrplus", "CFR Plus"]),
    ("hspcfr+", ["HSPCFRPlusSolver"]),
    ("restarted", ["RestartedCFRSolver", "Restarted"]),
    ("egt", ["ExcessiveGapSolver", "EGT"]),
    ("stable_predictive", ["StablePredictiveCFRSolver", "stable-predictive"]),
    ("external_sampling", ["ExternalSamplingSolver"]),
  ],
)
def test_spellings(name, spellings):
  for spelling in spellings:
    assert catalogue.find(spelling) is catalogue.SOLVERS[name]


def test_every_name_is_found_as_it_is_spelled():
  assert [catalogue.find(name) for name in catalogue.SOLVERS] == list(catalogue.SOLVERS.values())


def test_few_names_are_suggested():
  with pytest.raises(errors.ArgumentError) as error:
    catalogue.find("PCFRR+")
  assert "'pcfr+'" in str(error.value)
  assert len(str(error.value)) < 160


def test_functions_with_names_of_classes():
  """`isinstance` tells what they made, they are pickled by name, and classes can't be derived from them."""
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker")
  assert isinstance(solver, spiel_cfr.CFRPlusSolver)
  assert not isinstance(solver, spiel_cfr.CFRSolver)
  assert not isinstance(7, spiel_cfr.CFRSolver)
  assert pickle.loads(pickle.dumps(spiel_cfr.CFRSolver)) is spiel_cfr.CFRSolver
  with pytest.raises(errors.ArgumentError, match=r"CFRSolver is a function .* FullWidthSolver"):

    class Mine(spiel_cfr.CFRSolver):
      pass


def test_the_catalogue_is_immutable():
  with pytest.raises(TypeError):
    catalogue.SOLVERS["mine"] = catalogue.SOLVERS["cfr"]
