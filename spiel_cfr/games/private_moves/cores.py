"""Cores and sights: the split of worlds that makes the two players' sequences independent.

A *core* is the truth and the player to move. A move that leads to another core is an *event* of its core. A *sight* is
a core and what one player has seen of it. `split` checks these claims for every world and move:

- claim 1: a player's legal actions, at its own moves, depend only on what it has seen;
- claim 2: the event and the player's next sight depend only on its sight and its action;
- claim 3: the other player's next sight depends only on its own sight and the event, and does not change without an
  event;
- claim 4: the probabilities of chance depend only on the core.

By induction, the sequences of player 0 and those of player 1 that fit a path of cores are independent: every pair of
them is a history.
"""

from typing import Annotated, NamedTuple, NoReturn

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s
from spiel_cfr._numba.records import Doubles, DoubleTable, Field
from spiel_cfr.games.private_moves.worlds import CHANCE, Worlds

Ints = Annotated[Int32s, Field("int32", 1)]
# NO_EVENT: a move that does not change the core. NO_SIGHT: the sight after the end of the game.
NO_EVENT, NO_SIGHT = -1, -1
_UNSET = -9


class Cores(NamedTuple):
  """The graph of cores.

  Attributes:
    mover: int32 (cores,). A player, `worlds.CHANCE` or `worlds.TERMINAL`.
    returns: float64 (cores, 2). The returns of both players at terminal cores.
    first_event: int32 (cores + 1,). The first event of each core, then the number of events.
    event_core: int32 (events,). The core that each event leads to.
    event_probability: float64 (events,). The probability of an event of chance; 1 elsewhere.
    event_action: int32 (events,). An action that causes the event.
  """

  mover: Ints
  returns: DoubleTable
  first_event: Ints
  event_core: Ints
  event_probability: Doubles
  event_action: Ints


class Sights(NamedTuple):
  """The sights of one player.

  Attributes:
    seen: int32 (sights,). The number of what the player has seen.
    first_move: int32 (sights + 1,). The first move of each sight at which the player moves.
    move_event: int32 (moves,). The event of each move, counted from the first of its core, or `NO_EVENT`.
    move_sight: int32 (moves,). The sight after each move, or `NO_SIGHT`.
    first_view: int32 (sights + 1,). The first view of each sight at which the player does not move; it has one view for
      each event.
    view_sight: int32 (views,). The sight after each event, or `NO_SIGHT`.
  """

  seen: Ints
  first_move: Ints
  move_event: Ints
  move_sight: Ints
  first_view: Ints
  view_sight: Ints


class Split(NamedTuple):
  """Worlds, split into cores and sights. The root is sight 0 of core 0.

  Attributes:
    cores: Cores. The cores.
    sights: for each player, Sights.
    sight: int64 (2, worlds). The sight of each player at each world.
    legal: for each player, int64 (seen,). The list of legal actions for each value that it has seen; -1 if it never
      moves there.
    action_lists: list of tuples. Lists of actions.
  """

  cores: Cores
  sights: tuple[Sights, Sights]
  sight: Int64s
  legal: tuple[Int64s, Int64s]
  action_lists: list[tuple[int, ...]]


