"""Averages of strategies: the weights of iterations, the strategies that count, and other sums over iterations."""

import dataclasses
from typing import Literal, get_args

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.cfr.average_rule import Average, AverageRule
from spiel_cfr.cfr.recipes import described
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.schedules import Weights, as_weights

# How often the sums are added to the tapered ones: every so many iterations, or, where that is more, every such part of
# the iterations since the origin.
_LEAST_BETWEEN_ADDITIONS = 4
_PART_BETWEEN_ADDITIONS = 32
# A power of two, which rounds nothing. In float32 tapered sums then overflow no sooner than the others.
ADDITION = 2.0**-20

# Which of a player's strategies of iteration t count: the one before its update or the one after, or the one that the
# others face.
Counted = Literal["before", "after", "faced"]


@described
@dataclasses.dataclass(frozen=True)
class Averaging:
  """How a full-width solver averages its strategies, each of them times the reach of its owner.

      Averaging()                     # of CFR: all iterations weigh the same
      Averaging(1.0)                  # of CFR+: iteration t weighs t
      Averaging(lambda t: t**1.5)     # t: float64 array of iterations, from 1

  Attributes:
    weights: what iteration t weighs: a schedule, a function of t, or a power of t; a schedule once it is made.
    counted: which strategies of an iteration count: those "before" the update, as in OpenSpiel; those "after" it; or
      those that the others "faced": with alternating updates, "before" for the last player and "after" for all others.
    tapered: whether weights vanish at the end too: after iteration T that of iteration t is times about T - t.
      Strategies that circle around an equilibrium are then averaged out better. It takes a second array of sums, to
      which the first is added now and then, at about a tenth of the cost of an iteration.
    correlated: whether to keep what `coarse_correlated_gap` takes: with more than two players a third array, to which
      an iteration adds a vector. Only with simultaneous updates, counted before.
    rule: how an average of your own is brought up to date, see `AverageRule`; None for the weighted sum. It is neither
      tapered nor correlated, and does not count the strategies "faced".

  Raises:
    ArgumentError: the power is not a finite number, or negative; `counted` is not one of the names; `rule` is no
      `AverageRule` with an average kernel, or is tapered, correlated or of the strategies "faced".
  """

  weights: Weights = 0.0
  counted: Counted = "before"
  tapered: bool = False
  correlated: bool = False
  rule: AverageRule | None = None

  def __post_init__(self) -> None:
    object.__setattr__(self, "weights", as_weights(self.weights, "weights"))
    arguments.one_of(self.counted, "counted", get_args(Counted))
    if self.rule is None:
      return
    kernel = getattr(self.rule, "add", None)
    if not isinstance(self.rule, AverageRule) or getattr(kernel, "record", None) is not Average:
      raise errors.ArgumentError(
        "rule must be an AverageRule, whose `add` is decorated with average_kernel, not "
        f"{arguments.shortened(self.rule)}."
      )
    if self.tapered or self.correlated or self.counted == "faced":
      raise errors.ArgumentError(
        f"An average by the rule {self.rule} can't be tapered or correlated, and counts strategies 'before' or 'after' "
        "the update. Restarts taper averages; take a solver without them."
      )

  def check(self, game: CompiledGame, alternating: bool) -> None:
    """Checks that iterations of a game can keep such averages.

    Raises:
      ArgumentError: correlated averages take strategies that were not all played at once, but in turn.
      AbstractionError: averages are correlated, and the game is an abstraction that loses something.
      UnsupportedGameError: there is a rule, and the game is in parts.
    """
    if self.rule is not None and game.partition is not None:
      raise errors.UnsupportedGameError(
        f"{game} is in parts, whose averages are weighted sums: a rule such as {self.rule} needs the game as a whole. "
        "Compile it with partitioned=False."
      )
    if not self.correlated:
      return
    if alternating or self.counted == "after":
      raise errors.ArgumentError(
        "Players who update in turn never play all at once what they average, so that their play has no correlation. "
        "Take alternating_updates=False and counted='before'."
      )
    if not game.is_exact:
      raise errors.AbstractionError(
        f"In {game} nobody sees what deviations gain in the full game. Take correlated=True with the full game, or "
        "with a lossless abstraction of it."
      )


def additions(count: int, iteration: int, last: int, start: int) -> Float64s:
  """Returns what the sums are multiplied by when they are added to the tapered ones, 0 where they are not.

  That is for `count` iterations after `iteration`, shape (count,), given those of the `last` addition and of the
  `start` of the average.
  """
  result, first, end = np.zeros(count), iteration + 1, iteration + count
  while True:
    between = max(_LEAST_BETWEEN_ADDITIONS, (last - start) // _PART_BETWEEN_ADDITIONS)
    # At once, where somebody has set the number of iterations.
    due = max(first, last + between)
    if due > end:
      return result
    result[due - first] = ADDITION * (due - last)
    last = due
