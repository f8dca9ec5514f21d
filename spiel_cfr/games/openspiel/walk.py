"""The walk that compiles a game: all states once, through OpenSpiel's State and Game API only."""

import array
import dataclasses
import itertools
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr.games.openspiel.answers import TERMINAL, cannot_be_walked
from spiel_cfr.games.openspiel.game_size import Watch
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


@dataclasses.dataclass
class Enumeration:
  """Infosets and leaves of a game, in order of discovery.

  That order is the one of OpenSpiel's `TabularPolicy`: histories sorted as strings, depth first.

  Attributes:
    infostates: for each player, list of str. The information state strings.
    parents: for each player, int64 (infosets,). The sequence above each infoset. A player's sequences are numbered from
      0, the empty one, through the actions of infoset 0, of infoset 1 and so on.
    actions: for each player, int64 (actions,). The legal actions, infoset by infoset.
    num_actions: for each player, int64 (infosets,). The number of actions of each infoset.
    leaf_sequences: uint32 (players, leaves), no two columns alike. Each player's last sequence.
    leaf_payoffs: float64 (leaves, players). Returns, weighted by chance and summed over the histories with these
      sequences.
    num_states: int. The number of states.
    num_terminals: int. The number of terminal states.
    payoff_range: two floats. The smallest and the largest return of any player.
    constant_sum: float. The sum of the players' returns; None if it varies.
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
  found = [_Infosets(BITS * player) for player in range(view.num_players)]
  leaves = TerminalHistories(view.num_players, ReturnsCheck(view).table)
  watch = Watch(view, max_nodes, max_bytes, progress)
  try:
    num_states, leaf_sequences, leaf_payoffs = _walk(view, max_nodes, found, leaves, watch)
  finally:
    watch.close()
  legal_actions = [own.actions() for own in found]
  return Enumeration(
    infostates=[list(own.places) for own in found],
    parents=[np.array(own.parents, np.int64) for own in found],
    actions=[np.fromiter(itertools.chain.from_iterable(own), np.int64) for own in legal_actions],
    num_actions=[np.fromiter(map(len, own), np.int64) for own in legal_actions],
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
  found: "list[_Infosets]",
  leaves: TerminalHistories,
  watch: Watch,
) -> tuple[int, Uint32s, Float64s]:
  """Walks all states, depth first, and adds infosets to `found` and terminal histories to `leaves`.

  Returns:
    The number of states, leaf sequences and leaf payoffs.
  """
  infostate_of, legal_actions_of, returns_of = view.infostate, view.legal_actions, view.returns
  mover_of, child_of, apply, terminal = view.mover, view.child, view.apply, TERMINAL
  # Everything that a decision reads, one tuple for each player: attribute look-ups would take time at every state.
  of_player = [
    (own.places.get, own.parents, own.firsts, own.kinds, own.moves, BITS * player)
    for player, own in enumerate(found)
  ]
  add_sequences, add_returns = leaves.new_sequences.append, leaves.new_returns.append
  add_reach = leaves.new_reaches.append
  # States count as soon as they are on the stack, which takes most of the memory in games with many moves.
  num_states, next_check = 1, 0
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
        watch.check(num_states, sum(map(len, found)))
        if state.move_number() > longest:
          raise has_no_end(view, state)
        leaves.collect()
        next_check = min(num_states + _CHECK_EVERY, max_nodes + 1)

      if player >= 0:
        infostate = infostate_of(state)
        legal = legal_actions_of(state)
        place_of, parents, firsts, kinds, moves, shift = of_player[player]
        parent = sequences >> shift & _SEQUENCE_MASK
        infoset = place_of(infostate)
        if infoset is None:
          infoset = found[player].discover(infostate, legal, parent)
        expected, later_moves, (first_place, first_action) = moves[kinds[infoset]]
        if parent != parents[infoset]:
          raise imperfect_recall(view, state)
        if expected != legal:
          raise inconsistent_actions(view, state, expected)
        num_states += len(legal)
        # The sequences of all players after action 0.
        after = sequences + (firsts[infoset] - parent << shift)
        for place, action in later_moves:
          push((child_of(state, action), after + place, reach))
        # The state becomes its own first child, which saves a copy.
        apply(state, first_action)
        push((state, after + first_place, reach))

      else:
        outcomes = view.chance_outcomes(state)
        outcomes.sort(key=lambda outcome: str(outcome[0]), reverse=True)
        num_states += len(outcomes)
        for action, probability in outcomes:
          push((child_of(state, action), sequences, reach * probability))
    watch.check(num_states, sum(map(len, found)))
    return num_states, *leaves.merged()
  except (errors.SpielCFRError, MemoryError):
    raise
  # OpenSpiel raises an exception where parameters don't go together, perhaps at a rare state.
  except Exception as error:
    raise cannot_be_walked(state, error) from error


# The legal actions of an infoset; its moves except the first to explore, in the order of a stack; the first to explore.
# A move is (the place of its action, shifted to the bits of the owner's sequence; the action).
_Moves = tuple[list[int], list[tuple[int, int]], tuple[int, int]]


def _moves(legal: list[int], shift: int) -> _Moves:
  """Returns the moves of an infoset, explored in the order in which histories sort as strings."""
  order = sorted(enumerate(legal), key=lambda move: str(move[1]))
  moves = [(index << shift, action) for index, action in order]
  return legal, moves[:0:-1], moves[0]


class _Infosets:
  """One player's infosets in order of discovery, in arrays, since the garbage collector would go through objects.

  Attributes:
    places: dict from infostate to the number of the infoset.
    parents: uint32. The sequence above each infoset.
    firsts: uint32. The sequence of each infoset's first action.
    kinds: uint32. The element of `moves` of each infoset.
    moves: list of `_Moves`, different ones; most infosets share theirs with others.
    kind_of: dict from legal actions to the element of `moves`.
  """

  def __init__(self, shift: int) -> None:
    self.places: dict[str, int] = {}
    self._shift = shift
    self.parents, self.firsts, self.kinds = (array.array("I") for _ in range(3))
    self.moves: list[_Moves] = []
    self.kind_of: dict[tuple[int, ...], int] = {}
    self.next_sequence = 1

  def __len__(self) -> int:
    return len(self.kinds)

  def discover(self, infostate: str, legal: list[int], parent: int) -> int:
    """Adds the infoset of a state and returns its number."""
    kind = self.kind_of.get(tuple(legal))
    if kind is None:
      self.moves.append(_moves(legal, self._shift))
      kind = self.kind_of[tuple(legal)] = len(self.moves) - 1
    infoset = self.places[infostate] = len(self.kinds)
    self.parents.append(parent)
    self.firsts.append(self.next_sequence)
    self.kinds.append(kind)
    self.next_sequence += len(self.moves[kind][0])
    return infoset

  def actions(self) -> list[list[int]]:
    """Returns the legal actions of each infoset."""
    return [self.moves[kind][0] for kind in self.kinds]
