"""The proof check of adaptive steps: it holds as the theory says, and fails with wrong constants."""

import dataclasses

import hypothesis
import numpy as np
import pytest
import random_games
from composition.forms import FORMS
from hypothesis import strategies as st
from rotation import rotated

import spiel_cfr
from spiel_cfr import FullWidthSolver, errors
from spiel_cfr.regret_minimizers.adaptive_oftrl import AdaptiveOFTRL
from spiel_cfr.stable_predictive import adaptive_steps, check_proof
from spiel_cfr.stable_predictive.proof_check import check_run
from spiel_cfr.stable_predictive.stable_predictive_cfr import steps_of

_LOCAL = {
  "size of the losses (D)",
  "size of the predictions (D)",
  "errors (1)",
  "local regret (2)",
  "local regret (i)",
  "squared errors (ii)",
  "squared errors (iii)",
  "movement (3)",
  "loss of an update (4)",
  "Lemma 1, up to rounding",
  "Lemma 1 at the root, by sequence form",
  "Lemma 2",
  "regret <= sum of local ones",
}
_GAP = {
  "gap <= sum of regrets / sum of weights",
  "gap <= bound of this run",
  "gap <= guarantee before the run",
}

_SETTINGS = {
  "adaptive, linear": {},
  "adaptive, uniform": {"gamma": 0, "delta": 0.01},
  "adaptive, held back": {"delta": 3.0},
  "adaptive, quadratic": {"gamma": 2},
  "adaptive, alternating": {"alternating_updates": True},
}


def _names(found):
  return {check.name for check in found.checks}


@rotated(
  "settings,game,iterations,regularizer",
  list(_SETTINGS),
  [("kuhn_poker", 150), ("leduc_poker", 40)],
  ["entropy", "euclidean"],
)
def test_theory_holds_on_poker(game, iterations, settings, regularizer):
  solver = spiel_cfr.StablePredictiveCFRSolver(game, regularizer=regularizer, **_SETTINGS[settings])
  solver.run(iterations)
  found = check_proof(solver)
  assert found.holds, str(found)
  assert _names(found) == _LOCAL | _GAP
  assert found.gap <= found.bound
  assert found.bound <= found.guarantee
  ratios = {check.name: check.ratio for check in found.checks}
  # The bounds are bounds, not infinities.
  assert min(ratios["size of the losses (D)"], ratios["movement (3)"]) > 0.1
  assert ratios["errors (1)"] > 0.02


