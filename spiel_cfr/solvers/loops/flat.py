"""The loop over a game as a whole: everything, iterations included, in one call of compiled code."""

import functools
from typing import Any, NamedTuple

import numpy as np
from numba import types

from spiel_cfr import errors
from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.game.blocks import Block, block_kernel, block_signature
from spiel_cfr.game.sweeps import (
  TREE,
  Memory,
  Scratch,
  Tree,
  dither_after,
  memory_type,
  new_scratch,
  scratch_type,
  sweep_down,
  sweep_up,
  tree_adopt,
  tree_down,
  tree_reach,
  tree_up,
)
from spiel_cfr.game.ties import (
  NO_TIES,
  TIES,
  Ties,
  find_worth,
  spans_depths,
  tied_sweep_up,
  tied_sweep_up_signature,
)
from spiel_cfr.kernels.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOAT_TABLE,
  FLOATS,
  AnyFloats,
  Float64s,
  Uint64s,
  aligned,
  aligned_zeros,
  floats,
  tuple_type,
)
from spiel_cfr.kernels.compile import Kernel, kernel
from spiel_cfr.kernels.simd import MOST_LANES, add_unbiased, number_for
from spiel_cfr.minimizers.base import LocalMinimizer, resumption
from spiel_cfr.payoffs.base import PayoffArrays, gradient_signature, payoff_arrays_type
from spiel_cfr.policy import forms
from spiel_cfr.solvers.loops.base import IterationNumbers, Loop

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class _Workspace(NamedTuple):
  """What the loop works on, all of shape (sequences,).

  Attributes:
    sequence_form: of the current strategies.
    utility: of each sequence.
    prediction: predicted ones; empty if there are none.
    shared: either, pooled over ties; empty if there are none.
  """

  sequence_form: AnyFloats
  utility: AnyFloats
  prediction: AnyFloats
  shared: AnyFloats


_NUMBERS = tuple_type(IterationNumbers, *[FLOAT_TABLE] * 3, FLOATS)


@block_kernel
def no_prediction(block: Block) -> None:
  """Stands in for `predict` where there is none; never called."""


def _signature(number: Any) -> Any:
  line, block_kernel = floats(number), types.FunctionType(block_signature(number))
  return types.void(
    types.FunctionType(gradient_signature(number)),
    payoff_arrays_type(number),
    block_kernel,
    block_kernel,
    types.boolean,
    types.boolean,
    COUNT_TABLE,
    TREE,
    memory_type(number),
    line,
    tuple_type(_Workspace, line, line, line, line),
    scratch_type(number),
    types.FunctionType(tied_sweep_up_signature(number)),
    block_kernel,
    TIES,
    _NUMBERS,
    COUNTS,
  )


@kernel(_signature)
def run_iterations(
  gradient: Kernel,
  payoff: PayoffArrays,
  observe: Kernel,
  predict: Kernel,
  predicts: bool,
  alternating: bool,
  players: Uint64s,
  tree: Tree,
  memory: Memory,
  tapered: AnyFloats,
  workspace: _Workspace,
  scratch: Scratch,
  sweep_ties: Kernel,
  worth: Kernel,
  ties: Ties,
  numbers: IterationNumbers,
  done: Uint64s,
) -> None:
  """Runs as many iterations as there are rows of numbers.

  Args:
    gradient: the payoff's kernel.
    payoff: its arrays.
    observe: the minimizer's kernels, see `minimizers.base`.
    predict: likewise.
    predicts: whether `predict` is to be called.
    alternating: see `Loop.advance`.
    players: see `CompiledGame.players`.
    tree: of all players.
    memory: what the iterations change.
    tapered: likewise, see `Loop`.
    workspace: what they work on.
    scratch: likewise.
    sweep_ties: `tied_sweep_up`, where there are ties.
    worth: `find_worth`.
    ties: which sequences share strategies; of no players where none do.
    numbers: see `IterationNumbers`.
    done: see `Loop.advance`.
  """
  strategy, cumulative, state, local = memory
  sequence_form, utility, prediction, shared = workspace
  num_players = np.uint64(players.shape[0])
  tied = ties.players.shape[0] > 0
  for iteration in range(np.uint64(numbers.parameters.shape[0])):
    parameters = numbers.parameters[iteration]
    if not alternating:
      for player in range(num_players):
        gradient(player, payoff, sequence_form, utility)
    for player in range(num_players):
      begin, end, root, stop = (
        players[player, 0],
        players[player, 1],
        players[player, 2],
        players[player, 3],
      )
      if alternating:
        gradient(player, payoff, sequence_form, utility)
      if predicts:
        for i in range(root, stop):
          prediction[i] = utility[i]
      if tied:
        sweep_ties(
          observe,
          worth,
          False,
          player,
          ties,
          tree,
          strategy,
          utility,
          shared,
          state,
          local,
          parameters,
          scratch,
        )
        if predicts:
          sweep_ties(
            predict,
            worth,
            True,
            player,
            ties,
            tree,
            strategy,
            prediction,
            shared,
            state,
            local,
            parameters,
            scratch,
          )
      else:
        sweep_up(observe, begin, end, tree, strategy, utility, state, local, parameters, scratch)
        if predicts:
          sweep_up(
            predict, begin, end, tree, strategy, prediction, state, local, parameters, scratch
          )
      before = numbers.weights_before[iteration, player]
      after = numbers.weights_after[iteration, player]
      dither = dither_after(np.float64(cumulative[root]))
      added = number_for(cumulative, before + after)
      cumulative[root] = add_unbiased(cumulative[root], added, number_for(cumulative, dither))
      sweep_down(
        begin, end, tree, strategy, sequence_form, cumulative, scratch, before, after, dither
      )
    done[0] += _ONE
    addition = numbers.additions[iteration]
    if addition != 0.0:
      for i in range(np.uint64(tapered.shape[0])):
        tapered[i] += addition * cumulative[i]
      done[1] = done[0]


