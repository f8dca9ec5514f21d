"""The walk that compiles a game: all states once, through OpenSpiel's State and Game API only."""

import array
import dataclasses
import itertools
from typing import Any

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr.games.openspiel.game_size import Watch
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import (
  ReturnsCheck,
  cannot_be_walked,
  chance_outcomes,
  check_actions,
  has_no_end,
  imperfect_recall,
  inconsistent_actions,
  longest_history,
  unknown_player,
)
from spiel_cfr.games.openspiel.terminal_histories import BITS, TerminalHistories

_CHANCE = int(pyspiel.PlayerId.CHANCE)
_TERMINAL = int(pyspiel.PlayerId.TERMINAL)
_ONE_SEQUENCE = (1 << BITS) - 1
_CHECK_EVERY = 1 << 12


@dataclasses.dataclass
class Enumeration:
  """Infosets and leaves of a game, in order of discovery.

  That order is the one of OpenSpiel's `TabularPolicy`: histories sorted as strings, depth first.

  Attributes:
    infostates: each player's information state strings.
    parents: int64 (infosets,) per player: the sequence above each infoset. A player's sequences are numbered from 0,
      the empty one, through the actions of infoset 0, of infoset 1 and so on.
    actions: each player's legal actions, infoset by infoset, in one flat int64 array.
    num_actions: int64 (infosets,) per player.
    leaf_sequences: uint32 (players, leaves), no two columns alike.
    leaf_payoffs: float64 (leaves, players): summed over the histories with these sequences, weighted by chance.
    num_states: number of states.
    num_terminals: number of terminal states.
    payoff_range: smallest and largest return of any player.
    constant_sum: the sum of the players' returns; None if it varies.
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
  view: GameView, max_nodes: int, max_bytes: int, progress: bool = True
) -> Enumeration:
  """Walks all states of a sequential game once.

  Args:
    view: the game.
    max_nodes: how many states the game may have.
    max_bytes: how much the resident memory of the process may grow.
    progress: whether to show a bar, if standard error is a terminal.

  Raises:
    GameTooLargeError: there are more states than `max_nodes`, or they need more than `max_bytes`.
    ArgumentError: see `GameView.legal_actions`.
    ImperfectRecallError: an infoset can be reached by two sequences of its owner.
    InconsistentInfosetError: two states of an infoset have different legal actions.
    InvalidPayoffError: a return is NaN or infinite, there is not one for each player, or they do not sum to what the
      game's type says.
    UnsupportedGameError: a player's legal actions are not different actions of the game; or a state's answer is not of
      the type that OpenSpiel promises, or no answer but an exception.
    GameError: chance outcomes do not have probabilities, a state has no action, or a history has no end.
  """
  num_players = view.num_players
  infostate_of, legal_actions_of, returns_of = view.infostate, view.legal_actions, view.returns
  found = [_Infosets() for _ in range(num_players)]
  # What every decision looks at, without a look into an object.
  at_hand = [
    (own.places.get, own.parents, own.firsts, own.kinds, own.moves, BITS * player)
    for player, own in enumerate(found)
  ]
  check = ReturnsCheck(view)
  leaves = TerminalHistories(num_players, check.table)
  add_sequences, add_returns = leaves.new_sequences.append, leaves.new_returns.append
  add_reach = leaves.new_reaches.append
  # States count as soon as they are on the stack: in games with many moves those are most of the memory.
  num_states, next_check = 1, 0
  stack: list[tuple[Any, int, float]] = [(view.new_initial_state(), 0, 1.0)]
  push, pop, terminal = stack.append, stack.pop, _TERMINAL

  longest = longest_history(view)
  watch = Watch(view, max_nodes, max_bytes, progress)
  try:
    while stack:
      state, sequences, reach = pop()
      player = state.current_player()
      if player == terminal:
        returns = returns_of(state)
        if len(returns) != num_players:
          check(state, returns)
        add_sequences(sequences)
        add_returns(returns)
        add_reach(reach)
        continue

      if num_states >= next_check:
        watch.check(num_states, sum(map(len, found)))
        if state.move_number() > longest:
          raise has_no_end(view, state)
        leaves.collect()
        next_check = min(num_states + _CHECK_EVERY, max_nodes + 1)

      if 0 <= player < num_players:
        infostate = infostate_of(state)
        legal = legal_actions_of(state)
        place_of, parents, firsts, kinds, moves, shift = at_hand[player]
        parent = sequences >> shift & _ONE_SEQUENCE
        infoset = place_of(infostate)
        if infoset is None:
          mine = found[player]
          if not isinstance(infostate, str):
            raise TypeError(f"the infostate {infostate!r} is not a string")
          infostate.encode()  # Files and digests need UTF-8, which half a surrogate pair is not.
          kind = mine.kind_of.get(tuple(legal))
          if kind is None:
            kind = mine.add_kind(_moves(view, state, legal, shift))
          infoset = mine.add(infostate, parent, kind)
        known, later, (before, action) = moves[kinds[infoset]]
        if parent != parents[infoset]:
          raise imperfect_recall(view, state)
        if known != legal:
          raise inconsistent_actions(view, state, known)
        num_states += len(legal)
        first = sequences + (firsts[infoset] - parent << shift)
        for later_before, later_action in later:
          push((state.child(later_action), first + later_before, reach))
        # The state becomes its own first child, which saves a copy.
        state.apply_action(action)
        push((state, first + before, reach))

      elif player == _CHANCE:
        outcomes = chance_outcomes(view, state)
        outcomes.sort(key=lambda outcome: str(outcome[0]), reverse=True)
        num_states += len(outcomes)
        for action, probability in outcomes:
          push((state.child(action), sequences, reach * probability))

      else:
        raise unknown_player(state)
    watch.check(num_states, sum(map(len, found)))
    merged_sequences, merged_payoffs = leaves.merged()
  except (errors.SpielCFRError, MemoryError):
    raise
  # Games that are written in Python may answer and raise anything, and those in C++ may use bytes that are no UTF-8.
  except Exception as error:
    raise cannot_be_walked(state, error) from error
  finally:
    watch.close()

  legal_actions = [own.actions() for own in found]
  return Enumeration(
    infostates=[list(own.places) for own in found],
    parents=[np.array(own.parents, np.int64) for own in found],
    actions=[np.fromiter(itertools.chain.from_iterable(own), np.int64) for own in legal_actions],
    num_actions=[np.fromiter(map(len, own), np.int64) for own in legal_actions],
    leaf_sequences=merged_sequences,
    leaf_payoffs=merged_payoffs,
    num_states=num_states,
    num_terminals=leaves.num_terminals,
    payoff_range=leaves.payoff_range,
    constant_sum=leaves.constant_sum,
  )


# Legal actions; of each but the first to explore, last to explore first, how many sequences of the infoset are before
# it, shifted to where its owner's are, and the action; that first one.
_Moves = tuple[list[int], list[tuple[int, int]], tuple[int, int]]


def _moves(view: GameView, state: Any, legal: list[int], shift: int) -> _Moves:
  """Returns how to explore a decision: in the order in which histories sort as strings."""
  check_actions(view, state, legal)
  order = sorted(enumerate(legal), key=lambda move: str(move[1]))
  moves = [(index << shift, action) for index, action in order]
  return legal, moves[:0:-1], moves[0]


class _Infosets:
  """One player's, in order of discovery: numbers in arrays, nothing that the garbage collector would have to look at.

  Attributes:
    places: which infoset it is, by name.
    parents: the sequence above each.
    firsts: the sequence of each one's first action.
    kinds: which of `moves` each has.
    moves: by kind; most infosets share theirs with others.
    kind_of: by legal actions.
  """

  def __init__(self) -> None:
    self.places: dict[str, int] = {}
    self.parents, self.firsts, self.kinds = (array.array("I") for _ in range(3))
    self.moves: list[_Moves] = []
    self.kind_of: dict[tuple[int, ...], int] = {}
    self.next_sequence = 1

  def __len__(self) -> int:
    return len(self.kinds)

  def add_kind(self, moves: _Moves) -> int:
    """Adds a kind of infoset and returns its number."""
    kind = self.kind_of[tuple(moves[0])] = len(self.moves)
    self.moves.append(moves)
    return kind

  def add(self, name: str, parent: int, kind: int) -> int:
    """Adds an infoset and returns its number."""
    infoset = self.places[name] = len(self.kinds)
    self.parents.append(parent)
    self.firsts.append(self.next_sequence)
    self.kinds.append(kind)
    self.next_sequence += len(self.moves[kind][0])
    return infoset

  def actions(self) -> list[list[int]]:
    """Returns the legal actions of each infoset."""
    return [self.moves[kind][0] for kind in self.kinds]
