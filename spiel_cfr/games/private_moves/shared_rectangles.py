"""Shared rectangles: payoffs of a game in private moves form whose subgames are kept once for many histories.

Histories at the cut (`trunk`) that are in the same world w have the same subgame. Its payoff matrix U_w is a set of
rectangles, see `rectangles`, over the sequences of the subgame. Some of these histories are *groups*: a set A of
sequences of player 0 and a set B of sequences of player 1, of which all pairs are in world w. Let E_A sum the parts of
a strategy below the sequences of A, sequence by sequence of the subgame. Then

    U = the histories that end before the cut + sum over groups: reach * E_A' U_w E_B

All sequences that can be in the same worlds are *copies* of one subtree. The layout puts the copies of each sequence
next to each other, so that one list of positions serves them all.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # its `sparse` is imported when it is used

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, unpickled
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, Doubles, Indices, Line
from spiel_cfr._numba.steps import Step, step
from spiel_cfr.games.payoffs.payoff import PayoffArrays
from spiel_cfr.games.payoffs.utility_bounds import Leaves, combined
from spiel_cfr.games.private_moves.rectangles import PairPayoff
from spiel_cfr.games.sequence_form.treeplex import Treeplex

_ONE = np.uint64(1)


class SharedRows(NamedTuple):
  """One player's rows of all subgames, and its sequences in all groups.

  Numbers of classes and rows begin at 0 in each subgame. The *root* is the player's sequence at the cut.

  Attributes:
    first_class: uint32 (subgames + 1,). The number of classes of earlier subgames.
    root_class: uint32 (subgames,). The class of the root; one past the last class if it is in no row.
    first_used: uint32 (subgames + 1,). The first of the sequences of each subgame that are in rows.
    used_class: uint32 (used sequences,). The class of each.
    first_row: uint32 (subgames + 1,). The first row of each subgame.
    first_entry: uint32 (rows + 1,). The first entry of each row.
    entries: uint32 (entries,). The classes of each row, row by row.
    of_rectangle: uint32 (rectangles,). The row of each rectangle.
    leaves: uint32 (leaves,). The player's sequence at each history that ends before the cut.
    first_block: uint32 (groups + 1,). The first block of each group: copies of one subtree.
    first_position: uint32 (blocks,). The place in `positions` where those of the block begin.
    first_copy: uint32 (blocks + 1,). The first copy of each block.
    copy: uint32 (copies,). The number of each copy, which is added to a position.
    root: uint32 (copies,). The root of each copy.
    positions: uint32. Lists with the number of copy 0 of each used sequence of a subgame.
  """

  first_class: Indices
  root_class: Indices
  first_used: Indices
  used_class: Indices
  first_row: Indices
  first_entry: Indices
  entries: Indices
  of_rectangle: Indices
  leaves: Indices
  first_block: Indices
  first_position: Indices
  first_copy: Indices
  copy: Indices
  root: Indices
  positions: Indices

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (SharedRows, *self)


class SharedGradient(NamedTuple):
  """The arguments of `shared_gradient`.

  Attributes:
    own: SharedRows. The rows of the player.
    begin: int. The player's first sequence.
    end: int. One past its last sequence.
    other: SharedRows. The rows of the opponent.
    subgame: uint32 (groups,). The subgame of each group.
    reach: float64 (groups,). Chance's probability of the histories of each group.
    first_rectangle: uint32 (subgames + 1,). The first rectangle of each subgame.
    payoff: uint32 (rectangles + leaves,). The place of the payoff of each rectangle and of each leaf.
    payoffs: float64. The player's different payoffs.
    sequence_form: float64 (sequences,). The strategy of the opponent.
    utility: float64 (sequences,). The gradient at the player's sequences, written here.
    by_class: float64. Workspace, one longer than the classes of any subgame and player.
    by_own_row: float64. Workspace, as long as the player's rows of any subgame.
    by_other_row: float64. Workspace, as long as the opponent's rows of any subgame.
  """

  own: SharedRows
  begin: Count
  end: Count
  other: SharedRows
  subgame: Indices
  reach: Doubles
  first_rectangle: Indices
  payoff: Indices
  payoffs: Doubles
  sequence_form: Doubles
  utility: Doubles
  by_class: Doubles
  by_own_row: Doubles
  by_other_row: Doubles


@inlined
def _clear(numbers: Line, end: int) -> None:
  for place in range(np.uint64(end)):
    numbers[place] = 0.0


@inlined
def _gather(
  rows: SharedRows, group: int, subgame: int, sequence_form: Line, by_class: Line
) -> None:
  """Adds the strategies of all copies of a group, class by class."""
  first, last = np.uint64(rows.first_used[subgame]), np.uint64(rows.first_used[subgame + _ONE])
  for block in range(np.uint64(rows.first_block[group]), np.uint64(rows.first_block[group + _ONE])):
    begin, end = np.uint64(rows.first_copy[block]), np.uint64(rows.first_copy[block + _ONE])
    shift = np.uint64(rows.first_position[block]) - first
    for copy in range(begin, end):
      by_class[rows.root_class[subgame]] += sequence_form[rows.root[copy]]
    for used in range(first, last):
      position = np.uint64(rows.positions[shift + used])
      total = 0.0
      for copy in range(begin, end):
        total += sequence_form[position + np.uint64(rows.copy[copy])]
      by_class[rows.used_class[used]] += total


@inlined
def _scatter(rows: SharedRows, group: int, subgame: int, by_class: Line, utility: Line) -> None:
  """Adds the number of its class to each sequence of all copies of a group."""
  first, last = np.uint64(rows.first_used[subgame]), np.uint64(rows.first_used[subgame + _ONE])
  for block in range(np.uint64(rows.first_block[group]), np.uint64(rows.first_block[group + _ONE])):
    begin, end = np.uint64(rows.first_copy[block]), np.uint64(rows.first_copy[block + _ONE])
    shift = np.uint64(rows.first_position[block]) - first
    for copy in range(begin, end):
      utility[rows.root[copy]] += by_class[rows.root_class[subgame]]
    for used in range(first, last):
      position = np.uint64(rows.positions[shift + used])
      gained = by_class[rows.used_class[used]]
      for copy in range(begin, end):
        utility[position + np.uint64(rows.copy[copy])] += gained


@step(SharedGradient, single=False)
def shared_gradient(record: SharedGradient) -> None:
  """Computes a player's gradient at all of its sequences."""
  own, other, by_class, payoffs = record.own, record.other, record.by_class, record.payoffs
  by_own_row, by_other_row = record.by_own_row, record.by_other_row
  for sequence in range(record.begin, record.end):
    record.utility[sequence] = 0.0
  first_leaf = np.uint64(own.of_rectangle.shape[0])
  for leaf in range(np.uint64(own.leaves.shape[0])):
    met = payoffs[record.payoff[first_leaf + leaf]] * record.sequence_form[other.leaves[leaf]]
    record.utility[own.leaves[leaf]] += met
  for group in range(np.uint64(record.subgame.shape[0])):
    subgame = np.uint64(record.subgame[group])
    _clear(by_class, other.first_class[subgame + _ONE] - other.first_class[subgame] + _ONE)
    _gather(other, group, subgame, record.sequence_form, by_class)
    first, last = np.uint64(other.first_row[subgame]), np.uint64(other.first_row[subgame + _ONE])
    for row in range(first, last):
      total = 0.0
      for entry in range(
        np.uint64(other.first_entry[row]), np.uint64(other.first_entry[row + _ONE])
      ):
        total += by_class[other.entries[entry]]
      by_other_row[row - first] = total * record.reach[group]
    first, last = np.uint64(own.first_row[subgame]), np.uint64(own.first_row[subgame + _ONE])
    _clear(by_own_row, last - first)
    for rectangle in range(
      np.uint64(record.first_rectangle[subgame]), np.uint64(record.first_rectangle[subgame + _ONE])
    ):
      met = by_other_row[other.of_rectangle[rectangle]]
      by_own_row[own.of_rectangle[rectangle]] += payoffs[record.payoff[rectangle]] * met
    _clear(by_class, own.first_class[subgame + _ONE] - own.first_class[subgame] + _ONE)
    for row in range(first, last):
      gained = by_own_row[row - first]
      for entry in range(np.uint64(own.first_entry[row]), np.uint64(own.first_entry[row + _ONE])):
        by_class[own.entries[entry]] += gained
    _scatter(own, group, subgame, by_class, record.utility)


