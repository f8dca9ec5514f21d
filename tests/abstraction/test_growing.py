"""Games that grow: certified by OpenSpiel, never larger than the whole game, plain solvers if nothing is missing."""

import re
import zlib

import numpy as np
import poker_games
import pytest
import random_games
from open_spiel.python.algorithms import exploitability

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.abstraction.buckets import identity
from spiel_cfr.abstraction.fewer_actions import make_choices
from spiel_cfr.abstraction.growers import GrowingActions
from spiel_cfr.abstraction.growing_hands import GrowingHands
from spiel_cfr.poker import bet_filters
from spiel_cfr.policies import forms


def call_only(state, actions):
  return [action for action in actions if action < 2]


def by_rank(infostate):
  return re.sub(
    r"(Private|Public): (\d)", lambda found: f"{found[1]}: {int(found[2]) // 4}", infostate
  )


def forgetful(infostate):
  """The first betting round is forgotten."""
  return by_rank(re.sub(r"Round1: [\d ]*\]\[Round2: (?=.)", "Round2: ", infostate))


def some_actions(seed):
  def keep(state, actions):
    rng = np.random.default_rng([seed, zlib.crc32(state.information_state_string().encode())])
    return sorted(rng.choice(actions, rng.integers(1, len(actions) + 1), replace=False).tolist())

  return keep


def check(found, target, by_open_spiel=True):
  """Asserts what holds whatever has grown."""
  game = found.compiled_game
  assert found.reason == "target"
  assert found.nash_conv <= target
  assert found.nash_conv == min(stage.nash_conv for stage in found.history)
  judge = exploitability.nash_conv if by_open_spiel else spiel_cfr.nash_conv
  certified = judge(game.game if by_open_spiel else game, found.policy)
  assert certified == pytest.approx(found.nash_conv, abs=1e-9)
  sizes = [stage.infosets for stage in found.history]
  assert sizes == sorted(sizes)
  assert sizes[-1] == found.small.num_infosets <= game.num_infosets
  assert all(stage.payoffs <= game.num_leaves for stage in found.history)
  # A policy of the smaller game gains no more from best responses there than from those of the whole game.
  for stage in found.history:
    assert stage.own_nash_conv <= stage.nash_conv + 1e-9 * max(map(abs, game.payoff_range))


@pytest.fixture(scope="module")
def leduc():
  return spiel_cfr.compile_game("leduc_poker")


@pytest.mark.parametrize("solver", ["cfr+", "dcfr"])
def test_actions_come_in(leduc, solver):
  found = spiel_cfr.solve_growing(leduc, call_only, 0.3, solver=solver)
  check(found, 0.3, by_open_spiel=solver == "cfr+")
  assert found.history[0].infosets < found.history[-1].infosets


def test_buckets_split(leduc):
  found = spiel_cfr.solve_growing(leduc, spiel_cfr.make_buckets(leduc, by_rank), 0.05)
  check(found, 0.05)
  assert found.history[0].infosets < found.history[-1].infosets
  assert found.small.shared_infosets is None
  # Suits need not be told apart: this many are enough without loss.
  assert found.small.num_buckets <= 2 * 288


def test_players_who_forget_learn_to_remember(leduc):
  start = spiel_cfr.abstract(leduc, forgetful)
  assert start.shared_infosets is not None
  check(spiel_cfr.solve_growing(leduc, start, 0.15), 0.15, by_open_spiel=False)


