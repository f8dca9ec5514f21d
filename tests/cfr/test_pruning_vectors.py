"""Pruning in vector form: what is left of an endgame are some hands at some of its ends. `test_pruning` has more."""

import math

import numpy as np
import pytest
from pruning_games import IN_VECTORS, game_of, unpruned

import spiel_cfr
from spiel_cfr import Pruning, errors
from spiel_cfr._numba.simd import LANES
from spiel_cfr.cfr.pruning.compaction import compact, iteration_work
from spiel_cfr.evaluation.identity import game_backward_pass, expect, gradients
from spiel_cfr.poker import ranges
from spiel_cfr.poker.hand_layout import TERMINALS
from spiel_cfr.poker.left_hands import LeftHands

LISTED = {"leduc in vectors": "leduc", "two cards in vectors": "two cards"}


def hands_left(game, pruned):
  """How many hands are at the ends to which both players have some, and how many without pruning."""
  layout, alive, left, every = game.layout, ~pruned, 0, 0
  for tree in game.treeplexes:
    for sequences, infosets in tree.blocks():
      alive[sequences] &= alive[tree.parent[infosets]]
  for number in range(len(layout.boards)):
    for node in layout.terminals(number, *TERMINALS):
      rows = [layout.row_above(player, number, node) for player in range(2)]
      here = [alive[row.first + row.lanes] for row in rows]
      every += sum(map(len, here))
      left += sum(each.sum() for each in here) if all(each.any() for each in here) else 0
  return left, every


@pytest.mark.parametrize("name", IN_VECTORS)
def test_what_is_left_is_worth_the_same(name):
  """Where the pruned is not played: what is left of each infoset's utilities, and leaf by leaf."""
  game, rng = game_of(name), np.random.default_rng(0)
  for share in (0.1, 0.5, 0.95):
    pruned = rng.random(game.end) < share
    for tree in game.treeplexes:
      pruned[tree.root] = False
      for sequences, _ in tree.blocks():
        # An infoset has something left to play.
        kept = rng.integers(len(sequences), size=sequences.shape[1])
        pruned[sequences[kept, np.arange(sequences.shape[1])]] = False
    weights = rng.random(game.end) * ~pruned
    local = spiel_cfr.policy.behavioral_form(game, weights)
    x = spiel_cfr.policy.sequence_form(game, local)
    left = compact(game, game.payoff, pruned)
    small, strategy = np.zeros((2, left.game.end))
    small[left.places], strategy[left.places] = x[left.sequences], local[left.sequences]
    whole, found = gradients(game, x), gradients(left.game, small)
    by_leaf = np.zeros(left.game.end)
    for player in range(2):
      own, (others,), payoffs = left.game.payoff.leaves(player)
      np.add.at(by_leaf, own, payoffs * small[others])
    np.testing.assert_allclose(by_leaf, found, atol=1e-12)
    for each, utilities, played in ((game, whole, local), (left.game, found, strategy)):
      game_backward_pass(each, expect, utilities, strategy=played)
    np.testing.assert_allclose(found[left.places], whole[left.sequences], rtol=1e-12, atol=1e-11)
    assert isinstance(left.game.payoff, LeftHands)
    number, every = hands_left(game, pruned)
    assert left.game.payoff.num_fetched == number <= LANES * left.game.payoff.num_lines
    assert left.share == pytest.approx(number / every)
    assert len(left.sequences) < (~pruned).sum()


@pytest.mark.parametrize("name", IN_VECTORS)
def test_gains_are_payoffs_without_losses(name):
  game, rng = game_of(name), np.random.default_rng(0)
  x = rng.random(game.end)
  for player, tree in enumerate(game.treeplexes):
    expected, found = np.zeros((2, game.end))
    own, (others,), payoffs = game.payoff.leaves(player)
    np.add.at(expected, own, np.maximum(payoffs, 0) * x[others])
    game.payoff.gains().gradient_into(player, x, found)
    mine = slice(tree.root, tree.end)
    assert (found[mine] >= expected[mine] - 1e-9).all()
    # Where nobody acts after a card, leaves are the same on all boards, and their gains and losses one sum.
    if name != "turn endgame":
      np.testing.assert_allclose(found[mine], expected[mine], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LISTED)
@pytest.mark.parametrize("plus", [False, True])
def test_it_prunes_what_it_prunes_with_all_histories_listed(name, plus):
  """As much is left alone, window after window, and policies are the same, as long as rounding has not piled up."""
  game = game_of(name)
  listed = spiel_cfr.compile_game(game.game, vector_form=False)
  daring = Pruning(margin=3.0, caution=0.0, tolerance=math.inf, shortest=10, worthwhile=math.inf)
  solvers = [
    spiel_cfr.TabularCFRSolver(
      each, True, linear_averaging=plus, regret_matching_plus=plus, pruning=daring
    )
    for each in (game, listed)
  ]
  most = 0
  for _ in range(7):
    for each in solvers:
      each.run(10)
    vectors, expected = solvers
    assert vectors.num_pruned == expected.num_pruned
    most = max(most, vectors.num_pruned)
    policies = [each.average_policy_dict() for each in solvers]
    for infostate, actions in policies[0].items():
      assert dict(actions) == pytest.approx(dict(policies[1][infostate]), abs=1e-9)
    assert vectors.nash_conv() == pytest.approx(expected.nash_conv(), abs=1e-9)
  assert most


def test_it_pays_on_an_endgame():
  """By counts of work, with policies that are as good."""
  endgame = ranges.endgame(
    "55+,A8s+,KTs+,QTs+,JTs,AJo+",
    "22+,ATs+,K9s+,QTs+,J9s+,T8s+,98s",
    board="Kd7c3h3sJc",
    pot=200,
    stack=9900,
  )
  game = spiel_cfr.compile_public_game(endgame.load())
  solver, plain = spiel_cfr.CFRPlusSolver(game, pruning="best_response"), unpruned(game, True)
  for each in (solver, plain):
    each.run(800)
  assert solver.active_share < 0.6
  assert iteration_work(solver._left().game.every_infoset) < 0.6 * solver._rule.work
  assert solver.exploitability() < 1.05 * plain.exploitability()


@pytest.mark.parametrize(
  ("options", "rule", "instead"),
  [
    ({}, "partial", "pruning='best_response'"),
    ({"partitioned": True}, "best_response", "partitioned=False"),
    ({"dtype": np.float32}, "regret", "dtype=float64"),
  ],
)
def test_what_is_refused(options, rule, instead):
  game = spiel_cfr.compile_public_game("leduc_poker", **options)
  with pytest.raises(errors.PruningError, match="take no pruning") as caught:
    spiel_cfr.CFRPlusSolver(game, pruning=rule)
  assert instead in str(caught.value)
