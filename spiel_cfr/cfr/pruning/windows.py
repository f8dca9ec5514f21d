"""When windows of pruning open, how long they are, and what is pruned in them.

Whether a window pays is a matter of counting leaves and sequences, never of a clock, so that runs are repeatable. It is
to take five times as long as its opening, by what was left in the one before it: a longer one would prune less, since
more has to be foreseen. For the same reason it has at most a tenth of all iterations so far.
"""

import functools
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, aligned, aligned_zeros
from spiel_cfr.cfr.loops import FullWidthState
from spiel_cfr.cfr.pruning.backfill import BACKFILL, add_deferred, choose, note_unseen, restore
from spiel_cfr.cfr.pruning.compaction import COMPACTION, Compacted, LeafTable, all_leaves, compact
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.counterfactual_values import backward_pass
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, COUNT
from spiel_cfr.regret_minimizers.regret_minimizer import tie_tolerances

# The most iterations of a window, and what part of all so far they may be.
LONGEST, _PART = 3000, 10
# How many times the work of opening it the iterations of a window are to be.
_PAID = 5
# What takes as long as so many leaves that are looked at one by one: a vector of typed patterns, a sequence in passes.
_LEAVES_A_VECTOR, _LEAVES_A_SEQUENCE = 5, 2
# The same for opening a window: calls of Python's, a sequence, a leaf.
_LEAVES_AN_OPENING, _LEAVES_A_SEQUENCE_OPENED, _LEAVES_A_LEAF_OPENED = 1_200_000, 28, 16


