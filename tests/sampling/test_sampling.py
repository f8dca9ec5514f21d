"""Monte Carlo CFR: estimates are unbiased, averages are right, and both engines compute the same numbers."""

import collections
import inspect
import itertools
import json
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import numpy as np
import pyspiel
import pytest
import random_games
from hypothesis import strategies as st
from open_spiel.python.algorithms import external_sampling_mccfr
from spiel_cfr.minimizers.discounted import (
  discount,
)

import spiel_cfr
from spiel_cfr import RegretMatching, errors, policy
from spiel_cfr.minimizers.base import LocalMinimizer
from spiel_cfr.sampling.loop import explore, fill_uniform, pick
from spiel_cfr.sampling.rules import Rule
from spiel_cfr.sampling.solvers import SamplingSolver

FULL, IMPORTANCE = spiel_cfr.AverageType.FULL, spiel_cfr.AverageType.IMPORTANCE
Make = Callable[..., SamplingSolver]


def _make(cls: Any, **fixed: Any) -> Make:
  return lambda game, **options: cls(game, **fixed, **options)


SAMPLERS: dict[str, Make] = {
  "external": _make(spiel_cfr.ExternalSamplingSolver),
  "external with baseline": _make(spiel_cfr.ExternalSamplingSolver, baseline_rate=0.5),
  "outcome": _make(spiel_cfr.OutcomeSamplingSolver),
  "outcome with baseline": _make(spiel_cfr.OutcomeSamplingSolver, epsilon=0.3, baseline_rate=0.1),
  "chance": _make(spiel_cfr.ChanceSamplingSolver),
  "average strategy": _make(
    spiel_cfr.AverageStrategySamplingSolver, epsilon=0.2, beta=2.0, tau=2.0
  ),
}
VARIANTS = SAMPLERS | {
  "full average": _make(spiel_cfr.ExternalSamplingSolver, average_type=FULL),
  "importance": _make(spiel_cfr.ExternalSamplingSolver, average_type=IMPORTANCE, average_power=1.0),
  "regret matching+": _make(spiel_cfr.ExternalSamplingSolver, minimizer=RegretMatching.plus()),
  "discounted": _make(
    spiel_cfr.OutcomeSamplingSolver, minimizer=RegretMatching.discounted(), average_power=2.0
  ),
}
every_sampler = pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
every_variant = pytest.mark.parametrize("make", VARIANTS.values(), ids=VARIANTS)

# With the seeds of small random games of two players, and of three with payoffs of any sum.
SMALL_GAMES = {
  "kuhn_poker": lambda: pyspiel.load_game("kuhn_poker"),
  "kuhn_poker(players=3)": lambda: pyspiel.load_game("kuhn_poker(players=3)"),
} | {
  f"random game {seed} of {players}": lambda seed=seed, players=players: random_games.random_game(
    seed, players, players == 2, max_depth=5, max_histories=18, max_actions=3
  )
  for players in (2, 3)
  for seed in range(8)
}
every_small_game = pytest.mark.parametrize("load", SMALL_GAMES.values(), ids=SMALL_GAMES)


class _Outcomes:
  """Goes through all outcomes of the draws of something random, in place of its random numbers."""

  def __init__(self) -> None:
    self._drawn: list[tuple[int, list[float]]] = []
    self._position = 0
    self.probability = 1.0

  def pick(self, probabilities: Any) -> int:
    if self._position == len(self._drawn):
      self._drawn.append((next(k for k, p in enumerate(probabilities) if p > 0), probabilities))
    chosen, _ = self._drawn[self._position]
    self._position += 1
    self.probability *= probabilities[chosen]
    return chosen

  def happens(self, probability: float) -> bool:
    return probability >= 1 or self.pick([probability, 1 - probability]) == 0

  def __iter__(self) -> Iterator[None]:
    while True:
      self._position, self.probability = 0, 1.0
      yield
      while self._drawn:
        chosen, probabilities = self._drawn.pop()
        later = [k for k, p in enumerate(probabilities) if k > chosen and p > 0]
        if later:
          self._drawn.append((later[0], probabilities))
          break
      else:
        return


