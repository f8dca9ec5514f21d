"""Search of rivers over vectors of hands: the same subgames as listed histories, and as safe."""

import functools
import signal
import warnings

import numpy as np
import poker_games
import pyspiel
import pytest
from blueprints import subgame
from open_spiel.python import policy as open_spiel_policy

import spiel_cfr
from spiel_cfr import errors, poker, search
from spiel_cfr._numba.arrays import range_starts
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.evaluation.linear_program import solve_lp
from spiel_cfr.evaluation.sequence_form_matrices import payoff_matrix
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, gradients
from spiel_cfr.poker import ranges
from spiel_cfr.policies import forms
from spiel_cfr.search import SearchBot
from spiel_cfr.search.gadgets import find_gadget
from spiel_cfr.search.subgames.search_step import search_step
from spiel_cfr.search.subgames.subgame_solver import SubgameSolver, start_from_policy
from spiel_cfr.search.trees.rivers import RiverTree

# One hole card, and two.
_GAMES = poker_games.UNIVERSAL_POKER[0], poker_games.UNIVERSAL_POKER[2]
# Players who are all in see the public card, and do nothing more.
_ALL_IN = (
  "universal_poker(betting=nolimit,numPlayers=2,numRounds=2,blind=1 2,firstPlayer=1 1,numSuits=2,numRanks=4,"
  "numHoleCards=1,numBoardCards=0 1,stack=4 4,bettingAbstraction=fullgame)"
)


@functools.cache
def solved(name):
  """Returns a game in vector form and listed, its public states, and the same blueprint in both."""
  game = poker.compile_public_game(name, partitioned=False)
  listed = spiel_cfr.compile_game(name, vector_form=False)
  solvers = [spiel_cfr.CFRSolver(each) for each in (game, listed)]
  for solver in solvers:
    solver.run(10)
  blueprint = solvers[0].average_sequence_form()
  return game, listed, search.public_states(listed), blueprint, solvers[1].average_policy()


def resolve_rivers(
  game, blueprint, gadget="follow", player=None, iterations=200, keeps_gains=False
):
  """Returns strategies in sequence form, and steps; `resolve` lists histories of games that have few hands."""
  tree, solver, steps = RiverTree(game), SubgameSolver("dcfr", iterations), []
  start = forms.behavioral_form(game, blueprint)
  found = start.copy()
  for searcher in (0, 1) if player is None else (player,):
    (rivers,) = tree.decisions(searcher)
    before = tree.evaluated(start, searcher)
    after, step = search_step(before, rivers, find_gadget(gadget), solver, keeps_gains=keeps_gains)
    found[tree.owned(searcher)] = after.policy[tree.owned(searcher)]
    steps.append(step)
  return forms.sequence_form(game, found), steps


def rivers_of(game, blueprint, searcher, gadget):
  """Yields each river, the beginning of its subgame, and one of OpenSpiel's states there."""
  tree, deal = RiverTree(game), game.tree.deal
  before = tree.evaluated(forms.behavioral_form(game, blueprint), searcher)
  for river in tree.decisions(searcher)[0]:
    start = start_from_policy(before, river.index, find_gadget(gadget))
    if start is None:
      continue
    state, (first, second) = (
      game.game.new_initial_state(),
      game.tree.boards[tree.board_and_node[river.index][0]].hands,
    )
    pair = next(
      (own, other)
      for own in deal.hands[first].tolist()
      for other in deal.hands[second].tolist()
      if not {*own} & {*other}
    )
    place = game.tree.node_at(*tree.board_and_node[river.index])
    for action in (*deal.actions(*pair), *game.tree.actions_above(place)):
      state.apply_action(action)
    yield river, start, state


def what_is_solved(river, start, gadget):
  """Returns the game of a river, with the gadget's offers."""
  return river.tree.builder.build([start], find_gadget(gadget)).game


def value(game, player):
  """Returns what a player can be sure of, and what the other's first choices offer, in ascending order."""
  strategies = solve_lp(game).sequence_form
  return -evaluate(game, strategies).best_response_values[1 - player]


def taken(game, opponent, sequences):
  """Returns what the opponent gets at once by its sequences, in ascending order."""
  strategies = np.zeros(game.end)
  strategies[game.treeplexes[1 - opponent].root] = 1.0
  return np.sort(gradients(game, strategies)[sequences])


