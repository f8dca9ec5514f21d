"""Kernel of the walk over core histories, which finds both players' infosets and the sides of rectangles.

A *core history* is a path of cores. Each player has a list of the sequences that fit it, and every pair from the two
lists is a history. If a move ends the game, a *rectangle* pairs a side of player 0 with a side of player 1, at one
payoff. A failed attempt does not change the core, so it adds sequences to the mover's list, but no core history.

If an array is full, the kernel stops. Python makes the array longer, and the kernel repeats the unfinished step.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int32s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, Doubles, DoubleTable, Field, Longs
from spiel_cfr._numba.steps import step
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.games.private_moves.cores import Cores, Ints, Sights

LongTable = Annotated[Int64s, Field("int64", 2)]
IntTable = Annotated[Int32s, Field("int32", 2)]

# Values of `counts[STOP]`: the walk is done, or paused; or the name of a group of arrays that is too short.
DONE, PAUSED, FRAMES, OFFSETS, CHANCES, RECTANGLES, LISTS, INFOSETS, SEQUENCES, SIDES, ENTRIES = (
  range(11)
)
# Groups from `OF_PLAYER` on have arrays of one player. Their numbers for player 1 are larger by `NEXT_PLAYER`.
OF_PLAYER, NEXT_PLAYER = LISTS, 5
UNKNOWN_WORLD = 16  # The walk has come to a world that was not found.
# Columns of `Walk.frames`: core, next event, first offset, path of chance. Then, for each player (the constant plus the
# player), the beginning and the end of its list, and the end of the elements that the core history uses.
_CORE, _NEXT, _OFFSET, _CHANCE_PATH, _BEGIN, _END, _TOP = 0, 1, 2, 3, 4, 6, 8
FRAME_COLUMNS = 10
_ARRIVING = -1
# Elements of `Walk.counts`. STATES counts nonterminal histories, WORK counts elements of lists.
STOP, DEPTH, NUM_CHANCES, NUM_RECTANGLES, HISTORIES, STATES, CORE_HISTORIES, WORK = range(8)
NUM_COUNTS = 8
# Elements of `PlayerWalk.counts`.
NUM_INFOSETS, NUM_SEQUENCES, NUM_SIDES, NUM_ENTRIES = range(4)
NUM_PLAYER_COUNTS = 4


class PlayerWalk(NamedTuple):
  """One player's sights, lists, infosets and sides.

  Sequences are numbered as infosets are found, after the one at which the walk begins.

  Attributes:
    sights: Sights. The player's sights.
    num_actions: int32 (seen,). The number of actions by what the player has seen.
    list_sequence: int32 (elements,). The sequences that fit the core histories on the current path, list after list.
    list_sight: int32 (elements,). The player's sight after each sequence.
    list_below: int32 (elements,). The first sequence of the infoset below each sequence, if the player moves.
    parent: int32 (infosets,). The sequence above each infoset.
    seen: int32 (infosets,). The number of what the player has seen there.
    sibling: int32 (infosets,). The next infoset below the same sequence, or `NONE`.
    first_sequence: int32 (infosets,). The sequence of action 0 of each infoset.
    opponent_sequence: int32 (infosets,). A sequence of the opponent that, with the infoset, is a history.
    chance_path: int32 (infosets,). The chance events of that history: an index in `Walk.chance_event`.
    child: int32 (sequences,). The first infoset below each sequence, or `NONE`.
    side_end: int64 (sides,). One past the last entry of each side.
    entries: int32 (entries,). The sequences of each side, end to end.
    counts: int64 (4,). The used lengths of arrays: `NUM_INFOSETS`, `NUM_SEQUENCES`, `NUM_SIDES`, `NUM_ENTRIES`.
  """

  sights: Sights
  num_actions: Ints
  list_sequence: Ints
  list_sight: Ints
  list_below: Ints
  parent: Ints
  seen: Ints
  sibling: Ints
  first_sequence: Ints
  opponent_sequence: Ints
  chance_path: Ints
  child: Ints
  side_end: Longs
  entries: Ints
  counts: Longs


class Walk(NamedTuple):
  """The arguments of `walk_cores`.

  Attributes:
    cores: Cores. The cores.
    player0: PlayerWalk. Player 0.
    player1: PlayerWalk. Player 1.
    frames: int64 (depth, 10). The core histories on the current path, one a row; see the columns above.
    reach: float64 (depth,). Chance's probability of each core history on the path.
    offsets: int32 (offsets,). For each core history on the path and each event, the first element of the mover's lists
      with that event.
    chance_event: int32 (paths,). The last event of each path of chance.
    chance_before: int32 (paths,). The path of chance before that event, or `NONE`.
    sides: int32 (2, rectangles). The side of each player in each rectangle.
    payoffs: float64 (2, rectangles). The return of each player, times the probability of chance.
    counts: int64 (8,). Counters, from `STOP` to `WORK`.
    most_work: int. The number of elements of lists after which the kernel pauses.
  """

  cores: Cores
  player0: PlayerWalk
  player1: PlayerWalk
  frames: LongTable
  reach: Doubles
  offsets: Ints
  chance_event: Ints
  chance_before: Ints
  sides: IntTable
  payoffs: DoubleTable
  counts: Longs
  most_work: Count


@inlined
def _walk_of(record: Walk, player: int) -> PlayerWalk:
  return record.player0 if player == 0 else record.player1


@inlined
def _infoset(own: PlayerWalk, sequence: int, seen: int, opponent_sequence: int, path: int) -> Any:
  """Returns the infoset below a sequence with what its owner has seen; adds it if it is new."""
  infoset, last = own.child[sequence], NONE
  while infoset != NONE and own.seen[infoset] != seen:
    last, infoset = infoset, own.sibling[infoset]
  if infoset != NONE:
    return infoset
  infoset, first = own.counts[NUM_INFOSETS], own.counts[NUM_SEQUENCES]
  own.parent[infoset], own.seen[infoset], own.sibling[infoset] = sequence, seen, NONE
  own.first_sequence[infoset] = first
  own.opponent_sequence[infoset] = opponent_sequence
  own.chance_path[infoset] = path
  for action in range(own.num_actions[seen]):
    own.child[first + action] = NONE
  own.counts[NUM_INFOSETS] += 1
  own.counts[NUM_SEQUENCES] += own.num_actions[seen]
  if last == NONE:
    own.child[sequence] = infoset
  else:
    own.sibling[last] = infoset
  return infoset


@inlined
def _move(record: Walk, frame: int, player: int, own: PlayerWalk) -> Any:
  """Makes all moves of a player's list. Sequences of failed attempts join the list; those of events follow it.

  Returns:
    The group of arrays that is too short, or `DONE`.
  """
  cores, frames, sights = record.cores, record.frames, own.sights
  core, offset, shift = frames[frame, _CORE], frames[frame, _OFFSET], NEXT_PLAYER * player
  events = cores.first_event[core + 1] - cores.first_event[core]
  begin, end = frames[frame, _BEGIN + player], frames[frame, _END + player]
  other = _walk_of(record, 1 - player)
  opponent_sequence = other.list_sequence[frames[frame, _BEGIN + 1 - player]]
  chance_path = frames[frame, _CHANCE_PATH]
  for event in range(events + 2):
    record.offsets[offset + event] = 0
  place, moves = begin, 0
  while place < end:
    sight = own.list_sight[place]
    seen, first, last = sights.seen[sight], sights.first_move[sight], sights.first_move[sight + 1]
    if own.counts[NUM_INFOSETS] >= own.seen.shape[0]:
      return INFOSETS + shift
    if own.counts[NUM_SEQUENCES] + last - first > own.child.shape[0]:
      return SEQUENCES + shift
    infoset = _infoset(own, own.list_sequence[place], seen, opponent_sequence, chance_path)
    below = own.first_sequence[infoset]
    own.list_below[place] = below
    for move in range(first, last):
      event = sights.move_event[move]
      if event != NONE:
        record.offsets[offset + event + 2] += 1
        moves += 1
      elif end >= own.list_sequence.shape[0]:
        return LISTS + shift
      else:
        own.list_sequence[end], own.list_sight[end] = (
          below + move - first,
          sights.move_sight[move],
        )
        end += 1
    place += 1
  if end + moves > own.list_sequence.shape[0]:
    return LISTS + shift
  record.offsets[offset + 1] = end
  for event in range(events):
    record.offsets[offset + event + 2] += record.offsets[offset + event + 1]
  for place in range(begin, end):
    sight, below = own.list_sight[place], own.list_below[place]
    first = sights.first_move[sight]
    for move in range(first, sights.first_move[sight + 1]):
      event = sights.move_event[move]
      if event != NONE:
        target = record.offsets[offset + event + 1]
        record.offsets[offset + event + 1] += 1
        own.list_sequence[target] = below + move - first
        own.list_sight[target] = sights.move_sight[move]
  record.offsets[offset] = end
  frames[frame, _END + player] = end
  frames[frame, _TOP + player] = end + moves
  record.counts[WORK] += end - begin + moves
  return DONE


@inlined
def _add_side(own: PlayerWalk, begin: int, end: int) -> Any:
  """Adds a side of the sequences between two places of a player's lists; the arrays must have room."""
  counts = own.counts
  start, side = counts[NUM_ENTRIES], counts[NUM_SIDES]
  for place in range(end - begin):
    own.entries[start + place] = own.list_sequence[begin + place]
  counts[NUM_ENTRIES] += end - begin
  own.side_end[side] = counts[NUM_ENTRIES]
  counts[NUM_SIDES] += 1
  return side


