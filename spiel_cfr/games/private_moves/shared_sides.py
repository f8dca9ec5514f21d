"""Sides of shared subgames: one player's sides of each subgame, and its sequences at the cut in each group.

`subgames` explains the terms with an example, `rectangles` explains sides and classes. A sequence below the root of a
subgame is *paying* if it is in a side.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int32s, Int64s, Integers, Uint32s, taken, unlocked, unpickled
from spiel_cfr._numba.records import Indices
from spiel_cfr.games.private_moves.branches import PlayerBranches
from spiel_cfr.games.private_moves.core_histories import CoreHistories
from spiel_cfr.games.private_moves.cut_groups import Groups


class SubgameSides(NamedTuple):
  """One player's sides of all subgames. Classes and the sides of rectangles are numbered from 0 in each subgame.

  Attributes:
    first_class_of_subgame: uint32 (subgames + 1,). The number of classes of all earlier subgames.
    class_of_root: uint32 (subgames,). The class of the root of each subgame; one past the last class of the subgame if
      the root is in no side.
    first_paying_of_subgame: uint32 (subgames + 1,). The first paying sequence of each subgame.
    class_of_paying: uint32 (paying sequences,). The class of each paying sequence.
    first_side_of_subgame: uint32 (subgames + 1,). The first side of each subgame.
    first_entry_of_side: uint32 (sides + 1,). The first entry of each side.
    class_of_entry: uint32 (entries,). The classes of each side, end to end.
    side_of_rectangle: uint32 (rectangles,). The side of each rectangle.
  """

  first_class_of_subgame: Indices
  class_of_root: Indices
  first_paying_of_subgame: Indices
  class_of_paying: Indices
  first_side_of_subgame: Indices
  first_entry_of_side: Indices
  class_of_entry: Indices
  side_of_rectangle: Indices

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (SubgameSides, *self)


class GroupMembers(NamedTuple):
  """One player's sequences at the cut, group by group, and the sequences of the layout below them.

  Attributes:
    first_bundle_of_group: uint32 (groups + 1,). The first bundle of each group.
    first_position_of_bundle: uint32 (bundles,). The first element of `positions` for each bundle.
    first_member_of_bundle: uint32 (bundles + 1,). The first member of each bundle.
    copy_of_member: uint32 (members,). The copy of each member. Added to a position, it gives the member's sequence.
    root_of_member: uint32 (members,). The member itself: a sequence at the cut.
    positions: uint32 (positions,). The sequence of copy 0 for each paying sequence of a subgame, in its order.
  """

  first_bundle_of_group: Indices
  first_position_of_bundle: Indices
  first_member_of_bundle: Indices
  copy_of_member: Indices
  root_of_member: Indices
  positions: Indices

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (GroupMembers, *self)


class SharedSides(NamedTuple):
  """One player's sides of all subgames, its sequences in all groups, and its sequences at leaves of the trunk.

  Attributes:
    in_subgames: SubgameSides. The sides of subgames.
    sequence_of_leaf: uint32 (leaves,). The player's sequence at each history that ends before the cut.
    in_groups: GroupMembers. The members of groups.
  """

  in_subgames: SubgameSides
  sequence_of_leaf: Indices
  in_groups: GroupMembers

  def __reduce__(self) -> tuple[Any, ...]:
    return _unpickled_sides, tuple(self)

  def arrays(self) -> tuple[Uint32s, ...]:
    """Returns all arrays."""
    return *self.in_subgames, self.sequence_of_leaf, *self.in_groups

  def side_sizes(self) -> Int64s:
    """Returns the number of sequences of each side, in one copy."""
    sides = self.in_subgames
    first_class = sides.first_class_of_subgame.astype(np.int64)
    num_subgames = len(first_class) - 1
    # The class one past the last of a subgame holds a root that is in no side.
    sizes = np.zeros(num_subgames + first_class[-1], np.int64)
    begin = first_class[:-1] + np.arange(num_subgames)
    np.add.at(sizes, begin[owners(sides.first_paying_of_subgame)] + sides.class_of_paying, 1)
    np.add.at(sizes, begin + sides.class_of_root, 1)
    subgame_of_side = owners(sides.first_side_of_subgame)
    subgame_of_entry = np.repeat(subgame_of_side, lengths(sides.first_entry_of_side))
    sums = np.append(0, np.cumsum(sizes[begin[subgame_of_entry] + sides.class_of_entry]))
    return np.diff(sums[sides.first_entry_of_side])

  def group_sequences(self, group: int, subgame: int) -> Int64s:
    """Returns the paying sequences of a group and then the root, for each member; shape (members, sequences)."""
    members, first_paying = self.in_groups, self.in_subgames.first_paying_of_subgame
    num_paying = int(first_paying[subgame + 1]) - int(first_paying[subgame])
    result = []
    for bundle in range(*members.first_bundle_of_group[group : group + 2].tolist()):
      first = int(members.first_position_of_bundle[bundle])
      positions = members.positions[first : first + num_paying].astype(np.int64)
      for member in range(*members.first_member_of_bundle[bundle : bundle + 2].tolist()):
        sequences = positions + members.copy_of_member[member]
        result.append(np.append(sequences, members.root_of_member[member]))
    return np.array(result)


def _unpickled_sides(
  in_subgames: SubgameSides, sequence_of_leaf: Uint32s, in_groups: GroupMembers
) -> SharedSides:
  return SharedSides(in_subgames, unlocked(sequence_of_leaf), in_groups)


def lengths(first: Indices) -> Int64s:
  """Returns the lengths of consecutive ranges, given their beginnings and the last end."""
  numbers = first.astype(np.int64)
  return numbers[1:] - numbers[:-1]


def owners(first: Indices) -> Int64s:
  """Returns the number of the range of each element of consecutive ranges."""
  return np.repeat(np.arange(len(first) - 1), lengths(first))


def paying_sequences(core_histories: CoreHistories, player: int) -> Uint32s:
  """Returns a player's paying sequences of all subgames, ascending."""
  is_paying = core_histories.players[player].classes > 0
  is_paying[core_histories.starts.sequence[player, :-1]] = False
  return _indices(np.flatnonzero(is_paying))


