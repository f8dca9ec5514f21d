"""Public states, subgames and whole policies whose subgames were solved again."""

import copy
import math
import pickle
import signal

import numpy as np
import pyspiel
import pytest
from blueprints import blueprint, subgame
from open_spiel.python import policy as open_spiel_policy
from partly_seen_games import PartlySeenGame

import spiel_cfr
from spiel_cfr import errors, search
from spiel_cfr.evaluation import evaluate, linear_program, sequence_form_matrices
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.policies import forms
from spiel_cfr.search.subgames import resolving, subgame_solver
from spiel_cfr.search.subgames.search_step import search_step
from spiel_cfr.search.subgames.subgame_solver import SubgameSolver, start_from_policy
from spiel_cfr.search.trees import public_state_trees
from spiel_cfr.search.trees.history_tree import tree_of

_SAFE = [name for name in search.GADGETS if name != "unsafe"]


@pytest.fixture(scope="module")
def leduc():
  """Leduc poker, its public states, and a policy of ten iterations."""
  game = spiel_cfr.compile_game("leduc_poker")
  return game, search.public_states(game), blueprint(game)


@pytest.mark.parametrize(
  ("name", "decisions", "largest"),
  [
    # Counted by another program, from OpenSpiel's strings.
    ("leduc_poker", 186, 30),
    ("liars_dice(dice_sides=4)", 256, 16),
    ("goofspiel(imp_info=True,num_cards=4,points_order=descending)", 78, 56),
    ("dark_hex(board_size=2,gameversion=adh)", 33, 66),
  ],
)
def test_public_states_are_as_many_as_there_are(name, decisions, largest):
  tree = search.public_states(name)
  found = [state for state in tree if max(state.players) >= 0]
  assert len(found) == decisions
  assert max(len(list(state.states())) for state in found) == largest


@pytest.mark.parametrize("seed", range(6))
def test_public_states_hold_whole_infosets_and_form_a_tree(seed):
  game = spiel_cfr.compile_game(PartlySeenGame(seed, depth=4))
  tree = search.public_states(game)
  known = {}
  for state in tree:
    assert state.parent is None or state in state.parent.children
    for each in state.states():
      assert tree.public_state_of(each) == state
      if each.current_player() >= 0:
        for player in (0, 1):
          name = each.information_state_string(player)
          assert known.setdefault((player, len(each.history()), name), state) == state
          assert name in state.private_states(player)
  assert sum(len(list(state.states())) for state in tree) == game.num_states - game.num_terminals


def test_reaches_and_values_are_open_spiels(leduc):
  game, tree, policy = leduc
  state = tree.natural_cut()[7]
  expected = []
  for each in state.states():
    reach, replayed = 1.0, game.game.new_initial_state()
    for action in each.history():
      if replayed.is_chance_node():
        reach *= dict(replayed.chance_outcomes())[action]
      else:
        reach *= policy.action_probabilities(replayed)[action]
      replayed.apply_action(action)
    expected.append(reach)
  np.testing.assert_allclose(state.reach(policy), expected, rtol=1e-12)
  for player in (0, 1):
    likely, worth = state.beliefs(policy, player), state.private_values(policy, player)
    assert list(likely) == list(worth) == state.private_states(player)
    masses = dict.fromkeys(likely, 0.0)
    for each, reach in zip(state.states(), expected, strict=True):
      masses[each.information_state_string(player)] += reach / sum(expected)
    assert likely == pytest.approx(masses)
    mean = sum(likely[name] * worth[name] for name in likely)
    assert mean == pytest.approx(state.value(policy, player))
  assert state.parent.beliefs(policy, 0) == {}  # where the public card is dealt
  assert tree[0].value(policy) == pytest.approx(spiel_cfr.expected_values(game, policy)[0])
  children = sum(child.reach(policy).sum() * child.value(policy, 1) for child in tree[0].children)
  assert children == pytest.approx(spiel_cfr.expected_values(game, policy)[1])


