"""Core histories of a game: the walk over them with arrays that grow, and classes of equal sequences.

Sequences that are in the same rows, such as orders of failed attempts, are one *class*. Rows then hold classes.
"""

from typing import Any, NamedTuple

import numpy as np
import tqdm

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s
from spiel_cfr._numba.steps import Chain, step
from spiel_cfr.games.private_moves import core_walk
from spiel_cfr.games.private_moves.core_walk import Longs, Side, Walk
from spiel_cfr.games.private_moves.cores import Ints, Split

# The fields of each group of arrays that `core_walk` asks to be longer.
_SHARED = {
  core_walk.FRAMES: ("frames", "reach"),
  core_walk.OFFSETS: ("offsets",),
  core_walk.CHANCES: ("chance_event", "chance_before"),
  core_walk.RECTANGLES: ("rows", "payoffs"),
}
_OWN = {
  core_walk.LISTS: ("list_sequence", "list_sight", "list_below"),
  core_walk.INFOSETS: (
    "parent",
    "seen",
    "sibling",
    "first_sequence",
    "opponent_sequence",
    "chance_path",
  ),
  core_walk.SEQUENCES: ("child",),
  core_walk.ROWS: ("row_end",),
  core_walk.ENTRIES: ("entries",),
}
# Arrays with one line for each player.
_BY_PLAYER = ("rows", "payoffs")
_ROOM = 1 << 10
# The core and the sights at which the game begins.
ROOT = np.zeros((1, 3), np.int64)
# Number of elements of lists in a call of the kernel: about a fiftieth of a second.
_WORK = 1 << 20


class PlayerRows(NamedTuple):
  """One player's infosets and rows.

  Attributes:
    parent: int32 (infosets,). The sequence above each infoset. Sequences are numbered as infosets are found, after
      those at which walks begin.
    seen: int32 (infosets,). The number of what the player has seen there.
    opponent_sequence: int32 (infosets,). A sequence of the opponent that, with the infoset, is a history.
    chance_path: int32 (infosets,). The chance events of that history.
    classes: int32 (sequences,). The class of each sequence; class 0 is in no row.
    row_end: int64 (rows,). One past the last entry of each row.
    entries: int32 (entries,). The classes of each row, row by row.
  """

  parent: Int32s
  seen: Int32s
  opponent_sequence: Int32s
  chance_path: Int32s
  classes: Int32s
  row_end: Int64s
  entries: Int32s


class CoreHistories(NamedTuple):
  """Result of walks over core histories.

  Attributes:
    players: PlayerRows of each player.
    ends: int64 (starts, 5). After each walk, the numbers of infosets and rows of player 0, those of player 1, and the
      number of rectangles.
    chance_event: int32 (paths,). The last event of each path of chance.
    chance_before: int32 (paths,). The path before it, or `core_walk.NOTHING`.
    rows: int32 (2, rectangles). The row of each player.
    payoffs: float64 (2, rectangles). The return of each player, times the probability of chance.
    num_histories: int64 (starts,). The number of terminal histories of each walk.
    num_states: int64 (starts,). The number of all histories of each walk.
    num_core_histories: int. The number of terminal core histories.
  """

  players: tuple[PlayerRows, PlayerRows]
  ends: Int64s
  chance_event: Int32s
  chance_before: Int32s
  rows: Int32s
  payoffs: Float64s
  num_histories: Int64s
  num_states: Int64s
  num_core_histories: int


