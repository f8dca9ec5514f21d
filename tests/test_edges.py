"""Edge cases: nothing hangs, nothing is read out of bounds, no number is silently wrong."""

import concurrent.futures
import copy
import math
import os
import pathlib
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
import pytest
from python_games import game_type

import spiel_cfr
from spiel_cfr import RegretMatching, errors
from spiel_cfr.games.openspiel import state_checks
from spiel_cfr.games.openspiel.game_size import estimate_view
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.games.sequence_form.blocks import expected_value, sequence, vector_starts
from spiel_cfr.regret_minimizers import block_kernel
from spiel_cfr.regret_minimizers.schedules import Power, Schedule
from spiel_cfr.solving import choose_solver


@pytest.fixture(scope="module")
def kuhn() -> Any:
  return spiel_cfr.compile_game("kuhn_poker")


def run(solver: Any, *arguments: Any, **settings: Any) -> Any:
  return spiel_cfr.run(solver, *arguments, progress=False, **settings)


# Schedules.


@pytest.mark.parametrize(
  "answer", [lambda i: i, lambda i: i - 1, lambda i: 0.5 * i, lambda i: math.nan]
)
def test_schedules_that_do_not_advance(answer: Any, kuhn: Any, tmp_path: Any) -> None:
  checkpoints = spiel_cfr.Checkpoints(tmp_path, every=answer)
  with pytest.raises(errors.ArgumentError, match=r"every.*(later iteration|not nan)"):
    run(spiel_cfr.CFRSolver(kuhn), 10, checkpoints=checkpoints)
  with pytest.raises(errors.ArgumentError, match=r"evaluate_at.*(later iteration|not nan)"):
    run(spiel_cfr.CFRSolver(kuhn), 10, evaluate_at=answer)


@pytest.mark.parametrize("answer", [None, "5", b"5", -math.inf, [1], True, 1j])
def test_schedules_whose_answers_are_no_numbers(answer: Any, kuhn: Any) -> None:
  with pytest.raises(errors.ArgumentError, match="evaluate_at"):
    run(spiel_cfr.CFRSolver(kuhn), 10, evaluate_at=lambda iteration: answer)


def test_fractions_are_rounded_up_and_infinity_is_never(kuhn: Any, tmp_path: Any) -> None:
  result = run(spiel_cfr.CFRSolver(kuhn), 10, evaluate_at=lambda i: i + 2.5)
  assert [row.iteration for row in result.rows] == [3, 6, 9, 10]
  result = run(spiel_cfr.CFRSolver(kuhn), 10, evaluate_at=lambda i: math.inf)
  assert [row.iteration for row in result.rows] == [10]
  checkpoints = spiel_cfr.Checkpoints(tmp_path, every=lambda i: math.inf)
  run(spiel_cfr.CFRSolver(kuhn), 10, checkpoints=checkpoints)
  assert len(checkpoints.paths()) == 1
  result = run(spiel_cfr.CFRSolver(kuhn), seconds=0.05, evaluate_at=lambda i: math.inf)
  assert result.reason == "seconds"
  with pytest.raises(errors.ArgumentError, match="would never stop"):
    run(spiel_cfr.CFRSolver(kuhn), target_nash_conv=0.1, evaluate_at=lambda i: math.inf)


def test_powers_of_almost_one() -> None:
  schedule = spiel_cfr.runs.Powers(1.0000001)
  assert schedule(10**6) == 10**6 + 1
  for iteration in (10**8, 10**9, 10**12):
    assert iteration < schedule(iteration) < iteration * 1.0000002 + 1
  assert spiel_cfr.runs.Powers(math.nextafter(1, 2))(10**15) == 10**15 + 1
  assert spiel_cfr.runs.Powers(1e308)(10) == int(1e308)
  assert spiel_cfr.runs.Powers(1e200)(2) == int(1e200)


# Minimizers.


class Rows(RegretMatching):
  """Regret matching whose parameters have another shape."""

  shape: Any = staticmethod(lambda right: right)

  def parameters(self, iterations: Any, game: Any) -> Any:
    return type(self).shape(super().parameters(iterations, game))


@pytest.mark.parametrize(
  "shape",
  [
    lambda right: right[:0],
    lambda right: right[:-1],
    lambda right: np.concatenate([right, right]),
    lambda right: right[:, 0],
    lambda right: right[..., None],
    lambda right: None,
  ],
)
def test_parameters_of_the_wrong_shape(shape: Any, kuhn: Any) -> None:
  cls = type("Wrong", (Rows,), {"shape": staticmethod(shape)})
  with pytest.raises(errors.ArgumentError, match="parameters"):
    spiel_cfr.FullWidthSolver(kuhn, cls())


class Weights(Schedule):
  def __init__(self, numbers: Any) -> None:
    self.numbers = numbers

  def __call__(self, iterations: Any) -> Any:
    return self.numbers(iterations)


@pytest.mark.parametrize(
  "numbers",
  [
    lambda t: np.ones(0),
    lambda t: np.ones(len(t) + 1),
    lambda t: np.ones((len(t), 2)),
    lambda t: -np.ones(len(t)),
    lambda t: np.full(len(t), np.nan),
    lambda t: np.full(len(t), np.inf),
    lambda t: 1.0,
  ],
)
@pytest.mark.parametrize("make", [spiel_cfr.FullWidthSolver, None])
def test_weights_that_are_none(numbers: Any, make: Any, kuhn: Any) -> None:
  weights = Weights(numbers)
  solver: Any = (
    spiel_cfr.FullWidthSolver(kuhn, RegretMatching(), averaging=spiel_cfr.Averaging(weights))
    if make
    else spiel_cfr.ExternalSamplingSolver(kuhn, average_weights=weights)
  )
  with pytest.raises((errors.ArgumentError, errors.NotFiniteError), match=r"[Ww]eights"):
    solver.run(10)
  assert solver.iteration == 0