class Windows:
  """What windows of a game have in common; what of that is made once, is.

  Attributes:
    game: the game.
    shortest: the fewest iterations of a window.
  """

  def __init__(self, game: CompiledGame, shortest: int | None) -> None:
    """Takes the game, and the fewest iterations of a window; None for what pays with nothing pruned.

    Raises:
      PruningError: nothing of the game can be left out.
    """
    why = ""
    if game.num_players != 2:
      why = f"has {game.num_players} players; what a player faces is then no sum of strategies"
    elif game.original is not game:
      why = "is an abstraction. Prune its `original`"
    elif not isinstance(game, EnumeratedGame):
      why = "is compiled in vector form. Compile it with vector_form=False"
    if why or not isinstance(game, EnumeratedGame):
      raise errors.PruningError(f"{game.game_string} {why}, or take no pruning.")
    self.game = game
    self._tree = Tree(game.decisions.groups, game.decisions.parent)
    self.shortest = min(self._paid(None), LONGEST) if shortest is None else shortest

  def __reduce__(self) -> tuple[Any, ...]:
    """Pickles what it is made of."""
    return Windows, (self.game, self.shortest)

  def prepare(self) -> None:
    """Makes what is made once, and compiles."""
    assert self._gains
    for each in (*BACKFILL, *COMPACTION):
      assert callable(each.unchecked)

  def length(self, iteration: int, left: Compacted | None) -> int:
    """Returns how many iterations a window is to have that begins after so many; `left` is of the one before it."""
    paid = max(self._paid(left), self.shortest)
    return min(max(iteration // _PART, self.shortest), paid, LONGEST)

  def _paid(self, left: Compacted | None) -> int:
    """Returns how many iterations take so many times as long as to open a window."""
    game = self.game
    leaves = _LEAVES_A_LEAF_OPENED * _gradient_work(game.decisions.payoff)
    opening = _LEAVES_AN_OPENING + _LEAVES_A_SEQUENCE_OPENED * game.end + leaves
    return -(-_PAID * opening // max(1, self.work(left)))

  def work(self, left: Compacted | None = None) -> int:
    """Returns how long an iteration takes with what is left, roughly: as long as to look at so many leaves."""
    decisions = self.game.decisions if left is None else left.game.every_infoset
    groups = decisions.groups
    sequences = int((groups[:, COUNT] * groups[:, ACTIONS]).sum())
    return _gradient_work(decisions.payoff) + _LEAVES_A_SEQUENCE * sequences

  def compact(self, pruned: Bools) -> Compacted:
    """Returns what is left of the game."""
    return compact(self.game, self._leaves, pruned)

  def add_deferred(
    self, left: Compacted, state: FullWidthState, opened: Float64s, sums: Float64s
  ) -> None:
    """Brings sums of sequence forms up to date where nobody looked, see `backfill.add_deferred`."""
    decisions = self.game.decisions
    add_deferred.unchecked(self._tree, left.seen, state.strategy, opened, sums)
    sums[decisions.forced] = sums[decisions.chosen]

  def catch_up(
    self, left: Compacted, state: FullWidthState, opened: Float64s, values: Float64s
  ) -> None:
    """Brings up to date what was not pruned and not looked at in a window.

    Args:
      left: what was.
      state: the solver's.
      opened: the sums of its averages when the window began, shape (sequences,).
      values: Z then, shape (infosets,).
    """
    self.add_deferred(left, state, opened, state.cumulative)
    faced = aligned(state.cumulative - opened)
    gained = self._gradients(faced, self.game.decisions.payoff)
    note_unseen.unchecked(self._tree, left.seen, state.memory, gained, values)

  def prunable(
    self,
    state: FullWidthState,
    best: Float64s,
    opened: Float64s,
    values: Float64s,
    coming: float,
    caution: float,
    pruned: Bools,
    weight: float,
  ) -> Bools:
    """Returns which sequences can be pruned next, the topmost ones only, shape (sequences,).

    Args:
      state: the solver's.
      best: C, see `backfill`.
      opened: the sums of its averages when the last window began, shape (sequences,).
      values: Z then, shape (infosets,).
      coming: the weight of the iterations of the window.
      caution: how many times what the other player has done on average counts.
      pruned: what is, shape (sequences,).
      weight: of the next iteration.
    """
    sums = state.cumulative
    of_late, ever = coming / float(sums[0] - opened[0]), caution * coming / float(sums[0])
    faced = aligned((of_late + ever) * sums - of_late * opened)
    growth = self.best_responses(faced, self._gains)
    spent = of_late * (state.local[0] - values)
    reached, result = np.zeros(self.game.end, np.uint8), pruned.copy()
    reached[[tree.root for tree in self.game.treeplexes]] = 1
    least, each = self._ties * weight, result.view(np.uint8)
    choose.unchecked(self._tree, state.memory, best, growth, spent, least, reached, each)
    return result

  def bring_back(self, again: Bools, state: FullWidthState, best: Float64s, weight: float) -> None:
    """Makes the history of what was pruned and is not any more, see `backfill.restore`."""
    restore.unchecked(self._tree, again.view(np.uint8), state.memory, best, weight, self._ties)

  def best_responses(self, faced: Float64s, payoff: Payoff | None = None) -> Float64s:
    """Returns what each sequence is worth with a best response to a sum of sequence forms, shape (sequences,)."""
    result = self._gradients(faced, payoff or self.game.decisions.payoff)
    backward_pass(self.game, take_best, result, tree=self._tree)
    return result

  def _gradients(self, faced: Float64s, payoff: Payoff) -> Float64s:
    result = aligned_zeros(self.game.end)
    for player in range(2):
      payoff.gradient_into(player, faced, result)
    return result

  @functools.cached_property
  def _leaves(self) -> LeafTable:
    return all_leaves(self.game)

  @functools.cached_property
  def _gains(self) -> Payoff:
    """The payoffs, losses counting as nothing."""
    return self._leaves.payoff(self.game.treeplexes, self._leaves.values > 0)

  @functools.cached_property
  def _ties(self) -> Float64s:
    return tie_tolerances(self.game)


def _gradient_work(payoff: Payoff) -> int:
  """Returns how long all players' gradients take, as long as to look at so many leaves."""
  if isinstance(payoff, TypedPatterns):
    return _LEAVES_A_VECTOR * len(payoff.arrays.others)
  return len(payoff.arrays.values)