def test_public_states_evaluate_a_policy_once(monkeypatch):
  game = spiel_cfr.compile_game("kuhn_poker")
  tree, policy = search.public_states(game), open_spiel_policy.TabularPolicy(game.game)
  counts, evaluated = [], type(tree).evaluated

  def counted(*arguments, **named):
    counts.append(1)
    return evaluated(*arguments, **named)

  monkeypatch.setattr(type(tree), "evaluated", counted)
  before = [state.value(policy) for state in tree]
  assert sum(counts) == 1
  assert tree[0].ranges(policy)[0] == 1.0
  assert sum(counts) == 1
  # The same object with other numbers is another policy.
  policy.action_probability_array[:] = [0.0, 1.0]
  assert [state.value(policy) for state in tree] != pytest.approx(before, nan_ok=True)
  assert tree[0].value(policy) == pytest.approx(spiel_cfr.expected_values(game, policy)[0])


@pytest.mark.parametrize("gadget", list(search.GADGETS))
@pytest.mark.parametrize("searcher", [0, 1])
def test_gadgets_have_their_defining_values(leduc, gadget, searcher):
  game, tree, policy = leduc
  state = tree.natural_cut()[3]
  sub = subgame(state, policy, searcher, gadget=gadget)
  value = spiel_cfr.solve_lp(sub).value * (1 - 2 * searcher)
  front = search.GADGETS[gadget].front
  # What the opponent is offered costs the searcher, for certain, no more than the blueprint does.
  if front == "pick":
    assert value >= -1e-9
  for solver in (spiel_cfr.CFRPlusSolver(sub), spiel_cfr.Restarted(spiel_cfr.CFRPlusSolver(sub))):
    solver.run(300)
    low, high = -solver.nash_conv(), solver.nash_conv()
    found = spiel_cfr.expected_values(sub, solver.average_policy())[0] * (1 - 2 * searcher)
    assert low - 1e-9 <= found - value <= high + 1e-9
  own = sub.infostates[searcher]
  assert set(own) <= set(game.infostates[searcher])


def test_an_unsafe_subgame_of_the_whole_game_is_the_game(leduc):
  game, tree, policy = leduc
  sub = subgame(tree[0], policy, 0, gadget="unsafe")
  assert spiel_cfr.solve_lp(sub).value == pytest.approx(spiel_cfr.solve_lp(game).value, abs=1e-9)
  assert [len(own) for own in sub.infostates] == [len(own) for own in game.infostates]


@pytest.mark.quick(except_for=["leduc*"])
@pytest.mark.parametrize(
  ("name", "iterations", "alone", "cut", "continual"),
  [
    # The aims that a prototype has set, which solved the same programs; which solution they find is up to them.
    ("leduc_poker", 10, 0.88858, 0.2872, 0.1045),
    ("liars_dice(dice_sides=4)", 100, 0.01704, 0.01361, 0.00336),
  ],
)
def test_safe_search_is_as_good_as_it_was_seen_to_be(name, iterations, alone, cut, continual):
  game = spiel_cfr.compile_game(name)
  policy = blueprint(game, iterations)
  half = search.Gadget("pick", reach=True, forced=0.5)
  once = search.resolve(game, policy, gadget=half, continual=False)
  assert once.blueprint_exploitability == pytest.approx(alone, abs=1e-4)
  assert once.exploitability <= cut
  everywhere = search.resolve(game, policy, gadget=half)
  assert everywhere.exploitability <= continual
  assert everywhere.exploitability == pytest.approx(
    pyspiel.exploitability(game.game, spiel_cfr.policies.to_pyspiel(game, everywhere.probabilities))
  )


def test_unsafe_search_can_do_harm_and_is_measured():
  game = spiel_cfr.compile_game("liars_dice(dice_sides=4)")
  found = search.resolve(game, blueprint(game, 100), gadget="unsafe", continual=False)
  assert found.exploitability > 2 * found.blueprint_exploitability