class SharedRectangles(PairPayoff):
  """The payoffs of a game in private moves form with shared subgames.

  Attributes:
    rows: SharedRows of each player.
    subgame: uint32 (groups,). The subgame of each group.
    reach: float64 (groups,). Chance's probability of the histories of each group.
    first_rectangle: uint32 (subgames + 1,). The first rectangle of each subgame.
    payoff: uint32 (rectangles + leaves,). The column of `payoffs` of each rectangle, and of each history that ends
      before the cut.
  """

  form = "shared rectangles"
  gradient = shared_gradient

  def __init__(
    self,
    rows: tuple[SharedRows, SharedRows],
    subgame: Indices,
    reach: Float64s,
    first_rectangle: Indices,
    payoff: Indices,
    payoffs: Float64s,
    treeplexes: Sequence[Treeplex],
  ) -> None:
    """Takes the attributes, and different payoffs of both players, shape (2, columns), weighted by chance."""
    super().__init__(payoffs)
    self.rows, self.subgame, self.reach = rows, subgame, reach
    self.first_rectangle, self.payoff = first_rectangle, payoff
    self._bounds = [(tree.root, tree.end) for tree in treeplexes]

  @property
  def _end(self) -> int:
    return self._bounds[-1][1]

  @property
  def num_leaves(self) -> int:
    """Number of pairs of sequences with a payoff for player 0; a pair counts once for each path of chance to it."""
    worth = self.payoffs[0, self.payoff] != 0
    num_rectangles = len(self.rows[0].of_rectangle)
    pairs, copies = np.ones(num_rectangles, np.int64), np.ones(len(self.subgame), np.int64)
    for rows in self.rows:
      subgame = _owners(self.first_rectangle)
      pairs *= _row_sizes(rows)[rows.first_row[subgame].astype(np.int64) + rows.of_rectangle]
      copies *= _lengths(rows.first_copy[rows.first_block])
    totals = np.append(0, np.cumsum(pairs * worth[:num_rectangles]))[self.first_rectangle]
    in_groups = int((np.diff(totals)[self.subgame] * copies).sum())
    return in_groups + int(worth[num_rectangles:].sum())

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays, in bytes."""
    shared = (self.payoffs, self.payoff, self.subgame, self.reach, self.first_rectangle)
    return sum(array.nbytes for array in (*shared, *self.rows[0], *self.rows[1]))

  def gradient_step(
    self,
    player: int,
    sequence_form: AnyFloats,
    utility: AnyFloats,
    arrays: PayoffArrays | None = None,
  ) -> Step:
    """Returns the step that computes a gradient; `arrays` may replace the payoffs, as `values`."""
    own, other = self.rows[player], self.rows[1 - player]
    payoffs = self.payoffs if arrays is None else arrays.values.reshape(2, -1)
    begin, end = self._bounds[player]
    classes = max(int(np.diff(rows.first_class).max(initial=0)) for rows in self.rows)
    record = SharedGradient(
      own=own,
      begin=begin,
      end=end,
      other=other,
      subgame=self.subgame,
      reach=self.reach,
      first_rectangle=self.first_rectangle,
      payoff=self.payoff,
      payoffs=payoffs[player],
      sequence_form=sequence_form,
      utility=utility,
      by_class=np.zeros(1 + classes),
      by_own_row=np.zeros(int(np.diff(own.first_row).max(initial=0))),
      by_other_row=np.zeros(int(np.diff(other.first_row).max(initial=0))),
    )
    return self.gradient.on(record)

  def leaves(self, player: int) -> Leaves:
    """Lists the pairs of sequences.

    Raises:
      GameTooLargeError: there are more than 20 million.
    """
    self._check_num_leaves()
    before_cut = self.payoffs[player, self.payoff[len(self.rows[0].of_rectangle) :]]
    found = [(*(self.rows[owner].leaves for owner in (player, 1 - player)), before_cut)]
    for group, subgame in enumerate(self.subgame.tolist()):
      own, others, values = self._subgame_pairs(player, subgame)
      mine, theirs = (
        _sequences(self.rows[owner], group, subgame) for owner in (player, 1 - player)
      )
      shape = len(mine), len(theirs), len(values)
      found.append(
        (
          np.broadcast_to(mine[:, None, own], shape).ravel(),
          np.broadcast_to(theirs[None, :, others], shape).ravel(),
          np.broadcast_to(values * self.reach[group], shape).ravel(),
        )
      )
    own, others, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    worth = values != 0
    keys = [others[worth].astype(np.int64), own[worth].astype(np.int64)]
    # In the order of the player's sequences.
    (theirs, mine), values = combined(keys, values[worth], np.add)
    return Leaves(mine.astype(np.uint32), theirs.astype(np.uint32)[None], values)

  def _subgame_pairs(self, player: int, subgame: int) -> tuple[Int64s, Int64s, Float64s]:
    """Returns the payoff matrix of a subgame: places in `_sequences` of the player and of the opponent, and payoffs."""
    rectangles = slice(*self.first_rectangle[subgame : subgame + 2])
    payoffs = self.payoffs[player, self.payoff[rectangles]]
    sides = []
    for owner in (player, 1 - player):
      rows = self.rows[owner]
      first_row, end_row = rows.first_row[subgame : subgame + 2].tolist()
      first_entry = rows.first_entry[first_row : end_row + 1].astype(np.int64)
      entries = rows.entries[first_entry[0] : first_entry[-1]]
      used = rows.used_class[slice(*rows.first_used[subgame : subgame + 2])]
      classes = np.append(used, rows.root_class[subgame])
      count = 1 + int(classes.max())
      in_row = scipy.sparse.csr_array(
        (np.ones(len(entries)), entries, first_entry - first_entry[0]),
        shape=(end_row - first_row, count),
      )
      in_class = scipy.sparse.csr_array(
        (np.ones(len(classes)), (classes, np.arange(len(classes)))), shape=(count, len(classes))
      )
      sides.append((in_row @ in_class, rows.of_rectangle[rectangles]))
    (own, own_rows), (other, other_rows) = sides
    matrix = scipy.sparse.csr_array(
      (payoffs, (own_rows, other_rows)), shape=(own.shape[0], other.shape[0])
    )
    pairs = scipy.sparse.coo_array(own.T @ matrix @ other)
    return pairs.coords[0], pairs.coords[1], pairs.data


def _lengths(first: Indices) -> Int64s:
  """Returns the lengths of consecutive ranges, given their beginnings and the last end."""
  numbers = first.astype(np.int64)
  return numbers[1:] - numbers[:-1]


def _owners(first: Indices) -> Int64s:
  """Returns the number of the range of each element of consecutive ranges."""
  return np.repeat(np.arange(len(first) - 1), _lengths(first))


def _row_sizes(rows: SharedRows) -> Int64s:
  """Returns the number of sequences of each row, in one copy."""
  first_class = rows.first_class.astype(np.int64)
  # The class one past the last holds roots that are in no row.
  sizes = np.zeros(len(first_class) - 1 + first_class[-1], np.int64)
  begin = first_class[:-1] + np.arange(len(first_class) - 1)
  np.add.at(sizes, begin[_owners(rows.first_used)] + rows.used_class, 1)
  np.add.at(sizes, begin + rows.root_class, 1)
  subgame = _owners(rows.first_row)
  of_entry = np.repeat(subgame, _lengths(rows.first_entry))
  ends = np.append(0, np.cumsum(sizes[begin[of_entry] + rows.entries]))
  return np.diff(ends[rows.first_entry])


def _sequences(rows: SharedRows, group: int, subgame: int) -> Int64s:
  """Returns, for each copy in a group, the sequences of the subgame that are in rows, and then the root."""
  used = int(rows.first_used[subgame + 1]) - int(rows.first_used[subgame])
  result = []
  for block in range(*rows.first_block[group : group + 2].tolist()):
    position = int(rows.first_position[block])
    positions = rows.positions[position : position + used].astype(np.int64)
    for copy in range(*rows.first_copy[block : block + 2].tolist()):
      result.append(np.append(positions + rows.copy[copy], rows.root[copy]))
  return np.array(result)
