"""Core histories of a game: walks over them, from the root or from many worlds, with arrays that grow.

Long arrays of rows are merged from time to time, see `merged_rows`.
"""

from typing import Any, NamedTuple

import numpy as np
import tqdm

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s
from spiel_cfr._numba.steps import Chain
from spiel_cfr.games.private_moves import core_walk
from spiel_cfr.games.private_moves.core_walk import Side, Walk
from spiel_cfr.games.private_moves.cores import Split
from spiel_cfr.games.private_moves.merged_rows import PlayerRows, joined_rows, merged

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
# Number of entries of rows after which rows are merged.
_BATCH = 1 << 22


class CoreHistories(NamedTuple):
  """Result of walks over core histories.

  Attributes:
    players: PlayerRows of each player.
    ends: int64 (starts, 7). After each walk, the numbers of infosets, sequences and rows of player 0, those of
      player 1, and the number of rectangles.
    chance_event: int32 (paths,). The last event of each path of chance.
    chance_before: int32 (paths,). The path before it, or `core_walk.NOTHING`.
    rows: int32 (2, rectangles). The row of each player.
    payoff: int32 (rectangles,). The column of `payoffs` of each.
    payoffs: float64 (2, columns). The return of each player, times the probability of chance.
    num_histories: int64 (starts,). The number of terminal histories of each walk.
    num_states: int64 (starts,). The number of all histories of each walk.
    num_core_histories: int. The number of terminal core histories.
  """

  players: tuple[PlayerRows, PlayerRows]
  ends: Int64s
  chance_event: Int32s
  chance_before: Int32s
  rows: Int32s
  payoff: Int32s
  payoffs: Float64s
  num_histories: Int64s
  num_states: Int64s
  num_core_histories: int


class _Batch(NamedTuple):
  """Result of some walks, with all numbers from 0.

  Attributes:
    players: PlayerRows of each player.
    ends: int64 (starts, 7). As in `CoreHistories`.
    rows: int32 (2, rectangles). The row of each player.
    payoff: int32 (rectangles,). The column of `payoffs` of each.
    payoffs: float64 (2, columns). Different payoffs.
  """

  players: tuple[PlayerRows, PlayerRows]
  ends: Int64s
  rows: Int32s
  payoff: Int32s
  payoffs: Float64s

  @property
  def num_bytes(self) -> int:
    return sum(array.nbytes for part in (*self.players, self[1:]) for array in part)


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
  record = _empty_walk(split)
  chain = Chain([core_walk.walk_cores.on(record)])
  counts, ends, totals, batches = record.counts, list[Any](), list[Any](), list[_Batch]()
  bar = tqdm.tqdm(
    desc="walking core histories", unit=" histories", unit_scale=True, delay=1.0, leave=False,
    disable=None if progress else True,
  )  # fmt: skip
  try:
    for start in starts:
      core_walk.begin(record, start[0], start[1:])
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
      sides = record.side0.counts, record.side1.counts
      ends.append([*sides[0][:3], *sides[1][:3], counts[core_walk.NUM_RECTANGLES]])
      totals.append(counts[[core_walk.HISTORIES, core_walk.STATES]])
      if max(own[core_walk.NUM_ENTRIES] for own in sides) > _BATCH:
        batches.append(_batch(record, ends))
        ends = []
        kept = sum(batch.num_bytes for batch in batches)
        if kept > max_bytes:
          raise errors.GameTooLargeError(
            f"After {len(totals):,} of {len(starts):,} subgames, arrays take {kept:,} bytes, more than "
            f"max_bytes={max_bytes:,}. Raise the limit if there is the memory."
          )
  finally:
    bar.close()
  if ends:
    batches.append(_batch(record, ends))
  paths = counts[core_walk.NUM_CHANCES]
  histories, decisions = np.diff(totals, axis=0, prepend=[[0, 0]]).T
  joined = batches[0] if len(batches) == 1 else _joined(batches)
  return CoreHistories(
    **joined._asdict(),
    chance_event=record.chance_event[:paths].copy(),
    chance_before=record.chance_before[:paths].copy(),
    num_histories=histories,
    num_states=histories + decisions,
    num_core_histories=int(counts[core_walk.CORE_HISTORIES]),
  )


def _batch(record: Walk, ends: list[Any]) -> _Batch:
  """Returns what the walks have found since the last batch, and begins a new one."""
  rectangles = record.counts[core_walk.NUM_RECTANGLES]
  players, rows, table = list[PlayerRows](), [], np.array(ends, np.int64)
  for player, side in enumerate((record.side0, record.side1)):
    own, number = merged(side)
    players.append(own)
    rows.append(number[record.rows[player, :rectangles]])
    # Rows that are equal are in the same walk, so that numbers are in the order of walks.
    before = np.append(0, 1 + np.maximum.accumulate(number))
    table[:, 2 + 3 * player] = before[table[:, 2 + 3 * player]]
    side.counts[:] = 0
  record.counts[core_walk.NUM_RECTANGLES] = 0
  pairs = np.ascontiguousarray(record.payoffs[:, :rectangles].T).view(np.complex128)
  payoffs, payoff = np.unique(pairs, return_inverse=True)
  columns = np.stack([payoffs.real, payoffs.imag])
  return _Batch(
    (players[0], players[1]), table, np.array(rows), payoff.ravel().astype(np.int32), columns
  )


def _joined(batches: list[_Batch]) -> _Batch:
  """Joins batches, numbering on from one to the next."""
  # For each batch: the numbers of infosets, sequences and rows of both players and of rectangles before it.
  before = np.cumsum([np.zeros(7, np.int64), *(batch.ends[-1] for batch in batches)], axis=0)
  columns = np.cumsum([0, *(batch.payoffs.shape[1] for batch in batches)])
  players = [
    joined_rows([batch.players[player] for batch in batches], before[:, own], before[:, other])
    for player, own, other in ((0, 1, 4), (1, 4, 1))
  ]
  numbered = list(zip(batches, before[:-1], columns[:-1], strict=True))
  return _Batch(
    players=(players[0], players[1]),
    ends=np.concatenate([batch.ends + shift for batch, shift, _ in numbered]),
    rows=np.concatenate(
      [batch.rows + shift[[2, 5]].astype(np.int32)[:, None] for batch, shift, _ in numbered], axis=1
    ),
    payoff=np.concatenate([batch.payoff + np.int32(column) for batch, _, column in numbered]),
    payoffs=np.concatenate([batch.payoffs for batch in batches], axis=1),
  )


def _empty_walk(split: Split) -> Walk:
  """Returns the kernel's arguments before the first walk."""
  sides = []
  for sights, legal in zip(split.sights, split.legal, strict=True):
    actions = np.array([len(actions) for actions in split.action_lists], np.int32)
    own: dict[str, Any] = {
      name: np.zeros(_ROOM, np.int32) for names in _OWN.values() for name in names
    }
    own["row_end"] = np.zeros(_ROOM, np.int64)
    counts = np.zeros(core_walk.NUM_SIDE_COUNTS, np.int64)
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
