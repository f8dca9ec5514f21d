"""Numbers on pages equal those of a plain recursion over OpenSpiel's states."""

import itertools

import numpy as np
import poker_games
import pyspiel
import pytest
import random_games
import typed_games

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr._numba.arrays import range_starts
from spiel_cfr.explorer import hand_moves, hand_pages, history_pages
from spiel_cfr.explorer.exploration import describe
from spiel_cfr.games.compiled import history_walk
from spiel_cfr.poker import cards, ranges
from spiel_cfr.poker.deal import find_deal
from spiel_cfr.poker.hand_values import HandValues
from spiel_cfr.poker.street_names import StreetNames

_ALL = {"max_infosets": 10**6, "max_histories": 10**6, "max_nodes": 10**6}


def random_policy(compiled, seed):
  """Returns a behavioral form in which a quarter of the probabilities are 0."""
  rng = np.random.default_rng(seed)
  weights = rng.random(compiled.end) * (rng.random(compiled.end) > 0.25)
  return policies.behavioral_form(compiled, weights)


def values_below(state, table):
  """Returns the players' expected payoffs from a state on."""
  if state.is_terminal():
    return np.array(state.returns())
  moves = (
    state.chance_outcomes()
    if state.is_chance_node()
    else table[state.information_state_string()].items()
  )
  return sum(chance * values_below(state.child(action), table) for action, chance in moves)


def by_infoset(game, table):
  """Returns, for each infostate: reach, counterfactual reach, and the value of each action, by recursion."""
  found = {}

  def visit(state, reaches):
    if state.is_terminal():
      return
    player = state.current_player()
    if state.is_chance_node():
      moves, mover = state.chance_outcomes(), game.num_players()
    else:
      moves, mover = table[state.information_state_string()].items(), player
      others = np.prod(np.delete(reaches, player))
      entry = found.setdefault(state.information_state_string(), [0.0, 0.0, {}])
      entry[0] += reaches.prod()
      entry[1] += others
      for action, _ in moves:
        value = values_below(state.child(action), table)[player]
        entry[2][action] = entry[2].get(action, 0.0) + others * value
    for action, chance in moves:
      after = reaches.copy()
      after[mover] *= chance
      visit(state.child(action), after)

  visit(game.new_initial_state(), np.ones(game.num_players() + 1))
  return found


GAMES = {
  "random, zero-sum": lambda: random_games.random_game(11, max_histories=150),
  "random, general-sum": lambda: random_games.random_game(12, zero_sum=False, max_histories=150),
  "random, three players": lambda: random_games.random_game(13, num_players=3, max_histories=150),
  "Kuhn, three players": lambda: pyspiel.load_game("kuhn_poker(players=3)"),
}


@pytest.mark.parametrize("name", GAMES)
def test_infosets(name):
  compiled = spiel_cfr.compile_game(GAMES[name]())
  behavioral = random_policy(compiled, 1)
  table = policies.to_dict(compiled, behavioral)
  found = describe(compiled, behavioral, **_ALL)
  infosets = found.infosets
  expected = by_infoset(compiled.game, table)
  assert infosets.infostates == [name for own in compiled.infostates for name in own]
  starts = np.cumsum(infosets.num_actions) - infosets.num_actions
  for row, infostate in enumerate(infosets.infostates):
    reach, counterfactual, sums = expected[infostate]
    own = slice(starts[row], starts[row] + infosets.num_actions[row])
    assert infosets.reach[row] == pytest.approx(reach, abs=1e-14)
    assert infosets.counterfactual_reach[row] == pytest.approx(counterfactual, abs=1e-14)
    chances = list(table[infostate].values())
    assert infosets.probability[own].tolist() == chances
    if not counterfactual:
      assert np.isnan(infosets.action_value[own]).all()
      assert np.isnan([infosets.value[row], infosets.best_value[row]]).all()
      continue
    wanted = np.array([sums[action] for action in table[infostate]]) / counterfactual
    np.testing.assert_allclose(infosets.action_value[own], wanted, atol=1e-9)
    assert infosets.value[row] == pytest.approx(float(wanted @ chances), abs=1e-9)
    assert infosets.best_value[row] >= infosets.value[row] - 1e-9
    assert infosets.is_best[own].sum() == 1


