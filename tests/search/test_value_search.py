"""Bots that search with values, self-play that makes training data, and networks that learn from it."""

import copy
import pickle
import sys

import numpy as np
import pyspiel
import pytest
from typed_games import TypedGame

import spiel_cfr
from spiel_cfr import errors, search
from spiel_cfr.deep_cfr import MLP, Approximator, LeastSquares, network
from spiel_cfr.search.play import belief_search

_DICE = "liars_dice(dice_sides=2)"


@pytest.mark.quick("leduc_poker-100-*", "kuhn_poker-2-*")
@pytest.mark.parametrize(
  ("name", "depth", "iterations", "least"),
  [
    ("kuhn_poker", 1, 100, 0.02),
    ("kuhn_poker", 2, 100, 0.02),
    (_DICE, 2, 100, 0.002),
    ("leduc_poker", 100, 500, 0.01),
    pytest.param("kuhn_poker", 1, 1000, 0.005, marks=pytest.mark.slow),
    pytest.param("liars_dice(dice_sides=3)", 2, 300, 0.005, marks=pytest.mark.slow),
    # Errors fall with the root of the number of iterations: .118 after 64 at depth 2, .062 after 128 at depth 4.
    pytest.param("leduc_poker", 3, 100, 0.1, marks=pytest.mark.slow),
  ],
)
def test_with_exact_values_a_bot_plays_an_equilibrium(name, depth, iterations, least):
  game = spiel_cfr.compile_game(name)
  values = search.SolvedValues(game)
  bot = search.BeliefBot(values, 0, depth=depth, iterations=iterations)
  assert spiel_cfr.exploitability(game, search.played_policy(game, bot)) < least


def test_the_played_policy_is_that_of_both_seats():
  game = spiel_cfr.compile_game(_DICE)
  values = search.SolvedValues(game)
  bots = [search.BeliefBot(values, player, iterations=20) for player in (0, 1)]
  whole = search.played_policy(game, bots[0])
  assert spiel_cfr.exploitability(game, whole) == spiel_cfr.exploitability(game, bots)
  again = search.played_policy(game, bots[1])
  assert again.action_probability_array.tobytes() == whole.action_probability_array.tobytes()
  # Bots of a blueprint are measured alike.
  solver = spiel_cfr.CFRSolver(game)
  solver.run(5)
  bots = [search.SearchBot(solver, player) for player in (0, 1)]
  found = search.played_policy(game, bots[0])
  assert spiel_cfr.exploitability(game, found) == spiel_cfr.exploitability(game, bots)


def test_the_game_is_walked_only_as_far_as_it_is_played(monkeypatch):
  sizes, walked = [], belief_search.Segment

  def noted(*arguments):
    sizes.append(len(walked(*arguments).tree.histories.parent))
    return walked(*arguments)

  monkeypatch.setattr(belief_search, "Segment", noted)
  # 36 deals and 2^12 - 1 sequences of bids, each of which can be followed by a call.
  game = pyspiel.load_game("liars_dice(dice_sides=6)")
  bot = search.BeliefBot(search.no_values, 0, iterations=2, max_histories=5000, seed=1)
  state = game.new_initial_state()
  while not state.is_terminal():
    if state.is_chance_node():
      state.apply_action(state.legal_actions()[0])
    else:
      answer = bot.get_policy(state) if state.current_player() == 0 else None
      assert answer is None or sum(chance for _, chance in answer) == pytest.approx(1.0)
      state.apply_action(state.legal_actions()[1 if len(state.legal_actions()) > 1 else 0])
  assert sizes and max(sizes) < 5000
  (segment, *_) = bot._search._solved
  with pytest.raises(errors.ArgumentError, match="has no history"):
    segment.path([0, 0, 99])
  with pytest.raises(errors.GameTooLargeError):
    search.BeliefBot(search.no_values, 0, max_histories=100).get_policy(
      game.new_initial_state().child(0).child(0)
    )


def test_self_play_is_the_same_from_the_same_seed():
  one, same, other = (
    search.self_play(_DICE, plays=3, batch=4, iterations=10, seed=seed) for seed in (1, 1, 2)
  )
  assert one.ranges.tobytes() == same.ranges.tobytes()
  assert one.values.tobytes() == same.values.tobytes()
  assert one.ranges.tobytes() != other.ranges.tobytes()
  assert len(one.public_states) == len(one.ranges) == len(one.values)
  # Reached ranges and random ones, of which some private states are left out.
  assert (one.ranges == 0).any()
  for state, ranges, values in zip(*one, strict=True):
    assert state.players[0] in (0, 1)
    assert np.abs(values).max() <= ranges.sum()


