"""A game in Python that lies, from the start or once it is compiled, is named by every walk."""

import math
from typing import Any

import pyspiel
import pytest
from python_games import game_type

import spiel_cfr
from spiel_cfr import errors, exchange, referee, search

_TYPE = game_type("lies", pyspiel.GameType.Utility.ZERO_SUM)
_LIES: dict[str, list[Any]] = {
  "current_player": [0.5, "0", None, math.nan, 7, -9, KeyError("card")],
  "_legal_actions": [[0.5], ["a"], None, [math.nan], [0, 0], [0, 7], [-1], [], KeyError("card")],
  "chance_outcomes": [None, [(0, "1")], [(0, math.nan)], [(0.5, 1.0)], [], [(0, 1.0, 0)], KeyError("card")],
  "returns": [[1.0], ["1", "-1"], None, [math.nan, 0.0], [1j, 1], [1, 1, 1], "ab", KeyError("card")],
  "information_state_string": [None, 3, b"x", "\ud800", math.nan, KeyError("card")],
  "_apply_action": [KeyError("card")],
}  # fmt: skip


class Lies(pyspiel.Game):
  """A deal, and three moves; `lie` is a question and its answer, or the exception that it raises."""

  def __init__(self) -> None:
    info = pyspiel.GameInfo(
      num_distinct_actions=2,
      max_chance_outcomes=2,
      num_players=2,
      min_utility=-1.0,
      max_utility=1.0,
      utility_sum=0.0,
      max_game_length=3,
    )
    super().__init__(_TYPE, info, {})
    self.lie: tuple[str, Any] = ("", None)

  def new_initial_state(self) -> "LiesState":
    return LiesState(self)

  def __deepcopy__(self, memo: Any) -> "Lies":
    return self


class LiesState(pyspiel.State):
  def __init__(self, game: Lies) -> None:
    super().__init__(game)
    self.game, self.path = game, ()  # type: ignore[var-annotated]

  def _answer(self, question: str, true: Any) -> Any:
    asked, answer = self.game.lie
    # The first move passes where a game is tried out.
    if asked != question or (question == "_apply_action" and not self.path):
      return true
    if isinstance(answer, Exception):
      raise type(answer)(*answer.args)
    return answer

  def current_player(self) -> Any:
    # A lie at the root would be found when the game is loaded.
    true = (-1, 0, 1, 0, -4)[len(self.path)]
    return self._answer("current_player", true) if len(self.path) > 1 else true

  def _legal_actions(self, player: int) -> Any:
    return self._answer("_legal_actions", [0, 1])

  def chance_outcomes(self) -> Any:
    return self._answer("chance_outcomes", [(0, 0.5), (1, 0.5)])

  def _apply_action(self, action: int) -> None:
    self._answer("_apply_action", None)
    self.path = (*self.path, action)

  def is_terminal(self) -> bool:
    return len(self.path) == 4

  def returns(self) -> Any:
    first = 1.0 if sum(self.path) % 3 == 1 else -1.0
    return self._answer("returns", [first, -first])

  def information_state_string(self, player: int | None = None) -> Any:
    player = (-1, 0, 1, 0, -4)[len(self.path)] if player is None else player
    true = f"{player}: {self.path[0] if player == 0 else '?'}{self.path[1:]}"
    return self._answer("information_state_string", true)

  def __str__(self) -> str:
    return str(self.path)


def _play(game: Lies, bots: list[Any]) -> None:
  state = game.new_initial_state()
  for player, action in ((-1, 1), (0, 1), (1, 1), (0, 1)):
    if player >= 0:
      bots[player].step(state)
    if game.lie[0] != "_apply_action":
      state.apply_action(action)