@pytest.mark.parametrize("name", GAMES)
def test_best_responses(name):
  """Best response values at the owner's first infosets add up to the total value."""
  compiled = spiel_cfr.compile_game(GAMES[name]())
  behavioral = random_policy(compiled, 2)
  infosets = describe(compiled, behavioral, **_ALL).infosets
  table = policies.to_dict(compiled, behavioral)
  for player in range(compiled.num_players):
    best = spiel_cfr.best_response(compiled, table, player)
    own = np.flatnonzero(infosets.player == player)
    starts = np.cumsum(infosets.num_actions) - infosets.num_actions
    chosen = {}
    for row in own.tolist():
      place = int(infosets.is_best[starts[row] : starts[row] + infosets.num_actions[row]].argmax())
      chosen[infosets.infostates[row]] = list(table[infosets.infostates[row]])[place]
    assert chosen == best.policy
    responding = table | {key: {action: 1.0} for key, action in chosen.items()}
    expected = by_infoset(
      compiled.game,
      {key: dict.fromkeys(table[key], 0.0) | entries for key, entries in responding.items()},
    )
    for row in own.tolist():
      _, counterfactual, sums = expected[infosets.infostates[row]]
      if counterfactual:
        value = sums[chosen[infosets.infostates[row]]] / counterfactual
        assert infosets.best_value[row] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", GAMES)
def test_tree(name):
  compiled = spiel_cfr.compile_game(GAMES[name]())
  behavioral = random_policy(compiled, 3)
  table = policies.to_dict(compiled, behavioral)
  found = describe(compiled, behavioral, **_ALL)
  tree = found.tree
  assert found.header["cut"] == []

  def check(state, node):
    np.testing.assert_allclose(tree.values[node], values_below(state, table), atol=1e-9)
    if state.is_terminal():
      assert tree.mover[node] == history_walk.TERMINAL
      return 1
    if state.is_chance_node():
      assert tree.mover[node] == history_walk.CHANCE
      moves = state.chance_outcomes()
    else:
      assert tree.mover[node] == state.current_player()
      infostate = found.infosets.infostates[tree.row[node]]
      assert infostate == state.information_state_string()
      moves = list(table[infostate].items())
    assert tree.num_children[node] == len(moves)
    assert tree.num_cut[node] == 0
    count = 1
    for place, (action, chance) in enumerate(moves):
      child = tree.first_child[node] + place
      assert tree.probability[child] == pytest.approx(chance, abs=1e-15)
      known = state.action_to_string(state.current_player(), action)
      if name == "Kuhn, three players" and state.is_chance_node():
        known = "JQKA"[action]
      assert found.names[tree.move[child]] == known
      count += check(state.child(action), child)
    return count

  assert check(compiled.game.new_initial_state(), 0) == len(tree.mover) == compiled.num_states


def test_the_likeliest_parts_are_kept():
  compiled = spiel_cfr.compile_game("leduc_poker")
  behavioral = random_policy(compiled, 4)
  whole = describe(compiled, behavioral, **_ALL)
  part = describe(compiled, behavioral, max_infosets=100, max_histories=500, max_nodes=10**6)
  assert len(part.tree.mover) == 500
  assert len(part.infosets.player) == 100
  assert "8,957 of 9,457 histories" in part.header["cut"][0]
  assert "836 of 936 infosets" in part.header["cut"][1]
  assert part.infosets.reach.min() >= np.sort(whole.infosets.reach)[-100]
  kept = {name: row for row, name in enumerate(part.infosets.infostates)}
  starts = np.cumsum(part.infosets.num_actions) - part.infosets.num_actions
  whole_starts = np.cumsum(whole.infosets.num_actions) - whole.infosets.num_actions
  for row, name in enumerate(whole.infosets.infostates):
    if name in kept:
      count = whole.infosets.num_actions[row]
      own, other = (
        table.action_value[begin : begin + count]
        for table, begin in (
          (part.infosets, starts[kept[name]]),
          (whole.infosets, whole_starts[row]),
        )
      )
      np.testing.assert_array_equal(own, other)

  def reaches(tree):
    result = tree.probability.copy()
    for node in range(len(result)):
      first = tree.first_child[node]
      result[first : first + tree.num_children[node]] *= result[node]
    return result

  reach = np.sort(reaches(whole.tree))[::-1]
  np.testing.assert_allclose(np.sort(reaches(part.tree))[::-1], reach[:500], atol=1e-15)
  # Whatever a node has lost is counted.
  assert (part.tree.num_cut > 0).any()
  lost = (
    part.tree.num_cut[part.tree.num_children > 0]
    + part.tree.num_children[part.tree.num_children > 0]
  )
  assert (lost >= 2).all()


