"""Correlation plans of two players: a polytope over relevant pairs of sequences.

Infosets I of player 0 and J of player 1 are connected if a history passes both. A pair of sequences is relevant if one
of them is empty, or if they end at connected infosets. A correlation plan xi has an entry for each relevant pair: the
probability that the pair of pure strategies drawn by the mediator plays both sequences. So

    xi[empty, empty] = 1,  xi >= 0,
    sum over actions a of I: xi[Ia, s] = xi[parent of I, s]   if s is empty or ends at an infoset connected to I,

and the same with the players exchanged. These constraints are sufficient in two cases:

- two players without chance moves: von Stengel and Forges, "Extensive-Form Correlated Equilibrium: Definition and
  Computational Complexity" (2008);
- triangle-free games: Farina and Sandholm, "Polynomial-Time Computation of Optimal Correlated Equilibria in Two-Player
  Extensive-Form Games with Public Chance Moves and Beyond" (2020).

In other games, some solutions are no mixture of pure strategies; in games of private types, physicists call them
no-signalling correlations. A mediator can follow them only if its recommendations to one player depend on the infosets
of the other. Correlated equilibria do not allow that.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # its `sparse` is imported when it is used

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.evaluation import sequence_form_matrices
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import HistoryWalk


@dataclasses.dataclass(frozen=True, eq=False)
class PlayerSequences:
  """Sequences of a player, numbered as in `evaluation.sequences`, and its infosets in the order of its layout.

  Attributes:
    places: int64 (sequences,). The index of each sequence in a solver's arrays.
    owner: int64 (sequences,). The infoset of each sequence; -1 for the empty one.
    above: int64 (infosets,). The sequence above each infoset.
  """

  places: Int64s
  owner: Int64s
  above: Int64s

  @functools.cached_property
  def by_infoset(self) -> tuple[Int64s, Int64s, Int64s]:
    """The sequences ordered by infoset, and of each infoset its first index in that order and its number of actions."""
    order = 1 + np.argsort(self.owner[1:], kind="stable")
    infosets = np.arange(len(self.above))
    starts, ends = (
      np.searchsorted(self.owner[order], infosets, side) for side in ("left", "right")
    )
    return order, starts, ends - starts

  @functools.cached_property
  def lineage(self) -> tuple[Int64s, Int64s]:
    """All pairs of a non-empty sequence and itself or one of its descendants, as two int64 arrays (pairs,)."""
    below = np.arange(1, len(self.owner))
    ancestors, pairs = below, []
    while len(below):
      pairs.append((ancestors, below))
      higher = self.above[self.owner[ancestors]]
      ancestors, below = higher[higher > 0], below[higher > 0]
    first, second = map(np.concatenate, zip((np.zeros(0, np.int64),) * 2, *pairs, strict=True))
    return first, second


class RelevantPairs:
  """Relevant pairs of sequences of a two-player game, in lexicographic order; pair 0 is (empty, empty).

  Attributes:
    game: `CompiledGame`. The game.
    players: two `PlayerSequences`. The sequences of each player.
    first: int64 (pairs,). The sequence of player 0.
    second: int64 (pairs,). The sequence of player 1.
    number: int64 (sequences,). The number, among its player's sequences, of each index in a solver's arrays.
    triangle_free: bool. True if all correlation plans are mixtures of pure strategies.
  """

  def __init__(self, game: CompiledGame, max_histories: int) -> None:
    """Walks the game's histories once.

    Raises:
      UnsupportedGameError: the game does not have two players, or has no states.
      AbstractionError: infosets of the game are shared.
      GameTooLargeError: the game has more than `max_histories` histories.
    """
    if game.num_players != 2:
      raise errors.UnsupportedGameError(
        f"Correlation plans need two players, and {game} has {game.num_players}. For more players, solvers that "
        "minimize regret find a correlated equilibrium, not the best one: see MixturePolicy."
      )
    if game.shared_infosets is not None:
      raise errors.AbstractionError(
        f"In {game} infosets are shared (imperfect recall), and correlation plans need perfect recall. Use the full "
        "game, compiled_game.original."
      )
    self.game = game
    self.players = tuple(_player_sequences(game, player) for player in (0, 1))
    self.number = np.zeros(game.end, np.int64)
    for of_player in self.players:
      self.number[of_player.places] = np.arange(len(of_player.places))
    connected = self._connected(max_histories)
    # Pairs of actions of connected infosets, and pairs of any sequence and the empty one.
    (order, starts, sizes), (other_order, other_starts, other_sizes) = (
      of_player.by_infoset for of_player in self.players
    )
    infoset, other = connected
    rows = concatenated_ranges(starts[infoset], sizes[infoset])
    other = np.repeat(other, sizes[infoset])
    first = np.repeat(order[rows], other_sizes[other])
    second = other_order[concatenated_ranges(other_starts[other], other_sizes[other])]
    counts = [len(of_player.owner) for of_player in self.players]
    first = np.concatenate([np.arange(counts[0]), np.zeros(counts[1] - 1, np.int64), first])
    second = np.concatenate([np.zeros(counts[0], np.int64), np.arange(1, counts[1]), second])
    self._keys = np.sort(first * counts[1] + second)
    self.first, self.second = np.divmod(self._keys, counts[1])
    self.triangle_free = _is_triangle_free(self.players, connected)

  def __len__(self) -> int:
    """Returns the number of relevant pairs."""
    return len(self._keys)

  def index_of(self, player: int, sequences: npt.NDArray[Any], others: npt.NDArray[Any]) -> Int64s:
    """Returns the indices of the relevant pairs of a player's sequences and the other player's, shape (n,)."""
    first, second = (sequences, others) if player == 0 else (others, sequences)
    keys: Int64s = first * len(self.players[1].owner) + second
    return np.searchsorted(self._keys, keys)

  def _connected(self, max_histories: int) -> tuple[Int64s, Int64s]:
    """Returns the pairs of connected infosets of player 0 and player 1, as two int64 arrays (pairs,)."""
    game = self.game
    walk = HistoryWalk(game, max_histories)
    sequence_of = self.number[game.all_action_sequences]
    # Each player's last sequence before each node.
    last = np.zeros((2, len(walk.mover)), np.int64)
    for level in walk.levels[1:]:
      parent = walk.parent[level]
      last[:, level] = last[:, parent]
      for player in (0, 1):
        moved = walk.mover[parent] == player
        nodes, above = level[moved], parent[moved]
        last[player, nodes] = sequence_of[walk.entry[above] + nodes - walk.first_child[above]]
    pairs = [np.zeros((2, 0), np.int64)]
    for player, of_player in enumerate(self.players):
      other = self.players[1 - player]
      nodes = np.flatnonzero(walk.mover == player)
      infosets, sequences = of_player.owner[sequence_of[walk.entry[nodes]]], last[1 - player, nodes]
      while len(infosets):
        infosets, sequences = np.unique(np.stack([infosets, sequences]), axis=1)
        infosets, sequences = infosets[sequences > 0], sequences[sequences > 0]
        other_infosets = other.owner[sequences]
        pairs.append(np.stack([infosets, other_infosets][:: 1 - 2 * player]))
        sequences = other.above[other_infosets]
    first, second = np.unique(np.concatenate(pairs, axis=1), axis=1)
    return first, second

  @functools.cached_property
  def constraints(self) -> tuple[Any, Float64s]:
    """The equalities A xi = b of correlation plans: A as SciPy CSR (equalities, pairs), and b, (equalities,)."""
    rows, columns = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    values, count = [np.ones(1)], 1
    for player, of_player in enumerate(self.players):
      sequences, others = (self.first, self.second)[:: 1 - 2 * player]
      pairs = np.flatnonzero(sequences)
      keys = np.stack([of_player.owner[sequences[pairs]], others[pairs]])
      (infoset, other), row = np.unique(keys, axis=1, return_inverse=True)
      rows += [count + row.ravel(), count + np.arange(len(infoset))]
      columns += [pairs, self.index_of(player, of_player.above[infoset], other)]
      values += [np.ones(len(pairs)), np.full(len(infoset), -1.0)]
      count += len(infoset)
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    right = np.zeros(count)
    right[0] = 1.0
    return scipy.sparse.coo_matrix(entries, shape=(count, len(self))).tocsr(), right

  @functools.cached_property
  def payoffs(self) -> tuple[Float64s, Float64s]:
    """Each player's payoffs, float64 (pairs,), times chance's probabilities; their product with xi is expected."""
    result = []
    for player in (0, 1):
      matrix = sequence_form_matrices.payoff_matrix(self.game, player).tocoo()
      values = np.zeros(len(self))
      values[self.index_of(0, matrix.row.astype(np.int64), matrix.col.astype(np.int64))] = (
        matrix.data
      )
      result.append(values)
    return result[0], result[1]


def _player_sequences(game: CompiledGame, player: int) -> PlayerSequences:
  tree = game.treeplexes[player]
  places = sequence_form_matrices.sequences(game, player)
  number = np.zeros(tree.end, np.int64)
  number[places] = np.arange(len(places))
  owner = np.full(len(places), -1)
  for sequences, infosets in tree.infoset_groups():
    owner[number[sequences]] = np.arange(infosets.start, infosets.stop)
  return PlayerSequences(places, owner, number[tree.parent.astype(np.int64)])


def _is_triangle_free(
  players: tuple[PlayerSequences, ...], connected: tuple[Int64s, Int64s]
) -> bool:
  """Returns True if no siblings I, I' and J, J' are connected as I-J, I-J', I'-J'; see Farina and Sandholm (2020)."""
  first, second = connected
  above = players[0].above[first], players[1].above[second]
  siblings = []
  for infosets, parents in ((first, above[1]), (second, above[0])):
    keys = np.stack([infosets, parents])
    _, row, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    siblings.append(counts[row.ravel()])
  return not np.any((siblings[0] > 1) & (siblings[1] > 1))