def split(worlds: Worlds) -> Split:
  """Splits worlds into cores and sights.

  Raises:
    PrivateMovesError: the worlds do not split; the message has two histories that contradict each other.
  """
  before = worlds.core[worlds.source]
  after = worlds.core_after(np.arange(len(worlds.target)))
  mover, num_cores = worlds.mover[before], len(worlds.mover)
  steps, step = np.unique(before * num_cores + after, return_inverse=True)
  # A step from a core to itself is no event.
  is_event = steps // num_cores != steps % num_cores
  number = np.cumsum(is_event) - 1
  first_event = np.searchsorted((steps // num_cores)[is_event], np.arange(num_cores + 1))
  event = np.where(is_event[step], number[step] - first_event[before], NO_EVENT)
  still = np.flatnonzero((event == NO_EVENT) & (mover == CHANCE))
  if len(still):
    _refuse(worlds, "a move of chance does not change the core", still[0])
  action = np.zeros(is_event.sum(), np.int64)
  action[number[step[is_event[step]]]] = worlds.action[is_event[step]]
  cores = Cores(
    mover=worlds.mover.astype(np.int32),
    returns=worlds.returns,
    first_event=first_event.astype(np.int32),
    event_core=(steps % num_cores)[is_event].astype(np.int32),
    event_probability=_chances(worlds, first_event, before, event, mover == CHANCE),
    event_action=action.astype(np.int32),
  )
  found = [_sights(worlds, player, first_event, before, event, mover) for player in (0, 1)]
  (first, first_sight, first_legal), (second, second_sight, second_legal) = found
  sight, legal = np.stack([first_sight, second_sight]), (first_legal, second_legal)
  return Split(cores, (first, second), sight, legal, worlds.action_lists)


def _chances(
  worlds: Worlds, first_event: Int64s, before: Int64s, event: Int64s, chance: Int64s
) -> Float64s:
  """Returns the probability of each event, after a check of claim 4."""
  edges = np.flatnonzero(chance)
  result = np.ones(first_event[-1])
  # Several outcomes may cause one event: their probabilities are summed by world and event.
  pairs, pair, places = np.unique(
    worlds.source[edges] * first_event[-1] + first_event[before[edges]] + event[edges],
    return_index=True, return_inverse=True,
  )  # fmt: skip
  totals = np.bincount(places, worlds.probability[edges], len(pairs))
  of_event = pairs % max(1, first_event[-1])
  result[of_event] = totals
  events = np.diff(first_event)[worlds.core]
  met = np.bincount(pairs // max(1, first_event[-1]), minlength=len(worlds.core))
  lacks = (worlds.mover[worlds.core] == CHANCE) & (met != events)
  off = np.abs(result[of_event] - totals) > 1e-12
  wrong = [*edges[pair[off]], *worlds.first_edge[np.flatnonzero(lacks)]]
  if wrong:
    world = worlds.source[wrong[0]]
    same = np.flatnonzero((worlds.core == worlds.core[world]) & (np.arange(len(lacks)) != world))
    _refuse(
      worlds,
      "the probabilities of chance depend on what players have seen",
      wrong[0],
      worlds.first_edge[same[0]],
    )
  return result


def _sights(
  worlds: Worlds, player: int, first_event: Int64s, before: Int64s, event: Int64s, mover: Int64s
) -> tuple[Sights, Int64s, Int64s]:
  """Returns a player's sights, its sight at each world, and its legal actions, after checks of claims 1 to 3."""
  seen, num_seen = worlds.seen_number[player], len(worlds.seen[player])
  pairs, sight = np.unique(worlds.core * num_seen + seen, return_inverse=True)
  # The root gets number 0.
  swap = np.arange(len(pairs))
  swap[[0, sight[0]]] = swap[[sight[0], 0]]
  pairs, sight = pairs[swap], swap[sight]
  core = pairs // num_seen
  seen_at = pairs % num_seen
  own = worlds.mover[worlds.core] == player
  legal = np.full(num_seen, -1)
  _store(
    worlds, legal, seen[own], worlds.legal[own], worlds.first_edge[own],
    f"player {player} has seen the same, but its legal actions differ",
  )  # fmt: skip
  counts = np.array([len(actions) for actions in worlds.action_lists])
  moves = np.where(worlds.mover[core] == player, counts[legal[seen_at]], 0)
  views = np.where(worlds.mover[core] == player, 0, np.diff(first_event)[core])
  first_move, first_view = (np.append(0, np.cumsum(counts)) for counts in (moves, views))

  now, ends = sight[worlds.source], worlds.target < 0
  later = np.where(ends, NO_SIGHT, sight[np.maximum(worlds.target, 0)])
  mine = np.flatnonzero(mover == player)
  move_event, move_sight = np.full((2, first_move[-1]), _UNSET)
  places = first_move[now[mine]] + worlds.place[mine]
  problem = f"the effect of a move of player {player} depends on what the other player has seen"
  _store(worlds, move_event, places, event[mine], mine, problem)
  _store(worlds, move_sight, places, later[mine], mine, problem)
  hidden = np.flatnonzero((mover != player) & (event == NO_EVENT))
  noticed = hidden[later[hidden] != now[hidden]]
  if len(noticed):
    _refuse(worlds, f"player {player} sees a move that does not change the core", noticed[0])
  visible = np.flatnonzero((mover != player) & (event != NO_EVENT))
  view_sight = np.full(first_view[-1], _UNSET)
  _store(
    worlds, view_sight, first_view[now[visible]] + event[visible], later[visible], visible,
    f"the sight of player {player} after an event depends on what the other player has seen",
  )  # fmt: skip
  result = (seen_at, first_move, move_event, move_sight, first_view, view_sight)
  return Sights(*(array.astype(np.int32) for array in result)), sight, legal


def _store(
  worlds: Worlds, table: Int64s, places: Int64s, values: Int64s, edges: Int64s, problem: str
) -> None:
  """Writes values to places of a table; raises PrivateMovesError if one place gets two values."""
  table[places] = values
  wrong = np.flatnonzero(table[places] != values)
  if len(wrong):
    same = np.flatnonzero((places == places[wrong[0]]) & (values != values[wrong[0]]))
    _refuse(worlds, problem, edges[wrong[0]], edges[same[0]])


def _refuse(worlds: Worlds, problem: str, edge: int, other: int | None = None) -> NoReturn:
  """Raises PrivateMovesError with the histories that end with an edge and, if given, with another edge."""
  history = str(worlds.history_after(int(edge)))
  if other is not None:
    history = f"{worlds.history_after(int(other))} and {history}"
  raise errors.PrivateMovesError(
    f"The players' sequences are not independent: {problem}. See {history}. Worlds are identified by "
    f"{worlds.keys}."
  )