@inlined
def _room_for_sides(own: PlayerWalk, player: int, sides: int, entries: int) -> Any:
  """Returns the group of a player's arrays that is too short for more sides and entries, or `DONE`."""
  if own.counts[NUM_SIDES] + sides > own.side_end.shape[0]:
    return SIDES + NEXT_PLAYER * player
  if own.counts[NUM_ENTRIES] + entries > own.entries.shape[0]:
    return ENTRIES + NEXT_PLAYER * player
  return DONE


@inlined
def _end(record: Walk, frame: int, mover: int) -> Any:
  """Adds the rectangles of a core history: one for each event that ends the game with a payoff.

  Returns:
    The group of arrays that is too short, or `DONE`.
  """
  cores, frames, counts = record.cores, record.frames, record.counts
  core, offset = frames[frame, _CORE], frames[frame, _OFFSET]
  first, events = cores.first_event[core], cores.first_event[core + 1] - cores.first_event[core]
  sizes = (
    frames[frame, _END] - frames[frame, _BEGIN],
    frames[frame, _END + 1] - frames[frame, _BEGIN + 1],
  )
  if counts[NUM_RECTANGLES] + events > record.sides.shape[1]:
    return RECTANGLES
  for player in range(2):
    # The mover's sides are parts of its list, whose moves lie between its end and its top.
    entries = frames[frame, _TOP + player] - frames[frame, _BEGIN + player]
    full = _room_for_sides(_walk_of(record, player), player, events + 1, entries)
    if full != DONE:
      return full
  first_rectangle = counts[NUM_RECTANGLES]
  for event in range(events):
    after = cores.event_core[first + event]
    if cores.mover[after] != TERMINAL:
      continue
    begin = end = 0
    size = sizes[0] * sizes[1]
    if mover != CHANCE:
      begin, end = record.offsets[offset + event], record.offsets[offset + event + 1]
      size = (end - begin) * sizes[1 - mover]
    counts[HISTORIES] += size
    counts[CORE_HISTORIES] += size > 0
    if size and (cores.returns[after, 0] != 0.0 or cores.returns[after, 1] != 0.0):
      rectangle = counts[NUM_RECTANGLES]
      for player in range(2):
        own = _walk_of(record, player)
        if player == mover:
          side = _add_side(own, begin, end)
        elif rectangle > first_rectangle:
          side = record.sides[player, rectangle - 1]
        else:
          side = _add_side(own, frames[frame, _BEGIN + player], frames[frame, _END + player])
        chance = record.reach[frame] * cores.event_probability[first + event]
        record.sides[player, rectangle] = side
        record.payoffs[player, rectangle] = cores.returns[after, player] * chance
      counts[NUM_RECTANGLES] += 1
  counts[STATES] += sizes[0] * sizes[1]
  return DONE


