"""The walk that compiles a game: it visits each state once, depth first, and lists infosets and leaves.

A leaf is a combination of the players' last sequences at which the game ends. Terminal histories with the same last
sequences are one leaf.
"""

import array
import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr.games.openspiel.checked_calls import TERMINAL, cannot_be_walked
from spiel_cfr.games.openspiel.game_size import WalkLimits
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import (
  ReturnsCheck,
  has_no_end,
  imperfect_recall,
  inconsistent_actions,
  longest_history,
)
from spiel_cfr.games.openspiel.terminal_histories import BITS, TerminalHistories

_SEQUENCE_MASK = (1 << BITS) - 1
_CHECK_EVERY = 1 << 12


class DiscoveredInfosets(NamedTuple):
  """A player's infosets in order of discovery, before they are laid out.

  Attributes:
    infostates: sequence of str (infosets,). The information state strings.
    actions: int64 (actions,). The legal actions, infoset by infoset.
    num_actions: int64 (infosets,). The number of actions of each infoset.
    parents: int64 (infosets,). The sequence above each infoset. The player's sequences are numbered from 0, the empty
      one, through the actions of infoset 0, of infoset 1 and so on.
  """

  infostates: Sequence[str]
  actions: Int64s
  num_actions: Int64s
  parents: Int64s


