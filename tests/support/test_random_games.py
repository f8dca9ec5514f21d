"""Properties of the random games, by walks through OpenSpiel's states alone."""

import collections
import math
from collections.abc import Iterator
from typing import Any

import hypothesis
import pyspiel
import pytest
import random_games
from open_spiel.python import policy
from open_spiel.python.algorithms import cfr, exploitability

_SEEDS = range(40)
_SETTINGS: tuple[dict[str, Any], ...] = (
  {},
  {"zero_sum": False, "payoff_ties": True},
  {"num_players": 3, "zero_sum": False, "chance_root": False},
  {"num_players": 3, "idle_player": True},
  {"num_players": 4, "payoff_ties": True, "max_depth": 9},
  {"max_depth": 2, "max_histories": 4, "max_actions": 2},
  {"max_depth": 2, "max_histories": 6, "max_actions": 2, "zero_sum": False, "payoff_ties": True},
  {"max_actions": 6, "chance_root": False, "zero_chance": True},
)
_EVERY_SETTING = pytest.mark.parametrize("settings", _SETTINGS, ids=str)


def _histories(game: pyspiel.Game) -> list[pyspiel.State]:
  def walk(state: pyspiel.State) -> Iterator[pyspiel.State]:
    yield state
    for action in state.legal_actions():
      yield from walk(state.child(action))

  return list(walk(game.new_initial_state()))


def _decisions(game: pyspiel.Game) -> list[pyspiel.State]:
  return [state for state in _histories(game) if state.current_player() >= 0]


def _infosets(game: pyspiel.Game) -> list[list[pyspiel.State]]:
  infosets = collections.defaultdict(list)
  for state in _decisions(game):
    infosets[state.information_state_string()].append(state)
  return list(infosets.values())


def _past(state: pyspiel.State) -> list[pyspiel.State]:
  """Returns the states before this one, the root first."""
  states = [state.get_game().new_initial_state()]
  for action in state.history():
    states.append(states[-1].child(action))
  return states[:-1]


def _own_sequence(state: pyspiel.State) -> tuple[tuple[str, int], ...]:
  """Returns the infosets that the player to move has passed, each with the action taken there."""
  return tuple(
    (past.information_state_string(), action)
    for past, action in zip(_past(state), state.history(), strict=True)
    if past.current_player() == state.current_player()
  )


def _count(property_of_game: Any, **settings: Any) -> int:
  """Returns for how many seeds a game has the property."""
  return sum(bool(property_of_game(random_games.random_game(s, **settings))) for s in _SEEDS)


@_EVERY_SETTING
def test_every_infoset_has_perfect_recall(settings: dict[str, Any]) -> None:
  for seed in _SEEDS:
    for infoset in _infosets(random_games.random_game(seed, **settings)):
      assert len({state.current_player() for state in infoset}) == 1
      assert len({tuple(state.legal_actions()) for state in infoset}) == 1
      assert len({_own_sequence(state) for state in infoset}) == 1


@_EVERY_SETTING
def test_settings_are_honoured(settings: dict[str, Any]) -> None:
  num_players = settings.get("num_players", 2)
  zero_sum = settings.get("zero_sum", True)
  chance_root = settings.get("chance_root", True)
  for seed in _SEEDS:
    game = random_games.random_game(seed, **settings)
    histories = _histories(game)
    decisions = _decisions(game)
    branching = [len(state.legal_actions()) for state in histories if not state.is_terminal()]
    assert game.num_players() == num_players
    assert len(histories) <= settings.get("max_histories", 300)
    assert max(branching) <= settings.get("max_actions", 4)
    assert max(len(state.history()) for state in histories) <= settings.get("max_depth", 6)
    assert histories[0].is_chance_node() == chance_root
    assert branching[0] >= 2
    assert decisions
    if settings.get("idle_player"):
      assert len({state.current_player() for state in decisions}) < num_players
    utility = (
      pyspiel.GameType.Utility.ZERO_SUM if zero_sum else pyspiel.GameType.Utility.GENERAL_SUM
    )
    assert game.get_type().utility == utility
    sums = {sum(state.returns()) for state in histories if state.is_terminal()}
    assert sums == {0.0} if zero_sum else len(sums) > 1


