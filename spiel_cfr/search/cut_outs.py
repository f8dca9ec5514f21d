"""Records of subgames: the beginning of a subgame, and the game that is cut out for a solver.

Search trees make a `Start` from ranges, and a `CutOut` from one or more of them.
"""

import dataclasses
from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# Smaller probabilities are rounding errors: the player does not play to the infoset.
_PLAYED = 1e-9

# By player, an array over its private states at one public state, or over all rows of its forest.
PerPlayer: TypeAlias = tuple[Float64s, Float64s]


@dataclasses.dataclass(frozen=True)
class Start:
  """The beginning of a subgame that is re-solved for the searcher.

  J is an index of the opponent's private states. `gadgets` explains w and r.

  Attributes:
    number: int. The index of the public state.
    searcher: int. The player whose strategy is re-solved.
    weights: by player, float64 (private states,). The probability of a pair of private states in the subgame is
      chance's probability times both players' weights. The probabilities of all pairs sum to 1.
    w: float64 (J,). w of each J, divided by the total probability; 0 at private states that are left out.
    r: float64 (J,). r of each J.
    bound: float64 (J,). The largest expected payoff that the opponent may have at each J.
  """

  number: int
  searcher: int
  weights: PerPlayer
  w: Float64s
  r: Float64s
  bound: Float64s


class Bonus(NamedTuple):
  """A term of a linear program's objective: the searcher's payoffs where the opponent's blueprint plays.

  Among all safe strategies, the program then chooses one that is good against likely private states J.

  Attributes:
    picks: int64 (J,). The opponent's sequence that picks each J.
    weights: float64 (J,). The factor with which the searcher's payoff below each pick is added to the objective.
    infosets: int64 (subgames,). The positions of the infosets in which the opponent picks. The program constrains the
      searcher's value at each of them to be at least 0, so that no margin is negative.
  """

  picks: Int64s
  weights: Float64s
  infosets: Int64s


@dataclasses.dataclass(frozen=True)
class CutOut:
  """One or more subgames as one game, with the places of its actions in the whole game.

  Attributes:
    game: the game that a solver solves. Its player numbers are those of the whole game.
    searcher: int. The player whose strategy is re-solved.
    here: by player, int64 (actions,). The sequences of `game` that are actions of the whole game. Empty for the
      opponent in a gadget with bounds.
    there: by player, int64 (actions,). The entries of the same actions in the whole game.
    subgame: int64 (actions of the searcher,). The position of each action's subgame in the list of subgames.
    bonus: `Bonus`. It replaces a copy of the opponent's infosets in a linear program; None without a bonus.
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
