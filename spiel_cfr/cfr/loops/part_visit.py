"""What an iteration does in one subtree of a game that is cut into parts, in one call of compiled code."""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  COUNT,
  FLOATS,
  INDICES,
  AnyFloats,
  Float64s,
  Uint32s,
  floats,
  tuple_type,
)
from spiel_cfr._numba.kernels import Kernel, kernel
from spiel_cfr.games.payoffs.payoff import PayoffArrays, gradient_signature, payoff_arrays_type
from spiel_cfr.games.sequence_form.blocks import block_signature
from spiel_cfr.games.sequence_form.tree_passes import (
  TREE,
  Memory,
  Scratch,
  Tree,
  backward_signature,
  forward_signature,
  memory_type,
  reach_signature,
  scratch_type,
)

_ONE = np.uint64(1)


class Side(NamedTuple):
  """One player in a subtree; sequences are numbered as in `Part`.

  Attributes:
    tree: its infosets there.
    memory: what the solver remembers of them.
    above: the sequences of the trunk above it, by their number in the trunk.
    trunk: reach probabilities in the trunk.
    kept: what backward passes have left at each sequence above, and what those of predicted utilities have.
    sequence_form: workspace, reach probabilities.
    utility: workspace.
    prediction: workspace, if the minimizer predicts.
  """

  tree: Tree
  memory: Memory
  above: Uint32s
  trunk: AnyFloats
  kept: tuple[AnyFloats, AnyFloats]
  sequence_form: AnyFloats
  utility: AnyFloats
  prediction: AnyFloats


# numba's own annotations don't cover it.
_pair: Any = types.UniTuple


def _signature(number: Any) -> Any:
  line = floats(number)
  block = types.FunctionType(block_signature(number))
  side = tuple_type(
    Side, TREE, memory_type(number), INDICES, line, _pair(line, 2), line, line, line
  )
  return types.void(
    types.FunctionType(gradient_signature(number)),
    block,
    block,
    types.FunctionType(reach_signature(number)),
    types.FunctionType(forward_signature(number)),
    types.FunctionType(backward_signature(number)),
    types.boolean,
    payoff_arrays_type(number),
    _pair(side, 2),
    scratch_type(number),
    COUNT,
    FLOATS,
    FLOATS,
    FLOATS,
  )


@kernel(_signature)
def visit_part(
  gradient: Kernel,
  observe: Kernel,
  predict: Kernel,
  reach: Kernel,
  forward: Kernel,
  backward: Kernel,
  predicts: bool,
  payoff: PayoffArrays,
  sides: tuple[Side, Side],
  scratch: Scratch,
  turn: int,
  parameters: Float64s,
  deferred: Float64s,
  totals: Float64s,
) -> None:
  """Does all that an iteration does in a subtree.

  `observe` and `predict` are the minimizer's kernels; the latter is any other where it does not predict. `reach`,
  `forward` and `backward` are those of `tree_passes`, and `payoff` has the subtree's arrays. `turn` has a bit for each
  player whose turn it is to update. `deferred` is the weight with which each player's strategy is still to be added to
  its average, whose weights sum to `totals` so far; both of shape (players,).
  """
  for player in range(np.uint64(2)):
    side = sides[player]
    # The opponent's gradient needs this player's reach.
    is_needed = (turn >> (_ONE - player)) & _ONE
    if deferred[player] != 0.0 or is_needed != 0:
      begin = np.uint64(side.memory.strategy.shape[0])
      for i in range(np.uint64(side.above.shape[0])):
        side.sequence_form[begin + i] = side.trunk[side.above[i]]
      if deferred[player] != 0.0:
        forward(
          side.tree,
          side.memory.strategy,
          side.sequence_form,
          side.memory.cumulative,
          scratch,
          0.0,
          deferred[player],
          totals[player],
        )
      else:
        reach(side.tree, side.memory.strategy, side.sequence_form, scratch)
  for player in range(np.uint64(2)):
    if (turn >> player) & _ONE:
      gradient(player, payoff, sides[_ONE - player].sequence_form, sides[player].utility)
  for player in range(np.uint64(2)):
    if (turn >> player) & _ONE:
      side = sides[player]
      strategy, _, action_state, infoset_state = side.memory
      begin = np.uint64(strategy.shape[0])
      if predicts:
        for i in range(begin + np.uint64(side.above.shape[0])):
          side.prediction[i] = side.utility[i]
      backward(
        observe, side.tree, strategy, side.utility, action_state, infoset_state, parameters, scratch
      )
      for i in range(np.uint64(side.above.shape[0])):
        side.kept[0][i] = side.utility[begin + i]
      if predicts:
        backward(
          predict,
          side.tree,
          strategy,
          side.prediction,
          action_state,
          infoset_state,
          parameters,
          scratch,
        )
        for i in range(np.uint64(side.above.shape[0])):
          side.kept[1][i] = side.prediction[begin + i]
