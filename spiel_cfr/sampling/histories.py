"""The tree of a game's histories as arrays, for solvers that sample histories.

Sequence form has no histories, so a compiled game that is to be sampled is walked a second time. Its infosets
have the numbers that `table.table_of` gives them.
"""

import array
from typing import NamedTuple

import numpy as np

from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.kernels.arrays import FLOAT_TABLE, FLOATS, INDEX_TABLE, Float64s, Uint32s, tuple_type

# Columns of `Histories.nodes`.
MOVER, INDEX, FIRST_CHILD, CHILDREN = range(4)
# Values of `MOVER` that are not players.
CHANCE, TERMINAL = 0xFFFF_FFFF, 0xFFFF_FFFE


class Histories(NamedTuple):
  """A game tree. Node 0 is the root; children of a node stand together, in the order of its legal actions.

  Attributes:
    nodes: uint32 of shape (nodes, 4), columns `MOVER` (the player to move, `CHANCE` or `TERMINAL`), `INDEX` (the entry
      of the infoset's action 0 in a `Table`, the first entry of `probabilities`, or the row of `returns`),
      `FIRST_CHILD` and `CHILDREN` (how many).
    probabilities: of chance's outcomes, chance node by chance node.
    returns: shape (different outcomes, players): few enough to stay in cache.
  """

  nodes: Uint32s
  probabilities: Float64s
  returns: Float64s


HISTORIES = tuple_type(Histories, INDEX_TABLE, FLOATS, FLOAT_TABLE)


def compile_histories(compiled: CompiledGame) -> tuple[Histories, int]:
  """Walks the states of a compiled game once more.

  Returns:
    The tree, and the largest number of players' moves in a history.
  """
  game = compiled.game
  num_players, num_nodes = compiled.num_players, compiled.num_states
  entries: list[dict[str, int]] = []
  end = num_players
  for infostates, num_actions in zip(compiled.infostates, compiled.num_actions, strict=True):
    first = end + np.cumsum(num_actions) - num_actions
    entries.append(dict(zip(infostates, first.tolist(), strict=True)))
    end += int(num_actions.sum())

  mover, index, first_child, children = (array.array("I", bytes(4 * num_nodes)) for _ in range(4))
  probabilities, returns = array.array("d"), array.array("d")
  next_node, deepest = 1, 0
  stack = [(game.new_initial_state(), 0, 0)]
  while stack:
    state, node, depth = stack.pop()
    player = state.current_player()
    first_child[node] = next_node
    if player >= 0:
      mover[node] = player
      index[node] = entries[player][state.information_state_string()]
      actions = state.legal_actions()
      depth += 1
      deepest = max(deepest, depth)
    elif state.is_terminal():
      mover[node] = TERMINAL
      index[node] = len(returns) // num_players
      returns.extend(state.returns())
      continue
    else:
      mover[node] = CHANCE
      index[node] = len(probabilities)
      outcomes = state.chance_outcomes()
      actions = [action for action, _ in outcomes]
      probabilities.extend(probability for _, probability in outcomes)
    children[node] = len(actions)
    next_node += len(actions)
    for child in range(len(actions) - 1, 0, -1):
      stack.append((state.child(actions[child]), first_child[node] + child, depth))
    # The state becomes its own first child, which saves a copy.
    state.apply_action(actions[0])
    stack.append((state, first_child[node], depth))
  different, rows = np.unique(
    np.array(returns).reshape(-1, num_players), axis=0, return_inverse=True
  )
  nodes = np.stack(
    [np.frombuffer(column, np.uint32) for column in (mover, index, first_child, children)], axis=1
  )
  terminal = nodes[:, MOVER] == TERMINAL
  nodes[terminal, INDEX] = rows.ravel()[nodes[terminal, INDEX]]
  return Histories(nodes, np.array(probabilities), different), deepest
