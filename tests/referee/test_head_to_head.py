"""Policies against each other: exactly, and by sampled games."""

import re

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import expected_game_score

import spiel_cfr
from spiel_cfr import errors, referee
from spiel_cfr.policies.action_entries import from_entries


@pytest.fixture(scope="module")
def policies():
  solver = spiel_cfr.CFRPlusSolver("leduc_poker")
  found = {"uniform": solver.average_policy_dict()}
  for iterations in (5, 100):
    solver.run(iterations)
    found[f"CFR+ {solver.iteration}"] = solver.average_policy_dict()
  return found


@pytest.fixture(scope="module")
def leduc():
  return spiel_cfr.compile_game("leduc_poker")


@pytest.mark.parametrize("name", ["kuhn_poker", "first_sealed_auction(max_value=4)"])
def test_open_spiel_expects_the_same(name):
  compiled, rng = spiel_cfr.compile_game(name), np.random.default_rng(0)
  mask = compiled.legal_actions_mask
  tables = {}
  for each in ("one", "two", "three"):
    rows = rng.random(mask.shape) * mask
    tables[each] = from_entries(
      compiled, (rows / rows.sum(axis=1, keepdims=True))[compiled.action_cells]
    )
  made = {
    each: spiel_cfr.policies.CompiledTabularPolicy(compiled, table)
    for each, table in tables.items()
  }
  found = referee.head_to_head(compiled, made)
  for i, first in enumerate(made.values()):
    for j, second in enumerate(made.values()):
      expected = expected_game_score.policy_value(
        compiled.game.new_initial_state(), [first, second]
      )
      assert found.values[:, i, j] == pytest.approx(expected, abs=1e-12)
  assert found.scores[0, 2] == pytest.approx((found.values[0, 0, 2] + found.values[1, 2, 0]) / 2)


def test_the_matrix(leduc, policies):
  found = referee.head_to_head(leduc, policies)
  assert found.names == tuple(policies)
  assert found.scores == pytest.approx(-found.scores.T, abs=1e-12)
  assert (found.scores[2, :2] > 0).all()
  lines = str(found).splitlines()
  assert len(lines) == 4
  assert lines[1].endswith(f"{found.scores[0, 2]:.6f}")
  assert repr(found) == "<HeadToHead of uniform, CFR+ 5, CFR+ 105>"
  with pytest.raises(errors.UnsupportedGameError, match="has 3"):
    referee.head_to_head("kuhn_poker(players=3)", policies)
  for wrong in ({}, list(policies.values())):
    with pytest.raises(errors.ArgumentError, match="by name"):
      referee.head_to_head(leduc, wrong)


def truth(leduc, one, two):
  return referee.head_to_head(leduc, {"one": one, "two": two}).scores[0, 1]


def spread(scores):
  """Returns the variance of the total of both seats of a deal."""
  return scores.mean(axis=1).var()


def test_sampled_means_equal_expected_values(leduc, policies):
  uniform, early, late = policies.values()
  baseline = referee.value_baseline(leduc, late)
  for one, two in ((late, uniform), (late, early)):
    match = referee.play_match("leduc_poker", one, two, deals=300, baseline=baseline, seed=1)
    expected = truth(leduc, one, two)
    assert abs(match.mean - expected) < 4 * match.standard_error
    assert abs(match.returns.mean() - expected) < 4 * np.sqrt(spread(match.returns) / 300)
    # Of 4,000 deals the baseline leaves 0.23 and 0.09 of the variance.
    assert spread(match.scores) < 0.5 * spread(match.returns)
    low, high = match.interval(0.99)
    assert low < match.interval()[0] < match.mean < match.interval()[1] < high
    assert "with 95% confidence" in repr(match)
    assert "the baseline leaves" in repr(match)
  assert "baseline" not in repr(referee.play_match("leduc_poker", late, uniform, deals=3))


def test_the_exact_baseline_leaves_nothing_to_luck(leduc, policies):
  """A policy against itself with exact baselines: every game has the expected value of its seat."""
  _, early, _ = policies.values()
  baseline = referee.value_baseline(leduc, early)
  match = referee.play_match("leduc_poker", early, early, deals=5, baseline=baseline)
  value = spiel_cfr.expected_values(leduc, early)[0]
  assert match.scores == pytest.approx(np.tile([value, -value], (5, 1)), abs=1e-12)
  assert match.mean == pytest.approx(0, abs=1e-12)
  assert match.returns.any()


class Mute(pyspiel.Bot):
  """A bot that plays a policy without revealing it."""

  def __init__(self, bot, moves=None):
    super().__init__()
    self._bot, self.informed, self._moves = bot, 0, moves

  def provides_policy(self):
    return False

  def restart_at(self, state):
    self._bot.restart_at(state)

  def inform_action(self, state, player, action):
    self.informed += 1

  def step(self, state):
    return self._bot.step(state) if self._moves is None else self._moves


def test_bots_that_do_not_tell_their_policies(leduc, policies):
  """Only chance and the other player are corrected; the mean is still right."""
  uniform, _, late = policies.values()
  mute = [Mute(spiel_cfr.PolicyBot(uniform, player, seed=player)) for player in (0, 1)]
  match = referee.play_match(
    "leduc_poker", late, mute, deals=300, baseline=referee.value_baseline(leduc, late)
  )
  assert abs(match.mean - truth(leduc, late, uniform)) < 4 * match.standard_error
  assert spread(match.scores) < 0.8 * spread(match.returns)
  assert mute[0].informed > 300