def subgame_sides(core_histories: CoreHistories, player: int, paying: Uint32s) -> SubgameSides:
  """Returns a player's sides of all subgames, given its paying sequences."""
  sides, starts = core_histories.players[player], core_histories.starts
  first_side, root = starts.side[player], starts.sequence[player]
  first_entry = _indices(np.append(0, sides.side_end))
  # Core histories number classes from 1 on, subgame by subgame.
  largest_class = np.append(np.int32(0), np.maximum.accumulate(sides.entries))
  first_class = largest_class[first_entry[first_side]].astype(np.int64)
  del largest_class
  class_of_root = sides.classes[root[:-1]]
  first_paying = np.searchsorted(paying, _indices(root))
  return SubgameSides(
    first_class_of_subgame=_indices(first_class),
    class_of_root=_indices(
      np.where(class_of_root > 0, class_of_root - 1 - first_class[:-1], np.diff(first_class))
    ),
    first_paying_of_subgame=_indices(first_paying),
    class_of_paying=_numbers_in_subgame(
      taken(sides.classes, paying), 1 + first_class, first_paying
    ),
    first_side_of_subgame=_indices(first_side),
    first_entry_of_side=first_entry,
    class_of_entry=_numbers_in_subgame(
      sides.entries, 1 + first_class, first_entry[first_side].astype(np.int64)
    ),
    side_of_rectangle=_numbers_in_subgame(
      core_histories.sides[player], first_side, starts.rectangle
    ),
  )


def _numbers_in_subgame(numbers: Int32s, first_number: Int64s, begin: Int64s) -> Uint32s:
  """Returns numbers that begin at 0 in each subgame.

  Args:
    numbers: int32 (n,). Numbers that go on from one subgame to the next, subgame by subgame.
    first_number: int64 (subgames + 1,). The first number of each subgame.
    begin: int64 (subgames + 1,). The place in `numbers` at which each subgame begins.
  """
  result = _indices(numbers)
  result -= np.repeat(_indices(first_number[:-1]), np.diff(begin))
  return result


def group_members(
  branches: PlayerBranches, groups: Groups, player: int, paying: Uint32s, first_paying: Indices
) -> GroupMembers:
  """Returns a player's members of groups, with sequences of the whole game before their layout.

  Args:
    branches: the player's branches.
    groups: the groups.
    player: the player.
    paying: uint32 (paying sequences,). The paying sequences of all subgames.
    first_paying: uint32 (subgames + 1,). The first paying sequence of each subgame.
  """
  first_position, positions = branches.embed(paying, first_paying.astype(np.int64))
  group, history = groups.members[player]
  place, embedding = branches.place_of_history[history], branches.embedding_of_history[history]
  order = np.lexsort((branches.copy_at_cut[place], embedding, group))
  group, place, embedding = group[order], place[order], embedding[order]
  # Members of one subgame have the same branch if they have the same embedding.
  is_new = (np.diff(group) != 0) | (np.diff(embedding) != 0)
  first_member = np.append(0, 1 + np.flatnonzero(is_new))
  num_groups = len(groups.subgame)
  return GroupMembers(
    first_bundle_of_group=_indices(np.searchsorted(group[first_member], np.arange(num_groups + 1))),
    first_position_of_bundle=_indices(first_position[embedding[first_member]]),
    first_member_of_bundle=_indices(np.append(first_member, len(group))),
    copy_of_member=_indices(branches.copy_at_cut[place]),
    root_of_member=_indices(branches.sequence_at_cut[place]),
    positions=positions,
  )


def _indices(numbers: Integers) -> Uint32s:
  return numbers.astype(np.uint32)
