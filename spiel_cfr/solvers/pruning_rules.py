"""What pruning leaves alone in the next window, and what it makes of the last one: a class for each kind of rule."""

import abc
import functools
import math
from typing import ClassVar

import numpy as np

from spiel_cfr import errors
from spiel_cfr.best_responses import take_best
from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.compiled.enumerated import EnumeratedGame
from spiel_cfr.continuing.compaction import (
  COMPACTING,
  Compacted,
  all_leaves,
  iteration_work,
  opening_work,
)
from spiel_cfr.continuing.identity import carry_up
from spiel_cfr.continuing.rewriting import REWRITING, carry_window, choose, restore
from spiel_cfr.game.sweeps import Tree
from spiel_cfr.kernels.arrays import (
  AnyFloats,
  Bools,
  Float64s,
  Int64s,
  aligned_zeros,
)
from spiel_cfr.kernels.simd import MOST_LANES
from spiel_cfr.minimizers.base import LocalMinimizer, tie_tolerances
from spiel_cfr.minimizers.ledger import NotedMatching, can_skip_zeros, noted
from spiel_cfr.minimizers.schedules import Schedule, evaluated
from spiel_cfr.payoffs.base import Payoff
from spiel_cfr.payoffs.leaf_rows import LeafRows
from spiel_cfr.payoffs.sorted_rows import SortedRows, sorted_rows
from spiel_cfr.policy import forms
from spiel_cfr.solvers.averaging import Averaged
from spiel_cfr.solvers.full_width import Solver
from spiel_cfr.solvers.loops import FlatLoop, IterationNumbers
from spiel_cfr.solvers.windows import MOST, Pruning

# What `Pruning.caution` is by default. Chosen on liar's dice and Leduc-5.
_CAUTION_PLUS, _CAUTION = 1.0, 10.0
# What part of utilities is rounding, in sums over a game.
_ROUNDING = 1e-11
# How many times the work of opening it the iterations of a window are to be, at least.
_PAID = 3
# After so many iterations partial pruning looks whether it was right.
_BATCH = 16


class Windowed(Solver):
  """What rules see of a solver: besides what every solver has, these.

  Attributes:
    _pruned: which sequences are left alone, the topmost ones, shape (sequences,).
    _epoch_start: the iteration after which the window began.
    _opened: the sums of the average then, shape (sequences,).
    _opened_values: likewise, the minimizer's sums of infosets' values, shape (infosets,) or longer.
    _opened_strategy: likewise, the strategies, shape (sequences,); of rules that go back on windows.
    _opened_regrets: likewise, the minimizer's first line.
    _caution: see `Pruning.caution`.
    _opened_gradients: the gradients of `_opened`, or None if they have to be found again.
  """

  _pruned: Bools
  _epoch_start: int
  _opened: Float64s
  _opened_values: Float64s
  _opened_strategy: Float64s
  _opened_regrets: Float64s
  _caution: float
  _opened_gradients: Float64s | None

  @abc.abstractmethod
  def _window(self) -> Compacted:
    """Returns what is left of the game."""

  @abc.abstractmethod
  def _add_deferred(self, sums: AnyFloats) -> None:
    """Brings averages up to date where nobody looked."""

  @abc.abstractmethod
  def _weight(self, iteration: int) -> float:
    """Returns what an iteration weighs in the average."""