def test_self_play_with_exact_values_finds_exact_values():
  game = spiel_cfr.compile_game(_DICE)
  values = search.SolvedValues(game)
  found = search.self_play(game, values, plays=2, batch=2, iterations=100, seed=3)
  for state, ranges, worth in zip(*found, strict=True):
    exact = values([state], ranges[None])[0]
    scale = ranges[0].sum() * ranges[1].sum() / 4
    assert ranges[0] @ worth[0] == pytest.approx(ranges[0] @ exact[0], abs=0.02 * scale + 1e-9)
    assert ranges[1] @ worth[1] == pytest.approx(-ranges[0] @ exact[0], abs=0.02 * scale + 1e-9)


def test_what_was_learned_says_how_wrong_it_is():
  examples = [search.self_play("kuhn_poker", plays=10, batch=8, iterations=20, seed=0)]
  one, same, other = (
    search.learn_values(examples, network=LeastSquares(), seed=seed) for seed in (1, 1, 2)
  )
  assert one.error == same.error != other.error
  assert 0.01 < one.error < 1.0
  found = one(examples[0].public_states, examples[0].ranges)
  # Payoffs sum to 0.
  np.testing.assert_allclose((found * examples[0].ranges).sum(axis=(1, 2)), 0.0, atol=1e-9)
  # The scale of ranges is that of values.
  double = one(examples[0].public_states, examples[0].ranges * [[[2.0], [1.0]]])
  np.testing.assert_allclose(double[:, 1], 2 * found[:, 1], atol=1e-6)
  np.testing.assert_allclose(double[:, 0], found[:, 0], atol=1e-6)
  for each in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
    again = each(examples[0].public_states, examples[0].ranges)
    assert again.tobytes() == found.tobytes()


def test_examples_have_no_ranges_of_0():
  """A player who never plays to a leaf in the iteration drawn has a random range there."""
  examples = search.self_play(_DICE, plays=20, batch=4, iterations=20, exploration=1.0)
  assert (examples.ranges.sum(axis=2) > 0).all()


def test_the_root_is_solved_once_for_all_plays():
  def calls_at_root(plays):
    calls = []

    def counted(states, ranges):
      calls.append(min(len(next(iter(state.states())).history()) for state in states))
      return np.zeros_like(ranges)

    search.self_play("kuhn_poker", counted, depth=1, plays=plays, batch=2, iterations=7)
    return calls.count(min(calls))

  assert calls_at_root(1) == calls_at_root(5) == 7


def test_features_tell_public_states_apart():
  """A table of last bids learns values that do not depend on other features."""
  examples = [search.self_play(_DICE, plays=10, batch=8, iterations=20, seed=0)]
  asked = []

  def moves(state):
    asked.append(state)
    history = next(iter(state.states()))
    return np.append(history.legal_actions_mask(), history.current_player())

  one = search.learn_values(examples, network=LeastSquares(), features=moves)
  assert asked
  assert {state.index for state in asked} == {state.index for state in examples[0].public_states}
  default = search.learn_values(examples, network=LeastSquares())
  found, by_tensors = (each(*examples[0][:2]) for each in (one, default))
  assert np.abs(found - by_tensors).max() > 1e-3
  # The features stay with a network.
  count = len(asked)
  search.learn_values(examples, network=copy.deepcopy(one))
  assert len(asked) > count
  rng = np.random.default_rng(0)
  for features in (
    lambda state: [np.nan],
    lambda state: "dice",
    lambda state: np.zeros(rng.integers(1, 9)),
  ):
    with pytest.raises(errors.ArgumentError, match="features must return finite numbers"):
      search.learn_values(examples, features=features)


