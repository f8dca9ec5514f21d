"""Games of plain arrays: from a walk of OpenSpiel's states, or from a user's own sequence form."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, Uint32s, concatenated_ranges
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.payoffs.build_payoff import build_payoff
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.private_types import public_states
from spiel_cfr.games.payoffs.utility_bounds import counterfactual_bounds
from spiel_cfr.games.sequence_form.treeplex import Placement, build_treeplex

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

  A player's sequences are numbered: 0 is the empty one, then come the actions of infoset 0, those of infoset 1, and so
  on. In matching pennies each player has one infoset of two actions, and heads is sequence 1:

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
  num_players = len(parents) if isinstance(parents, list | tuple | np.ndarray) else 0
  if num_players < 2:
    raise errors.ArgumentError(
      f"parents must have a list for each of two players or more, not {arguments.shortened(parents)}."
    )
  above = _integers(parents, "parents", num_players)
  counts = _integers(num_actions, "num_actions", num_players)
  names: Sequence[Sequence[str]] = [
    [f"{player}:{infoset}" for infoset in range(len(own))] for player, own in enumerate(counts)
  ]
  if infostates is not None:
    names = infostates
  lists = isinstance(names, list | tuple) and all(isinstance(own, list | tuple) for own in names)
  if not lists or len(names) != num_players:
    raise errors.ArgumentError(
      f"infostates must have a list for each of {num_players} players, not {arguments.shortened(names)}."
    )
  for player in range(num_players):
    _check_infosets(player, above[player], counts[player], list(names[player]))
  leaves, worth = _leaves(leaf_sequences, payoffs, [1 + int(own.sum()) for own in counts])
  if payoff_range is not None:
    payoff_range = _payoff_range(payoff_range, leaves, worth)
  largest = float(np.abs(worth).max())
  facts = GameFacts(
    game_string=str(name),
    num_distinct_actions=max(int(own.max(initial=1)) for own in counts),
    payoff_range=(-largest, largest),
    constant_sum=0.0 if np.abs(worth.sum(axis=1)).max() <= _TOLERANCE * largest else None,
    num_states=sum(map(len, counts)) + len(worth),
    num_terminals=len(worth),
    open_spiel_version=None,
  )
  actions = [concatenated_ranges(np.zeros_like(own), own) for own in counts]
  game = game_of_parts(facts, [list(own) for own in names], actions, above, counts, leaves, worth)
  if payoff_range is None:
    bound = max(
      float(counterfactual_bounds(game.payoff.leaves(player), game.treeplexes, player)[0])
      for player in range(num_players)
    )
    payoff_range = (-bound, bound)
  return game.with_payoff(game.payoff, payoff_range=payoff_range)


def _payoff_range(given: Any, leaves: Uint32s, worth: Float64s) -> tuple[float, float]:
  """Returns the given range, after a check that all payoffs are in it; chance makes payoffs smaller, never larger."""
  if not isinstance(given, tuple | list) or len(given) != 2:
    raise errors.ArgumentError(
      f"payoff_range must be two numbers, not {arguments.shortened(given)}."
    )
  low = arguments.real_number(given[0], "payoff_range[0]")
  high = arguments.real_number(given[1], "payoff_range[1]", low)
  slack = _TOLERANCE * float(np.abs(worth).max())
  wrong = np.argwhere((worth < min(low, 0.0) - slack) | (worth > max(high, 0.0) + slack))
  if len(wrong):
    leaf, player = wrong[0].tolist()
    raise errors.ArgumentError(
      f"payoff_range is ({low:zg}, {high:zg}), but player {player} gets {worth[leaf, player]:zg} at the leaf of "
      f"sequences {leaves[:, leaf].tolist()}. Bounds are made of it, so it must hold for all payoffs; by default, one "
      "is found."
    )
  return low, high


def _integers(value: Any, name: str, num_players: int) -> list[Int64s]:
  """Returns an array of integers for each player."""
  try:
    arrays = [np.asarray(own) for own in value]
  except (TypeError, ValueError):  # No sequence, or lists of several lengths.
    arrays = []
  kinds = [own.ndim == 1 and (own.dtype.kind in "iu" or not len(own)) for own in arrays]
  if len(kinds) != num_players or not all(kinds):
    raise errors.ArgumentError(
      f"{name} must have a list of integers for each of {num_players} players, not {arguments.shortened(value)}."
    )
  return [own.astype(np.int64) for own in arrays]


def _refuse(wrong: Bools, what: str, numbers: Int64s) -> None:
  """Raises ArgumentError for the first number that is wrong."""
  if wrong.any():
    place = int(np.flatnonzero(wrong)[0])
    raise errors.ArgumentError(f"{what.format(place)}, not {numbers[place]}.")


def _check_infosets(player: int, parents: Int64s, num_actions: Int64s, names: list[str]) -> None:
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
  where = f"num_actions[{player}][{{}}] must be"
  _refuse(
    (num_actions < 1) | (num_actions >= 1 << 31), f"{where} at least 1, less than 2^31", num_actions
  )
  before = np.cumsum(num_actions) - num_actions
  where = (
    f"parents[{player}][{{}}] must be 0, the empty sequence, or an action of an infoset before it"
  )
  _refuse((parents < 0) | (parents > before), where, parents)


def _leaves(
  leaf_sequences: Any, payoffs: Any, num_sequences: Sequence[int]
) -> tuple[Uint32s, Float64s]:
  """Returns different leaves: sequences of shape (players, leaves), and payoffs of shape (leaves, players)."""
  num_players = len(num_sequences)
  columns = _integers(leaf_sequences, "leaf_sequences", num_players)
  shape = len(columns[0]), num_players
  for player, (own, end) in enumerate(zip(columns, num_sequences, strict=True)):
    if len(own) != shape[0] or not len(own):
      raise errors.ArgumentError(
        f"leaf_sequences must be as long for all players, and not empty; player 0 has {shape[0]}, player {player} "
        f"{len(own)}."
      )
    where = f"leaf_sequences[{player}][{{}}] must be one of 0 to {end - 1}, the player's sequences"
    _refuse((own < 0) | (own >= end), where, own)
  try:
    worth = np.asarray(payoffs, np.float64)
  except (TypeError, ValueError, OverflowError):
    worth = np.zeros(0)
  if worth.ndim == 1 and num_players == 2:
    worth = np.stack([worth, -worth], axis=1)
  if worth.shape != shape:
    raise errors.ArgumentError(
      f"payoffs must be numbers of shape {shape}, leaves and players, or for two players {shape[:1]}; not "
      f"{arguments.shortened(payoffs)}."
    )
  if not np.isfinite(worth).all():
    leaf, player = np.argwhere(~np.isfinite(worth))[0]
    raise errors.InvalidPayoffError(
      f"At leaf {leaf}, player {player} gets {worth[leaf, player]}; payoffs are finite."
    )
  leaves, which = distinct_columns(columns)
  sums = [np.bincount(which, own, leaves.shape[1]) for own in worth.T]
  return leaves.astype(np.uint32), np.stack(sums, axis=1).astype(np.float64)


def game_of_parts(
  facts: GameFacts,
  infostates: Sequence[Sequence[str]],
  actions: Sequence[Int64s],
  parents: Sequence[Int64s],
  num_actions: Sequence[Int64s],
  leaf_sequences: Uint32s,
  leaf_payoffs: Float64s,
  view: GameView | None = None,
) -> EnumeratedGame:
  """Returns the game of the arrays of an `Enumeration`, unchecked; overwrites `leaf_sequences`."""
  placements, payoff = lay_out(parents, num_actions, leaf_sequences, leaf_payoffs)
  infosets = tuple(
    Infosets(names, moves, counts, placed.position, placed.first_sequence, placed.stride)
    for names, moves, counts, placed in zip(
      infostates, actions, num_actions, placements, strict=True
    )
  )
  treeplexes = tuple(placed.treeplex for placed in placements)
  return EnumeratedGame(facts, treeplexes, infosets, payoff, view=view)


def lay_out(
  parents: Sequence[Int64s],
  num_actions: Sequence[Int64s],
  leaf_sequences: Uint32s,
  leaf_payoffs: Float64s,
) -> tuple[list[Placement], Payoff]:
  """Builds each player's treeplex and the payoff from the arrays of an `Enumeration`.

  `leaf_sequences` is overwritten with the numbering of the treeplexes.
  """
  placements: list[Placement] = []
  states = []
  root = first_infoset = 0
  for player, (above, counts) in enumerate(zip(parents, num_actions, strict=True)):
    infoset_of_sequence = np.append(-1, np.repeat(np.arange(len(counts)), counts))
    public_state = public_states(leaf_sequences, player, infoset_of_sequence, len(counts))
    placed = build_treeplex(above, counts, root, first_infoset, public_state)
    placements.append(placed)
    in_layout_order = np.empty_like(public_state)
    in_layout_order[placed.position] = public_state
    states.append(in_layout_order)
    # From the numbering of `parents` and `num_actions` to that of the treeplex.
    leaf_sequences[player] = placed.sequences[leaf_sequences[player]]
    root, first_infoset = placed.treeplex.end, first_infoset + len(above)
  treeplexes = [placed.treeplex for placed in placements]
  return placements, build_payoff(leaf_sequences, leaf_payoffs, treeplexes, states)