def test_a_minimizer_must_be_one(kuhn: Any) -> None:
  for nothing in (None, "cfr", RegretMatching, 1):
    with pytest.raises(errors.ArgumentError, match="minimizer"):
      spiel_cfr.FullWidthSolver(kuhn, nothing)


@block_kernel
def not_a_number(block: Any) -> None:
  """Writes NaN. In the trial before the first iteration, where `infoset_state` is 1, it keeps the strategy."""
  for i in vector_starts(block):
    expected_value(block, i)
  for i in range(block.size):
    if block.infoset_state[0, block.infoset + i] != 1.0:
      for action in range(block.actions):
        block.strategy[sequence(block, action, i)] = np.nan


class NotANumber(spiel_cfr.RegretMinimizer):
  observe = resume = not_a_number
  infoset_lines = 1


@pytest.mark.parametrize("game", ["kuhn_poker", "partitioned"])
def test_a_minimizer_that_writes_nan(game: str) -> None:
  compiled: Any = game
  if game == "partitioned":
    compiled = spiel_cfr.poker.compile_public_game("leduc_poker", partitioned=True)
  solver = spiel_cfr.FullWidthSolver(compiled, NotANumber())
  with pytest.raises(errors.NotFiniteError):
    solver.run(100)
  for ask in (solver.nash_conv, solver.average_policy, solver.current_policy):
    with pytest.raises(errors.NotFiniteError):
      ask()
  with pytest.raises(errors.NotFiniteError):
    run(spiel_cfr.FullWidthSolver(compiled, NotANumber()), 10)
  with pytest.raises(errors.NotFiniteError):
    spiel_cfr.Restarted(spiel_cfr.FullWidthSolver(compiled, NotANumber())).run(100)


# Threads.


def test_more_threads_than_subtrees() -> None:
  game = spiel_cfr.poker.compile_public_game("leduc_poker", partitioned=True, num_threads=10**9)
  assert game.partition is not None
  assert game.partition.num_threads == len(game.partition.parts) - 1
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(10)
  assert solver.nash_conv() < 3


class Slow(Weights):
  """Waits in the middle of an iteration."""

  def __init__(self) -> None:
    self.entered, self.go_on = threading.Event(), threading.Event()

  def __call__(self, iterations: Any) -> Any:
    self.entered.set()
    assert self.go_on.wait(10)
    return np.ones(len(iterations))


def _sampling(game: Any, weights: Any) -> Any:
  return spiel_cfr.ExternalSamplingSolver(game, average_weights=weights)


def _full_width(game: Any, weights: Any) -> Any:
  return spiel_cfr.FullWidthSolver(game, RegretMatching(), averaging=spiel_cfr.Averaging(weights))


def _restarted(game: Any, weights: Any) -> Any:
  return spiel_cfr.Restarted(_full_width(game, weights))


@pytest.mark.parametrize("make", [_sampling, _full_width, _restarted])
def test_two_threads_on_one_solver(make: Any, kuhn: Any) -> None:
  """Callers wait for the end of a slice of iterations, also later ones."""
  weights = Slow()
  solver = make(kuhn, weights)
  asked: list[Callable[[], Any]] = [
    lambda: solver.run(1),
    lambda: copy.copy(solver).iteration,
    lambda: pickle.loads(pickle.dumps(solver.state_dict())),
  ]
  with concurrent.futures.ThreadPoolExecutor() as pool:
    running = pool.submit(solver.run, 1)
    assert weights.entered.wait(10)
    answers = [pool.submit(ask) for ask in asked]
    assert not any(answer.done() for answer in answers)
    weights.go_on.set()
    running.result()
    assert answers[1].result() in (1, 2)
  assert solver.iteration == 2


_FAMILIES: dict[str, Callable[[Any], Any]] = {
  "full-width": spiel_cfr.CFRPlusSolver,
  "parts": lambda game: spiel_cfr.CFRPlusSolver(
    spiel_cfr.poker.compile_public_game("leduc_poker", partitioned=True)
  ),
  "CFR-BR": spiel_cfr.cfr.CFRBRSolver,
  "restarted": lambda game: spiel_cfr.Restarted(spiel_cfr.DCFRSolver(game), first_attempt=10),
  "pruned": lambda game: spiel_cfr.Pruned(spiel_cfr.CFRPlusSolver(game), min_window=5),
  "sampler": lambda game: spiel_cfr.ExternalSamplingSolver(game, seed=1),
  "sampler, states": lambda game: spiel_cfr.ExternalSamplingSolver(game, seed=1, engine="states"),
  "first-order": spiel_cfr.first_order.OptimisticMirrorDescentSolver,
}


@pytest.mark.parametrize("make", _FAMILIES.values(), ids=_FAMILIES)
def test_readers_never_see_half_an_iteration(make: Callable[[Any], Any]) -> None:
  """Another thread reads a running solver's state between two iterations."""
  game = spiel_cfr.compile_game("leduc_poker")
  solver, twin, stop = make(game), make(game), threading.Event()
  solver.run(1)

  def go_on() -> None:
    while not stop.is_set():
      solver.run(7)

  with concurrent.futures.ThreadPoolExecutor(1) as pool:
    running = pool.submit(go_on)
    try:
      seen = []
      while len(seen) < 5:
        # So that the other thread is in the middle of its iterations.
        time.sleep(0.003)
        seen.append(copy.copy(solver))
    finally:
      stop.set()
    running.result()
  for each in seen:
    if each.iteration > twin.iteration:
      twin.run(int(each.iteration) - int(twin.iteration))
    np.testing.assert_array_equal(each.current_probabilities(), twin.current_probabilities())
    assert each.nash_conv() == twin.nash_conv()


