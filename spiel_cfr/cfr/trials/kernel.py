"""The compiled code of restarts on trial, for games that are gone through as a whole.

What happens when is `rule`'s. Iterations, evaluations and restarts are made of what they are made of elsewhere, and so
the numbers are those of runs that are not compiled, bit for bit.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOAT_TABLE,
  FLOATS,
  INTEGERS,
  AnyFloats,
  Float64s,
  Int64s,
  Uint64s,
  floats,
  tuple_type,
)
from spiel_cfr._numba.kernels import Kernel, inlined, kernel
from spiel_cfr._numba.lines import copy_line, copy_lines, fill_line
from spiel_cfr._numba.simd import number_for
from spiel_cfr.cfr.averaging import ADDITION, note_additions
from spiel_cfr.cfr.loops import IterationNumbers
from spiel_cfr.cfr.loops.iterations import (
  FlatArrays,
  FlatGame,
  flat_arrays_type,
  flat_game_type,
  flat_kernel_types,
  run_iterations_signature,
)
from spiel_cfr.cfr.trials import rule
from spiel_cfr.evaluation.best_responses import BEST_RESPONSES
from spiel_cfr.games.payoffs.payoff import PayoffArrays, gradient_signature, payoff_arrays_type
from spiel_cfr.games.sequence_form.blocks import block_signature
from spiel_cfr.games.sequence_form.tree_passes import (
  TREE,
  Memory,
  Scratch,
  Tree,
  memory_type,
  scratch_type,
  adopt_pass,
  reach_pass,
  backward_pass,
)

_ZERO = np.uint64(0)
# What a call can end with, besides `rule.GO_ON`, the end of the iterations, and `rule.HAND_OVER`: something is not
# finite, and whoever has called finds out what.
NOT_FINITE = -1
# Columns of `Notes.counts`.
ORIGIN, SAVED_ORIGIN, SAVED_ADDITION = range(3)


class Judge(NamedTuple):
  """What evaluations work on, see `best_responses`."""

  payoff: PayoffArrays
  players: Uint64s
  tree: Tree
  multiples: Float64s
  sequence_form: Float64s
  utility: Float64s
  scratch: Scratch
  values: Float64s


class Saved(NamedTuple):
  """What the solver was before the restart that is on trial."""

  memory: Memory
  tapered: AnyFloats
  gradients: Float64s
  play_values: Float64s


class Notes(NamedTuple):
  """What decides about restarts, and what they begin from.

  Attributes:
    control: see `rule.CONTROL`.
    counts: the iteration after which the average began, the same of what is saved, and when that was last added to.
    best: the best strategies so far, shape (sequences,).
    scores: each player's share in their NashConv, shape (players,).
    trial_scores: the same of what the trial has found.
    found: workspace, shape (players,).
  """

  control: Any
  counts: Int64s
  best: Float64s
  scores: Float64s
  trial_scores: Float64s
  found: Float64s


class Weights(NamedTuple):
  """What iterations weigh in averages, by how many the average is made of.

  An average goes on from where it is, begins anew, or is taken back to what it was: in a call it is in one of two such
  ranges or, if the call begins in a trial, three.

  Attributes:
    firsts: the first number of iterations of each range, shape (ranges,).
    before: see `IterationNumbers.weights_before`, the ranges one below the other.
    after: likewise.
  """

  firsts: Int64s
  before: Float64s
  after: Float64s


_JUDGE = tuple_type(
  Judge,
  payoff_arrays_type(types.float64),
  COUNT_TABLE,
  TREE,
  *[FLOATS] * 3,
  scratch_type(types.float64),
  FLOAT_TABLE,
)
_NOTES = tuple_type(Notes, rule.CONTROLS, INTEGERS, *[FLOATS] * 4)
_WEIGHTS = tuple_type(Weights, INTEGERS, FLOAT_TABLE, FLOAT_TABLE)


def _saved_type(number: Any) -> Any:
  return tuple_type(Saved, memory_type(number), floats(number), FLOATS, FLOATS)


@inlined
def _is_finite(numbers: Float64s, players: Uint64s) -> bool:
  """Whether what each player's root is worth is finite: whatever is not makes its way up there."""
  result = True
  for player in range(players.shape[0]):
    result = result and np.isfinite(numbers[players[player, 2]])
  return result


