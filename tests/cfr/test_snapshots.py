"""Snapshots of infosets: regrets are OpenSpiel's, in any form of game; reach is the owner's."""

import copy
from typing import Any

import numpy as np
import poker_games
import pytest
import random_games
from all_solvers import SOLVERS, quick_if_representative
from open_spiel.python.algorithms import cfr

import spiel_cfr
from spiel_cfr import AdaptiveOptimisticCFRSolver, CFRPlusSolver, CFRSolver, RegretMatching, errors
from spiel_cfr.cfr.gradient_solver import GradientSolver
from spiel_cfr.first_order.reward_transformation import RTCFRPlusSolver
from spiel_cfr.poker import compile_public_game

_OURS = {"CFRSolver": CFRSolver, "CFRPlusSolver": CFRPlusSolver}
_GAMES: dict[str, tuple[Any, int]] = {
  "kuhn": (lambda: "kuhn_poker", 60),
  "leduc": (lambda: "leduc_poker", 4),
  "random": (lambda: random_games.random_game(3, payoff_ties=False, max_histories=150), 20),
  "random, 3 players": (
    lambda: random_games.random_game(
      4, num_players=3, zero_sum=False, payoff_ties=False, max_histories=150
    ),
    20,
  ),
}


@pytest.mark.quick(except_for=["leduc-*"])
@pytest.mark.parametrize("name", _OURS)
@pytest.mark.parametrize("case", _GAMES)
def test_regrets_are_those_of_open_spiel(case: str, name: str) -> None:
  source, iterations = _GAMES[case]
  game = spiel_cfr.compile_game(source())
  ours, theirs = _OURS[name](game), getattr(cfr, name)(game.game)
  ours.run(iterations)
  for _ in range(iterations):
    theirs.evaluate_and_update_policy()
  average, flat = theirs.average_policy(), []
  found = ours.snapshots()
  assert len(found) == len(theirs._info_state_nodes) == game.num_infosets
  # In at least one game, infosets have different numbers of actions.
  assert "random" not in case or len({len(each.actions) for each in found}) > 2
  for each in found:
    node = theirs._info_state_nodes[each.infostate]
    assert each.actions == list(node.legal_actions)
    regrets = [node.cumulative_regret[action] for action in each.actions]
    np.testing.assert_allclose(each.regrets, regrets, rtol=1e-12, atol=1e-12)
    row = average.action_probability_array[average.state_lookup[each.infostate]]
    np.testing.assert_allclose(each.average, row[each.actions], rtol=0, atol=1e-9)
    flat += regrets
  np.testing.assert_allclose(ours.cumulative_regrets(), flat, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", quick_if_representative(SOLVERS))
def test_every_solver_has_snapshots(name: str) -> None:
  """Snapshots agree with policies, and change nothing."""
  solver = SOLVERS[name]("kuhn_poker")
  solver.run(6)
  before, flat = copy.copy(solver), solver.cumulative_regrets()
  average, current = solver.average_policy_dict(), solver.current_policy_dict()
  for each in solver.snapshots():
    assert (each.iteration, each.nodes_touched) == (6, solver.nodes_touched)
    assert dict(zip(each.actions, each.average, strict=True)) == average[each.infostate]
    assert dict(zip(each.actions, each.current, strict=True)) == current[each.infostate]
    came = average[each.infostate[0]][0] if each.infostate.endswith("pb") else 1.0
    assert each.reach == pytest.approx(came, abs=1e-9)
    assert (each.regrets is None) == (flat is None)
  if isinstance(solver, GradientSolver) and not isinstance(solver, RTCFRPlusSolver):
    assert flat is None
  elif flat is None:
    assert "adaptive" in name or "deep" in name
  solver.run(3)
  before.run(3)
  np.testing.assert_equal(solver.state_dict(), before.state_dict())


def test_regret_matching_plays_its_regrets() -> None:
  """Snapshots work inside wrappers, after restarts and in windows of pruning."""
  plain = spiel_cfr.FullWidthSolver("leduc_poker", RegretMatching.discounted())
  restarted = spiel_cfr.Restarted(plain, first_attempt=20)
  pruned = spiel_cfr.Pruned(CFRPlusSolver("liars_dice(dice_sides=3)"), min_window=20)
  for solver in (restarted, pruned, RTCFRPlusSolver("leduc_poker")):
    solver.run(90)
    for each in solver.snapshots():
      positive = np.maximum(each.regrets or 0.0, 0.0)
      if positive.max() > 1e-9:
        np.testing.assert_allclose(each.current, positive / positive.sum(), atol=1e-6)
  assert restarted.num_attempts and pruned.num_pruned


def test_forms_of_games() -> None:
  """Snapshots in vector form, whole and in parts, equal those of the listed game."""
  source = poker_games.UNIVERSAL_POKER[0]
  expected: dict[str, Any] = {}
  for game in (
    spiel_cfr.compile_game(source, vector_form=False),
    compile_public_game(source),
    compile_public_game(source, partitioned=True),
  ):
    solver = spiel_cfr.DCFRSolver(game)
    solver.run(5)
    found = {each.infostate: each for each in solver.snapshots()}
    expected = expected or found
    assert found.keys() == expected.keys()
    for name, each in found.items():
      assert each.actions == expected[name].actions
      for ours, other in zip(each[5:], expected[name][5:], strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-6, atol=1e-9)


def test_buckets_share_regrets() -> None:
  game = spiel_cfr.compile_game("kuhn_poker")
  small = spiel_cfr.abstraction.abstract(game, lambda infostate: infostate.replace("1", "2"))
  solver = CFRSolver(small)
  solver.run(10)
  for path in ("", "p", "b", "pb"):
    assert solver.snapshot(f"1{path}")[4:] == solver.snapshot(f"2{path}")[4:]
  assert solver.snapshot("0").regrets != solver.snapshot("2").regrets


def test_names() -> None:
  solver = CFRSolver("kuhn_poker")
  solver.run(3)
  assert solver.snapshot("2pb") == solver.snapshot("2pb", 0) == solver.snapshots("^2.b$")[0]
  assert [each.infostate for each in solver.snapshots("^2")] == ["2", "2pb", "2p", "2b"]
  assert [name for own in solver.infostates() for name in own] == list(
    solver.compiled_game.table_rows
  )
  wrong: Any
  for wrong in (("2pb", 1), ("7",), (None,), ([],), ("2pb", 2), ("2pb", "0")):
    with pytest.raises(errors.ArgumentError):
      solver.snapshot(*wrong)
  for wrong in ("(", None, b"2", 3):
    with pytest.raises(errors.ArgumentError, match="regular expression"):
      solver.snapshots(wrong)
  # Both players of this game have an infoset of that name.
  both = CFRSolver(
    spiel_cfr.games.game_from_arrays(
      [[0], [0]], [[2], [3]], [[1, 2], [1, 3]], [1, -1], infostates=[["here"], ["here"]]
    )
  )
  with pytest.raises(errors.ArgumentError, match="2 players"):
    both.snapshot("here")
  assert len(both.snapshot("here", 1).actions) == 3


def test_no_regrets() -> None:
  solver = AdaptiveOptimisticCFRSolver("kuhn_poker")
  assert solver.cumulative_regrets() is None
  assert solver.snapshot("2").regrets is None