# From the start: whatever the lie, it is found.
_FIRST = {
  "compile_game": lambda game, solver: spiel_cfr.compile_game(game, progress=False),
  "external sampling": lambda game, solver: spiel_cfr.ExternalSamplingSolver(
    game, engine="states", seed=0
  ).run(20),
  "outcome sampling": lambda game, solver: spiel_cfr.OutcomeSamplingSolver(
    game, engine="states", seed=0
  ).run(50),
  "lower bound": lambda game, solver: referee.nash_conv_lower_bound(
    game, solver, episodes=50, evaluation_episodes=50
  ),
  "match": lambda game, solver: referee.play_match(
    game, solver, {name: {0: 0.5, 1: 0.5} for name in solver.average_policy_dict()}, deals=20
  ),
}
# Of a game that has been compiled: what is not asked is not found.
_LATER = {
  "sampling": lambda game, solver: spiel_cfr.ExternalSamplingSolver(
    solver.compiled_game, engine="compiled"
  ),
  "explorer": lambda game, solver: spiel_cfr.explore(solver, "page.html"),
  "file": lambda game, solver: exchange.save_efg(solver.compiled_game, "game.efg"),
  "baseline": lambda game, solver: referee.value_baseline(solver.compiled_game, solver),
  "states": lambda game, solver: solver.compiled_game.first_states(),
  "search": lambda game, solver: search.resolve(solver.compiled_game, solver, iterations=2),
  "size": lambda game, solver: spiel_cfr.estimate_size(game, seconds=0.02),
  "policy": lambda game, solver: _play(
    game, [spiel_cfr.PolicyBot(solver, each) for each in (0, 1)]
  ),
  "search bots": lambda game, solver: _play(
    game, [search.SearchBot(solver, each) for each in (0, 1)]
  ),
  "vector form": lambda game, solver: spiel_cfr.games.compile_vector_game(game),
}


def _solved() -> tuple[Lies, Any]:
  game = Lies()
  solver = spiel_cfr.CFRPlusSolver(spiel_cfr.compile_game(game, progress=False))
  solver.run(2)
  return game, solver


@pytest.mark.parametrize("walk", _FIRST)
@pytest.mark.parametrize("question", _LIES)
def test_lies_are_named(question: str, walk: str) -> None:
  for answer in _LIES[question]:
    game, solver = _solved()
    game.lie = (question, answer)
    if walk in ("lower bound", "match") and question == "information_state_string":
      # Both ask the policy, which may be the first to ask the game.
      with pytest.raises(errors.SpielCFRError):
        _FIRST[walk](game, solver)
      continue
    with pytest.raises(errors.GameError, match=r"(?i)after"):
      _FIRST[walk](game, solver)


@pytest.mark.parametrize("walk", _LATER)
def test_lies_after_compiling_are_named(walk: str, tmp_path: Any, monkeypatch: Any) -> None:
  monkeypatch.chdir(tmp_path)
  for question, answers in _LIES.items():
    for answer in answers:
      game, solver = _solved()
      game.lie = (question, answer)
      try:
        _LATER[walk](game, solver)
      except errors.SpielCFRError as error:
        assert str(error)


def test_actions_are_in_order() -> None:
  game = Lies()
  game.lie = ("_legal_actions", [1, 0])
  compiled = spiel_cfr.compile_game(game)
  assert compiled.actions[0].tolist() == [0, 1] * compiled.treeplexes[0].num_infosets


@pytest.mark.parametrize("state", [None, 3, "x", [0], object()])
def test_what_is_no_state(state: Any) -> None:
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  mediator = spiel_cfr.correlated.optimal_equilibrium("kuhn_poker").policy.mediator()
  states = search.public_states("kuhn_poker")
  for ask in (
    lambda: spiel_cfr.PolicyBot(solver, 0).step(state),
    lambda: search.SearchBot(solver, 0).step(state),
    lambda: search.SearchBot(solver, 0).restart_at(state),
    lambda: solver.average_policy().action_probabilities(state),
    lambda: mediator.recommend(state),
    lambda: states.public_state_of(state),
  ):
    with pytest.raises(errors.ArgumentError, match="must be a state"):
      ask()


@pytest.mark.parametrize("name", ["leduc_poker", "kuhn_poker(players=3)", "goofspiel"])
def test_states_of_other_games(name: str) -> None:
  state = pyspiel.load_game(name).new_initial_state()
  while state.is_chance_node():
    state.apply_action(state.legal_actions()[0])
  mediator = spiel_cfr.correlated.optimal_equilibrium("kuhn_poker").policy.mediator()
  for ask in (
    lambda: mediator.recommend(state, 0),
    lambda: search.public_states("kuhn_poker").public_state_of(state),
  ):
    with pytest.raises(errors.ArgumentError, match=", not of"):
      ask()
