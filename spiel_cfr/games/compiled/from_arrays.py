"""Games of plain arrays: those that a walk has brought home, and those of users who have a sequence form already."""

import collections
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s, spread
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import GameFacts, Infosets
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.build_payoff import build_payoff
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.private_types import public_states
from spiel_cfr.games.payoffs.utility_bounds import counterfactual_bounds
from spiel_cfr.games.sequence_form.treeplex import Placement, build_treeplex, check_infosets

Integers: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]
# Of the largest payoff: what is rounding.
_TOLERANCE = 1e-9


def game_from_arrays(
  parents: Sequence[Integers],
  num_actions: Sequence[Integers],
  leaf_sequences: Sequence[Integers] | npt.NDArray[np.integer[Any]],
  payoffs: Sequence[float] | npt.NDArray[Any],
  *,
  infostates: Sequence[Sequence[str]] | None = None,
  actions: Sequence[Integers] | None = None,
  payoff_range: tuple[float, float] | None = None,
  name: str = "game of arrays",
) -> EnumeratedGame:
  """Returns a game of your own in sequence form, for all that needs no states of OpenSpiel.

  A player's sequences are numbered: 0 is the empty one, then come the actions of infoset 0, those of infoset 1, and so
  on. Matching pennies, where each player has one infoset of two actions, and heads is sequence 1:

      >>> game_from_arrays([[0], [0]], [[2], [2]], [[1, 1, 2, 2], [1, 2, 1, 2]], [1, -1, -1, 1])
      <EnumeratedGame game of arrays: 1 + 1 infosets, 4 leaves>

  Of a sparse array of SciPy's with a row a sequence of player 0, the last two are `matrix.coords` and `matrix.data`.

  Args:
    parents: of each player, the sequence above each infoset: the player's last action before it. An infoset comes
      after the one above it.
    num_actions: of each player, how many actions each infoset has.
    leaf_sequences: of each player, its last sequence at each leaf. Leaves that are listed twice add up, and those that
      are not listed are worth nothing.
    payoffs: what each player gets at each leaf, times the probabilities of chance on the way; shape (leaves, players).
      For two players also of shape (leaves,), what player 0 gets and player 1 loses.
    infostates: of each player, the name of each infoset, all different; by default "0:5" for player 0's infoset 5.
    actions: of each player, the number that policies have for each action, infoset by infoset in one list; by default
      actions are counted from 0 at each infoset.
    payoff_range: the smallest and the largest payoff, without the probabilities of chance, for solvers that take steps
      or tolerances from them; by default a bound that games with chance hardly come near.
    name: of the game, for messages and files.

  Returns:
    The game, whose `num_states` counts infosets and leaves.

  Raises:
    ArgumentError: an argument is not as above; the message says which, and where.
    InvalidPayoffError: a payoff is NaN or infinite.
  """
  num_players = len(parents)
  if num_players < 2 or len(num_actions) != num_players:
    raise errors.ArgumentError(
      f"parents and num_actions must have a list for each of two players or more, not {num_players} and "
      f"{len(num_actions)} lists."
    )
  above = _integers_of_players(parents, "parents", num_players)
  counts = _integers_of_players(num_actions, "num_actions", num_players)
  numbers = [None] * num_players
  if actions is not None:
    numbers = _integers_of_players(actions, "actions", num_players)
  for player, own in enumerate(zip(above, counts, numbers, strict=True)):
    check_infosets(player, *own)
  if actions is None:
    numbers = [spread(np.zeros_like(own), own) for own in counts]
  names = _names(infostates, counts)
  leaves, worth = _leaves(leaf_sequences, payoffs, [1 + int(own.sum()) for own in counts])
  largest, is_zero_sum = np.abs(worth).max(), np.abs(worth.sum(axis=1)).max()
  placements, payoff = lay_out(above, counts, leaves, worth)
  treeplexes = tuple(placed.treeplex for placed in placements)
  if payoff_range is None:
    bounds = [
      counterfactual_bounds(payoff.leaves(player), treeplexes, player)[0]
      for player in range(num_players)
    ]
    payoff_range = (-float(max(bounds)), float(max(bounds)))
  return EnumeratedGame(...)
