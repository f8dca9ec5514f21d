"""The one walk over a game's states, through OpenSpiel's State and Game API only."""

import array
import contextlib
import dataclasses
import itertools
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel
import tqdm

from spiel_cfr import errors, memory
from spiel_cfr.game.view import GameView
from spiel_cfr.kernels.arrays import Float64s, Int64s, Uint32s

_CHANCE = int(pyspiel.PlayerId.CHANCE)
_TERMINAL = int(pyspiel.PlayerId.TERMINAL)
# Terminal histories that are kept apart before those with the same sequences are merged: bounds the memory of games
# whose chance nodes multiply histories (Leduc's suits) without merging often.
_MERGE_EVERY = 1 << 20
_CHECK_EVERY = 1 << 12
_PROBABILITY_TOLERANCE = 1e-6
# Of the largest return: what sums of returns may differ by and still count as constant.
_SUM_TOLERANCE = 1e-9


@dataclasses.dataclass
class Enumeration:
  """What the walk brought home, in order of discovery.

  That order is the one of OpenSpiel's `TabularPolicy`: histories sorted as strings, depth first.

  Attributes:
    infostates: each player's information state strings.
    parents: int64 (infosets,) per player: the sequence above each infoset. A player's sequences are numbered from 0,
      the empty one, through the actions of infoset 0, of infoset 1 and so on.
    actions: each player's legal actions, infoset by infoset, in one flat int64 array.
    num_actions: int64 (infosets,) per player.
    leaf_sequences: uint32 (players, leaves), no two columns alike.
    leaf_payoffs: float64 (leaves, players): summed over the histories with these sequences, weighted by chance.
    num_states: how many states there are.
    num_terminals: how many of them are terminal.
    payoff_range: smallest and largest return that any player can get.
    constant_sum: what the players' returns sum to, or None where they don't always sum to the same.
  """

  infostates: list[list[str]]
  parents: list[Int64s]
  actions: list[Int64s]
  num_actions: list[Int64s]
  leaf_sequences: Uint32s
  leaf_payoffs: Float64s
  num_states: int
  num_terminals: int
  payoff_range: tuple[float, float]
  constant_sum: float | None


def enumerate_game(
  view: GameView, max_nodes: int, max_bytes: int, progress: bool | None = None
) -> Enumeration:
  """Walks all states of a sequential game once.

  Args:
    view: the game.
    max_nodes: how many states the game may have.
    max_bytes: how much the resident memory of the process may grow.
    progress: whether to show a progress bar; by default, on a terminal.

  Returns:
    Everything that the solvers need to know of the game.

  Raises:
    GameTooLargeError: there are more states than `max_nodes`, or they need more than `max_bytes`.
    ArgumentError: see `GameView.legal_actions`.
    ImperfectRecallError: an infoset can be reached by two sequences of its owner.
    InconsistentInfosetError: two states of an infoset have different legal actions.
    InvalidPayoffError: a return is NaN or infinite.
    GameError: chance outcomes do not have probabilities, or a state has no action.
  """
  num_players = view.num_players
  infostate_of, legal_actions_of = view.infostate, view.legal_actions
  tables: list[dict[str, _Infoset]] = [{} for _ in range(num_players)]
  known_moves: dict[tuple[int, ...], _Moves] = {}
  next_sequence = [1] * num_players
  leaves = _Leaves(num_players)
  add_sequences, add_returns = leaves.new_sequences.append, leaves.new_returns.append
  add_reach = leaves.new_reaches.append
  # States count as soon as they are on the stack: in games with many moves those are most of the memory.
  num_states, next_check = 1, 0
  bytes_before = memory.resident_bytes()
  stack: list[tuple[Any, tuple[int, ...], float]] = [
    (view.new_initial_state(), (0,) * num_players, 1.0)
  ]
  push, pop, terminal = stack.append, stack.pop, _TERMINAL

  with _progress_bar(progress) as bar:
    while stack:
      state, sequences, reach = pop()
      player = state.current_player()
      if player == terminal:
        add_sequences(sequences)
        add_returns(state.returns())
        add_reach(reach)
        continue

      if num_states >= next_check:
        if num_states > max_nodes:
          raise _too_large(f"more than max_nodes={max_nodes:,} states", tables)
        if memory.resident_bytes() - bytes_before > max_bytes:
          raise _too_large(
            f"{num_states:,} states and more, which need over {max_bytes=:,}", tables
          )
        if bar is not None:
          bar.update(num_states - bar.n)
        leaves.collect()
        next_check = min(num_states + _CHECK_EVERY, max_nodes + 1)

      if player >= 0:
        infostate = infostate_of(state)
        legal = legal_actions_of(state)
        infoset = tables[player].get(infostate)
        if infoset is None:
          key = tuple(legal)
          moves = known_moves.get(key) or known_moves.setdefault(key, _moves(state, legal))
          infoset = sequences[player], next_sequence[player], moves
          tables[player][infostate] = infoset
          next_sequence[player] += len(legal)
        parent, first, (known, later, (index, action)) = infoset
        if parent != sequences[player]:
          raise _imperfect_recall(view, state)
        if known != legal:
          raise inconsistent_actions(view, state, known)
        num_states += len(legal)
        before, after = sequences[:player], sequences[player + 1 :]
        for later_index, later_action in later:
          push((state.child(later_action), (*before, first + later_index, *after), reach))
        # The state becomes its own first child, which saves a copy.
        state.apply_action(action)
        push((state, (*before, first + index, *after), reach))

      elif player == _CHANCE:
        outcomes = chance_outcomes(view, state)
        outcomes.sort(key=_name_of_action, reverse=True)
        num_states += len(outcomes)
        for action, probability in outcomes:
          push((state.child(action), sequences, reach * probability))

      else:
        raise errors.UnsupportedGameError(
          f"After the history [{state.history_str()}], player {player} is to move, which is "
          "neither a player nor chance."
        )
  if num_states > max_nodes:
    raise _too_large(f"more than max_nodes={max_nodes:,} states", tables)

  merged_sequences, merged_payoffs = leaves.merged()
  return Enumeration(
    infostates=[list(table) for table in tables],
    parents=[np.array([parent for parent, _, _ in table.values()], np.int64) for table in tables],
    actions=[
      np.array([action for _, _, (known, _, _) in table.values() for action in known], np.int64)
      for table in tables
    ],
    num_actions=[
      np.array([len(known) for _, _, (known, _, _) in table.values()], np.int64) for table in tables
    ],
    leaf_sequences=merged_sequences,
    leaf_payoffs=merged_payoffs,
    num_states=num_states,
    num_terminals=leaves.num_terminals,
    payoff_range=leaves.payoff_range,
    constant_sum=leaves.constant_sum,
  )


