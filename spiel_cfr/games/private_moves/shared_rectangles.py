"""Shared rectangles: payoffs of a game in private moves form that keeps each subgame once for many histories.

`subgames` explains subgames, copies and groups with an example. Let U_w be the payoff matrix of subgame w, a set of
rectangles (`rectangles`) over the sequences of the subgame. Let E_A sum a strategy over the members A of a group,
sequence by sequence of the subgame. Then the payoff matrix of the game is

    U = the histories that end before the cut + sum over groups A x B in subgame w: reach * E_A' U_w E_B

The layout puts the copies of each sequence next to each other, so that one list of positions serves all copies.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # its `sparse` is imported when it is used

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, Integers, Uint32s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, Doubles, Indices, Line
from spiel_cfr._numba.steps import Step, step
from spiel_cfr.games.payoffs.utility_bounds import Leaves, combined
from spiel_cfr.games.private_moves.rectangles import PairPayoff, add_to_side, sum_of_side
from spiel_cfr.games.private_moves.shared_sides import SharedSides, SubgameSides, lengths, owners
from spiel_cfr.games.sequence_form.treeplex import Treeplex

_ONE = np.uint64(1)


class SharedGradient(NamedTuple):
  """The arguments of `shared_gradient`.

  Attributes:
    sides: SharedSides. The sides of the player.
    begin: int. The player's first sequence.
    end: int. One past the player's last sequence.
    opponent_sides: SharedSides. The sides of the opponent.
    subgame_of_group: uint32 (groups,). The subgame of each group.
    reach_of_group: float64 (groups,). Chance's probability of each history of a group.
    first_rectangle_of_subgame: uint32 (subgames + 1,). The first rectangle of each subgame.
    payoff: uint32 (rectangles + leaves,). The index in `payoffs` of each rectangle, and of each history that ends
      before the cut.
    payoffs: float64. The player's different payoffs.
    sequence_form: float64 (sequences,). The strategy of the opponent.
    utility: float64 (sequences,). The gradient at the player's sequences, written here.
    by_class: float64 (classes + 1,). Workspace for the subgame and the player with the most classes.
    by_side: float64 (sides,). Workspace for the subgame with the most sides of the player.
    by_opponent_side: float64 (sides,). Workspace for the subgame with the most sides of the opponent.
  """

  sides: SharedSides
  begin: Count
  end: Count
  opponent_sides: SharedSides
  subgame_of_group: Indices
  reach_of_group: Doubles
  first_rectangle_of_subgame: Indices
  payoff: Indices
  payoffs: Doubles
  sequence_form: Doubles
  utility: Doubles
  by_class: Doubles
  by_side: Doubles
  by_opponent_side: Doubles


@inlined
def _clear(numbers: Line, end: int) -> None:
  for place in range(np.uint64(end)):
    numbers[place] = 0.0


@inlined
def _num_classes(sides: SubgameSides, subgame: int) -> Any:
  """Returns the number of classes of a subgame, with one more for a root that is in no side."""
  first = sides.first_class_of_subgame
  return first[subgame + _ONE] - first[subgame] + _ONE


@inlined
def _sum_members(
  sides: SharedSides, group: int, subgame: int, sequence_form: Line, by_class: Line
) -> None:
  """Sums the strategies of all members of a group, class by class."""
  in_subgame, members = sides.in_subgames, sides.in_groups
  first_paying = np.uint64(in_subgame.first_paying_of_subgame[subgame])
  end_paying = np.uint64(in_subgame.first_paying_of_subgame[subgame + _ONE])
  for bundle in range(
    np.uint64(members.first_bundle_of_group[group]),
    np.uint64(members.first_bundle_of_group[group + _ONE]),
  ):
    begin = np.uint64(members.first_member_of_bundle[bundle])
    end = np.uint64(members.first_member_of_bundle[bundle + _ONE])
    shift = np.uint64(members.first_position_of_bundle[bundle]) - first_paying
    for member in range(begin, end):
      root = members.root_of_member[member]
      by_class[in_subgame.class_of_root[subgame]] += sequence_form[root]
    for paying in range(first_paying, end_paying):
      position = np.uint64(members.positions[shift + paying])
      total = 0.0
      for member in range(begin, end):
        total += sequence_form[position + np.uint64(members.copy_of_member[member])]
      by_class[in_subgame.class_of_paying[paying]] += total


@inlined
def _add_to_members(
  sides: SharedSides, group: int, subgame: int, by_class: Line, utility: Line
) -> None:
  """Adds the number of its class to each sequence of all members of a group."""
  in_subgame, members = sides.in_subgames, sides.in_groups
  first_paying = np.uint64(in_subgame.first_paying_of_subgame[subgame])
  end_paying = np.uint64(in_subgame.first_paying_of_subgame[subgame + _ONE])
  for bundle in range(
    np.uint64(members.first_bundle_of_group[group]),
    np.uint64(members.first_bundle_of_group[group + _ONE]),
  ):
    begin = np.uint64(members.first_member_of_bundle[bundle])
    end = np.uint64(members.first_member_of_bundle[bundle + _ONE])
    shift = np.uint64(members.first_position_of_bundle[bundle]) - first_paying
    for member in range(begin, end):
      utility[members.root_of_member[member]] += by_class[in_subgame.class_of_root[subgame]]
    for paying in range(first_paying, end_paying):
      position = np.uint64(members.positions[shift + paying])
      gained = by_class[in_subgame.class_of_paying[paying]]
      for member in range(begin, end):
        utility[position + np.uint64(members.copy_of_member[member])] += gained


@inlined
def _add_leaves(record: SharedGradient) -> None:
  """Adds the payoffs of the histories that end before the cut."""
  sequence_of_leaf = record.sides.sequence_of_leaf
  opponent_sequence_of_leaf = record.opponent_sides.sequence_of_leaf
  first_leaf = np.uint64(record.sides.in_subgames.side_of_rectangle.shape[0])
  for leaf in range(np.uint64(sequence_of_leaf.shape[0])):
    payoff = record.payoffs[record.payoff[first_leaf + leaf]]
    record.utility[sequence_of_leaf[leaf]] += (
      payoff * record.sequence_form[opponent_sequence_of_leaf[leaf]]
    )


@inlined
def _sum_sides(record: SharedGradient, group: int, subgame: int) -> None:
  """Sums the opponent's classes by side, weighted by chance's probability of the group."""
  sides = record.opponent_sides.in_subgames
  first = np.uint64(sides.first_side_of_subgame[subgame])
  for side in range(first, np.uint64(sides.first_side_of_subgame[subgame + _ONE])):
    total = sum_of_side(sides.first_entry_of_side, sides.class_of_entry, side, record.by_class)
    record.by_opponent_side[side - first] = total * record.reach_of_group[group]


@inlined
def _multiply_rectangles(record: SharedGradient, subgame: int) -> None:
  """Multiplies the sums of the opponent's sides by the payoffs of rectangles, and adds them by the player's side."""
  side, opponent_side = (
    record.sides.in_subgames.side_of_rectangle,
    record.opponent_sides.in_subgames.side_of_rectangle,
  )
  first_rectangle = record.first_rectangle_of_subgame
  for rectangle in range(
    np.uint64(first_rectangle[subgame]), np.uint64(first_rectangle[subgame + _ONE])
  ):
    total = record.by_opponent_side[opponent_side[rectangle]]
    payoff = record.payoffs[record.payoff[rectangle]]
    record.by_side[side[rectangle]] += payoff * total


@step(SharedGradient, single=False)
def shared_gradient(record: SharedGradient) -> None:
  """Computes a player's gradient at all of its sequences."""
  opponent_sides, by_class = record.opponent_sides, record.by_class
  in_subgame = record.sides.in_subgames
  for sequence in range(record.begin, record.end):
    record.utility[sequence] = 0.0
  _add_leaves(record)
  for group in range(np.uint64(record.subgame_of_group.shape[0])):
    subgame = np.uint64(record.subgame_of_group[group])
    _clear(by_class, _num_classes(opponent_sides.in_subgames, subgame))
    _sum_members(opponent_sides, group, subgame, record.sequence_form, by_class)
    _sum_sides(record, group, subgame)
    first_side = np.uint64(in_subgame.first_side_of_subgame[subgame])
    end_side = np.uint64(in_subgame.first_side_of_subgame[subgame + _ONE])
    _clear(record.by_side, end_side - first_side)
    _multiply_rectangles(record, subgame)
    _clear(by_class, _num_classes(in_subgame, subgame))
    for side in range(first_side, end_side):
      gained = record.by_side[side - first_side]
      add_to_side(in_subgame.first_entry_of_side, in_subgame.class_of_entry, side, gained, by_class)
    _add_to_members(record.sides, group, subgame, by_class, record.utility)


