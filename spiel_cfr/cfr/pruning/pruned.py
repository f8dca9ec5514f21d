"""CFR+ with best-response pruning: actions that cannot matter for a while are pruned for a window of iterations.

Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via Pruning" (2017). While the
regret of an action stays negative nothing at or below it need be looked at. So every so many iterations the solver says
what cannot become positive soon, and goes on in a game that is compacted to the rest; when the window is over, what was
pruned comes back with the history of a best response in hindsight: see `cfr.pruning.backfill`. docs/continuing.md has
the proof; `cfr.pruning.reference_pruning` the papers' algorithms, iteration by iteration.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, aligned, require
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.cfr.descriptions import split_by_place
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.numbers import exclusive
from spiel_cfr.cfr.pruning.compaction import Compacted
from spiel_cfr.cfr.pruning.noted_matching import NotedMatching, noted
from spiel_cfr.cfr.pruning.window import Window
from spiel_cfr.cfr.pruning.windows import LONGEST, Windows
from spiel_cfr.cfr.stepping import Stepping
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.sequence_form.tree_passes import Memory
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.schedules import evaluated

# The first window begins after so many times its iterations.
_FIRST = 3
# Where nothing can be pruned, the next attempt is this many times as far away.
_IDLE = 2


# What this knows of full-width solvers.


def _base_of(solver: FullWidthSolver) -> Callable[[], FullWidthSolver]:
  """Returns what makes a solver that plays the same, averages what others face, and notes what infosets were worth.

  Raises:
    PruningError: the solver has more than windows can do.
    LockError: a part of the policy is locked.
  """
  for name, is_kept in (
    ("a tapered average", solver.tapered),
    ("correlated sums", solver.correlated),
  ):
    if is_kept:
      raise errors.PruningError(
        f"{solver!r} keeps {name}, which windows do not. Take it without that, or take no pruning."
      )
  if solver._held.any():
    raise errors.LockError(
      f"{solver!r} has a locked policy, and what is pruned goes by what is played. Take no pruning."
    )
  alternating = solver.alternating_updates
  return functools.partial(
    FullWidthSolver,
    solver.compiled_game,
    noted(solver.minimizer, solver._weights),
    alternating_updates=alternating,
    average_weights=solver._weights,
    averaged=("after", "before") if alternating else "before",
  )


def _memory(solver: FullWidthSolver) -> Memory:
  return Memory(solver._strategy, solver._cumulative, solver._state, solver._local)


class Pruned(Stepping):
  """CFR+ with best-response pruning.

      solver = Pruned(CFRPlusSolver("liars_dice"))
      solver.run(10_000)

  An action is pruned for a window of iterations if it is not played and its regret would stay negative although it grew
  by the best response, all losses forgotten, to what the other player has done in the last window, and to `caution`
  times what it has done on average. That is no bound: what comes back too late has a positive regret, which CFR+ makes
  good. Iterations are those of CFR+ until something comes back; averages take the strategies that the other player
  faces: with alternating updates player 0's after the update, player 1's before it.

  Whether a window pays is a matter of counting leaves and sequences, never of a clock, so that runs are repeatable: it
  is to take five times as long as its opening.

  Attributes:
    compiled_game: the game as arrays.
    caution: as given.
    shortest: the fewest iterations of a window.
    longest: as given.
    worthwhile: as given.
  """

  state_names = ("_pruned", "_window_end", "_opened", "_opened_values")
  _workspaces = ("_solver", "_window", "_slices")

  def __init__(
    self,
    solver: FullWidthSolver,
    *,
    caution: float = 1.0,
    shortest: int | None = None,
    worthwhile: float = 0.8,
  ) -> None:
    """Makes the solver.

    Args:
      solver: CFR+, or any full-width solver with regret matching+; it is itself left alone, and where it may be in a
        run does not matter.
      caution: how many times all that the other player has ever done counts: it foresees that it comes back to where it
        was not of late.
      shortest: the fewest iterations of a window; by default, as many as take five times as long as to open it with
        nothing pruned, or 3,000 if these are fewer.
      worthwhile: what part of an iteration's work may be left at most, by counts of leaves and sequences: otherwise
        nothing is pruned. Infinity always prunes what can be.

    Raises:
      PruningError: the minimizer is not regret matching+, the solver keeps a tapered average or correlated sums, or the
        game has other than two players, is an abstraction, or is in vector form.
      LockError: a part of the policy is locked.
      ArgumentError: `solver` is no full-width solver, or a number is out of its range.
    """
    if not isinstance(solver, FullWidthSolver):
      raise errors.ArgumentError(
        f"Only full-width solvers can be pruned, not {arguments.shortened(solver)}."
      )
    self.compiled_game = solver.compiled_game
    self.caution = arguments.real_number(caution, "caution", 0.0, 1e9)
    self.worthwhile = arguments.real_number(worthwhile, "worthwhile", 0.0)
    self.shortest = (
      None if shortest is None else arguments.integer(shortest, "shortest", 1, LONGEST)
    )
    self._windows = Windows(self.compiled_game, self.shortest)
    self._make_solver, self._solver_description = _base_of(solver), solver.description()
    self._start()

  def _start(self) -> None:
    self._solver = self._make_solver()
    self._slices = Slices(self.compiled_game.end)
    memory = _memory(self._solver)
    self._pruned = np.zeros(self.compiled_game.end, bool)
    self._window_end = _FIRST * self._windows.shortest
    self._opened, self._opened_values = aligned(memory.cumulative), memory.local[0].copy()
    self._window: Window | None = None

  @property
  def iteration(self) -> int:  # type: ignore[override]
    """How many iterations have been done."""
    return self._solver.iteration

  @property
  def nodes_touched(self) -> int:
    """How many states a recursive implementation would have visited without pruning."""
    return self._solver.nodes_touched

  @property
  def active_share(self) -> float:
    """What part of the leaves the current window goes through."""
    return self._open_window().left.share if self.num_pruned else 1.0

  @property
  def num_pruned(self) -> int:
    """How many sequences are pruned, those below them not counted."""
    return int(self._pruned.sum())

  @exclusive
  def prepare(self) -> None:
    """Compiles kernels or takes them from disk, and makes what all windows are made of."""
    self._solver.prepare()
    self._windows.prepare()
    window = self._window_on(self._windows.compact(np.zeros_like(self._pruned)))
    window.advance(True, self._solver._numbers(0), np.zeros(2, np.uint64))

  # Iterations.

  def _advance(self, count: int) -> None:
    end = self.iteration + count
    while self.iteration < end:
      # What Ctrl-C must not come between: windows, and what is copied back from them.
      with DeferredInterrupt():
        if self.iteration >= self._window_end:
          self._next_window()
        count = min(end, self._window_end) - self.iteration
        if self.num_pruned:
          numbers = self._solver._numbers(count)
          in_turn = self._solver.alternating_updates
          self._open_window().advance(in_turn, numbers, self._solver._iteration)
        else:
          self._solver._advance(count)

  def _check_finite(self) -> None:
    values = self._open_window().values() if self.num_pruned else self._solver._root_values()
    if not np.isfinite(values).all():
      raise errors.NotFiniteError(
        f"After {self.iteration:,} iterations the value of the game is {values} for its players: regrets have left the "
        "range of floating-point numbers."
      )

  def _open_window(self) -> Window:
    """Returns the window, which is made anew where a state was loaded."""
    if self._window is None:
      self._window = self._window_on(self._windows.compact(self._pruned))
    return self._window

  def _window_on(self, left: Compacted) -> Window:
    return Window(left, self._solver.minimizer, _memory(self._solver), self.compiled_game)

  def _next_window(self) -> None:
    """Ends the window, if there is one, and opens the next."""
    windows, memory, left = self._windows, _memory(self._solver), None
    if self.num_pruned:
      left = self._open_window().left
      windows.catch_up(left, memory, self._opened, self._opened_values)
    length = windows.length(self.iteration, left)
    weights = self._weights(length + 1)
    best = windows.best_responses(memory.cumulative)
    pruned = windows.prunable(
      memory,
      best,
      self._opened,
      self._opened_values,
      float(weights[:-1].sum()),
      self.caution,
      self._pruned,
      float(weights[0]),
    )
    left = windows.compact(pruned) if pruned.any() else None
    if left is None or windows.work(left) > self.worthwhile * windows.work():
      left, pruned = None, np.zeros_like(pruned)
      length = _IDLE * windows.length(self.iteration, None)
    windows.bring_back(self._pruned & ~pruned, memory, best, float(weights[0]))
    self._solver._loaded()
    self._pruned[:], self._window = pruned, None if left is None else self._window_on(left)
    self._opened[:], self._opened_values[:] = memory.cumulative, memory.local[0]
    self._window_end = self.iteration + length

  def _weights(self, count: int) -> Float64s:
    """Returns what the next iterations weigh."""
    minimizer = self._solver.minimizer
    assert isinstance(minimizer, NotedMatching)
    return evaluated(minimizer.weights, np.arange(1, count + 1) + self.iteration)

  # Policies.

  def _sums(self) -> AnyFloats:
    """Returns what the average policy is a multiple of, shape (sequences,); before any iteration, the current one."""
    memory = _memory(self._solver)
    if not self.iteration:
      return self._solver.current_sequence_form()
    if not self.num_pruned:
      return memory.cumulative
    sums = aligned(memory.cumulative)
    self._windows.add_deferred(self._open_window().left, memory, self._opened, sums)
    return sums

  def current_probabilities(self) -> Float64s:
    """Returns a copy of the current policy in behavioural form, shape (sequences,)."""
    return self._solver.current_probabilities()

  def average_probabilities(self) -> Float64s:
    """Returns the average policy in behavioural form, shape (sequences,); uniform where never played to."""
    return forms.behavioral_form(self.compiled_game, self._sums())

  def nash_conv(self) -> float:
    """Returns the NashConv of the average policy, without leaving the arrays."""
    return evaluate.original_nash_conv(self.compiled_game, self._sums())

  # State.

  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of all that changes from one iteration to the next, by name."""
    of_solver = self._solver.state_dict()
    return super().state_dict() | {f"solver.{name}": value for name, value in of_solver.items()}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Takes over what `state_dict` of a solver made with the same arguments has returned.

    Raises:
      CheckpointMismatchError: it is of another solver. This one is then as it was.
    """
    own, of_solver = split_by_place(state, "solver")
    self._check_fits(own)
    solver = self._make_solver()
    solver.load_state_dict(of_solver)
    try:
      self._check_window(own, solver)
    except ValueError as error:
      raise errors.CheckpointMismatchError(f"That is no window of pruning: {error}.") from None
    self._solver, self._window = solver, None
    self._take_over(own)

  def _check_window(self, state: Mapping[str, Any], solver: FullWidthSolver) -> None:
    """Raises ValueError where no run leads to a window in a solver."""
    memory, pruned = _memory(solver), state["_pruned"]
    left = state["_window_end"] - solver.iteration
    require(left <= max(_IDLE, _FIRST) * LONGEST, "the window is possible")
    for name in ("_opened", "_opened_values"):
      require(np.isfinite(state[name]), f"{name} is finite")
    require(state["_opened"] >= 0, "what was faced is not negative")
    require(
      not pruned[forms.uniform(self.compiled_game) == 0].any(), "what is pruned are sequences"
    )
    if pruned.any():
      require(left >= 0, "the window is not over")
      require(not memory.strategy[pruned].any(), "what is pruned is not played")
      require(state["_opened"] <= memory.cumulative, "what was faced does not get less")

  def description(self) -> dict[str, Any]:
    """Returns the class, the arguments of the constructor and the same of the solver, as JSON has them."""
    return super().description() | {"solver": self._solver_description}

  @classmethod
  def _made(cls, first: Any, description: Mapping[str, Any]) -> Self:
    return super()._made(FullWidthSolver._described(first, description["solver"]), description)
