"""Segments of games, for searches that walk a game only as far as it is played.

A segment begins at a public state and ends at decisions, where further segments begin. `read_blueprint` reads a
blueprint at all infosets of listed histories.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr.bots import PolicyReader, distribution
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.policies import CompiledTabularPolicy
from spiel_cfr.search.gadget_games import PerPlayer
from spiel_cfr.search.subgames.lookahead import Lookahead
from spiel_cfr.search.trees.history_tree import HistoryTree
from spiel_cfr.search.trees.listed_tree import ListedTree


def check_view(view: GameView) -> None:
  """Raises UnsupportedGameError if a game cannot be searched in segments."""
  if view.num_players != 2:
    raise errors.UnsupportedGameError(
      f"Search is for constant-sum games of two players; {view.game} has {view.num_players}."
    )
  if view.declared_sum is None or view.game.get_type().short_name == "efg_game":
    raise errors.UnsupportedGameError(
      "Bots search only games whose type says that returns sum to a constant, and in which players who are not to move "
      f"know what they are told. {view.game} is not such a game, or does not say so. Compile it and call resolve."
    )


class Segment:
  """The histories from a public state down to the first decisions after a number of moves.

  Attributes:
    tree: `ListedTree`. The public states of these histories; the first public state has index 0.
  """

  def __init__(
    self,
    view: GameView,
    states: Sequence[Any],
    probabilities: Float64s | None,
    depth: int,
    max_histories: int,
    blueprint: PolicyReader | None = None,
  ) -> None:
    """Walks the histories.

    Args:
      view: the game.
      states: OpenSpiel's states in the public state.
      probabilities: float64 (3, states), see `HistoryTree`; 1 by default.
      depth: the number of moves of the segment, see `Lookahead`.
      max_histories: the largest number of histories.
      blueprint: the policy of both players in this segment and those below. With None, both play to all states with
        probability 1.

    Raises:
      GameTooLargeError: the segment has more histories.
      UnsupportedGameError: see `HistoryTree`.
    """
    # The arguments that segments below share.
    self._view, self._depth, self._max_histories = view, depth, max_histories
    self._blueprint = blueprint
    self.tree = ListedTree(
      None, HistoryTree(view, states, max_histories, probabilities, depth=depth)
    )
    # By the index of a public state where this segment ends.
    self._below: dict[int, Segment] = {}

  @functools.cached_property
  def lookahead(self) -> Lookahead:
    """The sequences of both players; raises UnsupportedGameError as `Lookahead` does."""
    return Lookahead(self.tree[0], self._depth)

  @functools.cached_property
  def _reach(self) -> PerPlayer | None:
    """The probability that each player plays to each of its rows by the blueprint; None without a blueprint."""
    if self._blueprint is None:
      return None
    return self.tree.reach(read_blueprint(self.tree.histories, self._blueprint)[0])

  def path(self, history: Sequence[int]) -> list[int]:
    """Returns the indices of the histories along some moves, from the segment's first public state to its end.

    Raises:
      ArgumentError: the game has no such history.
    """
    histories = self.tree.histories
    path = histories.path(history)
    last = path[-1]
    is_end = histories.mover[last] >= 0 and histories.infoset[last] == NONE
    if histories.length[last] < len(history) and not is_end:
      raise errors.ArgumentError(
        f"{histories.view.game} has no history {list(history)}: its action {history[histories.length[last]]} is not "
        "listed."
      )
    return path

  def states_in(self, index: int) -> tuple[list[Any], Float64s]:
    """Returns OpenSpiel's states in a public state of the segment, and their probabilities as `HistoryTree` takes them.

    Args:
      index: the index of the public state.

    Raises:
      PolicyError: the blueprint's probabilities at an infoset are not a distribution.
    """
    tree, nodes = self.tree, self.tree.histories_of[index]
    probabilities = np.ones((3, len(nodes)))
    probabilities[0] = tree.histories.chance[nodes]
    if self._reach is not None:
      for player, reach in enumerate(self._reach):
        probabilities[1 + player] = reach[tree.row_of[player, nodes]]
    return [tree.histories.state(node) for node in nodes.tolist()], probabilities

  def segment_below(self, index: int) -> "Segment":
    """Returns the segment below a public state where this one ends. Each segment is walked once.

    Args:
      index: the index of the public state.
    """
    if index not in self._below:
      states, probabilities = self.states_in(index)
      self._below[index] = Segment(
        self._view, states, probabilities, self._depth, self._max_histories, self._blueprint
      )
    return self._below[index]


def read_blueprint(histories: HistoryTree, blueprint: PolicyReader) -> tuple[Float64s, Bools]:
  """Returns a policy as probabilities of entries, and True at infosets that the policy does not know.

  Unknown infosets have uniform probabilities. Shapes: (entries,) and (infosets,).

  Args:
    histories: the histories.
    blueprint: the policy.

  Raises:
    PolicyError: the probabilities at an infoset are not a distribution.
  """
  policy = blueprint.policy
  if isinstance(policy, CompiledTabularPolicy) and not policy.compiled_game.view.has_own_names:
    entries, unknown = _read_table(histories, policy)
  else:
    entries, unknown = _ask_everywhere(histories, blueprint)
  _check_distributions(histories, entries)
  return entries, unknown


def _uniform(histories: HistoryTree) -> Float64s:
  return np.asarray(1 / histories.num_actions[histories.infoset_of_entry])


def _read_table(histories: HistoryTree, policy: CompiledTabularPolicy) -> tuple[Float64s, Bools]:
  """Reads a policy that has a table, without states of OpenSpiel; returns as `read_blueprint`."""
  legal, infoset_of_entry = np.concatenate(histories.actions), histories.infoset_of_entry
  names = itertools.chain(*histories.names)
  rows = np.array([policy.state_lookup.get(name, NONE) for name in names])
  unknown = rows == NONE
  table: Float64s = policy.action_probability_array
  # The history may have actions that the policy's game does not have, above its largest action.
  most = table.shape[1] - 1
  in_table = table[rows[infoset_of_entry], np.minimum(legal, most)]
  probabilities = np.where(legal > most, 0.0, in_table)
  return np.where(unknown[infoset_of_entry], _uniform(histories), probabilities), unknown


def _ask_everywhere(histories: HistoryTree, blueprint: PolicyReader) -> tuple[Float64s, Bools]:
  """Asks a policy at one state of each infoset; returns as `read_blueprint`."""
  legal, entries = np.concatenate(histories.actions), _uniform(histories)
  unknown = np.zeros(len(histories.owner), bool)
  nodes = np.flatnonzero(histories.infoset >= 0)
  infosets, firsts = np.unique(histories.infoset[nodes], return_index=True)
  for infoset, node in zip(infosets.tolist(), nodes[firsts].tolist(), strict=True):
    strategy = blueprint.look_up(histories.state(node), int(histories.owner[infoset]))
    unknown[infoset] = strategy is None
    if strategy is not None:
      span = histories.entries_of(infoset)
      entries[span] = [strategy.get(action, 0.0) for action in legal[span].tolist()]
  return entries, unknown


def _check_distributions(histories: HistoryTree, entries: Float64s) -> None:
  """Raises PolicyError if the probabilities at an infoset are not a distribution."""
  legal = np.concatenate(histories.actions)
  error = np.abs(np.add.reduceat(entries, histories.first_entry) - 1)
  is_wrong = ~(error < 1e-9) | (np.minimum.reduceat(entries, histories.first_entry) < 0)
  for infoset in np.flatnonzero(is_wrong).tolist():
    span = histories.entries_of(infoset)
    strategy = dict(zip(legal[span].tolist(), entries[span].tolist(), strict=True))
    distribution(
      strategy, list(strategy), f"At infostate {histories.infostate(infoset)!r} the blueprint"
    )
