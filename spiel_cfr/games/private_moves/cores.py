"""Cores and sights: worlds, split so that the sequences of the two players are independent along a path of cores.

A *core* is the true state and the player to move. A move that leads to another core is an *event* of its core. A
*sight* of a player is a core and what the player has seen of it. `split_worlds` checks four claims at every world and
move:

- claim 1: a player's legal actions, at its own moves, depend only on what it has seen;
- claim 2: the event and the mover's next sight depend only on the mover's sight and action;
- claim 3: the other player's next sight depends only on its sight and the event, and a move without an event does not
  change it;
- claim 4: the probabilities of chance depend only on the core.

By induction, each sequence of player 0 that fits a path of cores makes a history with each sequence of player 1 that
fits it.
"""

from typing import Annotated, NamedTuple, NoReturn

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int32s, Int64s
from spiel_cfr._numba.records import Doubles, DoubleTable, Field
from spiel_cfr.games.openspiel.checked_calls import CHANCE
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.games.private_moves.worlds import Worlds

Ints = Annotated[Int32s, Field("int32", 1)]
_UNSET = -9


class Cores(NamedTuple):
  """The graph of cores.

  Attributes:
    mover: int32 (cores,). The player to move, `CHANCE` or `TERMINAL` of `checked_calls`.
    returns: float64 (cores, 2). The returns of both players at terminal cores; 0 elsewhere.
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
    first_move: int32 (sights + 1,). The first move of each sight. Sights at which the player does not move have none.
    move_event: int32 (moves,). The event of each move, counted from the first event of its core; `NONE` if the move
      does not change the core.
    move_sight: int32 (moves,). The sight after each move; `NONE` at the end of the game.
    first_observation: int32 (sights + 1,). The first observation of each sight. A sight at which the player does not
      move has an observation for each event of its core.
    observation_sight: int32 (observations,). The sight after each observation; `NONE` at the end of the game.
  """

  seen: Ints
  first_move: Ints
  move_event: Ints
  move_sight: Ints
  first_observation: Ints
  observation_sight: Ints


class Split(NamedTuple):
  """Worlds, split into cores and sights. The root is sight 0 of core 0.

  Attributes:
    cores: Cores. The cores.
    sights: Sights of each player.
    sight: int64 (2, worlds). The sight of each player at each world.
    legal: for each player, int64 (seen,). The list of legal actions by what the player has seen; `NONE` if it never
      moves then.
    action_lists: list of tuples. Lists of actions.
  """

  cores: Cores
  sights: tuple[Sights, Sights]
  sight: Int64s
  legal: tuple[Int64s, Int64s]
  action_lists: list[tuple[int, ...]]


class _Moves(NamedTuple):
  """The edges of the graph of worlds as moves at cores.

  Attributes:
    core: int64 (edges,). The core before each move.
    mover: int64 (edges,). The player who makes each move, or `CHANCE`.
    event: int64 (edges,). The event of each move, counted from the first event of its core; `NONE` if the move does
      not change the core.
    first_event: int64 (cores + 1,). The first event of each core, then the number of events.
  """

  core: Int64s
  mover: Int64s
  event: Int64s
  first_event: Int64s


def split_worlds(worlds: Worlds) -> Split:
  """Splits worlds into cores and sights.

  Raises:
    PrivateMovesError: the worlds do not split; the message has two histories that contradict each other.
  """
  moves, cores = _find_events(worlds)
  (first, first_sight, first_legal), (second, second_sight, second_legal) = (
    _find_sights(worlds, moves, player) for player in (0, 1)
  )
  return Split(
    cores=cores,
    sights=(first, second),
    sight=np.stack([first_sight, second_sight]),
    legal=(first_legal, second_legal),
    action_lists=worlds.action_lists,
  )