def _expectations(
  solver: SamplingSolver, player: int
) -> tuple[float, dict[int, float], dict[int, float]]:
  """Enumerates what one traversal of the state engine can do.

  Returns:
    The sum of the probabilities, and the expectations of regrets and of additions to averages, by
    entry of the table.
  """
  engine: Any = solver._engine
  outcomes = _Outcomes()
  engine._pick, engine._happens = outcomes.pick, outcomes.happens
  saved = [array.copy() for array in engine.table.entries]
  schedule = solver._schedule(1)
  regrets: dict[int, float] = collections.defaultdict(float)
  averages: dict[int, float] = collections.defaultdict(float)
  total = 0.0
  for _ in outcomes:
    engine._traverse(player, 1.0, schedule, 0)
    total += outcomes.probability
    estimates = iter(engine._estimates)
    entries = engine.table.entries
    for infoset in engine._valued:
      for action in range(entries.num_actions[infoset]):
        regrets[entries.first[infoset] + action] += outcomes.probability * next(estimates)
    for array, values in zip(entries, saved, strict=True):
      array[...] = values
    for infoset, weight in zip(engine._averaged, engine._average_weights, strict=True):
      for entry in range(
        entries.first[infoset], entries.first[infoset] + entries.num_actions[infoset]
      ):
        averages[entry] += outcomes.probability * weight * entries.strategy[entry]
  del engine._pick, engine._happens
  return total, regrets, averages


def _know_all_infosets(solver: SamplingSolver) -> spiel_cfr.CompiledGame:
  """Runs a solver on states until it has met every infoset, and can't make the table grow any more."""
  compiled = spiel_cfr.compile_game(solver.game)
  for _ in range(2000):
    solver.iteration()
    if solver.num_infosets == compiled.num_infosets and solver.iteration >= 20:
      return compiled
  raise AssertionError("The samples never met some infosets.")


@every_sampler
@every_small_game
def test_expected_regrets_are_those_of_the_full_width_solver(
  load: Callable[[], pyspiel.Game], make: Make
) -> None:
  solver = make(load(), engine="states", seed=3)
  compiled = _know_all_infosets(solver)
  exact = spiel_cfr.TabularCFRSolver(compiled, alternating_updates=False)
  exact._strategy[:] = policy.from_policy(compiled, solver.current_policy())
  exact._sequence[:] = policy.sequence_form(compiled, exact._strategy)
  exact.evaluate_and_update_policy()
  entries = solver._engine.table.entries
  offset = 0
  for player in range(compiled.num_players):
    total, expected, _ = _expectations(solver, player)
    assert total == pytest.approx(1, abs=1e-12)
    for infostate, count in zip(
      compiled.infostates[player], compiled.num_actions[player].tolist(), strict=True
    ):
      first = entries.first[solver._engine.infostates[player][infostate]]
      regrets = [expected[first + action] for action in range(count)]
      sequences = compiled.all_action_sequences[offset : offset + count]
      np.testing.assert_allclose(regrets, exact._state[0, sequences], rtol=0, atol=1e-10)
      offset += count


# Whether a traversal averages the strategies of its own player, and whether a history weighs more where chance, and
# where players other than these two, are more likely to bring it about.
AVERAGES = {
  "external": (False, True, True),
  "importance": (False, False, False),
  "outcome": (True, False, False),
  "chance": (True, True, False),
  "average strategy": (False, True, True),
}


def _average_weights(
  solver: SamplingSolver, name: str, player: int, averaged: int
) -> dict[tuple[str, int], float]:
  """Sums what an average should add up to over the histories that can be sampled."""
  _, by_chance, by_third_players = AVERAGES[name]
  current = solver.current_policy()
  result: dict[tuple[str, int], float] = collections.defaultdict(float)

  def walk(state: pyspiel.State, weight: float) -> None:
    if state.is_terminal():
      return
    if state.is_chance_node():
      for action, probability in state.chance_outcomes():
        walk(state.child(action), weight * probability if by_chance else weight)
      return
    mover = state.current_player()
    for action, probability in current(state).items():
      if mover == averaged:
        result[state.information_state_string(), action] += weight * probability
      if probability > 0 or mover == player or name == "chance":
        counts = mover == averaged or (by_third_players and mover != player)
        walk(state.child(action), weight * probability if counts else weight)

  walk(solver.game.new_initial_state(), 1.0)
  return result


@pytest.mark.parametrize("name", AVERAGES)
@every_small_game
def test_expected_averages_weigh_own_reach(load: Callable[[], pyspiel.Game], name: str) -> None:
  solver = VARIANTS[name](load(), engine="states", seed=4)
  _know_all_infosets(solver)
  for player in range(solver.game.num_players()):
    averaged = player if AVERAGES[name][0] else (player + 1) % solver.game.num_players()
    _, _, averages = _expectations(solver, player)
    exact = _average_weights(solver, name, player, averaged)
    entries = solver._engine.table.entries
    for infostate, infoset in solver._engine.infostates[averaged].items():
      for index, action in enumerate(solver._engine.legal_actions(infoset)):
        found = averages[entries.first[infoset] + index]
        assert found == pytest.approx(exact[infostate, action], abs=1e-10)


