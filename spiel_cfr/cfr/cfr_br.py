"""CFR-BR: CFR in which every player faces best responses, so that the current policies converge too.

Johanson et al., "Finding Optimal Abstract Strategies in Extensive-Form Games" (2012). As in OpenSpiel, an iteration
first computes the best responses to the current policies. Then every player updates against the best responses of the
others. A best response is pure; of several best actions it plays the first.
"""

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.loops import Loop
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame


def advance_against_best_responses(game: CompiledGame, loop: Loop, numbers: Float64s) -> None:
  """Runs iterations in which each player updates against best responses of all others; see `Loop.advance`."""

  def iterate(iteration: int, last: bool) -> None:
    current = loop.arrays.state.strategy.astype(np.float64)
    evaluation = evaluate.evaluate(game, loop.arrays.sequence_form(), responses=True)
    updated = current.copy()
    for player, treeplex in enumerate(game.treeplexes):
      sequences = slice(treeplex.root, treeplex.end)
      policies = evaluation.best_responses.copy()
      policies[sequences] = current[sequences]
      loop.arrays.set_strategy(policies)
      loop.update_player(player, numbers[iteration])
      loop.complete_arrays()
      updated[sequences] = loop.arrays.state.strategy[sequences]
    loop.arrays.set_strategy(updated)
    loop.end_iteration()

  # Ctrl-C must not stop between the several calls of compiled code that best responses take.
  with DeferredInterrupt(whole=True):
    whole_steps(iterate, len(numbers))
