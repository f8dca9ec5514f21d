"""Compaction of a game: a smaller game without the subtrees below frozen sequences, for full-width solvers.

A frozen sequence is not played. The compacted game leaves out its owner's infosets below it, the leaves at and below
it, and all infosets that no remaining leaf follows. An infoset that keeps a single action is left out as well, like a
forced move: see `games.compiled.forced_moves`.
"""

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, Uint32s, aligned_zeros
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import backward_pass
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame, listed_game
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import build_treeplexes

T = TypeVar("T", bound=np.generic)


class Group(NamedTuple):
  """Infosets of one player that have the same depth and number of actions.

  Attributes:
    sequences: the sequences of all actions, padding included.
    actions: the number of actions at each infoset.
    infosets: the infosets.
    above: int64 (infosets,). The sequence above each infoset.
  """

  sequences: slice
  actions: int
  infosets: slice
  above: Int64s

  def of(self, array: npt.NDArray[T]) -> npt.NDArray[T]:
    """Returns the part of an array of shape (sequences,) that belongs to the group: a view (actions, infosets)."""
    return array[self.sequences].reshape(self.actions, -1)[:, : len(self.above)]


class CompactedGame(NamedTuple):
  """A game without its frozen subtrees.

  Attributes:
    game: the compacted game, with sequences and infosets numbered anew.
    sequences: int64 (remaining sequences,). The remaining sequences, as numbered in the whole game.
    places: uint32 (remaining sequences,). The same sequences, as numbered in `game`.
    infosets: int64 (remaining infosets,). The remaining infosets as numbered in the whole game, in the order of `game`.
    remains: bool (infosets,). Whether an infoset of the whole game remains.
    share: the fraction of the leaves that remains.
  """

  game: EnumeratedGame
  sequences: Int64s
  places: Uint32s
  infosets: Int64s
  remains: Bools
  share: float