def test_deals_are_the_same_in_both_seats_and_with_the_same_seed():
  """Players who always call win by cards alone, so exchanged seats cancel."""
  always = {
    name: {1: 1.0} for own in spiel_cfr.compile_game("leduc_poker").infostates for name in own
  }
  match = referee.play_match("leduc_poker", always, always, deals=20)
  assert match.returns.any()
  assert not match.returns.mean(axis=1).any()
  uniform = spiel_cfr.CFRSolver("leduc_poker")
  one, two, other = (
    referee.play_match("leduc_poker", uniform, always, deals=5, seed=seed) for seed in (1, 1, 2)
  )
  assert np.array_equal(one.scores, two.scores)
  assert not np.array_equal(one.scores, other.scores)


def ranks_and_bets(state):
  """Returns a state of Leduc poker without suits."""
  suits = 1 if state.get_game().get_parameters().get("suit_isomorphism") else 2
  text = state.information_state_string(0)
  public = re.search(r"Public: (\d+)", text)
  dealt = [*state.history()[:2], *([int(public[1])] if public else [])]
  return *(card // suits for card in dealt), text.partition("[Round1")[2]


def test_a_smaller_game_as_baseline(policies):
  small = spiel_cfr.CFRPlusSolver("leduc_poker(suit_isomorphism=True)")
  small.run(100)
  baseline = referee.value_baseline(small.compiled_game, small, key=ranks_and_bets)
  _, early, late = policies.values()
  match = referee.play_match("leduc_poker", late, early, deals=300, baseline=baseline)
  assert abs(match.mean - truth("leduc_poker", late, early)) < 4 * match.standard_error
  # Of 4,000 deals 0.09.
  assert spread(match.scores) < 0.3 * spread(match.returns)


def test_a_baseline_that_knows_nothing_changes_nothing(policies):
  uniform, _, late = policies.values()
  match = referee.play_match("leduc_poker", late, uniform, deals=3)
  assert np.array_equal(match.scores, match.returns)
  known = []
  nothing = referee.play_match("leduc_poker", late, uniform, deals=3, baseline=known.append)
  assert np.array_equal(nothing.returns, match.returns)
  # It is not asked about the ends of games, which are known.
  assert known
  assert not any(state.is_terminal() for state in known)
  assert referee.play_match("leduc_poker", late, uniform, deals=1).standard_error == np.inf


def test_wrong_matches(policies):
  late = policies["CFR+ 105"]
  with pytest.raises(errors.UnsupportedGameError, match="3 players"):
    referee.play_match("kuhn_poker(players=3)", late, late, deals=1)
  cheats = [Mute(spiel_cfr.PolicyBot(late, player), moves=0) for player in (0, 1)]
  with pytest.raises(errors.PolicyError, match="plays 0"):
    referee.play_match("leduc_poker", cheats, cheats, deals=1)
  for wrong in (7, [late, late], cheats[:1]):
    with pytest.raises(errors.ArgumentError):
      referee.play_match("leduc_poker", wrong, late, deals=1)
  with pytest.raises(errors.ArgumentError, match="deals"):
    referee.play_match("leduc_poker", late, late, deals=0)
  for wrong in (-0.1, 1.0, np.nan):
    with pytest.raises(errors.ArgumentError, match="confidence"):
      referee.play_match("leduc_poker", late, late, deals=2).interval(wrong)


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel(num_cards=3,imp_info=True)"])
def test_functions_play(name):
  """Probabilities of single states equal those of batches."""

  def network(tensors, legal_actions):
    return tensors @ np.sin(np.arange(tensors.shape[1] * legal_actions.shape[1])).reshape(
      tensors.shape[1], -1
    )

  verdict = spiel_cfr.judge(name, network, answers="logits")
  policy = referee.FunctionPolicy(name, network, answers="logits")
  for state in verdict.compiled_game.first_states():
    found, wanted = policy.action_probabilities(state), verdict.policy.action_probabilities(state)
    assert found == pytest.approx(wanted, abs=1e-6)
  assert referee.play_match(name, policy, policy, deals=2).returns.shape == (2, 2)
  with pytest.raises(errors.ArgumentError):
    referee.FunctionPolicy(name, network, answers=3)
  with pytest.raises(errors.PolicyError, match="not a distribution"):
    referee.FunctionPolicy(name, network).action_probabilities(state)


def test_states_of_one_key_share_their_mean():
  """Values after one move, weighted by reach, average to the expected value."""
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(10)
  baseline = referee.value_baseline("kuhn_poker", solver, key=lambda state: len(state.history()))
  state = solver.compiled_game.view.new_initial_state()
  for action in (0, 1, 0):
    state.apply_action(action)
  values = spiel_cfr.expected_values("kuhn_poker", solver.average_policy())
  assert baseline(state) == pytest.approx(values)


@pytest.mark.parametrize("value", ["x", 1.0, [1.0], [np.nan, 0.0]])
def test_baselines_are_checked(policies, value):
  even = policies["uniform"]
  with pytest.raises(errors.ArgumentError, match="baseline has returned"):
    referee.play_match("leduc_poker", even, even, deals=2, baseline=lambda _: value)
