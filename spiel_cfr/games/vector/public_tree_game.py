"""`PublicTreeGame`, the base class of games in vector form: a public tree with a vector over types at each node."""

import abc
import functools
import hashlib
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int32s, Uint32s, concatenated_ranges
from spiel_cfr._util import arguments, memory
from spiel_cfr.games.compiled.abstraction_map import AbstractionMap
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.forced_moves import Decisions
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.compiled.reloaded_view import view_of_string
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.sequence_form.treeplex import (
  ACTIONS,
  COUNT,
  FIRST_INFOSET,
  FIRST_SEQUENCE,
  Treeplex,
)
from spiel_cfr.games.vector.infoset_list import list_infosets
from spiel_cfr.games.vector.layout import Layout, lay_out
from spiel_cfr.games.vector.parts import Parts, PayoffBuilder, parents, whole_numbering
from spiel_cfr.games.vector.public_tree import PLAYERS, PublicTree


class PublicTreeGame(CompiledGame):
  """A game in vector form: `VectorGame` for private types, `poker.PublicGame` for hold'em.

  A new game of this form supplies:

  - a `PublicTree` with the edges and kinds of its nodes, `types`, `num_types`, `terminal_kind`, `first_deals` and
    `saved`;
  - `_builder(layout, above)`, which returns a `PayoffBuilder`: a function of each player's `Numbering` and of some
    terminals that returns the `Payoff` of these terminals. It is called for the whole game and for each part;
  - a constructor that calls this one, `__reduce__` for pickles, and a function that compiles the game.

  This class makes layout, parts, forced moves and infosets. Infostates, which only policies need, are listed on demand.

  Attributes:
    tree: PublicTree. The public tree.
    layout: Layout. The numbers of the tree's sequences and infosets.
  """

  # True if iterations skip infosets with one action.
  _skips_forced: ClassVar[bool] = True

  def __init__(
    self,
    facts: GameFacts,
    tree: PublicTree,
    dtype: npt.DTypeLike,
    num_threads: int | None,
    view: GameView | None,
    original: CompiledGame | None = None,
    map_from_original: AbstractionMap | None = None,
  ) -> None:
    """Numbers the sequences and infosets of the game.

    Args:
      facts: the facts of the game.
      tree: the public tree.
      dtype: the precision of solvers.
      num_threads: number of threads that visit the parts, at most the number of subtrees. With None, solvers take the
        game as a whole.
      view: the view by which the tree was walked; None loads the game again when it is needed.
      original: the original game of an abstraction.
      map_from_original: the map from the original game's sequences to the abstraction's.

    Raises:
      ArgumentError: `num_threads` is given, but the tree has no subtrees.
    """
    self.tree, self._view, self._dtype = tree, view, np.dtype(dtype)
    self.layout = layout = lay_out(tree, num_threads is not None)
    treeplexes = tuple(
      Treeplex(
        root=layout.roots[player],
        end=layout.roots[player + 1],
        first_infoset=int(layout.first_infosets[player, 0]),
        groups=layout.groups[player],
        parent=functools.partial(_parents, layout, player),
      )
      for player in PLAYERS
    )
    super().__init__(facts, treeplexes, original, map_from_original)
    if num_threads is not None and layout.num_parts == 1:
      raise errors.ArgumentError("The public tree has no subtrees, so it can't be partitioned.")
    self._num_threads = None if num_threads is None else min(num_threads, layout.num_parts - 1)

  @abc.abstractmethod
  def _builder(self, layout: Layout, above: Int32s) -> PayoffBuilder:
    """Returns a builder of payoffs, given each player's last edge before terminals, int32 (players, terminals)."""

  @property
  def view(self) -> GameView:
    """The view by which the public tree was walked; see `CompiledGame.view`."""
    if self._view is None:
      self._view = view_of_string(self)
    return self._view

  @property
  def num_threads(self) -> int | None:
    """The number of threads that visit the parts; None if solvers take the game as a whole."""
    return self._num_threads

  @property
  def partition(self) -> Partition | None:
    if self._partition is None and self._num_threads is not None:
      parts = Parts(self.layout, self._builder, skips_forced=self._skips_forced)
      built = [parts.part(number) for number in range(self.layout.num_parts)]
      self._partition = Partition(built, self._num_threads)
      del parts
      # Temporary arrays lie between the parts and take as much memory.
      memory.give_back()
    return self._partition

  @property
  def dtype(self) -> np.dtype[Any]:
    return self._dtype

  @functools.cached_property
  def payoff(self) -> Payoff:
    """The payoff of all terminals. Solvers of a game in parts use the payoffs of the parts instead."""
    return Parts(self.layout, self._builder, skips_forced=False).whole()

  @property
  def num_leaves(self) -> int:
    """Number of terminals of the public tree."""
    return self.num_terminals

  @functools.cached_property
  def decisions(self) -> Decisions:
    """All infosets with more than one action; all infosets if this form does not skip forced moves."""
    every, layout = self.every_infoset, self.layout
    is_choice = every.groups[:, ACTIONS] > 1
    if is_choice.all() or not self._skips_forced:
      return every
    above = self.tree.choices_above()
    parent = np.concatenate(
      [parents(layout, above, whole_numbering(layout, player)) for player in PLAYERS]
    )
    forced, chosen = _forced(every.groups[~is_choice], parent)
    return Decisions(
      payoff=Parts(layout, self._builder, skips_forced=True).whole(),
      player_bounds=every.bounds_of_kept(is_choice),
      groups=every.groups[is_choice],
      parent=parent,
      forced=forced,
      chosen=chosen,
    )

  @functools.cached_property
  def infosets(self) -> tuple[Infosets, ...]:
    """Each player's infosets, listed on demand."""
    return tuple(list_infosets(self.layout, self.view, player) for player in PLAYERS)

  @functools.cached_property
  def digest(self) -> str:
    """SHA-256 of the public tree, of the precision of solvers, and of whether the game is in parts."""
    digest = hashlib.sha256(repr((self.num_threads is not None, self.dtype)).encode())
    for array in self.tree.saved().values():
      digest.update(f"{array.dtype.str} {array.shape}".encode())
      digest.update(array.tobytes())
    return digest.hexdigest()

  @property
  def size(self) -> str:
    """Number of public states, and of infosets of both players."""
    if self._original is not None:
      return super().size
    return f"{self.num_states:,} public states, {super().size} in vector form"

  def memory_estimate(self, action_lines: int = 1) -> int:
    """Returns about how many bytes a solver takes, the game's own arrays included.

    Args:
      action_lines: number of values that the regret minimizer keeps for each action.

    Raises:
      ArgumentError: `action_lines` is not a count.
    """
    action_lines = arguments.integer(action_lines, "action_lines", 0)
    sequences, size = self.layout.roots[-1], self.dtype.itemsize
    # Parents and scales take 6 bytes for each infoset.
    tree = 6 * self.num_infosets
    if self.num_threads is None:
      # Regrets, strategy, sequence form, average, utilities.
      return size * sequences * (4 + action_lines) + tree
    largest = int(np.diff(self.layout.first_sequences, axis=1).max())
    workspaces = size * largest * self.num_threads * 4
    return size * sequences * (2 + action_lines) + tree + workspaces


