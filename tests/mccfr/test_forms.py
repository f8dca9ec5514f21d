"""Every sampler works on every form of a game, and samples it as it was compiled."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import poker_games
import pytest
import samplers
from open_spiel.python.algorithms import exploitability
from rotation import rotated

import spiel_cfr
from spiel_cfr import errors, policies


def _few(_: Any, actions: list[int]) -> list[int]:
  """A filter that must not be applied twice: it drops the first action while there are more."""
  return actions[1:] or actions


def _passive(_: Any, actions: list[int]) -> list[int]:
  return [action for action in actions if action != 2]


@functools.cache
def _endgame(board: str) -> Any:
  return poker_games.random_endgame(1, 5 if board == poker_games.RIVER else 2, board).load()


def _enumerated(game: Any, action_filter: Any = None) -> spiel_cfr.CompiledGame:
  return spiel_cfr.compile_game(game, action_filter=action_filter, vector_form=False)


# A form of a game, and the same game listed state by state.
FORMS: dict[str, tuple[Callable[[], Any], Callable[[], spiel_cfr.CompiledGame]]] = {
  "filtered": (
    lambda: _enumerated("leduc_poker", _passive),
    lambda: _enumerated("leduc_poker", _passive),
  ),
  "filtered, three players": (
    lambda: _enumerated("kuhn_poker(players=3)", _few),
    lambda: _enumerated("kuhn_poker(players=3)", _few),
  ),
  "vector form": (
    lambda: spiel_cfr.poker.compile_public_game("leduc_poker"),
    lambda: _enumerated("leduc_poker"),
  ),
  "vector form, filtered": (
    lambda: spiel_cfr.poker.compile_public_game("leduc_poker", _few),
    lambda: _enumerated("leduc_poker", _few),
  ),
  "vector form of universal_poker": (
    lambda: spiel_cfr.poker.compile_public_game(poker_games.UNIVERSAL_POKER[0]),
    lambda: _enumerated(poker_games.UNIVERSAL_POKER[0]),
  ),
  "river endgame": (
    lambda: spiel_cfr.poker.compile_public_game(
      _endgame(poker_games.RIVER), poker_games.check_or_pot
    ),
    lambda: _enumerated(_endgame(poker_games.RIVER), poker_games.check_or_pot),
  ),
  "turn endgame": (
    lambda: spiel_cfr.poker.compile_public_game(
      _endgame(poker_games.TURN), poker_games.check_or_pot
    ),
    lambda: _enumerated(_endgame(poker_games.TURN), poker_games.check_or_pot),
  ),
}
_cached = functools.cache(lambda name, which: FORMS[name][which]())
every_form = pytest.mark.parametrize("name", FORMS)
every_form_and_sampler = rotated("name,make", list(FORMS), samplers.SAMPLERS)


@pytest.mark.quick(except_for=["turn endgame*"])
@every_form_and_sampler
def test_engines_agree_on_every_form(name: str, make: samplers.Make) -> None:
  samplers.assert_engines_agree(make, _cached(name, 0), 30)


@pytest.mark.quick(except_for=["turn endgame*"])
@every_form_and_sampler
def test_all_forms_are_sampled_alike(name: str, make: samplers.Make) -> None:
  solvers = [make(_cached(name, which), seed=2) for which in (0, 1)]
  for solver in solvers:
    assert solver.engine == "compiled"
    solver.run(100)
  assert samplers.tables(solvers[0]) == samplers.tables(solvers[1])
  assert solvers[0].nash_conv() == pytest.approx(solvers[1].nash_conv(), abs=1e-9)


@pytest.mark.parametrize("engine", ["compiled", "states"])
@every_form
def test_policies_are_those_of_the_restricted_game(name: str, engine: Any) -> None:
  compiled = _cached(name, 0)
  solver = spiel_cfr.ExternalSamplingSolver(compiled, engine=engine)
  solver.run(50)
  assert solver.compiled_game is compiled
  game = compiled.view.open_spiel_game()
  average = solver.average_policy()
  expected = exploitability.nash_conv(game, average, use_cpp_br=False)
  assert solver.nash_conv() == pytest.approx(expected, abs=1e-9 * compiled.payoff_range[1])
  tabular = average.to_tabular()
  assert tabular.state_lookup.keys() == compiled.table_rows.keys()
  assert spiel_cfr.nash_conv(compiled, average) == pytest.approx(solver.nash_conv(), abs=1e-9)
  np.testing.assert_allclose(
    policies.from_policy(compiled, average)[compiled.all_action_sequences],
    solver.average_probabilities()[compiled.all_action_sequences],
    atol=1e-15,
  )
  for infostate, distribution in solver.average_policy_dict().items():
    actions = compiled.legal_actions_mask[compiled.table_rows[infostate]].nonzero()[0].tolist()
    assert sorted(distribution) == actions


@every_form
def test_samples_converge_on_every_form(name: str) -> None:
  solver = spiel_cfr.ExternalSamplingSolver(_cached(name, 0))
  start = solver.nash_conv()
  solver.run(20_000)
  assert solver.nash_conv() < 0.2 * start or start < 1e-9


def test_unmet_states_play_the_filtered_actions() -> None:
  solver = spiel_cfr.OutcomeSamplingSolver(_cached("filtered", 0), engine="states")
  state = solver.game.new_initial_state().child(0).child(1)
  assert state.legal_actions() == [1, 2]
  assert solver.average_policy()(state) == {1: 1.0}
  wrapped = solver.compiled_game.view.open_spiel_game().new_initial_state().child(0).child(1)
  assert solver.average_policy()(wrapped) == {1: 1.0}


def test_a_filter_is_applied_once() -> None:
  solver = spiel_cfr.OutcomeSamplingSolver(_cached("vector form, filtered", 0), engine="states")
  game = solver.compiled_game.view.open_spiel_game()
  facing_a_raise = game.new_initial_state().child(0).child(1).child(2)
  assert facing_a_raise.legal_actions() == [1, 2]
  assert set(solver.average_policy()(facing_a_raise)) == {1, 2}


def test_a_form_with_too_many_histories_is_sampled_by_states() -> None:
  for name in ("vector form", "turn endgame"):
    compiled = _cached(name, 0)
    solver = spiel_cfr.ExternalSamplingSolver(compiled, max_nodes=2000)
    assert solver.engine == "states"
    solver.run(20)
    assert solver.compiled_game is compiled
    assert solver.nash_conv() > 0
    with pytest.raises(errors.GameTooLargeError, match='engine="states"'):
      spiel_cfr.ExternalSamplingSolver(compiled, max_nodes=2000, engine="compiled")
    with pytest.raises(errors.GameTooLargeError, match='engine="states"'):
      # So few that the infosets alone are more.
      spiel_cfr.ExternalSamplingSolver(compiled, max_nodes=20, engine="compiled")
  # Who has listed the states of a game has room for its histories.
  assert spiel_cfr.ExternalSamplingSolver(_cached("vector form", 1), max_nodes=20).engine == (
    "compiled"
  )
  with pytest.raises(errors.GameTooLargeError, match='engine="states"'):
    spiel_cfr.ExternalSamplingSolver("leduc_poker", max_nodes=20, engine="compiled")


@pytest.mark.slow
def test_a_poker_game_of_many_hands_is_sampled_as_it_comes() -> None:
  game = _endgame(poker_games.RIVER)
  solver = spiel_cfr.ExternalSamplingSolver(game, max_nodes=500)
  assert solver.engine == "states"
  solver.run(5)
  assert len(solver.average_policy_dict()) > 10


def test_runs_measure_solvers_on_states_that_were_given_a_compiled_game() -> None:
  solver = spiel_cfr.ExternalSamplingSolver(_cached("filtered", 0), engine="states")
  spiel_cfr.run(solver, 10, progress=False)
  assert solver.iteration == 10
  with pytest.raises(errors.UnsupportedGameError, match='engine="compiled"'):
    solver.save("never.npz")