def test_actions_have_names_where_no_history_is_kept():
  compiled = spiel_cfr.compile_game("kuhn_poker")
  found = describe(
    compiled, policies.uniform(compiled), max_infosets=12, max_histories=1, max_nodes=100
  )
  assert len(found.tree.mover) == 1
  assert {found.names[move] for move in found.infosets.move} == {"0", "1"}


def _actions_by_infostate(found):
  table = found.infosets
  starts = np.cumsum(table.num_actions)[:-1]
  return {
    name: (chances, values)
    for name, chances, values in zip(
      table.infostates,
      np.split(table.probability, starts),
      np.split(table.action_value, starts),
      strict=True,
    )
  }


_THREE_ROUNDS = (
  "universal_poker(numPlayers=2,numSuits=2,betting=limit,numRounds=3,blind=1 2,firstPlayer=1 1 1,"
  "numRanks=3,numHoleCards=1,numBoardCards=0 1 1,raiseSize=2 2 2,maxRaises=1 1 1)"
)
VECTOR_GAMES = {
  "leduc": lambda: (pyspiel.load_game("leduc_poker"), None),
  "one hole card": lambda: (pyspiel.load_game(poker_games.UNIVERSAL_POKER[0]), None),
  "two board cards": lambda: (pyspiel.load_game(poker_games.UNIVERSAL_POKER[1]), None),
  "two hole cards": lambda: (pyspiel.load_game(poker_games.UNIVERSAL_POKER[2]), None),
  "three rounds": lambda: (pyspiel.load_game(_THREE_ROUNDS), None),
  "river endgame": lambda: (poker_games.random_endgame(21, 5).load(), poker_games.check_or_pot),
  "turn endgame": lambda: (
    poker_games.random_endgame(22, 3, poker_games.TURN).load(),
    poker_games.check_or_pot,
  ),
}


