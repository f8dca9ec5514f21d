"""Runs a minimizer's kernel on one block of infosets, outside of any game."""

import numpy as np

from spiel_cfr._numba.simd import LANES
from spiel_cfr._numba.steps import Chain
from spiel_cfr.games.sequence_form.blocks import as_scale, new_scratch
from spiel_cfr.games.sequence_form.single_passes import backward
from spiel_cfr.games.sequence_form.tree_passes import Tree


def run_kernel(kernel, count, strategy, utility, state, local, parameters):
  """Runs a kernel on `count` infosets; sequences are laid out as one row of `LANES` an action.

  Returns:
    The value that it has left for each infoset, shape (count,).
  """
  actions = len(strategy) // LANES
  above = actions * LANES
  tree = Tree(
    np.array([[0, LANES, count, actions, 0, 0]], np.uint64),
    np.full(count, above, np.uint32),
  )
  scratch = new_scratch()
  seen = np.append(utility, np.zeros(LANES))
  step = backward(
    kernel,
    tree,
    seen,
    strategy=strategy,
    action_state=state,
    infoset_state=local,
    parameters=parameters,
    scale=as_scale(np.ones(count)),
    scratch=scratch,
  )
  Chain([step]).run()
  np.testing.assert_allclose(seen[above], scratch.line[:count].sum(), rtol=1e-9, atol=1e-300)
  return scratch.line[:count].copy()
