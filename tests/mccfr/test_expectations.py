"""Unbiased estimates: expectations over all draws equal the full-width solver's numbers."""

import collections
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyspiel
import pytest
import samplers
from rotation import rotated

import spiel_cfr
from spiel_cfr import policies
from spiel_cfr._numba.steps import Chain
from spiel_cfr.mccfr import traversal
from spiel_cfr.mccfr.sampling_solver import SamplingSolver
from spiel_cfr.regret_minimizers import Hedge


class _Outcomes:
  """Enumerates all outcomes of a random procedure, in place of its random numbers."""

  def __init__(self) -> None:
    self._drawn: list[tuple[int, list[float]]] = []
    self._position = 0
    self.probability = 1.0

  def draw(self, probabilities: Any, begin: int, count: int, _: Any) -> Any:
    return np.uint64(self._chosen(probabilities[begin : begin + count].tolist()))

  def __lt__(self, probability: float) -> bool:
    """Draws a yes or no."""
    return self._chosen([probability, 1 - probability]) == 0

  def __ge__(self, probability: float) -> bool:
    return not self < probability

  def _chosen(self, probabilities: list[float]) -> int:
    if self._position == len(self._drawn):
      self._drawn.append((next(k for k, p in enumerate(probabilities) if p > 0), probabilities))
    chosen, _ = self._drawn[self._position]
    self._position += 1
    self.probability *= probabilities[chosen]
    return chosen

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
  saved = [array.copy() for array in engine.table.entries]
  engine._numbers[:] = 1.0, 0.0, 0.0
  regrets: dict[int, float] = collections.defaultdict(float)
  averages: dict[int, float] = collections.defaultdict(float)
  total = 0.0
  with pytest.MonkeyPatch.context() as patch:
    # The traversal as Python runs it, without an update at its end.
    patch.setattr(Chain, "run", _run)
    engine._chains.clear()
    for name in (
      "sample_child",
      "add_to_average",
      "rule_of",
      "open_decision",
      "next_child",
      "receive_value",
      "close_decision",
    ):
      patch.setattr(traversal, name, getattr(traversal, name).py_func)
    patch.setattr(traversal, "compiled_explore", traversal.compiled_explore.py_func)
    patch.setattr(traversal, "next_uniform", lambda counters: outcomes)
    patch.setattr(traversal, "draw", outcomes.draw)
    for _ in outcomes:
      engine._traverse(player, lambda record: [])
      total += outcomes.probability
      entries = engine.table.entries
      for entry in np.flatnonzero(entries.increment).tolist():
        regrets[entry] += outcomes.probability * entries.increment[entry]
      added = entries.cumulative - saved[entries._fields.index("cumulative")]
      for entry in np.flatnonzero(added).tolist():
        averages[entry] += outcomes.probability * added[entry]
      for array, values in zip(entries, saved, strict=True):
        array[...] = values
  return total, regrets, averages


def _run(chain: Chain) -> None:
  """Runs the traversal of a chain in Python."""
  (step,) = chain.steps
  record = step.record.record
  # As records have them in compiled code.
  record = record._replace(player=np.uint64(record.player), averaged=np.uint64(record.averaged))
  traversal.traverse.function(record)


def _know_all_infosets(solver: SamplingSolver) -> spiel_cfr.CompiledGame:
  """Runs a solver on states until it has met every infoset, so that the table no longer grows."""
  compiled = spiel_cfr.compile_game(solver.game)
  for _ in range(2000):
    solver.iteration()
    if solver.num_infosets == compiled.num_infosets and solver.iteration >= 20:
      return compiled
  raise AssertionError("The samples never met some infosets.")


@rotated("load,make", samplers.SMALL_GAMES, samplers.SAMPLERS)
def test_expected_regrets_are_those_of_the_full_width_solver(
  load: Callable[[], pyspiel.Game], make: samplers.Make
) -> None:
  solver = make(load(), engine="states", seed=3)
  compiled = _know_all_infosets(solver)
  exact = spiel_cfr.TabularCFRSolver(compiled, alternating_updates=False)
  exact._runtime.loop.arrays.set_strategy(policies.from_policy(compiled, solver.current_policy()))
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
      np.testing.assert_allclose(
        regrets, exact.state.action_state[0, sequences], rtol=0, atol=1e-10
      )
      offset += count


@pytest.mark.parametrize("rate", [1.0, 3.0])
def test_hedge_without_chance_and_with_all_actions_is_the_full_width_solver(rate: float) -> None:
  game = spiel_cfr.compile_game(
    "goofspiel(imp_info=True,num_cards=4,points_order=descending)", vector_form=False
  )
  sampled = spiel_cfr.mccfr.ChanceSamplingSolver(game, minimizer=Hedge(rate), seed=1)
  exact = spiel_cfr.cfr.HedgeCFRSolver(game, rate)
  here = game.all_action_sequences
  for _ in range(50):
    sampled.run(1)
    exact.run(1)
    for name in ("current_probabilities", "average_probabilities"):
      found, wanted = getattr(sampled, name)()[here], getattr(exact, name)()[here]
      np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
  assert np.ptp(sampled.current_probabilities()[here]) > 0.5


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


@rotated("load,name", samplers.SMALL_GAMES, list(AVERAGES))
def test_expected_averages_weigh_own_reach(load: Callable[[], pyspiel.Game], name: str) -> None:
  solver = samplers.VARIANTS[name](load(), engine="states", seed=4)
  _know_all_infosets(solver)
  for player in range(solver.game.num_players()):
    averaged = player if AVERAGES[name][0] else (player + 1) % solver.game.num_players()
    _, _, averages = _expectations(solver, player)
    exact = _average_weights(solver, name, player, averaged)
    entries = solver._engine.table.entries
    for infostate, infoset in solver._engine.infostates[averaged].items():
      for index, action in enumerate(solver._engine.actions[infoset]):
        found = averages[entries.first[infoset] + index]
        assert found == pytest.approx(exact[infostate, action], abs=1e-10)


@pytest.mark.quick("average strategy", "outcome")
@pytest.mark.parametrize("name", ["external", "outcome", "chance", "average strategy"])
def test_mean_regrets_on_leduc_are_exact_within_five_standard_errors(name: str) -> None:
  samples = 10_000
  solver = samplers.SAMPLERS[name]("leduc_poker", seed=6)
  compiled = solver.compiled_game
  exact = spiel_cfr.TabularCFRSolver(compiled, alternating_updates=False)
  sums = np.random.default_rng(1).uniform(0.5, 1.5, compiled.end)
  exact._runtime.loop.arrays.set_strategy(policies.behavioral_form(compiled, sums))
  strategy = exact.state.strategy[compiled.all_action_sequences]
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
  wanted = exact.state.action_state[0, compiled.all_action_sequences[: len(own)]]
  mean = totals / samples
  errors_of_mean = np.sqrt((squares / samples - mean**2) / samples)
  # The normal approximation needs some samples; one in two million is beyond five errors, but for rounding.
  often = hits >= 100
  assert often.sum() > 40
  assert (np.abs(mean - wanted) <= 5 * errors_of_mean + 1e-14)[often].all()


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
