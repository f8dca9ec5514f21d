"""Subgames: their beginnings, the games that any solver takes, and how these are solved."""

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy  # its `sparse` is imported when it is used

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.evaluation.linear_program import Method, solve_program
from spiel_cfr.evaluation.sequence_form_matrices import constraint_matrix, payoff_matrix, sequences
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# HiGHS takes coefficients below the first number for 0. Where payoffs times probabilities are so small, strategies that
# are safe would seem unsafe, or the other way around: such programs are solved with payoffs times the second number.
_DROPPED, _LARGER = 1e-9, 1e4
# What rounding leaves of a strategy that is not played is less.
_PLAYED = 1e-9


# An array over the private states of each player, or one over those of all public states.
Pair: TypeAlias = tuple[Float64s, Float64s]


@dataclasses.dataclass(frozen=True)
class Start:
  """The beginning of a subgame, which the searcher solves again.

  J numbers the opponent's private states; w and r are those of `gadgets`.

  Attributes:
    number: the public state.
    searcher: the player who is solved again.
    weights: by player, float64 (private states,). A pair of private states has the probability of chance times both
      weights, which sums to 1 over all pairs.
    w: float64 (J,). w of each J, in the scale of the weights; 0 of private states that are left out.
    r: float64 (J,). r of each J.
    bound: float64 (J,). The most that the opponent may expect at each J.
  """

  number: int
  searcher: int
  weights: Pair
  w: Float64s
  r: Float64s
  bound: Float64s


class Bonus(NamedTuple):
  """A part of what the searcher gets behind each of the opponent's picks that it gets in addition.

  Programs of search so prefer, among safe strategies, one that is good where the opponent is likely to be.

  Attributes:
    picks: int64 (J,). The opponent's sequences that pick J.
    weights: float64 (J,). The part of each.
    infosets: int64 (subgames,). The positions of the infosets in which the opponent picks. None may be worth less than
      0 to the searcher, so that no margin is negative.
  """

  picks: Int64s
  weights: Float64s
  infosets: Int64s


@dataclasses.dataclass(frozen=True)
class CutOut:
  """Subgames as one game, and where its actions are in the whole.

  Attributes:
    game: the game. Its player numbers are those of the whole.
    searcher: the player who is solved again.
    here: by player, int64 (actions,). The sequences of `game` that are actions of the whole.
    there: by player, int64 (actions,). The entries of these actions in the whole.
    subgame: int64 (actions of the searcher,). The place of each one's subgame among those that were cut out.
    bonus: what a linear program has in place of a copy of the opponent's infosets; None if it has nothing.
  """

  game: CompiledGame
  searcher: int
  here: tuple[Int64s, Int64s]
  there: tuple[Int64s, Int64s]
  subgame: Int64s
  bonus: Bonus | None = None

  def write(self, solution: Float64s, entries: Float64s, player: int) -> None:
    """Writes a player's solution, in sequence form, to entries of the whole, wherever the player plays to."""
    totals = np.zeros(self.game.end)
    for block, _ in self.game.treeplexes[player].infoset_groups():
      totals[block] = solution[block].sum(axis=0)
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
      return maximin_strategy(cut)
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


def maximin_strategy(cut: CutOut) -> Float64s:
  """Returns the searcher's strategy that gets as much as can be for certain, and the bonus; by a linear program.

  For the program see `evaluation.linear_program`.

  Returns:
    Sequence form, shape (sequences,), 0 at the other player's sequences; rounding may leave it a bit off.

  Raises:
    NoSolutionError: HiGHS gives up, or no strategy leaves as much.
  """
  game, player = cut.game, cut.searcher
  payoffs = payoff_matrix(game, player) / (max(map(abs, game.payoff_range)) or 1.0)
  own, theirs = (constraint_matrix(game, each) for each in (player, 1 - player))
  payoffs, lowest = payoffs.T if player else payoffs, None
  if cut.bonus is not None:
    columns, weights = sequences(game, 1 - player), np.zeros(payoffs.shape[1])
    weights[np.searchsorted(columns, cut.bonus.picks)] = cut.bonus.weights
    # A sequence is worth its payoffs and the infosets below it: all that goes to the column of the empty sequence.
    below = theirs.minimum(0.0) @ weights
    first = scipy.sparse.csr_matrix(([1.0], ([0], [0])), (1, len(weights)))
    theirs = theirs + scipy.sparse.csr_matrix(below[:, None]) @ first
    payoffs = payoffs + scipy.sparse.csr_matrix((payoffs @ weights)[:, None]) @ first
    lowest = np.full(theirs.shape[0], -np.inf)
    lowest[1 + cut.bonus.infosets] = 0.0
  numbers = np.abs(payoffs.data[payoffs.data != 0])
  factors = (1.0, _LARGER) if numbers.min(initial=1.0) >= _DROPPED else (_LARGER, 1.0)
  methods: tuple[Method, ...] = ("simplex", "interior")
  attempts = list(itertools.product(factors, methods))
  for number, (factor, method) in enumerate(attempts, 1):
    try:
      found = solve_program(factor * payoffs, own, theirs, method, lowest)
      break
    except errors.NoSolutionError:
      if number == len(attempts):
        raise
  result = np.zeros(game.end)
  result[sequences(game, player)] = np.maximum(found.x[: own.shape[1]], 0.0)
  return result