def _random_case(seed):
  rng = np.random.default_rng(seed)
  shape = tuple(int(number) for number in rng.integers(2, 4, 2))
  game = spiel_cfr.compile_game(
    PartlySeenGame(seed, num_types=shape, depth=3 + seed % 2, total=float(seed % 3))
  )
  if seed % 3:
    return game, blueprint(game, (5, 50)[seed % 2])
  drawn = game.from_actions(rng.gamma(0.5, size=len(game.all_action_sequences)) + 1e-9)
  # A policy with zeros, so that some infosets are never reached.
  drawn[drawn < 0.05] = 0.0
  return game, spiel_cfr.policies.CompiledTabularPolicy(game, forms.behavioral_form(game, drawn))


# In the last quick one a player never decides.
_QUICK_SEEDS = [*range(8), 64]


@pytest.mark.quick(except_for=["64", "5", "7"])
@pytest.mark.parametrize(
  "seed",
  [
    *_QUICK_SEEDS,
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 200) if seed != 64),
  ],
)
def test_safe_search_never_does_harm(seed):
  game, policy = _random_case(seed)
  gadgets = _SAFE if seed >= 8 else [_SAFE[seed % len(_SAFE)], "safe"]
  for gadget in gadgets:
    for continual in (False, True):
      for player in (None, 0, 1):
        found = search.resolve(game, policy, gadget=gadget, continual=continual, player=player)
        worse = found.exploitability - found.blueprint_exploitability
        assert worse <= 1e-8, (gadget, continual, player)


def test_forms_of_games_are_alike(leduc):
  game, _, policy = leduc
  merged = spiel_cfr.abstraction.abstract(game, lambda infostate: infostate)
  listed = search.resolve(game, policy, continual=False)
  found = search.resolve(merged, policy, continual=False)
  assert found.exploitability == pytest.approx(listed.exploitability, abs=1e-12)
  np.testing.assert_allclose(found.probabilities, listed.probabilities, atol=1e-12)


def test_iterating_solvers_are_checked_and_do_no_harm(leduc):
  game, tree, policy = leduc
  cut = tree.natural_cut()[:5]
  for gadget in ("follow", "safe", "resolving"):
    found = search.resolve(
      game, policy, gadget=gadget, continual=False, cut=cut, solver="cfr+", iterations=30
    )
    assert found.exploitability <= found.blueprint_exploitability + 1e-9
    solved = sum(step.solved + step.refused + step.unreached for step in found.steps)
    assert solved == 2 * len(cut)


def test_solutions_a_little_below_their_bounds_stay_where_the_whole_gains(leduc):
  _, tree, policy = leduc
  before = tree.evaluated(tree.policy_array(policy), 0)
  states, follow = tree.natural_cut()[:10], search.GADGETS["follow"]
  (alone, cautious), (together, step) = (
    search_step(before, states, follow, SubgameSolver("dcfr", 100), keeps_gains=keeps_gains)
    for keeps_gains in (False, True)
  )
  assert cautious.refused > 0
  assert step.refused == 0
  assert step.smallest_margin < 0
  assert together.opponent_value < alone.opponent_value <= before.opponent_value


def test_a_refused_public_state_keeps_the_blueprint(leduc, monkeypatch):
  game, tree, policy = leduc

  def worst(self, cut):
    wrong = np.full(cut.game.end, 1e-3)
    wrong[cut.sequences[cut.searcher][0]] = 1.0
    return wrong

  monkeypatch.setattr(SubgameSolver, "solve", worst)
  found = search.resolve(game, policy, continual=False, cut=tree.natural_cut()[:4])
  assert sum(step.refused for step in found.steps) > 0
  assert found.exploitability <= found.blueprint_exploitability + 1e-12