def _tables(solver: SamplingSolver) -> dict[str, list[list[float]]]:
  """Returns everything a solver keeps of the infosets that it has changed or met."""
  entries = solver._engine.table.entries
  result = {}
  for player, infostates in enumerate(solver._engine.infostates):
    for infostate, infoset in infostates.items():
      first = entries.first[infoset]
      here = slice(first, first + entries.num_actions[infoset])
      result[f"{player} {infostate}"] = [
        array[..., here].tolist()
        for array in (entries.regret, entries.strategy, entries.average, entries.baseline)
      ]
  return result


def _assert_engines_agree(make: Make, game: Any, iterations: int, tolerance: float = 0.0) -> None:
  compiled = make(game, seed=11)
  states = make(game, seed=11, engine="states")
  assert compiled.engine == "compiled"
  assert states.engine == "states"
  compiled.run(iterations)
  states.run(iterations)
  assert compiled.nodes_touched == states.nodes_touched
  assert compiled._counters.tolist() == states._counters.tolist()
  everything = _tables(compiled)
  for name, mine in _tables(states).items():
    for found, wanted in zip(mine, everything[name], strict=True):
      np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
  assert states.average_policy_dict().items() <= compiled.average_policy_dict().items() or tolerance


@every_variant
@pytest.mark.parametrize(
  "game",
  ["kuhn_poker(players=3)", "leduc_poker", "goofspiel(num_cards=3)", "liars_dice(dice_sides=3)"],
)
def test_engines_compute_the_same_numbers(game: str, make: Make) -> None:
  # Averages that are done infoset by infoset start at another time, so they round differently.
  _assert_engines_agree(make, game, 30, 1e-13 if make is VARIANTS["full average"] else 0.0)


@hypothesis.given(
  game=random_games.games(max_histories=60), variant=st.sampled_from(sorted(VARIANTS))
)
@hypothesis.settings(max_examples=60)
def test_engines_compute_the_same_numbers_on_random_games(game: pyspiel.Game, variant: str) -> None:
  _assert_engines_agree(VARIANTS[variant], game, 25, 1e-13 if variant == "full average" else 0.0)


@every_variant
def test_single_iterations_and_runs_are_the_same(make: Make) -> None:
  stepped, run = make("leduc_poker", seed=1), make("leduc_poker", seed=1)
  for _ in range(300):
    stepped.iteration()
  run.run(300)
  assert _tables(stepped) == _tables(run)
  assert run.iteration == stepped.iteration == 300
  other = make("leduc_poker", seed=2)
  other.run(300)
  assert _tables(other) != _tables(run)


def test_a_seed_means_the_same_in_another_process() -> None:
  program = (
    "import spiel_cfr; s = spiel_cfr.ExternalSamplingSolver('leduc_poker', seed=7); s.run(500);"
    "print(repr(s.nash_conv()), s.nodes_touched)"
  )
  outputs = {
    subprocess.run(
      [sys.executable, "-c", program], capture_output=True, check=True, text=True
    ).stdout
    for _ in range(2)
  }
  solver = spiel_cfr.ExternalSamplingSolver("leduc_poker", seed=np.random.default_rng(7))
  solver.run(500)
  assert outputs == {f"{solver.nash_conv()!r} {solver.nodes_touched}\n"}


def test_picks_nothing_impossible() -> None:
  almost_one = 1 - 2.0**-53
  assert pick([0.0, 0.5, 0.5], 0, 3, 0.0) == 1
  assert pick([0.5, 0.0, 0.5], 0, 3, 0.5) == 2
  # Rounded probabilities that sum to less than the random number.
  assert pick([0.3, 0.6, 0.0], 0, 3, almost_one) == 1
  assert pick([9.0, 0.25, 0.75], 1, 2, 0.2) == 0
  assert pick([9.0, 0.25, 0.75], 1, 2, 0.3) == 1


