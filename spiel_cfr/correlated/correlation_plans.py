"""Correlation plans of two players: joint distributions of recommendations, as vectors over pairs of sequences.

Infosets I of player 0 and J of player 1 are connected if a history passes through both. A pair of sequences is relevant
if one of them is empty, or if they end at connected infosets. A correlation plan xi has an entry for each relevant
pair. The mediator draws a pair of pure strategies; the entry is the probability that they play both sequences. So

    xi[empty, empty] = 1,  xi >= 0,
    sum over actions a of I: xi[Ia, s] = xi[parent of I, s]   if s is empty or ends at an infoset connected to I,

and the same with the players exchanged. Every plan satisfies these constraints. In two cases, every solution is a plan:

- two players without chance moves: von Stengel and Forges, "Extensive-Form Correlated Equilibrium: Definition and
  Computational Complexity" (2008);
- triangle-free games: Farina and Sandholm, "Polynomial-Time Computation of Optimal Correlated Equilibria in Two-Player
  Extensive-Form Games with Public Chance Moves and Beyond" (2020).

In other games, some solutions are not mixtures of pure strategies. To follow such a solution, a mediator must make its
recommendations to one player depend on the infosets of the other, which correlated equilibria do not allow. In games of
private types, physicists call these solutions no-signalling correlations.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # Python imports `scipy.sparse` at its first use.

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.evaluation import sequence_form_matrices
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import HistoryWalk


@dataclasses.dataclass(frozen=True, eq=False)
class PlayerSequences:
  """Sequences of a player without padding, numbered as in `evaluation.sequences`, and its infosets in layout order.

  Attributes:
    indices: int64 (sequences,). The index of each sequence in solvers' arrays.
    infoset: int64 (sequences,). The infoset at which each sequence ends; -1 for the empty sequence.
    parent: int64 (infosets,). The sequence above each infoset.
  """

  indices: Int64s
  infoset: Int64s
  parent: Int64s

  @functools.cached_property
  def by_infoset(self) -> tuple[Int64s, Int64s, Int64s]:
    """The non-empty sequences ordered by infoset; for each infoset, its first index there and its number of actions."""
    order = 1 + np.argsort(self.infoset[1:], kind="stable")
    infosets = np.arange(len(self.parent))
    starts, ends = (
      np.searchsorted(self.infoset[order], infosets, side) for side in ("left", "right")
    )
    return order, starts, ends - starts

  @functools.cached_property
  def lineage(self) -> tuple[Int64s, Int64s]:
    """All pairs of a non-empty sequence and one that begins with it, itself included, as two int64 arrays (pairs,)."""
    descendants = np.arange(1, len(self.infoset))
    ancestors, pairs = descendants, []
    while len(descendants):
      pairs.append((ancestors, descendants))
      parents = self.parent[self.infoset[ancestors]]
      ancestors, descendants = parents[parents > 0], descendants[parents > 0]
    first, second = map(np.concatenate, zip((np.zeros(0, np.int64),) * 2, *pairs, strict=True))
    return first, second


class RelevantPairs:
  """Relevant pairs of sequences of a two-player game, in lexicographic order; pair 0 is (empty, empty).

  Attributes:
    game: `CompiledGame`. The game.
    players: two `PlayerSequences`. The sequences of each player.
    first: int64 (pairs,). The sequence of player 0 in each pair.
    second: int64 (pairs,). The sequence of player 1 in each pair.
    number: int64 (sequences,). For each index of solvers' arrays, the number of the sequence in `PlayerSequences`.
    triangle_free: bool. True if the game is triangle-free, so that all solutions of `constraints` are mixtures of pure
      strategies.
  """

  def __init__(self, game: CompiledGame, max_histories: int) -> None:
    """Finds the relevant pairs in one walk over the histories of a game.

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
    for sequences in self.players:
      self.number[sequences.indices] = np.arange(len(sequences.indices))
    connected = self._connected_infosets(max_histories)
    first, second = _action_pairs(self.players, connected)
    # Pairs of any sequence and the empty one.
    counts = [len(sequences.infoset) for sequences in self.players]
    first = np.concatenate([np.arange(counts[0]), np.zeros(counts[1] - 1, np.int64), first])
    second = np.concatenate([np.zeros(counts[0], np.int64), np.arange(1, counts[1]), second])
    # A pair is one number, so that sorting is lexicographic.
    self._keys = np.sort(first * counts[1] + second)
    self.first, self.second = np.divmod(self._keys, counts[1])
    self.triangle_free = _is_triangle_free(self.players, connected)

  def __len__(self) -> int:
    """Returns the number of relevant pairs."""
    return len(self._keys)

  def index_of(self, player: int, sequences: npt.NDArray[Any], others: npt.NDArray[Any]) -> Int64s:
    """Returns the numbers of relevant pairs, int64 (n,).

    Args:
      player: the player of `sequences`.
      sequences: shape (n,). The sequence of `player` in each pair.
      others: shape (n,). The sequence of the other player in each pair.
    """
    first, second = (sequences, others) if player == 0 else (others, sequences)
    keys: Int64s = first * len(self.players[1].infoset) + second
    return np.searchsorted(self._keys, keys)

  def _connected_infosets(self, max_histories: int) -> tuple[Int64s, Int64s]:
    """Returns the pairs of connected infosets of player 0 and player 1, as two int64 arrays (pairs,)."""
    game = self.game
    walk = HistoryWalk(game, max_histories)
    sequence_of = self.number[game.all_action_sequences]
    # Each player's last sequence before each history.
    last = np.zeros((2, len(walk.mover)), np.int64)
    for level in walk.levels[1:]:
      parent = walk.parent[level]
      last[:, level] = last[:, parent]
      for player in (0, 1):
        moved = walk.mover[parent] == player
        nodes, above = level[moved], parent[moved]
        last[player, nodes] = sequence_of[walk.entry[above] + nodes - walk.first_child[above]]
    pairs = [np.zeros((2, 0), np.int64)]
    for player, player_sequences in enumerate(self.players):
      opponent = self.players[1 - player]
      nodes = np.flatnonzero(walk.mover == player)
      infosets = player_sequences.infoset[sequence_of[walk.entry[nodes]]]
      sequences = last[1 - player, nodes]
      # An infoset is connected to the opponent's infosets above it, which are visited from the last to the first.
      while len(infosets):
        infosets, sequences = np.unique(np.stack([infosets, sequences]), axis=1)
        infosets, sequences = infosets[sequences > 0], sequences[sequences > 0]
        opponent_infosets = opponent.infoset[sequences]
        pairs.append(np.stack([infosets, opponent_infosets][:: 1 - 2 * player]))
        sequences = opponent.parent[opponent_infosets]
    first, second = np.unique(np.concatenate(pairs, axis=1), axis=1)
    return first, second

  @functools.cached_property
  def constraints(self) -> tuple[Any, Float64s]:
    """The equalities A xi = b of plans: A as SciPy CSR (equalities, pairs), and b, float64 (equalities,)."""
    # The first equality is xi[empty, empty] = 1.
    rows, columns = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    values, count = [np.ones(1)], 1
    for player, player_sequences in enumerate(self.players):
      sequences, others = (self.first, self.second)[:: 1 - 2 * player]
      pairs = np.flatnonzero(sequences)
      keys = np.stack([player_sequences.infoset[sequences[pairs]], others[pairs]])
      (infoset, other), row = np.unique(keys, axis=1, return_inverse=True)
      rows += [count + row.ravel(), count + np.arange(len(infoset))]
      columns += [pairs, self.index_of(player, player_sequences.parent[infoset], other)]
      values += [np.ones(len(pairs)), np.full(len(infoset), -1.0)]
      count += len(infoset)
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    b = np.zeros(count)
    b[0] = 1.0
    return scipy.sparse.coo_matrix(entries, shape=(count, len(self))).tocsr(), b

  @functools.cached_property
  def payoffs(self) -> tuple[Float64s, Float64s]:
    """Each player's payoffs, weighted by the reach of chance, float64 (pairs,).

    The inner product with a plan is the player's expected payoff.
    """
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
  indices = sequence_form_matrices.sequences(game, player)
  number = np.zeros(tree.end, np.int64)
  number[indices] = np.arange(len(indices))
  infoset = np.full(len(indices), -1)
  for sequences, infosets in tree.infoset_groups():
    infoset[number[sequences]] = np.arange(infosets.start, infosets.stop)
  return PlayerSequences(indices, infoset, number[tree.parent.astype(np.int64)])