# Legal actions; (index, action) pairs but the first to explore, last to explore first; that first one.
_Moves = tuple[list[int], list[tuple[int, int]], tuple[int, int]]
# The sequence above, the sequence of the first action, the moves.
_Infoset = tuple[int, int, _Moves]


def _moves(state: Any, legal: list[int]) -> _Moves:
  """Returns how to explore a decision: in the order in which histories sort as strings."""
  if not legal:
    raise errors.UnsupportedGameError(
      f"Player {state.current_player()} is to move and has no legal action after the history "
      f"[{state.history_str()}]."
    )
  order = sorted(enumerate(legal), key=lambda move: str(move[1]))
  return legal, order[:0:-1], order[0]


def chance_outcomes(view: GameView, state: Any) -> list[tuple[int, float]]:
  """Returns a list of the outcomes and probabilities of a chance node, the caller's to change.

  Raises:
    GameError: the probabilities are negative, or don't sum to 1.
  """
  outcomes = list(view.chance_outcomes(state))
  total = math.fsum(probability for _, probability in outcomes)
  if not (abs(total - 1) < _PROBABILITY_TOLERANCE and all(chance >= 0 for _, chance in outcomes)):
    raise errors.GameError(
      f"The chance outcomes after the history [{state.history_str()}] are {outcomes}; their "
      "probabilities must be non-negative and sum to 1."
    )
  return outcomes


def _name_of_action(outcome: tuple[int, float]) -> str:
  return str(outcome[0])