class FlatLoop(Loop):
  """See the module's docstring. All arrays are in the game's order."""

  def __init__(self, game: CompiledGame, minimizer: LocalMinimizer, tapered: bool) -> None:
    """Allocates the arrays; strategies are uniform."""
    super().__init__(game, minimizer)
    predicts = minimizer.predict is not None
    if game.ties is not None and predicts and spans_depths(game.ties, game.groups):
      raise errors.AbstractionError(
        f"{minimizer} predicts utilities from the deepest infosets up, which needs buckets of infosets that are as "
        "deep; some in this game are not. Take a solver without predictions, such as DCFRSolver, or put the number of "
        "own actions into the names of the buckets."
      )
    zeros = functools.partial(aligned_zeros, dtype=game.dtype)
    self.strategy = aligned(forms.uniform(game), game.dtype)
    self.cumulative = zeros(game.end)
    self.tapered = zeros(game.end if tapered else 0)
    self.state = zeros(minimizer.state_lines, game.end)
    # Kernels may read whole vectors.
    self.local = aligned_zeros(minimizer.local_lines, game.num_infosets + MOST_LANES)
    self.local[:, : game.num_infosets] = self._initial_local
    self._tree = Tree(game.groups, game.parent, game.scale)
    self._workspace = _Workspace(
      aligned(forms.sequence_form(game, self.strategy), game.dtype),
      zeros(game.end),
      zeros(game.end if minimizer.predict else 0),
      zeros(0 if game.ties is None else game.end),
    )
    self._scratch = new_scratch(game.dtype)
    self._roots = [treeplex.root for treeplex in game.treeplexes]

  def advance(self, alternating: bool, numbers: IterationNumbers, done: Uint64s) -> None:
    """See the base class."""
    payoff, minimizer, dtype = self._game.payoff, self._minimizer, self._game.dtype
    run_iterations.of(dtype)(
      payoff.gradient.of(dtype),
      payoff.arrays_of(dtype),
      minimizer.observe.of(dtype),
      (minimizer.predict or no_prediction).of(dtype),
      minimizer.predict is not None,
      alternating,
      self._game.players,
      self._tree,
      Memory(self.strategy, self.cumulative, self.state, self.local),
      self.tapered,
      self._workspace,
      self._scratch,
      tied_sweep_up.of(dtype),
      find_worth.of(dtype),
      self._game.ties or NO_TIES,
      numbers,
      done,
    )

  def update(self, player: int, parameters: Float64s, before: Float64s, after: Float64s) -> None:
    """See the base class."""
    minimizer, dtype = self._minimizer, self._game.dtype
    sequence_form, utility, prediction, shared = self._workspace
    begin, end, root, stop = self._game.players[player].tolist()
    tree = self._tree._replace(groups=self._tree.groups[begin:end])
    self._game.payoff.gradient_into(player, sequence_form, utility)
    steps = [(minimizer.observe, utility)]
    if minimizer.predict is not None:
      prediction[root:stop] = utility[root:stop]
      steps.append((minimizer.predict, prediction))
    for step, (kernel_of_blocks, utilities) in enumerate(steps):
      rest = self.state, self.local, parameters, self._scratch
      if self._game.ties is None:
        tree_up.of(dtype)(kernel_of_blocks.of(dtype), tree, self.strategy, utilities, *rest)
      else:
        tied_sweep_up.of(dtype)(
          kernel_of_blocks.of(dtype),
          find_worth.of(dtype),
          step > 0,
          np.uint64(player),
          self._game.ties,
          self._tree,
          self.strategy,
          utilities,
          shared,
          *rest,
        )
    weights = float(before[player]), float(after[player])
    total = float(self.cumulative[root])
    self.cumulative[root] += sum(weights)
    tree_down.of(dtype)(
      tree, self.strategy, sequence_form, self.cumulative, self._scratch, *weights, total
    )

  def resume(self, sequence_form: Float64s, parameters: Float64s) -> None:
    """See the base class."""
    dtype = self._game.dtype
    tree_adopt.of(dtype)(self._tree, sequence_form.astype(dtype), self.strategy)
    if self._game.ties is not None:
      self.strategy[:] = forms.tied(self._game, sequence_form, self.strategy)
    self._scratch.value[:] = 0.0
    tree_up.of(dtype)(
      resumption(self._minimizer).of(dtype),
      self._tree,
      self.strategy,
      self._workspace.utility,
      self.state,
      self.local,
      parameters,
      self._scratch,
    )
    self.refresh()

  def refresh(self) -> None:
    """See the base class."""
    # The empty sequences are 1 from the beginning.
    reach = tree_reach.of(self._game.dtype)
    reach(self._tree, self.strategy, self._workspace.sequence_form, self._scratch)

  def current_sequence_form(self) -> Float64s:
    """See the base class."""
    return self._workspace.sequence_form.astype(np.float64)

  def values(self) -> list[float]:
    """See the base class."""
    utility = self._workspace.utility
    return [utility.item(root) for root in self._roots]

  def state_line(self, line: int) -> Float64s:
    """See the base class."""
    result: Float64s = self.state[line].astype(np.float64, copy=False)
    return result

  def set_state_line(self, line: int, values: Float64s) -> None:
    """See the base class."""
    self.state[line] = values

  def local_line(self, line: int) -> Float64s:
    """See the base class."""
    result: Float64s = self.local[line, : self._game.num_infosets]
    return result

  def set_local_line(self, line: int, values: Float64s) -> None:
    """See the base class."""
    self.local[line, : self._game.num_infosets] = values