def _action_pairs(
  players: tuple[PlayerSequences, ...], connected: tuple[Int64s, Int64s]
) -> tuple[Int64s, Int64s]:
  """Returns all pairs of sequences that end at connected infosets, as two int64 arrays (pairs,)."""
  (order, starts, sizes), (other_order, other_starts, other_sizes) = (
    sequences.by_infoset for sequences in players
  )
  infoset, other = connected
  first = order[concatenated_ranges(starts[infoset], sizes[infoset])]
  other = np.repeat(other, sizes[infoset])
  second = other_order[concatenated_ranges(other_starts[other], other_sizes[other])]
  return np.repeat(first, other_sizes[other]), second


def _is_triangle_free(
  players: tuple[PlayerSequences, ...], connected: tuple[Int64s, Int64s]
) -> bool:
  """Returns True if no siblings I, I' and J, J' are connected as I-J, I-J', I'-J'; see Farina and Sandholm (2020).

  Siblings are infosets of a player with the same parent sequence.
  """
  first, second = connected
  parents_of_first, parents_of_second = players[0].parent[first], players[1].parent[second]
  # For each connected pair: the number of siblings of J that are connected to I, and of siblings of I connected to J.
  siblings = []
  for infosets, parents in ((first, parents_of_second), (second, parents_of_first)):
    keys = np.stack([infosets, parents])
    _, row, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    siblings.append(counts[row.ravel()])
  return not np.any((siblings[0] > 1) & (siblings[1] > 1))