@pytest.mark.parametrize("engine", ["compiled", "states"])
def test_threads_draw_from_one_seed(engine: Any) -> None:
  """Threads that run a solver in turns continue its numbers."""
  game = spiel_cfr.compile_game("kuhn_poker")
  solver, alone = (spiel_cfr.ExternalSamplingSolver(game, seed=1, engine=engine) for _ in range(2))
  with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for each in [pool.submit(solver.run, count) for count in (1, 20, 3, 40, 36)]:
      each.result()
  alone.run(100)
  np.testing.assert_array_equal(solver.average_probabilities(), alone.average_probabilities())


def test_every_way_to_ask_waits_for_its_turn() -> None:
  for name in ("save", "state_dict", "load_state_dict", "restore", "nash_conv", "average_policy"):
    for cls in (spiel_cfr.cfr.FullWidthSolver, spiel_cfr.Restarted, spiel_cfr.Pruned):
      assert hasattr(getattr(cls, name), "__wrapped__"), (cls, name)


def test_callbacks_may_ask_the_solver_that_runs(kuhn: Any) -> None:
  def look(iterations: Any) -> Any:
    if solver.iteration:
      pickle.dumps(solver.state_dict())
      assert solver.nash_conv() >= 0
    return np.ones(len(iterations))

  solver = _full_width(kuhn, Weights(look))
  solver.run(3)
  assert solver.iteration == 3


def test_an_error_or_an_interrupt_lets_go(kuhn: Any) -> None:
  def fail(iterations: Any) -> Any:
    raise KeyboardInterrupt

  solver = spiel_cfr.FullWidthSolver(
    kuhn, RegretMatching(), averaging=spiel_cfr.Averaging(Weights(fail))
  )
  for _ in range(2):
    with pytest.raises(KeyboardInterrupt):
      solver.run(1)
  plain = spiel_cfr.CFRSolver(kuhn)
  with pytest.raises(errors.ArgumentError):
    plain.run(0)
  plain.run(1)
  pickle.loads(pickle.dumps(plain)).run(1)


# Iterations that floating-point numbers can hardly count.


@pytest.mark.parametrize(
  ("make", "name"),
  [
    (spiel_cfr.CFRPlusSolver, "counts"),
    (spiel_cfr.DCFRSolver, "counts"),
    (spiel_cfr.first_order.OptimisticMirrorDescentSolver, "iteration"),
  ],
)
def test_iterations_are_counted_up_to_2_53(make: Any, name: str, kuhn: Any) -> None:
  solver = make(kuhn)
  solver.run(10)
  state = solver.state_dict()

  def after(iteration: int) -> Any:
    if name == "iteration":
      return state | {name: iteration}
    return state | {name: np.array([iteration, *state[name][1:]], state[name].dtype)}

  solver.load_state_dict(after(2**53 - 3))
  solver.run(2)
  solver.evaluate_and_update_policy()
  assert solver.iteration == 2**53
  assert 0 < solver.nash_conv() < 1
  with pytest.raises(errors.CheckpointMismatchError, match="the iteration is possible"):
    solver.load_state_dict(after(2**53 + 1))


# Out of bounds.


@pytest.mark.parametrize("counted", ["befor", ("before", "after"), 1, None, {"before"}])
def test_which_strategies_count_has_a_name(counted: Any) -> None:
  with pytest.raises(errors.ArgumentError, match="counted"):
    spiel_cfr.Averaging(counted=counted)


@pytest.mark.parametrize("averaging", [1.0, "linear", None, spiel_cfr.Averaging])
def test_averaging_is_an_averaging(averaging: Any, kuhn: Any) -> None:
  with pytest.raises(errors.ArgumentError, match="averaging must be of type Averaging"):
    spiel_cfr.FullWidthSolver(kuhn, RegretMatching(), averaging=averaging)


@pytest.mark.parametrize(
  "changes",
  [
    {"starting_stack": 20000.5},
    {"starting_stack": math.nan},
    {"starting_stack": 2**40},
    {"pot": 500.0},
    {"pot": "500"},
    {"big_blind": 0.5},
    {"board": None},
    {"reaches": None},
    {"reaches": [["x"]]},
  ],
  ids=str,
)
def test_endgames_are_checked_before_open_spiel_sees_them(changes: Any) -> None:
  whole = {"board": "7s9h9cTc2d", "pot": 500, "reaches": np.ones((2, 1326))}
  spiel_cfr.poker.Endgame(**whole)
  with pytest.raises(errors.EndgameError):
    spiel_cfr.poker.Endgame(**whole | changes)


_POT = (
  "universal_poker(betting=nolimit,numPlayers=2,numRounds=2,blind={},firstPlayer=1 1,numSuits=2,"
  "numRanks=3,numHoleCards=1,numBoardCards=0 1,stack=20 20,potSize={},bettingAbstraction=fchpa)"
)


def test_a_pot_that_is_not_the_blinds_is_refused() -> None:
  load_game(_POT.format("5 5", 10))
  load_game(_POT.format("1 2", 0))
  for string in (_POT.format("1 2", 10), _POT.format("5 5", 8)):
    with pytest.raises(errors.GameError, match="potSize"):
      load_game(string)
    for compile_it in (spiel_cfr.compile_game, spiel_cfr.poker.compile_public_game):
      with pytest.raises(errors.GameError, match="potSize"):
        compile_it(pyspiel.load_game(string))


