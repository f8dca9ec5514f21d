"""How much of what a pruning solver remembers is ever looked at again."""

import numpy as np

from spiel_cfr.cfr.pruning.kept import NOWHERE, find_kept
from spiel_cfr.cfr.pruning.rule import PruningRule, Windowed
from spiel_cfr.policies import forms


def numbers_held(solver: Windowed, rule: PruningRule | None) -> int:
  """Returns how many numbers have to be held between iterations, see `PruningSolver.held_bytes`."""
  game = solver.compiled_game
  of_sequence, of_infoset = 2 + len(solver._state), len(solver._local)
  if rule is not None:
    # And what all that was when the window began.
    of_sequence, of_infoset = of_sequence + 3, 2 * of_infoset
  decisions = game.decisions
  real = forms.uniform(game) > 0
  real[decisions.forced] = False
  below = np.zeros(game.end, bool)
  if rule is not None and not rule.owners_go_on:
    below = real & ~solver._pruned & (find_kept(game, solver._pruned).place == NOWHERE)
  first = np.concatenate(
    [np.zeros(0, int)]
    + [np.arange(row, row + count) for row, _, count, *_ in decisions.groups.tolist()]
  )
  left = int((real & ~below).sum()) * of_sequence + int((~below[first]).sum()) * of_infoset
  forgotten = int(np.count_nonzero(solver._cumulative[below]))
  if rule is not None and not rule.forgets:
    forgotten += int(np.count_nonzero(below))
  return left + forgotten
