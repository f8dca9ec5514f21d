"""Steps of averages besides the forward pass: weights, tapered sums, sums for correlated play, averages by a rule."""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.records import Counts, Doubles, Line
from spiel_cfr._numba.simd import add_unbiased, number_for
from spiel_cfr._numba.steps import Step, step
from spiel_cfr.cfr.averaging import Average, AverageRule, Counted
from spiel_cfr.cfr.loops.arrays import SolverArrays
from spiel_cfr.games.compiled.trunk_and_subtrees import Visit
from spiel_cfr.games.sequence_form.tree_passes import dither_after


class Weigh(NamedTuple):
  """The arguments of `add_weight`: see `Forward`."""

  total: Line
  weights: Doubles


@step(Weigh)
def add_weight(record: Weigh) -> None:
  """Adds the weights of an iteration to their sum, by which the average is divided: total += weight."""
  total = record.total
  added = number_for(total, record.weights[0] + record.weights[1])
  total[0] = add_unbiased(total[0], added, number_for(total, dither_after(total[0])))


class Taper(NamedTuple):
  """The arguments of `add_to_tapered`: see `FullWidthState` and `IterationNumbers`."""

  tapered: Line
  cumulative: Line
  addition: Doubles
  counts: Counts


@step(Taper)
def add_to_tapered(record: Taper) -> None:
  """Tapered += addition * cumulative, at the end of an iteration, before it is counted."""
  tapered, cumulative, factor = record.tapered, record.cumulative, record.addition[0]
  if factor != 0.0:
    for i in range(np.uint64(tapered.shape[0])):
      tapered[i] += factor * cumulative[i]
    record.counts[1] = record.counts[0] + np.uint64(1)


class Sum(NamedTuple):
  """The arguments of `add_before`; `weights` as in `IterationNumbers`."""

  total: Doubles
  added: Line
  weights: Doubles


@step(Sum)
def add_before(record: Sum) -> None:
  """Total += weight of the strategy before the update * added."""
  total, added, weight = record.total, record.added, record.weights[0]
  for i in range(np.uint64(total.shape[0])):
    total[i] += weight * added[i]


def sum_weights(arrays: SolverArrays, player: int) -> Step:
  """Returns the step that adds the weights of an iteration to those of a player's average."""
  record = Weigh(arrays.total(player), arrays.numbers.weights[player])
  return add_weight.on(record, arrays.game.dtype)


def taper(arrays: SolverArrays) -> list[Step]:
  """Returns the step that adds to tapered sums; none without such sums."""
  state = arrays.state
  record = Taper(state.tapered, state.cumulative, arrays.numbers.addition, state.counts)
  return [add_to_tapered.on(record, arrays.game.dtype)] if len(state.tapered) else []


def sum_gradients(arrays: SolverArrays, visit: Visit) -> list[Step]:
  """Returns the step that adds a player's gradient to the sums for correlated play; none without such sums."""
  place, weights = arrays.place(visit), arrays.numbers.weights[visit.player]
  if not len(arrays.state.gradients):
    return []
  record = Sum(arrays.state.gradients[place], visit.utility[place], weights)
  return [add_before.on(record, arrays.game.dtype)]


def sum_values(arrays: SolverArrays, visit: Visit) -> list[Step]:
  """Returns the step that adds a player's value to the sums for correlated play; none without such sums."""
  root, weights = arrays.place(visit).start, arrays.numbers.weights[visit.player]
  if not len(arrays.state.play_values):
    return []
  total = arrays.state.play_values[visit.player : visit.player + 1]
  record = Sum(total, visit.utility[root : root + 1], weights)
  return [add_before.on(record, arrays.game.dtype)]


def add_by_rule(
  arrays: SolverArrays, visit: Visit, rule: AverageRule, counted: Counted, forward_pass: Step
) -> list[Step]:
  """Returns a player's forward pass, and before or after it the step of the rule."""
  place, after = arrays.place(visit), int(counted == "after")
  weight = arrays.numbers.weights[visit.player, after : after + 1]
  record = Average(arrays.state.cumulative[place], visit.sequence_form[place], weight)
  step = rule.add.on(record, arrays.game.dtype)
  return [forward_pass, step] if after else [step, forward_pass]
