"""Averages and discounts are those of the full-width solvers."""

from typing import Any

import numpy as np
import pytest
import samplers

import spiel_cfr
from spiel_cfr import RegretMatching, policies
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Discount

WITHOUT_CHANCE = "goofspiel(num_cards=4,imp_info=True,points_order=descending)"


@pytest.mark.parametrize(
  ("minimizer", "power", "full_width"),
  [
    (None, 0.0, spiel_cfr.CFRSolver),
    (RegretMatching.plus(), 1.0, spiel_cfr.CFRPlusSolver),
    (RegretMatching.discounted(1.5, 0.0), 2.0, spiel_cfr.DCFRSolver),
    (RegretMatching.discounted(1.0, 1.0), 1.0, spiel_cfr.LCFRSolver),
  ],
)
def test_without_chance_chance_sampling_is_the_full_width_solver(
  minimizer: RegretMinimizer | None, power: float, full_width: Any
) -> None:
  sampled = spiel_cfr.mccfr.ChanceSamplingSolver(
    WITHOUT_CHANCE, minimizer=minimizer, average_weights=power
  )
  exact = full_width(WITHOUT_CHANCE)
  for _ in range(10):
    sampled.run(5)
    exact.run(5)
    # The other entries are padding.
    sequences = exact.compiled_game.all_action_sequences
    for found, wanted in (
      (sampled.current_probabilities(), exact.current_probabilities()),
      (sampled.average_probabilities(), exact.average_probabilities()),
    ):
      np.testing.assert_allclose(found[sequences], wanted[sequences], atol=1e-10)


def test_discounted_regret_matching_plus_is_that_of_the_full_width_solver() -> None:
  minimizer = RegretMatching(Discount(1.5, delay=1), forgets_negative=True)
  sampled = spiel_cfr.mccfr.ChanceSamplingSolver(
    WITHOUT_CHANCE, minimizer=minimizer, average_weights=1.0
  )
  averaging = spiel_cfr.Averaging(1.0)
  exact = spiel_cfr.FullWidthSolver(WITHOUT_CHANCE, minimizer, averaging=averaging)
  sampled.run(50)
  exact.run(50)
  np.testing.assert_allclose(
    sampled.average_probabilities(), exact.average_probabilities(), atol=1e-10
  )


@pytest.mark.parametrize("powers", [(1.5, 0.0), (1.0, 1.0), (2.0, -np.inf), (np.inf, -0.5)])
def test_discounts_reach_infosets_that_samples_do_not(powers: tuple[float, float]) -> None:
  lazy = spiel_cfr.ExternalSamplingSolver(
    "leduc_poker", minimizer=RegretMatching.discounted(*powers), seed=2
  )
  dense = spiel_cfr.ExternalSamplingSolver("leduc_poker", minimizer=RegretMatching(), seed=2)
  regret = dense._engine.table.entries.regret
  for iteration in range(1, 101):
    lazy.iteration()
    dense.iteration()
    of_positive, of_negative = (Discount(power)(np.array([iteration]))[0] for power in powers)
    regret *= np.where(regret > 0, of_positive, of_negative)
  np.testing.assert_allclose(lazy.current_probabilities(), dense.current_probabilities(), atol=1e-9)


def test_a_full_average_is_the_average_of_the_strategies() -> None:
  for engine in ("compiled", "states"):
    solver = spiel_cfr.ExternalSamplingSolver(
      "leduc_poker", samplers.FULL, engine=engine, average_weights=1.0
    )
    compiled = spiel_cfr.compile_game("leduc_poker")
    sums = np.zeros(compiled.end)
    for iteration in range(1, 41):
      solver.iteration()
      current = policies.from_policy(compiled, solver.current_policy())
      sums += iteration * policies.sequence_form(compiled, current)
    np.testing.assert_allclose(
      policies.from_policy(compiled, solver.average_policy()),
      policies.behavioral_form(compiled, sums),
      atol=1e-12,
    )


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
def test_importance_weights_are_constant_with_two_players_and_uniform_chance(game: str) -> None:
  simple, weighted = (
    spiel_cfr.ExternalSamplingSolver(game, average_type, seed=9, average_weights=1.0)
    for average_type in (spiel_cfr.mccfr.AverageType.SIMPLE, samplers.IMPORTANCE)
  )
  simple.run(1000)
  weighted.run(1000)
  np.testing.assert_allclose(
    simple.average_probabilities(), weighted.average_probabilities(), atol=1e-12
  )


def test_average_power_one_multiplies_the_average_by_t_over_t_plus_one() -> None:
  powered = spiel_cfr.ExternalSamplingSolver("leduc_poker", seed=3, average_weights=1.0)
  stepped = spiel_cfr.ExternalSamplingSolver("leduc_poker", seed=3)
  for iteration in range(1, 201):
    powered.iteration()
    stepped.iteration()
    stepped._engine.table.entries.cumulative[...] *= iteration / (iteration + 1)
  np.testing.assert_allclose(
    powered.average_probabilities(), stepped.average_probabilities(), atol=1e-12
  )