@inlined
def _enter(record: Walk, frame: int, player: int, own: PlayerWalk, event: int, mover: int) -> Any:
  """Makes a player's list at the core history after an event.

  Returns:
    The group of arrays that is too short, `UNKNOWN_WORLD`, or `DONE`.
  """
  frames, sights = record.frames, own.sights
  top = frames[frame, _TOP + player]
  begin, end = frames[frame, _BEGIN + player], frames[frame, _END + player]
  if player == mover:
    offset = frames[frame, _OFFSET]
    begin, end = record.offsets[offset + event], record.offsets[offset + event + 1]
  size = end - begin
  if top + size > own.list_sequence.shape[0]:
    return LISTS + NEXT_PLAYER * player
  for place in range(size):
    sight = own.list_sight[begin + place]
    if player != mover:
      sight = sights.observation_sight[sights.first_observation[sight] + event]
      if sight < 0:
        return UNKNOWN_WORLD
    own.list_sequence[top + place] = own.list_sequence[begin + place]
    own.list_sight[top + place] = sight
  frames[frame + 1, _BEGIN + player] = top
  frames[frame + 1, _END + player] = frames[frame + 1, _TOP + player] = top + size
  record.counts[WORK] += size
  return DONE


@inlined
def _arrive(record: Walk, frame: int, mover: int) -> Any:
  """Makes the moves at a core history, and the rectangles of the moves that end the game."""
  frames = record.frames
  if mover == CHANCE:
    return _end(record, frame, mover)
  begins = frames[frame, _END + mover]
  full = _move(record, frame, mover, _walk_of(record, mover))
  if full == DONE:
    full = _end(record, frame, mover)
  if full != DONE:
    # The next arrival begins with the same list.
    frames[frame, _END + mover] = frames[frame, _TOP + mover] = begins
  return full


