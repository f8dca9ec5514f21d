"""Walks over the core histories of a game, from the root or from many worlds, with arrays that grow.

`core_walk` is the kernel. Equal sides are merged at the end, and whenever sides have become long (`merged_sides`).
"""

from typing import Any, NamedTuple

import numpy as np
import tqdm

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s
from spiel_cfr._numba.steps import Chain
from spiel_cfr.games.private_moves import core_walk
from spiel_cfr.games.private_moves.core_walk import PlayerWalk, Walk
from spiel_cfr.games.private_moves.cores import Split
from spiel_cfr.games.private_moves.merged_sides import PlayerSides, joined_sides, merged

# The fields of each group of arrays that `core_walk` asks to be longer: those of `Walk`, and those of `PlayerWalk`.
_OF_BOTH = {
  core_walk.FRAMES: ("frames", "reach"),
  core_walk.OFFSETS: ("offsets",),
  core_walk.CHANCES: ("chance_event", "chance_before"),
  core_walk.RECTANGLES: ("sides", "payoffs"),
}
_OF_PLAYER = {
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
  core_walk.SIDES: ("side_end",),
  core_walk.ENTRIES: ("entries",),
}
# Arrays with a line for each player.
_BY_PLAYER = ("sides", "payoffs")
# The length of arrays at the beginning.
_ROOM = 1 << 10
# The core and the sights at which the game begins.
GAME_START = np.zeros((1, 3), np.int64)
# Number of elements of lists after which the kernel returns: about a fiftieth of a second.
_WORK = 1 << 20
# Number of entries of sides after which sides are merged.
_BATCH = 1 << 22


class WalkStarts(NamedTuple):
  """The first infoset, sequence, side and rectangle of each walk, and the totals at the end.

  Attributes:
    infoset: int64 (2, walks + 1). The first infoset of each player in each walk.
    sequence: int64 (2, walks + 1). The first sequence of each player in each walk: the one at which the walk begins.
    side: int64 (2, walks + 1). The first side of each player in each walk.
    rectangle: int64 (walks + 1,). The first rectangle of each walk.
  """

  infoset: Int64s
  sequence: Int64s
  side: Int64s
  rectangle: Int64s


class CoreHistories(NamedTuple):
  """Result of walks over core histories.

  Attributes:
    players: PlayerSides of each player.
    starts: WalkStarts. The first number of each walk.
    chance_event: int32 (paths,). The last event of each path of chance.
    chance_before: int32 (paths,). The path of chance before that event, or `NONE`.
    sides: int32 (2, rectangles). The side of each player in each rectangle.
    payoff: int32 (rectangles,). The column of `payoffs` of each rectangle.
    payoffs: float64 (2, columns). The return of each player, times the probability of chance.
    num_terminals: int64 (walks,). The number of terminal histories of each walk.
    num_states: int64 (walks,). The number of all histories of each walk.
    num_core_histories: int. The number of terminal core histories.
  """

  players: tuple[PlayerSides, PlayerSides]
  starts: WalkStarts
  chance_event: Int32s
  chance_before: Int32s
  sides: Int32s
  payoff: Int32s
  payoffs: Float64s
  num_terminals: Int64s
  num_states: Int64s
  num_core_histories: int


