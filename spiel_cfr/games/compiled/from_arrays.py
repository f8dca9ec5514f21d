"""`game_from_arrays`, which checks the arrays of a user's own sequence form and makes a game of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import (
  Bools,
  Float64s,
  Int64s,
  Uint32s,
  concatenated_ranges,
  range_starts,
)
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame, build_enumerated_game
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.openspiel.walk import DiscoveredInfosets
from spiel_cfr.games.payoffs.utility_bounds import counterfactual_bounds

# Sums of payoffs up to this fraction of the largest payoff count as rounding.
_TOLERANCE = 1e-9


def game_from_arrays(
  parents: Sequence[npt.ArrayLike],
  num_actions: Sequence[npt.ArrayLike],
  leaf_sequences: Sequence[npt.ArrayLike],
  payoffs: npt.ArrayLike,
  *,
  infostates: Sequence[Sequence[str]] | None = None,
  payoff_range: tuple[float, float] | None = None,
  name: str = "game of arrays",
) -> EnumeratedGame:
  """Returns a game of your own in sequence form, for all solvers that need no states of OpenSpiel.

  Number each player's sequences from 0, the empty sequence, through the actions of infoset 0, of infoset 1 and so on.
  In matching pennies each player has one infoset of two actions, and heads is sequence 1:

      >>> game_from_arrays([[0], [0]], [[2], [2]], [[1, 1, 2, 2], [1, 2, 1, 2]], [1, -1, -1, 1])
      <EnumeratedGame game of arrays: 1 + 1 infosets, 4 leaves>

  If A is a payoff matrix as a sparse array of SciPy in COO form, with a row for each sequence of player 0, the last two
  arguments are `A.coords` and `A.data`.

  Args:
    parents: for each player, the sequence above each infoset: the player's last action before it. An infoset comes
      after the infoset above it.
    num_actions: for each player, the number of actions of each infoset; policies count them from 0.
    leaf_sequences: for each player, its last sequence at each leaf. Leaves that are listed twice add up; leaves that
      are not listed pay 0.
    payoffs: each player's payoff at each leaf, times the probabilities of chance on the way; shape (leaves, players).
      For two players shape (leaves,) is allowed: the gain of player 0 and the loss of player 1.
    infostates: for each player, the names of its infosets, all different; by default "0:5" for player 0's infoset 5.
    payoff_range: the smallest and the largest payoff, without the probabilities of chance. Some solvers derive steps or
      tolerances from it. By default, minus and plus a bound on the expected payoff of any player under any strategies.
    name: the name of the game, for messages and files.

  Returns:
    The game. Its `num_states` counts infosets and leaves.

  Raises:
    ArgumentError: an argument is not as described; the message says which one, and where.
    InvalidPayoffError: a payoff is NaN or infinite.
  """
  arguments.of_type(name, "name", str)
  is_array = isinstance(parents, np.ndarray) and parents.ndim > 0
  num_players = len(parents) if is_array or isinstance(parents, list | tuple) else 0
  if num_players < 2:
    raise errors.ArgumentError(
      f"parents must have a list for each of two players or more, not {arguments.shortened(parents)}."
    )
  all_parents = _integers(parents, "parents", num_players)
  all_counts = _integers(num_actions, "num_actions", num_players)
  all_names = _names(infostates, [len(counts) for counts in all_counts])
  for player, names in enumerate(all_names):
    _check_infosets(player, all_parents[player], all_counts[player], names)
  num_sequences = [1 + int(counts.sum()) for counts in all_counts]
  leaves, leaf_payoffs = _leaves(leaf_sequences, payoffs, num_sequences)
  if payoff_range is not None:
    payoff_range = _checked_payoff_range(payoff_range, leaves, leaf_payoffs)
  largest = float(np.abs(leaf_payoffs).max())
  facts = GameFacts(
    game_string=str(name),
    num_distinct_actions=max(int(counts.max(initial=1)) for counts in all_counts),
    payoff_range=(-largest, largest),
    constant_sum=0.0 if np.abs(leaf_payoffs.sum(axis=1)).max() <= _TOLERANCE * largest else None,
    num_states=sum(map(len, all_counts)) + len(leaf_payoffs),
    num_terminals=len(leaf_payoffs),
    open_spiel_version=None,
  )
  infosets = [
    DiscoveredInfosets(
      names, concatenated_ranges(np.zeros_like(counts), counts), counts, parents_of_player
    )
    for names, counts, parents_of_player in zip(all_names, all_counts, all_parents, strict=True)
  ]
  game = build_enumerated_game(facts, infosets, leaves, leaf_payoffs)
  if payoff_range is None:
    bound = max(
      float(counterfactual_bounds(game.payoff.leaves(player), game.treeplexes, player)[0])
      for player in range(num_players)
    )
    payoff_range = (-bound, bound)
  return game.with_payoff(game.payoff, payoff_range=payoff_range)


def _names(infostates: Any, num_infosets: Sequence[int]) -> list[list[str]]:
  """Returns a list of names for each player: a copy of the user's, or names such as "0:5" if there are none."""
  if infostates is None:
    return [
      [f"{player}:{infoset}" for infoset in range(count)]
      for player, count in enumerate(num_infosets)
    ]
  are_lists = isinstance(infostates, list | tuple) and all(
    isinstance(names, list | tuple) for names in infostates
  )
  if not are_lists or len(infostates) != len(num_infosets):
    raise errors.ArgumentError(
      f"infostates must have a list for each of {len(num_infosets)} players, not {arguments.shortened(infostates)}."
    )
  return [list(names) for names in infostates]