@pytest.mark.quick(except_for=["three rounds"])
@pytest.mark.parametrize(
  "name",
  [
    pytest.param(name, marks=pytest.mark.slow if "endgame" in name else ()) for name in VECTOR_GAMES
  ],
)
def test_public_states(name):
  """Values of hands at public states equal those of their infosets in the listed game."""
  game, kept = VECTOR_GAMES[name]()
  compiled = spiel_cfr.poker.compile_public_game(game, kept)
  names = StreetNames.of(find_deal(game))
  enumerated = spiel_cfr.compile_game(game, action_filter=kept, infostate=names, vector_form=False)
  behavioral = random_policy(compiled, 5)
  table = policies.to_dict(compiled, behavioral)
  expected = describe(enumerated, policies.from_policy(enumerated, table), **_ALL)
  wanted = _actions_by_infostate(expected)
  reach = dict(zip(expected.infosets.infostates, expected.infosets.reach, strict=True))
  found = describe(compiled, behavioral, **_ALL)
  np.testing.assert_allclose(found.tree.values[0], expected.tree.values[0], atol=1e-9)
  assert sum(state.probability.shape[1] for state in found.public_states) == len(wanted)
  # Moves have names, those of chance too; the first name is that of no move.
  assert (found.tree.move[1:] > 0).all()
  assert (found.tree.move < len(found.names)).all()

  tree = compiled.tree
  names = [
    dict(
      zip(own.action_sequences[range_starts(own.num_actions)].tolist(), own.infostates, strict=True)
    )
    for own in compiled.infosets
  ]
  scale = max(map(abs, compiled.payoff_range))
  seen = set()
  decisions = [node for node in range(len(found.tree.mover)) if found.tree.row[node] >= 0]
  namer = hand_moves.HandMoves(compiled)
  values = HandValues(tree, compiled.layout, behavioral)
  every_board = set(range(len(tree.boards)))
  states = list(hand_pages._walk_states(tree, values, every_board, namer))
  assert len(states) == len(found.tree.mover)
  for node in decisions:
    number, place, _ = states[node]
    state, mover = found.public_states[found.tree.row[node]], found.tree.mover[node]
    for player, own in enumerate(state.ranges):
      mass = np.where(own.opponent_weight > 0, own.weight * own.opponent_weight, 0)
      if mass.sum():
        value = (mass * np.nan_to_num(own.value)).sum() / mass.sum()
        assert value == pytest.approx(found.tree.values[node, player], abs=1e-9 * scale)
        assert (own.equity[mass > 0] >= -1e-12).all()
        assert (own.equity[mass > 0] <= 1 + 1e-12).all()
      else:
        assert np.isnan(found.tree.values[node, player])
    if mover < 0:
      assert state.moves == []
      continue
    total = 0.0
    order = namer.order(number, place)
    for lane, first in enumerate(
      compiled.layout.sequences(tree.node_at(number, place))[0].tolist()
    ):
      infostate = names[mover][first]
      chances, values = wanted[infostate]
      seen.add(infostate)
      np.testing.assert_allclose(state.probability[:, lane], chances[order], atol=1e-12)
      np.testing.assert_allclose(state.action_value[:, lane], values[order], atol=1e-9 * scale)
      total += reach[infostate]
    mass = (state.ranges[mover].weight * state.ranges[mover].opponent_weight).sum()
    share = mass * tree.boards[number].probability / tree.deal.total
    assert share == pytest.approx(total, abs=1e-12)
  assert seen == set(wanted)


def test_equity():
  """Equity is the share of showdowns won, over all hands and rivers that can come."""
  game = poker_games.random_endgame(23, 4, poker_games.TURN).load()
  compiled = spiel_cfr.poker.compile_public_game(game, poker_games.check_or_pot)
  found = describe(compiled, policies.uniform(compiled), **_ALL)
  deal, board = compiled.tree.deal, compiled.tree.boards[0].cards
  ranges = found.public_states[0].ranges
  for player, own in enumerate(ranges):
    other = ranges[1 - player]
    for place, hand in enumerate(own.hands.tolist()):
      won = total = 0.0
      for opponent, weight in zip(other.hands.tolist(), other.weight.tolist(), strict=True):
        held = [*deal.hands[hand], *deal.hands[opponent]]
        if len(set(held)) < 4:
          continue
        for river in set(range(52)) - set(board) - set(held):
          mine, theirs = cards.hand_strengths(
            deal.hands[[hand, opponent]], (*board, river), deal.num_suits
          )
          total += weight
          won += weight * (0.5 + 0.5 * np.sign(mine - theirs))
      assert own.equity[place] == pytest.approx(won / total, abs=1e-12)


def test_public_states_are_cut_by_reach():
  compiled = spiel_cfr.poker.compile_public_game("leduc_poker")
  behavioral = random_policy(compiled, 6)
  whole = describe(compiled, behavioral, **_ALL)
  part = describe(compiled, behavioral, max_infosets=100, max_histories=1, max_nodes=1)
  assert 90 <= sum(state.probability.shape[1] for state in part.public_states) <= 100
  assert "public states" in part.header["cut"][0]
  np.testing.assert_array_equal(part.tree.values[0], whole.tree.values[0])
  kept = part.tree.num_children.sum() + 1
  assert kept == len(part.tree.mover)
  # One state is there, however large.
  least = describe(compiled, behavioral, max_infosets=1, max_histories=1, max_nodes=1)
  assert len(least.tree.mover) == 1
  assert least.tree.num_cut[0] == 2


