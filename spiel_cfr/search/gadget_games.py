"""Gadget games: one or more subgames with a gadget in front of each, as one game for a solver.

`subgame_solver` makes the `SubgameStart` of each subgame from ranges. The `GadgetGameBuilder` of a public tree makes
the `GadgetGame` of a list of them.
"""

import abc
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.search.gadgets import Gadget

# Smaller probabilities are rounding errors: the player does not play to the infoset.
_PLAYED = 1e-9

# By player, an array over its private states at one public state, or over all rows of its forest.
PerPlayer: TypeAlias = tuple[Float64s, Float64s]


@dataclasses.dataclass(frozen=True)
class SubgameStart:
  """The beginning of a subgame that is re-solved for the searcher.

  J is an index of the opponent's private states. `gadgets` explains w and r.

  Attributes:
    index: int. The index of the public state.
    searcher: int. The player whose strategy is re-solved.
    weights: by player, float64 (private states,). The probability of a pair of private states in the subgame is
      chance's probability times both players' weights. The probabilities of all pairs sum to 1.
    probability: float. The total probability, by which the weights and w are divided.
    w: float64 (J,). The probability that chance and the searcher lead to each J, divided by the total probability; 0 at
      private states that are left out.
    r: float64 (J,). The probability with which the opponent's blueprint plays to each J.
    bound: float64 (J,). The largest expected payoff that the opponent may have at each J.
  """

  index: int
  searcher: int
  weights: PerPlayer
  probability: float
  w: Float64s
  r: Float64s
  bound: Float64s

  def mean_excess(self, margins: Float64s) -> float:
    """Returns how much the opponent gets above its bounds: the mean over J, weighted by w.

    Args:
      margins: float64. The margins at the J with w above 0.
    """
    return float(np.maximum(-margins, 0.0) @ self.w[self.w > 0])


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
class GadgetGame:
  """One or more subgames as one game, with the places of its actions in the whole game.

  Attributes:
    game: the game that a solver solves. Its player numbers are those of the whole game.
    searcher: int. The player whose strategy is re-solved.
    sequences: by player, int64 (actions,). The sequences of `game` that are actions of the whole game. Empty for the
      opponent in a gadget with bounds.
    slots: by player, int64 (actions,). The slots of the same actions in the whole game.
    subgame: int64 (actions of the searcher,). The position of each action's subgame in the list of subgames.
    bonus: `Bonus`. It replaces a copy of the opponent's infosets in a linear program; None without a bonus.
  """

  game: CompiledGame
  searcher: int
  sequences: tuple[Int64s, Int64s]
  slots: tuple[Int64s, Int64s]
  subgame: Int64s
  bonus: Bonus | None = None

  def write(self, solution: Float64s, policy: Float64s, player: int) -> None:
    """Writes a player's solution, in sequence form, into a policy of the whole game, shape (slots,).

    Slots at infosets to which the player does not play keep their values.
    """
    totals = np.zeros(self.game.end)
    for sequences, _ in self.game.treeplexes[player].infoset_groups():
      totals[sequences] = solution[sequences].sum(axis=0)
    of_game, of_policy = self.sequences[player], self.slots[player]
    plays = totals[of_game] > _PLAYED
    policy[of_policy[plays]] = solution[of_game[plays]] / totals[of_game[plays]]

  def slots_by_subgame(self, count: int) -> list[Int64s]:
    """Returns the searcher's slots in each of `count` subgames."""
    order = np.argsort(self.subgame, kind="stable")
    ends = np.searchsorted(self.subgame[order], np.arange(1, count))
    return np.split(self.slots[self.searcher][order], ends)


class GadgetGameBuilder(abc.ABC):
  """Makes the gadget games of one public tree."""

  @abc.abstractmethod
  def build(
    self, starts: Sequence[SubgameStart], gadget: Gadget, *, is_linear_program: bool = False
  ) -> GadgetGame:
    """Returns subgames, none below another, as one game with a gadget in front of each.

    Args:
      starts: the beginnings of the subgames.
      gadget: the gadget.
      is_linear_program: True if a linear program will solve the game. With the front "pick", the forced copy is then
        not built: its payoffs are added to the objective of the program (`Bonus`).

    Raises:
      ArgumentError: this form of game does not support the gadget.
    """

  @abc.abstractmethod
  def batches(
    self, starts: Iterable[SubgameStart], *, is_linear_program: bool
  ) -> Iterator[list[SubgameStart]]:
    """Yields lists of subgames to solve together, as one game. A linear program solves each subgame alone."""
