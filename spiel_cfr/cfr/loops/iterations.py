"""The iterations over a game as a whole, in one call of compiled code."""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOAT_TABLE,
  FLOATS,
  INDICES,
  AnyFloats,
  Float64s,
  Uint32s,
  Uint64s,
  floats,
  tuple_type,
)
from spiel_cfr._numba.kernels import Kernel, kernel
from spiel_cfr._numba.simd import add_unbiased, number_for
from spiel_cfr.cfr.loops.loop import IterationNumbers
from spiel_cfr.games.payoffs.payoff import PayoffArrays, gradient_signature, payoff_arrays_type
from spiel_cfr.games.sequence_form.blocks import block_signature
from spiel_cfr.games.sequence_form.shared_infosets import SHARED_INFOSETS, SharedInfosets, shared_backward_pass_signature
from spiel_cfr.games.sequence_form.tree_passes import (
  TREE,
  Memory,
  Scratch,
  Tree,
  dither_after,
  memory_type,
  scratch_type,
  forward_pass,
  backward_pass,
)

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class FlatWorkspace(NamedTuple):
  """What the loop works on, all of shape (sequences,).

  Attributes:
    sequence_form: of the current strategies.
    utility: of each sequence.
    prediction: predicted ones; empty if there are none.
    shared: predicted ones, pooled over shared infosets; empty if there are none.
  """

  sequence_form: AnyFloats
  utility: AnyFloats
  prediction: AnyFloats
  shared: AnyFloats


class FlatGame(NamedTuple):
  """What iterations read of a game.

  Attributes:
    payoff: the arrays of the payoff.
    players: see `games.compiled.forced_moves.Decisions`.
    tree: likewise, of all players.
    forced: likewise; brought up to date at the end.
    chosen: likewise.
    shared_infosets: which sequences share strategies; of no players where none do.
  """

  payoff: PayoffArrays
  players: Uint64s
  tree: Tree
  forced: Uint32s
  chosen: Uint32s
  shared_infosets: SharedInfosets


class FlatArrays(NamedTuple):
  """What iterations write to, and what is held.

  Attributes:
    memory: what they change.
    tapered: likewise, see `Loop`.
    gradients: likewise.
    play_values: likewise.
    held: sequences at which strategies stay.
    kept: their probabilities.
    workspace: what they work on.
    scratch: likewise.
  """

  memory: Memory
  tapered: AnyFloats
  gradients: Float64s
  play_values: Float64s
  held: Uint32s
  kept: AnyFloats
  workspace: FlatWorkspace
  scratch: Scratch


class FlatKernels(NamedTuple):
  """What iterations call.

  Attributes:
    gradient: the payoff's kernel.
    observe: the minimizer's kernels, see `regret_minimizers.regret_minimizer`.
    predict: likewise; absent where there is none.
    shared_pass: `shared_backward_pass`; absent where no infosets are shared.
  """

  gradient: Kernel
  observe: Kernel
  predict: Kernel
  shared_pass: Kernel


_NUMBERS = tuple_type(IterationNumbers, *[FLOAT_TABLE] * 3, FLOATS)


def flat_game_type(number: Any) -> Any:
  """Returns the numba type of `FlatGame` in a precision."""
  return tuple_type(FlatGame, payoff_arrays_type(number), COUNT_TABLE, TREE, INDICES, INDICES, SHARED_INFOSETS)


def flat_arrays_type(number: Any) -> Any:
  """Returns the numba type of `FlatArrays` in a precision."""
  line = floats(number)
  workspace = tuple_type(FlatWorkspace, line, line, line, line)
  return tuple_type(
    FlatArrays,
    memory_type(number),
    line,
    FLOATS,
    FLOATS,
    INDICES,
    line,
    workspace,
    scratch_type(number),
  )


def flat_kernel_types(number: Any) -> tuple[Any, ...]:
  """Returns the numba types of what `FlatKernels` holds in a precision."""
  steps = types.FunctionType(block_signature(number))
  return (
    types.FunctionType(gradient_signature(number)),
    steps,
    steps,
    types.FunctionType(shared_backward_pass_signature(number)),
  )


def run_iterations_signature(number: Any) -> Any:
  """Returns the numba signature of `run_iterations` in a precision."""
  return types.void(
    *flat_kernel_types(number),
    types.boolean,
    flat_game_type(number),
    flat_arrays_type(number),
    types.boolean,
    _NUMBERS,
    COUNTS,
  )


# Kernels are arguments of their own, because to read them from a tuple takes Python longer.
@kernel(run_iterations_signature)
def run_iterations(
  gradient: Kernel,
  observe: Kernel,
  predict: Kernel,
  shared_pass: Kernel,
  predicts: bool,
  game: FlatGame,
  arrays: FlatArrays,
  alternating: bool,
  numbers: IterationNumbers,
  done: Uint64s,
) -> None:
  """Runs as many iterations as there are rows of numbers.

  Args:
    gradient: see `FlatKernels`.
    observe: likewise.
    predict: likewise.
    shared_pass: likewise.
    predicts: whether `predict` is to be called.
    game: what they read.
    arrays: what they write to.
    alternating: see `Loop.advance`.
    numbers: see `IterationNumbers`.
    done: see `Loop.advance`.
  """
  payoff, players, tree, forced, chosen, shared_infosets = game
  memory, tapered, gradients, play_values, held, kept, workspace, scratch = arrays
  strategy, cumulative, state, local = memory
  sequence_form, utility, prediction, shared = workspace
  num_players = np.uint64(players.shape[0])
  tied = shared_infosets.players.shape[0] > 0
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
      if tied:
        shared_pass(
          observe,
          False,
          player,
          shared_infosets,
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
          shared_pass(
            predict,
            True,
            player,
            shared_infosets,
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
        backward_pass(observe, begin, end, tree, strategy, utility, state, local, parameters, scratch)
        if predicts:
          backward_pass(
            predict, begin, end, tree, strategy, prediction, state, local, parameters, scratch
          )
      for i in range(held.shape[0]):
        strategy[held[i]] = kept[i]
      before = numbers.weights_before[iteration, player]
      if play_values.shape[0] != 0:
        play_values[player] += before * utility[root]
      after = numbers.weights_after[iteration, player]
      dither = dither_after(np.float64(cumulative[root]))
      added = number_for(cumulative, before + after)
      cumulative[root] = add_unbiased(cumulative[root], added, number_for(cumulative, dither))
      forward_pass(
        begin, end, tree, strategy, sequence_form, cumulative, scratch, before, after, dither
      )
    done[0] += _ONE
    addition = numbers.additions[iteration]
    if addition != 0.0:
      for i in range(np.uint64(tapered.shape[0])):
        tapered[i] += addition * cumulative[i]
      done[1] = done[0]
  for i in range(forced.shape[0]):
    sequence_form[forced[i]] = sequence_form[chosen[i]]
    cumulative[forced[i]] = cumulative[chosen[i]]
    if tapered.shape[0] != 0:
      tapered[forced[i]] = tapered[chosen[i]]
