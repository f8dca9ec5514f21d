"""Averaging steps: weighted sums of strategies, averages by a rule, tapered sums."""

from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._numba.records import Counts, Doubles, Line
from spiel_cfr._numba.simd import MOST_LANES, add_unbiased, number_for
from spiel_cfr._numba.steps import Step, step
from spiel_cfr.cfr.averaging import AverageBlock, AverageRule
from spiel_cfr.cfr.loops.arrays import SolverArrays, contiguous_lines
from spiel_cfr.games.compiled.trunk_and_subtrees import Visit
from spiel_cfr.games.sequence_form.tree_passes import Forward, dither_after, forward_pass


class AddWeight(NamedTuple):
  """The arguments of `add_weight`.

  Attributes:
    total: shape (1,). The sum of a player's averaging weights.
    weight: float64 (1,). The averaging weight of the iteration.
  """

  total: Line
  weight: Doubles


@step(AddWeight)
def add_weight(record: AddWeight) -> None:
  """Adds the weight of an iteration to the total by which the average is divided: total += weight."""
  total = record.total
  added = number_for(total, record.weight[0])
  total[0] = add_unbiased(total[0], added, number_for(total, dither_after(total[0])))


class AddToTapered(NamedTuple):
  """The arguments of `add_to_tapered`: arrays of `FullWidthState` and, for `taper_factor`, of `IterationNumbers`."""

  tapered: Line
  cumulative: Line
  taper_factor: Doubles
  counts: Counts


@step(AddToTapered)
def add_to_tapered(record: AddToTapered) -> None:
  """Adds the sums to the tapered sums: tapered += taper_factor * cumulative.

  It runs at the end of an iteration, before the iteration is counted.
  """
  tapered, cumulative, factor = record.tapered, record.cumulative, record.taper_factor[0]
  if factor != 0.0:
    for i in range(np.uint64(tapered.shape[0])):
      tapered[i] += factor * cumulative[i]
    record.counts[1] = record.counts[0] + np.uint64(1)


def averaging_pass(
  arrays: SolverArrays, visit: Visit, weight: Float64s, averages_after: bool
) -> Step:
  """Returns the forward pass that computes a player's sequence form in a part, and adds it to the average.

  Args:
    arrays: the solver's arrays.
    visit: the visit to the part.
    weight: float64 (1,). The averaging weight.
    averages_after: True to add the new sequence form, False to add that before the pass.
  """
  record = Forward(
    tree=arrays.tree(visit),
    strategy=arrays.strategy(visit),
    sequence_form=visit.sequence_form,
    reach=visit.workspace.scratch.line,
    cumulative=arrays.cumulative(visit),
    weight=weight,
    total=arrays.weight_sum(visit.player),
    averages_after=int(averages_after),
  )
  return forward_pass.on(record, arrays.game.dtype)


def weight_sum_step(arrays: SolverArrays, player: int) -> Step:
  """Returns the step that adds an iteration's averaging weight to the sum of a player's weights."""
  record = AddWeight(arrays.weight_sum(player), arrays.iteration_numbers.weight)
  return add_weight.on(record, arrays.game.dtype)


def taper_steps(arrays: SolverArrays) -> list[Step]:
  """Returns the step that adds to the tapered sums; none if the average is not tapered."""
  state = arrays.state
  if not len(state.tapered):
    return []
  record = AddToTapered(
    state.tapered, state.cumulative, arrays.iteration_numbers.taper_factor, state.counts
  )
  return [add_to_tapered.on(record, arrays.game.dtype)]


def rule_step(arrays: SolverArrays, visit: Visit, rule: AverageRule) -> Step:
  """Returns the step in which a user's rule updates a player's average in a whole game."""
  own, state, numbers = arrays.player_slice(visit), arrays.state, arrays.iteration_numbers
  record = AverageBlock(
    sums=state.cumulative[own],
    memory=contiguous_lines(state.memory, rule.memory_lines, own),
    sequence_form=visit.sequence_form[own],
    weight=numbers.weight,
    parameters=numbers.rule_parameters,
  )
  trial = AverageBlock(
    sums=np.zeros(MOST_LANES, state.cumulative.dtype),
    memory=np.zeros((rule.memory_lines, MOST_LANES), state.cumulative.dtype),
    sequence_form=np.arange(1, MOST_LANES + 1, dtype=state.cumulative.dtype) % 2,
    weight=np.ones(1),
    parameters=numbers.rule_parameters.copy(),
  )
  rule.add.try_on(
    trial,
    f"{type(rule).__name__} has memory_lines = {rule.memory_lines} (lines of `memory`), and its `parameters` returns "
    f"{len(numbers.rule_parameters)} numbers for each iteration; the kernel needs more of one of them, or uses another "
    "index beyond the sequences.",
  )
  if not (trial.sums == trial.sums[0] * trial.sequence_form).all():
    raise errors.ArgumentError(
      f"{type(rule).__name__} does not treat all sequences alike, or its sums are no linear combination of sequence "
      f"forms: from {trial.sequence_form} it has made {trial.sums}. The average would not be a strategy."
    )
  return rule.add.on(record, arrays.game.dtype)


def check_sums_of_rule(arrays: SolverArrays, rule: AverageRule) -> None:
  """Raises ArgumentError if the sums that a user's rule has made can't be normalized."""
  least = min(arrays.weight_sum(player).item() for player in arrays.part_steps.players)
  if not np.isfinite(arrays.state.cumulative).all():
    raise errors.NotFiniteError(
      f"After {int(arrays.state.counts[0]):,} iterations {type(rule).__name__} has made `sums` NaN or infinite."
    )
  if least < 0.0 or (least == 0.0 and arrays.state.cumulative.any()):
    raise errors.ArgumentError(
      f"After {int(arrays.state.counts[0]):,} iterations {type(rule).__name__} has made the first element of `sums` "
      f"{least:zg}. The average policy is `sums` divided by this element, so it must be positive."
    )