def test_unreached_parts_do_not_change():
  game = spiel_cfr.compile_game("kuhn_poker")
  tree = search.public_states(game)
  always = {
    name: {0: 1.0, 1: 0.0} if player == 0 else {0: 0.5, 1: 0.5}
    for player in (0, 1)
    for name in game.infostates[player]
  }
  bet = tree.public_state_of(game.game.new_initial_state().child(0).child(1).child(1))
  # The state is never reached, but the king knows the value of a bet.
  assert all(np.isnan(list(bet.beliefs(always, 0).values())))
  assert bet.private_values(always, 0)["2b"] == 1.5
  found = search.resolve(game, always, continual=False, cut=[bet], player=0)
  assert found.steps[0].unreached == 1
  assert found.policy_dict()["0pb"] == always["0pb"]
  with pytest.raises(errors.ArgumentError, match="probability 0"):
    subgame(bet, always, 0)


def test_results_describe_the_run(leduc):
  game, _, policy = leduc
  found = search.resolve(game, policy, continual=False)
  text = str(found)
  assert "opponent gets" in text
  assert len(text.splitlines()) == 4
  for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
    assert other.exploitability == found.exploitability
    np.testing.assert_array_equal(other.probabilities, found.probabilities)
  again = search.resolve(game, found.policy, continual=False)
  assert again.exploitability <= found.exploitability + 1e-9


def test_ctrl_c_leaves_a_policy(leduc, monkeypatch):
  game, _, policy = leduc
  step = resolving.search_step

  def interrupting(*arguments, **options):
    signal.raise_signal(signal.SIGINT)
    return step(*arguments, **options)

  monkeypatch.setattr(resolving, "search_step", interrupting)
  found = search.resolve(game, policy)
  assert not found.is_complete
  assert len(found.steps) == 1
  assert found.exploitability <= found.blueprint_exploitability + 1e-9


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path, monkeypatch):
  game = spiel_cfr.compile_game("kuhn_poker")
  policy, path = blueprint(game), tmp_path / "search.npz"
  whole = search.resolve(game, policy)
  kept = []
  step = resolving.search_step

  def dying(*arguments, **options):
    if len(kept) == 2:
      raise MemoryError
    kept.append(arguments)
    return step(*arguments, **options)

  monkeypatch.setattr(resolving, "search_step", dying)
  with pytest.raises(MemoryError):
    search.resolve(game, policy, checkpoint=path)
  monkeypatch.undo()
  found = search.resolve(game, policy, checkpoint=path)
  assert found.probabilities.tobytes() == whole.probabilities.tobytes()
  assert [step.value_before for step in found.steps] == [step.value_before for step in whole.steps]
  with pytest.raises(errors.CheckpointMismatchError, match="other arguments"):
    search.resolve(game, policy, checkpoint=path, gadget="follow")
  path.write_bytes(path.read_bytes()[:-20])
  with pytest.raises(errors.DamagedFileError):
    search.resolve(game, policy, checkpoint=path)


@pytest.mark.parametrize(
  ("name", "error", "words"),
  [
    ("kuhn_poker(players=3)", errors.UnsupportedGameError, "two players"),
    ("tiny_bridge_2p", errors.UnsupportedGameError, "constant-sum"),
    ("dark_hex_ir(board_size=2)", errors.ImperfectRecallError, "forgets"),
  ],
)
def test_games_that_cannot_be_searched_are_refused(name, error, words):
  with pytest.raises(error, match=words):
    search.public_states(name)


def test_steps_have_all_lengths_of_a_cut(leduc):
  game, tree, policy = leduc
  found = search.resolve(game, policy, player=0, continual=False, solver="dcfr", iterations=1)
  (step,) = found.steps
  assert (step.min_depth, step.max_depth) == (5, 7)
  assert {state.depth for state in tree.natural_cut()} == {5, 6, 7}
  assert str(found).splitlines()[-1].split()[1] == "5-7"