def test_the_whole_game_is_the_plain_solver(leduc):
  schedule = spiel_cfr.Every(50)
  for start in (leduc, spiel_cfr.compile_game("leduc_poker")):
    found = spiel_cfr.solve_growing(leduc, start, 0.0, iterations=100, evaluate_at=schedule)
    solver = spiel_cfr.CFRPlusSolver(leduc)
    solver.run(100)
    assert found.reason == "iterations"
    assert found.nash_conv == pytest.approx(solver.nash_conv(), rel=1e-12)
    assert np.allclose(found.probabilities, solver.average_probabilities(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_random_games(seed):
  game = spiel_cfr.compile_game(
    random_games.random_game(seed, max_histories=150, idle_player=seed == 4)
  )
  target = 0.005 * max(map(abs, game.payoff_range))
  check(spiel_cfr.solve_growing(game, some_actions(seed), target), target)
  rng, labels = np.random.default_rng(seed), []
  for tree, own in zip(game.treeplexes, game.infosets, strict=True):
    groups = tree.groups.astype(np.int64)
    # No bucket is above itself.
    depths = np.repeat(groups[:, -1], groups[:, 2])[own.position]
    some = rng.integers(2, size=len(depths))
    labels.append(100 * depths + 2 * own.num_actions + some)
  start = spiel_cfr.Buckets(tuple(labels), identity(game).slots)
  found = spiel_cfr.solve_growing(game, start, target)
  check(found, target)
  assert start.num_buckets < game.num_infosets


@pytest.mark.parametrize("seed", range(4))
def test_without_actions_it_is_the_filtered_game(seed):
  """The game made of arrays has the value of the one that is walked with the same actions."""
  whole = random_games.random_game(seed + 20, max_histories=150)
  game, keep = spiel_cfr.compile_game(whole), some_actions(seed)
  choices = make_choices(game)
  kept = np.zeros(choices.num_units, bool)
  for spot in choices.spots:
    kept[[spot.units[spot.actions.index(each)] for each in keep(spot.state, spot.actions)]] = True
  assert not kept.all()
  left = {
    spot.state.information_state_string(): np.array(spot.actions)[kept[spot.units]].tolist()
    for spot in choices.spots
  }
  small = choices.smaller(kept).game
  walked = spiel_cfr.compile_game(
    whole, action_filter=lambda state, actions: left[state.information_state_string()]
  )
  names = [state.information_state_string() for state in small.first_states()]
  assert names == [name for own in small.infostates for name in own]
  # Infosets where nothing can be won or lost are left out.
  assert small.num_infosets <= walked.num_infosets
  assert spiel_cfr.solve_lp(small).value == pytest.approx(
    spiel_cfr.solve_lp(walked).value, abs=1e-8
  )


@pytest.mark.parametrize(
  "form", [{}, {"partitioned": True, "num_threads": 2}, {"dtype": np.float32}]
)
def test_in_vector_form(form):
  name = poker_games.UNIVERSAL_POKER[0]
  game = spiel_cfr.compile_public_game(name, **form)
  walked = spiel_cfr.compile_public_game(name, poker_games.check_or_pot, **form)
  first = spiel_cfr.solve_growing(
    game, poker_games.check_or_pot, 0.0, iterations=30, evaluate_at=spiel_cfr.Every(30)
  )
  solver = spiel_cfr.CFRPlusSolver(walked)
  solver.run(30)
  assert first.history[0].infosets == walked.num_infosets
  assert first.history[0].own_nash_conv == pytest.approx(
    solver.nash_conv(), rel=1e-4 if form.get("dtype") else 1e-9
  )
  found = spiel_cfr.solve_growing(game, walked, 0.05)
  check(found, 0.05, by_open_spiel=not form)
  assert found.small.dtype == game.dtype
  assert (found.small.partition is None) == (game.partition is None)


def one_bucket(game):
  """All hands play alike on every board."""
  boards = game.layout.boards
  labels = [[np.zeros(len(board.hands[player]), int) for board in boards] for player in (0, 1)]
  return spiel_cfr.hand_buckets(game, labels if len(boards) > 1 else [own for own, *_ in labels])


@pytest.mark.parametrize(
  "form", [{}, {"partitioned": True, "num_threads": 2}, {"dtype": np.float32}]
)
def test_buckets_of_hands_split(form):
  """Public cards are dealt in this game, and a hand on a board is in no bucket with one that was in another before."""
  game = spiel_cfr.compile_public_game(poker_games.UNIVERSAL_POKER[0], **form)
  found = spiel_cfr.solve_growing(game, one_bucket(game), 0.05)
  check(found, 0.05, by_open_spiel=not form)
  assert found.history[0].infosets < found.history[-1].infosets < game.num_infosets
  assert found.small.dtype == game.dtype
  assert (found.small.partition is None) == (game.partition is None)
  layout, labels = game.layout, found.small.buckets.labels
  for player, own in enumerate(labels):
    for number in range(1, len(layout.boards)):
      before = own[0][layout.lanes(player, 0, number)]
      pairs = np.unique(np.stack([own[number], before]), axis=1)
      assert pairs.shape[1] == own[number].max() + 1


def test_buckets_of_an_endgame_split():
  """What splits plays on as before, and whoever grows needs not all of the game."""
  game = spiel_cfr.compile_public_game(
    poker_games.random_endgame(0, 12, pot=200, stack=600).load(), bet_filters.few_bets
  )
  start = one_bucket(game)
  grower = GrowingHands(game, start)
  before = spiel_cfr.CFRPlusSolver(grower.small)
  before.run(5)
  policy = grower.in_whole(before.average_sequence_form())
  assert grower.grow(policy)
  again = grower.in_whole(forms.sequence_form(grower.small, grower.in_small(policy)))
  played = forms.sequence_form(game, policy)
  assert np.allclose(forms.sequence_form(game, again), played, rtol=0, atol=1e-12)
  target = 0.005 * max(map(abs, game.payoff_range))
  found = spiel_cfr.solve_growing(game, spiel_cfr.abstract(game, start), target)
  check(found, target, by_open_spiel=False)
  assert found.small.num_infosets < game.num_infosets


def test_boards_that_were_one_are_told_apart():
  """From what loses nothing there is nothing to split: equal boards get buckets of their own, and that is the game."""
  game = spiel_cfr.compile_public_game(poker_games.UNIVERSAL_POKER[0])
  lossless = spiel_cfr.lossless(game)
  assert lossless.stands_for.tolist() != list(range(len(game.layout.boards)))
  found = spiel_cfr.solve_growing(game, lossless, 0.02)
  check(found, 0.02)
  assert len({stage.infosets for stage in found.history}) == 1


def test_more_than_two_players():
  """Nothing is promised there, and what is said is true."""
  game = spiel_cfr.compile_game(random_games.random_game(3, 3, zero_sum=False, max_histories=120))
  found = spiel_cfr.solve_growing(game, some_actions(3), 0.01, iterations=2000)
  assert spiel_cfr.nash_conv(game, found.policy) == pytest.approx(found.nash_conv, abs=1e-9)


def test_answers_are_those_to_what_an_action_is_taken_for(leduc):
  """Raises are taken for calls, so that a raise is answered as a call is."""
  grower = GrowingActions(make_choices(leduc), call_only, lambda state, action: {1: 1.0})
  sums = spiel_cfr.CFRPlusSolver(grower.small).average_sequence_form()
  for tree in grower.small.treeplexes:
    for sequences, _ in tree.blocks():
      sums[sequences[0]], sums[sequences[1:]] = 1.0, 0.0
  policy = spiel_cfr.CompiledTabularPolicy(leduc, grower.in_whole(sums))
  state = leduc.game.new_initial_state()
  for action in (0, 2, 2):
    state.apply_action(action)
  assert policy.action_probabilities(state) == {0: 0.0, 1: 1.0, 2: 0.0}


def test_what_makes_no_sense_is_refused(leduc):
  grow = spiel_cfr.solve_growing
  small = spiel_cfr.abstract(leduc, by_rank)
  kuhn = spiel_cfr.compile_game("kuhn_poker")
  with pytest.raises(errors.UnsupportedGameError):
    grow(small, call_only, 0.1)
  with pytest.raises(errors.AbstractionError, match="not an abstraction of"):
    grow(kuhn, small, 0.1)
  with pytest.raises(errors.AbstractionError, match="action filter"):
    grow(kuhn, leduc, 0.1)
  with pytest.raises(errors.AbstractionError, match="no infostate"):
    grow(kuhn, {"a": "b"}, 0.1)
  with pytest.raises(errors.ArgumentError, match="full-width"):
    grow(leduc, call_only, 0.1, solver="external_sampling")
  with pytest.raises(errors.ArgumentError, match="To begin with"):
    grow(leduc, 3, 0.1)
  with pytest.raises(errors.ArgumentError, match="none of the game's"):
    grow(leduc, lambda state, actions: [], 0.1)
  with pytest.raises(errors.AbstractionError, match="translation takes"):
    grow(leduc, call_only, 0.1, translate=lambda state, action: {2: 1.0})
  with pytest.raises(errors.WarmStartError):
    grow(leduc, call_only, 0.1, solver="stable_predictive")
  vector = spiel_cfr.compile_public_game(poker_games.UNIVERSAL_POKER[0])
  hands = one_bucket(vector)
  with pytest.raises(errors.UnsupportedGameError, match="compile_public_game"):
    grow(leduc, hands, 0.1)
  with pytest.raises(errors.UnsupportedGameError):
    grow(spiel_cfr.abstract(vector, hands), hands, 0.1)
  other = spiel_cfr.compile_public_game(poker_games.UNIVERSAL_POKER[1])
  with pytest.raises(errors.AbstractionError, match="boards and hands"):
    grow(other, hands, 0.1)
  with pytest.raises(errors.AbstractionError, match="not an abstraction of"):
    grow(other, spiel_cfr.abstract(vector, hands), 0.1)


@pytest.mark.parametrize("payoffs", ["0 0", "1 -1"])
def test_what_is_worth_nothing_is_not_listed_and_grows_all_the_same(tmp_path, payoffs):
  path = tmp_path / "game.efg"
  ends = f't "" 1 "" {{ 0 0 }}\nt "" 2 "" {{ {payoffs} }}\n'
  path.write_text('EFG 2 R "" { "a" "b" }\np "" 1 1 "" { "l" "r" } 0\n' + ends)
  game = spiel_cfr.compile_game(f"efg_game(filename={path})")
  found = spiel_cfr.solve_growing(game, lambda state, actions: actions[:1], 0.01, iterations=200)
  assert found.reason == "target"
  assert found.small.num_infosets == 1
