"""Actions that a game lacks: small games, gains and transferred regrets, against slow walks over OpenSpiel's states."""

import collections
import zlib

import numpy as np
import pytest
import random_games

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.abstraction import refining
from spiel_cfr.abstraction.partial_game import PartialGame
from spiel_cfr.cfr.payoff_transfer import largest_factor
from spiel_cfr.policies import forms

_NAMES = ("kuhn_poker", "goofspiel(num_cards=3,imp_info=True)", "liars_dice(dice_sides=2)")
_LARGER = (
  "leduc_poker",
  "goofspiel(num_cards=4,imp_info=True,points_order=descending)",
  "liars_dice(dice_sides=3)",
  "tiny_bridge_2p",
)
_SEEDS = range(12)


def some(state, actions):
  """Keeps actions that depend on the infostate, and at least one."""
  text = state.information_state_string()
  kept = [action for action in actions if zlib.crc32(f"{text} {action}".encode()) % 2]
  return kept or actions[:1]


def load(which):
  """Returns a random game for a number."""
  if isinstance(which, str):
    return spiel_cfr.compile_game(which, vector_form=False)
  settings = {"max_histories": 120, "max_actions": 4, "chance_root": which % 2 == 0}
  return spiel_cfr.compile_game(random_games.random_game(which, **settings))


def names(game):
  """Yields the player, infostate and action of each entry of `actions`."""
  for player, own in enumerate(game.infosets):
    actions = iter(own.actions.tolist())
    for infostate, count in zip(own.infostates, own.num_actions, strict=True):
      for _ in range(count):
        yield player, infostate, next(actions)


def table(game, numbers):
  """Returns numbers of sequences by player and infostate, then by action."""
  result = collections.defaultdict(dict)
  for (player, infostate, action), number in zip(
    names(game), numbers[game.all_action_sequences], strict=True
  ):
    result[player, infostate][action] = number
  return result


def steps(state, policy):
  """Yields what can follow a state: the child, the action and its probability."""
  if state.is_chance_node():
    moves = state.chance_outcomes()
  else:
    player = state.current_player()
    moves = policy[player, state.information_state_string(player)].items()
  for action, probability in moves:
    yield state.child(action), action, probability


def value(state, policy, player):
  if state.is_terminal():
    return state.returns()[player]
  return sum(made * value(child, policy, player) for child, _, made in steps(state, policy))


def decisions(state, policy, player, reach=1.0):
  """Yields a player's states, with the probability of the moves of all others on the way."""
  if state.is_terminal():
    return
  own = state.current_player() == player
  if own:
    yield state, reach
  for child, _, made in steps(state, policy):
    yield from decisions(child, policy, player, reach if own else reach * made)


def best(states, policy, player):
  """Returns what a best response is worth from states on, each with a weight, that its owner can't yet tell apart."""
  total, infosets, states = 0.0, collections.defaultdict(list), list(states)
  while states:
    state, weight = states.pop()
    if state.is_terminal():
      total += weight * state.returns()[player]
    elif state.current_player() == player:
      infosets[state.information_state_string(player)].append((state, weight))
    else:
      states += [(child, weight * made) for child, _, made in steps(state, policy)]
  for same in infosets.values():
    total += max(
      best([(state.child(action), weight) for state, weight in same], policy, player)
      for action in same[0][0].legal_actions()
    )
  return total


def infosets(game, policy):
  """Yields each player's infosets: the player, the infostate and the states with their weights."""
  for player in range(2):
    found = collections.defaultdict(list)
    for state, reach in decisions(game.game.new_initial_state(), policy, player):
      found[state.information_state_string(player)].append((state, reach))
    yield from ((player, infostate, states) for infostate, states in found.items())


def slow_regrets(game, policy):
  """Returns the counterfactual regrets of one iteration by player and infostate, then by action."""
  result = {}
  for player, infostate, states in infosets(game, policy):
    worth = {
      action: sum(weight * value(state.child(action), policy, player) for state, weight in states)
      for action in states[0][0].legal_actions()
    }
    expected = sum(made * worth[action] for action, made in policy[player, infostate].items())
    result[player, infostate] = {action: each - expected for action, each in worth.items()}
  return result