def test_infosets_that_span_lengths_are_refused():
  efg = (
    'EFG 2 R "spans" { "0" "1" } "" c "" 1 "" { "a" 1/2 "b" 1/2 } 0 p "" 1 1 "" { "l" "r" } 0 '
    'p "" 2 1 "" { "l" "r" } 0 t "" 1 "" { 1 -1 } t "" 2 "" { -1 1 } t "" 3 "" { 0 0 } '
    'p "" 2 1 "" { "l" "r" } 0 t "" 4 "" { 2 -2 } t "" 5 "" { -2 2 }'
  )
  with pytest.raises(errors.UnsupportedGameError, match="numbers of moves"):
    search.public_states(pyspiel.load_efg_game(efg))


# OpenSpiel tells B, who is not to move, what A's infoset is called; when B moves, it has forgotten.
TOLD_TOO_MUCH = """EFG 2 R "told" { "A" "B" } ""
c "" 1 "" { "x" 0.5 "y" 0.5 } 0
p "" 1 1 "Ax" { "l" "r" } 0
p "" 2 1 "B" { "L" "R" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { -1 1 }
t "" 3 "" { 0 0 }
p "" 1 2 "Ay" { "l" "r" } 0
p "" 2 1 "B" { "L" "R" } 0
t "" 4 "" { -1 1 }
t "" 5 "" { 1 -1 }
t "" 6 "" { 0 0 }
"""


@pytest.mark.parametrize("gadget", _SAFE)
def test_forgotten_observations_are_not_known(gadget):
  game = spiel_cfr.compile_game(pyspiel.load_efg_game(TOLD_TOO_MUCH))
  even = spiel_cfr.policies.to_dict(game, forms.uniform(game))
  found = search.resolve(game, even, gadget=gadget)
  assert found.exploitability <= 1e-9
  assert not any(step.refused for step in found.steps)
  state = search.public_states(game)[1]
  sub = subgame(state, even, 0, gadget="resolving")
  assert (
    len(sub.infostates[1]) == 2
  )  # What B is offered, and what it does: the deals are one to it.
  with pytest.raises(errors.UnsupportedGameError, match="know what they are told"):
    search.SearchBot(even, 1).get_policy(game.game.new_initial_state().child(0).child(0))


def test_a_bot_plays_where_nothing_is_at_stake():
  game = pyspiel.load_game("tic_tac_toe")
  state = game.new_initial_state()
  for action in (0, 1, 2, 4, 3, 5, 7, 6):
    state.apply_action(action)
  bot = search.SearchBot(
    pyspiel.UniformRandomPolicy(game), 0, iterations=5, max_histories=500, seed=0
  )
  assert bot.step(state) == 8


@pytest.mark.parametrize("name", ["leduc_poker", "phantom_ttt"])
def test_games_are_not_compiled_beyond_the_limit(name, monkeypatch):
  limits = []

  def noted(game, **arguments):
    limits.append(arguments)
    return spiel_cfr.compile_game(game, **arguments)

  monkeypatch.setattr(public_state_trees, "compile_game", noted)
  with pytest.raises(errors.GameTooLargeError, match=r"more than 1,000 histories.*max_histories"):
    search.public_states(name, max_histories=1000)
  assert limits == [{"max_nodes": 1000, "vector_form": False}]


def test_a_public_state_of_chance_counts_its_private_states(leduc):
  state = leduc[1][0]
  assert state.num_private_states == (1, 1)
  assert "1 x 1 private states" in repr(state)


def test_the_advice_names_the_time_only_with_a_deadline():
  view = GameView(pyspiel.load_game("leduc_poker"))
  for deadline, advice in ((math.inf, "max_histories."), (1e99, "max_histories, or the time.")):
    with pytest.raises(errors.GameTooLargeError) as raised:
      tree_of(view, 100, deadline)
    assert str(raised.value).endswith(f"Raise {advice}")


def test_cuts_are_checked(leduc):
  game, tree, policy = leduc
  for cut in (tree[2], [1, 2], [], [tree[5], tree[5]]):
    with pytest.raises(errors.ArgumentError):
      search.resolve(game, policy, cut=cut)
  other = search.public_states("liars_dice(dice_sides=3)")[3]
  with pytest.raises(errors.ArgumentError, match="belongs to liars_dice"):
    search.resolve(game, policy, cut=[tree[5], other])


