"""The tree of a game's histories as arrays, for solvers that sample histories.

Sequence form has no histories. A compiled game that is to be sampled is walked a second time, and the infosets of this
walk are compared with the compiled ones.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba import arrays
from spiel_cfr._numba.arrays import Int64s
from spiel_cfr._numba.records import Doubles, DoubleTable, IndexTable
from spiel_cfr.games.openspiel import history_list
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.history_list import HistoryList, Move, in_order
from spiel_cfr.games.openspiel.state_checks import inconsistent_actions

# Columns of `Histories.nodes`.
MOVER, INDEX, FIRST_CHILD, CHILDREN = range(4)
# Values of `MOVER` that are not players.
CHANCE, TERMINAL = 0xFFFF_FFFF, 0xFFFF_FFFE


class Histories(NamedTuple):
  """A game tree. Node 0 is the root; children of a node are consecutive, in the order of its legal actions.

  An *entry* is the number of an action of an infoset: the actions of all infosets, player by player, from the number of
  players on. The entries before them stand for the players' empty sequences.

  Attributes:
    nodes: uint32 (nodes, 4). `MOVER`: the player to move, `CHANCE` or `TERMINAL`. `INDEX`: the entry of the infoset's
      action 0, the first element of `probabilities`, or the row of `returns`. `FIRST_CHILD`: the first child.
      `CHILDREN`: the number of children.
    probabilities: float64 (outcomes,). The probabilities of chance's outcomes, chance node by chance node.
    returns: float64 (different outcomes, players). The returns, few enough to stay in cache.
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
  """Walks the states of a compiled game once more.

  Args:
    view: the game.
    infostates: as of `CompiledGame`.
    actions: as of `CompiledGame`.
    num_actions: as of `CompiledGame`.
    max_nodes: largest number of histories.
    entries: int64 (actions,). The entry of each action, player by player, counted from 0. Entries of an infoset are
      consecutive, in any order. By default, each action has its own.

  Returns:
    The tree, and the largest number of moves in a history.

  Raises:
    GameTooLargeError: there are more histories than `max_nodes`.
    InconsistentInfosetError: the game has other infosets, or other legal actions, than the compiled game.
  """
  if entries is None:
    entries = np.arange(sum(map(len, actions)))
  infosets = _infosets(infostates, actions, num_actions, entries)

  def decide(state: Any, player: int) -> tuple[int, list[Move]]:
    infostate = view.infostate(state)
    infoset = infosets[player].get(infostate)
    if infoset is None:
      raise errors.InconsistentInfosetError(
        f"Player {player}'s infostate {infostate!r} after the history [{state.history_str()}] is "
        f"not in the compiled game. {_LOST_FILTER}"
      )
    first, legal, moves = infoset
    if view.legal_actions(state) != legal:
      raise errors.InconsistentInfosetError(
        f"{inconsistent_actions(view, state, legal)} {_LOST_FILTER}"
      )
    return first, moves

  found = HistoryList(view, max_nodes, decide, advice=f" The limit is max_nodes={max_nodes:,}.")
  found.add(view.new_initial_state())
  columns, chances = found.columns(), np.array(found.chances)
  parent, place, mover = columns["parent"][1:], columns["move"][1:], columns["mover"]
  is_chance, ends = mover == history_list.CHANCE, mover == history_list.TERMINAL
  children = np.bincount(parent, minlength=len(mover))
  first_child = 1 + np.cumsum(children) - children
  # Nodes are renumbered so that the children of a node are consecutive, in the order of its moves.
  node = np.concatenate([[0], first_child[parent] + place])
  outcomes = np.where(is_chance, children, 0)
  index = np.where(is_chance, np.cumsum(outcomes) - outcomes, columns["infoset"])
  probabilities = np.empty(outcomes.sum())
  by_chance = is_chance[parent]
  probabilities[index[parent[by_chance]] + place[by_chance]] = chances[1:][by_chance]
  returns, rows = np.unique(np.array(found.returns), axis=0, return_inverse=True)
  index[ends] = rows.ravel()
  nodes = np.empty((len(mover), 4), np.uint32)
  # As unsigned 32-bit integers, chance and terminals of `history_list` are `CHANCE` and `TERMINAL` here.
  nodes[node] = np.stack([mover, index, first_child, children], axis=1).astype(np.uint32)
  return Histories(nodes, probabilities, returns), int(columns["length"].max())


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
) -> list[dict[str, tuple[int, list[int], list[Move]]]]:
  """Returns, for each player, a dict from infostates to: first entry, legal actions, moves with places in entries."""
  # Most infosets share their list of actions with others.
  known: dict[tuple[int, ...], list[int]] = {}
  moves_of: dict[tuple[int, ...], list[Move]] = {}
  result = []
  places = (len(infostates) + entries).tolist()
  every, begin = np.concatenate(actions).tolist(), 0
  for names, counts in zip(infostates, num_actions, strict=True):
    infosets = {}
    for name, count in zip(names, counts.tolist(), strict=True):
      here = slice(begin, begin + count)
      legal = known.setdefault(tuple(every[here]), every[here])
      order = tuple(action for _, action in sorted(zip(places[here], legal, strict=True)))
      if order not in moves_of:
        moves_of[order] = in_order(list(order))
      infosets[name] = min(places[here]), legal, moves_of[order]
      begin += count
    result.append(infosets)
  return result