@hypothesis.settings(max_examples=25)
@hypothesis.given(
  random_games.games(max_histories=120),
  st.sampled_from(["entropy", "euclidean"]),
  st.booleans(),
  st.sampled_from([0, 1, 2]),
  st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_theory_holds_on_random_games(game, regularizer, alternating, gamma, delta):
  solver = spiel_cfr.StablePredictiveCFRSolver(
    game,
    regularizer=regularizer,
    alternating_updates=alternating,
    gamma=gamma,
    delta=delta,
  )
  solver.run(25)
  found = check_proof(solver)
  assert found.holds, str(found)


@pytest.mark.quick(except_for=["parts, endgame-*", "parts, symmetries-*"])
@rotated("form,settings", FORMS, ["adaptive, linear", "adaptive, uniform"])
def test_theory_holds_in_every_form_of_game(form, settings):
  if form.is_large and settings != "adaptive, linear":
    pytest.skip("takes long; its form is there in small as well")
  solver = spiel_cfr.StablePredictiveCFRSolver(form.compiled, **_SETTINGS[settings])
  solver.run(30)
  if form.compiled.shared_infosets is not None:
    with pytest.raises(errors.AbstractionError, match="perfect recall"):
      check_proof(solver)
    return
  found = check_proof(solver)
  assert found.holds, str(found)
  zero_sum = solver.compiled_game.is_two_player_constant_sum
  assert _names(found) == _LOCAL | (_GAP if zero_sum else set())
  assert zero_sum == (found.bound is not None)


# What is claimed, made false by a factor, and the check that must notice.
_BROKEN = [
  ("loss_norm", 0.05, "size of the losses (D)"),
  ("loss_norm", 0.05, "size of the predictions (D)"),
  ("loss_norm", 0.05, "errors (1)"),
  ("loss_norm", 1e-6, "squared errors (ii)"),
  ("loss_norm", 1e-12, "squared errors (iii)"),
  ("norm_factor", 1e-6, "squared errors (ii)"),
  ("norm_factor", 1e-12, "squared errors (iii)"),
  ("regret_factor", 0.1, "local regret (i)"),
  ("regret_factor", 1e-5, "gap <= guarantee before the run"),
  ("scale", 0.05, "movement (3)"),
  ("regularizer_range", 1e-4, "movement (3)"),
  ("floor", 1e12, "movement (3)"),
  ("regularizer_range", 1e-4, "regret <= sum of local ones"),
]


@pytest.mark.quick("*-entropy", "*floor*", "*scale*", "*regret_factor', 0.1*")
@rotated("field,factor,name,regularizer", _BROKEN, ["entropy", "euclidean"])
def test_a_broken_constant_is_noticed(field, factor, name, regularizer):
  solver = spiel_cfr.StablePredictiveCFRSolver("kuhn_poker", regularizer=regularizer)
  solver.run(60)
  constants = steps_of(solver)
  assert check_run(solver, constants).holds
  wrong = {field: factor * getattr(constants, field)}
  found = check_run(solver, dataclasses.replace(constants, **wrong))
  assert name in {check.name for check in found.broken}, str(found)
  (check,) = (check for check in found.broken if check.name == name)
  assert check.value > check.bound
  assert 1 <= check.iteration <= 60
  assert f"BROKEN {name}" in str(found)
  assert check.where in str(found)


def test_steps_that_are_longer_than_they_say_are_noticed():
  """Unseen by the proof check: one infoset of the second player."""
  game = spiel_cfr.compile_game("leduc_poker")
  infostate = game.infostates[1][7]
  wrong = game.treeplexes[1].first_infoset + int(game.infosets[1].position[7])
  constants = adaptive_steps.adaptive_steps(game, "entropy", 3.0, 1.0)
  bounds = constants.loss_norm.copy()
  bounds[wrong] *= 1e-3
  solver = FullWidthSolver(
    game,
    AdaptiveOFTRL(bounds, 3.0, 1.0),
    alternating_updates=False,
    averaging=spiel_cfr.Averaging(1.0),
  )
  solver.run(10)
  broken = {check.name: check for check in check_run(solver, constants).broken}
  assert broken["movement (3)"].where == f"player 1's infostate {infostate!r}"


def test_weights_of_the_average_alone_are_noticed():
  """Linear averages of uniform steps are not covered: their regrets weigh all iterations alike."""
  uniform = spiel_cfr.StablePredictiveCFRSolver("leduc_poker", gamma=0, delta=0.01)
  solver = FullWidthSolver(
    uniform.compiled_game,
    uniform.minimizer,
    alternating_updates=False,
    averaging=spiel_cfr.Averaging(1.0),
  )
  solver.run(100)
  broken = {check.name for check in check_run(solver, steps_of(uniform)).broken}
  assert broken == {"gap <= sum of regrets / sum of weights"}


def test_uniform_averages_of_alternating_updates_need_the_loss_of_updates():
  """Gains of the first player's updates are part of the gap, not of the regrets."""
  solver = spiel_cfr.StablePredictiveCFRSolver("leduc_poker", alternating_updates=True)
  solver.run(100)
  found = check_proof(solver)
  (gap,) = (check for check in found.checks if check.name.startswith("gap <= sum"))
  # The gap of the averages is what the regrets and the updates say exactly: none is wasted.
  assert gap.ratio == pytest.approx(1.0, abs=1e-9)


def test_cases_beyond_the_theory_are_reported():
  solver = spiel_cfr.StablePredictiveCFRSolver("kuhn_poker(players=3)")
  solver.run(10)
  found = check_proof(solver)
  assert found.holds, str(found)
  assert any("two players" in text for text in found.notes)


def test_bounds_before_the_run():
  """(iii) overtakes (ii) where the docs say, and the guarantee then falls as T^(-3/4)."""
  game = spiel_cfr.compile_game("kuhn_poker")
  steps = adaptive_steps.adaptive_steps(game, "entropy", 4.0, 1.0)
  for alternating in (False, True):
    guarantees = [steps.guarantee(count, alternating) for count in (10**5, 16 * 10**5)]
    assert guarantees[1] == pytest.approx(guarantees[0] / 8, rel=0.1)
  large = adaptive_steps.adaptive_steps(game, "entropy", 0.01, 0.0)
  first = [
    count
    for count in (10**4, 10**5, 10**6)
    if (large.settled_error_totals(count) < large.largest_error_totals(count)).any()
  ]
  assert first == []
  assert np.isfinite(large.guarantee(10**5, alternating=True))
