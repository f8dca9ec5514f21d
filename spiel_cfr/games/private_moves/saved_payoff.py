"""Files of payoffs in private moves form: the arrays that are written, and the checks of arrays that are read.

A file of rectangles has classes in order of discovery, and loading lays them out. A file of shared rectangles has the
sequences of the layout, since loading repeats the layout bit for bit. Kernels don't check indices, so all are checked
here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import (
  Float64s,
  Int32s,
  Int64s,
  Uint32s,
  require,
  require_array,
  require_between,
  taken,
)
from spiel_cfr._util import files
from spiel_cfr.games.private_moves.rectangles import DiscoveredSides, Rectangles
from spiel_cfr.games.private_moves.shared_rectangles import SharedRectangles
from spiel_cfr.games.private_moves.shared_sides import (
  GroupMembers,
  SharedSides,
  SubgameSides,
  lengths,
  owners,
)
from spiel_cfr.games.sequence_form.treeplex import Placement, Treeplex


def check_constant_sum(payoffs: Float64s, constant_sum: float | None) -> None:
  """Checks that the payoffs of both players sum to the constant of the game.

  Payoffs are multiplied by chance's probabilities, so a sum is a probability times the constant.

  Raises:
    ValueError: they do not.
  """
  if constant_sum is None:
    return
  sums = payoffs.sum(axis=0)
  if constant_sum:
    require((sums / constant_sum > 0) & (sums / constant_sum <= 1 + 1e-9), "payoffs sum to it")
  else:
    require(np.abs(sums) <= 1e-9 * np.abs(payoffs).max(initial=1.0), "payoffs sum to 0")


def rectangle_arrays(payoff: Rectangles, places: Sequence[Int64s]) -> files.Arrays:
  """Returns the arrays of a file of rectangles.

  Args:
    payoff: the payoffs.
    places: for each player, int64 (sequences,). The place of each sequence in `PlacedSides.class_of_sequence`, in order
      of discovery.
  """
  arrays: files.Arrays = {
    "sides": np.stack([sides.side_of_rectangle for sides in payoff.sides]).astype(np.int32),
    "payoffs": payoff.payoffs,
  }
  for player, sides in enumerate(payoff.sides):
    arrays |= {
      f"{player}.classes": sides.class_of_sequence[places[player]].astype(np.int32),
      f"{player}.side_end": sides.first_entry_of_side[1:].astype(np.int64),
      f"{player}.entries": sides.class_of_entry.astype(np.int32),
    }
  return arrays


def discovered_rectangles(
  arrays: Mapping[str, Any], num_sequences: Sequence[int]
) -> tuple[tuple[DiscoveredSides, DiscoveredSides], Float64s]:
  """Returns both players' sides, and the payoffs of rectangles, from a file's arrays.

  Args:
    arrays: the file's arrays.
    num_sequences: the number of sequences of each player.

  Raises:
    KeyError: an array is missing.
    ValueError: `rectangle_arrays` can't have returned an array.
  """
  side_of_rectangle, payoffs = arrays["sides"], arrays["payoffs"]
  require_array(side_of_rectangle, "sides", np.int32, 2, -1)
  require_array(payoffs, "payoffs", np.float64, *side_of_rectangle.shape)
  first, second = (
    _sides(arrays, player, num_sequences[player], side_of_rectangle[player]) for player in (0, 1)
  )
  return (first, second), payoffs


def _sides(
  arrays: Mapping[str, Any], player: int, num_sequences: int, side_of_rectangle: Int32s
) -> DiscoveredSides:
  """Returns a player's sides, given its number of sequences and the side of each rectangle."""
  classes, side_end, entries = (
    arrays[f"{player}.{name}"] for name in ("classes", "side_end", "entries")
  )
  require_array(classes, "classes", np.int32, num_sequences)
  require_array(side_end, "side_end", np.int64, -1)
  require_array(entries, "entries", np.int32, -1)
  require(np.diff(side_end, prepend=0) >= 0, "sides end after they begin")
  require(len(entries) == (side_end[-1] if len(side_end) else 0), "entries are those of sides")
  require((classes >= 0) & (classes <= num_sequences), "sequences have classes")
  require((entries > 0) & (entries <= classes.max()), "sides have classes")
  require((side_of_rectangle >= 0) & (side_of_rectangle < len(side_end)), "rectangles have sides")
  return DiscoveredSides(classes, side_end, entries, side_of_rectangle)


