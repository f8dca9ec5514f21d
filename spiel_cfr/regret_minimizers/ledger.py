"""Regret matching that also notes what pruning needs to know.

Regret matching+ forgets how negative a regret has become, and with that for how long an action can be left alone. So
where it would forget, this keeps a ledger (Brown and Sandholm 2015):

    R = r if R <= 0 < r, else R + r;        a negative R is first multiplied by w_{t-1} / w_t

whose positive part is that of regret matching+, bit for bit. Plain regret matching has R + r. Both also sum up the
values of each infoset, Z(j) = sum of w_t v^t(j), with w_t the weight of iteration t in averages.

That w_t R is never less than the sum of w_t r^t is what a window lives on. With positive regrets multiplied by d_t
first it holds if d_t >= w_{t-1} / w_t; for negative ones that are not forgotten, only with equality. Predictions only
choose what is played: |R|^2 grows by no more than |r - m|^2 whatever was predicted, and an action that is left alone is
one that a prediction m <= 0 left unplayed.
"""

import dataclasses

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  lanes,
  normalize,
  sequence,
  tolerance,
)
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, relative_tie
from spiel_cfr.regret_minimizers.schedules import Numbers, Schedule, evaluated

# Which iterations are looked at to see how a schedule of discounts goes with one of weights.
_SAMPLE = np.append(np.arange(2, 200), np.geomspace(200, 1e6, 100).astype(np.int64))


@inlined
def match(block: Block, plus: bool, predicts: bool) -> None:
  """R and strategies; see the module's docstring. With constants the compiler knows which of the four it is."""
  regret, zero = block.state[0], full(0.0)
  fading, discount = full(block.parameters[3]), full(block.parameters[4])
  prediction = full(block.parameters[5])
  for i in lanes(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      row = sequence(block, action, i)
      before, utility = load(regret, row), load(block.utility, row)
      left = before * where_greater(before, zero, discount, fading)
      kept = updated = left + utility - value
      if plus:
        # As regret matching+ adds, so that nothing is rounded in another way.
        updated = where_greater(left, zero, left, zero) + utility - value
        kept = where_greater(kept, zero, zero, kept)
      score = where_greater(updated, tie, updated, zero)
      store(regret, row, where_greater(updated, tie, updated, kept))
      if predicts:
        score = score + prediction * (utility - value)
        score = where_greater(score, tie, score, zero)
      store(block.strategy, row, score)
      total = total + score
    normalize(block, i, total)


@block_kernel
def match_and_note(block: Block) -> None:
  """See the module's docstring."""
  if block.parameters[5] != 0.0:
    if block.parameters[2] == 0.0:
      match(block, True, True)
    else:
      match(block, False, True)
  elif block.parameters[2] == 0.0:
    match(block, True, False)
  else:
    match(block, False, False)
  weight = block.parameters[1]
  for i in range(block.size):
    block.local[0, block.infoset + i] += weight * block.value[i]


@dataclasses.dataclass(frozen=True)
class NotedMatching(RegretMinimizer):
  """Regret matching that notes; see the module's docstring. Its state is R; for each infoset it keeps Z.

  Attributes:
    weights: of iterations, w_t.
    plus: whether it is regret matching+, with a ledger of what that forgets.
    discount: what positive regrets are multiplied by before those of the iteration are added; without `plus`, negative
      ones are multiplied by w_{t-1} / w_t.
    prediction: how often the last regrets are added once more where the next strategy is chosen.
  """

  weights: Schedule
  plus: bool
  discount: Numbers = 1.0
  prediction: Numbers = 0.0
  observe = match_and_note
  local_lines = 1
  # What an infoset has come to matters only to actions beside the one that is played.
  visits_forced = False

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns tie tolerance, w_t, the least regret that is added to, w_{t-1} / w_t, discount, prediction; (.., 6)."""
    weights = evaluated(self.weights, iterations)
    columns = (
      relative_tie(game),
      weights,
      0.0 if self.plus else -np.inf,
      evaluated(self.weights, np.maximum(iterations - 1, 1)) / weights,
      evaluated(self.discount, iterations),
      evaluated(self.prediction, iterations),
    )
    return np.ascontiguousarray(np.stack(np.broadcast_arrays(*columns), axis=1))


def noted(minimizer: RegretMinimizer, weights: Schedule) -> NotedMatching:
  """Returns the same minimizer with notes, for windows of pruning.

  Args:
    minimizer: any.
    weights: of the iterations in averages.

  Raises:
    PruningError: it has no windows, or they would not be sound; the message says why.
  """
  instead = "Take CFRSolver, LCFRSolver, CFRPlusSolver or PCFRPlusSolver, or pruning='partial'."
  if not isinstance(minimizer, RegretMatching) or minimizer.carried != 1.0:
    raise errors.PruningError(
      f"{minimizer} has no cumulative regrets that say for how long an action will not be played. {instead}"
    )
  faded = evaluated(weights, _SAMPLE - 1), evaluated(weights, _SAMPLE)
  if not (faded[0] > 0).all() or (faded[0] > faded[1]).any():
    raise errors.PruningError(
      f"With {weights} some iterations weigh nothing, or less than those before them: what a player has faced is then "
      f"not in its average. {instead}"
    )
  ratio = faded[0] / faded[1]
  positive, negative = (
    evaluated(each, _SAMPLE) for each in (minimizer.positive, minimizer.negative)
  )
  plus = minimizer.forgets_negative
  if not plus and (minimizer.kept < 1 or (np.abs(negative - ratio) > 1e-9).any()):
    raise errors.PruningError(
      f"{minimizer} makes negative regrets fade otherwise than averages ({weights}) weigh iterations, so that they are "
      "no sums that say for how long an action can be left alone; with beta <= 0 they are forgotten at once, and there "
      f"are no windows. With DCFRSolver, take beta=1 and gamma=1, in OpenSpiel's order. {instead}"
    )
  if (positive < ratio - 1e-9).any():
    raise errors.PruningError(
      f"{minimizer} forgets positive regrets faster than averages ({weights}) forget iterations. {instead}"
    )
  return NotedMatching(weights, plus, minimizer.positive, minimizer.prediction)


def can_skip_zeros(minimizer: RegretMinimizer) -> bool:
  """Whether utilities of zero change nothing at an infoset: what partial pruning needs."""
  return isinstance(minimizer, RegretMatching) and (
    minimizer.kept in (0.0, 1.0)
    and (minimizer.positive, minimizer.negative, minimizer.carried) == (1.0, 1.0, 1.0)
  )
