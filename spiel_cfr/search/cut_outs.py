"""Subgames cut out of a public tree as games that any solver takes, and how they are solved."""

import dataclasses
import math
import time
from collections.abc import Iterator

import numpy as np

from spiel_cfr import catalogue
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.evaluation.linear_program import maximin_strategy
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# What rounding leaves of a strategy that is not played is less.
_PLAYED = 1e-9


@dataclasses.dataclass(frozen=True)
class CutOut:
  """Subgames as one game, and where its actions are in the whole.

  Attributes:
    game: the game. Its player numbers are those of the whole.
    searcher: the player who is solved again.
    here: by player, int64 (actions,). The sequences of `game` that are actions of the whole.
    there: by player, int64 (actions,). The entries of these actions in the whole.
    subgame: int64 (actions of the searcher,). The place of each one's subgame among those that were cut out.
    bonus: float64 (sequences of `game`,), or None. Weights for `maximin_strategy`.
  """

  game: CompiledGame
  searcher: int
  here: tuple[Int64s, Int64s]
  there: tuple[Int64s, Int64s]
  subgame: Int64s
  bonus: Float64s | None = None

  def write(self, solution: Float64s, entries: Float64s, player: int) -> None:
    """Writes a player's solution, in sequence form, to entries of the whole, wherever the player plays to."""
    totals = np.zeros(self.game.end)
    for sequences, _ in self.game.treeplexes[player].infoset_groups():
      totals[sequences] = solution[sequences].sum(axis=0)
    here, there = self.here[player], self.there[player]
    plays = totals[here] > _PLAYED
    entries[there[plays]] = solution[here[plays]] / totals[here[plays]]

  def entries_by_subgame(self, count: int) -> list[Int64s]:
    """Returns the searcher's entries in each of `count` subgames."""
    order = np.argsort(self.subgame, kind="stable")
    ends = np.searchsorted(self.subgame[order], np.arange(1, count))
    return np.split(self.there[self.searcher][order], ends)


@dataclasses.dataclass(frozen=True)
class SubgameSolver:
  """The solver of subgames.

  Attributes:
    name: "lp" for a linear program, or a name in `catalogue.SOLVERS`.
    iterations: the most iterations of a solver that iterates.
    deadline: the time, by `time.perf_counter`, at which it stops before that.
  """

  name: str
  iterations: int = 1000
  deadline: float = math.inf

  @property
  def is_program(self) -> bool:
    """True if subgames are solved exactly, by a linear program."""
    return self.name == "lp"

  def solve(self, cut: CutOut) -> Float64s:
    """Returns the searcher's strategy in sequence form, shape (sequences of the subgame,).

    Raises:
      NoSolutionError: a linear program was not solved.
    """
    if self.is_program:
      return maximin_strategy(cut.game, cut.searcher, cut.bonus)
    return self.average(cut.game)

  def average(self, game: CompiledGame) -> Float64s:
    """Returns the average strategies of a solver that iterates, in sequence form."""
    solving = catalogue.make(self.name, game, self.iterations)
    for count in self._slices():
      solving.run(count)
    return solving.average_sequence_form()

  def _slices(self) -> Iterator[int]:
    """Yields numbers of iterations, each to be done in a tenth of the time that is left; one at least."""
    left = self.iterations
    count = 1 if self.deadline < math.inf else left
    while left > 0:
      start = time.perf_counter()
      yield count
      left -= count
      now = time.perf_counter()
      if now >= self.deadline:
        return
      fits = min(1e9, (self.deadline - now) / 10 * count / max(now - start, 1e-9))
      count = max(1, min(2 * count, int(fits), left))