class _Batch(NamedTuple):
  """Result of some consecutive walks. All numbers of a batch begin at 0.

  Attributes:
    players: PlayerSides of each player.
    starts: WalkStarts. The first number of each walk.
    sides: int32 (2, rectangles). The side of each player in each rectangle.
    payoff: int32 (rectangles,). The column of `payoffs` of each rectangle.
    payoffs: float64 (2, columns). The different payoffs of both players.
  """

  players: tuple[PlayerSides, PlayerSides]
  starts: WalkStarts
  sides: Int32s
  payoff: Int32s
  payoffs: Float64s

  @property
  def num_bytes(self) -> int:
    of_players = (sides.infosets + sides[1:] for sides in self.players)
    fields = (*of_players, self.starts, self[2:])
    return sum(array.nbytes for arrays in fields for array in arrays)


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
    starts: int64 (walks, 3). The core and the two sights at which each walk begins, such as `GAME_START`.
    max_core_histories: the number of terminal core histories after which the walk stops; None for no limit.
    max_bytes: largest memory of the arrays.
    progress: whether to show a bar, if standard error is a terminal.

  Raises:
    GameTooLargeError: there are more core histories, or the arrays take more memory.
    PrivateMovesError: the walk comes to a world that was not found.
  """
  bar = tqdm.tqdm(
    desc="walking core histories", unit=" histories", unit_scale=True, delay=1.0, leave=False,
    disable=None if progress else True,
  )  # fmt: skip
  walker = _Walker(split, max_core_histories, max_bytes, bar)
  try:
    for start in starts:
      walker.walk(start)
      walker.merge_long_sides(len(starts))
  finally:
    bar.close()
  return walker.result()


class _Walker:
  """Walks of one game: the kernel, its arrays, and the batches of walks whose sides are already merged."""

  def __init__(
    self, split: Split, max_core_histories: int | None, max_bytes: int, bar: Any
  ) -> None:
    self._max_core_histories, self._max_bytes, self._bar = max_core_histories, max_bytes, bar
    self._record = _empty_walk(split)
    self._chain = Chain([core_walk.walk_cores.on(self._record)])
    self._counts = self._record.counts
    # The numbers of histories and of decisions at the end of each walk.
    self._totals = list[Int64s]()
    # For each walk of the current batch: the numbers of infosets, sequences and sides of player 0, those of player 1,
    # and the number of rectangles, at its end.
    self._ends = list[list[int]]()
    self._batches = list[_Batch]()

  def walk(self, start: Int64s) -> None:
    """Walks all core histories from a start; arrays that are too short become longer."""
    counts = self._counts
    for player, own in enumerate((self._record.player0, self._record.player1)):
      if own.counts[core_walk.NUM_SEQUENCES] == len(own.child):
        self._make_room(core_walk.SEQUENCES + core_walk.NEXT_PLAYER * player)
    core_walk.begin(self._record, start[0], start[1:])
    while counts[core_walk.DEPTH]:
      self._chain.run()
      self._bar.update(int(counts[core_walk.HISTORIES]) - self._bar.n)
      self._check_core_histories()
      stop = int(counts[core_walk.STOP])
      if stop == core_walk.UNKNOWN_WORLD:
        raise errors.PrivateMovesError(
          "Two sequences that fit the same path of cores are not a history: the keys of worlds leave something out."
        )
      if stop not in (core_walk.DONE, core_walk.PAUSED):
        self._make_room(stop)
    first, second = self._record.player0.counts, self._record.player1.counts
    self._ends.append([*first[:3], *second[:3], counts[core_walk.NUM_RECTANGLES]])
    self._totals.append(counts[[core_walk.HISTORIES, core_walk.STATES]])

  def _make_room(self, group: int) -> None:
    """Makes the arrays of a group longer."""
    self._record = _with_room(self._record, group, self._max_bytes)
    self._chain = Chain([core_walk.walk_cores.on(self._record)])

  def _check_core_histories(self) -> None:
    most = self._max_core_histories
    if most is not None and self._counts[core_walk.CORE_HISTORIES] > most:
      raise errors.GameTooLargeError(f"The game has more than {most:,} core histories.")

  def merge_long_sides(self, num_walks: int) -> None:
    """Merges the sides of the current batch if they are long; `num_walks` is the number of all walks."""
    both = self._record.player0, self._record.player1
    if max(own.counts[core_walk.NUM_ENTRIES] for own in both) <= _BATCH:
      return
    self._end_batch()
    num_bytes = sum(batch.num_bytes for batch in self._batches)
    if num_bytes > self._max_bytes:
      raise errors.GameTooLargeError(
        f"After {len(self._totals):,} of {num_walks:,} subgames, arrays take {num_bytes:,} bytes, more than "
        f"max_bytes={self._max_bytes:,}. Raise the limit if there is the memory."
      )

  def _end_batch(self) -> None:
    self._batches.append(_batch(self._record, np.array(self._ends, np.int64)))
    self._ends = []

  def result(self) -> CoreHistories:
    """Returns the result of all walks."""
    if self._ends:
      self._end_batch()
    num_paths = self._counts[core_walk.NUM_CHANCES]
    histories, decisions = np.diff(self._totals, axis=0, prepend=[[0, 0]]).T
    joined = self._batches[0] if len(self._batches) == 1 else _joined(self._batches)
    return CoreHistories(
      **joined._asdict(),
      chance_event=self._record.chance_event[:num_paths].copy(),
      chance_before=self._record.chance_before[:num_paths].copy(),
      num_terminals=histories,
      num_states=histories + decisions,
      num_core_histories=int(self._counts[core_walk.CORE_HISTORIES]),
    )


def _batch(record: Walk, ends: Int64s) -> _Batch:
  """Returns the result of the walks since the last batch, and empties the arrays for the next one.

  Args:
    record: the kernel's arguments.
    ends: int64 (walks, 7). The numbers of `_Walker._ends`.
  """
  num_rectangles = record.counts[core_walk.NUM_RECTANGLES]
  starts = np.concatenate([np.zeros((1, 7), np.int64), ends]).T
  players, sides, first_sides = list[PlayerSides](), [], []
  for player, own in enumerate((record.player0, record.player1)):
    merged_player, side_number = merged(own)
    players.append(merged_player)
    sides.append(side_number[record.sides[player, :num_rectangles]])
    # Equal sides are in the same walk, so the numbers of merged sides ascend from walk to walk.
    num_before = np.append(0, 1 + np.maximum.accumulate(side_number))
    first_sides.append(num_before[starts[2 + 3 * player]])
    own.counts[:] = 0
  record.counts[core_walk.NUM_RECTANGLES] = 0
  pairs = np.ascontiguousarray(record.payoffs[:, :num_rectangles].T).view(np.complex128)
  payoffs, payoff = np.unique(pairs, return_inverse=True)
  return _Batch(
    players=(players[0], players[1]),
    starts=WalkStarts(starts[[0, 3]], starts[[1, 4]], np.stack(first_sides), starts[6]),
    sides=np.array(sides),
    payoff=payoff.ravel().astype(np.int32),
    payoffs=np.stack([payoffs.real, payoffs.imag]),
  )


def _joined(batches: list[_Batch]) -> _Batch:
  """Joins batches, numbering on from one to the next."""
  starts = WalkStarts(
    *(
      _joined_starts(list(parts))
      for parts in zip(*(batch.starts for batch in batches), strict=True)
    )
  )
  # The numbers of sides and sequences of both players before each batch, and of columns of payoffs.
  num_sides, num_sequences = (
    np.cumsum([np.zeros(2, np.int64), *(first[:, -1] for first in of_batches)], axis=0)
    for of_batches in (
      [batch.starts.side for batch in batches],
      [batch.starts.sequence for batch in batches],
    )
  )
  num_columns = np.cumsum([0, *(batch.payoffs.shape[1] for batch in batches)])
  first, second = (
    joined_sides(
      [batch.players[player] for batch in batches],
      num_sequences[:, player],
      num_sequences[:, 1 - player],
    )
    for player in (0, 1)
  )
  return _Batch(
    players=(first, second),
    starts=starts,
    sides=np.concatenate(
      [
        batch.sides + before.astype(np.int32)[:, None]
        for batch, before in zip(batches, num_sides[:-1], strict=True)
      ],
      axis=1,
    ),
    payoff=np.concatenate(
      [
        batch.payoff + np.int32(before)
        for batch, before in zip(batches, num_columns[:-1], strict=True)
      ]
    ),
    payoffs=np.concatenate([batch.payoffs for batch in batches], axis=1),
  )


def _joined_starts(parts: list[Int64s]) -> Int64s:
  """Joins the first numbers of the walks of batches, and the total at the end."""
  result = [parts[0]]
  for part in parts[1:]:
    result.append(part[..., 1:] + result[-1][..., -1:])
  return np.concatenate(result, axis=-1)


def _empty_walk(split: Split) -> Walk:
  """Returns the kernel's arguments before the first walk."""
  player0, player1 = (_empty_player_walk(split, player) for player in (0, 1))
  most_events = int(np.diff(split.cores.first_event).max(initial=0))
  room = _ROOM + most_events
  return Walk(
    cores=split.cores,
    player0=player0,
    player1=player1,
    frames=np.zeros((_ROOM, core_walk.FRAME_COLUMNS), np.int64),
    reach=np.ones(_ROOM),
    offsets=np.zeros(room, np.int32),
    chance_event=np.zeros(_ROOM, np.int32),
    chance_before=np.zeros(_ROOM, np.int32),
    sides=np.zeros((2, room), np.int32),
    payoffs=np.zeros((2, room)),
    counts=np.zeros(core_walk.NUM_COUNTS, np.int64),
    most_work=_WORK,
  )