def threads_of_parts(
  tree: PublicTree, num_threads: int, partitioned: bool | None, most_whole: int
) -> int | None:
  """Returns the number of threads that visit the parts of a game; None if solvers take the game as a whole.

  Args:
    tree: the public tree.
    num_threads: the number of threads that the caller asks for.
    partitioned: whether the game is cut into parts; None for games of more than `most_whole` sequences.
    most_whole: a number of sequences.

  Raises:
    ArgumentError: several threads for a game that is not cut into parts.
  """
  if partitioned is None:
    partitioned = int(tree.num_sequences.sum()) > most_whole
  if not partitioned and num_threads > 1:
    raise errors.ArgumentError(
      f"num_threads={num_threads} is for partitioned games, and this game has a single part. Add partitioned=True."
    )
  return num_threads if partitioned else None


def _parents(layout: Layout, player: int) -> Uint32s:
  """Returns the sequence above each of a player's infosets."""
  return parents(layout, layout.tree.above, whole_numbering(layout, player))


def _forced(groups: Any, parent: Uint32s) -> tuple[Uint32s, Uint32s]:
  """Returns the sequences of groups with one action, and the owner's last choice before each."""
  groups = groups.astype(np.int64)
  forced, infosets = (
    concatenated_ranges(groups[:, begin], groups[:, COUNT])
    for begin in (FIRST_SEQUENCE, FIRST_INFOSET)
  )
  return forced.astype(np.uint32), parent[infosets]
