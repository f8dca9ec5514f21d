"""Subtrees of shared subgames: one player's infosets below the cut, kept once for all sequences with the same subgames.

`subgames` explains the terms with an example.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int32s, Int64s, Integers, concatenated_ranges
from spiel_cfr.games.private_moves.merged_rows import PlayerRows
from spiel_cfr.games.sequence_form.treeplex import infoset_depths

_ROOT = -1


class SubgameInfosets:
  """One player's infosets of all subgames, subgame by subgame, as the walks over core histories found them.

  The sequences of a subgame are consecutive. The first one is its *root*, the player's sequence at the cut.

  Attributes:
    walked: PlayerRows. The infosets, and the rows of sequences with payoffs.
    num_actions: int64 (infosets,). The number of actions of each infoset.
    first_sequence: int64 (infosets,). The sequence of action 0 of each infoset.
    depth: int64 (infosets,). The number of infosets above each infoset, in its subgame.
    first_infoset_of_subgame: int64 (subgames + 1,). The first infoset of each subgame, then the number of infosets.
    root_of_subgame: int64 (subgames + 1,). The root of each subgame, then the number of sequences.
  """

  def __init__(
    self, walked: PlayerRows, first_infoset: Int64s, root: Int64s, num_actions: Int64s
  ) -> None:
    """Takes infosets and rows, the first infoset and the root of each subgame, and the numbers of actions."""
    self.walked, self.num_actions = walked, num_actions
    self.first_infoset_of_subgame, self.root_of_subgame = first_infoset, root
    subgame = np.repeat(np.arange(len(root) - 1), np.diff(first_infoset))
    # Each subgame up to the infoset's own has a root before it.
    self.first_sequence = 1 + subgame + np.cumsum(num_actions) - num_actions
    infoset_of_sequence = np.full(root[-1], -1)
    action_sequences = concatenated_ranges(self.first_sequence, num_actions)
    infoset_of_sequence[action_sequences] = np.repeat(np.arange(len(num_actions)), num_actions)
    self.depth = infoset_depths(infoset_of_sequence[walked.parent])

  @property
  def num_subgames(self) -> int:
    """Number of subgames."""
    return len(self.root_of_subgame) - 1

  def subgame_of(self, infosets: Int64s) -> Int64s:
    """Returns the subgame of each of some infosets."""
    result: Int64s = np.searchsorted(self.first_infoset_of_subgame, infosets, side="right") - 1
    return result

  def paying_sequences(self) -> Int64s:
    """Returns the sequences below a root that are in a row, so that the game can end at them with a payoff."""
    is_paying = self.walked.classes > 0
    is_paying[self.root_of_subgame[:-1]] = False
    return np.flatnonzero(is_paying)


class _Union:
  """Subtrees, merged one after the other from the infosets of their subgames.

  Infosets of two subgames are one infoset of the subtree if they are below the same sequence of the subtree, and the
  player has seen the same at them.

  Attributes:
    images: list of int32 arrays. For each subtree, the sequence of the subtree for each sequence below the roots of its
      subgames, subgame by subgame.
    parents: list of int64 arrays. The sequence of the subtree above each infoset, or `_ROOT`.
    witnesses: list of int64 arrays. One of the infosets of subgames that were merged into each infoset.
    sizes: list of int. The number of infosets of each subtree.
  """

  def __init__(self, subgames: SubgameInfosets) -> None:
    """Begins without subtrees."""
    self._subgames = subgames
    self._num_seen = 1 + int(subgames.walked.seen.max(initial=0))
    # The sequence of the current subtree for each sequence of its subgames.
    self._image = np.zeros(subgames.root_of_subgame[-1], np.int64)
    self._num_sequences = 0
    none: Int64s = np.zeros(0, np.int64)
    self.images: list[Int32s] = []
    self.parents, self.witnesses, self.sizes = [none], [none], list[int]()

  def add_subtree(self, subgames: Int64s) -> None:
    """Adds the union of some subgames, from the infosets below the roots downwards."""
    root, first_infoset = self._subgames.root_of_subgame, self._subgames.first_infoset_of_subgame
    self._image[root[subgames]] = _ROOT
    infosets = concatenated_ranges(
      first_infoset[subgames], first_infoset[subgames + 1] - first_infoset[subgames]
    )
    depth = self._subgames.depth[infosets]
    num_merged = [
      self._merge(infosets[depth == level]) for level in range(1 + int(depth.max(initial=-1)))
    ]
    self.sizes.append(sum(num_merged))
    below_roots = concatenated_ranges(root[subgames] + 1, root[subgames + 1] - root[subgames] - 1)
    self.images.append(self._image[below_roots].astype(np.int32))

  def _merge(self, infosets: Int64s) -> int:
    """Merges infosets of one depth, and returns the number of infosets that they become."""
    subgames = self._subgames
    parent = self._image[subgames.walked.parent[infosets]]
    seen: Int64s = subgames.walked.seen[infosets].astype(np.int64)
    keys: Int64s = (1 + parent) * self._num_seen + seen
    keys, first, merged = np.unique(keys, return_index=True, return_inverse=True)
    witness = infosets[first]
    num_actions = subgames.num_actions[witness]
    first_sequence = self._num_sequences + np.cumsum(num_actions) - num_actions
    self._num_sequences += int(num_actions.sum())
    num_actions = subgames.num_actions[infosets]
    action_sequences = concatenated_ranges(subgames.first_sequence[infosets], num_actions)
    self._image[action_sequences] = concatenated_ranges(first_sequence[merged], num_actions)
    self.parents.append(keys // self._num_seen - 1)
    self.witnesses.append(witness)
    return len(keys)


class Images(NamedTuple):
  """Sequences of the whole game for the paying sequences of a subgame, embedding by embedding.

  Attributes:
    first: int64 (embeddings,). The first element of each embedding in `copy_0`.
    copy_0: int64 (images,). The sequence of copy 0 for each paying sequence of the embedded subgame.
  """

  first: Int64s
  copy_0: Int64s


class PlayerSubtrees:
  """One player's subtrees, their copies, and the embeddings of subgames in them.

  Infosets and sequences are numbered subtree by subtree, without roots. In the whole game, infoset follows infoset,
  each with all its copies, and each copy with all its actions. If an infoset with actions l and r has two copies, below
  sequences a and b, then the order is l below a, r below a, l below b, r below b: `stride` is 2.

  Attributes:
    subgames: SubgameInfosets. The infosets that are merged.
    sequence_at_cut: int64 (sequences at the cut,). The player's sequences at the cut, ascending.
    subtree_at_cut: int64 (sequences at the cut,). The subtree below each sequence at the cut.
    copy_at_cut: int64 (sequences at the cut,). The number of each sequence at the cut among those with its subtree.
    place_of_history: int64 (histories,). The place in `sequence_at_cut` of the sequence of each history at the cut.
    embedding_of_history: int64 (histories,). The embedding of the subgame of each history at the cut.
    embeddings: int64 (embeddings,). Subtree times the number of subgames, plus subgame; ascending.
    first_image: int64 (embeddings,). The first element of each embedding in `image`.
    image: int32 (images,). The sequence of the subtree for each sequence below the root of the embedded subgame,
      embedding by embedding.
    parent: int64 (infosets,). The sequence of the subtree above each infoset, or `_ROOT`.
    witness: int64 (infosets,). One of the infosets of subgames that were merged into each infoset.
    subtree: int64 (infosets,). The subtree of each infoset.
    num_copies: int64 (infosets,). The number of copies of each infoset.
    copy_0: int64 (sequences,). The number of the first copy of each sequence in the whole game.
    stride: int64 (sequences,). The distance from one copy of a sequence to the next.
  """

  def __init__(
    self,
    subgames: SubgameInfosets,
    sequence_of_history: Int64s,
    subgame_of_history: Int64s,
    num_trunk_sequences: int,
  ) -> None:
    """Takes infosets of subgames, the player's sequence and the subgame of each history at the cut.

    The numbers of the sequences of subtrees begin at `num_trunk_sequences`.
    """
    self.subgames = subgames
    self.sequence_at_cut, self.place_of_history = np.unique(
      sequence_of_history, return_inverse=True
    )
    subgames_of_subtree = self._find_subtrees(subgame_of_history)
    self._count_copies()
    self.embeddings = np.concatenate(
      [
        subtree * subgames.num_subgames + embedded
        for subtree, embedded in enumerate(subgames_of_subtree)
      ]
    )
    self.embedding_of_history = self._embedding(
      self.subtree_at_cut[self.place_of_history], subgame_of_history
    )
    self._merge(subgames_of_subtree)
    self._number_sequences(num_trunk_sequences)

  def _find_subtrees(self, subgame_of_history: Int64s) -> list[Int64s]:
    """Numbers the subtrees, and returns the subgames of each one."""
    num_subgames = self.subgames.num_subgames
    pairs = np.unique(self.place_of_history * num_subgames + subgame_of_history)
    place, subgame = np.divmod(pairs, num_subgames)
    numbers: dict[bytes, int] = {}
    self.subtree_at_cut = np.array(
      [
        numbers.setdefault(of_sequence.tobytes(), len(numbers))
        for of_sequence in np.split(subgame, np.flatnonzero(np.diff(place)) + 1)
      ]
    )
    return [np.frombuffer(of_subtree, np.int64) for of_subtree in numbers]

  def _count_copies(self) -> None:
    """Numbers the sequences at the cut that have the same subtree."""
    num_copies = self._num_copies_of_subtree = np.bincount(self.subtree_at_cut)
    self._places_by_subtree = np.argsort(self.subtree_at_cut, kind="stable")
    self._first_of_subtree = np.cumsum(num_copies) - num_copies
    self.copy_at_cut = np.zeros(len(self.sequence_at_cut), np.int64)
    self.copy_at_cut[self._places_by_subtree] = concatenated_ranges(
      np.zeros_like(num_copies), num_copies
    )

  def _embedding(self, subtree: Int64s, subgame: Int64s) -> Int64s:
    """Returns the embeddings of subgames in subtrees."""
    keys = subtree * self.subgames.num_subgames + subgame
    result: Int64s = np.searchsorted(self.embeddings, keys)
    return result

  def _merge(self, subgames_of_subtree: list[Int64s]) -> None:
    """Makes the infosets of the subtrees."""
    union = _Union(self.subgames)
    for subgames in subgames_of_subtree:
      union.add_subtree(subgames)
    self.parent, self.witness = np.concatenate(union.parents), np.concatenate(union.witnesses)
    self.subtree = np.repeat(np.arange(len(union.sizes)), union.sizes)
    self.num_copies = self._num_copies_of_subtree[self.subtree]
    self.image = np.concatenate(union.images)
    num_images = (np.diff(self.subgames.root_of_subgame) - 1)[self.embedded_subgames()]
    self.first_image = np.cumsum(num_images) - num_images

  def _number_sequences(self, num_trunk_sequences: int) -> None:
    """Numbers the sequences of all copies in the whole game."""
    num_actions = self.subgames.num_actions[self.witness]
    num_sequences = self.num_copies * num_actions
    first = num_trunk_sequences + np.cumsum(num_sequences) - num_sequences
    self.copy_0 = concatenated_ranges(first, num_actions)
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
    first = self._first_of_subtree[self.subtree[infoset]]
    result: Int64s = self.sequence_at_cut[self._places_by_subtree[first + copy]]
    inner = np.flatnonzero(self.parent[infoset] != _ROOT)
    result[inner] = self._sequences(self.parent[infoset[inner]], copy[inner])
    return result

  def histories(self, infoset: Int64s, copy: Int64s) -> Int64s:
    """Returns a history at the cut for each copy of an infoset. It leads to the subgame of the infoset's witness."""
    # First a history for each embedding and copy.
    num_copies = self._num_copies_of_subtree[self.embeddings // self.subgames.num_subgames]
    first_of_embedding = np.cumsum(num_copies) - num_copies
    history = np.zeros(num_copies.sum(), np.int64)
    history[
      first_of_embedding[self.embedding_of_history] + self.copy_at_cut[self.place_of_history]
    ] = np.arange(len(self.place_of_history))
    embedding = self._embedding(self.subtree, self.subgames.subgame_of(self.witness))
    result: Int64s = history[first_of_embedding[embedding][infoset] + copy]
    return result

  def sequences_after(self, history: Int64s, walked: Integers, subgame: Int64s) -> Int64s:
    """Returns sequences of the whole game for sequences that the walk of a subgame found.

    Args:
      history: int64 (n,). Histories at the cut.
      walked: integers (n,). A sequence of the subgame below each history, as numbered by the walks.
      subgame: int64 (n,). That subgame.
    """
    place = self.place_of_history[history]
    result: Int64s = self.sequence_at_cut[place]
    below_root = walked.astype(np.int64) - self.subgames.root_of_subgame[subgame]
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

  def paying_images(self) -> Images:
    """Returns the sequences of the whole game that the paying sequences of subgames become."""
    subgame, root = self.embedded_subgames(), self.subgames.root_of_subgame
    paying = self.subgames.paying_sequences()
    first_paying = np.searchsorted(paying, root)
    num_paying = np.diff(first_paying)[subgame]
    walked = paying[concatenated_ranges(first_paying[subgame], num_paying)]
    shift = self.first_image - root[:-1][subgame] - 1
    image = self.image[walked + np.repeat(shift, num_paying)]
    return Images(np.cumsum(num_paying) - num_paying, self.copy_0[image])