def _empty_player_walk(split: Split, player: int) -> PlayerWalk:
  """Returns a player's arrays before the first walk."""
  length_of_list = np.array([len(actions) for actions in split.action_lists], np.int32)
  legal = split.legal[player]
  arrays: dict[str, Any] = {
    name: np.zeros(_ROOM, np.int32) for names in _OF_PLAYER.values() for name in names
  }
  arrays["side_end"] = np.zeros(_ROOM, np.int64)
  return PlayerWalk(
    sights=split.sights[player],
    num_actions=np.where(legal < 0, 0, length_of_list[legal]).astype(np.int32),
    counts=np.zeros(core_walk.NUM_PLAYER_COUNTS, np.int64),
    **arrays,
  )


def _with_room(record: Walk, group: int, max_bytes: int) -> Any:
  """Returns the kernel's arguments with the arrays of a group twice as long.

  Raises:
    GameTooLargeError: all arrays would take more than `max_bytes`.
  """
  player, place = divmod(group - core_walk.OF_PLAYER, core_walk.NEXT_PLAYER)
  owner: Any = record if group in _OF_BOTH else (record.player0, record.player1)[player]
  names = _OF_BOTH[group] if group in _OF_BOTH else _OF_PLAYER[core_walk.OF_PLAYER + place]
  arrays = {name: getattr(owner, name) for name in names}
  _check_bytes(record, sum(array.nbytes for array in arrays.values()), max_bytes)
  longer = owner._replace(
    **{name: _twice_as_long(array, name in _BY_PLAYER) for name, array in arrays.items()}
  )
  return longer if owner is record else record._replace(**{f"player{player}": longer})


def _check_bytes(record: Walk, more: int, max_bytes: int) -> None:
  """Raises GameTooLargeError if the arrays and some more bytes take more memory than allowed."""
  both = record.player0, record.player1
  used = sum(
    array.nbytes
    for arguments in (record, *both)
    for array in arguments
    if isinstance(array, np.ndarray)
  )
  if used + more > max_bytes:
    infosets = [own.counts[core_walk.NUM_INFOSETS] for own in both]
    raise errors.GameTooLargeError(
      f"After {record.counts[core_walk.HISTORIES]:,} histories and {infosets[0]:,} + {infosets[1]:,} infosets, arrays "
      f"need {used + more:,} bytes, more than max_bytes={max_bytes:,}. Raise the limit if there is the memory."
    )


def _twice_as_long(array: Any, by_player: bool) -> Any:
  return np.concatenate([array, np.empty_like(array)], axis=1 if by_player else 0)