def walk_core_histories(
  split: Split,
  starts: Int64s,
  max_core_histories: int | None,
  max_bytes: int,
  progress: bool,
) -> CoreHistories:
  """Walks all core histories from one start or several, one walk after the other.

  Args:
    split: cores and sights.
    starts: int64 (starts, 3). The core and the two sights at which each walk begins, such as `ROOT`.
    max_core_histories: the number of terminal core histories after which the walk stops; None for no limit.
    max_bytes: largest memory of the arrays.
    progress: whether to show a bar, if standard error is a terminal.

  Raises:
    GameTooLargeError: there are more core histories, or the arrays take more memory.
    PrivateMovesError: the walk comes to a world that was not found.
  """
  record = _empty_walk(split, len(starts))
  chain = Chain([core_walk.walk_cores.on(record)])
  counts, ends, totals = record.counts, list[list[int]](), list[list[int]]()
  bar = tqdm.tqdm(
    desc="walking core histories", unit=" histories", unit_scale=True, delay=1.0, leave=False,
    disable=None if progress else True,
  )  # fmt: skip
  try:
    for number, start in enumerate(starts):
      core_walk.begin(record, number, start[0], start[1:])
      while counts[core_walk.DEPTH]:
        chain.run()
        stop = int(counts[core_walk.STOP])
        bar.update(int(counts[core_walk.HISTORIES]) - bar.n)
        if max_core_histories is not None and counts[core_walk.CORE_HISTORIES] > max_core_histories:
          raise errors.GameTooLargeError(
            f"The game has more than {max_core_histories:,} core histories."
          )
        if stop == core_walk.UNKNOWN_WORLD:
          raise errors.PrivateMovesError(
            "A pair of sequences that fit the same path of cores is no history: the keys of worlds leave something out."
          )
        if stop not in (core_walk.DONE, core_walk.PAUSED):
          record = _with_room(record, stop, max_bytes)
          chain = Chain([core_walk.walk_cores.on(record)])
      ends.append(
        [
          *record.side0.counts[[core_walk.NUM_INFOSETS, core_walk.NUM_ROWS]],
          *record.side1.counts[[core_walk.NUM_INFOSETS, core_walk.NUM_ROWS]],
          counts[core_walk.NUM_RECTANGLES],
        ]
      )
      totals.append(counts[[core_walk.HISTORIES, core_walk.STATES]].tolist())
  finally:
    bar.close()
  rectangles, paths = counts[[core_walk.NUM_RECTANGLES, core_walk.NUM_CHANCES]]
  histories, decisions = np.diff(totals, axis=0, prepend=[[0, 0]]).T
  found = CoreHistories(
    players=(_merged(record.side0), _merged(record.side1)),
    ends=np.array(ends, np.int64),
    chance_event=record.chance_event[:paths].copy(),
    chance_before=record.chance_before[:paths].copy(),
    rows=record.rows[:, :rectangles].copy(),
    payoffs=record.payoffs[:, :rectangles].copy(),
    num_histories=histories,
    num_states=histories + decisions,
    num_core_histories=int(counts[core_walk.CORE_HISTORIES]),
  )
  return found


def _empty_walk(split: Split, num_starts: int) -> Walk:
  """Returns the kernel's arguments before the first walk."""
  sides = []
  for sights, legal in zip(split.sights, split.legal, strict=True):
    actions = np.array([len(actions) for actions in split.action_lists], np.int32)
    own: dict[str, Any] = {
      name: np.zeros(_ROOM, np.int32) for names in _OWN.values() for name in names
    }
    own["row_end"] = np.zeros(_ROOM, np.int64)
    own["child"] = np.full(_ROOM + num_starts, core_walk.NOTHING, np.int32)
    counts = np.zeros(core_walk.NUM_SIDE_COUNTS, np.int64)
    counts[core_walk.NUM_SEQUENCES] = num_starts
    num_actions = np.where(legal < 0, 0, actions[legal]).astype(np.int32)
    sides.append(Side(sights=sights, num_actions=num_actions, counts=counts, **own))
  most = int(np.diff(split.cores.first_event).max(initial=0))
  counts = np.zeros(core_walk.NUM_COUNTS, np.int64)
  frames, reach = np.zeros((_ROOM, core_walk.FRAME_COLUMNS), np.int64), np.ones(_ROOM)
  room = _ROOM + most
  return Walk(
    cores=split.cores,
    side0=sides[0],
    side1=sides[1],
    frames=frames,
    reach=reach,
    offsets=np.zeros(room, np.int32),
    chance_event=np.zeros(_ROOM, np.int32),
    chance_before=np.zeros(_ROOM, np.int32),
    rows=np.zeros((2, room), np.int32),
    payoffs=np.zeros((2, room)),
    counts=counts,
    most_work=_WORK,
  )


