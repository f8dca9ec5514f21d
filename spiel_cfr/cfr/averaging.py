"""Which strategies averages take, whether they can say what play was correlated, and how sums are tapered."""

from typing import Any, Literal, get_args

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# How often the sums are added to the tapered ones: every so many iterations, or, where that is more, every such part of
# the iterations since the origin.
_LEAST_BETWEEN_ADDITIONS = 4
_PART_BETWEEN_ADDITIONS = 32
# A power of two, which rounds nothing. In float32 tapered sums then overflow no sooner than the others.
ADDITION = 2.0**-20


# Which of its strategies of iteration t a player's average takes: the one before its update or the one after.
Averaged = Literal["before", "after"]


def averages_after(averaged: Any, num_players: int) -> Bools:
  """Returns whose averages take strategies after their update, shape (players,).

  Raises:
    ArgumentError: `averaged` is neither a name nor one for each player.
  """
  each = (averaged,) * num_players if isinstance(averaged, str) else averaged
  if not isinstance(each, list | tuple) or len(each) != num_players:
    raise errors.ArgumentError(
      f"averaged must be one name, or one for each of {num_players} players, not {averaged!r}."
    )
  for which in each:
    arguments.one_of(which, "averaged", get_args(Averaged))
  return np.array([which == "after" for which in each])


def check_correlated(game: CompiledGame, in_turn: bool) -> None:
  """Checks that sums can tell how far play is from a coarse correlated equilibrium.

  Raises:
    ArgumentError: averages take strategies that were not all played at once, but in turn.
    AbstractionError: the game is an abstraction that loses something.
  """
  if in_turn:
    raise errors.ArgumentError(
      "Players who update in turn never play all at once what they average, so that their play has no correlation. "
      "Take alternating_updates=False and averaged='before'."
    )
  if not game.is_exact:
    raise errors.AbstractionError(
      f"In {game} nobody sees what deviations gain in the full game. Take correlated=True with the full game, or with "
      "a lossless abstraction of it."
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
