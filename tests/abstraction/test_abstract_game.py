"""Abstract games against the full game, linear programs, and a slow CFR+ with shared infosets."""

import dataclasses
import re

import numpy as np
import pyspiel
import pytest
import random_games
from sequence_form_lp import least_loss

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr.abstraction import buckets
from spiel_cfr.abstraction.buckets import make_buckets
from spiel_cfr.evaluation import evaluate

# Seeds that were chosen before anything was run.
_SEEDS = range(40, 46)


@pytest.fixture(scope="module")
def leduc():
  return spiel_cfr.compile_game("leduc_poker")


def _seen(infostate):
  """Returns ranks of the private and the public card, or None, and the betting of both rounds."""
  cards = [re.search(rf"{name}: (\d+)", infostate) for name in ("Private", "Public")]
  ranks = [None if found is None else int(found[1]) // 2 for found in cards]
  return *ranks, *re.findall(r"Round[12]: ([\d ]*)\]", infostate)


def _jack_is_queen(infostate):
  private, public, *betting = _seen(infostate)
  return max(private, 1) if public is None else private, public, *betting


def _pair_and_rank(infostate):
  private, public, *betting = _seen(infostate)
  return private, public == private, public is None, *betting


def _forgets_betting(infostate):
  private, public, first, second = _seen(infostate)
  return (private, first) if public is None else (private, public, first.count("2"), second)


def _blind(infostate):
  return _seen(infostate)[1] is None, *_seen(infostate)[2:]


def _forgetful(game):
  """Puts a player's infosets with as many actions, and as many own actions before, into one bucket."""
  labels = []
  for tree, own in zip(game.treeplexes, game.infosets, strict=True):
    groups = tree.groups.astype(np.int64)
    depths = np.repeat(groups[:, -1], groups[:, 2])[own.position]
    keys = zip(own.num_actions.tolist(), depths.tolist(), strict=True)
    names = {}
    numbers = [names.setdefault(key, len(names)) for key in keys]
    labels.append(np.array(numbers, np.int64))
  action_labels = buckets.identity(game).action_labels
  return spiel_cfr.abstraction.Buckets(tuple(labels), action_labels)


def _random_probabilities(game, seed):
  rng = np.random.default_rng(seed)
  sums = np.zeros(game.end)
  sums[game.all_action_sequences] = rng.random(len(game.all_action_sequences))
  return policies.behavioral_form(game, sums)


def _random_games():
  for seed in _SEEDS:
    for num_players, zero_sum in ((2, True), (2, False), (3, False)):
      yield spiel_cfr.compile_game(
        random_games.random_game(seed, num_players, zero_sum, max_histories=300)
      )


def test_a_bucket_for_each_infoset_changes_no_bit(leduc):
  small = spiel_cfr.abstraction.abstract(leduc, lambda infostate: infostate)
  assert small.num_infosets == leduc.num_infosets
  assert small.shared_infosets is None
  full = leduc.with_payoff(small.payoff)
  for make in (spiel_cfr.CFRPlusSolver, spiel_cfr.PCFRPlusSolver):
    found, expected = make(small), make(full)
    for solver in (found, expected):
      solver.run(50)
    assert found.current_probabilities().tobytes() == expected.current_probabilities().tobytes()
    assert found.average_probabilities().tobytes() == expected.average_probabilities().tobytes()


def test_expected_values_are_those_of_the_full_game():
  """Values agree for any strategies, games and buckets; best responses gain at least as much in the full game."""
  merged = 0
  for number, game in enumerate(_random_games()):
    small = spiel_cfr.abstraction.abstract(game, _forgetful(game))
    merged += game.num_infosets - small.num_infosets
    probabilities = _random_probabilities(small, number)
    own = evaluate.evaluate(small, policies.sequence_form(small, probabilities))
    lifted = spiel_cfr.abstraction.lift(small, policies.to_dict(small, probabilities))
    found = evaluate.evaluate(
      game, policies.sequence_form(game, policies.from_policy(game, lifted))
    )
    np.testing.assert_allclose(found.expected_values, own.expected_values, atol=1e-12)
    assert (found.best_response_values >= own.best_response_values - 1e-12).all()
    moved = small.to_original(policies.sequence_form(small, probabilities))
    np.testing.assert_allclose(
      moved, policies.sequence_form(game, policies.from_policy(game, lifted)), atol=1e-14
    )
  assert merged > 50


class _SlowTiedSolver:
  """CFR+ on the full tree, bucket by bucket, from gradients alone."""

  def __init__(self, game, buckets):
    self.game = game
    self.strategy = policies.uniform(game)
    self.cumulative = np.zeros(game.end)
    self.iteration = 0
    # (infosets as arrays of their sequences) of each bucket, and all from the deepest up.
    self.members, self.order = [], []
    begin = 0
    for player, (tree, own, labels) in enumerate(
      zip(game.treeplexes, game.infosets, buckets.labels, strict=True)
    ):
      groups = tree.groups.astype(np.int64)
      depths = np.repeat(groups[:, -1], groups[:, 2])[own.position]
      found = {}
      for index, count in enumerate(own.num_actions.tolist()):
        cells = game.all_action_sequences[begin : begin + count]
        begin += count
        parent = int(tree.parent[own.position[index]])
        found.setdefault(int(labels[index]), []).append(cells)
        self.order.append((int(depths[index]), player, cells, parent))
      self.members += [(player, each, np.zeros(len(each[0]))) for each in found.values()]
    self.order.sort(key=lambda entry: entry[0])

  def run(self, iterations):
    for _ in range(iterations):
      self.iteration += 1
      for player, tree in enumerate(self.game.treeplexes):
        reach = policies.sequence_form(self.game, self.strategy)
        self.cumulative[tree.root : tree.end] += self.iteration * reach[tree.root : tree.end]
        utility = np.zeros(self.game.end)
        self.game.payoff.gradient_into(player, reach, utility)
        for _, owner, cells, parent in reversed(self.order):
          if owner == player:
            utility[parent] += utility[cells] @ self.strategy[cells]
        for owner, infosets, regret in self.members:
          if owner == player:
            total = sum(utility[cells] for cells in infosets)
            regret[:] = np.maximum(regret + total - total @ self.strategy[infosets[0]], 0)
            share = regret / regret.sum() if regret.sum() > 1e-13 else 1 / len(regret)
            for cells in infosets:
              self.strategy[cells] = share


@pytest.mark.parametrize("seed", _SEEDS)
def test_tied_iterates_are_those_of_a_slow_solver_on_the_full_tree(seed):
  for num_players in (2, 3):
    game = spiel_cfr.compile_game(
      random_games.random_game(seed, num_players, zero_sum=False, max_histories=300)
    )
    made = _forgetful(game)
    small = spiel_cfr.abstraction.abstract(game, made)
    assert small.shared_infosets is not None
    slow, fast = _SlowTiedSolver(game, made), spiel_cfr.CFRPlusSolver(small)
    for iterations in (1, 9, 20):
      slow.run(iterations)
      fast.run(iterations)
      found = small.to_original(fast.current_sequence_form())
      expected = policies.sequence_form(game, slow.strategy)
      np.testing.assert_allclose(found, expected, atol=1e-10)
      average = small.to_original(fast.average_sequence_form())
      roots = [tree.root for tree in game.treeplexes]
      expected = slow.cumulative.copy()
      for tree in game.treeplexes:
        expected[tree.root : tree.end] /= expected[tree.root]
      np.testing.assert_allclose(average[roots], 1)
      np.testing.assert_allclose(average, expected, atol=1e-10)


@pytest.mark.parametrize(
  ("buckets", "num_buckets", "both", "optimum"),
  [
    (_jack_is_queen, 282, 0.1303, 0.042033),
    (_pair_and_rank, 198, 0.6405, 0.107658),
    (_blind, 36, 2.3588, 0.985732),
  ],
)
def test_one_side_at_a_time_is_least_exploitable(leduc, buckets, num_buckets, both, optimum):
  """Numbers of Leduc with perfect recall, and the optimum of a linear program."""
  small = spiel_cfr.abstraction.abstract(leduc, buckets)
  assert (small.num_infosets, small.shared_infosets) == (num_buckets, None)
  solver = spiel_cfr.CFRPlusSolver(small)
  solver.run(1000)
  assert solver.exploitability() == pytest.approx(both, abs=5e-5)
  lost = least_loss(spiel_cfr.abstraction.abstract(leduc, buckets, (0,)), 0)
  lost += least_loss(spiel_cfr.abstraction.abstract(leduc, buckets, (1,)), 1)
  assert lost / 2 == pytest.approx(optimum, abs=1e-6)
  exact = spiel_cfr.abstraction.least_exploitable(leduc, buckets, solver="lp")
  assert exact.exploitability == pytest.approx(optimum, abs=1e-6)
  best = spiel_cfr.abstraction.least_exploitable(leduc, buckets, iterations=4000)
  found = spiel_cfr.exploitability(leduc, best.policy)
  assert found == pytest.approx(best.exploitability, abs=1e-12)
  assert optimum - 1e-9 < found < 1.002 * optimum


def test_imperfect_recall_of_leduc(leduc):
  """Round 2 forgets the betting of round 1 but the pot: 180 buckets, 0.027 one side at a time, 0.40 both at once."""
  made = make_buckets(leduc, _forgets_betting)
  assert made.num_buckets == 180
  small = spiel_cfr.abstraction.abstract(leduc, made)
  assert small.shared_infosets is not None
  solver = spiel_cfr.CFRPlusSolver(small)
  result = spiel_cfr.run(solver, 1000, progress=False)
  assert 0.35 < solver.exploitability() < 0.45
  assert result.best.exploitability <= result.last.exploitability
  found = spiel_cfr.exploitability(leduc, result.best_policy)
  assert found == pytest.approx(result.best.exploitability, abs=1e-12)
  best = spiel_cfr.abstraction.least_exploitable(leduc, _forgets_betting, iterations=2000)
  assert best.exploitability < 0.03
  rows = [[] for _ in range(made.num_buckets)]
  for own, labels in zip(leduc.infosets, made.labels, strict=True):
    for infostate, label in zip(own.infostates, labels.tolist(), strict=True):
      rows[label + (labels is made.labels[1]) * 90].append(best.policy.policy_for_key(infostate))
  for alike in rows:
    np.testing.assert_allclose(alike, [alike[0]] * len(alike), atol=1e-12)


def test_actions_in_another_order():
  """Kuhn poker with player 1's actions renumbered is the same game."""
  game = spiel_cfr.compile_game("kuhn_poker")
  made = make_buckets(game, lambda name: (name[1:], name[0] == "1"))
  swapped = [[name[0] == "2"] for own in game.infostates for name in own]
  action_labels = (np.arange(2) ^ swapped).reshape(2, -1)
  small = spiel_cfr.abstraction.abstract(
    game, dataclasses.replace(made, action_labels=tuple(action_labels))
  )
  solver = spiel_cfr.CFRSolver(small)
  solver.run(10)
  mixed = solver.current_policy_dict()
  assert mixed["0"][0] == mixed["2"][1]
  # Player 0 came there by a pass in one order, by a bet in the other: these are tied.
  assert mixed["0pb"][0] == mixed["2pb"][1]
  assert small.shared_infosets is not None
  mixed = solver.average_policy_dict()
  by_hand = spiel_cfr.nash_conv(game, mixed)
  assert solver.nash_conv() == pytest.approx(by_hand, abs=1e-12)
  sampling = spiel_cfr.ExternalSamplingSolver(small, seed=1)
  sampling.run(20)
  mixed = sampling.average_policy_dict()
  assert mixed["0"][0] == mixed["2"][1]
  note, other = sampling.snapshot("0"), sampling.snapshot("2")
  assert (note.actions, note.average) == (other.actions, other.average[::-1])
  assert note.average == list(mixed["0"].values())


def test_samples_of_buckets_converge():
  """Sampled and full-width CFR converge to the same abstract equilibrium."""
  game = spiel_cfr.compile_game("liars_dice(dice_sides=3)")
  small = spiel_cfr.abstraction.abstract(
    game, lambda infostate: infostate[0].replace("2", "1") + infostate[1:]
  )
  assert small.num_infosets < game.num_infosets
  solver = spiel_cfr.ExternalSamplingSolver(small, seed=3)
  solver.run(20_000)
  abstract_gap = evaluate.evaluate(small, solver.average_sequence_form()).nash_conv
  assert abstract_gap < 0.06
  assert solver.nash_conv() > 2 * abstract_gap


def test_mappings(leduc):
  names = {infostate: _seen(infostate) for infostate in leduc.infostates[0][:40]}
  assert make_buckets(leduc, names).labels[1].tolist() == list(range(468))


@pytest.mark.parametrize(
  ("buckets", "error", "words"),
  [
    (lambda infostate: 0, errors.AbstractionError, "action_labels"),
    (lambda infostate: [infostate], errors.ArgumentError, "hashable"),
    ({"no such infostate": 1}, errors.AbstractionError, "no infostate"),
    (3, errors.ArgumentError, "a function"),
  ],
)
def test_invalid_arguments_are_refused(leduc, buckets, error, words):
  with pytest.raises(error, match=words):
    spiel_cfr.abstraction.abstract(leduc, buckets)


def test_labels_of_actions_that_do_not_fit_are_refused(leduc):
  made = make_buckets(leduc, _seen)
  action_labels = [own.copy() for own in made.action_labels]
  action_labels[1][-1] += 1
  with pytest.raises(errors.AbstractionError, match="numbers of action_labels"):
    spiel_cfr.abstraction.abstract(
      leduc, dataclasses.replace(made, action_labels=tuple(action_labels))
    )


def test_a_bucket_above_itself_is_refused():
  game = spiel_cfr.compile_game("kuhn_poker")
  with pytest.raises(errors.ImperfectRecallError, match="another one of the same bucket"):
    spiel_cfr.abstraction.abstract(game, lambda infostate: infostate[0])


def test_other_refusals(leduc):
  made = make_buckets(leduc, _blind)
  small = spiel_cfr.abstraction.abstract(leduc, made)
  with pytest.raises(errors.UnsupportedGameError, match="without symmetries"):
    spiel_cfr.abstraction.abstract(small, _blind)
  with pytest.raises(errors.UnsupportedGameError, match="original game and the buckets"):
    small.save("never written")
  with pytest.raises(errors.UnsupportedGameError, match="original game"):
    small.with_payoff(small.payoff)
  with pytest.raises(errors.ArgumentError, match="players"):
    spiel_cfr.abstraction.abstract(leduc, _blind, (2,))
  with pytest.raises(errors.PolicyError, match="same bucket"):
    spiel_cfr.abstraction.lift(
      small, spiel_cfr.CFRSolver(leduc).average_policy_dict() | _one_pure(leduc)
    )
  with pytest.raises(errors.ArgumentError, match="compile_game"):
    spiel_cfr.abstraction.abstract("leduc_poker", _blind)
  with pytest.raises(errors.AbstractionError, match="another game"):
    spiel_cfr.abstraction.abstract(spiel_cfr.compile_game("kuhn_poker"), made)


def _one_pure(game):
  return {game.infostates[0][0]: {int(game.actions[0][0]): 1.0}}


def test_predictions_need_buckets_of_one_depth():
  """A bucket at two depths, of infosets on different paths: without predictions it is solved, with them refused."""
  game = spiel_cfr.compile_game(pyspiel.load_efg_game(_TWO_DEPTHS))
  names = game.infostates[0]
  first, deep = (next(name for name in names if f"infoset {number}" in name) for number in (1, 3))
  small = spiel_cfr.abstraction.abstract(game, {first: "tied", deep: "tied"})
  assert small.shared_infosets is not None
  solver = spiel_cfr.CFRPlusSolver(small)
  solver.run(20)
  mixed = solver.current_policy_dict()
  assert list(mixed[first].values()) == list(mixed[deep].values())
  with pytest.raises(errors.AbstractionError, match="own actions into the names"):
    spiel_cfr.StablePredictiveCFRSolver(small)


# Chance, then player 1 decides once (infoset 1), or twice (2, then 3); player 2 moves last.
_TWO_DEPTHS = """EFG 2 R "two depths" { "1" "2" } ""
c "" 1 "" { "l" 1/2 "r" 1/2 } 0
p "" 1 1 "player 0 infoset 1" { "a" "b" } 0
t "" 1 "" { 1 -1 }
p "" 2 1 "player 1 infoset 1" { "a" "b" } 0
t "" 2 "" { 3 -3 }
t "" 3 "" { -2 2 }
p "" 1 2 "player 0 infoset 2" { "c" "d" } 0
p "" 1 3 "player 0 infoset 3" { "a" "b" } 0
p "" 2 1 "player 1 infoset 1" { "a" "b" } 0
t "" 4 "" { -4 4 }
t "" 5 "" { 5 -5 }
t "" 6 "" { 2 -2 }
t "" 7 "" { 0 0 }
"""
