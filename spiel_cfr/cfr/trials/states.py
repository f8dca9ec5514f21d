"""What must be true of the state of restarts on trial when it comes from a file."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.solver import MOST_ITERATIONS
from spiel_cfr.cfr.trials import rule
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# More than any check costs, in iterations.
_COST = 8.0


def check_state(state: Mapping[str, Any], solver: FullWidthSolver, saved: Mapping[str, Any]) -> None:
  """Checks a state that has the right names, types and shapes.

  Args:
    state: see `Restarted.state_names`.
    solver: the solver that is restarted, in its own state.
    saved: the state of the solver before the trial.

  Raises:
    CheckpointMismatchError: no run leads to it, or its best strategies are not as good as it says.
  """
  try:
    _check_counts(state, solver, saved)
    if np.isfinite(state["_scores"]).any():
      _check_best(state["_best"], state["_scores"], solver)
  except ValueError as error:
    raise errors.CheckpointMismatchError(
      f"That is no state of restarts on trial: {error}."
    ) from None


def _check_counts(state: Mapping[str, Any], solver: FullWidthSolver, saved: Mapping[str, Any]) -> None:
  iteration = state["_handed_over"] + solver.iteration
  require(iteration <= MOST_ITERATIONS, "the iteration is possible")
  require(
    0 <= state["num_restarts"] <= state["num_attempts"] <= iteration, "attempts are iterations"
  )
  for name in ("_checked", "_trial", "_last_attempt", "_handed_over"):
    require(0 <= state[name] <= iteration, f"{name} was before")
  # Ctrl-C can come between an iteration and the check after it.
  require(state["_next_check"] >= max(1, iteration), "the next check is not over")
  require(state["_next_check"] < 1 << 63, "the next check can be counted to")
  require(0 <= state["_cost"] <= _COST * iteration, "checks cost what they can cost")
  for name in ("_trial_nash_conv", "_last_nash_conv"):
    require(state[name] > -math.inf, f"{name} is a number, or not there yet")
  for name in ("_scores", "_trial_scores"):
    require(state[name] > -math.inf, f"{name} are numbers, or not there yet")
  trial = state["_trial"]
  require(bool(trial) == bool(saved), "a trial, and nothing else, can be taken back")
  if trial:
    require(not state["_handed_over"], "CFR is not on trial")
    require(0 < state["_trial_length"] <= rule.SHORTEST + trial, "trials have a length")
    require(state["_last_attempt"] == trial, "the last attempt is on trial")
    require(
      saved["iteration"] == trial == solver.iteration - solver.stretch,
      "the trial began at its restart",
    )
  else:
    require(state["_trial_length"] == 0, "there is no trial")
    require(math.isinf(state["_trial_nash_conv"]), "there is no trial")


def _check_best(best: Float64s, scores: Float64s, solver: FullWidthSolver) -> None:
  game = solver.compiled_game
  # Averages are sums of as many roundings as there were iterations.
  tolerance = 100 * math.sqrt(solver.precision)
  _check_sequence_form(game, best, tolerance)
  found = evaluate.scores(game, evaluate.evaluate(game, best))
  scale = max(map(abs, game.payoff_range))
  require(np.abs(found - scores) <= tolerance * scale, "the best strategies are that good")


def _check_sequence_form(game: CompiledGame, sequence_form: Float64s, tolerance: float) -> None:
  require(sequence_form >= 0, "strategies are not negative")
  for tree in game.treeplexes:
    require(abs(sequence_form[tree.root] - 1) <= tolerance, "strategies begin with 1")
    for sequences, infosets in tree.blocks():
      above = sequence_form[tree.parent[infosets]]
      apart = np.abs(sequence_form[sequences].sum(axis=0) - above)
      require(apart <= tolerance, "strategies are played to their end")
