"""Branches of one player's infosets below the cut. Sequences at the cut that lead to the same subgames share a branch.

The *cut* divides the game, after a number of moves, into the trunk and subgames. A player does not know which subgame
it is in, so its *branch* below a sequence is the union of its infosets in the subgames that can follow. The place of a
subgame in a branch is an *embedding*. `subgames` explains these terms with an example.
"""

import numpy as np

from spiel_cfr._numba.arrays import (
  Int32s,
  Int64s,
  Integers,
  Uint32s,
  concatenated_ranges,
  taken,
)
from spiel_cfr.games.private_moves.merged_sides import WalkedInfosets
from spiel_cfr.games.sequence_form.treeplex import infoset_depths

_ROOT = -1
# The number of embeddings whose sequences are looked up at a time. Each has about a thousand sequences.
_EMBEDDINGS_AT_A_TIME = 1 << 9


class SubgameInfosets:
  """One player's infosets of all subgames, subgame by subgame, in order of discovery.

  The sequences of a subgame are consecutive. The first one is its *root*, the player's sequence at the cut.

  Attributes:
    walked: WalkedInfosets. The infosets.
    num_actions: int32 (infosets,). The number of actions of each infoset.
    first_sequence: int32 (infosets,). The sequence of action 0 of each infoset.
    depth: int32 (infosets,). The number of infosets above each infoset, in its subgame.
    first_infoset_of_subgame: int64 (subgames + 1,). The first infoset of each subgame, then the number of infosets.
    root_of_subgame: int64 (subgames + 1,). The root of each subgame, then the number of sequences.
  """

  def __init__(
    self, walked: WalkedInfosets, first_infoset: Int64s, root: Int64s, num_actions: Int32s
  ) -> None:
    """Takes infosets, the first infoset and the root of each subgame, and the numbers of actions."""
    self.walked, self.num_actions = walked, num_actions
    self.first_infoset_of_subgame, self.root_of_subgame = first_infoset, root
    # The number of roots before the infoset: one for each subgame up to its own.
    num_roots = np.repeat(np.arange(1, len(root)), np.diff(first_infoset))
    first_sequence = num_roots + np.cumsum(num_actions) - num_actions
    self.first_sequence = first_sequence.astype(np.int32)
    del num_roots, first_sequence
    is_root = np.zeros(root[-1], np.bool_)
    is_root[root[:-1]] = True
    infoset_of_sequence = np.full(root[-1], -1, np.int32)
    infoset_of_sequence[~is_root] = np.repeat(
      np.arange(len(num_actions), dtype=np.int32), num_actions
    )
    self.depth = infoset_depths(taken(infoset_of_sequence, walked.parent))

  @property
  def num_subgames(self) -> int:
    """Number of subgames."""
    return len(self.root_of_subgame) - 1

  def subgame_of(self, infosets: Integers) -> Int64s:
    """Returns the subgame of each of some infosets."""
    result: Int64s = np.searchsorted(self.first_infoset_of_subgame, infosets, side="right") - 1
    return result