class PruningRule(abc.ABC):
  """What a solver asks about its windows.

  Attributes:
    owners_go_on: whether owners look below what is pruned, see `continuing.compaction`.
    game: in the form that iterations go through while nothing is pruned.
    tree: of all players, without forced moves.
  """

  owners_go_on: ClassVar[bool]

  def __init__(self, game: EnumeratedGame, pruning: Pruning) -> None:
    """Takes what never changes."""
    self.game, self._pruning = game, pruning
    self.tree = Tree(game.decisions.groups, game.decisions.parent)

  @property
  @abc.abstractmethod
  def rows(self) -> LeafRows:
    """The payoffs of which a window has some."""

  @functools.cached_property
  def work(self) -> int:
    """What an iteration is while nothing is pruned, see `continuing.compaction`."""
    return iteration_work(self.game.decisions)

  @property
  def shortest(self) -> int:
    """The fewest iterations of a window."""
    if self._pruning.shortest is not None:
      return self._pruning.shortest
    return min(-(-_PAID * opening_work(self.game) // self.work), self._pruning.longest)

  @abc.abstractmethod
  def decide(self, solver: Windowed, length: int) -> bool:
    """Brings what was left alone up to date; writes to `_pruned` what is to be for so many iterations; for 0, nothing.

    Returns:
      Whether it could be left alone. If not, the window has to be gone back on, and nothing else is right.
    """

  @abc.abstractmethod
  def settle(self, solver: Windowed, before: Bools) -> None:
    """Brings what is not left alone any more up to date; `before` is what was."""

  @abc.abstractmethod
  def advance(self, solver: Windowed, small: FlatLoop, numbers: IterationNumbers) -> int:
    """Runs iterations on what is left; returns how many are done, fewer if the window has turned out wrong."""

  def first_caution(self, minimizer: LocalMinimizer) -> float:
    """Returns the caution that a solver begins with."""
    if self._pruning.caution is not None:
      return self._pruning.caution
    plus = isinstance(minimizer, NotedMatching) and minimizer.plus
    return _CAUTION_PLUS if plus else _CAUTION

  def prepare(self) -> None:
    """Makes what is made once, and compiles."""
    assert self.rows
    for each in (*REWRITING, *COMPACTING):
      assert each.compiled


class RewritingRule(PruningRule):
  """Regret-based and best-response pruning: see `solvers.pruning`."""

  owners_go_on = False

  def __init__(self, game: EnumeratedGame, pruning: Pruning) -> None:
    """Makes what windows are opened with; all of it may have other contents later."""
    super().__init__(game, pruning)
    # To make them anew takes as long as to fill them.
    self._best, self._spare, *self._faced = (aligned_zeros(game.end) for _ in range(4))
    self._known = np.zeros(game.end, np.uint8)
    self._known[[tree.root for tree in game.treeplexes]] = 1
    # Of infosets: that all are looked at, that no values have to be noted, that no values count.
    number = game.num_infosets
    self._all, self._none = np.ones(number, np.uint8), np.zeros(number, np.uint64)
    self._nothing = aligned_zeros(number + MOST_LANES)

  @property
  def _anew(self) -> bool:
    return self._pruning.rule == "best_response"

  @functools.cached_property
  def rows(self) -> LeafRows:
    """See the base class."""
    return all_leaves(self.game)

  @functools.cached_property
  def _gains(self) -> SortedRows:
    """The same, losses counting as nothing."""
    return sorted_rows(self.rows, self.rows.arrays.values > 0)

  @functools.cached_property
  def _ties(self) -> Float64s:
    return tie_tolerances(self.game)

  def prepare(self) -> None:
    """See the base class."""
    super().prepare()
    assert len(self._ties)
    for payoff in (self._gains, self.game.decisions.payoff):
      carry_up(self.game, take_best, self._gradients(*self._faced, payoff), tree=self.tree)

  def advance(self, solver: Windowed, small: FlatLoop, numbers: IterationNumbers) -> int:
    """See the base class."""
    small.advance(solver.alternating_updates, numbers, solver._iteration)
    return len(numbers.parameters)

  def decide(self, solver: Windowed, length: int) -> bool:
    """See the base class."""
    before = solver._pruned.view(np.uint8)
    earlier, weight = solver._weight(solver._epoch_start), solver._weight(solver.iteration)
    looked_at, actions_left = self._all, self._none
    if before.any():
      window = solver._window()
      looked_at, actions_left = window.looked_at.view(np.uint8), window.actions_left
      solver._add_deferred(solver._cumulative)
    assert isinstance(solver.minimizer, NotedMatching)
    passed = np.arange(solver._epoch_start, solver.iteration) + 1
    discount = float(np.prod(evaluated(solver.minimizer.discount, passed)))
    opened = solver._opened_gradients
    if opened is None:
      opened = self._gradients(solver._opened, aligned_zeros(self.game.end))
    # In turn, so that no more than these two are made.
    faced, self._spare = self._gradients(solver._cumulative, self._spare), opened
    in_window = np.subtract(faced, opened, out=opened)
    best = self._best
    best[:] = faced if self._anew else in_window
    missed = carry_window(
      self.tree,
      self._anew,
      actions_left,
      before,
      solver._state[0],
      in_window,
      solver._opened_values,
      solver._local[0],
      best,
      earlier,
    )
    if length and missed > self._tolerable(solver._cumulative, faced):
      solver._opened_gradients = None
      return False
    solver._opened_gradients = faced
    coming = float(solver._average_weights(solver.iteration + np.arange(1, length + 1)).sum())
    growth, passed_values = self._growth(solver, coming)
    choose(
      self.tree,
      self._anew,
      looked_at,
      solver._strategy,
      solver._state[0],
      solver._local[0],
      self._nothing if self._anew else solver._opened_values,
      best,
      before,
      self._known,
      growth,
      passed_values,
      self._ties,
      earlier,
      weight,
      discount,
    )
    return True

  def _tolerable(self, sums: Float64s, gradients: Float64s) -> float:
    """Returns how much NashConv, times the weight of all iterations, may become worse in a window.

    Args:
      sums: of the average.
      gradients: of these.
    """
    if self._pruning.tolerance > MOST:
      return math.inf
    best = self._best
    if not self._anew:
      best = self._faced[0]
      best[:] = gradients
      carry_up(self.game, take_best, best, tree=self.tree)
    weight = float(sums[0])
    gap = sum(float(best[tree.root]) for tree in self.game.treeplexes)
    gap -= float(gradients @ sums) / weight
    low, high = self.game.payoff_range
    return self._pruning.tolerance * max(gap, 0.0) + _ROUNDING * weight * (high - low)

  def settle(self, solver: Windowed, before: Bools) -> None:
    """See the base class."""
    restored = before & ~solver._pruned
    # What regret-based pruning keeps has to be brought up to date in any case.
    rewritten = restored if self._anew else before
    if rewritten.any():
      restore(
        self.tree,
        self._anew,
        solver._strategy,
        solver._state[0],
        solver._local[0],
        self._best,
        restored.view(np.uint8),
        rewritten.copy().view(np.uint8),
        self._ties,
        solver._weight(solver.iteration),
      )

  def _growth(self, solver: Windowed, coming: float) -> tuple[Float64s, Float64s]:
    """Returns by how much regrets may grow in iterations of this weight: what is added, and what is taken away.

    The former is of shape (sequences,), the latter of shape (infosets,), or longer.
    """
    passed = float(solver._cumulative[0] - solver._opened[0])
    if self._pruning.certain:
      return coming * self._most, self._nothing
    if not passed or self._pruning.margin > MOST:
      return np.full(self.game.end, math.inf), self._nothing
    factor, share = (
      self._pruning.margin * coming / passed,
      solver._caution * coming / float(solver._cumulative[0]),
    )
    # What was faced in the last epoch, and what has ever been faced.
    faced, lately = self._faced
    np.multiply(solver._cumulative, factor + share, out=faced)
    faced -= np.multiply(solver._opened, factor, out=lately)
    gained = self._gradients(faced, lately, self._gains)
    carry_up(self.game, take_best, gained, tree=self.tree)
    return gained, factor * (solver._local[0] - solver._opened_values)

  @functools.cached_property
  def _most(self) -> Float64s:
    """How much a regret can grow in an iteration, whatever anybody plays, shape (sequences,)."""
    return 2.0 * self.game.spread(self.game.loss_bounds)

  def _gradients(self, faced: Float64s, result: Float64s, payoff: Payoff | None = None) -> Float64s:
    for player in range(2):
      (payoff or self.game.decisions.payoff).gradient_into(player, faced, result)
    return result


class PartialRule(PruningRule):
  """Partial pruning: what others do not lead to changes nothing, so that nobody need look.

  Nobody knows beforehand what will be played. So this guesses: what was not played to in the last window. After every
  few iterations it looks whether that was right. If not, these are undone, and the window is over.
  """

  owners_go_on = True

  def __init__(self, game: EnumeratedGame, pruning: Pruning) -> None:
    """Takes the game with rows of leaves, of which a window has some in the same order; forced moves are visited."""
    rows = game.payoff if isinstance(game.payoff, LeafRows) else all_leaves(game)
    super().__init__(game.with_payoff(rows).visiting_all(), pruning)
    self._rows = rows

  @property
  def rows(self) -> LeafRows:
    """See the base class."""
    return self._rows

  @functools.cached_property
  def _above(self) -> Int64s:
    """The sequence above each sequence's infoset; of others, the first one."""
    return self.game.spread(self.game.parent.astype(np.float64)).astype(np.int64)

  @functools.cached_property
  def _real(self) -> Bools:
    return forms.uniform(self.game) > 0

  def decide(self, solver: Windowed, length: int) -> bool:
    """See the base class; what was wrong, `advance` has gone back on."""
    solver._loop.refresh()
    quiet = solver._loop.current_sequence_form() == 0
    quiet &= self._real & (solver._cumulative == solver._opened)
    solver._pruned[:] = quiet & ~quiet[self._above]
    return True

  def settle(self, solver: Windowed, before: Bools) -> None:
    """See the base class."""

  def advance(self, solver: Windowed, small: FlatLoop, numbers: IterationNumbers) -> int:
    """See the base class."""
    window, count = solver._window(), len(numbers.parameters)
    watched = window.places[solver._pruned[window.sequences]]
    arrays = (small.strategy, small.cumulative, small.state, small.local)
    for first in range(0, count, _BATCH):
      last = min(first + _BATCH, count)
      rows = IterationNumbers(*(each[first:last] for each in numbers))
      kept, done = [each.copy() for each in arrays], solver.iteration
      # Sums show whatever has been played to meanwhile, if they begin at 0, and iterations weigh anything.
      small.cumulative[watched] = 0.0
      small.advance(solver.alternating_updates, rows, solver._iteration)
      weighed = (rows.weights_before + rows.weights_after > 0).all()
      played = small.cumulative[watched].any() or small.current_sequence_form()[watched].any()
      small.cumulative[watched] = kept[1][watched]
      if played or not weighed:
        for array, before in zip(arrays, kept, strict=True):
          array[:] = before
        small.refresh()
        solver.iteration = done
        return first
    return count


def make_rule(game: CompiledGame, pruning: Pruning) -> PruningRule:
  """Returns a rule for a game.

  Raises:
    PruningError: it would not be sound there, or nothing of the game can be left out.
  """
  partial, name = pruning.rule == "partial", game.game_string
  if game.num_players != 2 and not partial:
    raise errors.PruningError(
      f"{name} has {game.num_players} players. What a player faces is then no sum of strategies, and {pruning.rule!r} "
      "has no proof. Take pruning='partial', or take no pruning."
    )
  if not isinstance(game, EnumeratedGame):
    raise errors.PruningError(
      f"{name} is compiled in vector form, of which nothing can be left out. Compile it with vector_form=False, or "
      "take no pruning."
    )
  if game.original is not game:
    raise errors.PruningError(
      f"{name} is an abstraction, of which nothing can be left out. Prune its `original`, or take no pruning."
    )
  return (PartialRule if partial else RewritingRule)(game, pruning)


def prepared(
  minimizer: LocalMinimizer, weights: Schedule, pruning: Pruning, alternating: bool
) -> tuple[LocalMinimizer, tuple[Averaged, ...] | Averaged]:
  """Returns what a minimizer has to be for a rule, and which strategies averages take.

  Args:
    minimizer: without pruning.
    weights: of the average.
    pruning: the rule.
    alternating: whether a player sees the strategies to which those before it have just updated.

  Raises:
    PruningError: the rule is not sound for it.
  """
  if pruning.rule != "partial":
    return noted(minimizer, weights), ("after", "before") if alternating else "before"
  if not can_skip_zeros(minimizer):
    raise errors.PruningError(
      f"{minimizer} changes what is kept even where utilities are 0, as discounts and steps do, so that nothing can be "
      "skipped unnoticed. Take CFRSolver, CFRPlusSolver or PCFRPlusSolver."
    )
  return minimizer, "before"