@pytest.mark.parametrize("zero_chance", [False, True])
def test_chance_probabilities_differ_and_add_up_to_one(zero_chance: bool) -> None:
  for seed in _SEEDS:
    for state in _histories(random_games.random_game(seed, zero_chance=zero_chance)):
      if state.is_chance_node():
        probabilities = [probability for _, probability in state.chance_outcomes()]
        assert math.isclose(sum(probabilities), 1.0)
        assert len(set(probabilities)) == len(probabilities)
        assert (0.0 in probabilities) == (zero_chance and len(probabilities) > 1)


@pytest.mark.parametrize("payoff_ties", [False, True])
def test_payoffs_tie_only_when_asked_to(payoff_ties: bool) -> None:
  for seed in _SEEDS:
    game = random_games.random_game(seed, zero_sum=False, payoff_ties=payoff_ties)
    terminals = [state for state in _histories(game) if state.is_terminal()]
    payoffs = [payoff for state in terminals for payoff in state.returns()]
    if payoff_ties:
      assert set(payoffs) <= {-2.0, -1.0, 0.0, 1.0, 2.0, 3.0}
    else:
      assert len(set(payoffs)) == len(payoffs)


@_EVERY_SETTING
def test_an_action_id_means_one_label_throughout(settings: dict[str, Any]) -> None:
  for seed in _SEEDS:
    labels: dict[tuple[bool, int], str] = {}
    for state in _histories(random_games.random_game(seed, **settings)):
      for action in state.legal_actions():
        key = state.is_chance_node(), action
        assert labels.setdefault(key, state.action_to_string(action)) == (
          state.action_to_string(action)
        )


def test_the_oddities_occur_in_most_games() -> None:
  def merged(game: pyspiel.Game) -> list[list[pyspiel.State]]:
    return [infoset for infoset in _infosets(game) if len(infoset) > 1]

  def merges_after_an_own_action(game: pyspiel.Game) -> bool:
    return any(_own_sequence(infoset[0]) for infoset in merged(game))

  def merges_histories_of_different_length(game: pyspiel.Game) -> bool:
    return any(len({len(state.history()) for state in infoset}) > 1 for infoset in merged(game))

  def moves_twice_in_a_row(game: pyspiel.Game) -> bool:
    return any(
      _past(state)[-1].current_player() == state.current_player()
      for state in _decisions(game)
      if state.history()
    )

  def first_decision_has_several_infosets(game: pyspiel.Game) -> bool:
    return len([infoset for infoset in _infosets(game) if not _own_sequence(infoset[0])]) > 2

  def action_counts_differ(game: pyspiel.Game) -> bool:
    return {len(infoset[0].legal_actions()) for infoset in _infosets(game)} >= {1, 2, 3, 4}

  def action_ids_have_gaps(game: pyspiel.Game) -> bool:
    return any(
      state.legal_actions() != list(range(len(state.legal_actions()))) for state in _decisions(game)
    )

  def ends_at_several_depths(game: pyspiel.Game) -> bool:
    return len({len(state.history()) for state in _histories(game) if state.is_terminal()}) > 2

  def chance_moves_later(game: pyspiel.Game) -> bool:
    return any(state.is_chance_node() and state.history() for state in _histories(game))

  def a_pure_strategy_leaves_infosets_unreached(game: pyspiel.Game) -> bool:
    def reached(state: pyspiel.State) -> bool:
      return all(
        past.is_chance_node() or action == past.legal_actions()[0]
        for past, action in zip(_past(state), state.history(), strict=True)
      )

    return any(not any(map(reached, infoset)) for infoset in _infosets(game))

  for oddity in (
    merges_after_an_own_action,
    merges_histories_of_different_length,
    moves_twice_in_a_row,
    first_decision_has_several_infosets,
    action_counts_differ,
    action_ids_have_gaps,
    ends_at_several_depths,
    chance_moves_later,
    a_pure_strategy_leaves_infosets_unreached,
  ):
    assert _count(oddity) > len(_SEEDS) / 2, oddity.__name__