class SharedRectangles(PairPayoff):
  """The payoffs of a game in private moves form with shared subgames.

  Attributes:
    sides: SharedSides of each player.
    subgame_of_group: uint32 (groups,). The subgame of each group.
    reach_of_group: float64 (groups,). Chance's probability of each history of a group.
    first_rectangle_of_subgame: uint32 (subgames + 1,). The first rectangle of each subgame.
    payoff: uint32 (rectangles + leaves,). The column of `payoffs` of each rectangle, and of each history that ends
      before the cut.
  """

  form = "shared rectangles"

  def __init__(
    self,
    sides: tuple[SharedSides, SharedSides],
    subgame_of_group: Indices,
    reach_of_group: Float64s,
    first_rectangle_of_subgame: Indices,
    payoff: Indices,
    payoffs: Float64s,
    treeplexes: Sequence[Treeplex],
  ) -> None:
    """Takes the attributes, and the different payoffs of both players, weighted by chance, shape (2, payoffs)."""
    super().__init__(payoffs)
    self.sides, self.payoff = sides, payoff
    self.subgame_of_group, self.reach_of_group = subgame_of_group, reach_of_group
    self.first_rectangle_of_subgame = first_rectangle_of_subgame
    self._bounds = [(tree.root, tree.end) for tree in treeplexes]

  @property
  def _end(self) -> int:
    return self._bounds[-1][1]

  @property
  def _num_rectangles(self) -> int:
    return len(self.sides[0].in_subgames.side_of_rectangle)

  def side_arrays(self, player: int) -> tuple[Uint32s, ...]:
    return self.sides[player].arrays()

  @property
  def num_leaves(self) -> int:
    """Number of pairs of sequences with a payoff for player 0; a pair counts once for each path of chance to it."""
    is_paid = self.payoffs[0, self.payoff] != 0
    num_pairs = np.ones(self._num_rectangles, np.int64)
    num_histories = np.ones(len(self.subgame_of_group), np.int64)
    subgame_of_rectangle = owners(self.first_rectangle_of_subgame)
    for sides in self.sides:
      in_subgame, members = sides.in_subgames, sides.in_groups
      first_side = in_subgame.first_side_of_subgame[subgame_of_rectangle].astype(np.int64)
      num_pairs *= sides.side_sizes()[first_side + in_subgame.side_of_rectangle]
      num_histories *= lengths(members.first_member_of_bundle[members.first_bundle_of_group])
    sums = np.append(0, np.cumsum(num_pairs * is_paid[: self._num_rectangles]))
    of_subgame = np.diff(sums[self.first_rectangle_of_subgame])
    in_groups = int((of_subgame[self.subgame_of_group] * num_histories).sum())
    return in_groups + int(is_paid[self._num_rectangles :].sum())

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays, in bytes."""
    arrays: tuple[AnyFloats, ...] = (
      self.payoffs,
      self.payoff,
      self.subgame_of_group,
      self.reach_of_group,
      self.first_rectangle_of_subgame,
      *self.side_arrays(0),
      *self.side_arrays(1),
    )
    return sum(array.nbytes for array in arrays)

  def gradient_step(self, player: int, sequence_form: AnyFloats, utility: AnyFloats) -> Step:
    sides, opponent_sides = self.sides[player], self.sides[1 - player]
    begin, end = self._bounds[player]
    most_classes = max(_longest(sides.in_subgames.first_class_of_subgame) for sides in self.sides)
    record = SharedGradient(
      sides=sides,
      begin=begin,
      end=end,
      opponent_sides=opponent_sides,
      subgame_of_group=self.subgame_of_group,
      reach_of_group=self.reach_of_group,
      first_rectangle_of_subgame=self.first_rectangle_of_subgame,
      payoff=self.payoff,
      payoffs=self.payoffs[player],
      sequence_form=sequence_form,
      utility=utility,
      by_class=np.zeros(1 + most_classes),
      by_side=np.zeros(_longest(sides.in_subgames.first_side_of_subgame)),
      by_opponent_side=np.zeros(_longest(opponent_sides.in_subgames.first_side_of_subgame)),
    )
    return shared_gradient.on(record)

  def leaves(self, player: int) -> Leaves:
    """Lists the pairs of sequences.

    Raises:
      GameTooLargeError: there are more than 20 million.
    """
    self._check_num_leaves()
    sides, opponent_sides = self.sides[player], self.sides[1 - player]
    trunk_payoffs = self.payoffs[player, self.payoff[self._num_rectangles :]]
    parts: list[tuple[Integers, Integers, Float64s]] = [
      (sides.sequence_of_leaf, opponent_sides.sequence_of_leaf, trunk_payoffs)
    ]
    parts += [
      self._group_leaves(player, group, subgame)
      for group, subgame in enumerate(self.subgame_of_group.tolist())
    ]
    sequence, opponent_sequence, values = (
      np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    is_paid = values != 0
    # In the order of the player's sequences.
    keys = [opponent_sequence[is_paid].astype(np.int64), sequence[is_paid].astype(np.int64)]
    (opponent_sequence, sequence), values = combined(keys, values[is_paid], np.add)
    return Leaves(sequence.astype(np.uint32), opponent_sequence.astype(np.uint32)[None], values)

  def _group_leaves(self, player: int, group: int, subgame: int) -> tuple[Int64s, Int64s, Float64s]:
    """Returns the pairs of a group: the player's sequences, the opponent's sequences, and the player's payoffs."""
    place, opponent_place, values = self._subgame_pairs(player, subgame)
    sequences, opponent_sequences = (
      self.sides[owner].group_sequences(group, subgame) for owner in (player, 1 - player)
    )
    shape = len(sequences), len(opponent_sequences), len(values)
    return (
      np.broadcast_to(sequences[:, None, place], shape).ravel(),
      np.broadcast_to(opponent_sequences[None, :, opponent_place], shape).ravel(),
      np.broadcast_to(values * self.reach_of_group[group], shape).ravel(),
    )

  def _subgame_pairs(self, player: int, subgame: int) -> tuple[Int64s, Int64s, Float64s]:
    """Returns the payoff matrix of a subgame in coordinate form.

    Returns:
      Columns of `SharedSides.group_sequences` for the player and for the opponent, and the player's payoffs.
    """
    rectangles = slice(*self.first_rectangle_of_subgame[subgame : subgame + 2])
    payoffs = self.payoffs[player, self.payoff[rectangles]]
    sides, opponent_sides = self.sides[player].in_subgames, self.sides[1 - player].in_subgames
    of_sides, of_opponent_sides = (
      _side_matrix(sides, subgame),
      _side_matrix(opponent_sides, subgame),
    )
    of_rectangles = scipy.sparse.csr_array(
      (
        payoffs,
        (sides.side_of_rectangle[rectangles], opponent_sides.side_of_rectangle[rectangles]),
      ),
      shape=(of_sides.shape[0], of_opponent_sides.shape[0]),
    )
    pairs = scipy.sparse.coo_array(of_sides.T @ of_rectangles @ of_opponent_sides)
    return pairs.coords[0], pairs.coords[1], pairs.data