def largest_gap(game, regrets):
  """Returns the sum over players of the largest sum of R(ja) x(ja) over strategies x in sequence form."""
  below, total = np.array(regrets), 0.0
  for tree in game.treeplexes:
    below[tree.root] = 0.0
    for rows, own in reversed(list(tree.infoset_groups())):
      np.add.at(below, tree.parent[own], below[rows].max(axis=0))
    total += below[tree.root]
  return total


@pytest.mark.quick(except_for=["tiny_bridge_2p"])
@pytest.mark.parametrize("which", [*_NAMES, *_LARGER, *_SEEDS])
def test_a_smaller_game_is_the_game_compiled_with_the_filter(which):
  game = load(which)
  made = PartialGame.filtered(game, some)
  walked = spiel_cfr.compile_game(game.game, action_filter=some, vector_form=False)
  # Infosets without a payoff below them are left out.
  assert made.small.num_infosets <= walked.num_infosets
  one, other = spiel_cfr.CFRSolver(made.small), spiel_cfr.CFRSolver(walked)
  one.run(5)
  other.run(5)
  assert one.nash_conv() == pytest.approx(other.nash_conv(), abs=1e-9)
  expected = table(walked, other.average_probabilities())
  for infoset, found in table(made.small, one.average_probabilities()).items():
    assert found == pytest.approx(expected[infoset], abs=1e-9)
  # In the whole game the policy is worth the same, and best responses gain no less.
  probabilities, root = made.to_whole(one.average_sequence_form()), game.game.new_initial_state()
  played = table(game, probabilities)
  for player in range(2):
    worth = value(root, expected, player)
    assert value(root, played, player) == pytest.approx(worth, abs=1e-9)
  policy = spiel_cfr.policies.CompiledTabularPolicy(game, probabilities)
  assert spiel_cfr.nash_conv(game, policy) >= one.nash_conv() - 1e-9


@pytest.mark.parametrize("which", [*_NAMES, *_SEEDS])
def test_gains_are_those_of_a_slow_walk(which):
  game = load(which)
  made = PartialGame.filtered(game, some)
  solver = spiel_cfr.CFRSolver(made.small)
  solver.run(7)
  probabilities = made.to_whole(solver.average_sequence_form())
  policy, gains = table(game, probabilities), table(game, made.gains(probabilities))
  seen = 0
  for player, infostate, states in infosets(game, policy):
    own = sum(weight * value(state, policy, player) for state, weight in states)
    kept = some(states[0][0], states[0][0].legal_actions())
    reached = all(
      past.current_player() != player or action in some(past, past.legal_actions())
      for past, action in history(states[0][0])
    )
    for action, gain in gains[player, infostate].items():
      children = [(state.child(action), weight) for state, weight in states]
      expected = max(best(children, policy, player) - own, 0.0)
      assert gain == pytest.approx(0.0 if action in kept or not reached else expected, abs=1e-9)
      seen += gain > 1e-9
  assert seen or not isinstance(which, str)


def history(state):
  """Yields the states above one, with the action that was taken there."""
  past = state.get_game().new_initial_state()
  for action in state.history():
    yield past.clone(), action
    past.apply_action(action)


