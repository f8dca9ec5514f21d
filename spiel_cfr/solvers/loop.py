"""The compiled iterations of every full-width solver.

An iteration of one player:

1. The gradient of the player's expected utility: what each sequence is worth, given how the others play now.
2. A sweep from the leaves to the root. Each block of infosets observes its counterfactual utilities, and adds its
   values to the sequences above. Minimizers that predict need a second sweep of the same kind.
3. A sweep from the root to the leaves turns local strategies into sequence form, and adds to the average.

With alternating updates a player sees what those before it have just become; with simultaneous ones all gradients are
taken first.
"""

import numpy as np
from numba import types

from spiel_cfr.game.payoff import GRADIENT_SIGNATURE
from spiel_cfr.kernels.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOAT_TABLE,
  FLOATS,
  INDEX_TABLE,
  INDICES,
  Float64s,
  Uint32s,
  Uint64s,
)
from spiel_cfr.kernels.compile import CHUNK, Kernel, inlined, kernel
from spiel_cfr.minimizers.base import BLOCK_SIGNATURE

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_CHUNK = np.uint64(CHUNK)


@inlined
def sweep_up(
  block: Kernel,
  begin: int,
  end: int,
  groups: Uint64s,
  parent: Uint32s,
  state: Float64s,
  local: Float64s,
  strategy: Float64s,
  utility: Float64s,
  scratch: Float64s,
  parameters: Float64s,
) -> None:
  """Runs a block kernel over the groups from `end - 1` down to `begin`, and carries the values up."""
  for back in range(end - begin):
    group = end - _ONE - back
    first, stride, total = groups[group, 0], groups[group, 1], groups[group, 2]
    actions, infoset = groups[group, 3], groups[group, 4]
    for start in range(_ZERO, total, _CHUNK):
      count = min(_CHUNK, total - start)
      block(
        state,
        local,
        strategy,
        utility,
        scratch,
        parameters,
        first + start,
        stride,
        infoset + start,
        count,
        actions,
      )
      for i in range(count):
        utility[parent[infoset + start + i]] += scratch[0, i]


@inlined
def sweep_down(
  begin: int,
  end: int,
  groups: Uint64s,
  parent: Uint32s,
  strategy: Float64s,
  sequence: Float64s,
  average: Float64s,
  scratch: Float64s,
  weight_before: float,
  weight_after: float,
) -> None:
  """Brings `sequence` up to date, and adds both what it was and what it becomes to `average`."""
  reach = scratch[0]
  for group in range(begin, end):
    first, stride, total = groups[group, 0], groups[group, 1], groups[group, 2]
    actions, infoset = groups[group, 3], groups[group, 4]
    for start in range(_ZERO, total, _CHUNK):
      count = min(_CHUNK, total - start)
      for i in range(count):
        reach[i] = sequence[parent[infoset + start + i]]
      for action in range(actions):
        row = first + start + action * stride
        for i in range(count):
          updated = reach[i] * strategy[row + i]
          average[row + i] += weight_before * sequence[row + i] + weight_after * updated
          sequence[row + i] = updated