def test_two_infosets_can_be_met_in_either_order() -> None:
  def no_order_fits(game: pyspiel.Game) -> bool:
    pairs = set()
    for state in _decisions(game):
      for past in _past(state):
        if past.current_player() >= 0:
          pairs.add((past.information_state_string(), state.information_state_string()))
    return any((after, before) in pairs for before, after in pairs)

  assert _count(no_order_fits) > 0


@pytest.mark.parametrize("settings", [{}, {"num_players": 3, "zero_sum": False}], ids=str)
def test_text_depends_on_arguments_alone(settings: dict[str, Any]) -> None:
  texts = [random_games.random_efg(seed, **settings) for seed in _SEEDS]
  assert texts == [random_games.random_efg(seed, **settings) for seed in _SEEDS]
  assert len(set(texts)) == len(texts)


def test_game_can_be_reloaded_through_a_file(tmp_path: Any) -> None:
  path = tmp_path / "game.efg"
  path.write_text(random_games.random_efg(0))
  game = pyspiel.load_game(f"efg_game(filename={path})")
  reloaded = pyspiel.load_game(str(game))
  original = random_games.random_game(0)
  assert [str(state) for state in _histories(reloaded)] == [
    str(state) for state in _histories(original)
  ]


@pytest.mark.parametrize(
  "limits",
  [{"max_depth": 1}, {"max_actions": 1}, {"max_actions": 4, "max_histories": 5}],
  ids=str,
)
def test_limits_that_leave_no_decision_are_refused(limits: dict[str, Any]) -> None:
  with pytest.raises(ValueError, match=next(iter(limits))):
    random_games.random_efg(0, **limits)


@_EVERY_SETTING
def test_openspiel_evaluates_the_games(settings: dict[str, Any]) -> None:
  for seed in _SEEDS[:15]:
    game = random_games.random_game(seed, **settings)
    in_python = exploitability.nash_conv(game, policy.TabularPolicy(game))
    in_cpp = pyspiel.nash_conv(game, pyspiel.UniformRandomPolicy(game))
    assert in_python == pytest.approx(in_cpp, abs=1e-9)


@pytest.mark.quick("0", "1")
@pytest.mark.parametrize("seed", _SEEDS[:8])
def test_openspiel_solves_the_games(seed: int) -> None:
  for chance_root in (True, False):
    game = random_games.random_game(seed, chance_root=chance_root, max_histories=120)
    solver = cfr.CFRSolver(game)
    in_cpp = pyspiel.CFRSolver(game)
    for _ in range(100):
      solver.evaluate_and_update_policy()
      in_cpp.evaluate_and_update_policy()
    nash_conv = exploitability.nash_conv(game, solver.average_policy())
    uniform = exploitability.nash_conv(game, policy.TabularPolicy(game))
    assert nash_conv < 0.1 * uniform
    assert nash_conv == pytest.approx(pyspiel.nash_conv(game, in_cpp.average_policy()), abs=1e-9)


def test_openspiel_python_cfr_refuses_impossible_chance_outcomes() -> None:
  solver = cfr.CFRSolver(random_games.random_game(0, zero_chance=True))
  with pytest.raises(AssertionError):
    solver.evaluate_and_update_policy()


@hypothesis.settings(max_examples=50)
@hypothesis.given(random_games.games(num_players=3, zero_sum=False))
def test_fixed_arguments_of_random_games_are_kept(game: pyspiel.Game) -> None:
  assert game.num_players() == 3
  assert game.get_type().utility == pyspiel.GameType.Utility.GENERAL_SUM
  assert len(_histories(game)) <= 300


def test_strategy_shrinks_to_a_small_game() -> None:
  game = hypothesis.find(
    random_games.games(),
    lambda game: any(len(infoset) > 1 for infoset in _infosets(game)),
    settings=hypothesis.settings(database=None, derandomize=True),
  )
  assert game.num_players() == 2
  assert len(_histories(game)) <= 15
