"""Pruning: the identity stays exact, what is known stays exact, and states resume inside a window."""

import copy
import functools
import math

import numpy as np
import pytest
import random_games
from composition.forms import FORMS
from forced_moves import visiting_all

import spiel_cfr
from spiel_cfr import PrunedCFRSolver, Pruning, RegretMatching, Solver, errors
from spiel_cfr.continuing.compaction import KEPT, all_leaves, compact, decide_fates
from spiel_cfr.continuing.identity import gap_of_regrets, gradients
from spiel_cfr.minimizers.ledger import NotedMatching
from spiel_cfr.minimizers.schedules import Power
from spiel_cfr.payoffs.leaf_rows import LeafRows
from spiel_cfr.payoffs.sorted_rows import sorted_rows

GAMES = {
  "leduc": lambda: "leduc_poker",
  "liar's dice": lambda: "liars_dice(dice_sides=3)",
  "goofspiel": lambda: "goofspiel(imp_info=True,num_cards=4,points_order=descending)",
} | {
  f"random {seed}": lambda seed=seed: random_games.random_game(seed, max_histories=300, max_depth=7)
  for seed in (2, 5, 11)
}

# Leaves more alone than is wise, and soon.
DARING = Pruning(3.0, 0.0, shortest=10)


@functools.cache
def game_of(name):
  return spiel_cfr.compile_game(GAMES[name]())


def one_sided_game():
  """Liar's dice in which losers lose nothing: no leaf is worth anything to both."""
  game = game_of("liar's dice")
  own, (others,), values = game.payoff.leaves(0)
  payoffs = np.stack([np.maximum(values, 0), np.maximum(-values, 0)], axis=1)
  return game.with_payoff(LeafRows.build(np.stack([own, others]), payoffs, game.treeplexes))


def unpruned(game, plus, alternating=True):
  # Bit for bit, what keeps numbers of infosets is compared with what visits all of them.
  return Solver(
    visiting_all(game),
    RegretMatching.plus() if plus else RegretMatching(),
    alternating_updates=alternating,
    average_weights=1.0 if plus else 0.0,
    averaged=("after", "before") if alternating else "before",
  )


def looked_at_again(solver):
  """A copy that leaves nothing alone, its history rewritten."""
  result = copy.copy(solver)
  result.pruning = Pruning(math.inf)
  result._next_epoch()
  assert not result.num_pruned
  return result


def price(solver):
  """Sum over players and iterations of w (v(0) - u(x)): what the roots' values sum to, less what is to be had."""
  game = solver.compiled_game
  total = gradients(game, solver._cumulative)[[tree.root for tree in game.treeplexes]].sum()
  for tree in game.treeplexes:
    own = solver._local[0, tree.first_infoset : tree.first_infoset + tree.num_infosets]
    total += own[tree.parent == tree.root].sum()
  return float(total) - solver._cumulative[0] * (game.constant_sum or 0.0)


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("margin", [0.0, 1.0, 3.0])
def test_the_identity_stays_exact(name, margin):
  """However daring it is: W NashConv = max <R, x> + price, and nothing was paid for simultaneous updates."""
  game = game_of(name)
  solver = PrunedCFRSolver(
    game, Pruning(margin, 0.0, shortest=10), False, alternating_updates=False
  )
  pruned = 0
  for _ in range(12):
    solver.run(1)
    solver.run(max(1, solver._epoch_end - solver.iteration))
    pruned = max(pruned, solver.num_pruned)
    again = looked_at_again(solver)
    total = again._cumulative[0]
    found = gap_of_regrets(game, again._state[0]) + price(again)
    assert total * again.nash_conv() == pytest.approx(found, rel=1e-9, abs=1e-9)
    assert price(again) == pytest.approx(0, abs=1e-9 * total)
    # Rewriting below changes no policy.
    np.testing.assert_allclose(
      again.average_sequence_form(), solver.average_sequence_form(), atol=1e-12
    )
  assert pruned


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("alternating", [False, True])
def test_the_ledger_is_regret_matching_plus_bit_for_bit(name, alternating):
  game = game_of(name)
  plain = unpruned(game, True, alternating)
  noted = Solver(
    game,
    NotedMatching(Power(1.0), True),
    alternating_updates=alternating,
    average_weights=1.0,
    averaged=("after", "before") if alternating else "before",
  )
  for _ in range(20):
    for solver in (plain, noted):
      solver.run(10)
    assert noted._strategy.tobytes() == plain._strategy.tobytes()
    assert noted._cumulative.tobytes() == plain._cumulative.tobytes()
    regrets = np.where(plain._state[0] > 0, noted._state[0], plain._state[0])
    assert regrets.tobytes() == plain._state[0].tobytes()
  assert (noted._state[0] < 0).any()


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("plus", [False, True])
def test_an_infinite_margin_leaves_nothing_alone(name, plus):
  game = game_of(name)
  solver, plain = PrunedCFRSolver(game, Pruning(math.inf), plus), unpruned(game, plus)
  for each in (solver, plain):
    each.run(150)
  assert solver._strategy.tobytes() == plain._strategy.tobytes()
  assert solver._cumulative.tobytes() == plain._cumulative.tobytes()
  assert (solver.num_pruned, solver.active_share) == (0, 1.0)


