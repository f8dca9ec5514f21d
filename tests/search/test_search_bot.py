"""A bot that searches: its whole policy, measured exactly; what it knows, lacks and refuses."""

import copy
import pickle

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as open_spiel_policy

import spiel_cfr
from spiel_cfr import errors, poker, search
from spiel_cfr.bots import PolicyReader
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker import ranges
from spiel_cfr.search import SearchBot, public_states, resolve
from spiel_cfr.search.play import blueprint_search, segments
from spiel_cfr.search.play.river_search import blueprint_ranges
from spiel_cfr.search.play.segments import Segment
from spiel_cfr.search.trees.history_tree import HistoryTree

_DICE = "liars_dice(numdice=1,dice_sides=3)"
_GOOFSPIEL = (
  "turn_based_simultaneous_game(game=goofspiel(num_cards={},imp_info=True,points_order=descending,"
  "returns_type=point_difference))"
)

_SMALL_POKER = (
  "universal_poker(betting=nolimit,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,numSuits=1,numRanks=3,"
  "numHoleCards=1,numBoardCards=0 1,stack=6 6,bettingAbstraction={})"
)


def blueprint_of(name, iterations=5, action_filter=None):
  solver = spiel_cfr.CFRSolver(spiel_cfr.compile_game(name, action_filter=action_filter))
  solver.run(iterations)
  return solver.average_policy()


def states_of(game, player):
  stack = [game.new_initial_state()]
  while stack:
    state = stack.pop()
    if state.current_player() == player:
      yield state
    if not state.is_terminal():
      stack.extend(state.child(action) for action in state.legal_actions())


def bots_of(blueprint, **arguments):
  return [SearchBot(blueprint, player, **arguments) for player in range(2)]


def check_whole(name, iterations):
  blueprint = blueprint_of(name, iterations)
  wanted = resolve(name, blueprint, gadget="max_margin")
  found = spiel_cfr.exploitability(name, bots_of(blueprint, gadget="max_margin"))
  assert found == pytest.approx(wanted.exploitability, abs=1e-9)
  assert wanted.exploitability < wanted.blueprint_exploitability
  safe = spiel_cfr.exploitability(name, bots_of(blueprint))
  assert safe <= wanted.blueprint_exploitability + 1e-9
  # Not quite the same: what the opponent gave away before counts once.
  assert safe <= 1.1 * resolve(name, blueprint).exploitability + 1e-9
  followed = spiel_cfr.exploitability(name, bots_of(blueprint, iterations=50))
  assert followed < wanted.blueprint_exploitability


@pytest.mark.parametrize("name", ["kuhn_poker", _GOOFSPIEL.format(3)])
def test_plays_the_strategy_of_resolve(name):
  check_whole(name, 5)


@pytest.mark.slow
@pytest.mark.parametrize(
  "name", [_DICE, "leduc_poker", "liars_dice(numdice=1,dice_sides=4)", _GOOFSPIEL.format(4)]
)
def test_plays_the_strategy_of_resolve_in_larger_games(name):
  check_whole(name, 10)


def test_plays_the_same_at_all_states_of_an_infoset():
  blueprint, known = blueprint_of(_DICE, 3), {}
  bots = bots_of(blueprint)
  for player in range(2):
    for state in list(states_of(pyspiel.load_game(_DICE), player))[-150:]:
      chances = bots[player].get_policy(state)
      assert known.setdefault(state.information_state_string(), chances) == chances


def test_answers_do_not_depend_on_earlier_questions():
  blueprint, game = blueprint_of(_DICE), pyspiel.load_game(_DICE)
  bot = SearchBot(blueprint, 1)
  for state in list(states_of(game, 1))[-40::8]:
    assert bot.get_policy(state) == SearchBot(blueprint, 1).get_policy(state)


