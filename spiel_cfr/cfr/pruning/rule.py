"""What a solver asks about its windows of pruning, and what rules see of the solver."""

import abc
import functools
from typing import ClassVar

from spiel_cfr._numba.arrays import AnyFloats, Bools, Float64s
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.loops import FlatLoop, IterationNumbers
from spiel_cfr.cfr.pruning.compaction import COMPACTING, Compacted, iteration_work, opening_work
from spiel_cfr.cfr.pruning.constants import Pruning
from spiel_cfr.cfr.pruning.rewriting import REWRITING
from spiel_cfr.cfr.pruning.taking import Prunable, Whole
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.poker.public_game import PublicGame

# How many times the work of opening it the iterations of a window are to be.
_PAID = 5
# But a window is at most this part of the iterations so far: nobody knows what will be played in a longer one.
_PART = 10


class Windowed(FullWidthSolver):
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
  def _left(self) -> Compacted:
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
    owners_go_on: whether owners look below what is pruned, see `cfr.pruning.compaction`.
    game: in the form that iterations go through while nothing is pruned.
    tree: of all players, without forced moves.
  """

  owners_go_on: ClassVar[bool]

  def __init__(self, game: Prunable, pruning: Pruning) -> None:
    """Takes what never changes."""
    self.game, self._pruning = game, pruning
    self.tree = Tree(game.decisions.groups, game.decisions.parent)

  @property
  def forgets(self) -> bool:
    """Whether regrets below what is pruned are made anew, and need not be kept."""
    return self._pruning.rule == "best_response"

  def caution_and_tolerance(self, plus: bool) -> tuple[float, float]:
    """Returns both, see `Pruning.caution_and_tolerance`."""
    return self._pruning.caution_and_tolerance(plus, isinstance(self.game, PublicGame))

  @property
  @abc.abstractmethod
  def rows(self) -> Whole:
    """The payoffs of which a window has some."""

  @functools.cached_property
  def work(self) -> int:
    """What an iteration is while nothing is pruned, see `cfr.pruning.compaction`."""
    return iteration_work(self.game.decisions)

  @functools.cached_property
  def opening_work(self) -> int:
    """What opening a window is, see `cfr.pruning.compaction`."""
    return opening_work(self.game)

  @functools.cached_property
  def shortest(self) -> int:
    """The fewest iterations of a window."""
    given = self._pruning.shortest
    return min(self._paid(self.work), self._pruning.longest) if given is None else given

  def length(self, iteration: int, work: int | None = None) -> int:
    """Returns how many iterations a window is to have that begins after so many.

    Args:
      iteration: it is a part of all so far,
      work: of an iteration with what is left; a window is not longer than it takes to pay for. None for no matter.
    """
    paid = self._pruning.longest if work is None else max(self._paid(work), self.shortest)
    return min(max(iteration // _PART, self.shortest), paid, self._pruning.longest)

  def _paid(self, work: int) -> int:
    """Returns how many iterations of this much work take so many times as long as to open a window."""
    return -(-_PAID * self.opening_work // max(1, work))

  @abc.abstractmethod
  def decide(self, solver: Windowed, length: int) -> bool:
    """Brings what was left alone up to date; writes to `_pruned` what is to be for so many iterations; for 0, nothing.

    Returns:
      Whether it could be left alone. If not, the window has to be gone back on, and nothing else is right.
    """

  @abc.abstractmethod
  def settle(self, solver: Windowed, window: Compacted) -> None:
    """Brings what is not left alone any more up to date; `window` is what was left."""

  @abc.abstractmethod
  def advance(self, solver: Windowed, small: FlatLoop, numbers: IterationNumbers) -> int:
    """Runs iterations on what is left; returns how many are done, fewer if the window has turned out wrong."""

  def prepare(self) -> None:
    """Makes what is made once, and compiles."""
    assert self.rows
    for each in (*REWRITING, *COMPACTING):
      assert each.address