class _Leaves:
  """Collects terminal histories and merges those with the same sequences of all players."""

  def __init__(self, num_players: int) -> None:
    self.num_players = num_players
    self.num_terminals = 0
    self.payoff_range = (math.inf, -math.inf)
    self.constant_sum: float | None = None
    # The walk appends to these three directly: a call of ours a history would cost a tenth of it.
    self.new_sequences: list[tuple[int, ...]] = []
    self.new_returns: list[list[float]] = []
    self.new_reaches: list[float] = []
    # A column per player. Arrays of this kind grow in place, where NumPy's would be copied.
    self._sequences = [array.array("I") for _ in range(num_players)]
    self._payoffs = [array.array("d") for _ in range(num_players)]
    self._unmerged = 0

  def collect(self) -> None:
    """Moves new histories into arrays; call it every few thousand."""
    count = len(self.new_reaches)
    if not count:
      return
    shape, size = (count, self.num_players), count * self.num_players
    flat = itertools.chain.from_iterable
    sequences = np.fromiter(flat(self.new_sequences), np.uint32, size).reshape(shape)
    returns = np.fromiter(flat(self.new_returns), np.float64, size).reshape(shape)
    self._note_returns(returns)
    reaches = np.array(self.new_reaches)
    for player in range(self.num_players):
      self._sequences[player].frombytes(sequences[:, player].tobytes())
      self._payoffs[player].frombytes((returns[:, player] * reaches).tobytes())
    self.num_terminals += count
    self._unmerged += count
    for column in (self.new_sequences, self.new_returns, self.new_reaches):
      column.clear()
    if self._unmerged >= _MERGE_EVERY:
      self._merge()

  def merged(self) -> tuple[Uint32s, Float64s]:
    """Returns the sequences (players, leaves) and payoffs (leaves, players) of all histories, and forgets them."""
    self.collect()
    self._merge()
    sequences = np.empty((self.num_players, len(self._sequences[0])), np.uint32)
    payoffs = np.empty(sequences.shape)
    for player in reversed(range(self.num_players)):
      sequences[player] = self._sequences.pop()
      payoffs[player] = self._payoffs.pop()
    return sequences, payoffs.T

  def _merge(self) -> None:
    """Sorts the columns in place, and adds up payoffs with the same sequences."""
    sequences = [np.frombuffer(column, np.uint32) for column in self._sequences]
    payoffs = [np.frombuffer(column, np.float64) for column in self._payoffs]
    order = np.lexsort(sequences[::-1]).astype(np.uint32)
    first = np.zeros(len(order), bool)
    first[0] = True
    for column in sequences:
      column[:] = column[order]
      first[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(first)
    for column in sequences:
      column[: len(starts)] = column[starts]
    for values in payoffs:
      values[:] = values[order]
      values[: len(starts)] = np.add.reduceat(values, starts)
    # Arrays that NumPy looks at can't shrink.
    del sequences, payoffs, column, values
    for player in range(self.num_players):
      del self._sequences[player][len(starts) :]
      del self._payoffs[player][len(starts) :]
    self._unmerged = 0

  def _note_returns(self, returns: Float64s) -> None:
    if not np.isfinite(returns).all():
      worst = int(np.flatnonzero(~np.isfinite(returns).all(axis=1))[0])
      raise errors.InvalidPayoffError(
        f"Terminal state {self.num_terminals + worst + 1:,} of the walk has the returns "
        f"{returns[worst].tolist()}; they must be finite numbers."
      )
    low, high = self.payoff_range
    self.payoff_range = (min(low, float(returns.min())), max(high, float(returns.max())))
    sums = returns.sum(axis=1)
    if not self.num_terminals:
      self.constant_sum = float(sums[0])
    tolerance = _SUM_TOLERANCE * max(1.0, *map(abs, self.payoff_range))
    if self.constant_sum is not None and np.abs(sums - self.constant_sum).max() > tolerance:
      self.constant_sum = None


def _progress_bar(progress: bool | None) -> Any:
  """Returns a bar that counts states, on a terminal only unless told otherwise."""
  if progress is None:
    progress = sys.stderr.isatty()
  if not progress:
    return contextlib.nullcontext()
  return tqdm.tqdm(desc="walking the game", unit=" states", unit_scale=True, delay=1.0, leave=False)


def _too_large(size: str, tables: list[dict[str, _Infoset]]) -> errors.GameTooLargeError:
  infosets = sum(map(len, tables))
  return errors.GameTooLargeError(
    f"The game has {size}. So far it had {infosets:,} infosets. Choose smaller parameters, or raise "
    "the limit if there is the time (a few microseconds a state) and the memory (about 0.5 kB an "
    "infoset and 50 bytes a terminal state)."
  )


def _imperfect_recall(view: GameView, state: Any) -> errors.ImperfectRecallError:
  player = state.current_player()
  return errors.ImperfectRecallError(
    f"Player {player}'s infostate {view.infostate(state)!r} can be reached by "
    f"different sequences of that player's own actions (one history: [{state.history_str()}]). The "
    "player forgets what it did, and solvers in sequence form need perfect recall."
  )


def inconsistent_actions(
  view: GameView, state: Any, known: list[int]
) -> errors.InconsistentInfosetError:
  """Returns the error for a state whose legal actions are not those known of its infoset."""
  return errors.InconsistentInfosetError(
    f"States of player {state.current_player()}'s infostate {view.infostate(state)!r} "
    f"have different legal actions: {known}, and {view.legal_actions(state)} after the history "
    f"[{state.history_str()}]. Infostates must tell such states apart, and an action filter must "
    "keep the same actions at all of them."
  )


def first_states(view: GameView, infostates: Sequence[Sequence[str]]) -> list[Any]:
  """Finds a state of every infoset: the first in the order of histories, as in OpenSpiel's `TabularPolicy`.

  Args:
    view: the game.
    infostates: each player's, as `enumerate_game` returns them.

  Returns:
    The states, player by player in the order of `infostates`.

  Raises:
    InconsistentInfosetError: the game has no such infostate.
  """
  found: list[dict[str, Any]] = [dict.fromkeys(own) for own in infostates]
  missing = sum(map(len, infostates))
  stack = [view.new_initial_state()]
  while missing and stack:
    state = stack.pop()
    if state.is_terminal():
      continue
    if state.is_chance_node():
      actions = [action for action, _ in view.chance_outcomes(state)]
    else:
      actions = view.legal_actions(state)
      known = found[state.current_player()]
      infostate = view.infostate(state)
      if infostate in known and known[infostate] is None:
        known[infostate] = state
        missing -= 1
    stack.extend(state.child(action) for action in sorted(actions, key=str, reverse=True))
  for player, states in enumerate(found):
    for infostate, state in states.items() if missing else ():
      if state is None:
        raise errors.InconsistentInfosetError(
          f"{view.game} has no infostate {infostate!r} of player {player}."
        )
  return [state for states in found for state in states.values()]
