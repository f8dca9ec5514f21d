"""Both engines compute the same numbers, can be interrupted, and refuse games that are too large."""

import inspect
import itertools
import signal
import subprocess
import sys
import warnings
from typing import Any

import hypothesis
import numpy as np
import pyspiel
import pytest
import random_games
import samplers
from hypothesis import strategies as st
from rotation import rotated

import spiel_cfr
from spiel_cfr import errors


@rotated(
  "game,make",
  ["kuhn_poker(players=3)", "leduc_poker", "goofspiel(num_cards=3)", "liars_dice(dice_sides=3)"],
  samplers.VARIANTS,
)
def test_engines_compute_the_same_numbers(game: str, make: samplers.Make) -> None:
  # Averages that are done infoset by infoset start at another time, so they round differently.
  samplers.assert_engines_agree(
    make, game, 30, 1e-13 if make is samplers.VARIANTS["full average"] else 0.0
  )


@hypothesis.given(
  game=random_games.games(max_histories=60), variant=st.sampled_from(sorted(samplers.VARIANTS))
)
@hypothesis.settings(max_examples=60)
def test_engines_compute_the_same_numbers_on_random_games(game: pyspiel.Game, variant: str) -> None:
  samplers.assert_engines_agree(
    samplers.VARIANTS[variant], game, 25, 1e-13 if variant == "full average" else 0.0
  )


@pytest.mark.quick("average strategy", "chance", "external with baseline", "hedge", "outcome")
@samplers.every_variant
def test_single_iterations_and_runs_are_the_same(make: samplers.Make) -> None:
  stepped, run = make("leduc_poker", seed=1), make("leduc_poker", seed=1)
  for _ in range(300):
    stepped.iteration()
  run.run(300)
  assert samplers.tables(stepped) == samplers.tables(run)
  assert run.iteration == stepped.iteration == 300
  other = make("leduc_poker", seed=2)
  other.run(300)
  assert samplers.tables(other) != samplers.tables(run)


def test_a_seed_means_the_same_in_another_process() -> None:
  program = (
    "import spiel_cfr; s = spiel_cfr.ExternalSamplingSolver('leduc_poker', seed=7); s.run(500);"
    "print(repr(s.nash_conv()), s.nodes_touched)"
  )
  process = subprocess.run(
    [sys.executable, "-c", program], capture_output=True, check=True, text=True
  )
  solver = spiel_cfr.ExternalSamplingSolver("leduc_poker", seed=np.random.default_rng(7))
  solver.run(500)
  assert process.stdout == f"{solver.nash_conv()!r} {solver.nodes_touched}\n"


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
  with pytest.warns(spiel_cfr.mccfr.ImperfectRecallWarning, match="imperfect recall"):
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


@pytest.mark.parametrize("interrupted_history", [3, 40])
@pytest.mark.parametrize("name", ["outcome", "discounted", "chance"])
def test_an_interrupted_traversal_leaves_nothing_behind(
  name: str, interrupted_history: int
) -> None:
  solver = samplers.VARIANTS[name]("leduc_poker", engine="states", seed=1)
  undisturbed = samplers.VARIANTS[name]("leduc_poker", engine="states", seed=1)
  solver.run(10)
  undisturbed.run(20)
  engine: Any = solver._engine
  histories = itertools.count()

  def interrupt(*where: int) -> None:
    if next(histories) == interrupted_history:
      raise KeyboardInterrupt
    type(engine)._list_history(engine, *where)

  engine._list_history = interrupt
  with pytest.raises(KeyboardInterrupt):
    solver.run(10)
  del engine._list_history
  solver.run(20 - solver.iteration)
  assert solver.nodes_touched == undisturbed.nodes_touched
  assert samplers.tables(solver) == samplers.tables(undisturbed)


def test_compiled_runs_can_be_interrupted() -> None:
  solver = spiel_cfr.ExternalSamplingSolver("leduc_poker", seed=0)
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
  reference = spiel_cfr.ExternalSamplingSolver("leduc_poker", seed=0)
  reference.run(solver.iteration)
  assert samplers.tables(solver) == samplers.tables(reference)


def test_histories_may_be_longer_than_the_recursion_limit_of_python() -> None:
  solver = spiel_cfr.OutcomeSamplingSolver("hearts", engine="states", seed=1)
  limit = sys.getrecursionlimit()
  try:
    sys.setrecursionlimit(len(inspect.stack()) + 30)
    solver.run(1)
  finally:
    sys.setrecursionlimit(limit)
  assert solver.nodes_touched > 2 * 52


@pytest.mark.parametrize("engine", [None, "compiled", "states"])
def test_sampled_chance_is_refused(engine: Any) -> None:
  with pytest.raises(errors.SampledChanceError):
    spiel_cfr.ExternalSamplingSolver("negotiation", engine=engine)
