"""The loop over a game as a whole: everything, iterations included, in one call of compiled code."""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.game.blocks import BLOCK_KERNEL, Block, block_kernel
from spiel_cfr.game.sweeps import (
  MEMORY,
  SCRATCH,
  TREE,
  Memory,
  Scratch,
  Tree,
  new_scratch,
  sweep_down,
  sweep_up,
  tree_adopt,
  tree_down,
  tree_reach,
  tree_up,
)
from spiel_cfr.kernels.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOAT_TABLE,
  FLOATS,
  INDICES,
  Float64s,
  Int64s,
  Uint32s,
  Uint64s,
  aligned_zeros,
  tuple_type,
)
from spiel_cfr.kernels.compile import Kernel, kernel
from spiel_cfr.kernels.simd import LANES
from spiel_cfr.minimizers.base import LocalMinimizer, resumption
from spiel_cfr.payoffs.base import GRADIENT, PAYOFF_ARRAYS, PayoffArrays
from spiel_cfr.policy import forms
from spiel_cfr.solvers.loops.base import IterationNumbers, Loop

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class _Workspace(NamedTuple):
  """What the loop works on, all of shape (sequences,).

  Attributes:
    sequence_form: of the current strategies.
    utility: of each sequence.
    prediction: predicted ones; empty if there are none.
  """

  sequence_form: Float64s
  utility: Float64s
  prediction: Float64s


_WORKSPACE = tuple_type(_Workspace, FLOATS, FLOATS, FLOATS)
_NUMBERS = tuple_type(IterationNumbers, *[FLOAT_TABLE] * 3, FLOATS)


@block_kernel
def no_prediction(block: Block) -> None:
  """Stands in for `predict` where there is none; never called."""