@pytest.mark.parametrize("name", [*GAMES, "one-sided"])
def test_what_is_left_of_a_game_is_worth_the_same(name):
  """Where the pruned is not played, gradients of what is left are those of the whole game, and zero elsewhere."""
  game = one_sided_game() if name == "one-sided" else game_of(name)
  rows, rng = all_leaves(game), np.random.default_rng(0)
  for share in (0.1, 0.4):
    pruned = rng.random(game.end) < share
    real = np.zeros(game.end, bool)
    for tree in game.treeplexes:
      for sequences, _ in tree.blocks():
        real[sequences] = True
        # An infoset has something left to play.
        pruned[sequences[0]] = False
    pruned &= real
    weights = rng.random(game.end) * ~pruned
    x = spiel_cfr.policy.sequence_form(game, spiel_cfr.policy.behavioral_form(game, weights))
    left = compact(game, rows, pruned)
    small = np.zeros(left.game.end)
    small[left.places] = x[left.sequences]
    whole, found = gradients(game, x), gradients(left.game, small)
    played = ~pruned[left.sequences]
    np.testing.assert_allclose(
      found[left.places[played]], whole[left.sequences[played]], atol=1e-12
    )
    assert (found[left.places[~played]] < -1e29).all()
    dropped = real & ~left.kept & (x > 0)
    np.testing.assert_allclose(whole[dropped], 0, atol=1e-12)
    assert 0 <= left.share < 1


@pytest.mark.parametrize("name", [*GAMES, "one-sided"])
def test_sorted_rows_are_the_same_payoffs(name):
  """Gradients and leaves, of some of the leaves too."""
  game = one_sided_game() if name == "one-sided" else game_of(name)
  rows, rng = all_leaves(game), np.random.default_rng(1)
  for wanted in (np.ones(len(rows.arrays.values), bool), rows.arrays.values > 0):
    payoff = sorted_rows(rows, wanted)
    some = LeafRows(rows.arrays._replace(values=rows.arrays.values * wanted))
    x = rng.random(game.end)
    for player in range(2):
      expected, found = np.zeros((2, game.end))
      some.gradient_into(player, x, expected)
      payoff.gradient_into(player, x, found)
      np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
      assert payoff.leaves(player)[2].sum() == pytest.approx(some.leaves(player)[2].sum())
      assert len(payoff.leaves(player)[0]) == payoff.arrays.table[player, -1]


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("name", ["leduc", "random 5"])
def test_it_resumes_inside_a_window(name, plus, tmp_path):
  game = game_of(name)
  whole, solver = (PrunedCFRSolver(game, DARING, plus) for _ in range(2))
  whole.run(200)
  for count in (71, 1, 13):
    solver.run(count)
  assert solver.iteration < solver._epoch_end
  if name == "leduc":
    assert solver.num_pruned
  solver.save(tmp_path / "solver.npz")
  others = [
    solver,
    spiel_cfr.IterativeSolver.load(tmp_path / "solver.npz", game),
    copy.copy(solver),
  ]
  average = solver.average_probabilities().tobytes()
  for each in others:
    assert each.average_probabilities().tobytes() == average
    each.run(200 - each.iteration)
    for key, value in each.state_dict().items():
      assert np.array_equal(value, whole.state_dict()[key]), key