def test_runouts():
  """A page of some runouts has the numbers of the whole page, and the values of every next card."""
  compiled = spiel_cfr.poker.compile_public_game(_THREE_ROUNDS)
  behavioral = random_policy(compiled, 7)
  whole = describe(compiled, behavioral, **_ALL)
  assert whole.header["cut"] == []
  first = describe(compiled, behavioral, **_ALL | {"max_infosets": 200})
  assert {" ".join(state.board) for state in first.public_states} == {""}
  part = describe(compiled, behavioral, **_ALL, runouts=["2c", "3d4c"])
  assert "boards; choose the boards to show" in part.header["cut"][0]
  boards = {"", "2c", "3d", "3d 4c"}
  assert {" ".join(state.board) for state in part.public_states} == boards

  def by_path(found):
    paths, rows = {0: ()}, {}
    for node in range(len(found.tree.mover)):
      begin = found.tree.first_child[node]
      for child in range(begin, begin + found.tree.num_children[node]):
        paths[child] = (*paths[node], found.names[found.tree.move[child]])
    for node, path in paths.items():
      row = found.tree.row[node]
      state = found.public_states[row] if row >= 0 else None
      rows[path] = found.tree.mover[node], found.tree.values[node].tolist(), state
    return rows

  expected, found = by_path(whole), by_path(part)
  assert set(found) < set(expected)
  for path, (mover, values, state) in found.items():
    assert mover == expected[path][0]
    np.testing.assert_allclose(values, expected[path][1], atol=1e-12)
    if state is not None:
      assert state.board == expected[path][2].board
      np.testing.assert_allclose(state.action_value, expected[path][2].action_value, atol=1e-12)
      np.testing.assert_array_equal(state.is_best, expected[path][2].is_best)
  # Each card of the next deal has values, also where its board is not on the page.
  closed = [path for path, (_, _, state) in found.items() if state is None and path[-1] == "4d"]
  assert closed


@pytest.fixture(scope="module")
def three_rounds():
  compiled = spiel_cfr.poker.compile_public_game(_THREE_ROUNDS)
  return compiled, random_policy(compiled, 1)


@pytest.mark.parametrize("runout", ["2c2c", "9c", "2c3c4c", "xx", 7])
def test_runouts_that_can_not_be_dealt(runout, three_rounds):
  with pytest.raises(errors.ArgumentError):
    describe(*three_rounds, **_ALL, runouts=[runout])


def test_equivalent_runouts_are_one():
  """Suits that play alike have one board; its name lists the others, each of which finds it."""
  game = "universal_poker(numPlayers=2,numSuits=3,betting=limit,numRounds=3,blind=1 1,firstPlayer=1 1 1,numRanks=3,"
  game += "numHoleCards=1,numBoardCards=0 1 1,raiseSize=2 4 4,maxRaises=1 1 1)"
  compiled = spiel_cfr.poker.compile_public_game(game, merge_suits=True)
  behavioral = random_policy(compiled, 1)
  pages = [
    describe(compiled, behavioral, **_ALL, runouts=[runout]) for runout in ("2d3c", "2c3h", "2h3d")
  ]
  for page in pages:
    assert {" ".join(state.board) for state in page.public_states} == {"", "2c", "2c 3d"}
    assert {"2c (2d, 2h)", "3d (3h)", "3c"} <= set(page.names)
    np.testing.assert_array_equal(page.tree.values, pages[0].tree.values)


TYPED_GAMES = {
  "liar's dice": lambda: pyspiel.load_game("liars_dice(numdice=1,dice_sides=3)"),
  "leduc": lambda: pyspiel.load_game("leduc_poker"),
  "tiny bridge": lambda: pyspiel.load_game("tiny_bridge_2p"),
} | {
  f"random {seed}": lambda seed=seed: typed_games.TypedGame(seed, zero_sum=seed % 3 > 0)
  for seed in range(6)
}