def _find_events(worlds: Worlds) -> tuple[_Moves, Cores]:
  """Returns the events of moves, and the graph of cores; checks claim 4."""
  num_cores = len(worlds.mover)
  before = worlds.core[worlds.source]
  after = worlds.core_after(np.arange(len(worlds.target)))
  mover = worlds.mover[before]
  # A step is a pair of a core and the next core. It is an event if the cores differ.
  steps, step_of_edge = np.unique(before * num_cores + after, return_inverse=True)
  step_source, step_target = np.divmod(steps, num_cores)
  is_event = step_source != step_target
  event_of_step = np.cumsum(is_event) - 1
  first_event = np.searchsorted(step_source[is_event], np.arange(num_cores + 1))
  has_event = is_event[step_of_edge]
  event = np.where(has_event, event_of_step[step_of_edge] - first_event[before], NONE)
  idle_chance = np.flatnonzero(~has_event & (mover == CHANCE))
  if len(idle_chance):
    _refuse(worlds, "a move of chance does not change the core", idle_chance[0])
  event_action = np.zeros(is_event.sum(), np.int64)
  event_action[event_of_step[step_of_edge[has_event]]] = worlds.action[has_event]
  moves = _Moves(before, mover, event, first_event)
  cores = Cores(
    mover=worlds.mover.astype(np.int32),
    returns=worlds.returns,
    first_event=first_event.astype(np.int32),
    event_core=step_target[is_event].astype(np.int32),
    event_probability=_event_probabilities(worlds, moves),
    event_action=event_action.astype(np.int32),
  )
  return moves, cores


def _event_probabilities(worlds: Worlds, moves: _Moves) -> Float64s:
  """Returns the probability of each event; checks claim 4."""
  num_events = int(moves.first_event[-1])
  edges = np.flatnonzero(moves.mover == CHANCE)
  result = np.ones(num_events)
  # Several outcomes may cause one event: their probabilities are summed by world and event.
  event = moves.first_event[moves.core[edges]] + moves.event[edges]
  pairs, first_edge, pair_of_edge = np.unique(
    worlds.source[edges] * num_events + event, return_index=True, return_inverse=True
  )
  totals = np.bincount(pair_of_edge, worlds.probability[edges], len(pairs))
  world_of_pair, event_of_pair = np.divmod(pairs, max(1, num_events))
  result[event_of_pair] = totals
  is_wrong = np.abs(result[event_of_pair] - totals) > 1e-12
  num_events_of_world = np.bincount(world_of_pair, minlength=len(worlds.core))
  lacks_event = (worlds.mover[worlds.core] == CHANCE) & (
    num_events_of_world != np.diff(moves.first_event)[worlds.core]
  )
  wrong = [*edges[first_edge[is_wrong]], *worlds.first_edge[np.flatnonzero(lacks_event)]]
  if wrong:
    world = worlds.source[wrong[0]]
    others = np.flatnonzero(
      (worlds.core == worlds.core[world]) & (np.arange(len(worlds.core)) != world)
    )
    _refuse(
      worlds,
      "the probabilities of chance depend on what players have seen",
      wrong[0],
      worlds.first_edge[others[0]],
    )
  return result


def _find_sights(worlds: Worlds, moves: _Moves, player: int) -> tuple[Sights, Int64s, Int64s]:
  """Returns a player's sights, its sight at each world, and its legal actions; checks claims 1 to 3."""
  seen_in_world, num_seen = worlds.seen_number[player], len(worlds.seen[player])
  pairs, sight = np.unique(worlds.core * num_seen + seen_in_world, return_inverse=True)
  # The root gets number 0.
  swap = np.arange(len(pairs))
  swap[[0, sight[0]]] = swap[[sight[0], 0]]
  pairs, sight = pairs[swap], swap[sight]
  core, seen = np.divmod(pairs, num_seen)
  legal = _legal_actions(worlds, player)
  is_mover = worlds.mover[core] == player
  num_actions = np.array([len(actions) for actions in worlds.action_lists])
  num_moves = np.where(is_mover, num_actions[legal[seen]], 0)
  num_observations = np.where(is_mover, 0, np.diff(moves.first_event)[core])
  first_move, first_observation = (
    np.append(0, np.cumsum(counts)) for counts in (num_moves, num_observations)
  )
  sight_before = sight[worlds.source]
  sight_after = np.where(worlds.target < 0, NONE, sight[np.maximum(worlds.target, 0)])
  is_own = moves.mover == player
  move_event, move_sight = _own_moves(
    worlds, player, np.flatnonzero(is_own), moves.event, first_move, sight_before, sight_after
  )
  observation_sight = _observations(
    worlds, player, ~is_own, moves.event, first_observation, sight_before, sight_after
  )
  columns = (seen, first_move, move_event, move_sight, first_observation, observation_sight)
  return Sights(*(column.astype(np.int32) for column in columns)), sight, legal