def test_rules_say_with_what_probability_actions_are_explored() -> None:
  strategy, average = [9.0, 0.1, 0.7, 0.2], np.array([9.0, 2.0, 0.0, 30.0])
  explored = [0.0] * 3
  assert not explore(Rule.BY_STRATEGY, strategy, average, 1, 3, (), explored)
  assert explored == [0.1, 0.7, 0.2]
  assert not explore(Rule.BY_EXPLORING_STRATEGY, strategy, average, 1, 3, (0.3,), explored)
  assert explored == pytest.approx([0.17, 0.59, 0.24])
  assert explore(Rule.BY_AVERAGE, strategy, average, 1, 3, (0.15, 3.0, 2.0), explored)
  # (3 + 2 s) / (3 + 32), at least 0.15 and at most 1.
  assert explored == pytest.approx([7 / 35, 0.15, 1.0])
  assert explore(Rule.BY_AVERAGE, strategy, 0 * average, 1, 3, (0.15, 0.0, 2.0), explored)
  assert explored == [1.0] * 3


def test_random_numbers_are_uniform() -> None:
  numbers = np.empty(200_000)
  fill_uniform(np.array([12345, 0, 0, 0], np.uint64), numbers)
  assert 0 <= numbers.min() < numbers.max() < 1
  counts = np.histogram(numbers, 100, (0, 1))[0]
  # Chi squared with 99 degrees of freedom: beyond 150 once in a thousand.
  assert ((counts - 2000) ** 2 / 2000).sum() < 150
  # Standard error of a correlation: 1 / sqrt(200,000).
  assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 4 / np.sqrt(len(numbers))


@pytest.mark.parametrize("name", ["external", "outcome", "chance", "average strategy"])
def test_mean_regrets_on_leduc_are_exact_within_five_standard_errors(name: str) -> None:
  samples = 10_000
  solver = SAMPLERS[name]("leduc_poker", seed=6)
  compiled = solver.compiled_game
  exact = spiel_cfr.TabularCFRSolver(compiled, alternating_updates=False)
  sums = np.random.default_rng(1).uniform(0.5, 1.5, compiled.end)
  exact._strategy[:] = policy.behavioral_form(compiled, sums)
  exact._sequence[:] = policy.sequence_form(compiled, exact._strategy)
  strategy = exact._strategy[compiled.all_action_sequences]
  exact.evaluate_and_update_policy()
  entries = solver._engine.table.entries
  own = np.arange(compiled.num_players, compiled.num_players + len(compiled.actions[0]))
  totals, squares, hits = np.zeros((3, len(own)))
  for _ in range(samples):
    entries.regret[:] = 0.0
    entries.strategy[compiled.num_players :] = strategy
    solver.iteration()
    # Player 0 is the first to move; the other player's estimates are of what player 0 has changed to.
    totals += entries.regret[own]
    squares += entries.regret[own] ** 2
    hits += entries.regret[own] != 0
  wanted = exact._state[0, compiled.all_action_sequences[: len(own)]]
  mean = totals / samples
  errors_of_mean = np.sqrt((squares / samples - mean**2) / samples)
  # The normal approximation needs some samples; one in two million is beyond five errors, but for rounding.
  often = hits >= 100
  assert often.sum() > 40
  assert (np.abs(mean - wanted) <= 5 * errors_of_mean + 1e-14)[often].all()


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
  minimizer: LocalMinimizer | None, power: float, full_width: Any
) -> None:
  sampled = spiel_cfr.ChanceSamplingSolver(WITHOUT_CHANCE, minimizer=minimizer, average_power=power)
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
  minimizer = RegretMatching.discounted_plus(1.5)
  sampled = spiel_cfr.ChanceSamplingSolver(WITHOUT_CHANCE, minimizer=minimizer, average_power=1.0)
  exact = spiel_cfr.Solver(WITHOUT_CHANCE, minimizer, average_power=1.0)
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
    of_positive, of_negative = (discount(np.array([iteration]), power)[0] for power in powers)
    regret *= np.where(regret > 0, of_positive, of_negative)
  np.testing.assert_allclose(lazy.current_probabilities(), dense.current_probabilities(), atol=1e-9)


