"""The tree of a game's histories as arrays, for solvers that sample histories.

Sequence form has no histories, so a compiled game that is to be sampled is walked a second time, and what is met on
the way is compared with what was compiled.
"""

import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba import arrays
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import (
  ReturnsCheck,
  chance_outcomes,
  inconsistent_actions,
)

# Columns of `Histories.nodes`.
MOVER, INDEX, FIRST_CHILD, CHILDREN = range(4)
# Values of `MOVER` that are not players.
CHANCE, TERMINAL = 0xFFFF_FFFF, 0xFFFF_FFFE


class Histories(NamedTuple):
  """A game tree. Node 0 is the root; children of a node stand together, in the order of its legal actions.

  Attributes:
    nodes: uint32 of shape (nodes, 4), columns `MOVER` (the player to move, `CHANCE` or `TERMINAL`), `INDEX` (the entry
      of the infoset's action 0, the first entry of `probabilities`, or the row of `returns`), `FIRST_CHILD` and
      `CHILDREN` (how many). Entries number the actions of all infosets, player by player, from the number of players
      on: before them is room for each player's empty sequence.
    probabilities: float64, of chance's outcomes, chance node by chance node.
    returns: float64 of shape (different outcomes, players): few enough to stay in cache.
  """

  nodes: Uint32s
  probabilities: Float64s
  returns: Float64s

  def __reduce__(self) -> tuple[Any, ...]:
    return arrays.unpickled, (Histories, *self)


HISTORIES = arrays.tuple_type(Histories, arrays.INDEX_TABLE, arrays.FLOATS, arrays.FLOAT_TABLE)


def compile_histories(
  view: GameView,
  infostates: Sequence[Sequence[str]],
  actions: Sequence[Int64s],
  num_actions: Sequence[Int64s],
  max_nodes: int,
  entries: Int64s | None = None,
) -> tuple[Histories, int]:
  """Walks the states of a compiled game once more.

  `infostates`, `actions` and `num_actions` are those of `CompiledGame`, and there may be `max_nodes` histories. By
  default, every action of every infoset has an entry of its own; `entries` says which each has, player by player,
  and those of an infoset are in a row, in any order.

  Returns:
    The tree, and the largest number of players' moves in a history.

  Raises:
    GameTooLargeError: there are more histories than `max_nodes`.
    InconsistentInfosetError: the game has other infosets, or other legal actions, than were compiled.
  """
  num_players = len(infostates)
  if entries is None:
    entries = np.arange(sum(map(len, actions)))
  infosets = _infosets(infostates, actions, num_actions, entries)
  infostate_of, legal_actions_of = view.infostate, view.legal_actions
  # A column of `nodes` each, in the order of the walk, and where in `nodes` a row goes.
  columns = [array.array("I") for _ in range(5)]
  add_place, add_mover, add_index, add_first_child, add_children = (
    column.append for column in columns
  )
  probabilities, returns = array.array("d"), array.array("d")
  next_node, deepest = 1, 0
  check = ReturnsCheck(view)
  stack = [(view.new_initial_state(), 0, 0)]
  while stack:
    state, node, depth = stack.pop()
    player = state.current_player()
    add_place(node)
    add_first_child(next_node)
    if 0 <= player < num_players:
      infostate = infostate_of(state)
      infoset = infosets[player].get(infostate)
      if infoset is None:
        raise errors.InconsistentInfosetError(
          f"Player {player}'s infostate {infostate!r} after the history [{state.history_str()}] is "
          f"not in the compiled game. {_LOST_FILTER}"
        )
      first, legal, moves = infoset
      if legal_actions_of(state) != legal:
        raise errors.InconsistentInfosetError(
          f"{inconsistent_actions(view, state, legal)} {_LOST_FILTER}"
        )
      add_mover(player)
      add_index(first)
      depth += 1
      deepest = max(deepest, depth)
    elif state.is_terminal():
      add_mover(TERMINAL)
      add_index(len(returns) // num_players)
      add_children(0)
      own_returns = view.returns(state)
      if len(own_returns) != num_players:
        check(state, own_returns)
      returns.extend(own_returns)
      continue
    else:
      add_mover(CHANCE)
      add_index(len(probabilities))
      outcomes = chance_outcomes(view, state)
      moves = [action for action, _ in outcomes]
      probabilities.extend(probability for _, probability in outcomes)
    add_children(len(moves))
    child = next_node
    next_node += len(moves)
    if next_node > max_nodes:
      raise errors.GameTooLargeError(
        f"The game has more than max_nodes={max_nodes:,} histories, and each would be kept."
      )
    for later in range(len(moves) - 1, 0, -1):
      stack.append((state.child(moves[later]), child + later, depth))
    # The state becomes its own first child, which saves a copy.
    state.apply_action(moves[0])
    stack.append((state, child, depth))
  different, rows = np.unique(
    np.array(returns).reshape(-1, num_players), axis=0, return_inverse=True
  )
  place, *rest = (np.frombuffer(column, np.uint32) for column in columns)
  nodes = np.empty((len(place), len(rest)), np.uint32)
  nodes[place] = np.stack(rest, axis=1)
  terminal = nodes[:, MOVER] == TERMINAL
  nodes[terminal, INDEX] = rows.ravel()[nodes[terminal, INDEX]]
  return Histories(nodes, np.array(probabilities), different), deepest


# The usual cause: a filter is a function, which files do not hold.
_LOST_FILTER = (
  "If the game was compiled with an action filter and then read from a file, compile it again: "
  "files do not keep filters."
)


def _infosets(
  infostates: Sequence[Sequence[str]],
  actions: Sequence[Int64s],
  num_actions: Sequence[Int64s],
  entries: Int64s,
) -> list[dict[str, tuple[int, list[int], list[int]]]]:
  """Returns, for each player, infostate -> (the first entry, the legal actions, and in the order of entries)."""
  # Most infosets share their list of actions with others.
  known: dict[tuple[int, ...], list[int]] = {}
  result = []
  places = (len(infostates) + entries).tolist()
  every, begin = np.concatenate(actions).tolist(), 0
  for names, counts in zip(infostates, num_actions, strict=True):
    infosets = {}
    for name, count in zip(names, counts.tolist(), strict=True):
      here = slice(begin, begin + count)
      legal = known.setdefault(tuple(every[here]), every[here])
      # Both lists are in most games the same.
      order = tuple(action for _, action in sorted(zip(places[here], legal, strict=True)))
      infosets[name] = min(places[here]), legal, known.setdefault(order, list(order))
      begin += count
    result.append(infosets)
  return result
