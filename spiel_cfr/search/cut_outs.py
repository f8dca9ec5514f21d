"""Subgames: their beginnings, their form as games that any solver accepts, and their solvers."""

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

# HiGHS treats coefficients below _DROPPED as 0. If payoffs times probabilities are that small, safe strategies could
# seem unsafe, and unsafe ones safe. The payoffs of these programs are therefore multiplied by _LARGER.
_DROPPED, _LARGER = 1e-9, 1e4
# Probabilities below this are rounding errors: the player does not play to the infoset.
_PLAYED = 1e-9


# By player, an array over its private states: at one public state, or at all of them.
Pair: TypeAlias = tuple[Float64s, Float64s]


@dataclasses.dataclass(frozen=True)
class Start:
  """The beginning of a subgame that is re-solved for the searcher.

  J is an index of the opponent's private states. `gadgets` explains w and r.

  Attributes:
    number: the index of the public state.
    searcher: the player whose strategy is re-solved.
    weights: by player, float64 (private states,). The weight of a pair of private states is chance's probability times
      both players' weights. The weights of all pairs sum to 1.
    w: float64 (J,). w of each J, in the scale of the weights; 0 at private states that are left out.
    r: float64 (J,). r of each J.
    bound: float64 (J,). The largest expected payoff that the opponent may have at each J.
  """

  number: int
  searcher: int
  weights: Pair
  w: Float64s
  r: Float64s
  bound: Float64s


class Bonus(NamedTuple):
  """An additional payoff to the searcher for each of the opponent's picks, as a part of the pick's payoff.

  With the bonus, a linear program chooses among safe strategies one that is good where the opponent is likely to be.

  Attributes:
    picks: int64 (J,). The opponent's sequences that pick J.
    weights: float64 (J,). The bonus at J as a part of the searcher's payoff behind the pick of J.
    infosets: int64 (subgames,). The positions of the infosets in which the opponent picks. The program constrains the
      searcher's value at each of them to be at least 0, so that no margin is negative.
  """

  picks: Int64s
  weights: Float64s
  infosets: Int64s


@dataclasses.dataclass(frozen=True)
class CutOut:
  """One or more subgames as one game, with the positions of its actions in the whole game.

  Attributes:
    game: the game. Its player numbers are those of the whole game.
    searcher: the player whose strategy is re-solved.
    here: by player, int64 (actions,). The sequences of `game` that are actions of the whole game.
    there: by player, int64 (actions,). The entries of these actions in the whole game.
    subgame: int64 (actions of the searcher,). The position of each action's subgame in the list of subgames.
    bonus: the bonus of a linear program, which replaces a copy of the opponent's infosets; None without a bonus.
  """

  game: CompiledGame
  searcher: int
  here: tuple[Int64s, Int64s]
  there: tuple[Int64s, Int64s]
  subgame: Int64s
  bonus: Bonus | None = None

  def write(self, solution: Float64s, entries: Float64s, player: int) -> None:
    """Writes a player's solution, in sequence form, to the entries of the whole game.

    Entries at infosets to which the player does not play keep their values.
    """
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
  """A solver of subgames and its limits.

  Attributes:
    name: "lp" for a linear program, or a name in `catalogue.SOLVERS`.
    iterations: the largest number of iterations of an iterative solver.
    deadline: the time, by `time.perf_counter`, at which an iterative solver stops early.
  """

  name: str
  iterations: int = 1000
  deadline: float = math.inf

  @property
  def is_linear_program(self) -> bool:
    """True if a linear program solves the subgames exactly."""
    return self.name == "lp"

  def solve(self, cut: CutOut) -> Float64s:
    """Returns the searcher's strategy in sequence form, shape (sequences of the subgame,).

    Raises:
      NoSolutionError: the linear program could not be solved.
    """
    if self.is_linear_program:
      return maximin_strategy(cut)
    return self.average(cut.game)

  def average(self, game: CompiledGame) -> Float64s:
    """Returns both players' average strategies of an iterative solver, in sequence form."""
    solver = catalogue.make(self.name, game, self.iterations)
    for count in self._slices():
      solver.run(count)
    return solver.average_sequence_form()

  def _slices(self) -> Iterator[int]:
    """Yields numbers of iterations, at least 1; each is meant to take a tenth of the remaining time."""
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
  """Returns the searcher's strategy that maximizes its guaranteed payoff plus the bonus, by a linear program.

  `evaluation.linear_program` describes the program.

  Returns:
    Sequence form, shape (sequences,), 0 at the other player's sequences, exact up to rounding.

  Raises:
    NoSolutionError: HiGHS fails, or no strategy satisfies the constraints of the bonus.
  """
  game, player = cut.game, cut.searcher
  payoffs = payoff_matrix(game, player) / (max(map(abs, game.payoff_range)) or 1.0)
  own, theirs = (constraint_matrix(game, each) for each in (player, 1 - player))
  payoffs, lowest = payoffs.T if player else payoffs, None
  if cut.bonus is not None:
    columns, weights = sequences(game, 1 - player), np.zeros(payoffs.shape[1])
    weights[np.searchsorted(columns, cut.bonus.picks)] = cut.bonus.weights
    # The value of a pick is its payoffs plus the values of the infosets below it. The bonus adds both to the column of
    # the empty sequence.
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