def test_a_full_average_is_the_average_of_the_strategies() -> None:
  for engine in ("compiled", "states"):
    solver = spiel_cfr.ExternalSamplingSolver("leduc_poker", FULL, engine=engine, average_power=1.0)
    compiled = spiel_cfr.compile_game("leduc_poker")
    sums = np.zeros(compiled.end)
    for iteration in range(1, 41):
      solver.iteration()
      current = policy.from_policy(compiled, solver.current_policy())
      sums += iteration * policy.sequence_form(compiled, current)
    np.testing.assert_allclose(
      policy.from_policy(compiled, solver.average_policy()),
      policy.behavioral_form(compiled, sums),
      atol=1e-12,
    )


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
def test_importance_weights_are_constant_with_two_players_and_uniform_chance(game: str) -> None:
  simple, weighted = (
    spiel_cfr.ExternalSamplingSolver(game, average_type, seed=9, average_power=1.0)
    for average_type in (spiel_cfr.AverageType.SIMPLE, IMPORTANCE)
  )
  simple.run(1000)
  weighted.run(1000)
  np.testing.assert_allclose(
    simple.average_probabilities(), weighted.average_probabilities(), atol=1e-12
  )


def test_average_power_one_multiplies_the_average_by_t_over_t_plus_one() -> None:
  powered = spiel_cfr.ExternalSamplingSolver("leduc_poker", seed=3, average_power=1.0)
  stepped = spiel_cfr.ExternalSamplingSolver("leduc_poker", seed=3)
  for iteration in range(1, 201):
    powered.iteration()
    stepped.iteration()
    stepped._engine.table.entries.average[...] *= iteration / (iteration + 1)
  np.testing.assert_allclose(
    powered.average_probabilities(), stepped.average_probabilities(), atol=1e-12
  )


@pytest.mark.parametrize("cls", [spiel_cfr.ExternalSamplingSolver, spiel_cfr.OutcomeSamplingSolver])
def test_baselines_lower_the_variance_at_the_first_decision(cls: Any) -> None:
  spreads = []
  for rate in (0.0, 0.1):
    solver = cls("leduc_poker", baseline_rate=rate, seed=8)
    entries = solver._engine.table.entries
    first_decisions = np.flatnonzero(np.repeat(entries.parent, entries.num_actions) == 0) + 2
    uniform = np.repeat(1.0 / entries.num_actions, entries.num_actions)
    spread = 0.0
    for iteration in range(6000):
      solver.iteration()
      if iteration >= 3000:
        spread += float((entries.regret[first_decisions] ** 2).sum())
      # The strategy stays uniform, so that the mean is the same with and without baselines.
      entries.regret[:] = 0.0
      entries.strategy[2:] = uniform
    spreads.append(spread)
  assert spreads[1] < 0.85 * spreads[0]


CONVERGENCE = {
  "external": 20_000,
  "external with baseline": 20_000,
  "full average": 20_000,
  "importance": 20_000,
  "regret matching+": 20_000,
  "outcome": 300_000,
  "outcome with baseline": 300_000,
  "discounted": 300_000,
  "chance": 5_000,
  "average strategy": 20_000,
}


@pytest.mark.parametrize("name", CONVERGENCE)
@pytest.mark.parametrize(
  "game", ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "random 5", "random 6", "random 7"]
)
def test_average_policies_converge(game: str, name: str) -> None:
  random = game.startswith("random")
  compiled = spiel_cfr.compile_game(
    random_games.random_game(int(game[-1])) if random else pyspiel.load_game(game)
  )
  solver = VARIANTS[name](compiled, seed=0)
  start = solver.nash_conv()
  solver.run(CONVERGENCE[name])
  assert solver.nash_conv() < (0.25 if game == "leduc_poker" else 0.1) * start


@pytest.mark.slow
@pytest.mark.parametrize(
  ("ours", "theirs"),
  [
    (spiel_cfr.ExternalSamplingSolver, pyspiel.ExternalSamplingMCCFRSolver),
    (
      _make(spiel_cfr.ExternalSamplingSolver, average_type=FULL),
      lambda game, seed: pyspiel.ExternalSamplingMCCFRSolver(
        game, seed, pyspiel.MCCFRAverageType.FULL
      ),
    ),
    (
      spiel_cfr.OutcomeSamplingSolver,
      lambda game, seed: pyspiel.OutcomeSamplingMCCFRSolver(game, 0.6, seed),
    ),
  ],
  ids=["external", "full", "outcome"],
)
def test_converges_as_fast_as_open_spiel(ours: Any, theirs: Any) -> None:
  compiled = spiel_cfr.compile_game("leduc_poker")
  found: list[tuple[float, float]] = []
  for seed in range(1, 17):
    solver, other = ours(compiled, seed=seed), theirs(compiled.game, seed)
    solver.run(1000)
    for _ in range(1000):
      other.run_iteration()
    found.append((solver.nash_conv(), spiel_cfr.nash_conv(compiled, other.average_policy())))
  mine, wanted = np.array(found).T
  error = np.sqrt((mine.var() + wanted.var()) / len(found))
  assert error < 0.05 * wanted.mean()
  assert abs(mine.mean() - wanted.mean()) < 4 * error