@pytest.mark.parametrize(
  "make",
  [
    lambda game: spiel_cfr.Pruned(spiel_cfr.CFRPlusSolver(game)),
    spiel_cfr.first_order.OptimisticMirrorDescentSolver,
    spiel_cfr.first_order.KOMWUSolver,
    spiel_cfr.first_order.MirrorProxSolver,
  ],
)
def test_averages_that_are_no_strategies_are_refused(make: Any, kuhn: Any) -> None:
  solver = make(kuhn)
  solver.run(60)
  state = solver.state_dict()
  make(kuhn).load_state_dict(state)
  sums = state["solver.cumulative" if "solver.cumulative" in state else "cumulative"]
  played = np.flatnonzero(sums)
  sums[played[len(played) // 2]] *= 1.5
  with pytest.raises(errors.CheckpointMismatchError):
    solver.load_state_dict(state)


# Numbers.


def test_weights_that_overflow_are_refused_before_they_do(kuhn: Any) -> None:
  solver = spiel_cfr.DCFRSolver(kuhn, gamma=100)
  with pytest.raises(errors.NotFiniteError, match="gamma=2"):
    solver.run(100_000)
  assert 100 < solver.iteration < 1100
  # What there is is still right.
  assert solver.nash_conv() < 0.05
  sampler = spiel_cfr.ExternalSamplingSolver(kuhn, average_weights=Power(100))
  with pytest.raises(errors.NotFiniteError, match="gamma=2"):
    sampler.run(100_000)
  assert np.isfinite(sampler.average_probabilities()).all()
  falling = spiel_cfr.cfr.HSDCFRSolver(kuhn, horizon=10**6, first_gamma=300.0)
  with pytest.raises(errors.NotFiniteError):
    falling.run(100_000)


def _scaled(factor: float) -> str:
  ends = [f't "" {n} "" {{ {p * factor!r} {-p * factor!r} }}' for n, p in ((1, 3), (2, -1), (3, 2))]
  return "\n".join(
    [
      'EFG 2 R "" { "0" "1" } ""',
      'p "" 1 1 "" { "a" "b" } 0',
      ends[0],
      'p "" 2 1 "" { "a" "b" } 0',
      *ends[1:],
      "",
    ]
  )


@pytest.mark.parametrize("factor", [1e-310, 1e-160, 1e-141, 1e141, 1e150, 5e307])
def test_payoffs_beyond_floats_are_refused(factor: float) -> None:
  game = pyspiel.load_efg_game(_scaled(factor))
  for make in (
    spiel_cfr.CFRSolver,
    spiel_cfr.AdaptiveOptimisticCFRSolver,
    spiel_cfr.ExternalSamplingSolver,
  ):
    with pytest.raises(errors.InvalidPayoffError, match="Multiply"):
      make(game)
  with pytest.raises(errors.InvalidPayoffError, match="Multiply"):
    spiel_cfr.OutcomeSamplingSolver(game, engine="states")


@pytest.mark.parametrize("exponent", [-440, -200, 200, 440])
def test_the_unit_of_payoffs_does_not_matter_in_between(exponent: int) -> None:
  """A power of two changes no digit of anything."""
  for make in (
    spiel_cfr.CFRPlusSolver,
    spiel_cfr.AdaptiveOptimisticCFRSolver,
    spiel_cfr.cfr.HedgeCFRSolver,
  ):
    policies = []
    for factor in (1.0, 2.0**exponent):
      solver = make(pyspiel.load_efg_game(_scaled(factor)))
      solver.run(200)
      policies.append(solver.average_probabilities())
    np.testing.assert_array_equal(*policies)


# Games in Python that are not what they should be.

_TYPE = game_type("edges", pyspiel.GameType.Utility.GENERAL_SUM)


class Edges(pyspiel.Game):
  """Chance, player 0, chance, player 1; one of these nodes is wrong."""

  def __init__(self, wrong: str) -> None:
    info = pyspiel.GameInfo(
      num_distinct_actions=2,
      max_chance_outcomes=2,
      num_players=2,
      min_utility=-1.0,
      max_utility=1.0,
      max_game_length=4,
    )
    super().__init__(_TYPE, info, {})
    self.wrong = wrong

  def new_initial_state(self) -> "EdgesState":
    return EdgesState(self)

  def __deepcopy__(self, memo: Any) -> "Edges":
    return self


class EdgesState(pyspiel.State):
  def __init__(self, game: Edges) -> None:
    super().__init__(game)
    self.wrong, self.path = game.wrong, ()  # type: ignore[var-annotated]

  def current_player(self) -> int:
    if len(self.path) == 3 and self.wrong == "player":
      return 2
    return (pyspiel.PlayerId.CHANCE, 0, pyspiel.PlayerId.CHANCE, 1, pyspiel.PlayerId.TERMINAL)[
      len(self.path)
    ]

  def _legal_actions(self, player: int) -> list[int]:
    if player == 1 and self.path[:3] == (1, 1, 1):
      return {"twice": [0, 0], "high": [0, 2], "low": [-1, 0]}.get(self.wrong, [0, 1])
    if player == 1 and self.wrong == "changing" and self.path[0]:
      return [0]
    return [0, 1]

  def chance_outcomes(self) -> list[tuple[int, float]]:
    if self.wrong == "chance" and self.path == (1, 1):
      return [(0, 0.5), (1, 0.4)]
    if self.wrong == "negative chance" and self.path == (1, 1):
      return [(0, -0.5), (1, 1.5)]
    return [(0, 0.5), (1, 0.5)]

  def _apply_action(self, action: int) -> None:
    self.path = (*self.path, action)

  def is_terminal(self) -> bool:
    return len(self.path) == 4

  def returns(self) -> list[float]:
    if self.is_terminal() and self.path[:3] == (1, 1, 1):
      return {"short": [1.0], "long": [1.0, -1.0, 0.0], "nan": [math.nan, 0.0]}.get(
        self.wrong, [1.0, -1.0]
      )
    return [0.5, -0.5]

  def information_state_string(self, player: int | None = None) -> str:
    odd = self.wrong in ("twice", "high", "low") and self.path[:3] == (1, 1, 1)
    return f"{self.current_player()}{' odd' if odd else ''}"

  def __str__(self) -> str:
    return str(self.path)

  def clone(self) -> "EdgesState":
    return copy.copy(self)

  def child(self, action: int) -> "EdgesState":
    result = type(self)(self.get_game())
    result.path = (*self.path, action)
    return result


_WRONG = [
  "twice",
  "high",
  "low",
  "changing",
  "chance",
  "negative chance",
  "short",
  "long",
  "nan",
  "player",
]


@pytest.mark.parametrize("wrong", _WRONG)
def test_sampled_games_that_break_their_word(wrong: str) -> None:
  solver = spiel_cfr.ExternalSamplingSolver(Edges(wrong), engine="states")
  if wrong == "long":
    pytest.skip("OpenSpiel itself looks at one return only")
  with pytest.raises(errors.GameError, match="history"):
    solver.run(1000)


@pytest.mark.parametrize("wrong", _WRONG)
def test_games_that_break_their_word(wrong: str) -> None:
  with pytest.raises(errors.GameError) as raised:
    spiel_cfr.compile_game(Edges(wrong))
  # The message quotes a state, or says which terminal state it is.
  assert "history" in str(raised.value) or wrong == "nan"


def test_probabilities_that_do_not_sum_to_1_are_summed() -> None:
  with pytest.raises(errors.GameError, match=r"sum to 0\.9\."):
    spiel_cfr.compile_game(Edges("chance"))


class Endless(Edges):
  """A game that never ends, contrary to its declaration."""

  def __init__(self, max_game_length: int) -> None:
    super().__init__("")
    self.length = max_game_length

  def new_initial_state(self) -> "EndlessState":
    return EndlessState(self)

  def max_game_length(self) -> int:
    return self.length


class EndlessState(EdgesState):
  def current_player(self) -> int:
    return len(self.path) % 2

  def is_terminal(self) -> bool:
    return False

  def information_state_string(self, player: int | None = None) -> str:
    return str(len(self.path))


def test_games_that_never_end() -> None:
  with pytest.raises(errors.GameError, match="after 4 moves, its max_game_length"):
    estimate_view(GameView(Endless(4)))
  # As far as the time allows.
  found = estimate_view(GameView(Endless(10**9)), seconds=0.01)
  assert (found.descents, found.terminals > 2) == (1, True)
  with pytest.raises(errors.GameTooLargeError):
    spiel_cfr.compile_game(Endless(4), max_nodes=1000)


class EndlessKindState(pyspiel.State):
  """A state of a game without end, in which chance or two players move in turn."""

  def __init__(self, game: "EndlessKind") -> None:
    super().__init__(game)
    self.chance, self.length = game.chance, 0

  def current_player(self) -> int:
    return int(pyspiel.PlayerId.CHANCE) if self.chance else self.length % 2

  def _legal_actions(self, player: int) -> list[int]:
    return [0, 1]

  def chance_outcomes(self) -> list[tuple[int, float]]:
    return [(0, 0.5), (1, 0.5)]

  def _apply_action(self, action: int) -> None:
    self.length += 1

  def is_terminal(self) -> bool:
    return False

  def returns(self) -> list[float]:
    return [0.0, 0.0]

  def information_state_string(self, player: int | None = None) -> str:
    return str(self.length % 2)

  def __str__(self) -> str:
    return str(self.length)


class EndlessKind(Edges):
  def __init__(self, chance: bool) -> None:
    super().__init__("")
    self.chance = chance

  def new_initial_state(self) -> EndlessKindState:
    return EndlessKindState(self)


@pytest.mark.parametrize("chance", [True, False])
@pytest.mark.filterwarnings("ignore::spiel_cfr.mccfr.state_engine.ImperfectRecallWarning")
def test_histories_without_end_are_named(chance: bool) -> None:
  game = EndlessKind(chance)
  for make in (
    lambda: spiel_cfr.ExternalSamplingSolver(game, max_nodes=1000),
    lambda: spiel_cfr.ExternalSamplingSolver(game, engine="compiled", max_nodes=1000),
    lambda: spiel_cfr.ExternalSamplingSolver(game, engine="states"),
    lambda: spiel_cfr.OutcomeSamplingSolver(game, engine="states"),
    lambda: spiel_cfr.compile_game(game),
  ):
    with pytest.raises(errors.GameError):
      make().run(1)


class Odd(Edges):
  """A game with one odd answer, after a first card and a first move of 1."""

  def __init__(self, question: str, answer: Any) -> None:
    super().__init__("")
    self.question, self.answer = question, answer

  def new_initial_state(self) -> "OddState":
    return OddState(self)


class OddState(EdgesState):
  # OpenSpiel's own, which know the history.
  child, clone = pyspiel.State.child, pyspiel.State.clone

  def _answer(self, question: str, good: Any) -> Any:
    game = self.get_game()
    if game.question != question or self.path[:2] != (1, 1):
      return good
    if isinstance(game.answer, Exception):
      raise game.answer
    return game.answer

  def _legal_actions(self, player: int) -> Any:
    return self._answer("legal actions", [0, 1])

  def chance_outcomes(self) -> Any:
    return self._answer("chance outcomes", [(0, 0.5), (1, 0.5)])

  def returns(self) -> Any:
    return self._answer("returns", [0.5, -0.5])

  def information_state_string(self, player: int | None = None) -> Any:
    return self._answer("infostate", str(self.current_player()))


_ODD = [
  ["a"],
  None,
  5.5,
  [10**30, 10**400],
  [(0, "1.0")],
  [(0, 1.0, 0)],
  [1j, 0],
]


@pytest.mark.parametrize("answer", _ODD, ids=repr)
@pytest.mark.parametrize("question", ["legal actions", "chance outcomes", "returns", "infostate"])
def test_answers_that_cannot_be_read(question: str, answer: Any) -> None:
  for keep in (None, lambda state, legal: legal):
    with pytest.raises(errors.GameError, match="history"):
      spiel_cfr.compile_game(Odd(question, answer), action_filter=keep)


_QUESTIONS = ["legal actions", "chance outcomes", "returns", "infostate"]


@pytest.mark.parametrize(
  "problem",
  [
    KeyError("card"),
    AttributeError("card"),
    ZeroDivisionError(),
    AssertionError(),
    Exception("card"),
  ],
  ids=repr,
)
@pytest.mark.parametrize("question", _QUESTIONS)
def test_exceptions_of_games_have_a_history(question: str, problem: Exception) -> None:
  game = Odd(question, problem)
  for ask in (spiel_cfr.compile_game, spiel_cfr.estimate_size):
    if question == "returns" and ask is spiel_cfr.estimate_size:
      continue
    with pytest.raises(errors.UnsupportedGameError, match=r"history \[1, 1") as raised:
      ask(game)
    assert type(raised.value.__cause__) is type(problem)
    assert type(problem).__name__ in str(raised.value)


class AtOnce(OddState):
  """A state that raises an exception at its first move."""

  def _answer(self, question: str, good: Any) -> Any:
    if len(self.path) == 1 and question == self.get_game().question:
      raise KeyError("card")
    return good


def test_exceptions_at_the_first_moves_have_a_history(monkeypatch: Any) -> None:
  monkeypatch.setattr(Odd, "new_initial_state", lambda game: AtOnce(game))
  with pytest.raises(errors.UnsupportedGameError, match=r"history \[\d\].*KeyError") as raised:
    spiel_cfr.compile_game(Odd("infostate", None))
  assert isinstance(raised.value.__cause__, KeyError)
  monkeypatch.setattr(AtOnce, "chance_outcomes", lambda state: {}["card"])
  with pytest.raises(errors.GameError, match=r"history \[\], KeyError: 'card'") as raised:
    spiel_cfr.compile_game(Odd("infostate", None))
  assert isinstance(raised.value.__cause__, KeyError)


def test_exceptions_of_observations_have_a_history() -> None:
  def no_name(state: Any, player: int) -> str:
    raise LookupError("card")

  with pytest.raises(errors.UnsupportedGameError, match=r"history \[\d.*LookupError: card"):
    spiel_cfr.compile_game("kuhn_poker", infostate=no_name)


def test_infostates_must_be_text() -> None:
  """Otherwise digests and files of games and policies would fail later."""
  with pytest.raises(errors.UnsupportedGameError, match=r"history \[1, 1.*surrogates"):
    spiel_cfr.compile_game(Odd("infostate", "card \ud800"))


@pytest.mark.parametrize("answer", [None, 3, [[0]], [0.5], [], ["a"]])
def test_filters_that_keep_no_actions(answer: Any) -> None:
  with pytest.raises(errors.ArgumentError, match=r"action filter.*history"):
    spiel_cfr.compile_game("kuhn_poker", action_filter=lambda state, legal: answer)


def test_estimates_of_games_that_break_their_word() -> None:
  with pytest.raises(errors.UnsupportedGameError, match="neither a player nor chance"):
    spiel_cfr.estimate_size(Edges("player"))
  with pytest.raises(errors.UnsupportedGameError, match="no legal action"):
    spiel_cfr.estimate_size(Odd("legal actions", []))


# Paths.

_POLICY = spiel_cfr.CFRSolver("kuhn_poker").average_policy()
_TAKE_PATHS = {
  "load_compiled_game": spiel_cfr.load_compiled_game,
  "CompiledGame.save": lambda path: spiel_cfr.compile_game("kuhn_poker").save(path),
  "Solver.save": lambda path: spiel_cfr.CFRSolver("kuhn_poker").save(path),
  "Solver.restore": lambda path: spiel_cfr.CFRSolver("kuhn_poker").restore(path),
  "Solver.load": lambda path: spiel_cfr.Solver.load(path, "kuhn_poker"),
  "save_efg": lambda path: spiel_cfr.exchange.save_efg("kuhn_poker", path),
  "save_policy": lambda path: spiel_cfr.save_policy("kuhn_poker", _POLICY, path),
  "load_policy": lambda path: spiel_cfr.load_policy("kuhn_poker", path),
  "load_endgame": spiel_cfr.load_endgame,
  "Endgame.save": lambda path: spiel_cfr.poker.Endgame("7s9h9cTc", 2, np.ones((2, 1326))).save(
    path
  ),
  "TraceFile": spiel_cfr.runs.TraceFile,
  "read_trace": spiel_cfr.runs.read_trace,
  "Checkpoints": lambda path: spiel_cfr.Checkpoints(path, every=1),
  "explore": lambda path: spiel_cfr.explore(_POLICY, path),
  "sweep": lambda path: spiel_cfr.sweep(
    {"game": ["kuhn_poker"], "solver": ["cfr"]}, folder=path, iterations=1, progress=False
  ),
}


@pytest.mark.parametrize("name", _TAKE_PATHS)
def test_invalid_paths_are_refused(name: str, monkeypatch: Any, tmp_path: Any) -> None:
  """File descriptors are not paths: reading one closes it, and `True` is standard output."""
  monkeypatch.chdir(tmp_path)
  reading, writing = os.pipe()
  for value in (writing, reading, True, None, 3.5, b"a", "", "a\0b", "\ud800", ["a"]):
    with pytest.raises(errors.ArgumentError, match="must be a path"):
      _TAKE_PATHS[name](value)
  for descriptor in (reading, writing):
    os.close(descriptor)
  assert not list(tmp_path.iterdir())


def test_folders_are_no_files(monkeypatch: Any, tmp_path: Any) -> None:
  monkeypatch.chdir(tmp_path)
  for folder in (".", "/", tmp_path):
    for name in ("save_efg", "load_policy", "load_compiled_game", "Endgame.save", "read_trace"):
      with pytest.raises(IsADirectoryError):
        _TAKE_PATHS[name](folder)
  assert not list(tmp_path.iterdir())


# Arguments of another kind.


@pytest.mark.parametrize("checkpoints", ["folder", pathlib.Path("folder"), True, 3])
def test_checkpoints_are_no_folder(checkpoints: Any, kuhn: Any) -> None:
  with pytest.raises(errors.ArgumentError, match=r"Checkpoints\('folder', every"):
    run(spiel_cfr.CFRSolver(kuhn), 10, checkpoints=checkpoints)


@pytest.mark.parametrize("traces", [["a.csv"], "a.csv", spiel_cfr.runs.TraceFile("a.csv"), None, 3])
def test_traces_are_no_names(traces: Any, kuhn: Any, tmp_path: Any, monkeypatch: Any) -> None:
  monkeypatch.chdir(tmp_path)
  for ask in (
    lambda: run(spiel_cfr.CFRSolver(kuhn), 10, traces=traces),
    lambda: spiel_cfr.solve(kuhn, iterations=1, traces=traces),
  ):
    with pytest.raises(errors.ArgumentError, match=r"list of traces, such as \[runs\.TraceFile"):
      ask()
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("solver", [3, spiel_cfr.CFRSolver, RegretMatching(), b"cfr"])
def test_solvers_are_named_or_made(solver: Any, kuhn: Any) -> None:
  with pytest.raises(errors.ArgumentError, match=r"catalogue\.SOLVERS.*CFRPlusSolver\(game\)"):
    spiel_cfr.solve("leduc_poker", solver=solver)
  for nothing in (solver, "kuhn_poker", kuhn):
    with pytest.raises(errors.ArgumentError, match=r"CFRPlusSolver\(game\).*solve takes a game"):
      run(nothing, 10)


def test_games_by_name_are_compiled() -> None:
  assert spiel_cfr.abstraction.lossless_abstraction("leduc_poker").num_infosets == 288
  assert choose_solver("kuhn_poker") == choose_solver(spiel_cfr.compile_game("kuhn_poker"))
  for ask in (spiel_cfr.abstraction.lossless_abstraction, choose_solver):
    with pytest.raises(errors.ArgumentError, match="game"):
      ask(3)


class _NeverRestarted(pyspiel.Bot):
  """Plays uniformly, and leaves out what OpenSpiel calls before a game."""

  def __init__(self):
    pyspiel.Bot.__init__(self)

  def provides_policy(self):
    return True

  def get_policy(self, state):
    return [(action, 1 / len(state.legal_actions())) for action in state.legal_actions()]

  def step(self, state):
    return state.legal_actions()[0]


@pytest.mark.parametrize(
  "use",
  [
    lambda bots: spiel_cfr.nash_conv("kuhn_poker", bots),
    lambda bots: spiel_cfr.referee.play_match("kuhn_poker", bots, bots, deals=1),
  ],
)
def test_a_bot_that_leaves_a_method_out_is_told_which(use):
  with pytest.raises(errors.PolicyError, match=r"has no method restart_at\(state\)"):
    use([_NeverRestarted(), _NeverRestarted()])


def test_a_seat_that_a_game_has_not():
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  for policy in (solver, solver.average_policy(), spiel_cfr.solve_lp("kuhn_poker")):
    with pytest.raises(errors.ArgumentError, match="from 0 to 1, not 2"):
      spiel_cfr.PolicyBot(policy, 2)


@pytest.mark.parametrize("objective", ["social", None, 2, True])
def test_objectives_are_named(objective):
  with pytest.raises(
    errors.ArgumentError, match="one of 'welfare', 'fairness' or a player, 0 or 1"
  ):
    spiel_cfr.correlated.optimal_equilibrium("kuhn_poker", objective=objective)


def test_functions_for_constant_sum_games_refuse_others():
  with pytest.raises(errors.UnsupportedGameError, match="need not have a value"):
    spiel_cfr.solve_lp("kuhn_poker(players=3)")


def test_doubtful_games_give_warnings():
  with pytest.warns(errors.DoubtfulGameWarning, match="information state string is empty"):
    spiel_cfr.compile_game("matching_pennies_3p", infostate=lambda state, player: "")
  limits = {"min_utility": -1.0, "max_utility": 1.0}
  with pytest.warns(
    errors.DoubtfulGameWarning, match="returns are from -2 to 2, .* promise -1 to 1"
  ):
    state_checks.warn_of_doubts(_Promising(**limits), [["a"], ["b"]], (-2.0, 2.0))


class _Promising:
  """A game with given returns."""

  def __init__(self, min_utility, max_utility):
    self.min_utility, self.max_utility = lambda: min_utility, lambda: max_utility

  def get_type(self):
    return pyspiel.load_game("kuhn_poker").get_type()


_ARRAY = np.full(3, np.nan)
_DOORS: dict[str, Callable[[Any], Any]] = {
  "Mediator": lambda bad: spiel_cfr.correlated.Mediator(bad),
  "MediatedBot": lambda bad: spiel_cfr.correlated.MediatedBot(bad, 0),
  "MixturePolicy": lambda bad: spiel_cfr.correlated.MixturePolicy("kuhn_poker", bad),
  "EmpiricalPlay.gap": lambda bad: spiel_cfr.correlated.EmpiricalPlay("kuhn_poker").gap(bad),
  "objective": lambda bad: spiel_cfr.correlated.optimal_equilibrium("kuhn_poker", objective=bad),
  "title": lambda bad: spiel_cfr.explore(_POLICY, "page.html", title=bad),
  "below": lambda bad: spiel_cfr.explore(_POLICY, "page.html", below=bad),
  "load_state_dict": lambda bad: spiel_cfr.CFRSolver("kuhn_poker").load_state_dict(bad),
  "lock": lambda bad: spiel_cfr.CFRSolver("kuhn_poker").lock({}, bad),
  "snapshot": lambda bad: spiel_cfr.CFRSolver("kuhn_poker").snapshot(bad),
  "unreached": lambda bad: spiel_cfr.CFRSolver("kuhn_poker").average_policy(bad),
  "sampler": lambda bad: spiel_cfr.mccfr.SamplingSolver("kuhn_poker", bad),
  "minimizer": lambda bad: RegretMatching().initial_infoset_state(bad),
  "Hedge": lambda bad: spiel_cfr.regret_minimizers.Hedge().initial_infoset_state(bad),
  "baseline": lambda bad: spiel_cfr.referee.play_match(
    "kuhn_poker", _POLICY, _POLICY, deals=1, baseline=bad
  ),
  "key": lambda bad: spiel_cfr.referee.value_baseline("kuhn_poker", _POLICY, key=bad),
  "FunctionPolicy": lambda bad: spiel_cfr.referee.FunctionPolicy("kuhn_poker", bad),
  "loss_bounds": lambda bad: spiel_cfr.StablePredictiveCFRSolver(
    "kuhn_poker", steps="paper", loss_bounds=bad
  ),
  "solve, iterations": lambda bad: spiel_cfr.solve("kuhn_poker", iterations=bad),
  "solve, traces": lambda bad: spiel_cfr.solve("kuhn_poker", iterations=1, traces=bad),
  "solve, checkpoints": lambda bad: spiel_cfr.solve("kuhn_poker", iterations=1, checkpoints=bad),
  "solve, evaluate_at": lambda bad: spiel_cfr.solve("kuhn_poker", iterations=1, evaluate_at=bad),
}  # fmt: skip


@pytest.mark.parametrize(
  "bad",
  [1e308, _ARRAY, object(), 10**400, b"x"],
  ids=["number", "array", "object", "integer", "bytes"],
)
@pytest.mark.parametrize("door", _DOORS)
def test_arguments_of_another_kind(door: str, bad: Any, tmp_path: Any, monkeypatch: Any) -> None:
  monkeypatch.chdir(tmp_path)
  with pytest.raises(errors.SpielCFRError, match=r"\w{3}"):
    _DOORS[door](bad)


@pytest.mark.parametrize("title", ["\ud800", b"Kuhn", math.nan, -math.inf])
def test_titles_are_texts(title: Any, tmp_path: Any) -> None:
  with pytest.raises(errors.ArgumentError, match="title must be a string"):
    spiel_cfr.explore(_POLICY, tmp_path / "page.html", title=title)


@pytest.mark.parametrize(
  "make",
  [lambda solver: solver, lambda solver: solver.average_policy(), lambda solver: [solver] * 2],
)
@pytest.mark.parametrize(
  "ask",
  [
    spiel_cfr.judge,
    spiel_cfr.referee.value_baseline,
    lambda game, policy: spiel_cfr.referee.nash_conv_lower_bound(game, policy, episodes=1),
    lambda game, policy: spiel_cfr.referee.play_match(
      game, policy[0] if isinstance(policy, list) else policy, _POLICY, deals=1
    ),
  ],
)
def test_referees_refuse_policies_of_other_games(ask: Any, make: Any) -> None:
  """Infostates of Kuhn poker for two and for three have the same strings."""
  solver = spiel_cfr.CFRSolver("kuhn_poker(players=3)")
  with pytest.raises(errors.PolicyError, match="for another game"):
    ask("kuhn_poker", make(solver))


def test_no_bound_from_payoffs_whose_squares_overflow() -> None:
  game = pyspiel.load_efg_game(_scaled(1e200))
  uniform = spiel_cfr.policies.uniform
  compiled = spiel_cfr.compile_game(game)
  policy = spiel_cfr.policies.to_dict(compiled, uniform(compiled))
  with pytest.raises(errors.InvalidPayoffError, match="Multiply"):
    spiel_cfr.referee.nash_conv_lower_bound(game, policy, episodes=1)


def test_regrets_where_no_player_decides() -> None:
  game = pyspiel.load_efg_game(
    'EFG 2 R "" { "0" "1" } ""\nc "" 1 "" { "a" 1/2 "b" 1/2 } 0\nt "" 1 "" { 1 -1 }\nt "" 2 "" { 0 0 }\n'
  )
  with pytest.raises(errors.UnsupportedGameError, match="no player decides"):
    spiel_cfr.evaluation.largest_infoset_regret(game, {})


@pytest.mark.parametrize("factor", [5e-324, 1e-310, 1e200])
def test_nothing_is_measured_that_underflows(factor: float) -> None:
  compiled = spiel_cfr.compile_game(pyspiel.load_efg_game(_scaled(factor)))
  policy = spiel_cfr.policies.to_dict(compiled, spiel_cfr.policies.uniform(compiled))
  for ask in (spiel_cfr.nash_conv, spiel_cfr.expected_values, spiel_cfr.exploitability):
    with pytest.raises(errors.InvalidPayoffError, match="Multiply"):
      ask(compiled, policy)


@pytest.mark.parametrize(
  "make",
  [
    lambda keep: spiel_cfr.compile_game("kuhn_poker", action_filter=keep),
    lambda keep: spiel_cfr.poker.compile_public_game("leduc_poker", keep),
    lambda keep: spiel_cfr.games.compile_vector_game("leduc_poker", keep),
    lambda keep: spiel_cfr.estimate_size("kuhn_poker", action_filter=keep),
  ],
)
def test_filters_that_raise(make: Any) -> None:
  def no_card(state: Any, legal: list[int]) -> list[int]:
    raise KeyError("card")

  with pytest.raises(errors.UnsupportedGameError, match=r"history \[.*KeyError: 'card'"):
    make(no_card)