def test_how_good_it_is():
  """CFR+ with pruning is about as good as without, while less than two thirds of the leaves are looked at."""
  for name, slack in (("leduc", 1.3), ("liar's dice", 2.0)):
    game = game_of(name)
    solver, plain = PrunedCFRSolver(game), unpruned(game, True)
    for each in (solver, plain):
      each.run(600)
    assert solver.active_share < 0.65
    assert solver.exploitability() < slack * plain.exploitability() + 1e-5


@pytest.mark.parametrize("name", GAMES)
def test_full_caution_is_sound(name):
  """What is left alone comes back without a positive regret, and until then all is as without pruning."""
  game = game_of(name)
  solver, plain = (
    PrunedCFRSolver(game, Pruning(certain=True, shortest=10), False),
    unpruned(game, False),
  )
  for _ in range(30):
    solver.run(20)
    plain.run(20)
    again = looked_at_again(solver)
    positive = again._state[0][solver._pruned]
    assert (positive <= 1e-9).all()
  assert solver.exploitability() < 3 * plain.exploitability() + 1e-6


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("plus", [False, True])
def test_what_nobody_looked_at_is_brought_up_to_date(name, plus):
  """Averages are sequence forms wherever one looks, and what the ledger says of others' absence keeps its weight."""
  game = game_of(name)
  solver, unseen = PrunedCFRSolver(game, DARING, plus), 0
  for _ in range(14):
    solver.run(7)
    solver.run(max(1, solver._epoch_end - solver.iteration))
    again = looked_at_again(solver)
    for sums in (solver._sums(), again._cumulative):
      for tree in game.treeplexes:
        for sequences, infosets in tree.blocks():
          above = sums[tree.parent[infosets]]
          np.testing.assert_allclose(sums[sequences].sum(axis=0), above, rtol=1e-9, atol=1e-9)
    if not solver.num_pruned:
      continue
    fate = np.zeros(game.end, np.uint8)
    fate[[tree.root for tree in game.treeplexes]] = KEPT
    decide_fates(solver._tree, solver._pruned.view(np.uint8), fate)
    rows = (fate == KEPT) & ~solver._window().kept
    before, after = solver._state[0][rows], again._state[0][rows]
    weights = [solver._weight(each) for each in (solver._epoch_start, solver.iteration)]
    factor = np.where(before < 0, weights[0] / weights[1], 1.0)
    np.testing.assert_allclose(after, factor * before, rtol=1e-12)
    unseen += int((before < 0).sum())
  assert unseen or name not in ("goofspiel", "random 2", "random 11")


def test_reading_changes_nothing():
  game = game_of("leduc")
  solver, other = PrunedCFRSolver(game, DARING), PrunedCFRSolver(game, DARING)
  for _ in range(6):
    solver.run(17)
    other.run(17)
    solver.nash_conv()
    solver.average_policy()
    assert solver.active_share <= 1
  for name, value in solver.state_dict().items():
    assert np.array_equal(value, other.state_dict()[name]), name


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_works_or_is_refused(form):
  game = form.compiled
  if game.num_players > 2 or form.is_vector or form.buckets is not None:
    with pytest.raises(errors.PruningError, match="CFRPlusSolver or CFRSolver"):
      PrunedCFRSolver(game)
    return
  solver = PrunedCFRSolver(game, DARING)
  solver.run(100)
  by_dict = spiel_cfr.nash_conv(game, solver.average_policy_dict())
  assert solver.nash_conv() == pytest.approx(by_dict, abs=1e-9)


def test_what_is_refused():
  for arguments in ({"margin": -1.0}, {"margin": math.nan}, {"shortest": 0}, {"longest": 5}):
    with pytest.raises(errors.ArgumentError):
      Pruning(**arguments)
  with pytest.raises(errors.ArgumentError, match="Pruning"):
    PrunedCFRSolver("kuhn_poker", "regret")
  with pytest.raises(errors.RestartError):
    spiel_cfr.Restarted(PrunedCFRSolver("kuhn_poker"))
  solver = PrunedCFRSolver("kuhn_poker")
  uniform = solver.average_policy_dict()
  with pytest.raises(errors.WarmStartError):
    solver.warm_start(uniform)
  state = solver.state_dict()
  state["_pruned"] = np.ones_like(state["_pruned"])
  with pytest.raises(errors.CheckpointMismatchError, match="pruned"):
    solver.load_state_dict(state)
