"""The certificate of adaptive and of constant local steps holds where the theory says so, and nowhere else."""

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
from spiel_cfr.regret_minimizers.oftrl import OFTRL
from spiel_cfr.stable_predictive import adaptive_steps, certificate
from spiel_cfr.stable_predictive.certifying import certify
from spiel_cfr.stable_predictive.stable_predictive_cfr import theory_of

_LOCAL = {
  "size of the losses (D)",
  "size of the predictions (D)",
  "errors (1)",
  "local regret (2)",
  "movement (3)",
  "Lemma 1, up to rounding",
  "Lemma 1 at the root, by sequence form",
  "Lemma 2",
  "regret <= sum of local ones",
}
_ADAPTIVE = {"local regret (i)", "squared errors (ii)", "squared errors (iii)"}
_GAP = {"gap <= sum of regrets / sum of weights", "gap <= bound of this run"}
_BEFORE = {"gap <= guarantee before the run"}
_UPDATES = {"loss of an update (4)"}

_SETTINGS = {
  "adaptive, linear": ({}, _ADAPTIVE | _BEFORE | _UPDATES),
  "adaptive, uniform": ({"averaging": "uniform", "delta": 0.01}, _ADAPTIVE | _BEFORE | _UPDATES),
  "adaptive, held back": ({"delta": 3.0}, _ADAPTIVE | _BEFORE | _UPDATES),
  "adaptive, quadratic": ({"averaging": "quadratic"}, _ADAPTIVE | _BEFORE | _UPDATES),
  "adaptive, last": ({"prediction": "last"}, _ADAPTIVE | _BEFORE),
  "adaptive, alternating": ({"alternating_updates": True}, _ADAPTIVE | _BEFORE | _UPDATES),
  "farina2019": ({"steps": "farina2019", "horizon": 100}, _UPDATES),
  "farina2019, last": ({"steps": "farina2019", "horizon": 100, "prediction": "last"}, set()),
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
  arguments, names = _SETTINGS[settings]
  solver = spiel_cfr.StablePredictiveCFRSolver(game, regularizer=regularizer, **arguments)
  solver.run(iterations)
  found = certificate(solver)
  assert found.holds, str(found)
  assert _names(found) == _LOCAL | _GAP | names
  assert found.gap <= found.bound
  if names >= _BEFORE:
    assert found.bound <= found.guarantee
  ratios = {check.name: check.ratio for check in found.checks}
  # The bounds are bounds, not infinities.
  assert min(ratios["size of the losses (D)"], ratios["movement (3)"]) > 0.1
  assert ratios["errors (1)"] > 0.02


@hypothesis.settings(max_examples=25)
@hypothesis.given(
  random_games.games(max_histories=120),
  st.sampled_from(["entropy", "euclidean"]),
  st.sampled_from(["adaptive", "farina2019"]),
  st.booleans(),
  st.sampled_from(["subtree", "last"]),
  st.sampled_from(["uniform", "linear", "quadratic"]),
  st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_theory_holds_on_random_games(
  game, regularizer, steps, alternating, prediction, averaging, size
):
  solver = spiel_cfr.StablePredictiveCFRSolver(
    game,
    steps=steps,
    regularizer=regularizer,
    alternating_updates=alternating,
    prediction=prediction,
    averaging=averaging,
    **({"delta": size} if steps == "adaptive" else {"kappa": size}),
  )
  solver.run(25)
  found = certificate(solver)
  assert found.holds, str(found)


@rotated("form,settings", FORMS, ["adaptive, linear", "adaptive, uniform"])
def test_theory_holds_in_every_form_of_game(form, settings):
  if form.is_large and settings != "adaptive, linear":
    pytest.skip("takes long; its form is there in small as well")
  arguments, names = _SETTINGS[settings]
  solver = spiel_cfr.StablePredictiveCFRSolver(form.compiled, **arguments)
  solver.run(30)
  if form.compiled.shared_infosets is not None:
    with pytest.raises(errors.AbstractionError, match="perfect recall"):
      certificate(solver)
    return
  found = certificate(solver)
  assert found.holds, str(found)
  zero_sum = solver.compiled_game.is_two_player_constant_sum
  assert _names(found) == _LOCAL | (names if zero_sum else names - _BEFORE) | (
    _GAP if zero_sum else set()
  )
  assert zero_sum == (found.bound is not None)


# What is claimed, made false by a factor, and the check that must notice.
_BROKEN = [
  ("adaptive", "loss_norm", 0.05, "size of the losses (D)"),
  ("adaptive", "loss_norm", 0.05, "size of the predictions (D)"),
  ("adaptive", "loss_norm", 0.05, "errors (1)"),
  ("adaptive", "loss_norm", 1e-6, "squared errors (ii)"),
  ("adaptive", "loss_norm", 1e-12, "squared errors (iii)"),
  ("adaptive", "spread", 1e-6, "squared errors (ii)"),
  ("adaptive", "spread", 1e-12, "squared errors (iii)"),
  ("adaptive", "regret_factor", 0.1, "local regret (i)"),
  ("adaptive", "regret_factor", 1e-5, "gap <= guarantee before the run"),
  ("adaptive", "scale", 0.05, "movement (3)"),
  ("adaptive", "regularizer_range", 1e-4, "movement (3)"),
  ("adaptive", "floor", 1e12, "movement (3)"),
  ("adaptive", "regularizer_range", 1e-4, "regret <= sum of local ones"),
  ("farina2019", "loss_norm", 0.05, "size of the losses (D)"),
  ("farina2019", "loss_norm", 0.05, "size of the predictions (D)"),
  ("farina2019", "loss_norm", 0.05, "errors (1)"),
  ("farina2019", "steps", 0.05, "movement (3)"),
  ("farina2019", "steps", 20.0, "local regret (2)"),
  ("farina2019", "regularizer_range", 1e-3, "local regret (2)"),
  ("farina2019", "regularizer_range", 1e-3, "gap <= bound of this run"),
]


@rotated("steps,field,factor,name,regularizer", _BROKEN, ["entropy", "euclidean"])
def test_a_broken_constant_is_noticed(steps, field, factor, name, regularizer):
  horizon = {} if steps == "adaptive" else {"horizon": 60}
  solver = spiel_cfr.StablePredictiveCFRSolver(
    "kuhn_poker", steps=steps, regularizer=regularizer, **horizon
  )
  solver.run(60)
  run = theory_of(solver)
  assert certify(run).holds
  wrong = {field: factor * getattr(run.constants, field)}
  found = certify(dataclasses.replace(run, constants=dataclasses.replace(run.constants, **wrong)))
  assert name in {check.name for check in found.broken}, str(found)
  (check,) = (check for check in found.broken if check.name == name)
  assert check.value > check.bound
  assert 1 <= check.iteration <= 60
  assert f"BROKEN {name}" in str(found)
  assert check.where in str(found)


@pytest.mark.parametrize(
  ("steps", "name"), [("adaptive", "movement (3)"), ("farina2019", "movement (3)")]
)
def test_steps_that_are_longer_than_they_say_are_noticed(steps, name):
  """Behind the certificate's back: one infoset of the second player."""
  horizon = {} if steps == "adaptive" else {"horizon": 100}
  run = theory_of(spiel_cfr.StablePredictiveCFRSolver("leduc_poker", steps=steps, **horizon))
  game = run.compiled_game
  infostate = game.infostates[1][7]
  wrong = game.treeplexes[1].first_infoset + int(game.infosets[1].position[7])
  if steps == "adaptive":
    constants = adaptive_steps.adaptive_steps(game, "entropy", "subtree", 3.0, 1.0)
    bounds = constants.loss_norm.copy()
    bounds[wrong] *= 1e-3
    minimizer = AdaptiveOFTRL(bounds, 3.0, 1.0)
  else:
    constants = run.constants
    longer = constants.steps.copy()
    longer[wrong] *= 30
    minimizer = OFTRL(longer)
  solver = FullWidthSolver(
    game, minimizer, alternating_updates=False, average_weights=constants.power
  )
  solver.run(10)
  found = certify(dataclasses.replace(run, solver=solver, constants=constants))
  broken = {check.name: check for check in found.broken}
  assert broken[name].where == f"player 1's infostate {infostate!r}"


def test_weights_of_the_average_alone_are_noticed():
  """Theory C with linear averages is not covered: its regrets weigh all iterations alike."""
  run = theory_of(
    spiel_cfr.StablePredictiveCFRSolver("leduc_poker", averaging="uniform", delta=0.01)
  )
  solver = FullWidthSolver(
    run.compiled_game, run.solver.minimizer, alternating_updates=False, average_weights=1.0
  )
  solver.run(100)
  broken = {check.name for check in certify(dataclasses.replace(run, solver=solver)).broken}
  assert broken == {"gap <= sum of regrets / sum of weights"}


def test_uniform_averages_of_alternating_updates_need_the_loss_of_updates():
  """What the first player's updates gain or lose is part of the gap, not of the regrets."""
  solver = spiel_cfr.StablePredictiveCFRSolver("leduc_poker", alternating_updates=True)
  solver.run(100)
  found = certificate(solver)
  (gap,) = (check for check in found.checks if check.name.startswith("gap <= sum"))
  # The gap of the averages is what the regrets and the updates say exactly: none is wasted.
  assert gap.ratio == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
  ("settings", "note"),
  [
    ({"steps": "farina2019", "kappa": 0.1, "alternating_updates": True}, "alternate"),
    ({"alternating_updates": True, "prediction": "last"}, "alternate"),
    ({"steps": "farina2019", "kappa": 0.1, "averaging": "linear"}, "uniform"),
    ({"game": "kuhn_poker(players=3)"}, "two players"),
    ({"steps": "farina2019", "horizon": 5}, "nothing is proven"),
  ],
)
def test_what_the_theory_does_not_cover_is_said(settings, note):
  solver = spiel_cfr.StablePredictiveCFRSolver(**{"game": "kuhn_poker", **settings})
  solver.run(10)
  found = certificate(solver)
  assert found.holds, str(found)
  assert any(note in text for text in found.notes)


def test_bounds_before_the_run():
  """(iii) overtakes (ii) where the docs say, and the guarantee then falls as T^(-3/4)."""
  game = spiel_cfr.compile_game("kuhn_poker")
  steps = adaptive_steps.adaptive_steps(game, "entropy", "subtree", 4.0, 1.0)
  for alternating in (False, True):
    guarantees = [steps.guarantee(game, count, alternating) for count in (10**5, 16 * 10**5)]
    assert guarantees[1] == pytest.approx(guarantees[0] / 8, rel=0.1)
  large = adaptive_steps.adaptive_steps(game, "entropy", "subtree", 0.01, 0.0)
  first = [
    count
    for count in (10**4, 10**5, 10**6)
    if (large.settled_errors(game, count) < large.largest_errors(count)).any()
  ]
  assert first == []
  assert np.isfinite(large.guarantee(game, 10**5, alternating=True))