@kernel(
  types.void(
    types.FunctionType(GRADIENT_SIGNATURE),
    COUNT_TABLE,
    INDICES,
    INDEX_TABLE,
    FLOATS,
    types.FunctionType(BLOCK_SIGNATURE),
    types.FunctionType(BLOCK_SIGNATURE),
    types.boolean,
    types.boolean,
    COUNT_TABLE,
    COUNT_TABLE,
    INDICES,
    FLOAT_TABLE,
    FLOAT_TABLE,
    FLOATS,
    FLOATS,
    FLOATS,
    FLOATS,
    FLOATS,
    FLOAT_TABLE,
    FLOAT_TABLE,
    FLOAT_TABLE,
    FLOAT_TABLE,
    COUNTS,
  )
)
def run_iterations(
  gradient: Kernel,
  payoff_table: Uint64s,
  payoff_rows: Uint32s,
  payoff_others: Uint32s,
  payoff_values: Float64s,
  observe: Kernel,
  predict: Kernel,
  predicts: bool,
  alternating: bool,
  players: Uint64s,
  groups: Uint64s,
  parent: Uint32s,
  state: Float64s,
  local: Float64s,
  strategy: Float64s,
  sequence: Float64s,
  average: Float64s,
  utility: Float64s,
  prediction: Float64s,
  scratch: Float64s,
  parameters: Float64s,
  weights_before: Float64s,
  weights_after: Float64s,
  done: Uint64s,
) -> None:
  """Runs as many iterations as there are rows of `parameters`.

  Args:
    gradient: the payoff's kernel; the four arrays after it are the payoff's.
    payoff_table: see `payoff.Payoff`.
    payoff_rows: likewise.
    payoff_others: likewise.
    payoff_values: likewise.
    observe: the minimizer's kernels, see `minimizers.base`.
    predict: likewise.
    predicts: whether `predict` is to be called.
    alternating: whether a player sees the new strategies of those before it.
    players: a row a player: first group, one past the last, root, one past the last sequence.
    groups: see `treeplex.Treeplex`, of all players.
    parent: likewise.
    state: the minimizer's, shape (lines, sequences).
    local: the minimizer's, shape (lines, infosets).
    strategy: probability of each sequence's action at its infoset.
    sequence: probability that the owner plays to each sequence.
    average: weighted sum of `sequence` over the iterations.
    utility: workspace for utilities.
    prediction: workspace for predicted ones; may be empty if there are none.
    scratch: workspace, shape (lines, CHUNK).
    parameters: the minimizer's, shape (iterations, numbers).
    weights_before: shape (iterations, players): what the strategy before the player's update weighs in its average.
    weights_after: likewise, the strategy after it.
    done: shape (1,), the number of iterations done. It is counted here so that no interruption can come between an
      iteration and its number.
  """
  num_players = np.uint64(players.shape[0])
  for iteration in range(np.uint64(parameters.shape[0])):
    if not alternating:
      for player in range(num_players):
        gradient(player, payoff_table, payoff_rows, payoff_others, payoff_values, sequence, utility)
    for player in range(num_players):
      begin, end, root, stop = (
        players[player, 0],
        players[player, 1],
        players[player, 2],
        players[player, 3],
      )
      if alternating:
        gradient(player, payoff_table, payoff_rows, payoff_others, payoff_values, sequence, utility)
      if predicts:
        for i in range(root, stop):
          prediction[i] = utility[i]
      sweep_up(
        observe,
        begin,
        end,
        groups,
        parent,
        state,
        local,
        strategy,
        utility,
        scratch,
        parameters[iteration],
      )
      if predicts:
        sweep_up(
          predict,
          begin,
          end,
          groups,
          parent,
          state,
          local,
          strategy,
          prediction,
          scratch,
          parameters[iteration],
        )
      weight_before, weight_after = (
        weights_before[iteration, player],
        weights_after[iteration, player],
      )
      average[root] += weight_before + weight_after
      sweep_down(
        begin,
        end,
        groups,
        parent,
        strategy,
        sequence,
        average,
        scratch,
        weight_before,
        weight_after,
      )
    done[0] += _ONE


@kernel(
  types.void(
    types.FunctionType(GRADIENT_SIGNATURE),
    COUNT_TABLE,
    INDICES,
    INDEX_TABLE,
    FLOATS,
    types.FunctionType(BLOCK_SIGNATURE),
    COUNT_TABLE,
    COUNT_TABLE,
    INDICES,
    FLOATS,
    FLOATS,
    FLOATS,
    FLOAT_TABLE,
    FLOAT_TABLE,
  )
)
def best_responses(
  gradient: Kernel,
  payoff_table: Uint64s,
  payoff_rows: Uint32s,
  payoff_others: Uint32s,
  payoff_values: Float64s,
  best_response: Kernel,
  players: Uint64s,
  groups: Uint64s,
  parent: Uint32s,
  sequence: Float64s,
  response: Float64s,
  utility: Float64s,
  scratch: Float64s,
  values: Float64s,
) -> None:
  """Finds every player's best response to `sequence`.

  Args:
    gradient: as in `run_iterations`, like all arguments not named here.
    payoff_table: see `payoff.Payoff`.
    payoff_rows: likewise.
    payoff_others: likewise.
    payoff_values: likewise.
    best_response: a block kernel that writes the response, and values infosets by it.
    players: see `run_iterations`.
    groups: likewise.
    parent: likewise.
    sequence: the policies in sequence form.
    response: filled with the best responses in behavioural form.
    utility: workspace.
    scratch: workspace.
    values: filled with, a row a player, the expected utility and that of the best response.
  """
  for player in range(np.uint64(players.shape[0])):
    root, stop = players[player, 2], players[player, 3]
    gradient(player, payoff_table, payoff_rows, payoff_others, payoff_values, sequence, utility)
    expected = 0.0
    for i in range(root, stop):
      expected += utility[i] * sequence[i]
    values[player, 0] = expected
    sweep_up(
      best_response,
      players[player, 0],
      players[player, 1],
      groups,
      parent,
      scratch,
      scratch,
      response,
      utility,
      scratch,
      scratch[0],
    )
    values[player, 1] = utility[root]