@kernel(
  types.void(
    types.FunctionType(GRADIENT),
    PAYOFF_ARRAYS,
    types.FunctionType(BLOCK_KERNEL),
    types.FunctionType(BLOCK_KERNEL),
    types.boolean,
    types.boolean,
    COUNT_TABLE,
    TREE,
    MEMORY,
    FLOATS,
    FLOATS,
    FLOATS,
    INDICES,
    FLOATS,
    _WORKSPACE,
    SCRATCH,
    _NUMBERS,
    COUNTS,
  )
)
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
  tapered: Float64s,
  gradients: Float64s,
  play_values: Float64s,
  held: Uint32s,
  kept: Float64s,
  workspace: _Workspace,
  scratch: Scratch,
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
    gradients: likewise.
    play_values: likewise.
    held: sequences at which strategies stay.
    kept: their probabilities.
    workspace: what they work on.
    scratch: likewise.
    numbers: see `IterationNumbers`.
    done: see `Loop.advance`.
  """
  strategy, cumulative, state, local = memory
  sequence_form, utility, prediction = workspace
  num_players = np.uint64(players.shape[0])
  for iteration in range(np.uint64(numbers.parameters.shape[0])):
    parameters = numbers.parameters[iteration]
    if not alternating:
      for player in range(num_players):
        gradient(player, payoff, sequence_form, utility)
        weight = numbers.weights_before[iteration, player]
        # Of two players' play, the average of one says what gradients the other has seen.
        if gradients.shape[0] != 0:
          for i in range(players[player, 2], players[player, 3]):
            gradients[i] += weight * utility[i]
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
      sweep_up(observe, begin, end, tree, strategy, utility, state, local, parameters, scratch)
      if predicts:
        sweep_up(predict, begin, end, tree, strategy, prediction, state, local, parameters, scratch)
      for i in range(held.shape[0]):
        strategy[held[i]] = kept[i]
      before = numbers.weights_before[iteration, player]
      if play_values.shape[0] != 0:
        play_values[player] += before * utility[root]
      after = numbers.weights_after[iteration, player]
      cumulative[root] += before + after
      sweep_down(begin, end, tree, strategy, sequence_form, cumulative, scratch, before, after)
    done[0] += _ONE
    addition = numbers.additions[iteration]
    if addition != 0.0:
      for i in range(np.uint64(tapered.shape[0])):
        tapered[i] += addition * cumulative[i]
      done[1] = done[0]


class FlatLoop(Loop):
  """See the module's docstring. All arrays are in the game's order."""

  def __init__(
    self, game: CompiledGame, minimizer: LocalMinimizer, tapered: bool, correlated: bool
  ) -> None:
    """Allocates the arrays; strategies are uniform."""
    super().__init__(game, minimizer, correlated)
    self.gradients = aligned_zeros(game.end if correlated and game.num_players > 2 else 0)
    self.strategy = forms.uniform(game)
    self.cumulative = aligned_zeros(game.end)
    self.tapered = aligned_zeros(game.end if tapered else 0)
    self.state = aligned_zeros(minimizer.state_lines, game.end)
    # Kernels may read whole vectors.
    self.local = aligned_zeros(minimizer.local_lines, game.num_infosets + LANES)
    self.local[:, : game.num_infosets] = self._initial_local
    self._tree = Tree(game.groups, game.parent)
    self._workspace = _Workspace(
      forms.sequence_form(game, self.strategy),
      aligned_zeros(game.end),
      aligned_zeros(game.end if minimizer.predict else 0),
    )
    self._scratch = new_scratch()
    self.hold(np.zeros(0, np.int64))
    self._roots = [treeplex.root for treeplex in game.treeplexes]

  def advance(self, alternating: bool, numbers: IterationNumbers, done: Uint64s) -> None:
    """See the base class."""
    payoff, minimizer = self._game.payoff, self._minimizer
    run_iterations(
      payoff.gradient,
      payoff.arrays,
      minimizer.observe,
      minimizer.predict or no_prediction,
      minimizer.predict is not None,
      alternating,
      self._game.players,
      self._tree,
      Memory(self.strategy, self.cumulative, self.state, self.local),
      self.tapered,
      self.gradients,
      self.play_values,
      self._held,
      self._kept,
      self._workspace,
      self._scratch,
      numbers,
      done,
    )

  def update(self, player: int, parameters: Float64s, before: Float64s, after: Float64s) -> None:
    """See the base class."""
    payoff, minimizer = self._game.payoff, self._minimizer
    sequence_form, utility, prediction = self._workspace
    begin, end, root, stop = self._game.players[player].tolist()
    tree = Tree(self._tree.groups[begin:end], self._tree.parent)
    payoff.gradient(player, payoff.arrays, sequence_form, utility)
    steps = [(minimizer.observe, utility)]
    if minimizer.predict is not None:
      prediction[root:stop] = utility[root:stop]
      steps.append((minimizer.predict, prediction))
    for kernel_of_blocks, utilities in steps:
      tree_up(
        kernel_of_blocks,
        tree,
        self.strategy,
        utilities,
        self.state,
        self.local,
        parameters,
        self._scratch,
      )
    self.strategy[self._held] = self._kept
    weights = float(before[player]), float(after[player])
    self.cumulative[root] += sum(weights)
    tree_down(tree, self.strategy, sequence_form, self.cumulative, self._scratch, *weights)

  def hold(self, sequences: Int64s) -> None:
    """See the base class."""
    self._held, self._kept = sequences.astype(np.uint32), self.strategy[sequences]

  def resume(self, sequence_form: Float64s, parameters: Float64s) -> None:
    """See the base class."""
    tree_adopt(self._tree, sequence_form, self.strategy)
    self.strategy[self._held] = self._kept
    self._scratch.value[:] = 0.0
    tree_up(
      resumption(self._minimizer),
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
    tree_reach(self._tree, self.strategy, self._workspace.sequence_form, self._scratch)

  def current_sequence_form(self) -> Float64s:
    """See the base class."""
    return self._workspace.sequence_form.copy()

  def values(self) -> list[float]:
    """See the base class."""
    utility = self._workspace.utility
    return [utility.item(root) for root in self._roots]

  def state_line(self, line: int) -> Float64s:
    """See the base class."""
    result: Float64s = self.state[line]
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