@dataclasses.dataclass
class Enumeration:
  """Infosets and leaves of a game in order of discovery: depth first, with histories sorted as strings.

  OpenSpiel's `TabularPolicy` has the same order.

  Attributes:
    infosets: `DiscoveredInfosets` of each player.
    leaf_sequences: uint32 (players, leaves). Each player's last sequence at each leaf, numbered as in
      `DiscoveredInfosets.parents`; no two leaves are equal.
    leaf_payoffs: float64 (leaves, players). The sum, over the histories of each leaf, of the returns times chance's
      reach probability.
    num_states: int. The number of states.
    num_terminals: int. The number of terminal states.
    payoff_range: two floats. The smallest and the largest return of any player.
    constant_sum: float. The sum of the players' returns; None if it varies.
  """

  infosets: list[DiscoveredInfosets]
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
    max_nodes: largest number of states.
    max_bytes: largest growth of the process's resident memory.
    progress: whether to show a bar, if standard error is a terminal.

  Raises:
    GameTooLargeError: there are more states than `max_nodes`, or they need more than `max_bytes`.
    ArgumentError: see `GameView.legal_actions`.
    ImperfectRecallError: an infoset can be reached by two sequences of its owner.
    InconsistentInfosetError: two states of an infoset have different legal actions.
    InvalidPayoffError: a return is NaN or infinite, there is not one for each player, or they do not sum to the
      declared constant.
    UnsupportedGameError: legal actions repeat or are not actions of the game; a state's answer has another type than
      OpenSpiel promises; or a state raises an exception.
    GameError: chance outcomes do not have probabilities, a state has no action, or a history has no end.
  """
  infosets = [_Infosets(BITS * player) for player in range(view.num_players)]
  leaves = TerminalHistories(view.num_players, ReturnsCheck(view).table)
  limits = WalkLimits(view, max_nodes, max_bytes, progress)
  try:
    num_states, leaf_sequences, leaf_payoffs = _walk(view, max_nodes, infosets, leaves, limits)
  finally:
    limits.close()
  return Enumeration(
    infosets=[of_player.discovered() for of_player in infosets],
    leaf_sequences=leaf_sequences,
    leaf_payoffs=leaf_payoffs,
    num_states=num_states,
    num_terminals=leaves.num_terminals,
    payoff_range=leaves.payoff_range,
    constant_sum=leaves.constant_sum,
  )


def _walk(
  view: GameView,
  max_nodes: int,
  infosets: "list[_Infosets]",
  leaves: TerminalHistories,
  limits: WalkLimits,
) -> tuple[int, Uint32s, Float64s]:
  """Walks all states, depth first; adds what it finds to each player's `infosets` and to `leaves`.

  Returns:
    The number of states, leaf sequences and leaf payoffs.
  """
  infostate_of, legal_actions_of, returns_of = view.infostate, view.legal_actions, view.returns
  mover_of, child_of, apply, terminal = view.mover, view.child, view.apply, TERMINAL
  # Everything that a decision reads, one tuple for each player: attribute look-ups would take time at every state.
  tables = [
    (
      of_player.numbers.get,
      of_player.parents,
      of_player.first_sequences,
      of_player.list_numbers,
      of_player.move_lists,
      BITS * player,
    )
    for player, of_player in enumerate(infosets)
  ]
  add_sequences, add_returns = leaves.new_sequences.append, leaves.new_returns.append
  add_reach = leaves.new_reaches.append
  # States count as soon as they are on the stack, which takes most of the memory in games with many moves.
  num_states, next_check = 1, 0
  # An element is a state, the last sequences of all players in one integer, and chance's reach probability.
  stack: list[tuple[Any, int, float]] = [(view.new_initial_state(), 0, 1.0)]
  push, pop = stack.append, stack.pop

  longest = longest_history(view)
  try:
    while stack:
      state, sequences, reach = pop()
      player = mover_of(state)
      if player == terminal:
        add_sequences(sequences)
        add_returns(returns_of(state))
        add_reach(reach)
        continue

      if num_states >= next_check:
        limits.check(num_states, sum(map(len, infosets)))
        if state.move_number() > longest:
          raise has_no_end(view, state)
        leaves.collect()
        next_check = min(num_states + _CHECK_EVERY, max_nodes + 1)

      if player >= 0:
        infostate = infostate_of(state)
        legal = legal_actions_of(state)
        number_of, parents, first_sequences, list_numbers, move_lists, shift = tables[player]
        parent = sequences >> shift & _SEQUENCE_MASK
        infoset = number_of(infostate)
        if infoset is None:
          infoset = infosets[player].discover(infostate, legal, parent)
        expected, later_moves, (first_index, first_action) = move_lists[list_numbers[infoset]]
        if parent != parents[infoset]:
          raise imperfect_recall(view, state)
        if expected != legal:
          raise inconsistent_actions(view, state, expected)
        num_states += len(legal)
        # The sequences of all players after the infoset's action of index 0.
        after = sequences + (first_sequences[infoset] - parent << shift)
        for index, action in later_moves:
          push((child_of(state, action), after + index, reach))
        # The state becomes its own first child, which saves a copy.
        apply(state, first_action)
        push((state, after + first_index, reach))

      else:
        outcomes = view.chance_outcomes(state)
        outcomes.sort(key=lambda outcome: str(outcome[0]), reverse=True)
        num_states += len(outcomes)
        for action, probability in outcomes:
          push((child_of(state, action), sequences, reach * probability))
    limits.check(num_states, sum(map(len, infosets)))
    return num_states, *leaves.merged()
  except (errors.SpielCFRError, MemoryError):
    raise
  # OpenSpiel raises an exception if the parameters of a game do not fit together, perhaps only at a rare state.
  except Exception as error:
    raise cannot_be_walked(state, error) from error


# A move: the index of an action among the legal ones, shifted to the bits of its player's sequence; and the action.
_Move = tuple[int, int]
# The legal actions of an infoset; all moves but the first to explore, in the order of a stack; the first to explore.
_MoveList = tuple[list[int], list[_Move], _Move]


def _move_list(legal: list[int], shift: int) -> _MoveList:
  """Returns the moves of an infoset, explored in the order in which histories sort as strings."""
  order = sorted(enumerate(legal), key=lambda move: str(move[1]))
  moves = [(index << shift, action) for index, action in order]
  return legal, moves[:0:-1], moves[0]


class _Infosets:
  """One player's infosets in order of discovery, in arrays, since the garbage collector would go through objects.

  Attributes:
    numbers: dict from infostates to the numbers of their infosets.
    parents: uint32 (infosets,). The sequence above each infoset.
    first_sequences: uint32 (infosets,). The sequence of each infoset's first legal action.
    list_numbers: uint32 (infosets,). The index in `move_lists` of each infoset's moves.
    move_lists: list of `_MoveList`, without repetition. Infosets with the same legal actions share one.
    next_sequence: int. The first sequence of the next infoset.
  """

  def __init__(self, shift: int) -> None:
    """Begins without infosets; `shift` is the first bit of the player's sequence in the integer of all sequences."""
    self.numbers: dict[str, int] = {}
    self._shift = shift
    self.parents, self.first_sequences, self.list_numbers = (array.array("I") for _ in range(3))
    self.move_lists: list[_MoveList] = []
    self._known_lists: dict[tuple[int, ...], int] = {}
    self.next_sequence = 1

  def __len__(self) -> int:
    return len(self.list_numbers)

  def discover(self, infostate: str, legal: list[int], parent: int) -> int:
    """Adds the infoset of a state and returns its number."""
    list_number = self._known_lists.get(tuple(legal))
    if list_number is None:
      list_number = self._known_lists[tuple(legal)] = len(self.move_lists)
      self.move_lists.append(_move_list(legal, self._shift))
    infoset = self.numbers[infostate] = len(self)
    self.parents.append(parent)
    self.first_sequences.append(self.next_sequence)
    self.list_numbers.append(list_number)
    self.next_sequence += len(legal)
    return infoset

  def discovered(self) -> DiscoveredInfosets:
    """Returns the infosets as arrays."""
    legal = [self.move_lists[list_number][0] for list_number in self.list_numbers]
    return DiscoveredInfosets(
      infostates=list(self.numbers),
      actions=np.fromiter(itertools.chain.from_iterable(legal), np.int64),
      num_actions=np.fromiter(map(len, legal), np.int64),
      parents=np.array(self.parents, np.int64),
    )
