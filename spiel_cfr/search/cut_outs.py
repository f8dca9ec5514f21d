"""Subgames as games that any solver accepts: their beginnings, and the positions of their actions in the whole game."""

import dataclasses
from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame

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
