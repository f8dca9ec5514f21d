"""Continuation of a loop from given strategies, with a fitting state of the minimizer."""

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._numba.steps import Chain
from spiel_cfr.cfr.loops.loop import Loop
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.tree_passes import backward_pass
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, resumption


def resume_from(
  game: CompiledGame,
  loop: Loop,
  minimizer: RegretMinimizer,
  sequence_form: Float64s,
  parameters: Float64s,
) -> None:
  """Makes a policy the current strategies of a loop, and derives the minimizer's state from it.

  Args:
    game: the game.
    loop: the loop.
    minimizer: the minimizer.
    sequence_form: shape (sequences,). The policy. An infoset that its owner never reaches keeps its strategy.
    parameters: the minimizer's parameters of the last iteration.

  Raises:
    RestartError: the minimizer can't go on from a strategy.
    PolicyError: the array has another shape.
  """
  if np.shape(sequence_form) != (game.end,):
    raise errors.PolicyError(
      f"A policy of this game in sequence form has the shape ({game.end},), not {np.shape(sequence_form)}."
    )
  arrays, kernel = loop.arrays, resumption(minimizer)
  arrays.set_sequence_form(sequence_form)
  for number, part in enumerate(arrays.parts):
    for visit, tree in zip(arrays.part_steps.visits(number), part.every_infoset, strict=True):
      visit.workspace.scratch.line[:] = 0.0
      record = loop.backward_arguments(visit, kernel, visit.utility, parameters)
      Chain([backward_pass.on(record._replace(tree=tree), game.dtype)]).run()
  arrays.compute_reach()
