"""Monte Carlo solvers for tests, and small games."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyspiel
import pytest
import random_games

import spiel_cfr
from spiel_cfr import RegretMatching
from spiel_cfr.mccfr.sampling_solver import SamplingSolver
from spiel_cfr.regret_minimizers import Hedge

FULL, IMPORTANCE = spiel_cfr.mccfr.AverageType.FULL, spiel_cfr.mccfr.AverageType.IMPORTANCE


Make = Callable[..., SamplingSolver]


def make(cls: Any, **fixed: Any) -> Make:
  return lambda game, **options: cls(game, **fixed, **options)


SAMPLERS: dict[str, Make] = {
  "external": make(spiel_cfr.ExternalSamplingSolver),
  "external with baseline": make(spiel_cfr.ExternalSamplingSolver, baseline_rate=0.5),
  "outcome": make(spiel_cfr.OutcomeSamplingSolver),
  "outcome with baseline": make(spiel_cfr.OutcomeSamplingSolver, epsilon=0.3, baseline_rate=0.1),
  "chance": make(spiel_cfr.mccfr.ChanceSamplingSolver),
  "average strategy": make(
    spiel_cfr.mccfr.AverageStrategySamplingSolver, epsilon=0.2, beta=2.0, tau=2.0
  ),
}


VARIANTS = SAMPLERS | {
  "full average": make(spiel_cfr.ExternalSamplingSolver, average_type=FULL),
  "importance": make(
    spiel_cfr.ExternalSamplingSolver, average_type=IMPORTANCE, average_weights=1.0
  ),
  "regret matching+": make(spiel_cfr.ExternalSamplingSolver, minimizer=RegretMatching.plus()),
  "discounted": make(
    spiel_cfr.OutcomeSamplingSolver, minimizer=RegretMatching.discounted(), average_weights=2.0
  ),
  "hedge": make(spiel_cfr.ExternalSamplingSolver, minimizer=Hedge(10.0)),
  "hedge by outcomes": make(spiel_cfr.OutcomeSamplingSolver, minimizer=Hedge(10.0)),
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


def tables(solver: SamplingSolver) -> dict[str, list[list[float]]]:
  """Returns the state of a solver at the infosets that it has met."""
  entries, result = solver._engine.table.entries, {}
  for name, here in _entries(solver):
    result[name] = [
      array[..., here].tolist()
      for array in (entries.regret, entries.strategy, entries.cumulative, entries.baseline)
    ]
  return result


def _entries(solver: SamplingSolver) -> Iterator[tuple[str, slice]]:
  """Yields player and infostate of each infoset, and the entries of its actions."""
  engine: Any = solver._engine
  if solver.engine == "states":
    first, counts = engine.table.entries.first, engine.table.entries.num_actions
    for player, infostates in enumerate(engine.infostates):
      for infostate, infoset in infostates.items():
        yield f"{player} {infostate}", slice(first[infoset], first[infoset] + counts[infoset])
    return
  game = solver.compiled_game
  begin = 0
  for player, (infostates, counts) in enumerate(
    zip(game.infostates, game.num_actions, strict=True)
  ):
    for infostate, count in zip(infostates, counts.tolist(), strict=True):
      first = game.num_players + game.shared_entries[begin : begin + count].min()
      begin += count
      yield f"{player} {infostate}", slice(first, first + count)


def assert_engines_agree(make: Make, game: Any, iterations: int, tolerance: float = 0.0) -> None:
  compiled = make(game, seed=11)
  states = make(game, seed=11, engine="states")
  assert compiled.engine == "compiled"
  assert states.engine == "states"
  compiled.run(iterations)
  states.run(iterations)
  assert compiled.nodes_touched == states.nodes_touched
  assert compiled.state.counters.tolist() == states.state.counters.tolist()
  everything = tables(compiled)
  for name, mine in tables(states).items():
    for found, wanted in zip(mine, everything[name], strict=True):
      np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
  assert states.average_policy_dict().items() <= compiled.average_policy_dict().items() or tolerance