@pytest.mark.quick(except_for=["tiny bridge"])
@pytest.mark.parametrize("name", TYPED_GAMES)
def test_types(name):
  """Values of types at public states equal those of their infosets in the listed game."""
  game = TYPED_GAMES[name]()
  compiled = spiel_cfr.games.compile_vector_game(game)
  tree = compiled.tree
  behavioral = random_policy(compiled, 8)
  table = policies.to_dict(compiled, behavioral)
  enumerated = spiel_cfr.compile_game(game, vector_form=False)
  expected = describe(enumerated, policies.from_policy(enumerated, table), **_ALL)
  wanted = _actions_by_infostate(expected)
  reach = dict(zip(expected.infosets.infostates, expected.infosets.reach, strict=True))
  found = describe(compiled, behavioral, **_ALL)
  assert (found.header["cut"], found.num_infosets) == ([], len(wanted))
  evaluated = spiel_cfr.evaluation.evaluate.evaluate(
    compiled, policies.sequence_form(compiled, behavioral)
  )
  np.testing.assert_allclose(found.tree.values[0], evaluated.expected_values, atol=1e-9)

  places = [0]
  for place in places:
    if place >= 0:
      places += tree.child[tree.first_edge[place] : tree.first_edge[place + 1]].tolist()
  assert len(places) == len(found.tree.mover)
  names = [
    dict(
      zip(own.action_sequences[range_starts(own.num_actions)].tolist(), own.infostates, strict=True)
    )
    for own in compiled.infosets
  ]
  mass = np.ones(len(places))
  for node, place in enumerate(places):
    first, count = found.tree.first_child[node], found.tree.num_children[node]
    children = slice(first, first + count)
    mass[children] = mass[node] * found.tree.probability[children]
    if place < 0:
      assert (found.tree.mover[node], count) == (history_walk.TERMINAL, 0)
      continue
    state, mover = found.public_states[found.tree.row[node]], found.tree.mover[node]
    assert mover == tree.player[place]
    if mass[node]:
      # What follows a public state is all of it.
      assert mass[children].sum() == pytest.approx(mass[node], abs=1e-12)
      values = mass[children] @ np.nan_to_num(found.tree.values[children]) / mass[node]
      np.testing.assert_allclose(values, found.tree.values[node], atol=1e-9)
    for player, own in enumerate(state.ranges):
      shares = own.weight * own.opponent_weight
      assert shares.sum() == pytest.approx(mass[node], abs=1e-12)
      if mass[node]:
        value = shares @ np.nan_to_num(own.value) / mass[node]
        assert value == pytest.approx(found.tree.values[node, player], abs=1e-9)
    if mover < 0:
      assert state.moves == []
      continue
    assert found.tree.move[children].tolist() == state.moves
    own = state.ranges[mover]
    for lane, sequence in enumerate(compiled.layout.sequences(place)[0].tolist()):
      infostate = names[mover][sequence]
      chances, values = wanted.pop(infostate)
      np.testing.assert_allclose(state.probability[:, lane], chances, atol=1e-12)
      np.testing.assert_allclose(state.action_value[:, lane], values, atol=1e-9)
      assert own.weight[lane] * own.opponent_weight[lane] == pytest.approx(
        reach[infostate], abs=1e-12
      )
  assert not wanted


def test_types_are_cut_by_reach_and_named():
  compiled = spiel_cfr.games.compile_vector_game("leduc_poker")
  behavioral = random_policy(compiled, 9)
  part = describe(compiled, behavioral, max_infosets=100, max_histories=1, max_nodes=1000)
  assert 90 <= part.num_infosets <= 100
  assert "public states" in part.header["cut"][0]
  assert part.grid["unit"] == "type"
  # Of their names at the root, what differs.
  assert part.grid["names"] == list("012345")
  assert part.grid["labels"] == [["0", "1", "2"], ["3", "4", "5"]]
  with pytest.raises(spiel_cfr.errors.GameTooLargeError, match="465 public states"):
    describe(compiled, behavioral, max_infosets=100, max_histories=1, max_nodes=464)


def test_grid():
  deal = find_deal(poker_games.random_endgame(1, 3).load())
  grid = hand_pages.hand_grid(deal, [cards.card_name(card) for card in range(52)])
  place = {
    name: (row, column)
    for name, row, column in zip(grid["names"], grid["row"], grid["column"], strict=True)
  }
  for name, label in {
    "AcKc": "AKs",
    "AdKc": "AKo",
    "AdAc": "AA",
    "3d2c": "32o",
    "7h5h": "75s",
  }.items():
    row, column = place[name]
    assert grid["labels"][row][column] == label
  assert len(list(itertools.chain(*grid["labels"]))) == 169


