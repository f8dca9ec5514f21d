"""State of a full-width solver: everything that changes from one iteration to the next."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Uint64s, require
from spiel_cfr.cfr.solver_state import MOST_ITERATIONS
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms
from spiel_cfr.policies.locked import Mask

# The unit of tapered sums. In float32 it keeps them from overflowing before `cumulative`. Multiplying by a power of two
# is exact.
TAPER_UNIT = 2.0**-20


@dataclasses.dataclass
class FullWidthState:
  """The state of a full-width solver.

  Attributes:
    strategy: shape (sequences,). The probability of each sequence's action at its infoset.
    cumulative: shape (sequences,). The weighted sum of sequence forms. A sequence form is 1 at the player's empty
      sequence, so the element there is the sum of the player's weights; see `total_weight`.
    tapered: shape (sequences,). The weighted sum of `cumulative` as it was after some iterations; shape (0,) without a
      tapered average.
    memory: shape (lines * sequences,). The numbers that an `AverageRule` keeps, all lines of one player, then those of
      the next; shape (0,) without such a rule. Numbers of forced moves have no meaning.
    action_state: shape (lines, sequences). The numbers that the minimizer keeps for each action, such as regrets. In a
      game cut into parts, shape (lines * sequences,): all lines of one player in one part, then those of the next.
    infoset_state: float64 (lines, infosets + padding). The numbers that the minimizer keeps for each infoset. In a game
      cut into parts, shape (lines * infosets + padding,), in the order of `action_state`.
    locked: bool (infosets,). Whether an infoset keeps its strategy.
    counts: uint64 (2,). The number of iterations, and the iteration after which `cumulative` was last added to
      `tapered`.
    average_start: the iteration after which the average began.
    warm_iterations: the number of iterations that a warm start counts for; 0 without one.
  """

  strategy: AnyFloats
  cumulative: AnyFloats
  tapered: AnyFloats
  memory: AnyFloats
  action_state: AnyFloats
  infoset_state: Float64s
  locked: Mask
  counts: Uint64s = dataclasses.field(default_factory=lambda: np.zeros(2, np.uint64))
  average_start: int = 0
  warm_iterations: int = 0

  @property
  def total_weight(self) -> float:
    """The sum of player 0's averaging weights so far; 0 before the first iteration."""
    # Sequence 0 is the empty sequence of player 0.
    return float(self.cumulative[0])

  def sums(self) -> AnyFloats:
    """Returns a multiple of the average in sequence form, shape (sequences,); 0 before the first iteration."""
    if not len(self.tapered):
      return self.cumulative
    since_addition = int(self.counts[0] - self.counts[1])
    if not since_addition:
      return self.tapered
    result: AnyFloats = TAPER_UNIT * since_addition * self.cumulative
    result += self.tapered
    return result

  def add_to_tapered(self) -> None:
    """Adds `cumulative` to the tapered sums for all iterations since the last addition."""
    self.tapered[:] = self.sums() if len(self.tapered) else 0.0
    self.counts[1] = self.counts[0]

  def begin_average(self) -> None:
    """Restarts the average: it will contain only iterations after the current one."""
    self.average_start = int(self.counts[0])
    self.counts[1] = self.counts[0]
    for sums in (self.cumulative, self.tapered, self.memory):
      sums[:] = 0.0

  def begin_warm(self, iterations: int, sums: Float64s | None) -> None:
    """Counts iterations as done, with these sums as the average. With None, the average begins after them."""
    self.counts[:] = self.warm_iterations = iterations
    if sums is None:
      self.average_start = iterations
      return
    self.cumulative[:] = sums
    if len(self.tapered):
      self.tapered[:] = TAPER_UNIT * iterations * self.cumulative

  def count_as(self, iteration: int) -> None:
    """Raises the number of iterations done to `iteration`. The number of iterations in the average stays the same."""
    added = iteration - int(self.counts[0])
    self.counts += np.uint64(added)
    self.average_start += added


def check_numbers(game: CompiledGame, state: Mapping[str, Any]) -> None:
  """Checks the arrays and numbers of a state, given by name.

  It does not check that sums of strategies are sequence forms: in a window of pruning, they are incomplete.

  Raises:
    ValueError: no iterations lead to this state.
  """
  for name in ("strategy", "cumulative", "tapered", "memory", "action_state", "infoset_state"):
    require(np.isfinite(state[name]), f"{name} is finite")
  iteration, last_addition = (int(count) for count in state["counts"])
  require(iteration <= MOST_ITERATIONS, "the iteration is possible")
  for number in (state["average_start"], state["warm_iterations"], last_addition):
    require(0 <= number <= iteration, "numbers of iterations are not in the future")
  forms.check_behavioral_form(game, state["strategy"])