def test_networks_learn_nothing_of_padding():
  """Public states have different numbers of private states; a network's outputs have one number."""

  class Zeros(Approximator):
    rows = None

    def fresh(self, seed, num_features, num_outputs):
      return np.zeros(0)

    def fitted(self, parameters, rows, training):
      Zeros.rows = rows
      return np.zeros(0)

    def outputs(self, parameters, features, num_outputs):
      return np.zeros((len(features), num_outputs))

  tree = search.public_states(
    spiel_cfr.compile_game("goofspiel(imp_info=True,num_cards=3,points_order=descending)")
  )
  states = tree.decisions(0)[1] + tree.decisions(1)[1]
  counts = np.array([tree.num_private_states(state.index) for state in states])
  assert len(np.unique(counts)) > 1
  ranges = np.zeros((len(states), 2, counts.max()))
  ranges[np.arange(counts.max()) < counts[:, :, None]] = 1.0
  values = np.concatenate(
    [
      search.SolvedValues(tree)([state], own[None])
      for state, own in zip(states, ranges, strict=True)
    ]
  )
  examples = search.Examples(
    [*states] * 10, np.tile(ranges, (10, 1, 1)), np.tile(values, (10, 1, 1))
  )
  found = search.learn_values([examples], network=Zeros())
  # Nine tenths are learned.
  assert 0.8 * counts.sum() * 10 < Zeros.rows.mask.sum() < counts.sum() * 10
  # Scaled by the root of their mean square over private states alone.
  assert (Zeros.rows.targets[Zeros.rows.mask] ** 2).mean() == pytest.approx(1.0, abs=0.2)
  assert found.error > 0


def test_a_network_is_trained_and_goes_on():
  examples = [search.self_play("kuhn_poker", plays=10, batch=8, iterations=20, seed=0)]
  short = search.learn_values(examples, network=MLP((16,)), steps=1)
  longer = search.learn_values(examples, network=short, steps=300)
  assert longer.error < 0.7 * short.error
  bot = search.BeliefBot(longer, 0, iterations=20)
  game = spiel_cfr.compile_game("kuhn_poker")
  assert spiel_cfr.exploitability(game, search.played_policy(game, bot)) < 0.3


def test_without_jax_an_error_says_what_to_install(monkeypatch):
  examples = [search.self_play("kuhn_poker", plays=1, batch=2, iterations=2)]
  network.libraries.cache_clear()
  network.compiled.cache_clear()
  monkeypatch.setitem(sys.modules, "jax", None)
  with pytest.raises(errors.MissingPackageError, match=r"spiel_cfr\[jax\]"):
    search.learn_values(examples)
  network.libraries.cache_clear()


def test_bad_arguments_are_named():
  examples = [search.self_play("kuhn_poker", plays=1, batch=2, iterations=2)]
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  for name, call in {
    "plays": lambda: search.self_play("kuhn_poker", plays=0),
    "batch": lambda: search.self_play("kuhn_poker", batch=0),
    "iterations": lambda: search.self_play("kuhn_poker", iterations=0),
    "exploration": lambda: search.self_play("kuhn_poker", exploration=2),
    "seed": lambda: search.self_play("kuhn_poker", seed=-1),
    "steps": lambda: search.learn_values(examples, steps=0),
    "examples must": lambda: search.learn_values([]),
    "Examples": lambda: search.learn_values([1]),
    "a function": lambda: search.BeliefBot(3, 0),
    "a SearchBot or a BeliefBot": lambda: search.played_policy("kuhn_poker", solver),
    "leaf_values": lambda: search.BeliefBot(None, 0),
    "with leaf values": lambda: search.BeliefBot(search.no_values, 0, gadget="safe"),
    "depth": lambda: search.BeliefBot(search.no_values, 0, depth=0),
    "iterations must": lambda: search.BeliefBot(search.no_values, 0, iterations=0),
    "max_histories": lambda: search.BeliefBot(search.no_values, 0, max_histories=0),
    "player": lambda: search.BeliefBot(search.no_values, 2),
  }.items():
    with pytest.raises(errors.ArgumentError, match=name):
      call()
  dice = search.self_play("liars_dice(dice_sides=2)", plays=1, batch=2, iterations=2)
  learned = search.learn_values([dice], network=LeastSquares())
  leduc = search.public_states("leduc_poker").natural_cut()[:1]
  with pytest.raises(errors.ArgumentError, match="private states, and no example"):
    learned(leduc, np.ones((1, 2, 6)))
  no_tensors = search.public_states(spiel_cfr.compile_game(TypedGame(3), vector_form=True))[:1]
  with pytest.raises(errors.UnsupportedGameError, match="no information state tensors"):
    search.learn_values([search.Examples(no_tensors, *np.ones((2, 1, 2, 10)))])
  for game in ("kuhn_poker(players=3)", "matrix_pd"):
    with pytest.raises(errors.UnsupportedGameError):
      search.self_play(game)
