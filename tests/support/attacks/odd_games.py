"""Odd games, given to every function that takes a game: lying, endless, too large, without decisions."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import public_api
import pyspiel
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability
from python_games import game_type

import spiel_cfr
from attacks import by_type
from attacks.outcomes import Attack
from attacks.targets import OF_A_GAME, Target, targets
from spiel_cfr import catalogue


class _Raises:
  """An answer that is none: the question raises."""


# What a game's function may answer, whatever it is asked.
ANSWERS: dict[str, Any] = {
  "raises": _Raises(),
  "None": None,
  "'1'": "1",
  "NaN": math.nan,
  "-7": -7,
  "10**30": 10**30,
  "0.5": 0.5,
  "[]": [],
  "[None]": [None],
  "['1', '-1']": ["1", "-1"],
  "[0, 0]": [0, 0],
  "[NaN, NaN]": [math.nan, math.nan],
  "[1, 2, 3]": [1, 2, 3],
  "[(0, 2.0)]": [(0, 2.0)],
  "an object": object(),
}
QUESTIONS = (
  "current_player",
  "_legal_actions",
  "chance_outcomes",
  "is_terminal",
  "returns",
  "information_state_string",
  "_apply_action",
  "_action_to_string",
  "__str__",
)


class Flaw(NamedTuple):
  """Function of a state that answers wrongly, and its answer; `late`: only after a first card 1 and a bet."""

  question: str
  answer: str
  late: bool

  def __str__(self) -> str:
    return f"{self.question} {'late ' if self.late else ''}= {self.answer}"


class LyingGame(pyspiel.Game):
  """Poker of two cards, of which player 0 sees one: it bets or passes, player 1 calls a bet or folds.

  It has one flaw, or none, and then it is as good as any. It may also go on for ever.
  """

  def __init__(self, flaw: Flaw | None = None, endless: str = "") -> None:
    """Makes the game; `endless` is "chance" or "players" for who moves for ever."""
    self.flaw, self.endless = flaw, endless
    info = pyspiel.GameInfo(2, 2, 2, -2.0, 2.0, 0.0, 3)
    super().__init__(game_type("lying", pyspiel.GameType.Utility.ZERO_SUM), info, {})

  def new_initial_state(self) -> "LyingState":
    return LyingState(self)

  def __deepcopy__(self, memo: Any) -> "LyingGame":
    return self


class LyingState(pyspiel.State):
  """A state; its path is card, bet, call."""

  def __init__(self, game: LyingGame) -> None:
    super().__init__(game)
    self.game, self.path = game, ()

  def __getattribute__(self, name: str) -> Any:
    """Returns a function that answers wrongly where it is the one with the flaw."""
    if name in QUESTIONS:
      game, path = super().__getattribute__("game"), super().__getattribute__("path")
      flaw = game.flaw
      if flaw is not None and flaw.question == name and (path[:2] == (1, 1) or not flaw.late):
        return functools.partial(_answer, ANSWERS[flaw.answer])
    return super().__getattribute__(name)

  def current_player(self) -> int:
    if self.game.endless:
      return pyspiel.PlayerId.CHANCE if self.game.endless == "chance" else len(self.path) % 2
    return _MOVERS[-1 if self.is_terminal() else len(self.path)]

  def is_terminal(self) -> bool:
    return not self.game.endless and (self.path[1:] == (0,) or len(self.path) == 3)

  def _legal_actions(self, player: int) -> list[int]:
    return [0, 1]

  def chance_outcomes(self) -> list[tuple[int, float]]:
    return [(0, 0.75), (1, 0.25)]

  def _apply_action(self, action: int) -> None:
    self.path = (*self.path, action)

  def returns(self) -> list[float]:
    won = 0.0
    if self.is_terminal():
      good, stake = self.path[0] == 1, {(1, 1): 2.0}.get(self.path[1:], 1.0)
      won = stake if good or self.path[1:] == (1, 0) else -stake
    return [won, -won]

  def information_state_string(self, player: int | None = None) -> str:
    player = self.current_player() if player is None else player
    if self.game.endless:
      return str(len(self.path) % 2)
    return f"{player}{self.path[0] if player == 0 else ''}{self.path[1:]}"

  def _action_to_string(self, player: int, action: int) -> str:
    return str(action)

  def __str__(self) -> str:
    return str(self.path)

  def __deepcopy__(self, memo: Any) -> "LyingState":
    result = LyingState(self.game)
    for action in self.path:
      result.apply_action(action)
    return result


_MOVERS = (pyspiel.PlayerId.CHANCE, 0, 1, pyspiel.PlayerId.TERMINAL)


def _answer(answer: Any, *given: Any) -> Any:
  if isinstance(answer, _Raises):
    raise ZeroDivisionError("mine")
  return answer


_HEAD = 'EFG 2 R "odd" { "one" "other" } ""\n'
_CHANCE = 'c "" 1 "" { "heads" 1/4 "tails" 3/4 } 0\n'
_ENDS = 't "" 1 "" { 1 -1 }\nt "" 2 "" { -1 1 }\n'
# Games as text, which have answers.
TEXTS: dict[str, str] = {
  "nothing happens": _HEAD + 't "" 1 "" { 1 -1 }\n',
  "only chance moves": _HEAD + _CHANCE + _ENDS,
  "all moves are forced": _HEAD
  + _CHANCE
  + 'p "" 1 1 "" { "go" } 0\np "" 2 1 "" { "go" } 0\nt "" 1 "" { 1 -1 }\n'
  + 'p "" 1 1 "" { "go" } 0\np "" 2 1 "" { "go" } 0\nt "" 2 "" { -1 1 }\n',
  "one player decides": _HEAD + 'p "" 1 1 "" { "a" "b" } 0\n' + _ENDS,
  "the other decides": _HEAD + _CHANCE + ('p "" 2 1 "" { "a" "b" } 0\n' + _ENDS) * 2,
  "no payoffs": _HEAD + 'p "" 1 1 "" { "a" "b" } 0\nt "" 1 "" { 0 0 }\nt "" 2 "" { 0 0 }\n',
  "huge payoffs": _HEAD + 'p "" 1 1 "" { "a" "b" } 0\n' + _ENDS.replace("1 }", "1e300 }"),
  "impossible chance": _HEAD + _CHANCE.replace("1/4", "0").replace("3/4", "1") + _ENDS,
}
# Games that are refused, or take no longer than any attack may.
LARGE = ("tic_tac_toe", "nim", "chess", "goofspiel", "phantom_ttt", "go")


def _makers() -> Iterator[tuple[str, Callable[[], Any]]]:
  for text in TEXTS:
    yield text, functools.partial(pyspiel.load_efg_game, TEXTS[text])
  for endless in ("chance", "players"):
    yield f"{endless} without end", functools.partial(LyingGame, None, endless)
  for name in LARGE:
    yield name, functools.partial(pyspiel.load_game, name)


def attacks(rng: np.random.Generator) -> Iterator[Attack]:
  """Yields all that takes a game with all odd games, then all solvers, then liars in a random order."""
  takers = [each for each in targets() if each.case.parameter == "game" and _takes_games(each)]
  for (name, make), taker in itertools.product(_makers(), takers):
    yield Attack(
      taker.room, f"{taker.case.name} = {name}", functools.partial(_given_to, taker, make)
    )
  for (name, make), solver in itertools.product(_makers(), catalogue.SOLVERS):
    if "deep" not in solver:
      strike = functools.partial(_solved, solver, make, name in TEXTS)
      yield Attack("cfr", f"{solver} on {name}", strike)
  flaws = list(itertools.starmap(Flaw, itertools.product(QUESTIONS, ANSWERS, (False, True))))
  while True:
    flaw = flaws[rng.integers(len(flaws))]
    make = functools.partial(LyingGame, flaw)
    if rng.random() < 0.3:
      solver = str(rng.choice(list(catalogue.SOLVERS)))
      yield Attack("cfr", f"{solver} on {flaw}", functools.partial(_solved, solver, make, False))
    else:
      taker = takers[rng.integers(len(takers))]
      strike = functools.partial(_given_to, taker, make)
      yield Attack(taker.room, f"{taker.case.name}: {flaw}", strike)


def _takes_games(target: Target) -> bool:
  kinds = set(public_api.alternatives(target.hint))
  return bool(kinds & {pyspiel.Game, spiel_cfr.CompiledGame})


def _given_to(taker: Target, make: Callable[[], Any]) -> str:
  """Calls a function with a game, and policies of that game where it takes any."""
  game = make()
  if pyspiel.Game not in public_api.alternatives(taker.hint):
    game = spiel_cfr.compile_game(game)
  function, named = taker.call()
  for name, plain in named.items():
    if isinstance(plain, spiel_cfr.Solver) and name == "solver":
      named[name] = spiel_cfr.CFRSolver(game)
    elif isinstance(plain, OF_A_GAME):
      named[name] = open_spiel_policy.UniformRandomPolicy(getattr(game, "game", game))
  if "seconds" in public_api.hints_of(function):
    named["seconds"] = 1.0
  elif "iterations" in public_api.hints_of(function):
    named.setdefault("iterations", 100)
  return by_type.odd(by_type.used(function(**named | {"game": game})))


def _solved(solver: str, make: Callable[[], Any], has_value: bool) -> str:
  """Runs a solver on a game; where OpenSpiel can walk it, values and NashConv must be OpenSpiel's."""
  game = make()
  found = catalogue.make(solver, game, 5)
  found.run(5)
  value = found.nash_conv()
  if not has_value:
    return by_type.odd(value)
  policy = found.average_policy()
  scale = max(1.0, abs(game.max_utility()))
  wanted = exploitability.nash_conv(game, policy)
  if not abs(value - wanted) <= 1e-9 * scale:
    return f"NashConv is {value}, OpenSpiel's {wanted}"
  expected = expected_game_score.policy_value(game.new_initial_state(), [policy] * 2)
  ours = spiel_cfr.expected_values(game, policy)
  if not np.allclose(ours, expected, rtol=1e-9, atol=1e-9):
    return f"values are {ours}, OpenSpiel's {expected}"
  return ""