@inlined
def _copy(source: Saved, target: Saved) -> None:
  """Copies what a solver remembers, but for counts."""
  copy_line(source.memory.strategy, target.memory.strategy)
  copy_line(source.memory.cumulative, target.memory.cumulative)
  copy_lines(source.memory.state, target.memory.state)
  copy_lines(source.memory.local, target.memory.local)
  copy_line(source.tapered, target.tapered)
  copy_line(source.gradients, target.gradients)
  copy_line(source.play_values, target.play_values)


@inlined
def _follow(tree: Tree, arrays: FlatArrays) -> None:
  """Brings sequence forms up to date with strategies."""
  groups = np.uint64(tree.groups.shape[0])
  form = arrays.workspace.sequence_form
  reach_pass(_ZERO, groups, tree, arrays.memory.strategy, form, arrays.scratch)


@inlined
def _restart(
  resume: Kernel, tree: Tree, best: Float64s, parameters: Float64s, arrays: FlatArrays
) -> None:
  """Does what `FullWidthSolver.restart_from` does, but for counts and sequence forms."""
  memory, form = arrays.memory, arrays.workspace.sequence_form
  copy_line(best, form)
  adopt_pass(tree, form, memory.strategy)
  for i in range(arrays.held.shape[0]):
    memory.strategy[arrays.held[i]] = arrays.kept[i]
  fill_line(arrays.scratch.value, 0.0)
  backward_pass(
    resume,
    _ZERO,
    np.uint64(tree.groups.shape[0]),
    tree,
    memory.strategy,
    arrays.workspace.utility,
    memory.state,
    memory.local,
    parameters,
    arrays.scratch,
  )
  for line in (memory.cumulative, arrays.tapered):
    fill_line(line, 0.0)
  for line in (arrays.gradients, arrays.play_values):
    fill_line(line, 0.0)


@inlined
def _keep(
  candidate: AnyFloats,
  find_best: Kernel,
  gradient: Kernel,
  block_kernel: Kernel,
  judge: Judge,
  notes: Notes,
) -> bool:
  """Evaluates a candidate, and keeps what is better than the best so far; returns whether it is finite."""
  for player in range(judge.players.shape[0]):
    if not candidate[judge.players[player, 2]] > 0.0:
      return False
  copy_line(candidate, judge.multiples)
  find_best(
    gradient,
    judge.payoff,
    block_kernel,
    judge.players,
    judge.tree,
    judge.multiples,
    judge.sequence_form,
    judge.sequence_form,
    judge.utility,
    judge.scratch,
    judge.values,
  )
  control = notes.control[0]
  for player in range(judge.values.shape[0]):
    if not (np.isfinite(judge.values[player, 0]) and np.isfinite(judge.values[player, 1])):
      return False
  rule.take_better(
    control, judge.players, candidate, judge.values, notes.best, notes.scores, notes.found
  )
  if control.trial != 0:
    for player in range(notes.found.shape[0]):
      notes.trial_scores[player] = min(notes.trial_scores[player], notes.found[player])
  return True


def _signature(number: Any) -> Any:
  return types.int64(
    types.FunctionType(run_iterations_signature(number)),
    *flat_kernel_types(number),
    types.FunctionType(block_signature(number)),
    types.FunctionType(BEST_RESPONSES),
    types.FunctionType(gradient_signature(types.float64)),
    types.FunctionType(block_signature(types.float64)),
    types.boolean,
    flat_game_type(number),
    flat_arrays_type(number),
    TREE,
    _JUDGE,
    _saved_type(number),
    _NOTES,
    types.boolean,
    FLOAT_TABLE,
    _WEIGHTS,
    FLOATS,
    COUNTS,
  )


