"""Compaction of a game: without its frozen subtrees, so that full-width solvers iterate on the rest.

A frozen sequence is not played. Its owner's infosets below it and the leaves at and below it are dropped, and with them
the infosets that no remaining leaf follows. An infoset that keeps one action is dropped like a forced move: see
`games.compiled.forced_moves`.
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
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import build_treeplex

T = TypeVar("T", bound=np.generic)


class Group(NamedTuple):
  """Infosets with the same number of actions; `above`, shape (infosets,), is the sequence above each infoset."""

  sequences: slice
  actions: int
  infosets: slice
  above: Int64s

  def of(self, array: npt.NDArray[T]) -> npt.NDArray[T]:
    """Returns the elements of an array of shape (sequences,) at the actions, a view of shape (actions, infosets)."""
    return array[self.sequences].reshape(self.actions, -1)[:, : len(self.above)]


class Compacted(NamedTuple):
  """A game without its frozen subtrees.

  Attributes:
    game: the game that is left, with sequences and infosets numbered anew.
    sequences: int64 (left,). The sequences that are left, in the numbering of the whole game.
    places: uint32 (left,). The same sequences in the numbering of `game`.
    infosets: int64 (infosets left,). The infosets that are left, in the order of `game`.
    seen: bool (infosets,). Whether an infoset of the whole game is left.
    share: the part of the leaves that is left.
  """

  game: EnumeratedGame
  sequences: Int64s
  places: Uint32s
  infosets: Int64s
  seen: Bools
  share: float


class PrunableGame:
  """A game of two players, with the arrays that all of its windows need.

  Attributes:
    game: the game.
    groups: the infosets with a choice, of both players, parents before children.
    owner: int64 (sequences,). The infoset of each sequence; 0 for padding and empty sequences.
  """

  def __init__(self, game: CompiledGame) -> None:
    """Lists leaves and infosets; raises PruningError for a game that can't be compacted."""
    why = ""
    if game.num_players != 2:
      why = f"has {game.num_players} players; pruning takes two"
    elif game.original is not game:
      why = "is an abstraction. Prune its `original`"
    elif not isinstance(game, EnumeratedGame):
      why = "lists no leaves, as in vector form. Compile it with vector_form=False"
    if why or not isinstance(game, EnumeratedGame):
      raise errors.PruningError(f"{game.name} {why}, or use no pruning.")
    self.game, deciding = game, game.decisions
    self._payoff, self._tree = deciding.payoff, Tree(deciding.groups, deciding.parent)
    parent = deciding.parent.astype(np.int64)
    self.groups = [
      Group(slice(first, first + actions * stride), actions, infosets, parent[infosets])
      for first, stride, count, actions, infoset, _ in deciding.groups.astype(np.int64).tolist()
      for infosets in [slice(infoset, infoset + count)]
    ]
    self.owner = game.per_sequence(np.arange(game.num_infosets, dtype=np.float64)).astype(np.int64)
    # Each player's sequences, infoset by infoset.
    by_group = [[rows.T.ravel() for rows, _ in tree.infoset_groups()] for tree in game.treeplexes]
    self._rows = [np.concatenate([np.zeros(0, np.int64), *groups]) for groups in by_group]
    # The sequences of both players at each leaf, shape (2, leaves), and its payoffs, shape (leaves, 2).
    every = np.arange(game.end, dtype=np.uint32)
    leaves, self._worth = merged_leaves(self._payoff, 2, every, np.ones(game.end))
    self._leaves = leaves.astype(np.intp)
    self._gains = LeafRows.build(leaves, np.maximum(self._worth, 0.0), game.treeplexes)

  def __reduce__(self) -> tuple[Any, ...]:
    return PrunableGame, (self.game,)

  def worth(self, faced: Float64s, *, best: bool = False, gains_only: bool = False) -> Float64s:
    """Returns the value of each sequence against a sum of sequence forms, both of shape (sequences,).

    With `best` a best response follows; with `gains_only` losses count as 0.
    """
    result = aligned_zeros(self.game.end)
    for player in range(2):
      (self._gains if gains_only else self._payoff).gradient_into(player, faced, result)
    if best:
      backward_pass(self.game, take_best, result, tree=self._tree)
    return result

  def kept(self, frozen: Bools) -> Bools:
    """Returns which sequences are neither frozen nor below a frozen one, shape (sequences,)."""
    result = np.ones(self.game.end, bool)
    for group in self.groups:
      group.of(result)[:] = result[group.above] & ~group.of(frozen)
    return result

  def without(self, frozen: Bools) -> Compacted:
    """Returns the game without frozen sequences, a mask of shape (sequences,), and their subtrees."""
    game, kept = self.game, self.kept(frozen)
    remaining_leaves = np.flatnonzero(kept[self._leaves].all(axis=0))
    leaves, worth = self._leaves[:, remaining_leaves], self._worth[remaining_leaves]
    live = self._live_actions(kept, leaves)
    seen = live > 1
    left = [rows[kept[rows] & seen[self.owner[rows]]] for rows in self._rows]
    number, place = self._numbers(left), np.zeros(game.end, np.uint32)
    treeplexes, infosets, root, first = [], [], 0, 0
    for tree in game.treeplexes:
      some = tree.first_infoset + np.flatnonzero(seen[tree.first_infoset :][: tree.num_infosets])
      placed = build_treeplex(number[game.decisions.parent[some]], live[some], root, first)
      place[tree.root : tree.end] = placed.sequences[number[tree.root : tree.end]]
      infosets.append(some[np.argsort(placed.position)])
      treeplexes.append(placed.treeplex)
      root, first = placed.treeplex.end, first + len(some)
    there = place[leaves]
    listed = [Leaves(there[player], there[[1 - player]], worth[:, player]) for player in range(2)]
    payoff, remaining = LeafRows.of_leaves(listed, treeplexes), np.concatenate(infosets)
    sequences = np.concatenate([[tree.root for tree in game.treeplexes], *left])
    # The tolerance of rounding does not depend on the remaining leaves.
    scale = np.pad(game.scale[remaining], (0, MOST_LANES))
    compacted = game.with_payoff(payoff, treeplexes=tuple(treeplexes), scale=scale)
    share = len(remaining_leaves) / max(1, len(self._worth))
    return Compacted(compacted, sequences, place[sequences], remaining, seen, share)

  def _live_actions(self, kept: Bools, leaves: Int64s) -> Int64s:
    """Returns the number of actions that each infoset keeps, shape (infosets,); 0 if no leaf follows."""
    matters, follows = np.zeros(self.game.end, bool), np.zeros(self.game.num_infosets, bool)
    matters[leaves] = True
    for group in reversed(self.groups):
      follows[group.infosets] = here = group.of(matters).any(axis=0)
      matters[group.above[here]] = True
    rows = np.concatenate(self._rows)
    return follows * np.bincount(self.owner[rows[kept[rows]]], minlength=len(follows))

  def _numbers(self, left: list[Int64s]) -> Int64s:
    """Numbers each player's sequences as `build_treeplex` does; a dropped one has the number of the last above it."""
    result = np.zeros(self.game.end, np.int64)
    for sequences in left:
      result[sequences] = 1 + np.arange(len(sequences))
    for group in self.groups:
      rows = group.of(result)
      np.copyto(rows, result[group.above], where=rows == 0)
    return result