@pytest.mark.parametrize("name", ["kuhn_poker", _DICE, _GOOFSPIEL.format(3), "leduc_poker"])
def test_public_states_from_the_root_on(name):
  tree, blueprint = public_states(name), blueprint_of(name, 3)
  found, entries = tree.histories, tree.policy_array(blueprint)
  rows = tree.row_of
  columns = [found.chance, *(own[row] for own, row in zip(tree.reach(entries), rows, strict=True))]
  wanted = {}
  for node, number in enumerate(tree.state_of.tolist()):
    if number >= 0:
      here = wanted.setdefault(number, {})
      here[tuple(found.history(node))] = [float(column[node]) for column in columns]

  # Segments of one decision, from the root on, with the blueprint's probabilities.
  view = tree.game.view
  first = Segment(view, [view.new_initial_state()], None, 1, 10_000, PolicyReader(blueprint))
  segments, seen = [first], []
  while segments:
    segment = segments.pop()
    for number in range(len(segment.tree)):
      states, probabilities = segment.states_in(number)
      histories = [tuple(state.history()) for state in states]
      node = segment.path(histories[0])[-1]
      if segment.tree.histories.mover[node] >= 0 and segment.tree.histories.infoset[node] < 0:
        segments.append(segment.segment_below(number))
      else:
        seen.append(dict(zip(histories, probabilities.T.tolist(), strict=True)))
  assert sorted(map(sorted, seen)) == sorted(map(sorted, wanted.values()))
  by_first = {min(each): each for each in wanted.values()}
  for each in seen:
    for history, probabilities in each.items():
      assert probabilities == pytest.approx(by_first[min(each)][history])


def test_walks_before_the_game_begins(monkeypatch):
  name = "goofspiel(num_cards=3,imp_info=True,returns_type=point_difference)"
  walks, walk = [], HistoryTree.__init__

  def noted(*args, **named):
    walks.append(1)
    walk(*args, **named)

  monkeypatch.setattr(HistoryTree, "__init__", noted)
  solver = spiel_cfr.CFRSolver(name)
  solver.run(3)
  bots = [SearchBot(solver, player, seed=player) for player in range(2)]
  assert len(walks) == 1
  # Whose turns are not taken one after the other.
  state = pyspiel.load_game(name).new_initial_state()
  pyspiel.evaluate_bots(state, bots, 0)
  assert len(walks) == 1
  # A table does not know its game, so that it is walked when that begins.
  bot = SearchBot(solver.average_policy_dict(), 0)
  state = pyspiel.load_game(name).new_initial_state()
  bot.restart_at(state)
  assert len(walks) == 2
  wanted = bots[0].get_policy(state)
  assert bot.get_policy(state) == pytest.approx(wanted)
  assert len(walks) == 2
  # And on to another game.
  other = pyspiel.load_game("kuhn_poker").new_initial_state()
  bots[1].restart_at(other)
  bots[1].restart_at(state)
  assert bots[0].get_policy(state) == wanted
  assert len(walks) == 4


def first_checks(state, actions):
  return actions if state.move_number() > 2 else actions[:1]


@pytest.mark.parametrize(
  ("solved", "action_filter", "played"),
  [
    ("kuhn_poker", None, "kuhn_poker"),
    ("kuhn_poker", first_checks, "kuhn_poker"),
    (_SMALL_POKER.format("fcpa"), None, _SMALL_POKER.format("fchpa")),
  ],
)
def test_reads_a_table_as_it_reads_any_policy(solved, action_filter, played):
  blueprint, view = blueprint_of(solved, 3, action_filter), GameView(pyspiel.load_game(played))
  found = HistoryTree(view, [view.new_initial_state()], 10_000)
  table = blueprint.action_probability_array
  named = {name: dict(enumerate(table[row])) for name, row in blueprint.state_lookup.items()}
  entries, unknown = segments.read_blueprint(found, PolicyReader(named))
  assert unknown.any() == (solved != played or action_filter is not None)
  again = segments.read_blueprint(found, PolicyReader(blueprint))
  assert again[0].tolist() == entries.tolist()
  assert again[1].tolist() == unknown.tolist()


def test_decisions_where_a_segment_ends_are_not_read():
  view = GameView(pyspiel.load_game("kuhn_poker"))
  histories = HistoryTree(view, [view.new_initial_state()], 10_000, depth=1)
  table = {name: {0: 0.9, 1: 0.1} for name in ("0", "1", "0p", "1p", "2p")}
  entries, unknown = segments.read_blueprint(histories, PolicyReader(table))
  assert unknown.tolist() == [False, False, True]
  assert entries.tolist() == [0.9, 0.1, 0.9, 0.1, 0.5, 0.5]


def test_actions_that_the_blueprint_does_not_know():
  blueprint = blueprint_of("kuhn_poker", 1000, first_checks)
  game = spiel_cfr.compile_game("kuhn_poker")
  for limit in (50_000, 55):
    played = spiel_cfr.policies.from_policy(game, bots_of(blueprint, max_histories=limit))
    policy = spiel_cfr.policies.to_dict(game, played)
    assert spiel_cfr.exploitability(game, policy) < 0.02
    assert policy["1b"][1] == pytest.approx(1 / 3, abs=0.02)