def shared_arrays(payoff: SharedRectangles) -> files.Arrays:
  """Returns the arrays of a file of shared rectangles: those of the payoffs, as they are."""
  arrays: files.Arrays = {
    "subgame_of_group": payoff.subgame_of_group,
    "reach_of_group": payoff.reach_of_group,
    "first_rectangle_of_subgame": payoff.first_rectangle_of_subgame,
    "payoff": payoff.payoff,
    "payoffs": payoff.payoffs,
  }
  for player, sides in enumerate(payoff.sides):
    columns = sides.in_subgames._asdict() | sides.in_groups._asdict()
    columns["sequence_of_leaf"] = sides.sequence_of_leaf
    arrays |= {f"{player}.{name}": array for name, array in columns.items()}
  return arrays


def placed_shared_rectangles(
  arrays: Mapping[str, Any], placements: Sequence[Placement]
) -> SharedRectangles:
  """Returns the payoffs of a file's arrays, given the layout of both players' infosets.

  Raises:
    KeyError: an array is missing.
    ValueError: `shared_arrays` can't have returned an array for such a layout.
  """
  subgame_of_group, reach, first_rectangle, payoff, payoffs = (
    arrays[name]
    for name in (
      "subgame_of_group",
      "reach_of_group",
      "first_rectangle_of_subgame",
      "payoff",
      "payoffs",
    )
  )
  require_array(first_rectangle, "first_rectangle_of_subgame", np.uint32, -1)
  require(len(first_rectangle) > 0, "there is a last rectangle")
  require_array(subgame_of_group, "subgame_of_group", np.uint32, -1)
  require(subgame_of_group < len(first_rectangle) - 1, "groups have subgames")
  require_array(reach, "reach_of_group", np.float64, len(subgame_of_group))
  require((reach > 0) & (reach <= 1 + 1e-9), "groups have probabilities")
  require_array(payoffs, "payoffs", np.float64, 2, -1)
  treeplexes = [placed.treeplex for placed in placements]
  first, second = (
    _shared_sides(arrays, player, treeplexes[player], first_rectangle, subgame_of_group)
    for player in (0, 1)
  )
  num_leaves = len(first.sequence_of_leaf)
  require(len(second.sequence_of_leaf) == num_leaves, "leaves have sequences of both players")
  num_rectangles = len(first.in_subgames.side_of_rectangle)
  require_array(payoff, "payoff", np.uint32, num_rectangles + num_leaves)
  require_between(payoff, 0, payoffs.shape[1], "rectangles and leaves have payoffs")
  return SharedRectangles(
    sides=(first, second),
    subgame_of_group=subgame_of_group,
    reach_of_group=reach,
    first_rectangle_of_subgame=first_rectangle,
    payoff=payoff,
    payoffs=payoffs,
    treeplexes=treeplexes,
  )


def _shared_sides(
  arrays: Mapping[str, Any],
  player: int,
  tree: Treeplex,
  first_rectangle: Uint32s,
  subgame_of_group: Uint32s,
) -> SharedSides:
  """Returns a player's sides, given its treeplex, the first rectangle of each subgame and the subgame of each group."""
  in_subgames = SubgameSides(*(arrays[f"{player}.{name}"] for name in SubgameSides._fields))
  in_groups = GroupMembers(*(arrays[f"{player}.{name}"] for name in GroupMembers._fields))
  sequence_of_leaf = arrays[f"{player}.sequence_of_leaf"]
  for record in (in_subgames, in_groups):
    for name, array in record._asdict().items():
      require_array(array, name, np.uint32, -1)
  require_array(sequence_of_leaf, "sequence_of_leaf", np.uint32, -1)
  num_in_row = _remaining_in_row(tree)
  require(sequence_of_leaf < tree.end, "leaves have sequences")
  require(num_in_row[sequence_of_leaf] > 0, "leaves have sequences of their player")
  _check_subgame_sides(in_subgames, first_rectangle)
  num_paying = lengths(in_subgames.first_paying_of_subgame)
  _check_members(in_groups, num_paying[subgame_of_group], num_in_row)
  return SharedSides(in_subgames, sequence_of_leaf, in_groups)


def _remaining_in_row(tree: Treeplex) -> Int32s:
  """Returns the number of sequences from each one up to the end of its row in the layout; 0 for padding.

  Returns:
    int32 (end of the treeplex,).
  """
  result = np.zeros(tree.end, np.int32)
  result[tree.root] = 1
  for first, stride, count, actions, *_ in tree.groups.astype(np.int64).tolist():
    for begin in range(first, first + stride * actions, stride):
      result[begin : begin + count] = np.arange(count, 0, -1)
  return result