def _longest(first: Indices) -> int:
  """Returns the length of the longest of consecutive ranges, given their beginnings and the last end."""
  return int(np.diff(first).max(initial=0))


def _side_matrix(sides: SubgameSides, subgame: int) -> Any:
  """Returns a matrix of a subgame's sides and its paying sequences and root, 1 if the sequence is in the side."""
  first_side, end_side = sides.first_side_of_subgame[subgame : subgame + 2].tolist()
  first_entry = sides.first_entry_of_side[first_side : end_side + 1].astype(np.int64)
  class_of_entry = sides.class_of_entry[first_entry[0] : first_entry[-1]]
  paying = slice(*sides.first_paying_of_subgame[subgame : subgame + 2])
  class_of_sequence = np.append(sides.class_of_paying[paying], sides.class_of_root[subgame])
  first_class, end_class = sides.first_class_of_subgame[subgame : subgame + 2].tolist()
  # One more class for a root that is in no side.
  num_classes, num_sequences = end_class - first_class + 1, len(class_of_sequence)
  in_side = scipy.sparse.csr_array(
    (np.ones(len(class_of_entry)), class_of_entry, first_entry - first_entry[0]),
    shape=(end_side - first_side, num_classes),
  )
  in_class = scipy.sparse.csr_array(
    (np.ones(num_sequences), (class_of_sequence, np.arange(num_sequences))),
    shape=(num_classes, num_sequences),
  )
  return in_side @ in_class
