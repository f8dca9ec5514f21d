"""Sets of deviations whose regrets EFR minimizes, and the layout of these regrets in flat arrays.

A deviator is a player that does not follow all recommendations of a mediator. Its memory at an infoset I is what it
knows of the recommendations at its earlier infosets. The probability of a memory is the product of the probabilities
with which the player's strategy takes the actions that were recommended. Let I_0, ..., I_{n-1} be the player's infosets
above I, and a_k the action at I_k that leads to I. The kinds of memories:

    forced     no recommendation, probability 1: the deviator has deviated from the start of the game
    partial    a_0, ..., a_{k-1} were recommended, for each k < n: it deviated at I_k before the recommendation there
    triggered  a_0, ..., a_{k-1} were recommended and then b, not a_k, for each k and b: it deviated after seeing b
    followed   a_0, ..., a_{n-1} were recommended: it has not deviated yet
    recalled   any list of actions at I_0, ..., I_{n-1}

A memory of the first four kinds is given by a sequence of the player, and has the probability of that sequence. A
recalled memory is a list of recommended actions, which need not lead to I. An external deviation plays a fixed action
at I, whatever is recommended. An internal deviation plays an action a if b is recommended, and otherwise follows. Below
I the deviator follows the recommendations again. Source: Morrill et al., "Efficient Deviation Types and Learning for
Hindsight Rationality in Extensive-Form Games" (2021), section 5.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import concatenated_ranges
from spiel_cfr._numba.records import Longs
from spiel_cfr._util import arguments
from spiel_cfr._util.copying import FrozenMapping
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.history_list import NONE

FORCED, PARTIAL, TRIGGERED, FOLLOWED, RECALLED = (
  "forced",
  "partial",
  "triggered",
  "followed",
  "recalled",
)
_MOST_REGRETS = 1 << 26


class DeviationSet(NamedTuple):
  """Set of deviations, described by the kinds of memories at which its deviators may deviate.

  Attributes:
    external: tuple of str. The kinds of memories with external deviations.
    internal: tuple of str. The kinds of memories with internal deviations.
  """

  external: tuple[str, ...] = ()
  internal: tuple[str, ...] = ()


DEVIATIONS: Mapping[str, DeviationSet] = FrozenMapping(
  {
    "blind action": DeviationSet(external=(FOLLOWED,)),
    "informed action": DeviationSet(internal=(FOLLOWED,)),
    "blind counterfactual": DeviationSet(external=(FORCED,)),
    "informed counterfactual": DeviationSet(internal=(FORCED,)),
    "blind partial sequence": DeviationSet(external=(PARTIAL, FOLLOWED)),
    "counterfactual partial sequence": DeviationSet(internal=(PARTIAL, FOLLOWED)),
    "causal partial sequence": DeviationSet(external=(PARTIAL, TRIGGERED), internal=(FOLLOWED,)),
    "twice informed partial sequence": DeviationSet(internal=(PARTIAL, TRIGGERED, FOLLOWED)),
    "behavioral": DeviationSet(internal=(RECALLED,)),
  }
)
# Names in OpenSpiel, and their names in `DEVIATIONS`.
_OPEN_SPIEL_NAMES = {
  "blind cf": "blind counterfactual",
  "informed cf": "informed counterfactual",
  "bps": "blind partial sequence",
  "cfps": "counterfactual partial sequence",
  "cf partial sequence": "counterfactual partial sequence",
  "csps": "causal partial sequence",
  "casual partial sequence": "causal partial sequence",
  "tips": "twice informed partial sequence",
  "bhv": "behavioral",
  "behavioural": "behavioral",
  "single target behavioural": "behavioral",
}


def full_name(deviations: str) -> str:
  """Returns the name in `DEVIATIONS` of a set of deviations, given that name or OpenSpiel's.

  Raises:
    ArgumentError: the name is unknown.
  """
  name = (
    _OPEN_SPIEL_NAMES.get(deviations, deviations) if isinstance(deviations, str) else deviations
  )
  arguments.one_of(name, "deviations", tuple(DEVIATIONS))
  return name


class Memories(NamedTuple):
  """Memories of all infosets, and the layout of their regrets.

  Infosets are in layout order, player by player. *Nodes* number everything that gives a memory its probability: first
  the sequences, up to `CompiledGame.end`, then the action lists. An action list has a recommended action at each of a
  player's infosets on a path, down to the infoset at which the list ends. Only recalled memories have action lists.

  Attributes:
    sequence: int64 (infosets,). The sequence of action 0 of each infoset.
    stride: int64 (infosets,). The distance from each action's sequence to the next action's.
    num_actions: int64 (infosets,). The number of actions of each infoset.
    begin: int64 (infosets + 1,). The first memory of each infoset; last, the number of memories.
    node: int64 (memories,). The node whose probability is the memory's.
    internal: int64 (memories,). 1 if the deviations of a memory are internal, 0 if they are external. At each infoset,
      external memories come first.
    offset: int64 (memories + 1,). The first regret of each memory; last, the number of regrets. An external memory has
      a regret for each action, an internal one for each pair of a recommended and a played action.
    above: int64 (memories,). The memory with the same node at the player's infoset above; `NONE` if there is none.
    trigger: int64 (memories,). The last recommendation in a memory, if it was made at the infoset above; `NONE` if that
      infoset has the memory too.
    infoset_above: int64 (infosets,). The player's infoset above each infoset; `NONE` at the player's first infosets.
    action_above: int64 (infosets,). The action at the infoset above that leads to each infoset.
    sequence_above: int64 (infosets,). The sequence above each infoset.
    action_list_begin: int64 (infosets + 1,). The first action list that ends at each infoset; last, the number of
      lists.
    action_list_parent: int64 (action lists,). The node of each list without its last action.
    action_list_last: int64 (action lists,). The sequence that ends with the last action of each list.
  """

  sequence: Longs
  stride: Longs
  num_actions: Longs
  begin: Longs
  node: Longs
  internal: Longs
  offset: Longs
  above: Longs
  trigger: Longs
  infoset_above: Longs
  action_above: Longs
  sequence_above: Longs
  action_list_begin: Longs
  action_list_parent: Longs
  action_list_last: Longs


def make_memories(game: CompiledGame, name: str) -> Memories:
  """Returns the memories of a set of deviations in a game.

  Args:
    game: the game.
    name: the name of the set in `DEVIATIONS`.

  Raises:
    GameTooLargeError: there are more than 2^26 regrets.
  """
  layout = _MemoryLists(game, name)
  owner = np.repeat(np.arange(game.num_infosets), np.diff(layout.begin))
  node, above, trigger, triggered = np.array(layout.rows, np.int64).reshape(-1, 4).T
  followed = node == layout.sequence_above[owner]
  is_kind = {
    FORCED: np.isin(node, [tree.root for tree in game.treeplexes]),
    PARTIAL: ~followed & (triggered == 0),
    TRIGGERED: triggered > 0,
    FOLLOWED: followed,
    RECALLED: np.ones(len(node), bool),
  }
  external, internal = (
    np.logical_or.reduce([is_kind[kind] for kind in kinds]) | np.zeros(len(node), bool)
    for kinds in DEVIATIONS[name]
  )
  kept = external | internal
  # The number of each memory after memories without deviations are left out; its last entry stands for `NONE`.
  number = np.append(np.where(kept, np.cumsum(kept) - 1, NONE), NONE)
  first, stride, count, num_actions, *_ = game.groups.astype(np.int64).T
  actions_of_infosets = np.repeat(num_actions, count)
  actions = actions_of_infosets[owner]
  sizes = np.where(internal, actions**2, actions)[kept]
  _check_size(game, name, sizes.sum())
  return Memories(
    sequence=concatenated_ranges(first, count),
    stride=np.repeat(stride, count),
    num_actions=actions_of_infosets,
    begin=np.searchsorted(owner[kept], np.arange(game.num_infosets + 1)),
    node=node[kept],
    internal=internal[kept].astype(np.int64),
    offset=np.append(0, np.cumsum(sizes)),
    above=number[above[kept]],
    trigger=trigger[kept],
    infoset_above=layout.infoset_above,
    action_above=layout.action_above,
    sequence_above=layout.sequence_above,
    action_list_begin=np.array(layout.action_list_begin, np.int64),
    action_list_parent=np.array(layout.action_list_parent, np.int64),
    action_list_last=np.array(layout.action_list_last, np.int64),
  )


def _check_size(game: CompiledGame, name: str, count: float) -> None:
  """Raises GameTooLargeError if `count` regrets are too many."""
  if count > _MOST_REGRETS:
    raise errors.GameTooLargeError(
      f"The {name} deviations of {game} have more than {_MOST_REGRETS:,} regrets. Use a smaller set, such as "
      "'blind partial sequence'."
    )


class _Memory(NamedTuple):
  """Memory at an infoset. `Memories` has the first three attributes as arrays.

  Attributes:
    node: int. The node whose probability is the memory's.
    above: int. The memory with the same node at the infoset above, or `NONE`.
    trigger: int. The last recommendation in the memory, if it was made at the infoset above; otherwise `NONE`.
    is_triggered: int. 1 if the last recommendation in the memory was not followed, otherwise 0.
  """

  node: int
  above: int
  trigger: int
  is_triggered: int


class _MemoryLists:
  """Lists of all memories, from which `make_memories` selects; see `Memories` for attributes not described here.

  Attributes:
    sequences: list of lists of int. For each infoset, the sequences of its actions.
    rows: list of `_Memory`. The memories of all infosets.
  """

  def __init__(self, game: CompiledGame, name: str) -> None:
    self._end, self.sequences = game.end, list[list[int]]()
    # The infoset and the action of each sequence.
    owner, action = np.full((2, game.end), NONE)
    for tree in game.treeplexes:
      for sequences, _ in tree.infoset_groups():
        owner[sequences] = len(self.sequences) + np.arange(sequences.shape[1])
        action[sequences] = np.arange(len(sequences))[:, None]
        self.sequences += sequences.T.tolist()
    self.sequence_above = game.parent.astype(np.int64)
    self.infoset_above = owner[self.sequence_above]
    self.action_above = action[self.sequence_above]
    self.begin, self.action_list_begin = [0], [0]
    self.rows = list[_Memory]()
    self.action_list_parent, self.action_list_last = list[int](), list[int]()
    kinds_of_memories = {kind for kinds in DEVIATIONS[name] for kind in kinds}
    has_infosets_below = set(self.infoset_above.tolist())
    for infoset, infoset_above in enumerate(self.infoset_above.tolist()):
      if RECALLED in kinds_of_memories:
        self._add_lists(infoset, infoset_above, infoset in has_infosets_below)
      else:
        self._add_sequences(infoset, infoset_above, TRIGGERED in kinds_of_memories)
      self.begin.append(len(self.rows))
      self.action_list_begin.append(len(self.action_list_parent))
      # Each memory and each list has several regrets.
      _check_size(game, name, 4 * (len(self.rows) + len(self.action_list_parent)))

  def _add_sequences(self, infoset: int, infoset_above: int, with_triggered: bool) -> None:
    """Adds the memories of an infoset that are sequences.

    They are the memories of the infoset above, the memories triggered there, and last the memory of all
    recommendations.
    """
    sequence_above = int(self.sequence_above[infoset])
    if infoset_above != NONE:
      self.rows += [
        self.rows[memory]._replace(above=memory, trigger=NONE)
        for memory in range(self.begin[infoset_above], self.begin[infoset_above + 1])
      ]
    if infoset_above != NONE and with_triggered:
      self.rows += [
        _Memory(sequence, NONE, action, 1)
        for action, sequence in enumerate(self.sequences[infoset_above])
        if sequence != sequence_above
      ]
    self.rows.append(_Memory(sequence_above, NONE, int(self.action_above[infoset]), 0))

  def _add_lists(self, infoset: int, infoset_above: int, has_infosets_below: bool) -> None:
    """Adds a memory for each action list at earlier infosets, and the action lists that end here if needed."""
    nodes = [int(self.sequence_above[infoset])]
    if infoset_above != NONE:
      first, last = self.action_list_begin[infoset_above : infoset_above + 2]
      nodes = list(range(self._end + first, self._end + last))
    self.rows += [_Memory(node, NONE, NONE, 0) for node in nodes]
    if has_infosets_below:
      for node in nodes:
        self.action_list_parent += [node] * len(self.sequences[infoset])
        self.action_list_last += self.sequences[infoset]