def _legal_actions(worlds: Worlds, player: int) -> Int64s:
  """Returns a player's list of legal actions by what it has seen, or `NONE`; checks claim 1."""
  is_mover = worlds.mover[worlds.core] == player
  result = np.full(len(worlds.seen[player]), NONE)
  _store(
    worlds, result, worlds.seen_number[player][is_mover], worlds.legal[is_mover],
    worlds.first_edge[is_mover],
    f"player {player} has seen the same, but its legal actions differ",
  )  # fmt: skip
  return result


def _own_moves(
  worlds: Worlds,
  player: int,
  edges: Int64s,
  event: Int64s,
  first_move: Int64s,
  sight_before: Int64s,
  sight_after: Int64s,
) -> tuple[Int64s, Int64s]:
  """Returns the event and the next sight of each move of a player; checks claim 2 at its edges."""
  move_event, move_sight = np.full((2, first_move[-1]), _UNSET)
  places = first_move[sight_before[edges]] + worlds.place[edges]
  problem = f"the effect of a move of player {player} depends on what the other player has seen"
  _store(worlds, move_event, places, event[edges], edges, problem)
  _store(worlds, move_sight, places, sight_after[edges], edges, problem)
  return move_event, move_sight


def _observations(
  worlds: Worlds,
  player: int,
  is_other: Bools,
  event: Int64s,
  first_observation: Int64s,
  sight_before: Int64s,
  sight_after: Int64s,
) -> Int64s:
  """Returns the sight after each observation of a player; checks claim 3 at the edges of other movers."""
  hidden = np.flatnonzero(is_other & (event == NONE))
  noticed = hidden[sight_after[hidden] != sight_before[hidden]]
  if len(noticed):
    _refuse(worlds, f"player {player} sees a move that does not change the core", noticed[0])
  visible = np.flatnonzero(is_other & (event != NONE))
  observation_sight = np.full(first_observation[-1], _UNSET)
  _store(
    worlds, observation_sight, first_observation[sight_before[visible]] + event[visible], sight_after[visible],
    visible, f"the sight of player {player} after an event depends on what the other player has seen",
  )  # fmt: skip
  return observation_sight


def _store(
  worlds: Worlds, table: Int64s, places: Int64s, values: Int64s, edges: Int64s, problem: str
) -> None:
  """Writes values to places of a table; raises PrivateMovesError if a place gets two values, from two edges."""
  table[places] = values
  wrong = np.flatnonzero(table[places] != values)
  if len(wrong):
    others = np.flatnonzero((places == places[wrong[0]]) & (values != values[wrong[0]]))
    _refuse(worlds, problem, edges[wrong[0]], edges[others[0]])


def _refuse(worlds: Worlds, problem: str, edge: int, other: int | None = None) -> NoReturn:
  """Raises PrivateMovesError with the histories that end with an edge and, if given, with another edge."""
  history = str(worlds.history_after(int(edge)))
  if other is not None:
    history = f"{worlds.history_after(int(other))} and {history}"
  raise errors.PrivateMovesError(
    f"The players' sequences are not independent: {problem}. See {history}. Worlds are identified by "
    f"{worlds.keys}."
  )
