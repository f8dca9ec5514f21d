"""The proof check of the paper's steps: it holds, and fails with a wrong constant."""

import dataclasses

import hypothesis
import pytest
import random_games
from hypothesis import strategies as st

import spiel_cfr
from spiel_cfr import FullWidthSolver
from spiel_cfr.regret_minimizers.oftrl import OFTRL
from spiel_cfr.stable_predictive import check_proof, step_sizes
from spiel_cfr.stable_predictive.proof_check import check_run
from spiel_cfr.stable_predictive.stable_predictive_cfr import steps_of

_REGULARIZERS = ("entropy", "euclidean")


def _solver(game, **settings):
  return spiel_cfr.StablePredictiveCFRSolver(game, **{"horizon": 100, "steps": "paper", **settings})


@pytest.mark.parametrize("regularizer", _REGULARIZERS)
@pytest.mark.parametrize(
  ("steps", "loss_bounds"), [("paper", "infosets"), (10.0, "infosets"), ("paper", "payoffs")]
)
@pytest.mark.parametrize(("game", "iterations"), [("kuhn_poker", 150), ("leduc_poker", 40)])
def test_theory_holds_on_poker(game, iterations, steps, loss_bounds, regularizer):
  solver = _solver(game, steps=steps, regularizer=regularizer, loss_bounds=loss_bounds)
  solver.run(iterations)
  found = check_proof(solver)
  assert found.holds, str(found)
  assert {check.name for check in found.checks} == {
    "local stability (5)",
    "stability from an infoset on",
    "stability of the whole strategy",
    "norm of the losses",
    "norm of the predictions",
    "errors (1)",
    "local regret (6)",
    "regret (6)",
    "Lemma 1, up to rounding",
    "Lemma 1 at the root, by sequence form",
    "Lemma 2",
    "change of the gradient",
    "gap <= sum of regrets / sum of weights",
    "gap <= guarantee before the run",
  }
  assert found.gap <= found.guarantee
  # The bounds are bounds, not infinities: something comes within a few orders of magnitude.
  assert max(check.ratio for check in found.checks) > 1e-2


@hypothesis.settings(max_examples=25)
@hypothesis.given(
  random_games.games(max_histories=120),
  st.sampled_from(_REGULARIZERS),
  st.booleans(),
  st.sampled_from([1e-3, 1.0, 100.0]),
  st.sampled_from(["infosets", "payoffs"]),
)
def test_theory_holds_on_random_games(game, regularizer, alternating, kappa, loss_bounds):
  solver = spiel_cfr.StablePredictiveCFRSolver(
    game,
    kappa=kappa,
    regularizer=regularizer,
    steps="paper",
    alternating_updates=alternating,
    loss_bounds=loss_bounds,
  )
  solver.run(25)
  found = check_proof(solver)
  assert found.holds, str(found)


# What is claimed, made false by a factor, and the checks one of which must notice.
_BROKEN = [
  ("kappa", 1e-3, "local stability (5)"),
  ("stability", 1e-4, "stability from an infoset on"),
  ("loss_norm", 0.05, "norm of the losses"),
  ("loss_norm", 0.05, "norm of the predictions"),
  ("sensitivity", 1e-4, "change of the gradient"),
  ("opponent_movement", 1e-3, "errors (1)"),
  ("alpha", 1e-6, "regret (6)"),
  ("kappa_root", 1e-4, "stability of the whole strategy"),
  ("regularizer_range", 1e-6, "local regret (6)"),
]


@pytest.mark.quick("entropy-*")
@pytest.mark.parametrize(("field", "factor", "name"), _BROKEN, ids=str)
@pytest.mark.parametrize("regularizer", _REGULARIZERS)
def test_a_broken_constant_is_noticed(field, factor, name, regularizer):
  solver = _solver("kuhn_poker", regularizer=regularizer)
  solver.run(60)
  constants = steps_of(solver)
  assert check_run(solver, constants).holds
  wrong = {field: factor * getattr(constants, field)}
  if field == "alpha":
    wrong["beta"] = factor * constants.beta
  found = check_run(solver, dataclasses.replace(constants, **wrong))
  assert not found.holds
  (check,) = (check for check in found.broken if check.name == name)
  assert check.value > check.bound
  assert "player" in check.where
  assert 1 <= check.iteration <= 60
  assert f"BROKEN {name}" in str(found)
  assert check.where in str(found)


def test_steps_that_are_too_long_are_noticed_where_they_are():
  """The steps themselves, not what is claimed of them: one infoset of the second player."""
  game = spiel_cfr.compile_game("leduc_poker")
  constants = steps_of(_solver(game, regularizer="euclidean"))
  steps = constants.steps.copy()
  infostate = game.infostates[1][7]
  steps[game.treeplexes[1].first_infoset + int(game.infosets[1].position[7])] *= 1e7
  solver = FullWidthSolver(game, OFTRL(steps, "euclidean"), alternating_updates=False)
  solver.run(5)
  found = check_run(solver, constants)
  broken = {check.name: check for check in found.broken}
  assert broken["local stability (5)"].where == f"player 1's infostate {infostate!r}"


def test_certifying_changes_nothing():
  solver = _solver("kuhn_poker")
  solver.run(50)
  before = solver.current_probabilities(), solver.average_probabilities(), solver.iteration
  check_proof(solver)
  assert (solver.current_probabilities() == before[0]).all()
  assert (solver.average_probabilities() == before[1]).all()
  assert solver.iteration == before[2]


def test_a_run_of_no_iterations_promises_nothing():
  found = check_proof(_solver("kuhn_poker"))
  assert found.holds
  assert found.checks == ()


@pytest.mark.parametrize(
  ("settings", "note"),
  [
    ({"alternating_updates": True}, "alternate"),
    ({"gamma": 1}, "uniform"),
    ({"game": "kuhn_poker(players=3)"}, "two players"),
    ({"horizon": 5}, "Past the horizon"),
  ],
)
def test_cases_beyond_the_theory_are_reported(settings, note):
  solver = _solver(**{"game": "kuhn_poker", **settings})
  solver.run(10)
  found = check_proof(solver)
  assert found.holds
  assert any(note in text for text in found.notes)
  assert (found.guarantee is None) == ("horizon" not in settings)


def test_guarantee_falls_with_the_horizon_as_the_theory_says():
  guarantees = []
  for horizon in (64, 64 * 16):
    solver = _solver("kuhn_poker", horizon=horizon)
    solver.run(horizon)
    guarantees.append(check_proof(solver).guarantee)
  assert guarantees[1] == pytest.approx(guarantees[0] / 16**0.75, rel=0.2)


def test_step_size_table():
  solver = _solver("leduc_poker")
  table = step_sizes(solver)
  infostates = [text for texts in solver.compiled_game.infostates for text in texts]
  assert [row.infostate for row in table] == infostates
  assert {row.player for row in table} == {0, 1}
  for row in table:
    assert row.step == pytest.approx(row.kappa / (3 * row.loss_norm))
    assert row.strategy_norm >= 1
  leaf = min(table, key=lambda row: (row.strategy_norm, row.infostate))
  assert leaf.strategy_norm == 1
  lines = str(table).splitlines()
  assert len(lines) == len(table) + 1
  assert all(repr(row.infostate) in line for row, line in zip(table, lines[1:], strict=True))