class _Union:
  """Branches, merged one after the other from the infosets of their subgames.

  Infosets of two subgames are one infoset of the branch if they are below the same sequence of the branch, and the
  player has seen the same at them.

  Attributes:
    image: int32 (images,). The sequence of the branch that each sequence of its subgames becomes: branch by branch,
      then subgame by subgame. The roots of subgames are left out.
    parents: list of int32 arrays. The sequence of the branch above each infoset, or `_ROOT`.
    witnesses: list of int32 arrays. One of the infosets of subgames that were merged into each infoset.
    sizes: list of int. The number of infosets of each branch.
  """

  def __init__(self, subgames: SubgameInfosets, num_images: int) -> None:
    """Begins without branches; `num_images` is the length of `image` with all branches."""
    self._subgames = subgames
    self._num_seen = 1 + int(subgames.walked.seen.max(initial=0))
    # The sequence of the current branch for each sequence of its subgames.
    self._current_image = np.zeros(subgames.root_of_subgame[-1], np.int32)
    self._num_sequences = self._num_images = 0
    none: Int32s = np.zeros(0, np.int32)
    self.image = np.empty(num_images, np.int32)
    self.parents, self.witnesses, self.sizes = [none], [none], list[int]()

  def add_branch(self, subgames: Int64s) -> None:
    """Adds the union of some subgames, from the infosets below the roots downwards."""
    root, first_infoset = self._subgames.root_of_subgame, self._subgames.first_infoset_of_subgame
    self._current_image[root[subgames]] = _ROOT
    infosets = concatenated_ranges(
      first_infoset[subgames], first_infoset[subgames + 1] - first_infoset[subgames]
    )
    depth = self._subgames.depth[infosets]
    num_merged = [
      self._merge(infosets[depth == level]) for level in range(1 + int(depth.max(initial=-1)))
    ]
    self.sizes.append(sum(num_merged))
    below_roots = concatenated_ranges(root[subgames] + 1, root[subgames + 1] - root[subgames] - 1)
    begin, self._num_images = self._num_images, self._num_images + len(below_roots)
    self.image[begin : self._num_images] = self._current_image[below_roots]

  def _merge(self, infosets: Int64s) -> int:
    """Merges infosets of one depth, and returns the number of infosets that they become."""
    subgames = self._subgames
    parent = self._current_image[subgames.walked.parent[infosets]].astype(np.int64)
    keys: Int64s = (1 + parent) * self._num_seen + subgames.walked.seen[infosets]
    keys, first, merged = np.unique(keys, return_index=True, return_inverse=True)
    witness = infosets[first]
    num_actions = subgames.num_actions[witness]
    first_sequence = self._num_sequences + np.cumsum(num_actions) - num_actions
    self._num_sequences += int(num_actions.sum())
    num_actions = subgames.num_actions[infosets]
    action_sequences = concatenated_ranges(subgames.first_sequence[infosets], num_actions)
    self._current_image[action_sequences] = concatenated_ranges(first_sequence[merged], num_actions)
    self.parents.append((keys // self._num_seen - 1).astype(np.int32))
    self.witnesses.append(witness.astype(np.int32))
    return len(keys)


class PlayerBranches:
  """One player's branches, their copies, and the embeddings of subgames in them.

  A branch has a copy below each sequence at the cut that leads to it. Infosets and sequences of branches are numbered
  branch by branch, without roots. The whole game numbers sequences infoset by infoset; within an infoset, copy by
  copy; and within a copy, action by action. If an infoset with actions l and r has two copies, below
  sequences a and b, then the order is l below a, r below a, l below b, r below b: `stride` is 2.

  Attributes:
    subgames: SubgameInfosets. The infosets that are merged.
    sequence_at_cut: int64 (sequences at the cut,). The player's sequences at the cut, ascending.
    branch_at_cut: int64 (sequences at the cut,). The branch below each sequence at the cut.
    copy_at_cut: int64 (sequences at the cut,). The number of each sequence at the cut among those with its branch.
    place_of_history: int64 (histories,). The place in `sequence_at_cut` of the sequence of each history at the cut.
    embedding_of_history: int64 (histories,). The embedding of the subgame of each history at the cut.
    embeddings: int64 (embeddings,). A key of each pair of a branch and a subgame in it, ascending: the branch's
      number times the number of subgames, plus the subgame's number.
    first_image: int64 (embeddings,). The first element of each embedding in `image`.
    image: int32 (images,). The sequence of the branch for each sequence below the root of the embedded subgame,
      embedding by embedding.
    parent: int32 (infosets,). The sequence of the branch above each infoset, or `_ROOT`.
    witness: int32 (infosets,). One of the infosets of subgames that were merged into each infoset.
    branch: int32 (infosets,). The branch of each infoset.
    num_copies: int64 (infosets,). The number of copies of each infoset.
    copy_0: uint32 (sequences,). The number of the first copy of each sequence in the whole game.
    stride: int32 (sequences,). The distance from one copy of a sequence to the next.
  """

  def __init__(
    self,
    subgames: SubgameInfosets,
    sequence_of_history: Int64s,
    subgame_of_history: Int64s,
    num_trunk_sequences: int,
  ) -> None:
    """Takes infosets of subgames, the player's sequence and the subgame of each history at the cut.

    The numbers of the sequences of branches begin at `num_trunk_sequences`.
    """
    self.subgames = subgames
    self.sequence_at_cut, self.place_of_history = np.unique(
      sequence_of_history, return_inverse=True
    )
    subgames_of_branch = self._find_branches(subgame_of_history)
    self._count_copies()
    self.embeddings = np.concatenate(
      [
        branch * subgames.num_subgames + embedded
        for branch, embedded in enumerate(subgames_of_branch)
      ]
    )
    self.embedding_of_history = self._embedding(
      self.branch_at_cut[self.place_of_history], subgame_of_history
    )
    self._merge(subgames_of_branch)
    self._number_sequences(num_trunk_sequences)

  def _find_branches(self, subgame_of_history: Int64s) -> list[Int64s]:
    """Numbers the branches, and returns the subgames of each one."""
    num_subgames = self.subgames.num_subgames
    pairs = np.unique(self.place_of_history * num_subgames + subgame_of_history)
    place, subgame = np.divmod(pairs, num_subgames)
    numbers: dict[bytes, int] = {}
    self.branch_at_cut = np.array(
      [
        numbers.setdefault(of_sequence.tobytes(), len(numbers))
        for of_sequence in np.split(subgame, np.flatnonzero(np.diff(place)) + 1)
      ]
    )
    return [np.frombuffer(of_branch, np.int64) for of_branch in numbers]

  def _count_copies(self) -> None:
    """Numbers the sequences at the cut that have the same branch."""
    num_copies = self._num_copies_of_branch = np.bincount(self.branch_at_cut)
    self._places_by_branch = np.argsort(self.branch_at_cut, kind="stable")
    self._first_of_branch = np.cumsum(num_copies) - num_copies
    self.copy_at_cut = np.zeros(len(self.sequence_at_cut), np.int64)
    self.copy_at_cut[self._places_by_branch] = concatenated_ranges(
      np.zeros_like(num_copies), num_copies
    )

  def _embedding(self, branch: Integers, subgame: Int64s) -> Int64s:
    """Returns the embeddings of subgames in branches."""
    keys = branch.astype(np.int64) * self.subgames.num_subgames + subgame
    result: Int64s = np.searchsorted(self.embeddings, keys)
    return result

  def _merge(self, subgames_of_branch: list[Int64s]) -> None:
    """Makes the infosets of the branches."""
    num_images = (np.diff(self.subgames.root_of_subgame) - 1)[self.embedded_subgames()]
    self.first_image = np.cumsum(num_images) - num_images
    union = _Union(self.subgames, int(num_images.sum()))
    for subgames in subgames_of_branch:
      union.add_branch(subgames)
    self.image = union.image
    self.parent, self.witness = np.concatenate(union.parents), np.concatenate(union.witnesses)
    self.branch = np.repeat(np.arange(len(union.sizes), dtype=np.int32), union.sizes)
    self.num_copies = self._num_copies_of_branch[self.branch]

  def _number_sequences(self, num_trunk_sequences: int) -> None:
    """Numbers the sequences of all copies in the whole game."""
    num_actions = self.subgames.num_actions[self.witness]
    num_sequences = self.num_copies * num_actions
    first = num_trunk_sequences + np.cumsum(num_sequences) - num_sequences
    self.copy_0 = concatenated_ranges(first, num_actions).astype(np.uint32)
    self.stride = np.repeat(num_actions, num_actions)

  def embedded_subgames(self) -> Int64s:
    """Returns the subgame of each embedding."""
    return self.embeddings % self.subgames.num_subgames

  def copied_infosets(self) -> tuple[Int64s, Int64s]:
    """Returns the infoset and the copy of each infoset below the cut, in the order of the whole game."""
    infoset = np.repeat(np.arange(len(self.num_copies)), self.num_copies)
    return infoset, concatenated_ranges(np.zeros_like(self.num_copies), self.num_copies)

  def parents(self, infoset: Int64s, copy: Int64s) -> Int64s:
    """Returns the sequence of the whole game above each copy of an infoset."""
    first = self._first_of_branch[self.branch[infoset]]
    result: Int64s = self.sequence_at_cut[self._places_by_branch[first + copy]]
    inner = np.flatnonzero(self.parent[infoset] != _ROOT)
    result[inner] = self._sequences(self.parent[infoset[inner]], copy[inner])
    return result

  def histories(self) -> tuple[Int64s, Int64s]:
    """Returns a history at the cut for each copy of an infoset. It leads to the subgame of the infoset's witness.

    Returns:
      int64 (infosets,). The element of copy 0 of each infoset in the second array; those of other copies follow.
      int64 (embeddings and copies,). A history.
    """
    num_copies = self._num_copies_of_branch[self.embeddings // self.subgames.num_subgames]
    first_of_embedding = np.cumsum(num_copies) - num_copies
    history = np.zeros(num_copies.sum(), np.int64)
    history[
      first_of_embedding[self.embedding_of_history] + self.copy_at_cut[self.place_of_history]
    ] = np.arange(len(self.place_of_history))
    embedding = self._embedding(self.branch, self.subgames.subgame_of(self.witness))
    return first_of_embedding[embedding], history

  def sequences_after(self, history: Int64s, sequence: Integers, subgame: Int64s) -> Int64s:
    """Returns sequences of the whole game for sequences of subgames.

    Args:
      history: int64 (n,). Histories at the cut.
      sequence: integers (n,). A sequence of the subgame below each history.
      subgame: int64 (n,). That subgame.
    """
    place = self.place_of_history[history]
    result: Int64s = self.sequence_at_cut[place]
    below_root = sequence.astype(np.int64) - self.subgames.root_of_subgame[subgame]
    inner = np.flatnonzero(below_root)
    first_image = self.first_image[self.embedding_of_history[history[inner]]]
    result[inner] = self._sequences(
      self.image[first_image + below_root[inner] - 1], self.copy_at_cut[place[inner]]
    )
    return result

  def _sequences(self, sequences: Integers, copies: Int64s) -> Int64s:
    """Returns the numbers of copies of sequences in the whole game."""
    result: Int64s = self.copy_0[sequences] + copies * self.stride[sequences]
    return result

  def embed(self, paying: Uint32s, first_paying: Int64s) -> tuple[Int64s, Uint32s]:
    """Returns the paying sequences of all embedded subgames as sequences of the whole game.

    Args:
      paying: uint32 (paying sequences,). The paying sequences of all subgames.
      first_paying: int64 (subgames + 1,). The first paying sequence of each subgame.

    Returns:
      int64 (embeddings,). The first element of each embedding in the second array.
      uint32 (elements,). The number of each paying sequence in copy 0 of its branch, embedding by embedding.
    """
    subgame, root = self.embedded_subgames(), self.subgames.root_of_subgame
    num_paying = np.diff(first_paying)[subgame]
    first = np.cumsum(num_paying) - num_paying
    # From a sequence of a subgame to its place in `image`.
    shift = self.first_image - root[:-1][subgame] - 1
    result = np.empty(num_paying.sum(), np.uint32)
    for begin in range(0, len(subgame), _EMBEDDINGS_AT_A_TIME):
      some = slice(begin, begin + _EMBEDDINGS_AT_A_TIME)
      count = num_paying[some]
      sequences = paying[concatenated_ranges(first_paying[subgame[some]], count)]
      image = self.image[sequences + np.repeat(shift[some], count)]
      result[first[begin] : first[begin] + len(sequences)] = self.copy_0[image]
    return first, result
