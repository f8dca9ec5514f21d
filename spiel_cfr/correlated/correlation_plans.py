"""Correlation plans of two players: a polytope over relevant pairs of sequences.

Infosets I of player 0 and J of player 1 are connected if a history passes both. A pair of sequences is relevant if one
of them is empty, or if they end at connected infosets. A correlation plan xi has a number at each relevant pair: the
probability that the mediator's drawn pair of pure strategies plays to both sequences. So

    xi[empty, empty] = 1,  xi >= 0,
    sum over actions a of I: xi[Ia, s] = xi[what is above I, s]   if s is empty or ends at an infoset connected to I,

and the same with the players exchanged. That these constraints are enough was proven by von Stengel and Forges,
"Extensive-Form Correlated Equilibrium: Definition and Computational Complexity" (2008), for two players without chance
moves, and by Farina and Sandholm, "Polynomial-Time Computation of Optimal Correlated Equilibria in Two-Player
Extensive-Form Games with Public Chance Moves and Beyond" (2020), for all games that are triangle-free. In others some
numbers that satisfy them are no mixture of pure strategies: for a game of private types they are what physicists call
no-signalling correlations. A mediator can act on these, but only if what it tells one player depends on which infosets
it has seen the other at, which correlated equilibria do not allow.
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
  """A player's sequences, numbered as in `evaluation.sequences`, and its infosets in the order of its layout.

  Attributes:
    places: int64 (sequences,): where each is in a solver's arrays.
    owner: int64 (sequences,): the infoset of each, -1 of the empty one.
    above: int64 (infosets,): the sequence above each.
  """

  places: Int64s
  owner: Int64s
  above: Int64s

  @functools.cached_property
  def by_infoset(self) -> tuple[Int64s, Int64s, Int64s]:
    """The sequences infoset by infoset, where those of each begin, and how many each has."""
    order = 1 + np.argsort(self.owner[1:], kind="stable")
    infosets = np.arange(len(self.above))
    starts, ends = (
      np.searchsorted(self.owner[order], infosets, side) for side in ("left", "right")
    )
    return order, starts, ends - starts

  @functools.cached_property
  def lineage(self) -> tuple[Int64s, Int64s]:
    """All pairs of a sequence that is not empty, and one that is the same or follows it."""
    below = np.arange(1, len(self.owner))
    ancestors, pairs = below, []
    while len(below):
      pairs.append((ancestors, below))
      higher = self.above[self.owner[ancestors]]
      ancestors, below = higher[higher > 0], below[higher > 0]
    first, second = map(np.concatenate, zip((np.zeros(0, np.int64),) * 2, *pairs, strict=True))
    return first, second


class RelevantPairs:
  """The relevant pairs of sequences of a two-player game.

  Attributes:
    game: the game.
    players: each player's sequences.
    first, second: int64 (pairs,): the sequences of the players, ordered by these; pair 0 is (empty, empty).
    number: int64, shape (sequences,): of each place in a solver's arrays, the sequence of its player's.
    triangle_free: whether correlation plans are mixtures of pure strategies, see above.
  """

  def __init__(self, game: CompiledGame, max_histories: int) -> None:
    """Walks the game's histories once.

    Raises:
      UnsupportedGameError: the game has not two players, or no states.
      AbstractionError: infosets of the game are shared.
      GameTooLargeError: it has more than `max_histories`.
    """
    if game.num_players != 2:
      raise errors.UnsupportedGameError(
        f"Correlation plans are those of two players, and {game} has {game.num_players}. For more, solvers that "
        "minimize regret find some correlated equilibrium, not the best: see MixturePolicy."
      )
    if game.shared_infosets is not None:
      raise errors.AbstractionError(
        f"In {game} infosets are shared (imperfect recall), which correlation plans have no room for. Take the game "
        "that it stands for, compiled_game.original."
      )
    self.game = game
    self.players = tuple(_player_sequences(game, player) for player in (0, 1))
    self.number = np.zeros(game.end, np.int64)
    for own in self.players:
      self.number[own.places] = np.arange(len(own.places))
    connected = self._connected(max_histories)
    # Every action of an infoset beside every action of a connected one, and everything beside the empty sequence.
    (order, starts, sizes), (other_order, other_starts, other_sizes) = (
      own.by_infoset for own in self.players
    )
    infoset, other = connected
    rows = concatenated_ranges(starts[infoset], sizes[infoset])
    other = np.repeat(other, sizes[infoset])
    first = np.repeat(order[rows], other_sizes[other])
    second = other_order[concatenated_ranges(other_starts[other], other_sizes[other])]
    counts = [len(own.owner) for own in self.players]
    first = np.concatenate([np.arange(counts[0]), np.zeros(counts[1] - 1, np.int64), first])
    second = np.concatenate([np.zeros(counts[0], np.int64), np.arange(1, counts[1]), second])
    self._keys = np.sort(first * counts[1] + second)
    self.first, self.second = np.divmod(self._keys, counts[1])
    self.triangle_free = _is_triangle_free(self.players, connected)

  def __len__(self) -> int:
    """Returns how many there are."""
    return len(self._keys)

  def index_of(self, player: int, own: npt.NDArray[Any], others: npt.NDArray[Any]) -> Int64s:
    """Returns the numbers of relevant pairs of a player's own sequences and the other's."""
    first, second = (own, others) if player == 0 else (others, own)
    keys: Int64s = first * len(self.players[1].owner) + second
    return np.searchsorted(self._keys, keys)

  def _connected(self, max_histories: int) -> tuple[Int64s, Int64s]:
    """Returns which infosets of player 0 and of player 1 are on one history."""
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
    for player, own in enumerate(self.players):
      other = self.players[1 - player]
      nodes = np.flatnonzero(walk.mover == player)
      mine, theirs = own.owner[sequence_of[walk.entry[nodes]]], last[1 - player, nodes]
      while len(mine):
        mine, theirs = np.unique(np.stack([mine, theirs]), axis=1)
        mine, theirs = mine[theirs > 0], theirs[theirs > 0]
        infosets = other.owner[theirs]
        pairs.append(np.stack([mine, infosets][:: 1 - 2 * player]))
        theirs = other.above[infosets]
    one, other_one = np.unique(np.concatenate(pairs, axis=1), axis=1)
    return one, other_one

  @functools.cached_property
  def constraints(self) -> tuple[Any, Float64s]:
    """The equalities A xi = b of correlation plans: a SciPy matrix in CSR form, and b."""
    rows, columns = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    values, count = [np.ones(1)], 1
    for player, own in enumerate(self.players):
      mine, theirs = (self.first, self.second)[:: 1 - 2 * player]
      pairs = np.flatnonzero(mine)
      infosets = np.stack([own.owner[mine[pairs]], theirs[pairs]])
      (infoset, beside), row = np.unique(infosets, axis=1, return_inverse=True)
      rows += [count + row.ravel(), count + np.arange(len(infoset))]
      columns += [pairs, self.index_of(player, own.above[infoset], beside)]
      values += [np.ones(len(pairs)), np.full(len(infoset), -1.0)]
      count += len(infoset)
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    right = np.zeros(count)
    right[0] = 1.0
    return scipy.sparse.coo_matrix(entries, shape=(count, len(self))).tocsr(), right

  @functools.cached_property
  def payoffs(self) -> tuple[Float64s, Float64s]:
    """Each player's payoff at each pair, chance's probabilities included: it expects its product with xi."""
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
  """Returns whether no siblings I, I' and J, J' are connected as I-J, I-J', I'-J'; see Farina and Sandholm (2020)."""
  one, other = connected
  above = players[0].above[one], players[1].above[other]
  siblings = []
  for mine, theirs in ((one, above[1]), (other, above[0])):
    _, row, counts = np.unique(
      np.stack([mine, theirs]), axis=1, return_inverse=True, return_counts=True
    )
    siblings.append(counts[row.ravel()])
  return not np.any((siblings[0] > 1) & (siblings[1] > 1))