def test_average_policy_is_a_policy_of_open_spiel() -> None:
  for engine in ("compiled", "states"):
    solver = spiel_cfr.ExternalSamplingSolver(
      pyspiel.load_game("kuhn_poker"), external_sampling_mccfr.AverageType.SIMPLE, engine=engine
    )
    solver.run(2000)
    tabular = solver.average_policy().to_tabular()
    found = pyspiel.exploitability(
      solver.game,
      policy.to_pyspiel(
        spiel_cfr.compile_game("kuhn_poker"),
        policy.from_policy(spiel_cfr.compile_game("kuhn_poker"), tabular),
      ),
    )
    assert found == pytest.approx(
      spiel_cfr.exploitability("kuhn_poker", solver.average_policy()), abs=1e-12
    )
    assert found < 0.05
    state = solver.game.new_initial_state().child(0).child(1)
    assert solver.average_policy()(state) == pytest.approx(
      solver.average_policy_dict()[state.information_state_string()]
    )
    assert sum(solver.current_policy().action_probabilities(state, 0).values()) == pytest.approx(1)


def test_policies_are_copies_and_uniform_where_never_visited() -> None:
  solver = spiel_cfr.OutcomeSamplingSolver("leduc_poker", engine="states")
  solver.run(5)
  assert 0 < solver.num_infosets < 60
  before = solver.average_policy()
  compiled = spiel_cfr.compile_game("leduc_poker")
  array = policy.from_policy(compiled, before)
  uniform = policy.uniform(compiled)[compiled.all_action_sequences]
  unchanged = array[compiled.all_action_sequences] == uniform
  assert unchanged.mean() > 0.9
  solver.run(50)
  np.testing.assert_array_equal(policy.from_policy(compiled, before), array)
  assert (policy.from_policy(compiled, solver.average_policy()) != array).any()


@pytest.mark.parametrize("engine", ["compiled", "states"])
def test_a_policy_needs_a_player_to_move(engine: Any) -> None:
  solver = spiel_cfr.ExternalSamplingSolver("kuhn_poker", engine=engine)
  chance = solver.game.new_initial_state()
  terminal = chance.child(0).child(1).child(0).child(0)
  for state in (chance, terminal):
    with pytest.raises(errors.PolicyError, match="terminal or chance"):
      solver.average_policy()(state)
  decision = chance.child(0).child(1)
  if engine == "compiled":
    # A TabularPolicy answers as OpenSpiel's own does.
    assert solver.average_policy()(decision, 1) == {0: 1.0}
  else:
    with pytest.raises(errors.PolicyError, match="player 0"):
      solver.average_policy()(decision, 1)


def test_games_too_large_to_compile_are_sampled_by_states() -> None:
  solver = spiel_cfr.OutcomeSamplingSolver("phantom_ttt", max_nodes=1000)
  assert solver.engine == "states"
  solver.run(20)
  assert 20 < solver.num_infosets < 400
  with pytest.raises(errors.UnsupportedGameError, match="compile"):
    solver.nash_conv()
  state = solver.game.new_initial_state()
  assert set(solver.average_policy()(state)) == set(state.legal_actions())
  with pytest.raises(errors.GameTooLargeError):
    spiel_cfr.OutcomeSamplingSolver("phantom_ttt", max_nodes=1000, engine="compiled")


@pytest.mark.parametrize("game", ["liars_dice_ir", "phantom_ttt_ir"])
def test_imperfect_recall_is_sampled_with_a_warning(game: str) -> None:
  solver = spiel_cfr.OutcomeSamplingSolver(game, seed=1)
  assert solver.engine == "states"
  with pytest.warns(spiel_cfr.ImperfectRecallWarning, match="imperfect recall"):
    solver.run(200)
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    solver.run(200)
  assert solver.num_infosets > 20


def test_max_infosets_bounds_the_table() -> None:
  solver = spiel_cfr.ExternalSamplingSolver("leduc_poker", engine="states", max_infosets=100)
  with pytest.raises(errors.GameTooLargeError, match="max_infosets=100"):
    solver.run(1000)
  assert solver.num_infosets == 100
  assert solver.average_policy_dict()