@kernel(_signature)
def run_on_trial(
  run: Kernel,
  gradient: Kernel,
  observe: Kernel,
  predict: Kernel,
  shared_pass: Kernel,
  resume: Kernel,
  find_best: Kernel,
  judged_gradient: Kernel,
  block_kernel: Kernel,
  predicts: bool,
  game: FlatGame,
  arrays: FlatArrays,
  tree: Tree,
  judge: Judge,
  saved: Saved,
  notes: Notes,
  alternating: bool,
  parameters: Float64s,
  weights: Weights,
  additions: Float64s,
  done: Uint64s,
) -> int:
  """Runs iterations, with checks and restarts on trial between them.

  Args:
    run: `run_iterations`.
    gradient: see there.
    observe: likewise.
    predict: likewise.
    shared_pass: likewise.
    resume: the minimizer's, see `regret_minimizers.regret_minimizer`.
    find_best: `best_responses`.
    judged_gradient: see there.
    block_kernel: likewise.
    predicts: see `run_iterations`.
    game: likewise.
    arrays: likewise.
    tree: of all infosets, those included that iterations leave out.
    judge: what evaluations work on.
    saved: what is taken back.
    notes: what decides.
    alternating: see `run_iterations`.
    parameters: of the last iteration that has been done, and of those to be done; shape (iterations + 1, numbers).
    weights: see there.
    additions: workspace, shape (iterations,).
    done: see `Loop.advance`.

  Returns:
    `rule.GO_ON` when all iterations are done; `rule.HAND_OVER` right after a check that has led to it; or that
    something is not finite, where a check is due or right after iterations.
  """
  control, counts = notes.control[0], notes.counts
  memory, tapered = arrays.memory, arrays.tapered
  cumulative, form = memory.cumulative, arrays.workspace.sequence_form
  current = Saved(memory, tapered, arrays.gradients, arrays.play_values)
  begin, length = np.int64(done[0]), np.int64(additions.shape[0])
  end = begin + length
  while True:
    now = np.int64(done[0])
    if now >= control.next_check:
      passed = done[0] - done[1]
      if passed != _ZERO:
        addition = number_for(tapered, ADDITION * passed)
        for i in range(tapered.shape[0]):
          tapered[i] += addition * cumulative[i]
        done[1] = done[0]
      cost = rule.CHECK
      for which in range(3):
        # In a trial, of the averages alone the tapered one.
        if (which > 0 and cumulative[0] == 0.0) or (which < 2 and control.trial != 0):
          continue
        candidate = form
        if which == 1:
          candidate = cumulative
        elif which == 2:
          candidate = tapered
        if not _keep(candidate, find_best, judged_gradient, block_kernel, judge, notes):
          return NOT_FINITE
        cost += rule.EVALUATION
      control.cost += cost
      control.checked = 0 if control.trial != 0 else now
      began = control.trial
      action: int = rule.decide(control, notes.scores, notes.trial_scores, now)
      if action == rule.HAND_OVER:
        return action
      if action == rule.RESTART:
        _copy(current, saved)
        counts[SAVED_ORIGIN] = counts[ORIGIN]
        counts[SAVED_ADDITION] = np.int64(done[1])
        _restart(resume, tree, notes.best, parameters[now - begin], arrays)
        counts[ORIGIN] = now
        done[1] = done[0]
      elif action == rule.TAKE_BACK:
        _copy(saved, current)
        # To the average these iterations have not been.
        counts[ORIGIN] = counts[SAVED_ORIGIN] + now - began
        done[1] = np.uint64(counts[SAVED_ADDITION] + now - began)
      if action != rule.GO_ON:
        _follow(tree, arrays)
      rule.schedule(control, now, now - counts[ORIGIN])
    if now >= end:
      return rule.GO_ON
    first, number = now - begin, min(end, control.next_check) - now
    stretch = now - counts[ORIGIN] + 1
    row = np.int64(-1)
    for which in range(weights.firsts.shape[0]):
      offset = stretch - weights.firsts[which]
      if offset >= 0 and offset + number <= length:
        row = which * length + offset
    note_additions(additions[:number], now, np.int64(done[1]), counts[ORIGIN])
    run(
      gradient,
      observe,
      predict,
      shared_pass,
      predicts,
      game,
      arrays,
      alternating,
      IterationNumbers(
        parameters[first + 1 : first + 1 + number],
        weights.before[row : row + number],
        weights.after[row : row + number],
        additions[:number],
      ),
      done,
    )
    if not _is_finite(arrays.workspace.utility, game.players):
      return NOT_FINITE