def test_plays_the_blueprint_above_the_limit():
  solver = spiel_cfr.CFRSolver("leduc_poker")
  solver.run(10)
  table = spiel_cfr.policies.to_dict(solver.compiled_game, solver.average_probabilities())
  game = pyspiel.load_game("leduc_poker")
  bot = SearchBot(table, 1, max_histories=600, iterations=20)
  low = SearchBot(table, 1, max_histories=50)
  state = game.new_initial_state()
  for action in (0, 3, 1, 1, 1, 1):
    if state.current_player() == 1:
      wanted = pytest.approx(table[state.information_state_string()])
      assert dict(bot.get_policy(state)) == wanted
    state.apply_action(action)
  # The public card has been dealt.
  wanted = pytest.approx(table[state.information_state_string()])
  assert dict(bot.get_policy(state)) != wanted
  assert dict(low.get_policy(state)) == wanted
  del table[state.information_state_string()]
  with pytest.raises(errors.GameTooLargeError, match="Raise"):
    low.get_policy(state)


def test_bad_input():
  blueprint = blueprint_of("kuhn_poker")
  for arguments in (
    {"seconds": 0},
    {"iterations": 0},
    {"gadget": "none"},
    {"solver": "none"},
    {"max_histories": 0},
    {"seed": -1},
  ):
    with pytest.raises(errors.ArgumentError):
      SearchBot(blueprint, 0, **arguments)
  with pytest.raises(errors.ArgumentError, match="player"):
    SearchBot(blueprint, 2)
  with pytest.raises(errors.ArgumentError, match="not a policy"):
    SearchBot(None, 0)
  first = {
    name: next(states_of(pyspiel.load_game(name), 0))
    for name in ("kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "tiny_hanabi")
  }
  with pytest.raises(errors.UnsupportedGameError, match="two players"):
    SearchBot(blueprint, 0).get_policy(first["kuhn_poker(players=3)"])
  with pytest.raises(errors.UnsupportedGameError, match="sum to"):
    SearchBot(blueprint_of("tiny_hanabi"), 0).get_policy(first["tiny_hanabi"])
  with pytest.raises(errors.PolicyError, match="no probabilities"):
    SearchBot({}, 0).get_policy(first["kuhn_poker"])
  with pytest.raises(errors.PolicyError, match="not a distribution"):
    SearchBot({"0": {0: 0.5}}, 0).get_policy(first["kuhn_poker"])
  with pytest.raises(errors.PolicyError, match="no probabilities"):
    SearchBot(blueprint, 0).get_policy(first["leduc_poker"])
  assert SearchBot(blueprint, 1).get_policy(first["kuhn_poker"]) == []
  assert SearchBot(blueprint, 1).step(first["kuhn_poker"]) == pyspiel.INVALID_ACTION


def test_a_given_solver_is_used():
  blueprint = blueprint_of("kuhn_poker")
  state = pyspiel.load_game("kuhn_poker").new_initial_state().child(0).child(1)
  named, counted, exact = (
    SearchBot(blueprint, 0, **arguments).get_policy(state)
    for arguments in ({"solver": "cfr+"}, {"solver": "cfr+", "iterations": 1000}, {})
  )
  assert named == counted != exact


def test_an_error_raised_again_has_the_same_traceback():
  bot, lengths = SearchBot({}, 0), []
  state = next(states_of(pyspiel.load_game("kuhn_poker"), 0))
  for _ in range(3):
    with pytest.raises(errors.PolicyError) as raised:
      bot.get_policy(state)
    lengths.append(len(raised.traceback))
  assert len(set(lengths)) == 1


def test_reprs():
  assert repr(SearchBot({}, 1)) == "<SearchBot of player 1 with dict>"
  assert repr(search.BeliefBot(search.no_values, 0)) == "<BeliefBot of player 0 with leaf values>"


def test_a_step_that_changes_nothing_leaves_the_blueprint_before_it(monkeypatch):
  step = search.SearchStep(0, 9, 9, 0, 0, 1, np.nan, 0.0, 0.0, 0.0)
  monkeypatch.setattr(blueprint_search, "search_step", lambda before, *arguments: (before, step))
  bot = SearchBot(blueprint_of("kuhn_poker"), 0)
  bot.get_policy(pyspiel.load_game("kuhn_poker").new_initial_state().child(0).child(1))
  ((first, second),) = (
    (attempt.resolving._first, *attempt.resolving._solved.values())
    for attempt in bot._search._attempts.values()
  )
  begins = [each.gifts_from for each in (first, second, second.with_policy(first.policy))]
  assert begins == [0, 9, 9]
  assert first._gifts.any() and not second._gifts.any()


def test_plays_in_tournaments():
  game = pyspiel.load_game("goofspiel(num_cards=3,imp_info=True,returns_type=point_difference)")
  blueprint = blueprint_of(game)
  one, other = SearchBot(blueprint, 0, seed=0), SearchBot(blueprint, 0, seconds=0.001, seed=0)
  second = spiel_cfr.PolicyBot(blueprint, 1, seed=1)
  returns = [pyspiel.evaluate_bots(game.new_initial_state(), [one, second], 3) for _ in range(3)]
  assert all(sum(each) == 0 for each in returns)
  assert len(pyspiel.evaluate_bots(game.new_initial_state(), [other, second], 0)) == 2
  state = game.new_initial_state()
  again = [pickle.loads(pickle.dumps(one)), copy.deepcopy(one)]
  assert all(each.get_policy(state) == one.get_policy(state) for each in again)
  drawn = [[each.step(state) for _ in range(9)] for each in (one, *again)]
  assert drawn[0] == drawn[1] == drawn[2]
  one.restart()
  assert one.provides_policy() and one.player_id() == 0


def test_rivers_in_vector_form():
  river = ranges.endgame("AA,KK", "JJ,AK", board="7s9h9cTc2d", pot=2000, stack=1500).load()
  solver = spiel_cfr.DCFRSolver(poker.compile_public_game(river))
  solver.run(20)
  wanted = solver.average_policy()
  uniform = open_spiel_policy.UniformRandomPolicy(river)
  bot = SearchBot(uniform, 0, iterations=20, gadget="unsafe")
  state = river.new_initial_state()
  state.apply_action(next(action for action, chance in state.chance_outcomes() if chance > 0))
  for _ in range(2):
    assert dict(bot.get_policy(state)) == pytest.approx(wanted.action_probabilities(state))
    state.apply_action(1)
    if not state.is_terminal():
      state.apply_action(max(state.legal_actions()))


class OnlyPairs(open_spiel_policy.Policy):
  """Calls with pairs, and folds all else."""

  def __init__(self):
    super().__init__(None, [0, 1])
    self.asked = 0

  def action_probabilities(self, state, player_id=None):
    self.asked += 1
    hand = state.information_state_string(player_id).partition("[Private: ")[2][:4]
    return {1: 1.0} if hand[0] == hand[2] else {state.legal_actions()[0]: 1.0}


def test_ranges_lead_to_the_river():
  game = pyspiel.load_game(
    "universal_poker(betting=nolimit,bettingAbstraction=fchpa,numPlayers=2,numRounds=2,blind=2 1,firstPlayer=2 1,"
    "numSuits=4,numRanks=4,numHoleCards=2,numBoardCards=0 1,stack=6 6)"
  )
  blueprint = OnlyPairs()
  first, second = (
    SearchBot(blueprint, player, iterations=3, gadget="unsafe") for player in range(2)
  )
  state = game.new_initial_state()
  for card in (0, 1, 2, 3):
    state.apply_action(card)
  assert dict(second.get_policy(state))[1] == 1.0
  with pytest.raises(errors.GameTooLargeError, match="still to be dealt"):
    SearchBot({}, 1).get_policy(state)
  for action in (1, 1, 15):
    state.apply_action(action)
  assert sum(chance for _, chance in first.get_policy(state)) == pytest.approx(1)
  (found,) = first._search._solutions.values()
  ranges, tree = blueprint_ranges(found.tree, first._reader), found.tree.game.tree
  hands = tree.deal.hands[tree.boards[0].hands[1]] // 4
  assert (ranges[0] == 1).all()
  assert ((ranges[1] > 0) == (hands[:, 0] == hands[:, 1])).all()
  # Later decisions there are part of the same solution.
  asked = blueprint.asked
  state.apply_action(1)
  state.apply_action(max(state.legal_actions()))
  assert sum(chance for _, chance in first.get_policy(state)) == pytest.approx(1)
  assert blueprint.asked == asked