@pytest.mark.parametrize("interrupted_draw", [3, 40])
@pytest.mark.parametrize("name", ["outcome", "discounted", "chance"])
def test_an_interrupted_traversal_leaves_nothing_behind(name: str, interrupted_draw: int) -> None:
  solver = VARIANTS[name]("leduc_poker", engine="states", seed=1)
  undisturbed = VARIANTS[name]("leduc_poker", engine="states", seed=1)
  solver.run(10)
  undisturbed.run(20)
  engine: Any = solver._engine
  draws = itertools.count()

  def interrupt(probabilities: Any) -> int:
    if next(draws) == interrupted_draw:
      raise KeyboardInterrupt
    return type(engine)._pick(engine, probabilities)

  engine._pick = interrupt
  with pytest.raises(KeyboardInterrupt):
    solver.run(10)
  del engine._pick
  solver.run(20 - solver.iteration)
  assert solver.nodes_touched == undisturbed.nodes_touched
  assert _tables(solver) == _tables(undisturbed)


def test_compiled_runs_can_be_interrupted() -> None:
  solver = spiel_cfr.ExternalSamplingSolver("leduc_poker")
  solver.run(10)

  def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt

  before = signal.signal(signal.SIGALRM, interrupt)
  try:
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(KeyboardInterrupt):
      solver.run(10**9)
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
  reference = spiel_cfr.ExternalSamplingSolver("leduc_poker")
  reference.run(solver.iteration)
  assert _tables(solver) == _tables(reference)


def test_histories_too_long_for_python_are_refused() -> None:
  solver = spiel_cfr.OutcomeSamplingSolver("hearts", engine="states")
  depth = len(inspect.stack())
  limit = sys.getrecursionlimit()
  try:
    sys.setrecursionlimit(depth + 30)
    with pytest.raises(errors.GameTooLargeError, match="recursion limit"):
      solver.run(1)
  finally:
    sys.setrecursionlimit(limit)
  solver.run(1)


class _NoRegretMatching(LocalMinimizer):
  observe = RegretMatching.observe


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: spiel_cfr.OutcomeSamplingSolver("kuhn_poker", 0.0), "epsilon"),
    (lambda: spiel_cfr.OutcomeSamplingSolver("kuhn_poker", 1.5), "epsilon"),
    (lambda: spiel_cfr.OutcomeSamplingSolver("kuhn_poker", float("nan")), "epsilon"),
    (lambda: spiel_cfr.OutcomeSamplingSolver("kuhn_poker", "0.5"), "epsilon"),  # type: ignore[arg-type]
    (lambda: spiel_cfr.OutcomeSamplingSolver("kuhn_poker", baseline_rate=-1), "baseline_rate"),
    (lambda: spiel_cfr.AverageStrategySamplingSolver("kuhn_poker", 0.0), "epsilon"),
    (lambda: spiel_cfr.AverageStrategySamplingSolver("kuhn_poker", beta=-1.0), "beta"),
    (lambda: spiel_cfr.AverageStrategySamplingSolver("kuhn_poker", tau=np.inf), "tau"),
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", "MEAN"), "average_type"),  # type: ignore[arg-type]
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", average_power=-1.0), "average_power"),
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", engine="fast"), "engine"),  # type: ignore[arg-type]
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", max_infosets=0), "max_infosets"),
    (
      lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", minimizer=_NoRegretMatching()),
      "regret matching",
    ),
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", minimizer="rm+"), "regret matching"),  # type: ignore[arg-type]
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", seed=-1), "seed"),
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker", seed=None), "seed"),  # type: ignore[arg-type]
    (lambda: spiel_cfr.ExternalSamplingSolver("kuhn_poker").run(0), "iterations"),
  ],
)
def test_bad_arguments_are_named(make: Callable[[], Any], message: str) -> None:
  with pytest.raises(errors.ArgumentError, match=message):
    make()


@pytest.mark.parametrize("engine", [None, "compiled", "states"])
def test_sampled_chance_is_refused(engine: Any) -> None:
  with pytest.raises(errors.SampledChanceError):
    spiel_cfr.ExternalSamplingSolver("negotiation", engine=engine)