@pytest.mark.parametrize("which", [*_NAMES[:2], *_SEEDS])
def test_transferred_regrets_are_those_of_the_same_play(which):
  """Twice: the second time, regrets were transferred and half of them kept before."""
  game = load(which)
  made, played, regrets, average, count = PartialGame.filtered(game, some), [], None, None, 0
  for _ in range(2):
    solver = spiel_cfr.TabularCFRSolver(made.small, alternating_updates=False)
    if count:
      solver.begin_with_regrets(made.to_small(regrets), average, count)
    for _ in range(12):
      played.append((1.0, table(made.small, solver.current_probabilities())))
      solver.run(1)
    probabilities = made.to_whole(solver.average_sequence_form())
    regrets = made.whole_regrets(solver.cumulative_regrets(), probabilities, solver.iteration)
    # At infosets that only the whole game has, all iterations so far count as play of this policy.
    fixed = table(game, probabilities)
    played = [(weight, fixed | policy) for weight, policy in played]
    expected = collections.defaultdict(collections.Counter)
    for weight, policy in played:
      whole = {each: dict.fromkeys(fixed[each], 0.0) | policy[each] for each in policy}
      for infoset, own in slow_regrets(game, whole).items():
        expected[infoset].update({action: weight * regret for action, regret in own.items()})
    for infoset, found in table(game, regrets).items():
      assert found == pytest.approx(dict(expected[infoset]), abs=1e-9)
    # So the regrets say how good the average is in the whole game.
    policy = spiel_cfr.policies.CompiledTabularPolicy(game, probabilities)
    gap = solver.iteration * spiel_cfr.nash_conv(game, policy)
    assert largest_gap(game, regrets) == pytest.approx(gap, abs=1e-8)
    larger = made.extended(probabilities)
    if larger is None:
      break
    count = solver.iteration // 2
    regrets = count / solver.iteration * regrets
    average = forms.sequence_form(larger.small, larger.to_small(probabilities))
    known = table(larger.small, larger.to_small(probabilities))
    played = [
      (weight * count / solver.iteration, {each: policy[each] for each in known})
      for weight, policy in played
    ]
    made = larger


def test_the_discount_is_the_largest_within_the_bound():
  game = load("kuhn_poker")
  made = PartialGame.filtered(game, lambda state, actions: actions[:1])
  solver = spiel_cfr.TabularCFRSolver(made.small, alternating_updates=False)
  solver.run(400)
  probabilities = made.to_whole(solver.average_sequence_form())
  regrets = made.whole_regrets(solver.cumulative_regrets(), probabilities, 400)
  factor = largest_factor(game, regrets, 400)
  assert 0.0 < factor < 1.0
  most = game.per_sequence(game.loss_bounds)
  shares = [
    np.square(np.maximum(factor * regrets[rows], 0.0)).sum(axis=0)
    / (factor * 400 * len(rows) * (2 * most[rows[0]]) ** 2)
    for tree in game.treeplexes
    for rows, _ in tree.infoset_groups()
  ]
  assert np.concatenate(shares).max() == pytest.approx(1.0, rel=1e-12)


def test_a_run_keeps_as_many_past_iterations_as_the_bound_allows(monkeypatch):
  allowed, begins, begin = [], [], spiel_cfr.FullWidthSolver.begin_with_regrets

  def factor(game, regrets, iterations):
    allowed.append((largest_factor(game, regrets, iterations), regrets, iterations))
    return allowed[-1][0]

  def recorded(solver, regrets, average, iterations):
    begins.append((regrets, iterations))
    begin(solver, regrets, average, iterations)

  monkeypatch.setattr(refining, "largest_factor", factor)
  monkeypatch.setattr(spiel_cfr.FullWidthSolver, "begin_with_regrets", recorded)
  refining.solve_refining(
    "kuhn_poker", lambda state, actions: actions[:1], 0.0, iterations=400, rule="regrets"
  )
  assert len(begins) == len(allowed) > 0
  assert min(share for share, _, _ in allowed) < 1.0
  for (share, regrets, iterations), (kept_regrets, kept) in zip(allowed, begins, strict=True):
    assert kept <= max(1.0, share * iterations) < kept + 1
    assert np.allclose(kept_regrets, kept / iterations * regrets, atol=1e-12)


def test_actions_that_are_worth_most_for_their_size_come_first():
  made = PartialGame.filtered(load("kuhn_poker"), lambda state, actions: actions[:1])
  worth, cost = np.array([2.0, 3.0, 0.0, 3.0, 2.0]), np.array([1.0, 1.0, 1.0, 2.0, 4.0])
  # Per sequence they are worth 2, 3, 0, 1.5 and .5; the first, second and fourth have 8 of 10.
  assert made._choose_units(worth, cost).tolist() == [True, True, False, True, False]


def test_forms_that_cannot_leave_out_actions_are_refused():
  with pytest.raises(errors.UnsupportedGameError, match="vector_form=False"):
    PartialGame.filtered(spiel_cfr.compile_game("leduc_poker", vector_form=True), some)
