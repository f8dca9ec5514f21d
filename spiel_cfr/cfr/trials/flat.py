"""Restarts on trial in one call of compiled code: the arrays that it takes, and the numbers that it is given."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import aligned_zeros
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.loops import FlatLoop
from spiel_cfr.cfr.loops.iterations import run_iterations
from spiel_cfr.cfr.numbers import check_parameters, check_weights
from spiel_cfr.cfr.trials.kernel import (
  ORIGIN,
  SAVED_ADDITION,
  SAVED_ORIGIN,
  Judge,
  Notes,
  Saved,
  Weights,
  run_on_trial,
)
from spiel_cfr.evaluation.best_responses import best_responses, take_best
from spiel_cfr.games.sequence_form.tree_passes import Memory, Tree, new_scratch
from spiel_cfr.regret_minimizers.regret_minimizer import resumption
from spiel_cfr.regret_minimizers.schedules import evaluated

# What is saved before a restart, by its name in states, in the order of `Saved`.
_ARRAYS = ("_strategy", "_cumulative", "_state", "_local", "_tapered", "_gradients", "_play_values")
# What a compiled run does without asking the solver.
_REPLACED = (
  "_advance",
  "_run_loop",
  "_parameters",
  "_parameter_rows",
  "_average_weights",
  "_additions",
  "_sums",
  "average_candidates",
  "add_to_tapered",
  "restart_from",
  "current_sequence_form",
  "stretch",
)


def _answers_for(solver_class: type[FullWidthSolver], name: str) -> bool:
  """Whether the class from which a solver has this says too, by `is_plain`, when it is what `FullWidthSolver` has."""
  return next("is_plain" in vars(cls) for cls in solver_class.__mro__ if name in vars(cls))


class FlatTrials:
  """The arrays that a solver's restarts on trial take, and what runs them.

  Attributes:
    saved: what the solver was before the restart that is on trial, by the names in its state.
  """

  def __init__(self, solver: FullWidthSolver, notes: tuple[Any, ...]) -> None:
    """Allocates the arrays.

    Args:
      solver: see `fits`.
      notes: what decides, the same arrays as of its owner: control, best, scores, trial_scores.
    """
    game = solver.compiled_game
    self._solver = solver
    control, best, scores, trial_scores = notes
    self._counts = np.zeros(3, np.int64)
    self._notes = Notes(
      control, self._counts, best, scores, trial_scores, np.zeros(game.num_players)
    )
    arrays = self._loop.arrays()
    self._saved = Saved(
      Memory(*(aligned_zeros(*line.shape, dtype=line.dtype) for line in arrays.memory)),
      *(np.zeros_like(line) for line in arrays[1:4]),
    )
    self._saved_arrays = dict(zip(_ARRAYS, (*self._saved.memory, *self._saved[1:]), strict=True))
    self._judge = Judge(
      game.every_infoset.payoff.arrays,
      game.players,
      Tree(game.groups, game.parent),
      aligned_zeros(game.end),
      aligned_zeros(game.end),
      aligned_zeros(game.end),
      new_scratch(),
      aligned_zeros(game.num_players, 2),
    )
    self.saved: dict[str, Any] = {}
    self._bound: tuple[Any, Callable[..., Any]] | None = None

  @staticmethod
  def fits(solver: FullWidthSolver) -> bool:
    """Whether a solver's runs can be compiled as a whole."""
    return (
      type(solver._own_loop) is FlatLoop
      and solver.compiled_game.shared_infosets is None
      and solver.is_plain
      and all(_answers_for(type(solver), name) for name in _REPLACED)
    )

  @property
  def _loop(self) -> FlatLoop:
    """The solver's, which is another one whenever it begins anew."""
    loop = self._solver._own_loop
    assert isinstance(loop, FlatLoop)
    return loop

  def prepare(self) -> None:
    """Compiles the kernel or takes it from disk."""
    _ = self._run

  def advance(self, count: int, saved: Mapping[str, Any]) -> int:
    """Does iterations, checks and restarts.

    Args:
      count: how many iterations, unless it ends before.
      saved: what the solver was before the restart that is on trial; `self.saved` is so afterwards.

    Returns:
      What `run_on_trial` returns; `HAND_OVER` and `NOT_FINITE` are the caller's business.

    Raises:
      ArgumentError: see `FullWidthSolver.run`.
      NotFiniteError: likewise.
    """
    solver, loop = self._solver, self._loop
    if saved and saved is not self.saved:
      for name, line in self._saved_arrays.items():
        line[...] = saved[name]
    origin, now = solver._origin, solver.iteration
    # How many iterations the average is made of before each range of weights, and what these have summed to.
    ranges = [(now - origin, float(loop.cumulative[0])), (0, 0.0)]
    self._counts[ORIGIN] = origin
    if saved:
      self._counts[1:] = saved["_origin"], saved["_last_addition"]
      ranges.append((saved["iteration"] - saved["_origin"], float(saved["_cumulative"][0])))
    steps = np.arange(1, count + 1)
    weights = evaluated(solver._weights, np.concatenate([begin + steps for begin, _ in ranges]))
    for (_, total), part in zip(ranges, weights.reshape(len(ranges), count), strict=True):
      check_weights(part, count, total, solver._most_weight)
    column = weights[:, None]
    parameters = solver._checked_parameters(np.maximum(1, np.arange(now, now + count + 1)))
    check_parameters(parameters, solver.minimizer)
    result: int = self._run(
      solver.alternating_updates,
      parameters,
      Weights(
        np.array([begin + 1 for begin, _ in ranges]),
        column * solver._before,
        column * solver._after,
      ),
      np.zeros(count),
      solver._iteration,
    )
    solver._origin = int(self._counts[ORIGIN])
    self.saved = self._named() if self._notes.control[0]["trial"] else {}
    return result

  @property
  def _run(self) -> Callable[..., Any]:
    """The kernel, with all arguments that stay until something else is held."""
    loop = self._loop
    if self._bound is None or self._bound[0] is not loop._kept:
      dtype = loop.strategy.dtype
      run = run_on_trial.of(dtype).bound(
        run_iterations.of(dtype),
        *loop.kernels(),
        resumption(loop._minimizer).of(dtype),
        best_responses,
        self._solver.compiled_game.every_infoset.payoff.gradient,
        take_best,
        loop.predicts,
        loop.game(),
        loop.arrays(),
        loop._tree,
        self._judge,
        self._saved,
        self._notes,
      )
      self._bound = loop._kept, run
    return self._bound[1]

  def _named(self) -> dict[str, Any]:
    solver = self._solver
    constant = {name: getattr(solver, name) for name in solver._state_names()}
    return (
      constant
      | self._saved_arrays
      | {
        "iteration": int(self._notes.control[0]["trial"]),
        "_origin": int(self._counts[SAVED_ORIGIN]),
        "_last_addition": int(self._counts[SAVED_ADDITION]),
      }
    )