@pytest.mark.parametrize("engine", ["compiled", "states"])
def test_tracker_notes_what_infosets_do(engine: Any, tmp_path: Any) -> None:
  path = tmp_path / "notes.jsonl"
  options: Any = {"minimizer": RegretMatching.discounted(1.0, 1.0), "seed": 4, "engine": engine}
  solver = spiel_cfr.ExternalSamplingSolver("leduc_poker", **options)
  tracker = spiel_cfr.Tracker(solver, r"Private: 5.*Round 1", every=40, path=path)
  tracker.run(30)
  tracker.run(100)
  untracked = spiel_cfr.ExternalSamplingSolver("leduc_poker", **options)
  untracked.run(130)
  assert _tables(untracked) == _tables(solver)
  assert {note.iteration for note in tracker.snapshots} <= {0, 40, 80, 120}
  last = [note for note in tracker.snapshots if note.iteration == 120]
  assert len(last) > 5
  lines = [json.loads(line) for line in path.read_text().splitlines()]
  assert lines == [note._asdict() for note in tracker.snapshots]
  stopped = spiel_cfr.ExternalSamplingSolver("leduc_poker", **options)
  stopped.run(120)
  average, current = stopped.average_policy_dict(), stopped.current_policy_dict()
  for note in last:
    assert "Private: 5" in note.infostate and "Round 1" in note.infostate
    assert dict(zip(note.actions, note.average, strict=True)) == average[note.infostate]
    assert note.current == pytest.approx(list(current[note.infostate].values()))
    assert note.nodes_touched == stopped.nodes_touched
    positive = np.maximum(note.regret, 0)
    if positive.any():
      assert note.current == pytest.approx(positive / positive.sum(), abs=1e-9)


def test_tracked_regrets_are_discounted_where_samples_have_not_been() -> None:
  minimizer = RegretMatching.discounted(1.0, 1.0)
  solver = spiel_cfr.ExternalSamplingSolver("leduc_poker", minimizer=minimizer)
  tracker = spiel_cfr.Tracker(solver, every=1)
  tracker.run(60)
  assert solver.iteration == 60
  by_name = collections.defaultdict(list)
  for note in tracker.snapshots:
    by_name[note.infostate].append(note)
  idle = 0
  for notes in by_name.values():
    for before, after in itertools.pairwise(notes):
      scaled = np.array(before.regret) * before.iteration / (before.iteration + 1)
      idle += any(before.regret) and bool(np.allclose(after.regret, scaled, rtol=1e-9, atol=0))
  changes = sum(note.regret != [0.0] * len(note.regret) for note in tracker.snapshots)
  assert idle > 0.7 * changes


def test_tracker_takes_a_list_a_pattern_or_all() -> None:
  names = ["0", "1pb"]
  for infosets, wanted in (
    (names, set(names)),
    (re.compile("^0"), {"0", "0pb", "0p", "0b"}),
    ("^0p", {"0pb", "0p"}),
    (None, set(spiel_cfr.compile_game("kuhn_poker").rows)),
  ):
    tracker = spiel_cfr.Tracker(spiel_cfr.OutcomeSamplingSolver("kuhn_poker"), infosets, every=5)
    tracker.run(5)
    assert {note.infostate for note in tracker.snapshots} == wanted
    assert len(tracker.snapshots) == 2 * len(wanted)


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"infosets": ["7pb"]}, "7pb"),
    ({"infosets": "x+"}, "x\\+"),
    ({"infosets": "("}, "regular expression"),
    ({"every": 0}, "every"),
  ],
)
def test_tracker_names_bad_arguments(arguments: Any, message: str) -> None:
  solver = spiel_cfr.ExternalSamplingSolver("kuhn_poker")
  with pytest.raises(errors.ArgumentError, match=message):
    spiel_cfr.Tracker(solver, **arguments)
  with pytest.raises(errors.ArgumentError, match="7pb"):
    solver.snapshot(0, "7pb")


@every_variant
def test_checkpoints_go_on_as_if_nothing_had_stopped(make: Make, tmp_path: Any) -> None:
  path = tmp_path / "solver.npz"
  solver = make("leduc_poker", seed=3)
  solver.run(60)
  solver.save(path)
  loaded = spiel_cfr.IterativeSolver.load(path, "leduc_poker")
  assert isinstance(loaded, type(solver))
  assert loaded.iteration == 60
  later = make("leduc_poker", seed=3)
  later.run(200)
  later.restore(path)
  for other in (solver, loaded, later):
    other.run(60)
    assert _tables(other) == _tables(solver)
    assert other.nodes_touched == solver.nodes_touched


def test_runs_and_traces(tmp_path: Any) -> None:
  solver = spiel_cfr.ExternalSamplingSolver("kuhn_poker")
  path = tmp_path / "trace.jsonl"
  result = spiel_cfr.run(
    solver, target_exploitability=0.01, traces=[spiel_cfr.open_trace(path)], progress=False
  )
  assert result.reason == "target"
  rows = spiel_cfr.read_trace(path).rows
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
