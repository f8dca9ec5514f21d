"""CFR-BR: each player learns against the others' best responses, so that its current policy converges too.

Johanson et al., "Finding Optimal Abstract Strategies in Extensive-Form Games" (2012). As in OpenSpiel, every player
learns in this way, and every iteration begins with the best responses to the current policies; a best response is
pure, and plays the first of several best actions.
"""

import numpy as np

from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.loops import IterationNumbers, Loop
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame


def advance_against_best_responses(
  game: CompiledGame, loop: Loop, numbers: IterationNumbers
) -> None:
  """Runs iterations of a loop, each player against best responses of all others; see `Loop.advance`."""
  done = loop.state.counts

  def iterate(number: int, last: bool) -> None:
    row = IterationNumbers(*(each[number : number + 1] for each in numbers))
    current = loop.state.strategy.astype(np.float64)
    found = evaluate.evaluate(game, loop.current_sequence_form(), responses=True)
    updated = current.copy()
    for player, treeplex in enumerate(game.treeplexes):
      own = slice(treeplex.root, treeplex.end)
      policies = found.best_responses.copy()
      policies[own] = current[own]
      loop.set_strategy(policies)
      loop.update(player, row._replace(additions=np.zeros(1)))
      loop.gather()
      updated[own] = loop.state.strategy[own]
    loop.set_strategy(updated)
    done[0] += np.uint64(1)
    if row.additions[0]:
      loop.state.tapered[:] += row.additions[0] * loop.state.cumulative
      done[1] = done[0]

  whole_steps(iterate, len(numbers.parameters))