def test_bad_arguments_are_named(leduc):
  game, tree, policy = leduc
  with pytest.raises(errors.ArgumentError, match="gadget must be one of"):
    search.resolve(game, policy, gadget="magic")
  with pytest.raises(errors.ArgumentError, match="belongs to"):
    search.resolve("kuhn_poker", policy, cut=[tree[5]])
  with pytest.raises(errors.PolicyError):
    search.resolve(game, {"nonsense": {0: 1.0}})
  with pytest.raises(errors.ArgumentError, match="solver"):
    search.resolve(game, policy, solver="magic")
  with pytest.raises(
    errors.GameTooLargeError, match=r"more than 100 histories.*Raise max_histories\.$"
  ):
    search.public_states(game, max_histories=100)
  with pytest.raises(errors.ArgumentError, match="front"):
    search.Gadget("magic")
  for options in ({"reach": True}, {"forced": 0.1}):
    with pytest.raises(errors.ArgumentError, match="no bound"):
      search.Gadget("deal", **options)
  with pytest.raises(errors.ArgumentError, match=", not of"):
    tree.public_state_of(pyspiel.load_game("kuhn_poker").new_initial_state())
  with pytest.raises(errors.ArgumentError, match=", not of"):
    tree.public_state_of(pyspiel.load_game("liars_dice(dice_sides=9)").new_initial_state().child(8))


@pytest.mark.parametrize("searcher", [0, 1])
def test_programs_need_one_copy_where_the_safe_gadget_has_two(leduc, searcher):
  """They find what gets as much in the whole subgame as the solution of the program that has both, floor included."""
  _, tree, policy = leduc
  before, safe, other = (
    tree.evaluated(tree.policy_array(policy), searcher),
    search.GADGETS["safe"],
    1 - searcher,
  )
  for state in tree.decisions(searcher)[0] + tree.natural_cut()[:4]:
    start = start_from_policy(before, state.index, safe)
    whole, less = (
      tree.builder.build([start], safe, is_linear_program=program) for program in (False, True)
    )
    game = whole.game
    payoffs = sequence_form_matrices.payoff_matrix(game, searcher)
    own, theirs = (
      sequence_form_matrices.constraint_matrix(game, each) for each in (searcher, other)
    )
    payoffs = payoffs.T if searcher else payoffs
    lowest = np.full(theirs.shape[0], -np.inf)
    lowest[1 + int(game.infosets[other].position[0])] = 0.0
    wanted = linear_program.solve_program(payoffs, own, theirs, "simplex", lowest).fun
    found = subgame_solver.maximin_strategy(less)
    form = np.zeros(game.end)
    form[whole.sequences[searcher]] = found[less.sequences[searcher]]
    form[[tree.root for tree in game.treeplexes]] = 1.0
    found = evaluate.evaluate(game, form).best_response_values[other]
    assert found == pytest.approx(wanted, abs=1e-9)
    count = np.count_nonzero(start.w)
    sizes = [len(sequence_form_matrices.sequences(each.game, other)) for each in (less, whole)]
    assert sizes[0] == (sizes[1] + 1 + count) / 2


def test_programs_see_tiny_probabilities(leduc):
  """HiGHS takes coefficients below 1e-9 for 0: without them the safe strategy, the blueprint's, would seem unsafe."""
  _, tree, policy = leduc
  entries, safe = tree.policy_array(policy), search.GADGETS["safe"]
  powers = np.random.default_rng(0).choice([1.0, 8.0, 20.0], len(entries))
  drawn = forms.behavioral_form(tree.game, tree.behavioral_form(entries**powers))
  before = tree.evaluated(tree.to_slots(drawn), 1)
  after, step = search_step(before, tree.natural_cut(), safe, SubgameSolver("lp"))
  assert step.refused == 0
  assert after.opponent_value <= before.opponent_value + 1e-9
