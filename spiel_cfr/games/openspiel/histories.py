"""The tree of a game's histories as arrays, for solvers that sample histories.

Sequence form does not keep histories. To sample a compiled game, `compile_histories` therefore visits all states a
second time. It must find the same infosets as the compilation did.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba import arrays
from spiel_cfr._numba.arrays import Float64s, Int64s, range_starts
from spiel_cfr._numba.records import Doubles, DoubleTable, IndexTable
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.history_list import ActionPair, HistoryList, in_order
from spiel_cfr.games.openspiel.state_checks import inconsistent_actions

# Columns of `Histories.nodes`.
MOVER, INDEX, FIRST_CHILD, CHILDREN = range(4)
# `CHANCE` and `TERMINAL` as unsigned integers, the values of `MOVER` that are not players.
UNSIGNED_CHANCE, UNSIGNED_TERMINAL = CHANCE % (1 << 32), TERMINAL % (1 << 32)


class Histories(NamedTuple):
  """A game tree. Node 0 is the root; the children of a node are consecutive, in the order of its legal actions.

  *Entries* number the actions of all infosets, player by player. They begin at the number of players: the numbers
  before it are the players' empty sequences.

  Attributes:
    nodes: uint32 (nodes, 4). `MOVER`: the player to move, or `UNSIGNED_CHANCE` or `UNSIGNED_TERMINAL`. `INDEX`: at a
      decision, the entry of the infoset's action 0. At a chance node, it is the first element of `probabilities`; at a
      terminal node, the row of `returns`. `FIRST_CHILD`: the first child. `CHILDREN`: the number of children.
    probabilities: float64 (outcomes,). The probabilities of chance's outcomes, chance node by chance node.
    returns: float64 (rows, players). The different returns of terminal nodes, each once, so that they stay in cache.
  """

  nodes: IndexTable
  probabilities: Doubles
  returns: DoubleTable

  def __reduce__(self) -> tuple[Any, ...]:
    return arrays.unpickled, (Histories, *self)


def compile_histories(
  view: GameView,
  infostates: Sequence[Sequence[str]],
  actions: Sequence[Int64s],
  num_actions: Sequence[Int64s],
  max_nodes: int,
  entries: Int64s | None = None,
) -> tuple[Histories, int]:
  """Returns the tree of the histories of a compiled game; visits all of the game's states to make it.

  Args:
    view: the game.
    infostates: `CompiledGame.infostates`.
    actions: `CompiledGame.actions`.
    num_actions: `CompiledGame.num_actions`.
    max_nodes: largest number of histories.
    entries: int64 (actions,). The entry of each action of all infosets, counted from 0. Entries of an infoset are
      consecutive, in any order. By default, actions are numbered in order of discovery.

  Returns:
    The tree, and the largest number of moves in a history.

  Raises:
    GameTooLargeError: there are more histories than `max_nodes`.
    InconsistentInfosetError: the game has other infosets, or other legal actions, than the compiled game.
  """
  if entries is None:
    entries = np.arange(sum(map(len, actions)))
  infosets = _infosets(infostates, actions, num_actions, entries)

  def decide(state: Any, player: int) -> tuple[int, list[ActionPair]]:
    infostate = view.infostate(state)
    infoset = infosets[player].get(infostate)
    if infoset is None:
      raise errors.InconsistentInfosetError(
        f"Player {player}'s infostate {infostate!r} after the history [{state.history_str()}] is "
        f"not in the compiled game. {_LOST_FILTER}"
      )
    first, legal, action_pairs = infoset
    if view.legal_actions(state) != legal:
      raise errors.InconsistentInfosetError(
        f"{inconsistent_actions(view, state, legal)} {_LOST_FILTER}"
      )
    return first, action_pairs

  advice = f" The limit is max_nodes={max_nodes:,}."
  histories = HistoryList(view, max_nodes, decide, advice=advice)
  histories.add(view.new_initial_state())
  columns = histories.columns()
  tree = _tree(columns, np.array(histories.chances), np.array(histories.returns))
  return tree, int(columns["length"].max())


def _tree(columns: dict[str, Int64s], chances: Float64s, all_returns: Float64s) -> Histories:
  """Returns the tree of all histories of a game, given a `HistoryList` of them.

  Args:
    columns: the columns of the list; `infoset` has the entry of action 0.
    chances: `HistoryList.chances`.
    all_returns: float64 (terminal histories, players). `HistoryList.returns`.
  """
  parent, action_index, mover = columns["parent"][1:], columns["index"][1:], columns["mover"]
  is_chance, is_terminal = mover == CHANCE, mover == TERMINAL
  num_children = np.bincount(parent, minlength=len(mover))
  first_child = 1 + range_starts(num_children)
  # Nodes are renumbered so that the children of a node are consecutive, in the order of its actions.
  node = np.concatenate([[0], first_child[parent] + action_index])
  num_outcomes = np.where(is_chance, num_children, 0)
  index = np.where(is_chance, range_starts(num_outcomes), columns["infoset"])
  probabilities = np.empty(num_outcomes.sum())
  by_chance = is_chance[parent]
  probabilities[index[parent[by_chance]] + action_index[by_chance]] = chances[1:][by_chance]
  returns, rows = np.unique(all_returns, axis=0, return_inverse=True)
  index[is_terminal] = rows.ravel()
  nodes = np.empty((len(mover), 4), np.uint32)
  nodes[node] = np.stack([mover, index, first_child, num_children], axis=1).astype(np.uint32)
  return Histories(nodes, probabilities, returns)


# The usual cause is a filter: files can't keep functions.
_LOST_FILTER = (
  "If the game was compiled with an action filter and then read from a file, compile it again: "
  "files do not keep filters."
)


def _infosets(
  infostates: Sequence[Sequence[str]],
  actions: Sequence[Int64s],
  num_actions: Sequence[Int64s],
  entries: Int64s,
) -> list[dict[str, tuple[int, list[int], list[ActionPair]]]]:
  """Returns, for each player, a dict from infostates to: smallest entry, legal actions, and action pairs.

  The index of an action is the position of its entry among the entries of the infoset.
  """
  # Infosets with the same actions share lists.
  known_legal: dict[tuple[int, ...], list[int]] = {}
  known_pairs: dict[tuple[int, ...], list[ActionPair]] = {}
  result = []
  all_entries = (len(infostates) + entries).tolist()
  all_actions, begin = np.concatenate(actions).tolist(), 0
  for names, counts in zip(infostates, num_actions, strict=True):
    infosets = {}
    for name, count in zip(names, counts.tolist(), strict=True):
      legal, own_entries = (column[begin : begin + count] for column in (all_actions, all_entries))
      legal = known_legal.setdefault(tuple(legal), legal)
      by_entry = tuple(action for _, action in sorted(zip(own_entries, legal, strict=True)))
      if by_entry not in known_pairs:
        known_pairs[by_entry] = in_order(list(by_entry))
      infosets[name] = min(own_entries), legal, known_pairs[by_entry]
      begin += count
    result.append(infosets)
  return result