def test_too_many_histories():
  with pytest.raises(spiel_cfr.errors.GameTooLargeError, match="max_nodes=10"):
    describe(
      spiel_cfr.compile_game("kuhn_poker"),
      policies.uniform(spiel_cfr.compile_game("kuhn_poker")),
      max_nodes=10,
      max_infosets=5,
      max_histories=5,
    )


def test_likeliest_keeps_the_first_of_equals():
  assert history_pages.likeliest(
    np.array([0.5, 0.0, 1.0, 0.5, 0.5]), np.ones(5, bool), 3
  ).tolist() == [0, 2, 3]


def _labels(game, **limits):
  """Returns what is shown of a game's uniform policy, and labels by infostate."""
  compiled = spiel_cfr.compile_game(game, vector_form=False)
  table = describe(compiled, policies.uniform(compiled), **_ALL | limits).infosets
  return table, dict(zip(table.infostates, table.labels, strict=True))


def test_labels_are_moves_that_a_player_knows():
  _, labels = _labels("kuhn_poker")
  assert labels["0"] == "J"
  assert labels["1pb"] == "Q · Pass · Bet"
  assert labels["2p"] == "K · Pass"
  table, labels = _labels("leduc_poker")
  assert len(set(zip(table.player, table.labels, strict=True))) == 936
  (public,) = (each for each in labels if "[Private: 5]" in each and "[Round2: 2 2]" in each
               and "[Round1: 1 1]" in each and "[Public: 0]" in each)  # fmt: skip
  assert labels[public] == "Kd · Call · Call · Jc · Raise · Raise"
  _, labels = _labels("liars_dice(dice_sides=2)")
  assert labels["2 1-1 1-2"] == "Roll 2 · 1-1 · 1-2"


def test_labels_where_moves_do_not_tell_infosets_apart():
  # Of histories that the page lacks nothing is known.
  table, labels = _labels("leduc_poker", max_histories=500)
  (last,) = (each for each in labels if "[Private: 5]" in each and "[Round2: 1 2 2]" in each
             and "[Round1: 1 1]" in each and "[Public: 0]" in each)  # fmt: skip
  assert labels[last] == (
    "[Private: 5] [Round 2] [Pot: 14] [Money: 91 95] [Public: 0] [Round1: 1 1] [Round2: 1 2 2]"
  )
  assert len(set(zip(table.player, table.labels, strict=True))) == 936
  # One learns of other moves what became of one's own.
  table, labels = _labels("dark_hex(board_size=2)")
  assert len(set(zip(table.player, table.labels, strict=True))) == len(labels) == 134


def test_bets_have_sizes_and_an_order():
  game = ranges.endgame("AA,KK", "QQ,JJ", board="7s9h9cTc2d", pot=500, stack=1500).load()
  compiled = spiel_cfr.compile_game(game)
  found = describe(compiled, policies.uniform(compiled), **_ALL)
  state, tree = found.public_states[0], found.tree
  assert state.board == ["7s", "9h", "9c", "Tc", "2d"]
  moves = ["Check", "Bet 250 (half the pot)", "Bet 500 (the pot)", "All-in 1500"]
  assert [found.names[move] for move in state.moves] == moves
  children = tree.first_child[0] + np.arange(4)
  assert [found.names[move] for move in tree.move[children]] == moves
  after = found.public_states[tree.row[children[1]]]
  assert [found.names[move] for move in after.moves] == [
    "Fold",
    "Call 250",
    "Raise by 500 (half the pot)",
    "Raise by 1000 (the pot)",
    "All-in 1500",
  ]
  # With listed hands they have the same names, and chance deals cards.
  listed = spiel_cfr.compile_game(game, vector_form=False)
  names = describe(listed, policies.uniform(listed), **_ALL).names
  assert set(moves) < set(names)
  assert "AdAc QdQc" in names
