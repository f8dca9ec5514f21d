"""Averaging of strategies: weights of iterations, which strategies enter the average, and rules of your own.

docs/extending.md has examples of weights and of a rule.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.records import Doubles, Line, Table
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr._util import arguments
from spiel_cfr.cfr.recipes import described_by_fields
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.schedules import Weights, as_weights

# The strategies that enter the average: those before the players' updates, after them, or as the others face them.
Counted = Literal["before", "after", "faced"]


# More lines than any rule or minimizer needs.
MOST_LINES = 1_000


class AverageBlock(NamedTuple):
  """The argument of an average kernel: one player's average, and its strategy in one iteration.

  Attributes:
    sums: shape (sequences,). A multiple of the average; 0 before the first iteration. The kernel updates it.
    memory: shape (memory_lines, sequences). The rule's own numbers; 0 before the first iteration. The kernel may read
      and write it.
    sequence_form: shape (sequences,). The player's strategy. The first element, of the empty sequence, is 1.
    weight: float64 (1,). The weight of the iteration, from `Averaging.weights`.
    parameters: float64 (numbers,). The numbers of the iteration, from `AverageRule.parameters`.
  """

  sums: Line
  memory: Table
  sequence_form: Line
  weight: Doubles
  parameters: Doubles


def average_kernel(function: Any) -> StepKernel:
  """Decorator that compiles a function of an `AverageBlock` as an average kernel, for float64 and float32."""
  return StepKernel(function, AverageBlock)


@described_by_fields
class AverageRule(abc.ABC):
  """Base class of rules for averages. Derive a frozen dataclass from it, with the kernel as `add`.

  The kernel must treat all sequences alike. It must keep `sums` a linear combination of the sequence forms so far, with
  a positive first element. The average policy is `sums` divided by that element.

  Attributes:
    add: the kernel, see `average_kernel`.
    memory_lines: the number of arrays that the rule keeps beside `sums`: lines of `AverageBlock.memory`. They begin at
      0, also when the average begins anew or with a warm start.
  """

  add: ClassVar[StepKernel]
  memory_lines: ClassVar[int] = 0

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the numbers that the kernel reads in each iteration besides the weight; by default, there are none.

    Args:
      iterations: int64 (iterations,). The numbers of the iterations, from 1.
      game: the game.

    Returns:
      float64 (iterations, numbers).
    """
    del game
    return np.zeros((len(iterations), 0))


@described_by_fields
@dataclasses.dataclass(frozen=True)
class Averaging:
  """The average of a full-width solver: a weighted sum of sequence forms, or a rule of your own.

      Averaging()                     # of CFR: all iterations have the same weight
      Averaging(1.0)                  # of CFR+: iteration t has weight t
      Averaging(lambda t: t**1.5)     # t: float64 array of iterations, from 1

  Attributes:
    weights: the weight of iteration t: a schedule, a function of t, or a power of t. The attribute is a schedule.
    counted: the strategies that enter the average: those "before" the update, as in OpenSpiel; those "after" it; or
      those that the other players "faced" in the iteration. With alternating updates, the others face the old strategy
      of the player who updates last, and the new strategies of all others.
    tapered: whether weights fall to 0 at the end too: after iteration T, the weight of iteration t is multiplied by
      about T - t. Such averages converge faster where strategies circle around an equilibrium. They take a second array
      of sums, to which the first is added now and then, at about a tenth of the cost of an iteration.
    rule: a rule of a user that updates the average; None for the weighted sum, which all solvers of the library use.
      An average by a rule is not tapered.

  Raises:
    ArgumentError: the power is not a finite number, or negative; `counted` or `tapered` has another value;
      `rule` is no `AverageRule` with an average kernel; or an average by a rule is tapered.
  """

  weights: Weights = 0.0
  counted: Counted = "before"
  tapered: bool = False
  rule: AverageRule | None = None

  def __post_init__(self) -> None:
    object.__setattr__(self, "weights", as_weights(self.weights, "weights"))
    arguments.one_of(self.counted, "counted", get_args(Counted))
    object.__setattr__(self, "tapered", arguments.boolean(self.tapered, "tapered"))
    if self.rule is None:
      return
    kernel = getattr(self.rule, "add", None)
    if (
      not isinstance(self.rule, AverageRule) or getattr(kernel, "record", None) is not AverageBlock
    ):
      raise errors.ArgumentError(
        "rule must be an AverageRule, whose `add` is decorated with average_kernel, not "
        f"{arguments.shortened(self.rule)}."
      )
    arguments.integer(self.rule.memory_lines, "memory_lines", 0, MOST_LINES)
    if self.tapered:
      raise errors.ArgumentError(
        f"An average by the rule {self.rule} can't be tapered. Restarts taper averages; use a solver without them."
      )

  def check(self, game: CompiledGame) -> None:
    """Raises UnsupportedGameError if a solver of the game can't keep this average: by a rule, in a game in parts."""
    if self.rule is not None and game.partition is not None:
      raise errors.UnsupportedGameError(
        f"{game} is in parts, whose averages are weighted sums: a rule such as {self.rule} needs the game as a whole. "
        "Compile it with partitioned=False."
      )


def averages_after(averaging: Averaging, player: int, updates: Sequence[tuple[int, ...]]) -> bool:
  """Returns True if a player's strategy after its update enters the average, False if that before the update does.

  Args:
    averaging: the average.
    player: the player.
    updates: the updates of an iteration, one after the other. Each is the tuple of players that update at once.
  """
  if averaging.counted == "faced":
    # Players of the last update change their strategies after all others have faced them.
    return player not in updates[-1]
  return averaging.counted == "after"