class PrunableGame:
  """A two-player game that can be compacted, with the arrays that every compaction needs.

  Attributes:
    game: the whole game.
    groups: list of `Group`. The infosets with a choice of both players, parents before children.
    infoset_of: int64 (sequences,). The infoset of each sequence; 0 for padding and empty sequences.
  """

  def __init__(self, game: CompiledGame) -> None:
    """Lists the leaves and infosets of a game.

    Raises:
      PruningError: the game has another number of players, is an abstraction, or lists no leaves.
    """
    if game.num_players != 2:
      raise errors.PruningError(
        f"{game.name} has {game.num_players} players; pruning takes two, so use no pruning."
      )
    try:
      self.game = listed_game(game)
    except errors.UnsupportedGameError as error:
      raise errors.PruningError(f"{error} Otherwise, use no pruning.") from None
    decisions = game.decisions
    self._payoff, self._tree = decisions.payoff, Tree(decisions.groups, decisions.parent)
    parent = decisions.parent.astype(np.int64)
    self.groups = [
      Group(slice(first, first + actions * stride), actions, infosets, parent[infosets])
      for first, stride, count, actions, infoset, _ in decisions.groups.astype(np.int64).tolist()
      for infosets in [slice(infoset, infoset + count)]
    ]
    numbers = np.arange(game.num_infosets, dtype=np.float64)
    self.infoset_of = game.per_sequence(numbers).astype(np.int64)
    # For each player, its sequences, infoset by infoset.
    by_group = [[rows.T.ravel() for rows, _ in tree.infoset_groups()] for tree in game.treeplexes]
    self._sequences = [np.concatenate([np.zeros(0, np.int64), *groups]) for groups in by_group]
    # The sequences of both players at each leaf, shape (2, leaves), and its payoffs, shape (leaves, 2).
    all_sequences = np.arange(game.end, dtype=np.uint32)
    leaves, self._leaf_payoffs = merged_leaves(self._payoff, 2, all_sequences, np.ones(game.end))
    self._leaves = leaves.astype(np.intp)
    # The payoffs of a game in which negative payoffs are 0.
    gains = np.maximum(self._leaf_payoffs, 0.0)
    self._gains_payoff = LeafRows.build(leaves, gains, game.treeplexes)

  def __reduce__(self) -> tuple[Any, ...]:
    return PrunableGame, (self.game,)

  def sequence_values(
    self, faced: Float64s, *, best_response: bool = False, gains_only: bool = False
  ) -> Float64s:
    """Returns the value of each sequence to its owner against a sum of sequence forms.

    Args:
      faced: float64 (sequences,). The sum of sequence forms that the players face.
      best_response: whether the owner plays a best response at its later infosets. Otherwise, the value of a sequence
        includes only the leaves at which it is the owner's last sequence.
      gains_only: whether negative payoffs count as 0.

    Returns:
      float64 (sequences,).
    """
    result, payoff = (
      aligned_zeros(self.game.end),
      self._gains_payoff if gains_only else self._payoff,
    )
    for player in range(2):
      payoff.gradient_into(player, faced, result)
    if best_response:
      backward_pass(self.game, take_best, result, tree=self._tree)
    return result

  def topmost(self, sequences: Bools) -> Bools:
    """Returns the sequences of a mask that are not below another one of it, a mask of shape (sequences,)."""
    kept, result = self.kept(sequences), np.zeros(len(sequences), bool)
    for group in self.groups:
      group.of(result)[:] = group.of(sequences) & kept[group.above]
    return result

  def kept(self, frozen: Bools) -> Bools:
    """Returns the sequences that are neither frozen nor below a frozen one, a mask of shape (sequences,)."""
    result = np.ones(self.game.end, bool)
    for group in self.groups:
      group.of(result)[:] = result[group.above] & ~group.of(frozen)
    return result

  def without(self, frozen: Bools) -> CompactedGame:
    """Returns the game without frozen sequences, a mask of shape (sequences,), and their subtrees."""
    game, kept = self.game, self.kept(frozen)
    leaf_numbers = np.flatnonzero(kept[self._leaves].all(axis=0))
    leaves, leaf_payoffs = self._leaves[:, leaf_numbers], self._leaf_payoffs[leaf_numbers]
    num_kept = self._num_kept_actions(kept, leaves)
    remains = num_kept > 1
    # For each player, the remaining sequences.
    remaining = [rows[kept[rows] & remains[self.infoset_of[rows]]] for rows in self._sequences]
    number = self._new_numbers(remaining)
    # The sequence of `treeplexes` for each sequence of the whole game.
    place = np.zeros(game.end, np.uint32)
    infosets_by_player = [
      tree.first_infoset + np.flatnonzero(remains[tree.first_infoset :][: tree.num_infosets])
      for tree in game.treeplexes
    ]
    placements = build_treeplexes(
      [number[game.decisions.parent[own]] for own in infosets_by_player],
      [num_kept[own] for own in infosets_by_player],
    )
    for player, (tree, built) in enumerate(zip(game.treeplexes, placements, strict=True)):
      place[tree.root : tree.end] = built.sequences[number[tree.root : tree.end]]
      infosets_by_player[player] = infosets_by_player[player][np.argsort(built.position)]
    treeplexes = [built.treeplex for built in placements]
    at = place[leaves]
    new_leaves = [
      Leaves(at[player], at[[1 - player]], leaf_payoffs[:, player]) for player in range(2)
    ]
    infosets = np.concatenate(infosets_by_player)
    # The tolerance of rounding does not depend on the remaining leaves.
    scale = np.pad(game.scale[infosets], (0, MOST_LANES))
    payoff = LeafRows.of_leaves(new_leaves, treeplexes)
    compacted = game.with_payoff(payoff, treeplexes=tuple(treeplexes), scale=scale)
    sequences = np.concatenate([[tree.root for tree in game.treeplexes], *remaining])
    share = len(leaf_numbers) / max(1, len(self._leaf_payoffs))
    return CompactedGame(compacted, sequences, place[sequences], infosets, remains, share)

  def _num_kept_actions(self, kept: Bools, leaves: Int64s) -> Int64s:
    """Returns the number of actions that each infoset keeps, shape (infosets,); 0 if no remaining leaf follows."""
    leads_to_leaf = np.zeros(self.game.end, bool)
    leads_to_leaf[leaves] = True
    has_leaf = np.zeros(self.game.num_infosets, bool)
    for group in reversed(self.groups):
      group_has_leaf = group.of(leads_to_leaf).any(axis=0)
      has_leaf[group.infosets] = group_has_leaf
      leads_to_leaf[group.above[group_has_leaf]] = True
    rows = np.concatenate(self._sequences)
    return has_leaf * np.bincount(self.infoset_of[rows[kept[rows]]], minlength=len(has_leaf))

  def _new_numbers(self, remaining: list[Int64s]) -> Int64s:
    """Numbers each player's remaining sequences as `build_treeplexes` does, shape (sequences,).

    A sequence that is left out has the number of the last remaining one above it.
    """
    result = np.zeros(self.game.end, np.int64)
    for sequences in remaining:
      result[sequences] = 1 + np.arange(len(sequences))
    for group in self.groups:
      rows = group.of(result)
      np.copyto(rows, result[group.above], where=rows == 0)
    return result