def _check_ranges(first: Uint32s, count: int, end: int, shortest: int, what: str) -> None:
  """Checks the beginnings of consecutive ranges, and their end.

  Args:
    first: uint32. The beginnings, and the last end.
    count: the number of ranges.
    end: the last end.
    shortest: the least length of a range.
    what: name of the ranges in messages.
  """
  require(len(first) == count + 1, f"there are {count} ranges of {what}")
  require(first[0] == 0 and first[-1] == end, f"{what} are in ranges")
  require(first[1:] >= first[:-1], f"ranges of {what} ascend")
  require(lengths(first) >= shortest, f"ranges of {what} are not empty")


def _check_subgame_sides(sides: SubgameSides, first_rectangle: Uint32s) -> None:
  """Checks the sides of subgames, given the first rectangle of each subgame."""
  count, num_sides = len(first_rectangle) - 1, len(sides.first_entry_of_side) - 1
  _check_ranges(first_rectangle, count, len(sides.side_of_rectangle), 0, "rectangles")
  _check_ranges(
    sides.first_paying_of_subgame, count, len(sides.class_of_paying), 0, "paying sequences"
  )
  _check_ranges(sides.first_side_of_subgame, count, num_sides, 0, "sides")
  _check_ranges(sides.first_entry_of_side, num_sides, len(sides.class_of_entry), 0, "entries")
  num_classes_in_all = int(sides.first_class_of_subgame[-1]) if count else 0
  _check_ranges(sides.first_class_of_subgame, count, num_classes_in_all, 0, "classes")
  num_classes = lengths(sides.first_class_of_subgame)
  num_paying = lengths(sides.first_paying_of_subgame)
  num_sides_of_subgame = lengths(sides.first_side_of_subgame)
  require(num_classes <= num_paying + 1, "classes have sequences")
  require_array(sides.class_of_root, "class_of_root", np.uint32, count)
  require(sides.class_of_root <= num_classes, "roots have classes")
  first_entry = sides.first_entry_of_side[sides.first_side_of_subgame]
  for numbers, first, end, claim in (
    (
      sides.class_of_paying,
      sides.first_paying_of_subgame,
      num_classes,
      "paying sequences have classes",
    ),
    (sides.class_of_entry, first_entry, num_classes, "entries have classes"),
    (sides.side_of_rectangle, first_rectangle, num_sides_of_subgame, "rectangles have sides"),
  ):
    has_numbers = lengths(first) > 0
    largest = np.maximum.reduceat(numbers, first[:-1][has_numbers].astype(np.int64))
    require(largest < end[has_numbers], claim)


def _check_members(members: GroupMembers, num_paying: Int64s, num_in_row: Int32s) -> None:
  """Checks a player's members of groups.

  Args:
    members: the members.
    num_paying: int64 (groups,). The number of paying sequences in the subgame of each group.
    num_in_row: int32 (sequences,). The numbers of `_remaining_in_row`.
  """
  begin = members.first_position_of_bundle.astype(np.int64)
  _check_ranges(members.first_bundle_of_group, len(num_paying), len(begin), 1, "bundles")
  copies, roots = members.copy_of_member, members.root_of_member
  _check_ranges(members.first_member_of_bundle, len(begin), len(copies), 1, "members")
  require_array(roots, "root_of_member", np.uint32, len(copies))
  require(roots < len(num_in_row), "members have sequences")
  require(num_in_row[roots] > 0, "members have sequences of their player")
  require_between(members.positions, 0, len(num_in_row), "positions have sequences")
  count = num_paying[owners(members.first_bundle_of_group)]
  largest_copy = np.maximum.reduceat(copies, members.first_member_of_bundle[:-1].astype(np.int64))
  # Bundles of one embedding have one range of positions, and all ranges together have each position once.
  pays = count > 0
  begin, some_bundle, range_of_bundle = np.unique(
    begin[pays], return_index=True, return_inverse=True
  )
  count, largest_copy = count[pays], largest_copy[pays]
  require(count == count[some_bundle][range_of_bundle], "positions are in ranges")
  ends = np.cumsum(count[some_bundle])
  require(begin == ends - count[some_bundle], "ranges of positions ascend")
  require(
    len(members.positions) == (ends[-1] if len(ends) else 0), "positions are those of bundles"
  )
  largest_of_range = np.zeros(len(begin), np.int64)
  np.maximum.at(largest_of_range, range_of_bundle, largest_copy)
  remaining = np.minimum.reduceat(taken(num_in_row, members.positions), begin)
  require(remaining > largest_of_range, "copies have sequences of their player")
