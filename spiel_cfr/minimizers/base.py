"""What a local regret minimizer is.

A local minimizer decides what one infoset does. It sees the infoset's counterfactual utilities (the utility of each
action, weighted by the probability that chance and the other players bring the infoset about) and chooses the next
strategy there. Everything else, trees, payoffs, averages, belongs to the solver. Utilities are maximized.

A minimizer is one or two kernels that treat a block of infosets with the same number of actions, and a few numbers
an iteration. All infosets of the block are independent of each other. With

    row = first + action * stride

element `row + i` of `strategy`, of `utility` and of each line of `state` belongs to infoset i of the block, i from 0 to
count - 1; element `infoset + i` of each line of `local` does too.

    observe(state, local, strategy, utility, scratch, parameters, first, stride, infoset, count, actions)

is given in `utility` the counterfactual utilities under the strategies just played. It must leave in `scratch[0, i]`
the value of infoset i under the strategy just played, the inner product of the two; the other lines of `scratch` are
free to use. It updates `state` and `local`, and writes the next strategy into `strategy`, unless there is a

    predict(state, local, strategy, utility, scratch, parameters, first, stride, infoset, count, actions)

which is called when every infoset has observed, deepest infosets first, with the utilities that are predicted for the
next iteration: the last gradient carried up with the strategies that `predict` has chosen below (Farina et al. 2019,
equation 17). It chooses the next strategy, and leaves its value under the prediction in `scratch[0, i]`.

`parameters` is this iteration's row of what `LocalMinimizer.parameters` returns.

Loops over i become vector instructions by themselves. A kernel may also work on vectors outright (`kernels.simd`):
`first`, `stride` and the length of `scratch` are multiples of `LANES`, so that in `strategy`, `utility`, `state` and
`scratch` it may go beyond `count` up to the next multiple. What it finds there is finite, and what it leaves is of no
consequence. In `local` it may not.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numba import types

from spiel_cfr.kernels.arrays import COUNT, FLOAT_TABLE, FLOATS, Float64s, Int64s
from spiel_cfr.kernels.compile import TIE, Kernel

if TYPE_CHECKING:
  from spiel_cfr.game.compiled import CompiledGame

BLOCK_SIGNATURE = types.void(
  FLOAT_TABLE, FLOAT_TABLE, FLOATS, FLOATS, FLOAT_TABLE, FLOATS, COUNT, COUNT, COUNT, COUNT, COUNT
)
# Lines of `scratch`.
SCRATCH_LINES = 6


def block_kernel(function: Callable[..., Any]) -> Kernel:
  """Decorator that compiles a minimizer's `observe` or `predict`, here or in a user's own file."""
  return Kernel(function, BLOCK_SIGNATURE)


@block_kernel
def no_prediction(
  state: Float64s,
  local: Float64s,
  strategy: Float64s,
  utility: Float64s,
  scratch: Float64s,
  parameters: Float64s,
  first: int,
  stride: int,
  infoset: int,
  count: int,
  actions: int,
) -> None:
  """Stands in for `predict` where there is none; never called."""


@dataclasses.dataclass(frozen=True)
class LocalMinimizer:
  """The contract. Subclasses name their kernels and how much state they keep.

  Attributes:
    observe: see the module's docstring.
    predict: likewise, or None where `observe` chooses the next strategy itself.
    state_lines: how many numbers it keeps for each action of each infoset.
    local_lines: how many for each infoset.
    forgets_negative: whether negative cumulative regrets become 0 as soon as the regrets of an iteration are added.
  """

  observe: ClassVar[Kernel]
  predict: ClassVar[Kernel | None] = None
  state_lines: ClassVar[int] = 1
  local_lines: ClassVar[int] = 0
  forgets_negative: ClassVar[bool] = False

  def parameters(self, iterations: Int64s, game: "CompiledGame") -> Float64s:
    """Returns what the kernels need to know at each of these iterations, shape (iterations, numbers).

    The first number is by convention the tie tolerance: differences of counterfactual utilities below it are rounding.
    """
    return np.full((len(iterations), 1), tie_tolerance(game))

  def discounts(self, iterations: Int64s) -> Float64s | None:
    """Returns what Monte Carlo solvers need to know: which variant of regret matching this minimizer is.

    That is what positive and negative cumulative regrets are multiplied by at the beginning of each of these
    iterations; shape (iterations, 2). None for minimizers that are something else.
    """
    return None

  def initial_local(self, game: "CompiledGame") -> Float64s:
    """Returns the first `local`, shape (local_lines, infosets of all players)."""
    return np.zeros((self.local_lines, game.num_infosets))


def tie_tolerance(game: "CompiledGame") -> float:
  """Regrets below this are rounding errors of ties: 1e-12 of the range of the game's payoffs.

  Two actions of exactly the same counterfactual utility would otherwise be told apart by the order of summation: a
  regret of 1e-17 instead of 0 makes regret matching play a pure strategy instead of the uniform one.
  """
  low, high = game.payoff_range
  return TIE * (high - low)