@pytest.mark.parametrize("gadget", ["unsafe", "resolving", "follow"])
@pytest.mark.parametrize("searcher", [0, 1])
@pytest.mark.parametrize("name", _GAMES)
def test_a_river_is_the_subgame_of_the_list(name, searcher, gadget):
  game, _, tree, blueprint, policy = solved(name)
  every = list(rivers_of(game, blueprint, searcher, gadget))
  for river, start, state in every[:: max(1, len(every) // 3)]:
    behind = what_is_solved(river, start, gadget)
    wanted = subgame(tree.public_state_of(state), policy, searcher, gadget=gadget)
    if gadget != "unsafe":
      # v(J), times w.
      own = wanted.infosets[1 - searcher]
      is_choice = [infostate.startswith("choice:") for infostate in own.infostates]
      np.testing.assert_allclose(
        taken(behind, 1 - searcher, behind.layout.sequences(0)[0]),
        taken(wanted, 1 - searcher, own.action_sequences[range_starts(own.num_actions)][is_choice]),
        atol=1e-12,
      )
    for player in (0, 1):
      assert behind.treeplexes[player].depth == wanted.treeplexes[player].depth
    assert value(behind, searcher) == pytest.approx(value(wanted, searcher), abs=1e-9)


def action_values(evaluated):
  """Returns the opponent's values of its actions, by infostate and action."""
  tree, opponent = evaluated.tree, 1 - evaluated.searcher
  values = tree.behavioral_form(evaluated.opponent_action_values())
  infosets, actions = tree.game.infosets[opponent], tree.game.actions[opponent].tolist()
  names = np.repeat(infosets.infostates, infosets.num_actions).tolist()
  return dict(
    zip(zip(names, actions, strict=True), values[infosets.action_sequences].tolist(), strict=True)
  )


@pytest.mark.parametrize("responds", [True, False])
@pytest.mark.parametrize("name", _GAMES)
def test_values_of_a_whole_policy_are_those_of_the_list(name, responds):
  game, _, tree, blueprint, policy = solved(name)
  for searcher in (0, 1):
    rivers = RiverTree(game).evaluated(
      forms.behavioral_form(game, blueprint), searcher, responds=responds
    )
    listed = tree.evaluated(tree.policy_array(policy), searcher, responds=responds)
    assert rivers.opponent_value == pytest.approx(listed.opponent_value, abs=1e-12)
    assert action_values(rivers) == pytest.approx(action_values(listed), abs=1e-12)
    assert np.count_nonzero(rivers.opponent_action_values()[rivers.tree.owned(searcher)]) == 0


def test_private_states_of_rivers_without_decisions():
  game = poker.compile_public_game(_ALL_IN, partitioned=False)
  rivers = RiverTree(game)
  assert {river.players for river in rivers} == {(-1,), (0,)}
  for river in rivers:
    for player in (0, 1):
      names = river.private_states(player)
      assert len(set(names)) == rivers.num_private_states(river.index)[player]


@pytest.mark.parametrize("gadget", ["unsafe", "follow"])
def test_bounds_hold_behind_a_gadget(gadget):
  game, _, _, blueprint, _ = solved(_GAMES[1])
  (river, start, _), *_ = rivers_of(game, blueprint, 0, gadget)
  behind, rng = what_is_solved(river, start, gadget), np.random.default_rng(0)
  bounds = np.arange(float(len(behind.tree.boards[0].hands[1])))
  chooser = None if gadget == "unsafe" else 1
  digests = {
    river.tree.river_game(river.index, start.weights, chooser, each).digest
    for each in (bounds, bounds[::-1])
  }
  assert len(digests) == (1 if gadget == "unsafe" else 2)
  norm = np.linalg.norm(payoff_matrix(behind).toarray(), 2)
  for player in (0, 1):
    assert behind.payoff.sensitivity(behind.treeplexes, player) >= norm * (1 - 1e-9)
  for _ in range(20):
    # Sharp strategies.
    drawn = forms.behavioral_form(behind, rng.random(behind.end) ** 30)
    worth = gradients(behind, forms.sequence_form(behind, drawn))
    for utility in (worth.copy(), -worth):
      backward_pass(behind, take_best, utility)
      assert (np.abs(utility) <= behind.per_sequence(behind.loss_bounds) + 1e-12)[
        played_at(behind)
      ].all()


def played_at(game):
  """Returns the sequences that are actions."""
  return np.concatenate(
    [block.ravel() for tree in game.treeplexes for block, _ in tree.infoset_groups()]
  ).astype(int)


@pytest.mark.quick("resolving")
@pytest.mark.parametrize("gadget", ["unsafe", "resolving", "follow"])
def test_all_rivers_are_solved_as_in_the_list(gadget):
  game, listed, _, blueprint, policy = solved(_GAMES[0])
  strategies, steps = resolve_rivers(game, blueprint, gadget=gadget, iterations=100)
  found = evaluate(game, strategies).nash_conv / 2
  wanted = search.resolve(
    listed, policy, gadget=gadget, continual=False, solver="dcfr", iterations=100
  )
  assert found == pytest.approx(wanted.exploitability, abs=1e-6)
  for step, other in zip(steps, wanted.steps, strict=True):
    assert (step.player, step.min_depth, step.solved) == (other.player, other.min_depth, 18)
    assert (step.value_before, step.value_after) == pytest.approx(
      (other.value_before, other.value_after), abs=1e-6
    )
    assert (
      step.smallest_margin == pytest.approx(other.smallest_margin, abs=1e-6) or gadget == "unsafe"
    )
  parted = poker.compile_public_game(_GAMES[0], partitioned=True)
  # Parts have another numbering.
  there = forms.sequence_form(
    parted, parted.from_actions(game.to_actions(forms.behavioral_form(game, blueprint)))
  )
  again, (step,) = resolve_rivers(parted, 3 * there, gadget=gadget, player=1, iterations=100)
  assert step.value_after == pytest.approx(steps[1].value_after, abs=1e-6)
  others = slice(0, parted.treeplexes[1].root)
  np.testing.assert_allclose(again[others], there[others], atol=1e-12)


def test_unsafe_search_does_harm_and_safe_search_does_not():
  game = solved(_GAMES[0])[0]
  solver = spiel_cfr.CFRSolver(game)
  solver.run(300)
  good = solver.average_sequence_form()
  drawn = forms.behavioral_form(game, np.random.default_rng(0).random(game.end) ** 30)
  # The opponent's blueprint seldom does what a best response does.
  blueprint = forms.sequence_form(game, drawn)
  blueprint[: game.treeplexes[1].root] = good[: game.treeplexes[1].root]
  found = {
    gadget: resolve_rivers(game, blueprint, gadget=gadget, player=0)[1][0]
    for gadget in ("unsafe", "resolving", "follow")
  }
  before = found["unsafe"].value_before
  assert found["unsafe"].value_after > before + 1e-4
  assert all(found[gadget].value_after < before - 1e-4 for gadget in ("resolving", "follow"))


def test_harmful_solutions_are_not_kept():
  game, _, _, blueprint, _ = solved(_GAMES[0])
  _, steps = resolve_rivers(game, blueprint, gadget="resolving", iterations=10)
  assert all(step.refused > 5 and step.solved == 18 - step.refused > 5 for step in steps)
  assert all(step.value_after < step.value_before - 0.001 for step in steps)


def test_a_river_keeps_a_solution_that_is_slightly_worse():
  """The check of the whole game allows what the check of margins allows on a river."""
  tree = RiverTree(solved(_GAMES[0])[0])
  river, searcher = tree[17], 1
  ones = {river.index: tuple(map(np.ones, river.num_private_states))}
  before = tree.evaluated(tree.uniform(), searcher, ones)
  good, _ = search_step(before, [river], find_gadget("unsafe"), SubgameSolver("dcfr", 1000))
  worse, step = search_step(good, [river], find_gadget("resolving"), SubgameSolver("dcfr", 100))
  assert (step.solved, step.refused) == (1, 0)
  assert good.opponent_value + 1e-4 < worse.opponent_value == step.value_after


@pytest.mark.parametrize("gadget", ["unsafe", "resolving"])
def test_unreached_hands_and_rivers(gadget):
  game, listed, *_ = solved(_GAMES[0])
  drawn = np.random.default_rng(12).random(len(game.all_action_sequences)) < 0.6
  blueprint = forms.behavioral_form(game, game.from_actions(drawn))
  _, steps = resolve_rivers(game, forms.sequence_form(game, blueprint), gadget=gadget)
  wanted = search.resolve(
    listed,
    spiel_cfr.policies.to_dict(game, blueprint),
    gadget=gadget,
    continual=False,
    solver="dcfr",
    iterations=200,
  )
  for step, other in zip(steps, wanted.steps, strict=True):
    assert step.unreached == other.unreached
    assert (step.value_before, step.value_after) == pytest.approx(
      (other.value_before, other.value_after), abs=1e-6
    )
  assert steps[0].unreached == 7


# As many hands as bots take vectors for; raises on the river only.
_FIFTY_TWO = (
  "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 2,firstPlayer=1 1,numSuits=4,numRanks=13,"
  "numHoleCards=1,numBoardCards=0 1,raiseSize=2 2,maxRaises=0 1)"
)


@pytest.mark.parametrize(("searcher", "gadget"), [(0, "unsafe"), (0, "resolving"), (1, "safe")])
def test_a_bot_plays_the_solution_of_its_river(searcher, gadget):
  game, blueprint, policy = fifty_two()
  bots = {
    # There is no choice among all hands: "safe" becomes "follow".
    "follow" if gadget == "safe" else gadget: SearchBot(
      policy, searcher, gadget=gadget, iterations=30
    ),
    # Without a blueprint there, the river is solved from both ranges.
    "unsafe": SearchBot(OnlyAbove(policy), searcher, gadget=gadget, iterations=30),
  }
  asked = "follow" if gadget == "safe" else gadget
  for name, bot in bots.items():
    every = rivers_of(game, blueprint, searcher, name)
    river, start, _ = next(
      each
      for each in every
      if game.tree.boards[each[0].tree.board_and_node[each[0].index][0]].cards == (20,)
    )
    cut = river.tree.builder.build([start], find_gadget(name))
    wanted = river.tree.uniform()
    cut.write(SubgameSolver("dcfr", 30).solve(cut), wanted, searcher)
    board, begin = river.tree.board_and_node[river.index]
    nodes = river.tree.betting[begin]
    first = next(number for number, node in enumerate(nodes) if node.player == searcher)
    hands_there = game.tree.boards[board].hands[searcher]
    for place in (0, 10, 20, 30, 50):
      state = game.game.new_initial_state()
      hands = int(hands_there[place]), 51
      for action in (*hands[:: 1 - 2 * searcher], 1, 1, 20, *nodes[first].path[3:]):
        state.apply_action(action)
      decision = game.tree.node_at(board, begin + first)
      sequences = game.layout.sequences(decision)[:, place]
      chances = wanted[sequences].tolist()
      with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert [chance for _, chance in bot.get_policy(state)] == pytest.approx(chances, abs=1e-6)
      # The river is solved at its first hand.
      assert len(heard) == (name != asked and place == 0)


@functools.cache
def fifty_two():
  """Returns a game with as many hands as bots take vectors for, and a blueprint."""
  game = poker.compile_public_game(_FIFTY_TWO, partitioned=False)
  solver = spiel_cfr.CFRSolver(game)
  solver.run(5)
  return game, solver.average_sequence_form(), solver.average_policy()


def test_states_not_read_in_time_are_not_safe():
  _, _, policy = fifty_two()
  bot = SearchBot(policy, 0, seconds=1e-6)
  with pytest.warns(search.UnsafeSearchWarning, match="more seconds"):
    assert sum(chance for _, chance in bot.get_policy(on_a_river())) == pytest.approx(1)
  (found,) = bot._search._solutions.values()
  assert not found.gadget.has_bounds


def on_a_river():
  """Returns a state of player 0's."""
  state = pyspiel.load_game(_FIFTY_TWO).new_initial_state()
  for action in (0, 1, 1, 1, 20):
    state.apply_action(action)
  return state


class OnlyAbove(open_spiel_policy.Policy):
  """A policy that knows nothing of rivers, or says the same at all of them."""

  def __init__(self, policy, below=None):
    super().__init__(None, [0, 1])
    self._policy, self._below = policy, below

  def action_probabilities(self, state, player_id=None):
    if len(state.history()) > 4:
      if self._below is None:
        raise KeyError(state)
      return self._below
    return self._policy.action_probabilities(state, player_id)


def test_resolve_solves_rivers_where_there_are_many_hands(monkeypatch):
  game, blueprint, policy = fifty_two()
  solver = spiel_cfr.CFRSolver(game)
  solver.run(5)
  # Names of infosets are not asked for.
  monkeypatch.setattr(type(game), "infosets", property(lambda self: pytest.fail("infosets")))
  found = search.resolve(game, solver, iterations=30)
  monkeypatch.undo()
  assert found.blueprint_exploitability == pytest.approx(solver.exploitability())
  assert found.exploitability == pytest.approx(sum(step.value_after for step in found.steps) / 2)
  assert found.exploitability < 0.9 * found.blueprint_exploitability
  wanted, steps = resolve_rivers(game, blueprint, iterations=30, keeps_gains=True)
  np.testing.assert_allclose(found.sequence_form, wanted, atol=1e-9)
  assert sum(step.solved for step in steps) > 90
  read = search.resolve(game, policy, iterations=30, player=1)
  assert read.steps[0].value_after == pytest.approx(steps[1].value_after, abs=1e-6)


def test_rivers_are_resolved_from_a_checkpoint_and_a_cut(monkeypatch, tmp_path):
  game, *_ = fifty_two()
  solver = spiel_cfr.CFRSolver(game)
  solver.run(5)
  rivers = search.public_states(game)[3:6]
  options = {"cut": rivers, "iterations": 10, "checkpoint": tmp_path / "search"}
  found = search.resolve(game, solver, **options)
  assert [step.solved + step.refused for step in found.steps] == [3, 3]
  monkeypatch.setattr(SubgameSolver, "solve", lambda *arguments: pytest.fail("solved again"))
  again = search.resolve(game, solver, **options)
  assert again.probabilities.tobytes() == found.probabilities.tobytes()
  with pytest.raises(errors.CheckpointMismatchError):
    search.resolve(game, solver, **{**options, "iterations": 11})


def test_linear_programs_solve_rivers_without_a_pick():
  game, *_ = fifty_two()
  solver = spiel_cfr.CFRSolver(game)
  solver.run(5)
  found = search.resolve(game, solver, cut=RiverTree(game)[:2], solver="lp", gadget="follow")
  for step in found.steps:
    assert (step.solved, step.refused) == (2, 0)
    assert step.smallest_margin > -1e-9
  assert found.exploitability < found.blueprint_exploitability


@pytest.mark.slow
def test_the_policy_played_on_rivers_is_that_of_resolve():
  game, _, policy = fifty_two()
  played = search.played_policy(game, SearchBot(policy, 0, iterations=30))
  wanted = search.resolve(game, policy, iterations=30).exploitability
  assert spiel_cfr.exploitability(game, played) == pytest.approx(wanted, abs=1e-9)


def test_ctrl_c_keeps_the_rivers_that_are_solved(monkeypatch):
  game, *_ = fifty_two()
  solver = spiel_cfr.CFRSolver(game)
  solver.run(5)
  solve, count = SubgameSolver.solve, []

  def interrupting(*arguments):
    count.append(arguments)
    if len(count) == 3:
      signal.raise_signal(signal.SIGINT)
    return solve(*arguments)

  monkeypatch.setattr(SubgameSolver, "solve", interrupting)
  found = search.resolve(game, solver, iterations=30)
  assert not found.is_complete
  assert sum(step.solved + step.refused for step in found.steps) == len(count) == 3
  assert found.exploitability <= found.blueprint_exploitability


def test_bad_input():
  game, _, policy = fifty_two()
  solver = spiel_cfr.CFRSolver(game)
  for arguments in (
    {"gadget": "max_margin"},
    {"gadget": search.Gadget("choice", reach=True)},
    {"iterations": 0},
    {"player": 2},
    {"solver": "none"},
    {"solver": "lp"},
  ):
    with pytest.raises(errors.ArgumentError):
      search.resolve(game, solver, **arguments)
  bot = SearchBot(OnlyAbove(policy, {0: 0.5}), 0, iterations=3)
  with pytest.raises(errors.PolicyError, match="not a distribution"):
    bot.get_policy(on_a_river())
  with pytest.raises(errors.PolicyError):
    search.resolve(game, spiel_cfr.CFRSolver("kuhn_poker"))
  with pytest.raises(errors.NoStatesError, match="full-width"):
    search.resolve(game, solver, solver="external_sampling")
  # Nothing is dealt in public.
  river = ranges.endgame("AhKh,AsKd", "QcQd,JsJh", board="9s7s4h2s5c", pot=500, stack=2000)
  alone = poker.compile_public_game(river.load(), poker.few_bets)
  with pytest.raises(errors.ArgumentError, match="No public cards"):
    search.resolve(alone, spiel_cfr.CFRSolver(alone))
  with pytest.raises(errors.ArgumentError, match="No public cards"):
    RiverTree(poker.compile_public_game("kuhn_poker"))