def _checked_payoff_range(given: Any, leaves: Uint32s, payoffs: Float64s) -> tuple[float, float]:
  """Returns the user's `payoff_range`, after a check that all payoffs are in it.

  Payoffs of leaves are multiplied by probabilities of chance, so they are compared with the range extended to 0.
  """
  if not isinstance(given, tuple | list) or len(given) != 2:
    raise errors.ArgumentError(
      f"payoff_range must be two numbers, not {arguments.shortened(given)}."
    )
  low = arguments.real_number(given[0], "payoff_range[0]")
  high = arguments.real_number(given[1], "payoff_range[1]", low)
  slack = _TOLERANCE * float(np.abs(payoffs).max())
  wrong = np.argwhere((payoffs < min(low, 0.0) - slack) | (payoffs > max(high, 0.0) + slack))
  if len(wrong):
    leaf, player = wrong[0].tolist()
    raise errors.ArgumentError(
      f"payoff_range is ({low:zg}, {high:zg}), but player {player} gets {payoffs[leaf, player]:zg} at the leaf of "
      f"sequences {leaves[:, leaf].tolist()}. Bounds are made of it, so it must hold for all payoffs; by default, one "
      "is found."
    )
  return low, high


def _integers(value: Any, name: str, num_players: int) -> list[Int64s]:
  """Returns an array of integers for each player; `name` is that of the user's argument."""
  try:
    arrays = [np.asarray(numbers) for numbers in value]
  except (TypeError, ValueError):  # It is not a sequence, or has lists of several lengths.
    arrays = []
  are_right = [array.ndim == 1 and (array.dtype.kind in "iu" or not len(array)) for array in arrays]
  if len(are_right) != num_players or not all(are_right):
    raise errors.ArgumentError(
      f"{name} must have a list of integers for each of {num_players} players, not {arguments.shortened(value)}."
    )
  return [array.astype(np.int64) for array in arrays]


def _refuse(is_wrong: Bools, requirement: str, numbers: Int64s) -> None:
  """Raises ArgumentError for the first wrong number; "{}" in `requirement` stands for its index."""
  if is_wrong.any():
    index = int(np.flatnonzero(is_wrong)[0])
    raise errors.ArgumentError(f"{requirement.format(index)}, not {numbers[index]}.")


def _check_infosets(player: int, parents: Int64s, num_actions: Int64s, names: list[str]) -> None:
  """Raises ArgumentError unless a player's infosets have parents, actions and different names."""
  if len(parents) != len(num_actions):
    raise errors.ArgumentError(
      f"parents[{player}] has {len(parents)} infosets, but num_actions[{player}] {len(num_actions)}."
    )
  if (
    len(names) != len(parents)
    or not all(isinstance(name, str) for name in names)
    or len({*names}) < len(names)
  ):
    raise errors.ArgumentError(f"infostates[{player}] must be {len(parents)} different strings.")
  _refuse(
    (num_actions < 1) | (num_actions >= 1 << 31),
    f"num_actions[{player}][{{}}] must be at least 1, less than 2^31",
    num_actions,
  )
  # The last sequence of the infosets before each infoset.
  last = range_starts(num_actions)
  _refuse(
    (parents < 0) | (parents > last),
    f"parents[{player}][{{}}] must be 0, the empty sequence, or an action of an infoset before it",
    parents,
  )


def _leaves(
  leaf_sequences: Any, payoffs: Any, num_sequences: Sequence[int]
) -> tuple[Uint32s, Float64s]:
  """Returns the different leaves: sequences of shape (players, leaves), and payoffs of shape (leaves, players).

  Args:
    leaf_sequences: as of `game_from_arrays`.
    payoffs: as of `game_from_arrays`.
    num_sequences: the number of sequences of each player.
  """
  num_players = len(num_sequences)
  columns = _integers(leaf_sequences, "leaf_sequences", num_players)
  shape = len(columns[0]), num_players
  for player, (sequences, end) in enumerate(zip(columns, num_sequences, strict=True)):
    if len(sequences) != shape[0] or not len(sequences):
      raise errors.ArgumentError(
        f"leaf_sequences must be as long for all players, and not empty; player 0 has {shape[0]}, player {player} "
        f"{len(sequences)}."
      )
    _refuse(
      (sequences < 0) | (sequences >= end),
      f"leaf_sequences[{player}][{{}}] must be one of 0 to {end - 1}, the player's sequences",
      sequences,
    )
  try:
    table = np.asarray(payoffs, np.float64)
  except (TypeError, ValueError, OverflowError):
    table = np.zeros(0)
  if table.ndim == 1 and num_players == 2:
    table = np.stack([table, -table], axis=1)
  if table.shape != shape:
    raise errors.ArgumentError(
      f"payoffs must be numbers of shape {shape}, leaves and players, or for two players {shape[:1]}; not "
      f"{arguments.shortened(payoffs)}."
    )
  if not np.isfinite(table).all():
    leaf, player = np.argwhere(~np.isfinite(table))[0]
    raise errors.InvalidPayoffError(
      f"At leaf {leaf}, player {player} gets {table[leaf, player]}; payoffs are finite."
    )
  leaves, leaf_of_column = distinct_columns(columns)
  sums = [np.bincount(leaf_of_column, values, leaves.shape[1]) for values in table.T]
  return leaves.astype(np.uint32), np.stack(sums, axis=1).astype(np.float64)
