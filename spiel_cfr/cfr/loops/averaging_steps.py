"""Averaging steps besides the forward pass: sums of weights, tapered sums, averages by a rule."""

from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.records import Counts, Doubles, Line
from spiel_cfr._numba.simd import MOST_LANES, add_unbiased, number_for
from spiel_cfr._numba.steps import Step, step
from spiel_cfr.cfr.averaging import Average, AverageRule, Counted
from spiel_cfr.cfr.loops.arrays import SolverArrays
from spiel_cfr.games.compiled.trunk_and_subtrees import Visit
from spiel_cfr.games.sequence_form.tree_passes import dither_after


class AddWeight(NamedTuple):
  """The arguments of `add_weight`.

  Attributes:
    total: shape (1,). The sum of a player's averaging weights.
    weights: float64 (2,). The weights of its strategy before and after the update.
  """

  total: Line
  weights: Doubles


@step(AddWeight)
def add_weight(record: AddWeight) -> None:
  """Adds the weights of an iteration to the total by which the average is divided: total += both weights."""
  total = record.total
  added = number_for(total, record.weights[0] + record.weights[1])
  total[0] = add_unbiased(total[0], added, number_for(total, dither_after(total[0])))


class AddToTapered(NamedTuple):
  """The arguments of `add_to_tapered`: arrays of `FullWidthState` and, for `taper_factor`, of `ScheduleRow`."""

  tapered: Line
  cumulative: Line
  taper_factor: Doubles
  counts: Counts


@step(AddToTapered)
def add_to_tapered(record: AddToTapered) -> None:
  """Tapered += taper_factor * cumulative. It runs at the end of an iteration, before the iteration is counted."""
  tapered, cumulative, factor = record.tapered, record.cumulative, record.taper_factor[0]
  if factor != 0.0:
    for i in range(np.uint64(tapered.shape[0])):
      tapered[i] += factor * cumulative[i]
    record.counts[1] = record.counts[0] + np.uint64(1)


def weight_sum_step(arrays: SolverArrays, player: int) -> Step:
  """Returns the step that adds an iteration's averaging weights of a player to their sum."""
  record = AddWeight(arrays.weight_sum(player), arrays.schedule_row.weights[player])
  return add_weight.on(record, arrays.game.dtype)


def taper_steps(arrays: SolverArrays) -> list[Step]:
  """Returns the step that adds to the tapered sums; none if the average is not tapered."""
  state = arrays.state
  if not len(state.tapered):
    return []
  record = AddToTapered(
    state.tapered, state.cumulative, arrays.schedule_row.taper_factor, state.counts
  )
  return [add_to_tapered.on(record, arrays.game.dtype)]


def steps_by_rule(
  arrays: SolverArrays, visit: Visit, rule: AverageRule, counted: Counted, forward_pass: Step
) -> list[Step]:
  """Returns a player's forward pass and the step of an average rule, which comes first unless `counted` is "after"."""
  own, after = arrays.player_slice(visit), int(counted == "after")
  weight = arrays.schedule_row.weights[visit.player, after : after + 1]
  # The rule's parameters come after those of the minimizer.
  parameters = arrays.schedule_row.parameters
  num_of_rule = rule.parameters(np.ones(1, np.int64), arrays.game).shape[1]
  of_rule = parameters[len(parameters) - num_of_rule :]
  sums, sequence_form = arrays.state.cumulative[own], visit.sequence_form[own]
  small = np.zeros(MOST_LANES, sums.dtype), np.ones(MOST_LANES, sums.dtype)
  rule.add.try_on(
    Average(*small, weight.copy(), of_rule.copy()),
    f"`parameters` of {type(rule).__name__} returns {num_of_rule} numbers for each iteration; the kernel needs more, "
    "or uses another index beyond the sequences.",
  )
  record = Average(sums, sequence_form, weight, of_rule)
  rule_step = rule.add.on(record, arrays.game.dtype)
  return [forward_pass, rule_step] if after else [rule_step, forward_pass]


def check_sums_of_rule(arrays: SolverArrays, rule: AverageRule) -> None:
  """Raises ArgumentError if the sums that a user's rule has made can't be normalized."""
  least = min(arrays.weight_sum(player).item() for player in arrays.part_steps.players)
  if least < 0.0:
    raise errors.ArgumentError(
      f"After {int(arrays.state.counts[0]):,} iterations {type(rule).__name__} has made the first element of `sums` "
      f"{least:zg}. The average policy is `sums` divided by this element, so it must be positive."
    )
