"""Best-response backfill: which actions can be pruned, and the history that they get when they come back.

Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via Pruning" (2017). With F all
that a player has ever faced, C(ja) and C(j) the values of the best response to F, and

    Z(j) = sum of w_t v^t(j)

the values of an infoset, w_t the weight of iteration t in averages, the history at and below a sequence ja that was not
played is made anew as if that best response had been played there all along:

    R(ja) = C(ja) - Z(j),    and below:   R(j'a') = C(j'a') - C(j') <= 0,    Z(j') = C(j')

times one over the weight of the next iteration, for regret matching+ cut off at 0. By the identity of
`evaluation.counterfactual_values` that costs nothing, and no positive regret below becomes larger. So as long as R(ja)
stays negative nothing at or below ja need be looked at, and nothing there need be remembered.

The passes over the game here are made once a window, in NumPy.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr.cfr.loops import FullWidthState
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel
from spiel_cfr.regret_minimizers.regret_matching import match_regrets_plus
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows
from spiel_cfr.regret_minimizers.schedules import Power

T = TypeVar("T", bound=np.generic)


# Not the kernel, but what it is made of.
_match_plus = inlined(match_regrets_plus.function)


@block_kernel
def match_and_note(block: Block) -> None:
  """Regret matching+, and Z += weight * value."""
  _match_plus(block)
  weight = block.parameters[1]
  for i in range(block.size):
    block.infoset_state[0, block.infoset + i] += weight * block.value[i]


@dataclasses.dataclass(frozen=True)
class NotedMatching(RegretMinimizer):
  """Regret matching+, bit for bit that of `RegretMatching`, which also sums up Z of each infoset.

  Attributes:
    weights: of iterations, w_t.
  """

  weights: Power
  observe = match_and_note
  infoset_lines = 1
  # What is forced is worth what it leads to.
  visits_forced = False

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns tie tolerance and w_t, shape (iterations, 2)."""
    return parameter_rows(iterations, game, self.weights)


class Group(NamedTuple):
  """Infosets with as many actions, see `treeplex.Treeplex`.

  Attributes:
    sequences: theirs, padding included.
    actions: how many each has.
    infosets: the infosets.
    above: the sequence above each, shape (infosets,).
  """

  sequences: slice
  actions: int
  infosets: slice
  above: Int64s

  def of(self, array: npt.NDArray[T]) -> npt.NDArray[T]:
    """Returns a view of their sequences in an array of shape (sequences,), of shape (actions, infosets)."""
    return array[self.sequences].reshape(self.actions, -1)[:, : len(self.above)]


def add_deferred(
  groups: Sequence[Group], seen: Bools, strategy: Float64s, opened: Float64s, sums: Float64s
) -> None:
  """Adds to sums of sequence forms, at infosets that iterations did not visit, what was played there since.

  Args:
    groups: of both players, parents before children; as in all functions here.
    seen: infosets that iterations have visited, shape (infosets,).
    strategy: of all infosets, shape (sequences,).
    opened: the sums at the beginning of the window, likewise.
    sums: brought up to date.
  """
  for group in groups:
    more = np.where(seen[group.infosets], 0.0, sums[group.above] - opened[group.above])
    if more.any():
      own = group.of(sums)
      own += more * group.of(strategy)


def note_unseen(
  groups: Sequence[Group], seen: Bools, state: FullWidthState, gained: Float64s, opened: Float64s
) -> None:
  """Adds to Z of infosets that iterations did not visit what the strategies there were worth in the window.

  `gained` is the gradient of what was faced in the window, shape (sequences,), and written over; `opened` Z at its
  beginning, shape (infosets,).
  """
  values = state.infoset_state[0]
  for group in reversed(groups):
    worth = (group.of(state.strategy) * group.of(gained)).sum(axis=0)
    values[group.infosets] += np.where(seen[group.infosets], 0.0, worth)
    np.add.at(gained, group.above, values[group.infosets] - opened[group.infosets])


def prunable(
  groups: Sequence[Group],
  owner: Int64s,
  state: FullWidthState,
  best: Float64s,
  growth: Float64s,
  spent: Float64s,
  least: Float64s,
  pruned: Bools,
) -> Bools:
  """Returns which sequences can be pruned for a window, the topmost ones only, shape (sequences,).

  They are not played, and C(ja) - Z(j) + max(growth - spent, 0) < -least. Below what was pruned nothing is known, and
  so nothing is decided.

  Args:
    groups: see `add_deferred`.
    owner: the infoset of each sequence, shape (sequences,); any where there is none.
    state: the solver's.
    best: C, shape (sequences,).
    growth: what each sequence could be worth in the window, likewise.
    spent: what each infoset will be worth, shape (infosets,).
    least: how negative R has to be, likewise.
    pruned: what was pruned, shape (sequences,).
  """
  result, reached = np.zeros(len(pruned), bool), np.ones(len(pruned), bool)
  regret = best - state.infoset_state[0][owner] + np.maximum(growth - spent[owner], 0.0)
  hopeless = (state.strategy == 0) & (regret < -least[owner])
  for group in groups:
    here = reached[group.above]
    group.of(result)[:] = here & group.of(hopeless)
    group.of(reached)[:] = here & ~group.of(hopeless) & ~group.of(pruned)
  return result


def restore(
  groups: Sequence[Group],
  again: Bools,
  state: FullWidthState,
  best: Float64s,
  weight: float,
  ties: Float64s,
) -> None:
  """Makes the history at and below what is looked at again that of a best response; see the module's docstring.

  `again` is what was pruned and is not any more, shape (sequences,), and filled below; `best` is C, `weight` that of
  the next iteration, `ties` below what a difference of utilities is rounding at each infoset.
  """
  for group in groups:
    below, back = again[group.above], group.of(again)
    back |= below
    if back.any():
      own, values = group.of(best), state.infoset_state[0][group.infosets]
      regret, strategy = group.of(state.action_state[0]), group.of(state.strategy)
      np.copyto(values, own.max(axis=0), where=below)
      np.copyto(regret, np.maximum(own - values, 0.0) / weight, where=back)
      positive = np.where(regret > ties[group.infosets], regret, 0.0)
      total = positive.sum(axis=0)
      uniform = np.full(regret.shape, 1 / len(regret))
      played = np.divide(positive, total, out=uniform, where=total > 0)
      np.copyto(strategy, played, where=back.any(axis=0))