@inlined
def _descend(record: Walk, frame: int, mover: int, event: int) -> Any:
  """Adds the core history after an event to the path, unless the game ends or no sequence has the event."""
  cores, frames, counts = record.cores, record.frames, record.counts
  core, offset = frames[frame, _CORE], frames[frame, _OFFSET]
  number = cores.first_event[core] + event
  after = cores.event_core[number]
  if cores.mover[after] == TERMINAL:
    return DONE
  if mover != CHANCE and record.offsets[offset + event] == record.offsets[offset + event + 1]:
    return DONE
  if frame + 1 >= frames.shape[0]:
    return FRAMES
  if counts[NUM_CHANCES] >= record.chance_event.shape[0]:
    return CHANCES
  offset += cores.first_event[core + 1] - cores.first_event[core] + 2
  if offset + cores.first_event[after + 1] - cores.first_event[after] + 2 > record.offsets.shape[0]:
    return OFFSETS
  full = DONE
  for player in range(2):
    if full == DONE:
      full = _enter(record, frame, player, _walk_of(record, player), event, mover)
  if full == DONE:
    frames[frame + 1, _CORE], frames[frame + 1, _NEXT] = after, _ARRIVING
    frames[frame + 1, _OFFSET] = offset
    frames[frame + 1, _CHANCE_PATH] = frames[frame, _CHANCE_PATH]
    record.reach[frame + 1] = record.reach[frame] * cores.event_probability[number]
    if mover == CHANCE:
      path = counts[NUM_CHANCES]
      record.chance_event[path] = number
      record.chance_before[path] = frames[frame, _CHANCE_PATH]
      frames[frame + 1, _CHANCE_PATH] = path
      counts[NUM_CHANCES] += 1
    counts[DEPTH] += 1
  return full


@step(Walk, single=False)
def walk_cores(record: Walk) -> None:
  """Continues the walk, depth first, until it is done, an array is too short, or `most_work` is reached."""
  frames, counts, cores = record.frames, record.counts, record.cores
  counts[STOP] = DONE
  until = counts[WORK] + np.int64(record.most_work)
  while counts[DEPTH] > 0 and counts[STOP] == DONE:
    frame = counts[DEPTH] - 1
    core, event = frames[frame, _CORE], frames[frame, _NEXT]
    mover = cores.mover[core]
    if event == _ARRIVING:
      counts[STOP] = _arrive(record, frame, mover)
    elif event < cores.first_event[core + 1] - cores.first_event[core]:
      counts[STOP] = _descend(record, frame, mover, event)
    else:
      counts[DEPTH] -= 1
      continue
    if counts[STOP] == DONE:
      frames[frame, _NEXT] += 1
      if counts[WORK] > until:
        counts[STOP] = PAUSED


def begin(record: Walk, core: int, sights: Int64s) -> None:
  """Begins a walk at a core and a sight of each player, who has a new sequence there."""
  record.frames[0] = core, _ARRIVING, 0, NONE, 0, 0, 1, 1, 1, 1
  record.reach[0] = 1.0
  for own, sight in zip((record.player0, record.player1), sights, strict=True):
    own.list_sequence[0], own.list_sight[0] = own.counts[NUM_SEQUENCES], sight
    own.child[own.counts[NUM_SEQUENCES]] = NONE
    own.counts[NUM_SEQUENCES] += 1
  record.counts[DEPTH] = 1