def _with_room(record: Walk, group: int, max_bytes: int) -> Any:
  """Returns the kernel's arguments with the arrays of a group twice as long."""
  player, place = divmod(group - core_walk.OF_PLAYER, core_walk.NEXT_PLAYER)
  owner: Any = record
  names = _SHARED.get(group, ())
  if not names:
    owner, names = (record.side0, record.side1)[player], _OWN[core_walk.OF_PLAYER + place]
  arrays = {name: getattr(owner, name) for name in names}
  used = sum(
    array.nbytes
    for arguments in (record, record.side0, record.side1)
    for array in arguments
    if isinstance(array, np.ndarray)
  )
  more = sum(array.nbytes for array in arrays.values())
  if used + more > max_bytes:
    infosets = [side.counts[core_walk.NUM_INFOSETS] for side in (record.side0, record.side1)]
    raise errors.GameTooLargeError(
      f"After {record.counts[core_walk.HISTORIES]:,} histories and {infosets[0]:,} + {infosets[1]:,} infosets, arrays "
      f"need {used + more:,} bytes, more than max_bytes={max_bytes:,}. Raise the limit if there is the memory."
    )
  longer = {name: _twice_as_long(array, name in _BY_PLAYER) for name, array in arrays.items()}
  own = owner._replace(**longer)
  return own if owner is record else record._replace(**{f"side{player}": own})


def _twice_as_long(array: Any, by_player: bool) -> Any:
  return np.concatenate([array, np.empty_like(array)], axis=1 if by_player else 0)


class _Merge(NamedTuple):
  """The arguments of `merge_columns`.

  Attributes:
    row_end: int64 (rows,). One past the last entry of each row.
    entries: int32 (entries,). The sequences of each row; replaced by its classes, without gaps.
    classes: int32 (sequences,). The class of each sequence, written here.
    size: int32 (sequences + 1,). The number of sequences of each class.
    occurrences: int32 (sequences + 1,). Workspace of zeros.
    target: int32 (sequences + 1,). Workspace.
    touched: int32 (sequences + 1,). Workspace.
  """

  row_end: Longs
  entries: Ints
  classes: Ints
  size: Ints
  occurrences: Ints
  target: Ints
  touched: Ints


@step(_Merge, single=False)
def merge_columns(record: _Merge) -> None:
  """Finds the coarsest classes such that each row is a union of classes, by refinement, row by row.

  A row splits each class that it partly contains: the part in the row becomes a new class. Classes are numbered from 1
  in the order of rows. Class 0 keeps the sequences that are in no row.
  """
  classes, size, count, target = record.classes, record.size, record.occurrences, record.target
  touched, entries = record.touched, record.entries
  # One more than its sequences, so that no row contains all of class 0.
  size[0] = classes.shape[0] + 1
  num_classes, start = 1, 0
  for row in range(record.row_end.shape[0]):
    end, some = record.row_end[row], 0
    for entry in range(start, end):
      before = classes[entries[entry]]
      if count[before] == 0:
        touched[some] = before
        some += 1
      count[before] += 1
    for place in range(some):
      before = touched[place]
      target[before] = before
      if count[before] < size[before]:
        target[before] = num_classes
        size[num_classes] = count[before]
        size[before] -= count[before]
        num_classes += 1
      count[before] = 0
    for entry in range(start, end):
      classes[entries[entry]] = target[classes[entries[entry]]]
    start = end
  start = written = 0
  for row in range(record.row_end.shape[0]):
    end = record.row_end[row]
    for entry in range(start, end):
      own = classes[entries[entry]]
      if count[own] != row + 1:
        count[own] = row + 1
        entries[written] = own
        written += 1
    record.row_end[row] = written
    start = end


def _merged(side: Side) -> PlayerRows:
  """Returns a player's infosets and rows, with sequences merged into classes."""
  infosets, sequences, rows = side.counts[:3].tolist()
  row_end, classes = side.row_end[:rows], np.zeros(sequences, np.int32)
  size, count, target, touched = np.zeros((4, sequences + 1), np.int32)
  merge = _Merge(row_end, side.entries, classes, size, count, target, touched)
  Chain([merge_columns.on(merge)]).run()
  num_entries = int(row_end[-1]) if rows else 0
  return PlayerRows(
    parent=side.parent[:infosets].copy(),
    seen=side.seen[:infosets].copy(),
    opponent_sequence=side.opponent_sequence[:infosets].copy(),
    chance_path=side.chance_path[:infosets].copy(),
    classes=classes,
    row_end=row_end.copy(),
    entries=side.entries[:num_entries].copy(),
  )
